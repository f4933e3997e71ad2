/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_copies.h - when copies between a tree of prefixes and host memory are over, and what they delay: SGLang's HiCache (serve/kv/radix_host.h).
 *
 *   GPU --write--> host   begins when all that was launched before has left the GPU, since an iteration under way may still fill what is read
 *   GPU <--load--- host   the same; the prefill for which it is goes on at once, and each of its layers waits for what is loaded for that layer
 *
 * Each GPU copies its part over its own link, each direction by itself, one after another in the order in which they began. With n tokens of b bytes on
 * the GPU that has the most of a token, a copy takes n b / rate. A stage of L layers that starts at t and runs for r seconds by itself, beside a load
 * from f to u, is done when its last layer is:
 *
 *   max(t + r, f + (u - f) / L + r, u + r / L)
 *
 * the three being: nobody waits; the first layer waits and the others do not; the last layer waits. Layers are taken to be alike.
 *
 * That a copy is over is seen when the next iteration is decided. What is copied as it is evicted (WRITE_BACK) is waited for by the host.
 *
 * SGLang 0.5.23: managers/cache_controller.py (start_writing, start_loading, their fences on the stream that computes), mem_cache/l2_transfer.py (a layer
 * after another), mem_cache/unified_radix_cache.py (check_hicache_events before each decision; writing_check(write_back=True)).
 */
#ifndef MAQ_SERVE_ENGINE_HOST_COPIES_H
#define MAQ_SERVE_ENGINE_HOST_COPIES_H

#include <stdbool.h>
#include <stdint.h>

struct maq_serve_engine;

/* A direction of the links of a rank's GPUs: when each copy that is under way is over, the oldest first. */
struct maq_copy_line {
    double *done_s; /* [n] */
    uint32_t n, size;
    double free_s;
};

/* Of one rank. */
struct maq_rank_copies {
    struct maq_copy_line writes, loads;
    int64_t written_back; /* tokens, that the clock has waited for */
};
void maq_rank_copies_fini(struct maq_rank_copies *c);

/* What the next iteration loads: its layers wait for it. from_s = until_s: nothing. */
struct maq_layer_load {
    double from_s, until_s;
    double waited_s; /* of the one that was launched last, by its slowest stage */
};

/* What is over by now is told to the schedulers; false: nothing was. */
bool maq_copies_hear(struct maq_serve_engine *e);
/* Schedulers have decided, or an iteration has ended: copies that began. The clock waits for what was copied as it was evicted. */
void maq_copies_begun(struct maq_serve_engine *e);
/* When one is over next; infinity: none is under way. */
double maq_copies_next_s(const struct maq_serve_engine *e);
/* When a stage is done that starts at start_s and runs for runs_s by itself. */
double maq_copies_layers_s(struct maq_serve_engine *e, uint32_t stage, double start_s, double runs_s);

#endif
