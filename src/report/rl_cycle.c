/* SPDX-License-Identifier: Apache-2.0 */
/* rl_cycle.c - lays the parts of one cycle of post-training end to end, and writes rows of its memory and lines of its settings. */
#include "report/rl_cycle.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/text.h"
#include "base/units.h"

void maq_rl_parts(struct maq_rl_part out[MAQ_RL_PARTS], const struct maq_post_training_result *r)
{
    const struct maq_rl_part parts[MAQ_RL_PARTS] = {
        [MAQ_RL_SYNC] = {"sync_s", "sync of weights", r->sync_s},
        [MAQ_RL_GENERATE] = {"generate_s", "generate", r->generate_s},
        [MAQ_RL_OLD] = {"old_s", "score by the policy", r->old_s},
        [MAQ_RL_SCORE_REFERENCE] = {"reference_s", "score by the reference", r->reference_s},
        [MAQ_RL_REWARD] = {"reward_s", "score by the reward", r->reward_s},
        [MAQ_RL_VALUE] = {"value_s", "values, advantages", r->value_s},
        [MAQ_RL_TRAIN] = {"train_s", "train", r->train_s}};
    for (size_t i = 0; i < MAQ_RL_PARTS; i++)
        out[i] = parts[i];
}

bool maq_rl_cycle_init(struct maq_rl_cycle *out, const struct maq_post_training_result *r)
{
    struct maq_rl_part parts[MAQ_RL_PARTS];
    const double steps = r->rollout.per_step > 0 ? 1 / r->rollout.per_step : 1;
    const uint32_t whole = steps > 1.5 ? (uint32_t)(steps + 0.5) : 1;
    double at = 0;
    *out = (struct maq_rl_cycle){.steps = steps, .spans = maq__calloc((MAQ_RL_PARTS + whole) * sizeof *out->spans)};
    if (!out->spans)
        return false;
    maq_rl_parts(parts, r);
    for (int k = 0; k < MAQ_RL_PARTS; k++) {
        const uint32_t pieces = k == MAQ_RL_TRAIN ? whole : 1;
        for (uint32_t i = 0; i < pieces && parts[k].seconds > 0; i++) {
            const double s = parts[k].seconds * steps / pieces;
            out->spans[out->n++] = (struct maq_rl_span){.kind = (enum maq_rl_kind)k,
                                                        .step = i,
                                                        .start_ns = llround(at * 1e9),
                                                        .end_ns = llround((at + s) * 1e9)};
            at += s;
        }
    }
    out->end_ns = llround(at * 1e9);
    return true;
}

void maq_rl_cycle_fini(struct maq_rl_cycle *cycle)
{
    free(cycle->spans);
}

void maq_rl_memory_rows(struct maq_rl_memory_row out[MAQ_RL_MEMORY_ROWS], const struct maq_post_training_result *r)
{
    const struct maq_post_training_memory *m = &r->memory;
    const struct maq_rl_memory_row rows[MAQ_RL_MEMORY_ROWS] = {
        {"policy, all of its training", m->policy, false},
        {"value model, all of its training", m->value, false},
        {"reference", m->reference, false},
        {"reward model", m->reward, false},
        {r->rl.vllm_enable_sleep_mode ? "engine, asleep" : "engine", m->engine, false},
        {"rollout", m->rollout, false},
        {"while it is trained", m->training, true},
        {"while it generates", m->generating, true}};
    for (size_t i = 0; i < MAQ_RL_MEMORY_ROWS; i++)
        out[i] = rows[i];
}

/* ---- lines ---- */

static void put_generation(const struct maq_lines *to, const struct maq_post_training_result *r)
{
    const struct maq_post_training *rl = &r->rl;
    const struct maq_rollout *o = &r->rollout;
    char time[32], text[256], lengths[96], busy[48] = "";
    if (rl->use_vllm)
        maq__snprintf(text, sizeof text, "%u engine%s of vLLM, tp%d, %s; %lld requests each; %.3g a step", o->engines,
                      o->engines == 1 ? "" : "s", rl->vllm_tensor_parallel_size,
                      maq_vllm_mode_name((enum maq_vllm_mode)rl->vllm_mode), (long long)o->requests, o->per_step);
    else
        maq__snprintf(text, sizeof text,
                      "generate() of the trainer's model, %u ranks; %lld sequences each, %d batch%s; %.3g a step",
                      o->engines, (long long)o->requests, o->batches, o->batches == 1 ? "" : "es", o->per_step);
    to->put(to->user, "generation", text);
    if (o->mean < o->longest)
        maq__snprintf(lengths, sizeof lengths, "%.0f tokens in the mean, %.0f at most", o->mean, o->longest);
    else
        maq__snprintf(lengths, sizeof lengths, "%.0f tokens", o->longest);
    if (rl->use_vllm)
        maq__snprintf(busy, sizeof busy, "; engines busy %.0f %%", 100 * o->busy_share);
    maq__snprintf(text, sizeof text, "completions of %s, in %s%s", lengths, maq_format_time(time, o->seconds), busy);
    to->put(to->user, "", text);
}

void maq_rl_lines(const struct maq_lines *to, const struct maq_post_training_result *r)
{
    const struct maq_post_training *rl = &r->rl;
    const char *reference = maq_rl_reference_name((enum maq_rl_reference)rl->reference);
    char text[256];
    switch ((enum maq_rl_method)rl->method) {
    case MAQ_RL_DPO:
        maq__snprintf(text, sizeof text, "DPO; chosen and rejected in one pass; reference: %s", reference);
        break;
    case MAQ_RL_KTO:
        maq__snprintf(text, sizeof text, "KTO; %s; reference: %s",
                      rl->kto_loss == MAQ_KTO_LOSS_KTO ? "mismatched completions are scored beside"
                                                       : "apo_zero_unpaired",
                      reference);
        break;
    case MAQ_RL_GRPO:
        maq__snprintf(text, sizeof text, "GRPO; %d completions for each prompt of %lld tokens; reference: %s",
                      rl->num_generations, (long long)rl->prompt, reference);
        break;
    case MAQ_RL_PPO:
    case MAQ_RL_METHODS:
        maq__snprintf(text, sizeof text, "PPO; a completion for each prompt of %lld tokens, %d epoch%s; reference: %s",
                      (long long)rl->prompt, rl->num_ppo_epochs, rl->num_ppo_epochs == 1 ? "" : "s", reference);
    }
    to->put(to->user, "rl", text);
    if (rl->reward_model.len > 0) {
        const bool value = rl->method == MAQ_RL_PPO;
        maq__snprintf(text, sizeof text, "reward: %.*s%s%.*s", (int)rl->reward_model.len, rl->reward_model.ptr,
                      value ? "; value: " : "", value ? (int)rl->value_model.len : 0, value ? rl->value_model.ptr : "");
        to->put(to->user, "", text);
    }
    if (maq_rl_generates(rl))
        put_generation(to, r);
}
