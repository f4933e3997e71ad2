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
    free(cli->input);
    free(cli->overrides);
    maq_megatron_free(cli->megatron);
    maq_serve_command_free(cli->served);
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

bool cli_takes(const struct cli_command *command, size_t option)
{
    const size_t *out = command->leaves_out;
    while (out && *out < option)
        out++;
    return !out || *out != option;
}

static const struct cli_option *find_option(const struct cli_command *command, const struct argument *a)
{
    for (size_t i = 0; i < command->n_options; i++) {
        if (!cli_takes(command, i))
            continue;
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

/* ---- an unknown option ---- */

/* Its name without dashes, and what may stand in the hint. */
struct unknown {
    const struct cli_command *command;
    const char *name;
    size_t len;
    char hint[256];
};

static bool knows(const struct cli_command *command, const char *name, size_t len)
{
    struct cli_job_option job;
    const struct argument a = {.text = name, .name_len = len};
    return find_option(command, &a) || find_job_option(&job, command, &a);
}

/* One dash for two. */
static bool undashed(struct unknown *u, size_t dashes)
{
    char name[72];
    (void)snprintf(name, sizeof name, "--%.*s", (int)(u->len < 64 ? u->len : 64), u->name);
    if (dashes != 1 || !knows(u->command, name, strlen(name)))
        return false;
    (void)snprintf(u->hint, sizeof u->hint, "did you mean '%s'?", name);
    return true;
}

/* Other programs' word for it, when what it is here is this command's. */
static bool meant(struct unknown *u)
{
    const char *hint;
    for (size_t row = 0; (hint = cli_option_synonym(u->name, u->len, &row)) != NULL;) {
        bool option = strncmp(hint, "--", 2) == 0;
        if (option ? !knows(u->command, hint, strcspn(hint, " ,")) : !knows(u->command, "--cluster", 9))
            continue;
        (void)snprintf(u->hint, sizeof u->hint, "%s", hint);
        return true;
    }
    return false;
}

/* Of names that begin with the word the shortest. */
static void begins(const struct unknown *u, struct cli_nearest *best, const char *name, size_t n)
{
    size_t i = 0;
    while (i < u->len && i < n && (u->name[i] == '_' ? '-' : u->name[i]) == (name[i] == '_' ? '-' : name[i]))
        i++;
    if (i == u->len && (!best->best || n < best->best_len)) {
        best->best = name;
        best->best_len = n;
    }
}

/* Every name that an option of the command goes by. */
static void each_name(const struct unknown *u, struct cli_nearest *best,
                      void (*look)(const struct unknown *, struct cli_nearest *, const char *, size_t))
{
    struct cli_job_option job;
    look(u, best, "help", 4);
    for (size_t i = 0; i < u->command->n_options; i++)
        if (cli_takes(u->command, i))
            look(u, best, u->command->options[i].name + 2, strlen(u->command->options[i].name) - 2);
    for (size_t i = 0; u->command->job && cli_job_option(i, &job); i++) {
        look(u, best, job.option.key, strlen(job.option.key));
        for (const char *at = job.option.aliases; *at;) {
            size_t n = strcspn(at, "|");
            look(u, best, at, n);
            at += n + (at[n] == '|');
        }
    }
}

static void near(const struct unknown *u, struct cli_nearest *best, const char *name, size_t n)
{
    (void)u;
    cli_nearest_try(best, name, n);
}

static bool found(struct unknown *u, const struct cli_nearest *best)
{
    if (!best->best)
        return false;
    (void)snprintf(u->hint, sizeof u->hint, "did you mean '--%.*s'?", (int)best->best_len, best->best);
    for (char *c = u->hint; *c; c++)
        *c = *c == '_' ? '-' : *c;
    return true;
}

static bool begun(struct unknown *u)
{
    struct cli_nearest best = {0};
    if (u->len >= 3)
        each_name(u, &best, begins);
    return found(u, &best);
}

/* What stands behind `--` where it is said, and Megatron-LM's own words before it. */
static bool megatrons(struct unknown *u)
{
    char name[64];
    if (u->command->megatron == CLI_MEGATRON_NONE || u->len >= sizeof name)
        return false;
    (void)snprintf(name, sizeof name, "%.*s", (int)u->len, u->name);
    if (!maq_megatron_knows(name))
        return false;
    (void)snprintf(u->hint, sizeof u->hint,
                   "an argument of Megatron-LM: its command line goes behind `--`: maquette %s --cluster CLUSTER -- "
                   "pretrain_gpt.py --%s ...; a key of the model is set by --set model.KEY=VALUE",
                   u->command->name, name);
    return true;
}

/* The same of a serving engine. */
static bool engines(struct unknown *u)
{
    static const char *const starts[MAQ_ENGINE_COUNT] = {"vllm serve MODEL", "python -m sglang.launch_server",
                                                         "trtllm-serve MODEL"};
    char name[64];
    if (!u->command->engine || u->len >= sizeof name)
        return false;
    (void)snprintf(name, sizeof name, "%.*s", (int)u->len, u->name);
    for (int e = 0; e < MAQ_ENGINE_COUNT; e++) {
        if (!maq_serve_command_knows((enum maq_engine)e, name))
            continue;
        (void)snprintf(
            u->hint, sizeof u->hint,
            "an option of %s: its command line goes behind `--`: maquette %s --cluster CLUSTER -- %s --%s ...",
            maq_engine_name((enum maq_engine)e), u->command->name, starts[e], name);
        return true;
    }
    return false;
}

/* The commands that have such an option. */
static bool neighbours(struct unknown *u)
{
    size_t at = 0;
    for (size_t i = 0; cli_commands[i]; i++) {
        const struct cli_command *other = cli_commands[i];
        char option[72];
        (void)snprintf(option, sizeof option, "--%.*s", (int)(u->len < 64 ? u->len : 64), u->name);
        if (other != u->command && knows(other, option, strlen(option)) && at < sizeof u->hint / 2)
            at += (size_t)snprintf(u->hint + at, sizeof u->hint - at, "%s%s", at > 0 ? ", " : "an option of maquette ",
                                   other->name);
    }
    return at > 0;
}

static bool misspelt(struct unknown *u)
{
    struct cli_nearest best;
    cli_nearest_init(&best, u->name, u->len);
    each_name(u, &best, near);
    return found(u, &best);
}

/* Options that say the machine are one fault, however many there are; their values are no arguments. */
static bool says_machine(struct unknown *u, const struct argument *a, int argc, char **argv, int *i)
{
    if (!knows(u->command, "--cluster", 9) || !cli_cluster_option_hint(u->hint, u->name, u->len, argc, argv))
        return false;
    if (!a->value && *i + 1 < argc && cli_is_cluster_value(argv[*i + 1]))
        ++*i;
    return true;
}

static enum maq_status unknown_option(struct cli *cli, const struct argument *a, int argc, char **argv, int *i)
{
    size_t dashes = a->name_len > 1 && a->text[1] == '-' ? 2 : 1;
    struct unknown u = {cli->command, a->text + dashes, a->name_len - dashes, ""};
    bool machine = says_machine(&u, a, argc, argv, i), told = cli->machine_told;
    cli->machine_told |= machine;
    if (machine && told)
        return MAQ_USAGE;
    if (!machine && !undashed(&u, dashes) && !meant(&u) && !megatrons(&u) && !engines(&u) && !begun(&u) &&
        !neighbours(&u) && !misspelt(&u))
        (void)snprintf(u.hint, sizeof u.hint, "maquette %s --help-all lists them", cli->command->name);
    int n = (int)(a->name_len < SHOWN ? a->name_len : SHOWN);
    return cli_usage(cli, MAQ_CODE_CLI_OPTION, u.hint, "unknown option '%.*s'", n, a->text);
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
    static const char *const truth[] = {"true", "false", "yes", "no", "on", "off", "auto", "1", "0", NULL};
    for (size_t i = 0; truth[i]; i++)
        if (strcasecmp(truth[i], text) == 0)
            return true;
    return false;
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

/* People write 2.5; documents have units. */
static enum maq_status read_price(struct cli *cli, const struct cli_option *option, const char *value)
{
    double number;
    bool bare = maq_quantity_read(&number, value, MAQ_QUANTITY_NUMBER);
    if (bare && !(number > 0))
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, "--price 2.5 for 2.50 USD an hour and device",
                         "%s takes a price above 0, not '%.*s'", option->name, SHOWN, value);
    if (bare)
        value = cli_printf(cli, "%s USD/h", value);
    return value ? cli_add_override(cli, option->name, option->path, value) : MAQ_NO_MEMORY;
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
        cli->behind = *i + 1 < argc ? argv[*i + 1] : NULL;
        cli->behind_flag = option->name;
        return MAQ_OK;
    }
    const char *value = take_value(a, argc, argv, i);
    if (!value)
        return missing_value(cli, a, option->value, option->words);
    if (option->words && !is_word(option->words, value))
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, word_list(hint, option->words), "%s does not take '%.*s'",
                         option->name, SHOWN, value);
    if (option->kind == CLI_JOB && strcmp(option->name, "--cluster") == 0)
        cli->torn = *i + 1 < argc ? argv[*i + 1] : NULL;
    if (option->kind == CLI_PRICE)
        return read_price(cli, option, value);
    if (option->kind == CLI_JOB)
        return cli_add_override(cli, option->name, option->path, value);
    if (option->kind == CLI_SET)
        return cli_job_set(cli, value);
    if (option->kind == CLI_SPACE)
        return cli_job_list(cli, option, value);
    if ((option->kind == CLI_LIST || option->kind == CLI_AXES) && cli->values[number]) {
        value = cli_printf(cli, "%s,%s", cli->values[number], value);
        if (!value)
            return MAQ_NO_MEMORY;
    }
    cli->values[number] = value;
    return MAQ_OK;
}

/* What the shell cut off a cluster that has no quotes around it. */
static bool of_a_cluster(const char *text)
{
    static const char *const words[] = {"x", "X", "+", "*", "rail", "nics", "domain", "leaf", NULL};
    return is_word(words, text) || (*text && text[strspn(text, "0123456789")] == '\0');
}

/* `next` is the word behind it; NULL: it is the last. */
static enum maq_status read_argument(struct cli *cli, const char *text, const char *next)
{
    char hint[128];
    if (text == cli->torn && of_a_cluster(text)) {
        bool first = !cli->torn_told;
        cli->torn = next;
        cli->torn_told = true;
        if (!first)
            return MAQ_OK;
        return cli_usage(cli, MAQ_CODE_CLI_ARGUMENT, "put the cluster in quotes: --cluster 'h100-sxm:8 x 4, rail 400G'",
                         "'%.*s' stands apart from the cluster", SHOWN, text);
    }
    if (cli->n_args < cli->command->max_args) {
        cli->args[cli->n_args++] = text;
        return MAQ_OK;
    }
    (void)snprintf(hint, sizeof hint, "usage: maquette %s %s", cli->command->name, cli->command->args);
    return cli_usage(cli, MAQ_CODE_CLI_ARGUMENT, hint, "one argument too many: '%.*s'", SHOWN, text);
}

const struct cli_common_option cli_common_options[CLI_COMMON_COUNT] = {
    [CLI_QUIET] = {"--quiet", "no warnings, no notes, no word of how far it is"},
    [CLI_VERBOSE] = {"--verbose", "how far it is, from its beginning on, also where standard error is no terminal"},
    [CLI_STATS] = {"--stats", "at the end, on standard error: the time that it took, that of processors, memory"},
};

bool cli_takes_common(const struct cli_command *command, enum cli_common option)
{
    const struct argument a = split(cli_common_options[option].name);
    return !find_option(command, &a);
}

/* --quiet and the like; false: it is none of them. */
static bool read_common(struct cli *cli, const struct argument *a, enum maq_status *status)
{
    for (int o = 0; o < CLI_COMMON_COUNT; o++) {
        const char *name = cli_common_options[o].name;
        if (a->name_len != strlen(name) || strncmp(a->text, name, a->name_len) != 0)
            continue;
        cli->common[o] = true;
        *status = a->value ? cli_usage(cli, MAQ_CODE_CLI_VALUE, NULL, "%s takes no value", name) : MAQ_OK;
        return true;
    }
    return false;
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
    enum maq_status status;
    if (read_common(cli, a, &status))
        return status;
    return unknown_option(cli, a, argc, argv, i);
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
            status = read_argument(cli, argv[i], i + 1 < argc ? argv[i + 1] : NULL);
        else if (strcmp(a.text, "--") == 0) {
            only_arguments = true;
            cli->n_before = cli->n_args;
            const char *const *words = (const char *const *)argv + i + 1;
            size_t n_words = (size_t)(argc - i - 1);
            if (command->megatron || command->engine) {
                status = command->engine ? cli_job_engine(cli, words, n_words) : cli_job_megatron(cli, words, n_words);
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
    if (digits == 0 || text[digits] != '\0' || n < least || n > most) {
        const struct cli_option *o = &cli->command->options[option];
        char hint[256];
        (void)snprintf(hint, sizeof hint, "%s %s: %.200s", o->name, o->value ? o->value : "N", o->doc);
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, hint, "%s takes a number from %u to %u, not '%.80s'", o->name, least,
                         most, text);
    }
    *out = (uint32_t)n;
    return MAQ_OK;
}
