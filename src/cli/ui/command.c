/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.c - what is asked: {"command": "train", "document": "model: ...", "options": {"tensor-model-parallel-size": "8", "explain": true}}
 * as the words of a command line.
 *
 * A document is a job file as `maquette train` reads it, options are those of the command line by their names. Nothing is interpreted here.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/ui/internal.h"

#define VALUE_MAX 4096 /* bytes of an option's value */

const char *const ui_commands[] = {"train", "plan", "serve", NULL};

bool ui_takes_long(const char *command)
{
    return strcmp(command, "train") != 0;
}

/* Words for a value that stand for a file, a folder or a program. */
static bool names_a_file(const char *value)
{
    static const char *const words[] = {"FILE", "DIR", "PROGRAM", ".json"};
    for (size_t i = 0; i < CLI_COUNT(words); i++)
        if (strstr(value, words[i]))
            return true;
    return false;
}

bool ui_may_be_given(const struct cli_call_option *option)
{
    return !names_a_file(option->value);
}

static bool same_name(const char *a, const char *b)
{
    for (; *a && *b; a++, b++)
        if (*a != *b && !((*a == '-' || *a == '_') && (*b == '-' || *b == '_')))
            return false;
    return *a == *b;
}

static bool find_option(struct cli_call_option *out, const char *command, const char *name)
{
    for (size_t i = 0; cli_call_option(out, command, i); i++)
        if (same_name(out->name, name))
            return ui_may_be_given(out);
    return false;
}

static const char *add_word(struct ui_command *q, char *word)
{
    if (!word || q->n_owned == CLI_COUNT(q->owned)) {
        free(word);
        return "too many options, or too little memory";
    }
    q->owned[q->n_owned++] = word;
    q->words[q->n_words++] = word;
    return NULL;
}

/* "--name" or "--name=value", with dashes as people write it. */
static const char *add_option(struct ui_command *q, const char *name, const char *value)
{
    size_t size = strlen(name) + (value ? strlen(value) : 0) + 4;
    char *word = malloc(size);
    if (word) {
        (void)snprintf(word, size, value ? "--%s=%s" : "--%s", name, value);
        for (char *c = word; *c && *c != '='; c++)
            *c = *c == '_' ? '-' : *c;
    }
    return add_word(q, word);
}

static const char *add_value(struct ui_command *q, const struct cli_call_option *option, const json_t *value)
{
    if (!json_is_string(value) || json_string_length(value) > VALUE_MAX)
        return "the value of an option is a text of at most 4,096 bytes";
    return json_string_length(value) > 0 ? add_option(q, option->name, json_string_value(value)) : NULL;
}

static const char *read_option(struct ui_command *q, const char *name, const json_t *value)
{
    struct cli_call_option option;
    const char *why = NULL;
    if (!find_option(&option, q->command, name))
        return "an option that the command does not have, or that cannot be given here";
    if (option.flag)
        return json_is_true(value)    ? add_option(q, option.name, NULL)
               : json_is_false(value) ? NULL
                                      : "a switch is true or false";
    if (!option.list)
        return add_value(q, &option, value);
    if (!json_is_array(value))
        return "the option may be given again: its value is a list of texts";
    for (size_t i = 0; i < json_array_size(value) && !why; i++)
        why = add_value(q, &option, json_array_get(value, i));
    return why;
}

static bool is_blank(const char *text)
{
    return text[strspn(text, " \t\r\n")] == '\0';
}

static const char *read_members(struct ui_command *q, json_t *root)
{
    const char *command = NULL, *document = NULL, *why = NULL;
    json_t *options = NULL;
    json_error_t error;
    if (json_unpack_ex(root, &error, JSON_STRICT, "{s:s, s?:s, s?:o}", "command", &command, "document", &document,
                       "options", &options) != 0)
        return "a question has `command`, `document` and `options`";
    for (size_t i = 0; ui_commands[i]; i++)
        if (strcmp(ui_commands[i], command) == 0)
            q->command = ui_commands[i];
    if (!q->command)
        return "the command is train, plan or serve";
    q->words[q->n_words++] = q->command;
    if (document && !is_blank(document)) {
        q->document = strdup(document);
        if (!q->document)
            return "out of memory";
        q->words[q->n_words++] = "-";
    }
    if (options && !json_is_object(options))
        return "`options` is a map";
    for (void *at = json_object_iter(options); at && !why; at = json_object_iter_next(options, at))
        why = read_option(q, json_object_iter_key(at), json_object_iter_value(at));
    return why;
}

bool ui_command_read(struct ui_command *q, struct maq_str body, char why[256])
{
    json_error_t error;
    *q = (struct ui_command){.command = NULL};
    json_t *root = json_loadb(body.ptr ? body.ptr : "", body.len, JSON_REJECT_DUPLICATES, &error);
    const char *fault = root ? read_members(q, root) : NULL;
    if (!root)
        (void)snprintf(why, 256, "not JSON: line %d, column %d", error.line, error.column);
    else if (fault)
        (void)snprintf(why, 256, "%s", fault);
    json_decref(root);
    if (root && !fault)
        return true;
    ui_command_free(q);
    return false;
}

void ui_command_free(struct ui_command *q)
{
    for (size_t i = 0; i < q->n_owned; i++)
        free(q->owned[i]);
    free(q->document);
    *q = (struct ui_command){.command = NULL};
}

/* ---- as a person would write it ---- */

/* A word for a shell: in quotes where it has to be. */
static void put_word(FILE *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,+@%";
    if (*word && word[strspn(word, plain)] == '\0') {
        fputs(word, out);
        return;
    }
    fputc('\'', out);
    for (; *word; word++)
        if (*word == '\'')
            fputs("'\\''", out);
        else
            fputc(*word, out);
    fputc('\'', out);
}

char *ui_command_line(const struct ui_command *q, const char *file)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return NULL;
    fputs("maquette", out);
    for (size_t i = 0; i < q->n_words; i++) {
        const char *word = strcmp(q->words[i], "-") == 0 ? file : q->words[i];
        const char *value = word[0] == '-' ? strchr(word, '=') : NULL;
        fputc(' ', out);
        if (value) {
            (void)fprintf(out, "%.*s ", (int)(value - word), word);
            word = value + 1;
        }
        put_word(out, word);
    }
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}
