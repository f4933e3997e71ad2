/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_train.c - `maquette train`: one training step of a job. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/codes.h"
#include "maquette/framework_words.h"

enum {
    OPT_MODEL,
    OPT_CLUSTER,
    OPT_FRAMEWORK,
    OPT_NAME,
    OPT_SET,
    OPT_JSON,
    OPT_HTML,
    OPT_TRACE,
    OPT_EXPLAIN,
    OPT_ENGINE,
    OPT_MEASURED,
    OPT_COST,
    OPT_PRICE,
    OPT_MIN_FIT,
    OPT_AS,
    OPT_OUTPUT
};

static const char *const engines[] = {"fast", "static", "dynamic", NULL};

static const struct cli_option options[] = {
    [OPT_MODEL] = CLI_OPTION_MODEL,
    [OPT_CLUSTER] = CLI_OPTION_CLUSTER,
    [OPT_FRAMEWORK] = CLI_OPTION_FRAMEWORK,
    [OPT_NAME] = CLI_OPTION_NAME,
    [OPT_SET] = CLI_OPTION_SET,
    [OPT_JSON] = {"--json", CLI_FLAG, NULL, "JSON instead of text (schema maquette.train/1)", NULL, NULL},
    [OPT_HTML] = CLI_OPTION_HTML,
    [OPT_TRACE] = {"--trace", CLI_VALUE, "FILE",
                   "timeline of the step for ui.perfetto.dev; FILE.json for Chrome's format, FILE.gz compressed", NULL,
                   NULL},
    [OPT_EXPLAIN] = {"--explain", CLI_FLAG, NULL, "list every setting and where it came from", NULL, NULL},
    [OPT_ENGINE] = {"--engine", CLI_VALUE, "fast|static|dynamic",
                    "fast: layers are evaluated once and counted (default); static: every operator of the step, to "
                    "compare with it; dynamic: the same, slower where compute and communication overlap",
                    NULL, engines},
    [OPT_MEASURED] = CLI_OPTION_MEASURED,
    [OPT_COST] = CLI_OPTION_COST,
    [OPT_PRICE] = CLI_OPTION_PRICE,
    [OPT_MIN_FIT] =
        {"--min-fit-probability", CLI_VALUE, "P",
         "exit status 1 where the plan is less likely to fit in memory: 0.9 (else: where it does not fit as "
         "predicted)",
         NULL, NULL},
    [OPT_AS] = CLI_OPTION_WRITE_AS("print the job as", ", in place of a prediction"),
    [OPT_OUTPUT] = CLI_OPTION_OUTPUT,
};
_Static_assert(CLI_COUNT(options) <= CLI_OPTIONS_MAX, "a value per option");

/* The step as a graph with its times, when something asks for it. */
struct timeline {
    struct maq_train_graph graph;
    double *finish;
    struct maq_report_engine engine;
};

static void free_timeline(struct timeline *t)
{
    maq_train_graph_free(&t->graph);
    free(t->finish);
}

static enum maq_status run_engine(struct timeline *t, const struct maq_job *job, const char *name,
                                  struct maq_diag *diag)
{
    double makespan = 0;
    enum maq_status status = maq_train_graph(&t->graph, job, diag);
    if (status != MAQ_OK)
        return status;
    const struct maq_graph *g = &t->graph.graph;
    t->finish = malloc(((size_t)g->n_nodes + 1) * sizeof *t->finish);
    if (!t->finish)
        return maq_diag_fail(MAQ_NO_MEMORY, diag, MAQ_CODE_CLI_NO_MEMORY, (struct maq_span){0}, NULL,
                             "out of memory for a graph of %u nodes", g->n_nodes);
    if (strcmp(name, "dynamic") == 0) {
        struct maq_interference factors = maq_cost_interference(&job->cluster.groups[0].device);
        status = maq_engine_dynamic(&makespan, t->finish, g, t->graph.alone_ns, &factors, diag);
    } else {
        maq_engine_static(&makespan, t->finish, g, 1, t->graph.dur_ns);
    }
    t->engine = (struct maq_report_engine){name, makespan * 1e-9, g->n_nodes, g->n_edges};
    return status;
}

static enum maq_status write_trace(struct cli *cli, const struct timeline *t, const struct maq_job *job)
{
    struct maq_train_memory memory;
    enum maq_status status = maq_train_memory(&memory, job, cli->diag);
    if (status != MAQ_OK)
        return status;
    status = maq_trace_train(cli->values[OPT_TRACE], &t->graph, t->finish, &memory, cli->diag);
    maq_train_memory_free(&memory);
    return status;
}

static enum maq_status write_page(struct cli *cli, const struct maq_train_result *result,
                                  const struct maq_report_opts *opts)
{
    struct maq_train_spans spans;
    struct maq_train_memory memory;
    char *text;
    enum maq_status status = maq_train_spans(&spans, result->job, cli->diag);
    if (status != MAQ_OK)
        return status;
    status = maq_train_memory(&memory, result->job, cli->diag);
    if (status == MAQ_OK) {
        status = maq_report_train_html(&text, result, &spans, &memory, opts, cli->diag);
        maq_train_memory_free(&memory);
    }
    maq_train_spans_free(&spans);
    return status == MAQ_OK ? cli_put_page(cli, text, cli->values[OPT_HTML]) : status;
}

static enum maq_status report(struct cli *cli, const struct maq_loaded_job *loaded,
                              const struct maq_train_result *result, const struct maq_report_engine *engine)
{
    const char *file = cli->values[OPT_OUTPUT];
    struct maq_report_opts opts = cli_report_opts(cli, file != NULL);
    bool explains = cli->values[OPT_EXPLAIN] || cli->values[OPT_HTML];
    char *explain = explains ? maq_job_explain(loaded) : NULL, advice[MAQ_ADVICE_BYTES];
    enum maq_status status = MAQ_OK;
    if (explains && !explain)
        return MAQ_NO_MEMORY;
    opts.explain = explain;
    opts.engine = engine;
    opts.advice = result->fits ? NULL : maq_search_advice(advice, loaded, result);
    if (cli->values[OPT_HTML])
        status = write_page(cli, result, &opts);
    if (status != MAQ_OK) {
        free(explain);
        return status;
    }
    opts.explain = cli->values[OPT_EXPLAIN] ? explain : NULL;
    status = CLI_REPORT(cli, cli->values[OPT_JSON], file, maq_report_train, &opts, result);
    free(explain);
    return status;
}

static enum maq_status read_min_fit(double *out, struct cli *cli)
{
    const char *text = cli->values[OPT_MIN_FIT];
    if (text && (!maq_quantity_read(out, text, MAQ_QUANTITY_NUMBER) || !(*out >= 0) || !(*out <= 1)))
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, "0.9 for a plan that runs out of memory in one run of ten at most",
                         "--min-fit-probability takes a number from 0 to 1, not '%.60s'", text);
    return MAQ_OK;
}

static enum maq_status simulate(struct cli *cli, const struct maq_loaded_job *loaded)
{
    const struct maq_job *job = maq_job_get(loaded);
    const char *engine = cli->values[OPT_ENGINE];
    bool checked = engine && strcmp(engine, "fast") != 0;
    struct maq_train_result *result;
    struct timeline timeline = {0};
    double min_fit = 0;
    enum maq_status status = read_min_fit(&min_fit, cli);
    if (status == MAQ_OK)
        status = cli_can_write(cli, cli->values[OPT_HTML]);
    if (status != MAQ_OK)
        return status;
    status = maq_train_predict(&result, job, cli->diag);
    if (status != MAQ_OK)
        return status;
    if (checked || cli->values[OPT_TRACE])
        status = run_engine(&timeline, job, checked ? engine : "static", cli->diag);
    if (status == MAQ_OK && cli->values[OPT_TRACE])
        status = write_trace(cli, &timeline, job);
    if (status == MAQ_OK)
        status = report(cli, loaded, result, checked ? &timeline.engine : NULL);
    if (status == MAQ_OK && (cli->values[OPT_MIN_FIT] ? result->fit_probability < min_fit : !result->fits))
        status = MAQ_NO;
    free_timeline(&timeline);
    cli_keep_train(cli, result);
    return status;
}

/* A job with a section `rl`. */
static enum maq_status post_training(struct cli *cli, const struct maq_loaded_job *loaded)
{
    static const int others[] = {OPT_ENGINE, OPT_EXPLAIN, OPT_MIN_FIT};
    struct maq_post_training_result *r;
    char *explain = NULL;
    struct maq_report_opts opts = cli_report_opts(cli, cli->values[OPT_OUTPUT] != NULL);
    for (size_t i = 0; i < CLI_COUNT(others); i++)
        if (cli->values[others[i]])
            return cli_usage(cli, MAQ_CODE_CLI_VALUE, "take `rl` out of the job to see the policy's step by itself",
                             "%s does not go with a job of several models", options[others[i]].name);
    enum maq_status status = cli_can_write(cli, cli->values[OPT_HTML]);
    if (status == MAQ_OK)
        status = maq_post_training_predict(&r, loaded, cli->diag);
    if (status != MAQ_OK)
        return status;
    if (cli->values[OPT_HTML]) {
        opts.explain = explain = maq_job_explain(loaded);
        status = explain ? CLI_PAGE(cli, cli->values[OPT_HTML], maq_report_post_training, &opts, r) : MAQ_NO_MEMORY;
        opts.explain = NULL;
    }
    if (status == MAQ_OK && cli->values[OPT_TRACE])
        status = maq_trace_post_training(cli->values[OPT_TRACE], r, cli->diag);
    if (status == MAQ_OK)
        status = CLI_REPORT(cli, cli->values[OPT_JSON], cli->values[OPT_OUTPUT], maq_report_post_training, &opts, r);
    if (status == MAQ_OK && !r->fits)
        status = MAQ_NO;
    maq_post_training_free(r);
    free(explain);
    return status;
}

static enum maq_status write_as(struct cli *cli, const struct maq_loaded_job *loaded)
{
    char *text;
    enum maq_status status = maq_framework_file(&text, loaded, cli->values[OPT_AS], cli->diag);
    return status == MAQ_OK ? cli_write(cli, text, cli->values[OPT_OUTPUT]) : status;
}

static enum maq_status run(struct cli *cli)
{
    struct maq_loaded_job *loaded;
    const char *path = cli->n_args > 0 ? cli->args[0] : NULL;
    if (!path && cli->n_overrides == 0)
        return cli_usage(cli, MAQ_CODE_CLI_ARGUMENT,
                         "maquette train JOB.yaml, or maquette train --model llama-3.1-8b --cluster h100-sxm:8",
                         "there is no job");
    enum maq_status status = cli_load_job(&loaded, cli, path, false);
    if (status != MAQ_OK)
        return status;
    status = cli->values[OPT_AS]                ? write_as(cli, loaded)
             : maq_job_is_post_training(loaded) ? post_training(cli, loaded)
                                                : simulate(cli, loaded);
    cli_keep_job(cli, loaded);
    return status;
}

static const char *const often[] = {"--model", "--cluster", "--framework", "--tp",   "--pp",    "--cp",
                                    "--ep",    "--zero",    "--mbs",       "--gbs",  "--seq",   "--recompute",
                                    "--set",   "--explain", "--json",      "--html", "--trace", NULL};

const struct cli_command cli_train = {
    .name = "train",
    .args = "[JOB.yaml|FILE...] [OPTION...] [-- pretrain_gpt.py ARGUMENT...]",
    .summary = "predict a training step: time, throughput, memory, where the time goes",
    .about =
        "Predicts one training step of a job on a cluster. The job is a file (`-` reads standard input), files of a "
        "framework (docs/framework-files.md), options, or both: options win. Behind `--` may stand the command line "
        "of a Megatron-LM script, as it is. Exit status 1 when the plan does not fit in memory; the report then says "
        "by how much and what would make it fit.\n",
    .examples = "  maquette train examples/llama3-405b-16k.yaml\n"
                "  maquette train --model llama-3.1-8b --cluster h100-sxm:8 --zero 3 --seq 8192 --gbs 64\n"
                "  maquette train job.yaml --tp 4 --recompute selective --trace step.pftrace\n"
                "  maquette train job.yaml --html step.html\n"
                "  maquette train --cluster h100-sxm:8 -- pretrain_gpt.py --num-layers 24 --hidden-size 2048 \\\n"
                "    --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 --vocab-size 50304 \\\n"
                "    --micro-batch-size 4 --global-batch-size 128 --bf16\n",
    .often = often,
    .options = options,
    .n_options = CLI_COUNT(options),
    .max_args = CLI_JOB_FILES,
    .job = true,
    .megatron = CLI_MEGATRON_WHOLE,
    .job_in_help = true,
    .callable = true,
    .run = run,
};
