/* SPDX-License-Identifier: Apache-2.0 */
/* deployment.c - a deployment from a job and an engine's options. */
#include "serve/engine/deployment.h"
#include "serve/engine/batch.h"

#include "base/check.h"
#include "plan/lora_targets.h"
#include "serve/codes.h"

/* Keys that are pooled of several tokens are kept and read by kernels of their own. */
static enum maq_status check_layers(const struct maq_model *m, struct maq_diag *diag)
{
    for (uint32_t k = 0; k < m->n_kinds; k++)
        for (uint32_t i = 0; i < m->kinds[k].n_modules; i++)
            if (m->kinds[k].modules[i].kind == MAQ_MODULE_ATTENTION && m->kinds[k].modules[i].u.attention.stride > 0)
                return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_LAYERS, (struct maq_span){0}, NULL,
                                     "attention to keys that are made of several tokens each (%s) is trained, but not "
                                     "served here",
                                     m->name);
    return MAQ_OK;
}

bool maq_model_has_experts(const struct maq_model *m)
{
    for (uint32_t k = 0; k < m->n_kinds; k++)
        for (uint32_t i = 0; i < m->kinds[k].n_modules; i++)
            if (m->kinds[k].modules[i].kind == MAQ_MODULE_EXPERT_LINEAR)
                return true;
    return false;
}

static enum maq_status check_ranks(const struct maq_job *job, const struct maq_serve_options *o, struct maq_diag *diag)
{
    int64_t ranks = (int64_t)job->plan.tp * o->dp, all = ranks * job->plan.pp;
    int64_t shared = o->afd.ffn_ranks > 0 ? o->afd.ffn_ranks : ranks; /* that share the experts */
    if (o->dp > 1 && !maq_model_has_experts(&job->model) && o->afd.ffn_ranks == 0)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_RANKS, (struct maq_span){0},
                             "--replicas behind a router, or a higher --tp",
                             "%s has no experts that %d ranks could share: they are engines of their own",
                             job->model.name, o->dp);
    if (o->ep > shared || shared % o->ep != 0)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_RANKS, (struct maq_span){0}, NULL,
                             "experts are spread over %d ranks, which does not divide the %lld that there are (%s)",
                             o->ep, (long long)shared, o->afd.ffn_ranks > 0 ? "of FFN" : "tp x dp");
    if (all > job->cluster.devices)
        return maq_diag_fail(
            MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_RANKS, (struct maq_span){0}, "a larger --cluster, or lower degrees",
            "the deployment has %lld GPUs (tp x dp x pp), the cluster %u", (long long)all, job->cluster.devices);
    return MAQ_OK;
}

static enum maq_status check_lora(const struct maq_job *job, const struct maq_lora_options *o, struct maq_diag *diag)
{
    struct maq_str wrong;
    bool known;
    if (!o->enabled)
        return MAQ_OK;
    if (o->max_cpu_loras < o->max_loras)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_LORA, (struct maq_span){0}, "a larger --max-cpu-loras",
                             "the host holds %d adapters and a GPU %d: what is in a GPU is in host memory, too",
                             o->max_cpu_loras, o->max_loras);
    if (o->targets && maq_lora_sites(maq_str_of(o->targets), &job->model, &wrong, &known) == 0)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_LORA, (struct maq_span){0},
                             "all-linear, or q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj",
                             "'%.*s' is no linear of %s that an adapter could be on", (int)wrong.len, wrong.ptr,
                             job->model.name);
    return MAQ_OK;
}

enum maq_status maq_deployment_init(struct maq_deployment *d, const struct maq_job *job,
                                    const struct maq_serve_options *options, struct maq_diag *diag)
{
    *d = (struct maq_deployment){.job = job, .device = &job->cluster.groups[job->stages[0].group].device};
    maq_arena_init(&d->arena, 0);
    MAQ_TRY(check_layers(&job->model, diag));
    maq_serve_complete(&d->options, options, job);
    MAQ_TRY(check_ranks(job, &d->options, diag));
    MAQ_TRY(maq_blocks_check(job, &d->options, diag));
    MAQ_TRY(maq_moe_backend_check(job, d->device, &d->options, diag));
    MAQ_TRY(check_lora(job, &d->options.lora, diag));
    MAQ_TRY(maq_afd_check(job, &d->options, diag));
    d->host = maq_host_profile_of(&d->options);
    d->host.async &= job->plan.pp == 1 || d->host.async_pipeline;
    int64_t most = d->options.max_num_batched_tokens,
            verified = (int64_t)d->options.max_num_seqs * d->options.speculation.verified;
    if (d->options.engine == MAQ_ENGINE_SGLANG && verified > most) /* its limit is one of prompts */
        most = verified;
    if (maq_passes_init(&d->passes, job, &d->options, most > 1024 ? most : 1024, &d->arena) != MAQ_OK)
        return maq_no_memory(diag, "a deployment");
    d->around_ns = maq_pass_around_ns(&d->passes);
    if (d->options.afd.ffn_ranks > 0 &&
        maq_afd_init(&d->afd, job, &d->options, d->passes.most_tokens, &d->arena) != MAQ_OK)
        return maq_no_memory(diag, "a deployment");
    MAQ_TRY(maq_deployment_draft(d, diag));
    MAQ_TRY(maq_deployment_encoder(d, diag));
    maq_deployment_memory(d);
    return maq_deployment_plan_tiers(d, diag);
}

void maq_deployment_fini(struct maq_deployment *d)
{
    maq_iteration_times_fini(d);
    maq_arena_fini(&d->arena);
}

static void fill_afd(struct maq_afd_result *out, const struct maq_deployment *d)
{
    if (!d->afd)
        return;
    *out = (struct maq_afd_result){.known = true,
                                   .attention_devices = (uint32_t)d->afd->attention_ranks,
                                   .ffn_devices = (uint32_t)d->afd->ffn_ranks,
                                   .ffn_device = d->afd->ffn.device->name,
                                   .ffn_weights_bytes = d->ffn_memory[MAQ_SERVE_MEM_WEIGHTS],
                                   .ffn_activations_bytes = d->ffn_memory[MAQ_SERVE_MEM_ACTIVATIONS],
                                   .ffn_context_bytes = d->ffn_memory[MAQ_SERVE_MEM_CONTEXT],
                                   .ffn_capacity_bytes = d->ffn_capacity_bytes,
                                   .ffn_usable_bytes = d->ffn_usable_bytes};
    double held = 0;
    for (int i = 0; i < MAQ_SERVE_MEM_COUNT; i++)
        held += d->ffn_memory[i];
    out->ffn_fits = held <= d->ffn_usable_bytes;
}

void maq_deployment_fill(struct maq_serve_result *out, const struct maq_deployment *d)
{
    out->job = d->job;
    out->options = d->options;
    for (int i = 0; i < MAQ_SERVE_MEM_COUNT; i++)
        out->memory[i] = d->memory[i];
    out->capacity_bytes = d->capacity_bytes;
    out->weights_bytes = d->memory[MAQ_SERVE_MEM_WEIGHTS];
    out->kv_bytes_per_token = d->kv_bytes_per_token;
    out->blocks = d->blocks;
    out->kv_tokens = d->kv_tokens;
    out->fits = d->fits;
    fill_afd(&out->afd, d);
    out->n_replicas = 1;
    out->n_devices = maq_deployment_devices(d);
}
