/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - `maquette risk JOB --tokens N`: when the run will be done. */
#include "cli/risk/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/codes.h"

const char *const cli_run_recoveries[] = {"restart", "elastic", "replica", NULL};
const char *const cli_run_clocks[] = {"restarted", "paused", "queued", NULL};
const char *const cli_run_whats[] = {"checkpoint", "spares",     "dp-replicas", "placement",
                                     "kernels",    "dimensions", "stages",      NULL};

struct reading {
    struct cli *cli;
    const char *const *values;
    const struct cli_risk_run *given;
    struct maq_report_run report;
    struct maq_run_opts opts;
    struct maq_train_result *train;
    struct maq_loaded_failures *failures;
    struct maq_run_result *run;
    struct maq_run_variants *variants;
};

static const char *name_of(int option)
{
    static const char *const names[] = {
#define CLI_RUN_OPTION_NAME(id, name, kind, value, words, doc) name,
        CLI_RUN_OPTION_LIST(CLI_RUN_OPTION_NAME)
#undef CLI_RUN_OPTION_NAME
    };
    return names[option];
}

static int word_of(const char *value, const char *const *words)
{
    int i = 0;
    while (words[i] && strcmp(words[i], value) != 0)
        i++;
    return i;
}

/* --- quantities --- */

static enum maq_status bad(struct reading *r, int option, const char *text, const char *form)
{
    return cli_usage(r->cli, MAQ_CODE_CLI_VALUE, form, "%s cannot be '%.80s'", name_of(option), text);
}

static enum maq_status quantity(struct reading *r, double *out, int option, const char *text, enum maq_quantity kind)
{
    static const char *const forms[] = {"a number that is not negative", "a count: 15T, 300B, 2e12",
                                        "a time with its unit: 90s, 30min, 2h, 60d", "a rate with its unit: 200GB/s"};
    return maq_quantity_read(out, text, kind) && *out >= 0 ? MAQ_OK : bad(r, option, text, forms[kind]);
}

/* Leaves *out as it is where the option is not given. */
static enum maq_status optional(struct reading *r, double *out, int option, enum maq_quantity kind)
{
    return r->values[option] ? quantity(r, out, option, r->values[option], kind) : MAQ_OK;
}

static enum maq_status whole(struct reading *r, uint32_t *out, int option, double most)
{
    double x = *out;
    enum maq_status status = optional(r, &x, option, MAQ_QUANTITY_NUMBER);
    if (status == MAQ_OK && (x != floor(x) || x > most))
        return bad(r, option, r->values[option], "a whole number");
    *out = (uint32_t)x;
    return status;
}

/* "A" before the separator and "B" behind it, each a quantity. */
static enum maq_status pair(struct reading *r, double *a, double *b, int option, char separator,
                            enum maq_quantity kind_b)
{
    const char *text = r->values[option], *at = strchr(text, separator);
    if (!at)
        return bad(r, option, text, option == CLI_RUN_PROMISE ? "for example 60d@95%" : "for example 30s/2h");
    char *first = cli_printf(r->cli, "%.*s", (int)(at - text), text), *second = cli_printf(r->cli, "%s", at + 1);
    if (!first || !second)
        return MAQ_NO_MEMORY;
    size_t n = strlen(second);
    bool percent = n > 0 && second[n - 1] == '%';
    if (percent)
        second[n - 1] = '\0';
    enum maq_status status = quantity(r, a, option, first, MAQ_QUANTITY_TIME);
    if (status == MAQ_OK)
        status = quantity(r, b, option, second, kind_b);
    if (percent)
        *b /= 100;
    return status;
}

/* --- sections --- */

/* SURVIVES/EVERY:SAVE[:RESTORE[:PERSIST]], the first without /EVERY or with /1. */
static enum maq_status read_level(struct reading *r, struct maq_run_level *level, char *text)
{
    static const char *const survives[] = {"process", "node", "all", NULL};
    static const char form[] = "for example process:1s:5s,node/4:3s:10s:20s,all/6:10s:2min:5min";
    char *rest = text, *what = strsep(&rest, ":"), *save = strsep(&rest, ":"), *restore = strsep(&rest, ":"),
         *persist = rest;
    char *every = what;
    strsep(&every, "/");
    double n = 1;
    int kind = word_of(what, survives);
    if (!save || !survives[kind])
        return bad(r, CLI_RUN_LEVELS, r->values[CLI_RUN_LEVELS], form);
    *level = (struct maq_run_level){.survives = (enum maq_run_survives)kind};
    enum maq_status status = every ? quantity(r, &n, CLI_RUN_LEVELS, every, MAQ_QUANTITY_NUMBER) : MAQ_OK;
    if (status == MAQ_OK && (n < 1 || n > 1e6 || n != floor(n)))
        return bad(r, CLI_RUN_LEVELS, r->values[CLI_RUN_LEVELS],
                   "every so many of the level below: a whole number from 1");
    if (status == MAQ_OK)
        status = quantity(r, &level->save_s, CLI_RUN_LEVELS, save, MAQ_QUANTITY_TIME);
    if (status == MAQ_OK && restore)
        status = quantity(r, &level->restore_s, CLI_RUN_LEVELS, restore, MAQ_QUANTITY_TIME);
    if (status == MAQ_OK && persist)
        status = quantity(r, &level->persist_s, CLI_RUN_LEVELS, persist, MAQ_QUANTITY_TIME);
    level->every = (uint32_t)n;
    return status;
}

static enum maq_status read_levels(struct reading *r)
{
    char *rest = cli_printf(r->cli, "%s", r->values[CLI_RUN_LEVELS]), *one;
    enum maq_status status = MAQ_OK;
    if (!rest)
        return MAQ_NO_MEMORY;
    for (r->opts.n_levels = 0; status == MAQ_OK && (one = strsep(&rest, ",")) != NULL; r->opts.n_levels++) {
        if (r->opts.n_levels == MAQ_RUN_LEVELS)
            return bad(r, CLI_RUN_LEVELS, r->values[CLI_RUN_LEVELS], "at most four levels");
        status = read_level(r, &r->opts.levels[r->opts.n_levels], one);
    }
    return status;
}

static enum maq_status read_checkpoints(struct reading *r)
{
    const char *interval = r->values[CLI_RUN_CHECKPOINT];
    struct maq_run_level *l = &r->opts.levels[0];
    enum maq_status status = MAQ_OK;
    if (r->values[CLI_RUN_LEVELS])
        status = read_levels(r);
    if (status == MAQ_OK)
        status = optional(r, &l->save_s, CLI_RUN_SAVE, MAQ_QUANTITY_TIME);
    if (status == MAQ_OK)
        status = optional(r, &l->persist_s, CLI_RUN_PERSIST, MAQ_QUANTITY_TIME);
    if (status == MAQ_OK)
        status = optional(r, &l->restore_s, CLI_RUN_RESTORE, MAQ_QUANTITY_TIME);
    if (status != MAQ_OK || !interval || strcmp(interval, "auto") == 0)
        return status;
    if (strcmp(interval, "none") == 0) {
        r->opts.n_levels = 0;
        return MAQ_OK;
    }
    status = quantity(r, &r->opts.interval_s, CLI_RUN_CHECKPOINT, interval, MAQ_QUANTITY_TIME);
    return status == MAQ_OK && r->opts.interval_s == 0 ? bad(r, CLI_RUN_CHECKPOINT, interval, "auto, none, or a time")
                                                       : status;
}

static enum maq_status read_nodes(struct reading *r)
{
    struct maq_run_opts *o = &r->opts;
    const char *recovery = r->values[CLI_RUN_RECOVERY], *clock = r->values[CLI_RUN_CLOCK];
    enum maq_status status = whole(r, &o->spares, CLI_RUN_SPARES, 1e6);
    if (status == MAQ_OK)
        status = whole(r, &o->shared_nodes, CLI_RUN_SHARED, 1e8);
    if (status == MAQ_OK)
        status = whole(r, &o->min_replicas, CLI_RUN_LEAST, 1e6);
    if (status == MAQ_OK)
        status = optional(r, &o->reconfigure_s, CLI_RUN_RECONFIGURE, MAQ_QUANTITY_TIME);
    if (status == MAQ_OK && r->values[CLI_RUN_EVALUATE])
        status = pair(r, &o->evaluate_s, &o->evaluate_every_s, CLI_RUN_EVALUATE, '/', MAQ_QUANTITY_TIME);
    if (recovery)
        o->recovery = (enum maq_run_recovery)word_of(recovery, cli_run_recoveries);
    if (clock)
        o->clock = (enum maq_failure_clock)word_of(clock, cli_run_clocks);
    return status;
}

static enum maq_status read_simulation(struct reading *r)
{
    struct maq_run_opts *o = &r->opts;
    enum maq_status status = whole(r, &o->replicas, CLI_RUN_REPLICAS, 1e7);
    if (status == MAQ_OK && r->values[CLI_RUN_REPLICAS] && o->replicas < 2)
        status = bad(r, CLI_RUN_REPLICAS, r->values[CLI_RUN_REPLICAS], "from 2 to 10 million runs can be simulated");
    if (status == MAQ_OK)
        status = whole(r, &o->threads, CLI_RUN_THREADS, 1024);
    if (status == MAQ_OK)
        status = optional(r, &o->step_s, CLI_RUN_STEP_TIME, MAQ_QUANTITY_TIME);
    if (status == MAQ_OK)
        status = optional(r, &o->step_sigma, CLI_RUN_STEP_SIGMA, MAQ_QUANTITY_NUMBER);
    if (status == MAQ_OK && r->values[CLI_RUN_PROMISE])
        status = pair(r, &o->promise_s, &o->promise_share, CLI_RUN_PROMISE, '@', MAQ_QUANTITY_NUMBER);
    if (status == MAQ_OK && r->values[CLI_RUN_PROMISE] && !(o->promise_share > 0 && o->promise_share < 1))
        status = bad(r, CLI_RUN_PROMISE, r->values[CLI_RUN_PROMISE], "a share below 100 %: 60d@95%");
    return status;
}

static enum maq_status read_start(struct reading *r)
{
    const char *text = r->values[CLI_RUN_START];
    if (!text)
        return MAQ_OK;
    r->report.dated = true;
    return maq_date_read(&r->report.start_day, text) ? MAQ_OK : bad(r, CLI_RUN_START, text, "a day: 2027-01-31");
}

static enum maq_status read_options(struct reading *r)
{
    const char *failures = r->values[CLI_RUN_FAILURES];
    double storage = 0;
    enum maq_status status =
        quantity(r, &r->report.tokens, CLI_RUN_TOKENS, r->values[CLI_RUN_TOKENS], MAQ_QUANTITY_COUNT);
    if (status == MAQ_OK)
        status = optional(r, &storage, CLI_RUN_STORAGE, MAQ_QUANTITY_RATE);
    if (status != MAQ_OK)
        return status;
    maq_run_opts_of_train(&r->opts, r->train, r->report.tokens, storage);
    r->opts.seed = r->given->seed;
    if (r->given->step_mean_s > 0) {
        r->opts.step_s = r->given->step_mean_s;
        r->opts.step_noise = r->given->step_sd_s / r->given->step_mean_s;
    }
    if (r->values[CLI_RUN_STEP_ERROR])
        r->opts.step_sigma = r->train->error;
    status = maq_failures_load(&r->failures, failures ? failures : "fleets", r->cli->diag);
    if (status == MAQ_OK)
        status = read_checkpoints(r);
    if (status == MAQ_OK)
        status = read_nodes(r);
    if (status == MAQ_OK)
        status = read_simulation(r);
    return status == MAQ_OK ? read_start(r) : status;
}

/* --- answer --- */

static enum maq_status answer(struct reading *r)
{
    struct cli *cli = r->cli;
    const char *what = r->values[CLI_RUN_RUN_WHAT];
    r->opts.failures = r->report.failures = maq_failures_get(r->failures);
    enum maq_status status = maq_run_simulate(&r->run, &r->opts, cli->diag);
    if (status == MAQ_OK && what)
        status = maq_run_what_if(&r->variants, &r->opts, (enum maq_run_what)word_of(what, cli_run_whats), cli->diag);
    r->report.promised = r->values[CLI_RUN_PROMISE] != NULL;
    if (status == MAQ_OK && r->report.promised)
        status = maq_run_least_spares(&r->report.least_spares, &r->opts, cli->diag);
    r->report.run = r->run;
    r->report.what_if = r->variants;
    r->report.train = r->values[CLI_RUN_STEP_TIME] ? NULL : r->train;
    return status;
}

static enum maq_status write_report(struct reading *r, bool json, const char *file)
{
    const struct maq_report_opts look = cli_report_opts(r->cli, file != NULL);
    enum maq_status status = MAQ_OK;
    if (r->given->html) {
        char *text;
        status = maq_report_run_html(&text, &r->report, &look, r->cli->diag);
        if (status == MAQ_OK)
            status = cli_put_page(r->cli, text, r->given->html);
        if (status != MAQ_OK)
            return status;
    }
    status = CLI_REPORT(r->cli, json, file, maq_report_run, &look, &r->report);
    bool broken = r->report.promised && r->run->promise_met < r->run->opts.promise_share;
    return status == MAQ_OK && broken ? MAQ_NO : status;
}

enum maq_status cli_risk_run(struct cli *cli, const struct cli_risk_run *run)
{
    struct reading r = {
        .cli = cli, .values = run->values, .given = run, .opts = MAQ_RUN_OPTS_INIT, .report.job = run->job};
    enum maq_status status = maq_train_predict(&r.train, run->job, cli->diag);
    if (status == MAQ_OK && !r.train->fits) {
        char advice[MAQ_ADVICE_BYTES];
        status = maq_diag_fail(MAQ_NO, cli->diag, MAQ_CODE_CLI_VALUE, (struct maq_span){0},
                               maq_search_advice(advice, run->loaded, r.train),
                               "the plan does not fit in memory: there is no run");
    }
    if (status == MAQ_OK)
        status = read_options(&r);
    if (status == MAQ_OK)
        status = answer(&r);
    if (status == MAQ_OK)
        status = write_report(&r, run->json, run->file);
    maq_run_variants_free(r.variants);
    maq_run_result_free(r.run);
    maq_failures_free(r.failures);
    maq_train_result_free(r.train);
    return status;
}
