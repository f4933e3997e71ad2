/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rl_section.c - reads a job's section `rl`, in the words of TRL 1.10 (trainer/dpo_config.py, kto_config.py, grpo_config.py,
 * experimental/ppo/ppo_config.py), lengths of completions in those of `maquette serve`, completes it and refuses what does not go together with the
 * job.
 */
#include "post_training/rl_section.h"

#include "base/check.h"
#include "plan/job_build.h"
#include "post_training/codes.h"
#include "spec/field.h"

static const char *const method_names[] = {"dpo", "kto", "grpo", "ppo", NULL};
static const char *const reference_names[] = {"auto", "none", "model", "adapter", "precomputed", NULL};
static const char *const loss_names[] = {"kto", "apo_zero_unpaired", NULL};
static const char *const mode_names[] = {"colocate", "server", NULL};

const char *maq_rl_method_name(enum maq_rl_method method)
{
    return (unsigned)method < MAQ_RL_METHODS ? method_names[method] : "unknown";
}

const char *maq_rl_reference_name(enum maq_rl_reference reference)
{
    return (unsigned)reference < MAQ_RL_REFERENCE_COUNT ? reference_names[reference] : "unknown";
}

const char *maq_vllm_mode_name(enum maq_vllm_mode mode)
{
    return (unsigned)mode <= MAQ_VLLM_SERVER ? mode_names[mode] : "unknown";
}

const char *maq_kto_loss_name(enum maq_kto_loss loss)
{
    return (unsigned)loss <= MAQ_KTO_LOSS_APO_ZERO_UNPAIRED ? loss_names[loss] : "unknown";
}

bool maq_rl_generates(const struct maq_post_training *rl)
{
    return rl->method == MAQ_RL_GRPO || rl->method == MAQ_RL_PPO;
}

#define T struct maq_rl_section
static const struct maq_field fields[] = {
    MAQ_FIELD_ENUM(T, rl.method, "method", method_names, .required = true, .doc = "dpo, kto, grpo or ppo"),
    MAQ_FIELD_ENUM(T, rl.reference, "reference", reference_names, .def = "auto",
                   .doc = "where log-probabilities of the reference come from"),
    MAQ_FIELD_ENUM(T, rl.kto_loss, "loss_type", loss_names, .def = "kto",
                   .doc = "KTO: with a KL term of mismatched completions, or without"),
    MAQ_FIELD_DOUBLE(T, rl.beta, "beta", .def = "0", .min = 0, .max = 1e6,
                     .doc = "GRPO: weight of the KL term; 0 = no reference"),
    MAQ_FIELD_I64(T, rl.prompt, "max_prompt_length", .def = "0", .min = 0, .max = 1 << 30,
                  .doc = "tokens of a prompt; 0 = what seq_length leaves"),
    MAQ_FIELD_I64(T, rl.completion, "max_completion_length", .aliases = "response_length", .def = "512", .min = 1,
                  .max = 1 << 30, .doc = "GRPO, PPO: tokens that are generated for each, at most"),
    MAQ_FIELD_I64(T, rl.osl, "osl", .def = "0", .min = 0, .max = 1 << 30,
                  .doc = "GRPO, PPO: tokens of a completion; 0 = max_completion_length"),
    MAQ_FIELD_DOUBLE(T, rl.length_spread, "length_spread", .def = "0", .min = 0, .max = 1,
                     .doc = "GRPO, PPO: completions are drawn evenly from 1 - this to 1 + this times osl"),
    MAQ_FIELD_STR(T, rl.requests, "requests", .def = "",
                  .doc = "GRPO, PPO: a file of requests whose tokens out are those of the completions"),
    MAQ_FIELD_I64(T, rl.seed, "seed", .def = "0", .min = 0, .max = 1 << 30, .doc = "GRPO, PPO: of the drawn lengths"),
    MAQ_FIELD_I32(T, rl.num_generations, "num_generations", .def = "8", .min = 2, .max = 65536,
                  .doc = "GRPO: completions of a prompt"),
    MAQ_FIELD_I32(T, rl.steps_per_generation, "steps_per_generation", .def = "0", .min = 0, .max = 65536,
                  .doc = "GRPO: microbatches that one generation is for; 0 = gradient_accumulation_steps"),
    MAQ_FIELD_I32(T, rl.num_iterations, "num_iterations", .def = "1", .min = 1, .max = 1024,
                  .doc = "GRPO: how often they are trained on"),
    MAQ_FIELD_I32(T, rl.num_ppo_epochs, "num_ppo_epochs", .def = "4", .min = 1, .max = 1024,
                  .doc = "PPO: how often a rollout is trained on"),
    MAQ_FIELD_I32(T, rl.num_mini_batches, "num_mini_batches", .def = "1", .min = 1, .max = 65536,
                  .doc = "PPO: parts in which a rank goes over its rollout"),
    MAQ_FIELD_I32(T, rl.rollout_forward_batch_size, "local_rollout_forward_batch_size", .def = "64", .min = 1,
                  .max = 65536, .doc = "PPO: sequences of a rank that are generated and scored at once"),
    MAQ_FIELD_BOOL(T, rl.use_vllm, "use_vllm", .def = "true",
                   .doc = "GRPO: vLLM generates; false: the trainer's own model, a static batch"),
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
    MAQ_FIELD_STR(T, rl.reward_model, "reward_model", .def = "", .doc = "a model of the catalogue that scores"),
    MAQ_FIELD_STR(T, rl.value_model, "value_model", .def = "",
                  .doc = "PPO: a model of the catalogue that is trained to tell values; left out: reward_model"),
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
    const bool lora = r->job->plan.lora_rank > 0, wanted = rl->method != MAQ_RL_GRPO || rl->beta > 0;
    if (rl->reference == MAQ_RL_REFERENCE_AUTO)
        rl->reference = !wanted ? MAQ_RL_REFERENCE_NONE : lora ? MAQ_RL_REFERENCE_ADAPTER : MAQ_RL_REFERENCE_MODEL;
    if (rl->reference == MAQ_RL_REFERENCE_ADAPTER && !lora)
        REFUSE(r, "reference", "set lora_rank, or reference: model",
               "reference adapter is the policy with its adapters off, and all parameters are trained");
    if (rl->reference == MAQ_RL_REFERENCE_PRECOMPUTED && maq_rl_generates(rl))
        REFUSE(r, "reference", "use model", "completions that are not generated yet have no log-probabilities");
    if (rl->reference == MAQ_RL_REFERENCE_NONE && (rl->method == MAQ_RL_KTO || rl->method == MAQ_RL_PPO))
        REFUSE(r, "reference", "leave it out", "%s is held against a reference",
               rl->method == MAQ_RL_KTO ? "KTO's loss" : "PPO's reward");
    if (rl->method == MAQ_RL_GRPO && !wanted && rl->reference != MAQ_RL_REFERENCE_NONE)
        REFUSE(r, "reference", "set beta", "reference %s has no effect with beta 0",
               maq_rl_reference_name((enum maq_rl_reference)rl->reference));
}

static void complete_lengths(struct reader *r, struct maq_post_training *rl)
{
    const int64_t seq = r->job->workload.seq;
    if (rl->completion >= seq || (rl->prompt > 0 && rl->prompt + rl->completion != seq)) {
        REFUSE(r, rl->prompt > 0 ? "max_prompt_length" : "max_completion_length",
               "set seq_length to what both come to, and leave max_prompt_length out",
               "%lld tokens of completion, but seq_length %lld is prompt and completion", (long long)rl->completion,
               (long long)seq);
        return;
    }
    rl->prompt = seq - rl->completion;
    if (rl->osl > rl->completion)
        REFUSE(r, "osl", "raise max_completion_length", "completions of %lld tokens, but max_completion_length is %lld",
               (long long)rl->osl, (long long)rl->completion);
    if (rl->requests.len > 0 && (maq_node_peek(r->section, "osl") || maq_node_peek(r->section, "length_spread")))
        REFUSE(r, "requests", "leave osl and length_spread out", "lengths are those of the file '%.*s', or drawn",
               (int)rl->requests.len, rl->requests.ptr);
    if (rl->osl == 0)
        rl->osl = rl->completion;
}

static void complete_engines(struct reader *r, struct maq_rl_section *s)
{
    struct maq_post_training *rl = &s->rl;
    const struct maq_job *job = r->job;
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

/* generate() of the trainer's own model: keys of engines that there are not. */
static void refuse_engines(struct reader *r)
{
    static const char *const keys[] = {"vllm_importance_sampling_correction",
                                       "vllm_mode",
                                       "vllm_server",
                                       "vllm_tensor_parallel_size",
                                       "vllm_gpu_memory_utilization",
                                       "vllm_enable_sleep_mode"};
    for (size_t i = 0; i < MAQ_COUNT(keys); i++)
        if (maq_node_peek(r->section, keys[i]))
            REFUSE(r, keys[i], "leave it out", "%s has no effect without use_vllm", keys[i]);
    if (r->job->plan.cp > 1)
        REFUSE(r, "use_vllm", "leave it out, or context_parallel_size", "generate() has no context parallelism (cp %d)",
               r->job->plan.cp);
}

static void complete_grpo(struct reader *r, struct maq_rl_section *s)
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
    if (rl->use_vllm)
        complete_engines(r, s);
    else
        refuse_engines(r);
}

/* A rollout is a rank's share of the batch, which num_mini_batches divides: accelerate steps behind gradient_accumulation_steps passes whatever it is. */
static void complete_ppo(struct reader *r, struct maq_post_training *rl)
{
    const struct maq_node *vllm = maq_node_peek(r->section, "use_vllm");
    const int64_t local = (int64_t)r->job->plan.mbs * r->job->microbatches;
    if (vllm && rl->use_vllm)
        REFUSE(r, "use_vllm", "leave it out", "TRL's PPOTrainer generates with its own model");
    rl->use_vllm = false;
    refuse_engines(r);
    if (rl->reward_model.len == 0)
        REFUSE(r, "method", "set reward_model", "PPO without a reward model");
    if (rl->value_model.len == 0)
        rl->value_model = rl->reward_model;
    if (local % rl->num_mini_batches != 0)
        REFUSE(r, "num_mini_batches", "take a divisor",
               "num_mini_batches %d does not divide a rank's micro_batch_size %d x %d microbatches",
               rl->num_mini_batches, r->job->plan.mbs, r->job->microbatches);
}

/* Keys of other methods that somebody wrote. */
static void refuse_others(struct reader *r, const struct maq_post_training *rl)
{
    enum { KTO = 1u << MAQ_RL_KTO, GRPO = 1u << MAQ_RL_GRPO, PPO = 1u << MAQ_RL_PPO };
    static const struct {
        const char *key;
        unsigned of;
    } keys[] = {{"loss_type", KTO},
                {"beta", GRPO},
                {"num_generations", GRPO},
                {"steps_per_generation", GRPO},
                {"num_iterations", GRPO},
                {"vllm_mode", GRPO},
                {"vllm_server", GRPO},
                {"vllm_enable_sleep_mode", GRPO},
                {"vllm_importance_sampling_correction", GRPO},
                {"vllm_tensor_parallel_size", GRPO},
                {"vllm_gpu_memory_utilization", GRPO},
                {"use_vllm", GRPO | PPO},
                {"max_prompt_length", GRPO | PPO},
                {"max_completion_length", GRPO | PPO},
                {"response_length", GRPO | PPO},
                {"osl", GRPO | PPO},
                {"length_spread", GRPO | PPO},
                {"requests", GRPO | PPO},
                {"seed", GRPO | PPO},
                {"reward_model", GRPO | PPO},
                {"num_ppo_epochs", PPO},
                {"num_mini_batches", PPO},
                {"local_rollout_forward_batch_size", PPO},
                {"value_model", PPO}};
    for (size_t i = 0; i < MAQ_COUNT(keys); i++)
        if (maq_node_peek(r->section, keys[i].key) && !(keys[i].of >> rl->method & 1))
            REFUSE(r, keys[i].key, "leave it out", "%s has no effect with method %s%s", keys[i].key,
                   maq_rl_method_name((enum maq_rl_method)rl->method),
                   maq_rl_generates(rl) || keys[i].of == KTO ? "" : ": nothing is generated");
}

enum maq_status maq_rl_read(struct maq_rl_section *out, const struct maq_loaded_job *loaded, struct maq_arena *arena,
                            struct maq_diag *diag)
{
    struct maq_node *section = maq_job_rl_node(loaded);
    struct reader r = {.job = maq_job_get(loaded), .section = section, .diag = diag};
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
    refuse_others(&r, &out->rl);
    complete_reference(&r, &out->rl);
    if (maq_rl_generates(&out->rl))
        complete_lengths(&r, &out->rl);
    if (out->rl.method == MAQ_RL_GRPO)
        complete_grpo(&r, out);
    if (out->rl.method == MAQ_RL_PPO)
        complete_ppo(&r, &out->rl);
    return r.status;
}

bool maq_job_is_post_training(const struct maq_loaded_job *loaded)
{
    return maq_job_rl_node(loaded) != NULL;
}
