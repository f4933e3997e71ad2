/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peers.h - processes of this program that mpirun (or srun with PMI) started together, and that share its work.
 *
 * A process asks who it is, does its share, and process 0 gathers what the others found and reports it:
 *
 *   mpirun -n 64 maquette plan sweep.yaml
 *
 * MPI is in a module of its own, looked for where processes were started together and nowhere else; a program that runs alone needs
 * none.
 */
#ifndef MAQUETTE_PEERS_H
#define MAQUETTE_PEERS_H

#include "maquette/diag.h"

#ifdef __cplusplus
extern "C" {
#endif

struct maq_peers {
    uint32_t rank, size; /* 0 and 1 for a process alone */
    uint32_t on_node;    /* how many of them run on this process's node */
    void *owner;         /* internal */
};

/* Finds the other processes. A process alone is a success; MAQ_LIMIT when there are others and no module to talk to them. One call
 * in the life of a process. */
MAQ_API enum maq_status maq_peers_open(struct maq_peers *out, struct maq_diag *diag);

/* Every process calls it with a text. In process 0, (*texts)[i] is that of process i, borrowed until the next call or the end; in the
 * others *texts is NULL. */
MAQ_API enum maq_status maq_peers_gather(struct maq_peers *peers, const char *text, const char *const **texts,
                                         struct maq_diag *diag);

/* Waits for all of them. */
MAQ_API void maq_peers_close(struct maq_peers *peers);

#ifdef __cplusplus
}
#endif
#endif
