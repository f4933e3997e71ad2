/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offloaded_update.c - the update of what the optimizer keeps on the host or on NVMe.
 *
 * Of P parameters of a rank a share f is updated by the CPU, gradients of g bytes, optimizer states of o (Adam: 12 with a master weight, else
 * 8 and the parameter's 4), weights of w:
 *
 *   down     f P g         gradients, where they are not there yet (parameters on the host: they went down behind their reductions; then
 *                          what the device updates comes up, (1 - f) P g)
 *   update   f P (g + 2 o + w) / stream
 *                          gradient read, states read and written, the weight in 16 bits written; and 8 bytes more where clipping is the
 *                          host's, too. `stream` is the rank's part of what the host's memory streams (cluster/host_cpu.c); cores are
 *                          enough for that. With gradients of 2 bytes and Adam 28 bytes
 *   up       f P w         weights, unless they stay; those that the device updates go down then
 *
 * On NVMe (ZeRO-Infinity: Rajbhandari et al., arXiv 2104.07857; DeepSpeed 0.19.6, runtime/swap_tensor/partitioned_optimizer_swapper.py and
 * pipelined_optimizer_swapper.py) gradients in 4 bytes are written first, and states and gradients are read, updated and written tile by
 * tile of sub_group_size parameters: one after the other, or reading the next and writing the last while one is updated (pipeline_read,
 * pipeline_write). With k tiles that read for r, update for u and write for v, each of a tile:
 *
 *   k (r + u + v);   read ahead: r + (k - 1) max(r, u + v) + u + v;   written behind: r + u + (k - 1) max(r + u, v) + v;
 *   both: r + u + v + (k - 1) max(r, u, v)
 *
 * Parameters on NVMe are written at w bytes behind their update. Writing of gradients may begin under the last backward pass in DeepSpeed, as
 * far as its buffers go; here it does not.
 */
#include "train/step/offloaded_update.h"

#include <math.h>

#include "train/step/dp_comm.h"

#define WIDE 4.0 /* gradients that the CPU's optimizer reads, where they wait in fewer bytes */

double maq_tiled_update_s(double tiles, double read_s, double update_s, double write_s, bool reads_ahead,
                          bool writes_behind)
{
    const double r = read_s / tiles, u = update_s / tiles, v = write_s / tiles, rest = tiles - 1;
    if (reads_ahead && writes_behind)
        return r + u + v + rest * fmax(r, fmax(u, v));
    if (reads_ahead)
        return r + u + v + rest * fmax(r, u + v);
    if (writes_behind)
        return r + u + v + rest * fmax(r + u, v);
    return read_s + update_s + write_s;
}

static double over(double bytes, double bps)
{
    return bps > 0 ? bytes / bps : 0;
}

/* From NVMe and back again; gradients are written before the first tile is read. */
static double from_nvme_s(const struct maq_blueprint *bp, const struct maq_offloaded_update *u, double params,
                          double update_s)
{
    const struct maq_plan *p = &bp->job->plan;
    const struct maq_device *d = bp->items->device;
    const double tiles = fmax(1, ceil(params / p->offload_tile));
    const double read_s = over(params * (u->state + WIDE), d->nvme_read_bps),
                 write_s = over(params * u->state, d->nvme_write_bps);
    return over(params * WIDE, d->nvme_write_bps) +
           maq_tiled_update_s(tiles, read_s, update_s, write_s, p->offload_reads_ahead, p->offload_writes_behind);
}

/* What the CPU does: reading and writing memory, and NVMe around it. */
static double update_s(const struct maq_blueprint *bp, const struct maq_offloaded_update *u, double params)
{
    const struct maq_plan *p = &bp->job->plan;
    const struct maq_device *d = bp->items->device;
    const bool clips = maq_sync_downloads(p);
    const double bytes = params * ((clips ? WIDE : u->grad) + 2 * u->state + u->copied + (clips ? 2 * WIDE : 0));
    const double memory = over(bytes, d->host_stream_bps);
    double s = p->offload_optimizer == MAQ_OFFLOAD_NVME ? from_nvme_s(bp, u, params, memory) : memory;
    if (p->offload_param == MAQ_OFFLOAD_NVME)
        s += over(params * u->shard, d->nvme_write_bps);
    return s;
}

void maq_offloaded_update_put(struct maq_segment_writer *w, const struct maq_blueprint *bp,
                              const struct maq_offloaded_update *u)
{
    const struct maq_plan *p = &bp->job->plan;
    const bool stays = p->offload_param != MAQ_OFFLOAD_NONE, there = maq_sync_downloads(p);
    const double away = u->params * p->optimizer_offload, here = u->params - away;
    if (there && here >= 1)
        maq_segment_join(w, maq_segment_copy(w, here * u->grad, MAQ_STEP_NONE));
    if (away > 0 && !there)
        maq_segment_join(w, maq_segment_copy(w, away * u->grad, MAQ_STEP_NONE));
    const double s = away > 0 ? update_s(bp, u, away) : 0;
    if (s > 0)
        maq_segment_gap(w, s * 1e9);
    if (away > 0 && !stays)
        maq_segment_join(w, maq_segment_copy(w, away * u->low, w->on[MAQ_STREAM_COMPUTE]));
    if (stays && here >= 1) {
        maq_segment_join(w, maq_segment_copy(w, here * u->shard, w->on[MAQ_STREAM_COMPUTE]));
        if (p->offload_param == MAQ_OFFLOAD_NVME)
            maq_segment_gap(w, over(here * u->shard, bp->items->device->nvme_write_bps) * 1e9);
    }
}
