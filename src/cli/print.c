/* SPDX-License-Identifier: Apache-2.0 */
/* print.c - formatted text and diagnostics of commands, and the refusal of a command line. See cli.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/codes.h"

enum maq_status cli_no_memory(struct cli *cli)
{
    return maq_diag_fail(MAQ_NO_MEMORY, cli->diag, MAQ_CODE_CLI_NO_MEMORY, (struct maq_span){0}, NULL, "out of memory");
}

char *cli_printf(struct cli *cli, const char *fmt, ...)
{
    char *text = NULL;
    va_list args;
    if (cli->n_owned == cli->owned_size) {
        size_t size = cli->owned_size ? cli->owned_size * 2 : 64;
        char **grown = realloc(cli->owned, size * sizeof *grown);
        if (!grown) {
            (void)cli_no_memory(cli);
            return NULL;
        }
        cli->owned = grown;
        cli->owned_size = size;
    }
    va_start(args, fmt);
    int n = vasprintf(&text, fmt, args);
    va_end(args);
    if (n < 0) {
        (void)cli_no_memory(cli);
        return NULL;
    }
    cli->owned[cli->n_owned++] = text;
    return text;
}

/* Where the job gave the option whose name the text begins with; nowhere when the line did, or there is no such option. */
static struct maq_span given_at(const struct cli *cli, const char *text)
{
    const size_t len = strcspn(text, " :=");
    for (size_t i = 0; cli->command && i < cli->command->n_options; i++) {
        const char *name = cli->command->options[i].name;
        if (strlen(name) == len && memcmp(name, text, len) == 0)
            return cli->given_at[i];
    }
    return (struct maq_span){0};
}

enum maq_status cli_usage(struct cli *cli, uint16_t code, const char *hint, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    const struct maq_span at = given_at(cli, text);
    return maq_diag_fail(at.len > 0 ? MAQ_BAD_INPUT : MAQ_USAGE, cli->diag, code, at, hint, "%s", text);
}
