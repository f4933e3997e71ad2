/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peers_mpi.c - libmaquette-mpi.so: gathers texts of different lengths from all ranks to rank 0 with MPI, for
 * maquette/peers.h.
 */
#include <limits.h>
#include <mpi.h>
#include <stdlib.h>

#include "base/peers_backend.h"

__attribute__((visibility("default"))) maq_peers_open_fn maq_peers_backend_open;

static int processes;

static bool ok(int code)
{
    return code == MPI_SUCCESS;
}

/* Where each text begins; false when all together are too long for MPI's counts. */
static bool lay_out(int *starts, const int *lengths, size_t *total)
{
    *total = 0;
    for (int i = 0; i < processes; i++) {
        if (*total + (size_t)lengths[i] > INT_MAX)
            return false;
        starts[i] = (int)*total;
        *total += (size_t)lengths[i];
    }
    return true;
}

static bool collect(const char *text, int length, char **all, size_t *sizes)
{
    int *lengths = malloc(2 * (size_t)processes * sizeof *lengths), *starts = lengths ? lengths + processes : NULL;
    size_t total = 0;
    bool fine = lengths && ok(MPI_Gather(&length, 1, MPI_INT, lengths, 1, MPI_INT, 0, MPI_COMM_WORLD)) &&
                lay_out(starts, lengths, &total) && (*all = malloc(total + 1)) &&
                ok(MPI_Gatherv(text, length, MPI_CHAR, *all, lengths, starts, MPI_CHAR, 0, MPI_COMM_WORLD));
    for (int i = 0; i < processes && fine; i++)
        sizes[i] = (size_t)lengths[i];
    free(lengths);
    return fine;
}

static bool gather(const char *text, size_t bytes, char **all, size_t *lengths)
{
    int length = (int)bytes;
    if (bytes > INT_MAX)
        return false;
    if (all)
        return collect(text, length, all, lengths);
    return ok(MPI_Gather(&length, 1, MPI_INT, NULL, 0, MPI_INT, 0, MPI_COMM_WORLD)) &&
           ok(MPI_Gatherv(text, length, MPI_CHAR, NULL, NULL, NULL, MPI_CHAR, 0, MPI_COMM_WORLD));
}

static void finish(void)
{
    (void)MPI_Finalize();
}

bool maq_peers_backend_open(struct maq_peers_backend *out)
{
    int level, rank, near;
    MPI_Comm node;
    if (!ok(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level)))
        return false;
    if (!ok(MPI_Comm_rank(MPI_COMM_WORLD, &rank)) || !ok(MPI_Comm_size(MPI_COMM_WORLD, &processes)) ||
        !ok(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node)) ||
        !ok(MPI_Comm_size(node, &near)) || !ok(MPI_Comm_free(&node)))
        return false;
    *out = (struct maq_peers_backend){.abi = MAQ_PEERS_ABI,
                                      .rank = (uint32_t)rank,
                                      .size = (uint32_t)processes,
                                      .on_node = (uint32_t)near,
                                      .gather = gather,
                                      .close = finish};
    return true;
}
