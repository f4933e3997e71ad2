/* SPDX-License-Identifier: Apache-2.0 */
/* serve_plan.c - what two searches for a deployment are compared by: the fleets that won, what they carry, their latencies, their cost. */
#include "base/check.h"
#include "base/str.h"
#include "report/diff/diff.h"

/* Number k of the parts of a fleet that have this role; NULL: there are fewer. */
static struct maq_node *part_of(const struct maq_node *fleet, const char *role, uint32_t k)
{
    struct maq_node *part = fleet && fleet->kind == MAQ_NODE_SEQ ? fleet->first : NULL;
    for (; part; part = part->next) {
        const struct maq_node *of = part->kind == MAQ_NODE_MAP ? maq_node_peek(part, "role") : NULL;
        if (of && of->kind == MAQ_NODE_SCALAR && maq_str_is(of->text, role) && k-- == 0)
            return part;
    }
    return NULL;
}

/* What each part of the fleet is: the only one, or pools by their role. */
static void add_fleet(struct maq_diff_reader *r)
{
    static const struct {
        const char *role, *section;
    } roles[] = {{"both", "fleet"}, {"prefill", "prefill"}, {"decode", "decode"}};
    static const char *const less[] = {"candidate", "role", NULL};
    struct maq_node *fleet[MAQ_DIFF_SIDES], *of[MAQ_DIFF_SIDES];
    maq_diff_nodes(fleet, r->diff, "best.fleet");
    for (size_t i = 0; i < MAQ_COUNT(roles); i++)
        for (uint32_t k = 0; r->status == MAQ_OK; k++) {
            for (int s = 0; s < MAQ_DIFF_SIDES; s++)
                of[s] = part_of(fleet[s], roles[i].role, k);
            if (!of[0] && !of[1])
                break;
            maq_diff_settings_of(r, of, roles[i].section, less);
        }
}

static void add_figures(struct maq_diff_reader *r)
{
    static const struct {
        const char *key, *name;
        enum maq_diff_unit unit;
        int better;
    } figures[] = {{"requests_per_s", "requests/s", MAQ_DIFF_PER_S, 1},
                   {"gpus", "GPUs", MAQ_DIFF_COUNT, -1},
                   {"usd_per_hour", "USD an hour", MAQ_DIFF_USD, -1},
                   {"output_tokens_per_s", "output tokens/s", MAQ_DIFF_PER_S, 1},
                   {"ttft_mean_s", "TTFT, mean", MAQ_DIFF_SECONDS, -1},
                   {"ttft_p95_s", "TTFT p95", MAQ_DIFF_SECONDS, -1},
                   {"tpot_mean_s", "TPOT, mean", MAQ_DIFF_SECONDS, -1},
                   {"tpot_p95_s", "TPOT p95", MAQ_DIFF_SECONDS, -1}};
    struct maq_node *of[MAQ_DIFF_SIDES];
    maq_diff_nodes(of, r->diff, "best");
    for (size_t i = 0; i < MAQ_COUNT(figures); i++)
        (void)maq_diff_figure(r, figures[i].key, figures[i].name, figures[i].unit, figures[i].better,
                              maq_diff_member(r, of, figures[i].key));
}

void maq_diff_read_serve_plan(struct maq_diff_reader *r)
{
    static const struct {
        const char *path, *section;
    } asked[] = {{"model", "model"}, {"cluster", "cluster"}, {"slo", "bounds"}, {"asked_requests_per_s", "requests/s"}};
    struct maq_node *of[MAQ_DIFF_SIDES];
    maq_diff_require(r, "model");
    maq_diff_require(r, "candidates");
    for (size_t i = 0; i < MAQ_COUNT(asked); i++)
        maq_diff_settings(r, asked[i].path, asked[i].section);
    maq_diff_verdict(r->diff, "carries", "does not carry the rate that was asked");
    for (int s = 0; s < MAQ_DIFF_SIDES; s++)
        if (!maq_diff_node(r->diff, (enum maq_diff_side)s, "best"))
            r->diff->verdict[s] = "no deployment holds the bounds";
    add_fleet(r);
    add_figures(r);
    struct maq_diff_table *t = maq_diff_table(r, "counts", "Deployments by what became of them", MAQ_DIFF_COUNT, 0);
    maq_diff_nodes(of, r->diff, "counts");
    maq_diff_members(r, t, of, "");
}
