/* SPDX-License-Identifier: Apache-2.0 */
/* plan_write.c - the best fleet as what starts it: a job for maquette, the engine's command line. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/text.h"
#include "report/serve/engine_arguments.h"
#include "report/serve/plan_words.h"
#include "report/serve/plan_write.h"
#include "serve/engine/deployment.h"

#define LARGEST MAQ_PLAN_LARGEST

/* ---- the engine's command line ---- */

/* What an engine has to know of a pool that it is part of. */
static void put_role(struct maq_buf *b, enum maq_engine engine, enum maq_role role)
{
    if (role == MAQ_ROLE_BOTH)
        return;
    if (engine == MAQ_ENGINE_VLLM)
        maq_buf_adds(b, " --kv-transfer-config '" MAQ_PLAN_NIXL "'");
    else if (engine == MAQ_ENGINE_SGLANG)
        maq_buf_addf(b, " --disaggregation-mode %s", role == MAQ_ROLE_PREFILL ? "prefill" : "decode");
    else
        maq_buf_addf(b, " --server_role %s", role == MAQ_ROLE_PREFILL ? "CONTEXT" : "GENERATION");
}

static void put_command(struct maq_buf *b, const struct maq_serve_candidate *c, enum maq_role role)
{
    struct maq_engine_arguments a;
    maq_engine_arguments(&a, c->job, &c->options);
    for (uint32_t i = 0; i < 4 && a.program[i]; i++)
        maq_buf_addf(b, "%s%s", i > 0 ? " " : "", a.program[i]);
    maq_buf_addf(b, " %s%s%s", a.model ? a.model : "", a.model ? " " : "", c->job->model.name);
    for (uint32_t i = 0; i < a.n; i++)
        maq_buf_addf(b, " %s%s%s", a.at[i].flag, a.at[i].value[0] ? " " : "", a.at[i].value);
    put_role(b, c->options.engine, role);
    if (a.n_config > 0)
        maq_buf_adds(b, " --config config.yaml");
    maq_buf_adds(b, "\n");
    for (uint32_t i = 0; i < a.n_config; i++)
        maq_buf_addf(b, "# config.yaml: %s\n", a.config[i]);
    if (a.other_checkpoint)
        maq_buf_addf(b, "# of a checkpoint whose weights are %s\n", maq_weights_name(c->options.weights));
}

enum maq_status maq_report_serve_plan_command(char **out, const struct maq_report_serve_plan *p, struct maq_diag *diag)
{
    struct maq_buf b;
    (void)diag;
    maq_buf_init(&b, LARGEST);
    for (uint32_t i = 0; i < p->search->n_fleet; i++) {
        const struct maq_serve_candidate *c = maq_plan_part(p, i);
        uint32_t n = p->search->fleet[i].replicas;
        enum maq_role role = p->search->fleet[i].role;
        maq_buf_addf(&b, "# %s%s%u time%s, each on %u x %s\n", role == MAQ_ROLE_BOTH ? "" : maq_role_name(role),
                     role == MAQ_ROLE_BOTH ? "" : ": ", n, n == 1 ? "" : "s", c->gpus,
                     c->job->cluster.groups[0].device.name);
        put_command(&b, c, role);
    }
    *out = maq_buf_take(&b);
    return *out ? MAQ_OK : MAQ_NO_MEMORY;
}

/* ---- a job ---- */

static void put_sides(struct maq_buf *b, const struct maq_afd_options *o)
{
    if (o->ffn_ranks <= 0)
        return;
    maq_buf_addf(b, "  afd_exchange: %s\n", maq_afd_exchange_name((enum maq_afd_exchange)o->exchange));
    if (isinf(o->bps))
        maq_buf_adds(b, "  afd_bandwidth: inf\n");
    else if (o->bps > 0)
        maq_buf_addf(b, "  afd_bandwidth: %.6g\n", o->bps / 1e9);
}

static void put_serve(struct maq_buf *b, const struct maq_report_serve_plan *p)
{
    const struct maq_serve_candidate *c = maq_plan_part(p, 0);
    const struct maq_serve_options *o = &c->options;
    uint32_t replicas = p->search->fleet[0].replicas;
    maq_buf_addf(b, "serve:\n  engine: %s\n  weights: %s\n", maq_engine_name(o->engine), maq_weights_name(o->weights));
    if (o->version)
        maq_buf_addf(b, "  engine_version: \"%s\"\n", o->version);
    if (o->expert_weights != o->weights)
        maq_buf_addf(b, "  expert_weights: %s\n", maq_weights_name(o->expert_weights));
    const struct {
        const char *key;
        int64_t n, plain;
    } counts[] = {{"dp", o->dp, 1},
                  {"ep", o->ep, 1},
                  {"afd_ffn_ranks", o->afd.ffn_ranks, 0},
                  {"afd_micro_batches", o->afd.micro_batches, 0},
                  {"replicas", replicas, 1},
                  {"max_num_seqs", o->max_num_seqs, 0},
                  {"max_num_batched_tokens", o->max_num_batched_tokens, 0},
                  {"max_model_len", o->max_model_len, 0},
                  {"block_size", o->block_size, 0},
                  {"num_gpu_blocks_override", o->blocks, 0},
                  {"long_prefill_token_threshold", o->long_prefill_token_threshold, 0}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i].n > counts[i].plain)
            maq_buf_addf(b, "  %s: %lld\n", counts[i].key, (long long)counts[i].n);
    if ((o->dp > 1 || o->afd.ffn_ranks > 0) && o->ep == 1)
        maq_buf_adds(b, "  ep: 1\n");
    put_sides(b, &o->afd);
    if (o->exchange != MAQ_EXCHANGE_AUTO)
        maq_buf_addf(b, "  expert_exchange: %s\n", maq_serve_exchange_name(o->exchange));
    if (o->moe_backend != MAQ_MOE_BACKEND_AUTO)
        maq_buf_addf(b, "  moe_backend: %s\n", maq_moe_backend_name(o->moe_backend));
    if (o->expert_skew > 0)
        maq_buf_addf(b, "  expert_skew: %.12g\n", o->expert_skew);
    if (replicas > 1)
        maq_buf_addf(b, "  router: %s\n", maq_router_name(p->opts->router));
    if (o->gpu_memory_utilization > 0)
        maq_buf_addf(b, "  gpu_memory_utilization: %.4g\n", o->gpu_memory_utilization);
    const struct {
        const char *key;
        bool said;
    } switches[] = {{"no_enable_prefix_caching", o->no_prefix_caching},
                    {"no_enable_chunked_prefill", o->no_chunked_prefill},
                    {"enforce_eager", o->enforce_eager},
                    {"warm", o->warm}};
    if (o->front_end != MAQ_FRONT_END_OWN)
        maq_buf_addf(b, "  front_end: %s\n", maq_front_end_name((enum maq_front_end)o->front_end));
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
        if (switches[i].said)
            maq_buf_addf(b, "  %s: true\n", switches[i].key);
    maq_buf_addf(b, "%s%s%s", o->kv_fp8 ? "  kv_cache_dtype: fp8\n" : "",
                 o->by_priority ? "  scheduling_policy: priority\n" : "",
                 o->async_scheduling == MAQ_OFF  ? "  async_scheduling: \"off\"\n"
                 : o->async_scheduling == MAQ_ON ? "  async_scheduling: \"on\"\n"
                                                 : "");
}

static void put_drafts(struct maq_buf *b, const struct maq_speculation *s)
{
    if (s->method == MAQ_DRAFT_NONE)
        return;
    maq_buf_addf(b, "  speculative_method: %s\n  num_speculative_tokens: %d\n  acceptance: \"",
                 maq_draft_method_name(s->method), s->tokens);
    for (int32_t i = 0; i < s->tokens; i++)
        maq_buf_addf(b, "%s%.12g", i > 0 ? "," : "", s->accepted[i]);
    maq_buf_adds(b, "\"\n");
    if (s->draft)
        maq_buf_addf(b, "  speculative_model: %s\n", s->draft->model.name);
    if (s->draft && s->method == MAQ_DRAFT_MODEL)
        maq_buf_addf(b, "  speculative_tp: %d\n", s->draft->plan.tp);
}

static void put_adapters(struct maq_buf *b, const struct maq_lora_options *o, const struct maq_request_spec *asked)
{
    const struct {
        const char *key;
        int64_t n;
    } counts[] = {{"max_loras", o->max_loras},
                  {"max_lora_rank", o->max_lora_rank},
                  {"max_cpu_loras", o->max_cpu_loras},
                  {"adapters", asked->adapters}};
    if (!o->enabled)
        return;
    maq_buf_adds(b, "  enable_lora: true\n");
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i].n > 0)
            maq_buf_addf(b, "  %s: %lld\n", counts[i].key, (long long)counts[i].n);
    if (o->targets)
        maq_buf_addf(b, "  lora_target_modules: \"%s\"\n", o->targets);
    if (asked->adapter_zipf > 0)
        maq_buf_addf(b, "  adapter_zipf: %.6g\n", asked->adapter_zipf);
    if (asked->adapter_none > 0)
        maq_buf_addf(b, "  adapter_none: %.6g\n", asked->adapter_none);
}

/* The pool that computes prompts, where it is not as the other one. */
static void put_prefill(struct maq_buf *b, const struct maq_report_serve_plan *p)
{
    if (p->search->n_fleet < 2 || p->search->fleet[1].role != MAQ_ROLE_PREFILL)
        return;
    const struct maq_serve_candidate *c = maq_plan_part(p, 1);
    maq_buf_addf(b, "  prefill_replicas: %u\n  prefill_tp: %d\n  prefill_pp: %d\n  prefill_router: %s\n",
                 p->search->fleet[1].replicas, c->job->plan.tp, c->job->plan.pp, maq_router_name(p->opts->router));
    if (c->options.dp > 1)
        maq_buf_addf(b, "  prefill_dp: %d\n", c->options.dp);
    maq_buf_addf(b, "  prefill_ep: %d\n", c->options.ep);
    const struct maq_serve_options *other = &maq_plan_part(p, 0)->options;
    struct maq_serve_options own;
    maq_serve_complete(&own, &c->options, c->job);
    if (c->options.max_num_seqs != other->max_num_seqs)
        maq_buf_addf(b, "  prefill_max_num_seqs: %d\n", own.max_num_seqs);
    if (c->options.max_num_batched_tokens != other->max_num_batched_tokens)
        maq_buf_addf(b, "  prefill_max_num_batched_tokens: %d\n", own.max_num_batched_tokens);
}

/* What was asked, so that the job alone says it again. */
static void put_requests(struct maq_buf *b, const struct maq_report_serve_plan *p)
{
    const struct maq_request_spec *s = p->opts->spec;
    struct maq_buf slo;
    maq_buf_init(&slo, LARGEST);
    maq_words_slo(&slo, p->opts->slo);
    if (slo.len > 0)
        maq_buf_addf(b, "  slo: \"%s\"\n", slo.ptr);
    maq_buf_fini(&slo);
    if (p->opts->requests)
        return;
    maq_buf_addf(b, "  isl: %lld\n  osl: %lld\n  rate: %.6g\n", (long long)s->prompt, (long long)s->output,
                 p->search->rate);
    if (s->spread > 0)
        maq_buf_addf(b, "  length_spread: %.6g\n", s->spread);
    if (s->shared_prefix > 0)
        maq_buf_addf(b, "  shared_prefix: %lld\n", (long long)s->shared_prefix);
    if (s->distinct > 0)
        maq_buf_addf(b, "  distinct_prompts: %u\n", s->distinct);
    if (s->burstiness > 0 && (s->burstiness < 1 || s->burstiness > 1))
        maq_buf_addf(b, "  burstiness: %.6g\n", s->burstiness);
}

/* An open job has a batch, which serving does not look at. */
static void add_without_batch(struct maq_buf *b, const char *text)
{
    static const char *const lines[] = {"workload: {global_batch_size: 1}\n", "  micro_batch_size: 1\n"};
    while (*text) {
        size_t n = strcspn(text, "\n") + (text[strcspn(text, "\n")] == '\n');
        bool drop = false;
        for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
            drop = drop || (strlen(lines[i]) == n && strncmp(text, lines[i], n) == 0);
        if (!drop)
            maq_buf_add(b, text, n);
        text += n;
    }
}

enum maq_status maq_report_serve_plan_job(char **out, const struct maq_report_serve_plan *p, struct maq_diag *diag)
{
    struct maq_buf b;
    const struct maq_serve_candidate *c = maq_plan_part(p, 0);
    struct maq_plan plan = maq_job_get(p->open)->plan;
    (void)diag;
    plan.tp = c->job->plan.tp;
    plan.pp = c->job->plan.pp;
    bool pools = p->search->n_fleet > 1; /* they may be on both */
    char *text = pools ? maq_job_write(p->open, &plan) : maq_job_write_on(p->open, &plan, c->group);
    maq_buf_init(&b, LARGEST);
    add_without_batch(&b, text ? text : "");
    b.failed |= !text;
    free(text);
    put_serve(&b, p);
    put_drafts(&b, &c->options.speculation);
    put_adapters(&b, &c->options.lora, p->opts->spec);
    put_prefill(&b, p);
    put_requests(&b, p);
    *out = maq_buf_take(&b);
    return *out ? MAQ_OK : MAQ_NO_MEMORY;
}
