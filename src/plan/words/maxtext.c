/* SPDX-License-Identifier: Apache-2.0 */
/*
 * maxtext.c - MaxText's keys, as its command line takes them and its YAML has them.
 *
 * Names, defaults and meanings are those of configs/base.yml and types.py at e591f30 (August 2026, after
 * maxtext-v0.2.4), and of layers/decoders.py for remat_policy.
 *
 *   - The product of the ici_ axes is the devices of a slice, here a scale-up domain, that of the dcn_ axes the number of
 *     slices: an axis lies inside a slice as far as it goes, the inner ones first.
 *   - Parameters are sharded over fsdp, context and expert together; a batch over data, fsdp and expert. So the experts' axis
 *     is a part of data parallelism, and plans whose TP ranks hold different experts cannot be said.
 *   - A TP axis that cuts the sequence as well is tensor_sequence, else tensor.
 *   - per_device_batch_size counts over all devices, those of a TP group too, and is of one microbatch where gradients add up.
 *   - All microbatches go forward through a pipeline before the first goes back (GPipe).
 */
#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "plan/job_build.h"
#include "plan/words/words.h"

/* ---- axes ---- */

enum axis { TENSOR, TENSOR_SEQUENCE, CONTEXT, EXPERT, FSDP, DATA, PIPELINE, AXES };
static const char *const axis_names[AXES] = {"tensor", "tensor_sequence", "context", "expert", "fsdp",
                                             "data",   "pipeline"};

static int64_t common(int64_t a, int64_t b)
{
    while (b > 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void axes_of(int64_t n[AXES], const struct maq_job *job)
{
    const struct maq_plan *p = &job->plan;
    bool sequence = p->sequence_parallel == MAQ_ON;
    n[EXPERT] = common(job->dp, p->ep); /* where that is not EP, all devices have an axis at least */
    int64_t rest = job->dp / n[EXPERT];
    bool copies = p->sharding == MAQ_SHARDING_PARAMS && rest % p->num_optimizer_instances == 0;
    n[TENSOR] = sequence ? 1 : p->tp;
    n[TENSOR_SEQUENCE] = sequence ? p->tp : 1;
    n[CONTEXT] = p->cp;
    n[DATA] = p->sharding != MAQ_SHARDING_PARAMS ? rest : copies ? p->num_optimizer_instances : 1;
    n[FSDP] = rest / n[DATA];
    n[PIPELINE] = p->pp;
}

/* What of each axis lies inside a slice. */
static void inside_of(int64_t inside[AXES], const int64_t n[AXES], const struct maq_job *job)
{
    int64_t left = job->cluster.groups[0].domain_devices;
    for (int a = 0; a < AXES; a++) {
        inside[a] = common(n[a], left);
        left /= inside[a];
    }
}

/* "ici_tensor_parallelism" and "dcn_..." */
static enum axis axis_of(const char *word, bool *inside)
{
    size_t n = strlen(word) - strlen("_parallelism");
    const struct maq_str name = {word + strlen("ici_"), n - strlen("ici_")};
    int a = 0;
    *inside = word[0] == 'i';
    while (a < AXES - 1 && !maq_str_is(name, axis_names[a]))
        a++;
    return (enum axis)a;
}

static void write_axis(struct maq_buf *out, const struct maq_word *row, const struct maq_job *job)
{
    int64_t n[AXES], in[AXES];
    bool inside;
    enum axis a = axis_of(row->word, &inside);
    axes_of(n, job);
    inside_of(in, n, job);
    maq_buf_addf(out, "%lld", (long long)(inside ? in[a] : n[a] / in[a]));
}

static void read_axes(int64_t n[AXES], const struct maq_words_reader *r)
{
    for (int a = 0; a < AXES; a++) {
        char ici[64], dcn[64];
        maq__snprintf(ici, sizeof ici, "ici_%s_parallelism", axis_names[a]);
        maq__snprintf(dcn, sizeof dcn, "dcn_%s_parallelism", axis_names[a]);
        n[a] = maq_words_number(r, ici, 1) * maq_words_number(r, dcn, 1);
        n[a] = n[a] < 1 ? 1 : n[a];
    }
}

static void read_degrees(struct maq_words_reader *r, const int64_t n[AXES])
{
    int64_t tp = n[TENSOR] * n[TENSOR_SEQUENCE];
    maq_words_set_number(r, "plan.tensor_model_parallel_size", tp);
    maq_words_set(r, "plan.sequence_parallel", n[TENSOR_SEQUENCE] > 1 ? "true" : "false");
    maq_words_set_number(r, "plan.context_parallel_size", n[CONTEXT]);
    maq_words_set_number(r, "plan.expert_model_parallel_size", n[EXPERT]);
    maq_words_set_number(r, "plan.expert_tensor_parallel_size", tp);
    maq_words_set_number(r, "plan.pipeline_model_parallel_size", n[PIPELINE]);
}

static void read_sharding(struct maq_words_reader *r, const int64_t n[AXES])
{
    bool sharded = n[FSDP] * n[CONTEXT] * n[EXPERT] > 1,
         optimizer = maq_str_is(maq_words_text(r, "shard_optimizer_over_data"), "True");
    maq_words_set(r, "plan.data_parallel_sharding_strategy",
                  sharded     ? "optim_grads_params"
                  : optimizer ? "optim"
                              : "no_shard");
    if (sharded)
        maq_words_set_number(r, "plan.num_distributed_optimizer_instances", n[DATA]);
}

/* Stages are layers / (stages x layers of one) repeats deep; without a pipeline gradients add up one after the other. */
static void read_pipeline(struct maq_words_reader *r, const int64_t n[AXES])
{
    int64_t each = maq_words_number(r, "num_layers_per_pipeline_stage", 1), layers = r->about->model.num_layers;
    bool even = n[PIPELINE] > 1 && each > 0 && layers % (n[PIPELINE] * each) == 0;
    maq_words_set(r, "plan.pipeline_schedule", n[PIPELINE] > 1 ? "gpipe" : "1f1b");
    if (even)
        maq_words_set_number(r, "plan.virtual_pipeline_model_parallel_size", layers / (n[PIPELINE] * each));
}

/* Of one word: what is said of axes together. */
static void read_all(struct maq_words_reader *r, const struct maq_word *row, struct maq_str text)
{
    int64_t n[AXES];
    (void)row;
    (void)text;
    read_axes(n, r);
    read_degrees(r, n);
    read_sharding(r, n);
    read_pipeline(r, n);
}

static void write_optimizer_sharding(struct maq_buf *out, const struct maq_word *row, const struct maq_job *job)
{
    (void)row;
    maq_buf_adds(out, job->plan.sharding == MAQ_SHARDING_OPTIM ? "True" : "False");
}

static void write_stage_layers(struct maq_buf *out, const struct maq_word *row, const struct maq_job *job)
{
    (void)row;
    if (job->plan.pp > 1)
        maq_buf_addf(out, "%d", job->virtual_stages[0].n_layers);
}

/* ---- batch ---- */

static void write_batch(struct maq_buf *out, const struct maq_word *row, const struct maq_job *job)
{
    int64_t at_once = job->plan.pp > 1 ? job->workload.gbs : (int64_t)job->plan.mbs * job->dp;
    (void)row;
    maq_buf_addf(out, "%.10g", (double)at_once / job->cluster.devices);
}

static void write_microbatches(struct maq_buf *out, const struct maq_word *row, const struct maq_job *job)
{
    bool accumulated = strcmp(row->word, "gradient_accumulation_steps") == 0;
    if (accumulated == (job->plan.pp == 1))
        maq_buf_addf(out, "%d", job->microbatches);
}

static void read_batch(struct maq_words_reader *r, const struct maq_word *row, struct maq_str text)
{
    double each = 1;
    int64_t n[AXES], dp;
    (void)row;
    read_axes(n, r);
    dp = n[DATA] * n[FSDP] * n[EXPERT];
    bool ok = maq_str_to_double(&each, text) && each > 0 && each < 1e6;
    int64_t cut = n[PIPELINE] > 1 ? maq_words_number(r, "num_pipeline_microbatches", n[PIPELINE]) : 1;
    double mbs = each * r->about->cluster.devices / (double)(dp * (cut > 0 ? cut : 1));
    maq_words_set_number(r, "plan.micro_batch_size", ok && mbs >= 1 ? llround(mbs) : 1);
}

/* ---- layers ---- */

static void write_remat(struct maq_buf *out, const struct maq_word *row, const struct maq_job *job)
{
    (void)row;
    maq_buf_adds(out, job->plan.recompute == MAQ_RECOMPUTE_FULL ? "full" : "none");
}

static void read_remat(struct maq_words_reader *r, const struct maq_word *row, struct maq_str text)
{
    (void)row;
    maq_words_set(r, "plan.recompute_granularity", maq_str_is(text, "full") ? "full" : "none");
}

static void write_capacity(struct maq_buf *out, const struct maq_word *row, const struct maq_job *job)
{
    bool experts = maq_model_find_module(&job->model, MAQ_MODULE_ROUTER, MAQ_PART_COUNT) != NULL;
    bool drops = experts && job->plan.capacity_factor > 0;
    if (strcmp(row->word, "sparse_matmul") == 0)
        maq_buf_adds(out, drops ? "False" : "True"); /* products of all experts at their full capacity */
    else if (drops)
        maq_buf_addf(out, "%g", job->plan.capacity_factor);
}

static void read_capacity(struct maq_words_reader *r, const struct maq_word *row, struct maq_str text)
{
    double factor = 0;
    const char *copy = maq_arena_strdup(r->arena, text);
    (void)row;
    bool drops = copy && maq_str_to_double(&factor, text) && factor > 0;
    maq_words_set(r, "plan.moe_expert_capacity_factor", drops ? copy : "0");
}

/* ---- precision ---- */

static const struct {
    int precision;
    const char *name, *quantization;
} recipes[] = {{MAQ_PRECISION_FP8_DELAYED, "fp8-delayed", "te_fp8_delayedscaling"},
               {MAQ_PRECISION_FP8_CURRENT, "fp8-current", "te_fp8_currentscaling"},
               {MAQ_PRECISION_MXFP8, "mxfp8", "te_mxfp8"},
               {MAQ_PRECISION_NVFP4, "nvfp4", "te_nvfp4"}};

static void write_dtype(struct maq_buf *out, const struct maq_word *row, const struct maq_job *job)
{
    (void)row;
    maq_buf_adds(out, job->plan.precision == MAQ_PRECISION_FP32 ? "float32" : "bfloat16");
}

static void write_quantization(struct maq_buf *out, const struct maq_word *row, const struct maq_job *job)
{
    (void)row;
    for (size_t i = 0; i < MAQ_COUNT(recipes); i++)
        if (job->plan.precision == recipes[i].precision)
            maq_buf_adds(out, recipes[i].quantization);
}

static void read_dtype(struct maq_words_reader *r, const struct maq_word *row, struct maq_str text)
{
    struct maq_str quantization = maq_words_text(r, "quantization");
    const char *precision = maq_str_is(text, "float32") ? "fp32" : "bf16";
    (void)row;
    for (size_t i = 0; i < MAQ_COUNT(recipes); i++)
        if (maq_str_is(quantization, recipes[i].quantization))
            precision = recipes[i].name;
    maq_words_set(r, "plan.precision", precision);
}

/* ---- the table ---- */

#define AXIS(name, ici, dcn)                                                                                           \
    MAQ_WORD_JOINT("ici_" name "_parallelism", ici, .write = write_axis),                                              \
        MAQ_WORD_JOINT("dcn_" name "_parallelism", dcn, .write = write_axis)

static const struct maq_word words[] = {
    MAQ_WORD_JOINT("per_device_batch_size", "12.0", .write = write_batch, .read = read_batch),
    MAQ_WORD_JOINT("gradient_accumulation_steps", "1", .write = write_microbatches),
    MAQ_WORD("max_target_length", "workload.seq_length", "2048"),
    AXIS("data", "1", "-1"),
    AXIS("pipeline", "1", "1"),
    AXIS("fsdp", "-1", "1"),
    AXIS("context", "1", "1"),
    AXIS("expert", "1", "1"),
    AXIS("tensor", "1", "1"),
    AXIS("tensor_sequence", "1", "1"),
    MAQ_WORD_JOINT("num_layers_per_pipeline_stage", "1", .write = write_stage_layers),
    MAQ_WORD_JOINT("num_pipeline_microbatches", "-1", .write = write_microbatches),
    MAQ_WORD_JOINT("shard_optimizer_over_data", "False", .write = write_optimizer_sharding, .read = read_all),
    MAQ_WORD_MAPPED("context_parallel_strategy", "plan.cp_comm_type", "all_gather",
                    "all_gather=all_gather|p2p=ring|a2a=ulysses"),
    MAQ_WORD_JOINT("remat_policy", "full", .write = write_remat, .read = read_remat),
    MAQ_WORD_JOINT("dtype", "bfloat16", .write = write_dtype, .read = read_dtype),
    MAQ_WORD_MAPPED("weight_dtype", "plan.pure_low_precision", "float32", "false=float32|true=bfloat16"),
    MAQ_WORD_JOINT("quantization", NULL, .write = write_quantization),
    MAQ_WORD_MAPPED("attention", "plan.attention_backend", "autoselected", "flash=cudnn_flash_te|unfused=dot_product"),
    MAQ_WORD_MAPPED("opt_type", "plan.optimizer", "adamw", "adam=adamw|sgd=sgd|muon=muon"),
    MAQ_WORD_JOINT("capacity_factor", "-1.0", .write = write_capacity, .read = read_capacity),
    MAQ_WORD_JOINT("sparse_matmul", "True", .write = write_capacity),
    MAQ_WORD_END};

/*
 * Pipelines of MaxText are GPipe, which a job has to ask for: what is searched by default are others. ZeRO-1 and no sharding
 * cannot be said beside CP or EP, whose axes shard parameters.
 */
static bool runs(const struct maq_plan *p, const char *key)
{
    if (strcmp(key, "data_parallel_sharding_strategy") == 0)
        return p->sharding == MAQ_SHARDING_PARAMS;
    if (strcmp(key, "expert_tensor_parallel_size") == 0)
        return p->etp == p->tp;
    if (strcmp(key, "cp_comm_type") == 0)
        return p->cp_comm != MAQ_CP_A2A_P2P;
    if (strcmp(key, "pipeline_model_parallel_size") == 0)
        return p->pp == 1 || p->schedule == MAQ_SCHEDULE_GPIPE;
    if (strcmp(key, "pipeline_schedule") == 0)
        return p->schedule == MAQ_SCHEDULE_1F1B || p->schedule == MAQ_SCHEDULE_GPIPE;
    return strcmp(key, "sequence_parallel") == 0 || maq_words_common_runs(p, key);
}

const struct maq_vocabulary maq_words_maxtext = {
    .title = "MaxText", .before = "", .between = "=", .words = words, .runs = runs};
