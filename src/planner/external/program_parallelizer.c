/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program_parallelizer.c - the functions of a parallelizer over processes that speak JSON lines: see program_parallelizer.h.
 *
 * A state is a process with one request under way; --workers N are N processes with N requests. The first one is started when the
 * parallelizer is loaded, since only its answer to `open` says what it can do; the answers of the others have to be the same.
 */
#include "planner/external/program_parallelizer.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/text.h"
#include "planner/external/codes.h"
#include "planner/external/process.h"
#include "planner/external/wire.h"

#define GRACE_S 0.5 /* for a program to end when its input is closed */

struct remote {
    const char *path;
    const struct maq_slices_opts *opts;
    struct maq_arena *arena;
    const char *name;
    bool front, concatenates;
    struct state *first; /* started, not yet opened */
};

struct state {
    struct remote *remote;
    struct maq_process process;
    struct maq_arena answers; /* of the last call */
    int64_t id;
    uint16_t code; /* of the last fault */
};

static enum maq_status fail(struct state *s, enum maq_status status, uint16_t code, char *why, const char *fmt, ...)
    MAQ_PRINTF(5, 6);
static enum maq_status fail(struct state *s, enum maq_status status, uint16_t code, char *why, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    maq__vsnprintf(why, MAQ_PARALLELIZER_WHY, fmt, args);
    va_end(args);
    s->code = code;
    return status;
}

static uint16_t code_of(void *state)
{
    return state ? ((struct state *)state)->code : 0;
}

/* ---- one request ---- */

static enum maq_status not_answered(struct state *s, enum maq_process_outcome outcome, const char *what, double limit_s,
                                    char *why)
{
    char how[32];
    bool died = outcome == MAQ_PROCESS_DIED;
    maq_process_end(&s->process, died ? GRACE_S : 0, how);
    const char *words = s->process.words, *before = words[0] ? "; its last words: " : "";
    switch (outcome) {
    case MAQ_PROCESS_DIED:
        return fail(s, MAQ_BAD_INPUT, MAQ_CODE_PARALLELIZER_DIED, why,
                    "it ended (%s) before it answered request %lld, '%s'%s%s", how, (long long)s->id, what, before,
                    words);
    case MAQ_PROCESS_SILENT:
        return fail(s, MAQ_LIMIT, MAQ_CODE_PARALLELIZER_TIMEOUT, why,
                    "no answer to request %lld, '%s', in %g s (--timeout); it was ended%s%s", (long long)s->id, what,
                    limit_s, before, words);
    case MAQ_PROCESS_TOO_LONG:
        return fail(s, MAQ_LIMIT, MAQ_CODE_PARALLELIZER_ANSWER, why, "its answer to request %lld is over %u MiB",
                    (long long)s->id, MAQ_PROCESS_LINE >> 20);
    case MAQ_PROCESS_STOPPED:
        return fail(s, MAQ_LIMIT, MAQ_CODE_SLICES_STOPPED, why, "asked to stop");
    case MAQ_PROCESS_NO_MEMORY:
    case MAQ_PROCESS_ANSWERED:
        break;
    }
    return fail(s, MAQ_NO_MEMORY, MAQ_CODE_SLICES_LIMIT, why, "out of memory for its answer");
}

/* Takes the request. *answer is owned by the caller. */
static enum maq_status ask(json_t **answer, struct state *s, char *request, const char *what, char *why)
{
    double limit = s->remote->opts->timeout_s > 0 ? s->remote->opts->timeout_s : 600;
    bool failed;
    char *line;
    s->code = 0;
    maq_arena_fini(&s->answers);
    if (!request)
        return fail(s, MAQ_NO_MEMORY, MAQ_CODE_SLICES_LIMIT, why, "out of memory for a request");
    if (s->process.pid == 0) {
        free(request);
        return fail(s, MAQ_BAD_INPUT, MAQ_CODE_PARALLELIZER_DIED, why, "it is not running any more");
    }
    enum maq_process_outcome outcome = maq_process_request(&s->process, &line, request, limit, s->remote->opts->stop);
    free(request);
    if (outcome != MAQ_PROCESS_ANSWERED)
        return not_answered(s, outcome, what, limit, why);
    enum maq_status status = maq_wire_answer(answer, &failed, line, s->id, why);
    free(line);
    if (status != MAQ_OK)
        s->code = failed ? MAQ_CODE_PARALLELIZER_FAILED : MAQ_CODE_PARALLELIZER_ANSWER;
    return status;
}

/* Frees an answer that was read; where reading failed, the fault is one of form. */
static enum maq_status read_as(struct state *s, enum maq_status status, json_t *answer)
{
    if (status != MAQ_OK)
        s->code = status == MAQ_NO_MEMORY ? MAQ_CODE_SLICES_LIMIT : MAQ_CODE_PARALLELIZER_ANSWER;
    json_decref(answer);
    return status;
}

/* ---- life ---- */

static void close_state(void *state)
{
    struct state *s = state;
    char how[32];
    maq_process_end(&s->process, s->code == 0 ? GRACE_S : 0, how);
    maq_arena_fini(&s->answers);
}

/* Starts a process and greets it. s is usable, and to be closed, in any case. */
static enum maq_status start(struct state *s, struct remote *r, const struct maq_parallelizer_model *model, char *why)
{
    json_t *answer = NULL;
    struct maq_wire_hello hello;
    int error;
    *s = (struct state){.remote = r, .id = 1};
    maq_arena_init(&s->answers, 0);
    if (!maq_process_start(&s->process, r->path, &error))
        return fail(s, MAQ_IO, MAQ_CODE_PARALLELIZER_LOAD, why, "it cannot be started: %s", strerror(error));
    MAQ_TRY(ask(&answer, s, maq_wire_open(s->id, model), "open", why));
    enum maq_status status = maq_wire_read_hello(&hello, answer, why);
    if (status == MAQ_OK && hello.version != MAQ_PARALLELIZER_ABI) {
        status = fail(s, MAQ_BAD_INPUT, MAQ_CODE_PARALLELIZER_VERSION, why,
                      "it speaks version %lld of the interface, maquette speaks %u", (long long)hello.version,
                      MAQ_PARALLELIZER_ABI);
        json_decref(answer);
        return status;
    }
    if (status == MAQ_OK && !r->name) {
        r->name = maq_arena_strdup(r->arena, (struct maq_str){hello.name, strlen(hello.name)});
        r->front = hello.front;
        r->concatenates = hello.concatenates;
        status = r->name ? MAQ_OK : MAQ_NO_MEMORY;
    } else if (status == MAQ_OK &&
               (strcmp(r->name, hello.name) != 0 || r->front != hello.front || r->concatenates != hello.concatenates)) {
        maq__snprintf(why, MAQ_PARALLELIZER_WHY, "two of its processes answer 'open' differently");
        status = MAQ_BAD_INPUT;
    }
    return read_as(s, status, answer);
}

static enum maq_status open_state(void **state, void *context, const struct maq_parallelizer_model *model, char *why)
{
    struct remote *r = context;
    struct state *s = r->first;
    r->first = NULL;
    if (!s) {
        s = MAQ_ARENA_NEW(r->arena, struct state, 1);
        if (!s)
            return MAQ_NO_MEMORY;
        enum maq_status status = start(s, r, model, why);
        if (status != MAQ_OK) {
            close_state(s);
            return status;
        }
    }
    *state = s;
    return MAQ_OK;
}

/* ---- functions ---- */

static enum maq_status slice_model(const struct maq_parallelizer_atom **out, uint32_t *n, void *state, char *why)
{
    struct state *s = state;
    json_t *answer = NULL;
    MAQ_TRY(ask(&answer, s, maq_wire_slice_model(++s->id), "slice_model", why));
    return read_as(s, maq_wire_read_atoms(out, n, answer, &s->answers, why), answer);
}

static enum maq_status concatenate(char *signature, void *state, const struct maq_parallelizer_slice *front,
                                   const struct maq_parallelizer_slice *back, char *why)
{
    struct state *s = state;
    json_t *answer = NULL;
    MAQ_TRY(ask(&answer, s, maq_wire_concatenate(++s->id, front, back), "concatenate", why));
    return read_as(s, maq_wire_read_signature(signature, answer, why), answer);
}

static enum maq_status profile(struct maq_parallelizer_profile *out, void *state,
                               const struct maq_parallelizer_slice *slice, const struct maq_parallelizer_island *island,
                               char *why)
{
    struct state *s = state;
    json_t *answer = NULL;
    MAQ_TRY(ask(&answer, s, maq_wire_pair(++s->id, slice, island, NULL), "profile", why));
    return read_as(s, maq_wire_read_profile(out, answer, why), answer);
}

static enum maq_status parallelize(const struct maq_parallelizer_plan **out, uint32_t *n, void *state,
                                   const struct maq_parallelizer_slice *slice,
                                   const struct maq_parallelizer_island *island,
                                   const struct maq_parallelizer_position *position, char *why)
{
    struct state *s = state;
    json_t *answer = NULL;
    MAQ_TRY(ask(&answer, s, maq_wire_pair(++s->id, slice, island, position), "parallelize", why));
    return read_as(s, maq_wire_read_plans(out, n, answer, &s->answers, why), answer);
}

enum maq_status maq_slices_remote(struct maq_slices_source *out, const char *path,
                                  const struct maq_parallelizer_model *model, const struct maq_slices_opts *opts,
                                  struct maq_arena *arena, struct maq_diag *diag)
{
    struct remote *r = MAQ_ARENA_NEW(arena, struct remote, 1);
    struct state *s = MAQ_ARENA_NEW(arena, struct state, 1);
    char why[MAQ_PARALLELIZER_WHY] = "";
    if (!r || !s)
        return maq_no_memory(diag, "the search");
    *r = (struct remote){.path = path, .opts = opts, .arena = arena};
    enum maq_status status = start(s, r, model, why);
    if (status != MAQ_OK) {
        uint16_t code = s->code != 0 ? s->code : MAQ_CODE_PARALLELIZER_FAILED;
        close_state(s);
        return maq_diag_fail(status, diag, code, (struct maq_span){0},
                             "docs/parallelizer.md has what is asked and how to answer", "parallelizer %.120s: %s",
                             path, why[0] ? why : "it does not say why");
    }
    r->first = s;
    out->functions =
        (struct maq_parallelizer){.abi = MAQ_PARALLELIZER_ABI,
                                  .size = sizeof(struct maq_parallelizer),
                                  .name = r->name,
                                  .flags = MAQ_PARALLELIZER_THREADS | (r->front ? MAQ_PARALLELIZER_FRONT : 0),
                                  .context = r,
                                  .open = open_state,
                                  .close = close_state,
                                  .slice_model = slice_model,
                                  .concatenate = r->concatenates ? concatenate : NULL,
                                  .profile = profile,
                                  .parallelize = parallelize};
    out->code_of = code_of;
    return MAQ_OK;
}

void maq_slices_remote_fini(const struct maq_slices_source *source)
{
    struct remote *r = source->functions.context;
    if (source->code_of == code_of && r->first)
        close_state(r->first);
    if (source->code_of == code_of)
        r->first = NULL;
}
