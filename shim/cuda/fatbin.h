/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fatbin.h - reads the parameters of kernels from code that a program carries: fat binaries and cubins.
 *
 * Pure functions over bytes of any origin; nothing of the device is touched.
 */
#ifndef MAQ_SHIM_FATBIN_H
#define MAQ_SHIM_FATBIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    VG_PARAMS_MOST = 1024,
    VG_RESERVED_SHARED = 1024
}; /* bytes of shared memory that a device keeps of every block */

struct vg_param {
    uint32_t offset, bytes;
};
/* What a cubin says about one kernel. */
struct vg_code {
    uint32_t n_params;
    struct vg_param *param; /* [n_params] in order; owned: free() */
    uint32_t registers, shared_bytes, max_threads;
    bool found;
};

/* Size of a fat binary or an ELF file that begins at `image`, as its head says it; 0 = neither. The head must be readable. */
uint64_t vg_image_bytes(const void *image);
/* Fills code[i] for name[i] from the cubin in `bytes` bytes of a fat binary or a cubin that fits capability (90 = 9.0) best.
 * Returns how many were found. Entries that are compressed in a way that cannot be undone here are passed over. */
uint32_t vg_image_read(struct vg_code *code, const char *const *name, uint32_t n, const void *image, uint64_t bytes,
                       uint32_t capability);
/* The names of kernels in it, one call each; the pointer is good until the call returns. */
void vg_image_kernels(const void *image, uint64_t bytes, uint32_t capability,
                      void (*each)(const char *name, void *user), void *user);

#endif
