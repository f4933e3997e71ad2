/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolve.c - completes a plan: decides what it leaves open, and refuses what is impossible on the model and the
 * cluster.
 *
 * Every diagnostic has its numbers: "tp * cp * pp = 48 does not divide 128 devices". All rules run, so that one run
 * shows all faults.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "plan/codes.h"
#include "plan/job_build.h"
#include "plan/keys.h"
#include "plan/lora_targets.h"
#include "plan/schedule/schedule.h"

#define MOST_TOKENS 1073741824.0 /* of a level: as seq_length */

/* The value of a row by any of its names; NULL: it is not written. */
static const struct maq_node *value_in(const struct maq_node *section, const struct maq_field *fields, const char *key)
{
    const struct maq_field *f = maq_fields_find(fields, maq_str_of(key));
    bool map = section && section->kind == MAQ_NODE_MAP;
    for (const struct maq_node *n = map && f ? section->first : NULL; n; n = n->next)
        if (maq_fields_find(fields, n->key) == f)
            return n;
    return NULL;
}

/* Its place; else the section's, unless a flag of another setting made that. */
static struct maq_span place_in(const struct maq_node *section, const struct maq_field *fields, const char *key)
{
    const struct maq_node *n = value_in(section, fields, key);
    if (n)
        return n->at;
    return section && section->origin != MAQ_ORIGIN_FLAG ? section->at : (struct maq_span){0, 0, 0};
}

struct maq_span maq_place_of(const struct maq_node *workload, const char *key)
{
    return place_in(workload, maq_workload_fields, key);
}

struct maq_span maq_place_of_plan(const struct maq_job_places *at, const char *key)
{
    struct maq_span place = place_in(at->plan, maq_plan_fields, key);
    bool whole = at->plan && place.file == at->plan->at.file && place.off == at->plan->at.off;
    return whole && at->searched ? (struct maq_span){0, 0, 0} : place;
}

struct resolver {
    struct maq_job *job;
    const struct maq_job_places *at;
    struct maq_diag *diag;
    bool failed;
};

#define REFUSE(r, code, key, hint, ...)                                                                                \
    do {                                                                                                               \
        (r)->failed = true;                                                                                            \
        maq_diag_add((r)->diag, MAQ_ERROR, (code), maq_place_of_plan((r)->at, (key)), (hint), __VA_ARGS__);            \
    } while (0)

/* ---- degrees ---- */

/* The degree that is to blame where their product does not divide the devices: the first that does not by itself, else the last. */
static const char *culprit(const struct maq_plan *p, int64_t devices)
{
    const struct {
        const char *key;
        int32_t n;
    } degrees[] = {{"tensor_model_parallel_size", p->tp},
                   {"context_parallel_size", p->cp},
                   {"pipeline_model_parallel_size", p->pp}};
    const char *last = degrees[0].key;
    for (size_t i = 0; i < MAQ_COUNT(degrees); i++) {
        if (devices % degrees[i].n != 0)
            return degrees[i].key;
        last = degrees[i].n > 1 ? degrees[i].key : last;
    }
    return last;
}

static void resolve_dp(struct resolver *r)
{
    struct maq_plan *p = &r->job->plan;
    int64_t devices = r->job->cluster.devices, model = (int64_t)p->tp * p->cp * p->pp;
    if (model > devices || devices % model != 0) {
        REFUSE(r, MAQ_CODE_PLAN_DEGREES, culprit(p, devices),
               model > devices ? "take smaller degrees or more nodes"
                               : "choose degrees whose product divides the number of devices",
               "tp %d x cp %d x pp %d = %lld does not divide the cluster's %lld devices", p->tp, p->cp, p->pp,
               (long long)model, (long long)devices);
        r->job->dp = 1;
        return;
    }
    r->job->dp = (int32_t)(devices / model);
    if (p->dp != 0 && p->dp != r->job->dp)
        REFUSE(r, MAQ_CODE_PLAN_DEGREES, "data_parallel_size", "leave it out: it follows from the others",
               "data_parallel_size %d, but %lld devices / (tp %d x cp %d x pp %d) = %d", p->dp, (long long)devices,
               p->tp, p->cp, p->pp, r->job->dp);
    p->dp = r->job->dp;
}

bool maq_sharding_is_moot(const struct maq_plan *p, const struct maq_model *model, int64_t stage_devices)
{
    int64_t etp = p->etp > 0 ? p->etp : p->ep > 1 ? 1 : p->tp;
    bool alone = stage_devices / p->tp == p->num_optimizer_instances;
    return alone && (!maq_model_find_module(model, MAQ_MODULE_ROUTER, MAQ_PART_COUNT) || stage_devices == etp * p->ep);
}

/*
 * Shards of one rank are no shards: nothing is gathered, cast for it or held otherwise. Those on the host come and go all the same. What
 * is refused as it is written comes before.
 */
static void resolve_sharding(struct resolver *r)
{
    struct maq_plan *p = &r->job->plan;
    if (r->failed || p->sharding == MAQ_SHARDING_NONE || p->offload_param != MAQ_OFFLOAD_NONE ||
        !maq_sharding_is_moot(p, &r->job->model, (int64_t)p->tp * p->cp * r->job->dp))
        return;
    p->sharding = MAQ_SHARDING_NONE;
    p->num_optimizer_instances = 1;
}

/* One vector per sequence enters a pyramid, and tokens change in number on the way: there is nothing that CP or sequence
 * parallelism could cut alike everywhere. */
static void check_pyramid(struct resolver *r)
{
    const struct maq_plan *p = &r->job->plan;
    if (!r->job->model.pyramid)
        return;
    if (p->cp > 1)
        REFUSE(r, MAQ_CODE_PLAN_DEGREES, "context_parallel_size", "leave it out",
               "context_parallel_size %d, but the layers of %s differ in their number of tokens", p->cp,
               r->job->model.name);
    if (p->tp > 1 && p->sequence_parallel == MAQ_ON)
        REFUSE(r, MAQ_CODE_PLAN_DEGREES, "sequence_parallel", "leave it out",
               "sequence parallelism, but the layers of %s differ in their number of tokens", r->job->model.name);
    for (uint32_t k = 0; k < r->job->model.n_kinds && !r->failed; k++) {
        double tokens = (double)r->job->workload.seq / (double)r->job->model.kinds[k].of_tokens *
                        (double)r->job->model.kinds[k].tokens;
        if (tokens > MOST_TOKENS) {
            r->failed = true;
            maq_diag_add(r->diag, MAQ_ERROR, MAQ_CODE_PLAN_BATCH, maq_place_of(r->at->workload, "seq_length"), NULL,
                         "a level of %s has %.3g tokens of a sequence, over the limit of %.3g", r->job->model.name,
                         tokens, MOST_TOKENS);
        }
    }
}

static void resolve_experts(struct resolver *r)
{
    if (r->failed) /* the degrees do not fit: what is left over for experts means nothing */
        return;
    struct maq_plan *p = &r->job->plan;
    const struct maq_module *router = maq_model_find_module(&r->job->model, MAQ_MODULE_ROUTER, MAQ_PART_COUNT);
    if (!router) {
        if (p->ep > 1)
            REFUSE(r, MAQ_CODE_PLAN_DEGREES, "expert_model_parallel_size", "leave it out",
                   "expert_model_parallel_size %d, but %s has no routed experts", p->ep, r->job->model.name);
        p->ep = 1;
        p->etp = p->tp;
        r->job->edp = r->job->dp * p->cp;
        return;
    }
    if (p->etp == 0)
        p->etp = p->ep > 1 ? 1 : p->tp;
    int64_t stage = (int64_t)p->tp * p->cp * r->job->dp, experts = (int64_t)p->etp * p->ep;
    r->job->edp = 1;
    if (stage % experts != 0)
        REFUSE(
            r, MAQ_CODE_PLAN_DEGREES, "expert_model_parallel_size", "expert-tp x ep must divide tp x cp x dp",
            "expert-tp %d x ep %d = %lld does not divide the %lld devices of a pipeline stage (tp %d x cp %d x dp %d)",
            p->etp, p->ep, (long long)experts, (long long)stage, p->tp, p->cp, r->job->dp);
    else
        r->job->edp = (int32_t)(stage / experts);
    if (router->u.moe.experts % p->ep != 0)
        REFUSE(r, MAQ_CODE_PLAN_DEGREES, "expert_model_parallel_size", NULL,
               "%d experts cannot be shared evenly by expert_model_parallel_size %d", router->u.moe.experts, p->ep);
}

/* Features that TP cuts must divide by it; KV heads may also be copied. */
static void check_widths(struct resolver *r, const struct maq_layer *layer)
{
    const struct maq_plan *p = &r->job->plan;
    for (uint32_t i = 0; i < layer->n_modules && !r->failed; i++) {
        const struct maq_module *m = &layer->modules[i];
        if (m->kind == MAQ_MODULE_ATTENTION) {
            int32_t h = m->u.attention.heads, kv = m->u.attention.kv_heads;
            if (h % p->tp != 0)
                REFUSE(r, MAQ_CODE_PLAN_DEGREES, "tensor_model_parallel_size", NULL,
                       "%d attention heads cannot be shared evenly by tp %d", h, p->tp);
            else if (kv % p->tp != 0 && p->tp % kv != 0)
                REFUSE(r, MAQ_CODE_PLAN_DEGREES, "tensor_model_parallel_size", NULL,
                       "%d key/value heads can be neither shared nor copied evenly by tp %d", kv, p->tp);
            bool a2a = p->cp_comm == MAQ_CP_A2A || p->cp_comm == MAQ_CP_A2A_P2P;
            int32_t inner = p->cp_comm == MAQ_CP_A2A ? p->cp : p->cp_a2a;
            if (a2a && p->cp > 1 && (h / p->tp) % inner != 0)
                REFUSE(r, MAQ_CODE_PLAN_DEGREES, "context_parallel_size",
                       "all-to-all context parallelism spreads heads: use p2p or a smaller group",
                       "%d attention heads per TP rank cannot be spread over an all-to-all group of %d", h / p->tp,
                       inner);
        } else if (m->shard == MAQ_SHARD_COLUMN && m->out % p->tp != 0 && m->part == MAQ_PART_MLP) {
            REFUSE(r, MAQ_CODE_PLAN_DEGREES, "tensor_model_parallel_size", NULL,
                   "%s of %lld features cannot be shared evenly by tp %d", m->name, (long long)m->out, p->tp);
        } else if (m->shard == MAQ_SHARD_EXPERT && m->kind == MAQ_MODULE_EXPERT_LINEAR &&
                   (m->in % p->etp != 0 || m->out % p->etp != 0)) {
            REFUSE(r, MAQ_CODE_PLAN_DEGREES, "expert_tensor_parallel_size", NULL,
                   "expert features %lld x %lld cannot be shared evenly by expert-tp %d", (long long)m->in,
                   (long long)m->out, p->etp);
        }
    }
}

/* ---- pipeline ---- */

static void resolve_schedule(struct resolver *r)
{
    struct maq_plan *p = &r->job->plan;
    if (p->schedule == MAQ_SCHEDULE_AUTO)
        p->schedule = p->vp > 1 ? MAQ_SCHEDULE_INTERLEAVED : MAQ_SCHEDULE_1F1B;
    if (p->schedule == MAQ_SCHEDULE_ZB_V || p->schedule == MAQ_SCHEDULE_DUALPIPE_V)
        p->vp = p->vp == 1 ? 2 : p->vp; /* their shape has two chunks */
    if (p->pp == 1 && p->vp > 1)
        REFUSE(r, MAQ_CODE_PLAN_SCHEDULE, "virtual_pipeline_model_parallel_size",
               "set pipeline_model_parallel_size too, or leave it out",
               "%d model chunks per stage, but there is one pipeline stage", p->vp);
    if ((int64_t)p->pp * p->vp > MAQ_MAX_STAGES)
        REFUSE(r, MAQ_CODE_PLAN_SCHEDULE, "pipeline_model_parallel_size",
               "use fewer stages, or a smaller virtual_pipeline_model_parallel_size",
               "pipeline size %d x %d chunks is over the limit of %d virtual stages", p->pp, p->vp, MAQ_MAX_STAGES);
    if (p->overlap_p2p == MAQ_AUTO)
        p->overlap_p2p = p->vp > 1 || p->schedule >= MAQ_SCHEDULE_ZB_H1 ? MAQ_ON : MAQ_OFF;
    if (p->microbatch_group == 0)
        p->microbatch_group = p->pp;
    if (p->zb_memory_percentile == 0)
        p->zb_memory_percentile = 85; /* the program's default */
    if (r->failed)
        return;
    char why[160];
    const char *refusal = maq_schedule_refuse(r->diag ? why : NULL, p->schedule, (uint32_t)p->pp, (uint32_t)p->vp,
                                              (uint32_t)r->job->microbatches, (uint32_t)p->microbatch_group);
    if (refusal)
        REFUSE(r, MAQ_CODE_PLAN_SCHEDULE, "pipeline_schedule",
               "change virtual_pipeline_model_parallel_size or global_batch_size, or take another pipeline_schedule",
               "%s", refusal);
}

/* ---- batch ---- */

static void refuse_batch(struct resolver *r, int64_t per_step)
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
static void settle_accumulation(struct resolver *r)
{
    struct maq_workload *w = &r->job->workload;
    struct maq_plan *p = &r->job->plan;
    const int64_t passes = (int64_t)r->job->dp * w->accumulation, all = passes * p->mbs;
    const bool given = value_in(r->at->plan, maq_plan_fields, "micro_batch_size") != NULL;
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

static void resolve_batch(struct resolver *r)
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

/* ---- precision ---- */

static const struct precision_row {
    uint8_t math, store;
} precision_rows[MAQ_PRECISION_COUNT] = {
    [MAQ_PRECISION_FP32] = {MAQ_FP32, MAQ_FP32},         [MAQ_PRECISION_FP16] = {MAQ_FP16, MAQ_FP16},
    [MAQ_PRECISION_BF16] = {MAQ_BF16, MAQ_BF16},         [MAQ_PRECISION_FP8_DELAYED] = {MAQ_FP8, MAQ_BF16},
    [MAQ_PRECISION_FP8_CURRENT] = {MAQ_FP8, MAQ_BF16},   [MAQ_PRECISION_FP8_ROWWISE] = {MAQ_FP8, MAQ_BF16},
    [MAQ_PRECISION_FP8_BLOCKWISE] = {MAQ_FP8, MAQ_BF16}, [MAQ_PRECISION_MXFP8] = {MAQ_FP8, MAQ_BF16},
    [MAQ_PRECISION_NVFP4] = {MAQ_FP4, MAQ_BF16},
};

/* Tensor cores that take a scale with every 32 numbers (MX) or 16 (NVFP4): all that multiply 4-bit numbers. */
static bool scales_blocks(const struct maq_device *d)
{
    return d->arch == MAQ_ARCH_BLACKWELL || d->arch == MAQ_ARCH_CDNA4 || d->arch == MAQ_ARCH_OTHER ||
           d->peak_flops[MAQ_FP4] > 0;
}

static void resolve_precision(struct resolver *r)
{
    struct maq_plan *p = &r->job->plan;
    const struct maq_cluster *c = &r->job->cluster;
    bool bf16 = true;
    for (uint32_t g = 0; g < c->n_groups; g++)
        bf16 &= c->groups[g].device.peak_flops[MAQ_BF16] > 0;
    if (p->precision == MAQ_PRECISION_AUTO)
        p->precision = bf16 ? MAQ_PRECISION_BF16 : MAQ_PRECISION_FP16;
    r->job->math_dtype = precision_rows[p->precision].math;
    r->job->store_dtype = precision_rows[p->precision].store;
    for (uint32_t g = 0; g < c->n_groups; g++) {
        const struct maq_device *d = &c->groups[g].device;
        bool vector_fp32 = r->job->math_dtype == MAQ_FP32 && d->vector_flops > 0;
        if (d->peak_flops[r->job->math_dtype] <= 0 && !vector_fp32)
            REFUSE(r, MAQ_CODE_PLAN_PRECISION, "precision", "choose a precision that the device computes in",
                   "%s has no %s arithmetic (precision %s)", d->name,
                   maq_dtype_name((enum maq_dtype)r->job->math_dtype),
                   maq_precision_name((enum maq_precision)p->precision));
        else if (r->job->store_dtype == MAQ_BF16 && d->peak_flops[MAQ_BF16] <= 0)
            REFUSE(r, MAQ_CODE_PLAN_PRECISION, "precision", "use fp16", "%s has no bf16 arithmetic", d->name);
        else if (p->precision == MAQ_PRECISION_MXFP8 && !scales_blocks(d))
            REFUSE(r, MAQ_CODE_PLAN_PRECISION, "precision", "fp8-current, fp8-delayed and fp8-blockwise need none",
                   "%s has no arithmetic with a scale for every block of numbers (precision mxfp8)", d->name);
    }
    if (p->wide_ends && p->precision == MAQ_PRECISION_FP8_DELAYED)
        REFUSE(r, MAQ_CODE_PLAN_PRECISION, "first_last_layers_bf16", "fp8-current, fp8-blockwise, mxfp8 and nvfp4 can",
               "with delayed scaling all layers share one history of scales (precision fp8-delayed)");
    if (p->fp8_output && p->precision != MAQ_PRECISION_MXFP8)
        REFUSE(r, MAQ_CODE_PLAN_PRECISION, "fp8_output_proj", "leave it out, or use precision mxfp8",
               "the output layer is computed in 8 bits with mxfp8 alone (precision %s)",
               maq_precision_name((enum maq_precision)p->precision));
    if (p->pure_low_precision)
        p->grad_dtype = p->optimizer_dtype = r->job->store_dtype;
    if (p->pure_low_precision && p->sharding != MAQ_SHARDING_PARAMS) /* FSDP has a type of its own for the wire */
        p->grad_reduce_dtype = r->job->store_dtype;
}

const char *maq_precision_name(enum maq_precision precision)
{
    static const char *const names[MAQ_PRECISION_COUNT] = {
        "auto", "fp32", "fp16", "bf16", "fp8-delayed", "fp8-current", "fp8-rowwise", "fp8-blockwise", "mxfp8", "nvfp4"};
    return (unsigned)precision < MAQ_PRECISION_COUNT ? names[precision] : "?";
}

/* ---- update ---- */

static void resolve_update(struct resolver *r)
{
    const struct maq_plan *p = &r->job->plan;
    if (p->lora_rank > 0 && p->base_quantization != MAQ_BASE_NONE && p->precision >= MAQ_PRECISION_FP8_DELAYED)
        REFUSE(r, MAQ_CODE_PLAN_PRECISION, "lora_base_quantization", "leave it out, or set precision: bf16",
               "a weight is quantized once: by the recipe of 8 or 4 bits, or as LoRA's frozen base");
    if (p->update != MAQ_UPDATE_MUON)
        return;
    if (p->sharding > MAQ_SHARDING_OPTIM)
        REFUSE(r, MAQ_CODE_PLAN_UPDATE, "optimizer", "share the optimizer's state alone: optim",
               "Muon works on whole matrices, and data_parallel_sharding_strategy cuts them");
    if (p->lora_rank > 0)
        REFUSE(r, MAQ_CODE_PLAN_UPDATE, "optimizer", "leave it out, or lora_rank",
               "adapters are updated by Adam here, not by Muon");
    if (p->optimizer_offload > 0)
        REFUSE(r, MAQ_CODE_PLAN_UPDATE, "optimizer", "leave it out, or optimizer_offload_fraction",
               "Muon's products do not run on the host");
}

static void resolve_optimizer(struct resolver *r)
{
    const char *key, *remedy, *wrong = maq_optimizer_fault(r->job, &key, &remedy);
    if (wrong)
        REFUSE(r, MAQ_CODE_PLAN_UPDATE, key, remedy, "%s", wrong);
}

/* ---- adapters ---- */

/* Says which of the targets of `key` names nothing in the model, and what there is. */
static enum maq_status refuse_target(const struct maq_job *job, const struct maq_job_places *at, const char *key,
                                     struct maq_str wrong, bool known, struct maq_diag *diag)
{
    struct maq_buf hint;
    const struct maq_module *expert = maq_model_find_module(&job->model, MAQ_MODULE_EXPERT_LINEAR, MAQ_PART_COUNT);
    maq_buf_init(&hint, 1024);
    maq_buf_addf(&hint, "%s has all-linear, ", job->model.name);
    maq_lora_add_names(&hint, maq_lora_model_sites(&job->model), ", ");
    maq_buf_addf(&hint, "; PEFT's names (q_proj) mean the same%s",
                 expert ? "; routed experts get no adapters here" : "");
    char *text = maq_buf_take(&hint);
    maq_diag_add(diag, MAQ_ERROR, MAQ_CODE_PLAN_ADAPTERS, maq_place_of_plan(at, key), text,
                 known ? "'%.*s' is in other models, but nothing in %s"
                       : "'%.*s' is no module that LoRA could adapt in %s",
                 (int)wrong.len, wrong.ptr, job->model.name);
    free(text);
    return MAQ_BAD_INPUT;
}

enum maq_status maq_job_place_adapters(struct maq_job *job, const struct maq_job_places *at, struct maq_diag *diag)
{
    struct maq_plan *p = &job->plan;
    struct maq_str wrong = {0};
    bool known = false;
    p->use_dora = p->use_dora && p->lora_rank > 0;
    p->lora_sites = p->lora_rank > 0 ? maq_lora_sites(p->lora_targets, &job->model, &wrong, &known) : 0;
    if (p->lora_rank > 0 && p->lora_sites == 0)
        return refuse_target(job, at, "lora_target_modules", wrong, known, diag);
    struct maq_str projected = p->galore_targets.len > 0 ? p->galore_targets : MAQ_STR("all-linear");
    p->galore_sites = p->galore_rank > 0 ? maq_lora_sites(projected, &job->model, &wrong, &known) : 0;
    if (p->galore_rank > 0 && p->galore_sites == 0)
        return refuse_target(job, at, "galore_target_modules", wrong, known, diag);
    return MAQ_OK;
}

static void resolve_adapters(struct resolver *r)
{
    r->failed |= maq_job_place_adapters(r->job, r->at, r->diag) != MAQ_OK;
}

/* ---- memory techniques ---- */

static void resolve_recompute(struct resolver *r)
{
    struct maq_plan *p = &r->job->plan;
    r->failed |= maq_plan_read_lists(p, r->at->list, r->diag) != MAQ_OK;
    const struct maq_node *list = r->at->list[MAQ_PLAN_RECOMPUTE_MODULES];
    bool by_op = p->recompute == MAQ_RECOMPUTE_SELECTIVE && p->selective_ac == MAQ_SELECTIVE_AC_OP;
    if (by_op)
        p->recompute_parts = 0;
    else if (p->recompute == MAQ_RECOMPUTE_SELECTIVE && p->recompute_parts == 0)
        p->recompute_parts = 1u << MAQ_PART_CORE_ATTENTION;
    if (by_op && list)
        REFUSE(r, MAQ_CODE_PLAN_RECOMPUTE, "recompute_modules", "leave one of the two out",
               "selective_ac_option op chooses what is recomputed by operators, recompute_modules by modules");
    if (p->recompute != MAQ_RECOMPUTE_SELECTIVE && p->recompute_parts != 0)
        REFUSE(r, MAQ_CODE_PLAN_RECOMPUTE, "recompute_modules", "set recompute_granularity: selective",
               "recompute_modules has no effect with recompute_granularity %s",
               p->recompute == MAQ_RECOMPUTE_FULL ? "full" : "none");
    if (p->recompute_num_layers > (int32_t)r->job->model.num_layers)
        REFUSE(r, MAQ_CODE_PLAN_RECOMPUTE, "recompute_num_layers", NULL,
               "recompute_num_layers %d, but the model has %u layers", p->recompute_num_layers,
               r->job->model.num_layers);
    bool block = p->recompute == MAQ_RECOMPUTE_FULL && p->recompute_method == MAQ_RECOMPUTE_BLOCK;
    if (p->recompute_stages.len > 0 && (!block || p->recompute_num_layers > 0))
        REFUSE(r, MAQ_CODE_PLAN_RECOMPUTE, "recompute_num_layers_per_stage",
               "set recompute_granularity: full and recompute_method: block, without recompute_num_layers",
               "recompute_num_layers_per_stage is a number of layers from the first of each virtual stage on%s",
               block ? ", and recompute_num_layers gives another" : "");
}

/* What Megatron Core refuses (transformer_config.py). */
static void resolve_offload(struct resolver *r)
{
    const struct maq_plan *p = &r->job->plan;
    const struct maq_node *list = r->at->list[MAQ_PLAN_OFFLOAD_MODULES];
    uint32_t moved = p->offload_modules;
    bool listed =
        moved != 0 || (list && (list->first || list->text.len > 0)); /* words that are none are told already */
    const char *key = "offload_modules";
    if (p->offload_inputs != listed)
        REFUSE(r, MAQ_CODE_PLAN_OFFLOAD, listed ? key : "fine_grained_activation_offloading",
               "set fine_grained_activation_offloading: true and a list of offload_modules",
               listed ? "offload_modules without fine_grained_activation_offloading"
                      : "fine_grained_activation_offloading without offload_modules");
    const char *remedy, *wrong = maq_offload_conflict(p, &remedy);
    if (wrong)
        REFUSE(r, MAQ_CODE_PLAN_OFFLOAD, key, remedy, "%s", wrong);
    wrong = maq_offload_fault(p, &remedy);
    if (wrong)
        REFUSE(r, MAQ_CODE_PLAN_OFFLOAD, key, remedy, "%s", wrong);
}

/* Where parameters and optimizer states are (DeepSpeed 0.19.6, runtime/zero/offload_config.py: "valid only with stage 3"). */
static void resolve_offloaded_states(struct resolver *r)
{
    const struct maq_plan *p = &r->job->plan;
    const char *key = p->offload_param == MAQ_OFFLOAD_NVME ? "offload_param_device" : "offload_optimizer_device";
    if (p->offload_param != MAQ_OFFLOAD_NONE && p->sharding != MAQ_SHARDING_PARAMS)
        REFUSE(r, MAQ_CODE_PLAN_OFFLOAD_STATES, "offload_param_device",
               "set data_parallel_sharding_strategy: optim_grads_params (ZeRO-3)",
               "offload_param_device %s, but only ZeRO-3 fetches parameters where they are used",
               maq_offload_device_name((enum maq_offload_device)p->offload_param));
    if (p->offload_param != MAQ_OFFLOAD_NONE && p->gather_once)
        REFUSE(r, MAQ_CODE_PLAN_OFFLOAD_STATES, "gather_once_per_step", "use one of the two",
               "parameters that stay gathered over a step do not wait on the host");
    if (p->offload_param != MAQ_OFFLOAD_NONE && p->reduce_once && !p->reshard_after_forward && r->job->microbatches > 1)
        REFUSE(
            r, MAQ_CODE_PLAN_OFFLOAD_STATES, "reduce_once_per_step", "set reduce_once_per_step: false",
            "gradients that go to the host behind all backward passes are not modelled without reshard_after_forward");
    if (p->offload_param != MAQ_OFFLOAD_NONE && !r->job->framework.low_precision_shards && p->optimizer_offload < 1)
        REFUSE(r, MAQ_CODE_PLAN_OFFLOAD_STATES, "offload_param_device",
               "set optimizer_offload_fraction: 1, or framework: deepspeed",
               "parameters on the host are the optimizer's own there, so that all of it runs on the host "
               "(optimizer_offload_fraction %g)",
               p->optimizer_offload);
    if (p->offload_optimizer != MAQ_OFFLOAD_NVME && p->offload_param != MAQ_OFFLOAD_NVME)
        return;
    for (uint32_t g = 0; g < r->job->cluster.n_groups; g++)
        if (!(r->job->cluster.groups[g].device.nvme_read_bps > 0) ||
            !(r->job->cluster.groups[g].device.nvme_write_bps > 0)) {
            REFUSE(r, MAQ_CODE_PLAN_OFFLOAD_STATES, key,
                   "say it: 'h100-sxm:8, nvme 10GB/s 5GB/s', or nvme_read_bandwidth and nvme_write_bandwidth of a node "
                   "group",
                   "%s nvme, and the cluster does not say what the NVMe of a %s node reads and writes", key,
                   r->job->cluster.groups[g].device.name);
            return;
        }
}

static void resolve_graphs(struct resolver *r)
{
    const char *remedy, *wrong = maq_graphs_conflict(&r->job->plan, &remedy);
    if (wrong)
        REFUSE(r, MAQ_CODE_PLAN_GRAPHS, "cuda_graph_scope", remedy, "%s", wrong);
}

/* What Megatron Core refuses (transformer_config.py). */
static void resolve_overlap_ep(struct resolver *r)
{
    const struct maq_plan *p = &r->job->plan;
    const char *key = "overlap_moe_expert_parallel_comm", *remedy, *wrong = maq_overlap_ep_conflict(p, &remedy);
    if (p->overlap_ep != MAQ_ON || p->ep == 1)
        return;
    if (wrong)
        REFUSE(r, MAQ_CODE_PLAN_OVERLAP, key, remedy, "%s", wrong);
    if (!r->at->layers_only && !maq_plan_pairs_passes(p))
        REFUSE(r, MAQ_CODE_PLAN_OVERLAP, key, "set virtual_pipeline_model_parallel_size (--vp), or leave it out",
               "a pipeline of schedule %s has no passes side by side that would hide the exchange of experts",
               maq_schedule_name((enum maq_schedule_kind)p->schedule));
}

/* Largest divisor of n that is at most `limit`, 1 at least. */
static int32_t largest_divisor(int32_t n, int32_t limit)
{
    int32_t best = 1;
    for (int32_t d = 2; d <= limit && d <= n; d++)
        if (n % d == 0)
            best = d;
    return best;
}

/* The hint "try 4": the largest divisor that is no more than `asked`; none without a diag (in searches). */
static const char *try_divisor(char hint[32], const struct resolver *r, int32_t n, int32_t asked)
{
    if (!r->diag)
        return NULL;
    snprintf(hint, 32, "try %d", largest_divisor(n, asked));
    return hint;
}

int maq_attention_on(const struct maq_plan *plan, const struct maq_device *device)
{
    bool old = device->arch == MAQ_ARCH_VOLTA || device->arch == MAQ_ARCH_TURING; /* FlashAttention-2 needs Ampere */
    if (plan->attention_backend != MAQ_ATTENTION_AUTO)
        return plan->attention_backend;
    return old ? MAQ_ATTENTION_UNFUSED : MAQ_ATTENTION_FLASH;
}

/* One for the whole plan where the devices agree; else each stage has what its own device has. */
static void resolve_attention(struct resolver *r)
{
    const struct maq_cluster *c = &r->job->cluster;
    struct maq_plan *p = &r->job->plan;
    int first = maq_attention_on(p, &c->groups[0].device);
    for (uint32_t g = 1; g < c->n_groups; g++)
        if (maq_attention_on(p, &c->groups[g].device) != first)
            return;
    p->attention_backend = first;
}

/*
 * cuDNN's attention in 8 bits, the only one that Transformer Engine trains with (pytorch/attention/dot_product_attention/utils.py):
 * scales of tensors and of 32 numbers, the latter and current scaling from Blackwell on; under NVFP4 it has scales of tensors.
 */
static void resolve_fp8_attention(struct resolver *r)
{
    const struct maq_cluster *c = &r->job->cluster;
    const struct maq_plan *p = &r->job->plan;
    const char *key = "fp8_dot_product_attention";
    bool delayed = p->precision == MAQ_PRECISION_FP8_DELAYED;
    if (!p->fp8_attention)
        return;
    if (!delayed && p->precision != MAQ_PRECISION_FP8_CURRENT && p->precision != MAQ_PRECISION_MXFP8 &&
        p->precision != MAQ_PRECISION_NVFP4)
        REFUSE(r, MAQ_CODE_PLAN_PRECISION, key, "leave it out, or use fp8-delayed, fp8-current, mxfp8 or nvfp4",
               "no attention in 8 bits goes with precision %s", maq_precision_name((enum maq_precision)p->precision));
    for (uint32_t g = 0; g < c->n_groups; g++) {
        const struct maq_device *d = &c->groups[g].device;
        if (d->arch != MAQ_ARCH_BLACKWELL && !(delayed && d->arch == MAQ_ARCH_HOPPER))
            REFUSE(r, MAQ_CODE_PLAN_PRECISION, key, "leave it out",
                   "no attention in 8 bits is known for %s (precision %s)", d->name,
                   maq_precision_name((enum maq_precision)p->precision));
        else if (maq_attention_on(p, d) != MAQ_ATTENTION_FLASH)
            REFUSE(r, MAQ_CODE_PLAN_PRECISION, key, "leave attention_backend out",
                   "only cuDNN's attention has kernels in 8 bits");
    }
}

static void resolve_switches(struct resolver *r)
{
    struct maq_plan *p = &r->job->plan;
    if (p->sequence_parallel == MAQ_AUTO)
        p->sequence_parallel = p->tp > 1 && !r->job->model.pyramid ? MAQ_ON : MAQ_OFF;
    if (p->tp == 1)
        p->sequence_parallel = MAQ_OFF;
    bool sharded = p->sharding != MAQ_SHARDING_NONE;
    if (p->overlap_grad_reduce == MAQ_AUTO)
        p->overlap_grad_reduce = sharded ? MAQ_ON : MAQ_OFF;
    if (p->overlap_param_gather == MAQ_AUTO)
        p->overlap_param_gather =
            sharded && (p->sharding == MAQ_SHARDING_PARAMS || !r->job->framework.gathers_in_step) ? MAQ_ON : MAQ_OFF;
    if (p->overlap_tp == MAQ_AUTO)
        p->overlap_tp = MAQ_OFF;
    if (p->overlap_ep == MAQ_AUTO)
        p->overlap_ep =
            p->schedule == MAQ_SCHEDULE_DUALPIPE || p->schedule == MAQ_SCHEDULE_DUALPIPE_V ? MAQ_ON : MAQ_OFF;
    resolve_attention(r);
    resolve_fp8_attention(r);
    if (p->cp_a2a == 0)
        p->cp_a2a = p->cp_comm == MAQ_CP_A2A ? p->cp : 1;
    if (p->cp_comm == MAQ_CP_A2A_P2P && p->cp_a2a == 1)
        p->cp_a2a = largest_divisor(p->cp, r->job->cluster.groups[0].domain_devices / p->tp);
    char hint[32];
    if (p->cp_a2a > p->cp || p->cp_a2a < 1 || p->cp % p->cp_a2a != 0)
        REFUSE(r, MAQ_CODE_PLAN_DEGREES, "hierarchical_cp_a2a_size", try_divisor(hint, r, p->cp, p->cp_a2a),
               "the inner group of %d does not divide cp %d", p->cp_a2a, p->cp);
    int64_t shard = (int64_t)r->job->dp * p->cp;
    if (shard % p->num_optimizer_instances != 0)
        REFUSE(r, MAQ_CODE_PLAN_DEGREES, "num_distributed_optimizer_instances",
               try_divisor(hint, r, (int32_t)shard, p->num_optimizer_instances),
               "%d copies of the sharded state do not divide dp x cp = %lld", p->num_optimizer_instances,
               (long long)shard);
    if (p->num_optimizer_instances > 1 && !sharded)
        REFUSE(r, MAQ_CODE_PLAN_DEGREES, "num_distributed_optimizer_instances", "set data_parallel_sharding_strategy",
               "nothing is sharded, so there are no copies of shards");
}

enum maq_status maq_job_resolve(struct maq_job *job, const struct maq_job_places *at, struct maq_diag *diag)
{
    static void (*const steps[])(struct resolver *) = {
        resolve_dp,         resolve_update,    resolve_sharding,  resolve_switches,
        resolve_batch,      resolve_optimizer, resolve_schedule,  resolve_precision,
        resolve_adapters,   resolve_experts,   resolve_recompute, resolve_offload,
        resolve_overlap_ep, resolve_graphs,    check_pyramid,     resolve_offloaded_states};
    struct resolver r = {.job = job, .at = at, .diag = diag};
    for (size_t i = 0; i < MAQ_COUNT(steps); i++) {
        steps[i](&r);
        if (r.failed && !diag) /* without a diag the first fault is enough */
            return MAQ_BAD_INPUT;
    }
    for (uint32_t k = 0; k < job->model.n_kinds && !r.failed; k++)
        check_widths(&r, &job->model.kinds[k]);
    return r.failed ? MAQ_BAD_INPUT : MAQ_OK;
}
