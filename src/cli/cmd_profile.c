/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_profile.c - `maquette profile`: measures what a job needs on the GPU at hand; shows, compares and imports
 * measurements.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/codes.h"
#include "maquette/measure.h"

enum {
    OPT_FILE,
    OPT_GRID,
    OPT_DEVICE,
    OPT_DRY_RUN,
    OPT_AGAIN,
    OPT_SUSTAINED,
    OPT_WARM,
    OPT_ERROR,
    OPT_BUDGET,
    OPT_MODEL,
    OPT_CLUSTER,
    OPT_SET,
    OPT_JSON,
    OPT_HTML,
    OPT_OUTPUT
};

#define DEFAULT_FILE "kernels.db"

static const char *const grids[] = {"quick", "standard", NULL};

static const struct cli_option options[] = {
    [OPT_FILE] = {"--file", CLI_VALUE, "FILE", "where measurements are kept (" DEFAULT_FILE ")", NULL, NULL},
    [OPT_GRID] = {"--grid", CLI_VALUE, "quick|standard",
                  "measure operators over ranges of sizes, with a job or without one", NULL, grids},
    [OPT_DEVICE] = {"--device", CLI_VALUE, "NAME",
                    "what the GPU at hand is in the catalogue (the name that the driver gives it)", NULL, NULL},
    [OPT_DRY_RUN] = {"--dry-run", CLI_FLAG, NULL, "say what would be measured; needs no GPU", NULL, NULL},
    [OPT_AGAIN] = {"--again", CLI_FLAG, NULL, "measure also what the file has", NULL, NULL},
    [OPT_SUSTAINED] = {"--sustained", CLI_FLAG, NULL,
                       "run each kernel until the power limit has settled, some 12 s, and keep that rate", NULL, NULL},
    [OPT_WARM] = {"--warm", CLI_FLAG, NULL, "leave operands in the last-level cache between repetitions", NULL, NULL},
    [OPT_ERROR] = {"--error", CLI_VALUE, "PERCENT", "repeat until the mean is known so well (0.5)", NULL, NULL},
    [OPT_BUDGET] = {"--budget", CLI_VALUE, "SECONDS", "begin nothing after that time", NULL, NULL},
    [OPT_MODEL] = CLI_OPTION_MODEL,
    [OPT_CLUSTER] = CLI_OPTION_CLUSTER,
    [OPT_SET] = CLI_OPTION_SET,
    [OPT_JSON] = {"--json", CLI_FLAG, NULL, "JSON instead of text", NULL, NULL},
    [OPT_HTML] = CLI_OPTION_HTML,
    [OPT_OUTPUT] = CLI_OPTION_OUTPUT,
};
_Static_assert(CLI_COUNT(options) <= CLI_OPTIONS_MAX, "a value per option");

/* --- progress and Ctrl-C ---------------------------------------------------------------------------------------- */

static bool on_progress(void *user, const struct maq_profile_progress *p)
{
    double left = p->estimate_s > p->elapsed_s ? p->estimate_s - p->elapsed_s : 0;
    cli_progress(user, "%u of %u, %.0f s left: %.60s", p->done, p->total, left, p->what);
    return !*cli_catch_interrupts(user);
}

/* --- measuring -------------------------------------------------------------------------------------------------- */

/* A positive number with a fraction, at most `most`; 0 when the option is not given. */
static enum maq_status read_number(struct cli *cli, double *out, size_t option, double most)
{
    const char *text = cli->values[option];
    double n = 0, place = 1;
    bool digits = false, point = false, good = true;
    *out = 0;
    for (const char *c = text; text && *c && good; c++) {
        if (*c == '.' && !point) {
            point = true;
        } else if (*c >= '0' && *c <= '9') {
            place = point ? place / 10 : 1;
            n = point ? n + place * (*c - '0') : n * 10 + (*c - '0');
            digits = true;
        } else {
            good = false;
        }
    }
    if (text && (!good || !digits || !(n > 0) || n > most))
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, NULL, "%s takes a number above 0 and up to %g, not '%.80s'",
                         options[option].name, most, text);
    *out = text ? n : 0;
    return MAQ_OK;
}

static enum maq_status read_options(struct cli *cli, struct maq_profile_opts *opts)
{
    const char *grid = cli->values[OPT_GRID];
    double percent;
    enum maq_status status = read_number(cli, &percent, OPT_ERROR, 50);
    if (status == MAQ_OK)
        status = read_number(cli, &opts->budget_s, OPT_BUDGET, 1e7);
    opts->target_error = percent / 100;
    opts->path = cli->values[OPT_FILE] ? cli->values[OPT_FILE] : DEFAULT_FILE;
    opts->device = cli->values[OPT_DEVICE];
    opts->grid = !grid ? MAQ_PROFILE_NO_GRID : strcmp(grid, "quick") == 0 ? MAQ_PROFILE_QUICK : MAQ_PROFILE_STANDARD;
    opts->dry_run = cli->values[OPT_DRY_RUN] != NULL;
    opts->again = cli->values[OPT_AGAIN] != NULL;
    opts->sustained = cli->values[OPT_SUSTAINED] != NULL;
    opts->warm = cli->values[OPT_WARM] != NULL;
    return status;
}

static enum maq_status report(struct cli *cli, const struct maq_profile *profile)
{
    char *text;
    const char *file = cli->values[OPT_OUTPUT];
    const struct maq_report_opts opts = cli_report_opts(cli, file != NULL);
    enum maq_status status = CLI_PAGE(cli, cli->values[OPT_HTML], maq_profile, &opts, profile);
    if (status != MAQ_OK)
        return status;
    status = cli->values[OPT_JSON] ? maq_profile_json(&text, profile, cli->diag)
                                   : maq_profile_text(&text, profile, &opts, cli->diag);
    return status == MAQ_OK ? cli_write(cli, text, file) : status;
}

static enum maq_status measure(struct cli *cli, const struct maq_job *job)
{
    struct maq_profile_opts opts = MAQ_PROFILE_OPTS_INIT;
    struct maq_profile *profile;
    enum maq_status status = read_options(cli, &opts);
    if (status == MAQ_OK)
        status = cli_can_write(cli, cli->values[OPT_HTML]);
    if (status != MAQ_OK)
        return status;
    opts.progress = on_progress;
    opts.user = cli;
    (void)cli_catch_interrupts(cli);
    status = maq_profile_run(&profile, job, &opts, cli->diag);
    cli_progress(cli, "%s", "");
    if (status != MAQ_OK)
        return status;
    status = report(cli, profile);
    maq_profile_free(profile);
    return status;
}

static enum maq_status run_measure(struct cli *cli)
{
    struct maq_loaded_job *loaded = NULL;
    const char *path = cli->n_args > 0 ? cli->args[0] : NULL;
    if (cli->n_args > 1)
        return cli_usage(cli, MAQ_CODE_CLI_ARGUMENT, "usage: maquette profile [JOB.yaml] [OPTION...]",
                         "one argument too many: '%.80s'", cli->args[1]);
    enum maq_status status = MAQ_OK;
    if (path || cli->n_overrides > 0)
        status = cli_load_job(&loaded, cli, path, false);
    if (status == MAQ_OK)
        status = measure(cli, loaded ? maq_job_get(loaded) : NULL);
    maq_job_free(loaded);
    return status;
}

/* --- what is there ---------------------------------------------------------------------------------------------- */

/* `show`, `compare` and `import`: what they do with a file, and the options that mean something to them. */
static const struct verb {
    const char *name, *example;
    bool takes_file; /* --file */
    enum maq_status (*text)(char **out, const char *path, const struct maq_report_opts *opts, struct maq_diag *diag);
    enum maq_status (*json)(char **out, const char *path, struct maq_diag *diag);
    enum maq_status (*html)(char **out, const char *path, const struct maq_report_opts *opts, struct maq_diag *diag);
} verbs[] = {
    {"show", "maquette profile show " DEFAULT_FILE, false, maq_profile_show_text, maq_profile_show_json,
     maq_profile_show_html},
    {"compare", "maquette profile compare " DEFAULT_FILE, false, maq_profile_compare_text, maq_profile_compare_json,
     maq_profile_compare_html},
    {"import", "maquette profile import TABLE.csv --file " DEFAULT_FILE, true, NULL, NULL, NULL},
};

/* An option that the verb would not look at is a mistake. */
static enum maq_status check_verb(struct cli *cli, const struct verb *verb)
{
    if (cli->n_args < 2)
        return cli_usage(cli, MAQ_CODE_CLI_ARGUMENT, verb->example, "%s needs a file", verb->name);
    if (cli->n_overrides > 0)
        return cli_usage(cli, MAQ_CODE_CLI_OPTION, verb->example, "%s means nothing to %s", cli->overrides[0].flag,
                         verb->name);
    for (size_t i = 0; i < CLI_COUNT(options); i++)
        if (cli->values[i] && i != OPT_JSON && i != OPT_OUTPUT && !(i == OPT_FILE && verb->takes_file) &&
            !(i == OPT_HTML && verb->html))
            return cli_usage(cli, MAQ_CODE_CLI_OPTION, verb->example, "%s means nothing to %s", options[i].name,
                             verb->name);
    return MAQ_OK;
}

static enum maq_status run_verb(struct cli *cli, const struct verb *verb)
{
    char *text;
    const char *output = cli->values[OPT_OUTPUT], *path = cli->args[1];
    const char *file = cli->values[OPT_FILE] ? cli->values[OPT_FILE] : DEFAULT_FILE;
    const struct maq_report_opts opts = cli_report_opts(cli, output != NULL);
    enum maq_status status = cli_can_write(cli, cli->values[OPT_HTML]);
    if (status == MAQ_OK && cli->values[OPT_HTML])
        status = cli_write_page(cli, verb->html(&cli->page, path, &opts, cli->diag), cli->values[OPT_HTML]);
    if (status != MAQ_OK)
        return status;
    if (cli->values[OPT_JSON])
        status =
            verb->json ? verb->json(&text, path, cli->diag) : maq_profile_import_json(&text, file, path, cli->diag);
    else
        status = verb->text ? verb->text(&text, path, &opts, cli->diag)
                            : maq_profile_import_text(&text, file, path, &opts, cli->diag);
    return status == MAQ_OK ? cli_write(cli, text, output) : status;
}

static enum maq_status run(struct cli *cli)
{
    for (size_t i = 0; i < CLI_COUNT(verbs) && cli->n_args > 0; i++)
        if (strcmp(cli->args[0], verbs[i].name) == 0) {
            enum maq_status status = check_verb(cli, &verbs[i]);
            return status == MAQ_OK ? run_verb(cli, &verbs[i]) : status;
        }
    return run_measure(cli);
}

static const char *const often[] = {"--model",     "--cluster", "--file", "--dry-run", "--grid",
                                    "--sustained", "--json",    "--html", NULL};

const struct cli_command cli_profile = {
    .name = "profile",
    .args = "[JOB.yaml | show FILE | compare FILE | import TABLE.csv] [OPTION...]",
    .summary = "measure kernels on the GPU at hand, for predictions that look them up",
    .about =
        "Measures the operators and collectives that a training step of the job needs, the costliest first, and keeps "
        "the times in a file that `maquette train --measured FILE` looks into before it predicts. What the file has is "
        "not measured again. `show` lists a file, `compare` holds it against the predictions, `import` adds "
        "measurements from a CSV table. docs/profile.md says how it is measured and what the file looks like.\n",
    .examples = "  maquette profile --model llama-3.1-8b --cluster h100-sxm:8 --tp 2 --dry-run\n"
                "  maquette profile job.yaml --file h100.db --sustained\n"
                "  maquette profile --grid quick --file h100.db\n"
                "  maquette profile compare h100.db --html compare.html\n",
    .often = often,
    .options = options,
    .n_options = CLI_COUNT(options),
    .max_args = 2,
    .job = true,
    .run = run,
};
