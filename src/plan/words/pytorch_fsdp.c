/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pytorch_fsdp.c - a script around PyTorch's FSDP2, as the arguments of the calls that it makes.
 *
 * Names and defaults are those of PyTorch 2.6: torch/distributed/fsdp/_fully_shard (fully_shard, MixedPrecisionPolicy,
 * FSDPModule), torch/distributed/device_mesh.py, torch/distributed/pipelining/schedules.py,
 * torch/distributed/tensor/experimental/_attention.py (set_rotate_method), torch/nn/attention (SDPBackend), and torchao's
 * Float8LinearConfig. What a script decides itself (how layers are dealt to stages, how often gradients add up) has a line
 * too, under the name that scripts mostly give it.
 *
 * Shards lie over dp_shard and cp together, as dp_shard_cp in the mesh of torchtitan and others. PyTorch itself has nothing
 * that shares experts between ranks.
 */
#include <string.h>

#include "base/check.h"
#include "plan/job_build.h"
#include "plan/words/words.h"

/* ---- the mesh ---- */

#define DIMENSIONS 5
enum dimension { PP, REPLICATE, SHARD, CP, TP };
static const char *const names[DIMENSIONS] = {"pp", "dp_replicate", "dp_shard", "cp", "tp"};

static void degrees_of(int64_t n[DIMENSIONS], const struct maq_job *job)
{
    const struct maq_plan *p = &job->plan;
    bool sharded = p->sharding != MAQ_SHARDING_NONE;
    int32_t shards = job->dp / p->num_optimizer_instances;
    n[PP] = p->pp;
    n[REPLICATE] = sharded ? p->num_optimizer_instances : job->dp;
    n[SHARD] = sharded && shards > 1 ? shards : 1;
    n[CP] = p->cp;
    n[TP] = p->tp;
}

/* "(2, 8)", and ("dp_replicate", "dp_shard"): of what is more than one. */
static void write_mesh(struct maq_buf *out, const struct maq_word *row, const struct maq_job *job)
{
    int64_t n[DIMENSIONS];
    uint32_t said = 0;
    bool numbers = strcmp(row->word, "init_device_mesh.mesh_shape") == 0;
    degrees_of(n, job);
    for (int i = 0; i < DIMENSIONS; i++) {
        if (n[i] <= 1)
            continue;
        maq_buf_adds(out, said++ > 0 ? ", " : "(");
        if (numbers)
            maq_buf_addf(out, "%lld", (long long)n[i]);
        else
            maq_buf_addf(out, "\"%s\"", names[i]);
    }
    if (said > 0)
        maq_buf_adds(out, said == 1 ? ",)" : ")");
}

/* The next item of "(2, 8)" or ("dp_shard", "tp"). */
static bool next_item(struct maq_str *rest, struct maq_str *item)
{
    do {
        if (!rest->ptr || rest->len == 0)
            return false;
        *rest = maq_str_split(*rest, ',', item);
        while (item->len > 0 && strchr("(\" ", item->ptr[0]))
            *item = (struct maq_str){item->ptr + 1, item->len - 1};
        while (item->len > 0 && strchr(")\" ", item->ptr[item->len - 1]))
            item->len--;
    } while (item->len == 0);
    return true;
}

static void read_degrees(int64_t n[DIMENSIONS], const struct maq_words_reader *r)
{
    struct maq_str shape = maq_words_text(r, "init_device_mesh.mesh_shape"), number, name,
                   called = maq_words_text(r, "init_device_mesh.mesh_dim_names");
    for (int i = 0; i < DIMENSIONS; i++)
        n[i] = 1;
    while (next_item(&shape, &number) && next_item(&called, &name))
        for (int i = 0; i < DIMENSIONS; i++)
            if (maq_str_is(name, names[i]))
                (void)maq_str_to_i64(&n[i], number);
}

static void read_mesh(struct maq_words_reader *r, const struct maq_word *row, struct maq_str text)
{
    int64_t n[DIMENSIONS];
    (void)row;
    (void)text;
    read_degrees(n, r);
    maq_words_set_number(r, "plan.tensor_model_parallel_size", n[TP]);
    maq_words_set_number(r, "plan.context_parallel_size", n[CP]);
    maq_words_set_number(r, "plan.pipeline_model_parallel_size", n[PP]);
    bool sharded = n[SHARD] * n[CP] > 1;
    maq_words_set(r, "plan.data_parallel_sharding_strategy", sharded ? "optim_grads_params" : "no_shard");
    if (sharded)
        maq_words_set_number(r, "plan.num_distributed_optimizer_instances", n[REPLICATE]);
}

/* ---- batch and pipeline ---- */

static void write_batch(struct maq_buf *out, const struct maq_word *row, const struct maq_job *job)
{
    (void)row;
    maq_buf_addf(out, "%d", job->plan.mbs * (job->plan.pp > 1 ? job->microbatches : 1));
}

/* Of a pipeline how many microbatches it has; without one how often gradients add up. */
static void write_microbatches(struct maq_buf *out, const struct maq_word *row, const struct maq_job *job)
{
    bool accumulated = strcmp(row->word, "gradient_accumulation_steps") == 0;
    if (accumulated == (job->plan.pp == 1))
        maq_buf_addf(out, "%d", job->microbatches);
}

static void read_batch(struct maq_words_reader *r, const struct maq_word *row, struct maq_str text)
{
    int64_t batch = 1, n[DIMENSIONS], cut = maq_words_number(r, "PipelineSchedule.n_microbatches", 1);
    (void)row;
    read_degrees(n, r);
    (void)maq_str_to_i64(&batch, text);
    maq_words_set_number(r, "plan.micro_batch_size", n[PP] > 1 && cut > 0 ? batch / cut : batch);
}

static void write_layers(struct maq_buf *out, const struct maq_word *row, const struct maq_job *job)
{
    (void)row;
    for (uint32_t i = 0; i < job->n_virtual && job->plan.pp > 1; i++)
        maq_buf_addf(out, "%s%d", i > 0 ? "," : "", job->virtual_stages[i].n_layers);
}

static void read_layers(struct maq_words_reader *r, const struct maq_word *row, struct maq_str text)
{
    int64_t n[DIMENSIONS], stages = 0;
    struct maq_str rest = text, item;
    const char *list = maq_arena_strdup(r->arena, text);
    (void)row;
    read_degrees(n, r);
    while (next_item(&rest, &item))
        stages++;
    r->failed |= !list;
    if (!list || n[PP] <= 1 || stages % n[PP] != 0)
        return;
    maq_words_set_number(r, "plan.virtual_pipeline_model_parallel_size", stages / n[PP]);
    maq_words_set(r, "plan.pipeline_model_parallel_layout", list);
}

/* ---- layers ---- */

#define EVERY_LAYER "every layer"
#define FIRST_LAYERS "layers of a stage, from the first: "
#define BY_OPERATOR "create_selective_checkpoint_contexts"

static void write_sequence(struct maq_buf *out, const struct maq_word *row, const struct maq_job *job)
{
    (void)row;
    if (job->plan.tp > 1)
        maq_buf_adds(out, job->plan.sequence_parallel == MAQ_ON ? "SequenceParallel" : "replicated");
}

static void read_sequence(struct maq_words_reader *r, const struct maq_word *row, struct maq_str text)
{
    (void)row;
    maq_words_set(r, "plan.sequence_parallel", maq_str_is(text, "SequenceParallel") ? "true" : "false");
}

/* A script wraps the layers that it likes: all, or some of each stage from the first on. */
static void write_checkpointing(struct maq_buf *out, const struct maq_word *row, const struct maq_job *job)
{
    const struct maq_plan *p = &job->plan;
    (void)row;
    if (p->recompute == MAQ_RECOMPUTE_FULL && p->recompute_method == MAQ_RECOMPUTE_BLOCK && p->recompute_num_layers > 0)
        maq_buf_addf(out, FIRST_LAYERS "%d", p->recompute_num_layers);
    else if (p->recompute == MAQ_RECOMPUTE_FULL)
        maq_buf_adds(out, EVERY_LAYER);
    else if (p->recompute == MAQ_RECOMPUTE_SELECTIVE && p->selective_ac == MAQ_SELECTIVE_AC_OP)
        maq_buf_adds(out, BY_OPERATOR);
}

static void read_checkpointing(struct maq_words_reader *r, const struct maq_word *row, struct maq_str text)
{
    const size_t n = strlen(FIRST_LAYERS);
    int64_t layers = 0;
    bool some = maq_str_starts(text, FIRST_LAYERS) &&
                maq_str_to_i64(&layers, (struct maq_str){text.ptr + n, text.len - n}),
         op = maq_str_is(text, BY_OPERATOR);
    (void)row;
    maq_words_set(r, "plan.recompute_granularity",
                  op                                      ? "selective"
                  : some || maq_str_is(text, EVERY_LAYER) ? "full"
                                                          : "none");
    if (op)
        maq_words_set(r, "plan.selective_ac_option", "op");
    if (some) {
        maq_words_set(r, "plan.recompute_method", "block");
        maq_words_set_number(r, "plan.recompute_num_layers", layers);
    }
}

/* ---- precision ---- */

static void write_params(struct maq_buf *out, const struct maq_word *row, const struct maq_job *job)
{
    int precision = job->plan.precision;
    (void)row;
    maq_buf_adds(out, precision == MAQ_PRECISION_FP32   ? "torch.float32"
                      : precision == MAQ_PRECISION_FP16 ? "torch.float16"
                                                        : "torch.bfloat16");
}

static void write_float8(struct maq_buf *out, const struct maq_word *row, const struct maq_job *job)
{
    int precision = job->plan.precision;
    (void)row;
    maq_buf_adds(out, precision == MAQ_PRECISION_FP8_CURRENT   ? "tensorwise"
                      : precision == MAQ_PRECISION_FP8_ROWWISE ? "rowwise"
                                                               : "");
}

static void read_params(struct maq_words_reader *r, const struct maq_word *row, struct maq_str text)
{
    struct maq_str float8 = maq_words_text(r, "Float8LinearConfig.from_recipe_name");
    (void)row;
    maq_words_set(r, "plan.precision",
                  maq_str_is(float8, "tensorwise")    ? "fp8-current"
                  : maq_str_is(float8, "rowwise")     ? "fp8-rowwise"
                  : maq_str_is(text, "torch.float32") ? "fp32"
                  : maq_str_is(text, "torch.float16") ? "fp16"
                                                      : "bf16");
}

/* ---- the table ---- */

#define DTYPES "bf16=torch.bfloat16|fp16=torch.float16|fp32=torch.float32"

static const struct maq_word words[] = {
    MAQ_WORD_JOINT("init_device_mesh.mesh_shape", "(1,)", .write = write_mesh, .read = read_mesh),
    MAQ_WORD_JOINT("init_device_mesh.mesh_dim_names", NULL, .write = write_mesh),
    MAQ_WORD_MAPPED("fully_shard.reshard_after_forward", "plan.reshard_after_forward", "True", "true=True|false=False"),
    MAQ_WORD_JOINT("MixedPrecisionPolicy.param_dtype", NULL, .write = write_params, .read = read_params),
    MAQ_WORD_MAPPED("MixedPrecisionPolicy.reduce_dtype", "plan.grad_reduce_dtype", NULL, DTYPES),
    MAQ_WORD_JOINT("Float8LinearConfig.from_recipe_name", NULL, .write = write_float8),
    MAQ_WORD_MAPPED("Float8LinearConfig.enable_fsdp_float8_all_gather", "plan.fp8_param_gather", "False",
                    "true=True|false=False"),
    MAQ_WORD_MAPPED("FSDPModule.set_requires_gradient_sync", "plan.reduce_once_per_step", "every microbatch",
                    "true=last microbatch|false=every microbatch"),
    MAQ_WORD("FSDPModule.set_modules_to_forward_prefetch", "plan.fsdp_prefetch", "1"),
    MAQ_WORD_JOINT("parallelize_module.norms", NULL, .write = write_sequence, .read = read_sequence),
    MAQ_WORD_MAPPED("set_rotate_method", "plan.cp_comm_type", "allgather", "all_gather=allgather|p2p=alltoall"),
    MAQ_WORD_MAPPED(
        "PipelineSchedule", "plan.pipeline_schedule", "Schedule1F1B",
        "1f1b=Schedule1F1B|gpipe=ScheduleGPipe|interleaved=ScheduleInterleaved1F1B|"
        "interleaved-zb=ScheduleInterleavedZeroBubble|zb-v=ScheduleZBVZeroBubble|dualpipe-v=ScheduleDualPipeV"),
    MAQ_WORD_JOINT("PipelineSchedule.n_microbatches", NULL, .write = write_microbatches),
    MAQ_WORD_JOINT("PipelineStage.layers", NULL, .write = write_layers, .read = read_layers),
    MAQ_WORD_JOINT("DataLoader.batch_size", NULL, .write = write_batch, .read = read_batch),
    MAQ_WORD_JOINT("gradient_accumulation_steps", "1", .write = write_microbatches),
    MAQ_WORD("global_batch_size", "workload.global_batch_size", NULL),
    MAQ_WORD("seq_length", "workload.seq_length", NULL),
    MAQ_WORD_JOINT("torch.utils.checkpoint", "none", .write = write_checkpointing, .read = read_checkpointing),
    MAQ_WORD_MAPPED("torch.compile", "plan.fused_kernels", "False", "true=True|false=False"),
    MAQ_WORD_MAPPED("torch.nn.attention.sdpa_kernel", "plan.attention_backend", "SDPBackend.FLASH_ATTENTION",
                    "flash2=SDPBackend.FLASH_ATTENTION|flash=SDPBackend.CUDNN_ATTENTION|unfused=SDPBackend.MATH"),
    MAQ_WORD_MAPPED("torch.optim", "plan.optimizer", "AdamW", "adam=AdamW|sgd=SGD"),
    MAQ_WORD_MAPPED("model.to", "plan.pure_low_precision", "torch.float32", "false=torch.float32|true=torch.bfloat16"),
    MAQ_WORD_END};

static bool runs(const struct maq_plan *p, const char *key)
{
    if (strcmp(key, "expert_model_parallel_size") == 0)
        return p->ep == 1;
    if (strcmp(key, "recompute_granularity") == 0 && p->recompute_method == MAQ_RECOMPUTE_BLOCK)
        return p->recompute_stages.len == 0;
    return strcmp(key, "sequence_parallel") == 0 || maq_words_pytorch_runs(p, key);
}

const struct maq_vocabulary maq_words_fsdp = {
    .title = "PyTorch FSDP2", .before = "", .between = " = ", .words = words, .runs = runs};
