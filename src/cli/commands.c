/* SPDX-License-Identifier: Apache-2.0 */
/* commands.c - the list of commands, and which one is meant. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/codes.h"

const struct cli_command *const cli_commands[] = {
    &cli_train,   &cli_serve, &cli_serve_plan, &cli_plan,    &cli_islands,    &cli_show,   &cli_validate,
    &cli_profile, &cli_risk,  &cli_run,        &cli_capture, &cli_graph,      &cli_replay, &cli_emulate,
    &cli_diff,    &cli_ui,    &cli_explain,    &cli_schema,  &cli_completion, &cli_manual, NULL,
};

const struct cli_command *cli_find_command(int *words, int argc, char **argv)
{
    const struct cli_command *found = NULL;
    for (size_t i = 0; cli_commands[i]; i++) {
        const char *name = cli_commands[i]->name, *space = strchr(name, ' ');
        size_t first = space ? (size_t)(space - name) : strlen(name);
        bool two = space && argc > 1 && strcmp(space + 1, argv[1]) == 0;
        if (strlen(argv[0]) != first || strncmp(name, argv[0], first) != 0 || (space && !two))
            continue;
        if (!found || two) {
            found = cli_commands[i];
            *words = two ? 2 : 1;
        }
    }
    return found;
}

enum maq_status cli_unknown_command(struct cli *cli, const char *name)
{
    struct cli_nearest near;
    char hint[96];
    cli_nearest_init(&near, name, strlen(name));
    for (size_t i = 0; cli_commands[i]; i++)
        cli_nearest_try(&near, cli_commands[i]->name, strlen(cli_commands[i]->name));
    const char *meant = cli_command_synonym(name);
    for (size_t i = 0; !meant && cli_commands[i] && strlen(name) >= 2; i++)
        meant = strncmp(cli_commands[i]->name, name, strlen(name)) == 0 ? cli_commands[i]->name : NULL;
    if (meant)
        (void)snprintf(hint, sizeof hint, "did you mean '%s'?", meant);
    else if (near.best)
        (void)snprintf(hint, sizeof hint, "did you mean '%s'?", near.best);
    else
        (void)snprintf(hint, sizeof hint, "maquette --help lists the commands");
    return cli_usage(cli, MAQ_CODE_CLI_COMMAND, hint, "unknown command '%.80s'", name);
}
