/* SPDX-License-Identifier: Apache-2.0 */
/*
 * joint_arguments.c - settings that follow from several arguments of Megatron-LM together: precision, numbers of
 * pipeline and virtual stages, zero bubble schedules, dispatcher, attention backend, sharding, CUDA graphs, and the padded vocabulary. See reader.h.
 */
#include <stddef.h>
#include <string.h>

#include "base/check.h"
#include "model/load.h"
#include "plan/codes.h"
#include "plan/job_build.h"
#include "plan/megatron/reader.h"

#define MOST_LETTERS 65536 /* of a hybrid pattern */
#define GPT2_TOKENS 50257  /* entries of the vocabulary that GPT-2 was published with */

enum form { FORM_FLAG, FORM_WORD, FORM_NUMBER };

#define IS(form, field) form, offsetof(struct maq_megatron_kept, field)
static const struct {
    const char *name;
    enum form form;
    size_t offset;
} fields[] = {
    {"bf16", IS(FORM_FLAG, bf16)},
    {"fp16", IS(FORM_FLAG, fp16)},
    {"use-megatron-fsdp", IS(FORM_FLAG, fsdp)},
    {"use-custom-fsdp", IS(FORM_FLAG, fsdp)},
    {"use-torch-fsdp2", IS(FORM_FLAG, torch_fsdp)},
    {"fp8-format", IS(FORM_WORD, fp8_format)},
    {"fp8-recipe", IS(FORM_WORD, fp8_recipe)},
    {"fp4-format", IS(FORM_WORD, fp4_format)},
    {"data-parallel-sharding-strategy", IS(FORM_WORD, strategy)},
    {"moe-token-dispatcher-type", IS(FORM_WORD, dispatcher)},
    {"moe-flex-dispatcher-backend", IS(FORM_WORD, flex)},
    {"attention-backend", IS(FORM_WORD, backend)},
    {"pipeline-model-parallel-layout", IS(FORM_WORD, layout)},
    {"no-bias-gelu-fusion", IS(FORM_FLAG, no_gelu)},
    {"no-bias-swiglu-fusion", IS(FORM_FLAG, no_swiglu)},
    {"no-bias-dropout-fusion", IS(FORM_FLAG, no_dropout)},
    {"no-rope-fusion", IS(FORM_FLAG, no_rope)},
    {"optimizer-cpu-offload", IS(FORM_FLAG, offload)},
    {"optimizer-offload-fraction", IS(FORM_WORD, offload_fraction)},
    {"enable-cuda-graph", IS(FORM_FLAG, graphs)},
    {"external-cuda-graph", IS(FORM_FLAG, external_graphs)},
    {"cuda-graph-impl", IS(FORM_WORD, graph_impl)},
    {"hybrid-layer-pattern", IS(FORM_WORD, pattern)},
    {"hybrid-override-pattern", IS(FORM_WORD, pattern)},
    {"vocab-file", IS(FORM_WORD, vocab_file)},
    {"merge-file", IS(FORM_WORD, merge_file)},
    {"tokenizer-type", IS(FORM_WORD, tokenizer_type)},
    {"tokenizer-model", IS(FORM_WORD, tokenizer)},
    {"enable-zero-bubble", IS(FORM_FLAG, zero_bubble)},
    {"enable-optimizer-post-validation", IS(FORM_FLAG, post_validation)},
    {"zero-bubble-v-schedule", IS(FORM_FLAG, zero_bubble_v)},
    {"zero-bubble-max-pending-backward", IS(FORM_WORD, zero_bubble_pending)},
    {"zero-bubble-v-schedule-mem-setup", IS(FORM_WORD, zero_bubble_v_memory)},
    {"num-layers", IS(FORM_NUMBER, layers)},
    {"tensor-model-parallel-size", IS(FORM_NUMBER, tp)},
    {"pipeline-model-parallel-size", IS(FORM_NUMBER, pp)},
    {"num-layers-per-virtual-pipeline-stage", IS(FORM_NUMBER, layers_per_chunk)},
    {"make-vocab-size-divisible-by", IS(FORM_NUMBER, multiple)},
    {"vocab-size", IS(FORM_NUMBER, vocabulary)},
    {"padded-vocab-size", IS(FORM_NUMBER, padded)},
};

const char *maq__megatron_kept_name(size_t i)
{
    return i < MAQ_COUNT(fields) ? fields[i].name : NULL;
}

/* Numbers stay below 2^31: products of two cannot overflow. */
static bool read_number(int64_t *out, const struct maq_megatron_argument *a)
{
    return a->n == 1 && maq_str_to_i64(out, maq_str_of(a->words[0])) && *out > 0 && *out <= INT32_MAX;
}

bool maq__megatron_keep(struct maq_megatron_reader *r, const struct maq_megatron_argument *a)
{
    size_t i = 0;
    while (i < MAQ_COUNT(fields) && !maq__megatron_same(a->name, fields[i].name))
        i++;
    if (i == MAQ_COUNT(fields))
        return false;
    char *to = (char *)&r->kept + fields[i].offset;
    switch (fields[i].form) {
    case FORM_FLAG:
        *(bool *)to = true;
        if (a->n > 0)
            maq__megatron_bad(r, a->flag, "takes no value", NULL);
        break;
    case FORM_WORD:
        if (a->n == 1)
            *(const char **)(void *)to = a->words[0];
        else
            maq__megatron_bad(r, a->flag, "takes one value", NULL);
        break;
    case FORM_NUMBER:
        if (!read_number((int64_t *)(void *)to, a))
            maq__megatron_bad(
                r, a->flag,
                a->n > 1 ? "takes one number, and there are more words behind it" : "takes a number above 0", NULL);
        break;
    }
    return true;
}

static void set_number(struct maq_megatron_reader *r, const char *flag, const char *path, int64_t n)
{
    maq__megatron_set(r, flag, path, maq_arena_printf(&r->loaded->arena, "%lld", (long long)n));
}

static const char *precision_of(const struct maq_megatron_kept *k)
{
    static const struct {
        const char *recipe, *precision;
    } recipes[] = {
        {"delayed", "fp8-delayed"}, {"tensorwise", "fp8-current"}, {"blockwise", "fp8-blockwise"}, {"mxfp8", "mxfp8"}};
    if (k->fp4_format)
        return "nvfp4";
    for (size_t i = 0; k->fp8_format && i < MAQ_COUNT(recipes); i++)
        if (strcmp(recipes[i].recipe, k->fp8_recipe ? k->fp8_recipe : "delayed") == 0)
            return recipes[i].precision;
    return k->fp8_format ? k->fp8_recipe : k->bf16 ? "bf16" : k->fp16 ? "fp16" : "fp32";
}

static void conclude_stages(struct maq_megatron_reader *r, int64_t tp, int64_t pp)
{
    const struct maq_megatron_kept *k = &r->kept;
    const char *flag = "--num-layers-per-virtual-pipeline-stage";
    set_number(r, "--tensor-model-parallel-size", "plan.tensor_model_parallel_size", tp);
    set_number(r, "--pipeline-model-parallel-size", "plan.pipeline_model_parallel_size", pp);
    if (k->layers > 0)
        set_number(r, "--num-layers", "model.num_layers", k->layers);
    if (k->layers_per_chunk == 0)
        return;
    if (k->layers == 0 || k->layers % (pp * k->layers_per_chunk) != 0)
        maq__megatron_bad(r, flag, "times the pipeline stages must divide num-layers", NULL);
    else
        set_number(r, flag, "plan.virtual_pipeline_model_parallel_size", k->layers / (pp * k->layers_per_chunk));
}

/* A layout says how many virtual stages there are; where it cannot be read, who splits the layers says why. */
static void conclude_layout(struct maq_megatron_reader *r, int64_t pp)
{
    const struct maq_megatron_kept *k = &r->kept;
    const char *flag = "--pipeline-model-parallel-layout";
    if (!k->layout)
        return;
    uint32_t stages = maq_layout_stages(maq_str_of(k->layout));
    maq__megatron_set(r, flag, "plan.pipeline_model_parallel_layout", k->layout);
    if (k->layers_per_chunk == 0 && !k->chunks && stages > 0 && stages % pp == 0 && stages > pp)
        set_number(r, flag, "plan.virtual_pipeline_model_parallel_size", stages / pp);
}

/*
 * A pattern of a hybrid model is a letter a layer; it says how many there are, whatever --num-layers says. "|" ends a virtual stage, and
 * behind "/" stand the layers of each depth of multi-token prediction: "M-M-|M-M*-/MM/MM" (hybrid_layer_allocation.py).
 */
static void conclude_pattern(struct maq_megatron_reader *r, int64_t pp)
{
    struct maq_str main, mtp, depths = maq_str_split(maq_str_of(r->kept.pattern), '/', &main), rest = main, stage;
    const char *flag = "--hybrid-layer-pattern";
    struct maq_buf letters, layout;
    int64_t n = 0, stages = 0;
    if (!r->kept.pattern)
        return;
    maq_buf_init(&letters, MOST_LETTERS);
    maq_buf_init(&layout, 8 * MOST_LETTERS);
    while (rest.ptr) {
        rest = maq_str_split(rest, '|', &stage);
        maq_buf_add(&letters, stage.ptr, stage.len);
        maq_buf_addf(&layout, "%s%zu", stages++ ? "," : "", stage.len);
        n += (int64_t)stage.len;
    }
    const struct maq_str all = {letters.ptr ? letters.ptr : "", letters.len};
    const bool fine = !letters.failed && !layout.failed;
    maq__megatron_set(r, flag, "model.hybrid_override_pattern", fine ? maq_arena_strdup(&r->loaded->arena, all) : NULL);
    r->kept.layers = n;
    if (depths.ptr && depths.len > 0) {
        int64_t depth = 1;
        for (size_t i = 0; i < depths.len; i++)
            depth += depths.ptr[i] == '/';
        maq_str_split(depths, '/', &mtp);
        maq__megatron_set(r, flag, "model.mtp_hybrid_override_pattern", maq_arena_strdup(&r->loaded->arena, mtp));
        set_number(r, flag, "model.mtp_num_layers", depth);
    }
    if (stages > 1 && fine)
        maq__megatron_set(r, flag, "plan.pipeline_model_parallel_layout",
                          maq_arena_strdup(&r->loaded->arena, (struct maq_str){layout.ptr, layout.len}));
    if (stages > pp && stages % pp == 0)
        set_number(r, flag, "plan.virtual_pipeline_model_parallel_size", stages / pp);
    maq_buf_fini(&letters);
    maq_buf_fini(&layout);
}

/* One setting here, several there: all of them, or they are named as what nothing here knows. */
static void conclude_fusion(struct maq_megatron_reader *r)
{
    const struct maq_megatron_kept *k = &r->kept;
    const struct {
        bool given;
        const char *name;
    } flags[] = {{k->no_gelu, "no-bias-gelu-fusion"},
                 {k->no_swiglu, "no-bias-swiglu-fusion"},
                 {k->no_dropout, "no-bias-dropout-fusion"},
                 {k->no_rope, "no-rope-fusion"}};
    if ((k->no_gelu || k->no_swiglu) && k->no_dropout && k->no_rope) {
        maq__megatron_set(r, "--no-bias-dropout-fusion", "plan.fused_kernels", "false");
        return;
    }
    for (size_t i = 0; i < MAQ_COUNT(flags); i++)
        if (flags[i].given)
            maq_buf_addf(&r->unknown, "%s--%s", r->unknown.len ? ", " : "", flags[i].name);
}

/* The share of the optimizer on the host is all of it unless something else is said, and nothing without the switch. */
static void conclude_offload(struct maq_megatron_reader *r)
{
    const struct maq_megatron_kept *k = &r->kept;
    if (k->offload)
        maq__megatron_set(r, "--optimizer-cpu-offload", "plan.optimizer_offload_fraction",
                          k->offload_fraction ? k->offload_fraction : "1");
}

/* Whoever makes the graphs: without parts of a layer to choose they take all of it. */
static void conclude_graphs(struct maq_megatron_reader *r)
{
    const struct maq_megatron_kept *k = &r->kept;
    bool made = k->graphs || k->external_graphs || (k->graph_impl && strcmp(k->graph_impl, "none") != 0);
    if (made && !k->graph_scope)
        maq__megatron_set(r, "--cuda-graph-impl", "plan.enable_cuda_graph", "true");
}

/* Backends by the names that a plan has for them; the sharding that takes effect. */
static void conclude_backends(struct maq_megatron_reader *r)
{
    const struct maq_megatron_kept *k = &r->kept;
    if (k->fsdp)
        maq__megatron_set(r, "--data-parallel-sharding-strategy", "plan.data_parallel_sharding_strategy",
                          k->strategy ? k->strategy : "no_shard");
    if (k->torch_fsdp) {
        /* fully_shard gathers and reduces on streams of its own; the switches for overlap are those of Megatron's own wrappers */
        maq__megatron_set(r, "--use-torch-fsdp2", "plan.data_parallel_sharding_strategy", "optim_grads_params");
        maq__megatron_set(r, "--use-torch-fsdp2", "plan.overlap_grad_reduce", "true");
        maq__megatron_set(r, "--use-torch-fsdp2", "plan.overlap_param_gather", "true");
    }
    if (k->dispatcher)
        maq__megatron_set(r, "--moe-token-dispatcher-type", "plan.moe_token_dispatcher_type",
                          strcmp(k->dispatcher, "flex") != 0 ? k->dispatcher
                          : k->flex                          ? k->flex
                                    : "deepep"); /* its default; earlier releases know no other */
    if (k->backend)
        maq__megatron_set(r, "--attention-backend", "plan.attention_backend",
                          strcmp(k->backend, "fused") == 0   ? "flash" /* cuDNN's */
                          : strcmp(k->backend, "local") == 0 ? "unfused"
                                                             : k->backend);
}

/*
 * The schedules of sail-sg/zero-bubble-pipeline-parallelism, a fork of Megatron-LM (39f2c186a275, megatron/core/zbpp_utils.py):
 * without a V they are searched under a limit, which is a number of microbatches or, "auto", what the device has room for.
 */
static void conclude_zero_bubble(struct maq_megatron_reader *r, int64_t pp)
{
    const struct maq_megatron_kept *k = &r->kept;
    const char *flag = "--zero-bubble-max-pending-backward", *memory = "--zero-bubble-v-schedule-mem-setup";
    int64_t pending = 0;
    if (k->zero_bubble_v && k->zero_bubble_v_memory && strcmp(k->zero_bubble_v_memory, "zb") != 0)
        maq__megatron_bad(r, memory, "has no model but for zb", "leave it out, or use zb");
    if (k->zero_bubble_v)
        maq__megatron_set(r, "--zero-bubble-v-schedule", "plan.pipeline_schedule", "zb-v");
    if (k->post_validation && (k->zero_bubble || k->zero_bubble_v)) /* else the program turns it off */
        maq__megatron_set(r, "--enable-optimizer-post-validation", "plan.enable_optimizer_post_validation", "true");
    if (k->zero_bubble_v || !k->zero_bubble || pp == 1)
        return;
    maq__megatron_set(r, "--enable-zero-bubble", "plan.pipeline_schedule", "zb-auto");
    if (!k->zero_bubble_pending || strcmp(k->zero_bubble_pending, "auto") == 0)
        return;
    if (maq_str_to_i64(&pending, maq_str_of(k->zero_bubble_pending)) && pending > 0 && pending <= UINT16_MAX)
        set_number(r, flag, "plan.zero_bubble_max_pending_backward", pending);
    else
        maq__megatron_bad(r, flag, "takes auto, or a number of microbatches above 0", NULL);
}

/* Tokens that the tokenizer knows (megatron/training/tokenizer): 0 = it would have to be opened. */
static int64_t tokens_of(const struct maq_megatron_reader *r)
{
    const struct maq_megatron_kept *k = &r->kept;
    const char *type = k->tokenizer_type ? k->tokenizer_type : "";
    if (k->vocabulary > 0)
        return k->vocabulary + (strcmp(type, "NullTokenizer") == 0); /* it adds one for the end of a document */
    /* what pretrain_gpt.py and pretrain_mamba.py have without the argument (args_defaults) */
    if (strcmp(type, "GPT2BPETokenizer") == 0 || (!k->tokenizer_type && k->vocab_file))
        return GPT2_TOKENS;
    int64_t rows =
        strcmp(type, "HuggingFaceTokenizer") == 0 && k->tokenizer ? maq_model_vocabulary(maq_str_of(k->tokenizer)) : 0;
    if (rows > 0)
        maq_diag_add(r->diag, MAQ_NOTE, MAQ_CODE_MEGATRON_VOCABULARY, (struct maq_span){0},
                     "a tokenizer may know fewer; --vocab-size says how many",
                     "the vocabulary is taken to be that of the model %s: %lld tokens", k->tokenizer, (long long)rows);
    return rows;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* Without a type, a list of words and no merges is WordPiece's, as pretrain_bert.py has it; GPT-2's is JSON. */
static bool has_word_pieces(const struct maq_megatron_kept *k)
{
    return k->tokenizer_type ? strncmp(k->tokenizer_type, "BertWordPiece", 13) == 0
                             : k->vocab_file && !k->merge_file && ends_with(k->vocab_file, ".txt");
}

/* Rows are padded to a multiple for each rank of a tensor-parallel group, unless they are given as they will be. */
static void conclude_vocabulary(struct maq_megatron_reader *r, int64_t tp)
{
    const struct maq_megatron_kept *k = &r->kept;
    const char *path = "model.vocab_size";
    int64_t tokens = k->padded > 0 ? 0 : tokens_of(r), multiple = (k->multiple > 0 ? k->multiple : 128) * tp;
    if (k->padded > 0)
        set_number(r, "--padded-vocab-size", path, k->padded);
    else if (tokens > 0)
        set_number(r,
                   k->vocabulary > 0   ? "--vocab-size"
                   : k->tokenizer_type ? "--tokenizer-type"
                                       : "--vocab-file",
                   path, tokens);
    set_number(r, "--make-vocab-size-divisible-by", "model.make_vocab_size_divisible_by", k->padded > 0 ? 1 : multiple);
}

void maq__megatron_conclude(struct maq_megatron_reader *r)
{
    const struct maq_megatron_kept *k = &r->kept;
    int64_t tp = k->tp > 0 ? k->tp : 1, pp = k->pp > 0 ? k->pp : 1;
    maq__megatron_set(r,
                      k->fp4_format   ? "--fp4-format"
                      : k->fp8_format ? "--fp8-format"
                                      : "--bf16",
                      "plan.precision", precision_of(k));
    if (has_word_pieces(k))
        maq__megatron_bad(r, k->tokenizer_type ? "--tokenizer-type" : "--vocab-file",
                          "is BERT's, and models of GPT's kind alone are read", NULL);
    conclude_pattern(r, pp);
    conclude_stages(r, tp, pp);
    if (k->no_modules)
        maq__megatron_set(r, "--recompute-modules", "plan.recompute_granularity", "none");
    conclude_layout(r, pp);
    conclude_zero_bubble(r, pp);
    conclude_backends(r);
    conclude_fusion(r);
    conclude_offload(r);
    conclude_graphs(r);
    if (k->layers > 0)
        conclude_vocabulary(r, tp);
}
