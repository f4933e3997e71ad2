/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx.h - what a launch of a kernel does, read from its PTX: multiply-adds of its tensor cores, and bytes that it reads and writes.
 *
 * Compilers of kernels that run while a program does (Triton) leave the text of the code beside the binary. It is walked, thread by thread, with
 * the arguments of the launch: whole numbers are computed, so that loops run as often as they would and addresses are those that they would be.
 * Numbers in floating point, shared memory and what other threads say are unknown. Where a branch depends on something unknown, the code behind it
 * is walked as well, and a loop is left. Semantics: PTX ISA 9.1, chapters 9 (instructions) and 10 (special registers).
 *
 *     struct vg_ptx *code = vg_ptx_read(text, bytes, "triton_mm");
 *     if (vg_ptx_work(&work, code, &launch)) ... work.flop, work.read, work.written ...
 *
 * Pure functions but for `word`, by which the caller says what memory has. Text of any origin is taken: what cannot be read is no code (NULL).
 */
#ifndef MAQ_SHIM_PTX_H
#define MAQ_SHIM_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vg_ptx;

/* The kernel of that name in a text; owned: vg_ptx_free(). NULL: it is not there, cannot be read, or there is no memory. */
struct vg_ptx *vg_ptx_read(const char *text, size_t bytes, const char *kernel);
void vg_ptx_free(struct vg_ptx *code);
/* How many parameters it has. */
uint32_t vg_ptx_params(const struct vg_ptx *code);

struct vg_ptx_launch {
    uint32_t grid[3], block[3];
    const void *const *param;    /* [vg_ptx_params()] where each parameter is; NULL = unknown */
    const uint32_t *param_bytes; /* [vg_ptx_params()] */
    /* Whether the memory of the device at `address` is known; then *out is its `bytes` (4 or 8). Vectors are not asked for: they are data. NULL:
     * none is. */
    bool (*word)(void *user, uint64_t address, uint32_t bytes, uint64_t *out);
    /* Told of each address that is written by the blocks that are walked, 0 where it is unknown. NULL: nobody wants to know. */
    void (*stored)(void *user, uint64_t address);
    void *user;
};

/* All blocks together. Few blocks of a grid are walked, evenly apart in each of its dimensions, and stand for the others. */
struct vg_ptx_work {
    double flop;          /* of products by tensor cores, 2 for each multiply-add */
    double flop_after;    /* of these, behind the first power of two that the thread computes */
    double exponentials;  /* powers of two */
    double read, written; /* bytes of global memory, each counted once however many threads ask for it */
    bool steered;         /* by what `word` said: with other words it may be another sum */
    uint8_t type;         /* enum maq_rec_type of the products' inputs; MAQ_REC_TYPE_OTHER where there are none */
};
/* false: the walk is too long (VG_PTX_STEPS_MOST instructions of a thread, VG_PTX_STEPS_ALL of all together), or there is no memory. */
enum { VG_PTX_STEPS_MOST = 1 << 22, VG_PTX_STEPS_ALL = 1 << 25 };
bool vg_ptx_work(struct vg_ptx_work *out, const struct vg_ptx *code, const struct vg_ptx_launch *launch);

#endif
