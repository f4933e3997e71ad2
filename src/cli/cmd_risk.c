/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_risk.c - `maquette risk`: what varies and what it does to the step of a job. `fit` learns from step times,
 * `replay` from a recorded job.
 *
 * A verb is a row of `verbs`: its name, an example, the options that mean something to it, its function. Another one is another row.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/codes.h"
#include "cli/risk/captured.h"
#include "cli/risk/run.h"

enum {
    OPT_HOLDOUT,
    OPT_COLUMN,
    OPT_WRITE,
    OPT_META,
    OPT_VARIATION,
    OPT_SLOW,
    OPT_DRAWS,
    OPT_SEED,
    OPT_NO_SOURCES,
    OPT_MODEL,
    OPT_CLUSTER,
    OPT_FRAMEWORK,
    OPT_NAME,
    OPT_SET,
    OPT_MEASURED,
    OPT_COST,
    OPT_PRICE,
    OPT_STRICT,
    OPT_JSON,
    OPT_HTML,
    OPT_OUTPUT,
    OPT_RUN /* the first of CLI_RUN_OPTION_LIST */
};

#define BIT(option) (UINT64_C(1) << (option))
#define EVERYWHERE (BIT(OPT_JSON) | BIT(OPT_OUTPUT))

static const char *const holdouts[] = {"half", "third", "quarter", NULL};

static const struct cli_option options[] = {
    [OPT_HOLDOUT] = {"--holdout", CLI_VALUE, "half|third|quarter",
                     "fit: keep the end of each series back, and judge the prediction on it", NULL, holdouts},
    [OPT_COLUMN] = {"--column", CLI_VALUE, "NAME", "fit: the column with the step times (found by its name)", NULL,
                    NULL},
    [OPT_WRITE] = {"--write", CLI_VALUE, "FILE", "fit: what was learnt as a document for --variation", NULL, NULL},
    [OPT_META] = {"--meta", CLI_VALUE, "FILE", "replay: the shape of the job, dp_size, pp_size and vpp_size", NULL,
                  NULL},
    [OPT_VARIATION] = {"--variation", CLI_VALUE, "NAME|FILE",
                       "what varies: an entry of the catalogue or a document (default)", NULL, NULL},
    [OPT_SLOW] =
        {"--slow", CLI_VALUE, "PART=FACTORx,...",
         "what is slow: node:17=1.2x, rank:4095=1.1x, stage:3=1.1x (times as long), link:rail3=0.5x (of its speed)",
         NULL, NULL},
    [OPT_DRAWS] = {"--draws", CLI_VALUE, "N", "replicas that are sampled (10000)", NULL, NULL},
    [OPT_SEED] = {"--seed", CLI_VALUE, "N", "of the random numbers (1)", NULL, NULL},
    [OPT_NO_SOURCES] = {"--no-sources", CLI_FLAG, NULL, "leave out what drives it, which takes most of the time", NULL,
                        NULL},
    [OPT_MODEL] = CLI_OPTION_MODEL,
    [OPT_CLUSTER] = CLI_OPTION_CLUSTER,
    [OPT_FRAMEWORK] = CLI_OPTION_FRAMEWORK,
    [OPT_NAME] = CLI_OPTION_NAME,
    [OPT_SET] = CLI_OPTION_SET,
    [OPT_MEASURED] = CLI_OPTION_MEASURED,
    [OPT_COST] = CLI_OPTION_COST,
    [OPT_PRICE] = CLI_OPTION_PRICE,
    [OPT_STRICT] = CLI_OPTION_STRICT,
    [OPT_JSON] = {"--json", CLI_FLAG, NULL, "JSON instead of text", NULL, NULL},
    [OPT_HTML] = CLI_OPTION_HTML,
    [OPT_OUTPUT] = CLI_OPTION_OUTPUT,
#define CLI_RUN_OPTION_ROW(id, name, kind, value, words, doc)                                                          \
    [OPT_RUN + CLI_RUN_##id] = {name, kind, value, doc, NULL, words},
    CLI_RUN_OPTION_LIST(CLI_RUN_OPTION_ROW)
#undef CLI_RUN_OPTION_ROW
};
_Static_assert(CLI_COUNT(options) <= CLI_OPTIONS_MAX, "a value per option");

static enum maq_status run_fit(struct cli *cli)
{
    struct maq_risk_fit *fit;
    struct maq_risk_fit_opts opts = MAQ_RISK_FIT_OPTS_INIT;
    const char *holdout = cli->values[OPT_HOLDOUT], *file = cli->values[OPT_OUTPUT];
    opts.column = cli->values[OPT_COLUMN];
    opts.holdout = !holdout ? 0 : strcmp(holdout, "half") == 0 ? 0.5 : strcmp(holdout, "third") == 0 ? 1.0 / 3 : 0.25;
    enum maq_status status = maq_risk_fit(&fit, cli->args + 1, (uint32_t)cli->n_args - 1, &opts, cli->diag);
    if (status != MAQ_OK)
        return status;
    char *text;
    enum maq_status written = MAQ_OK;
    if (cli->values[OPT_WRITE]) {
        written = maq_risk_fit_variation(&text, fit, cli->diag);
        written = written == MAQ_OK ? cli_write(cli, text, cli->values[OPT_WRITE]) : written;
    }
    const struct maq_report_opts look = cli_report_opts(cli, file != NULL);
    status = CLI_PAGE(cli, cli->values[OPT_HTML], maq_report_risk_fit, &look, fit);
    if (status == MAQ_OK)
        status = CLI_REPORT(cli, cli->values[OPT_JSON], file, maq_report_risk_fit, &look, fit);
    maq_risk_fit_free(fit);
    return cli_first_fault(written, status);
}

static enum maq_status run_replay(struct cli *cli)
{
    struct maq_risk_replayed *replayed;
    const char *file = cli->values[OPT_OUTPUT];
    if (!cli->values[OPT_META])
        return cli_usage(cli, MAQ_CODE_CLI_OPTION, "maquette risk replay ops.csv.gz --meta meta.yaml",
                         "risk replay needs --meta");
    enum maq_status status = maq_risk_replay(&replayed, cli->args[1], cli->values[OPT_META], cli->diag);
    if (status != MAQ_OK)
        return status;
    const struct maq_report_opts look = cli_report_opts(cli, file != NULL);
    status = CLI_PAGE(cli, cli->values[OPT_HTML], maq_report_risk_replay, &look, replayed);
    if (status == MAQ_OK)
        status = CLI_REPORT(cli, cli->values[OPT_JSON], file, maq_report_risk_replay, &look, replayed);
    maq_risk_replayed_free(replayed);
    return status;
}

static const struct verb {
    const char *name, *example, *needs;
    uint64_t takes; /* BIT(OPT_...) */
    size_t most;    /* files */
    enum maq_status (*run)(struct cli *cli);
} verbs[] = {
    {"fit", "maquette risk fit step_times.csv --holdout half",
     "a CSV of step times, a trace or a file of measured kernels",
     EVERYWHERE | BIT(OPT_HTML) | BIT(OPT_STRICT) | BIT(OPT_HOLDOUT) | BIT(OPT_COLUMN) | BIT(OPT_WRITE), SIZE_MAX,
     run_fit},
    {"replay", "maquette risk replay ops.csv.gz --meta meta.yaml", "a CSV of operations",
     EVERYWHERE | BIT(OPT_HTML) | BIT(OPT_STRICT) | BIT(OPT_META), 1, run_replay},
};

/* An option that the verb would not look at is a mistake. */
static enum maq_status check_verb(struct cli *cli, const struct verb *verb)
{
    if (cli->n_args < 2)
        return cli_usage(cli, MAQ_CODE_CLI_ARGUMENT, verb->example, "risk %s needs %s", verb->name, verb->needs);
    if (cli->n_args - 1 > verb->most)
        return cli_usage(cli, MAQ_CODE_CLI_ARGUMENT, verb->example, "one argument too many: '%.80s'",
                         cli->args[verb->most + 1]);
    if (cli->n_overrides > 0)
        return cli_usage(cli, MAQ_CODE_CLI_OPTION, verb->example, "%s means nothing to risk %s", cli->overrides[0].flag,
                         verb->name);
    for (size_t i = 0; i < CLI_COUNT(options); i++)
        if (cli->values[i] && !(verb->takes & BIT(i)))
            return cli_usage(cli, MAQ_CODE_CLI_OPTION, verb->example, "%s means nothing to risk %s", options[i].name,
                             verb->name);
    return MAQ_OK;
}

/* --- a job ---------------------------------------------------------------------------------------------------------- */

#define SLOW_MOST 256
#define SLOW_GPU 1.2 /* times as long: what --what-if placement puts into each stage */

/* The parts of --slow, cut at commas. */
static enum maq_status read_slow(struct cli *cli, const char **part, uint32_t *n)
{
    const char *text = cli->values[OPT_SLOW];
    if (text && !*text)
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, "node:17=1.2x, link:rail3=0.5x", "--slow says nothing");
    for (*n = 0; text && *text;) {
        size_t len = strcspn(text, ",");
        char *copy = cli_printf(cli, "%.*s", (int)len, text);
        if (*n == SLOW_MOST)
            return cli_usage(cli, MAQ_CODE_CLI_VALUE, NULL, "--slow has more than %d parts", SLOW_MOST);
        if (!copy)
            return MAQ_NO_MEMORY;
        part[(*n)++] = copy;
        text += len + (text[len] == ',');
    }
    return MAQ_OK;
}

/* The distribution of the step. */
static enum maq_status predict_step(struct cli *cli, struct maq_risk_step **step, const struct maq_job *job,
                                    uint32_t seed, bool sources)
{
    struct maq_risk_step_opts opts = MAQ_RISK_STEP_OPTS_INIT;
    const char *slow[SLOW_MOST];
    enum maq_status status = cli_count(cli, &opts.draws, OPT_DRAWS, 400, 10000000, 0);
    if (status == MAQ_OK)
        status = read_slow(cli, slow, &opts.n_slow);
    if (status != MAQ_OK)
        return status;
    opts.seed = seed;
    opts.slow = slow;
    opts.variation = cli->values[OPT_VARIATION];
    opts.no_sources = !sources;
    opts.curve = cli->values[OPT_HTML] != NULL;
    const char *what = cli->values[OPT_RUN + CLI_RUN_TOKENS] ? NULL : cli->values[OPT_RUN + CLI_RUN_RUN_WHAT];
    if (what && strcmp(what, "placement") == 0)
        opts.place = SLOW_GPU;
    for (int k = 0; what && k < MAQ_RISK_PARTS; k++)
        if (strcmp(what, maq_risk_parts_name((enum maq_risk_parts)k)) == 0)
            opts.parts = 1u << k;
    return maq_risk_step(step, job, &opts, cli->diag);
}

/* A plan that does not fit in memory has no step. */
static enum maq_status check_fits(struct cli *cli, const struct maq_loaded_job *loaded)
{
    struct maq_train_result *train;
    char advice[MAQ_ADVICE_BYTES];
    enum maq_status status = maq_train_predict(&train, maq_job_get(loaded), cli->diag);
    if (status != MAQ_OK)
        return status;
    if (!train->fits)
        status = maq_diag_fail(MAQ_NO, cli->diag, MAQ_CODE_CLI_VALUE, (struct maq_span){0},
                               maq_search_advice(advice, loaded, train),
                               "the plan does not fit in memory: there is no step");
    maq_train_result_free(train);
    return status;
}

static enum maq_status run_step(struct cli *cli, const struct maq_loaded_job *loaded, uint32_t seed)
{
    const struct maq_job *job = maq_job_get(loaded);
    const char *file = cli->values[OPT_OUTPUT];
    struct maq_risk_step *step;
    enum maq_status status = predict_step(cli, &step, job, seed, cli->values[OPT_NO_SOURCES] == NULL);
    if (status != MAQ_OK)
        return status;
    const struct maq_report_opts look = cli_report_opts(cli, file != NULL);
    status = check_fits(cli, loaded); /* after the options, so that what is wrong with these is said first */
    if (status == MAQ_OK)
        status = CLI_PAGE(cli, cli->values[OPT_HTML], maq_report_risk_step, &look, step);
    if (status == MAQ_OK)
        status = CLI_REPORT(cli, cli->values[OPT_JSON], file, maq_report_risk_step, &look, step);
    maq_risk_step_free(step);
    return status;
}

/* --tokens: the whole run. Where it is said what varies, or what is slow, its steps are those of the distribution. */
static enum maq_status run_whole(struct cli *cli, const struct maq_loaded_job *loaded, uint32_t seed)
{
    const struct maq_job *job = maq_job_get(loaded);
    struct cli_risk_run run = {.job = job,
                               .loaded = loaded,
                               .values = cli->values + OPT_RUN,
                               .seed = seed,
                               .json = cli->values[OPT_JSON] != NULL,
                               .file = cli->values[OPT_OUTPUT],
                               .html = cli->values[OPT_HTML]};
    if (cli->values[OPT_VARIATION] || cli->values[OPT_SLOW]) {
        struct maq_risk_step *step;
        enum maq_status status = predict_step(cli, &step, job, seed, false);
        if (status != MAQ_OK)
            return status;
        run.step_mean_s = step->figure[MAQ_RISK_MEAN].value_s;
        run.step_sd_s = step->sd_s;
        maq_risk_step_free(step);
    }
    return cli_risk_run(cli, &run);
}

/* Options of a run mean nothing to a step, and some of a step nothing to a run. */
static enum maq_status check_job(struct cli *cli, const char *example)
{
    bool whole = cli->values[OPT_RUN + CLI_RUN_TOKENS] != NULL;
    const char *what = cli->values[OPT_RUN + CLI_RUN_RUN_WHAT];
    bool of_step = what && strcmp(what, "placement") == 0;
    for (int k = 0; what && k < MAQ_RISK_PARTS; k++)
        of_step = of_step || strcmp(what, maq_risk_parts_name((enum maq_risk_parts)k)) == 0;
    if (what && of_step == whole)
        return cli_usage(cli, MAQ_CODE_CLI_OPTION,
                         "kernels, dimensions, stages and placement are of a step; a run has --tokens",
                         "--what-if %s means nothing to a %s", what, whole ? "run" : "step");
    for (size_t i = OPT_RUN; i < CLI_COUNT(options) && !whole; i++)
        if (cli->values[i] && i != OPT_RUN + CLI_RUN_RUN_WHAT)
            return cli_usage(cli, MAQ_CODE_CLI_OPTION, "a run has --tokens", "%s means nothing to a step",
                             options[i].name);
    if (whole && cli->values[OPT_NO_SOURCES])
        return cli_usage(cli, MAQ_CODE_CLI_OPTION, example, "--no-sources means nothing to a run");
    if (whole && cli->values[OPT_DRAWS] && !cli->values[OPT_VARIATION] && !cli->values[OPT_SLOW])
        return cli_usage(cli, MAQ_CODE_CLI_OPTION, example,
                         "--draws means nothing to a run without --variation or --slow");
    return MAQ_OK;
}

/* A captured job: everything but what varies, what is slow, how often it is drawn and how it looks means nothing to it. */
static enum maq_status run_captured(struct cli *cli, uint32_t seed)
{
    static const uint64_t meant = EVERYWHERE | BIT(OPT_STRICT) | BIT(OPT_VARIATION) | BIT(OPT_SLOW) | BIT(OPT_DRAWS) |
                                  BIT(OPT_SEED) | BIT(OPT_NO_SOURCES) | BIT(OPT_HTML);
    struct maq_risk_graph_opts opts = MAQ_RISK_GRAPH_OPTS_INIT;
    const char *slow[SLOW_MOST];
    uint32_t n_slow;
    for (size_t i = 0; i < CLI_COUNT(options); i++)
        if (cli->values[i] && !(meant & BIT(i)))
            return cli_usage(cli, MAQ_CODE_CLI_OPTION, "maquette risk job.mqt", "%s means nothing to a captured job",
                             options[i].name);
    if (cli->n_overrides > 0)
        return cli_usage(cli, MAQ_CODE_CLI_OPTION, "maquette risk job.mqt", "a captured job has no keys to set");
    enum maq_status status = cli_count(cli, &opts.draws, OPT_DRAWS, 100, 10000000, 0);
    if (status == MAQ_OK)
        status = read_slow(cli, slow, &n_slow);
    opts.seed = seed;
    opts.variation = cli->values[OPT_VARIATION];
    opts.no_sources = cli->values[OPT_NO_SOURCES] != NULL;
    opts.curve = cli->values[OPT_HTML] != NULL;
    return status == MAQ_OK ? cli_risk_captured(cli, slow, n_slow, &opts, cli->values[OPT_JSON] != NULL,
                                                cli->values[OPT_OUTPUT], cli->values[OPT_HTML])
                            : status;
}

static const uint64_t verbs_alone = BIT(OPT_HOLDOUT) | BIT(OPT_COLUMN) | BIT(OPT_META) | BIT(OPT_WRITE);

static enum maq_status run_job(struct cli *cli)
{
    static const char example[] =
        "maquette risk JOB.yaml, maquette risk fit STEPS.csv, or maquette risk replay OPS.csv --meta META.yaml";
    struct maq_loaded_job *loaded;
    const char *path = cli->n_args > 0 ? cli->args[0] : NULL;
    if (!path && cli->n_overrides == 0)
        return cli_usage(cli, MAQ_CODE_CLI_ARGUMENT, example, "there is no job");
    if (cli->n_args > 1)
        return cli_usage(cli, MAQ_CODE_CLI_ARGUMENT, example, "one argument too many: '%.80s'", cli->args[1]);
    for (size_t i = 0; i < CLI_COUNT(options); i++)
        if (cli->values[i] && (verbs_alone & BIT(i)))
            return cli_usage(cli, MAQ_CODE_CLI_OPTION, example, "%s means nothing to a job", options[i].name);
    uint32_t seed = 1;
    enum maq_status status = check_job(cli, example);
    if (status == MAQ_OK)
        status = cli_can_write(cli, cli->values[OPT_HTML]);
    if (status == MAQ_OK)
        status = cli_count(cli, &seed, OPT_SEED, 1, UINT32_MAX, 1);
    if (status == MAQ_OK && path && maq_capture_probe(path))
        return run_captured(cli, seed);
    if (status == MAQ_OK && cli->values[OPT_STRICT])
        return cli_usage(cli, MAQ_CODE_CLI_OPTION, example,
                         "--strict means nothing to a job: nothing of it is recorded");
    if (status == MAQ_OK)
        status = cli_load_job(&loaded, cli, path, false);
    if (status != MAQ_OK)
        return status;
    status = cli->values[OPT_RUN + CLI_RUN_TOKENS] ? run_whole(cli, loaded, seed) : run_step(cli, loaded, seed);
    maq_job_free(loaded);
    return status;
}

static enum maq_status run(struct cli *cli)
{
    maq_diag_set_strict(cli->diag, cli->values[OPT_STRICT] != NULL);
    for (size_t i = 0; i < CLI_COUNT(verbs) && cli->n_args > 0; i++)
        if (strcmp(cli->args[0], verbs[i].name) == 0) {
            enum maq_status status = check_verb(cli, &verbs[i]);
            if (status == MAQ_OK)
                status = cli_can_write(cli, cli->values[OPT_HTML]);
            return status == MAQ_OK ? verbs[i].run(cli) : status;
        }
    return run_job(cli);
}

static const char *const often[] = {"--model",  "--cluster",  "--variation",  "--slow",   "--what-if",
                                    "--tokens", "--failures", "--checkpoint", "--spares", "--promise",
                                    "--start",  "--json",     "--html",       NULL};

const struct cli_command cli_risk = {
    .name = "risk",
    .args =
        "[JOB.yaml|JOB.mqt] [--tokens N] | fit STEPS.csv|TRACE.json|KERNELS.db... | replay OPS.csv --meta META.yaml "
        "[OPTION...]",
    .summary = "how sure a duration is, and when a run will be done",
    .about = "Predicts the distribution of a job's step time, with the interval of each quantile, and what drives it. "
             "With --tokens: when the whole run will be done, how much of its time is useful, what interrupts it and "
             "what that costs, from ten thousand simulated runs; exit status 1 when a --promise is not kept "
             "(docs/risk-runs.md). Of a captured job (a .mqt file, a trace that docs/imports.md reads) it predicts how "
             "long all of it takes. `fit` learns the law of recorded step times: warm-up, spikes, a second mode, "
             "quantiles with the confidence of each; --holdout judges it on the end of the series; and what kernels "
             "vary by, from a trace of PyTorch's profiler or a file of maquette profile. `replay` runs a recorded job "
             "again and says what it would take without stragglers, and which they are. docs/risk.md says how.\n",
    .examples = "  maquette risk job.yaml\n"
                "  maquette risk job.yaml --slow node:17=1.2x --slow link:rail3=0.5x\n"
                "  maquette risk job.yaml --tokens 15T --failures llama3 --spares 16 --promise 75d@95%\n"
                "  maquette risk job.yaml --tokens 15T --html run.html\n"
                "  maquette risk job.yaml --tokens 15T --failures rate=3.8e-3/node/day --what-if checkpoint\n"
                "  maquette risk fit step_times.csv --holdout half --json\n"
                "  maquette risk fit trace.json.gz --write variation.yaml\n"
                "  maquette risk replay ops.csv.gz --meta meta.yaml\n",
    .brief = "Predicts the distribution of a job's step time and what drives it; with --tokens when the whole run will "
             "be done. `fit` learns the law of recorded step times and kernels, `replay` runs a recorded job again "
             "without its stragglers.\n",
    .often = often,
    .options = options,
    .n_options = CLI_COUNT(options),
    .max_args = 1000,
    .job = true,
    .megatron = CLI_MEGATRON_WHOLE,
    .callable = true,
    .run = run,
};
