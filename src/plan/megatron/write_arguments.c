/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write_arguments.c - a plan as the arguments of Megatron-LM's training scripts.
 *
 * Names and meanings are those of megatron/training/arguments.py and transformer_config.py (core 0.12 and later; d98e8a6 of
 * August 2026 for what came since). A setting that Megatron-LM does not have is left out here, and named by who reads the
 * arguments back (plan/words).
 */
#include <math.h>
#include <string.h>

#include "base/str.h"
#include "plan/job_build.h"
#include "plan/keys.h"

#define LARGEST ((size_t)1 << 16)

static void flag(struct maq_buf *b, bool on, const char *name)
{
    if (on)
        maq_buf_addf(b, "--%s\n", name);
}

static void number(struct maq_buf *b, bool when, const char *name, int64_t value)
{
    if (when)
        maq_buf_addf(b, "--%s %lld\n", name, (long long)value);
}

static void degrees(struct maq_buf *b, const struct maq_job *job)
{
    const struct maq_plan *p = &job->plan;
    number(b, true, "tensor-model-parallel-size", p->tp);
    flag(b, p->sequence_parallel == MAQ_ON, "sequence-parallel");
    number(b, true, "pipeline-model-parallel-size", p->pp);
    number(b, p->cp > 1, "context-parallel-size", p->cp);
    if (p->cp > 1) {
        static const char *const comm[] = {"p2p", "all_gather", "a2a", "a2a+p2p"};
        maq_buf_addf(b, "--cp-comm-type %s\n", comm[p->cp_comm]);
        if (p->cp_comm == MAQ_CP_A2A_P2P)
            maq_buf_addf(b, "--hierarchical-context-parallel-sizes %d %d\n", p->cp_a2a, p->cp / p->cp_a2a);
    }
    number(b, p->ep > 1, "expert-model-parallel-size", p->ep);
    number(b, p->ep > 1 || p->etp != p->tp, "expert-tensor-parallel-size", p->etp);
    if (maq_str_is(p->rank_order, "tp-cp-ep-pp-dp"))
        maq_buf_adds(b, "--use-tp-pp-dp-mapping\n");
}

/* One virtual stage in Megatron's layout language. */
static void stage_text(struct maq_buf *b, const struct maq_job *job, const struct maq_virtual_stage *v)
{
    if (v->embedding)
        maq_buf_addc(b, 'E');
    if (v->n_layers > 2)
        maq_buf_addf(b, "t*%d", v->n_layers);
    else
        for (int32_t i = 0; i < v->n_layers; i++)
            maq_buf_addc(b, 't');
    for (uint32_t i = 0; v->mtp && i < (uint32_t)job->model.mtp_layers; i++)
        maq_buf_addc(b, 'm');
    if (v->output)
        maq_buf_addc(b, 'L');
}

static bool alike(const struct maq_virtual_stage *a, const struct maq_virtual_stage *b)
{
    return a->n_layers == b->n_layers && a->embedding == b->embedding && a->output == b->output && a->mtp == b->mtp;
}

/* MTP alone in front of the last stage is no even split either. */
static bool even(const struct maq_job *job)
{
    bool even = true;
    for (uint32_t i = 0; i < job->n_virtual; i++)
        even &= job->virtual_stages[i].n_layers == job->virtual_stages[0].n_layers &&
                (!job->virtual_stages[i].mtp || i + 1 == job->n_virtual);
    return even;
}

/* It says how many virtual stages there are, too: arguments.py takes no number of them beside it. */
static void layout(struct maq_buf *b, const struct maq_job *job)
{
    maq_buf_adds(b, "--pipeline-model-parallel-layout \"");
    for (uint32_t i = 0, run; i < job->n_virtual; i += run) {
        const struct maq_virtual_stage *v = &job->virtual_stages[i];
        for (run = 1; i + run < job->n_virtual - 1 && alike(v, &job->virtual_stages[i + run]); run++)
            ;
        bool last = i + run == job->n_virtual;
        run = last ? 1 : run;
        if (run > 1)
            maq_buf_addc(b, '(');
        stage_text(b, job, v);
        maq_buf_adds(b, i + 1 == job->n_virtual ? "" : "|");
        if (run > 1)
            maq_buf_addf(b, ")*%u", run);
    }
    maq_buf_adds(b, "\"\n");
}

static void pipeline(struct maq_buf *b, const struct maq_job *job)
{
    const struct maq_plan *p = &job->plan;
    if (p->pp == 1)
        return;
    bool plain = even(job) || p->schedule == MAQ_SCHEDULE_DUALPIPE;
    number(b, plain && p->vp > 1, "num-virtual-stages-per-pipeline-rank", p->vp);
    number(b, p->vp > 1 && p->microbatch_group != p->pp, "microbatch-group-size-per-virtual-pipeline-stage",
           p->microbatch_group);
    flag(b, p->vp > 1 && p->overlap_p2p == MAQ_OFF, "no-overlap-p2p-communication");
    flag(b, !p->scatter_gather_p2p, "no-scatter-gather-tensors-in-pipeline");
    if (!plain)
        layout(b, job);
}

static void data_parallel(struct maq_buf *b, const struct maq_plan *p)
{
    bool keeps = p->sharding == MAQ_SHARDING_PARAMS && !p->reshard_after_forward;
    if (p->sharding == MAQ_SHARDING_OPTIM) {
        flag(b, true, "use-distributed-optimizer");
    } else if (keeps && p->pp == 1 && p->ep == 1) { /* what it is for; Megatron-FSDP always drops them */
        maq_buf_adds(b, "--use-torch-fsdp2\n--torch-fsdp2-no-reshard-after-forward\n");
    } else if (p->sharding != MAQ_SHARDING_NONE) {
        flag(b, true, "use-megatron-fsdp");
        maq_buf_addf(b, "--data-parallel-sharding-strategy %s\n",
                     p->sharding == MAQ_SHARDING_GRADS ? "optim_grads" : "optim_grads_params");
    }
    if (p->update == MAQ_UPDATE_SGD || p->update == MAQ_UPDATE_MUON)
        maq_buf_addf(b, "--optimizer %s\n", p->update == MAQ_UPDATE_SGD ? "sgd" : "muon");
    if (p->update == MAQ_UPDATE_MUON && p->muon_tp_mode == MAQ_MUON_BLOCKWISE)
        maq_buf_adds(b, "--muon-tp-mode blockwise\n");
    number(b, p->update == MAQ_UPDATE_MUON, "muon-num-ns-steps", p->muon_steps);
    flag(b, p->overlap_grad_reduce == MAQ_ON, "overlap-grad-reduce");
    flag(b, p->overlap_param_gather == MAQ_ON, "overlap-param-gather");
    number(b, p->num_optimizer_instances > 1, "num-distributed-optimizer-instances", p->num_optimizer_instances);
    flag(b, p->grad_reduce_dtype == MAQ_BF16 && p->grad_dtype == MAQ_BF16, "grad-reduce-in-bf16"); /* one buffer */
}

/* Types of what the optimizer keeps are those of its precision-aware form alone; so is its place on the host. */
static void optimizer_state(struct maq_buf *b, const struct maq_plan *p)
{
    bool moments = p->optimizer_dtype == MAQ_FP16 || p->optimizer_dtype == MAQ_BF16 || p->optimizer_dtype == MAQ_FP8;
    bool grads = p->grad_dtype == MAQ_BF16 && p->grad_reduce_dtype != MAQ_BF16;
    flag(b, moments || grads || p->optimizer_offload > 0, "use-precision-aware-optimizer");
    if (moments) {
        const char *name = maq_dtype_name((enum maq_dtype)p->optimizer_dtype);
        maq_buf_addf(b, "--exp-avg-dtype %s\n--exp-avg-sq-dtype %s\n", name, name);
    }
    if (grads)
        maq_buf_adds(b, "--main-grads-dtype bf16\n");
    if (p->optimizer_offload > 0)
        maq_buf_addf(b, "--optimizer-cpu-offload\n--optimizer-offload-fraction %g\n", p->optimizer_offload);
}

static void words(struct maq_buf *b, const struct maq_plan *p, enum maq_plan_list list, const char *argument)
{
    if (maq_plan_bits(p, list) == 0)
        return;
    maq_buf_addf(b, "--%s ", argument);
    maq_plan_add_words(b, p, list, " ");
    maq_buf_addc(b, '\n');
}

/* Megatron-LM has one number for all stages: where ours differ, the largest. */
static int32_t block_layers(const struct maq_job *job)
{
    int32_t most = 0;
    if (job->plan.recompute_num_layers > 0)
        return job->plan.recompute_num_layers;
    for (uint32_t i = 0; i < job->n_virtual; i++) {
        const struct maq_virtual_stage *v = &job->virtual_stages[i];
        int32_t n = v->redone_given && v->redone_layers < v->n_layers ? v->redone_layers : v->n_layers;
        most = n > most ? n : most;
    }
    return most;
}

static void memory(struct maq_buf *b, const struct maq_job *job)
{
    const struct maq_plan *p = &job->plan;
    if (p->recompute == MAQ_RECOMPUTE_SELECTIVE) {
        maq_buf_adds(b, "--recompute-granularity selective\n");
        words(b, p, MAQ_PLAN_RECOMPUTE_MODULES, "recompute-modules");
    } else if (p->recompute == MAQ_RECOMPUTE_FULL) {
        bool block = p->recompute_method == MAQ_RECOMPUTE_BLOCK;
        maq_buf_addf(b, "--recompute-granularity full\n--recompute-method %s\n", block ? "block" : "uniform");
        number(b, true, "recompute-num-layers",
               block                         ? block_layers(job)
               : p->recompute_num_layers > 0 ? p->recompute_num_layers
                                             : 1);
    }
    if (p->offload_layers > 0)
        maq_buf_addf(b, "--cpu-offloading-num-layers %d\n", p->offload_layers);
    flag(b, p->offload_inputs, "fine-grained-activation-offloading");
    words(b, p, MAQ_PLAN_OFFLOAD_MODULES, "offload-modules");
}

static void precision(struct maq_buf *b, const struct maq_plan *p)
{
    static const char *const recipes[MAQ_PRECISION_COUNT] = {
        [MAQ_PRECISION_FP8_DELAYED] = "delayed",     [MAQ_PRECISION_FP8_CURRENT] = "tensorwise",
        [MAQ_PRECISION_FP8_ROWWISE] = "tensorwise", /* it has no scales per row */
        [MAQ_PRECISION_FP8_BLOCKWISE] = "blockwise", [MAQ_PRECISION_MXFP8] = "mxfp8",
    };
    if (p->precision == MAQ_PRECISION_FP32)
        return;
    flag(b, true, p->precision == MAQ_PRECISION_FP16 ? "fp16" : "bf16");
    if (recipes[p->precision])
        maq_buf_addf(b, "--fp8-format hybrid\n--fp8-recipe %s\n", recipes[p->precision]);
    if (p->precision == MAQ_PRECISION_NVFP4)
        maq_buf_adds(b, "--fp4-format e2m1\n--fp4-recipe nvfp4\n");
    flag(b, p->fp8_param_gather, "fp8-param-gather");
    flag(b, p->wide_ends, "first-last-layers-bf16");
    number(b, p->wide_ends, "num-layers-at-start-in-bf16", p->wide_at_start);
    number(b, p->wide_ends, "num-layers-at-end-in-bf16", p->wide_at_end);
    flag(b, p->fp8_output, "fp8-output-proj");
}

static void experts(struct maq_buf *b, const struct maq_job *job)
{
    static const char *const dispatchers[] = {"alltoall", "allgather", "flex", "flex"};
    const struct maq_plan *p = &job->plan;
    if (!maq_model_find_module(&job->model, MAQ_MODULE_ROUTER, MAQ_PART_COUNT))
        return;
    maq_buf_addf(b, "--moe-token-dispatcher-type %s\n", dispatchers[p->dispatcher]);
    if (p->dispatcher == MAQ_DISPATCHER_DEEPEP || p->dispatcher == MAQ_DISPATCHER_HYBRIDEP)
        maq_buf_addf(b, "--moe-flex-dispatcher-backend %s\n",
                     p->dispatcher == MAQ_DISPATCHER_DEEPEP ? "deepep" : "hybridep");
    if (p->flex_sms > 0 && (p->dispatcher == MAQ_DISPATCHER_DEEPEP || p->dispatcher == MAQ_DISPATCHER_HYBRIDEP))
        maq_buf_addf(b, "--moe-flex-dispatcher-num-sms %d\n", (int)p->flex_sms);
    flag(b, true, "moe-grouped-gemm");
    if (p->capacity_factor > 0)
        maq_buf_addf(b, "--moe-expert-capacity-factor %g\n", p->capacity_factor);
    flag(b, maq_plan_knows_expert_rows(p), "moe-pad-expert-input-to-capacity");
    flag(b, p->overlap_ep == MAQ_ON, "overlap-moe-expert-parallel-comm");
    flag(b, p->delay_wgrad, "delay-wgrad-compute");
    flag(b, p->overlap_shared_experts, "moe-shared-expert-overlap");
    flag(b, p->op_fuser, "use-transformer-engine-op-fuser");
}

/* Of a layer's kernels. */
static void kernels(struct maq_buf *b, const struct maq_job *job)
{
    const struct maq_plan *p = &job->plan;
    struct maq_plan open = *p;
    open.attention_backend = MAQ_ATTENTION_AUTO;
    bool unfused = p->attention_backend == MAQ_ATTENTION_UNFUSED;
    if (unfused && maq_attention_on(&open, &job->cluster.groups[0].device) != MAQ_ATTENTION_UNFUSED)
        maq_buf_adds(b, "--attention-backend unfused\n");
    flag(b, !p->softmax_fusion, "no-masked-softmax-fusion");
    flag(b, !p->weight_grad_fusion, "no-gradient-accumulation-fusion");
    flag(b, p->loss_fusion, "cross-entropy-loss-fusion");
    if (!p->fused_kernels)
        maq_buf_adds(b, "--no-bias-gelu-fusion\n--no-bias-swiglu-fusion\n--no-bias-dropout-fusion\n--no-rope-fusion\n");
}

/* Names of core 0.15, which later releases take as well; graphs need generators of random numbers that can be captured. */
static void graphs(struct maq_buf *b, const struct maq_plan *p)
{
    if (p->cuda_graphs)
        maq_buf_adds(b, "--cuda-graph-impl local\n--cuda-graph-scope full_iteration\n"
                        "--no-check-for-nan-in-loss-and-grad\n--te-rng-tracker\n");
    else if (p->graph_scope != 0) {
        maq_buf_adds(b, "--cuda-graph-impl transformer_engine\n");
        words(b, p, MAQ_PLAN_GRAPH_SCOPE, "cuda-graph-scope");
        maq_buf_adds(b, "--te-rng-tracker\n");
    }
}

char *maq_job_megatron_arguments(const struct maq_job *job)
{
    struct maq_buf b;
    maq_buf_init(&b, LARGEST);
    degrees(&b, job);
    pipeline(&b, job);
    number(&b, true, "micro-batch-size", job->plan.mbs);
    number(&b, true, "global-batch-size", job->workload.gbs);
    number(&b, true, "seq-length", job->workload.seq);
    data_parallel(&b, &job->plan);
    optimizer_state(&b, &job->plan);
    memory(&b, job);
    precision(&b, &job->plan);
    experts(&b, job);
    kernels(&b, job);
    flag(&b, job->plan.overlap_tp == MAQ_ON && job->plan.tp > 1, "tp-comm-overlap"); /* refused without TP */
    graphs(&b, &job->plan);
    return maq_buf_take(&b);
}
