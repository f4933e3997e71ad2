/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.c - a command's arguments, read by its table.
 *
 *   --name value   --name=value   -h   --   (what follows is no option)
 *
 * Options and other arguments may stand in any order. The last of several equal options counts. A switch of the job
 * (false, true) may stand without a value: then it means true. All faults are reported, not the first alone.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/codes.h"

#define SHOWN 80 /* bytes of an argument in a message */

void cli_fini(struct cli *cli)
{
    for (size_t i = 0; i < cli->n_owned; i++)
        free(cli->owned[i]);
    free(cli->owned);
    free(cli->overrides);
    maq_megatron_free(cli->megatron);
    free(cli->args);
}

/* An argument being read: "--name=value" has both parts. */
struct argument {
    const char *text, *value; /* value: behind '=', or NULL */
    size_t name_len;
};

static struct argument split(const char *text)
{
    const char *equals = strchr(text, '=');
    if (!equals)
        return (struct argument){text, NULL, strlen(text)};
    return (struct argument){text, equals + 1, (size_t)(equals - text)};
}

static const struct cli_option *find_option(const struct cli_command *command, const struct argument *a)
{
    for (size_t i = 0; i < command->n_options; i++) {
        const char *name = command->options[i].name;
        if (strlen(name) == a->name_len && memcmp(name, a->text, a->name_len) == 0)
            return &command->options[i];
    }
    return NULL;
}

static bool find_job_option(struct cli_job_option *out, const struct cli_command *command, const struct argument *a)
{
    for (size_t i = 0; command->job && cli_job_option(i, out); i++)
        if (cli_job_option_is(out, a->text, a->name_len))
            return true;
    return false;
}

static enum maq_status unknown_option(struct cli *cli, const struct argument *a)
{
    const struct cli_command *command = cli->command;
    struct cli_nearest near;
    struct cli_job_option job;
    size_t dashes = a->name_len > 1 && a->text[1] == '-' ? 2 : 1;
    cli_nearest_init(&near, a->text + dashes, a->name_len - dashes);
    for (size_t i = 0; i < command->n_options; i++)
        cli_nearest_try(&near, command->options[i].name + 2, strlen(command->options[i].name) - 2);
    for (size_t i = 0; command->job && cli_job_option(i, &job); i++) {
        cli_nearest_try(&near, job.option.key, strlen(job.option.key));
        for (const char *at = job.option.aliases; *at;) {
            size_t n = strcspn(at, "|");
            cli_nearest_try(&near, at, n);
            at += n + (at[n] == '|');
        }
    }
    char hint[128];
    if (near.best)
        (void)snprintf(hint, sizeof hint, "did you mean '--%.*s'?", (int)near.best_len, near.best);
    else
        (void)snprintf(hint, sizeof hint, "maquette %s --help lists them", command->name);
    for (char *c = hint; near.best && *c; c++)
        *c = *c == '_' ? '-' : *c;
    int n = (int)(a->name_len < SHOWN ? a->name_len : SHOWN);
    return cli_usage(cli, MAQ_CODE_CLI_OPTION, hint, "unknown option '%.*s'", n, a->text);
}

static bool is_word(const char *const *words, const char *text)
{
    for (; *words; words++)
        if (strcmp(*words, text) == 0)
            return true;
    return false;
}

/* "one of: a, b, c" */
static const char *word_list(char buf[256], const char *const *words)
{
    size_t at = (size_t)snprintf(buf, 256, "one of: ");
    for (size_t i = 0; words[i] && at < 200; i++)
        at += (size_t)snprintf(buf + at, 256 - at, "%s%s", i > 0 ? ", " : "", words[i]);
    return buf;
}

/* A switch has false and true (and perhaps auto) among its words. */
static bool is_switch(const char *const *words)
{
    return words && is_word(words, "false") && is_word(words, "true");
}

static bool says_truth(const char *text)
{
    static const char *const truth[] = {"true", "false", "yes", "no", "on", "off", "auto", NULL};
    return is_word(truth, text);
}

/* The value of an option: behind '=', or the next argument. */
static const char *take_value(const struct argument *a, int argc, char **argv, int *i)
{
    if (a->value)
        return a->value;
    return *i + 1 < argc ? argv[++*i] : NULL;
}

static enum maq_status missing_value(struct cli *cli, const struct argument *a, const char *what,
                                     const char *const *words)
{
    char hint[256];
    if (words)
        (void)word_list(hint, words);
    else
        (void)snprintf(hint, sizeof hint, "write it as %.*s %s", (int)a->name_len, a->text, what ? what : "VALUE");
    return cli_usage(cli, MAQ_CODE_CLI_VALUE, hint, "%.*s needs a value", (int)a->name_len, a->text);
}

static enum maq_status read_job_option(struct cli *cli, const struct cli_job_option *job, const struct argument *a,
                                       int argc, char **argv, int *i)
{
    const char *flag = cli_printf(cli, "%.*s", (int)a->name_len, a->text), *value;
    if (!flag)
        return MAQ_NO_MEMORY;
    bool follows = *i + 1 < argc && says_truth(argv[*i + 1]);
    if (is_switch(job->words) && !a->value && !follows)
        value = "true";
    else
        value = take_value(a, argc, argv, i);
    if (!value)
        return missing_value(cli, a, NULL, job->words);
    return cli_job_override(cli, job, flag, value);
}

static enum maq_status read_own_option(struct cli *cli, const struct cli_option *option, const struct argument *a,
                                       int argc, char **argv, int *i)
{
    size_t number = (size_t)(option - cli->command->options);
    char hint[256];
    if (option->kind == CLI_FLAG) {
        if (a->value)
            return cli_usage(cli, MAQ_CODE_CLI_VALUE, NULL, "%s takes no value", option->name);
        cli->values[number] = "";
        return MAQ_OK;
    }
    const char *value = take_value(a, argc, argv, i);
    if (!value)
        return missing_value(cli, a, option->value, option->words);
    if (option->words && !is_word(option->words, value))
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, word_list(hint, option->words), "%s does not take '%.*s'",
                         option->name, SHOWN, value);
    if (option->kind == CLI_JOB)
        return cli_add_override(cli, option->name, option->path, value);
    if (option->kind == CLI_SET)
        return cli_job_set(cli, value);
    if (option->kind == CLI_SPACE)
        return cli_job_list(cli, option, value);
    if (option->kind == CLI_LIST && cli->values[number]) {
        value = cli_printf(cli, "%s,%s", cli->values[number], value);
        if (!value)
            return MAQ_NO_MEMORY;
    }
    cli->values[number] = value;
    return MAQ_OK;
}

static enum maq_status read_argument(struct cli *cli, const char *text)
{
    char hint[128];
    if (cli->n_args < cli->command->max_args) {
        cli->args[cli->n_args++] = text;
        return MAQ_OK;
    }
    (void)snprintf(hint, sizeof hint, "usage: maquette %s %s", cli->command->name, cli->command->args);
    return cli_usage(cli, MAQ_CODE_CLI_ARGUMENT, hint, "one argument too many: '%.*s'", SHOWN, text);
}

/* One argument, and the one behind it where that is its value. */
static enum maq_status read_any(struct cli *cli, const struct argument *a, int argc, char **argv, int *i)
{
    const struct cli_option *own = find_option(cli->command, a);
    struct cli_job_option job;
    if (own)
        return read_own_option(cli, own, a, argc, argv, i);
    if (find_job_option(&job, cli->command, a))
        return read_job_option(cli, &job, a, argc, argv, i);
    return unknown_option(cli, a);
}

enum maq_status cli_parse(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    enum maq_status worst = MAQ_OK;
    bool only_arguments = false;
    cli->command = command;
    cli->args = calloc((size_t)argc + 1, sizeof *cli->args);
    if (!cli->args)
        return cli_no_memory(cli);
    for (int i = 0; i < argc && worst != MAQ_NO_MEMORY; i++) {
        struct argument a = split(argv[i]);
        enum maq_status status = MAQ_OK;
        if (only_arguments || a.text[0] != '-' || a.text[1] == '\0')
            status = read_argument(cli, argv[i]);
        else if (strcmp(a.text, "--") == 0) {
            only_arguments = true;
            cli->n_before = cli->n_args;
            if (command->megatron) {
                status = cli_job_megatron(cli, (const char *const *)argv + i + 1, (size_t)(argc - i - 1));
                i = argc;
            }
        } else
            status = read_any(cli, &a, argc, argv, &i);
        worst = status != MAQ_OK ? status : worst;
    }
    if (!only_arguments)
        cli->n_before = cli->n_args;
    return worst;
}

enum maq_status cli_count(struct cli *cli, uint32_t *out, size_t option, uint32_t least, uint32_t most,
                          uint32_t otherwise)
{
    const char *text = cli->values[option];
    uint64_t n = 0;
    *out = otherwise;
    if (!text)
        return MAQ_OK;
    size_t digits = strspn(text, "0123456789");
    for (size_t i = 0; i < digits && n <= most; i++)
        n = n * 10 + (uint64_t)(text[i] - '0');
    if (digits == 0 || text[digits] != '\0' || n < least || n > most)
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, NULL, "%s takes a number from %u to %u, not '%.80s'",
                         cli->command->options[option].name, least, most, text);
    *out = (uint32_t)n;
    return MAQ_OK;
}
