/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.c - a sign of life while something takes long, and an end on request.
 */
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"

#define PATIENCE_S 1.0    /* nothing is shown before */
#define PAUSE_S 0.1       /* between two lines */
#define LINES_PAUSE_S 1.0 /* that stay */

/* Of what is to be done, before the rest is estimated: the first parts of a search are no measure of the others. */
#define LEAST_DONE 0.02

static volatile sig_atomic_t interrupted;

static void interrupt(int number)
{
    if (interrupted) { /* once is a wish, twice an order */
        signal(number, SIG_DFL);
        raise(number);
    }
    interrupted = number;
}

const volatile sig_atomic_t *cli_catch_interrupts(struct cli *cli)
{
    if (cli->called)
        return cli->stop;
    struct sigaction action = {.sa_handler = interrupt};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    return &interrupted;
}

const volatile sig_atomic_t *cli_catch_ends(void)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = interrupt};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < CLI_COUNT(ends); i++)
        sigaction(ends[i], &action, NULL);
    return &interrupted;
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void cli_time_left(char out[32], double elapsed_s, double done, double all)
{
    out[0] = '\0';
    if (elapsed_s < PATIENCE_S || done < LEAST_DONE * all || done >= all)
        return;
    double left = elapsed_s * (all - done) / done;
    if (left < 90)
        (void)snprintf(out, 32, ", about %.0f s left", left < 1 ? 1 : left);
    else if (left < 90 * 60)
        (void)snprintf(out, 32, ", about %.0f min left", left / 60);
    else
        (void)snprintf(out, 32, ", about %.0f h left", left < 999 * 3600.0 ? left / 3600 : 999);
}

const char *cli_left(struct cli *cli, double done, double all)
{
    cli_time_left(cli->left, cli->started_s > 0 ? now_s() - cli->started_s : 0, done, all);
    return cli->left;
}

/* The line of a call goes to who made it. */
static void MAQ_PRINTF(3, 0) tell(struct cli *cli, double now, const char *fmt, va_list args)
{
    char line[256];
    int n = vsnprintf(line, sizeof line, fmt, args);
    if (n < 0 || (line[0] != '\0' && now - cli->shown_s < PAUSE_S))
        return;
    cli->tell(cli->tell_user, line);
    cli->shown_s = now;
}

void cli_progress(struct cli *cli, const char *fmt, ...)
{
    if (cli->called && !cli->tell)
        return;
    double now = now_s();
    va_list args;
    if (cli->started_s == 0)
        cli->started_s = now;
    if (cli->called) {
        va_start(args, fmt);
        tell(cli, now, fmt, args);
        va_end(args);
        return;
    }
    bool clear = fmt[0] == '\0', terminal = isatty(STDERR_FILENO) == 1, wordy = cli->common[CLI_VERBOSE];
    double patience = wordy ? 0 : PATIENCE_S, pause = terminal ? PAUSE_S : LINES_PAUSE_S;
    if (cli->common[CLI_QUIET] || (!terminal && (!wordy || clear)) ||
        (clear ? cli->shown_s == 0 : now - cli->started_s < patience || now - cli->shown_s < pause))
        return;
    if (terminal)
        fputs("\r\033[K", stderr);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    if (!terminal)
        fputc('\n', stderr);
    fflush(stderr);
    cli->shown_s = clear ? 0 : now;
}
