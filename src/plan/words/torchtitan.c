/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torchtitan.c - torchtitan's options.
 *
 * Names, defaults and meanings are those of torchtitan/config/job_config.py at v0.2.2, and of what reads them: parallel_dims.py
 * (the mesh), pipeline_parallel.py (how layers are dealt to stages), train.py (accumulation of gradients).
 *
 *   - The shards of FSDP lie over dp_shard and CP together, and DDP runs beside no other parallelism (parallelize.py): what is
 *     not sharded cannot be said with TP, CP or PP.
 *   - Tensor parallelism always cuts the sequence too.
 *   - With a pipeline, local_batch_size is all of a replica's sequences of a step, cut into microbatches.
 *   - Layers are dealt evenly, input and output counting for some of them; the first stages take what is left over.
 */
#include <string.h>

#include "base/check.h"
#include "plan/job_build.h"
#include "plan/words/words.h"

/* ---- data parallelism ---- */

static bool is_ddp(const struct maq_plan *p)
{
    return p->sharding == MAQ_SHARDING_NONE && p->tp == 1 && p->cp == 1 && p->pp == 1;
}

static void write_replicas(struct maq_buf *out, const struct maq_word *row, const struct maq_job *job)
{
    const struct maq_plan *p = &job->plan;
    (void)row;
    maq_buf_addf(out, "%d", is_ddp(p) ? job->dp : p->num_optimizer_instances);
}

static void write_shards(struct maq_buf *out, const struct maq_word *row, const struct maq_job *job)
{
    const struct maq_plan *p = &job->plan;
    int32_t n = job->dp / p->num_optimizer_instances;
    (void)row;
    maq_buf_addf(out, "%d", is_ddp(p) || n < 1 ? 1 : n);
}

static void read_shards(struct maq_words_reader *r, const struct maq_word *row, struct maq_str text)
{
    int64_t shards = 1, cp = maq_words_number(r, "parallelism.context_parallel_degree", 1);
    (void)row;
    bool sharded = maq_str_to_i64(&shards, text) && shards * cp > 1;
    maq_words_set(r, "plan.data_parallel_sharding_strategy", sharded ? "optim_grads_params" : "no_shard");
    if (sharded)
        maq_words_set_number(r, "plan.num_distributed_optimizer_instances",
                             maq_words_number(r, "parallelism.data_parallel_replicate_degree", 1));
}

/* ---- batch ---- */

static void write_local_batch(struct maq_buf *out, const struct maq_word *row, const struct maq_job *job)
{
    (void)row;
    maq_buf_addf(out, "%d", job->plan.mbs * (job->plan.pp > 1 ? job->microbatches : 1));
}

static void write_microbatch(struct maq_buf *out, const struct maq_word *row, const struct maq_job *job)
{
    (void)row;
    if (job->plan.pp > 1)
        maq_buf_addf(out, "%d", job->plan.mbs);
}

static void read_local_batch(struct maq_words_reader *r, const struct maq_word *row, struct maq_str text)
{
    int64_t n = 1;
    (void)row;
    if (maq_words_number(r, "parallelism.pipeline_parallel_degree", 1) > 1)
        n = maq_words_number(r, "parallelism.pipeline_parallel_microbatch_size", 1);
    else
        (void)maq_str_to_i64(&n, text);
    maq_words_set_number(r, "plan.micro_batch_size", n);
}

/* ---- the pipeline ---- */

#define MOST_WEIGHT 64 /* layers that input or output count for */

struct split {
    int64_t stages, layers, first, last; /* first, last: what input and output count for */
};

/* Layers of virtual stage i, as generate_llm_fqn_per_model_part() deals them; below 0: it refuses. */
static int64_t layers_of(const struct split *s, int64_t i)
{
    int64_t all = s->layers + s->first + s->last, each = all / s->stages, more = all % s->stages;
    if (s->stages == 1)
        return s->layers;
    if (each == 0 || s->first > each || s->last > each)
        return -1;
    return each + (i < more) - (i == 0 ? s->first : 0) - (i == s->stages - 1 ? s->last : 0);
}

static bool deals(const struct split *s, const struct maq_job *job)
{
    for (int64_t i = 0; i < s->stages; i++)
        if (layers_of(s, i) != job->virtual_stages[i].n_layers)
            return false;
    return true;
}

/* The least weights of input and output that deal layers as the plan does; false: none do. */
static bool find_split(struct split *s, const struct maq_job *job)
{
    *s = (struct split){.stages = job->n_virtual, .layers = job->model.num_layers};
    for (int64_t sum = 0; sum <= 2 * MOST_WEIGHT && job->plan.pp > 1; sum++)
        for (s->first = 0; s->first <= sum && s->first <= MOST_WEIGHT; s->first++) {
            s->last = sum - s->first;
            if (s->last <= MOST_WEIGHT && deals(s, job))
                return true;
        }
    return false;
}

/* Virtual stages that a number of layers in each means: all / n, rounded up. */
static int64_t stages_of(int64_t all, int64_t each)
{
    return (all + each - 1) / each;
}

static void write_first_less(struct maq_buf *out, const struct maq_word *row, const struct maq_job *job)
{
    struct split s;
    (void)row;
    if (find_split(&s, job))
        maq_buf_addf(out, "%lld", (long long)s.first);
}

static void write_last_less(struct maq_buf *out, const struct maq_word *row, const struct maq_job *job)
{
    struct split s;
    (void)row;
    if (find_split(&s, job))
        maq_buf_addf(out, "%lld", (long long)s.last);
}

/* Without it there are two virtual stages on a rank, or one where the schedule takes no more. */
static void write_stage_layers(struct maq_buf *out, const struct maq_word *row, const struct maq_job *job)
{
    struct split s;
    (void)row;
    if (!find_split(&s, job) || job->plan.vp < 3)
        return;
    int64_t all = s.layers + s.first + s.last, each = stages_of(all, s.stages);
    if (stages_of(all, each) == s.stages)
        maq_buf_addf(out, "%lld", (long long)each);
}

static bool takes_one(struct maq_str schedule)
{
    return maq_str_is(schedule, "1F1B") || maq_str_is(schedule, "GPipe");
}

/* Of the degree: what is said of stages all follows from it. */
static void read_pipeline(struct maq_words_reader *r, const struct maq_word *row, struct maq_str text)
{
    int64_t pp = 1, each = maq_words_number(r, "parallelism.pipeline_parallel_layers_per_stage", 0);
    bool one = takes_one(maq_words_text(r, "parallelism.pipeline_parallel_schedule"));
    (void)row;
    (void)maq_str_to_i64(&pp, text);
    maq_words_set_number(r, "plan.pipeline_model_parallel_size", pp);
    if (pp <= 1)
        return;
    struct split s = {.layers = r->about->model.num_layers,
                      .first = maq_words_number(r, "parallelism.pipeline_parallel_first_stage_less_layers", 1),
                      .last = maq_words_number(r, "parallelism.pipeline_parallel_last_stage_less_layers", 1)};
    s.stages = each > 0 ? stages_of(s.layers + s.first + s.last, each) : pp * (one ? 1 : 2);
    if (s.stages % pp != 0 || s.stages > MAQ_MAX_STAGES)
        return;
    struct maq_buf layers;
    maq_buf_init(&layers, 1 << 16);
    for (int64_t i = 0; i < s.stages; i++)
        maq_buf_addf(&layers, "%s%lld", i > 0 ? "," : "", (long long)layers_of(&s, i));
    maq_words_set_number(r, "plan.virtual_pipeline_model_parallel_size", s.stages / pp);
    r->failed |= layers.failed;
    if (!layers.failed)
        maq_words_set(r, "plan.pipeline_model_parallel_layout", layers.ptr);
    maq_buf_fini(&layers);
}

/* ---- experts ---- */

/* Without EP the experts are cut as everything is, whatever the option says. */
static void write_expert_tp(struct maq_buf *out, const struct maq_word *row, const struct maq_job *job)
{
    (void)row;
    if (job->plan.ep > 1)
        maq_buf_addf(out, "%d", job->plan.etp);
}

static void read_expert_tp(struct maq_words_reader *r, const struct maq_word *row, struct maq_str text)
{
    int64_t etp = 1, ep = maq_words_number(r, "parallelism.expert_parallel_degree", 1);
    (void)row;
    (void)maq_str_to_i64(&etp, text);
    maq_words_set_number(r, "plan.expert_tensor_parallel_size", ep > 1 ? etp : 0);
}

/* ---- activation checkpointing ---- */

static void write_checkpointing(struct maq_buf *out, const struct maq_word *row, const struct maq_job *job)
{
    const struct maq_plan *p = &job->plan;
    (void)row;
    maq_buf_adds(out, p->recompute == MAQ_RECOMPUTE_FULL                                                  ? "full"
                      : p->recompute == MAQ_RECOMPUTE_SELECTIVE && p->selective_ac == MAQ_SELECTIVE_AC_OP ? "selective"
                                                                                                          : "none");
}

static void write_checkpointing_option(struct maq_buf *out, const struct maq_word *row, const struct maq_job *job)
{
    (void)row;
    if (job->plan.recompute == MAQ_RECOMPUTE_SELECTIVE && job->plan.selective_ac == MAQ_SELECTIVE_AC_OP)
        maq_buf_adds(out, "op");
}

/* Every nth layer is a mode that nothing here stands for. */
static void read_checkpointing(struct maq_words_reader *r, const struct maq_word *row, struct maq_str text)
{
    bool op = maq_str_is(maq_words_text(r, "activation_checkpoint.selective_ac_option"), "op");
    (void)row;
    if (maq_str_is(text, "selective") && op) {
        maq_words_set(r, "plan.recompute_granularity", "selective");
        maq_words_set(r, "plan.selective_ac_option", "op");
    } else {
        maq_words_set(r, "plan.recompute_granularity", maq_str_is(text, "full") ? "full" : "none");
    }
}

/* ---- precision ---- */

static const struct {
    int precision;
    const char *name, *converter, *recipe;
} recipes[] = {{MAQ_PRECISION_FP8_CURRENT, "fp8-current", "quantize.linear.float8", "tensorwise"},
               {MAQ_PRECISION_FP8_ROWWISE, "fp8-rowwise", "quantize.linear.float8", "rowwise"},
               {MAQ_PRECISION_MXFP8, "mxfp8", "quantize.linear.mx", NULL}};

static void write_converter(struct maq_buf *out, const struct maq_word *row, const struct maq_job *job)
{
    (void)row;
    for (size_t i = 0; i < MAQ_COUNT(recipes); i++)
        if (job->plan.precision == recipes[i].precision)
            maq_buf_adds(out, recipes[i].converter);
}

static void write_recipe(struct maq_buf *out, const struct maq_word *row, const struct maq_job *job)
{
    (void)row;
    for (size_t i = 0; i < MAQ_COUNT(recipes); i++)
        if (job->plan.precision == recipes[i].precision && recipes[i].recipe)
            maq_buf_adds(out, recipes[i].recipe);
}

static void write_params(struct maq_buf *out, const struct maq_word *row, const struct maq_job *job)
{
    (void)row;
    maq_buf_adds(out, job->plan.precision == MAQ_PRECISION_FP32 ? "float32" : "bfloat16");
}

static void read_params(struct maq_words_reader *r, const struct maq_word *row, struct maq_str text)
{
    struct maq_str converter = maq_words_text(r, "model.converters"),
                   recipe = maq_words_text(r, "quantize.linear.float8.recipe_name");
    const char *precision = maq_str_is(text, "float32") ? "fp32" : "bf16";
    (void)row;
    for (size_t i = 0; i < MAQ_COUNT(recipes); i++)
        if (maq_str_is(converter, recipes[i].converter) &&
            (!recipes[i].recipe || maq_str_is(recipe, recipes[i].recipe)))
            precision = recipes[i].name;
    maq_words_set(r, "plan.precision", precision);
}

/* ---- the table ---- */

static const struct maq_word words[] = {
    MAQ_WORD_JOINT("parallelism.data_parallel_replicate_degree", "1", .write = write_replicas),
    MAQ_WORD_JOINT("parallelism.data_parallel_shard_degree", NULL, .write = write_shards, .read = read_shards),
    MAQ_WORD_MAPPED("parallelism.fsdp_reshard_after_forward", "plan.reshard_after_forward", NULL,
                    "true=always|false=never"),
    MAQ_WORD("parallelism.tensor_parallel_degree", "plan.tensor_model_parallel_size", "1"),
    MAQ_WORD_MAPPED("parallelism.enable_async_tensor_parallel", "plan.tp_comm_overlap", "off",
                    "true=" MAQ_WORD_SWITCH "|false=off"),
    MAQ_WORD("parallelism.context_parallel_degree", "plan.context_parallel_size", "1"),
    MAQ_WORD_MAPPED("parallelism.context_parallel_rotate_method", "plan.cp_comm_type",
                    "allgather", /* alltoall is a ring's exchange */
                    "all_gather=allgather|p2p=alltoall"),
    {.word = "parallelism.pipeline_parallel_degree",
     .path = "plan.pipeline_model_parallel_size",
     .def = "1",
     .read = read_pipeline},
    MAQ_WORD_MAPPED("parallelism.pipeline_parallel_schedule", "plan.pipeline_schedule", "1F1B",
                    "1f1b=1F1B|gpipe=GPipe|interleaved=Interleaved1F1B|interleaved-zb=InterleavedZeroBubble|zb-v="
                    "ZBVZeroBubble|dualpipe-v=DualPipeV"),
    MAQ_WORD_JOINT("parallelism.pipeline_parallel_layers_per_stage", NULL, .write = write_stage_layers),
    MAQ_WORD_JOINT("parallelism.pipeline_parallel_first_stage_less_layers", "1", .write = write_first_less),
    MAQ_WORD_JOINT("parallelism.pipeline_parallel_last_stage_less_layers", "1", .write = write_last_less),
    MAQ_WORD_JOINT("parallelism.pipeline_parallel_microbatch_size", "1", .write = write_microbatch),
    MAQ_WORD("parallelism.expert_parallel_degree", "plan.expert_model_parallel_size", "1"),
    MAQ_WORD_JOINT("parallelism.expert_tensor_parallel_degree", "1", .write = write_expert_tp, .read = read_expert_tp),
    MAQ_WORD_MAPPED("parallelism.expert_parallel_comm_backend", "plan.moe_token_dispatcher_type", "standard",
                    "alltoall=standard|deepep=deepep"),
    MAQ_WORD_JOINT("training.local_batch_size", NULL, .write = write_local_batch, .read = read_local_batch),
    MAQ_WORD("training.global_batch_size", "workload.global_batch_size", NULL),
    MAQ_WORD("training.seq_len", "workload.seq_length", NULL),
    MAQ_WORD_MAPPED("training.dtype", "plan.pure_low_precision", "float32", "true=bfloat16|false=float32"),
    MAQ_WORD_JOINT("training.mixed_precision_param", "bfloat16", .write = write_params, .read = read_params),
    MAQ_WORD_MAPPED("training.mixed_precision_reduce", "plan.grad_reduce_dtype", "float32", "fp32=float32"),
    MAQ_WORD_JOINT("model.converters", NULL, .write = write_converter),
    MAQ_WORD_JOINT("quantize.linear.float8.recipe_name", NULL, .write = write_recipe),
    MAQ_WORD_MAPPED("quantize.linear.float8.enable_fsdp_float8_all_gather", "plan.fp8_param_gather", "off",
                    "true=" MAQ_WORD_SWITCH "|false=off"),
    MAQ_WORD_JOINT("activation_checkpoint.mode", NULL, .write = write_checkpointing, .read = read_checkpointing),
    MAQ_WORD_JOINT("activation_checkpoint.selective_ac_option", "2", .write = write_checkpointing_option),
    MAQ_WORD_MAPPED("compile.enable", "plan.fused_kernels", "off", "true=" MAQ_WORD_SWITCH "|false=off"),
    MAQ_WORD_MAPPED("optimizer.name", "plan.optimizer", "AdamW", "adam=AdamW"),
    MAQ_WORD_END};

const struct maq_vocabulary maq_words_torchtitan = {
    .title = "torchtitan", .before = "--", .between = " ", .words = words, .runs = maq_words_pytorch_runs};
