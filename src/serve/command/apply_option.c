/* SPDX-License-Identifier: Apache-2.0 */
/*
 * apply_option.c - what an option of an engine sets: a number, a type, a switch.
 *
 * Types of weights are named as vLLM and SGLang name them (QuantizationMethods of model_executor/layers/quantization; SGLang's table of
 * --quantization). Those of which a checkpoint says more than the word does (compressed-tensors, quark), and those without a kind here, are
 * said to be not modelled: weights are then what --weights says.
 */
#include <stddef.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "serve/codes.h"
#include "serve/command/command.h"

void maq_command_bad(struct maq_command_reader *r, const struct maq_command_argument *a, const char *hint,
                     const char *why)
{
    r->status = maq_diag_fail(MAQ_BAD_INPUT, r->diag, MAQ_CODE_COMMAND_VALUE, maq_command_span(r, a->value_at), hint,
                              "%s takes %s, not '%.60s'", a->form.text, why, a->value);
}

void maq_command_say(struct maq_command_reader *r, const struct maq_command_argument *a)
{
    maq_buf_addf(&r->said, "%s%s %.60s", r->said.len > 0 ? ", " : "", a->form.text, a->value);
}

void maq_command_say_member(struct maq_command_reader *r, const struct maq_command_argument *a, const char *member)
{
    maq_buf_addf(&r->said, "%s%s.%.60s", r->said.len > 0 ? ", " : "", a->form.text, member);
}

/* ---- numbers ---- */

/* "32k" is 32,000 and "32K" 32,768, as vLLM reads them. */
static bool read_count(int64_t *out, const char *text, bool suffixes)
{
    static const struct {
        char letter;
        double times;
    } known[] = {{'k', 1e3}, {'K', 1024}, {'m', 1e6}, {'M', 1024.0 * 1024}, {'g', 1e9}, {'G', 1024.0 * 1024 * 1024}};
    size_t n = strlen(text);
    double x;
    if (maq_str_to_i64(out, maq_str_of(text)))
        return true;
    for (size_t i = 0; suffixes && n > 1 && i < MAQ_COUNT(known); i++) {
        bool decimal = known[i].letter >= 'a';
        if (text[n - 1] != known[i].letter || !maq_str_to_double(&x, (struct maq_str){text, n - 1}) ||
            (!decimal && memchr(text, '.', n)) || !(x >= 0 && x < 1e9))
            continue;
        *out = (int64_t)(x * known[i].times);
        return true;
    }
    return false;
}

bool maq_command_number(struct maq_command_reader *r, const struct maq_command_argument *a, int64_t *out, int64_t least,
                        int64_t most)
{
    bool vllm = r->engine->engine == MAQ_ENGINE_VLLM;
    char why[64];
    if (read_count(out, a->value, vllm) && *out >= least && *out <= most)
        return true;
    maq__snprintf(why, sizeof why, "a number from %lld to %lld", (long long)least, (long long)most);
    maq_command_bad(r, a, NULL, why);
    return false;
}

static const struct {
    enum maq_command_effect effect;
    size_t at; /* an int32_t of the options */
    int64_t least, most;
} counts[] = {
    {MAQ_COMMAND_EP, offsetof(struct maq_serve_options, ep), 1, 4096},
    {MAQ_COMMAND_SEQS, offsetof(struct maq_serve_options, max_num_seqs), 1, 1 << 20},
    {MAQ_COMMAND_TOKENS, offsetof(struct maq_serve_options, max_num_batched_tokens), 1, 1 << 20},
    {MAQ_COMMAND_LONG_PREFILL, offsetof(struct maq_serve_options, long_prefill_token_threshold), 0, 1 << 20},
    {MAQ_COMMAND_MAX_PREFILL, offsetof(struct maq_serve_options, sglang.max_prefill_tokens), 1, 1 << 20},
    {MAQ_COMMAND_RECV_INTERVAL, offsetof(struct maq_serve_options, sglang.recv_interval), 1, 1 << 20},
    {MAQ_COMMAND_PREFILL_REQUESTS, offsetof(struct maq_serve_options, sglang.prefill_max_requests), 1, 1 << 20},
    {MAQ_COMMAND_RESERVED_DECODE, offsetof(struct maq_serve_options, sglang.reserved_decode_tokens), 1, 1 << 20},
    {MAQ_COMMAND_LORA_SLOTS, offsetof(struct maq_serve_options, lora.max_loras), 1, 1 << 20},
    {MAQ_COMMAND_LORA_RANK, offsetof(struct maq_serve_options, lora.max_lora_rank), 1, 1 << 16},
    {MAQ_COMMAND_LORA_HOST, offsetof(struct maq_serve_options, lora.max_cpu_loras), 1, 1 << 30},
    {MAQ_COMMAND_GRAPH_TOKENS, offsetof(struct maq_serve_options, graph_tokens), 0, 1 << 20},
    {MAQ_COMMAND_GRAPH_REQUESTS, offsetof(struct maq_serve_options, sglang.graph_max_requests), 1, 1 << 20},
    {MAQ_COMMAND_PREFILL_GRAPH_TOKENS, offsetof(struct maq_serve_options, sglang.prefill_graph_tokens), 1, 1 << 20},
};

static const struct {
    enum maq_command_effect effect;
    size_t at; /* a double of the options */
} shares[] = {
    {MAQ_COMMAND_UTILIZATION, offsetof(struct maq_serve_options, gpu_memory_utilization)},
    {MAQ_COMMAND_STATIC_SHARE, offsetof(struct maq_serve_options, static_memory_share)},
    {MAQ_COMMAND_FREE_SHARE, offsetof(struct maq_serve_options, free_memory_share)},
};

static const struct {
    enum maq_command_effect effect;
    const char *path;
} degrees[] = {
    {MAQ_COMMAND_TP, "plan.tensor_model_parallel_size"},
    {MAQ_COMMAND_PP, "plan.pipeline_model_parallel_size"},
};

/* Where a member's 0 is "nothing said". */
static bool none_is_negative(enum maq_command_effect effect)
{
    return effect == MAQ_COMMAND_GRAPH_TOKENS;
}

/* Numbers that are a member of the options, or a key of the job; false: the option is none of those. */
static bool plain_number(struct maq_command_reader *r, const struct maq_command_argument *a)
{
    char *o = (char *)&r->loaded->read.options;
    enum maq_command_effect effect = a->form.row->effect;
    int64_t n = 0;
    double x;
    for (size_t i = 0; i < MAQ_COUNT(counts); i++)
        if (counts[i].effect == effect) {
            if (maq_command_number(r, a, &n, counts[i].least, counts[i].most))
                *(int32_t *)(void *)(o + counts[i].at) = (int32_t)(n == 0 && none_is_negative(effect) ? -1 : n);
            return true;
        }
    for (size_t i = 0; i < MAQ_COUNT(shares); i++)
        if (shares[i].effect == effect) {
            if (maq_str_to_double(&x, maq_str_of(a->value)) && x >= 0.01 && x <= 1)
                *(double *)(void *)(o + shares[i].at) = x;
            else
                maq_command_bad(r, a, NULL, "a share from 0.01 to 1");
            return true;
        }
    for (size_t i = 0; i < MAQ_COUNT(degrees); i++)
        if (degrees[i].effect == effect) {
            const char *flag = maq_arena_strdup(&r->loaded->arena, maq_str_of(a->form.text));
            if (!flag)
                r->status = maq_no_memory(r->diag, "options");
            else if (maq_command_number(r, a, &n, 1, 1 << 20))
                maq_command_override(r, flag, degrees[i].path, a->value);
            if (effect == MAQ_COMMAND_TP)
                r->tp = (int32_t)n;
            return true;
        }
    return false;
}

/* ---- types ---- */

#define AS_WEIGHTS (-1) /* experts are as the other weights */
#define NOT_MODELLED (-2)

static const struct type {
    const char *word;
    int weights, experts;
} types[] = {
    {"fp8", MAQ_WEIGHTS_FP8, AS_WEIGHTS},
    {"fp8_per_tensor", MAQ_WEIGHTS_FP8, AS_WEIGHTS},
    {"fp8_per_channel", MAQ_WEIGHTS_FP8, AS_WEIGHTS},
    {"fbgemm_fp8", MAQ_WEIGHTS_FP8, AS_WEIGHTS},
    {"ptpc_fp8", MAQ_WEIGHTS_FP8, AS_WEIGHTS},
    {"modelopt", MAQ_WEIGHTS_FP8, AS_WEIGHTS},
    {"modelopt_fp8", MAQ_WEIGHTS_FP8, AS_WEIGHTS},
    {"w8a8_fp8", MAQ_WEIGHTS_FP8, AS_WEIGHTS},
    {"fp8_per_block", MAQ_WEIGHTS_FP8_BLOCK, AS_WEIGHTS},
    {"deepseek_v4_fp8", MAQ_WEIGHTS_FP8_BLOCK, AS_WEIGHTS},
    {"int8_per_channel_weight_only", MAQ_WEIGHTS_INT8, AS_WEIGHTS},
    {"experts_int8", MAQ_WEIGHTS_BF16, MAQ_WEIGHTS_INT8},
    {"awq", MAQ_WEIGHTS_INT4, AS_WEIGHTS},
    {"auto_awq", MAQ_WEIGHTS_INT4, AS_WEIGHTS},
    {"awq_marlin", MAQ_WEIGHTS_INT4, AS_WEIGHTS},
    {"gptq", MAQ_WEIGHTS_INT4, AS_WEIGHTS},
    {"auto_gptq", MAQ_WEIGHTS_INT4, AS_WEIGHTS},
    {"gptq_marlin", MAQ_WEIGHTS_INT4, AS_WEIGHTS},
    {"marlin", MAQ_WEIGHTS_INT4, AS_WEIGHTS},
    {"mxfp4", MAQ_WEIGHTS_BF16, MAQ_WEIGHTS_MXFP4}, /* routed experts alone, as gpt-oss has them */
    {"gpt_oss_mxfp4", MAQ_WEIGHTS_BF16, MAQ_WEIGHTS_MXFP4},
    {"modelopt_fp4", MAQ_WEIGHTS_NVFP4, AS_WEIGHTS},
    {"nvfp4_per_token", MAQ_WEIGHTS_NVFP4, AS_WEIGHTS},
    {"nvfp4_online", MAQ_WEIGHTS_NVFP4, AS_WEIGHTS},
    {"petit_nvfp4", MAQ_WEIGHTS_NVFP4, AS_WEIGHTS},
    {"moe_wna16", MAQ_WEIGHTS_BF16, MAQ_WEIGHTS_INT4},
    {"unquant", MAQ_WEIGHTS_BF16, AS_WEIGHTS},
    {"auto-round", NOT_MODELLED, 0},
    {"bitsandbytes", NOT_MODELLED, 0},
    {"compressed-tensors", NOT_MODELLED, 0},
    {"fp_quant", NOT_MODELLED, 0},
    {"gguf", NOT_MODELLED, 0},
    {"humming", NOT_MODELLED, 0},
    {"inc", NOT_MODELLED, 0},
    {"modelopt_mixed", NOT_MODELLED, 0},
    {"modelopt_mxfp8", NOT_MODELLED, 0},
    {"mxfp8", NOT_MODELLED, 0},
    {"online", NOT_MODELLED, 0},
    {"qoq", NOT_MODELLED, 0},
    {"quark", NOT_MODELLED, 0},
    {"quark_int4fp8_moe", NOT_MODELLED, 0},
    {"torchao", NOT_MODELLED, 0},
    {"w4afp8", NOT_MODELLED, 0},
    {"w8a8_int8", NOT_MODELLED, 0},
};

static void set_weights(struct maq_command_reader *r, const struct maq_command_argument *a)
{
    struct maq_serve_command *c = &r->loaded->read;
    const struct maq_str word = maq_str_of(a->value);
    const char *near = NULL;
    char hint[80];
    uint32_t least = 4;
    r->quantized = true;
    for (size_t i = 0; i < MAQ_COUNT(types); i++) {
        if (maq_str_ieq(word, types[i].word)) {
            if (types[i].weights == NOT_MODELLED) {
                maq_command_say(r, a);
                return;
            }
            int experts = types[i].experts == AS_WEIGHTS ? types[i].weights : types[i].experts;
            c->options.weights = (enum maq_weights)types[i].weights;
            c->options.expert_weights = (enum maq_weights)experts;
            c->weights_said = true;
            return;
        }
        uint32_t d = maq_str_distance(word, maq_str_of(types[i].word), least);
        if (d < least) {
            least = d;
            near = types[i].word;
        }
    }
    maq__snprintf(hint, sizeof hint, "did you mean '%s'?", near ? near : "");
    maq_command_bad(r, a, near ? hint : "fp8, awq, gptq, modelopt_fp4, mxfp4, ...", "a quantization");
}

int maq_command_meaning(struct maq_command_reader *r, const struct maq_command_argument *a,
                        const struct maq_command_meaning *words, const char *what)
{
    char hint[160];
    size_t n = 0;
    for (const struct maq_command_meaning *m = words; m->word; m++)
        if (strcmp(a->value, m->word) == 0)
            return m->is;
    for (const struct maq_command_meaning *m = words; m->word && n + 24 < sizeof hint; m++)
        n += (size_t)maq__snprintf(hint + n, sizeof hint - n, "%s%s", n > 0 ? ", " : "one of: ", m->word);
    maq_command_bad(r, a, hint, what);
    return -1;
}

enum { USUAL, OTHER, NOT_KNOWN_HERE };

static const struct maq_command_meaning widths[] = {
    {"auto", USUAL},           {"bfloat16", USUAL},         {"float16", USUAL}, {"half", USUAL},
    {"float", NOT_KNOWN_HERE}, {"float32", NOT_KNOWN_HERE}, {NULL, 0}};
static const struct maq_command_meaning kv[] = {{"auto", USUAL},
                                                {"bfloat16", USUAL},
                                                {"bf16", USUAL},
                                                {"float16", USUAL},
                                                {"fp8", OTHER},
                                                {"fp8_e4m3", OTHER},
                                                {"fp8_e5m2", OTHER},
                                                {"fp8_inc", OTHER},
                                                {"fp8_ds_mla", OTHER},
                                                {"fp8_per_token_head", OTHER},
                                                {"nvfp4", NOT_KNOWN_HERE},
                                                {"nvfp4_4over6", NOT_KNOWN_HERE},
                                                {"nvfp4_ds_mla", NOT_KNOWN_HERE},
                                                {"fp4_e2m1", NOT_KNOWN_HERE},
                                                {"int4_per_token_head", NOT_KNOWN_HERE},
                                                {"int8_per_token_head", NOT_KNOWN_HERE},
                                                {"turboquant_k8v4", NOT_KNOWN_HERE},
                                                {"turboquant_4bit_nc", NOT_KNOWN_HERE},
                                                {"turboquant_k3v4_nc", NOT_KNOWN_HERE},
                                                {"turboquant_3bit_nc", NOT_KNOWN_HERE},
                                                {"octave_k3v4", NOT_KNOWN_HERE},
                                                {"octave_k3v3", NOT_KNOWN_HERE},
                                                {"octave_k3v3_compact", NOT_KNOWN_HERE},
                                                {"ultraquant_4bit", NOT_KNOWN_HERE},
                                                {NULL, 0}};
static const struct maq_command_meaning vllm_policies[] = {{"fcfs", USUAL}, {"priority", OTHER}, {NULL, 0}};
static const struct maq_command_meaning sglang_policies[] = {{"fcfs", MAQ_SGLANG_FCFS},
                                                             {"lpm", MAQ_SGLANG_LPM},
                                                             {"dfs-weight", MAQ_SGLANG_DFS_WEIGHT},
                                                             {"lof", MAQ_SGLANG_LOF},
                                                             {"random", MAQ_SGLANG_RANDOM},
                                                             {"priority", MAQ_SGLANG_POLICIES},
                                                             {"routing-key", MAQ_SGLANG_POLICIES},
                                                             {"hrrn", MAQ_SGLANG_POLICIES},
                                                             {"shortest-prefill-first", MAQ_SGLANG_POLICIES},
                                                             {NULL, 0}};
static const struct maq_command_meaning evictions[] = {
    {"lru", MAQ_RADIX_LRU},           {"lfu", MAQ_RADIX_LFU},        {"fifo", MAQ_RADIX_FIFO},
    {"mru", MAQ_RADIX_MRU},           {"filo", MAQ_RADIX_FILO},      {"slru", MAQ_RADIX_SLRU},
    {"priority", MAQ_RADIX_PRIORITY}, {"tlru", MAQ_RADIX_EVICTIONS}, {NULL, 0}};
static const struct maq_command_meaning levels[] = {
    {"0", OTHER}, {"1", NOT_KNOWN_HERE}, {"2", USUAL}, {"3", USUAL}, {NULL, 0}};

static void set_word(struct maq_command_reader *r, const struct maq_command_argument *a)
{
    struct maq_serve_options *o = &r->loaded->read.options;
    enum maq_command_effect effect = a->form.row->effect;
    int is = -1;
    if (effect == MAQ_COMMAND_DTYPE)
        is = maq_command_meaning(r, a, widths, "a type");
    if (effect == MAQ_COMMAND_KV_DTYPE)
        o->kv_fp8 = (is = maq_command_meaning(r, a, kv, "a type")) == OTHER;
    if (effect == MAQ_COMMAND_POLICY && r->engine->engine == MAQ_ENGINE_VLLM)
        o->by_priority = (is = maq_command_meaning(r, a, vllm_policies, "a policy")) == OTHER;
    if (effect == MAQ_COMMAND_LEVEL && (is = maq_command_meaning(r, a, levels, "a level")) == OTHER)
        o->enforce_eager = true;
    if (is == NOT_KNOWN_HERE)
        maq_command_say(r, a);
}

/* What only SGLang has words for; false: the option is none of those. */
static bool set_sglang(struct maq_command_reader *r, const struct maq_command_argument *a)
{
    struct maq_sglang_options *o = &r->loaded->read.options.sglang;
    enum maq_command_effect effect = a->form.row->effect;
    bool policy = effect == MAQ_COMMAND_POLICY && r->engine->engine == MAQ_ENGINE_SGLANG;
    double x;
    int64_t n;
    if (effect == MAQ_COMMAND_MIXED) {
        o->mixed_chunk = !a->form.off;
    } else if (effect == MAQ_COMMAND_BY_PRIORITY) {
        r->loaded->read.options.by_priority = o->high_first = true;
    } else if (effect == MAQ_COMMAND_LOW_FIRST) {
        r->low_first = true;
    } else if (effect == MAQ_COMMAND_NO_PREEMPTION) {
        o->no_preemption = true;
    } else if (effect == MAQ_COMMAND_PREEMPTS_BY) {
        if (maq_command_number(r, a, &n, 0, 1 << 30))
            o->preempts_by = (int32_t)n + 1;
    } else if (effect == MAQ_COMMAND_CONSERVATIVENESS) {
        if (maq_str_to_double(&x, maq_str_of(a->value)) && x > 0 && x <= 100)
            o->conservativeness = x;
        else
            maq_command_bad(r, a, NULL, "a factor above 0, at most 100");
    } else if (policy || effect == MAQ_COMMAND_EVICTION) {
        int none = policy ? (int)MAQ_SGLANG_POLICIES : (int)MAQ_RADIX_EVICTIONS,
            is = policy ? maq_command_meaning(r, a, sglang_policies, "a policy")
                        : maq_command_meaning(r, a, evictions, "an eviction");
        if (is == none)
            maq_command_say(r, a);
        else if (is >= 0)
            *(policy ? &o->policy : &o->eviction) = (uint8_t)is;
    } else {
        return false;
    }
    return true;
}

/* ---- the rest ---- */

static void set_length(struct maq_command_reader *r, const struct maq_command_argument *a)
{
    int64_t n = 0;
    bool own = r->engine->engine == MAQ_ENGINE_VLLM && (strcmp(a->value, "auto") == 0 || strcmp(a->value, "-1") == 0);
    if (own || maq_command_number(r, a, &n, 1, 1 << 30)) /* auto: the model's, as far as it fits */
        r->loaded->read.options.max_model_len = n;
}

static void set_chunk(struct maq_command_reader *r, const struct maq_command_argument *a)
{
    struct maq_serve_options *o = &r->loaded->read.options;
    int64_t n;
    if (!maq_command_number(r, a, &n, -1, 1 << 20))
        return;
    o->no_chunked_prefill = n <= 0;
    o->max_num_batched_tokens = n > 0 ? (int32_t)n : 0;
}

/* ---- ranks that have requests of their own ---- */

static const struct maq_command_meaning exchanges[] = {{"naive", MAQ_EXCHANGE_GATHER},
                                                       {"none", MAQ_EXCHANGE_AUTO},
                                                       {"allgather_reducescatter", MAQ_EXCHANGE_GATHER},
                                                       {"deepep", MAQ_EXCHANGE_DEEPEP},
                                                       {"deepep_high_throughput", MAQ_EXCHANGE_DEEPEP_NORMAL},
                                                       {"deepep_low_latency", MAQ_EXCHANGE_DEEPEP_LOW_LATENCY},
                                                       {"flashinfer_nvlink_one_sided", MAQ_EXCHANGE_ONE_SIDED},
                                                       {"flashinfer", MAQ_EXCHANGE_ONE_SIDED},
                                                       {"pplx", MAQ_EXCHANGE_COUNT},
                                                       {"deepep_v2", MAQ_EXCHANGE_COUNT},
                                                       {"mori", MAQ_EXCHANGE_COUNT},
                                                       {"mori_high_throughput", MAQ_EXCHANGE_COUNT},
                                                       {"mori_low_latency", MAQ_EXCHANGE_COUNT},
                                                       {"moonep", MAQ_EXCHANGE_COUNT},
                                                       {"nixl", MAQ_EXCHANGE_COUNT},
                                                       {"nixl_ep", MAQ_EXCHANGE_COUNT},
                                                       {"mooncake", MAQ_EXCHANGE_COUNT},
                                                       {"flashinfer_all2allv", MAQ_EXCHANGE_COUNT},
                                                       {"flashinfer_nvlink_two_sided", MAQ_EXCHANGE_COUNT},
                                                       {"passthrough", MAQ_EXCHANGE_COUNT},
                                                       {"megamoe", MAQ_EXCHANGE_COUNT},
                                                       {"flashinfer_megamoe", MAQ_EXCHANGE_COUNT},
                                                       {"ascend_fuseep", MAQ_EXCHANGE_COUNT},
                                                       {"ascend_tp", MAQ_EXCHANGE_COUNT},
                                                       {NULL, 0}};
/* vLLM's names and SGLang's; COUNT: kernels of which there are no times. */
static const struct maq_command_meaning moe_backends[] = {{"auto", MAQ_MOE_BACKEND_AUTO},
                                                          {"triton", MAQ_MOE_BACKEND_TRITON},
                                                          {"triton_kernel", MAQ_MOE_BACKEND_TRITON},
                                                          {"deep_gemm", MAQ_MOE_BACKEND_DEEP_GEMM},
                                                          {"cutlass", MAQ_MOE_BACKEND_CUTLASS},
                                                          {"flashinfer_cutlass", MAQ_MOE_BACKEND_FLASHINFER_CUTLASS},
                                                          {"flashinfer_trtllm", MAQ_MOE_BACKEND_FLASHINFER_TRTLLM},
                                                          {"flashinfer_trtllm_afp8", MAQ_MOE_BACKEND_FLASHINFER_AFP8},
                                                          {"flashinfer_mxfp4", MAQ_MOE_BACKEND_FLASHINFER_TRTLLM},
                                                          {"marlin", MAQ_MOE_BACKEND_MARLIN},
                                                          {"batched_triton", MAQ_MOE_BACKEND_COUNT},
                                                          {"triton_unfused", MAQ_MOE_BACKEND_COUNT},
                                                          {"deep_gemm_mega_moe", MAQ_MOE_BACKEND_COUNT},
                                                          {"flashinfer_cutedsl", MAQ_MOE_BACKEND_COUNT},
                                                          {"flashinfer_cutlass_afp8", MAQ_MOE_BACKEND_COUNT},
                                                          {"flashinfer_moe_ep_cutedsl", MAQ_MOE_BACKEND_COUNT},
                                                          {"flashinfer_moe_ep_mega_deep_gemm", MAQ_MOE_BACKEND_COUNT},
                                                          {"flashinfer_b12x", MAQ_MOE_BACKEND_COUNT},
                                                          {"b12x", MAQ_MOE_BACKEND_COUNT},
                                                          {"humming", MAQ_MOE_BACKEND_COUNT},
                                                          {"hpc", MAQ_MOE_BACKEND_COUNT},
                                                          {"flydsl", MAQ_MOE_BACKEND_COUNT},
                                                          {"aiter", MAQ_MOE_BACKEND_COUNT},
                                                          {"emulation", MAQ_MOE_BACKEND_COUNT},
                                                          {NULL, 0}};
static const struct maq_command_meaning deepep_modes[] = {{"auto", MAQ_EXCHANGE_DEEPEP},
                                                          {"normal", MAQ_EXCHANGE_DEEPEP_NORMAL},
                                                          {"low_latency", MAQ_EXCHANGE_DEEPEP_LOW_LATENCY},
                                                          {NULL, 0}};

/* What the argument's word means; negative where it means nothing, or `other`, what is not modelled: either has been said. */
static int known_word(struct maq_command_reader *r, const struct maq_command_argument *a,
                      const struct maq_command_meaning *meanings, int other, const char *what)
{
    int is = maq_command_meaning(r, a, meanings, what);
    if (is != other)
        return is;
    maq_command_say(r, a);
    return -1;
}

/* False: the option says nothing of such ranks, or of the experts. */
static bool set_ranks(struct maq_command_reader *r, const struct maq_command_argument *a)
{
    enum maq_command_effect effect = a->form.row->effect;
    int64_t n;
    if (effect == MAQ_COMMAND_DP_ATTENTION) {
        r->shares = true;
    } else if (effect == MAQ_COMMAND_DP || effect == MAQ_COMMAND_DP_ATTENTION_RANKS) {
        if (maq_command_number(r, a, &n, 1, 4096))
            *(effect == MAQ_COMMAND_DP ? &r->dp : &r->shared) = (int32_t)n;
    } else if (effect == MAQ_COMMAND_DEEPEP_MODE) {
        r->deepep_mode = maq_command_meaning(r, a, deepep_modes, "a mode");
    } else if (effect == MAQ_COMMAND_EXCHANGE) {
        int is = known_word(r, a, exchanges, MAQ_EXCHANGE_COUNT, "a way to the experts");
        if (is >= 0)
            r->loaded->read.options.exchange = (enum maq_serve_exchange)is;
    } else if (effect == MAQ_COMMAND_MOE_BACKEND) {
        int is = known_word(r, a, moe_backends, MAQ_MOE_BACKEND_COUNT, "kernels for experts");
        if (is >= 0)
            r->loaded->read.options.moe_backend = (enum maq_moe_backend)is;
    } else {
        return false;
    }
    return true;
}

void maq_command_conclude_ranks(struct maq_command_reader *r)
{
    struct maq_serve_command *c = &r->loaded->read;
    struct maq_serve_options *o = &c->options;
    if (r->shares && r->engine->engine == MAQ_ENGINE_TRTLLM) {
        r->shared = r->tp;
    } else if (r->shares && r->shared == 0) {
        r->shared = r->dp;
        r->dp = 0;
    }
    if (o->exchange == MAQ_EXCHANGE_DEEPEP && r->deepep_mode > 0)
        o->exchange = (enum maq_serve_exchange)r->deepep_mode;
    if (r->engine->engine == MAQ_ENGINE_VLLM)
        c->dp = r->dp;
    else
        c->replicas = r->dp;
    if (r->shared <= 1)
        return;
    int32_t tp = r->tp > 0
                     ? r->tp
                     : 1; /* all ranks: of SGLang those of one attention have a part, of TensorRT-LLM each one is one */
    const char *own = maq_arena_printf(&r->loaded->arena, "%d", tp / r->shared);
    if (tp % r->shared != 0)
        r->status = maq_diag_fail(MAQ_BAD_INPUT, r->diag, MAQ_CODE_COMMAND_VALUE, (struct maq_span){0}, NULL,
                                  "%d ranks of attention do not divide --tp-size %d", r->shared, tp);
    else if (!own)
        r->status = maq_no_memory(r->diag, "options");
    else
        maq_command_override(r, r->engine->engine == MAQ_ENGINE_TRTLLM ? "--tp_size" : "--tp-size",
                             "plan.tensor_model_parallel_size", own);
    o->dp = r->shared;
}

static void set_blocks(struct maq_command_reader *r, const struct maq_command_argument *a)
{
    int64_t n;
    if (!maq_command_number(r, a, &n, 1, 1 << 28))
        return;
    if (a->form.row->effect == MAQ_COMMAND_BLOCKS)
        r->loaded->read.options.blocks = n;
    if (a->form.row->effect == MAQ_COMMAND_POOL)
        r->pool = n;
    if (a->form.row->effect == MAQ_COMMAND_BLOCK)
        r->block = n <= 1 << 16 ? (int32_t)n : 1 << 16;
}

static void set_switch(struct maq_command_reader *r, const struct maq_command_argument *a)
{
    struct maq_serve_options *o = &r->loaded->read.options;
    enum maq_command_effect effect = a->form.row->effect;
    bool on = !a->form.off;
    if (effect == MAQ_COMMAND_CACHING)
        o->no_prefix_caching = !on;
    if (effect == MAQ_COMMAND_NO_CACHING)
        o->no_prefix_caching = on;
    if (effect == MAQ_COMMAND_CHUNKED)
        o->no_chunked_prefill = !(o->chunked_prefill = on);
    if (effect == MAQ_COMMAND_LORA)
        o->lora.enabled = on;
    if (effect == MAQ_COMMAND_EAGER)
        o->enforce_eager = on;
    if (effect == MAQ_COMMAND_NO_PREFILL_GRAPH)
        o->sglang.prefill_graph_tokens = -1;
    if (effect == MAQ_COMMAND_EP_ALL)
        r->loaded->read.expert_parallel = on;
    if (effect == MAQ_COMMAND_ASYNC)
        o->async_scheduling = on ? MAQ_ON : MAQ_OFF;
    if (effect == MAQ_COMMAND_NO_ASYNC)
        o->async_scheduling = MAQ_OFF;
}

void maq_command_set(struct maq_command_reader *r, const struct maq_command_argument *a)
{
    enum maq_command_effect effect = a->form.row->effect;
    if (effect == MAQ_COMMAND_MODEL) {
        r->model = a->value;
        r->model_at = a->value_at;
    } else if (effect == MAQ_COMMAND_CONFIG) {
        r->config = a->value;
        r->config_at = a->value_at;
        maq__snprintf(r->config_option, sizeof r->config_option, "%s", a->form.text);
    } else if (effect == MAQ_COMMAND_QUANTIZATION) {
        set_weights(r, a);
    } else if (effect == MAQ_COMMAND_LEN) {
        set_length(r, a);
    } else if (effect == MAQ_COMMAND_CHUNK) {
        set_chunk(r, a);
    } else if (set_ranks(r, a) || set_sglang(r, a) || maq_command_set_drafts(r, a) || maq_command_set_offload(r, a) ||
               maq_command_set_hicache(r, a) || maq_command_set_afd(r, a) || maq_command_set_compilation(r, a)) {
        return;
    } else if (effect == MAQ_COMMAND_BLOCK || effect == MAQ_COMMAND_BLOCKS || effect == MAQ_COMMAND_POOL) {
        set_blocks(r, a);
    } else if (!a->value || effect == MAQ_COMMAND_LORA) { /* SGLang: paths of adapters say it, too */
        set_switch(r, a);
    } else if (!plain_number(r, a)) {
        set_word(r, a);
    }
}
