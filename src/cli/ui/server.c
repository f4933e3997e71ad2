/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server.c - the server of `maquette ui`: loads what speaks HTTP, draws a token, tells the address, waits for Ctrl-C.
 *
 * The token stands behind the '#' of the address, which a browser does not send, and nowhere else: not in the page, not in a log. A browser is not
 * given the address as an argument, which every user of the machine could read, but a file that only its owner can, and which leads there.
 */
#include "cli/ui/server.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/codes.h"
#include "cli/ui/handler.h"
#include "cli/ui/http.h"
#include "maquette/module.h"

#define MODULE "libmaquette-http.so"
#define TOKEN_BYTES 32
#define THREADS 4      /* requests at once; a prediction takes milliseconds */
#define CONNECTIONS 64 /* a browser opens six to a server */
#define IDLE_S 60

extern char **environ;

static bool draw_token(char out[2 * TOKEN_BYTES + 1])
{
    unsigned char bytes[TOKEN_BYTES];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    for (size_t i = 0; i < TOKEN_BYTES; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    return true;
}

/* ---- the module ---- */

static bool admit(void *user, struct ui_response *out, const struct ui_request *request, uint64_t length)
{
    return ui_admit(user, out, request, length);
}

static void handle(void *user, struct ui_response *out, const struct ui_request *request)
{
    ui_handle(user, out, request);
}

static enum maq_status open_http(struct ui_http *http, struct ui *ui, uint16_t port, struct cli *cli)
{
    const struct ui_http_opts opts = {.port = port,
                                      .threads = THREADS,
                                      .connections = CONNECTIONS,
                                      .idle_s = IDLE_S,
                                      .admit = admit,
                                      .handle = handle,
                                      .body_max = UI_BODY_MAX,
                                      .user = ui};
    char why[256];
    void *module =
        maq_module_load(MODULE, "src/cli/ui", "this maquette was built without it (" MODULE ")", why, sizeof why);
    ui_http_open_fn *open = module ? (ui_http_open_fn *)maq_module_symbol(module, UI_HTTP_ENTRY) : NULL;
    if (!open)
        return maq_diag_fail(
            MAQ_LIMIT, cli->diag, MAQ_CODE_CLI_SERVER, (struct maq_span){0},
            "install the package of maquette, or build where GNU libmicrohttpd is installed (libmicrohttpd-dev)",
            "no HTTP server: %s", module ? "the module is of another version" : why);
    int error = open(http, &opts);
    if (error == 0 && http->abi == UI_HTTP_ABI)
        return MAQ_OK;
    return maq_diag_fail(MAQ_IO, cli->diag, MAQ_CODE_CLI_SERVER, (struct maq_span){0},
                         error == EADDRINUSE ? "another --port; without it a free one is taken" : NULL,
                         "cannot listen on 127.0.0.1, port %u: %s", port, strerror(error));
}

/* ---- the browser ---- */

/* A file that leads to the address, for its owner alone. False: there is no place for one. */
static bool write_way(char path[256], const char *address)
{
    const char *folder = getenv("XDG_RUNTIME_DIR");
    if (!folder || !*folder)
        folder = getenv("TMPDIR");
    if (!folder || !*folder)
        folder = "/tmp";
    int n = snprintf(path, 256, "%s/maquette-ui-XXXXXX.html", folder);
    int fd = n > 0 && n < 256 ? mkstemps(path, 5) : -1; /* mode 0600 */
    FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!out) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    (void)fprintf(out,
                  "<!DOCTYPE html><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0; url=%s\"><a "
                  "href=\"%s\">maquette ui</a>\n",
                  address, address);
    return fclose(out) == 0;
}

static void open_browser(const char *path)
{
    char program[] = "xdg-open", file[256];
    char *const words[] = {program, file, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    (void)snprintf(file, sizeof file, "%s", path);
    if (posix_spawn_file_actions_init(&actions) != 0)
        return;
    (void)posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", 0x1, 0); /* O_WRONLY; it talks */
    (void)posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    (void)posix_spawnp(&pid, program, &actions, NULL, words, environ); /* where there is none, the address is printed */
    (void)posix_spawn_file_actions_destroy(&actions);
}

/* ---- from start to end ---- */

/* What asks for an end, but what the program was started to pass over, as by nohup. */
static void end_signals(sigset_t *out)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    sigemptyset(out);
    for (size_t i = 0; i < CLI_COUNT(numbers); i++) {
        struct sigaction now;
        if (sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaddset(out, numbers[i]);
    }
}

static enum maq_status tell_address(struct cli *cli, const char *address)
{
    char *text = cli_printf(cli, "%s\n", address), *copy = text ? strdup(text) : NULL;
    enum maq_status status = copy ? cli_write(cli, copy, NULL) : cli_no_memory(cli);
    if (status == MAQ_OK && isatty(STDERR_FILENO))
        (void)fputs("Open this page in a browser on this machine. Ctrl-C ends it.\n", stderr);
    return status;
}

enum maq_status ui_serve(struct cli *cli, const struct ui_server_opts *opts)
{
    char token[2 * TOKEN_BYTES + 1], address[160], way[256] = "";
    struct ui_http http;
    sigset_t ends, before;
    int number;
    if (!draw_token(token))
        return maq_diag_fail(MAQ_IO, cli->diag, MAQ_CODE_CLI_SERVER, (struct maq_span){0}, NULL,
                             "no random numbers: %s", strerror(errno));
    struct ui *ui = ui_new(
        &(const struct ui_opts){.port = opts->port, .token = token, .file = opts->file, .document = opts->document});
    if (!ui)
        return cli_no_memory(cli);
    end_signals(&ends); /* no thread of the server takes them: they wait for this one */
    pthread_sigmask(SIG_BLOCK, &ends, &before);
    enum maq_status status = open_http(&http, ui, opts->port, cli);
    if (status == MAQ_OK) {
        ui_set_port(ui, http.port);
        (void)snprintf(address, sizeof address, "http://127.0.0.1:%u/#%s", (unsigned)http.port, token);
        status = tell_address(cli, address);
        if (status == MAQ_OK && opts->browser && write_way(way, address))
            open_browser(way);
        while (status == MAQ_OK && sigwait(&ends, &number) != 0)
            continue;
        http.close(&http);
    }
    if (way[0])
        (void)unlink(way);
    ui_free(ui);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}
