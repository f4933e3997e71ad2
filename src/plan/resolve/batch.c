/* SPDX-License-Identifier: Apache-2.0 */
/* batch.c - the batch of a step: sequences, microbatches and how many of them are added up, and how sequences are cut. */
#include "plan/resolve/resolve.h"

#include <stdio.h>

#include "base/check.h"

static void refuse_batch(struct maq_resolver *r, int64_t per_step)
{
    if (!r->diag)
        return;
    const struct maq_workload *w = &r->job->workload;
    char hint[128];
    int64_t near = (w->gbs + per_step / 2) / per_step * per_step;
    snprintf(hint, sizeof hint, "try global_batch_size %lld", (long long)(near > 0 ? near : per_step));
    maq_diag_add(r->diag, MAQ_ERROR, MAQ_CODE_PLAN_BATCH, maq_place_of(r->at->workload, "global_batch_size"), hint,
                 "global_batch_size %d is not a multiple of dp %d x micro_batch_size %d = %lld", w->gbs, r->job->dp,
                 r->job->plan.mbs, (long long)per_step);
}

int64_t maq_job_default_seq(const struct maq_job *job)
{
    int64_t max = job->model.max_seq;
    bool given = max > 0 && (max < 8192 || job->model.pyramid); /* a pyramid has no other number */
    return job->workload.seq > 0 ? job->workload.seq : given ? max : 8192;
}

/*
 * Of the three numbers of a batch, global_batch_size = dp x micro_batch_size x gradient_accumulation_steps, two say the third: as
 * DeepSpeed's _set_batch_related_parameters() and Hugging Face's Trainer have it.
 */
static void settle_accumulation(struct maq_resolver *r)
{
    struct maq_workload *w = &r->job->workload;
    struct maq_plan *p = &r->job->plan;
    const int64_t passes = (int64_t)r->job->dp * w->accumulation, all = passes * p->mbs;
    const bool given = maq_value_in(r->at->plan, maq_plan_fields, "micro_batch_size") != NULL;
    if (w->accumulation == 0)
        return;
    if (w->gbs == 0 && all <= INT32_MAX)
        w->gbs = (int32_t)all;
    else if (!given && w->gbs >= passes && w->gbs % passes == 0)
        p->mbs = (int32_t)(w->gbs / passes);
    if (w->gbs == passes * p->mbs)
        return;
    r->failed = true;
    maq_diag_add(r->diag, MAQ_ERROR, MAQ_CODE_PLAN_BATCH, maq_place_of(r->at->workload, "global_batch_size"),
                 "give two of the three, the third follows from them",
                 "global_batch_size %d is not dp %d x micro_batch_size %d x gradient_accumulation_steps %d", w->gbs,
                 r->job->dp, p->mbs, w->accumulation);
}

void maq__resolve_batch(struct maq_resolver *r)
{
    if (r->failed) /* the degrees do not fit: nothing can be said of what they cut */
        return;
    struct maq_workload *w = &r->job->workload;
    const struct maq_plan *p = &r->job->plan;
    w->seq = maq_job_default_seq(r->job);
    settle_accumulation(r);
    if (r->failed)
        return;
    int64_t per_step = (int64_t)r->job->dp * p->mbs;
    MAQ_ASSERT(per_step > 0);
    r->job->microbatches = 1;
    if (w->gbs == 0 && per_step * p->pp <= INT32_MAX)
        w->gbs = (int32_t)(per_step * p->pp);
    if (w->gbs % per_step != 0) {
        r->failed = true;
        refuse_batch(r, per_step);
    } else {
        r->job->microbatches = (int32_t)(w->gbs / per_step);
    }
    if (r->job->model.pyramid && w->seq % r->job->model.embedding.of_tokens != 0) {
        r->failed = true;
        maq_diag_add(r->diag, MAQ_ERROR, MAQ_CODE_PLAN_BATCH, maq_place_of(r->at->workload, "seq_length"),
                     "leave it out, or give a multiple", "seq_length %lld, but the first level of %s has %lld tokens",
                     (long long)w->seq, r->job->model.name, (long long)r->job->model.embedding.of_tokens);
    }
    int64_t cut = p->cp > 1 ? 2 * (int64_t)p->cp : 1; /* causal load balance gives each CP rank two chunks */
    bool uncut = w->seq % cut != 0,
         unshared = !uncut && p->sequence_parallel == MAQ_ON && (w->seq / p->cp) % p->tp != 0;
    if (uncut || unshared) {
        r->failed = true;
        maq_diag_add(r->diag, MAQ_ERROR, MAQ_CODE_PLAN_BATCH, maq_place_of(r->at->workload, "seq_length"), NULL,
                     "seq_length %lld is not a multiple of %s = %lld", (long long)w->seq,
                     uncut ? "2 x cp (each rank takes two chunks)" : "cp x tp (sequence parallelism)",
                     (long long)(uncut ? cut : (int64_t)p->cp * p->tp));
    }
    if (w->length_mean > (double)w->seq) {
        r->failed = true;
        maq_diag_add(r->diag, MAQ_ERROR, MAQ_CODE_PLAN_BATCH, maq_place_of(r->at->workload, "length_mean"),
                     "documents are cut at seq_length", "length_mean %g is over seq_length %lld", w->length_mean,
                     (long long)w->seq);
    }
}
