/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compiled_lengths.h - which numbers of tokens an engine's process has compiled kernels for.
 *
 * A kernel that has the number of tokens as a constant is compiled when a prefill of so many comes for the first time, and the pass waits
 * (struct maq_pass_stage). The process begins with none, or, with the option `warm`, with all: one that has served for long.
 */
#ifndef MAQ_SERVE_ENGINE_COMPILED_LENGTHS_H
#define MAQ_SERVE_ENGINE_COMPILED_LENGTHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct maq_serve_engine;

/* Of one rank of attention data parallelism: a bit for each number of tokens. */
struct maq_compiled_lengths {
    uint64_t *bits;
    uint32_t n_words;
};

void maq_compiled_lengths_fini(struct maq_compiled_lengths *c);
/* Whether a batch that is about to be launched is the first of its length on its rank, in e->compiles: all ranks wait for it. */
void maq_compiles_launch(struct maq_serve_engine *e);
/* Seconds that a stage waits for the compiler in the next iteration. */
double maq_compile_s(const struct maq_serve_engine *e, uint32_t stage);

#endif
