/* SPDX-License-Identifier: Apache-2.0 */
/*
 * requests.c - the requests that are asked for: drawn, or of a file, and when they come.
 *
 * A file has them as they were recorded. With a rate or a concurrency it says only what they are, as the data of a benchmark client do.
 */
#include <math.h>

#include "cli/codes.h"
#include "cli/serve/options.h"

#define REQUESTS_MOST 20000000u /* that a concurrency is sent in a time */

/* ---- what is said ---- */

/* The file says it; or nothing is there that it could be of. What the job has beside a file of the line does not count. */
static enum maq_status check_file(struct cli *cli)
{
    static const int of_drawn[] = {SERVE_ISL, SERVE_OSL, SERVE_SPREAD, SERVE_SHARED, SERVE_DISTINCT};
    static const int of_file[] = {SERVE_FROM, SERVE_SPEED};
    const bool file = cli->values[SERVE_REQUESTS] != NULL, of_line = cli->given_at[SERVE_REQUESTS].len == 0;
    for (size_t i = 0; file && i < CLI_COUNT(of_drawn); i++)
        if (cli->values[of_drawn[i]] && !(of_line && cli->given_at[of_drawn[i]].len > 0))
            return cli_usage(cli, MAQ_CODE_CLI_VALUE, "without it, or without --requests",
                             "%s has no effect: the requests of --requests are what the file says",
                             cli_serve_table[of_drawn[i]].name);
    for (size_t i = 0; !file && i < CLI_COUNT(of_file); i++)
        if (cli->values[of_file[i]])
            return cli_usage(cli, MAQ_CODE_CLI_VALUE, "--requests FILE", "%s has no effect: no file has the requests",
                             cli_serve_table[of_file[i]].name);
    if (file && cli->values[SERVE_SPEED] && (cli->values[SERVE_RATE] || cli->values[SERVE_CONCURRENCY]))
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, "one of them", "--speed has no effect: %s says when requests come",
                         cli->values[SERVE_RATE] ? "--rate" : "--concurrency");
    return MAQ_OK;
}

static enum maq_status check_arrivals(struct cli *cli, const struct serve_given *given, bool open)
{
    const struct maq_request_spec *s = &given->spec;
    if (!open && !given->requests && given->batch == 0 && !given->find_rate && s->rate <= 0 && s->concurrency == 0)
        return cli_usage(cli, MAQ_CODE_CLI_ARGUMENT, "--rate 8, --concurrency 64, --requests FILE or --batch 32",
                         "nothing says how requests come");
    if (s->rate > 0 && s->concurrency > 0)
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, NULL,
                         "--rate and --concurrency: one of them decides when requests come");
    if (cli->values[SERVE_BURSTINESS] && !open && s->rate <= 0 && (given->requests || !given->find_rate))
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, "--rate 8", "--burstiness has no effect: no rate is drawn from");
    return MAQ_OK;
}

enum maq_status cli_serve_requests(struct serve_given *out, struct cli *cli, bool open)
{
    struct maq_request_spec *s = &out->spec;
    uint32_t isl, osl, shared, batch, seed;
    enum maq_status worst = cli_count(cli, &isl, SERVE_ISL, 1, 1u << 30, 1024);
    worst = cli_first_fault(worst, cli_count(cli, &osl, SERVE_OSL, 1, 1u << 30, 128));
    worst = cli_first_fault(worst, cli_count(cli, &shared, SERVE_SHARED, 1, 1u << 30, 0));
    worst = cli_first_fault(worst, cli_count(cli, &s->concurrency, SERVE_CONCURRENCY, 1, 1u << 20, 0));
    worst = cli_first_fault(worst, cli_count(cli, &s->n, SERVE_NUMBER, 1, 100000000, 0));
    worst = cli_first_fault(worst, cli_count(cli, &batch, SERVE_BATCH, 1, 1u << 20, 0));
    worst = cli_first_fault(worst, cli_count(cli, &seed, SERVE_SEED, 0, UINT32_MAX, 0));
    worst = cli_first_fault(worst, cli_serve_number(cli, &s->rate, SERVE_RATE, 1e-9, 1e9, 0));
    worst = cli_first_fault(worst, cli_serve_number(cli, &s->burstiness, SERVE_BURSTINESS, 1e-3, 1e9, 1));
    worst = cli_first_fault(worst, cli_serve_number(cli, &s->duration_s, SERVE_DURATION, 1e-9, 1e9, 0));
    worst = cli_first_fault(worst, cli_serve_number(cli, &s->spread, SERVE_SPREAD, 0, 1, 0));
    worst = cli_first_fault(worst, cli_serve_number(cli, &out->speed, SERVE_SPEED, 1e-9, 1e9, 1));
    worst = cli_first_fault(worst, cli_serve_number(cli, &out->from_s, SERVE_FROM, 0, 1e12, 0));
    worst = cli_first_fault(worst, cli_count(cli, &s->distinct, SERVE_DISTINCT, 1, 1000000, 0));
    if (s->distinct > 0 && (shared > 0 || cli->values[SERVE_IMAGES]))
        worst = cli_first_fault(worst, cli_usage(cli, MAQ_CODE_CLI_VALUE, NULL,
                                                 "--distinct-prompts repeats whole prompts of text: not with %s",
                                                 shared > 0 ? "--shared-prefix" : "--images-per-request"));
    s->prompt = isl;
    s->output = osl;
    s->shared_prefix = shared;
    s->seed = seed;
    out->batch = batch;
    out->requests = cli->values[SERVE_REQUESTS];
    out->find_rate = cli->values[SERVE_FIND_RATE] != NULL;
    worst = cli_first_fault(worst, check_file(cli));
    if (worst == MAQ_OK)
        worst = check_arrivals(cli, out, open);
    if (s->n == 0 && s->duration_s <= 0 && !out->requests && !open)
        s->n = s->concurrency > 0 ? 10 * s->concurrency : 1000;
    return worst;
}

/* ---- as they come ---- */

bool cli_serve_is_recorded(const struct serve_given *given)
{
    return given->requests && !(given->spec.rate > 0) && given->spec.concurrency == 0;
}

struct maq_request_reading cli_serve_reading(const struct serve_given *given, uint32_t draw)
{
    const struct maq_request_spec *s = &given->spec;
    return (struct maq_request_reading){.from_s = given->from_s,
                                        .speed = given->speed,
                                        .duration_s = s->concurrency > 0 ? 0 : s->duration_s,
                                        .most = s->n,
                                        .rate = s->rate,
                                        .burstiness = s->burstiness,
                                        .concurrency = s->concurrency,
                                        .seed = s->seed + draw};
}

enum maq_status cli_serve_draw(struct maq_request_set **out, struct cli *cli, const struct serve_given *given,
                               uint32_t draw)
{
    struct maq_request_spec spec = given->spec;
    const struct maq_request_reading how = cli_serve_reading(given, draw);
    spec.seed += draw;
    return given->requests ? maq_requests_read(out, given->requests, &how, cli->diag)
                           : maq_requests_generate(out, &spec, cli->diag);
}

/* Of the requests that `given` draws: how many there are, and how many of them are sent before its time is over. */
struct sent {
    uint32_t all, in_time;
    double per_s;
};

static enum maq_status try_number(struct sent *out, struct cli *cli, const struct maq_fleet *fleet,
                                  const struct serve_given *given)
{
    struct maq_request_set *set;
    struct maq_serve_result *r;
    *out = (struct sent){0};
    enum maq_status status = cli_serve_draw(&set, cli, given, 0);
    if (status != MAQ_OK)
        return status;
    status = maq_fleet_run(&r, fleet, maq_requests_get(set), cli->diag);
    if (status == MAQ_OK) {
        out->all = maq_requests_get(set)->n;
        out->per_s = r->requests_per_s;
        for (uint32_t i = 0; r->finished > 0 && i < r->n_requests; i++)
            out->in_time += r->served[i].arrival_s < given->spec.duration_s;
        maq_serve_free(r);
    }
    maq_requests_free(set);
    return status;
}

/*
 * A client keeps so many under way until its time is over. Those that it sent by then are the first of any longer run, which is therefore
 * made longer until its end is not in time.
 */
enum maq_status cli_serve_draw_for(struct maq_request_set **out, struct cli *cli, const struct maq_fleet *fleet,
                                   const struct serve_given *given)
{
    struct serve_given asked = *given;
    struct maq_request_spec *s = &asked.spec;
    struct sent sent = {0};
    if (s->concurrency == 0 || s->duration_s <= 0 || s->n > 0)
        return cli_serve_draw(out, cli, given, 0);
    for (s->n = 2 * s->concurrency; sent.in_time == sent.all;) {
        enum maq_status status = try_number(&sent, cli, fleet, &asked);
        if (status != MAQ_OK)
            return status;
        if (sent.all < s->n || sent.in_time == 0) /* there are no more; it does not fit */
            break;
        const double wanted = fmax(2.0 * s->n, ceil(1.1 * sent.per_s * s->duration_s) + s->concurrency);
        if (sent.in_time == sent.all && wanted > REQUESTS_MOST)
            return cli_usage(cli, MAQ_CODE_CLI_VALUE, "a shorter time, or --num-requests",
                             "--duration: more than %u requests are sent in %g s", REQUESTS_MOST, s->duration_s);
        if (sent.in_time == sent.all)
            s->n = (uint32_t)wanted;
    }
    s->n = sent.in_time > 0 ? sent.in_time : s->n;
    return cli_serve_draw(out, cli, &asked, 0);
}
