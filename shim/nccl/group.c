/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group.c - groups: what a thread collects between ncclGroupStart and ncclGroupEnd, and what becomes of it.
 *
 * Communicators first: all of them put into their exchanges what they have, then all of them wait. Then the operations of
 * each communicator are one kernel, in the order in which communicators appear, as NCCL launches them; parts that are on
 * another stream than the first are on their own stream here and end with their own meeting.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/grow.h"
#include "shim/nccl/comm.h"
#include "shim/nccl/gather_guess.h"

static _Thread_local struct {
    int depth, error;
    struct vg_part *parts;
    uint32_t n_parts, parts_room;
    struct vg_comm_job *jobs;
    uint32_t n_jobs, jobs_room;
} group;

static int keep(int result)
{
    if (group.error == VG_NCCL_SUCCESS)
        group.error = result;
    return result;
}

/* --- jobs ------------------------------------------------------------------------------------------------------------- */

/* error: what was wrong before; then all of them come to nothing. */
static int run_jobs(struct vg_comm_job *jobs, uint32_t n, int error)
{
    for (uint32_t i = 0; i < n && error == VG_NCCL_SUCCESS; i++)
        error = jobs[i].begin(&jobs[i]);
    for (uint32_t i = 0; i < n && error == VG_NCCL_SUCCESS; i++) {
        error = jobs[i].end(&jobs[i]);
        jobs[i].ended = error == VG_NCCL_SUCCESS;
    }
    for (uint32_t i = 0; i < n; i++)
        if (!jobs[i].ended && jobs[i].drop)
            jobs[i].drop(&jobs[i]);
    return error;
}

int vg_group_job(const struct vg_comm_job *job)
{
    struct vg_comm_job now = *job;
    if (!group.depth) {
        return run_jobs(&now, 1, VG_NCCL_SUCCESS);
    }
    struct vg_comm_job *jobs = vg_grown(group.jobs, group.n_jobs, &group.jobs_room, 16, sizeof *jobs);
    if (!jobs)
        return keep(VG_NCCL_SYSTEM_ERROR);
    group.jobs = jobs;
    group.jobs[group.n_jobs++] = now;
    return VG_NCCL_SUCCESS;
}

/* --- operations ------------------------------------------------------------------------------------------------------- */

static bool is_broadcast(const struct vg_part *p)
{
    return p->m.rec.kind == MAQ_REC_COLL && MAQ_REC_COLL_KIND(p->m.rec.id) == MAQ_REC_BROADCAST;
}

/* What one part of a gather brings from that member: nothing is known of it but by what it said, or by what others did. */
static void suppose(struct vg_part *p, const struct vg_gather_guess *g, uint32_t place)
{
    const unsigned char *guess = g->said[place] ? NULL : vg_gather_guess_of(g, place);
    if (guess && vg_mem_touch(p->out, g->bytes))
        memcpy(p->out, guess, g->bytes);
    p->m.supposed = !(g->type == MAQ_REC_U8 && vg_is_sample(g->n, place));
}

/* The same operation on as many bytes, from whichever member. */
static bool is_like(const struct vg_part *p, const struct vg_part *like)
{
    const struct maq_rec *a = &p->m.rec, *b = &like->m.rec;
    return a->kind == b->kind && a->id == b->id && a->bytes == b->bytes && a->arg < like->comm->n &&
           !vg_stream_capturing(p->stream);
}

static const void *said_by(const struct vg_part *p)
{
    return p->in && p->m.rec.arg == p->comm->me ? p->in : vg_payload_said(&p->m, is_broadcast(p) ? p->m.rec.arg : 0);
}

/* The gather that parts are which are like one of them: what its members have said is looked up, and then the rest is supposed. */
static void guess_gather(struct vg_part *parts, uint32_t n, const struct vg_part *like)
{
    struct vg_gather_guess g;
    const bool open = vg_gather_guess_open(&g, like->comm->n, like->m.rec.bytes, MAQ_REC_COLL_TYPE(like->m.rec.id));
    for (uint32_t i = 0; i < n && open; i++)
        if (is_like(&parts[i], like))
            g.said[parts[i].m.rec.arg] = said_by(&parts[i]);
    if (open)
        vg_gather_guess_settle(&g);
    for (uint32_t i = 0; i < n && open; i++)
        if (is_like(&parts[i], like) && parts[i].m.rec.arg != like->comm->me)
            suppose(&parts[i], &g, parts[i].m.rec.arg);
    vg_gather_guess_close(&g);
}

/*
 * Broadcasts of one size from one member after the other, in one group, are an all-gather into buffers that lie apart
 * (PyTorch writes it so).
 */
static void suppose_broadcast(struct vg_part *parts, uint32_t n)
{
    const struct vg_part *own = NULL;
    for (uint32_t i = 0; i < n && !own; i++)
        if (is_broadcast(&parts[i]) && parts[i].m.rec.arg == parts[i].comm->me && !vg_stream_capturing(parts[i].stream))
            own = &parts[i];
    if (own && n > 1 && vg_payload_carries(&own->m, own->in) && vg_mem_touch(own->in, own->m.rec.bytes))
        guess_gather(parts, n, own);
}

static bool is_received(const struct vg_part *p)
{
    return p->m.rec.kind == MAQ_REC_RECV && !vg_stream_capturing(p->stream);
}

/*
 * Messages from several members, and none to them, are a gather: of it the first member alone is asked for, or samples are. With messages both ways
 * they are an all-to-all, of which no member is asked for by himself.
 */
static void suppose_received(struct vg_part *parts, uint32_t n)
{
    struct vg_part *first = NULL;
    uint32_t received = 0, sent = 0;
    for (uint32_t i = 0; i < n; i++) {
        received += is_received(&parts[i]);
        sent += parts[i].m.rec.kind == MAQ_REC_SEND;
        first = first || !is_received(&parts[i]) ? first : &parts[i];
    }
    for (uint32_t i = 0; i < n && received > 1; i++)
        parts[i].m.supposed = parts[i].m.supposed || is_received(&parts[i]);
    if (first && received > 1 && sent == 0) {
        guess_gather(parts, n, first);
        first->m.supposed = false;
    }
}

/* The parts of one communicator, in order, as one kernel. */
static int launch(struct vg_part *parts, uint32_t n)
{
    if (!vg_buffers_connect(parts[0].comm, parts, n))
        return VG_NCCL_CUDA_ERROR;
    struct vg_meeting *meetings = malloc(n * sizeof *meetings);
    struct vg_stream **streams = malloc(n * sizeof *streams);
    bool ok = meetings && streams;
    if (ok)
        vg_price(parts, n);
    vg_lock();
    for (uint32_t i = 0; ok && i < n; i++)
        if (!vg_stream_capturing(parts[i].stream))
            vg_meeting_name(&parts[i].m);
    suppose_broadcast(parts, n);
    suppose_received(parts, n);
    for (uint32_t i = 0; ok && i < n; i++) {
        streams[i] = parts[i].stream;
        parts[i].m.send = parts[i].in;
        parts[i].m.receive = parts[i].out;
        if (!vg_stream_capturing(parts[i].stream)) {
            vg_payload_begin(&parts[i].m, parts[i].in, parts[i].out);
        }
        meetings[i] = parts[i].m;
    }
    if (ok) {
        vg_host(vg_card()->launch_ns);
        vg_enqueue_group(streams, meetings, n);
    }
    vg_unlock();
    free(meetings);
    free(streams);
    return ok ? VG_NCCL_SUCCESS : VG_NCCL_SYSTEM_ERROR;
}

/* Stable: parts of one communicator stand together, in the order in which the communicators came. */
static int launch_all(struct vg_part *parts, uint32_t n)
{
    int error = VG_NCCL_SUCCESS;
    struct vg_part *of_one = malloc(n * sizeof *of_one);
    unsigned char *gone = calloc(1, n);
    for (uint32_t i = 0; of_one && gone && i < n && error == VG_NCCL_SUCCESS; i++) {
        uint32_t count = 0;
        for (uint32_t k = i; k < n && !gone[i]; k++)
            if (parts[k].comm == parts[i].comm && (k == i || !gone[k])) {
                of_one[count++] = parts[k];
                gone[k] = k != i;
            }
        if (count)
            error = launch(of_one, count);
    }
    if (!of_one || !gone)
        error = VG_NCCL_SYSTEM_ERROR;
    free(of_one);
    free(gone);
    return error;
}

int vg_group_add(const struct vg_part *part)
{
    struct vg_part now = *part;
    vg_drive();
    vg_call();
    if (!group.depth)
        return launch(&now, 1);
    struct vg_part *parts = vg_grown(group.parts, group.n_parts, &group.parts_room, 16, sizeof *parts);
    if (!parts)
        return keep(VG_NCCL_SYSTEM_ERROR);
    group.parts = parts;
    group.parts[group.n_parts++] = now;
    return VG_NCCL_SUCCESS;
}

int vg_group_refuse(int error)
{
    return group.depth ? keep(error) : error;
}

/* --- start and end ---------------------------------------------------------------------------------------------------- */

NCCL_API(int, ncclGroupStart, void);
int ncclGroupStart(void)
{
    group.depth++;
    return VG_NCCL_SUCCESS;
}

static int end(void)
{
    int error = run_jobs(group.jobs, group.n_jobs, group.error);
    if (error == VG_NCCL_SUCCESS && group.n_parts)
        error = launch_all(group.parts, group.n_parts);
    group.n_jobs = group.n_parts = 0;
    group.error = VG_NCCL_SUCCESS;
    return error;
}

NCCL_API(int, ncclGroupEnd, void);
int ncclGroupEnd(void)
{
    if (group.depth == 0)
        return VG_NCCL_INVALID_USAGE;
    return --group.depth == 0 ? end() : VG_NCCL_SUCCESS;
}

/* What the group would take: its communicators' kernels one after another. Nothing is launched. */
NCCL_API(int, ncclGroupSimulateEnd, struct vg_nccl_sim_info *info);
int ncclGroupSimulateEnd(struct vg_nccl_sim_info *info)
{
    if (group.depth == 0)
        return VG_NCCL_INVALID_USAGE;
    if (--group.depth)
        return VG_NCCL_SUCCESS;
    uint64_t longest = 0;
    vg_price(group.parts, group.n_parts);
    for (uint32_t i = 0; i < group.n_parts; i++) {
        uint64_t ns = 0; /* of this communicator's collectives, up to here */
        for (uint32_t k = 0; k <= i; k++)
            if (k == i || (group.parts[k].comm == group.parts[i].comm && group.parts[k].m.rec.kind == MAQ_REC_COLL &&
                           group.parts[i].m.rec.kind == MAQ_REC_COLL))
                ns += group.parts[k].m.rec.ns;
        longest = ns > longest ? ns : longest;
    }
    group.n_parts = 0;
    int error = end();
    if (info && info->magic == VG_NCCL_SIM_MAGIC)
        info->estimated_us = (float)longest / 1000.0f;
    return error;
}
