/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - a deployment and what became of its requests as a document, schema maquette.serve/1: docs/json.md; requests as a table. */
#include "base/str.h"
#include "base/text.h"
#include "maquette/report_serve.h"
#include "maquette/serve_fleet.h"
#include "report/job_json.h"
#include "report/json_util.h"
#include "report/money.h"

#define CSV_MAX ((size_t)4 << 30)

static void add_deployment(struct maq_json root, const struct maq_serve_result *r)
{
    const struct maq_serve_options *o = &r->options;
    struct maq_json map = maq_json_map(root, "deployment");
    maq_json_text(map, "model", r->job->model.name);
    maq_json_text(map, "device", r->job->cluster.groups[r->job->stages[0].group].device.name);
    maq_json_text(map, "engine", maq_engine_name(o->engine));
    maq_json_text(map, "version", o->version);
    maq_json_text(map, "front_end", maq_front_end_name((enum maq_front_end)o->front_end));
    MAQ_JSON_INTS(map, {"devices", r->n_devices}, {"tensor_parallel_size", r->job->plan.tp},
                  {"pipeline_parallel_size", r->job->plan.pp}, {"data_parallel_size", o->dp},
                  {"expert_parallel_size", o->ep});
    maq_json_text(map, "weights", maq_weights_name(o->weights));
    maq_json_text(map, "expert_weights", maq_weights_name(o->expert_weights));
    maq_json_text(map, "moe_backend", maq_moe_backend_name(o->moe_backend));
    maq_json_text(map, "kv_cache_dtype", o->kv_fp8 ? "fp8" : "bf16");
    MAQ_JSON_INTS(map, {"max_num_seqs", o->max_num_seqs}, {"max_num_batched_tokens", o->max_num_batched_tokens},
                  {"max_model_len", o->max_model_len}, {"block_size", o->block_size});
    maq_json_real(map, "gpu_memory_utilization", o->gpu_memory_utilization);
    maq_json_bool(map, "prefix_caching", !o->no_prefix_caching);
    maq_json_bool(map, "chunked_prefill", !o->no_chunked_prefill);
    MAQ_JSON_REALS(map, {"temperature", o->temperature}, {"top_p", o->top_p > 0 ? o->top_p : 1});
    MAQ_JSON_INTS(map, {"top_k", o->top_k});
    struct maq_json memory = maq_json_map(root, "memory");
    maq_json_bool(memory, "fits", r->fits);
    for (int i = 0; i < MAQ_SERVE_MEM_COUNT; i++) {
        char key[40];
        if (i == MAQ_SERVE_MEM_LORA && !o->lora.enabled)
            continue;
        maq__snprintf(key, sizeof key, "%s_bytes", maq_serve_memory_name((enum maq_serve_memory)i));
        maq_json_count(memory, key, r->memory[i]);
    }
    maq_json_count(memory, "capacity_bytes", r->capacity_bytes);
    maq_json_real(memory, "kv_bytes_per_token", r->kv_bytes_per_token);
    MAQ_JSON_INTS(memory, {"blocks", r->blocks}, {"kv_tokens", r->kv_tokens});
}

static void add_quantiles(struct maq_json map, const char *key, const struct maq_serve_quantiles *q)
{
    MAQ_JSON_REALS(maq_json_map(map, key), {"mean", q->mean}, {"mean_low", q->low}, {"mean_high", q->high},
                   {"p50", q->p50}, {"p90", q->p90}, {"p95", q->p95}, {"p99", q->p99});
}

static void add_sides(struct maq_json map, const char *key, const struct maq_afd_times *t, double all_s)
{
    struct maq_json of = maq_json_map(map, key);
    MAQ_JSON_REALS(of, {"attention_s", t->attention_s}, {"ffn_s", t->ffn_s}, {"to_ffn_s", t->to_ffn_s},
                   {"to_attention_s", t->to_attn_s}, {"attention_busy_share", all_s > 0 ? t->attention_s / all_s : 0},
                   {"ffn_busy_share", all_s > 0 ? t->ffn_s / all_s : 0}, {"hiding_micro_batches", maq_afd_hiding(t)});
    maq_json_count(of, "to_ffn_bytes", t->sent_bytes);
    maq_json_count(of, "to_attention_bytes", t->back_bytes);
}

/* The other side of a deployment, whose memory above is that of a GPU of attention. */
static struct maq_json add_afd(struct maq_json root, const struct maq_serve_result *r)
{
    const struct maq_afd_result *a = &r->afd;
    const struct maq_afd_options *o = &r->options.afd;
    struct maq_json map = maq_json_map(root, "afd");
    maq_json_text(map, "exchange", maq_afd_exchange_name((enum maq_afd_exchange)o->exchange));
    MAQ_JSON_INTS(map, {"micro_batches", o->micro_batches}, {"attention_devices", a->attention_devices},
                  {"ffn_devices", a->ffn_devices});
    maq_json_text(map, "ffn_device", a->ffn_device);
    struct maq_json memory = maq_json_map(map, "ffn_memory");
    maq_json_bool(memory, "fits", a->ffn_fits);
    maq_json_count(memory, "weights_bytes", a->ffn_weights_bytes);
    maq_json_count(memory, "activations_bytes", a->ffn_activations_bytes);
    maq_json_count(memory, "context_bytes", a->ffn_context_bytes);
    maq_json_count(memory, "usable_bytes", a->ffn_usable_bytes);
    maq_json_count(memory, "capacity_bytes", a->ffn_capacity_bytes);
    return map;
}

/* Parts that others do not have where somebody drafts, where there are adapters, where something was compiled. */
static void add_parts(struct maq_json map, const char *key, const double part_s[MAQ_SERVE_PART_COUNT],
                      const struct maq_serve_options *o)
{
    struct maq_json parts = maq_json_map(map, key);
    for (int i = 0; i < MAQ_SERVE_PART_COUNT; i++) {
        char name[40];
        if ((i == MAQ_SERVE_DRAFT && o->speculation.method == MAQ_DRAFT_NONE) ||
            (i == MAQ_SERVE_LORA && !o->lora.enabled) || (i == MAQ_SERVE_ENCODER && !maq_encoder_there(&o->encoder)) ||
            (i == MAQ_SERVE_AFD && o->afd.ffn_ranks == 0) || (i == MAQ_SERVE_COMPILE && part_s[i] <= 0))
            continue;
        maq__snprintf(name, sizeof name, "%s_s", maq_serve_part_name((enum maq_serve_part)i));
        maq_json_real(parts, name, part_s[i]);
    }
}

/* "ttft_s": what a limit on one request is. */
static void add_limit(struct maq_json map, const char *metric, const struct maq_slo_limit *limit)
{
    struct maq_json of = maq_json_map(map, metric);
    maq_json_real(of, "bound_s", limit->most_s);
    maq_json_bool(of, "inclusive", limit->inclusive);
}

static void add_slo(struct maq_json root, const struct maq_slo_outcome *o)
{
    struct maq_json map = maq_json_map(root, "slo");
    maq_json_bool(map, "met", o->all_met);
    struct maq_json list = maq_json_list(map, "bounds");
    for (uint32_t i = 0; i < o->slo.n; i++) {
        const struct maq_slo_bound *b = &o->slo.at[i];
        struct maq_json item = maq_json_item(list);
        maq_json_text(item, "metric", maq_slo_metric_name(b->metric));
        maq_json_text(item, "statistic", maq_slo_statistic_name(b->statistic));
        maq_json_real(item, "bound_s", b->limit.most_s);
        maq_json_bool(item, "inclusive", b->limit.inclusive);
        maq_json_real(item, "value_s", o->value_s[i]);
        maq_json_bool(item, "met", o->met[i]);
    }
    if (!o->of_requests) {
        maq_json_null(map, "goodput");
        return;
    }
    struct maq_json goodput = maq_json_map(map, "goodput"), request = maq_json_map(goodput, "of_a_request");
    for (int m = 0; m < MAQ_SLO_REQUEST_METRICS; m++)
        if (o->limited[m])
            add_limit(request, maq_slo_metric_name((enum maq_slo_metric)m), &o->request[m]);
    maq_json_int(goodput, "requests", o->good);
    maq_json_real(goodput, "requests_per_s", o->goodput_per_s);
}

static void add_tiers(struct maq_json root, const struct maq_serve_result *r)
{
    const struct maq_tier_result *t = &r->tiers;
    const struct maq_tier_options *o = &r->options.tiers;
    struct maq_json map = maq_json_map(root, "tiers"), list = maq_json_list(map, "tiers");
    double prompts = t->prompt_tokens > 0 ? (double)t->prompt_tokens : 1;
    for (int i = 0; i < MAQ_TIER_COUNT; i++) {
        const struct maq_tier_count *c = &t->of[i];
        if (i != MAQ_TIER_GPU && !(t->capacity_bytes[i] > 0))
            continue;
        struct maq_json item = maq_json_item(list);
        maq_json_text(item, "tier", maq_tier_name((enum maq_tier_kind)i));
        MAQ_JSON_INTS(item, {"hit_tokens", c->tokens});
        MAQ_JSON_REALS(item, {"hit_share", (double)c->tokens / prompts});
        if (i == MAQ_TIER_GPU)
            continue;
        MAQ_JSON_REALS(item, {"capacity_bytes", t->capacity_bytes[i]}, {"mean_bytes", c->mean_bytes},
                       {"peak_bytes", c->peak_bytes}, {"read_bytes", c->read_bytes},
                       {"written_bytes", c->written_bytes});
        MAQ_JSON_INTS(item, {"evicted_chunks", (int64_t)c->evicted});
    }
    if (r->options.engine == MAQ_ENGINE_SGLANG)
        maq_json_text(map, "write_policy", maq_hicache_policy_name((enum maq_hicache_policy)o->write_policy));
    else if (r->options.engine == MAQ_ENGINE_VLLM)
        maq_json_text(map, "policy", maq_tier_policy_name(o->policy));
    MAQ_JSON_INTS(map, {"blocks_per_chunk", o->chunk_blocks}, {"requests_that_load", t->loaded},
                  {"stores_without_room", (int64_t)t->refused});
    MAQ_JSON_REALS(map, {"chunk_bytes", t->chunk_bytes}, {"load_wait_s", t->wait_s}, {"store_stall_s", t->stalled_s});
}

static void add_encoder(struct maq_json root, const struct maq_encoded *e)
{
    struct maq_json map = maq_json_map(root, "encoder");
    MAQ_JSON_INTS(map, {"requests", e->requests}, {"images", (int64_t)e->images});
    maq_json_count(map, "tokens", e->tokens);
    maq_json_count(map, "patches", e->patches);
    maq_json_real(map, "encode_s", e->encode_s);
    maq_json_count(map, "weights_bytes", e->weights_bytes);
    if (e->replicas == 0)
        return;
    maq_json_int(map, "replicas", e->replicas);
    MAQ_JSON_REALS(map, {"busy_share", e->busy_share}, {"wait_mean_s", e->wait_s}, {"transfer_mean_s", e->transfer_s});
    maq_json_count(map, "embedding_bytes", e->bytes);
}

static void add_lora(struct maq_json root, const struct maq_serve_result *r)
{
    const struct maq_lora_result *l = &r->lora;
    const struct maq_lora_options *o = &r->options.lora;
    struct maq_json map = maq_json_map(root, "lora");
    MAQ_JSON_INTS(map, {"max_loras", o->max_loras}, {"max_lora_rank", o->max_lora_rank}, {"adapters", l->adapters},
                  {"requests", l->requests}, {"copies", (int64_t)l->copies}, {"reads", (int64_t)l->reads});
    if (o->max_cpu_loras < INT32_MAX)
        maq_json_int(map, "max_cpu_loras", o->max_cpu_loras);
    MAQ_JSON_REALS(map, {"slot_bytes", l->adapter_bytes}, {"file_bytes", l->file_bytes}, {"copy_wait_s", l->copy_s},
                   {"read_wait_s", l->read_s}, {"adapters_of_an_iteration", l->mean_active});
}

static bool drafts(const struct maq_serve_result *r)
{
    return r->options.speculation.method != MAQ_DRAFT_NONE;
}

static void add_speculation(struct maq_json root, const struct maq_serve_result *r)
{
    const struct maq_speculation *o = &r->options.speculation;
    const struct maq_speculated *s = &r->speculated;
    struct maq_json map = maq_json_map(root, "speculation");
    maq_json_text(map, "method", maq_draft_method_name(o->method));
    maq_json_text(map, "model", o->draft ? o->draft->model.name : NULL);
    MAQ_JSON_INTS(map, {"num_speculative_tokens", o->tokens}, {"branches", o->branches},
                  {"verified_tokens", o->verified});
    struct maq_json list = maq_json_list(map, "accepted");
    for (int32_t i = 0; i < o->tokens; i++) {
        struct maq_json item = maq_json_item(list);
        maq_json_int(item, "position", i + 1);
        maq_json_real(item, "accepted", o->accepted[i]);
    }
    if (r->finished == 0)
        return;
    MAQ_JSON_INTS(map, {"verifications", (int64_t)s->verifications}, {"drafted_tokens", (int64_t)s->drafted},
                  {"accepted_tokens", (int64_t)s->accepted});
    double n = (double)s->verifications;
    MAQ_JSON_REALS(map, {"acceptance_length", n > 0 ? 1 + (double)s->accepted / n : 1},
                   {"acceptance_rate", s->drafted > 0 ? (double)s->accepted / (double)s->drafted : 0},
                   {"draft_s", s->draft_s}, {"draft_share", r->busy_s > 0 ? s->draft_s / r->busy_s : 0});
}

static void add_admission(struct maq_json fleet, const struct maq_serve_admission *a)
{
    if (a->max_requests == 0)
        return;
    struct maq_json map = maq_json_map(fleet, "admission");
    MAQ_JSON_INTS(map, {"max_requests_per_replica", a->max_requests}, {"waited_requests", a->waited},
                  {"most_waiting", a->most_waiting}, {"refused_requests", a->refused});
    maq_json_real(map, "wait_mean_s", a->wait_s);
}

static void add_fleet(struct maq_json root, const struct maq_serve_result *r)
{
    struct maq_json map = maq_json_map(root, "fleet");
    maq_json_text(map, "router", r->router);
    add_admission(map, &r->admission);
    struct maq_json members = maq_json_list(map, "members");
    for (uint32_t m = 0; m < r->n_members; m++) {
        const struct maq_served_member *a = &r->members[m];
        struct maq_json item = maq_json_item(members);
        maq_json_text(item, "device", a->job->cluster.groups[0].device.name);
        maq_json_text(item, "engine", maq_engine_name(a->options.engine));
        maq_json_text(item, "weights", maq_weights_name(a->options.weights));
        MAQ_JSON_INTS(item, {"tp", a->job->plan.tp}, {"pp", a->job->plan.pp},
                      {"dp", a->options.dp > 1 ? a->options.dp : 1}, {"replicas", a->replicas},
                      {"devices_per_replica", a->devices}, {"kv_tokens", a->kv_tokens});
    }
    struct maq_json list = maq_json_list(map, "replicas");
    for (uint32_t i = 0; i < r->n_replicas; i++) {
        const struct maq_served_replica *p = &r->replicas[i];
        struct maq_json item = maq_json_item(list);
        if (r->pools)
            maq_json_text(item, "role", maq_role_name(p->role));
        MAQ_JSON_INTS(item, {"member", p->member}, {"requests", p->requests});
        MAQ_JSON_REALS(item, {"output_tokens", p->output_tokens}, {"busy_share", p->busy_share},
                       {"kv_mean", p->kv_mean}, {"kv_peak", p->kv_peak}, {"prefix_hit_rate", p->prefix_hit_rate});
    }
}

/* Of each bound over the draws. */
static void add_bounds(struct maq_json map, const struct maq_attainment *a)
{
    struct maq_json list = maq_json_list(map, "bounds");
    for (uint32_t i = 0; i < a->slo.n; i++) {
        struct maq_json item = maq_json_item(list);
        maq_json_text(item, "metric", maq_slo_metric_name(a->slo.at[i].metric));
        maq_json_text(item, "statistic", maq_slo_statistic_name(a->slo.at[i].statistic));
        MAQ_JSON_REALS(item, {"low_s", a->bound_low_s[i]}, {"high_s", a->bound_high_s[i]});
        maq_json_int(item, "draws_met", a->bound_met[i]);
    }
}

static void add_what_ifs(struct maq_json map, const struct maq_serve_result *r)
{
    if (r->n_what_if == 0)
        return;
    struct maq_json list = maq_json_list(map, "what_if");
    for (uint32_t i = 0; i < r->n_what_if; i++) {
        const struct maq_what_if *w = &r->what_if[i];
        struct maq_json item = maq_json_item(list);
        maq_json_text(item, "what", w->what);
        MAQ_JSON_REALS(item, {"first", w->attainment.first}, {"low", w->attainment.low}, {"high", w->attainment.high},
                       {"difference_mean", w->mean}, {"difference_low", w->low}, {"difference_high", w->high});
        maq_json_int(item, "draws_with_all_bounds_met", w->attainment.met);
        add_bounds(item, &w->attainment);
    }
}

/* How many a rule wanted from when on. */
static void add_wanted(struct maq_json map, const char *key, const struct maq_replica_count *counts, uint32_t n)
{
    if (n == 0)
        return;
    struct maq_json list = maq_json_list(map, key);
    for (uint32_t i = 0; i < n; i++) {
        struct maq_json item = maq_json_item(list);
        maq_json_real(item, "time_s", counts[i].at_s);
        maq_json_int(item, "replicas", counts[i].replicas);
    }
}

static void add_availability(struct maq_json root, const struct maq_serve_result *r)
{
    const struct maq_serve_availability *a = &r->availability;
    struct maq_json map = maq_json_map(root, "availability");
    MAQ_JSON_INTS(map, {"failures", a->failures}, {"retried_requests", a->retried});
    MAQ_JSON_REALS(map, {"replicas_mean", a->replicas}, {"devices_mean", a->gpus}, {"nobody_s", a->nobody_s});
    if (r->pools) {
        maq_json_real(map, "prefill_replicas_mean", a->prefill_replicas);
        maq_json_int(map, "cut_transfers", r->pools->cut);
        maq_json_real(map, "cut_bytes", r->pools->cut_bytes);
    }
    add_wanted(map, "wanted", a->counts, a->n_counts);
    add_wanted(map, "prefill_wanted", a->prefill_counts, a->n_prefill_counts);
    if (!r->attainment)
        return;
    struct maq_json share = maq_json_map(map, "attainment");
    MAQ_JSON_REALS(share, {"first", r->attainment->first}, {"low", r->attainment->low}, {"high", r->attainment->high},
                   {"confidence", r->attainment->confidence});
    MAQ_JSON_INTS(share, {"draws", r->attainment->n_draws}, {"draws_with_all_bounds_met", r->attainment->met});
    add_bounds(share, r->attainment);
    add_what_ifs(share, r);
}

static void add_iterations(struct maq_json root, const struct maq_serve_result *r)
{
    struct maq_json engine = maq_json_map(root, "iterations");
    MAQ_JSON_INTS(engine, {"count", (int64_t)r->iterations}, {"preemptions", (int64_t)r->preemptions});
    MAQ_JSON_REALS(engine, {"mean_requests", r->mean_batch}, {"mean_tokens", r->mean_tokens}, {"kv_mean", r->kv_mean},
                   {"kv_peak", r->kv_peak}, {"prefix_hit_rate", r->prefix_hit_rate});
}

/* What the pool is that computes prompts, and what goes to the other one, which all else is about. */
static void add_pools(struct maq_json root, const struct maq_serve_pools *p)
{
    struct maq_json map = maq_json_map(root, "pools");
    maq_json_text(map, "kv_transfer", p->transfer);
    MAQ_JSON_INTS(map, {"prefill_replicas", p->prefill_replicas}, {"decode_replicas", p->decode_replicas},
                  {"requests", p->n}, {"local_requests", p->local});
    maq_json_count(map, "bytes", p->bytes);
    maq_json_count(map, "written_bytes", p->written_bytes);
    maq_json_positive(map, "bytes_per_s_alone", p->bps < 1e18 ? p->bps : 0);
    const struct maq_serve_quantiles *t = &p->transfer_s;
    MAQ_JSON_REALS(maq_json_map(map, "transfer_s"), {"mean", t->mean}, {"p50", t->p50}, {"p90", t->p90},
                   {"p95", t->p95}, {"p99", t->p99});
    struct maq_json parts = maq_json_map(map, "ttft_parts");
    double ttft = 0;
    for (int i = 0; i < MAQ_HANDOVER_PART_COUNT; i++) {
        char name[40];
        maq__snprintf(name, sizeof name, "%s_s", maq_handover_part_name((enum maq_handover_part)i));
        maq_json_real(parts, name, p->part_s[i]);
        ttft += p->part_s[i];
    }
    MAQ_JSON_REALS(map, {"transfer_share_of_ttft", ttft > 0 ? p->part_s[MAQ_HANDOVER_TRANSFER] / ttft : 0},
                   {"prefill_kv_held_share", p->held_share});
    if (p->given_up > 0)
        maq_json_int(map, "given_up_prompts", p->given_up);
    struct maq_json prefill = maq_json_map(map, "prefill");
    maq_json_text(prefill, "router", p->prefill_router);
    add_deployment(prefill, p->prefill);
    add_iterations(prefill, p->prefill);
    add_parts(prefill, "breakdown", p->prefill->part_s, &p->prefill->options);
}

static void add_capacity(struct maq_json root, const struct maq_capacity *c)
{
    struct maq_json map = maq_json_map(root, "capacity");
    MAQ_JSON_INTS(map, {"draws", c->n_draws}, {"runs", c->runs});
    MAQ_JSON_REALS(map, {"requests_per_s", c->rate}, {"low", c->low}, {"high", c->high}, {"confidence", c->confidence});
}

enum maq_status maq_report_serve_json(char **out, const struct maq_serve_result *r, const struct maq_report_opts *opts,
                                      struct maq_diag *diag)
{
    struct maq_json_document d;
    (void)opts;
    maq_json_begin(&d, "maquette.serve/1");
    add_deployment(d.root, r);
    if (r->afd.known) {
        struct maq_json sides = add_afd(d.root, r);
        if (r->finished > 0)
            add_sides(sides, "iterations", &r->afd.times, r->busy_s);
    }
    if (r->capacity && r->fits)
        add_capacity(d.root, r->capacity);
    if (drafts(r))
        add_speculation(d.root, r);
    if (r->tiers.known)
        add_tiers(d.root, r);
    if (r->lora.known)
        add_lora(d.root, r);
    if (r->encoded.known)
        add_encoder(d.root, &r->encoded);
    if (r->replicas)
        add_fleet(d.root, r);
    if (r->availability.known)
        add_availability(d.root, r);
    if (r->pools)
        add_pools(d.root, r->pools);
    if (r->finished > 0) {
        struct maq_json load = maq_json_map(d.root, "throughput");
        MAQ_JSON_INTS(load, {"requests", r->finished}, {"waiting_at_last_arrival", r->waiting});
        maq_json_bool(load, "overloaded", r->overloaded);
        MAQ_JSON_REALS(load, {"duration_s", r->duration_s}, {"requests_per_s", r->requests_per_s},
                       {"input_tokens_per_s", r->input_tokens_per_s}, {"output_tokens_per_s", r->output_tokens_per_s},
                       {"total_tokens_per_s", r->total_tokens_per_s},
                       {"output_tokens_per_s_per_device", r->output_tokens_per_s / r->n_devices});
        maq_json_positive(load, "output_tokens_per_s_per_user", r->tpot_s.mean > 0 ? 1 / r->tpot_s.mean : 0);
        if (r->slo.slo.n > 0)
            add_slo(d.root, &r->slo);
        const struct maq_serve_money m = maq_money_of_serve(r);
        if (m.per_hour > 0)
            MAQ_JSON_REALS(maq_json_map(d.root, "money"), {"usd_per_hour", m.per_hour},
                           {"usd_per_million_output_tokens", m.per_million_output_tokens},
                           {"usd_per_million_tokens", m.per_million_tokens});
        if (r->power)
            MAQ_JSON_REALS(maq_json_map(d.root, "power"), {"watts_per_device", r->power->watts},
                           {"watts_per_device_low", r->power->low_watts},
                           {"watts_per_device_high", r->power->high_watts},
                           {"joules_per_output_token", r->power->joules_per_output_token},
                           {"joules_per_token", r->power->joules_per_token}, {"matrix_share", r->power->matrix_share},
                           {"memory_share", r->power->memory_share});
        struct maq_json latency = maq_json_map(d.root, "latency");
        add_quantiles(latency, "ttft_s", &r->ttft_s);
        add_quantiles(latency, "tpot_s", &r->tpot_s);
        add_quantiles(latency, "itl_s", &r->itl_s);
        add_quantiles(latency, "e2el_s", &r->e2el_s);
        add_quantiles(latency, "queue_s", &r->queue_s);
        add_iterations(d.root, r);
        add_parts(d.root, "breakdown", r->part_s, &r->options);
    }
    return maq_json_finish(out, &d, diag);
}

enum maq_status maq_report_serve_batch_json(char **out, const struct maq_serve_result *plan,
                                            const struct maq_serve_batch *b, int64_t size, int64_t prompt,
                                            int64_t output, const struct maq_report_opts *opts, struct maq_diag *diag)
{
    (void)opts; /* are of the text */
    struct maq_json_document d;
    maq_json_begin(&d, "maquette.serve/1");
    add_deployment(d.root, plan);
    if (plan->afd.known) {
        struct maq_json sides = add_afd(d.root, plan);
        add_sides(sides, "prefill", &b->afd[0], b->prefill_s);
        add_sides(sides, "decode", &b->afd[1], b->decode_s);
    }
    struct maq_json map = maq_json_map(d.root, "batch");
    MAQ_JSON_INTS(map, {"requests", size}, {"isl", prompt}, {"osl", output});
    MAQ_JSON_REALS(map, {"prefill_s", b->prefill_s}, {"decode_s", b->decode_s},
                   {"token_s", output > 1 ? b->decode_s / (double)(output - 1) : 0});
    add_parts(map, "prefill", b->part_s[0], &plan->options);
    add_parts(map, "decode", b->part_s[1], &plan->options);
    if (drafts(plan))
        add_speculation(d.root, plan);
    return maq_json_finish(out, &d, diag);
}

/* Of a request that decode computed from its beginning nothing is known. */
static void add_handed(struct maq_buf *b, const struct maq_handed *x)
{
    if (x->local)
        maq_buf_adds(b, ",,,,,,0");
    else
        maq_buf_addf(b, ",%u,%.9f,%.9f,%.9f,%.9f,%.0f", x->replica, x->reserved_s, x->computed_s, x->begins_s,
                     x->ends_s, x->bytes);
}

enum maq_status maq_report_serve_csv(char **out, const struct maq_serve_result *r, const struct maq_requests *requests,
                                     struct maq_diag *diag)
{
    struct maq_buf b;
    (void)diag;
    maq_buf_init(&b, CSV_MAX);
    maq_buf_addf(
        &b, "request,prompt,output,arrival_s,scheduled_s,first_token_s,last_token_s,cached,preemptions%s%s%s%s%s\n",
        r->tiers.known ? ",loaded,load_s" : "", r->replicas ? ",replica" : "", r->availability.known ? ",retries" : "",
        r->admission.max_requests > 0 ? ",refused" : "",
        r->pools ? ",prefill_replica,reserved_s,computed_s,transfer_begins_s,transfer_ends_s,transfer_bytes" : "");
    for (uint32_t i = 0; i < r->n_requests; i++) {
        const struct maq_served *s = &r->served[i];
        maq_buf_addf(&b, "%u,%lld,%lld,%.9f,%.9f,%.9f,%.9f,%lld,%u", i, (long long)requests->at[i].prompt,
                     (long long)requests->at[i].output, s->arrival_s, s->scheduled_s, s->first_s, s->last_s,
                     (long long)s->cached, s->preemptions);
        if (r->tiers.known)
            maq_buf_addf(&b, ",%lld,%.9f", (long long)s->loaded, s->load_s);
        if (r->replicas)
            maq_buf_addf(&b, ",%u", s->replica);
        if (r->availability.known)
            maq_buf_addf(&b, ",%u", s->retries);
        if (r->admission.max_requests > 0)
            maq_buf_addf(&b, ",%u", s->refused);
        if (r->pools)
            add_handed(&b, &r->pools->handed[i]);
        maq_buf_adds(&b, "\n");
    }
    *out = maq_buf_take(&b);
    return *out ? MAQ_OK : MAQ_NO_MEMORY;
}
