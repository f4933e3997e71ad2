/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loads.c - the same deployment under other loads: rates, or numbers of requests under way, around the one that is asked for. Where all
 * requests come at once, numbers under way from one on.
 */
#include "cli/serve/loads.h"

#define ITERATIONS_MOST 300000u /* of the run that is asked for: each other one takes about as many */

static const double factors[] = {0.25, 0.5, 0.75, 1, 1.25, 1.5, 2};
static const double doublings[] = {0.125, 0.25, 0.5, 1, 2, 4};
static const double from_one[] = {1, 4, 16, 64, 256, 1024};

static void note(struct serve_loads *out, double load, bool asked, const struct maq_serve_result *r)
{
    out->at[out->n++] =
        (struct maq_report_serve_load){.load = load,
                                       .asked = asked,
                                       .overloaded = r->overloaded,
                                       .requests_per_s = r->requests_per_s,
                                       .output_tokens_per_s_per_device = r->output_tokens_per_s / r->n_devices,
                                       .ttft_s = r->ttft_s,
                                       .tpot_s = r->tpot_s,
                                       .e2el_s = r->e2el_s};
}

static enum maq_status try_load(struct serve_loads *out, struct cli *cli, const struct maq_fleet *fleet,
                                const struct serve_given *asked, double load)
{
    struct maq_request_set *set;
    struct maq_serve_result *r;
    enum maq_status status = cli_serve_draw(&set, cli, asked, 0);
    if (status != MAQ_OK)
        return status;
    status = maq_fleet_run(&r, fleet, maq_requests_get(set), cli->diag);
    if (status == MAQ_OK) {
        if (r->finished > 0)
            note(out, load, false, r);
        maq_serve_free(r);
    }
    maq_requests_free(set);
    return status;
}

enum maq_status cli_serve_loads(struct serve_loads *out, struct cli *cli, const struct maq_fleet *fleet,
                                const struct serve_given *given, const struct maq_serve_result *run)
{
    enum maq_status status = MAQ_OK;
    bool recorded = cli_serve_is_recorded(given), closed = given->spec.concurrency > 0;
    bool at_once = !recorded && !closed && !(given->spec.rate > 0);
    double base = recorded ? given->speed : closed ? given->spec.concurrency : given->spec.rate;
    const double *list = at_once ? from_one : closed ? doublings : factors;
    size_t n = at_once ? CLI_COUNT(from_one) : closed ? CLI_COUNT(doublings) : CLI_COUNT(factors);
    *out = (struct serve_loads){.kind = recorded            ? MAQ_LOAD_SPEED
                                        : closed || at_once ? MAQ_LOAD_CONCURRENCY
                                                            : MAQ_LOAD_RATE};
    if (!run->fits || run->finished == 0 || run->iterations > ITERATIONS_MOST)
        return MAQ_OK;
    for (size_t i = 0; i < n && status == MAQ_OK; i++) {
        struct serve_given asked = *given;
        asked.spec.n = recorded ? given->spec.n : run->n_requests; /* as many, however fast they come */
        double load = at_once ? list[i] : base * list[i];
        bool same = !at_once && !(list[i] < 1) && !(list[i] > 1);
        if (same) {
            note(out, base, true, run);
            continue;
        }
        if (recorded) {
            asked.speed = load;
        } else if (closed || at_once) {
            load = (double)(int64_t)load;
            asked.spec.concurrency = (uint32_t)load;
            if (load < 1 || (out->n > 0 && load <= out->at[out->n - 1].load) || load > asked.spec.n)
                continue;
        } else {
            asked.spec.rate = load;
        }
        cli_progress(cli, "other loads: %zu of %zu", i + 1, n);
        status = try_load(out, cli, fleet, &asked, load);
    }
    cli_progress(cli, "%s", "");
    return status;
}
