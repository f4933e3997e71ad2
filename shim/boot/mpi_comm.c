/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi_comm.c - MPI's beginning and end, communicators, and what a process asks about itself.
 *
 * In a host program: MPI_Init() to MPI_Finalize(), MPI_Comm_rank(), MPI_Comm_split().
 *
 * There is no mpirun: the card says how many ranks there are and which one this is. Communicators are lists of global
 * ranks, named like NCCL's: a child's lineage follows from the parent's, how many it had before, and the color.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shim/boot/mpi.h"

extern char ompi_mpi_comm_world[], ompi_mpi_comm_self[], ompi_mpi_comm_null[];

static struct vg_mpi_comm world, self;
static bool begun, over;

static uint64_t lineage_of_world(void)
{
    static const char name[] = "MPI_COMM_WORLD";
    return maq_rec_hash(name, sizeof name, 0);
}

static void begin(void)
{
    const struct vg_card *card = vg_card();
    if (begun)
        return;
    world =
        (struct vg_mpi_comm){.alive = VG_MPI_ALIVE, .n = card->world, .me = card->rank, .lineage = lineage_of_world()};
    world.members = malloc(world.n * sizeof *world.members);
    for (uint32_t i = 0; world.members && i < world.n; i++)
        world.members[i] = i;
    self = (struct vg_mpi_comm){.alive = VG_MPI_ALIVE, .n = 1, .lineage = maq_rec_mix(lineage_of_world(), card->rank)};
    self.members = malloc(sizeof *self.members);
    if (self.members)
        self.members[0] = card->rank;
    begun = world.members && self.members;
}

struct vg_mpi_comm *vg_mpi_comm_of(const void *handle)
{
    if (handle == ompi_mpi_comm_world || handle == ompi_mpi_comm_self) {
        struct vg_mpi_comm *comm = handle == ompi_mpi_comm_world ? &world : &self;
        return begun ? comm : NULL;
    }
    struct vg_mpi_comm *comm = (struct vg_mpi_comm *)(uintptr_t)handle;
    return comm && handle != ompi_mpi_comm_null && comm->alive == VG_MPI_ALIVE ? comm : NULL;
}

/* --- beginning and end ------------------------------------------------------------------------------------------------ */

MPI_API(int, MPI_Init_thread, int *argc, char ***argv, int wanted, int *given);
int MPI_Init_thread(int *argc, char ***argv, int wanted, int *given)
{
    (void)argc;
    (void)argv;
    begin();
    if (given)
        *given = wanted;
    return begun ? VG_MPI_SUCCESS : VG_MPI_ERR_NO_MEM;
}

MPI_API(int, MPI_Init, int *argc, char ***argv);
int MPI_Init(int *argc, char ***argv)
{
    return MPI_Init_thread(argc, argv, VG_MPI_THREAD_MULTIPLE, NULL);
}

MPI_API(int, MPI_Query_thread, int *out);
int MPI_Query_thread(int *out)
{
    *out = VG_MPI_THREAD_MULTIPLE;
    return VG_MPI_SUCCESS;
}

MPI_API(int, MPI_Initialized, int *out);
int MPI_Initialized(int *out)
{
    *out = begun;
    return VG_MPI_SUCCESS;
}

MPI_API(int, MPI_Finalize, void);
int MPI_Finalize(void)
{
    over = true;
    return VG_MPI_SUCCESS;
}

MPI_API(int, MPI_Finalized, int *out);
int MPI_Finalized(int *out)
{
    *out = over;
    return VG_MPI_SUCCESS;
}

MPI_API(int, MPI_Abort, void *comm, int code);
int MPI_Abort(void *comm, int code)
{
    (void)comm;
    struct maq_shm *meet = vg_shm();
    if (meet)
        maq_shm_stop(meet);
    exit(code);
}

MPI_API(int, MPI_Get_version, int *version, int *subversion);
int MPI_Get_version(int *version, int *subversion)
{
    *version = 3;
    *subversion = 1;
    return VG_MPI_SUCCESS;
}

MPI_API(int, MPI_Get_library_version, char *text, int *length);
int MPI_Get_library_version(char *text, int *length)
{
    static const char name[] = "maquette's MPI over recorded peers";
    memcpy(text, name, sizeof name);
    *length = (int)sizeof name - 1;
    return VG_MPI_SUCCESS;
}

MPI_API(int, MPI_Get_processor_name, char *name, int *length);
int MPI_Get_processor_name(char *name, int *length)
{
    vg_host_name(name, vg_card()->rank / vg_card()->per_node);
    *length = (int)strlen(name);
    return VG_MPI_SUCCESS;
}

MPI_API(double, MPI_Wtime, void);
double MPI_Wtime(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t); /* virtual where boot/clock.c stands before it */
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

MPI_API(double, MPI_Wtick, void);
double MPI_Wtick(void)
{
    return 1e-9;
}

/* --- communicators ---------------------------------------------------------------------------------------------------- */

MPI_API(int, MPI_Comm_rank, void *comm, int *out);
int MPI_Comm_rank(void *comm, int *out)
{
    const struct vg_mpi_comm *c = vg_mpi_comm_of(comm);
    if (!c)
        return vg_mpi_error("MPI_Comm_rank", VG_MPI_ERR_COMM);
    *out = (int)c->me;
    return VG_MPI_SUCCESS;
}

MPI_API(int, MPI_Comm_size, void *comm, int *out);
int MPI_Comm_size(void *comm, int *out)
{
    const struct vg_mpi_comm *c = vg_mpi_comm_of(comm);
    if (!c)
        return vg_mpi_error("MPI_Comm_size", VG_MPI_ERR_COMM);
    *out = (int)c->n;
    return VG_MPI_SUCCESS;
}

/* The child of `ranks` of the parent, in that order; takes nothing over. */
static int make(void **out, struct vg_mpi_comm *parent, uint32_t color, const uint32_t *ranks, uint32_t n)
{
    struct vg_mpi_comm *c = calloc(1, sizeof *c);
    uint32_t *members = malloc((n ? n : 1) * sizeof *members);
    if (!c || !members) {
        free(c);
        free(members);
        return VG_MPI_ERR_NO_MEM;
    }
    *c = (struct vg_mpi_comm){.alive = VG_MPI_ALIVE, .n = n, .members = members};
    c->lineage = maq_rec_lineage(parent->lineage, parent->splits++, color);
    for (uint32_t i = 0; i < n; i++) {
        members[i] = parent->members[ranks[i]];
        if (ranks[i] == parent->me)
            c->me = i;
    }
    *out = c;
    return VG_MPI_SUCCESS;
}

MPI_API(int, MPI_Comm_split, void *comm, int color, int key, void **out);
int MPI_Comm_split(void *comm, int color, int key, void **out)
{
    struct vg_mpi_comm *c = vg_mpi_comm_of(comm);
    if (!c || !out)
        return vg_mpi_error("MPI_Comm_split", VG_MPI_ERR_COMM);
    uint32_t mine[2] = {(uint32_t)color, (uint32_t)key}, n = 0;
    uint32_t(*all)[2] = malloc(c->n * sizeof *all);
    int error = all ? vg_mpi_colors(c, mine, all) : VG_MPI_ERR_NO_MEM;
    uint32_t *ranks = NULL;
    *out = ompi_mpi_comm_null;
    if (error == VG_MPI_SUCCESS && color != VG_MPI_UNDEFINED) {
        ranks = vg_split_ranks(&n, (const uint32_t(*)[2])all, c->n, mine[0]);
        error = ranks ? make(out, c, mine[0], ranks, n) : VG_MPI_ERR_NO_MEM;
    } else {
        c->splits++;
    }
    free(ranks);
    free(all);
    return vg_mpi_error("MPI_Comm_split", error);
}

/* Ranks of one node: everybody knows who they are. */
MPI_API(int, MPI_Comm_split_type, void *comm, int kind, int key, void *info, void **out);
int MPI_Comm_split_type(void *comm, int kind, int key, void *info, void **out)
{
    (void)info;
    (void)key; /* nobody is asked for it: in order of ranks */
    struct vg_mpi_comm *c = vg_mpi_comm_of(comm);
    if (!c || !out || (kind != VG_MPI_TYPE_SHARED && kind != VG_MPI_UNDEFINED))
        return vg_mpi_error("MPI_Comm_split_type", c ? VG_MPI_ERR_ARG : VG_MPI_ERR_COMM);
    *out = ompi_mpi_comm_null;
    uint32_t node = c->members[c->me] / vg_card()->per_node, n = 0, *ranks = malloc(c->n * sizeof *ranks);
    for (uint32_t i = 0; ranks && i < c->n; i++)
        if (c->members[i] / vg_card()->per_node == node)
            ranks[n++] = i;
    int error = !ranks ? VG_MPI_ERR_NO_MEM : kind == VG_MPI_UNDEFINED ? VG_MPI_SUCCESS : make(out, c, node, ranks, n);
    free(ranks);
    return vg_mpi_error("MPI_Comm_split_type", error);
}

MPI_API(int, MPI_Comm_dup, void *comm, void **out);
int MPI_Comm_dup(void *comm, void **out)
{
    struct vg_mpi_comm *c = vg_mpi_comm_of(comm);
    if (!c || !out)
        return vg_mpi_error("MPI_Comm_dup", VG_MPI_ERR_COMM);
    uint32_t *ranks = malloc(c->n * sizeof *ranks);
    for (uint32_t i = 0; ranks && i < c->n; i++)
        ranks[i] = i;
    int error = ranks ? make(out, c, MAQ_REC_NONE, ranks, c->n) : VG_MPI_ERR_NO_MEM;
    free(ranks);
    return vg_mpi_error("MPI_Comm_dup", error);
}

MPI_API(int, MPI_Comm_free, void **comm);
int MPI_Comm_free(void **comm)
{
    struct vg_mpi_comm *c = comm ? vg_mpi_comm_of(*comm) : NULL;
    if (!c || c == &world || c == &self)
        return vg_mpi_error("MPI_Comm_free", VG_MPI_ERR_COMM);
    c->alive = 0;
    free(c->members);
    free(c);
    *comm = ompi_mpi_comm_null;
    return VG_MPI_SUCCESS;
}

MPI_API(int, MPI_Comm_compare, void *a, void *b, int *out);
int MPI_Comm_compare(void *a, void *b, int *out)
{
    const struct vg_mpi_comm *x = vg_mpi_comm_of(a), *y = vg_mpi_comm_of(b);
    if (!x || !y)
        return vg_mpi_error("MPI_Comm_compare", VG_MPI_ERR_COMM);
    bool same = x->n == y->n && memcmp(x->members, y->members, x->n * sizeof *x->members) == 0;
    *out = x == y ? 0 : same ? VG_MPI_CONGRUENT : VG_MPI_UNEQUAL;
    return VG_MPI_SUCCESS;
}
