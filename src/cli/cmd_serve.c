/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_serve.c - `maquette serve`: a deployment under a serving engine, from requests to latencies. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/codes.h"
#include "cli/serve/fleet.h"
#include "cli/serve/loads.h"
#include "cli/serve/options.h"
#include "cli/serve/vary.h"
#include "cli/serve/what_if.h"
#include "maquette/fleet_outages.h"

#define RATE_TOLERANCE 0.01
#define LENGTH_TRIES 3
#define LENGTH_STAYS 20.0
#define LENGTH_MOST 200000u

static enum maq_status write_requests(struct cli *cli, const struct maq_serve_result *r, const struct maq_requests *q)
{
    char *text;
    if (!cli->values[SERVE_PER_REQUEST])
        return MAQ_OK;
    enum maq_status status = maq_report_serve_csv(&text, r, q, cli->diag);
    return status == MAQ_OK ? cli_write(cli, text, cli->values[SERVE_PER_REQUEST]) : status;
}

static enum maq_status one_batch(struct cli *cli, const struct maq_job *job, const struct serve_given *given)
{
    struct maq_serve_result *plan;
    struct maq_serve_batch batch;
    struct maq_report_opts opts = cli_report_opts(cli, cli->values[SERVE_OUTPUT] != NULL);
    enum maq_status status = maq_serve_plan(&plan, job, &given->options, cli->diag);
    if (status != MAQ_OK)
        return status;
    status =
        maq_serve_static(&batch, job, &given->options, given->batch, given->spec.prompt, given->spec.output, cli->diag);
    if (status == MAQ_OK)
        status = CLI_PAGE(cli, cli->values[SERVE_HTML], maq_report_serve_batch, &opts, plan, &batch, given->batch,
                          given->spec.prompt, given->spec.output);
    if (status == MAQ_OK)
        status = CLI_REPORT(cli, cli->values[SERVE_JSON], cli->values[SERVE_OUTPUT], maq_report_serve_batch, &opts,
                            plan, &batch, given->batch, given->spec.prompt, given->spec.output);
    if (status == MAQ_OK && !plan->fits)
        status = MAQ_NO;
    maq_serve_free(plan);
    return status;
}

static double span_s(const struct maq_requests *q)
{
    return q->n > 1 ? q->at[q->n - 1].arrival_s - q->at[0].arrival_s : 0;
}

/* Streams of requests as `asked` has them, *n of `wanted`, at a rate of one a second; of a file that has times, at its own. */
static enum maq_status draw_streams(struct maq_request_set **sets, uint32_t *n, struct cli *cli,
                                    struct serve_given *asked, uint32_t wanted)
{
    enum maq_status status = MAQ_OK;
    asked->spec.rate = asked->requests ? 0 : 1;
    for (*n = 0; *n < wanted && status == MAQ_OK; *n += status == MAQ_OK) {
        status = cli_serve_draw(&sets[*n], cli, asked, *n);
        if (status == MAQ_OK && *n == 0 && asked->requests && !(span_s(maq_requests_get(sets[0])) > 0)) {
            maq_requests_free(sets[0]);
            asked->spec.rate = 1;
            status = cli_serve_draw(&sets[0], cli, asked, 0);
        }
    }
    return status;
}

/* --find-rate with `wanted` streams of requests as *asked has them; then it asks for the rate that was found, and *set are requests at that. */
static enum maq_status find_rate_of(struct maq_capacity *out, struct maq_request_set **set, struct cli *cli,
                                    const struct maq_fleet *fleet, struct serve_given *asked, uint32_t wanted)
{
    struct maq_request_set *sets[MAQ_CAPACITY_DRAWS];
    const struct maq_requests *draws[MAQ_CAPACITY_DRAWS] = {NULL};
    uint32_t n = 0;
    enum maq_status status = draw_streams(sets, &n, cli, asked, wanted);
    for (uint32_t i = 0; i < n; i++)
        draws[i] = maq_requests_get(sets[i]);
    if (status == MAQ_OK && (n == 0 || draws[0]->n < 2))
        status = cli_usage(cli, MAQ_CODE_CLI_VALUE, "--num-requests 1000", "--find-rate: one request has no rate");
    if (status == MAQ_OK)
        status = maq_fleet_capacity(out, fleet, draws, n, &asked->slo, RATE_TOLERANCE, cli->diag);
    if (status == MAQ_OK && n > 0) {
        const double span = span_s(draws[0]);
        const double faster = out->rate > 0 && span > 0 ? out->rate * span / (draws[0]->n - 1) : 1;
        asked->spec.rate *= faster;
        asked->speed *= faster;
        status = cli_serve_draw(set, cli, asked, 0);
    }
    for (uint32_t i = 0; i < n; i++)
        maq_requests_free(sets[i]);
    return status;
}

/*
 * Where nobody says how many requests there are, so many that they come for twenty times as long as one stays: in a shorter run most find the
 * fleet emptier than it will be.
 */
static enum maq_status find_rate(struct maq_capacity *out, struct maq_request_set **set, struct cli *cli,
                                 const struct maq_fleet *fleet, struct serve_given *asked)
{
    const struct serve_given given = *asked;
    bool said = given.requests || cli->values[SERVE_NUMBER] || cli->values[SERVE_DURATION];
    for (int i = 0; i < LENGTH_TRIES && !said; i++) {
        enum maq_status status = find_rate_of(out, set, cli, fleet, asked, 1);
        if (status != MAQ_OK)
            return status;
        double wanted = LENGTH_STAYS * out->rate * out->e2el_s;
        maq_requests_free(*set);
        *set = NULL;
        if (!(out->rate > 0) || wanted <= asked->spec.n)
            break;
        asked->spec.n = wanted < LENGTH_MOST ? (uint32_t)wanted : LENGTH_MOST;
    }
    asked->speed = given.speed;
    return find_rate_of(out, set, cli, fleet, asked, given.requests ? 1 : given.draws);
}

static enum maq_status write_page(struct cli *cli, const struct maq_fleet *fleet, const struct serve_given *given,
                                  const struct maq_serve_result *r, const struct maq_requests *requests,
                                  const struct maq_serve_samples *samples)
{
    struct serve_loads loads = {.n = 0};
    struct maq_report_opts opts = cli_report_opts(cli, true);
    char *text;
    if (!cli->values[SERVE_HTML])
        return MAQ_OK;
    enum maq_status status = MAQ_OK;
    if (!cli_serve_has_outages(given)) /* else they would be those of a fleet in which nothing fails */
        status = cli_serve_loads(&loads, cli, fleet, given, r);
    if (status == MAQ_OK)
        status = maq_report_serve_html(&text,
                                       &(const struct maq_report_serve_page){.result = r,
                                                                             .requests = requests,
                                                                             .samples = samples,
                                                                             .loads = loads.at,
                                                                             .n_loads = loads.n,
                                                                             .kind = loads.kind},
                                       &opts, cli->diag);
    return status == MAQ_OK ? cli_put_page(cli, text, cli->values[SERVE_HTML]) : status;
}

/* Who serves, as it was given. */
static enum maq_status run_fleet(struct maq_serve_result **out, struct cli *cli, const struct maq_fleet *fleet,
                                 const struct serve_given *given, struct maq_serve_samples *samples,
                                 const struct maq_requests *requests)
{
    const char *trace = cli->values[SERVE_TRACE];
    struct maq_serve_options options = given->options;
    struct maq_fleet_member watched = fleet->members[0];
    struct maq_fleet alone = *fleet;
    enum maq_status status;
    if (samples) {
        options.watch = maq_serve_samples_watch;
        options.watch_user = samples;
    }
    watched.options = &options;
    alone.members = &watched;
    if (trace)
        status = maq_trace_serve(trace, out, watched.job, &options, requests, cli->diag);
    else
        status = maq_fleet_run(out, samples ? &alone : fleet, requests, cli->diag);
    if (status == MAQ_OK) {
        (*out)->options.watch = NULL;
        (*out)->options.watch_user = NULL;
        (*out)->options.stop = NULL;
    }
    return status;
}

/* A fleet that is asked for: who is in it, what it is asked. To be ended even on failure. */
struct asked {
    struct serve_given *given;
    struct maq_loaded_job *prefill;
    struct serve_fleet who;
};

/* What every way to ask begins with: the document, the model's name, values of the command line alone. */
struct asking {
    const struct maq_loaded_job *loaded;
    const struct serve_checkpoint *checkpoint;
    const char *const *line;
};

static enum maq_status begin_asked(struct asked *a, struct cli *cli, const struct asking *by)
{
    struct serve_given *given = a->given;
    enum maq_status status =
        given->n_members > 0 ? MAQ_OK : cli_serve_pools(given, &a->prefill, cli, maq_job_get(by->loaded));
    if (status == MAQ_OK)
        status = cli_serve_fleet(&a->who, cli, given, by->loaded, a->prefill ? maq_job_get(a->prefill) : NULL,
                                 by->checkpoint, by->line);
    if (status == MAQ_OK)
        status = cli_serve_outages(given, cli, a->who.members, a->who.n);
    for (uint32_t i = 0; i < a->who.n && status == MAQ_OK; i++)
        status = cli_serve_load_time(&a->who.members[i].load_s, cli, a->who.members[i].job, a->who.members[i].options);
    return status;
}

static void end_asked(struct asked *a)
{
    cli_serve_end_fleet(&a->who);
    maq_job_free(a->prefill);
    maq_failures_free(a->given->failures);
    free(a->given->counts);
    if (a->given->drafter)
        maq_job_free(a->given->drafter);
    maq_job_free(a->given->tower);
}

static struct maq_fleet fleet_of(const struct serve_fleet *who, const struct serve_given *given)
{
    return (struct maq_fleet){.members = who->members,
                              .n_members = who->n,
                              .router = given->router,
                              .seed = given->spec.seed,
                              .prefill_router = given->prefill_router,
                              .handover = given->handover,
                              .admission = given->admission,
                              .encode_replicas = given->encode_replicas,
                              .placement = given->placement};
}

/* One alternative: the same requests and seeds, other options. */
static enum maq_status try_what_if(struct maq_what_if *out, struct cli *cli, const struct asking *by,
                                   const struct serve_given *base, const struct maq_requests *requests,
                                   const struct maq_attainment *attainment, uint32_t number)
{
    struct serve_given given = {.n_members = base->n_members};
    struct asked a = {.given = &given};
    struct maq_serve_result *r = NULL;
    struct maq_attainment other;
    const char *what, *list = cli->values[SERVE_WHAT_IF], *values[CLI_OPTIONS_MAX];
    memcpy(values, cli->values, sizeof values);
    memcpy(cli->values, by->line, sizeof cli->values);
    enum maq_status status = cli_serve_set_what_if(&what, cli, list, number);
    if (status == MAQ_OK)
        status = cli_serve_section(cli, by->loaded);
    if (status == MAQ_OK)
        status = cli_serve_options(&given, by->checkpoint, cli, maq_job_get(by->loaded), false);
    if (status == MAQ_OK)
        status = begin_asked(&a, cli, by);
    const struct maq_fleet fleet = fleet_of(&a.who, &given);
    if (status == MAQ_OK)
        status = cli_serve_run_outages(&r, &other, &fleet, requests, &given, cli);
    if (status == MAQ_OK && !r->attainment)
        status = cli_usage(cli, MAQ_CODE_CLI_VALUE, "with failures, and what fits into the GPUs",
                           "--what-if '%.60s' has nothing to compare", what);
    if (status == MAQ_OK)
        *out = maq_what_if_of(what, attainment, &other);
    maq_serve_free(r);
    end_asked(&a);
    memcpy(cli->values, values, sizeof values);
    return status;
}

/* *out: [*n], to be freed. */
static enum maq_status what_ifs(struct maq_what_if **out, uint32_t *n, struct cli *cli, const struct asking *by,
                                const struct serve_given *given, const struct maq_requests *requests,
                                const struct maq_attainment *attainment)
{
    enum maq_status status = MAQ_OK;
    uint32_t all = attainment ? cli_serve_what_ifs(cli) : 0;
    *out = calloc(all ? all : 1u, sizeof **out);
    if (!*out)
        return MAQ_NO_MEMORY;
    for (*n = 0; *n < all && status == MAQ_OK; *n += status == MAQ_OK)
        status = try_what_if(&(*out)[*n], cli, by, given, requests, attainment, *n);
    return status;
}

/* For what a result points to. */
struct answer_room {
    struct maq_capacity capacity;
    struct maq_attainment attainment;
    struct serve_given asked; /* with the rate that was found */
};

/* The requests that are asked for, served, and their bounds judged; *r and *set are the caller's. */
static enum maq_status serve_requests(struct maq_serve_result **r, struct maq_request_set **set,
                                      struct answer_room *room, struct cli *cli, const struct maq_fleet *fleet,
                                      const struct serve_given *given, struct maq_serve_samples *samples)
{
    room->asked = *given;
    enum maq_status status = given->find_rate ? find_rate(&room->capacity, set, cli, fleet, &room->asked)
                                              : cli_serve_draw_for(set, cli, fleet, given);
    if (status != MAQ_OK)
        return status;
    const struct maq_requests *requests = maq_requests_get(*set);
    if (cli_serve_has_outages(given) && !cli->values[SERVE_TRACE])
        status = cli_serve_run_outages(r, &room->attainment, fleet, requests, given, cli);
    else
        status = run_fleet(r, cli, fleet, given, samples, requests);
    if (status != MAQ_OK) {
        maq_requests_free(*set);
        return status;
    }
    (*r)->capacity = given->find_rate ? &room->capacity : NULL;
    if ((*r)->fits)
        maq_slo_judge(&(*r)->slo, &given->slo, *r, requests);
    return MAQ_OK;
}

static enum maq_status with_requests(struct cli *cli, const struct serve_fleet *who, const struct serve_given *given,
                                     const struct asking *by)
{
    struct maq_request_set *set = NULL;
    struct maq_serve_result *r;
    struct answer_room room = {.capacity = {0}};
    struct maq_serve_power power;
    struct maq_serve_samples *samples = NULL;
    struct maq_report_opts opts = cli_report_opts(cli, cli->values[SERVE_OUTPUT] != NULL);
    const struct maq_fleet fleet = fleet_of(who, given);
    struct maq_what_if *others = NULL;
    uint32_t n_others = 0;
    enum maq_status status = MAQ_OK;
    if (cli->values[SERVE_HTML] && given->replicas == 1 && who->n == 1 && !cli_serve_has_outages(given))
        status = maq_serve_samples_new(&samples, cli->diag);
    if (status == MAQ_OK)
        status = serve_requests(&r, &set, &room, cli, &fleet, given, samples);
    if (status == MAQ_OK) {
        status = what_ifs(&others, &n_others, cli, by, given, maq_requests_get(set), r->attainment);
        r->what_if = others;
        r->n_what_if = n_others;
        r->power = cli->values[SERVE_POWER] && maq_serve_power(&power, r) ? &power : NULL;
        if (status == MAQ_OK)
            status = write_page(cli, &fleet, &room.asked, r, maq_requests_get(set), samples);
        if (status == MAQ_OK)
            status = CLI_REPORT(cli, cli->values[SERVE_JSON], cli->values[SERVE_OUTPUT], maq_report_serve, &opts, r);
        if (status == MAQ_OK && r->fits)
            status = write_requests(cli, r, maq_requests_get(set));
        if (status == MAQ_OK && (!r->fits || !r->slo.all_met))
            status = MAQ_NO;
        cli_keep_served(cli, r, set);
    }
    free(others);
    maq_serve_samples_free(samples);
    return status;
}

/* ---- what the command line says, once ---- */

struct opened {
    const char *line[CLI_OPTIONS_MAX];
    struct maq_loaded_job *loaded;
    struct serve_given given;
    struct serve_checkpoint checkpoint;
    struct asked asked;
    struct asking by;
};

/* To be ended even on failure. */
static enum maq_status begin(struct opened *o, struct cli *cli)
{
    *o = (struct opened){.loaded = NULL};
    o->asked.given = &o->given;
    enum maq_status status = cli_serve_split_cluster(cli);
    if (status == MAQ_OK)
        status = cli_serve_job(&o->loaded, &o->checkpoint, cli);
    if (status != MAQ_OK)
        return status;
    o->by = (struct asking){o->loaded, &o->checkpoint, o->line};
    memcpy(o->line, cli->values, sizeof o->line);
    status = cli_serve_section(cli, o->loaded);
    if (status == MAQ_OK)
        status = cli_serve_begin_fleet(&o->given, cli, o->loaded);
    if (status == MAQ_OK)
        status = cli_serve_options(&o->given, &o->checkpoint, cli, maq_job_get(o->loaded), false);
    if (status == MAQ_OK)
        status = cli_can_write(cli, cli->values[SERVE_HTML]);
    return status == MAQ_OK ? begin_asked(&o->asked, cli, &o->by) : status;
}

/* One combination of --vary. */
static enum maq_status serve_variant(struct maq_serve_variant *out, struct cli *cli)
{
    struct opened o;
    struct maq_serve_result *r = NULL;
    struct maq_request_set *set = NULL;
    struct answer_room room = {.capacity = {0}};
    enum maq_status status = begin(&o, cli);
    if (status == MAQ_OK && o.given.batch > 0)
        status = cli_usage(cli, MAQ_CODE_CLI_VALUE, "--concurrency", "--batch is of one run, and --vary makes several");
    const struct maq_fleet fleet = fleet_of(&o.asked.who, &o.given);
    if (status == MAQ_OK)
        status = serve_requests(&r, &set, &room, cli, &fleet, &o.given, NULL);
    if (status == MAQ_OK) {
        out->fits = r->fits;
        out->overloaded = r->overloaded;
        out->gpus = r->n_devices;
        out->goodput_per_s = -1;
    }
    if (status == MAQ_OK && r->fits) {
        out->slo_met = r->slo.all_met;
        out->goodput_per_s = r->slo.slo.n == 0 ? -1 : r->slo.of_requests ? r->slo.goodput_per_s : 0;
        out->requests_per_s = r->requests_per_s;
        out->tokens_per_s_per_gpu = r->output_tokens_per_s / r->n_devices;
        out->tokens_per_s_per_user = r->tpot_s.mean > 0 ? 1 / r->tpot_s.mean : 0;
        out->ttft_mean_s = r->ttft_s.mean;
        out->ttft_p95_s = r->ttft_s.p95;
        out->tpot_mean_s = r->tpot_s.mean;
        out->tpot_p95_s = r->tpot_s.p95;
        out->e2el_mean_s = r->e2el_s.mean;
        out->e2el_p95_s = r->e2el_s.p95;
    }
    if (status == MAQ_OK) {
        maq_serve_free(r);
        maq_requests_free(set);
    }
    end_asked(&o.asked);
    maq_job_free(o.loaded);
    return status;
}

static enum maq_status run(struct cli *cli)
{
    struct opened o;
    if (cli->values[SERVE_VARY])
        return cli_serve_vary(cli, serve_variant);
    enum maq_status status = begin(&o, cli);
    if (status == MAQ_OK)
        status = o.given.batch > 0 ? one_batch(cli, maq_job_get(o.loaded), &o.given)
                                   : with_requests(cli, &o.asked.who, &o.given, &o.by);
    end_asked(&o.asked);
    if (o.loaded)
        cli_keep_job(cli, o.loaded);
    return status;
}

static const size_t of_plan[] = {SERVE_SPACE,    SERVE_WRITE,    SERVE_COMMAND,      SERVE_MANIFEST, SERVE_HELM,
                                 SERVE_NO_FRONT, SERVE_NO_POOLS, SERVE_AVAILABILITY, SERVE_THREADS,  SERVE_COUNT};

static const char *const often[] = {"--model",       "--cluster",  "--tp",   "--engine", "--rate",
                                    "--concurrency", "--requests", "--isl",  "--osl",    "--slo",
                                    "--find-rate",   "--batch",    "--json", "--html",   NULL};

const struct cli_command cli_serve = {
    .name = "serve",
    .args = "[JOB.yaml] [OPTION...] [-- vllm serve MODEL ARGUMENT...]",
    .summary = "predict a serving deployment: latencies, throughput, memory, where the time goes",
    .about =
        "Predicts what becomes of requests to a deployment of a model under a serving engine, or to several behind a "
        "router: requests come at "
        "a rate, at a "
        "concurrency, or out of a file; the engine's scheduler decides each iteration as the real one does. "
        "Latencies are "
        "those of vLLM's benchmark client. With --batch one batch of equal requests is timed alone, with --vary each "
        "combination of values of options is served. Behind `--` "
        "may stand the command line of vLLM, SGLang or "
        "TensorRT-LLM, as it is; options win. Exit status 1 "
        "when the deployment does not fit, or a bound of --slo is missed.\n",
    .examples =
        "  maquette serve --model llama-3.1-70b --cluster 'h200:8' --tp 4 --isl 3000 --osl 500 --rate 8 --duration "
        "10m\n"
        "  maquette serve --model llama-3.1-8b --cluster h100-sxm:8 --concurrency 64 --isl 1024 --osl 1024\n"
        "  maquette serve --model llama-3.1-8b --cluster h100-sxm:8 --rate 20 --slo 'ttft_p95<500ms, tpot_p95<40ms'\n"
        "  maquette serve --model llama-3.1-8b --cluster h100-sxm:8 --replicas 8 --router least-requests --find-rate "
        "--slo "
        "'ttft_p95<500ms'\n"
        "  maquette serve --model llama-3.1-8b --cluster h100-sxm:8 --requests azure.csv --per-request out.csv\n"
        "  maquette serve --model llama-3.1-8b --cluster h100-sxm:8 --batch 32 --isl 2048 --osl 256\n"
        "  maquette serve --model llama-3.1-70b --cluster h100-sxm:8 --vary concurrency=1..64:x2 --vary tp=2,4,8\n"
        "  maquette serve --cluster h100-sxm:8 --rate 4 -- vllm serve meta-llama/Llama-3.1-70B-Instruct "
        "--tensor-parallel-size 4\n",
    .often = often,
    .options = cli_serve_table,
    .n_options = SERVE_COUNT,
    .leaves_out = of_plan,
    .max_args = 1,
    .engine = true,
    .callable = true,
    .run = run,
};
