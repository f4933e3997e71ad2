/* SPDX-License-Identifier: Apache-2.0 */
/* lines.c - what a deployment is and what became of its requests, a line for each matter. See lines.h. */
#include "report/serve/lines.h"

#include <math.h>

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "maquette/serve_fleet.h"
#include "report/money.h"
#include "report/page.h"
#include "report/serve/afd_lines.h"
#include "report/words.h"

#define GIB 1073741824.0

static void put(const struct maq_lines *to, const char *label, struct maq_buf *line)
{
    struct maq_arena arena;
    maq_arena_init(&arena, 0);
    to->put(to->user, label, maq_text_clean(&arena, line->ptr ? line->ptr : ""));
    maq_arena_fini(&arena);
    maq_buf_fini(line);
    maq_buf_init(line, 1 << 16);
}

static void put_deployment(const struct maq_lines *to, struct maq_buf *line, const struct maq_serve_result *r)
{
    const struct maq_serve_options *o = &r->options;
    const struct maq_job *job = r->job;
    maq_buf_addf(line, "%s: ", job->model.name);
    maq_words_model(line, &job->model);
    put(to, "model", line);
    maq_words_cluster(line, &job->cluster);
    put(to, "cluster", line);
    maq_buf_addf(line, "tp%d", job->plan.tp);
    if (job->plan.pp > 1)
        maq_buf_addf(line, " pp%d", job->plan.pp);
    if (o->dp > 1)
        maq_buf_addf(line, " dp%d", o->dp);
    if (o->ep > 1 && !r->afd.known)
        maq_buf_addf(line, " ep%d", o->ep);
    uint32_t devices = (uint32_t)(job->plan.tp * job->plan.pp * o->dp) + r->afd.ffn_devices;
    maq_buf_addf(line, " on %u GPU%s", devices, maq_words_s(devices));
    if (r->afd.known)
        maq_afd_add_sides(line, r);
    maq_buf_addf(line, "; weights %s", maq_weights_name(o->weights));
    if (o->expert_weights != o->weights)
        maq_buf_addf(line, ", experts %s", maq_weights_name(o->expert_weights));
    if (o->moe_backend != MAQ_MOE_BACKEND_AUTO && maq_model_has_experts(&job->model))
        maq_buf_addf(line, ", experts by %s", maq_moe_backend_name(o->moe_backend));
    maq_buf_addf(line, ", KV cache %s", o->kv_fp8 ? "fp8" : "16 bits");
    put(to, "deployment", line);
    maq_buf_addf(
        line, "%s%s%s%s: max_num_seqs %d, max_num_batched_tokens %d, max_model_len %lld, blocks of %d tokens, %s%s%s",
        maq_engine_name(o->engine), o->version ? " " : "", o->version ? o->version : "",
        o->front_end == MAQ_FRONT_END_DYNAMO ? " behind Dynamo"
        : o->front_end == MAQ_FRONT_END_NONE ? " without a front end"
                                             : "",
        o->max_num_seqs, o->max_num_batched_tokens, (long long)o->max_model_len, o->block_size,
        o->no_prefix_caching ? "no prefix caching" : "prefix caching",
        o->no_chunked_prefill ? ", whole prompts" : ", chunked prefill",
        o->async_scheduling == MAQ_ON ? ", asynchronous scheduling" : "");
    put(to, "engine", line);
    if (o->temperature <= 0)
        return;
    maq_buf_addf(line, "at a temperature of %g", o->temperature);
    if (o->top_p > 0 && o->top_p < 1)
        maq_buf_addf(line, ", top_p %g", o->top_p);
    if (o->top_k > 0)
        maq_buf_addf(line, ", top_k %d", o->top_k);
    put(to, "sampling", line);
}

static void put_speculation(const struct maq_lines *to, struct maq_buf *line, const struct maq_serve_result *r)
{
    const struct maq_speculation *o = &r->options.speculation;
    const struct maq_speculated *s = &r->speculated;
    if (o->method == MAQ_DRAFT_NONE)
        return;
    maq_buf_addf(line, "%s%s%s: %d draft%s of a request in an iteration", maq_draft_method_name(o->method),
                 o->draft ? " " : "", o->draft ? o->draft->model.name : "", o->tokens, maq_words_s(o->tokens));
    if (o->verified != o->tokens + 1)
        maq_buf_addf(line, ", in trees of %d", o->verified - 1);
    maq_buf_addf(line, "; %.2f tokens of a verification expected", maq_acceptance_length(o));
    if (s->verifications > 0)
        maq_buf_addf(line, ", %.2f had: %llu of %llu drafts accepted; drafting takes %.1f %% of the time",
                     1 + (double)s->accepted / (double)s->verifications, (unsigned long long)s->accepted,
                     (unsigned long long)s->drafted, r->busy_s > 0 ? 100 * s->draft_s / r->busy_s : 0);
    put(to, "drafts", line);
}

static void put_memory(const struct maq_lines *to, struct maq_buf *line, const struct maq_serve_result *r)
{
    char tokens[32];
    maq_buf_addf(line, "%s%.1f of %.1f GiB: ", r->afd.known ? "of attention " : "",
                 r->capacity_bytes * r->options.gpu_memory_utilization / MAQ_GIB, r->capacity_bytes / MAQ_GIB);
    bool first = true;
    for (int i = 0; i < MAQ_SERVE_MEM_COUNT; i++) {
        if (r->memory[i] <= 0)
            continue;
        maq_buf_addf(line, "%s%s %.2f", first ? "" : ", ", maq_serve_memory_name((enum maq_serve_memory)i),
                     r->memory[i] / MAQ_GIB);
        first = false;
    }
    put(to, "memory", line);
    if (r->afd.known) {
        maq_afd_add_memory(line, r);
        put(to, "", line);
        if (!r->afd.ffn_fits)
            return;
    }
    if (!r->fits) {
        double held = 0;
        for (int i = 0; i < MAQ_SERVE_MEM_KV; i++)
            held += r->memory[i];
        maq_buf_addf(
            line,
            "does not fit: %.1f GiB without a KV cache, and %.1f GiB are for the engine. A higher --tp, narrower "
            "--weights, or a larger GPU",
            held / MAQ_GIB, r->capacity_bytes * r->options.gpu_memory_utilization / MAQ_GIB);
        put(to, "", line);
        return;
    }
    maq_buf_addf(line, "%lld blocks, %s tokens (%.0f bytes each on a GPU)%s", (long long)r->blocks,
                 maq_words_integer(tokens, r->kv_tokens), r->kv_bytes_per_token,
                 r->options.dp > 1 ? " in each of the caches" : "");
    put(to, "KV cache", line);
}

/* "4 replicas on 8 GPUs, router random: 70 to 80 requests each, busy ..." of n replicas from `first` on. */
static void add_replicas(struct maq_buf *line, const struct maq_serve_result *r, uint32_t first, uint32_t n,
                         uint32_t devices, const char *router)
{
    uint32_t least = UINT32_MAX, most = 0;
    double busy = 0, idlest = 1, busiest = 0;
    for (uint32_t i = first; i < first + n; i++) {
        const struct maq_served_replica *p = &r->replicas[i];
        least = p->requests < least ? p->requests : least;
        most = p->requests > most ? p->requests : most;
        busy += p->busy_share / n;
        idlest = p->busy_share < idlest ? p->busy_share : idlest;
        busiest = p->busy_share > busiest ? p->busy_share : busiest;
    }
    maq_buf_addf(line, "%u replica%s on %u GPU%s, router %s: ", n, maq_words_s(n), devices, maq_words_s(devices),
                 router);
    if (n == 1)
        maq_buf_addf(line, "%u requests, busy %.0f %% of the time", least, 100 * busy);
    else
        maq_buf_addf(line, "%u to %u requests each, busy %.0f %% of the time (%.0f to %.0f)", least, most, 100 * busy,
                     100 * idlest, 100 * busiest);
}

/* What its replicas are, where they are of several kinds: "2 x tp1 on h100-sxm, 70 to 80 requests each, busy ..." */
static void put_members(const struct maq_lines *to, struct maq_buf *line, const struct maq_serve_result *r)
{
    for (uint32_t m = 0; m < r->n_members && r->n_members > 1; m++) {
        const struct maq_served_member *a = &r->members[m];
        uint32_t least = UINT32_MAX, most = 0;
        double busy = 0;
        char tokens[32];
        for (uint32_t i = 0; i < r->n_replicas; i++)
            if (r->replicas[i].member == m) {
                least = r->replicas[i].requests < least ? r->replicas[i].requests : least;
                most = r->replicas[i].requests > most ? r->replicas[i].requests : most;
                busy += r->replicas[i].busy_share / a->replicas;
            }
        maq_buf_addf(line, "%u x tp%d", a->replicas, a->job->plan.tp);
        if (a->job->plan.pp > 1)
            maq_buf_addf(line, " pp%d", a->job->plan.pp);
        if (a->options.dp > 1)
            maq_buf_addf(line, " dp%d", a->options.dp);
        maq_buf_addf(line, " on %s, %s, weights %s: ", a->job->cluster.groups[0].device.name,
                     maq_engine_name(a->options.engine), maq_weights_name(a->options.weights));
        if (least < most)
            maq_buf_addf(line, "%u to ", least);
        maq_buf_addf(line, "%u request%s%s, busy %.0f %% of the time; KV cache %s tokens%s", most, maq_words_s(most),
                     a->replicas > 1 ? " each" : "", 100 * busy, maq_words_integer(tokens, a->kv_tokens),
                     a->replicas > 1 ? " each" : "");
        put(to, m == 0 ? "members" : "", line);
    }
}

static void put_fleet(const struct maq_lines *to, struct maq_buf *line, const struct maq_serve_result *r)
{
    add_replicas(line, r, 0, r->n_replicas, r->n_devices - r->encoded.replicas, r->router);
    put(to, "fleet", line);
}

/* Requests that waited at the router, or were refused. */
static void put_admission(const struct maq_lines *to, struct maq_buf *line, const struct maq_serve_result *r)
{
    const struct maq_serve_admission *a = &r->admission;
    char time[32];
    if (a->max_requests == 0)
        return;
    maq_buf_addf(line, "%u request%s waited for one of the %u that a replica has at most", a->waited,
                 maq_words_s(a->waited), a->max_requests);
    if (a->waited > 0)
        maq_buf_addf(line, ", %s in the mean, up to %u at a time", maq_format_time(time, a->wait_s), a->most_waiting);
    if (a->refused > 0)
        maq_buf_addf(line, "; %u of %u refused: all times are those of the others", a->refused, r->n_requests);
    put(to, "router", line);
}

/* How many a rule wanted. */
static void add_wanted(struct maq_buf *line, const struct maq_replica_count *counts, uint32_t n, const char *whom)
{
    uint32_t least = UINT32_MAX, most = 0;
    for (uint32_t i = 0; i < n; i++) {
        least = counts[i].replicas < least ? counts[i].replicas : least;
        most = counts[i].replicas > most ? counts[i].replicas : most;
    }
    if (n > 0)
        maq_buf_addf(line, "; the rule wants %u to %u of %s, in %u change%s", least, most, whom, n - 1,
                     maq_words_s(n - 1));
}

/* Replicas that come, leave and fail. */
static void put_availability(const struct maq_lines *to, struct maq_buf *line, const struct maq_serve_result *r)
{
    const struct maq_serve_availability *a = &r->availability;
    char time[32];
    if (!a->known)
        return;
    if (r->pools)
        maq_buf_addf(line, "%.4g of %u replicas of prefill and %.4g of %u of decode", a->prefill_replicas,
                     r->pools->prefill_replicas, a->replicas - a->prefill_replicas, r->pools->decode_replicas);
    else
        maq_buf_addf(line, "%.4g of %u replicas", a->replicas, r->n_replicas);
    maq_buf_addf(line, " take requests in the mean, on %.4g GPUs; %u failure%s, %u request%s sent again", a->gpus,
                 a->failures, maq_words_s(a->failures), a->retried, maq_words_s(a->retried));
    add_wanted(line, a->prefill_counts, a->n_prefill_counts, "prefill");
    add_wanted(line, a->counts, a->n_counts, r->pools ? "decode" : "them");
    if (a->nobody_s > 0)
        maq_buf_addf(line, r->pools ? "; for %s one of the pools has nobody" : "; for %s nobody takes any",
                     maq_format_time(time, a->nobody_s));
    put(to, "there", line);
}

static void put_attainment(const struct maq_lines *to, struct maq_buf *line, const struct maq_serve_result *r)
{
    const struct maq_attainment *a = r->attainment;
    if (!a)
        return;
    maq_buf_addf(line, "%.4g %% of requests are within the bounds", 100 * a->first);
    if (a->n_draws > 1)
        maq_buf_addf(
            line,
            "; %.4g to %.4g %% over %u draws of failures, which hold a further one with %.0f %%. All bounds hold in %u "
            "of them. What is shown is the first",
            100 * a->low, 100 * a->high, a->n_draws, 100 * a->confidence, a->met);
    put(to, "attainment", line);
    for (uint32_t i = 0; i < a->slo.n && a->n_draws > 1; i++) {
        const struct maq_slo_bound *b = &a->slo.at[i];
        char low[32], high[32];
        maq_buf_addf(line, "%s_%s %s to %s over the draws; its bound holds in %u of them",
                     maq_slo_metric_name(b->metric), maq_slo_statistic_name(b->statistic),
                     maq_format_time(low, a->bound_low_s[i]), maq_format_time(high, a->bound_high_s[i]),
                     a->bound_met[i]);
        put(to, "", line);
    }
}

static void put_what_if(const struct maq_lines *to, struct maq_buf *line, const struct maq_serve_result *r)
{
    for (uint32_t i = 0; i < r->n_what_if; i++) {
        const struct maq_what_if *w = &r->what_if[i];
        const struct maq_attainment *a = &w->attainment;
        maq_buf_addf(line, "%s: %.4g to %.4g %% of requests are within the bounds, all bounds hold in %u of %u draws; ",
                     w->what, 100 * a->low, 100 * a->high, a->met, a->n_draws);
        maq_buf_addf(line, "%.4g points more in the mean of the same failures", 100 * w->mean);
        if (a->n_draws > 1)
            maq_buf_addf(line, ", %.4g to %.4g", 100 * w->low, 100 * w->high);
        put(to, i == 0 ? "what if" : "", line);
    }
}

/* What the pool is that computes prompts, where it is another than the one above. */
static void put_prefill(const struct maq_lines *to, struct maq_buf *line, const struct maq_serve_result *r)
{
    const struct maq_serve_pools *p = r->pools;
    const struct maq_serve_result *x = p->prefill;
    char tokens[32];
    add_replicas(line, r, 0, p->prefill_replicas, x->n_devices, p->prefill_router);
    put(to, "prefill", line);
    maq_buf_addf(line, "%s, tp%d", x->job->cluster.groups[x->job->stages[0].group].device.name, x->job->plan.tp);
    if (x->job->plan.pp > 1)
        maq_buf_addf(line, " pp%d", x->job->plan.pp);
    if (x->options.dp > 1)
        maq_buf_addf(line, " dp%d", x->options.dp);
    maq_buf_addf(line,
                 "; max_num_batched_tokens %d; KV cache %s tokens, %.0f %% full, %.0f %% by prompts that are computed; "
                 "%llu iterations of %.1f requests and %.0f tokens",
                 x->options.max_num_batched_tokens, maq_words_integer(tokens, x->kv_tokens), 100 * x->kv_mean,
                 100 * p->held_share, (unsigned long long)x->iterations, x->mean_batch, x->mean_tokens);
    put(to, "", line);
    add_replicas(line, r, p->prefill_replicas, p->decode_replicas, r->n_devices - x->n_devices - r->encoded.replicas,
                 r->router);
    put(to, "decode", line);
}

/* Transfers, and where the time to the first token goes. */
static void put_handover(const struct maq_lines *to, struct maq_buf *line, const struct maq_serve_result *r)
{
    const struct maq_serve_pools *p = r->pools;
    const struct maq_serve_quantiles *t = &p->transfer_s;
    double ttft = 0;
    if (p->local > 0)
        maq_buf_addf(line, "%u of %u prompts are computed by decode; ", p->local, p->n + p->local);
    if (p->n == 0) {
        maq_buf_adds(line, "nothing is handed over");
        put(to, "KV transfer", line);
        return;
    }
    maq_buf_addf(line, "%s: %.1f MB for a request in the mean", p->transfer, p->bytes / p->n / 1e6);
    if (p->bps < 1e18)
        maq_buf_addf(line, ", %.1f GB/s for one alone", p->bps / 1e9);
    maq_buf_addf(line, "; %.2f ms (p50 %.2f, p95 %.2f, p99 %.2f)", t->mean * 1e3, t->p50 * 1e3, t->p95 * 1e3,
                 t->p99 * 1e3);
    if (p->cut > 0)
        maq_buf_addf(line, "; %u cut by failures, %.1f MB sent in vain", p->cut, p->cut_bytes / 1e6);
    if (p->given_up > 0)
        maq_buf_addf(line, "; %u given up by prefill while decode had no room, and computed again", p->given_up);
    put(to, "KV transfer", line);
    for (int i = 0; i < MAQ_HANDOVER_PART_COUNT; i++)
        ttft += p->part_s[i];
    maq_buf_addf(line, "%.2f ms:", ttft * 1e3);
    const char *comma = "";
    for (int i = 0; i < MAQ_HANDOVER_PART_COUNT; i++) {
        if (!(p->part_s[i] > 0))
            continue;
        maq_buf_addf(line, "%s %s %.2f (%.0f %%)", comma, maq_handover_part_name((enum maq_handover_part)i),
                     p->part_s[i] * 1e3, 100 * p->part_s[i] / ttft);
        comma = ",";
    }
    put(to, "first token", line);
}

static void put_capacity(const struct maq_lines *to, struct maq_buf *line, const struct maq_capacity *c, bool bounds)
{
    const char *what = bounds ? "holds the bounds" : "is served as fast as it comes";
    if (!(c->rate > 0)) {
        maq_buf_adds(line, "none: the bounds are missed however slowly requests come");
    } else {
        maq_buf_addf(line, "%.3g requests/s %s", c->rate, what);
        if (c->n_draws > 1)
            maq_buf_addf(line, "; %.3g to %.3g over %u streams of requests, which hold the median of all with %.1f %%",
                         c->low, c->high, c->n_draws, 100 * c->confidence);
        maq_buf_adds(line, ". What follows is the first of them at that rate");
    }
    put(to, "capacity", line);
}

static void put_money(const struct maq_lines *to, struct maq_buf *line, const struct maq_serve_result *r)
{
    const struct maq_serve_money m = maq_money_of_serve(r);
    char hour[48], out[48], all[48];
    if (m.per_hour <= 0)
        return;
    maq_buf_addf(line, "%s for 10^6 tokens out, %s for 10^6 in and out; %s an hour",
                 maq_words_usd(out, m.per_million_output_tokens), maq_words_usd(all, m.per_million_tokens),
                 maq_words_usd(hour, m.per_hour));
    put(to, "cost", line);
}

static void put_power(const struct maq_lines *to, struct maq_buf *line, const struct maq_serve_result *r)
{
    const struct maq_serve_power *p = r->power;
    if (!p)
        return;
    maq_buf_addf(line,
                 "%.0f W a GPU (80 %% interval %.0f to %.0f), %.3g J for a token out, %.3g J for one in or out; matrix "
                 "units %.0f %% busy, memory %.0f %%",
                 p->watts, p->low_watts, p->high_watts, p->joules_per_output_token, p->joules_per_token,
                 100 * p->matrix_share, 100 * p->memory_share);
    put(to, "power", line);
}

/* A line for each tier that there is, and one for what they delayed. */
static void put_tiers(const struct maq_lines *to, struct maq_buf *line, const struct maq_serve_result *r)
{
    const struct maq_tier_result *t = &r->tiers;
    double prompts = t->prompt_tokens > 0 ? (double)t->prompt_tokens : 1;
    if (!t->known)
        return;
    maq_buf_addf(line, "%.2f %% of the tokens of prompts in the GPU's cache",
                 100 * (double)t->of[MAQ_TIER_GPU].tokens / prompts);
    for (int i = MAQ_TIER_HOST; i < MAQ_TIER_COUNT; i++)
        if (t->capacity_bytes[i] > 0)
            maq_buf_addf(line, ", %.2f %% in %s", 100 * (double)t->of[i].tokens / prompts,
                         maq_tier_name((enum maq_tier_kind)i));
    put(to, "found", line);
    for (int i = MAQ_TIER_HOST; i < MAQ_TIER_COUNT; i++) {
        const struct maq_tier_count *c = &t->of[i];
        if (!(t->capacity_bytes[i] > 0))
            continue;
        if (isinf(t->capacity_bytes[i]))
            maq_buf_adds(line, "no bound");
        else
            maq_buf_addf(line, "%.2f GiB", t->capacity_bytes[i] / GIB);
        maq_buf_addf(line,
                     ", of which %.2f GiB are in use in the mean, at most %.2f; %.2f GB written, %.2f GB read, %llu "
                     "chunks of %.3f MB evicted",
                     c->mean_bytes / GIB, c->peak_bytes / GIB, c->written_bytes / 1e9, c->read_bytes / 1e9,
                     (unsigned long long)c->evicted, t->chunk_bytes / 1e6);
        put(to, maq_tier_name((enum maq_tier_kind)i), line);
    }
    maq_buf_addf(line, "%u requests wait for what they load, %.2f ms in the mean; iterations wait %.2f ms for stores",
                 t->loaded, t->wait_s * 1e3, t->stalled_s * 1e3);
    if (t->refused > 0)
        maq_buf_addf(line, "; %llu stores find no room", (unsigned long long)t->refused);
    put(to, "loads", line);
}

static void put_lora(const struct maq_lines *to, struct maq_buf *line, const struct maq_serve_result *r)
{
    const struct maq_lora_result *l = &r->lora;
    if (!l->known)
        return;
    maq_buf_addf(line,
                 "%u requests ask for %u adapters, %.2f of them in an iteration; %llu copied to a GPU (%.2f MB), "
                 "%llu read (%.2f MB); iterations wait %.2f ms for copies, %.2f ms for reads",
                 l->requests, l->adapters, l->mean_active, (unsigned long long)l->copies, l->adapter_bytes / 1e6,
                 (unsigned long long)l->reads, l->file_bytes / 1e6, l->copy_s * 1e3, l->read_s * 1e3);
    put(to, "adapters", line);
}

static void put_images(const struct maq_lines *to, struct maq_buf *line, const struct maq_serve_result *r)
{
    const struct maq_encoded *e = &r->encoded;
    if (!e->known)
        return;
    if (e->requests == 0)
        maq_buf_adds(line, "no request has images");
    else
        maq_buf_addf(line, "%llu image%s of %u request%s", (unsigned long long)e->images,
                     maq_words_s((uint32_t)e->images), e->requests, maq_words_s(e->requests));
    if (e->images > 0)
        maq_buf_addf(line, ", %.0f tokens and %.0f patches each in the mean, %.2f ms an image",
                     e->tokens / (double)e->images, e->patches / (double)e->images,
                     e->encode_s / (double)e->images * 1e3);
    maq_buf_addf(line, "; %.2f GiB of weights on a GPU", e->weights_bytes / MAQ_GIB);
    if (e->replicas > 0)
        maq_buf_addf(
            line,
            "; %u GPU%s of their own, busy %.0f %% of the time; an image waits %.2f ms for its pass and %.3f ms "
            "for the way of its embeddings",
            e->replicas, maq_words_s(e->replicas), 100 * e->busy_share, e->wait_s * 1e3, e->transfer_s * 1e3);
    put(to, "encoder", line);
}

static void put_load(const struct maq_lines *to, struct maq_buf *line, const struct maq_serve_result *r)
{
    maq_buf_addf(
        line, "%u requests in %.1f s; %.2f requests/s, %.0f tokens/s out (%.0f per GPU, %.1f per user), %.0f in",
        r->finished, r->duration_s, r->requests_per_s, r->output_tokens_per_s, r->output_tokens_per_s / r->n_devices,
        r->tpot_s.mean > 0 ? 1 / r->tpot_s.mean : 0, r->input_tokens_per_s);
    put(to, "throughput", line);
    put_money(to, line, r);
    put_power(to, line, r);
    maq_buf_addf(
        line,
        "%llu iterations of %.1f requests and %.0f tokens; %llu preemptions; KV cache %.0f %% full, at most %.0f %%",
        (unsigned long long)r->iterations, r->mean_batch, r->mean_tokens, (unsigned long long)r->preemptions,
        100 * r->kv_mean, 100 * r->kv_peak);
    if (r->prefix_hit_rate > 0)
        maq_buf_addf(line, "; %.1f %% of prompts found cached", 100 * r->prefix_hit_rate);
    put(to, "batches", line);
    if (r->afd.known) {
        maq_afd_add_times(line, &r->afd.times, r->busy_s);
        put(to, "sides", line);
    }
    put_tiers(to, line, r);
    put_lora(to, line, r);
    put_images(to, line, r);
    if (r->overloaded) {
        maq_buf_addf(line,
                     "%u of %u requests had not begun when the last one arrived: they come faster than this deployment "
                     "serves them, and latencies grow with their number",
                     r->waiting, r->n_requests);
        put(to, "overloaded", line);
    }
}

/* "500 ms", as exact as it was written. */
static void add_limit(struct maq_buf *line, const char *name, const struct maq_slo_limit *limit)
{
    char time[64];
    maq_buf_addf(line, "%s %s %s", name, limit->inclusive ? "<=" : "<",
                 maq_quantity_format(time, limit->most_s, MAQ_DIM_TIME));
}

/* A line for each bound with its figure, and of requests, how many are within them. */
static void put_slo(const struct maq_lines *to, struct maq_buf *line, const struct maq_serve_result *r)
{
    const struct maq_slo_outcome *o = &r->slo;
    for (uint32_t i = 0; i < o->slo.n; i++) {
        const struct maq_slo_bound *b = &o->slo.at[i];
        char name[32], time[32];
        maq__snprintf(name, sizeof name, "%s_%s", maq_slo_metric_name(b->metric), maq_slo_statistic_name(b->statistic));
        add_limit(line, name, &b->limit);
        maq_buf_addf(line, ": %s, %s", o->met[i] ? "met" : "missed", maq_format_time(time, o->value_s[i]));
        if (!o->met[i] && r->admission.refused > 0 && o->value_s[i] <= b->limit.most_s)
            maq_buf_adds(line, " of those that were not refused");
        else if (!o->met[i])
            maq_buf_addf(line, ", %.1f %% over", 100 * (o->value_s[i] / b->limit.most_s - 1));
        put(to, i == 0 ? "slo" : "", line);
    }
    if (!o->of_requests) {
        maq_buf_adds(line, "not known: the gaps between tokens are no figure of a request");
        put(to, "goodput", line);
        return;
    }
    maq_buf_addf(line, "%.2f requests/s: %u of %u requests have ", o->goodput_per_s, o->good, r->n_requests);
    bool first = true;
    for (int m = 0; m < MAQ_SLO_REQUEST_METRICS; m++) {
        if (!o->limited[m])
            continue;
        maq_buf_adds(line, first ? "" : " and ");
        add_limit(line, maq_slo_metric_name((enum maq_slo_metric)m), &o->request[m]);
        first = false;
    }
    put(to, "goodput", line);
}

void maq_serve_deployment_lines(const struct maq_lines *to, const struct maq_serve_result *r)
{
    struct maq_buf line;
    maq_buf_init(&line, 1 << 16);
    put_deployment(to, &line, r);
    put_memory(to, &line, r);
    put_speculation(to, &line, r);
    maq_buf_fini(&line);
}

void maq_serve_batch_lines(const struct maq_lines *to, const struct maq_serve_batch *b, int64_t size, int64_t prompt,
                           int64_t output)
{
    struct maq_buf line;
    double all = b->prefill_s + b->decode_s, passes = output > 1 ? (double)(output - 1) : 1;
    maq_buf_init(&line, 1 << 16);
    maq_buf_addf(&line, "%lld prompt%s of %lld tokens in %.2f ms", (long long)size, maq_words_s(size),
                 (long long)prompt, b->prefill_s * 1e3);
    if (output > 1) /* the first token comes out of the prompt */
        maq_buf_addf(&line, ", then %lld more tokens each at %.3f ms: %.3f s in all", (long long)(output - 1),
                     b->decode_s / passes * 1e3, all);
    put(to, "batch", &line);
    maq_buf_addf(&line, "%.0f tokens/s out, %.0f in and out", (double)(size * output) / all,
                 (double)(size * (prompt + output)) / all);
    put(to, "throughput", &line);
    const double time_s[] = {b->prefill_s, b->decode_s};
    static const char *const labels[] = {"sides", ""}, *const whose[] = {"of prompts ", "of tokens "};
    for (size_t i = 0; i < MAQ_COUNT(time_s); i++)
        if (b->afd[i].attention_s > 0) {
            maq_buf_adds(&line, whose[i]);
            maq_afd_add_times(&line, &b->afd[i], time_s[i]);
            put(to, labels[i], &line);
        }
    maq_buf_fini(&line);
}

void maq_serve_outcome_lines(const struct maq_lines *to, const struct maq_serve_result *r)
{
    struct maq_buf line;
    maq_buf_init(&line, 1 << 16);
    if (r->capacity && r->fits)
        put_capacity(to, &line, r->capacity, r->slo.slo.n > 0);
    if (r->pools) {
        put_prefill(to, &line, r);
        put_handover(to, &line, r);
        put_availability(to, &line, r);
    } else if (r->replicas) {
        put_fleet(to, &line, r);
        put_members(to, &line, r);
        put_admission(to, &line, r);
        put_availability(to, &line, r);
    }
    if (r->finished > 0) {
        put_load(to, &line, r);
        if (r->slo.slo.n > 0)
            put_slo(to, &line, r);
        put_attainment(to, &line, r);
        put_what_if(to, &line, r);
    }
    maq_buf_fini(&line);
}

void maq_serve_latency_table(struct maq_table *t, const struct maq_serve_result *r)
{
    static const struct maq_table_column columns[] = {
        {"ms", false, false}, {"mean", true, false}, {"80 % interval", true, false},
        {"p50", true, false}, {"p90", true, false},  {"p95", true, false},
        {"p99", true, false}};
    const struct {
        const char *name;
        const struct maq_serve_quantiles *q;
    } rows[] = {{"TTFT", &r->ttft_s},
                {"TPOT", &r->tpot_s},
                {"ITL", &r->itl_s},
                {"E2EL", &r->e2el_s},
                {"in the queue", &r->queue_s}};
    maq_table_init(t, columns, MAQ_COUNT(columns));
    for (size_t i = 0; i < MAQ_COUNT(rows); i++) {
        const struct maq_serve_quantiles *q = rows[i].q;
        const double values[] = {q->p50, q->p90, q->p95, q->p99};
        maq_table_row(t, MAQ_INK_PLAIN);
        maq_table_cell(t, "%s", rows[i].name);
        maq_table_cell(t, "%.2f", q->mean * 1e3);
        maq_table_cell(t, "%.1f to %.1f", q->low * 1e3, q->high * 1e3);
        for (size_t k = 0; k < MAQ_COUNT(values); k++)
            maq_table_cell(t, "%.2f", values[k] * 1e3);
    }
}
