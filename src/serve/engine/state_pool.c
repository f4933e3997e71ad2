/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state_pool.c - memory for the states of recurrent layers, of which a request has one.
 *
 * vLLM and TensorRT-LLM are taken to keep one for each request that can run. SGLang has a pool, and lets no more run than that has room for
 * (model_runner_kv_cache_mixin.py of 0.5.9, kv_cache_configurator.py of 0.5.23):
 *
 *   states    max_running_requests           without a tree of prefixes, where they are said
 *             rest R / (1 + R) / state       else; R = 0.9 (mamba_full_memory_ratio), rest: what weights and all else leave [bytes]
 *   requests  states / k at most             k = 1 without the tree, 3 with it, which keeps a state for the end of each prompt that it knows, and
 *                                            5 from 0.5.14 on, which does so beside iterations that are decided ahead
 */
#include "serve/engine/deployment.h"

#define FULL_RATIO 0.9
#define BESIDE_TREE 3
#define BESIDE_TREE_AHEAD 5

bool maq_serve_keeps_states(const struct maq_model *m)
{
    for (uint32_t k = 0; k < m->n_kinds; k++)
        for (uint32_t i = 0; i < m->kinds[k].n_modules; i++)
            if (maq_pass_is_scan(&m->kinds[k].modules[i]))
                return true;
    return false;
}

double maq_deployment_states(struct maq_deployment *d, double state_bytes, double rest_bytes)
{
    struct maq_serve_options *o = &d->options;
    double states = o->max_num_seqs;
    if (o->engine != MAQ_ENGINE_SGLANG || state_bytes <= 0)
        return state_bytes * states;
    if (o->sglang.requests_by_default || !o->no_prefix_caching)
        states = rest_bytes > 0 ? (double)(int64_t)(rest_bytes * FULL_RATIO / (1 + FULL_RATIO) / state_bytes) : 0;
    int32_t each = o->no_prefix_caching                                         ? 1
                   : maq_engine_release(o->version) < MAQ_SGLANG_STATES_OVERLAP ? BESIDE_TREE
                                                                                : BESIDE_TREE_AHEAD;
    if (states / each < o->max_num_seqs)
        o->max_num_seqs = (int32_t)(states / each);
    return state_bytes * states;
}
