/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measured.c - `maquette plan --profile DIR --model NAME --cluster 'A100-40:4 x 8 + V100-16:4 x 24' --gbs N`.
 *
 * Model and devices are names of the profile, not of the catalogue; the cluster's one-line form says how many devices there are
 * of each, and nothing else of it is known here.
 */
#include "cli/plan/measured.h"

#include <stdlib.h>
#include <string.h>

#include "cli/codes.h"

#define MOST_POOLS 8

/* The value of the last override of a path; NULL = none. */
static const char *given(const struct cli *cli, const char *path)
{
    const char *value = NULL;
    for (size_t i = 0; i < cli->n_overrides; i++)
        if (strcmp(cli->overrides[i].path, path) == 0 && strcmp(cli->overrides[i].value, "null") != 0)
            value = cli->overrides[i].value;
    return value;
}

/* Other values of a job mean nothing here. */
static enum maq_status refuse_rest(struct cli *cli)
{
    static const char *const known[] = {"model", "cluster", "workload.global_batch_size"};
    for (size_t i = 0; i < cli->n_overrides; i++) {
        const struct maq_override *o = &cli->overrides[i];
        bool used = strcmp(o->value, "null") == 0;
        for (size_t k = 0; k < CLI_COUNT(known); k++)
            used |= strcmp(o->path, known[k]) == 0;
        if (!used)
            return cli_usage(cli, MAQ_CODE_CLI_OPTION, "leave it out", "%s means nothing with --profile", o->flag);
    }
    return MAQ_OK;
}

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t");
}

/* Digits at *at, moved behind them; 0 where there are none or too many. */
static uint32_t read_number(const char **at)
{
    size_t digits = strspn(*at, "0123456789");
    uint32_t n = 0;
    for (size_t i = 0; i < digits && digits < 8; i++)
        n = n * 10 + (uint32_t)((*at)[i] - '0');
    *at += digits;
    return n;
}

/* NAME [":" COUNT] ["x" COUNT]; false when it is not one. */
static bool read_pool(struct cli *cli, struct maq_compose_pool *pool, const char **at)
{
    const char *start = skip_blanks(*at);
    size_t n = strcspn(start, ":+ \t");
    uint32_t per_node = 1, nodes = 1;
    *at = skip_blanks(start + n);
    if (n == 0)
        return false;
    if (**at == ':') {
        *at = skip_blanks(*at + 1);
        per_node = read_number(at);
        *at = skip_blanks(*at);
    }
    if (**at == 'x') {
        *at = skip_blanks(*at + 1);
        nodes = read_number(at);
        *at = skip_blanks(*at);
    }
    *pool = (struct maq_compose_pool){.device = cli_printf(cli, "%.*s", (int)n, start), .count = per_node * nodes};
    return pool->device && pool->count > 0;
}

static enum maq_status read_pools(struct cli *cli, struct maq_compose_pool pools[MOST_POOLS], uint32_t *n)
{
    const char *text = given(cli, "cluster"), *at = text;
    const char *hint = "for example --cluster 'A100-40:4 x 8 + V100-16:4 x 24', by the names of the profile";
    *n = 0;
    if (!text)
        return cli_usage(cli, MAQ_CODE_CLI_ARGUMENT, hint, "--profile needs --cluster");
    do {
        if (*n == MOST_POOLS || !read_pool(cli, &pools[*n], &at))
            return cli_usage(cli, MAQ_CODE_CLI_VALUE, hint, "--cluster '%.80s' cannot be read", text);
        (*n)++;
    } while (*at++ == '+');
    return at[-1] == '\0' ? MAQ_OK : cli_usage(cli, MAQ_CODE_CLI_VALUE, hint, "--cluster '%.80s' cannot be read", text);
}

static enum maq_status read_problem(struct cli *cli, struct maq_compose_problem *p, const struct cli_compose_options *o)
{
    const char *gbs = given(cli, "workload.global_batch_size"), *at = gbs;
    p->folder = o->folder;
    p->model = given(cli, "model");
    p->top = o->top;
    p->threads = o->threads;
    if (!p->model)
        return cli_usage(cli, MAQ_CODE_CLI_ARGUMENT, "a model of the profile: --model OPT-350",
                         "--profile needs --model");
    if (gbs && ((p->global_batch = read_number(&at)) == 0 || *at != '\0'))
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, NULL, "--gbs takes a whole number, not '%.60s'", gbs);
    for (int c = 0; o->class_name && c < MAQ_COMPOSE_CLASS_COUNT; c++)
        if (strcmp(o->class_name, maq_compose_class_name((enum maq_compose_class)c)) == 0)
            p->of = (enum maq_compose_class)c;
    return MAQ_OK;
}

/* The best plan in the form of docs/plan-form.md. */
static enum maq_status write_plan(struct cli *cli, const struct maq_compose_result *r, const char *path)
{
    struct maq_loaded_mixed_plan *loaded;
    char *text;
    enum maq_status status = maq_compose_mixed_plan(&loaded, r, 0, cli->diag);
    if (status == MAQ_NO)
        return maq_diag_fail(MAQ_NO, cli->diag, MAQ_CODE_CLI_ARGUMENT, (struct maq_span){0},
                             "choose --class uniform, mixed or pipelines",
                             "the best plan splits micro batches, which the form of plans has no words for");
    if (status == MAQ_OK) {
        status = maq_mixed_plan_write(&text, maq_mixed_plan_get(loaded), cli->diag);
        maq_mixed_plan_free(loaded);
    }
    return status == MAQ_OK ? cli_write(cli, text, path) : status;
}

enum maq_status cli_plan_profile(struct cli *cli, const struct cli_compose_options *o)
{
    struct maq_compose_pool pools[MOST_POOLS];
    struct maq_compose_problem problem = MAQ_COMPOSE_PROBLEM_INIT;
    struct maq_compose_result *result;
    struct maq_report_opts opts = cli_report_opts(cli, o->output != NULL);
    enum maq_status status = refuse_rest(cli);
    if (status == MAQ_OK)
        status = read_pools(cli, pools, &problem.n_pools);
    if (status == MAQ_OK)
        status = read_problem(cli, &problem, o);
    problem.pools = pools;
    if (status == MAQ_OK)
        status = maq_compose(&result, &problem, cli->diag);
    if (status != MAQ_OK)
        return status;
    status = CLI_PAGE(cli, o->html, maq_report_compose, &opts, &problem, result);
    if (status == MAQ_OK)
        status = CLI_REPORT(cli, o->json, o->output, maq_report_compose, &opts, &problem, result);
    if (o->write && result->n_plans > 0 && (status == MAQ_OK || status == MAQ_IO))
        status = cli_first_fault(status, write_plan(cli, result, o->write));
    if (status == MAQ_OK && result->n_plans == 0)
        status = MAQ_NO;
    maq_compose_result_free(result);
    return status;
}
