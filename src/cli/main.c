/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - the program: finds the command, runs it, tells how it ended.
 *
 * Standard output gets the answer, standard error what is wrong, and the exit status is that of the worst finding
 * (DESIGN section 5).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/codes.h"

#define EXIT_BUG 70

_Noreturn static void on_bug(const char *what, const char *file, int line)
{
    (void)fflush(stdout);
    (void)fprintf(stderr,
                  "maquette %s: a bug: %s does not hold at %s:%d\nplease report this with the command and its files\n",
                  maq_version(), what, file, line);
    _exit(EXIT_BUG);
}

/*
 * A closed standard stream would give its number to the next file that is opened, which our text would then be written
 * into. Opened the wrong way round, it fails instead.
 */
static void hold_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) == -1 && errno == EBADF)
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

static enum maq_status version(struct cli *cli)
{
    char text[256];
    (void)snprintf(text, sizeof text, "maquette %s (commit %s, %s)\n", maq_version(), maq_build_commit(),
                   maq_build_compiler());
    char *copy = strdup(text);
    return copy ? cli_write(cli, copy, NULL) : MAQ_NO_MEMORY;
}

static bool asks(const char *text, const char *a, const char *b)
{
    return strcmp(text, a) == 0 || strcmp(text, b) == 0;
}

/* `maquette CMD ... --help` anywhere before "--"; *all: --help-all. */
static bool asks_for_help(bool *all, int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        *all = strcmp(argv[i], "--help-all") == 0;
        if (*all || asks(argv[i], "--help", "-h"))
            return true;
    }
    return false;
}

static enum maq_status run(struct cli *cli, int argc, char **argv)
{
    if (argc < 2)
        return cli_usage(cli, MAQ_CODE_CLI_COMMAND, "maquette --help lists the commands", "no command is given");
    bool all = false;
    if (asks(argv[1], "--help", "-h") || strcmp(argv[1], "--help-all") == 0 ||
        (strcmp(argv[1], "help") == 0 && argc == 2))
        return cli_help(cli);
    if (asks(argv[1], "--version", "-V"))
        return version(cli);
    int at = strcmp(argv[1], "help") == 0 ? 2 : 1, words = 1;
    const struct cli_command *command = cli_find_command(&words, argc - at, argv + at);
    if (!command)
        return cli_unknown_command(cli, argv[at]);
    if (asks_for_help(&all, argc - at - words, argv + at + words) || at == 2)
        return cli_help_command(cli, command, all);
    enum maq_status status = cli_parse(cli, command, argc - at - words, argv + at + words);
    if (status == MAQ_OK)
        status = cli_check_output_names(cli);
    return status == MAQ_OK ? command->run(cli) : status;
}

/* `--json` among the options, whether they were read to their end or not. */
static bool asks_for_json(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--json") == 0)
            return true;
    return false;
}

/* Commands whose standard output is a program's. */
static bool runs_a_program(const struct cli *cli)
{
    return cli->command == &cli_run || cli->command == &cli_capture || cli->command == &cli_emulate;
}

/* In place of the document that there is not: one of what is wrong. Standard error has it, too. */
static void print_error_json(struct cli *cli, enum maq_status status)
{
    char *text;
    if (runs_a_program(cli) || cli->wrote || cli->quiet || cli->reader_gone ||
        maq_report_error_json(&text, status, cli->diag) != MAQ_OK)
        return;
    (void)cli_write(cli, text, NULL);
}

/* As any other writer whose reader has gone (`| head`): a shell sees 141. Who
 * ignores the signal gets the status of output that failed. */
static void end_as_a_writer(void)
{
    (void)signal(SIGPIPE, SIG_DFL);
    (void)raise(SIGPIPE);
}

int main(int argc, char **argv)
{
    struct cli cli = {0};
    struct timespec now = {0};
    hold_standard_streams();
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    void (*on_pipe)(int) = signal(SIGPIPE, SIG_IGN); /* a closed pipe is a failed write, until all is done */
    maq_set_bug_hook(on_bug);
    cli_look_around(&cli);
    cli.diag = maq_diag_new();
    if (!cli.diag) {
        (void)fputs("maquette: out of memory\n", stderr);
        return maq_status_exit_code(MAQ_NO_MEMORY);
    }
    enum maq_status status = run(&cli, argc, argv);
    if (status != MAQ_OK && status != MAQ_NO && maq_diag_errors(cli.diag) == 0 && !cli.reader_gone)
        (void)maq_diag_fail(status, cli.diag, 0, (struct maq_span){0}, NULL, "%s", maq_status_text(status));
    /* MAQ_NO is an answer, with a document of its own, unless what is wrong left nothing to report. */
    if (status != MAQ_OK && (status != MAQ_NO || maq_diag_errors(cli.diag) > 0) && asks_for_json(argc, argv))
        print_error_json(&cli, status);
    cli_print_diag(&cli);
    cli_print_stats(&cli, (double)now.tv_sec + 1e-9 * (double)now.tv_nsec);
    maq_diag_free(cli.diag);
    cli_fini(&cli);
    if (cli.reader_gone && on_pipe == SIG_DFL)
        end_as_a_writer();
    return status == MAQ_OK ? cli.exit_status : maq_status_exit_code(status);
}
