/* SPDX-License-Identifier: Apache-2.0 */
/* option_values.c - reads off an option's row what it takes: its words, the list that its help names, a file. */
#include "cli/option_values.h"

#include <stdio.h>
#include <string.h>

/* "name (maquette show models, ...)": the kind of name that the help speaks of. */
static int names_of(const char *value, const char *doc)
{
    static const char show[] = "maquette show ";
    const char *at = strstr(doc, show);
    if (value && strcmp(value, "CLUSTER") == 0)
        return MAQ_CATALOGUE_GPUS;
    for (int k = 0; at && k < MAQ_CATALOGUE_KIND_COUNT; k++) {
        const char *name = maq_catalogue_kind_name((enum maq_catalogue_kind)k);
        if (strncmp(at + sizeof show - 1, name, strlen(name)) == 0)
            return k;
    }
    return value && strcmp(value, "MODEL") == 0 ? MAQ_CATALOGUE_MODELS : -1;
}

static bool takes_files(const char *value)
{
    static const char *const words[] = {"FILE", "DIR", "FOLDER", ".json", "PROGRAM"};
    for (size_t i = 0; value && i < CLI_COUNT(words); i++)
        if (strstr(value, words[i]))
            return true;
    return false;
}

static void set_name(char out[96], const char *dashes, const char *name, size_t len)
{
    (void)snprintf(out, 96, "%s%.*s", dashes, (int)(len < 90 ? len : 90), name);
    for (char *c = out; *c; c++)
        *c = *c == '_' ? '-' : *c;
}

/* Name number i of a key of the job: its aliases, then the key; false: it has fewer. */
static bool job_name(char out[96], const struct maq_option *option, size_t *i)
{
    for (const char *at = option->aliases; *at;) {
        size_t n = strcspn(at, "|");
        if ((*i)-- == 0) {
            set_name(out, "--", at, n);
            return true;
        }
        at += n + (at[n] == '|');
    }
    if ((*i)-- > 0)
        return false;
    set_name(out, "--", option->key, strlen(option->key));
    return true;
}

bool cli_shown_option(struct cli_shown_option *out, const struct cli_command *command, size_t i)
{
    for (size_t k = 0; k < command->n_options; k++) {
        const struct cli_option *o = &command->options[k];
        if (!cli_takes(command, k) || i-- > 0)
            continue;
        *out = (struct cli_shown_option){.value = o->kind == CLI_FLAG ? NULL : o->value,
                                         .doc = o->doc,
                                         .words = o->words,
                                         .names = o->words ? -1 : names_of(o->value, o->doc),
                                         .files = !o->words && takes_files(o->value)};
        set_name(out->name, "", o->name, strlen(o->name));
        return true;
    }
    struct cli_job_option job;
    for (size_t k = 0; command->job && cli_job_option(k, &job); k++) {
        *out = (struct cli_shown_option){
            .value = job.words ? "WORD" : "VALUE", .doc = job.option.doc, .words = job.words, .names = -1};
        if (job_name(out->name, &job.option, &i))
            return true;
    }
    return false;
}

void cli_short_doc(char *out, size_t size, const char *doc)
{
    size_t n = strlen(doc);
    static const char *const ends[] = {": ", "; ", " (", ", for example"};
    for (size_t e = 0; e < CLI_COUNT(ends); e++) {
        const char *at = strstr(doc, ends[e]);
        if (at && at > doc + 7 && (size_t)(at - doc) < n)
            n = (size_t)(at - doc);
    }
    if (n > size - 1) {
        for (n = size - 1; n > 0 && doc[n] != ' '; n--)
            ;
    }
    (void)snprintf(out, size, "%.*s", (int)n, doc);
}
