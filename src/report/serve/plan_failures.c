/* SPDX-License-Identifier: Apache-2.0 */
/* plan_failures.c - what failures make of the best deployment, in lines and as a part of the document. */
#include <math.h>

#include "base/check.h"
#include "base/units.h"
#include "report/json_util.h"
#include "report/serve/plan_parts.h"
#include "report/words.h"

#define DAY_S 86400.0

static void put(const struct maq_lines *to, const char *label, struct maq_buf *line)
{
    to->put(to->user, label, line->ptr ? line->ptr : "");
    maq_buf_fini(line);
    maq_buf_init(line, 1 << 16);
}

/* Percent; of what is missing to all two digits. */
static void add_share(struct maq_buf *line, double share)
{
    double missing = 100 * (1 - share);
    int digits = missing > 1e-7 && missing < 10 ? 3 - (int)floor(log10(missing)) : 3;
    maq_buf_addf(line, "%.*g", digits, share * 100);
}

/* How many replicas, and what they are more than without failures. */
static void put_price(struct maq_buf *line, const struct maq_serve_part_of_fleet *part, uint32_t gpus)
{
    uint32_t more = part->replicas - part->needed;
    maq_buf_addf(line, "%u hold%s the bounds, ", part->needed, part->needed == 1 ? "s" : "");
    if (more > 0)
        maq_buf_addf(line, "%u are needed with failures, %u GPU%s more (%.3g %%): ", part->replicas, more * gpus,
                     maq_words_s(more * gpus), 100.0 * more / part->needed);
    else
        maq_buf_adds(line, "and no more are needed with failures: ");
}

/* While replicas lack no request is within its bounds, where all go to the others; or as many as those carry, where no more are let in. */
static void add_expected(struct maq_buf *line, const struct maq_availability *a, uint32_t needed)
{
    maq_buf_adds(line, "of the requests ");
    add_share(line, a->share);
    if (needed > 1) {
        maq_buf_adds(line, " to ");
        add_share(line, a->carried);
    }
    maq_buf_adds(line, " % are within the bounds in the long run");
    if (needed > 1)
        maq_buf_adds(line, ": none while a replica lacks, or as many as the others carry");
}

static void put_part(const struct maq_lines *to, struct maq_buf *line, const struct maq_report_serve_plan *p,
                     uint32_t i)
{
    const struct maq_serve_part_of_fleet *part = &p->search->fleet[i];
    const struct maq_availability *a = &p->failures->parts[i], *without = &p->failures->without[i];
    const struct maq_serve_candidate *c = &p->search->candidates[part->candidate];
    char out[32], every[32];
    bool several = p->search->n_fleet > 1; /* then what becomes of requests is not a part's */
    if (several && part->role != MAQ_ROLE_BOTH)
        maq_buf_addf(line, "%s: ", maq_role_name(part->role));
    else if (several)
        maq_buf_addf(line, "%s: ", c->job->cluster.groups[0].device.name);
    put_price(line, part, c->gpus);
    maq_buf_addf(line, "%s there ", part->needed == 1 ? "it is" : "as many are");
    add_share(line, a->share);
    maq_buf_adds(line, " % of the time");
    if (part->replicas > part->needed) {
        maq_buf_adds(line, ", without spares ");
        add_share(line, without->share);
        maq_buf_adds(line, " %");
    }
    put(to, "replicas", line);
    maq_buf_adds(line, "a replica is there ");
    add_share(line, a->one);
    maq_buf_adds(line, " % of the time");
    if (!isinf(a->out_every_s))
        maq_buf_addf(line, ": out every %s for %s in the mean", maq_format_time(every, a->out_every_s),
                     maq_format_time(out, a->out_s));
    put(to, "there", line);
    if (several)
        return;
    add_expected(line, a, part->needed);
    put(to, "expected", line);
}

static void put_draws(const struct maq_lines *to, struct maq_buf *line, const struct maq_availability_draws *t)
{
    maq_buf_adds(line, "enough replicas are there ");
    add_share(line, t->mean);
    maq_buf_adds(line, " % of a year in the mean, ");
    add_share(line, t->low);
    maq_buf_adds(line, " to ");
    add_share(line, t->high);
    maq_buf_addf(line, " %% over %u draws of failures, which hold a further one with %.0f %%", t->n_draws,
                 t->confidence * 100);
    put(to, "drawn", line);
}

static void put_attainment(const struct maq_lines *to, struct maq_buf *line, const struct maq_report_plan_failures *f)
{
    const struct maq_attainment *a = f->attainment;
    double mean = 0;
    char span[32];
    for (uint32_t i = 0; i < a->n_draws; i++)
        mean += a->of_draw[i] / a->n_draws;
    maq_buf_addf(line, "in the %s of the stream %.4g %% of the requests are within the bounds in the mean",
                 maq_format_time(span, f->stream_s), mean * 100);
    if (a->high > a->low)
        maq_buf_addf(line, ", %.4g to %.4g %%", a->low * 100, a->high * 100);
    maq_buf_addf(line, " over %u draws of failures; all bounds hold in %u of them", a->n_draws, a->met);
    if (f->no_spares && f->no_spares->high > f->no_spares->low)
        maq_buf_addf(line, ". Without spares %.4g points less in the mean of the same failures, %.4g to %.4g",
                     -f->no_spares->mean * 100, -f->no_spares->high * 100, -f->no_spares->low * 100);
    put(to, "attainment", line);
}

void maq_serve_failures_asked(struct maq_buf *line, const struct maq_report_plan_failures *f)
{
    maq_buf_addf(line, ". Replicas fail (%s", f->what);
    if (f->spare_nodes > 0)
        maq_buf_addf(line, ", %u spare node%s", f->spare_nodes, maq_words_s(f->spare_nodes));
    maq_buf_adds(line, "); as many as hold the bounds are to be there ");
    add_share(line, f->availability);
    maq_buf_adds(line, " % of the time");
}

void maq_serve_failures_lines(const struct maq_lines *to, const struct maq_report_serve_plan *p)
{
    const struct maq_report_plan_failures *f = p->failures;
    struct maq_buf line;
    maq_buf_init(&line, 1 << 16);
    for (uint32_t i = 0; f->parts && i < p->search->n_fleet; i++)
        put_part(to, &line, p, i);
    if (f->there)
        put_draws(to, &line, f->there);
    if (f->attainment)
        put_attainment(to, &line, f);
    maq_buf_fini(&line);
}

/* ---- the document ---- */

static void add_part(struct maq_json list, const struct maq_serve_part_of_fleet *part, const struct maq_availability *a,
                     const struct maq_availability *without)
{
    struct maq_json map = maq_json_item(list);
    MAQ_JSON_INTS(map, {"replicas", part->replicas}, {"needed_replicas", part->needed});
    MAQ_JSON_REALS(map, {"there_share", a->share}, {"there_share_without_spares", without->share},
                   {"carried_share", a->carried}, {"replicas_mean", a->replicas}, {"replica_there_share", a->one},
                   {"out_s", a->out_s});
    maq_json_positive(map, "out_every_s", isinf(a->out_every_s) ? 0 : a->out_every_s);
}

void maq_serve_failures_json(struct maq_json root, const struct maq_report_serve_plan *p)
{
    const struct maq_report_plan_failures *f = p->failures;
    struct maq_json map = maq_json_map(root, "failures"), list = maq_json_list(map, "fleet");
    maq_json_text(map, "what", f->what);
    MAQ_JSON_REALS(map, {"availability", f->availability});
    MAQ_JSON_INTS(map, {"spare_nodes", f->spare_nodes});
    for (uint32_t i = 0; f->parts && i < p->search->n_fleet; i++)
        add_part(list, &p->search->fleet[i], &f->parts[i], &f->without[i]);
    if (f->there) {
        struct maq_json drawn = maq_json_map(map, "drawn");
        MAQ_JSON_REALS(drawn, {"span_s", f->span_s}, {"mean", f->there->mean}, {"low", f->there->low},
                       {"high", f->there->high}, {"confidence", f->there->confidence});
        MAQ_JSON_INTS(drawn, {"draws", f->there->n_draws});
    }
    if (f->attainment) {
        struct maq_json share = maq_json_map(map, "attainment");
        MAQ_JSON_REALS(share, {"first", f->attainment->first}, {"low", f->attainment->low},
                       {"high", f->attainment->high}, {"confidence", f->attainment->confidence});
        MAQ_JSON_INTS(share, {"draws", f->attainment->n_draws}, {"draws_with_all_bounds_met", f->attainment->met});
        MAQ_JSON_REALS(share, {"span_s", f->stream_s});
        if (f->no_spares)
            MAQ_JSON_REALS(share, {"without_spares_difference_mean", f->no_spares->mean},
                           {"without_spares_difference_low", f->no_spares->low},
                           {"without_spares_difference_high", f->no_spares->high});
    }
}
