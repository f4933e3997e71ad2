/* SPDX-License-Identifier: Apache-2.0 */
/*
 * framework.c - a framework profile from the catalogue, a file or a map: see framework.h.
 *
 *   title: Megatron-LM, 2019 to 2022
 *   source: arguments.py and schedules.py of tags v2.0 to v3.0
 *   host: {forward: 60 us, backward: 40 us}
 *   p2p_synchronizes: true
 *   plan: {attention_backend: unfused, overlap_grad_reduce: false}
 *   cases:
 *     - when: [fp16]
 *       plan: {main_grads_dtype: fp16}
 *
 * A case applies when all its conditions hold; later cases win over earlier ones and over `plan`, as in a document read
 * from top to bottom. Over a chain of `base` the settings of the base come first.
 */
#include "plan/framework.h"

#include <string.h>

#include "base/check.h"
#include "cluster/catalogue_entry.h"
#include "plan/codes.h"
#include "spec/field.h"

/* Figures: docs/frameworks.md. They are those of Megatron-LM, the framework whose words a plan is written in. */
const struct maq_framework maq_framework_default = {
    .name = "default",
    .title = "no framework named: Megatron-LM's host costs, no settings",
    .source = "docs/frameworks.md",
    .host = {.forward_s = 62e-6,
             .backward_s = 47e-6,
             .kernel_s = 12e-6,
             .expert_s = 27e-6,
             .collective_s = 20e-6,
             .skew_s = 35e-6,
             .checkpoint_s = 300e-6,
             .p2p_s = 300e-6,
             .pass_s = 1.5e-3,
             .step_s = 1e-3,
             .read_s = 30e-6},
    .vocabulary = MAQ_VOCABULARY_MEGATRON,
    .optimizer = MAQ_OPTIMIZER_FUSED,
    .p2p_synchronizes = true,
    .step_synchronizes = true,
    .moe_synchronizes = true,
    .has_fused_exchange = true,
    .has_tp_overlap = true,
    .has_shared_overlap = true,
    .has_cuda_graphs = true,
    .keeps_workspaces = true,
    .forward_calls = 1,
};

static const char *const vocabulary_names[] = {"none", "megatron-lm", "torchtitan", "pytorch-fsdp", "maxtext", NULL};
static const char *const bucket_names[] = {"none", "apart", "views", "hook", NULL};
static const char *const optimizer_names[] = {"fused", "foreach", NULL};

/* The profile being read, and what is not in it in the form of the document. */
struct framework_reader {
    struct maq_framework f;
    struct maq__entry_head head;
    struct maq_node *host, *plan, *cases;
};

#define ROW(kind_, member_, key_, ...) kind_(struct framework_reader, member_, key_, __VA_ARGS__)

/* What is one scalar, in whatever struct holds the profile at `at`. */
#define BEHAVIOUR(T, at)                                                                                               \
    MAQ_FIELD_ENUM(T, at vocabulary, "words", vocabulary_names,                                                        \
                   .doc = "whose settings `maquette plan` writes a plan in"),                                          \
        MAQ_FIELD_ENUM(T, at optimizer, "optimizer", optimizer_names,                                                  \
                       .doc = "fused: one kernel over all tensors; foreach: one per step of Adam"),                    \
        MAQ_FIELD_BOOL(T, at optimizer_casts_apart, "optimizer_casts_apart",                                           \
                       .doc = "gradients are widened and master weights narrowed around the optimizer's kernel"),      \
        MAQ_FIELD_BOOL(T, at p2p_synchronizes, "p2p_synchronizes",                                                     \
                       .doc = "the host waits for the device at pipeline transfers without overlap"),                  \
        MAQ_FIELD_BOOL(T, at p2p_sends_mask, "p2p_sends_mask",                                                         \
                       .doc = "the attention mask travels through the pipeline with the activations"),                 \
        MAQ_FIELD_BOOL(T, at p2p_whole_gradients, "p2p_whole_gradients",                                               \
                       .doc = "every TP rank sends the gradients of a pipeline transfer whole"),                       \
        MAQ_FIELD_BOOL(T, at step_synchronizes, "step_synchronizes",                                                   \
                       .doc = "the host waits for the device once a step"),                                            \
        MAQ_FIELD_BOOL(T, at pass_synchronizes, "pass_synchronizes",                                                   \
                       .doc = "the host waits for the device before and after every pass"),                            \
        MAQ_FIELD_BOOL(T, at moe_synchronizes, "moe_synchronizes",                                                     \
                       .doc = "the host reads the tokens per expert in every dropless layer"),                         \
        MAQ_FIELD_BOOL(T, at tp_synchronizes, "tp_synchronizes",                                                       \
                       .doc = "the host waits for the device before and after every TP collective"),                   \
        MAQ_FIELD_BOOL(T, at tp_narrows_heads, "tp_narrows_heads",                                                     \
                       .doc = "TP cuts the width of every head, not their number"),                                    \
        MAQ_FIELD_BOOL(T, at tp_reduces_last, "tp_reduces_last",                                                       \
                       .doc = "gradients of a TP group are reduced after the weight gradient, not beside it"),         \
        MAQ_FIELD_BOOL(T, at tp_copies_sequence, "tp_copies_sequence",                                                 \
                       .doc = "what sequence parallelism gathers or scatters is copied into order"),                   \
        MAQ_FIELD_BOOL(T, at cp_merges_in_fp32, "cp_merges_in_fp32",                                                   \
                       .doc = "pieces of ring attention are merged in 32 bits by pointwise kernels"),                  \
        MAQ_FIELD_BOOL(T, at expert_bias_apart, "expert_bias_apart",                                                   \
                       .doc = "the bias of the experts' last product is added by pointwise kernels"),                  \
        MAQ_FIELD_BOOL(T, at clamp_apart, "clamp_apart",                                                               \
                       .doc = "the input of the experts' activation is clamped by pointwise kernels"),                 \
        MAQ_FIELD_BOOL(T, at expert_scores_apart, "expert_scores_apart",                                               \
                       .doc = "unfused, a router's probabilities multiply what the experts' activation keeps"),        \
        MAQ_FIELD_BOOL(T, at repeats_kv, "repeats_kv",                                                                 \
                       .doc = "keys and values are copied out to as many heads as queries have"),                      \
        MAQ_FIELD_BOOL(T, at embeds_by_product, "embeds_by_product",                                                   \
                       .doc = "tokens are looked up by a product of one-hot vectors with the table"),                  \
        MAQ_FIELD_BOOL(T, at softmax_rereads_scores, "softmax_rereads_scores",                                         \
                       .doc = "the softmax of unfused attention reads its scores once for each of its reductions"),    \
        MAQ_FIELD_BOOL(T, at activation_quantized_apart, "activation_quantized_apart",                                 \
                       .doc = "what an activation writes is quantized by a kernel of its own"),                        \
        MAQ_FIELD_BOOL(T, at hadamard_apart, "hadamard_apart",                                                         \
                       .doc = "NVFP4: what weight gradients read is quantized by a kernel of its own"),                \
        MAQ_FIELD_BOOL(T, at has_fused_exchange, "has_fused_exchange",                                                 \
                       .doc = "tokens may go to their experts by DeepEP or HybridEP"),                                 \
        MAQ_FIELD_BOOL(T, at has_tp_overlap, "has_tp_overlap",                                                         \
                       .doc = "TP collectives may be cut in pieces under the GEMMs"),                                  \
        MAQ_FIELD_BOOL(T, at has_shared_overlap, "has_shared_overlap",                                                 \
                       .doc = "shared experts may run under the exchange of tokens"),                                  \
        MAQ_FIELD_BOOL(T, at has_cuda_graphs, "has_cuda_graphs",                                                       \
                       .doc = "parts of a layer, or all passes of a step, may be CUDA graphs"),                        \
        MAQ_FIELD_BOOL(T, at launches_block, "launches_block",                                                         \
                       .doc = "the host waits for every kernel (CUDA_LAUNCH_BLOCKING)"),                               \
        MAQ_FIELD_BOOL(T, at recompute_prunes, "recompute_prunes",                                                     \
                       .doc = "recomputation leaves out what the backward pass does not need"),                        \
        MAQ_FIELD_BOOL(T, at frees_gradients, "frees_gradients",                                                       \
                       .doc = "FSDP: gradients are freed behind the update and come with the backward pass"),          \
        MAQ_FIELD_BOOL(T, at autocast, "autocast",                                                                     \
                       .doc = "parameters that are not sharded stay in 4 bytes, products read 16-bit copies"),         \
        MAQ_FIELD_BOOL(T, at norms_apart, "norms_apart",                                                               \
                       .doc = "norms keep a copy of their input in 4 bytes and what they scale"),                      \
        MAQ_FIELD_BOOL(T, at gate_apart, "gate_apart",                                                                 \
                       .doc = "unfused, the activated half of a gated activation is kept"),                            \
        MAQ_FIELD_BOOL(T, at root_unit, "root_unit", .doc = "FSDP: embedding, last norm and output are one unit"),     \
        MAQ_FIELD_BOOL(T, at reduce_bucket_held, "reduce_bucket_held",                                                 \
                       .doc = "reduce_bucket_size is there all through the backward pass"),                            \
        MAQ_FIELD_BOOL(T, at low_precision_shards, "low_precision_shards",                                             \
                       .doc = "ZeRO-3: shards of 16 bits are kept beside the optimizer's of 32"),                      \
        MAQ_FIELD_BOOL(T, at gathers_in_step, "gathers_in_step",                                                       \
                       .doc = "ZeRO-1 and -2: the step waits for what was updated, and nothing overlaps unasked"),     \
        MAQ_FIELD_BOOL(T, at adapters_widen, "adapters_widen",                                                         \
                       .doc = "LoRA: an adapter keeps a copy of its input in 4 bytes"),                                \
        MAQ_FIELD_BOOL(T, at flat_parameters, "flat_parameters",                                                       \
                       .doc = "FSDP: a unit is one parameter, as in FullyShardedDataParallel"),                        \
        MAQ_FIELD_BOOL(T, at meta_init, "meta_init",                                                                   \
                       .doc = "FSDP: parameters are made as shards, no unit is on the device whole before that"),      \
        MAQ_FIELD_BOOL(T, at find_unused_parameters, "find_unused_parameters",                                         \
                       .doc = "DistributedDataParallel looks for parameters without gradient, and keeps its buckets"), \
        MAQ_FIELD_BOOL(T, at outputs_in_fp32, "outputs_in_fp32",                                                       \
                       .doc = "what the model returns is copied to 4 bytes, logits too"),                              \
        MAQ_FIELD_ENUM(T, at gradient_buckets, "gradient_buckets", bucket_names,                                       \
                       .doc = "what DistributedDataParallel reduces gradients out of"),                                \
        MAQ_FIELD_DOUBLE(T, at bucket_cap_mb, "bucket_cap_mb", .min = 0, .max = 1e6,                                   \
                         .doc = "MiB of gradients that DistributedDataParallel reduces at once; 0 = another wrapper"), \
        MAQ_FIELD_BOOL(T, at keeps_workspaces, "keeps_workspaces",                                                     \
                       .doc = "PyTorch keeps cuBLAS's workspace of each thread (until 2.14)"),                         \
        MAQ_FIELD_BOOL(T, at transformer_engine, "transformer_engine",                                                 \
                       .doc = "products are Transformer Engine's, which has workspaces of its own"),                   \
        MAQ_FIELD_BOOL(T, at broadcasts_parameters, "broadcasts_parameters",                                           \
                       .doc = "ranks broadcast the parameters that they updated, in turn"),                            \
        MAQ_FIELD_I32(T, at forward_calls, "forward_calls", .min = 1, .max = 16,                                       \
                      .doc = "times that a layer's forward pass runs"),                                                \
        MAQ_FIELD_DOUBLE(T, at dropout, "dropout", .min = 0, .max = 1,                                                 \
                         .doc = "of its training scripts, for models described by dimensions")

const struct maq_field maq_framework_fields[] = {BEHAVIOUR(struct maq_framework, ), MAQ_FIELD_END};

static const struct maq_field profile_fields[] = {
    MAQ_ENTRY_HEAD(struct framework_reader, head, "catalogue name of the profile to start from",
                   "what it is a profile of", "where the facts come from"),
    ROW(MAQ_FIELD_NODE, host, "host", .doc = "what the host spends on a call"),
    ROW(MAQ_FIELD_NODE, plan, "plan", .doc = "plan settings where the job says nothing"),
    ROW(MAQ_FIELD_NODE, cases, "cases", .doc = "list of {when, plan}: settings that hold only then"),
    BEHAVIOUR(struct framework_reader, f.),
    MAQ_FIELD_END};

/* Per call there are millions in a step, per pass thousands: the limits keep its time finite. */
#define HOST(member_, key_, max_, ...)                                                                                 \
    MAQ_FIELD_QTY(struct maq_host_costs, member_, key_, MAQ_DIM_TIME, .min = 0, .max = (max_), __VA_ARGS__)

const struct maq_field maq_host_fields[] = {
    HOST(forward_s, "forward", 1, .doc = "per operator of a forward pass"),
    HOST(backward_s, "backward", 1, .doc = "per operator of a backward pass"),
    HOST(kernel_s, "kernel", 1, .doc = "per further kernel of an operator that is a chain of them"),
    HOST(expert_s, "expert", 1, .doc = "per further call of an operator that is a loop over experts"),
    HOST(collective_s, "collective", 1, .doc = "per collective"),
    HOST(skew_s, "skew", 1, .doc = "spread between the hosts of a group when they come to a collective"),
    HOST(checkpoint_s, "checkpoint", 1, .doc = "per recomputed layer"),
    HOST(p2p_s, "p2p", 100, .doc = "per pass of a pipeline, for its transfers"),
    HOST(pass_s, "pass", 100, .doc = "per pass of a virtual stage"),
    HOST(step_s, "step", 100, .doc = "per step, while the device waits"),
    HOST(read_s, "read", 1, .doc = "per value that the host reads from the device inside a layer"),
    MAQ_FIELD_END};

/* ---- plan settings ---- */

/* What loading fills: the profile and its settings, for a job of which these facts are known. */
struct loading {
    struct maq_framework f;
    struct maq_framework_plan *plan;
    const struct maq_framework_facts *facts;
};

/* Each setting is read by its own row of the plan's table, without touching the others. */
static enum maq_status lay_plan(struct loading *l, struct maq_node *map, struct maq_arena *arena, struct maq_diag *diag)
{
    if (!map)
        return MAQ_OK;
    if (map->kind != MAQ_NODE_MAP)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_FRAMEWORK_FORM, map->at, NULL,
                             "`plan` of a framework profile must be a map");
    enum maq_status status = maq_fields_check_keys(maq_plan_fields, NULL, map, "plan", diag);
    for (struct maq_node *n = map->first; n; n = n->next) {
        const struct maq_field *field = maq_fields_find(maq_plan_fields, n->key);
        if (!field)
            continue;
        if (field->type == MAQ_TYPE_NODE)
            return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_FRAMEWORK_FORM, n->at, "set it in the job's plan",
                                 "a framework profile cannot set %s", field->key);
        struct maq_field one[2] = {*field, {.type = MAQ_TYPE_END}};
        one[0].def = NULL;
        status = maq_worse(status, maq_fields_read(&l->plan->doc, one, map, NULL, arena, diag));
        l->plan->set[field - maq_plan_fields] = true;
        l->plan->may_set[field - maq_plan_fields] = true;
    }
    return status;
}

/* A case that does not hold for this job, and may for the plan that a search finds for it. */
static void pass_over(struct loading *l, struct maq_node *plan)
{
    for (const struct maq_node *n = plan->first; n; n = n->next) {
        const struct maq_field *field = maq_fields_find(maq_plan_fields, n->key);
        if (field)
            l->plan->may_set[field - maq_plan_fields] = true;
    }
    maq_node_use_all(plan);
}

static bool known_precision(struct maq_str precision, const char *name)
{
    return maq_str_ieq(precision, name);
}

/* One word of a case; *known tells words that mean nothing. */
static bool word_holds(const struct maq_framework_facts *f, struct maq_str word, bool *known)
{
    const struct {
        const char *word;
        bool holds;
    } words[] = {
        {"ampere", f->arch == MAQ_ARCH_AMPERE},
        {"hopper", f->arch == MAQ_ARCH_HOPPER},
        {"blackwell", f->arch == MAQ_ARCH_BLACKWELL},
        {"moe", f->moe},
        {"dense", !f->moe},
        {"tp", f->tensor_parallel},
        {"no-pp", !f->pipeline_parallel},
        {"paired", f->paired},
        {"fp16", known_precision(f->precision, "fp16")},
        {"bf16", known_precision(f->precision, "bf16")},
        {"mxfp8", known_precision(f->precision, "mxfp8")},
        {"precision-not-stated", f->precision.len == 0 || known_precision(f->precision, "auto")},
    };
    for (size_t i = 0; i < MAQ_COUNT(words); i++)
        if (maq_str_is(word, words[i].word))
            return words[i].holds;
    *known = false;
    return false;
}

static enum maq_status case_holds(bool *out, const struct loading *l, struct maq_node *when, struct maq_diag *diag)
{
    *out = true;
    when->used = true;
    if (when->kind != MAQ_NODE_SEQ)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_FRAMEWORK_FORM, when->at,
                             "for example `when: [hopper, moe]`", "`when` must be a list of words");
    for (struct maq_node *n = when->first; n; n = n->next) {
        bool known = true;
        n->used = true;
        *out &= word_holds(l->facts, n->text, &known);
        if (!known)
            return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_FRAMEWORK_FORM, n->at,
                                 "known: ampere, hopper, blackwell, moe, dense, tp, no-pp, paired, fp16, bf16, mxfp8, "
                                 "precision-not-stated",
                                 "'%.*s' is not a condition of a framework profile", (int)n->text.len, n->text.ptr);
    }
    return MAQ_OK;
}

/* The case in words, for lists: conditions, then settings. */
static enum maq_status keep_case(struct loading *l, const struct maq_node *when, const struct maq_node *plan,
                                 struct maq_arena *arena, struct maq_diag *diag)
{
    struct maq_buf b;
    if (l->plan->n_cases == MAQ_FRAMEWORK_CASES)
        return maq_diag_fail(MAQ_LIMIT, diag, MAQ_CODE_FRAMEWORK_FORM, when->at, NULL,
                             "a framework profile may have at most %d cases", MAQ_FRAMEWORK_CASES);
    maq_buf_init(&b, 4096);
    for (const struct maq_node *n = when->first; n; n = n->next)
        maq_buf_addf(&b, "%s%.*s", n == when->first ? "" : ", ", (int)n->text.len, n->text.ptr);
    for (const struct maq_node *n = plan->first; n; n = n->next)
        maq_buf_addf(&b, "%s%.*s = %.*s", n == plan->first ? ": " : ", ", (int)n->key.len, n->key.ptr, (int)n->text.len,
                     n->text.ptr);
    const char *text = b.failed ? NULL : maq_arena_strdup(arena, (struct maq_str){b.ptr, b.len});
    maq_buf_fini(&b);
    if (!text)
        return maq_no_memory(diag, NULL);
    l->plan->cases[l->plan->n_cases++] = text;
    return MAQ_OK;
}

static enum maq_status lay_cases(struct loading *l, struct maq_node *list, struct maq_arena *arena,
                                 struct maq_diag *diag)
{
    if (!list)
        return MAQ_OK;
    if (list->kind != MAQ_NODE_SEQ)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_FRAMEWORK_FORM, list->at, NULL, "`cases` must be a list");
    for (struct maq_node *one = list->first; one; one = one->next) {
        one->used = true;
        struct maq_node *when = one->kind == MAQ_NODE_MAP ? maq_node_get(one, "when") : NULL;
        struct maq_node *plan = when ? maq_node_get(one, "plan") : NULL;
        bool holds;
        if (!when || !plan)
            return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_FRAMEWORK_FORM, one->at, NULL,
                                 "a case has the keys when and plan");
        MAQ_TRY(case_holds(&holds, l, when, diag));
        MAQ_TRY(keep_case(l, when, plan, arena, diag));
        if (holds)
            MAQ_TRY(lay_plan(l, plan, arena, diag));
        else
            pass_over(l, plan);
    }
    return MAQ_OK;
}

/* ---- the profile ---- */

static enum maq_status lay(void *value, struct maq_node *map, struct maq_arena *arena, struct maq_diag *diag)
{
    struct loading *l = value;
    struct framework_reader r = {.f = l->f};
    enum maq_status status = maq__entry_read(&r, &r.head, profile_fields, "framework", map, arena, diag);
    status = maq_worse(status, maq__entry_section(&r.f.host, maq_host_fields, r.host, "host", MAQ_CODE_FRAMEWORK_FORM,
                                                  "`host` of a framework profile must be a map", arena, diag));
    MAQ_TRY(status);
    MAQ_TRY(maq__entry_keep_head(&r.f.name, &r.f.title, &r.f.source, &r.head, arena, diag));
    l->f = r.f;
    MAQ_TRY(lay_plan(l, r.plan, arena, diag));
    return lay_cases(l, r.cases, arena, diag);
}

static const struct maq__entry_kind framework_kind = {
    .section = "frameworks",
    .noun = "framework",
    .unknown_code = MAQ_CODE_UNKNOWN_FRAMEWORK,
    .lay = lay,
    .slips =
        "hf=pytorch-fsdp|huggingface=pytorch-fsdp|transformers=pytorch-fsdp|accelerate=pytorch-fsdp|trl=pytorch-fsdp|"
        "axolotl=pytorch-fsdp|lightning=pytorch-fsdp|torch=pytorch-fsdp|torchtune=pytorch-fsdp|mosaic=llm-foundry|"
        "composer=llm-foundry|flax=jax|t5x=paxml|titan=torchtitan|mbridge=megatron-bridge"};

enum maq_status maq_framework_load(struct maq_framework *out, struct maq_framework_plan *plan, struct maq_node *node,
                                   const struct maq_framework_facts *facts, struct maq_arena *arena,
                                   struct maq_diag *diag)
{
    struct loading l = {.f = maq_framework_default, .plan = plan, .facts = facts};
    memset(plan, 0, sizeof *plan);
    if (node)
        MAQ_TRY(maq__entry_load((struct maq__entry){&framework_kind, &l, &l.f.name}, node, arena, diag));
    *out = l.f;
    out->named = node != NULL;
    return MAQ_OK;
}

bool maq_framework_sets(const struct maq_framework_plan *plan, const char *key)
{
    const struct maq_field *field = maq_fields_find(maq_plan_fields, maq_str_of(key));
    return field && plan->set[field - maq_plan_fields];
}

bool maq_framework_is_unfused(const struct maq_framework_plan *plan)
{
    return maq_framework_sets(plan, "attention_backend") && plan->doc.plan.attention_backend == MAQ_ATTENTION_UNFUSED;
}

static size_t size_of(const struct maq_field *field)
{
    static const uint8_t sizes[] = {[MAQ_TYPE_I32] = sizeof(int32_t),        [MAQ_TYPE_I64] = sizeof(int64_t),
                                    [MAQ_TYPE_DOUBLE] = sizeof(double),      [MAQ_TYPE_BOOL] = sizeof(bool),
                                    [MAQ_TYPE_STR] = sizeof(struct maq_str), [MAQ_TYPE_ENUM] = sizeof(int),
                                    [MAQ_TYPE_QTY] = sizeof(double),         [MAQ_TYPE_NODE] = 0};
    return sizes[field->type];
}

void maq_framework_underlay(struct maq_plan_doc *doc, uint8_t *origins, const struct maq_framework_plan *plan)
{
    for (size_t i = 0; maq_plan_fields[i].type != MAQ_TYPE_END; i++) {
        const struct maq_field *field = &maq_plan_fields[i];
        if (!plan->set[i] || origins[i] != MAQ_ORIGIN_DEFAULT)
            continue;
        memcpy((char *)doc + field->offset, (const char *)&plan->doc + field->offset, size_of(field));
        origins[i] = MAQ_ORIGIN_FRAMEWORK;
    }
}
