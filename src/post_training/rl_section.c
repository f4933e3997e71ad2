/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rl_section.c - reads a job's section `rl`, in the words of TRL 1.10 (trainer/dpo_config.py, grpo_config.py), completes it and refuses what
 * does not go together with the job.
 */
#include "post_training/rl_section.h"

#include "base/check.h"
#include "plan/job_build.h"
#include "plan/rl_keys.h"
#include "post_training/codes.h"
#include "spec/field.h"

static const char *const method_names[] = {"dpo", "grpo", NULL};
static const char *const reference_names[] = {"auto", "none", "model", "adapter", "precomputed", NULL};
static const char *const mode_names[] = {"colocate", "server", NULL};

const char *maq_rl_method_name(enum maq_rl_method method)
{
    return (unsigned)method <= MAQ_RL_GRPO ? method_names[method] : "unknown";
}

const char *maq_rl_reference_name(enum maq_rl_reference reference)
{
    return (unsigned)reference < MAQ_RL_REFERENCE_COUNT ? reference_names[reference] : "unknown";
}

const char *maq_vllm_mode_name(enum maq_vllm_mode mode)
{
    return (unsigned)mode <= MAQ_VLLM_SERVER ? mode_names[mode] : "unknown";
}

#define T struct maq_rl_section
static const struct maq_field fields[] = {
    MAQ_FIELD_ENUM(T, rl.method, "method", method_names, .required = true, .doc = "dpo or grpo"),
    MAQ_FIELD_ENUM(T, rl.reference, "reference", reference_names, .def = "auto",
                   .doc = "where log-probabilities of the reference come from"),
    MAQ_FIELD_DOUBLE(T, rl.beta, "beta", .def = "0", .min = 0, .max = 1e6,
                     .doc = "GRPO: weight of the KL term; 0 = no reference"),
    MAQ_FIELD_I64(T, rl.prompt, "max_prompt_length", .def = "0", .min = 0, .max = 1 << 30,
                  .doc = "tokens of a prompt; 0 = what seq_length leaves"),
    MAQ_FIELD_I64(T, rl.completion, "max_completion_length", .def = "512", .min = 1, .max = 1 << 30,
                  .doc = "GRPO: tokens that are generated for each"),
    MAQ_FIELD_I32(T, rl.num_generations, "num_generations", .def = "8", .min = 2, .max = 65536,
                  .doc = "GRPO: completions of a prompt"),
    MAQ_FIELD_I32(T, rl.steps_per_generation, "steps_per_generation", .def = "0", .min = 0, .max = 65536,
                  .doc = "GRPO: microbatches that one generation is for; 0 = gradient_accumulation_steps"),
    MAQ_FIELD_I32(T, rl.num_iterations, "num_iterations", .def = "1", .min = 1, .max = 1024,
                  .doc = "GRPO: how often they are trained on"),
    MAQ_FIELD_BOOL(T, rl.use_vllm, "use_vllm", .def = "true", .doc = "GRPO: vLLM generates"),
    MAQ_FIELD_BOOL(T, rl.vllm_importance_sampling_correction, "vllm_importance_sampling_correction", .def = "true",
                   .doc = "GRPO: the policy computes the log-probabilities of what was sampled"),
    MAQ_FIELD_ENUM(T, rl.vllm_mode, "vllm_mode", mode_names, .def = "colocate",
                   .doc = "GRPO: on the GPUs of the trainer, or on others (vllm_server)"),
    MAQ_FIELD_NODE(T, server, "vllm_server", .doc = "server: its cluster, 'h100-sxm:8'; a device of the catalogue"),
    MAQ_FIELD_I32(T, rl.vllm_tensor_parallel_size, "vllm_tensor_parallel_size", .def = "1", .min = 1, .max = 1024,
                  .doc = "GRPO: TP of an engine"),
    MAQ_FIELD_DOUBLE(T, rl.vllm_gpu_memory_utilization, "vllm_gpu_memory_utilization", .def = "0", .min = 0, .max = 1,
                     .doc = "share of a GPU that an engine has; 0 = 0.3 colocated, else vLLM's 0.9"),
    MAQ_FIELD_BOOL(T, rl.vllm_enable_sleep_mode, "vllm_enable_sleep_mode", .def = "false",
                   .doc = "colocated: the engine leaves the device while the policy is trained"),
    MAQ_FIELD_STR(T, rl.reward_model, "reward_model", .def = "", .doc = "GRPO: a model of the catalogue that scores"),
    MAQ_FIELD_END};
#undef T

struct reader {
    const struct maq_job *job;
    const struct maq_node *section;
    struct maq_diag *diag;
    enum maq_status status;
};

static struct maq_span place(const struct reader *r, const char *key)
{
    const struct maq_node *n = maq_node_peek(r->section, key);
    return n ? n->at : r->section->at;
}

#define REFUSE(r, key, hint, ...)                                                                                      \
    do {                                                                                                               \
        (r)->status = MAQ_BAD_INPUT;                                                                                   \
        maq_diag_add((r)->diag, MAQ_ERROR, MAQ_CODE_RL_SECTION, place((r), (key)), (hint), __VA_ARGS__);               \
    } while (0)

static void complete_reference(struct reader *r, struct maq_post_training *rl)
{
    const bool lora = r->job->plan.lora_rank > 0, wanted = rl->method == MAQ_RL_DPO || rl->beta > 0;
    if (rl->reference == MAQ_RL_REFERENCE_AUTO)
        rl->reference = !wanted ? MAQ_RL_REFERENCE_NONE : lora ? MAQ_RL_REFERENCE_ADAPTER : MAQ_RL_REFERENCE_MODEL;
    if (rl->reference == MAQ_RL_REFERENCE_ADAPTER && !lora)
        REFUSE(r, "reference", "set lora_rank, or reference: model",
               "reference adapter is the policy with its adapters off, and all parameters are trained");
    if (rl->reference == MAQ_RL_REFERENCE_PRECOMPUTED && rl->method == MAQ_RL_GRPO)
        REFUSE(r, "reference", "use model", "completions that are not generated yet have no log-probabilities");
    if (rl->method == MAQ_RL_GRPO && !wanted && rl->reference != MAQ_RL_REFERENCE_NONE)
        REFUSE(r, "reference", "set beta", "reference %s has no effect with beta 0",
               maq_rl_reference_name((enum maq_rl_reference)rl->reference));
}

static void complete_lengths(struct reader *r, struct maq_post_training *rl)
{
    const int64_t seq = r->job->workload.seq;
    if (rl->method == MAQ_RL_DPO)
        return;
    if (rl->completion >= seq || (rl->prompt > 0 && rl->prompt + rl->completion != seq)) {
        REFUSE(r, rl->prompt > 0 ? "max_prompt_length" : "max_completion_length",
               "set seq_length to what both come to, and leave max_prompt_length out",
               "%lld tokens of completion, but seq_length %lld is prompt and completion", (long long)rl->completion,
               (long long)seq);
        return;
    }
    rl->prompt = seq - rl->completion;
}

static void complete_generation(struct reader *r, struct maq_rl_section *s)
{
    struct maq_post_training *rl = &s->rl;
    const struct maq_job *job = r->job;
    if (rl->steps_per_generation == 0)
        rl->steps_per_generation = job->microbatches;
    const int64_t all = (int64_t)job->plan.mbs * job->dp * rl->steps_per_generation;
    if (all % rl->num_generations != 0)
        REFUSE(
            r, "num_generations", "make the batch a multiple of it",
            "a generation of micro_batch_size %d x dp %d x steps_per_generation %d = %lld completions is no multiple "
            "of num_generations %d",
            job->plan.mbs, job->dp, rl->steps_per_generation, (long long)all, rl->num_generations);
    if (!rl->use_vllm)
        REFUSE(r, "use_vllm", "leave it out", "generation by the model of the trainer itself is not modelled");
    if (rl->vllm_gpu_memory_utilization <= 0)
        rl->vllm_gpu_memory_utilization = rl->vllm_mode == MAQ_VLLM_COLOCATE ? 0.3 : 0.9;
    if (rl->vllm_mode == MAQ_VLLM_SERVER && !s->server)
        REFUSE(r, "vllm_mode", "set vllm_server: 'h100-sxm:8'", "vllm_mode server without the GPUs of the server");
    if (rl->vllm_mode == MAQ_VLLM_COLOCATE && s->server)
        REFUSE(r, "vllm_server", "set vllm_mode: server", "vllm_server has no effect with vllm_mode colocate");
    if (rl->vllm_mode == MAQ_VLLM_SERVER && rl->vllm_enable_sleep_mode)
        REFUSE(r, "vllm_enable_sleep_mode", "leave it out", "an engine on GPUs of its own has nobody to sleep for");
    if (rl->vllm_mode == MAQ_VLLM_COLOCATE && job->cluster.devices % (uint32_t)rl->vllm_tensor_parallel_size != 0)
        REFUSE(r, "vllm_tensor_parallel_size", "take a divisor of the number of GPUs",
               "vllm_tensor_parallel_size %d does not divide %u GPUs", rl->vllm_tensor_parallel_size,
               job->cluster.devices);
}

/* Keys of GRPO that somebody wrote under DPO. */
static void refuse_generation(struct reader *r)
{
    static const char *const keys[] = {MAQ_RL_GRPO_KEYS(MAQ_RL_KEY_NAME) "vllm_server", "reward_model"};
    for (size_t i = 0; i < MAQ_COUNT(keys); i++)
        if (maq_node_peek(r->section, keys[i]))
            REFUSE(r, keys[i], "leave it out", "%s has no effect with method dpo: nothing is generated", keys[i]);
}

enum maq_status maq_rl_read(struct maq_rl_section *out, const struct maq_loaded_job *box, struct maq_arena *arena,
                            struct maq_diag *diag)
{
    struct maq_node *section = maq_job_rl_node(box);
    struct reader r = {.job = maq_job_get(box), .section = section, .diag = diag};
    *out = (struct maq_rl_section){.server = NULL};
    if (section->kind != MAQ_NODE_MAP)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_RL_SECTION, section->at, "rl: {method: dpo}",
                             "rl: is a map of keys");
    for (struct maq_node *n = section->first; n; n = n->next) /* who read the job has left them to this table */
        n->used = false;
    enum maq_status status = maq_fields_read_map(out, fields, section, "rl", arena, diag);
    maq_node_use_all(section);
    MAQ_TRY(status);
    if (r.job->plan.pp > 1)
        REFUSE(&r, "method", "leave the pipeline out", "TRL's trainers have no pipelines (pp %d)", r.job->plan.pp);
    complete_reference(&r, &out->rl);
    complete_lengths(&r, &out->rl);
    if (out->rl.method == MAQ_RL_GRPO)
        complete_generation(&r, out);
    else
        refuse_generation(&r);
    return r.status;
}

bool maq_job_is_post_training(const struct maq_loaded_job *box)
{
    return maq_job_rl_node(box) != NULL;
}
