/* SPDX-License-Identifier: Apache-2.0 */
/* text.c - a step of post-training for a terminal: what was asked, how long, which part takes it, memory of each model. */
#include "base/text.h"
#include "base/check.h"
#include "base/units.h"
#include "maquette/report_post_training.h"
#include "report/job_text.h"
#include "report/post_training/parts.h"
#include "report/words.h"

#define LABEL MAQ_JOB_LABEL
#define BAR 40

/* "700 tokens", "350 to 1,024 tokens, 700 in the mean". */
static void put_lengths(struct maq_page *page, const struct maq_post_training_result *r)
{
    const struct maq_rollout *o = &r->rollout;
    if (o->mean < o->longest)
        maq_page_putf(page, MAQ_INK_PLAIN, "%.0f tokens in the mean, %.0f at most", o->mean, o->longest);
    else
        maq_page_putf(page, MAQ_INK_PLAIN, "%.0f tokens", o->longest);
}

static void put_generation(struct maq_page *page, const struct maq_post_training_result *r)
{
    const struct maq_post_training *rl = &r->rl;
    const struct maq_rollout *o = &r->rollout;
    char time[32];
    maq_page_putf(page, MAQ_INK_FAINT, "%-*s", LABEL, "generation");
    if (rl->use_vllm)
        maq_page_putf(page, MAQ_INK_PLAIN, "%u engines of vLLM, tp%d, %s; %lld requests each", o->engines,
                      rl->vllm_tensor_parallel_size, maq_vllm_mode_name((enum maq_vllm_mode)rl->vllm_mode),
                      (long long)o->requests);
    else
        maq_page_putf(page, MAQ_INK_PLAIN,
                      "generate() of the trainer's model, %u ranks; %lld sequences each, %d batch%s", o->engines,
                      (long long)o->requests, o->batches, o->batches == 1 ? "" : "es");
    maq_page_putf(page, MAQ_INK_PLAIN, "; %.3g a step, %s\n", o->per_step, maq_format_time(time, o->seconds));
    maq_page_putf(page, MAQ_INK_FAINT, "%-*s", LABEL, "");
    maq_page_putf(page, MAQ_INK_PLAIN, "completions of ");
    put_lengths(page, r);
    if (rl->use_vllm)
        maq_page_putf(page, MAQ_INK_PLAIN, "; engines busy %.0f %%, %.1f requests an iteration", 100 * o->busy_share,
                      o->mean_batch);
    maq_page_putf(page, MAQ_INK_PLAIN, "\n");
}

static void put_asked(struct maq_page *page, const struct maq_post_training_result *r)
{
    const struct maq_post_training *rl = &r->rl;
    const char *reference = maq_rl_reference_name((enum maq_rl_reference)rl->reference);
    maq_page_putf(page, MAQ_INK_FAINT, "%-*s", LABEL, "rl");
    switch ((enum maq_rl_method)rl->method) {
    case MAQ_RL_DPO:
        maq_page_putf(page, MAQ_INK_PLAIN, "DPO; chosen and rejected in one pass");
        break;
    case MAQ_RL_KTO:
        maq_page_putf(page, MAQ_INK_PLAIN, "KTO; %s",
                      rl->kto_loss == MAQ_KTO_LOSS_KTO ? "mismatched completions are scored beside"
                                                       : "apo_zero_unpaired");
        break;
    case MAQ_RL_GRPO:
        maq_page_putf(page, MAQ_INK_PLAIN, "GRPO; %d completions for each prompt of %lld tokens", rl->num_generations,
                      (long long)rl->prompt);
        break;
    case MAQ_RL_PPO:
    case MAQ_RL_METHODS:
        maq_page_putf(page, MAQ_INK_PLAIN, "PPO; a completion for each prompt of %lld tokens, trained on in %d epoch%s",
                      (long long)rl->prompt, rl->num_ppo_epochs, rl->num_ppo_epochs == 1 ? "" : "s");
    }
    maq_page_putf(page, MAQ_INK_PLAIN, "; reference: %s\n", reference);
    if (rl->reward_model.len > 0) {
        maq_page_putf(page, MAQ_INK_FAINT, "%-*s", LABEL, "");
        maq_page_putf(page, MAQ_INK_PLAIN, "reward: %.*s", (int)rl->reward_model.len, rl->reward_model.ptr);
        if (rl->method == MAQ_RL_PPO)
            maq_page_putf(page, MAQ_INK_PLAIN, "; value: %.*s", (int)rl->value_model.len, rl->value_model.ptr);
        maq_page_putf(page, MAQ_INK_PLAIN, "\n");
    }
    if (maq_rl_generates(rl))
        put_generation(page, r);
}

static void put_parts(struct maq_page *page, const struct maq_post_training_result *r)
{
    struct maq_rl_part parts[MAQ_RL_PARTS];
    const size_t n = maq_rl_parts(parts, r);
    double largest = 0;
    for (size_t i = 0; i < n; i++)
        largest = parts[i].seconds > largest ? parts[i].seconds : largest;
    maq_page_putf(page, MAQ_INK_HEAD, "\nWhere the step goes\n");
    for (size_t i = 0; i < n; i++) {
        char time[32];
        if (!(parts[i].seconds > 0))
            continue;
        maq_page_putf(page, MAQ_INK_PLAIN, "  %-22s%10s %6.1f %%  ", parts[i].words,
                      maq_format_time(time, parts[i].seconds), 100 * parts[i].seconds / r->step_s);
        maq_page_bar(page, parts[i].seconds / largest, BAR);
        while (page->out.len > 0 && page->out.ptr && page->out.ptr[page->out.len - 1] == ' ')
            page->out.len--;
        maq_buf_addc(&page->out, '\n');
    }
}

static void put_memory(struct maq_page *page, const struct maq_post_training_result *r)
{
    const struct maq_post_training_memory *m = &r->memory;
    const struct {
        const char *words;
        double bytes;
    } rows[] = {{"policy, all of its training", m->policy},
                {"value model, all of its training", m->value},
                {"reference", m->reference},
                {"reward model", m->reward},
                {r->rl.vllm_enable_sleep_mode ? "engine, asleep" : "engine", m->engine},
                {"rollout", m->rollout},
                {"while it is trained", m->training},
                {"while it generates", m->generating}};
    maq_page_putf(page, MAQ_INK_HEAD, "\nMemory of the fullest GPU, GiB of %.1f\n", m->capacity / MAQ_GIB);
    for (size_t i = 0; i < MAQ_COUNT(rows); i++)
        if (rows[i].bytes > 0)
            maq_page_putf(page, rows[i].bytes > m->capacity ? MAQ_INK_BAD : MAQ_INK_PLAIN, "  %-32s%8.2f%s\n",
                          rows[i].words, rows[i].bytes / MAQ_GIB, rows[i].bytes > m->capacity ? "  over" : "");
}

enum maq_status maq_report_post_training_text(char **out, const struct maq_post_training_result *r,
                                              const struct maq_report_opts *opts, struct maq_diag *diag)
{
    struct maq_page page;
    char a[32], b[32];
    maq_page_init(&page, opts);
    maq_page_job(&page, r->job, MAQ_JOB_PLANNED);
    put_asked(&page, r);
    if (!r->fits)
        maq_page_putf(
            &page, MAQ_INK_BAD, "\nDoes not fit: %s needed, the GPU has %s\n",
            maq_format_bytes(a, r->memory.training > r->memory.generating ? r->memory.training : r->memory.generating),
            maq_format_bytes(b, r->memory.capacity));
    maq_page_putf(&page, MAQ_INK_FAINT, "\n%-*s", LABEL, "step");
    maq_page_putf(&page, MAQ_INK_TITLE, "%s", maq_format_time(a, r->step_s));
    maq_page_putf(&page, MAQ_INK_PLAIN, ", %.0f sequences, %.0f tokens/s trained on\n", r->sequences,
                  r->sequences * (double)r->job->workload.seq / r->step_s);
    put_parts(&page, r);
    put_memory(&page, r);
    return maq_page_finish(out, &page, diag);
}
