/* SPDX-License-Identifier: Apache-2.0 */
/*
 * help.c - --help and --help-all, from the tables that parse.
 *
 * --help fits a screen: examples first, then the options that are asked for most, where all of them would be too many. --help-all is the
 * whole: what the command does at length, every option, every key of a job.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

#define INDENT 30 /* where the descriptions begin */
#define SCREEN 40 /* lines of --help, at most */

/* Text that grows; the first failure is kept. */
struct help {
    char *text;
    size_t len;
    FILE *stream;
};

static void put(struct help *h, const char *fmt, ...) MAQ_PRINTF(2, 3);
static void put(struct help *h, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)vfprintf(h->stream, fmt, args);
    va_end(args);
}

/* Words of n bytes from column `indent` on, where the first line stands already. */
static void put_words(struct help *h, const char *text, size_t len, size_t indent, size_t columns)
{
    size_t room = columns > indent + 20 ? columns - indent : 20;
    for (bool first = true; len > 0; first = false) {
        size_t n = len;
        if (n > room) {
            n = room;
            while (n > 0 && text[n] != ' ')
                n--;
            n = n > 0 ? n : room;
        }
        put(h, "%s%*s%.*s", first ? "" : "\n", first ? 0 : (int)indent, "", (int)n, text);
        for (text += n, len -= n; len > 0 && *text == ' '; len--)
            text++;
    }
    put(h, "\n");
}

/* Behind an option, `used` columns being taken in the first line. */
static void put_description(struct help *h, size_t used, const char *text, size_t columns)
{
    if (used + 2 > INDENT) {
        put(h, "\n");
        used = 0;
    }
    put(h, "%*s", (int)(INDENT - used), "");
    put_words(h, text, strlen(text), INDENT, columns);
}

/* Paragraphs; of a list, "  word   what it is", each entry under its second column. */
static void put_about(struct help *h, const char *text, size_t columns)
{
    while (*text) {
        size_t n = strcspn(text, "\n"), indent = strspn(text, " ");
        if (indent > 0) {
            const char *gap = strstr(text + indent, "  ");
            indent = gap ? (size_t)(gap - text) : indent;
            indent += strspn(text + indent, " ");
        }
        put(h, "%.*s", (int)indent, text);
        put_words(h, text + indent, n - indent, indent, columns);
        text += n + (text[n] == '\n');
    }
}

static void put_option(struct help *h, const struct cli_option *o, size_t columns)
{
    char left[64];
    int n = snprintf(left, sizeof left, "  %s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
    put(h, "%s", left);
    put_description(h, n > 0 ? (size_t)n : 0, o->doc, columns);
}

/* "--tp, --tensor-model-parallel-size" with its words and default; `brief`: its first name alone. */
static void put_job_option(struct help *h, const struct cli_job_option *o, size_t columns, bool brief)
{
    char left[160], text[512];
    size_t at = (size_t)snprintf(left, sizeof left, "  ");
    bool named = false;
    for (const char *a = o->option.aliases; *a && at < 100 && !(brief && named); named = true) {
        size_t n = strcspn(a, "|");
        at += (size_t)snprintf(left + at, sizeof left - at, "--%.*s%s", (int)n, a, brief ? "" : ", ");
        a += n + (a[n] == '|');
    }
    if (!brief || !named)
        at += (size_t)snprintf(left + at, sizeof left - at, "--%s", o->option.key);
    for (char *c = left; *c; c++)
        *c = *c == '_' ? '-' : *c;
    size_t used = (size_t)snprintf(text, sizeof text, "%s", o->option.doc);
    if (o->words && used < 300) {
        used += (size_t)snprintf(text + used, sizeof text - used, " [");
        for (size_t i = 0; o->words[i] && used < 460; i++)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i > 0 ? "|" : "", o->words[i]);
        used += (size_t)snprintf(text + used, sizeof text - used, "]");
    }
    if (o->option.def[0] && used < sizeof text)
        (void)snprintf(text + used, sizeof text - used, " (%s)", o->option.def);
    put(h, "%s", left);
    put_description(h, at, text, columns);
}

static enum maq_status begin(struct help *h, struct cli *cli)
{
    *h = (struct help){0};
    h->stream = open_memstream(&h->text, &h->len);
    return h->stream ? MAQ_OK : cli_no_memory(cli);
}

static enum maq_status end(struct help *h, struct cli *cli)
{
    if (fclose(h->stream) != 0 || !h->text) {
        free(h->text);
        return cli_no_memory(cli);
    }
    return cli_write(cli, h->text, NULL);
}

enum maq_status cli_help(struct cli *cli)
{
    struct help h;
    enum maq_status status = begin(&h, cli);
    if (status != MAQ_OK)
        return status;
    put(&h, "maquette: a scale model of LLM clusters\n\nusage: maquette COMMAND [ARGUMENT...] [OPTION...]\n\nexample:\n"
            "  maquette train --model llama-3.1-8b --cluster h100-sxm:8 --seq 8192 --gbs 64\n\ncommands:\n");
    for (size_t i = 0; cli_commands[i]; i++)
        put(&h, "  %-10s %s\n", cli_commands[i]->name, cli_commands[i]->summary);
    put(&h,
        "\noptions:\n  --help     this text; maquette COMMAND --help shows how to use a command, --help-all all of it\n"
        "  --version  version, commit and compiler\n\nof every command:\n");
    for (int i = 0; i < CLI_COMMON_COUNT; i++)
        put(&h, "  %-9s  %s\n", cli_common_options[i].name, cli_common_options[i].doc);
    put(&h, "\n"
            "exit status: 0 done; 1 the answer is no; 2 usage; 3 bad input; 4 input or output failed; 5 a limit; 70 a "
            "bug\n");
    return end(&h, cli);
}

static void put_job_options(struct help *h, size_t columns)
{
    struct cli_job_option job;
    const char *section = "";
    for (size_t i = 0; cli_job_option(i, &job); i++) {
        if (strcmp(section, job.section) != 0)
            put(h, "\n%s (a key of `%s:` in a job file; default in parentheses):\n", job.section, job.section);
        section = job.section;
        put_job_option(h, &job, columns, false);
    }
}

/* The first name of each, "--tp, --pp, ...". */
static enum maq_status put_job_names(struct help *h, struct cli *cli)
{
    struct help names;
    struct cli_job_option job;
    enum maq_status status = begin(&names, cli);
    if (status != MAQ_OK)
        return status;
    for (size_t i = 0; cli_job_option(i, &job); i++) {
        const char *name = job.option.aliases[0] ? job.option.aliases : job.option.key;
        put(&names, "%s--", i > 0 ? ", " : "");
        for (; *name && *name != '|'; name++)
            put(&names, "%c", *name == '_' ? '-' : *name);
    }
    bool whole = fclose(names.stream) == 0 && names.text;
    if (whole) {
        put(h, "\nof the job (keys of `plan:` and `workload:` in a job file; maquette train --help-all describes "
               "them):\n  ");
        put_words(h, names.text, strlen(names.text), 2, cli->columns);
    }
    free(names.text);
    return whole ? MAQ_OK : cli_no_memory(cli);
}

static void put_head(struct help *h, const struct cli_command *command, const char *about, size_t columns)
{
    put(h, "usage: maquette %s %s\n\n", command->name, command->args);
    put_about(h, about, columns);
    if (command->examples)
        put(h, "\nexamples:\n%s", command->examples);
}

static void put_common(struct help *h, const struct cli_command *command)
{
    const char *between = "\nof every command (maquette --help): ";
    for (int i = 0; i < CLI_COMMON_COUNT; i++) {
        if (!cli_takes_common(command, (enum cli_common)i))
            continue;
        put(h, "%s%s", between, cli_common_options[i].name);
        between = ", ";
    }
    put(h, "\n");
}

static enum maq_status put_whole(struct help *h, struct cli *cli, const struct cli_command *command)
{
    enum maq_status status = MAQ_OK;
    size_t shown = 0;
    put_head(h, command, command->about, cli->columns);
    for (size_t i = 0; i < command->n_options; i++)
        if (cli_takes(command, i)) {
            put(h, "%s", shown++ == 0 ? "\noptions:\n" : "");
            put_option(h, &command->options[i], cli->columns);
        }
    if (command->job && command->job_in_help)
        put_job_options(h, cli->columns);
    else if (command->job)
        status = put_job_names(h, cli);
    put_common(h, command);
    return status;
}

/* The option or key of that name. */
static void put_often(struct help *h, const struct cli_command *command, const char *name, size_t columns)
{
    struct cli_job_option job;
    for (size_t i = 0; i < command->n_options; i++)
        if (cli_takes(command, i) && strcmp(command->options[i].name, name) == 0) {
            put_option(h, &command->options[i], columns);
            return;
        }
    for (size_t i = 0; command->job && cli_job_option(i, &job); i++)
        if (cli_job_option_is(&job, name, strlen(name))) {
            put_job_option(h, &job, columns, true);
            return;
        }
}

static void put_brief(struct help *h, struct cli *cli, const struct cli_command *command)
{
    put_head(h, command, command->brief ? command->brief : command->about, cli->columns);
    put(h, "\noptions that are asked for most:\n");
    for (size_t i = 0; command->often && command->often[i]; i++)
        put_often(h, command, command->often[i], cli->columns);
    put(h, "\nmaquette %s --help-all has all options, and what the command does in full.\n", command->name);
}

static size_t lines_of(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

enum maq_status cli_help_command(struct cli *cli, const struct cli_command *command, bool all)
{
    struct help h;
    enum maq_status status = begin(&h, cli);
    if (status != MAQ_OK)
        return status;
    status = put_whole(&h, cli, command);
    if (!all && status == MAQ_OK && command->often && fflush(h.stream) == 0 && h.text && lines_of(h.text) > SCREEN) {
        if (fclose(h.stream) != 0) {
            free(h.text);
            return cli_no_memory(cli);
        }
        free(h.text);
        status = begin(&h, cli);
        if (status != MAQ_OK)
            return status;
        put_brief(&h, cli, command);
    }
    enum maq_status ended = end(&h, cli);
    return status != MAQ_OK ? status : ended;
}
