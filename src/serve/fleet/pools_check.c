/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pools_check.c - whether two pools can hand requests over to each other, and where their replicas stand.
 *
 * What engines refuse: vLLM 0.33.0 other types of cache, models and releases (kv_connector/v1/nixl/metadata.py, compute_nixl_compatibility_hash), blocks of decode that
 * are no multiple of prefill's and degrees that do not divide each other (kv_connector/utils.py); SGLang 0.5.23 other pages and types, and pipelines of
 * decode that are neither one stage nor as many as prefill's (disaggregation/common/conn.py). Of TensorRT-LLM the same is asked as of SGLang but for pipelines.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "serve/codes.h"
#include "serve/fleet/pools.h"

enum maq_kv_transfer maq_pools_mode(const struct maq_fleet *f)
{
    if (f->handover.transfer != MAQ_KV_TRANSFER_AUTO)
        return f->handover.transfer;
    return f->members[0].options->engine == MAQ_ENGINE_SGLANG ? MAQ_KV_TRANSFER_CHUNK : MAQ_KV_TRANSFER_PULL;
}

static enum maq_status refuse(struct maq_diag *diag, const char *hint, const char *text)
{
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_POOLS, (struct maq_span){0}, hint, "%s", text);
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* ---- the engine ---- */

static enum maq_status check_mode(const struct maq_fleet *f, struct maq_diag *diag)
{
    static const bool has[MAQ_ENGINE_COUNT][MAQ_KV_TRANSFER_COUNT] = {
        [MAQ_ENGINE_VLLM] =
            {[MAQ_KV_TRANSFER_PULL] = true, [MAQ_KV_TRANSFER_PUSH] = true, [MAQ_KV_TRANSFER_LAYER] = true},
        [MAQ_ENGINE_SGLANG] = {[MAQ_KV_TRANSFER_CHUNK] = true},
        [MAQ_ENGINE_TRTLLM] = {[MAQ_KV_TRANSFER_PULL] = true}};
    static const char *const hints[MAQ_ENGINE_COUNT] = {"pull, push or layer", "chunk", "pull"};
    enum maq_engine engine = f->members[0].options->engine;
    enum maq_kv_transfer mode = maq_pools_mode(f);
    if (!has[engine][mode])
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_POOLS, (struct maq_span){0}, hints[engine],
                             "a KV transfer by %s: %s has none", maq_kv_transfer_name(mode), maq_engine_name(engine));
    if (f->handover.max_local_prefill > 0 && engine == MAQ_ENGINE_SGLANG)
        return refuse(diag, "all prompts go to prefill: without a longest local one",
                      "SGLang's decode servers compute no prompts");
    return MAQ_OK;
}

/* ---- each with each ---- */

static bool divide(int32_t a, int32_t b)
{
    return a >= b ? a % b == 0 : b % a == 0;
}

/* A prompt that decode computes by itself has to fit into one of its iterations, where it is not cut. */
static enum maq_status check_local(const struct maq_handover *h, const struct maq_deployment *d, struct maq_diag *diag)
{
    if (!d->options.no_chunked_prefill || h->max_local_prefill <= d->options.max_num_batched_tokens)
        return MAQ_OK;
    return maq_diag_fail(
        MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_POOLS, (struct maq_span){0},
        "--max-num-batched-tokens, or shorter local prompts",
        "decode computes prompts of up to %lld tokens by itself: it takes whole prompts, into iterations of %d",
        (long long)h->max_local_prefill, d->options.max_num_batched_tokens);
}

static enum maq_status check_layouts(const struct maq_deployment *p, const struct maq_deployment *d,
                                     struct maq_diag *diag)
{
    const struct maq_serve_options *a = &p->options, *b = &d->options;
    int32_t from = p->job->plan.tp, to = d->job->plan.tp, stages = p->job->plan.pp, stages_to = d->job->plan.pp;
    if (a->kv_fp8 != b->kv_fp8)
        return refuse(
            diag, "one --kv-cache-dtype for both",
            "keys and values of 16 bits on one side and of 8 on the other: no engine converts them on the way");
    bool blocks = b->engine == MAQ_ENGINE_VLLM ? b->block_size % a->block_size == 0 : b->block_size == a->block_size;
    if (!blocks)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_POOLS, (struct maq_span){0},
                             "one --block-size for both",
                             "blocks of %d tokens where prompts are computed, and of %d where tokens are: %s wants %s",
                             a->block_size, b->block_size, maq_engine_name(b->engine),
                             b->engine == MAQ_ENGINE_VLLM ? "the latter to be a multiple" : "the same");
    if (!divide(from, to))
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_POOLS, (struct maq_span){0},
                             "degrees of which one divides the other",
                             "heads of %d ranks that compute prompts do not come out even on %d that decode", from, to);
    if (b->engine == MAQ_ENGINE_SGLANG && stages_to != 1 && stages_to != stages)
        return maq_diag_fail(
            MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_POOLS, (struct maq_span){0}, "--pp 1, or the same for both",
            "%d pipeline stages compute prompts and %d decode: SGLang takes one stage there, or as many", stages,
            stages_to);
    return MAQ_OK;
}

static enum maq_status check_two(const struct maq_deployment *p, const struct maq_deployment *d, struct maq_diag *diag)
{
    const struct maq_model *a = &p->job->model, *b = &d->job->model;
    const struct maq_serve_options *x = &p->options, *y = &d->options;
    if (strcmp(a->name, b->name) != 0 || a->num_layers != b->num_layers || a->hidden != b->hidden)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_POOLS, (struct maq_span){0}, NULL,
                             "prompts are computed of %s, tokens of %s: keys of one mean nothing to the other", a->name,
                             b->name);
    if (x->engine != y->engine || (x->engine == MAQ_ENGINE_VLLM && !same_text(x->version, y->version)))
        return refuse(diag, "one engine and one release for both", "engines hand over to their own kind and release");
    return check_layouts(p, d, diag);
}

/* ---- where they stand ---- */

static enum maq_status check_places(struct maq_fleet_run *r, struct maq_diag *diag)
{
    struct maq_replica_placement *places = maq__calloc(r->n * sizeof *places);
    uint64_t needed = 0;
    if (!places)
        return MAQ_NO_MEMORY;
    const struct maq_cluster *small;
    enum maq_status status = maq_fleet_place(r->fleet, places, &small, &needed);
    free(places);
    MAQ_TRY(status);
    if (!small)
        return MAQ_OK;
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_POOLS, (struct maq_span){0},
                         "a larger cluster, fewer replicas, or lower degrees",
                         "the replicas of its pools need %llu GPUs, the cluster has %u", (unsigned long long)needed,
                         small->devices);
}

enum maq_status maq_pools_check(struct maq_fleet_run *r, struct maq_diag *diag)
{
    const struct maq_fleet *f = r->fleet;
    uint32_t roles[MAQ_ROLE_COUNT] = {0};
    for (uint32_t m = 0; m < f->n_members; m++)
        roles[f->members[m].role] += f->members[m].replicas;
    if (roles[MAQ_ROLE_BOTH] > 0)
        return refuse(diag, NULL, "replicas with and without a role behind one router: all have one, or none has");
    if (roles[MAQ_ROLE_PREFILL] == 0 || roles[MAQ_ROLE_DECODE] == 0)
        return refuse(diag, "a pool of each",
                      "a pool that computes prompts needs one that decodes, and the other way round");
    MAQ_TRY(check_mode(f, diag));
    for (uint32_t m = 0; m < f->n_members; m++)
        if (!maq_cluster_one_kind(&f->members[m].job->cluster))
            return refuse(diag, "a cluster for each pool: --prefill-cluster",
                          "pools on a cluster of several kinds of nodes: which of them stands where is not said");
    for (uint32_t d = 0; d < f->n_members; d++)
        if (f->members[d].role == MAQ_ROLE_DECODE)
            MAQ_TRY(check_local(&f->handover, &r->deployments[d], diag));
    for (uint32_t p = 0; p < f->n_members; p++)
        for (uint32_t d = 0; d < f->n_members; d++)
            if (f->members[p].role == MAQ_ROLE_PREFILL && f->members[d].role == MAQ_ROLE_DECODE)
                MAQ_TRY(check_two(&r->deployments[p], &r->deployments[d], diag));
    return check_places(r, diag);
}

/* ---- begin and end ---- */

static enum maq_status begin_network(struct maq_fleet_run *r, struct maq_fleet_pools *p)
{
    uint32_t n_ports = 0;
    const struct maq_cluster *small;
    uint64_t needed;
    double bps = r->fleet->handover.bps;
    for (uint32_t k = 0; k < r->n; k++) {
        p->ports[k] = n_ports;
        n_ports += (uint32_t)r->engines[k].d->passes.dp * 2 * (uint32_t)MAQ_DISTANCES;
    }
    MAQ_TRY(maq_fleet_place(r->fleet, p->places, &small, &needed));
    if (!maq_network_init(&p->network, n_ports))
        return MAQ_NO_MEMORY;
    for (uint32_t k = 0; k < r->n; k++)
        for (uint32_t i = p->ports[k]; i < (k + 1 < r->n ? p->ports[k + 1] : n_ports); i++)
            p->network.ports[i].bps =
                bps > 0 ? bps : maq_port_bps(&p->places[k], (enum maq_distance)((i - p->ports[k]) % MAQ_DISTANCES));
    return MAQ_OK;
}

enum maq_status maq_pools_begin(struct maq_fleet_run *r, uint32_t n_prefill, struct maq_diag *diag)
{
    const struct maq_fleet *f = r->fleet;
    struct maq_fleet_pools *p = maq__calloc(sizeof *p);
    size_t requests = r->requests->n ? r->requests->n : 1u;
    (void)diag;
    r->pools = p;
    if (!p)
        return MAQ_NO_MEMORY;
    p->next_lease_s = (double)INFINITY;
    p->failed_s = maq__calloc(r->n * sizeof *p->failed_s);
    p->mode = maq_pools_mode(f);
    p->n_prefill = n_prefill;
    p->cuts = maq__calloc((size_t)f->n_members * f->n_members * sizeof *p->cuts);
    p->places = maq__calloc(r->n * sizeof *p->places);
    p->ports = maq__calloc(r->n * sizeof *p->ports);
    p->handed = maq__calloc(requests * sizeof *p->handed);
    p->handing = maq__calloc(requests * sizeof *p->handing);
    p->uncomputed = maq__calloc(n_prefill * sizeof *p->uncomputed);
    p->kept = maq__calloc(n_prefill * sizeof *p->kept);
    if (!p->cuts || !p->places || !p->ports || !p->handed || !p->handing || !p->failed_s || !p->uncomputed ||
        !p->kept ||
        !maq_routing_init(&p->prefill, f->prefill_router, maq_rng_of(f->seed, MAQ_RNG_ROUTER, 1), r->engines, n_prefill,
                          r->requests))
        return MAQ_NO_MEMORY;
    for (uint32_t a = 0; a < f->n_members; a++)
        for (uint32_t b = 0; b < f->n_members; b++)
            if (f->members[a].role == MAQ_ROLE_PREFILL && f->members[b].role == MAQ_ROLE_DECODE)
                p->cuts[a * f->n_members + b] = maq_cut_between(&r->deployments[a], &r->deployments[b]);
    for (uint32_t k = 0; k < r->n; k++) {
        r->engines[k].handed = p->handed;
        r->engines[k].first_known = f->members[0].options->engine != MAQ_ENGINE_VLLM;
    }
    return begin_network(r, p);
}

void maq_pools_end(struct maq_fleet_pools *p)
{
    if (!p)
        return;
    maq_routing_fini(&p->prefill);
    maq_network_fini(&p->network);
    free(p->cuts);
    free(p->places);
    free(p->ports);
    free(p->handed);
    free(p->handing);
    free(p->leases);
    free(p->failed_s);
    free(p->uncomputed);
    free(p->kept);
    free(p);
}
