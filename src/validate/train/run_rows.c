/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_rows.c - from a row to a comparison, and all rows on a few threads.
 *
 * A worker takes the next row that nobody has; results go to the row's own slot, so that their order and values do not depend on how
 * many workers there are. A worker owns an arena for what its rows keep, and two more that are emptied after each row.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/text.h"
#include "validate/phrase.h"
#include "validate/train/interpret.h"
#include "validate/train/run.h"

struct run {
    const struct maq_row_table *table;
    struct maq_validate_row *rows;
    const bool *keep;
    atomic_uint next;
    atomic_bool no_memory;
};

struct worker {
    struct run *run;
    struct maq_arena *arena;
};

static const char *keep_str(struct maq_arena *arena, struct maq_str s, bool *failed)
{
    const char *copy = maq_arena_strdup(arena, s);
    *failed |= !copy;
    return copy ? copy : "";
}

static void describe(struct maq_validate_row *out, const struct maq_table_row *row, struct maq_arena *arena,
                     bool *failed)
{
    static const struct {
        size_t offset;
        enum maq_column column;
    } texts[] = {{offsetof(struct maq_validate_row, id), MAQ_COLUMN_id},
                 {offsetof(struct maq_validate_row, source), MAQ_COLUMN_source},
                 {offsetof(struct maq_validate_row, framework), MAQ_COLUMN_framework},
                 {offsetof(struct maq_validate_row, model), MAQ_COLUMN_model},
                 {offsetof(struct maq_validate_row, gpu), MAQ_COLUMN_gpu},
                 {offsetof(struct maq_validate_row, completeness), MAQ_COLUMN_completeness}};
    for (size_t i = 0; i < MAQ_COUNT(texts); i++) {
        const char *text = keep_str(arena, maq_row_text(row, texts[i].column), failed);
        memcpy((char *)out + texts[i].offset, &text, sizeof text);
    }
    if (maq_row_says_nothing(maq_row_text(row, MAQ_COLUMN_source)))
        out->source = "unnamed"; /* rows of one's own are a source, too */
    out->why = "";
    out->job = "";
    *failed |= !maq__validate_label_text(out, arena);
}

/* Both metrics get the reason, but for those that were not measured. */
static void skip_row(struct maq_validate_row *out, enum maq_validate_skip skip, const char *why)
{
    for (int m = 0; m < MAQ_VALIDATE_METRIC_COUNT; m++)
        if (out->points[m].skip == MAQ_VALIDATE_SKIP_NONE)
            out->points[m].skip = skip;
    out->why = why;
}

/* Seconds per step: as stated, or from the rate of one GPU [tokens/s]: gbs seq_len / (num_gpus rate). 0 = not measured. */
static double measured_time(struct maq_table_row *row)
{
    static const enum maq_column times[] = {MAQ_COLUMN_derived_iter_time_s, MAQ_COLUMN_iter_time_s},
                                 rates[] = {MAQ_COLUMN_tokens_per_s_per_gpu, MAQ_COLUMN_derived_tokens_per_s_per_gpu};
    for (size_t i = 0; i < MAQ_COUNT(times); i++) {
        double time = maq_row_double(row, times[i], 0);
        if (time > 0)
            return time;
    }
    double tokens = (double)maq_row_int(row, MAQ_COLUMN_gbs, 0) * (double)maq_row_int(row, MAQ_COLUMN_seq_len, 0);
    for (size_t i = 0; i < MAQ_COUNT(rates); i++) {
        double rate = maq_row_double(row, rates[i], 0) * (double)maq_row_int(row, MAQ_COLUMN_num_gpus, 0);
        if (rate > 0)
            return tokens / rate;
    }
    return 0;
}

static bool is_flagged(struct maq_str flag)
{
    return !maq_row_says_nothing(flag) && !maq__phrase_in(flag, "^none|^no|^ok|^0|^false|^pass*", NULL);
}

/* A measurement that is there and cannot be read, which row->bad says, is not one that is missing. */
static const char *unreadable(struct maq_validate_row *out, const struct maq_table_row *row, struct maq_arena *arena,
                              bool *failed)
{
    char cell[MAQ_SHOW_SIZE];
    bool memory = row->bad == MAQ_COLUMN_peak_mem_gb;
    bool time = row->bad == MAQ_COLUMN_derived_iter_time_s || row->bad == MAQ_COLUMN_iter_time_s ||
                row->bad == MAQ_COLUMN_tokens_per_s_per_gpu || row->bad == MAQ_COLUMN_derived_tokens_per_s_per_gpu;
    struct maq_validate_point *p = &out->points[memory ? MAQ_VALIDATE_MEMORY : MAQ_VALIDATE_TIME];
    if ((!memory && !time) || p->skip != MAQ_VALIDATE_SKIP_NOT_MEASURED)
        return "";
    p->skip = MAQ_VALIDATE_SKIP_UNREADABLE;
    const char *why = maq_arena_printf(arena, "%s '%s'", maq_column_name((enum maq_column)row->bad),
                                       maq_str_show(cell, maq_row_text(row, (enum maq_column)row->bad)));
    *failed |= !why;
    return why ? why : "";
}

/* What was measured. A qa_flag is about the time: the memory of such a row counts. */
static void read_measured(struct maq_validate_row *out, struct maq_table_row *row)
{
    double unit, time = measured_time(row), memory = maq_row_double(row, MAQ_COLUMN_peak_mem_gb, 0);
    struct maq_validate_point *t = &out->points[MAQ_VALIDATE_TIME], *m = &out->points[MAQ_VALIDATE_MEMORY];
    out->mem_kind = maq_interpret_memory(row, &unit);
    t->measured = time;
    m->measured = memory * unit;
    t->skip = time > 0 ? MAQ_VALIDATE_SKIP_NONE : MAQ_VALIDATE_SKIP_NOT_MEASURED;
    m->skip = memory > 0 ? MAQ_VALIDATE_SKIP_NONE : MAQ_VALIDATE_SKIP_NOT_MEASURED;
    if (t->skip == MAQ_VALIDATE_SKIP_NONE && is_flagged(maq_row_text(row, MAQ_COLUMN_qa_flag)))
        t->skip = MAQ_VALIDATE_SKIP_FLAGGED;
}

static bool anything_left(const struct maq_validate_row *out)
{
    bool left = false;
    for (int m = 0; m < MAQ_VALIDATE_METRIC_COUNT; m++)
        left |= out->points[m].skip == MAQ_VALIDATE_SKIP_NONE;
    return left;
}

static double memory_of(const struct maq_stage_result *s, enum maq_validate_memory kind)
{
    switch (kind) {
    case MAQ_VALIDATE_ALLOCATED:
        return s->allocated_bytes;
    case MAQ_VALIDATE_RESERVED:
        return s->reserved_bytes;
    case MAQ_VALIDATE_TOTAL:
    default:
        return s->total_bytes;
    }
}

/* Layers of the fullest stage times microbatches: how often the host starts a layer's forward pass. */
static double passes_of(const struct maq_job *job)
{
    double most = 0;
    for (int32_t stage = 0; stage < job->plan.pp; stage++) {
        double layers = 0;
        for (uint32_t v = 0; v < job->n_virtual; v++)
            layers += job->virtual_stages[v].stage == stage ? job->virtual_stages[v].n_layers : 0;
        most = layers > most ? layers : most;
    }
    return most * job->microbatches;
}

static void compare(struct maq_validate_row *out, const struct maq_train_result *r)
{
    const struct maq_stage_result *most = &r->stages[0];
    for (uint32_t i = 1; i < r->n_stages; i++)
        if (memory_of(&r->stages[i], out->mem_kind) > memory_of(most, out->mem_kind))
            most = &r->stages[i];
    out->points[MAQ_VALIDATE_TIME].predicted = r->step_s;
    out->points[MAQ_VALIDATE_MEMORY].predicted = memory_of(most, out->mem_kind);
    for (int m = 0; m < MAQ_VALIDATE_METRIC_COUNT; m++)
        if (out->points[m].skip == MAQ_VALIDATE_SKIP_NONE)
            out->points[m].error = out->points[m].predicted / out->points[m].measured - 1;
    out->tokens = r->tokens_per_s * r->step_s;
    out->hardware_flop = r->hardware_flop;
    out->peak_flops = r->peak_flops;
    out->passes = passes_of(r->job);
    out->low[MAQ_VALIDATE_TIME] = r->step_low_s;
    out->high[MAQ_VALIDATE_TIME] = r->step_high_s;
    out->low[MAQ_VALIDATE_MEMORY] = r->memory_low * memory_of(most, out->mem_kind);
    out->high[MAQ_VALIDATE_MEMORY] = r->memory_high * memory_of(most, out->mem_kind);
    memcpy(out->regime, r->regime, sizeof out->regime);
    for (int b = 0; b < MAQ_BUCKET_COUNT; b++)
        out->bucket_share[b] = r->step_s > 0 ? r->bucket_s[b] / r->step_s : 0;
    memcpy(out->mem_bytes, most->bytes, sizeof out->mem_bytes);
    out->fits = r->fits;
    out->simulated = true;
}

/* First error of a refused job, as one line. */
static const char *first_error(const struct maq_diag *diag, struct maq_arena *arena, bool *failed)
{
    for (size_t i = 0; i < maq_diag_count(diag); i++)
        if (maq_diag_at(diag, i)->severity == MAQ_ERROR)
            return keep_str(arena, maq_diag_at(diag, i)->msg, failed);
    return "";
}

static void simulate(struct maq_validate_row *out, struct maq_arena *arena, bool *failed)
{
    struct maq_diag *diag = maq_diag_new();
    struct maq_loaded_job *loaded = NULL;
    struct maq_train_result *result = NULL;
    if (!diag) {
        *failed = true;
        return;
    }
    enum maq_status status = maq_job_parse(&loaded, "row", maq_str_of(out->job), NULL, 0, diag);
    if (status == MAQ_OK) {
        *failed |= !maq__validate_label_job(out, maq_job_get(loaded), arena);
        status = maq_train_predict(&result, maq_job_get(loaded), diag);
        if (status == MAQ_OK)
            compare(out, result);
        else
            skip_row(out, MAQ_VALIDATE_SKIP_FAILED, first_error(diag, arena, failed));
        maq_train_result_free(result);
    } else {
        skip_row(out, MAQ_VALIDATE_SKIP_REFUSED, first_error(diag, arena, failed));
    }
    *failed |= status == MAQ_NO_MEMORY;
    maq_job_free(loaded);
    maq_diag_free(diag);
}

static void keep_assumed(struct maq_validate_row *out, const struct maq_interpretation *in, struct maq_arena *arena,
                         bool *failed)
{
    const char **list = MAQ_ARENA_NEW(arena, const char *, in->n_assumed);
    if (!list) {
        *failed = true;
        return;
    }
    if (in->n_assumed > 0)
        memcpy(list, in->assumed, in->n_assumed * sizeof list[0]);
    out->assumed = list;
    out->n_assumed = in->n_assumed;
}

static void run_one(struct maq_validate_row *out, struct maq_interpretation *in, struct maq_arena *arena, bool *failed)
{
    out->devices = (uint32_t)(in->devices > 0 ? in->devices : 0);
    keep_assumed(out, in, arena, failed);
    *failed |= in->failed;
    if (in->skip != MAQ_VALIDATE_SKIP_NONE) {
        skip_row(out, in->skip, in->why);
        return;
    }
    const char *job = maq_interpret_job(in);
    *failed |= !job;
    out->job = job ? job : "";
    if (job)
        simulate(out, arena, failed);
}

static int by_time(const void *pa, const void *pb)
{
    double a = ((const struct maq_validate_row *)pa)->points[MAQ_VALIDATE_TIME].predicted,
           b = ((const struct maq_validate_row *)pb)->points[MAQ_VALIDATE_TIME].predicted;
    return (a > b) - (a < b);
}

/* Predictions of a row that leaves something open, and of those the ones that fit in memory. */
struct choices {
    struct maq_validate_row at[MAQ_INTERPRET_BATCHES * MAQ_INTERPRET_CHUNKS], refused;
    uint32_t n;
};

static void add_choice(struct choices *choices, const struct maq_validate_row *row, struct maq_interpretation *in,
                       bool *failed)
{
    struct maq_validate_row one = *row;
    run_one(&one, in, in->arena, failed);
    if (one.simulated)
        choices->at[choices->n++] = one;
    else
        choices->refused = one;
}

/* With so many sequences in a microbatch, 0 where that is stated: once, or for every number of model chunks. */
static void add_choices(struct choices *choices, const struct maq_validate_row *row,
                        const struct maq_interpretation *first, int64_t sequences, bool *failed)
{
    struct maq_interpretation in = {.row = first->row, .arena = first->arena, .mbs_chosen = sequences};
    maq_interpret_row(&in);
    if (in.skip != MAQ_VALIDATE_SKIP_NONE || in.n_chunks == 0) {
        add_choice(choices, row, &in, failed);
        return;
    }
    for (uint32_t i = 0; i < in.n_chunks; i++) {
        struct maq_interpretation one = {
            .row = first->row, .arena = first->arena, .mbs_chosen = sequences, .vp_chosen = in.chunks[i]};
        maq_interpret_row(&one);
        add_choice(choices, row, &one, failed);
    }
}

/* Who trains takes a microbatch that fits. */
static void keep_what_fits(struct choices *choices)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < choices->n; i++)
        if (choices->at[i].fits)
            choices->at[n++] = choices->at[i];
    choices->n = n > 0 ? n : choices->n;
}

/* A row that may have had several microbatches or numbers of model chunks: the one in the middle by time, with an interval over all. */
static void run_choices(struct maq_validate_row *out, const struct maq_interpretation *first, bool *failed)
{
    struct choices choices = {.n = 0};
    for (uint32_t i = 0; i < first->n_batches; i++)
        add_choices(&choices, out, first, first->batches[i], failed);
    if (first->n_batches == 0)
        add_choices(&choices, out, first, 0, failed);
    else
        keep_what_fits(&choices);
    if (choices.n == 0) {
        *out = choices.refused;
        return;
    }
    qsort(choices.at, choices.n, sizeof choices.at[0], by_time);
    *out = choices.at[(choices.n - 1) / 2];
    for (uint32_t i = 0; i < choices.n; i++)
        for (int m = 0; m < MAQ_VALIDATE_METRIC_COUNT; m++) {
            out->low[m] = choices.at[i].low[m] < out->low[m] ? choices.at[i].low[m] : out->low[m];
            out->high[m] = choices.at[i].high[m] > out->high[m] ? choices.at[i].high[m] : out->high[m];
        }
}

static void run_row(struct maq_validate_row *out, const struct maq_table_row *row, struct maq_arena *arena,
                    bool *failed)
{
    struct maq_interpretation in = {.row = *row, .arena = arena};
    read_measured(out, &in.row);
    out->why = unreadable(out, &in.row, arena, failed);
    if (maq__phrase_in(maq_row_text(row, MAQ_COLUMN_completeness), "partial", NULL))
        skip_row(out, MAQ_VALIDATE_SKIP_PARTIAL, "");
    if (!anything_left(out))
        return;
    maq_interpret_row(&in);
    if (in.skip == MAQ_VALIDATE_SKIP_NONE && (in.n_chunks > 1 || in.n_batches > 1))
        run_choices(out, &in, failed);
    else
        run_one(out, &in, arena, failed);
}

static void *work(void *user)
{
    struct worker *w = user;
    struct run *run = w->run;
    uint32_t i;
    while ((i = atomic_fetch_add(&run->next, 1)) < run->table->csv.n_rows) {
        struct maq_table_row row = {.table = run->table, .row = i, .bad = -1};
        bool failed = false;
        describe(&run->rows[i], &row, w->arena, &failed);
        if (run->keep[i])
            run_row(&run->rows[i], &row, w->arena, &failed);
        else
            skip_row(&run->rows[i], MAQ_VALIDATE_SKIP_FILTERED, "");
        if (failed)
            atomic_store(&run->no_memory, true);
    }
    return NULL;
}

static uint32_t count_threads(uint32_t asked, uint32_t rows)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t n = asked > 0 ? asked : cores > 0 ? (uint32_t)cores : 1;
    if (n > rows / 8 + 1)
        n = rows / 8 + 1;
    return n < MAQ_VALIDATE_MAX_THREADS ? n : MAQ_VALIDATE_MAX_THREADS;
}

enum maq_status maq__validate_run(struct maq_validate_owner *owner, struct maq_validate_row *rows, const bool *keep,
                                  const struct maq_row_table *table, uint32_t threads, struct maq_diag *diag)
{
    struct run run = {.table = table, .rows = rows, .keep = keep};
    struct worker workers[MAQ_VALIDATE_MAX_THREADS] = {{0}}, here = {&run, &owner->workers[0]};
    pthread_t ids[MAQ_VALIDATE_MAX_THREADS];
    uint32_t started = 1;
    owner->n_workers = count_threads(threads, table->csv.n_rows);
    for (uint32_t i = 0; i < owner->n_workers; i++) {
        maq_arena_init(&owner->workers[i], 0);
        workers[i] = (struct worker){&run, &owner->workers[i]};
    }
    while (started < owner->n_workers && pthread_create(&ids[started], NULL, work, &workers[started]) == 0)
        started++; /* fewer threads than wanted do the same work */
    work(&here);
    for (uint32_t i = 1; i < started; i++)
        pthread_join(ids[i], NULL);
    if (atomic_load(&run.no_memory))
        return maq_no_memory(diag, "the rows");
    return MAQ_OK;
}
