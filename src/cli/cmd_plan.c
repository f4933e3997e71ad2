/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_plan.c - `maquette plan`: the best plan of a job. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/codes.h"
#include "cli/plan/external.h"
#include "cli/plan/measured.h"
#include "cli/plan/mixed.h"
#include "cli/plan/predict.h"

enum {
    OPT_MODEL,
    OPT_CLUSTER,
    OPT_FRAMEWORK,
    OPT_NAME,
    OPT_SET,
    OPT_SPACE,
    OPT_VARY,
    OPT_FREE,
    OPT_FULL,
    OPT_TOP,
    OPT_PARETO,
    OPT_RESERVE,
    OPT_MIN_FIT,
    OPT_EXPLAIN,
    OPT_WRITE,
    OPT_AS,
    OPT_JSON,
    OPT_HTML,
    OPT_MEASURED,
    OPT_COST,
    OPT_PRICE,
    OPT_PROFILE,
    OPT_CLASS,
    OPT_PARALLELIZER,
    OPT_WORKERS,
    OPT_TIMEOUT,
    OPT_PLANNER,
    OPT_ONE_PIPELINE,
    OPT_PREDICT,
    OPT_THREADS,
    OPT_OUTPUT
};

static const char *const pareto_words[] = {"memory", NULL};
static const char *const class_words[] = {"uniform", "mixed", "degrees", "pipelines", NULL};

static const char *const planner_words[] = {"all", "metis", "sailor", "alpa", "uniform", NULL};
_Static_assert(CLI_COUNT(planner_words) == MAQ_MIXED_PLANNER_COUNT + 1, "a word for each");

static const struct cli_option options[] = {
    [OPT_MODEL] = CLI_OPTION_MODEL,
    [OPT_CLUSTER] = CLI_OPTION_CLUSTER,
    [OPT_FRAMEWORK] = CLI_OPTION_FRAMEWORK,
    [OPT_NAME] = CLI_OPTION_NAME,
    [OPT_SET] = CLI_OPTION_SET,
    [OPT_SPACE] =
        {"--space", CLI_SPACE, "KEY=V,V",
         "values that a key of the plan may take: --space tp=1,2,4 --space recompute=none,core_attn+mlp,block,full",
         "search", NULL},
    [OPT_VARY] =
        {"--vary", CLI_SPACE, "KEY=V,V",
         "the best plan on other devices (or model, seq, gbs), and what 10^12 tokens cost: --vary gpus=256..4096:x2 "
         "--vary gpu=h100-sxm,b200",
         "search.vary", NULL},
    [OPT_FREE] = {"--free", CLI_FLAG, NULL, "search also what the job file says of its plan; flags still hold", NULL,
                  NULL},
    [OPT_FULL] = {"--full", CLI_FLAG, NULL,
                  "every schedule, module, offloading and rank order, not only what Megatron-LM runs", NULL, NULL},
    [OPT_TOP] = {"--top", CLI_VALUE, "N",
                 "how many plans to list, each with other degrees (5; over several node groups 1)", NULL, NULL},
    [OPT_PARETO] = {"--pareto", CLI_VALUE, "memory", "also every plan that no other beats in both time and memory",
                    NULL, pareto_words},
    [OPT_RESERVE] = {"--reserve", CLI_JOB, "SIZE", "memory of each device that a plan may not use, \"2 GiB\" (0)",
                     "search.reserve", NULL},
    [OPT_MIN_FIT] = {"--min-fit-probability", CLI_JOB, "P",
                     "how likely a plan has to fit, 0 to 1, as far off as published peaks were from predicted ones; 0: "
                     "as predicted (0.9)",
                     "search.min_fit_probability", NULL},
    [OPT_EXPLAIN] = {"--explain", CLI_FLAG, NULL,
                     "the winner with one thing changed: why other plans lose; on several node groups what other "
                     "planners would choose",
                     NULL, NULL},
    [OPT_WRITE] = {"--write", CLI_VALUE, "FILE", "write the winner as a job file for maquette train", NULL, NULL},
    [OPT_AS] = CLI_OPTION_WRITE_AS("print the winner as", ", in place of the report"),
    [OPT_JSON] = {"--json", CLI_FLAG, NULL, "JSON instead of text (schema maquette.plan/1)", NULL, NULL},
    [OPT_HTML] = CLI_OPTION_HTML,
    [OPT_MEASURED] = CLI_OPTION_MEASURED,
    [OPT_COST] = CLI_OPTION_COST,
    [OPT_PRICE] = CLI_OPTION_PRICE,
    [OPT_PROFILE] =
        {"--profile", CLI_VALUE, "DIR",
         "mixed GPUs from measured layers: a folder as docs/planning.md says; model and devices by its names", NULL,
         NULL},
    [OPT_CLASS] = {"--class", CLI_VALUE, "uniform|mixed|degrees|pipelines", "with --profile: which plans (degrees)",
                   NULL, class_words},
    [OPT_PARALLELIZER] = {"--parallelizer", CLI_VALUE, "PROGRAM|FILE.so|builtin",
                          "compose what somebody's planner says of slices on each node group: docs/parallelizer.md",
                          NULL, NULL},
    [OPT_WORKERS] = {"--workers", CLI_VALUE, "N", "with --parallelizer: how many of it to run (1)", NULL, NULL},
    [OPT_TIMEOUT] = {"--timeout", CLI_VALUE, "SECONDS",
                     "with --parallelizer: how long a program may take to answer (600)", NULL, NULL},
    [OPT_ONE_PIPELINE] = {"--one-pipeline", CLI_FLAG, NULL, "no node groups that run the whole model side by side",
                          NULL, NULL},
    [OPT_PLANNER] = {"--planner", CLI_VALUE, "metis|sailor|alpa|uniform",
                     "several node groups: choose from what another planner publishes, on the same costs (all)", NULL,
                     planner_words},
    [OPT_PREDICT] = {"--predict", CLI_VALUE, "PLAN.json",
                     "no search: what this plan takes on the job's node groups (docs/plan-form.md)", NULL, NULL},
    [OPT_THREADS] = {"--threads", CLI_VALUE, "N", "how many to use; the result does not depend on it (all)", NULL,
                     NULL},
    [OPT_OUTPUT] = CLI_OPTION_OUTPUT,
};
_Static_assert(CLI_COUNT(options) <= CLI_OPTIONS_MAX, "a value per option");

static void show_progress(void *context, const struct maq_search_progress *at)
{
    struct cli *cli = context;
    const uint32_t done = at->branches_done, all = at->counts.branches;
    const char *part = at->first ? " of the small part first" : "";
    if (at->phase != MAQ_SEARCH_EXPLORES) {
        cli_progress(cli, "%s of %u of %u cells%s", at->phase == MAQ_SEARCH_LISTS ? "plans" : "bounds", done, all,
                     part);
        return;
    }
    const char *left = at->first ? part : cli_left(cli, done, all);
    if (at->best_s > 0)
        cli_progress(cli, "%u of %u cells, best %.4g s, nothing under %.4g s%s", done, all, at->best_s, at->bound_s,
                     left);
    else
        cli_progress(cli, "%u of %u cells, nothing fits so far%s", done, all, left);
}

static enum maq_status read_options(struct cli *cli, struct maq_search_opts *opts)
{
    *opts = (struct maq_search_opts){.full = cli->values[OPT_FULL] != NULL,
                                     .free = cli->values[OPT_FREE] != NULL,
                                     .pareto_memory = cli->values[OPT_PARETO] != NULL,
                                     .min_fit_probability = MAQ_SEARCH_FIT_PROBABILITY,
                                     .progress = show_progress,
                                     .context = cli};
    enum maq_status status = cli_count(cli, &opts->top, OPT_TOP, 1, 1000, 0);
    if (status == MAQ_OK)
        status = cli_count(cli, &opts->threads, OPT_THREADS, 1, 1000, 0);
    return status;
}

/* What the report is made of. */
struct answer {
    struct maq_search_result *search;
    struct maq_loaded_job **jobs; /* [n_plans] completed */
    struct maq_train_result **trains;
    struct maq_search_alternatives alternatives, settings;
    struct maq_search_remedies remedies;
    struct maq_search_headroom headroom;
    char *document;
    struct maq_framework_words *words; /* the best in its framework's words */
    struct maq_train_result *said;     /* what those describe, under the framework's profile */
};

static void free_answer(struct answer *a)
{
    for (uint32_t i = 0; a->search && i < a->search->n_plans; i++) {
        maq_train_result_free(a->trains ? a->trains[i] : NULL);
        maq_job_free(a->jobs ? a->jobs[i] : NULL);
    }
    maq_train_result_free(a->said);
    maq_framework_words_free(a->words);
    free(a->trains);
    free(a->jobs);
    maq_search_alternatives_free(&a->alternatives);
    maq_search_alternatives_free(&a->settings);
    maq_search_remedies_free(&a->remedies);
    free(a->document);
}

static enum maq_status predict_all(struct answer *a, const struct maq_loaded_job *open, struct maq_diag *diag)
{
    uint32_t n = a->search->n_plans;
    enum maq_status status = MAQ_OK;
    a->jobs = calloc((size_t)n + 1, sizeof *a->jobs);
    a->trains = calloc((size_t)n + 1, sizeof *a->trains);
    if (!a->jobs || !a->trains)
        return MAQ_NO_MEMORY;
    for (uint32_t i = 0; i < n && status == MAQ_OK; i++) {
        status = maq_job_complete(&a->jobs[i], open, &a->search->plans[i].plan, diag);
        if (status == MAQ_OK)
            status = maq_train_predict(&a->trains[i], maq_job_get(a->jobs[i]), diag);
    }
    if (n == 0 || status != MAQ_OK)
        return status;
    a->document = maq_job_write(open, &a->search->plans[0].plan);
    return a->document ? maq_framework_words(&a->words, open, maq_job_get(a->jobs[0]), diag) : MAQ_NO_MEMORY;
}

/* What is printed for the framework, read back. What cannot be predicted is not told. */
static void predict_words(struct answer *a)
{
    if (a->words->back && maq_train_predict(&a->said, maq_job_get(a->words->back), NULL) != MAQ_OK)
        a->said = NULL;
}

static enum maq_status find(struct cli *cli, struct answer *a, const struct maq_loaded_job *open,
                            const struct maq_search_opts *opts)
{
    enum maq_status status = maq_search(&a->search, open, opts, cli->diag);
    if (status == MAQ_OK)
        status = predict_all(a, open, cli->diag);
    bool fits = status == MAQ_OK && a->search->n_plans > 0;
    if (fits) {
        predict_words(a);
        status = maq_search_settings(&a->settings, open, a->search, opts, cli->diag);
    }
    if (status == MAQ_OK && fits)
        status = maq_search_find_headroom(&a->headroom, open, a->search, opts, cli->diag);
    if (status == MAQ_OK && fits && (cli->values[OPT_EXPLAIN] || cli->values[OPT_HTML]))
        status = maq_search_alternatives(&a->alternatives, open, a->search, opts, cli->diag);
    else if (status == MAQ_OK && !fits && a->search->complete)
        status = maq_search_find_remedies(&a->remedies, open, opts, cli->diag);
    cli_progress(cli, "%s", "");
    return status;
}

/* By its job file, so that what the framework's has no words for is pointed at there. */
static enum maq_status write_as(struct cli *cli, const struct answer *a)
{
    struct maq_loaded_job *winner;
    char *text = NULL;
    enum maq_status status =
        maq_job_parse(&winner, "the winner", (struct maq_str){a->document, strlen(a->document)}, NULL, 0, cli->diag);
    if (status != MAQ_OK)
        return status;
    status = maq_framework_file(&text, winner, cli->values[OPT_AS], cli->diag);
    maq_job_free(winner);
    return status == MAQ_OK ? cli_write(cli, text, cli->values[OPT_OUTPUT]) : status;
}

static enum maq_status report(struct cli *cli, struct answer *a, const struct maq_loaded_job *open)
{
    const char *file = cli->values[OPT_OUTPUT];
    struct maq_report_opts opts = cli_report_opts(cli, file != NULL);
    struct maq_report_plan plan = {.open = open,
                                   .search = a->search,
                                   .trains = a->trains,
                                   .document = a->document,
                                   .words = a->words,
                                   .said = a->said,
                                   .alternatives = a->alternatives.owner ? &a->alternatives : NULL,
                                   .settings = a->settings.owner ? &a->settings : NULL,
                                   .headroom = a->search->n_plans > 0 ? &a->headroom : NULL,
                                   .remedies = a->remedies.owner ? &a->remedies : NULL};
    enum maq_status status = MAQ_OK;
    if (cli->values[OPT_HTML]) {
        char *text;
        status = maq_report_plan_html(&text, &plan, &opts, cli->diag);
        if (status == MAQ_OK)
            status = cli_put_page(cli, text, cli->values[OPT_HTML]);
        if (status != MAQ_OK)
            return status;
        if (!cli->values[OPT_EXPLAIN]) /* the page has them whether the text is asked for them or not */
            plan.alternatives = NULL;
    }
    status = cli->values[OPT_AS] && a->search->n_plans > 0
                 ? write_as(cli, a)
                 : CLI_REPORT(cli, cli->values[OPT_JSON], file, maq_report_plan, &opts, &plan);
    if (!cli->values[OPT_WRITE] || a->search->n_plans == 0 || (status != MAQ_OK && status != MAQ_IO))
        return status;
    status = cli_first_fault(status, cli_write(cli, a->document, cli->values[OPT_WRITE]));
    a->document = NULL;
    return status;
}

/* Options that mean nothing to this kind of plan; the list ends with -1. `why` goes on behind the option's name. */
static enum maq_status refuse_options(struct cli *cli, const int *unused, const char *hint, const char *why)
{
    for (; *unused >= 0; unused++)
        if (cli->values[*unused])
            return cli_usage(cli, MAQ_CODE_CLI_OPTION, hint, "%s %s", options[*unused].name, why ? why : "");
    return MAQ_OK;
}

/* Process 0 of several reports for all. */
static enum maq_status vary(struct cli *cli, const struct maq_loaded_job *open, struct maq_search_opts *opts,
                            struct maq_peers *peers)
{
    const char *file = cli->values[OPT_OUTPUT];
    struct maq_report_opts report_opts = cli_report_opts(cli, file != NULL);
    static const int unused[] = {OPT_PARETO, OPT_EXPLAIN, OPT_WRITE, OPT_AS, OPT_TOP, -1};
    struct maq_search_variants variants;
    enum maq_status status =
        refuse_options(cli, unused, "leave it out", "means nothing with --vary, which finds one plan for each cluster");
    if (status != MAQ_OK)
        return status;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (opts->threads == 0 && peers->on_node > 1) /* processes of a node share its cores */
        opts->threads = cores > (long)peers->on_node ? (uint32_t)cores / peers->on_node : 1;
    status = maq_search_vary(&variants, open, opts, peers, cli->diag);
    cli_progress(cli, "%s", "");
    if (status != MAQ_OK)
        return status;
    if (peers->rank == 0 && cli->values[OPT_HTML]) {
        char *text;
        status = maq_report_vary_html(&text, &variants, &report_opts, cli->diag);
        if (status == MAQ_OK)
            status = cli_put_page(cli, text, cli->values[OPT_HTML]);
    }
    if (peers->rank == 0 && status == MAQ_OK)
        status = CLI_REPORT(cli, cli->values[OPT_JSON], file, maq_report_vary, &report_opts, &variants);
    maq_search_variants_free(&variants);
    return status;
}

static enum maq_status compose(struct cli *cli, const struct maq_search_opts *opts)
{
    static const int unused[] = {OPT_FULL,    OPT_FREE,         OPT_PARETO,  OPT_EXPLAIN, OPT_ONE_PIPELINE,
                                 OPT_PLANNER, OPT_PARALLELIZER, OPT_WORKERS, OPT_TIMEOUT, OPT_PREDICT,
                                 OPT_MIN_FIT, OPT_AS,           -1};
    const char *class_name = cli->values[OPT_CLASS];
    struct cli_compose_options o = {.folder = cli->values[OPT_PROFILE],
                                    .class_name = class_name ? class_name : "degrees",
                                    .output = cli->values[OPT_OUTPUT],
                                    .write = cli->values[OPT_WRITE],
                                    .html = cli->values[OPT_HTML],
                                    .json = cli->values[OPT_JSON] != NULL,
                                    .top = opts->top,
                                    .threads = opts->threads};
    if (cli->n_args > 0)
        return cli_usage(cli, MAQ_CODE_CLI_ARGUMENT, "give --model, --cluster and --gbs",
                         "--profile takes no job file: its models and devices are not the catalogue's");
    enum maq_status status = refuse_options(cli, unused, "leave it out", "means nothing with --profile");
    return status == MAQ_OK ? cli_plan_profile(cli, &o) : status;
}

/* ---- several node groups ---- */

static enum maq_status plan_mixed(struct cli *cli, const struct maq_loaded_job *open,
                                  const struct maq_search_opts *opts)
{
    static const int unused[] = {OPT_FULL, OPT_FREE, OPT_PARETO, OPT_AS, -1};
    const struct cli_mixed_options o = {.output = cli->values[OPT_OUTPUT],
                                        .write = cli->values[OPT_WRITE],
                                        .planner = cli->values[OPT_PLANNER],
                                        .html = cli->values[OPT_HTML],
                                        .json = cli->values[OPT_JSON] != NULL,
                                        .explain = cli->values[OPT_EXPLAIN] != NULL,
                                        .one_pipeline = cli->values[OPT_ONE_PIPELINE] != NULL,
                                        .top = opts->top,
                                        .threads = opts->threads,
                                        .stop = opts->stop};
    enum maq_status status = refuse_options(
        cli, unused, "plan one node group alone",
        cli_printf(cli, "is of plans for one node group; this cluster has %u", maq_job_get(open)->cluster.n_groups));
    return status == MAQ_OK ? cli_plan_mixed(cli, open, &o) : status;
}

/* ---- somebody else's planner ---- */

static enum maq_status plan_slices(struct cli *cli, const struct maq_loaded_job *open,
                                   const struct maq_search_opts *opts)
{
    static const int unused[] = {OPT_FULL,         OPT_FREE,    OPT_PARETO,  OPT_EXPLAIN, OPT_VARY, OPT_PLANNER,
                                 OPT_ONE_PIPELINE, OPT_THREADS, OPT_MIN_FIT, OPT_AS,      -1};
    struct cli_slices_options o = {.parallelizer = cli->values[OPT_PARALLELIZER],
                                   .output = cli->values[OPT_OUTPUT],
                                   .write = cli->values[OPT_WRITE],
                                   .html = cli->values[OPT_HTML],
                                   .json = cli->values[OPT_JSON] != NULL,
                                   .top = opts->top,
                                   .stop = cli_catch_interrupts(cli)};
    enum maq_status status = refuse_options(cli, unused, "leave it out", "means nothing with --parallelizer");
    if (status == MAQ_OK)
        status = cli_count(cli, &o.workers, OPT_WORKERS, 1, 64, 1);
    if (status == MAQ_OK)
        status = cli_count(cli, &o.timeout_s, OPT_TIMEOUT, 1, 1000000, 0);
    return status == MAQ_OK ? cli_plan_slices(cli, open, &o) : status;
}

/* ---- a plan that was written down ---- */

static enum maq_status predict(struct cli *cli, const struct maq_loaded_job *open)
{
    static const int unused[] = {OPT_SPACE,        OPT_VARY,         OPT_FREE,    OPT_FULL,    OPT_TOP,     OPT_PARETO,
                                 OPT_RESERVE,      OPT_MIN_FIT,      OPT_EXPLAIN, OPT_WRITE,   OPT_THREADS, OPT_PLANNER,
                                 OPT_ONE_PIPELINE, OPT_PARALLELIZER, OPT_WORKERS, OPT_TIMEOUT, -1};
    const struct cli_predict_options o = {.file = cli->values[OPT_PREDICT],
                                          .output = cli->values[OPT_OUTPUT],
                                          .html = cli->values[OPT_HTML],
                                          .json = cli->values[OPT_JSON] != NULL};
    enum maq_status status =
        refuse_options(cli, unused, "leave it out", "means nothing with --predict, which searches nothing");
    return status == MAQ_OK ? cli_plan_predict(cli, open, &o) : status;
}

/* ---- which kind of plan it is ---- */

/* One kind of node, one plan. */
static enum maq_status plan_one(struct cli *cli, const struct maq_loaded_job *open, const struct maq_search_opts *opts)
{
    struct answer answer = {0};
    enum maq_status status = find(cli, &answer, open, opts);
    if (status == MAQ_OK)
        status = report(cli, &answer, open);
    if (status == MAQ_OK && answer.search->n_plans == 0)
        status = MAQ_NO;
    free_answer(&answer);
    cli_keep_search(cli, answer.search);
    return status;
}

static enum maq_status plan_open(struct cli *cli, const struct maq_loaded_job *open, struct maq_search_opts *opts,
                                 struct maq_peers *peers)
{
    bool varies = maq_search_varies(open), mixed = maq_job_get(open)->cluster.n_groups > 1;
    if (peers->size > 1 && !varies)
        return cli_usage(cli, MAQ_CODE_CLI_ARGUMENT, "give --vary, or start one process",
                         "processes share the variants of a job, and this job has none");
    if (cli->values[OPT_PREDICT])
        return predict(cli, open);
    if (cli->values[OPT_PARALLELIZER])
        return plan_slices(cli, open, opts);
    opts->stop = cli_catch_interrupts(cli);
    if (mixed && !varies)
        return plan_mixed(cli, open, opts);
    enum maq_status status = refuse_options(cli, (const int[]){OPT_PLANNER, OPT_ONE_PIPELINE, -1}, "leave it out",
                                            "is for plans over several node groups");
    if (status != MAQ_OK)
        return status;
    return varies ? vary(cli, open, opts, peers) : plan_one(cli, open, opts);
}

static enum maq_status run_with(struct cli *cli, struct maq_peers *peers)
{
    struct maq_loaded_job *open;
    struct maq_search_opts opts;
    const char *path = cli->n_args > 0 ? cli->args[0] : NULL;
    if (!path && cli->n_overrides == 0)
        return cli_usage(cli, MAQ_CODE_CLI_ARGUMENT,
                         "maquette plan JOB.yaml, or maquette plan --model llama-3.1-8b --cluster h100-sxm:8 --gbs 128",
                         "there is no job");
    enum maq_status status = read_options(cli, &opts);
    if (status == MAQ_OK)
        status = cli_can_write(cli, cli->values[OPT_HTML]);
    if (status == MAQ_OK && cli->values[OPT_PROFILE])
        return compose(cli, &opts);
    if (status == MAQ_OK)
        status = refuse_options(cli, (const int[]){OPT_CLASS, -1}, "leave it out", "means nothing without --profile");
    if (status == MAQ_OK && !cli->values[OPT_PARALLELIZER])
        status = refuse_options(cli, (const int[]){OPT_WORKERS, OPT_TIMEOUT, -1}, "leave it out",
                                "means nothing without --parallelizer");
    if (status == MAQ_OK)
        status = cli_load_job(&open, cli, path, true);
    if (status != MAQ_OK)
        return status;
    status = plan_open(cli, open, &opts, peers);
    cli_keep_job(cli, open);
    return status;
}

/* Under mpirun process 0 speaks for all. */
static enum maq_status run(struct cli *cli)
{
    struct maq_peers peers = {.size = 1, .on_node = 1};
    if (cli->called) /* a program's processes are its own */
        return run_with(cli, &peers);
    enum maq_status status = maq_peers_open(&peers, cli->diag);
    cli->quiet = peers.rank > 0;
    if (status == MAQ_OK)
        status = run_with(cli, &peers);
    cli_print_diag(cli); /* before they part: mpirun ends all when the first one ends with a fault, said or not */
    cli->told = true;
    maq_peers_close(&peers);
    return status;
}

static const char *const often[] = {"--model", "--cluster", "--gbs",   "--seq",  "--framework", "--space", "--vary",
                                    "--top",   "--explain", "--write", "--json", "--html",      NULL};

const struct cli_command cli_plan = {
    .name = "plan",
    .args = "[JOB.yaml|FILE...] [OPTION...] [-- pretrain_gpt.py ARGUMENT...]",
    .summary = "find the best plan of a job: degrees, schedule, sharding, recomputation",
    .about =
        "Finds the fastest plan that fits. What the job says of its plan is kept; the rest is searched, and the result "
        "is exact: it is that of predicting every plan with `maquette train`. Lists of values narrow the space "
        "(--space, or a section `search:` of the job); --full widens it. Ctrl-C ends the search with the best so far "
        "and how far from the best it can be. Exit status 1 when nothing fits; the report then says what would.\n"
        "A cluster of several node groups is planned as one pipeline whose stages each run on one of them, with "
        "degrees, recomputation and ZeRO of their own, which --write writes as JSON (docs/plan-form.md), or in one way "
        "over all of them where that is faster. --planner "
        "compares with what other planners choose from. --parallelizer composes it of what another planner says of "
        "layer ranges of the model on each node group. --predict searches nothing: it says what a written plan "
        "takes.\n",
    .examples =
        "  maquette plan --model llama-3.1-70b --cluster 'h100-sxm:8 x 32, rail 400G' --gbs 1024 --seq 8192\n"
        "  maquette plan job.yaml --top 10 --pareto memory --html plan.html\n"
        "  maquette plan job.yaml --tp 8 --space pp=4,8,16 --explain --write best.yaml\n"
        "  maquette plan job.yaml --vary gpus=256..4096:x2 --vary gpu=h100-sxm,b200\n"
        "  mpirun -n 64 maquette plan sweep.yaml\n"
        "  maquette plan mixed.yaml --predict plan.json\n"
        "  maquette plan mixed.yaml --parallelizer ./my-planner --workers 4\n"
        "  maquette plan --profile sailor/ --model OPT-350 --cluster 'A100-40:4 x 8 + V100-16:4 x 24' --gbs 1024\n",
    .brief = "Finds the fastest plan that fits, exactly. What the job says of its plan is kept, the rest is searched; "
             "Ctrl-C ends the search with the best so far. Exit status 1 when nothing fits; the report then says what "
             "would.\n",
    .often = often,
    .options = options,
    .n_options = CLI_COUNT(options),
    .max_args = CLI_JOB_FILES,
    .job = true,
    .megatron = CLI_MEGATRON_OPEN,
    .job_in_help = true,
    .callable = true,
    .run = run,
};
