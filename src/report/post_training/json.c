/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - a step of DPO or GRPO as a document, schema maquette.post_training/1: docs/post-training.md. */
#include "maquette/report_post_training.h"
#include "report/job_json.h"
#include "report/post_training/parts.h"

static void add_section(struct maq_json document, const struct maq_post_training_result *r)
{
    const struct maq_post_training *rl = &r->rl;
    struct maq_json map = maq_json_map(document, "rl");
    maq_json_text(map, "method", maq_rl_method_name((enum maq_rl_method)rl->method));
    maq_json_text(map, "reference", maq_rl_reference_name((enum maq_rl_reference)rl->reference));
    if (rl->method == MAQ_RL_DPO)
        return;
    maq_json_real(map, "beta", rl->beta);
    MAQ_JSON_INTS(map, {"max_prompt_length", rl->prompt}, {"max_completion_length", rl->completion},
                  {"num_generations", rl->num_generations}, {"steps_per_generation", rl->steps_per_generation},
                  {"num_iterations", rl->num_iterations}, {"vllm_tensor_parallel_size", rl->vllm_tensor_parallel_size});
    maq_json_text(map, "vllm_mode", maq_vllm_mode_name((enum maq_vllm_mode)rl->vllm_mode));
    maq_json_real(map, "vllm_gpu_memory_utilization", rl->vllm_gpu_memory_utilization);
    maq_json_bool(map, "vllm_enable_sleep_mode", rl->vllm_enable_sleep_mode);
    maq_json_bool(map, "vllm_importance_sampling_correction", rl->vllm_importance_sampling_correction);
    maq_json_slice(map, "reward_model", rl->reward_model);
    map = maq_json_map(document, "generation");
    maq_json_real(map, "generations_per_step", r->generations);
    MAQ_JSON_INTS(map, {"engines", r->engines}, {"engine_devices", r->engine_devices},
                  {"requests_per_engine", r->requests}, {"requests_held", r->held}, {"waves", r->waves});
    MAQ_JSON_REALS(map, {"prefill_s", r->batch.prefill_s}, {"decode_s", r->batch.decode_s});
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
    for (size_t i = 0, n = maq_rl_parts(parts, r); i < n; i++)
        maq_json_real(map, parts[i].key, parts[i].seconds);
    map = maq_json_map(document.root, "memory");
    maq_json_count(map, "policy_bytes", m->policy);
    maq_json_count(map, "reference_bytes", m->reference);
    maq_json_count(map, "reward_bytes", m->reward);
    maq_json_count(map, "engine_bytes", m->engine);
    maq_json_count(map, "training_bytes", m->training);
    maq_json_count(map, "generating_bytes", m->generating);
    maq_json_count(map, "capacity_bytes", m->capacity);
    return maq_json_finish(out, &document, diag);
}
