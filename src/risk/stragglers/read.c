/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read.c - a recorded job from a table of operations and a document with its shape.
 *
 * Columns: step, dp_rank, pp_stage, op, start_us, dur_us; model_chunk where stages have several. The layout is that of the traces
 * published with "Understanding stragglers in large model training using what-if analysis" (OSDI'25), where the duration of a
 * transfer is that of the transfer alone. An operation of an unknown name runs on the compute stream of its worker.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/codes.h"
#include "base/str.h"
#include "base/text.h"
#include "risk/codes.h"
#include "risk/csv_table.h"
#include "risk/stragglers/replay.h"
#include "spec/doc.h"

#define MAX_OPS (UINT32_C(1) << 28)
#define MAX_SIDE 65536u

static const struct maq_span nowhere;

static const struct maq_replay_type known[] = {
    {"forward-compute", MAQ_REPLAY_FORWARD, false},
    {"backward-compute", MAQ_REPLAY_BACKWARD, false},
    {"forward-send", MAQ_REPLAY_FORWARD_SEND, true},
    {"forward-recv", MAQ_REPLAY_FORWARD_RECV, true},
    {"backward-send", MAQ_REPLAY_BACKWARD_SEND, true},
    {"backward-recv", MAQ_REPLAY_BACKWARD_RECV, true},
    {"params-all-gather", MAQ_REPLAY_GATHER, true},
    {"grads-reduce-scatter", MAQ_REPLAY_REDUCE, true},
    {"grads-all-reduce", MAQ_REPLAY_REDUCE, true},
    {"embedding-grads-all-reduce", MAQ_REPLAY_EMBEDDING, true},
    {"layernorm-grads-all-reduce", MAQ_REPLAY_LOCAL, true},
    {"optimizer-clip-main-grad", MAQ_REPLAY_NORM, true},
    {"optimizer", MAQ_REPLAY_UPDATE, false},
};

/* --- shape ----------------------------------------------------------------------------------------------------------- */

static enum maq_status read_side(uint32_t *out, struct maq_doc *doc, const char *key, int64_t otherwise,
                                 const char *path, struct maq_diag *diag)
{
    struct maq_node *node = maq_node_get(doc->root, key);
    int64_t value = otherwise;
    if (node && !maq_node_i64(&value, node, diag))
        return MAQ_BAD_INPUT;
    if (!node && otherwise < 1)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_RISK_SHAPE, nowhere,
                             "the shape is dp_size, pp_size and vpp_size", "%s: %s is missing", path, key);
    if (node && (value < 1 || value > MAX_SIDE))
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_RISK_SHAPE, node->at,
                             "the shape is dp_size, pp_size and vpp_size", "%s: %s is %lld; it is 1 to %u", path, key,
                             (long long)value, MAX_SIDE);
    *out = (uint32_t)value;
    return MAQ_OK;
}

static enum maq_status read_shape(struct maq_replay_trace *out, const char *path, struct maq_diag *diag)
{
    struct maq_doc doc;
    MAQ_TRY(maq_doc_load(&doc, path, MAQ_ORIGIN_DOCUMENT, diag));
    enum maq_status status = MAQ_OK;
    if (!doc.root || doc.root->kind != MAQ_NODE_MAP)
        status = maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_RISK_SHAPE, nowhere, NULL, "%s: not a map of sizes", path);
    if (status == MAQ_OK)
        status = read_side(&out->dp, &doc, "dp_size", 0, path, diag);
    if (status == MAQ_OK)
        status = read_side(&out->pp, &doc, "pp_size", 0, path, diag);
    if (status == MAQ_OK)
        status = read_side(&out->chunks, &doc, "vpp_size", 1, path, diag);
    maq_doc_fini(&doc);
    if (status == MAQ_OK && (uint64_t)out->dp * out->pp > (1u << 24))
        status = maq_diag_fail(MAQ_LIMIT, diag, MAQ_CODE_RISK_LIMIT, nowhere, NULL, "%s: too many workers", path);
    return status;
}

/* --- operations ------------------------------------------------------------------------------------------------------ */

static enum maq_status find_type(uint16_t *out, struct maq_replay_trace *t, struct maq_str name,
                                 const struct maq_csv_table *rows)
{
    char shown[MAQ_SHOW_SIZE];
    for (uint32_t i = 0; i < t->n_types; i++)
        if (maq_str_is(name, t->type[i].name)) {
            *out = (uint16_t)i;
            return MAQ_OK;
        }
    if (t->n_types == MAQ_REPLAY_TYPES || name.len >= sizeof t->type[0].name || name.len == 0)
        return maq_diag_fail(MAQ_BAD_INPUT, rows->diag, MAQ_CODE_RISK_ROW, nowhere, NULL,
                             "%s:%llu: '%s' is no kind of operation, or one kind too many", rows->path,
                             (unsigned long long)rows->number, maq_str_show(shown, name));
    struct maq_replay_type type = {.role = MAQ_REPLAY_OTHER};
    memcpy(type.name, name.ptr, name.len);
    for (size_t i = 0; i < MAQ_COUNT(known); i++)
        if (maq_str_is(name, known[i].name))
            type = known[i];
    t->type[t->n_types] = type;
    *out = (uint16_t)t->n_types++;
    return MAQ_OK;
}

struct columns {
    uint32_t step, dp, stage, op, chunk, start, dur;
};

static enum maq_status find_columns(struct columns *c, const struct maq_csv_table *rows)
{
    MAQ_TRY(maq_rows_need(&c->step, rows, "step"));
    MAQ_TRY(maq_rows_need(&c->dp, rows, "dp_rank"));
    MAQ_TRY(maq_rows_need(&c->stage, rows, "pp_stage"));
    MAQ_TRY(maq_rows_need(&c->op, rows, "op"));
    MAQ_TRY(maq_rows_need(&c->start, rows, "start_us"));
    MAQ_TRY(maq_rows_need(&c->dur, rows, "dur_us"));
    c->chunk = maq_rows_column(rows, "model_chunk");
    return MAQ_OK;
}

static enum maq_status read_op(struct maq_replay_op *out, struct maq_replay_trace *t, const struct maq_csv_table *rows,
                               const struct columns *c)
{
    uint32_t dp, stage;
    double chunk = -1;
    MAQ_TRY(maq_rows_whole(&out->step, rows, c->step, UINT32_MAX - 1));
    MAQ_TRY(maq_rows_whole(&dp, rows, c->dp, t->dp - 1));
    MAQ_TRY(maq_rows_whole(&stage, rows, c->stage, t->pp - 1));
    MAQ_TRY(maq_rows_real(&out->start_us, rows, c->start));
    MAQ_TRY(maq_rows_real(&out->dur_us, rows, c->dur));
    if (c->chunk != MAQ_NO_COLUMN)
        MAQ_TRY(maq_rows_real(&chunk, rows, c->chunk));
    if (out->dur_us < 0 || out->dur_us > 1e15 || fabs(out->start_us) > 1e15 || chunk < -1 || chunk >= t->chunks)
        return maq_diag_fail(MAQ_BAD_INPUT, rows->diag, MAQ_CODE_RISK_ROW, nowhere, NULL,
                             "%s:%llu: a start, a duration or a chunk that cannot be", rows->path,
                             (unsigned long long)rows->number);
    out->chunk = (int16_t)chunk;
    out->worker = dp * t->pp + stage;
    return find_type(&out->type, t, rows->field[c->op], rows);
}

/* An operation with its place in the file, for a total order. */
struct entry {
    struct maq_replay_op op;
    uint32_t at;
};

static int in_order(const void *pa, const void *pb)
{
    const struct entry *a = pa, *b = pb;
    if (a->op.step != b->op.step)
        return a->op.step < b->op.step ? -1 : 1;
    if (a->op.worker != b->op.worker)
        return a->op.worker < b->op.worker ? -1 : 1;
    if (a->op.start_us < b->op.start_us || b->op.start_us < a->op.start_us)
        return a->op.start_us < b->op.start_us ? -1 : 1;
    return (a->at > b->at) - (a->at < b->at);
}

static enum maq_status read_ops(struct entry **held, struct maq_replay_trace *t, struct maq_csv_table *rows)
{
    struct columns c;
    uint32_t size = 0;
    bool more;
    MAQ_TRY(find_columns(&c, rows));
    for (;;) {
        MAQ_TRY(maq_rows_next(&more, rows));
        if (!more)
            return MAQ_OK;
        if (t->n_ops == size) {
            uint32_t next = size * 2 + 4096;
            struct entry *grown = next < MAX_OPS ? maq__realloc(*held, next * sizeof **held) : NULL;
            if (!grown)
                return maq_diag_fail(next < MAX_OPS ? MAQ_NO_MEMORY : MAQ_LIMIT, rows->diag, MAQ_CODE_RISK_LIMIT,
                                     nowhere, NULL, "%s: more operations than can be held", rows->path);
            *held = grown;
            size = next;
        }
        MAQ_ASSERT(*held);
        struct entry *e = &(*held)[t->n_ops];
        *e = (struct entry){.at = t->n_ops};
        MAQ_TRY(read_op(&e->op, t, rows, &c));
        t->n_ops++;
    }
}

static enum maq_status keep(struct maq_replay_trace *t, struct entry *held, const char *path, struct maq_arena *arena,
                            struct maq_diag *diag)
{
    if (t->n_ops == 0)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_RISK_SHORT, nowhere, NULL, "%s: no operations", path);
    MAQ_ASSERT(held);
    qsort(held, t->n_ops, sizeof *held, in_order);
    for (uint32_t i = 0; i < t->n_ops; i++)
        t->n_steps += i == 0 || held[i].op.step != held[i - 1].op.step;
    t->ops = MAQ_ARENA_NEW(arena, struct maq_replay_op, t->n_ops);
    t->first = MAQ_ARENA_NEW(arena, uint32_t, t->n_steps + 1);
    t->steps = MAQ_ARENA_NEW(arena, uint32_t, t->n_steps);
    if (!t->ops || !t->first || !t->steps)
        return maq_diag_fail(MAQ_NO_MEMORY, diag, MAQ_CODE_NO_MEMORY, nowhere, NULL, "out of memory for %s", path);
    for (uint32_t i = 0, s = 0; i < t->n_ops; i++) {
        t->ops[i] = held[i].op;
        if (i == 0 || held[i].op.step != held[i - 1].op.step) {
            t->first[s] = i;
            t->steps[s++] = held[i].op.step;
        }
        t->ops[i].step = s - 1;
    }
    t->first[t->n_steps] = t->n_ops;
    return MAQ_OK;
}

enum maq_status maq_replay_read(struct maq_replay_trace *out, const char *ops, const char *meta,
                                struct maq_arena *arena, struct maq_diag *diag)
{
    struct entry *held = NULL;
    struct maq_csv_table *rows = MAQ_ARENA_NEW(arena, struct maq_csv_table, 1);
    *out = (struct maq_replay_trace){0};
    if (!rows)
        return maq_no_memory(diag, NULL);
    MAQ_TRY(read_shape(out, meta, diag));
    enum maq_status status = maq_rows_open(rows, ops, diag);
    if (status == MAQ_OK)
        status = read_ops(&held, out, rows);
    if (status == MAQ_OK)
        status = keep(out, held, ops, arena, diag);
    maq_rows_close(rows);
    free(held);
    return status;
}
