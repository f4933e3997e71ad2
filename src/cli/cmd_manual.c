/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_manual.c - `maquette manual [COMMAND]`: pages for man(1), from the tables that parse and that print --help. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/codes.h"

static const char exits[] =
    "0 done; 1 the answer is no; 2 usage; 3 bad input; 4 input or output failed; 5 a limit; 70 a bug.";

/* Text of `n` bytes, not to be read as requests or escapes; `_` as a dash in names of options. */
static void put(FILE *out, const char *text, size_t n, bool option)
{
    for (size_t i = 0; i < n; i++) {
        bool first = i == 0 || text[i - 1] == '\n';
        if (first && (text[i] == '.' || text[i] == '\''))
            fputs("\\&", out);
        if (text[i] == '\\')
            fputs("\\e", out);
        else if (text[i] == '-' || (option && text[i] == '_'))
            fputs("\\-", out);
        else if (text[i] == '\'')
            fputs("\\(aq", out);
        else if (text[i] == '`')
            fputs("\\(ga", out);
        else if (text[i] == '"')
            fputs("\\(dq", out);
        else
            fputc(text[i], out);
    }
}

static void put_text(FILE *out, const char *text)
{
    put(out, text, strlen(text), false);
}

/* Paragraphs; "  word   what it is" is a list. */
static void put_about(FILE *out, const char *text)
{
    for (bool first = true; *text; first = false) {
        size_t n = strcspn(text, "\n"), indent = strspn(text, " ");
        const char *gap = indent > 0 ? strstr(text + indent, "  ") : NULL;
        if (gap && gap < text + n) {
            size_t word = (size_t)(gap - text) - indent, at = (size_t)(gap - text) + strspn(gap, " ");
            fputs(".TP\n", out);
            put(out, text + indent, word, false);
            fputs("\n", out);
            put(out, text + at, n - at, false);
        } else {
            fputs(first ? "" : ".PP\n", out);
            put(out, text, n, false);
        }
        fputs("\n", out);
        text += n + (text[n] == '\n');
    }
}

static void put_option(FILE *out, const char *name, const char *value, const char *doc)
{
    fputs(".TP\n\\fB", out);
    put(out, name, strlen(name), true);
    fputs("\\fR", out);
    if (value) {
        fputs(" \\fI", out);
        put_text(out, value);
        fputs("\\fR", out);
    }
    fputs("\n", out);
    put_text(out, doc);
    fputs("\n", out);
}

/* "--tp, --tensor-model-parallel-size", its words, its default. */
static void put_key(FILE *out, const struct cli_job_option *o)
{
    fputs(".TP\n", out);
    for (const char *at = o->option.aliases; *at;) {
        size_t n = strcspn(at, "|");
        fputs("\\fB\\-\\-", out);
        put(out, at, n, true);
        fputs("\\fR, ", out);
        at += n + (at[n] == '|');
    }
    fputs("\\fB\\-\\-", out);
    put(out, o->option.key, strlen(o->option.key), true);
    fputs("\\fR\n", out);
    put_text(out, o->option.doc);
    for (size_t i = 0; o->words && o->words[i]; i++) {
        fputs(i == 0 ? " [" : "|\\:", out); /* a line may end there */
        put_text(out, o->words[i]);
    }
    fputs(o->words ? "]" : "", out);
    if (o->option.def[0]) {
        fputs(" (", out);
        put_text(out, o->option.def);
        fputs(")", out);
    }
    fputs("\n", out);
}

static void put_keys(FILE *out)
{
    struct cli_job_option job;
    const char *section = "";
    for (size_t i = 0; cli_job_option(i, &job); i++) {
        if (strcmp(section, job.section) != 0)
            fprintf(out,
                    ".SH \"KEYS OF THE %s\"\nOf the section \\(ga%s:\\(ga of a job, and options; defaults in "
                    "parentheses.\n",
                    strcmp(job.section, "plan") == 0 ? "PLAN" : "WORKLOAD", job.section);
        section = job.section;
        put_key(out, &job);
    }
}

/* "maquette-serve-plan" */
static const char *page_name(char buf[64], const char *command)
{
    (void)snprintf(buf, 64, "maquette-%s", command);
    for (char *c = buf; *c; c++)
        *c = *c == ' ' ? '-' : *c;
    return buf;
}

static void put_head(FILE *out, const char *page, const char *summary)
{
    fputs(".TH \"", out);
    for (const char *c = page; *c; c++)
        fputc(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c, out);
    fprintf(out, "\" 1 \"\" \"maquette %s\" \"maquette\"\n.SH NAME\n", maq_version());
    put_text(out, page);
    fputs(" \\- ", out);
    put_text(out, summary);
    fputs("\n", out);
}

static void put_tail(FILE *out, const struct cli_command *not_this)
{
    char buf[64];
    const char *before = "";
    fprintf(out, ".SH \"EXIT STATUS\"\n%s\n.SH \"SEE ALSO\"\n", exits);
    if (not_this) {
        fputs(".BR maquette (1)", out);
        before = ",\n";
    }
    for (size_t i = 0; cli_commands[i]; i++)
        if (cli_commands[i] != not_this) {
            fprintf(out, "%s.BR ", before);
            put_text(out, page_name(buf, cli_commands[i]->name));
            fputs(" (1)", out);
            before = ",\n";
        }
    fputs("\n", out);
}

static void put_examples(FILE *out, const char *examples)
{
    fputs(".SH EXAMPLES\n.nf\n", out);
    put_text(out, examples);
    fputs(".fi\n", out);
}

static void write_command(FILE *out, const struct cli_command *command)
{
    char buf[64];
    put_head(out, page_name(buf, command->name), command->summary);
    fputs(".SH SYNOPSIS\n\\fBmaquette ", out);
    put_text(out, command->name);
    fputs("\\fR ", out);
    put_text(out, command->args);
    fputs("\n.SH DESCRIPTION\n", out);
    put_about(out, command->about);
    fputs(".SH OPTIONS\n", out);
    for (size_t i = 0; i < command->n_options; i++)
        if (cli_takes(command, i))
            put_option(out, command->options[i].name, command->options[i].value, command->options[i].doc);
    put_option(out, "--help", NULL, "how to use the command");
    put_option(out, "--help-all", NULL, "all of its options");
    for (int i = 0; i < CLI_COMMON_COUNT; i++)
        if (cli_takes_common(command, (enum cli_common)i))
            put_option(out, cli_common_options[i].name, NULL, cli_common_options[i].doc);
    if (command->job && command->job_in_help)
        put_keys(out);
    else if (command->job)
        fputs(".PP\nEvery key of \\(gaplan:\\(ga and \\(gaworkload:\\(ga of a job is an option too: see\n.BR "
              "maquette\\-train (1).\n",
              out);
    if (command->examples)
        put_examples(out, command->examples);
    put_tail(out, command);
}

static void write_program(FILE *out)
{
    char buf[64];
    put_head(out, "maquette", "a scale model of LLM clusters");
    fputs(".SH SYNOPSIS\n\\fBmaquette\\fR \\fICOMMAND\\fR [\\fIARGUMENT\\fR...] [\\fIOPTION\\fR...]\n.SH DESCRIPTION\n",
          out);
    put_text(out, "Answers, on a laptop and in milliseconds, what a cluster would do with a training job or a serving "
                  "deployment of a large "
                  "language model: how long a step takes, how much memory each GPU needs and where the time goes, "
                  "which plan is best, how sure "
                  "that is, and when the run will be done.\n");
    fputs(".SH COMMANDS\n", out);
    for (size_t i = 0; cli_commands[i]; i++) {
        fputs(".TP\n.BR ", out);
        put_text(out, page_name(buf, cli_commands[i]->name));
        fputs(" (1)\n", out);
        put_text(out, cli_commands[i]->summary);
        fputs("\n", out);
    }
    fputs(".SH OPTIONS\n", out);
    put_option(out, "--help", NULL, "the commands; maquette COMMAND --help shows how to use one, --help-all all of it");
    put_option(out, "--version", NULL, "version, commit and compiler");
    put_examples(out, "  maquette train --model llama-3.1-8b --cluster h100-sxm:8 --seq 8192 --gbs 64\n");
    put_tail(out, NULL);
}

static enum maq_status run(struct cli *cli)
{
    char *text = NULL, *words[2] = {NULL, NULL};
    size_t len = 0;
    int n = 0;
    const struct cli_command *command = NULL;
    for (size_t i = 0; i < cli->n_args; i++)
        words[i] = cli_printf(cli, "%s", cli->args[i]);
    if (cli->n_args > 0 && (!words[0] || (cli->n_args > 1 && !words[1])))
        return MAQ_NO_MEMORY;
    if (cli->n_args > 0 && (!(command = cli_find_command(&n, (int)cli->n_args, words)) || n != (int)cli->n_args))
        return cli_unknown_command(cli, words[0]);
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return cli_no_memory(cli);
    if (command)
        write_command(out, command);
    else
        write_program(out);
    if (fclose(out) != 0 || !text) {
        free(text);
        return cli_no_memory(cli);
    }
    return cli_write(cli, text, NULL);
}

const struct cli_command cli_manual = {
    .name = "manual",
    .args = "[COMMAND]",
    .summary = "print the manual page of a command, for man",
    .about = "Prints the page of the program or of one of its commands in the form that man reads. `meson install` "
             "installs them: man "
             "maquette, man maquette-train.\n",
    .examples = "  maquette manual train | man -l -\n",
    .max_args = 2,
    .run = run,
};
