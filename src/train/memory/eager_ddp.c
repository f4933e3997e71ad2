/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eager_ddp.c - what DistributedDataParallel asks PyTorch's allocator for (PyTorch 2.11: torch/nn/parallel/distributed.py,
 * torch/csrc/distributed/c10d/reducer.cpp).
 *
 * It broadcasts the weights in buckets of 250 MiB, two on their way at once. Then it makes one bucket for all gradients, and in front of the
 * second step those of 1 MiB (the first) and 25 MiB in the order in which gradients came; the one before lives until the watchdog of
 * the process group has looked (ProcessGroupNCCL.hpp, kWatchdogThreadSleepMillis, 100 ms): here through the second step. With
 * find_unused_parameters it makes the small ones at once, in the order of the parameters, and keeps them. The Trainer asks for that where
 * nothing is recomputed.
 */
#include "train/memory/eager_program.h"
#include "train/step/ddp.h"

#define MIB (1024.0 * 1024.0)
#define BROADCAST_BYTES (250 * MIB)

/* Two broadcasts are on their way at once. */
struct queue {
    uint32_t on_way[2];
};

static void send(struct maq_eager *r, struct queue *q, double bytes)
{
    maq_eager_give(r, &q->on_way[0]);
    q->on_way[0] = q->on_way[1];
    q->on_way[1] = maq_eager_take(r, MAQ_EAGER_COMPUTE, bytes);
}

/* The weights, flat, as rank 0 has them. Adapters are few enough for one bucket, behind the first of the others. */
static void broadcast(struct maq_eager *r)
{
    struct queue q = {{0, 0}};
    double flat = 0, adapters = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        const struct maq_eager_layer *l = &r->layers[i];
        bool frozen = l->n_frozen > 0;
        adapters += frozen ? maq_eager_params(l) * r->stored : 0;
    }
    for (uint32_t i = 0; i < r->n; i++) {
        const struct maq_eager_layer *l = &r->layers[i];
        bool frozen = l->n_frozen > 0;
        for (uint32_t k = 0; k < (frozen ? l->n_frozen : l->n_params); k++) {
            flat += frozen ? l->frozen[k] * r->store : l->params[k] * r->stored;
            if (flat < BROADCAST_BYTES)
                continue;
            send(r, &q, flat);
            if (adapters > 0)
                send(r, &q, adapters);
            flat = adapters = 0;
        }
    }
    send(r, &q, flat);
    if (adapters > 0)
        send(r, &q, adapters);
    maq_eager_give(r, &q.on_way[0]);
    maq_eager_give(r, &q.on_way[1]);
}

struct sizes {
    double bytes, limit, usual;
};

/* A bucket is full with the parameter that brings it to its limit. Returns its bytes then, else 0. */
static double add_to_bucket(struct sizes *s, double bytes)
{
    s->bytes += bytes;
    if (s->bytes < s->limit)
        return 0;
    double full = s->bytes;
    *s = (struct sizes){0, s->usual, s->usual};
    return full;
}

static void small_buckets(struct maq_eager *r, bool backward)
{
    const struct maq_job *job = r->bp->job;
    struct sizes s = {0, maq_ddp_first_bucket_bytes(job), maq_ddp_bucket_bytes(job)};
    for (uint32_t i = 0; i < r->n; i++) {
        const struct maq_eager_layer *l = &r->layers[backward ? r->n - 1 - i : i];
        for (uint32_t k = 0; k < l->n_params; k++) {
            double params = l->params[backward ? l->n_params - 1 - k : k];
            maq_eager_hold(r, &r->buckets, add_to_bucket(&s, params * maq_eager_grad_bytes(r)));
        }
    }
    maq_eager_hold(r, &r->buckets, s.bytes);
}

void maq_eager_ddp_wrap(struct maq_eager *r)
{
    double all = 0;
    if (r->bp->job->groups[MAQ_GROUP_SHARD].size <= 1)
        return;
    broadcast(r);
    for (uint32_t i = 0; i < r->n; i++)
        all += maq_eager_params(&r->layers[i]);
    if (maq_ddp_finds_unused(r->bp->job))
        small_buckets(r, false);
    else
        r->bucket = maq_eager_take(r, MAQ_EAGER_COMPUTE, all * maq_eager_grad_bytes(r));
}

void maq_eager_ddp_begin(struct maq_eager *r, int step)
{
    if (step == 1 && r->bucket != 0)
        small_buckets(r, true);
}

void maq_eager_ddp_end(struct maq_eager *r, int step)
{
    if (step == 1)
        maq_eager_give(r, &r->bucket);
}
