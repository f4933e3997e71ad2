/* SPDX-License-Identifier: Apache-2.0 */
/* one_bit.c - the passes over memory and the exchange of the 1-bit optimizers. See one_bit.h. */
#include "train/step/one_bit.h"

#include "base/check.h"
#include "lower/local.h"

typedef struct {
    uint8_t read, written; /* bytes of a number */
} pass;

static const pass momentum[] = {{4, 4}, {8, 4}}, variance[] = {{4, 4}, {8, 4}}, quotient[] = {{4, 4}, {4, 4}, {8, 4}},
                  decay_and_add[] = {{4, 4}, {8, 4}, {4, 4}, {8, 4}}, norm[] = {{4, 4}, {4, 0}};
/* What the worker adds and scales; its signs as numbers, what they leave out; the signs as bits. */
static const pass compress[] = {{8, 4}, {4, 0}, {4, 4}, {4, 4}, {4, 1}, {1, 4}, {4, 4},
                                {4, 4}, {4, 4}, {8, 4}, {4, 4}, {4, 4}, {4, 1}, {1, 0}};
/* Bits of all ranks as numbers, times their scales, added up. */
static const pass collect[] = {{0, 1}, {1, 4}, {4, 4}, {4, 4}, {4, 4}, {4, 0}};
/* Bits of the sums as numbers, times their scales, in the place of the momentum. */
static const pass expand[] = {{0, 1}, {1, 4}, {4, 4}, {4, 4}, {4, 4}, {4, 4}};
/* 1-bit LAMB: the momentum before; its factor and back; the gradient by the difference; the second variance; the bounds of the factor. */
static const pass lamb[] = {{4, 4}, {4, 4}, {4, 4}, {4, 4}, {8, 4}, {4, 4},
                            {4, 4}, {8, 4}, {4, 4}, {4, 4}, {8, 4}, {4, 0}};
/* 0/1 Adam: the accumulator taken back and scaled; the momentum, the weight and the accumulator anew. */
static const pass accumulated[] = {{4, 4}, {8, 4}, {4, 4}, {4, 4}, {8, 4}, {4, 4}, {4, 4},
                                   {8, 4}, {4, 4}, {4, 4}, {8, 4}, {8, 4}, {0, 4}};

static void passes(struct maq_segment_writer *w, double params, const pass *each, size_t n)
{
    for (size_t i = 0; i < n && params >= 1; i++) {
        struct maq_op op =
            maq_op_make(MAQ_OP_ELEMENTWISE, MAQ_FP32, 0, (int64_t)params, each[i].read, each[i].written, 0, 0, 0);
        maq_segment_op(w, &op);
    }
}

#define PASSES(w, params, list) passes(w, params, list, MAQ_COUNT(list))

bool maq_one_bit_exchanges(const struct maq_plan *p)
{
    return p->update >= MAQ_UPDATE_ONEBIT_ADAM && !p->onebit_warmup;
}

double maq_one_bit_bytes(const struct maq_plan *p, double ranks)
{
    const double errors = 4 + 4 / ranks;
    switch ((enum maq_update)p->update) {
    case MAQ_UPDATE_ONEBIT_ADAM:
        return p->onebit_warmup ? 0 : errors;
    case MAQ_UPDATE_ONEBIT_LAMB:
    case MAQ_UPDATE_ZERO_ONE_ADAM:
        return 4 + errors;
    case MAQ_UPDATE_ADAM:
    case MAQ_UPDATE_SGD:
    case MAQ_UPDATE_MUON:
    case MAQ_UPDATE_LION:
    case MAQ_UPDATE_ADAFACTOR:
    case MAQ_UPDATE_LAMB:
        break;
    }
    return 0;
}

static void exchange(struct maq_segment_writer *w, const struct maq_blueprint *bp, double params)
{
    const double ranks = bp->lower.groups[MAQ_GROUP_DP_CP].size;
    if (ranks <= 1)
        return;
    const struct maq_coll parts = maq_coll_make(&bp->lower, MAQ_COLL_ALL_TO_ALL, MAQ_GROUP_DP_CP, params / 8),
                          sums = maq_coll_make(&bp->lower, MAQ_COLL_ALL_GATHER, MAQ_GROUP_DP_CP, params / 8);
    PASSES(w, params, compress);
    maq_segment_coll(w, &parts, MAQ_STREAM_DP);
    PASSES(w, params, collect);
    PASSES(w, params / ranks, compress);
    maq_segment_coll(w, &sums, MAQ_STREAM_DP);
    PASSES(w, params, expand);
}

void maq_one_bit_put(struct maq_segment_writer *w, const struct maq_blueprint *bp, double params)
{
    const struct maq_plan *p = &bp->job->plan;
    const bool exchanges = maq_one_bit_exchanges(p), is_lamb = p->update == MAQ_UPDATE_ONEBIT_LAMB;
    PASSES(w, params, momentum);
    if (!exchanges)
        PASSES(w, params, variance);
    if (exchanges && p->update == MAQ_UPDATE_ZERO_ONE_ADAM) {
        PASSES(w, params / p->local_steps, accumulated);
        exchange(w, bp, params / p->local_steps);
        PASSES(w, params, decay_and_add); /* of the accumulator, too */
    } else if (exchanges) {
        exchange(w, bp, params);
    }
    if (exchanges && is_lamb)
        PASSES(w, params, lamb);
    if (is_lamb) {
        PASSES(w, params, norm);
        PASSES(w, params, norm);
    }
    PASSES(w, params, quotient);
    PASSES(w, params, decay_and_add);
}
