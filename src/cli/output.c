/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output.c - where text goes: standard output, a file, standard error.
 *
 * Every byte is accounted for: a full disk or a closed standard output is a failure (exit 4), never a shorter report. Of a pipe
 * whose reader has gone nothing is said: who reads ten lines with `head` has what he wants, and whether we were still writing then is
 * chance. Other files are written all the same; then the program ends by SIGPIPE as other writers do (main.c).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/call.h"
#include "cli/cli.h"
#include "cli/codes.h"
#include "maquette/path_hint.h"

#define COLUMNS_MAX 160

static enum maq_status fail(struct cli *cli, const char *path, int error)
{
    const char *what = path ? path : "to standard output";
    cli->reader_gone = !path && error == EPIPE;
    if (cli->reader_gone)
        return MAQ_IO;
    return maq_diag_fail(MAQ_IO, cli->diag, MAQ_CODE_CLI_OUTPUT, (struct maq_span){0},
                         path ? maq_create_hint(error) : NULL, "cannot write %s: %s", what, strerror(error));
}

enum maq_status cli_write(struct cli *cli, char *text, const char *path)
{
    enum maq_status status = MAQ_OK;
    size_t n = strlen(text);
    errno = 0;
    cli->wrote |= !path;
    FILE *stream = path ? fopen(path, "wb") : stdout;
    if (!stream)
        status = fail(cli, path, errno);
    else if (fwrite(text, 1, n, stream) != n || fflush(stream) != 0)
        status = fail(cli, path, errno);
    if (path && stream && fclose(stream) != 0 && status == MAQ_OK)
        status = fail(cli, path, errno);
    free(text);
    return status;
}

enum maq_status cli_deliver(struct cli *cli, const char *path)
{
    enum maq_status status = cli_first_fault(cli->text_status, cli->json_status);
    char *text = cli->text_status == MAQ_OK ? cli->text : NULL, *json = cli->json_status == MAQ_OK ? cli->json : NULL;
    cli->text = cli->json = NULL;
    if (status == MAQ_OK && !cli->called)
        return cli_write(cli, text ? text : json, path);
    if (status == MAQ_OK) {
        free(cli->called->text);
        free(cli->called->json);
        cli->called->text = text;
        cli->called->json = json;
        return MAQ_OK;
    }
    free(text);
    free(json);
    return status;
}

const char cli_page_of_call[] = "(page)";

enum maq_status cli_put_page(struct cli *cli, char *page, const char *path)
{
    if (path != cli_page_of_call)
        return cli_write(cli, page, path);
    free(cli->called->page);
    cli->called->page = page;
    return MAQ_OK;
}

enum maq_status cli_write_page(struct cli *cli, enum maq_status made, const char *path)
{
    return made == MAQ_OK ? cli_put_page(cli, cli->page, path) : made;
}

enum maq_status cli_can_write(struct cli *cli, const char *path)
{
    struct stat found;
    int error = 0;
    if (!path || path == cli_page_of_call)
        return MAQ_OK;
    if (!*path)
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, "FILE.html", "the name of the file to write is empty");
    if (stat(path, &found) == 0) {
        error = S_ISDIR(found.st_mode) ? EISDIR : access(path, W_OK) != 0 ? errno : 0;
    } else {
        const char *slash = strrchr(path, '/');
        char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
        if (!folder)
            return cli_no_memory(cli);
        error = access(folder, W_OK) != 0 ? errno : 0;
        free(folder);
    }
    return error == 0 ? MAQ_OK : fail(cli, path, error);
}

static double seconds_of(struct timeval t)
{
    return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

void cli_print_diag(const struct cli *cli)
{
    if (cli->quiet || cli->told || maq_diag_count(cli->diag) == 0)
        return;
    if (cli->common[CLI_QUIET] && maq_diag_errors(cli->diag) == 0)
        return;
    char *text = maq_diag_format(cli->diag, cli->common[CLI_VERBOSE] ? SIZE_MAX : 0, cli->color_err);
    if (text)
        (void)fputs(text, stderr);
    free(text);
}

void cli_print_stats(const struct cli *cli, double began_s)
{
    struct rusage own = {0}, others = {0};
    struct timespec now;
    if (!cli->common[CLI_STATS] || cli->quiet || clock_gettime(CLOCK_MONOTONIC, &now) != 0)
        return;
    (void)getrusage(RUSAGE_SELF, &own);
    (void)getrusage(RUSAGE_CHILDREN, &others);
    double used = seconds_of(own.ru_utime) + seconds_of(own.ru_stime) + seconds_of(others.ru_utime) +
                  seconds_of(others.ru_stime),
           took = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec - began_s;
    (void)fprintf(stderr, "took        %.3f s, %.3f s of processors; %.1f MiB of memory\n", took, used,
                  (double)own.ru_maxrss / 1024);
}

/* A terminal gets colours unless NO_COLOR is set (no-color.org) or it says that it is dumb. */
static bool wants_color(int fd)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(fd) && !(no && *no) && !(term && strcmp(term, "dumb") == 0);
}

static uint32_t columns_of(int fd)
{
    struct winsize size;
    if (!isatty(fd) || ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return CLI_COLUMNS_DEFAULT;
    return size.ws_col < COLUMNS_MAX ? size.ws_col : COLUMNS_MAX;
}

void cli_look_around(struct cli *cli)
{
    static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    cli->color_out = wants_color(STDOUT_FILENO);
    cli->color_err = wants_color(STDERR_FILENO);
    cli->columns = columns_of(STDOUT_FILENO);
    for (size_t i = 0; i < CLI_COUNT(variables); i++) {
        const char *value = getenv(variables[i]);
        if (!value || !*value)
            continue;
        cli->unicode = strcasestr(value, "utf-8") || strcasestr(value, "utf8");
        break;
    }
}

struct maq_report_opts cli_report_opts(const struct cli *cli, bool to_file)
{
    struct maq_report_opts opts = MAQ_REPORT_OPTS_INIT;
    opts.columns = to_file ? CLI_COLUMNS_DEFAULT : cli->columns;
    opts.color = cli->color_out && !to_file;
    opts.unicode = cli->unicode;
    return opts;
}
