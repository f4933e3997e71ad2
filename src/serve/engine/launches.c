/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launches.c - how the kernels of a pass reach the device, and how long that keeps the host.
 *
 *   GRAPH       all of it is one CUDA graph: decodes alone, up to the largest size that there is a graph of
 *   PIECES      CUDA graphs that end at every attention, which is launched by itself: prefills of vLLM (0.11 on, cudagraph_mode
 *               FULL_AND_PIECEWISE) up to its largest size, from 0.8 to 0.10 its decodes as well (PIECEWISE), and prefills of SGLang from 0.5.10 on
 *               up to a chunk
 *   COMPILED    kernel by kernel out of what torch.compile wrote: passes of vLLM that no graph holds, from 0.8 on, where its first engine ended
 *   EAGER       kernel by kernel out of the model's Python: prefills of vLLM before 0.8, of SGLang before 0.5.10 and of TensorRT-LLM's PyTorch back
 *               end, and whatever is without graphs by option
 *
 *   COMPILED, EAGER   pass + kernels * kernel(mode) + layers of experts * experts     [s]
 *   PIECES            pass + layers * piece + kernels between the pieces beyond an attention's * kernel(EAGER)
 *   GRAPH             graph
 *
 * Where attention and FFN are on GPUs of their own there are graphs of decodes alone, of all micro-batches together (vllm-project/afd-plugin:
 * FULL_DECODE_ONLY); else each micro-batch is a pass, and either side has a host of its own.
 *
 * The device waits for what that is beyond its own time: most passes over few tokens of a model of many layers are the host's.
 */
#include "serve/engine/batch.h"

struct maq_batch_launch maq_batch_launch(const struct maq_deployment *d, int64_t tokens, uint32_t prompts,
                                         int64_t queries)
{
    const struct maq_serve_options *o = &d->options;
    int64_t size = prompts > 0 ? maq_serve_prefill_graph_size(o, tokens) : maq_serve_graph_size(o, tokens, queries);
    int32_t release = maq_engine_release(o->version);
    bool pieces = prompts > 0 ||
                  (o->engine == MAQ_ENGINE_VLLM && release >= MAQ_VLLM_COMPILED && release < MAQ_VLLM_WHOLE_GRAPHS);
    if (size > 0 && !(pieces && o->afd.ffn_ranks > 0))
        return (struct maq_batch_launch){pieces ? MAQ_LAUNCH_MODE_PIECES : MAQ_LAUNCH_MODE_GRAPH, size};
    return (struct maq_batch_launch){maq_launch_without_graph(o), tokens};
}

enum maq_launch_mode maq_launch_without_graph(const struct maq_serve_options *o)
{
    bool compiled =
        o->engine == MAQ_ENGINE_VLLM && !o->enforce_eager && maq_engine_release(o->version) >= MAQ_VLLM_COMPILED;
    return compiled ? MAQ_LAUNCH_MODE_COMPILED : MAQ_LAUNCH_MODE_EAGER;
}

/*
 * What Python takes for the experts of a pass: their kernels one by one, or one call into a library behind the same classes. Both were measured of
 * vLLM; other engines and other types of weights are taken to be as slow. On Blackwell router and experts
 * are one call in a piece, and nothing is counted for them.
 */
static double experts_s(const struct maq_deployment *d, const struct maq_passes *p, uint32_t stage)
{
    const struct maq_host_profile *h = &d->host;
    double call_s = p->device->arch < MAQ_ARCH_BLACKWELL ? h->library_experts_s : 0;
    return p->stages[stage].routed * (p->experts_by_python ? h->experts_s : call_s);
}

/* `depth` layers in `passes` passes, on the reference host. */
static double launch_s(const struct maq_host_profile *h, enum maq_launch_mode mode, double passes, double depth,
                       const struct maq_pass_parts *launched, double all_experts_s)
{
    switch (mode) {
    case MAQ_LAUNCH_MODE_GRAPH:
        return h->graph_s;
    case MAQ_LAUNCH_MODE_PIECES:
        return h->pass_s * passes + depth * h->piece_s + launched->between * h->eager_s;
    case MAQ_LAUNCH_MODE_COMPILED:
        return h->pass_s * passes + launched->kernels * h->compiled_s + all_experts_s;
    case MAQ_LAUNCH_MODE_EAGER:
        return h->pass_s * passes + launched->kernels * h->eager_s + all_experts_s;
    }
    return 0;
}

double maq_launch_s(const struct maq_deployment *d, enum maq_launch_mode mode, const struct maq_passes *p,
                    uint32_t stage, const struct maq_pass_parts *parts)
{
    double s = launch_s(&d->host, mode, 1, p->stages[stage].depth, parts, experts_s(d, p, stage));
    return s / maq_device_host_speed(d->device);
}

double maq_launch_sides_s(const struct maq_deployment *d, enum maq_launch_mode mode, const struct maq_afd_pass *pass)
{
    const struct maq_afd *a = d->afd;
    double n = pass->micro_batches, layers_s = 0;
    for (uint32_t k = 0; k < a->n_kinds; k++)
        layers_s += a->layers_of[k] * experts_s(d, &a->ffn, k);
    double attention = launch_s(&d->host, mode, n, 0, &pass->attention, 0) / maq_device_host_speed(d->device),
           ffn = launch_s(&d->host, mode, n, 0, &pass->ffn, n * layers_s) / maq_device_host_speed(a->ffn.device);
    return attention > ffn ? attention : ffn;
}
