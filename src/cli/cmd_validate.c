/* cmd_validate.c - `maquette validate train`: predictions against published measurements. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/codes.h"
#include "maquette/validate.h"

enum { OPT_WHERE, OPT_JSON, OPT_WORST, OPT_PLOT, OPT_METRIC, OPT_THREADS, OPT_OUTPUT };

#define MOST_FILTERS 32u
#define MOST_THREADS 1024u
#define MOST_WORST 1000000u

static const char *const metrics[] = {"time", "memory", NULL};

static const struct cli_option options[] = {
    /* Not a key of a job; but this kind keeps every value that is given, in order. */
    [OPT_WHERE] =
        {"--where", CLI_JOB, "COLUMN=VALUE",
         "only rows with that value, or one that starts with it: --where 'gpu=H100*'; all of several must hold",
         "where", NULL},
    [OPT_JSON] = {"--json", CLI_FLAG, NULL,
                  "JSON instead of text (schema maquette.validate.train/1): every row with its job", NULL, NULL},
    [OPT_WORST] = {"--worst", CLI_VALUE, "N", "list the N worst rows of each metric and what was assumed about them",
                   NULL, NULL},
    [OPT_PLOT] = {"--plot", CLI_VALUE, "FILE.svg", "draw predicted against measured", NULL, NULL},
    [OPT_METRIC] = {"--plot-metric", CLI_VALUE, "time|memory", "what --plot draws (time)", NULL, metrics},
    [OPT_THREADS] = {"--threads", CLI_VALUE, "N", "threads (one per core); the result does not depend on it", NULL,
                     NULL},
    [OPT_OUTPUT] = {"--output", CLI_VALUE, "FILE", "write the report to FILE, not to standard output", NULL, NULL},
};

/* A count from 0 to `most`; `otherwise` when the option is not given. */
static enum maq_status read_count(struct cli *cli, uint32_t *out, size_t option, uint32_t most, uint32_t otherwise)
{
    const char *text = cli->values[option];
    uint64_t n = 0;
    *out = otherwise;
    if (!text)
        return MAQ_OK;
    size_t digits = strspn(text, "0123456789");
    for (size_t i = 0; i < digits && n <= most; i++)
        n = n * 10 + (uint64_t)(text[i] - '0');
    if (digits == 0 || text[digits] != '\0' || n > most)
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, NULL, "%s takes a number from 0 to %u, not '%.80s'",
                         options[option].name, most, text);
    *out = (uint32_t)n;
    return MAQ_OK;
}

static enum maq_status read_filters(struct cli *cli, struct maq_validate_filter filters[MOST_FILTERS], size_t *n)
{
    if (cli->n_overrides > MOST_FILTERS)
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, NULL, "at most %u --where", MOST_FILTERS);
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

static enum maq_status write_text(struct cli *cli, char *text, const char *path)
{
    if (!text)
        return maq_diag_fail(MAQ_NO_MEMORY, cli->diag, MAQ_CODE_CLI_NO_MEMORY, (struct maq_span){0}, NULL,
                             "out of memory for the report");
    return cli_write(cli, text, path);
}

static enum maq_status report(struct cli *cli, const struct maq_validate_result *result, uint32_t worst)
{
    const char *metric = cli->values[OPT_METRIC];
    char *text = cli->values[OPT_JSON] ? maq_validate_json(result) : maq_validate_text(result, worst);
    enum maq_status status = write_text(cli, text, cli->values[OPT_OUTPUT]);
    if (status == MAQ_OK && cli->values[OPT_PLOT])
        status = write_text(
            cli,
            maq_validate_svg(result, metric && strcmp(metric, "memory") == 0 ? MAQ_VALIDATE_MEMORY : MAQ_VALIDATE_TIME),
            cli->values[OPT_PLOT]);
    bool compared = false;
    for (int m = 0; m < MAQ_VALIDATE_METRIC_COUNT; m++)
        compared |= result->total.stats[m][MAQ_VALIDATE_ALL].n > 0;
    return status == MAQ_OK && !compared ? MAQ_NO : status;
}

static enum maq_status run(struct cli *cli)
{
    struct maq_validate_filter filters[MOST_FILTERS];
    struct maq_validate_opts opts = MAQ_VALIDATE_OPTS_INIT;
    struct maq_validate_result *result;
    uint32_t worst;
    if (cli->n_args < 2 || strcmp(cli->args[0], "train") != 0)
        return cli_usage(cli, MAQ_CODE_CLI_ARGUMENT, "maquette validate train TABLE.csv", "%s",
                         cli->n_args == 0 || strcmp(cli->args[0], "train") == 0
                             ? "there is no table"
                             : "only `train` can be validated so far");
    enum maq_status status = read_count(cli, &opts.threads, OPT_THREADS, MOST_THREADS, 0);
    if (status == MAQ_OK)
        status = read_count(cli, &worst, OPT_WORST, MOST_WORST, 0);
    if (status == MAQ_OK)
        status = read_filters(cli, filters, &opts.n_where);
    if (status != MAQ_OK)
        return status;
    opts.where = filters;
    status = maq_validate_train(&result, cli->args[1], &opts, cli->diag);
    if (status != MAQ_OK)
        return status;
    status = report(cli, result, worst);
    maq_validate_free(result);
    return status;
}

const struct cli_command cli_validate = {
    .name = "validate",
    .args = "train TABLE.csv [OPTION...]",
    .summary = "compare predictions with published measurements",
    .about =
        "Makes a job of every row of a table of measured training runs, predicts it, and says how far off the\n"
        "predictions are: by source, number of devices and device. `-` reads standard input. Rows that say too\n"
        "little are left out and counted; what had to be guessed about a row is listed with it. Exit status 1 when\n"
        "no row could be compared. docs/validate.md has the columns and the rules.\n",
    .examples = "  maquette validate train measured.csv\n"
                "  maquette validate train measured.csv --where source=torchtitan --worst 5\n"
                "  maquette validate train measured.csv --plot accuracy.svg --json --output accuracy.json\n",
    .options = options,
    .n_options = CLI_COUNT(options),
    .max_args = 2,
    .run = run,
};
