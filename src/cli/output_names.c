/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output_names.c - files that a command writes, by their names: a name that says another format than the one that is written is
 * refused before anything is computed.
 *
 * A name without an ending says nothing. `.gz` is not looked at where what is written is compressed by it (time lines).
 */
#include <string.h>

#include "cli/cli.h"
#include "cli/codes.h"

enum rule {
    ONLY,  /* these endings, or none */
    NEVER, /* any but these */
};

static const struct named {
    const char *commands, *option; /* "train|replay" or NULL: every command that has the option */
    enum rule rule;
    const char *ends; /* between bars */
    const char *hint;
} rules[] = {
    {"train|replay|serve", "--trace", ONLY, "json|pftrace|perfetto-trace|perfetto|pb|proto|trace",
     "a time line is Perfetto's (FILE.pftrace) or Chrome's (FILE.json), for ui.perfetto.dev; FILE.gz compressed"},
    {NULL, "--html", ONLY, "html|htm", "the page is HTML: FILE.html"},
    {"validate", "--plot", ONLY, "svg", "a plot is an SVG: FILE.svg"},
    {"risk|islands", "--write", ONLY, "yaml|yml", "what is written is YAML: FILE.yaml"},
    {NULL, "--output", NEVER, "html|htm|svg|png|pdf|csv|tsv|xlsx|md|yaml|yml|pftrace",
     "a report is text, or JSON with --json"},
};

static bool among(const char *words, const char *word, size_t len)
{
    for (const char *at = words; *at;) {
        size_t n = strcspn(at, "|");
        if (n == len && strncasecmp(at, word, len) == 0)
            return true;
        at += n + (at[n] == '|');
    }
    return false;
}

/* What is behind the last '.' of a file's name; empty: nothing is. */
static const char *ending(const char *path, size_t *len)
{
    const char *name = strrchr(path, '/'), *dot;
    *len = strlen(path);
    if (*len > 3 && strcmp(path + *len - 3, ".gz") == 0)
        *len -= 3;
    name = name ? name + 1 : path;
    dot = memrchr(name, '.', (size_t)(path + *len - name));
    if (!dot || dot == name)
        return "";
    *len = (size_t)(path + *len - dot) - 1;
    return dot + 1;
}

static const char *given(const struct cli *cli, const char *option)
{
    for (size_t i = 0; i < cli->command->n_options; i++)
        if (strcmp(cli->command->options[i].name, option) == 0)
            return cli->values[i];
    return NULL;
}

static enum maq_status check(struct cli *cli, const struct named *rule)
{
    const char *command = cli->command->name, *path = given(cli, rule->option);
    size_t len;
    if (!path || (rule->commands && !among(rule->commands, command, strlen(command))))
        return MAQ_OK;
    const char *end = ending(path, &len);
    if (*end == '\0' || among(rule->ends, end, len) == (rule->rule == ONLY))
        return MAQ_OK;
    return cli_usage(cli, MAQ_CODE_CLI_VALUE, rule->hint, "%s %.160s: what is written there is no %.*s", rule->option,
                     path, (int)len, end);
}

enum maq_status cli_check_output_names(struct cli *cli)
{
    enum maq_status status = MAQ_OK;
    const char *output = given(cli, "--output");
    size_t len = 0;
    if (given(cli, "--export") || given(cli, "--write-as")) /* these say what --output is */
        return MAQ_OK;
    for (size_t i = 0; i < CLI_COUNT(rules); i++) {
        enum maq_status one = check(cli, &rules[i]);
        status = one != MAQ_OK ? one : status;
    }
    const char *end = output ? ending(output, &len) : "";
    bool json = len == 4 && strncasecmp(end, "json", 4) == 0;
    for (size_t i = 0; json && i < cli->command->n_options; i++)
        if (strcmp(cli->command->options[i].name, "--json") == 0 && !cli->values[i])
            status = cli_usage(cli, MAQ_CODE_CLI_VALUE, "add --json",
                               "--output %.160s: without --json a report is text", output);
    return status;
}
