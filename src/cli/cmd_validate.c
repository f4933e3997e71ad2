/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_validate.c - `maquette validate WHAT TABLE`: predictions against published measurements.
 *
 * What can be validated is a row of `validations`, a file each; this one reads the options that they share.
 */
#include "cli/cmd_validate.h"

#include <stdlib.h>
#include <string.h>

#include "cli/codes.h"

enum {
    OPT_WHERE,
    OPT_JSON,
    OPT_WORST,
    OPT_PLOT,
    OPT_METRIC,
    OPT_THREADS,
    OPT_OUTPUT,
    OPT_LEAVE,
    OPT_COST,
    OPT_PROFILE,
    OPT_JUDGE,
    OPT_JOB,
    OPT_BEFORE,
    OPT_AT,
    OPT_STRICT,
    OPT_CLUSTER,
    OPT_COLLECTIVE,
    OPT_HTML
};

#define MOST_THREADS 1024u
#define MOST_WORST 1000000u
#define MOST_LAYERS 65535u

static const struct cli_validation *const validations[] = {
    &cli_validate_train,     &cli_validate_collectives, &cli_validate_kernels,  &cli_validate_plans,
    &cli_validate_ranking,   &cli_validate_risk,        &cli_validate_schedule, &cli_validate_serve,
    &cli_validate_serve_log, &cli_validate_choice,
};

static const char *const costs[] = {"analytical", "fitted", NULL};
static const char *const metrics[] = {"time", "memory", NULL};
static const char *const judges[] = {"ours", "sailor", NULL};

static const struct cli_option options[] = {
    /* Not a key of a job; but this kind keeps every value that is given, in order. */
    [OPT_WHERE] =
        {"--where", CLI_JOB, "COLUMN=VALUE",
         "only rows with that value, or one that starts with it: --where 'gpu=H100*'; all of several must hold",
         "where", NULL},
    [OPT_JSON] = {"--json", CLI_FLAG, NULL, "JSON instead of text (schema maquette.validate.WHAT/1), with every row",
                  NULL, NULL},
    [OPT_WORST] = {"--worst", CLI_VALUE, "N", "list the N worst rows, with what was assumed about them or costs most",
                   NULL, NULL},
    [OPT_PLOT] = {"--plot", CLI_VALUE, "FILE.svg", "draw predicted against measured", NULL, NULL},
    [OPT_METRIC] = {"--plot-metric", CLI_VALUE, "time|memory", "train: what --plot draws (time)", NULL, metrics},
    [OPT_THREADS] = {"--threads", CLI_VALUE, "N", "threads (one per core); the result does not depend on it", NULL,
                     NULL},
    [OPT_LEAVE] = {"--leave-device-out", CLI_FLAG, NULL,
                   "kernels: tables fitted to a device do not answer for it, only those of its generation", NULL, NULL},
    [OPT_COST] = {"--cost", CLI_VALUE, "analytical|fitted", "kernels: the best provider that may answer (fitted)", NULL,
                  costs},
    [OPT_PROFILE] = {"--profile", CLI_VALUE, "DIR", "plans: folder with measured layers, memory and links", NULL, NULL},
    [OPT_JUDGE] = {"--judge", CLI_VALUE, "ours|sailor", "plans: who predicts (ours)", NULL, judges},
    [OPT_JOB] = {"--job", CLI_VALUE, "FILE", "ranking: the job that they are laid over", NULL, NULL},
    [OPT_BEFORE] = {"--layers-before", CLI_VALUE, "N",
                    "ranking: entries of layer_partition in front of the model's first layer (0)", NULL, NULL},
    [OPT_AT] = {"--layers-at", CLI_VALUE, "A-B[,C-D]",
                "ranking: which entries of layer_partition are the model's layers", NULL, NULL},
    [OPT_STRICT] = CLI_OPTION_STRICT,
    [OPT_CLUSTER] = {"--cluster", CLI_VALUE, "DEVICE:N x NODES, ...",
                     "collectives: the machine that ran, in place of what the rows say; a log does not say its network",
                     NULL, NULL},
    [OPT_COLLECTIVE] =
        {"--collective", CLI_VALUE, "NAME",
         "collectives: what a log of nccl-tests measured that does not say it: all_reduce, alltoall, ...", NULL, NULL},
    [OPT_HTML] = CLI_OPTION_HTML,
    [OPT_OUTPUT] = {"--output", CLI_VALUE, "FILE", "write the report to FILE, not to standard output", NULL, NULL},
};

/* A count from 0 to `most`; `otherwise` when the option is not given. */
static enum maq_status read_filters(struct cli *cli, struct maq_validate_filter filters[CLI_VALIDATE_FILTERS],
                                    size_t *n)
{
    if (cli->n_overrides > CLI_VALIDATE_FILTERS)
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, NULL, "at most %u --where", CLI_VALIDATE_FILTERS);
    for (*n = 0; *n < cli->n_overrides; (*n)++) {
        const char *text = cli->overrides[*n].value, *equals = strchr(text, '=');
        if (!equals || equals == text)
            return cli_usage(cli, MAQ_CODE_CLI_VALUE, "for example --where source=torchtitan",
                             "--where takes COLUMN=VALUE, not '%.80s'", text);
        const char *column = cli_printf(cli, "%.*s", (int)(equals - text), text);
        if (!column)
            return MAQ_NO_MEMORY;
        filters[*n] = (struct maq_validate_filter){column, equals + 1};
    }
    return MAQ_OK;
}

enum maq_status cli_validate_write(struct cli *cli, char *text, const char *path)
{
    if (text && text[0] == '{')
        text = maq_report_add_diagnostics(text, cli->diag);
    if (!text)
        return maq_diag_fail(MAQ_NO_MEMORY, cli->diag, MAQ_CODE_CLI_NO_MEMORY, (struct maq_span){0}, NULL,
                             "out of memory for the report");
    return cli_write(cli, text, path);
}

enum maq_status cli_validate_page(struct cli *cli, const char *path, const char *what, char *text, char *json,
                                  char *svg)
{
    char *page;
    enum maq_status status = maq_validate_html(&page, what, text, json, svg, cli->diag);
    free(text);
    free(svg);
    return status == MAQ_OK ? cli_write(cli, page, path) : status;
}

static enum maq_status read_options(struct cli *cli, struct cli_validate_options *out)
{
    *out = (struct cli_validate_options){
        .opts = MAQ_VALIDATE_OPTS_INIT,
        .json = cli->values[OPT_JSON] != NULL,
        .plot = cli->values[OPT_PLOT],
        .metric = cli->values[OPT_METRIC],
        .output = cli->values[OPT_OUTPUT],
        .html = cli->values[OPT_HTML],
        .leave_device_out = cli->values[OPT_LEAVE] != NULL,
        .job = cli->values[OPT_JOB],
        .layers_at = cli->values[OPT_AT],
        .analytical = cli->values[OPT_COST] && strcmp(cli->values[OPT_COST], "analytical") == 0,
        .profile = cli->values[OPT_PROFILE],
        .sailor = cli->values[OPT_JUDGE] && strcmp(cli->values[OPT_JUDGE], "sailor") == 0,
    };
    out->opts.cluster = cli->values[OPT_CLUSTER];
    out->opts.collective = cli->values[OPT_COLLECTIVE];
    enum maq_status status = cli_can_write(cli, out->html);
    if (status == MAQ_OK)
        status = cli_count(cli, &out->opts.threads, OPT_THREADS, 0, MOST_THREADS, 0);
    if (status == MAQ_OK)
        status = cli_count(cli, &out->worst, OPT_WORST, 0, MOST_WORST, 0);
    if (status == MAQ_OK)
        status = cli_count(cli, &out->layers_before, OPT_BEFORE, 0, MOST_LAYERS, 0);
    if (status == MAQ_OK)
        status = read_filters(cli, out->filters, &out->opts.n_where);
    out->opts.where = out->filters;
    return status;
}

static const struct cli_validation *find(const char *name)
{
    for (size_t i = 0; i < CLI_COUNT(validations); i++)
        if (strcmp(name, validations[i]->name) == 0)
            return validations[i];
    return NULL;
}

/* "train, collectives": for messages. */
static const char *names(struct cli *cli)
{
    const char *all = validations[0]->name;
    for (size_t i = 1; all && i < CLI_COUNT(validations); i++)
        all = cli_printf(cli, "%s, %s", all, validations[i]->name);
    return all ? all : "";
}

static enum maq_status run(struct cli *cli)
{
    struct cli_validate_options given;
    const struct cli_validation *what = cli->n_args > 0 ? find(cli->args[0]) : NULL;
    if (cli->n_args > 0 && !what)
        return cli_usage(cli, MAQ_CODE_CLI_ARGUMENT, "maquette validate WHAT TABLE",
                         "'%.80s' is nothing that can be validated; there are: %s", cli->args[0], names(cli));
    if (cli->n_args < 2)
        return cli_usage(cli, MAQ_CODE_CLI_ARGUMENT, "maquette validate WHAT TABLE", "there is no %s",
                         what ? "table" : "WHAT and no table");
    if (cli->n_args > 2 && !what->many)
        return cli_usage(cli, MAQ_CODE_CLI_ARGUMENT, "maquette validate WHAT TABLE", "one argument too many: '%.80s'",
                         cli->args[2]);
    maq_diag_set_strict(cli->diag, cli->values[OPT_STRICT] != NULL);
    enum maq_status status = read_options(cli, &given);
    return status == MAQ_OK ? what->run(cli, cli->args[1], &given) : status;
}

static const char *const often[] = {"--where", "--worst", "--plot",   "--job", "--profile",
                                    "--json",  "--html",  "--output", NULL};

const struct cli_command cli_validate = {
    .name = "validate",
    .args = "WHAT TABLE... [OPTION...]",
    .summary = "compare predictions with published measurements",
    .about =
        "Predicts every row of a table of measurements and says how far off the predictions are, by source, device and "
        "size. `-` reads standard input. Rows that say too little are left out and counted. Exit status 1 when no row "
        "could be compared. docs/validate.md has the columns and the rules. WHAT is\n"
        "  train        training runs: every row becomes a job; what had to be guessed about it is listed with it\n"
        "  collectives  nccl-tests results, its log or a table: time by message size, devices and network\n"
        "  kernels      measured operators: a file or a folder of SYSTEM/OP__TABLE__FRAMEWORK__VERSION.csv[.gz]\n"
        "  plans        executed plans on GPUs of several kinds: a plan, a folder or a .tar.gz, with --profile DIR\n"
        "  ranking      plans of one job (--job), each with its measured step: how well they are ranked\n"
        "  risk         published failures, goodput, start-up and variation, with the recordings of a folder; status 1 "
        "when one is outside of its band\n"
        "  serve        serving runs: time per token, time to the first one, throughput\n"
        "  choice       the same table: how good a deployment is chosen by what is predicted of them\n"
        "  serve-log    recorded runs of an engine, request by request: a folder DEVICE/MODEL/vllm, or one that holds "
        "such\n"
        "  schedule     recordings of an engine's scheduler (one or several): is every decision the same? status 1 "
        "when "
        "one is not\n",
    .examples = "  maquette validate train measured.csv\n"
                "  maquette validate kernels tables/ --where device=h100-sxm --worst 10\n"
                "  maquette validate collectives nccl.csv --where collective=all_reduce --worst 10\n"
                "  maquette validate collectives all_reduce.log --cluster 'h100-sxm:8 x 2, rail 400G'\n"
                "  maquette validate plans executed.tar.gz --profile sailor/ --worst 5\n"
                "  maquette validate train measured.csv --where source=torchtitan --worst 5\n"
                "  maquette validate ranking plans.csv --job job.yaml --worst 10\n"
                "  maquette validate risk variability/\n"
                "  maquette validate schedule recordings/*.jsonl.gz\n"
                "  maquette validate train measured.csv --plot accuracy.svg --html accuracy.html\n",
    .brief = "Predicts every row of a table of measurements and says how far off the predictions are. WHAT is train, "
             "collectives, kernels, plans, ranking, risk, serve, choice, serve-log or schedule; `-` reads standard "
             "input. Exit status 1 when no row could be compared.\n",
    .often = often,
    .options = options,
    .n_options = CLI_COUNT(options),
    .max_args = SIZE_MAX,
    .run = run,
};
