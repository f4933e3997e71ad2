/* SPDX-License-Identifier: Apache-2.0 */
/* galore.c - lists the matrices that GaLore projects by shape, and writes their projections as products. See galore.h. */
#include "train/step/galore.h"

#include <math.h>

#include "base/check.h"
#include "lower/local.h"

#define SHAPES 64 /* different ones of a stage; more are counted as the last of them */

struct shape {
    int64_t rows, columns; /* rows: the longer side */
    uint32_t count;
};

struct shapes {
    struct shape at[SHAPES];
    uint32_t n;
};

static int64_t rank_of(const struct maq_plan *p, int64_t shorter)
{
    return p->galore_rank < shorter ? p->galore_rank : shorter;
}

void maq_galore_count(struct maq_low_rank *sum, const struct maq_lower *lower, const struct maq_layer *layer,
                      const struct maq_module *m)
{
    int64_t out[MAQ_LORA_SPANS];
    const int64_t in = maq_lower_local(lower, layer, m).in;
    for (uint32_t i = 0, n = maq_lower_projected(out, lower, layer, m); i < n; i++) {
        const int64_t shorter = in < out[i] ? in : out[i], longer = in < out[i] ? out[i] : in;
        const double r = (double)rank_of(lower->plan, shorter);
        sum->matrices += (double)in * (double)out[i];
        sum->moments += r * (double)longer;
        sum->projections += r * (double)shorter;
    }
}

static void add(struct shapes *s, int64_t in, int64_t out)
{
    const struct shape x = {.rows = in < out ? out : in, .columns = in < out ? in : out, .count = 1};
    uint32_t i = 0;
    while (i < s->n && (s->at[i].rows != x.rows || s->at[i].columns != x.columns))
        i++;
    if (i < s->n || i == SHAPES)
        s->at[i < s->n ? i : SHAPES - 1].count++;
    else
        s->at[s->n++] = x;
}

static void collect(struct shapes *s, const struct maq_blueprint *bp, const struct maq_program *const *programs,
                    uint32_t n)
{
    int64_t out[MAQ_LORA_SPANS];
    s->n = 0;
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t e = 0; e < programs[k]->n_entries; e++) {
            const struct maq_layer *layer = bp->blocks[programs[k]->entries[e].block]->layer;
            for (uint32_t i = 0; i < layer->n_modules; i++) {
                const struct maq_module *m = &layer->modules[i];
                const int64_t in = maq_lower_local(&bp->lower, layer, m).in;
                for (uint32_t j = 0, parts = maq_lower_projected(out, &bp->lower, layer, m); j < parts; j++)
                    add(s, in, out[j]);
            }
        }
}

double maq_galore_decomposition_flop(double rows, double columns)
{
    return 6 * rows * columns * columns + 20 * columns * columns * columns;
}

static void put_product(struct maq_segment_writer *w, int type, int64_t rows, int64_t columns, int64_t inner,
                        uint32_t batch)
{
    struct maq_op op = maq_op_make(MAQ_OP_GEMM, type, 0, rows, columns, inner, batch, 0, 0);
    maq_segment_op(w, &op);
}

void maq_galore_put(struct maq_segment_writer *w, const struct maq_blueprint *bp,
                    const struct maq_program *const *programs, uint32_t n)
{
    const struct maq_plan *p = &bp->job->plan;
    struct shapes s;
    collect(&s, bp, programs, n);
    for (uint32_t i = 0; i < s.n; i++) {
        const struct shape *x = &s.at[i];
        const int64_t r = rank_of(p, x->columns);
        const double m = (double)x->rows, c = (double)x->columns;
        if (p->use_apollo) { /* nothing goes back; r x c random numbers now and then */
            put_product(w, p->grad_dtype, x->rows, r, x->columns, x->count);
            continue;
        }
        const double inner = maq_galore_decomposition_flop(m, c) / (2 * m * c) / p->galore_gap;
        put_product(w, p->grad_dtype, x->rows, r, x->columns, x->count);
        put_product(w, p->grad_dtype, x->rows, x->columns, r, x->count);
        put_product(w, MAQ_FP32, x->rows, x->columns, (int64_t)ceil(inner), x->count);
    }
}

double maq_galore_working_bytes(const struct maq_blueprint *bp, const struct maq_program *const *programs, uint32_t n)
{
    struct shapes s;
    double most = 0;
    collect(&s, bp, programs, n);
    for (uint32_t i = 0; i < s.n; i++) {
        const double m = (double)s.at[i].rows, c = (double)s.at[i].columns;
        most =
            fmax(most, bp->job->plan.use_apollo ? 2 * m * c * maq_dtype_bytes((enum maq_dtype)bp->job->plan.grad_dtype)
                                                : 4 * (2 * m * c + c * c));
    }
    return most;
}
