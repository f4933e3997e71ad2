/* SPDX-License-Identifier: Apache-2.0 */
/* peers_backend.h - the border to the module that speaks MPI. */
#ifndef MAQ_BASE_PEERS_BACKEND_H
#define MAQ_BASE_PEERS_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAQ_PEERS_ABI 1u
#define MAQ_PEERS_ENTRY "maq_peers_backend_open"

struct maq_peers_backend {
    uint32_t abi;
    uint32_t rank, size, on_node;
    /* Gathers `bytes` of every process in process 0: all of them one behind the other in *all (owned by the caller, free()), their lengths
     * in lengths[size]. The others give NULL for both. */
    bool (*gather)(const char *text, size_t bytes, char **all, size_t *lengths);
    void (*close)(void);
};

typedef bool maq_peers_open_fn(struct maq_peers_backend *out);

#endif
