/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_ui.c - `maquette ui [JOB.yaml]`: a page to edit a job and see the answer. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/codes.h"
#include "cli/ui/server.h"

#define JOB_MAX ((size_t)1 << 20) /* bytes of a job that is edited by hand */

enum { OPT_PORT, OPT_NO_BROWSER };

static const struct cli_option options[] = {
    [OPT_PORT] = {"--port", CLI_VALUE, "N", "listen there (a free port)", NULL, NULL},
    [OPT_NO_BROWSER] = {"--no-browser", CLI_FLAG, NULL, "only print the address", NULL, NULL},
};

static enum maq_status unreadable(struct cli *cli, const char *path, const char *why)
{
    return maq_diag_fail(
        MAQ_IO, cli->diag, MAQ_CODE_CLI_INPUT, (struct maq_span){0},
        "a job file is a text of at most 1 MiB, looked for in this folder; without one the page begins "
        "with an example",
        "cannot read %.200s: %s", path, why);
}

/* The text of a job, whatever it says: the page shows what is wrong with it. */
static enum maq_status read_job(char **out, struct cli *cli, const char *path)
{
    FILE *in = fopen(path, "rb");
    char *text = in ? malloc(JOB_MAX + 1) : NULL;
    if (!text) {
        int error = errno;
        if (in)
            (void)fclose(in);
        return in ? cli_no_memory(cli) : unreadable(cli, path, strerror(error));
    }
    errno = 0;
    size_t n = fread(text, 1, JOB_MAX + 1, in);
    const char *why = ferror(in)              ? strerror(errno)
                      : n > JOB_MAX           ? "it is longer than 1 MiB"
                      : memchr(text, '\0', n) ? "it is no text"
                                              : NULL;
    (void)fclose(in);
    if (why) {
        free(text);
        return unreadable(cli, path, why);
    }
    text[n] = '\0';
    *out = text;
    return MAQ_OK;
}

static enum maq_status run(struct cli *cli)
{
    const char *file = cli->n_args > 0 ? cli->args[0] : NULL;
    char *document = NULL;
    uint32_t port;
    enum maq_status status = cli_count(cli, &port, OPT_PORT, 1, 65535, 0);
    if (status == MAQ_OK && file)
        status = read_job(&document, cli, file);
    if (status == MAQ_OK)
        status = ui_serve(cli, &(const struct ui_server_opts){.port = (uint16_t)port,
                                                              .browser = !cli->values[OPT_NO_BROWSER],
                                                              .file = file,
                                                              .document = document});
    free(document);
    return status;
}

const struct cli_command cli_ui = {
    .name = "ui",
    .args = "[JOB.yaml] [--port N] [--no-browser]",
    .summary = "a page on this machine to edit a job and see what changes",
    .about =
        "Serves a page to edit a job and see the answer of `maquette train` at every change; `plan` and `serve` run "
        "at the press of a button, with progress. The page gives the job file, the report and the command line. It "
        "is served on 127.0.0.1 alone and needs the token in the address that is printed; no other page or user "
        "gets an answer. Nothing is loaded from a network. Ctrl-C ends it.\n",
    .examples = "  maquette ui\n"
                "  maquette ui job.yaml\n"
                "  maquette ui --port 8642 --no-browser    # over SSH: ssh -L 8642:localhost:8642 HOST\n",
    .options = options,
    .n_options = CLI_COUNT(options),
    .max_args = 1,
    .run = run,
};
