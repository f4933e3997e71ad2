/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve_command.h - the command line of a serving engine, as people have it in their scripts, as a deployment.
 *
 *   vllm serve MODEL --tensor-parallel-size 4 --max-num-seqs 128        also python -m vllm.entrypoints.openai.api_server --model MODEL
 *   python -m sglang.launch_server --model-path MODEL --tp-size 4
 *   trtllm-serve MODEL --tp_size 4 --max_batch_size 128
 *
 * Each option of an engine is one of three: it sets something of the deployment; it changes nothing that is predicted (a port, a log) and
 * is passed over; or it changes the prediction and is not modelled, which a warning says. A word that the engine does not have is a fault,
 * with the nearest that it has.
 */
#ifndef MAQUETTE_SERVE_COMMAND_H
#define MAQUETTE_SERVE_COMMAND_H

#include "maquette/serve.h"

#ifdef __cplusplus
extern "C" {
#endif

struct maq_serve_command {
    struct maq_serve_options options; /* zero where nothing is said */
    bool weights_said;                /* options.weights and options.expert_weights are */
    bool expert_parallel; /* experts are spread over all ranks that share them: options.ep follows from the degrees */
    int32_t
        dp; /* vLLM: ranks that share the experts where the model has any, else engines of their own; 0 = not said */
    int32_t replicas; /* engines of their own, of which this is one; 0 = not said */
    /* Speculative decoding: the option that asks for it, NULL = none does. options.speculation then has method, tokens (0 = not said) and tree. */
    const char *speculates;
    const char *drafter;    /* what drafts, by its name; NULL = not said, or no model of its own */
    int32_t drafter_tp;     /* 0 = not said */
    const char *acceptance; /* as maq_acceptance_read() takes it; NULL = not said */
    const struct maq_override *overrides;
    size_t n_overrides; /* of the job: its model, its degrees */
};

/* All faults are said. What is set points into `words`, which must outlive it. *out is owned by the caller (maq_serve_command_free). */
MAQ_API enum maq_status maq_serve_command_read(struct maq_serve_command **out, const char *const *words, size_t n_words,
                                               struct maq_diag *diag);
MAQ_API void maq_serve_command_free(struct maq_serve_command *command);
/*
 * What the name of a checkpoint says of its weights: "Qwen/Qwen3-32B-FP8" is "Qwen3-32B" in 8 bits, and some models are published
 * quantized under their own name (DeepSeek-V3, gpt-oss).
 */
struct maq_checkpoint_name {
    enum maq_weights weights, expert_weights;
    size_t model_at, model_len; /* the part of the name that is the model's; model_len = 0: all of it */
};
/* False: nothing. Names of files say nothing. */
MAQ_API bool maq_checkpoint_name(struct maq_checkpoint_name *out, const char *name);
/* What the checkpoint's own config.json says of its weights. False: nothing, or numbers that no engine here is known to serve. */
MAQ_API bool maq_checkpoint_weights(struct maq_checkpoint_name *out, const struct maq_model *model);
/* The warning that says what was taken of it; `otherwise`: the option that says otherwise. */
MAQ_API void maq_checkpoint_warn(const struct maq_checkpoint_name *name, struct maq_span span, const char *otherwise,
                                 struct maq_diag *diag);
/* Whether an engine has an option of that name, without its dashes ("max-num-seqs"). */
MAQ_API bool maq_serve_command_knows(enum maq_engine engine, const char *name);

#ifdef __cplusplus
}
#endif
#endif
