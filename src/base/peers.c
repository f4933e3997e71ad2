/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peers.c - peers of a program started by mpirun or Slurm: their number from the launcher's environment, and the MPI
 * module that is loaded only where there are several. See maquette/peers.h.
 */
#include "maquette/peers.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/codes.h"
#include "base/peers_backend.h"
#include "base/str.h"
#include "maquette/module.h"

#define FILE_NAME "libmaquette-mpi.so"

struct owner {
    struct maq_peers_backend backend;
    char *all;          /* texts, each with its end */
    const char **texts; /* [size] */
};

static uint32_t number_in(const char *name)
{
    const char *text = getenv(name);
    int64_t n = 0;
    return text && maq_str_to_i64(&n, maq_str_of(text)) && n > 0 && n < UINT32_MAX ? (uint32_t)n : 0;
}

/* How many processes the launcher started: Open MPI; MPICH, Intel MPI and MVAPICH by PMI; Slurm by PMIx. */
static uint32_t started_together(void)
{
    uint32_t n = number_in("OMPI_COMM_WORLD_SIZE");
    if (n == 0)
        n = number_in("PMI_SIZE");
    if (n == 0 && getenv("PMIX_RANK"))
        n = number_in("SLURM_NTASKS");
    return n == 0 ? 1 : n;
}

static enum maq_status refuse(struct maq_diag *diag, uint32_t n, const char *why)
{
    return maq_diag_fail(MAQ_LIMIT, diag, MAQ_CODE_PEERS, (struct maq_span){0},
                         "build where an MPI for C is installed (libopenmpi-dev), or run one process",
                         "this is one of %u processes, which share no work: %s", n, why);
}

enum maq_status maq_peers_open(struct maq_peers *out, struct maq_diag *diag)
{
    uint32_t n = started_together();
    char why[256];
    *out = (struct maq_peers){.size = 1, .on_node = 1};
    if (n == 1)
        return MAQ_OK;
    void *module = maq_module_load(FILE_NAME, "src/base/mpi",
                                   "this maquette was built without its MPI module (" FILE_NAME ")", why, sizeof why);
    if (!module)
        return refuse(diag, n, why);
    maq_peers_open_fn *open = (maq_peers_open_fn *)maq_module_symbol(module, MAQ_PEERS_ENTRY);
    struct owner *o = calloc(1, sizeof *o);
    if (!open || !o || !open(&o->backend) || o->backend.abi != MAQ_PEERS_ABI) {
        free(o);
        return refuse(diag, n, open ? "MPI does not start" : "its MPI module is of another version");
    }
    *out = (struct maq_peers){o->backend.rank, o->backend.size, o->backend.on_node, o};
    return MAQ_OK;
}

/* Texts of all processes lie one behind the other, each with its end. */
static bool index_texts(struct owner *o, const size_t *lengths, uint32_t size)
{
    free(o->texts);
    o->texts = calloc(size, sizeof *o->texts);
    const char *at = o->all;
    for (uint32_t i = 0; o->texts && i < size; at += lengths[i++])
        o->texts[i] = at;
    return o->texts != NULL;
}

enum maq_status maq_peers_gather(struct maq_peers *peers, const char *text, const char *const **texts,
                                 struct maq_diag *diag)
{
    struct owner *o = peers->owner;
    bool first = peers->rank == 0, fine;
    MAQ_ASSERT(o); /* a process alone has nobody to ask */
    size_t *lengths = calloc(peers->size, sizeof *lengths);
    if (!lengths)
        return MAQ_NO_MEMORY;
    if (first) {
        free(o->all);
        o->all = NULL;
    }
    fine = o->backend.gather(text, strlen(text) + 1, first ? &o->all : NULL, first ? lengths : NULL) &&
           (!first || index_texts(o, lengths, peers->size));
    free(lengths);
    *texts = first && fine ? o->texts : NULL;
    return fine ? MAQ_OK
                : maq_diag_fail(MAQ_IO, diag, MAQ_CODE_PEERS, (struct maq_span){0}, NULL,
                                "what the %u processes found could not be gathered", peers->size);
}

/* The module stays: MPI leaves threads and handlers behind. */
void maq_peers_close(struct maq_peers *peers)
{
    struct owner *o = peers->owner;
    if (o) {
        o->backend.close();
        free(o->texts);
        free(o->all);
        free(o);
    }
    *peers = (struct maq_peers){.size = 1, .on_node = 1};
}
