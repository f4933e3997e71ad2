/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.c - what the page begins with: commands and their options as the command line has them, names of the catalogue, a job.
 *
 *   {"version": "0.1.0", "file": "job.yaml" or null, "documents": {"train": "...", "serve": "..."},
 *    "names": {"models": [...], "gpus": [...], ...},
 *    "commands": {"train": {"summary": "...", "often": ["model", ...], "options": [{"name": "...", "section": "plan", ...}, ...]}, ...}}
 */
#include <string.h>

#include "cli/cli.h"
#include "cli/ui/assets.h"
#include "cli/ui/internal.h"

static json_t *words_of(const char *const *words)
{
    json_t *list = json_array();
    for (size_t i = 0; words && words[i]; i++)
        json_array_append_new(list, json_string(words[i]));
    return list;
}

/* Section of the job whose key it is: "plan", "workload"; "" for an option of the command. */
static const char *section_of(const char *name)
{
    struct cli_job_option row;
    for (size_t i = 0; cli_job_option(i, &row); i++)
        if (strcmp(row.option.key, name) == 0)
            return row.section;
    return "";
}

static json_t *options_of(const char *command)
{
    struct cli_call_option o;
    json_t *list = json_array();
    for (size_t i = 0; cli_call_option(&o, command, i); i++) {
        if (!ui_may_be_given(&o))
            continue;
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:b, s:b}", "name", o.name,
                                              "aliases", o.aliases, "value", o.value, "otherwise", o.otherwise, "doc",
                                              o.doc, "section", section_of(o.name), "words", words_of(o.words), "flag",
                                              o.flag, "list", o.list));
    }
    return list;
}

/* The option whose name or alias --help shows as "--tp". */
static const char *name_behind(const char *command, const char *shown)
{
    struct cli_call_option o;
    struct cli_job_option row;
    for (size_t i = 0; cli_call_option(&o, command, i); i++)
        if (strcmp(o.name, shown + 2) == 0)
            return ui_may_be_given(&o) ? o.name : NULL;
    for (size_t i = 0; cli_job_option(i, &row); i++)
        if (cli_job_option_is(&row, shown, strlen(shown)))
            return row.option.key;
    return NULL;
}

static json_t *often_of(const struct cli_command *command)
{
    json_t *list = json_array();
    for (size_t i = 0; command->often && command->often[i]; i++) {
        const char *name = name_behind(command->name, command->often[i]);
        if (name)
            json_array_append_new(list, json_string(name));
    }
    return list;
}

static json_t *commands(void)
{
    json_t *map = json_object();
    for (size_t i = 0; ui_commands[i]; i++)
        for (size_t k = 0; cli_commands[k]; k++)
            if (strcmp(cli_commands[k]->name, ui_commands[i]) == 0)
                json_object_set_new(map, ui_commands[i],
                                    json_pack("{s:s, s:b, s:o, s:o}", "summary", cli_commands[k]->summary, "aside",
                                              ui_takes_long(ui_commands[i]), "often", often_of(cli_commands[k]),
                                              "options", options_of(ui_commands[i])));
    return map;
}

static json_t *names(void)
{
    static const enum maq_catalogue_kind kinds[] = {MAQ_CATALOGUE_MODELS, MAQ_CATALOGUE_GPUS, MAQ_CATALOGUE_FABRICS,
                                                    MAQ_CATALOGUE_FRAMEWORKS};
    json_t *map = json_object();
    for (size_t k = 0; k < CLI_COUNT(kinds); k++) {
        json_t *list = json_array();
        const char *name;
        for (size_t i = 0; (name = maq_catalogue_name(kinds[k], i)) != NULL; i++)
            json_array_append_new(list, json_string(name));
        json_object_set_new(map, maq_catalogue_kind_name(kinds[k]), list);
    }
    return map;
}

json_t *ui_session(const struct ui *ui)
{
    return json_pack("{s:s, s:s?, s:{s:s, s:s}, s:o, s:o}", "version", maq_version(), "file", ui->file, "documents",
                     "train", ui->document ? ui->document : ui_asset_train_job, "serve",
                     ui->document ? ui->document : ui_asset_serve_job, "names", names(), "commands", commands());
}
