/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_explain.c - `maquette explain [CODE]`: what a diagnostic means and what to do, in the words of docs/diagnostics.md. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/codes.h"
#include "cli/texts.h"

/* "MAQ1203", "maq1203", "1203", "error[MAQ1203]:": its four digits; -1: there are none. */
static long number_of(const char *text)
{
    const char *digits = strpbrk(text, "0123456789");
    size_t n = digits ? strspn(digits, "0123456789") : 0;
    long number = 0;
    for (size_t i = 0; i < n && i < 5; i++)
        number = number * 10 + (digits[i] - '0');
    return n == 4 ? number : -1;
}

static void put_one(FILE *out, const struct cli_code *code)
{
    fprintf(out, "MAQ%04u  %s\n\narea        %s\nwhat to do  %s\n", code->code, code->what, code->area, code->remedy);
}

static void put_all(FILE *out)
{
    const char *area = "";
    for (const struct cli_code *c = cli_codes; c->code; c++) {
        if (strcmp(area, c->area) != 0)
            fprintf(out, "%s%s\n", area[0] ? "\n" : "", c->area);
        area = c->area;
        fprintf(out, "  MAQ%04u  %s\n", c->code, c->what);
    }
}

static enum maq_status run(struct cli *cli)
{
    const struct cli_code *code = NULL, *near = NULL;
    long number = cli->n_args > 0 ? number_of(cli->args[0]) : 0;
    char *text = NULL;
    size_t len = 0;
    for (const struct cli_code *c = cli_codes; cli->n_args > 0 && c->code; c++) {
        code = c->code == number ? c : code;
        near = c->code / 100 == number / 100 && !near ? c : near;
    }
    if (cli->n_args > 0 && !code)
        return cli_usage(
            cli, MAQ_CODE_CLI_ARGUMENT,
            near ? cli_printf(cli, "those of %s begin with MAQ%04u; maquette explain lists all", near->area, near->code)
                 : "maquette explain lists all; MAQ1300, or 1300",
            "no diagnostic has the code '%.80s'", cli->args[0]);
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return cli_no_memory(cli);
    if (code)
        put_one(out, code);
    else
        put_all(out);
    if (fclose(out) != 0 || !text) {
        free(text);
        return cli_no_memory(cli);
    }
    return cli_write(cli, text, NULL);
}

const struct cli_command cli_explain = {
    .name = "explain",
    .args = "[CODE]",
    .summary = "say what the code of a diagnostic means, and what to do",
    .about = "Every error, warning and note has a code, which keeps its meaning. Says what the code is of and what to "
             "do about it; without a "
             "code, lists them.\n",
    .examples = "  maquette explain MAQ1300\n",
    .max_args = 1,
    .run = run,
};
