/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timing.c - launches and how long they take.
 *
 * A kernel of some microseconds ends before the host has launched the next one. So every batch begins with a kernel
 * that does nothing for as long as the host needs to queue the batch: from then on the device never waits, and the
 * time between two events around a launch is the kernel's own, with about a microsecond for the events themselves.
 *
 * Cold: between two launches twice the last-level cache is overwritten. That empties it of the operands and is what the
 * operators around a kernel do to it in a training step.
 */
#include <string.h>

#include "measure/cuda/cuda_backend.h"
#include "measure/cuda/kernels.h"

#define QUEUE_NS 40000ull /* of the host, for one launch with its events and the overwriting: an ample assumption */

/* Other GPUs of a collective work on streams of their own: state->stream waits for all of them. */
static bool launch_one(struct maq_cuda *s, bool cold, uint32_t i)
{
    if (cold &&
        !maq_cuda_good(s, cudaMemsetAsync(s->flush, (int)(i & 0xff), s->flush_bytes, s->stream), "emptying the cache"))
        return false;
    return maq_cuda_good(s, cudaEventRecord(s->begin[i], s->stream), "an event") && s->launch(s) &&
           maq_cuda_good(s, cudaEventRecord(s->end[i], s->stream), "an event");
}

static bool run_batch(struct maq_cuda *s, bool cold, uint32_t n, double *seconds)
{
    maq_cuda_spin(s->stream, n * QUEUE_NS);
    for (uint32_t i = 0; i < n; i++)
        if (!launch_one(s, cold, i))
            return false;
    if (!maq_cuda_good(s, cudaStreamSynchronize(s->stream), "the kernel"))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        float ms = 0;
        if (!maq_cuda_good(s, cudaEventElapsedTime(&ms, s->begin[i], s->end[i]), "an event"))
            return false;
        seconds[i] = (double)ms * 1e-3;
    }
    return true;
}

static bool done(struct maq_cuda *s, bool good, char why[MAQ_PROFILE_WHY])
{
    if (!good)
        memcpy(why, s->why, MAQ_PROFILE_WHY);
    return good;
}

bool maq_cuda_run(void *state, bool cold, uint32_t n, double *seconds, char why[MAQ_PROFILE_WHY])
{
    struct maq_cuda *s = state;
    bool good = true;
    for (uint32_t from = 0; from < n && good; from += MAQ_CUDA_LAUNCHES) {
        uint32_t count = n - from < MAQ_CUDA_LAUNCHES ? n - from : MAQ_CUDA_LAUNCHES;
        good = run_batch(s, cold, count, seconds + from);
    }
    return done(s, good, why);
}

bool maq_cuda_run_on(void *state, uint32_t n, double *seconds, char why[MAQ_PROFILE_WHY])
{
    struct maq_cuda *s = state;
    float ms = 0;
    maq_cuda_spin(s->stream, QUEUE_NS * (n < MAQ_CUDA_LAUNCHES ? n : MAQ_CUDA_LAUNCHES));
    bool good = maq_cuda_good(s, cudaEventRecord(s->begin[0], s->stream), "an event");
    for (uint32_t i = 0; i < n && good; i++)
        good = s->launch(s);
    good = good && maq_cuda_good(s, cudaEventRecord(s->end[0], s->stream), "an event") &&
           maq_cuda_good(s, cudaStreamSynchronize(s->stream), "the kernel") &&
           maq_cuda_good(s, cudaEventElapsedTime(&ms, s->begin[0], s->end[0]), "an event");
    *seconds = (double)ms * 1e-3;
    return done(s, good, why);
}
