/* SPDX-License-Identifier: Apache-2.0 */
/* words.c - models, clusters, degrees, methods and workloads of a job as short text. See words.h. */
#include "report/words.h"

#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "plan/keys.h"
#include "plan/lora_targets.h"

const char *maq_words_integer(char buf[32], int64_t n)
{
    char digits[24];
    int len = maq__snprintf(digits, sizeof digits, "%lld", (long long)n), at = 0;
    for (int i = 0; i < len && at < 30; i++) {
        buf[at++] = digits[i];
        if ((len - 1 - i) % 3 == 0 && i + 1 < len && digits[i] != '-')
            buf[at++] = ',';
    }
    buf[at] = '\0';
    return buf;
}

const char *maq_words_seconds(char buf[32], double s)
{
    maq__snprintf(buf, 32, "%.*f s", s < 9.9995 ? 4 : s < 99.995 ? 3 : 2, s);
    return buf;
}

#define MOST_CERTAIN 0.95 /* a hundred peaks were measured: of the last percents they say nothing */

void maq_words_fit(struct maq_buf *b, double needed_bytes, double device_bytes, double fit_probability)
{
    char need[32], has[32];
    maq_buf_addf(b, "%s of %s without cached blocks: it fits in ", maq_format_bytes(need, needed_bytes),
                 maq_format_bytes(has, device_bytes));
    if (fit_probability > MOST_CERTAIN)
        maq_buf_addf(b, "more than %.0f of 100 runs", 100 * MOST_CERTAIN);
    else
        maq_buf_addf(b, "%.0f of 100 runs", 100 * fit_probability);
}

const char *maq_words_bit_rate(char buf[32], double bytes_per_s)
{
    maq__snprintf(buf, 32, "%.4g Gb/s", bytes_per_s * 8e-9);
    return buf;
}

/* --- model -------------------------------------------------------------------------------------------------- */

int32_t maq_words_topk(const struct maq_model *model, int32_t *experts)
{
    const struct maq_module *router = maq_model_find_module(model, MAQ_MODULE_ROUTER, MAQ_PART_COUNT);
    *experts = router ? router->u.moe.experts : 0;
    return router ? router->u.moe.topk : 0;
}

/* Layers of the model whose mixer is `mixer`. */
static uint32_t layers_with(const struct maq_model *model, const char *mixer)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < model->num_layers; i++)
        n += strcmp(model->kinds[model->kind_of[i]].mixer, mixer) == 0;
    return n;
}

const char *maq_words_mixers(char buf[64], const struct maq_model *model)
{
    const char *seen[8];
    size_t n = 0, at = 0;
    for (uint32_t k = 0; k < model->n_kinds; k++) {
        size_t i = 0;
        while (i < n && strcmp(seen[i], model->kinds[k].mixer) != 0)
            i++;
        if (i == n && n < MAQ_COUNT(seen))
            seen[n++] = model->kinds[k].mixer;
    }
    for (size_t i = 1; i < n; i++) /* by number of layers */
        for (size_t j = i; j > 0 && layers_with(model, seen[j - 1]) < layers_with(model, seen[j]); j--) {
            const char *swap = seen[j];
            seen[j] = seen[j - 1];
            seen[j - 1] = swap;
        }
    buf[0] = '\0';
    for (size_t i = 0; i < n && at < 56; i++) {
        bool only_ffn = strcmp(seen[i], "none") == 0;
        if (only_ffn && n > 1)
            continue;
        int len = maq__snprintf(buf + at, 64 - at, "%s%s", at > 0 ? " / " : "", seen[i]);
        at += len > 0 ? (size_t)len : 0;
    }
    return buf;
}

void maq_words_model(struct maq_buf *b, const struct maq_model *model)
{
    char n[32], mixers[64];
    int32_t experts, topk = maq_words_topk(model, &experts);
    maq_buf_addf(b, "%s parameters", maq_format_count(n, (double)model->params));
    if (model->active_params != model->params)
        maq_buf_addf(b, " (%s active)", maq_format_count(n, (double)model->active_params));
    maq_buf_addf(b, ", %u layer%s (%s), hidden ", model->num_layers, maq_words_s(model->num_layers),
                 maq_words_mixers(mixers, model));
    maq_buf_adds(b, maq_words_integer(n, model->hidden));
    if (model->pyramid)
        maq_buf_addf(b, " to %s", maq_words_integer(n, model->output.hidden));
    if (model->vocab > 0)
        maq_buf_addf(b, ", vocabulary %s", maq_words_integer(n, model->vocab));
    if (topk > 0)
        maq_buf_addf(b, ", %d of %d experts", topk, experts);
    if (model->mtp_layers > 0)
        maq_buf_addf(b, ", %u MTP", model->mtp_layers);
}

/* --- cluster ------------------------------------------------------------------------------------------------ */

static void words_group(struct maq_buf *b, const struct maq_node_group *g)
{
    char n[32], rate[32];
    if (g->nodes > 1)
        maq_buf_addf(b, "%s nodes of ", maq_words_integer(n, g->nodes));
    maq_buf_addf(b, "%d x %s", g->devices_per_node, g->device.name);
    if (g->domain_devices > 1)
        maq_buf_addf(b, ", scale-up %d at %s", g->domain_devices, maq_format_rate(rate, g->domain_bps));
    if (g->nodes > 1 && g->nics_per_node > 0) {
        maq_buf_addf(b, ", %d x %s", g->nics_per_node, g->fabric.name);
        if (!strstr(g->fabric.name, "b/s"))
            maq_buf_addf(b, " %s", maq_words_bit_rate(rate, g->fabric.nic_bps));
        maq_buf_adds(b, g->rail_optimized ? " per node, rail-optimized" : " per node");
    }
}

/* "; v100-16gb to t4 9.2 Gb/s, 5.5 Gb/s a flow, 50 us" */
static void words_link(struct maq_buf *b, const struct maq_cluster *c, const struct maq_group_link *l)
{
    char n[32];
    maq_buf_addf(b, "; %s to %s", maq_node_group_name(&c->groups[l->a]), maq_node_group_name(&c->groups[l->b]));
    if (l->bps > 0)
        maq_buf_addf(b, " %s", maq_words_bit_rate(n, l->bps));
    if (l->flow_bps > 0)
        maq_buf_addf(b, "%s %s a flow", l->bps > 0 ? "," : "", maq_words_bit_rate(n, l->flow_bps));
    if (l->latency_s > 0)
        maq_buf_addf(b, "%s %s", l->bps > 0 || l->flow_bps > 0 ? "," : "", maq_format_time(n, l->latency_s));
}

void maq_words_cluster(struct maq_buf *b, const struct maq_cluster *cluster)
{
    char n[32];
    maq_buf_addf(b, "%s GPU%s: ", maq_words_integer(n, cluster->devices), cluster->devices == 1 ? "" : "s");
    for (uint32_t g = 0; g < cluster->n_groups && g < 8; g++) {
        maq_buf_adds(b, g > 0 ? "; " : "");
        words_group(b, &cluster->groups[g]);
    }
    if (cluster->n_groups > 8)
        maq_buf_addf(b, "; and %u more groups", cluster->n_groups - 8);
    for (uint32_t i = 0; i < cluster->n_links && i < 8; i++)
        words_link(b, cluster, &cluster->links[i]);
    if (cluster->n_links > 8)
        maq_buf_addf(b, "; and %u more links", cluster->n_links - 8);
    if (cluster->nodes_per_switch > 0)
        maq_buf_addf(b, ", %d nodes per leaf, oversubscription %.3g", cluster->nodes_per_switch,
                     cluster->oversubscription);
}

/* --- plan --------------------------------------------------------------------------------------------------- */

const char *maq_words_sharding(int sharding)
{
    static const char *const names[] = {"no sharding", "ZeRO-1", "ZeRO-2", "ZeRO-3"};
    return sharding >= 0 && (size_t)sharding < MAQ_COUNT(names) ? names[sharding] : "?";
}

const char *maq_words_sharding_cell(int sharding)
{
    return sharding == MAQ_SHARDING_NONE ? "-" : maq_words_sharding(sharding);
}

const char *maq_words_recompute(int recompute)
{
    static const char *const names[] = {"none", "selective", "full"};
    return recompute >= 0 && (size_t)recompute < MAQ_COUNT(names) ? names[recompute] : "?";
}

void maq_words_degrees(struct maq_buf *b, const struct maq_plan *p, int32_t dp)
{
    const struct {
        const char *name;
        int32_t value;
        bool always;
    } degrees[] = {{"tp", p->tp, true}, {"cp", p->cp, false}, {"pp", p->pp, true},       {"vp", p->vp, false},
                   {"dp", dp, true},    {"ep", p->ep, false}, {"etp", p->etp, p->ep > 1}};
    for (size_t i = 0; i < MAQ_COUNT(degrees); i++)
        if ((degrees[i].value > 1 && strcmp(degrees[i].name, "etp") != 0) || degrees[i].always)
            maq_buf_addf(b, "%s%s%d", i > 0 ? " " : "", degrees[i].name, degrees[i].value);
}

static void words_precision(struct maq_buf *b, const struct maq_plan *p)
{
    maq_buf_addf(b, ", %s", maq_precision_name((enum maq_precision)p->precision));
    if (p->wide_ends && p->precision >= MAQ_PRECISION_FP8_DELAYED)
        maq_buf_addf(b, " but %d + %d layers at the ends", p->wide_at_start, p->wide_at_end);
    if (p->fp8_output)
        maq_buf_adds(b, ", output layer too");
    if (p->fp8_attention)
        maq_buf_adds(b, ", FP8 attention");
}

static void words_recompute(struct maq_buf *b, const struct maq_plan *p)
{
    maq_buf_addf(b, ", recompute %s", maq_words_recompute(p->recompute));
    if (p->recompute == MAQ_RECOMPUTE_SELECTIVE && p->selective_ac == MAQ_SELECTIVE_AC_OP)
        maq_buf_adds(b, " by operator");
    else if (p->recompute == MAQ_RECOMPUTE_SELECTIVE && p->recompute_parts != 0) {
        maq_buf_adds(b, " (");
        maq_plan_add_words(b, p, MAQ_PLAN_RECOMPUTE_MODULES, ", ");
        maq_buf_addc(b, ')');
    }
}

static void words_offload(struct maq_buf *b, const struct maq_plan *p)
{
    maq_buf_adds(b, ", inputs of ");
    maq_plan_add_words(b, p, MAQ_PLAN_OFFLOAD_MODULES, ", ");
    maq_buf_adds(b, " offloaded");
}

static void words_graphs(struct maq_buf *b, const struct maq_plan *p)
{
    if (p->cuda_graphs)
        maq_buf_adds(b, ", CUDA graphs of all passes");
    else if (p->graph_scope != 0) {
        maq_buf_adds(b, ", CUDA graphs of ");
        maq_plan_add_words(b, p, MAQ_PLAN_GRAPH_SCOPE, ", ");
    }
}

static void words_adapters(struct maq_buf *b, const struct maq_plan *p)
{
    maq_buf_addf(b, ", %s rank %d on ", p->use_dora ? "DoRA" : "LoRA", p->lora_rank);
    maq_lora_add_names(b, p->lora_sites, ", ");
}

void maq_words_methods(struct maq_buf *b, const struct maq_job *job)
{
    static const char *const updates[] = {[MAQ_UPDATE_ADAM] = "",
                                          [MAQ_UPDATE_SGD] = ", momentum",
                                          [MAQ_UPDATE_MUON] = ", Muon",
                                          [MAQ_UPDATE_LION] = ", Lion",
                                          [MAQ_UPDATE_ADAFACTOR] = ", Adafactor",
                                          [MAQ_UPDATE_LAMB] = ", LAMB",
                                          [MAQ_UPDATE_ONEBIT_ADAM] = ", 1-bit Adam",
                                          [MAQ_UPDATE_ONEBIT_LAMB] = ", 1-bit LAMB",
                                          [MAQ_UPDATE_ZERO_ONE_ADAM] = ", 0/1 Adam"};
    const struct maq_plan *p = &job->plan;
    if (p->pp > 1)
        maq_buf_addf(b, "%s, ", maq_schedule_name((enum maq_schedule_kind)p->schedule));
    bool replicated = job->dp * p->cp > 1;
    maq_buf_adds(b, replicated ? maq_words_sharding(p->sharding) : "no data parallelism");
    if (p->quantized_weights || p->quantized_gradients || p->hpz > 1)
        maq_buf_addf(b, " with%s%s%s", p->quantized_weights ? " qwZ" : "", p->hpz > 1 ? " hpZ" : "",
                     p->quantized_gradients ? " qgZ" : "");
    if (p->num_optimizer_instances > 1)
        maq_buf_addf(b, " x %d replicas", p->num_optimizer_instances);
    if (replicated && p->sharding == MAQ_SHARDING_PARAMS && (p->gather_once || p->reduce_once))
        maq_buf_adds(b, p->gather_once ? " gathered and reduced once a step" : " reduced once a step");
    maq_buf_adds(b, updates[p->update]);
    if (p->update >= MAQ_UPDATE_ONEBIT_ADAM)
        maq_buf_adds(b, p->onebit_warmup ? " in its warm-up" : "");
    if (p->galore_rank > 0)
        maq_buf_addf(b, ", %s rank %d%s", p->use_apollo ? "APOLLO" : "GaLore", p->galore_rank,
                     p->galore_layerwise ? " layer by layer" : "");
    if (p->paged_optimizer)
        maq_buf_adds(b, ", paged moments");
    words_recompute(b, p);
    words_precision(b, p);
    if (p->sequence_parallel == MAQ_ON)
        maq_buf_adds(b, ", sequence parallel");
    if (replicated && (p->overlap_grad_reduce == MAQ_ON || p->overlap_param_gather == MAQ_ON))
        maq_buf_adds(b, ", DP overlap");
    if (p->overlap_tp == MAQ_ON)
        maq_buf_adds(b, ", TP overlap");
    if (p->pp > 1 && p->overlap_p2p == MAQ_ON)
        maq_buf_adds(b, ", PP overlap");
    if (p->ep > 1 && p->overlap_ep == MAQ_ON)
        maq_buf_adds(b, p->delay_wgrad ? ", EP overlap with late weight gradients" : ", EP overlap");
    if (p->ep > 1 && (p->dispatcher == MAQ_DISPATCHER_DEEPEP || p->dispatcher == MAQ_DISPATCHER_HYBRIDEP))
        maq_buf_adds(b, p->dispatcher == MAQ_DISPATCHER_DEEPEP ? ", DeepEP" : ", HybridEP");
    if (p->overlap_shared_experts)
        maq_buf_adds(b, ", shared experts overlapped");
    words_graphs(b, p);
    if (p->offload_layers > 0)
        maq_buf_addf(b, ", %d layers offloaded", p->offload_layers);
    if (p->offload_modules != 0)
        words_offload(b, p);
    if (p->lora_rank > 0)
        words_adapters(b, p);
}

void maq_words_batch(struct maq_buf *b, const struct maq_workload *w)
{
    char n[32];
    maq_buf_addf(b, "%s sequence%s of ", maq_words_integer(n, w->gbs), maq_words_s(w->gbs));
    maq_buf_addf(b, "%s token%s per step", maq_words_integer(n, w->seq), maq_words_s(w->seq));
}

void maq_words_workload(struct maq_buf *b, const struct maq_job *job)
{
    const struct maq_workload *w = &job->workload;
    char n[32], t[32];
    maq_words_batch(b, w);
    maq_buf_addf(b, " (%s tokens), ", maq_format_count(t, (double)w->gbs * (double)w->seq));
    maq_buf_addf(b, "%s microbatch%s of %d per pipeline", maq_words_integer(n, job->microbatches),
                 job->microbatches == 1 ? "" : "es", job->plan.mbs);
    if (w->length_mean > 0)
        maq_buf_addf(b, ", documents of %.4g tokens %s", w->length_mean, w->packed ? "packed" : "padded");
}
