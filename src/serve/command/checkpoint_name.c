/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_name.c - what the name of a checkpoint says of its weights, where no option does.
 *
 * An engine reads the type of weights from the checkpoint; here is only its name. Publishers write the type behind it
 * (Qwen3-32B-FP8, ...-AWQ, ...-NVFP4), and of some models the only published weights are quantized (quantization_config of their
 * config.json). A warning says what was taken, so that nobody has to guess.
 */
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "serve/codes.h"
#include "serve/command/command.h"

static const struct mark {
    const char *text;
    enum maq_weights weights, experts;
} endings[] = {
    {"-FP8", MAQ_WEIGHTS_FP8, MAQ_WEIGHTS_FP8},
    {"-FP8-dynamic", MAQ_WEIGHTS_FP8, MAQ_WEIGHTS_FP8},
    {"-FP8-block", MAQ_WEIGHTS_FP8_BLOCK, MAQ_WEIGHTS_FP8_BLOCK},
    {"-AWQ", MAQ_WEIGHTS_INT4, MAQ_WEIGHTS_INT4},
    {"-AWQ-INT4", MAQ_WEIGHTS_INT4, MAQ_WEIGHTS_INT4},
    {"-GPTQ", MAQ_WEIGHTS_INT4, MAQ_WEIGHTS_INT4},
    {"-GPTQ-Int4", MAQ_WEIGHTS_INT4, MAQ_WEIGHTS_INT4},
    {"-INT4", MAQ_WEIGHTS_INT4, MAQ_WEIGHTS_INT4},
    {"-quantized.w4a16", MAQ_WEIGHTS_INT4, MAQ_WEIGHTS_INT4},
    {"-NVFP4", MAQ_WEIGHTS_NVFP4, MAQ_WEIGHTS_NVFP4},
    {"-FP4", MAQ_WEIGHTS_NVFP4, MAQ_WEIGHTS_NVFP4},
};

/* Qwen's own: weight_block_size [128, 128] in their config.json. */
static const struct mark in_blocks = {"-FP8", MAQ_WEIGHTS_FP8_BLOCK, MAQ_WEIGHTS_FP8_BLOCK};

/* Beginnings of names without their owner; their config.json has quant_method fp8 with weight_block_size [128, 128], or mxfp4. */
static const struct mark natives[] = {
    {"DeepSeek-V3", MAQ_WEIGHTS_FP8_BLOCK, MAQ_WEIGHTS_FP8_BLOCK},
    {"DeepSeek-R1-0", MAQ_WEIGHTS_FP8_BLOCK, MAQ_WEIGHTS_FP8_BLOCK},
    {"Kimi-K2-Instruct", MAQ_WEIGHTS_FP8_BLOCK, MAQ_WEIGHTS_FP8_BLOCK},
    {"gpt-oss-", MAQ_WEIGHTS_BF16, MAQ_WEIGHTS_MXFP4},
};

static const struct mark *mark_of(struct maq_str name, size_t *cut)
{
    *cut = 0;
    for (size_t i = 0; i < MAQ_COUNT(endings); i++) {
        size_t n = strlen(endings[i].text);
        if (name.len > n && maq_str_ieq((struct maq_str){name.ptr + name.len - n, n}, endings[i].text)) {
            *cut = n;
            bool blocks = endings[i].weights == MAQ_WEIGHTS_FP8 && maq_str_starts(name, "Qwen3");
            return blocks ? &in_blocks : &endings[i];
        }
    }
    for (size_t i = 0; i < MAQ_COUNT(natives); i++) {
        size_t n = strlen(natives[i].text);
        if (name.len >= n && maq_str_ieq((struct maq_str){name.ptr, n}, natives[i].text))
            return &natives[i];
    }
    return maq_str_ieq(name, "DeepSeek-R1") ? &natives[0] : NULL;
}

bool maq_checkpoint_name(struct maq_checkpoint_name *out, const char *text)
{
    const char *slash = strrchr(text, '/');
    size_t cut, at = slash ? (size_t)(slash + 1 - text) : 0;
    bool path = text[0] == '/' || text[0] == '.';
    struct maq_str name = maq_str_of(text + at);
    const struct mark *mark = path ? NULL : mark_of(name, &cut);
    if (!mark)
        return false;
    *out = (struct maq_checkpoint_name){.weights = mark->weights, .expert_weights = mark->experts};
    if (cut > 0) { /* the model by its own name: the owner may be who quantized it */
        out->model_at = at;
        out->model_len = name.len - cut;
    }
    return true;
}

void maq_command_checkpoint(struct maq_command_reader *r)
{
    struct maq_serve_command *c = &r->loaded->read;
    struct maq_checkpoint_name n;
    const char *model = r->model;
    bool said = maq_checkpoint_name(&n, model);
    if (said && n.model_len > 0)
        model = maq_arena_strdup(&r->loaded->arena, (struct maq_str){model + n.model_at, n.model_len});
    if (!model) {
        r->status = maq_no_memory(r->diag, "a model's name");
        return;
    }
    maq_command_override(r, "--model", "model", model);
    if (!said || r->quantized)
        return;
    c->options.weights = n.weights;
    c->options.expert_weights = n.expert_weights;
    c->weights_said = true;
    maq_checkpoint_warn(&n, maq_command_span(r, r->model_at), "--weights before the `--`", r->diag);
}

void maq_checkpoint_warn(const struct maq_checkpoint_name *n, struct maq_span span, const char *otherwise,
                         struct maq_diag *diag)
{
    char experts[64] = "";
    if (n->expert_weights != n->weights)
        maq__snprintf(experts, sizeof experts, ", routed experts in %s", maq_weights_name(n->expert_weights));
    maq_diag_add(diag, MAQ_WARNING, MAQ_CODE_COMMAND_CHECKPOINT, span, NULL,
                 "by its name this checkpoint has weights in %s%s; %s says otherwise", maq_weights_name(n->weights),
                 experts, otherwise);
}
