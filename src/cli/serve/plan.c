/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - `maquette serve plan`: the best deployment of a model for requests and bounds. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/codes.h"
#include "cli/serve/options.h"
#include "cli/serve/plan_failures.h"
#include "maquette/serve_planner.h"

#define LISTS_MOST 32u
#define THREADS_MOST 64u

/* What was asked, found, and simulated of it. */
struct answer {
    struct maq_loaded_job *open;
    struct serve_given given;
    struct maq_serve_search_opts opts;
    const char *lists[LISTS_MOST];
    struct maq_request_set *requests; /* of a file; NULL */
    struct maq_serve_search_result *search;
    struct maq_fleet_member *members;
    struct maq_request_set *drawn;
    struct maq_serve_result *best; /* the fleet under its rate; NULL: there is none */
    struct plan_failures failures;
};

static void end(struct answer *a, struct cli *cli)
{
    if (a->best)
        cli_keep_served(cli, a->best, a->drawn);
    else
        maq_requests_free(a->drawn);
    cli_plan_failures_end(&a->failures);
    free(a->members);
    maq_serve_search_free(a->search);
    if (a->given.drafter)
        maq_job_free(a->given.drafter);
    maq_requests_free(a->requests);
    if (a->open)
        cli_keep_job(cli, a->open);
}

/* --space is no key of the job. */
static enum maq_status take_lists(struct answer *a, struct cli *cli)
{
    size_t n = 0;
    for (size_t i = 0; i < cli->n_overrides; i++) {
        if (strcmp(cli->overrides[i].flag, cli_serve_table[SERVE_SPACE].name) != 0) {
            cli->overrides[n++] = cli->overrides[i];
            continue;
        }
        if (a->opts.n_lists == LISTS_MOST)
            return cli_usage(cli, MAQ_CODE_CLI_VALUE, NULL, "at most %u --space", LISTS_MOST);
        a->lists[a->opts.n_lists++] = cli->overrides[i].value;
    }
    cli->n_overrides = n;
    return MAQ_OK;
}

/* A file has a rate of its own, unless the most is looked for. */
static enum maq_status read_file(struct answer *a, struct cli *cli)
{
    const struct serve_given *g = &a->given;
    if (!g->requests)
        return g->find_rate ? cli_usage(cli, MAQ_CODE_CLI_VALUE, "leave it out",
                                        "--find-rate: without --rate and --requests the most is looked for anyway")
                            : MAQ_OK;
    struct maq_request_reading how = cli_serve_reading(g, 0);
    how.rate = 0; /* how many replicas carry it is what is looked for: by what one carries, as the file has them */
    enum maq_status status = maq_requests_read(&a->requests, g->requests, &how, cli->diag);
    if (status != MAQ_OK)
        return status;
    const struct maq_requests *q = a->opts.requests = maq_requests_get(a->requests);
    double span = q->n > 1 ? q->at[q->n - 1].arrival_s - q->at[0].arrival_s : 0;
    if (!(span > 0))
        return maq_diag_fail(MAQ_BAD_INPUT, cli->diag, MAQ_CODE_CLI_VALUE, (struct maq_span){0}, NULL,
                             "%.200s: requests that come all at once have no rate", g->requests);
    if (a->opts.rate <= 0 && !g->find_rate)
        a->opts.rate = (q->n - 1) / span;
    return MAQ_OK;
}

static void show_progress(void *context, uint32_t done, uint32_t all)
{
    struct cli *cli = context;
    cli_progress(cli, "%u of %u deployments%s", done, all, cli_left(cli, done, all));
}

static enum maq_status ask(struct answer *a, struct cli *cli)
{
    struct serve_checkpoint checkpoint;
    enum maq_status status = take_lists(a, cli);
    if (status == MAQ_OK)
        status = cli_serve_open_job(&a->open, &checkpoint, cli);
    if (status == MAQ_OK)
        status = cli_serve_section(cli, a->open);
    if (status == MAQ_OK)
        status = cli_serve_options(&a->given, &checkpoint, cli, maq_job_get(a->open), true);
    if (status == MAQ_OK)
        status = cli_count(cli, &a->opts.threads, SERVE_THREADS, 1, THREADS_MOST, 0);
    if (status != MAQ_OK)
        return status;
    a->opts.options = &a->given.options;
    a->opts.lists = a->lists;
    a->opts.spec = &a->given.spec;
    a->opts.rate = a->given.spec.rate;
    a->opts.slo = &a->given.slo;
    a->opts.router = a->given.router;
    a->opts.no_pools = cli->values[SERVE_NO_POOLS] != NULL;
    status = cli_plan_failures_read(&a->failures, &a->given, cli);
    if (status != MAQ_OK)
        return status;
    a->opts.reserve = a->failures.given ? &a->failures.reserve : NULL;
    a->opts.stop = cli_catch_interrupts(cli);
    a->opts.progress = show_progress;
    a->opts.context = cli;
    return read_file(a, cli);
}

/* The best fleet once more, for all that is to be said of it. */
static enum maq_status simulate(struct answer *a, struct cli *cli)
{
    const struct maq_serve_search_result *s = a->search;
    if (s->n_fleet == 0)
        return MAQ_OK;
    a->members = calloc(s->n_fleet, sizeof *a->members);
    if (!a->members)
        return cli_no_memory(cli);
    const struct maq_fleet fleet = maq_serve_search_fleet(s, &a->opts, a->members);
    for (uint32_t i = 0; i < s->n_fleet; i++)
        a->members[i].replicas = s->fleet[i].needed;
    enum maq_status status = maq_serve_search_requests(&a->drawn, s, &a->opts, cli->diag);
    if (status == MAQ_OK)
        status = maq_fleet_run(&a->best, &fleet, maq_requests_get(a->drawn), cli->diag);
    if (status == MAQ_OK)
        maq_slo_judge(&a->best->slo, &a->given.slo, a->best, maq_requests_get(a->drawn));
    if (status == MAQ_OK && a->failures.given)
        status = cli_plan_failures_look(&a->failures, s, &fleet, maq_requests_get(a->drawn), cli);
    return status;
}

static bool has_sides(const struct maq_serve_search_result *s)
{
    for (uint32_t i = 0; i < s->n_fleet; i++)
        if (s->candidates[s->fleet[i].candidate].options.afd.ffn_ranks > 0)
            return true;
    return false;
}

/* The best fleet, in the forms that were asked for; nothing where there is none. */
static enum maq_status write_files(struct cli *cli, const struct maq_report_serve_plan *plan)
{
    static const struct {
        size_t option;
        enum maq_status (*write)(char **out, const struct maq_report_serve_plan *plan, struct maq_diag *diag);
    } files[] = {{SERVE_WRITE, maq_report_serve_plan_job},
                 {SERVE_COMMAND, maq_report_serve_plan_command},
                 {SERVE_MANIFEST, maq_report_serve_plan_manifest},
                 {SERVE_HELM, maq_report_serve_plan_llm_d}};
    if (cli->values[SERVE_WRITE] && plan->search->n_fleet > 1 && plan->search->fleet[0].role == MAQ_ROLE_BOTH)
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, "--write-command or --write-manifest",
                         "--write: a job has one kind of replica, the best fleet %u", plan->search->n_fleet);
    if (cli->values[SERVE_WRITE] && plan->search->n_fleet == 1 && maq_job_get(plan->open)->cluster.n_groups > 1 &&
        !maq_job_names_groups(plan->open))
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, "--cluster 'h100-sxm:8 x 2 + l40s:8', or --write-command",
                         "--write: the best fleet is on one of several node groups, which the cluster does not name");
    for (size_t i = 0; i < CLI_COUNT(files) && plan->search->n_fleet > 0; i++) {
        char *text;
        if (!cli->values[files[i].option])
            continue;
        if (files[i].option != SERVE_WRITE && has_sides(plan->search))
            return cli_usage(cli, MAQ_CODE_CLI_VALUE, "--write FILE, or without --space afd-ffn-ranks",
                             "%s: attention and FFN of the best fleet are on GPUs of their own, which engines start by "
                             "command lines of each",
                             cli_serve_table[files[i].option].name);
        enum maq_status status = files[i].write(&text, plan, cli->diag);
        if (status == MAQ_OK)
            status = cli_write(cli, text, cli->values[files[i].option]);
        if (status != MAQ_OK)
            return status;
    }
    return MAQ_OK;
}

static enum maq_status report(struct answer *a, struct cli *cli)
{
    struct maq_report_opts opts = cli_report_opts(cli, cli->values[SERVE_OUTPUT] != NULL);
    const struct maq_report_serve_plan what = {.open = a->open,
                                               .search = a->search,
                                               .opts = &a->opts,
                                               .best = a->best,
                                               .failures = a->failures.given ? &a->failures.report : NULL};
    enum maq_status status = MAQ_OK;
    if (cli->values[SERVE_HTML]) {
        char *text;
        status = maq_report_serve_plan_html(&text, &what, &opts, cli->diag);
        if (status == MAQ_OK)
            status = cli_put_page(cli, text, cli->values[SERVE_HTML]);
        if (status != MAQ_OK)
            return status;
    }
    status = CLI_REPORT(cli, cli->values[SERVE_JSON], cli->values[SERVE_OUTPUT], maq_report_serve_plan, &opts, &what);
    return status == MAQ_OK ? write_files(cli, &what) : status;
}

static enum maq_status run(struct cli *cli)
{
    struct answer a = {0};
    enum maq_status status = cli_can_write(cli, cli->values[SERVE_HTML]);
    if (status == MAQ_OK)
        status = ask(&a, cli);
    if (status == MAQ_OK)
        status = maq_serve_search(&a.search, a.open, &a.opts, cli->diag);
    if (status == MAQ_OK && !cli->values[SERVE_NO_FRONT])
        status = maq_serve_front(a.search, &a.opts, cli->diag);
    if (status == MAQ_OK)
        status = simulate(&a, cli);
    cli_progress(cli, "%s", "");
    if (status == MAQ_OK)
        status = report(&a, cli);
    if (status == MAQ_OK && !a.search->carries)
        status = MAQ_NO;
    end(&a, cli);
    return status;
}

/* clang-format off */
static const size_t of_serve[] = {
    SERVE_REPLICAS, SERVE_ROUTER_REQUESTS, SERVE_ROUTER_QUEUE, SERVE_PREFILL_REPLICAS, SERVE_PREFILL_TP, SERVE_PREFILL_PP,
    SERVE_PREFILL_DP, SERVE_PREFILL_EP, SERVE_PREFILL_CLUSTER, SERVE_PREFILL_SEQS, SERVE_PREFILL_TOKENS,
    SERVE_PREFILL_ROUTER, SERVE_KV_TRANSFER, SERVE_KV_BANDWIDTH, SERVE_LOCAL_PREFILL,
    SERVE_PLACEMENT, SERVE_AUTOSCALE, SERVE_PREFILL_AUTOSCALE, SERVE_WHAT_IF,  SERVE_VARY,
    SERVE_HOST_SIZE, SERVE_HOST_POLICY, SERVE_HOST_CHUNK, SERVE_HOST_BANDWIDTH,
    SERVE_HOST_PROMPTS, SERVE_SSD_SIZE, SERVE_SSD_BANDWIDTH, SERVE_REMOTE_SIZE,
    SERVE_REMOTE_BANDWIDTH, SERVE_REMOTE_LATENCY, SERVE_ENCODER, SERVE_ENCODER_MERGE, SERVE_ENCODER_PATCH, SERVE_ENCODE_REPLICAS,
    SERVE_IMAGES, SERVE_IMAGE_TOKENS, SERVE_IMAGE_SIZE,
    SERVE_CONCURRENCY, SERVE_BATCH, SERVE_POWER,
    SERVE_TRACE, SERVE_PER_REQUEST, SERVE_COUNT};
/* clang-format on */

static const char *const often[] = {"--model",  "--cluster", "--isl",   "--osl",   "--slo",  "--rate", "--requests",
                                    "--engine", "--space",   "--price", "--write", "--json", "--html", NULL};

const struct cli_command cli_serve_plan = {
    .name = "serve plan",
    .args = "[JOB.yaml] [OPTION...] [-- vllm serve MODEL ARGUMENT...]",
    .summary = "find the best serving deployment: GPUs, degrees, limits, replicas",
    .about =
        "Finds what a model is to be served by. With --rate, or requests out of a file, the cheapest fleet that "
        "carries "
        "them within the bounds of --slo; without, the deployment that carries the most on the cluster. What is said "
        "of the deployment holds, all else is searched; --space names values. Each candidate that could win is "
        "simulated. With --failures spare replicas are part of the answer. Also shown: what throughput costs in "
        "latency, whatever the bounds. Exit status 1 when nothing "
        "holds the bounds.\n",
    .examples =
        "  maquette serve plan --model llama-3.1-70b --cluster 'h100-sxm:8' --isl 3000 --osl 500 --slo "
        "'ttft_p95<2s, tpot_p95<50ms'\n"
        "  maquette serve plan --model deepseek-v3 --cluster 'h200-sxm:8 x 8' --isl 4096 --osl 1024 --slo "
        "'ttft_p95<5s, tpot_p95<50ms' --rate 40\n"
        "  maquette serve plan --model llama-3.1-70b --cluster 'h100-sxm:8 x 2 + l40s:8 x 4' --requests azure.csv "
        "--slo 'tpot_p95<80ms'\n"
        "  maquette serve plan --model llama-3.1-8b --cluster h100-sxm:8 --rate 20 --space weights=bf16,fp8\n",
    .often = often,
    .options = cli_serve_table,
    .n_options = SERVE_COUNT,
    .leaves_out = of_serve,
    .max_args = 1,
    .engine = true,
    .callable = true,
    .run = run,
};
