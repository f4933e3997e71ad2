/* SPDX-License-Identifier: Apache-2.0 */
/*
 * background_runs.c - what takes long runs aside, one at a time: its page asks how far it is, and may ask for an end.
 *
 * A search uses every processor, so a second one beside it would only make both slower; it is refused until the first is over. The answer of the
 * last run is kept until the next begins, so that a page that was loaded again finds it.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/ui/internal.h"

struct ui_runs {
    pthread_mutex_t lock;
    pthread_t thread;
    bool joinable; /* a thread was begun and not joined */
    bool over;     /* the last run is */
    uint64_t id;   /* of the last run; 0 = there was none */
    volatile sig_atomic_t stop;
    struct timespec began;
    double took_s;
    char line[256]; /* how far it is */
    char *answer;   /* JSON, when it is over; NULL: out of memory */
    /* the thread's */
    const struct ui *ui;
    struct ui_command question;
};

struct ui_runs *ui_runs_new(void)
{
    struct ui_runs *runs = calloc(1, sizeof *runs);
    if (runs && pthread_mutex_init(&runs->lock, NULL) != 0) {
        free(runs);
        return NULL;
    }
    return runs;
}

static double since_s(struct timespec began)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)(t.tv_sec - began.tv_sec) + 1e-9 * (double)(t.tv_nsec - began.tv_nsec);
}

/* Waits for the last run; not under the lock, which its thread takes. */
static void end_last(struct ui_runs *runs)
{
    if (runs->joinable)
        pthread_join(runs->thread, NULL);
    runs->joinable = false;
    ui_command_free(&runs->question);
    free(runs->answer);
    runs->answer = NULL;
}

/* Its thread looks at it whenever it likes, without the lock. */
static void ask_to_end(struct ui_runs *runs)
{
    __atomic_store_n(&runs->stop, 1, __ATOMIC_RELAXED);
}

void ui_runs_free(struct ui_runs *runs)
{
    if (!runs)
        return;
    ask_to_end(runs);
    end_last(runs);
    pthread_mutex_destroy(&runs->lock);
    free(runs);
}

static void note_line(void *user, const char *line)
{
    struct ui_runs *runs = user;
    pthread_mutex_lock(&runs->lock);
    size_t n = strnlen(line, sizeof runs->line - 1);
    memcpy(runs->line, line, n);
    runs->line[n] = '\0';
    pthread_mutex_unlock(&runs->lock);
}

static void *work(void *user)
{
    struct ui_runs *runs = user;
    const struct cli_call_opts opts = {.stop = &runs->stop, .progress = note_line, .user = runs};
    char *answer = ui_answer(runs->ui, &runs->question, &opts);
    pthread_mutex_lock(&runs->lock);
    runs->answer = answer;
    runs->took_s = since_s(runs->began);
    runs->over = true;
    pthread_mutex_unlock(&runs->lock);
    return NULL;
}

static void tell_begun(struct ui_response *out, uint64_t id)
{
    ui_respond_json(out, 202, json_pack("{s:I}", "run", (json_int_t)id));
}

void ui_run_begin(struct ui *ui, struct ui_response *out, struct ui_command *q)
{
    struct ui_runs *runs = ui->runs;
    pthread_mutex_lock(&runs->lock);
    if (runs->id > 0 && !runs->over) {
        pthread_mutex_unlock(&runs->lock);
        ui_refuse(out, 409, "another run is under way: wait for it, or stop it");
        return;
    }
    end_last(runs); /* its thread has nothing left to lock */
    runs->ui = ui;
    runs->question = *q;
    *q = (struct ui_command){.command = NULL};
    runs->stop = 0;
    runs->over = false;
    runs->line[0] = '\0';
    clock_gettime(CLOCK_MONOTONIC, &runs->began);
    uint64_t id = ++runs->id;
    runs->joinable = pthread_create(&runs->thread, NULL, work, runs) == 0;
    runs->over = !runs->joinable;
    const bool begun = runs->joinable;
    pthread_mutex_unlock(&runs->lock);
    if (begun)
        tell_begun(out, id);
    else
        ui_refuse(out, 503, "no thread for a run: close something else");
}

void ui_run_look(struct ui *ui, struct ui_response *out, uint64_t id)
{
    struct ui_runs *runs = ui->runs;
    pthread_mutex_lock(&runs->lock);
    if (id != runs->id) {
        pthread_mutex_unlock(&runs->lock);
        ui_refuse(out, 404, "there is no such run, or another one was begun since");
        return;
    }
    json_t *answer = runs->over && runs->answer ? json_loads(runs->answer, 0, NULL) : NULL;
    json_t *state =
        json_pack("{s:I, s:s, s:s, s:f, s:o*}", "run", (json_int_t)id, "state",
                  !runs->over ? (runs->stop ? "stopping" : "running") : (answer ? "over" : "failed"), "progress",
                  runs->line, "elapsed_s", runs->over ? runs->took_s : since_s(runs->began), "answer", answer);
    pthread_mutex_unlock(&runs->lock);
    ui_respond_json(out, 200, state);
}

void ui_run_stop(struct ui *ui, struct ui_response *out, uint64_t id)
{
    struct ui_runs *runs = ui->runs;
    pthread_mutex_lock(&runs->lock);
    const bool known = id == runs->id;
    if (known)
        ask_to_end(runs);
    pthread_mutex_unlock(&runs->lock);
    if (known)
        ui_run_look(ui, out, id);
    else
        ui_refuse(out, 404, "there is no such run, or another one was begun since");
}
