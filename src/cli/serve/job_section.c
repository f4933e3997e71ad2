/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_section.c - the section `serve` of a job: options of the command without their dashes, as they would be on its line.
 *
 *   serve: {engine: vllm, max_num_batched_tokens: 2048, rate: 8, slo: 'ttft_p95<500ms'}
 *
 * What the line has goes first. Degrees of a replica are keys of the plan, and what is written where is said on the line alone.
 */
#include <string.h>

#include "cli/codes.h"
#include "cli/serve/options.h"

bool cli_serve_is_of_the_line(size_t option)
{
    static const size_t list[] = {SERVE_HTML,     SERVE_TRACE,    SERVE_JSON,    SERVE_PER_REQUEST, SERVE_OUTPUT,
                                  SERVE_SPACE,    SERVE_WRITE,    SERVE_COMMAND, SERVE_MANIFEST,    SERVE_HELM,
                                  SERVE_NO_FRONT, SERVE_NO_POOLS, SERVE_THREADS};
    for (size_t i = 0; i < CLI_COUNT(list); i++)
        if (list[i] == option)
            return true;
    enum cli_option_kind kind = cli_serve_table[option].kind;
    return kind != CLI_VALUE && kind != CLI_LIST && kind != CLI_FLAG;
}

/* "max_num_seqs" and "max-num-seqs" are --max-num-seqs. */
static bool is_named(const char *flag, struct maq_str key)
{
    size_t i = 0;
    for (flag += 2; i < key.len && flag[i]; i++)
        if (flag[i] != key.ptr[i] && !(flag[i] == '-' && key.ptr[i] == '_'))
            return false;
    return !flag[i] && i == key.len;
}

static enum maq_status unknown(struct cli *cli, const struct maq_serve_entry *e)
{
    struct cli_nearest near;
    char hint[128] = "maquette serve --help-all lists them; degrees belong under `plan:`";
    char *key = cli_printf(cli, "%.*s", (int)(e->key.len < 60 ? e->key.len : 60), e->key.ptr);
    if (!key)
        return MAQ_NO_MEMORY;
    for (char *c = key; *c; c++)
        *c = *c == '_' ? '-' : *c;
    cli_nearest_init(&near, key, strlen(key));
    for (size_t i = 0; i < SERVE_COUNT; i++)
        if (!cli_serve_is_of_the_line(i))
            cli_nearest_try(&near, cli_serve_table[i].name + 2, strlen(cli_serve_table[i].name + 2));
    if (near.best)
        (void)snprintf(hint, sizeof hint, "did you mean '%s'?", near.best);
    return maq_diag_fail(MAQ_BAD_INPUT, cli->diag, MAQ_CODE_CLI_OPTION, e->key_at, hint,
                         "'%s' is no option of maquette serve that a job may have", key);
}

static bool is_word_of(const struct cli_option *o, const char *value)
{
    bool known = !o->words;
    for (size_t i = 0; o->words && o->words[i]; i++)
        known = known || strcmp(o->words[i], value) == 0;
    return known;
}

/* What would do in place of a value that does not. */
static const char *values_of(struct cli *cli, const struct cli_option *o)
{
    const char *list = o->kind == CLI_FLAG ? "true or false" : o->words ? "one of:" : o->doc;
    for (size_t i = 0; o->words && o->words[i] && list; i++)
        list = cli_printf(cli, "%s%s %s", list, i > 0 ? "," : "", o->words[i]);
    return list;
}

static enum maq_status take(struct cli *cli, size_t option, const struct maq_serve_entry *e)
{
    const struct cli_option *o = &cli_serve_table[option];
    const char *value = cli_printf(cli, "%.*s", (int)e->value.len, e->value.ptr ? e->value.ptr : "");
    if (!value)
        return MAQ_NO_MEMORY;
    bool on = strcmp(value, "true") == 0, truth = on || strcmp(value, "false") == 0;
    if (!e->is_text)
        return maq_diag_fail(MAQ_BAD_INPUT, cli->diag, MAQ_CODE_CLI_VALUE, e->at, values_of(cli, o),
                             "%s takes one value, not a list or a map", o->name);
    if (o->kind == CLI_FLAG ? !truth : !is_word_of(o, value))
        return maq_diag_fail(MAQ_BAD_INPUT, cli->diag, MAQ_CODE_CLI_VALUE, e->at, values_of(cli, o),
                             "%s does not take '%.60s'", o->name, value);
    if (cli_takes(cli->command, option) && !cli->values[option] && (o->kind != CLI_FLAG || on)) {
        cli->values[option] = o->kind == CLI_FLAG ? "" : value;
        cli->given_at[option] = e->at;
    }
    return MAQ_OK;
}

static size_t option_of(const struct maq_serve_entry *e)
{
    size_t option = 0;
    while (option < SERVE_COUNT &&
           (cli_serve_is_of_the_line(option) || !is_named(cli_serve_table[option].name, e->key)))
        option++;
    return option;
}

/* A deployment's: its degrees, its weights, its engine, what drafts. */
static bool is_of_a_member(size_t option)
{
    return (option >= SERVE_DP && option <= SERVE_AFD_BANDWIDTH) ||
           (option >= SERVE_WEIGHTS && option <= SERVE_ACCEPTANCE);
}

enum maq_status cli_serve_check_member(struct cli *cli, const struct maq_job_member *member)
{
    struct maq_serve_entry e;
    enum maq_status worst = MAQ_OK;
    for (size_t i = 0; maq_job_member_serve_entry(&e, member, i); i++) {
        size_t option = option_of(&e);
        if (option < SERVE_COUNT && !is_of_a_member(option))
            worst = cli_first_fault(worst, maq_diag_fail(MAQ_BAD_INPUT, cli->diag, MAQ_CODE_CLI_OPTION, e.key_at,
                                                         "under the document's own `serve:`, or on the command line",
                                                         "%s is of the whole fleet, not of one of its members",
                                                         cli_serve_table[option].name));
    }
    return worst;
}

enum maq_status cli_serve_section(struct cli *cli, const struct maq_loaded_job *loaded)
{
    struct maq_serve_entry e;
    enum maq_status worst = MAQ_OK;
    memset(cli->given_at, 0, sizeof cli->given_at); /* a what-if's option may have been the job's before */
    for (size_t i = 0; maq_job_serve_entry(&e, loaded, i); i++) {
        size_t option = option_of(&e);
        worst = cli_first_fault(worst, option < SERVE_COUNT ? take(cli, option, &e) : unknown(cli, &e));
    }
    return worst;
}
