/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kv_tier_sizes.c - tiers behind a cache, from what is asked: how many chunks each holds, and how fast they are reached.
 *
 * A chunk in host memory has the keys and values of all GPUs of a rank and its stages, latents of MLA once though every GPU has them, in whole pages of
 * 4,096 bytes (vLLM 0.33.0, v1/kv_offload/cpu/spec.py). Each GPU moves its own part over its own link to the host, at the rate that it has when all
 * of its node do so (cluster.h, host_copy_bps).
 *
 * SGLang counts tokens, each GPU by itself and latents once for each (0.5.23, mem_cache/pool_host/base.py): of n bytes of a GPU as many as have room, or
 * `ratio` for each that its cache has, to whole pages and one more. Where neither is said the ratio is 2 as far as a share of what the node's memory has beyond
 * 10 GiB holds them, 5 % beside it (mem_cache/hicache_auto_size.py); maquette knows the node's memory and not what else is in it. TensorRT-LLM has n bytes of a GPU
 * in whole blocks (tensorrt_llm/_torch/pyexecutor/resource_manager.py, host_cache_size).
 */
#include <math.h>

#include "base/check.h"
#include "serve/codes.h"
#include "serve/engine/deployment.h"

#define PAGE_BYTES 4096.0
#define MOST_CHUNKS ((int64_t)1 << 30)

static const struct maq_node_group *group_of(const struct maq_deployment *d)
{
    return &d->job->cluster.groups[d->job->stages[0].group];
}

static enum maq_status refuse(struct maq_diag *diag, const char *hint, const char *what)
{
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_TIERS, (struct maq_span){0}, hint, "%s", what);
}

/* What copies of SGLang and TensorRT-LLM have no part of. */
static enum maq_status check_no_vllm(const struct maq_deployment *d, struct maq_diag *diag)
{
    const struct maq_tier_options *o = &d->options.tiers;
    if (d->options.no_prefix_caching)
        return refuse(diag, "without --disable-radix-cache, or --no-enable-prefix-caching",
                      "host memory has prefixes, of which none are kept");
    if (o->bytes[MAQ_TIER_SSD] > 0 || o->bytes[MAQ_TIER_REMOTE] > 0)
        return refuse(diag, "--kv-offloading-size alone",
                      "drives and pools behind host memory are modelled as vLLM has them alone");
    if (o->policy != MAQ_TIER_LRU || o->chunk_blocks > 1 || o->prompt_only)
        return refuse(diag, NULL,
                      "--kv-offloading-policy, --kv-offloading-blocks-per-chunk and --kv-offload-prompt-only are "
                      "vLLM's: SGLang copies nodes of its tree, TensorRT-LLM moves blocks");
    return MAQ_OK;
}

static enum maq_status check_cache(const struct maq_deployment *d, struct maq_diag *diag)
{
    if (d->options.engine != MAQ_ENGINE_VLLM)
        MAQ_TRY(check_no_vllm(d, diag));
    if (d->n_groups > 1 || d->groups[0].kind != MAQ_KV_FULL)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_TIERS, (struct maq_span){0}, NULL,
                             "%s has layers that keep different tokens (windows, chunks, states): which of their "
                             "blocks a tier keeps is not modelled",
                             d->job->model.name);
    return MAQ_OK;
}

static enum maq_status check_rates(const struct maq_deployment *d, struct maq_diag *diag)
{
    const struct maq_tier_options *o = &d->options.tiers;
    if (!maq_tier_options_any(o))
        return refuse(diag, "--kv-offloading-size 64GiB",
                      "what goes to a drive or to a pool goes through host memory, of which there is none");
    if (o->bytes[MAQ_TIER_SSD] > 0 && !(o->ssd_read_bps > 0 && o->ssd_write_bps > 0))
        return refuse(diag, "--kv-ssd-bandwidth 12GB/s, or 12GB/s,8GB/s to read and to write",
                      "how fast the drives of a node are is not said, and the cluster does not know it");
    if (o->bytes[MAQ_TIER_REMOTE] > 0 && !(o->remote_bps > 0) && !(maq_node_group_network_bps(group_of(d)) > 0))
        return refuse(diag, "--kv-remote-bandwidth 50GB/s, or a cluster with a fabric",
                      "how fast the pool is reached is not said, and the cluster has no network");
    return MAQ_OK;
}

/* ---- host memory of SGLang and TensorRT-LLM ---- */

#define PAGES_OF_IT                                                                                                    \
    "--kv-offloading-size, or --hicache-size and --hicache-ratio of SGLang, host_cache_size of TensorRT-LLM"
#define DEFAULT_RATIO 2.0
#define RESERVE_BYTES (10 * 1073741824.0) /* HICACHE_HOST_MEMORY_RESERVE_BYTES */
#define SLACK_SHARE 0.05                  /* _ALLOCATION_SLACK_FRACTION */

/* Tokens in host memory for one on the GPU, where nothing is said of it. */
static double default_ratio(const struct maq_deployment *d, struct maq_token_bytes token)
{
    const struct maq_node_group *g = group_of(d);
    double gpus = maq_deployment_devices(d), here = fmin(gpus, g->devices_per_node),
           pool = token.rank * (double)d->kv_tokens,
           budget = (g->host_mem_bytes - RESERVE_BYTES) / here * d->options.tiers.host_share;
    if (!(g->host_mem_bytes > 0))
        return DEFAULT_RATIO;
    return fmin(DEFAULT_RATIO, budget * (1 - SLACK_SHARE) / pool);
}

/* Pages in host memory, and what they are in bytes of all GPUs of a rank. */
static enum maq_status plan_copies(struct maq_deployment *d, struct maq_diag *diag)
{
    struct maq_tier_options *o = &d->options.tiers;
    const struct maq_token_bytes token = maq_deployment_token_bytes(d);
    double page = d->options.block_size, tokens, pages;
    d->tiers.copies = d->options.engine == MAQ_ENGINE_SGLANG;
    d->tiers.swaps = !d->tiers.copies;
    d->tiers.chunk_bytes = token.all * page;
    if (o->bytes[MAQ_TIER_HOST] > 0) {
        pages = floor(o->bytes[MAQ_TIER_HOST] / d->tiers.chunk_bytes);
    } else {
        tokens = o->host_rank_bytes > 0
                     ? floor(o->host_rank_bytes / token.rank)
                     : floor((double)d->kv_tokens * (o->host_ratio > 0 ? o->host_ratio : default_ratio(d, token)));
        pages = tokens > 0 ? floor(tokens / page) + d->tiers.copies : 0;
        o->bytes[MAQ_TIER_HOST] = pages * d->tiers.chunk_bytes;
    }
    if (!(pages >= 1))
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_TIERS, (struct maq_span){0}, PAGES_OF_IT,
                             "host memory of %.0f bytes holds no page of the cache: one of %d tokens has %.0f bytes",
                             fmax(o->bytes[MAQ_TIER_HOST], 0), d->options.block_size, d->tiers.chunk_bytes);
    d->tiers.chunks[MAQ_TIER_HOST] = pages < (double)MOST_CHUNKS ? (int64_t)pages : MOST_CHUNKS;
    return MAQ_OK;
}

/* ---- */

/* Chunks that a tier has room for; one that has room for none is a fault. */
static enum maq_status count_chunks(struct maq_deployment *d, struct maq_diag *diag)
{
    static const char *const flags[MAQ_TIER_COUNT] = {NULL, "--kv-offloading-size 64GiB", "--kv-ssd-size 2TB",
                                                      "--kv-remote-size 10TB"};
    for (int i = MAQ_TIER_HOST; i < MAQ_TIER_COUNT; i++) {
        double bytes = d->options.tiers.bytes[i], n = floor(bytes / d->tiers.chunk_bytes);
        if (bytes > 0 && !(n >= 1))
            return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_TIERS, (struct maq_span){0}, flags[i],
                                 "%s of %.0f bytes holds no chunk of the cache: one of %d tokens has %.0f bytes",
                                 maq_tier_name((enum maq_tier_kind)i), bytes,
                                 d->options.block_size * d->options.tiers.chunk_blocks, d->tiers.chunk_bytes);
        d->tiers.chunks[i] = n < (double)MOST_CHUNKS ? (int64_t)n : MOST_CHUNKS;
    }
    return MAQ_OK;
}

bool maq_tier_options_any(const struct maq_tier_options *o)
{
    return o->bytes[MAQ_TIER_HOST] > 0 || o->host_rank_bytes > 0 || o->host_ratio > 0 || o->host_share > 0;
}

enum maq_status maq_deployment_check_host(const struct maq_deployment *d, uint32_t replicas, struct maq_diag *diag)
{
    const struct maq_node_group *g = group_of(d);
    uint32_t gpus = (uint32_t)(d->job->plan.tp * d->job->plan.pp), all = replicas * (uint32_t)d->options.dp,
             here = gpus < (uint32_t)g->devices_per_node ? (uint32_t)g->devices_per_node / gpus : 1;
    double nodes = gpus > (uint32_t)g->devices_per_node ? gpus / (double)g->devices_per_node : 1,
           has = g->host_mem_bytes, asked = d->options.tiers.bytes[MAQ_TIER_HOST] * (all < here ? all : here) / nodes;
    if (!d->tiers.any || !(has > 0) || asked <= has)
        return MAQ_OK;
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_TIERS, (struct maq_span){0},
                         "a smaller --kv-offloading-size",
                         "keys and values in host memory: %.1f GiB of a node are asked for, which has %.1f GiB "
                         "(host_memory of the cluster)",
                         asked / 1073741824.0, has / 1073741824.0);
}

enum maq_status maq_deployment_plan_tiers(struct maq_deployment *d, struct maq_diag *diag)
{
    struct maq_tier_options *o = &d->options.tiers;
    struct maq_deployment_tiers *t = &d->tiers;
    const struct maq_node_group *g = group_of(d);
    const struct maq_token_bytes token = maq_deployment_token_bytes(d);
    bool asked = maq_tier_options_any(o);
    for (int i = MAQ_TIER_HOST; i < MAQ_TIER_COUNT; i++)
        asked |= o->bytes[i] > 0;
    if (!asked || !d->fits)
        return MAQ_OK;
    MAQ_TRY(check_cache(d, diag));
    MAQ_TRY(check_rates(d, diag));
    o->chunk_blocks = o->chunk_blocks > 0 ? o->chunk_blocks : 1;
    double tokens = (double)d->options.block_size * o->chunk_blocks, gpus = d->job->plan.tp * d->job->plan.pp,
           devices = gpus * d->options.dp;
    t->any = true;
    t->chunk_tokens = (int32_t)tokens;
    t->chunk_bytes = ceil(token.once * tokens / PAGE_BYTES) * PAGE_BYTES;
    t->link_bytes = token.rank * tokens;
    t->loaded_bytes = token.all * tokens;
    t->link_bps = o->host_bps > 0                ? o->host_bps
                  : d->device->host_copy_bps > 0 ? d->device->host_copy_bps
                                                 : d->device->host_bps;
    t->devices_per_node = (uint32_t)g->devices_per_node;
    t->nodes = ceil(devices / g->devices_per_node);
    t->ssd_most_bps = (double)INFINITY;
    t->network_bps = maq_node_group_network_bps(g) * devices;
    t->pool_latency_s = o->remote_latency_s > 0 ? o->remote_latency_s : g->fabric.latency_s;
    MAQ_TRY(d->options.engine == MAQ_ENGINE_VLLM ? count_chunks(d, diag) : plan_copies(d, diag));
    return maq_deployment_check_host(d, 1, diag);
}
