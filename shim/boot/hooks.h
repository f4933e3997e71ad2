/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hooks.h - what libmaquette-clock.so needs of the zero-GPU device when that is loaded beside it.
 *
 * Two libraries because of symbol versions: what stands before a call of the C library must have no version, the device has
 * one for each library that it stands in for. The clock library refers to this weakly; without the device all is real.
 */
#ifndef MAQ_SHIM_BOOT_HOOKS_H
#define MAQ_SHIM_BOOT_HOOKS_H

#include "shim/vgpu.h"

struct vg_hooks {
    const struct vg_card *(*card)(void);
    int64_t (*now)(void);
    bool (*drives)(void);
    unsigned (*asked)(void); /* how often this thread has asked the device whether something is done */
    void (*host)(int64_t ns);
    void (*host_name)(char *out, uint32_t node); /* 16 bytes */
    void (*record)(uint64_t channel, uint32_t me, const void *mine, uint64_t bytes);
    const void *(*contribution)(uint64_t channel, uint32_t seq, uint32_t rank, uint64_t *bytes);
    const void *(*near)(uint64_t channel, uint32_t seq, uint32_t *rank, uint64_t *bytes);
    bool (*by_pattern)(void *out, uint64_t channel, uint32_t n, uint32_t place, uint64_t bytes);
    bool (*sample)(uint32_t n, uint32_t place);
    bool (*ran)(uint32_t rank);
    bool (*waits)(uint32_t rank);
    void (*tainted_read)(const struct vg_taint *what); /* it is read now */
};

VG_EXPORT extern const struct vg_hooks maquette_vgpu_hooks;

#endif
