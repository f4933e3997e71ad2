/* SPDX-License-Identifier: Apache-2.0 */
/* frozen_models.c - models that are asked and not trained. See frozen_models.h. */
#include "post_training/frozen_models.h"

#include <stdlib.h>

#include "base/check.h"
#include "plan/job_build.h"

struct maq_job maq_rl_frozen(const struct maq_job *of, enum maq_rl_adapters adapters)
{
    struct maq_job job = *of;
    job.plan.recompute = MAQ_RECOMPUTE_NONE;
    job.plan.recompute_parts = 0;
    job.plan.offload_layers = 0;
    job.plan.offload_modules = 0;
    job.plan.offload_inputs = false;
    if (job.plan.sharding != MAQ_SHARDING_PARAMS)
        job.plan.sharding = MAQ_SHARDING_NONE;
    if (adapters == MAQ_RL_ADAPTERS_OFF) { /* they sit nowhere; what they sat on stays as it was */
        job.plan.lora_sites = 0;
        job.plan.use_dora = false;
    }
    if (adapters == MAQ_RL_ADAPTERS_NONE) {
        job.plan.lora_rank = 0;
        job.plan.lora_sites = 0;
        job.plan.use_dora = false;
        job.plan.base_quantization = MAQ_BASE_NONE;
    }
    return job;
}

enum maq_status maq_rl_forward_s(double *out, const struct maq_job *job, struct maq_diag *diag)
{
    struct maq_train_spans spans;
    MAQ_TRY(maq_train_spans(&spans, job, diag));
    *out = 0;
    for (uint32_t i = spans.first[0]; i < spans.first[1]; i++)
        if (spans.spans[i].kind == MAQ_SPAN_FORWARD)
            *out = (double)(spans.spans[i].end_ns - spans.spans[i].start_ns) * 1e-9;
    maq_train_spans_free(&spans);
    return MAQ_OK;
}

enum maq_status maq_rl_weights(double *out, const struct maq_job *job, struct maq_diag *diag)
{
    struct maq_train_result *r;
    MAQ_TRY(maq_train_predict(&r, job, diag));
    *out = r->stages[0].bytes[MAQ_MEM_WEIGHTS];
    maq_train_result_free(r);
    return MAQ_OK;
}

/* AutoModelForSequenceClassification with one label: the norm at the end, and a product to one number that every rank has whole. */
static bool score_head(struct maq_model *m, struct maq_arena *arena)
{
    const struct maq_layer old = m->output;
    struct maq_module *o = MAQ_ARENA_NEW(arena, struct maq_module, old.n_modules + 1u);
    uint32_t n = 0;
    int64_t params = 0;
    if (!o)
        return false;
    for (uint32_t i = 0; i < old.n_modules; i++) {
        if (old.modules[i].kind == MAQ_MODULE_LOSS)
            continue;
        o[n] = old.modules[i];
        if (o[n].kind == MAQ_MODULE_LINEAR && o[n].out == m->vocab) {
            o[n].out = 1;
            o[n].params = o[n].in;
            o[n].shard = MAQ_SHARD_SEQUENCE;
            o[n].flags &= ~(uint32_t)(MAQ_MODULE_TIED | MAQ_MODULE_GATHER_IN | MAQ_MODULE_BIAS);
        }
        params += o[n++].params;
    }
    m->output.modules = o;
    m->output.n_modules = n;
    m->output.params = m->output.active_params = params;
    m->params += params - old.params;
    m->active_params += params - old.active_params;
    m->tied_embeddings = false;
    m->output_apart = (struct maq_layer){0};
    return true;
}

enum maq_status maq_rl_scoring_job(struct maq_loaded_job **loaded, struct maq_job *out,
                                   const struct maq_loaded_job *like, const char *key, struct maq_str name,
                                   struct maq_arena *arena, struct maq_diag *diag)
{
    const char *model = maq_arena_strdup(arena, name);
    const struct maq_override overrides[] = {{key, "model", model}, {key, "plan.lora_rank", "0"}};
    char *text = maq_job_text(like);
    if (!text || !model) {
        free(text);
        return MAQ_NO_MEMORY;
    }
    enum maq_status status =
        maq_job_parse(loaded, "the job of a model that scores", maq_str_of(text), overrides, 2, diag);
    free(text);
    MAQ_TRY(status);
    *out = *maq_job_get(*loaded);
    return score_head(&out->model, arena) ? MAQ_OK : MAQ_NO_MEMORY;
}
