/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.h - the table of allocations, for the files of shim/core that fill it and those that copy.
 */
#ifndef MAQ_SHIM_MEMORY_H
#define MAQ_SHIM_MEMORY_H

#include "shim/core/core.h"

enum {
    VG_PAGE_BYTES = 2 << 20,   /* the device gives memory away in pages of 2 MiB */
    VG_SMALL_BYTES = 1 << 20,  /* up to this size allocations share pages, and the host sees them */
    VG_GRAIN_BYTES = 512,      /* of allocations in a shared page */
    VG_BLOCK_BYTES = 64 << 10, /* of larger ones, what becomes real at a time */
    VG_RANGES = 1 << 16        /* most ranges of an allocation that are known to be the host's own bytes */
};
#define VG_TOUCHED_MOST ((uint64_t)128 << 20) /* larger allocations become real up to this much, all together */

struct vg_range {
    uint64_t from, to; /* offsets in the allocation */
};
struct vg_mem {
    uint64_t base, bytes;
    uint32_t id;
    uint8_t kind, device;
    bool visible;     /* the host may read and write all of it */
    bool shared_page; /* lies in a page with others */
    uint32_t n_known, known_room;
    struct vg_range *known; /* ascending, apart: bytes that the host wrote and that no kernel can have changed since */
    unsigned char *blocks;  /* bitmap of blocks that are real; NULL = none */
};

/* The allocation that contains p, or NULL. Good until the table changes. */
struct vg_mem *vg_mem_at(const void *p);
void vg_mem_each(void (*with)(struct vg_mem *mem));
/* Puts an allocation into the table; false = out of host memory. */
bool vg_mem_enter(const struct vg_mem *mem);
void vg_mem_leave(uint64_t base);
/* Takes `bytes` of the device's pages, of which the program asked for `asked`; false = out of memory. */
bool vg_mem_charge(unsigned device, uint64_t bytes, uint64_t asked);
void vg_mem_discharge(unsigned device, uint64_t bytes, uint64_t asked);
/* Address space without memory behind it, aligned to a page of the device. NULL = none left. */
void *vg_mem_space(uint64_t bytes, bool visible);
uint32_t vg_mem_new_id(void);
/* Device of an allocation; what pools of a device have given away. */
int vg_mem_device(const void *p);
uint64_t vg_mem_in_pool(unsigned device);
void vg_mem_tell(enum maq_rec_kind what, uint32_t id, enum maq_rec_mem kind, uint64_t bytes, unsigned flags,
                 struct vg_stream *s);

#endif
