/* SPDX-License-Identifier: Apache-2.0 */
/*
 * muon.c - the update of weight matrices by Muon: lists the matrices of a stage by shape, deals them to ranks, and
 * writes their iterations as matrix products. See muon.h.
 */
#include "train/step/muon.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "lower/local.h"

#define SHAPES 64 /* different ones of a stage; more are counted as the last of them */
#define LOOPS 64  /* products that are written down one by one; more of them together */

/* Equal matrices of a rank: m <= n, in the words of muon.h. */
struct shape {
    int64_t m, n;
    uint32_t count;
    bool expert; /* shared by the ranks that hold the same experts */
    bool cut;    /* by TP: gathered first */
};

struct shapes {
    struct shape at[SHAPES];
    uint32_t n;
};

bool maq_muon_updates(const struct maq_module *m)
{
    bool matrix = m->kind == MAQ_MODULE_LINEAR || m->kind == MAQ_MODULE_ROUTER || m->kind == MAQ_MODULE_EXPERT_LINEAR;
    return matrix && m->part != MAQ_PART_OUTPUT && m->params > 0;
}

static void add(struct shapes *s, int64_t in, int64_t out, uint32_t count, bool expert, bool cut)
{
    struct shape x = {.m = in < out ? in : out, .n = in < out ? out : in, .count = count, .expert = expert, .cut = cut};
    uint32_t i = 0;
    while (i < s->n && (s->at[i].m != x.m || s->at[i].n != x.n || s->at[i].expert != expert || s->at[i].cut != cut))
        i++;
    if (i < s->n || i == SHAPES) {
        s->at[i < s->n ? i : SHAPES - 1].count += count;
        return;
    }
    s->at[s->n++] = x;
}

/* The queries', keys' and values' parts of a projection; false where it is not these three. */
static bool add_parts(struct shapes *s, const struct maq_layer *layer, const struct maq_module *m, int32_t cuts,
                      bool cut)
{
    const struct maq_module *core = NULL;
    for (uint32_t i = 0; i < layer->n_modules; i++)
        if (layer->modules[i].kind == MAQ_MODULE_ATTENTION)
            core = &layer->modules[i];
    if (!core || strcmp(m->name, "linear_qkv") != 0)
        return false;
    const struct maq_attention_geometry *a = &core->u.attention;
    int64_t q = (int64_t)a->heads * a->qk_dim, k = (int64_t)a->kv_heads * a->qk_dim,
            v = (int64_t)a->kv_heads * a->v_dim;
    if (q + k + v != m->out || k < cuts || v < cuts)
        return false;
    add(s, m->in, q / cuts, 1, false, cut);
    add(s, m->in, k / cuts, 1, false, cut);
    add(s, m->in, v / cuts, 1, false, cut);
    return true;
}

static void add_module(struct shapes *s, const struct maq_blueprint *bp, const struct maq_layer *layer,
                       const struct maq_module *m)
{
    const struct maq_plan *p = &bp->job->plan;
    bool blockwise = p->muon_tp_mode == MAQ_MUON_BLOCKWISE, expert = m->shard == MAQ_SHARD_EXPERT;
    int32_t tp = expert ? p->etp : m->shard == MAQ_SHARD_SEQUENCE ? 1 : p->tp, cuts = blockwise ? tp : 1;
    bool cut = tp > 1 && !blockwise, columns = m->shard != MAQ_SHARD_ROW;
    if (expert)
        add(s, m->in, m->out / cuts, (uint32_t)(m->u.moe.experts / p->ep), true, cut);
    else if (!add_parts(s, layer, m, cuts, cut))
        add(s, columns ? m->in : m->in / cuts, columns ? m->out / cuts : m->out, 1, false, cut);
}

static void collect(struct shapes *s, const struct maq_blueprint *bp, const struct maq_program *const *programs,
                    uint32_t n)
{
    s->n = 0;
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t e = 0; e < programs[k]->n_entries; e++) {
            const struct maq_layer *layer = bp->blocks[programs[k]->entries[e].block]->layer;
            for (uint32_t i = 0; i < layer->n_modules; i++)
                if (maq_muon_updates(&layer->modules[i]))
                    add_module(s, bp, layer, &layer->modules[i]);
        }
}

static double flop(const struct shape *x)
{
    double m = (double)x->m, n = (double)x->n;
    return 4 * m * m * n + 2 * m * m * m;
}

/*
 * Deals whole matrices to ranks: of each shape as many as divide evenly. Of the remaining ones the busiest rank gets its share by
 * number, taken from the costliest shapes.
 */
static void deal(uint32_t *mine, const struct shapes *s, bool expert, uint32_t ranks)
{
    uint32_t left = 0, over[SHAPES] = {0};
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->at[i].expert != expert)
            continue;
        mine[i] = s->at[i].count / ranks;
        left += over[i] = s->at[i].count % ranks;
    }
    for (uint32_t more = (left + ranks - 1) / ranks; more > 0; more--) {
        uint32_t best = SHAPES;
        for (uint32_t i = 0; i < s->n; i++)
            if (over[i] > 0 && (best == SHAPES || flop(&s->at[i]) > flop(&s->at[best])))
                best = i;
        if (best == SHAPES) /* never: no more are dealt than are over */
            return;
        mine[best]++;
        over[best]--;
    }
}

static void put_product(struct maq_segment_writer *w, int64_t rows, int64_t columns, int64_t inner, uint32_t batch,
                        int type)
{
    struct maq_op op = maq_op_make(MAQ_OP_GEMM, type, MAQ_OP_OUT_FP32, rows, columns, inner, batch, 0, 0);
    maq_segment_op(w, &op);
}

/* `batch` matrices together. */
static void put_matrices(struct maq_segment_writer *w, const struct maq_blueprint *bp, const struct shape *x,
                         uint32_t batch)
{
    int type = bp->items->device->peak_flops[MAQ_TF32] > 0 ? MAQ_TF32 : MAQ_FP32;
    if (x->cut) {
        enum maq_group_kind group = x->expert ? MAQ_GROUP_ETP : MAQ_GROUP_TP;
        struct maq_coll gather =
            maq_coll_make(&bp->lower, MAQ_COLL_ALL_GATHER, group, 4.0 * (double)x->m * (double)x->n * batch);
        maq_segment_coll(w, &gather, MAQ_STREAM_TP);
    }
    for (int32_t i = 0; i < bp->job->plan.muon_steps; i++) {
        put_product(w, x->m, x->m, x->n, batch, type);
        put_product(w, x->m, x->m, x->m, batch, type);
        put_product(w, x->m, x->n, x->m, batch, type);
    }
}

void maq_muon_put(struct maq_segment_writer *w, const struct maq_blueprint *bp,
                  const struct maq_program *const *programs, uint32_t n)
{
    const struct maq_job *job = bp->job;
    bool shared = job->plan.sharding != MAQ_SHARDING_NONE;
    struct shapes s;
    uint32_t mine[SHAPES] = {0}, all = 0;
    collect(&s, bp, programs, n);
    deal(mine, &s, false, shared ? bp->lower.groups[MAQ_GROUP_SHARD].size : 1);
    deal(mine, &s, true, shared ? (uint32_t)job->edp : 1);
    for (uint32_t i = 0; i < s.n; i++)
        all += mine[i];
    const uint32_t each = all > LOOPS ? (all + LOOPS - 1) / LOOPS : 1;
    for (uint32_t i = 0; i < s.n; i++)
        for (uint32_t left = mine[i]; left > 0;) {
            uint32_t batch = left < each ? left : each;
            put_matrices(w, bp, &s.at[i], batch);
            left -= batch;
        }
}

/* X and its successor, A and B, in 4 bytes; and the gathered matrix beyond the rank's own part. */
double maq_muon_working_bytes(const struct maq_blueprint *bp, const struct maq_program *const *programs, uint32_t n)
{
    struct shapes s;
    double most = 0;
    collect(&s, bp, programs, n);
    for (uint32_t i = 0; i < s.n; i++) {
        double m = (double)s.at[i].m, c = (double)s.at[i].n;
        most = fmax(most, 4 * ((s.at[i].cut ? 3 : 2) * m * c + 2 * m * m));
    }
    return most;
}
