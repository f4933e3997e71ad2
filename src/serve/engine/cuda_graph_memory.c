/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_graph_memory.c - what an engine takes off for its CUDA graphs before it counts the blocks of its cache.
 *
 *   vLLM from 0.21 on   captures some of them before there is a cache and measures what is free before and behind; of graphs of decodes the largest two, and
 *                       what each further one takes, but 1 MiB at least, is that of the second. VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS, on by default
 *   others              take nothing off: SGLang's mem_fraction_static leaves room by how many requests its graphs hold (defaults.c)
 *
 *   graphs = sizes of decodes * max(nodes * node, 1 MiB) + sizes * nodes between the attentions * node + pool + splits
 *
 * While graphs are captured FlashAttention-3, on Hopper, has results of SPLITS parts of the keys, in 32 bits, for as many tokens as the largest graph has,
 * and PyTorch's allocator still has that memory when what is free is looked at again.
 * The driver's `node` is that of training (lower/cuda_graph_node.h), which was read off vLLM's graphs. All of a rank's graphs share a pool, that the
 * largest fills: the residual stream and a copy of so many tokens, and the widest module. The head is in none of them. Where attention and FFN are
 * on GPUs of their own there are graphs of decodes alone.
 *
 * Sources: vllm 0.33.0, v1/worker/gpu_worker.py (determine_available_memory, which says since when), v1/worker/gpu/cudagraph_utils.py
 * (profile_cudagraph_memory, _MIN_PER_GRAPH_BYTES), v1/worker/gpu_model_runner.py (the same of the first runner), config/attention.py
 * (flash_attn_max_num_splits_for_cuda_graph).
 */
#include <string.h>

#include "lower/cuda_graph_node.h"
#include "serve/engine/deployment.h"
#include "serve/engine_release.h"

#define LEAST_GRAPH_BYTES 1048576.0
#define SPLITS 32

struct nodes {
    double all, in_pieces; /* of a graph that has all of a stage; of those between its attentions, together */
};

static struct nodes of_stage(const struct maq_passes *p, const struct maq_pass_stage *s)
{
    struct maq_pass_batch one = {.tokens = 1, .padded = 1, .sampled = 1, .decodes = 1, .queries = 1};
    struct maq_pass_parts layers = {0}, mixers = {0};
    for (uint32_t w = 0; w < p->n_windows; w++)
        one.decode_keys[w] = 1;
    if (p->own_scope != MAQ_PASS_NOTHING)
        maq_pass_layers(p, s, p->own_scope, 1, true, &layers);
    if (p->all_scope != MAQ_PASS_NOTHING)
        maq_pass_layers(p, s, p->all_scope, p->dp, true, &layers);
    for (uint32_t k = 0; k < s->n_layers; k++)
        maq_pass_mixer(p, s->layers[k].layer, s->layers[k].count, &one, MAQ_MIXER_WHOLE, &mixers);
    return (struct nodes){.all = layers.kernels + mixers.kernels, .in_pieces = layers.kernels};
}

/* Of the stage with most. */
static struct nodes most_nodes(const struct maq_deployment *d)
{
    struct nodes most = {0};
    for (uint32_t s = 0; s < d->passes.n_stages; s++) {
        struct nodes n = of_stage(&d->passes, &d->passes.stages[s]);
        if (n.all > most.all)
            most = n;
    }
    return most;
}

/* Numbers of a head's result: of latent attention a latent, which is multiplied behind it. */
static double result_width(const struct maq_layer *layer, const struct maq_attention_geometry *g)
{
    for (uint32_t i = 0; i < layer->n_modules; i++)
        if (layer->modules[i].name && strcmp(layer->modules[i].name, "linear_kv_up_proj") == 0)
            return (double)layer->modules[i].in;
    return g->v_dim;
}

/* Of a token, in the widest attention of a rank, with a sum for each head. */
static double split_bytes(const struct maq_deployment *d)
{
    const struct maq_model *m = &d->job->model;
    double widest = 0, tp = d->job->plan.tp;
    for (uint32_t k = 0; k < m->n_kinds && d->device->arch == MAQ_ARCH_HOPPER; k++)
        for (uint32_t i = 0; i < m->kinds[k].n_modules; i++) {
            const struct maq_attention_geometry *g = &m->kinds[k].modules[i].u.attention;
            if (m->kinds[k].modules[i].kind != MAQ_MODULE_ATTENTION)
                continue;
            double heads = g->heads / tp > 1 ? g->heads / tp : 1,
                   bytes = heads * (result_width(&m->kinds[k], g) + 1) * 4;
            widest = bytes > widest ? bytes : widest;
        }
    return SPLITS * widest;
}

double maq_deployment_graphs_bytes(const struct maq_deployment *d, double widest)
{
    const struct maq_serve_options *o = &d->options;
    const int64_t queries = o->speculation.method != MAQ_DRAFT_NONE ? o->speculation.verified : 1;
    int64_t largest = 0, size = 0, last = 0;
    double decodes = 0, sizes = 0;
    if (o->engine != MAQ_ENGINE_VLLM || maq_engine_release(o->version) < MAQ_VLLM_COUNTS_GRAPHS)
        return 0;
    for (; (size = maq_serve_prefill_graph_size(o, largest + 1)) > largest; largest = size)
        sizes++;
    for (int64_t requests = 1; requests <= o->max_num_seqs; requests++) {
        size = maq_serve_graph_size(o, requests * queries, queries);
        decodes += size > last ? 1 : 0;
        last = size > last ? size : last;
    }
    if (decodes + sizes <= 0)
        return 0;
    const struct nodes n = most_nodes(d);
    double whole = n.all * MAQ_GRAPH_NODE_BYTES, pieces = d->afd ? 0 : n.in_pieces * MAQ_GRAPH_NODE_BYTES,
           pool = (double)largest * ((double)d->job->model.hidden * 2 * 2 + widest);
    return decodes * (whole > LEAST_GRAPH_BYTES ? whole : LEAST_GRAPH_BYTES) + sizes * pieces + pool +
           (double)(largest > last ? largest : last) * split_bytes(d);
}
