/* SPDX-License-Identifier: Apache-2.0 */
/* table.h - the waits of a rank, from the file that maquette wrote (link.h). */
#ifndef MAQ_SHIM_GPU_TABLE_H
#define MAQ_SHIM_GPU_TABLE_H

#include <stdbool.h>

#include "shim/link.h"

struct vg_waits {
    const unsigned char *file; /* mapped */
    uint64_t bytes;
};

/* Maps and checks a file: every offset, every order. false: it is none, and *why says what is wrong. */
bool vg_waits_open(struct vg_waits *out, const char *path, const char **why);
void vg_waits_close(struct vg_waits *w);

/* The table of a communicator; NULL: it has none. *entries: its n entries. */
const struct maq_waits_comm *vg_waits_of(const struct vg_waits *w, uint64_t lineage,
                                         const struct maq_wait_entry **entries);

#endif
