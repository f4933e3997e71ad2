/* SPDX-License-Identifier: Apache-2.0 */
/*
 * speculation.c - what an engine's command line says of speculative decoding.
 *
 *   vLLM     --speculative-config '{"method": "eagle3", "model": ..., "num_speculative_tokens": 3}', its members one by one
 *            (--speculative-config.method eagle3), --spec-method, --spec-model, --spec-tokens; --speculative-model and --num-speculative-tokens of
 *            earlier releases. Without a method the model's name says it (0.33.0, config/speculative.py, __post_init__)
 *   SGLang   --speculative-algorithm, --speculative-num-steps, --speculative-eagle-topk, --speculative-num-draft-tokens,
 *            --speculative-draft-model-path. EAGLE without a draft model is the model's own layer for multi-token prediction, as is NEXTN
 *            (0.5.23, arg_groups/speculative_hook.py)
 *   TensorRT-LLM  speculative_config of its file (trtllm_config.c): decoding_type MTP, Eagle, Eagle3, NGram or Draft_Target
 */
#include <jansson.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "serve/command/command.h"

#define OTHER_METHOD (-1) /* that is not modelled */
/* arg_groups/speculative_hook.py, _handle_ngram. */
#define SGLANG_NGRAM_TOKENS 12

static const struct {
    const char *word;
    int method;
} methods[] = {
    {"ngram", MAQ_DRAFT_NGRAM},        {"[ngram]", MAQ_DRAFT_NGRAM},
    {"ngram_gpu", MAQ_DRAFT_NGRAM},    {"draft_model", MAQ_DRAFT_MODEL},
    {"standalone", MAQ_DRAFT_MODEL},   {"eagle", MAQ_DRAFT_EAGLE},
    {"eagle3", MAQ_DRAFT_EAGLE3},      {"mtp", MAQ_DRAFT_MTP},
    {"nextn", MAQ_DRAFT_MTP},          {"deepseek_mtp", MAQ_DRAFT_MTP},
    {"mimo_mtp", MAQ_DRAFT_MTP},       {"glm4_moe_mtp", MAQ_DRAFT_MTP},
    {"ernie_mtp", MAQ_DRAFT_MTP},      {"qwen3_next_mtp", MAQ_DRAFT_MTP},
    {"qwen3_5_mtp", MAQ_DRAFT_MTP},    {"longcat_flash_mtp", MAQ_DRAFT_MTP},
    {"nemotron_h_mtp", MAQ_DRAFT_MTP}, {"draft_target", MAQ_DRAFT_MODEL},
};

static int method_of(const char *word)
{
    for (size_t i = 0; i < MAQ_COUNT(methods); i++)
        if (maq_str_ieq(maq_str_of(word), methods[i].word))
            return methods[i].method;
    return OTHER_METHOD;
}

/* vLLM's guess where no method is said. */
static int method_by_model(const char *model)
{
    if (method_of(model) == MAQ_DRAFT_NGRAM)
        return MAQ_DRAFT_NGRAM;
    const struct maq_str name = maq_str_of(model);
    if (maq_str_has(name, "eagle-"))
        return MAQ_DRAFT_EAGLE;
    if (maq_str_has(name, "eagle3"))
        return MAQ_DRAFT_EAGLE3;
    return maq_str_has(name, "dflash") || maq_str_has(name, "dspark") ? OTHER_METHOD : MAQ_DRAFT_MODEL;
}

/* ---- vLLM's object ---- */

static const char *kept(struct maq_command_reader *r, const char *text)
{
    const char *copy = maq_arena_strdup(&r->loaded->arena, maq_str_of(text));
    if (!copy)
        r->status = maq_no_memory(r->diag, "options");
    return copy;
}

/* Shares, or a mean length: as many accepted drafts in full as fit, and of the next one what is left. */
static void read_acceptance(struct maq_command_reader *r, const char *key, const json_t *value)
{
    struct maq_buf text;
    double left = json_number_value(value) - 1;
    maq_buf_init(&text, 4096);
    if (strcmp(key, "synthetic_acceptance_length") == 0) {
        for (uint32_t i = 0; i < MAQ_DRAFT_MOST; i++, left -= 1)
            maq_buf_addf(&text, "%s%.17g", i > 0 ? "," : "", left >= 1 ? 1.0 : left > 0 ? left : 0.0);
    } else {
        for (size_t i = 0; i < json_array_size(value); i++)
            maq_buf_addf(&text, "%s%.17g", i > 0 ? "," : "", json_number_value(json_array_get(value, i)));
        if (json_array_size(value) == 1) /* a list of one, and no rate of each draft */
            maq_buf_adds(&text, ",0");
    }
    if (text.failed)
        r->status = maq_no_memory(r->diag, "options");
    else if (text.ptr)
        r->loaded->read.acceptance = kept(r, text.ptr);
    maq_buf_fini(&text);
}

static void member(struct maq_command_reader *r, const struct maq_command_argument *a, const char *key,
                   const json_t *value)
{
    static const char *const passed[] = {"prompt_lookup_max",   "prompt_lookup_min", "rejection_sample_method",
                                         "draft_sample_method", "enforce_eager",     "revision",
                                         "code_revision",       "max_model_len",     "disable_padded_drafter_batch",
                                         "moe_backend",         "attention_backend", "quantization"};
    struct maq_command_drafts *s = &r->drafts;
    const char *text = json_string_value(value);
    int64_t n = json_is_integer(value) ? json_integer_value(value) : 0;
    if (json_is_null(value) || json_is_false(value))
        return;
    if (strcmp(key, "method") == 0 && text)
        s->method = kept(r, text);
    else if (strcmp(key, "model") == 0 && text)
        s->model = kept(r, text);
    else if (strcmp(key, "num_speculative_tokens") == 0 && n > 0)
        s->tokens = n;
    else if (strcmp(key, "draft_tensor_parallel_size") == 0 && n > 0)
        s->tp = n;
    else if (strcmp(key, "synthetic_acceptance_rates") == 0 || strcmp(key, "synthetic_acceptance_length") == 0)
        read_acceptance(r, key, value);
    else {
        for (size_t i = 0; i < MAQ_COUNT(passed); i++)
            if (strcmp(key, passed[i]) == 0)
                return;
        maq_command_say_member(r, a, key);
    }
}

static void read_config(struct maq_command_reader *r, const struct maq_command_argument *a)
{
    json_error_t error;
    const char *key;
    json_t *value;
    if (a->member.len > 0) {
        char name[80];
        maq__snprintf(name, sizeof name, "%.*s", (int)(a->member.len < 79 ? a->member.len : 79), a->member.ptr);
        json_t *one = json_loads(a->value, JSON_DECODE_ANY, &error);
        json_t *text = one ? one : json_string(a->value);
        member(r, a, name, text);
        json_decref(text);
        return;
    }
    json_t *object = json_loads(a->value, 0, &error);
    if (!json_is_object(object))
        maq_command_bad(r, a, "{\"method\": \"eagle3\", \"num_speculative_tokens\": 3}", "an object of JSON");
    else
        json_object_foreach(object, key, value) member(r, a, key, value);
    json_decref(object);
}

/* ---- all ---- */

bool maq_command_set_drafts(struct maq_command_reader *r, const struct maq_command_argument *a)
{
    struct maq_command_drafts *s = &r->drafts;
    enum maq_command_effect effect = a->form.row->effect;
    int64_t *number = effect == MAQ_COMMAND_SPEC_TOKENS     ? &s->tokens
                      : effect == MAQ_COMMAND_SPEC_BRANCHES ? &s->branches
                      : effect == MAQ_COMMAND_SPEC_VERIFIED ? &s->verified
                                                            : NULL;
    if (effect == MAQ_COMMAND_SPEC_CONFIG)
        read_config(r, a);
    else if (effect == MAQ_COMMAND_SPEC_METHOD)
        s->method = a->value;
    else if (effect == MAQ_COMMAND_SPEC_MODEL)
        s->model = a->value;
    else if (number)
        (void)maq_command_number(r, a, number, 1, 1024);
    else
        return false;
    if (s->said[0] == '\0')
        maq__snprintf(s->said, sizeof s->said, "%s", a->form.text);
    return true;
}

void maq_command_conclude_drafts(struct maq_command_reader *r)
{
    const struct maq_command_drafts *s = &r->drafts;
    struct maq_serve_command *c = &r->loaded->read;
    struct maq_speculation *out = &c->options.speculation;
    bool sglang = r->engine->engine == MAQ_ENGINE_SGLANG;
    if (s->said[0] == '\0' || (!s->method && !s->model))
        return;
    int method = s->method ? method_of(s->method) : method_by_model(s->model);
    if (sglang && method == MAQ_DRAFT_EAGLE && !s->model)
        method = MAQ_DRAFT_MTP;
    if (method == OTHER_METHOD) {
        maq_buf_addf(&r->said, "%s%s %.60s", r->said.len > 0 ? ", " : "", s->said, s->method ? s->method : s->model);
        return;
    }
    out->method = (enum maq_draft_method)method;
    out->tokens = (int32_t)s->tokens;
    out->branches = (int32_t)s->branches;
    out->verified = (int32_t)s->verified;
    if (sglang &&
        method ==
            MAQ_DRAFT_NGRAM) { /* steps and branches are how its trees are searched: any chain of a tree may be accepted */
        out->verified = out->verified > 0 ? out->verified : SGLANG_NGRAM_TOKENS;
        out->tokens = out->verified - 1;
        out->branches = 0;
    }
    if (sglang && method != MAQ_DRAFT_NGRAM && out->branches <= 1)
        out->verified = 0; /* a chain: the engine takes steps + 1, whatever is said */
    c->drafter = method == MAQ_DRAFT_MTP || method == MAQ_DRAFT_NGRAM ? NULL : s->model;
    c->drafter_tp = (int32_t)s->tp;
    c->speculates = kept(r, s->said);
}
