/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prerequisites.c - a stack of ranks, each of which waits for what the one above it says; and the file that keeps what was said. See prerequisites.h.
 */
#include "launch/prerequisites.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/text.h"
#include "launch/codes.h"
#include "launch/input_record.h"
#include "launch/private_folder.h"

#define RANKS_MAX 64u /* that run for one; beyond them guesses stay */
#define RUNS_MAX 96u  /* of them all */

/* A rank that runs, or waits to run again. */
struct waiting {
    uint32_t rank;
    const char *trace, *inputs, *output; /* output: NULL = the user's own streams */
    struct maq_contributions keys;
};

struct stack {
    struct waiting at[RANKS_MAX + 1];
    uint32_t n;
};

/* ---- the file ---- */

static uint64_t hash_text(const char *text, uint64_t h)
{
    return maq_rec_hash(text, strlen(text) + 1, h);
}

/* What the program is: its command line, and the files that this names as they are now. */
static uint64_t program_hash(const struct maq_workspace *workspace)
{
    char here[4096];
    uint64_t h = hash_text(getcwd(here, sizeof here) ? here : "", workspace->identity);
    for (const char *const *a = workspace->opts->arguments; *a; a++) {
        const char *path = a == workspace->opts->arguments ? workspace->program : *a;
        struct stat info;
        if (stat(path, &info) != 0 || !S_ISREG(info.st_mode))
            continue;
        h = maq_rec_mix(maq_rec_mix(h, (uint64_t)info.st_size), (uint64_t)info.st_mtim.tv_sec);
        h = maq_rec_mix(h, (uint64_t)info.st_mtim.tv_nsec);
    }
    return h;
}

/* Makes a folder and those above it. */
static bool make_folders(const char *path)
{
    char copy[4096];
    size_t n = strlen(path);
    if (n >= sizeof copy)
        return false;
    memcpy(copy, path, n + 1);
    for (char *at = copy + 1; *at != '\0'; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        (void)mkdir(copy, 0777);
        *at = '/';
    }
    return mkdir(copy, 0777) == 0 || errno == EEXIST;
}

/* Where nothing can be kept, nothing is: the next run takes as long as this one. */
static void choose_file(struct maq_prerequisites *f, const char *folder)
{
    struct maq_arena *arena = &f->workspace->arena;
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (folder && strcmp(folder, "none") == 0)
        return;
    if (!folder && cache && cache[0] == '/')
        folder = maq_arena_printf(arena, "%s/maquette", cache);
    else if (!folder && home && home[0] == '/')
        folder = maq_arena_printf(arena, "%s/.cache/maquette", home);
    if (folder && make_folders(folder))
        f->kept =
            maq_arena_printf(arena, "%s/run-%016llx.peers", folder, (unsigned long long)program_hash(f->workspace));
}

enum maq_status maq_prerequisites_open(struct maq_prerequisites *f, struct maq_workspace *workspace, const char *folder,
                                       struct maq_diag *diag)
{
    *f = (struct maq_prerequisites){.workspace = workspace, .together_for = MAQ_REC_NONE, .store.server.fd = -1};
    maq_contributions_init(&f->said);
    f->ran = MAQ_ARENA_NEW(&workspace->arena, struct maq_prerequisite_rank, RANKS_MAX + 1);
    if (!f->ran)
        return maq_no_memory(diag, "a run");
    choose_file(f, folder);
    if (f->kept &&
        maq_contributions_add_file(&f->said, f->kept, NULL) != MAQ_OK) { /* damaged: as if it were not there */
        maq_contributions_fini(&f->said);
        maq_contributions_init(&f->said);
    }
    maq_contributions_settle(&f->said);
    for (uint32_t i = 0; i < f->said.n; i++) {
        f->from_file += f->said.at[i].channel == MAQ_PEERS_RAN;
        if (f->said.at[i].channel == MAQ_PEERS_TOGETHER)
            f->together = MAQ_TOGETHER_STALLED;
    }
    return MAQ_OK;
}

void maq_prerequisites_close(struct maq_prerequisites *f)
{
    if (f->live.workspace)
        maq_live_end(&f->live);
    maq_store_close(&f->store);
    maq_contributions_fini(&f->said);
}

/* ---- what is said ---- */

enum word_of { RAN, WAITS, SAID_A_PART };
static enum maq_status say_ran(struct maq_contributions *t, uint32_t rank, enum word_of what, struct maq_diag *diag)
{
    struct maq_contribution ran = {.channel = MAQ_PEERS_RAN, .seq = what, .rank = rank, .by = rank, .bytes = ""};
    return maq_contributions_add(t, &ran, diag);
}

/* What was said before, without a rank's own words, and its new ones. */
static enum maq_status take_words(struct maq_prerequisites *f, const struct waiting *w, struct maq_diag *diag)
{
    struct maq_contributions now;
    maq_contributions_init(&now);
    enum maq_status status = MAQ_OK;
    for (uint32_t i = 0; i < f->said.n && status == MAQ_OK; i++)
        if (f->said.at[i].by != w->rank)
            status = maq_contributions_add(&now, &f->said.at[i], diag);
    if (status == MAQ_OK)
        status = maq_contributions_add_trace(&now, w->rank, w->trace, diag);
    for (uint32_t i = 0; i < w->keys.n && status == MAQ_OK; i++) {
        struct maq_contribution key = w->keys.at[i];
        key.by = key.rank;
        status = maq_contributions_add(&now, &key, diag);
    }
    maq_contributions_settle(&now);
    maq_contributions_fini(&f->said);
    f->said = now;
    return status;
}

/* Whether a rank that ran would say nothing else now: what it looked up was the same as it is now. */
static bool would_repeat(const struct maq_prerequisites *f, uint32_t rank)
{
    char inputs[4096];
    int n = maq__snprintf(inputs, sizeof inputs, "%s/g%u", f->workspace->folder, rank);
    return n < 0 || (size_t)n >= sizeof inputs || maq_input_record_same(inputs, &f->said, rank);
}

/* The file that a program reads: all words, and who is not to be waited for: who has no more to say, and who waits himself. */
static enum maq_status write_words(struct maq_prerequisites *f, const struct stack *stack, const char *path,
                                   struct maq_diag *diag)
{
    struct maq_contributions t;
    maq_contributions_init(&t);
    enum maq_status status = MAQ_OK;
    for (uint32_t i = 0; i < f->said.n && status == MAQ_OK; i++)
        status = maq_contributions_add(&t, &f->said.at[i], diag);
    for (uint32_t i = 0; i < stack->n && status == MAQ_OK; i++)
        status = say_ran(&t, stack->at[i].rank, WAITS, diag);
    for (uint32_t i = 0; i < f->n_ran && status == MAQ_OK; i++)
        if (f->ran[i].done)
            status = say_ran(&t, f->ran[i].rank, RAN, diag);
    maq_contributions_settle(&t);
    if (status == MAQ_OK)
        status = maq_contributions_write(&t, path, diag);
    maq_contributions_fini(&t);
    return status;
}

/* ---- one program ---- */

static enum maq_status start(struct maq_prerequisites *f, const struct stack *stack, const struct waiting *w,
                             struct maq_diag *diag)
{
    const char *peers = maq_arena_printf(&f->workspace->arena, "%s/peers", f->workspace->folder);
    if (!peers)
        return maq_no_memory(diag, "a run");
    struct maq_live_opts opts = {.rank = w->rank,
                                 .store = &f->store,
                                 .trace = w->trace,
                                 .peers = peers,
                                 .output = w->output,
                                 .inputs = w->inputs,
                                 .stall_s = f->workspace->opts->stall_s,
                                 .stall_ends = f->workspace->world <= MAQ_LAUNCH_ALL_MAX,
                                 .samples = f->samples,
                                 .stops = f->n_ran + stack->n <= RANKS_MAX && f->runs < RUNS_MAX};
    unlink(w->trace);
    unlink(w->inputs);
    MAQ_TRY(write_words(f, stack, peers, diag));
    if (f->live.workspace)
        maq_live_end(&f->live);
    if (stack->n == 1) { /* what others asked for is not in the report */
        maq_price_server_fini(&f->workspace->asks);
        maq_price_server_init(&f->workspace->asks, &f->workspace->pricer, f->workspace->world);
    }
    maq_store_close(&f->store);
    MAQ_TRY(maq_store_open(&f->store, &f->workspace->loop, f->workspace->world, 1, true, diag));
    maq_contributions_give(&f->said, &f->store, w->rank);
    return maq_live_start(&f->live, f->workspace, &opts, diag);
}

/*
 * The uppermost rank has ended. Where it failed, that may be because others say something else than was supposed, or that a group that was split
 * off has another size than was guessed; where that also ends the rank that was asked for, all have to run.
 */
static void note_failed(struct maq_prerequisites *f, const struct stack *stack)
{
    const struct waiting *w = &stack->at[stack->n - 1];
    const struct maq_unsaid_reads unsaid = maq_input_record_unsaid(w->inputs);
    const bool failed = maq_live_exit_status(&f->live) != 0, asked = stack->n == 1;
    const bool small = f->workspace->world <= MAQ_LAUNCH_FOR_FAILED_MAX;
    f->groups = asked && failed && unsaid.loose && !small;
    if (failed && (unsaid.supposed || (unsaid.loose && small)) && (asked || !unsaid.guessed) &&
        f->together_for == MAQ_REC_NONE)
        f->together_for = w->rank;
    else if (!failed && f->together_for == w->rank)
        f->together_for = MAQ_REC_NONE;
    if (failed && asked && f->together_for != MAQ_REC_NONE && small)
        f->together = MAQ_TOGETHER_SUPPOSED;
}

/* Whether to begin anew, with more members of gathers to go by: a job that is too large to be run whole. */
static bool wants_samples(const struct maq_prerequisites *f)
{
    return !f->samples && f->together == MAQ_TOGETHER_NOT && f->together_for != MAQ_REC_NONE &&
           f->workspace->world > MAQ_LAUNCH_FOR_FAILED_MAX && !f->live.late && maq_live_exit_status(&f->live) != 0;
}

/* From the beginning: what was said is of ranks that had read what others do not say. */
static void begin_anew(struct maq_prerequisites *f)
{
    maq_contributions_fini(&f->said);
    maq_contributions_init(&f->said);
    f->n_ran = 0;
    f->from_file = 0;
    f->samples = true;
    f->samples_for = f->together_for;
    f->together_for = MAQ_REC_NONE;
}

/* Runs the uppermost rank; *wants: the rank that it waits for, MAQ_REC_NONE: it ended. */
static enum maq_status run_top(struct maq_prerequisites *f, struct stack *stack, uint32_t *wants, struct maq_diag *diag)
{
    struct waiting *w = &stack->at[stack->n - 1];
    char phase[96];
    if (stack->n > 1)
        maq__snprintf(phase, sizeof phase, "rank %u first, for what rank %u reads", w->rank,
                      stack->at[stack->n - 2].rank);
    else
        maq__snprintf(phase, sizeof phase, "rank %u", w->rank);
    struct maq_live *list[] = {&f->live};
    struct maq_launch_progress at = {.phase = phase};
    MAQ_TRY(start(f, stack, w, diag));
    MAQ_TRY(maq_workspace_serve(f->workspace, list, 1, true, &at, diag));
    f->runs++;
    *wants = MAQ_REC_NONE;
    if (f->live.stalled && f->live.opts.stall_ends) {
        f->together = MAQ_TOGETHER_STALLED;
        f->together_for = w->rank;
        return MAQ_OK;
    }
    f->store_requests = f->store.requests;
    f->invented = f->store.invented;
    f->gloo = f->gloo || f->store.gloo;
    maq_contributions_fini(&w->keys);
    maq_contributions_init(&w->keys);
    MAQ_TRY(maq_contributions_add_store(&w->keys, w->rank, &f->store, diag));
    MAQ_TRY(maq_input_record_add_store(w->inputs, &f->store, diag));
    *wants = f->live.late ? MAQ_REC_NONE : maq_input_record_unsaid(w->inputs).stopped_for;
    if (!f->live.late && *wants == MAQ_REC_NONE)
        note_failed(f, stack);
    return MAQ_OK;
}

static enum maq_status push(struct maq_prerequisites *f, struct stack *stack, uint32_t rank, const char *trace,
                            struct maq_diag *diag)
{
    struct maq_arena *arena = &f->workspace->arena;
    const char *folder = f->workspace->folder;
    struct waiting *w = &stack->at[stack->n];
    *w = (struct waiting){.rank = rank,
                          .trace = trace ? trace : maq_arena_printf(arena, "%s/t%u", folder, rank),
                          .inputs = maq_arena_printf(arena, "%s/g%u", folder, rank),
                          .output = stack->n > 0 ? maq_arena_printf(arena, "%s/o%u", folder, rank) : NULL};
    maq_contributions_init(&w->keys);
    stack->n++;
    return w->trace && w->inputs && (stack->n == 1 || w->output) ? MAQ_OK : maq_no_memory(diag, "a run");
}

/* The rank as one that ran; NULL: it has not. */
static struct maq_prerequisite_rank *find(struct maq_prerequisites *f, uint32_t rank)
{
    for (uint32_t i = 0; i < f->n_ran; i++)
        if (f->ran[i].rank == rank)
            return &f->ran[i];
    return NULL;
}

static void note_ran(struct maq_prerequisites *f, const struct waiting *w)
{
    struct maq_prerequisite_rank *ran = find(f, w->rank);
    if (!ran)
        ran = &f->ran[f->n_ran++];
    *ran = (struct maq_prerequisite_rank){.rank = w->rank};
    const struct maq_unsaid_reads unsaid = maq_input_record_unsaid(w->inputs);
    ran->stopped = unsaid.stopped_for != MAQ_REC_NONE;
    if (!unsaid.guessed && !ran->stopped) /* else it may have failed for what nobody could tell it */
        ran->status = maq_live_exit_status(&f->live);
}

static bool is_waiting(const struct stack *stack, uint32_t rank)
{
    bool found = false;
    for (uint32_t i = 0; i < stack->n && !found; i++)
        found = stack->at[i].rank == rank;
    return found;
}

static enum maq_status run_stack(struct maq_prerequisites *f, struct stack *stack, struct maq_diag *diag)
{
    while (stack->n > 0) {
        struct waiting *top = &stack->at[stack->n - 1];
        uint32_t wants;
        MAQ_TRY(run_top(f, stack, &wants, diag));
        bool waits = wants != MAQ_REC_NONE, first = stack->n == 1;
        if (first && !waits && wants_samples(f)) {
            begin_anew(f);
            continue;
        }
        if ((first && !waits) || f->together != MAQ_TOGETHER_NOT)
            return MAQ_OK;
        MAQ_TRY(take_words(f, top, diag));
        if (waits && is_waiting(stack, wants)) { /* which waits for this one, and is told first what it said so far */
            note_ran(f, top);
            maq_contributions_fini(&top->keys);
            stack->n--;
            continue;
        }
        struct maq_prerequisite_rank *ran = waits ? find(f, wants) : NULL;
        if (ran && would_repeat(f, wants)) {
            ran->done = true;
            continue;
        }
        if (waits) {
            MAQ_TRY(push(f, stack, wants, NULL, diag));
            continue;
        }
        note_ran(f, top);
        maq_contributions_fini(&top->keys);
        stack->n--;
    }
    return MAQ_OK;
}

/* Writes the file. One that cannot be written is no error: the next run takes as long as this one. */
static enum maq_status keep(struct maq_prerequisites *f, struct maq_diag *diag)
{
    for (uint32_t i = 0; i < f->n_ran; i++)
        if (f->ran[i].status != 0)
            return MAQ_OK;
    for (uint32_t i = 0; i < f->n_ran; i++)
        MAQ_TRY(say_ran(&f->said, f->ran[i].rank, f->ran[i].stopped ? SAID_A_PART : RAN, diag));
    maq_contributions_settle(&f->said);
    (void)maq_contributions_write(&f->said, f->kept, NULL);
    return MAQ_OK;
}

enum maq_status maq_prerequisites_run(struct maq_prerequisites *f, uint32_t rank, const char *trace,
                                      struct maq_diag *diag)
{
    struct stack stack = {.n = 0};
    enum maq_status status = push(f, &stack, rank, trace, diag);
    if (status == MAQ_OK)
        status = run_stack(f, &stack, diag);
    for (uint32_t i = 0; i < stack.n; i++)
        maq_contributions_fini(&stack.at[i].keys);
    return status == MAQ_OK && f->n_ran > 0 && f->together == MAQ_TOGETHER_NOT && f->kept ? keep(f, diag) : status;
}

void maq_prerequisites_keep_together(const struct maq_prerequisites *f)
{
    struct maq_contributions only;
    maq_contributions_init(&only);
    if (f->kept && maq_contributions_add(&only, &(struct maq_contribution){.channel = MAQ_PEERS_TOGETHER, .bytes = ""},
                                         NULL) == MAQ_OK)
        (void)maq_contributions_write(&only, f->kept, NULL);
    maq_contributions_fini(&only);
}
