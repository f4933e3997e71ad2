/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - a step of post-training as a document, schema maquette.post_training/1: docs/post-training.md. */
#include "maquette/report_post_training.h"
#include "report/job_json.h"
#include "report/rl_cycle.h"

static void add_engines(struct maq_json map, const struct maq_post_training *rl)
{
    maq_json_int(map, "vllm_tensor_parallel_size", rl->vllm_tensor_parallel_size);
    maq_json_text(map, "vllm_mode", maq_vllm_mode_name((enum maq_vllm_mode)rl->vllm_mode));
    maq_json_real(map, "vllm_gpu_memory_utilization", rl->vllm_gpu_memory_utilization);
    maq_json_bool(map, "vllm_enable_sleep_mode", rl->vllm_enable_sleep_mode);
    maq_json_bool(map, "vllm_importance_sampling_correction", rl->vllm_importance_sampling_correction);
}

static void add_generation(struct maq_json document, const struct maq_post_training_result *r)
{
    const struct maq_rollout *o = &r->rollout;
    struct maq_json map = maq_json_map(document, "generation");
    maq_json_real(map, "generations_per_step", o->per_step);
    maq_json_real(map, "generation_s", o->seconds);
    maq_json_count(map, "completions", o->sequences);
    MAQ_JSON_REALS(map, {"completion_tokens_mean", o->mean}, {"completion_tokens_most", o->longest});
    MAQ_JSON_INTS(map, {"engines", o->engines}, {"engine_devices", o->engine_devices},
                  {"requests_per_engine", o->requests});
    if (r->rl.use_vllm) {
        maq_json_int(map, "requests_held", o->held);
        MAQ_JSON_REALS(map, {"busy_share", o->busy_share}, {"mean_batch", o->mean_batch},
                       {"prefix_hit_rate", o->prefix_hit_rate});
        maq_json_int(map, "preemptions", (int64_t)o->preemptions);
    } else {
        maq_json_int(map, "batches", o->batches);
        MAQ_JSON_REALS(map, {"prefill_s", o->prefill_s}, {"decode_s", o->decode_s});
    }
}

static void add_section(struct maq_json document, const struct maq_post_training_result *r)
{
    const struct maq_post_training *rl = &r->rl;
    struct maq_json map = maq_json_map(document, "rl");
    maq_json_text(map, "method", maq_rl_method_name((enum maq_rl_method)rl->method));
    maq_json_text(map, "reference", maq_rl_reference_name((enum maq_rl_reference)rl->reference));
    if (rl->method == MAQ_RL_KTO)
        maq_json_text(map, "loss_type", maq_kto_loss_name((enum maq_kto_loss)rl->kto_loss));
    if (!maq_rl_generates(rl))
        return;
    MAQ_JSON_INTS(map, {"max_prompt_length", rl->prompt}, {"max_completion_length", rl->completion});
    if (rl->requests.len > 0)
        maq_json_slice(map, "requests", rl->requests);
    else {
        MAQ_JSON_INTS(map, {"osl", rl->osl}, {"seed", rl->seed});
        maq_json_real(map, "length_spread", rl->length_spread);
    }
    if (rl->method == MAQ_RL_PPO) {
        MAQ_JSON_INTS(map, {"num_ppo_epochs", rl->num_ppo_epochs}, {"num_mini_batches", rl->num_mini_batches},
                      {"local_rollout_forward_batch_size", rl->rollout_forward_batch_size});
        maq_json_slice(map, "value_model", rl->value_model);
    } else {
        maq_json_real(map, "beta", rl->beta);
        MAQ_JSON_INTS(map, {"num_generations", rl->num_generations}, {"steps_per_generation", rl->steps_per_generation},
                      {"num_iterations", rl->num_iterations});
    }
    maq_json_slice(map, "reward_model", rl->reward_model);
    maq_json_bool(map, "use_vllm", rl->use_vllm);
    if (rl->use_vllm)
        add_engines(map, rl);
    add_generation(document, r);
}

enum maq_status maq_report_post_training_json(char **out, const struct maq_post_training_result *r,
                                              const struct maq_report_opts *opts, struct maq_diag *diag)
{
    struct maq_json_document document;
    struct maq_rl_part parts[MAQ_RL_PARTS];
    const struct maq_post_training_memory *m = &r->memory;
    (void)opts;
    maq_json_begin(&document, "maquette.post_training/1");
    maq_json_job(maq_json_map(document.root, "job"), r->job);
    add_section(document.root, r);
    maq_json_bool(document.root, "fits", r->fits);
    maq_json_real(document.root, "step_time_s", r->step_s);
    maq_json_count(document.root, "sequences", r->sequences);
    struct maq_json map = maq_json_map(document.root, "parts");
    maq_rl_parts(parts, r);
    for (size_t i = 0; i < MAQ_RL_PARTS; i++)
        maq_json_real(map, parts[i].key, parts[i].seconds);
    map = maq_json_map(document.root, "memory");
    maq_json_count(map, "policy_bytes", m->policy);
    maq_json_count(map, "value_bytes", m->value);
    maq_json_count(map, "reference_bytes", m->reference);
    maq_json_count(map, "reward_bytes", m->reward);
    maq_json_count(map, "engine_bytes", m->engine);
    maq_json_count(map, "rollout_bytes", m->rollout);
    maq_json_count(map, "training_bytes", m->training);
    maq_json_count(map, "generating_bytes", m->generating);
    maq_json_count(map, "capacity_bytes", m->capacity);
    return maq_json_finish(out, &document, diag);
}
