/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wait_table.c - replays a job and writes the wait table of a rank: see wait_table.h.
 *
 * A group of calls on one communicator is one wait, as it is one kernel; its parts are spans with the same times. For a
 * collective the table has the arrival of the other members, without this rank, so that a rank that is faster on its
 * GPU than in the replay does not wait for itself.
 *
 * The last whole step repeats behind the end of the table: its period is that of the replay's last two steps.
 */
#include "launch/wait_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/str.h"
#include "capture/codes.h"
#include "launch/private_folder.h"
#include "shim/link.h"

struct listed {
    uint32_t comm, nth; /* of the job; in the order of the program */
    struct maq_wait_entry entry;
};

struct list {
    const struct maq_rank_class *class;
    uint32_t member; /* of the class */
    struct listed *at;
    uint32_t n, size;
    bool failed;
};

static bool is_communication(const struct maq_rec *r)
{
    return r->kind == MAQ_REC_COLL || r->kind == MAQ_REC_SEND || r->kind == MAQ_REC_RECV;
}

static void take(const struct maq_replay_span *span, void *user)
{
    struct list *l = user;
    const struct maq_rec *r = &l->class->record[span->record];
    if (span->stream == UINT32_MAX || !is_communication(r))
        return;
    if (span->record > 0 && is_communication(r - 1) && (r[-1].flags & MAQ_REC_MORE))
        return; /* the group is listed by its first part */
    if (!maq__grow((void **)&l->at, &l->size, l->n, sizeof *l->at)) {
        l->failed = true;
        return;
    }
    int64_t own = span->start_ns, peers = span->peers_ns == INT64_MIN ? own : span->peers_ns;
    l->at[l->n] = (struct listed){
        .comm = l->class->comm[l->member * l->class->n_comms + MAQ_REC_COLL_COMM(r->id)],
        .nth = l->n,
        .entry = {.own_ns = own, .peers_ns = peers, .ns = span->end_ns - (peers > own ? peers : own)},
    };
    l->n++;
}

static int by_comm(const void *pa, const void *pb)
{
    const struct listed *a = pa, *b = pb;
    if (a->comm != b->comm)
        return a->comm < b->comm ? -1 : 1;
    return a->nth < b->nth ? -1 : a->nth > b->nth;
}

struct table {
    uint64_t lineage;
    uint32_t from, n;
};

static int by_lineage(const void *pa, const void *pb)
{
    const struct table *a = pa, *b = pb;
    return (a->lineage > b->lineage) - (a->lineage < b->lineage);
}

/* Communicators with their entries, in the order of the file. */
static uint32_t find_tables(struct table *out, const struct list *l, const struct maq_capture *job)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        if (i == 0 || l->at[i].comm != l->at[i - 1].comm)
            out[n++] = (struct table){.lineage = job->comm[l->at[i].comm].lineage, .from = i};
        out[n - 1].n++;
    }
    if (n > 0)
        qsort(out, n, sizeof *out, by_lineage);
    return n;
}

/* From where a table repeats: the first of its waits in the last step. */
static uint32_t loop_of(const struct list *l, const struct table *t, int64_t step_ns)
{
    uint32_t i = 0;
    while (i < t->n && l->at[t->from + i].entry.own_ns < step_ns)
        i++;
    return i;
}

static void put_file(struct maq_buf *b, const struct list *l, const struct table *tables, uint32_t n, uint32_t world,
                     uint32_t rank, const struct maq_replay *replay)
{
    uint32_t steps = replay->n_steps;
    int64_t last = steps >= 2 ? replay->step_end_ns[steps - 2] : INT64_MAX,
            period = steps >= 2 ? replay->step_end_ns[steps - 1] - last : 0;
    struct maq_waits_head head = {.n_comms = n, .world = world, .rank = rank};
    uint64_t at = sizeof head + n * sizeof(struct maq_waits_comm);
    memcpy(head.magic, MAQ_WAITS_MAGIC, sizeof head.magic);
    maq_buf_add(b, (const char *)&head, sizeof head);
    for (uint32_t i = 0; i < n; i++) {
        struct maq_waits_comm comm = {.lineage = tables[i].lineage,
                                      .n = tables[i].n,
                                      .loop = loop_of(l, &tables[i], last),
                                      .period_ns = period > 0 ? period : 0,
                                      .at = at};
        maq_buf_add(b, (const char *)&comm, sizeof comm);
        at += tables[i].n * sizeof(struct maq_wait_entry);
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < tables[i].n; k++)
            maq_buf_add(b, (const char *)&l->at[tables[i].from + k].entry, sizeof(struct maq_wait_entry));
}

static enum maq_status write_list(const char *path, struct list *l, const struct maq_capture *job, uint32_t rank,
                                  const struct maq_replay *replay, struct maq_diag *diag)
{
    struct maq_buf b;
    struct table *tables = maq__realloc(NULL, (l->n + 1) * sizeof *tables);
    if (!tables || l->failed) {
        free(tables);
        return MAQ_NO_MEMORY;
    }
    if (l->n > 0)
        qsort(l->at, l->n, sizeof *l->at, by_comm);
    maq_buf_init(&b, SIZE_MAX);
    put_file(&b, l, tables, find_tables(tables, l, job), job->world, rank, replay);
    enum maq_status status = b.failed ? MAQ_NO_MEMORY : maq_folder_write(path, b.ptr, b.len, diag);
    maq_buf_fini(&b);
    free(tables);
    return status;
}

enum maq_status maq_wait_table_write(const char *path, const struct maq_capture *job, uint32_t rank,
                                     const struct maq_edit *edits, uint32_t n_edits, struct maq_diag *diag)
{
    struct maq_replay_opts opts = MAQ_REPLAY_OPTS_INIT;
    struct maq_replay *replay = NULL;
    struct list l = {0};
    if (rank >= job->world || job->class_of[rank] == UINT32_MAX)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_CAPTURE_UNKNOWN_RANKS, (struct maq_span){0}, NULL,
                             "nothing is known of rank %u of %u", rank, job->world);
    l.class = &job->class_of_ranks[job->class_of[rank]];
    while (l.class->rank[l.member] != rank)
        l.member++;
    opts.edit = edits;
    opts.n_edits = n_edits;
    opts.watch_rank = &rank;
    opts.n_watch = 1;
    opts.watch = take;
    opts.user = &l;
    enum maq_status status = maq_capture_replay(&replay, job, &opts, diag);
    if (status == MAQ_OK)
        status = write_list(path, &l, job, rank, replay, diag);
    maq_replay_free(replay);
    free(l.at);
    return status;
}
