/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer_time.c - the time of a layer on a replica, from the profile.
 *
 * The profile's times lie between two CUDA events that the profiler records around a layer, with full backward hooks on it. Where the
 * device is slower than the host, that is the layer's time. Where the host is slower (few tokens, many ranks), it is the host's time,
 * and then the profiler's own calls are in it: PyTorch wraps the inputs and the outputs of a hooked module in an operator each, which
 * has a forward and a backward half, and two events are recorded. So
 *
 *     t = max(t' - 2 operator - 2 launch, t'(2m) / 2)       where t'(2m) < 1.5 t'(m), launch-bound
 *     t = t'                                                 elsewhere
 *
 * with t'(m) the profiled time at micro batch m and the host times of the library's default framework profile (docs/frameworks.md: 62 and
 * 47 us per forward and backward operator, 12 us per launch). Half of what twice the batch takes bounds the device's part from below.
 *
 * A tensor-parallel group over several nodes or kinds of device was not profiled as such. Its members work at the pace of the slowest,
 * each on 1 / TP of the layer: its time with TP over its own devices d, times d / TP; and all-reduces cross the slowest link among them,
 * one per pass of the embedding, two of a transformer layer.
 */
#include "base/check.h"
#include "plan/framework.h"
#include "train/profiled/profiled.h"

#define LAUNCH_BOUND 1.5 /* twice the work in less than this much of the time */
#define FLOAT_BYTES 4.0

double maq_mixed_group_sync_s(const struct maq_bound_plan *b, const struct maq_bound_replica *r, uint32_t layer)
{
    uint32_t transformers =
        b->plan->layers - 2; /* Sailor counts its last layers by this number: two of them stay without */
    double bytes = b->whole[0].output * FLOAT_BYTES * b->plan->micro_batch;
    const struct maq_link_fit *slowest = NULL;
    if (r->plan->n_members == 1 || layer + 1 >= transformers)
        return 0;
    for (uint32_t i = 0; i < r->plan->n_members; i++) {
        const struct maq_link_fit *link = maq_profile_dir_link(b->profile, r->members[i].at, r->members[i].at);
        MAQ_ASSERT(link);
        if (!slowest ||
            maq_link_bytes_per_s(link, bytes / r->plan->tp) < maq_link_bytes_per_s(slowest, bytes / r->plan->tp))
            slowest = link;
    }
    return (layer == 0 ? 1 : 2) * maq_link_ring_s(slowest, bytes, r->plan->tp);
}

static double without_hooks(double profiled, const struct maq_layer_time *twice, double twice_s, double hooks_s)
{
    if (!twice || twice_s >= LAUNCH_BOUND * profiled)
        return profiled;
    double host = profiled - hooks_s;
    return host > twice_s / 2 ? host : twice_s / 2;
}

/* A layer on a member, whole replica's worth of it. */
static struct maq_mixed_pass layer_time(const struct maq_bound_plan *b, const struct maq_bound_replica *r,
                                        const struct maq_bound_member *m, uint32_t layer)
{
    const struct maq_host_costs *host = &maq_framework_default.host;
    const struct maq_layer_time *t = &m->times[layer];
    const struct maq_layer_time *twice =
        maq_profile_dir_times(b->profile, b->model, m->at.device, 2 * b->plan->micro_batch, m->at.n);
    double share = r->plan->n_members > 1 ? (double)m->at.n / r->plan->tp : 1;
    return (struct maq_mixed_pass){
        .forward_s = share * without_hooks(t->forward_s, twice, twice ? twice[layer].forward_s : 0,
                                           2 * (host->forward_s + host->kernel_s)),
        .backward_s = share * without_hooks(t->backward_s, twice, twice ? twice[layer].backward_s : 0,
                                            2 * (host->backward_s + host->kernel_s))};
}

void maq_mixed_pass_time(struct maq_mixed_pass *out, const struct maq_bound_plan *b, const struct maq_bound_stage *s,
                         const struct maq_bound_replica *r)
{
    uint32_t end = s->plan->first_layer + s->plan->layers, again = s->plan->first_layer;
    if (s->plan->recompute == MAQ_RECOMPUTE_FULL)
        again += s->plan->recompute_layers > 0 ? s->plan->recompute_layers : s->plan->layers;
    *out = (struct maq_mixed_pass){0};
    for (uint32_t l = s->plan->first_layer; l < end; l++) {
        struct maq_mixed_pass layer = {0};
        for (uint32_t i = 0; i < r->plan->n_members; i++) {
            struct maq_mixed_pass one = layer_time(b, r, &r->members[i], l);
            layer.forward_s = one.forward_s > layer.forward_s ? one.forward_s : layer.forward_s;
            layer.backward_s = one.backward_s > layer.backward_s ? one.backward_s : layer.backward_s;
        }
        double sync = maq_mixed_group_sync_s(b, r, l);
        out->forward_s += layer.forward_s + sync;
        out->backward_s += layer.backward_s + sync + (l < again ? layer.forward_s + sync : 0);
    }
}
