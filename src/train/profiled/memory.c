/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - memory of a device in a mixed plan, from the profile's sizes; FP32 as the profile is.
 *
 *     weights 4, gradients 4 and Adam's moments 8 bytes per parameter; the flat copy of the gradients that DeepSpeed reduces 4; the
 *     copy of the model that DeepSpeed makes and the allocator keeps 4 (both named by Sailor's footprint model). ZeRO divides the
 *     moments (optim) and the gradients (optim_grads) by the replicas.
 *   + micro batches in flight x (activations of the layers, and the stage's input, which pipe buffers keep whole on every TP rank).
 *     A recomputed layer keeps its input instead
 *   + the largest passing need of a layer, on top of what is kept: gradients of its output and input, and for unfused attention the
 *     gradients of the scores before and after the softmax, 2 x heads / TP x sequence^2 (with what was trained at hand); a
 *     recomputed layer's activations
 *   + what the driver counts and the allocator does not: context, kernels, communicators. Figures are Sailor's: 2 GB without and
 *     3 GB with TP (`check_config_fits`: "shown in nvidia-smi, but not as part of torch mem"), 4.76 GB on its GH200 nodes
 *     (Megatron's fused kernels; "depends on GPU + platform").
 *
 * Nothing here is fitted to the executed plans.
 */
#include <string.h>

#include "train/profiled/profiled.h"

#define FLOAT_BYTES 4.0
#define OUTSIDE_BYTES 2e9
#define OUTSIDE_TP_BYTES 3e9

static const struct {
    const char *device;
    double outside_bytes;
} platforms[] = {{"GH-96", 4.76e9}};

static double outside_allocator(const char *device, uint32_t tp)
{
    for (size_t i = 0; tp > 1 && i < sizeof platforms / sizeof platforms[0]; i++)
        if (strcmp(device, platforms[i].device) == 0)
            return platforms[i].outside_bytes;
    return tp > 1 ? OUTSIDE_TP_BYTES : OUTSIDE_BYTES;
}

static double bytes_per_parameter(const struct maq_mixed_stage *s)
{
    double n = s->n_replicas;
    return 4 + 4 + 4 + (s->sharding >= MAQ_SHARDING_GRADS ? 4 / n : 4) +
           (s->sharding >= MAQ_SHARDING_OPTIM ? 8 / n : 8);
}

/* Elements per sequence that a layer needs for a moment of its backward pass. */
static double passing(const struct maq_bound_plan *b, const struct maq_bound_replica *r, uint32_t layer)
{
    const struct maq_profile_dir_training *t = maq_profile_dir_training(b->profile, b->model);
    bool transformer = layer > 0 && layer + 1 < b->plan->layers;
    double scores = transformer ? (double)t->heads / r->plan->tp * t->sequence * t->sequence : 0;
    return 2 * r->sizes[layer].output + 2 * scores;
}

double maq_mixed_memory(const struct maq_bound_plan *b, uint32_t pipeline, uint32_t stage, uint32_t replica,
                        uint32_t in_flight)
{
    const struct maq_bound_stage *bound = &b->pipelines[pipeline].stages[stage];
    const struct maq_mixed_stage *s = bound->plan;
    const struct maq_bound_replica *r = &bound->replicas[replica];
    uint32_t end = s->first_layer + s->layers, again = s->first_layer;
    double kept = s->first_layer > 0 ? b->whole[s->first_layer - 1].output : 0, most = 0;
    if (s->recompute == MAQ_RECOMPUTE_FULL)
        again += s->recompute_layers > 0 ? s->recompute_layers : s->layers;
    for (uint32_t l = s->first_layer; l < end; l++) {
        double extra = passing(b, r, l);
        if (l < again) {
            kept += l > s->first_layer ? r->sizes[l - 1].output : 0;
            extra += r->sizes[l].activations;
        } else {
            kept += r->sizes[l].activations;
        }
        most = extra > most ? extra : most;
    }
    return maq_bound_parameters(s, r->sizes) * bytes_per_parameter(s) +
           (kept * in_flight + most) * FLOAT_BYTES * b->plan->micro_batch +
           outside_allocator(maq_profile_dir_device(b->profile, r->members[0].at.device)->name, r->plan->tp);
}
