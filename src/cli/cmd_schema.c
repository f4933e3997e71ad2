/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_schema.c - `maquette schema [COMMAND]`: the JSON Schema of a command's document. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "cli/cli.h"
#include "cli/codes.h"
#include "cli/texts.h"

/* The schema of that name; where several begin with it and a dot, the last: "risk" is "risk.step", what `maquette risk` prints of a job. */
static const struct cli_schema *find(const char *name)
{
    size_t n = strlen(name);
    const struct cli_schema *found = NULL;
    for (const struct cli_schema *s = cli_schemas; s->name; s++)
        if (strcmp(s->name, name) == 0)
            return s;
    for (const struct cli_schema *s = cli_schemas; s->name; s++)
        if (strncmp(s->name, name, n) == 0 && s->name[n] == '.')
            found = s;
    return found;
}

/* "error, plan, risk.run, ..." */
static const char *names(struct cli *cli)
{
    const char *all = cli_schemas[0].name;
    for (const struct cli_schema *s = cli_schemas + 1; all && s->name; s++)
        all = cli_printf(cli, "%s, %s", all, s->name);
    return all ? all : "";
}

/* As it is in docs/schemas. To be freed; NULL: out of memory. */
static char *text_of(const struct cli_schema *schema)
{
    char *text = malloc(schema->len + 1);
    uLongf n = schema->len;
    if (!text || uncompress((Bytef *)text, &n, schema->deflated, schema->n_deflated) != Z_OK) {
        free(text);
        return NULL;
    }
    text[n] = 0;
    return text;
}

static enum maq_status run(struct cli *cli)
{
    if (cli->n_args == 0)
        return cli_usage(cli, MAQ_CODE_CLI_ARGUMENT, cli_printf(cli, "one of: %s", names(cli)), "there is no document");
    const char *name = cli->n_args > 1 ? cli_printf(cli, "%s.%s", cli->args[0], cli->args[1]) : cli->args[0];
    const struct cli_schema *schema = name ? find(name) : NULL;
    if (!schema)
        return cli_usage(cli, MAQ_CODE_CLI_ARGUMENT, cli_printf(cli, "one of: %s", names(cli)), "no schema of '%.80s'",
                         name ? name : "");
    char *text = text_of(schema);
    return text ? cli_write(cli, text, NULL) : cli_no_memory(cli);
}

const struct cli_command cli_schema = {
    .name = "schema",
    .args = "train|post_training|plan|serve|serve plan|risk step|risk run|diff|error",
    .summary = "print the JSON Schema of what a command prints with --json",
    .about = "Prints a JSON Schema (draft 2020-12) of a document: its members, their types, those that are always "
             "there. The title is what "
             "`schema` is in the document. Members may be added without a new number: a reader passes over those that "
             "it does not know. "
             "docs/json.md says what they mean.\n",
    .examples = "  maquette schema train\n"
                "  maquette schema risk run\n",
    .max_args = 2,
    .run = run,
};
