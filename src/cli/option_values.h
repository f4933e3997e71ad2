/* SPDX-License-Identifier: Apache-2.0 */
/* option_values.h - where the values of an option come from, for completions and manuals. */
#ifndef MAQ_CLI_OPTION_VALUES_H
#define MAQ_CLI_OPTION_VALUES_H

#include "cli/cli.h"

/* One option as a shell sees it: an option of a command, or a name of a key of its job. */
struct cli_shown_option {
    char name[96];     /* "--tensor-model-parallel-size" */
    const char *value; /* "FILE"; NULL = it takes none */
    const char *doc;
    const char *const *words; /* NULL = not words */
    int names;                /* enum maq_catalogue_kind that it takes the names of; -1 = none */
    bool files;               /* it takes a file or a folder */
};
/* Options of a command, all names of each, one after another from i = 0; false: there are no more. */
bool cli_shown_option(struct cli_shown_option *out, const struct cli_command *command, size_t i);

/* The first words of an option's help, for a list: up to `size` bytes with the NUL. */
void cli_short_doc(char *out, size_t size, const char *doc);

#endif
