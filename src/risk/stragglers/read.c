/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read.c - a recorded job from a table of operations and a document with its shape.
 *
 * Columns: step, dp_rank, pp_stage, op, start_us, dur_us; model_chunk where stages have several. The layout is that of the traces
 * published with "Understanding stragglers in large model training using what-if analysis" (OSDI'25), where the duration of a
 * transfer is that of the transfer alone. An operation of an unknown name runs on the compute stream of its worker. Rows that cannot be
 * are left out or mended (mend.c), and so are steps whose operations wait for each other.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/codes.h"
#include "base/hash.h"
#include "base/str.h"
#include "base/text.h"
#include "risk/codes.h"
#include "risk/csv_table.h"
#include "risk/stragglers/replay.h"
#include "spec/doc.h"

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
                                 struct maq_csv_table *rows)
{
    char shown[MAQ_SHOW_SIZE];
    for (uint32_t i = 0; i < t->n_types; i++)
        if (maq_str_is(name, t->type[i].name)) {
            *out = (uint16_t)i;
            return MAQ_OK;
        }
    if (t->n_types == MAQ_REPLAY_TYPES || name.len >= sizeof t->type[0].name || name.len == 0) {
        MAQ_TRY(maq_mend(&rows->mended, MAQ_MEND_VALUE, rows->number, MAQ_CODE_RISK_ROW,
                         "%s:%llu: '%s' is no kind of operation, or one kind too many", rows->path,
                         (unsigned long long)rows->number, maq_str_show(shown, name)));
        return MAQ_NO;
    }
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

/* MAQ_NO: the row is left out. */
static enum maq_status read_op(struct maq_replay_op *out, struct maq_replay_trace *t, struct maq_csv_table *rows,
                               const struct columns *c)
{
    unsigned long long line = rows->number;
    uint32_t dp, stage;
    double chunk = -1;
    MAQ_TRY(maq_rows_whole(&out->step, rows, c->step, UINT32_MAX - 1));
    MAQ_TRY(maq_rows_whole(&dp, rows, c->dp, t->dp - 1));
    MAQ_TRY(maq_rows_whole(&stage, rows, c->stage, t->pp - 1));
    MAQ_TRY(maq_rows_real(&out->start_us, rows, c->start));
    MAQ_TRY(maq_rows_real(&out->dur_us, rows, c->dur));
    if (c->chunk != MAQ_NO_COLUMN)
        MAQ_TRY(maq_rows_real(&chunk, rows, c->chunk));
    if (fabs(out->dur_us) > 1e15 || fabs(out->start_us) > 1e15 || !(chunk >= -1 && chunk < t->chunks)) {
        MAQ_TRY(maq_mend(&rows->mended, MAQ_MEND_VALUE, rows->number, MAQ_CODE_RISK_ROW,
                         "%s:%llu: a start, a duration or a chunk that cannot be", rows->path, line));
        return MAQ_NO;
    }
    if (out->dur_us < 0)
        MAQ_TRY(maq_mend(&rows->mended, MAQ_MEND_NEGATIVE, rows->number, MAQ_CODE_RISK_ROW,
                         "%s:%llu: a duration of %g us", rows->path, line, out->dur_us));
    out->chunk = (int16_t)chunk;
    out->worker = dp * t->pp + stage;
    return find_type(&out->type, t, rows->field[c->op], rows);
}

bool maq_replay_rows_add(struct maq_replay_rows *rows, const struct maq_replay_row *row)
{
    if (rows->n == rows->size) {
        uint32_t size = rows->size * 2 + 4096;
        struct maq_replay_row *grown =
            size < MAQ_REPLAY_MOST_OPS ? maq__realloc(rows->row, size * sizeof *rows->row) : NULL;
        if (!grown)
            return false;
        rows->row = grown;
        rows->size = size;
    }
    rows->row[rows->n++] = *row;
    return true;
}

static uint64_t hash_of(const char *text)
{
    uint64_t h = 0;
    for (size_t n = strlen(text), i = 0; i < n; i += 8) {
        uint64_t word[2] = {h};
        memcpy(&word[1], text + i, n - i < 8 ? n - i : 8);
        h = maq_hash_words(word, sizeof word);
    }
    return h;
}

static enum maq_status read_ops(struct maq_replay_rows *rows, struct maq_replay_trace *t, struct maq_csv_table *table)
{
    struct columns c;
    bool more;
    MAQ_TRY(find_columns(&c, table));
    for (;;) {
        struct maq_replay_row row = {.op = {.step = 0}};
        MAQ_TRY(maq_rows_next(&more, table));
        if (!more)
            return MAQ_OK;
        enum maq_status status = read_op(&row.op, t, table, &c);
        if (status == MAQ_NO)
            continue;
        MAQ_TRY(status);
        row.at = table->number < UINT32_MAX ? (uint32_t)table->number : UINT32_MAX;
        row.hash = hash_of(table->line);
        if (!maq_replay_rows_add(rows, &row))
            return maq_diag_fail(rows->size * 2 < MAQ_REPLAY_MOST_OPS ? MAQ_NO_MEMORY : MAQ_LIMIT, table->diag,
                                 MAQ_CODE_RISK_LIMIT, nowhere, NULL, "%s: more operations than can be held",
                                 table->path);
    }
}

static enum maq_status keep(struct maq_replay_trace *t, const struct maq_replay_rows *rows, const char *path,
                            struct maq_arena *arena, struct maq_diag *diag)
{
    t->n_ops = rows->n;
    if (t->n_ops == 0)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_RISK_SHORT, nowhere, NULL, "%s: no operations", path);
    MAQ_ASSERT(rows->row);
    for (uint32_t i = 0; i < t->n_ops; i++)
        t->n_steps += i == 0 || rows->row[i].op.step != rows->row[i - 1].op.step;
    t->ops = MAQ_ARENA_NEW(arena, struct maq_replay_op, t->n_ops);
    t->first = MAQ_ARENA_NEW(arena, uint32_t, t->n_steps + 1);
    t->steps = MAQ_ARENA_NEW(arena, uint32_t, t->n_steps);
    if (!t->ops || !t->first || !t->steps)
        return maq_diag_fail(MAQ_NO_MEMORY, diag, MAQ_CODE_NO_MEMORY, nowhere, NULL, "out of memory for %s", path);
    for (uint32_t i = 0, s = 0; i < t->n_ops; i++) {
        t->ops[i] = rows->row[i].op;
        if (i == 0 || rows->row[i].op.step != rows->row[i - 1].op.step) {
            t->first[s] = i;
            t->steps[s++] = rows->row[i].op.step;
        }
        t->ops[i].step = s - 1;
    }
    t->first[t->n_steps] = t->n_ops;
    return MAQ_OK;
}

/* Takes out the steps whose operations wait for each other; one that is left alone is refused. */
static enum maq_status drop_steps(struct maq_replay_trace *t, struct maq_mending *m, struct maq_arena *arena,
                                  struct maq_diag *diag)
{
    uint32_t kept = 0, ops = 0;
    for (uint32_t s = 0; s < t->n_steps; s++) {
        uint32_t from = t->first[s], to = t->first[s + 1];
        struct maq_arena_mark mark = maq_arena_mark(arena);
        struct maq_replay_graph g;
        enum maq_status status = maq_replay_order(&g, t, s, arena, NULL);
        maq_arena_reset(arena, mark);
        if (status == MAQ_BAD_INPUT && (kept > 0 || s + 1 < t->n_steps)) {
            MAQ_TRY(maq_mend(m, MAQ_MEND_STEP, 0, MAQ_CODE_RISK_TRACE, "%s: step %u: operations wait for each other",
                             m->path, t->steps[s]));
            continue;
        }
        if (status != MAQ_OK)
            return maq_replay_order(&g, t, s, arena, diag);
        for (uint32_t i = from; i < to; i++) {
            t->ops[ops + i - from] = t->ops[i];
            t->ops[ops + i - from].step = kept;
        }
        t->steps[kept] = t->steps[s];
        t->first[kept++] = ops;
        ops += to - from;
    }
    t->first[kept] = ops;
    t->n_ops = ops;
    t->n_steps = kept;
    return MAQ_OK;
}

enum maq_status maq_replay_read(struct maq_replay_trace *out, const char *ops, const char *meta,
                                struct maq_arena *arena, struct maq_diag *diag)
{
    struct maq_replay_rows rows = {0};
    struct maq_csv_table *table = MAQ_ARENA_NEW(arena, struct maq_csv_table, 1);
    *out = (struct maq_replay_trace){0};
    if (!table)
        return maq_no_memory(diag, NULL);
    MAQ_TRY(read_shape(out, meta, diag));
    enum maq_status status = maq_rows_open_recorded(table, ops, diag);
    if (status == MAQ_OK)
        status = read_ops(&rows, out, table);
    if (status == MAQ_OK)
        status = maq_replay_mend(&rows, out, &table->mended, arena);
    if (status == MAQ_OK && rows.n == 0)
        status = maq_mending_end(&table->mended, 0);
    if (status == MAQ_OK)
        status = keep(out, &rows, ops, arena, diag);
    free(rows.row);
    if (status == MAQ_OK)
        status = drop_steps(out, &table->mended, arena, diag);
    if (status == MAQ_OK)
        status = maq_mending_end(&table->mended, rows.n);
    maq_rows_close(table);
    return status;
}
