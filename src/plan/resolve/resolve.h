/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolve.h - the rules that complete a plan, which run one after another over one job (resolve.c).
 *
 *   degrees.c    devices, degrees, experts, widths
 *   batch.c      microbatches and sequences
 *   precision.c  types, kernels of attention
 *   memory.c     optimizers, adapters, recomputation, offloading
 *
 * A rule may count on what those before it have decided: degrees come first, since the batch is cut by them.
 */
#ifndef MAQ_PLAN_RESOLVE_RESOLVE_H
#define MAQ_PLAN_RESOLVE_RESOLVE_H

#include "plan/codes.h"
#include "plan/job_build.h"

struct maq_resolver {
    struct maq_job *job;
    const struct maq_job_places *at;
    struct maq_diag *diag; /* NULL: nobody reads the reasons, and the first fault ends it */
    bool failed;
};

#define MAQ_REFUSE(r, code, key, hint, ...)                                                                            \
    do {                                                                                                               \
        (r)->failed = true;                                                                                            \
        maq_diag_add((r)->diag, MAQ_ERROR, (code), maq_place_of_plan((r)->at, (key)), (hint), __VA_ARGS__);            \
    } while (0)

/* ---- degrees.c ---- */

void maq__resolve_dp(struct maq_resolver *r);
void maq__resolve_sharding(struct maq_resolver *r);
void maq__check_pyramid(struct maq_resolver *r);
void maq__resolve_experts(struct maq_resolver *r);
void maq__check_widths(struct maq_resolver *r, const struct maq_layer *layer);

/* ---- batch.c ---- */

void maq__resolve_batch(struct maq_resolver *r);

/* ---- precision.c ---- */

void maq__resolve_precision(struct maq_resolver *r);
void maq__resolve_attention(struct maq_resolver *r);
void maq__resolve_fp8_attention(struct maq_resolver *r);

/* ---- memory.c ---- */

void maq__resolve_update(struct maq_resolver *r);
void maq__resolve_optimizer(struct maq_resolver *r);
void maq__resolve_adapters(struct maq_resolver *r);
void maq__resolve_recompute(struct maq_resolver *r);
void maq__resolve_offload(struct maq_resolver *r);
void maq__resolve_offloaded_states(struct maq_resolver *r);
void maq__resolve_graphs(struct maq_resolver *r);

#endif
