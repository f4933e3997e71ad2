/* SPDX-License-Identifier: Apache-2.0 */
/*
 * split.c - communicators from communicators: ncclCommSplit, ncclCommShrink.
 *
 * Every member of the parent tells its color and key (an exchange on the parent); those of one color are the child, in
 * order of (key, rank in the parent). The child's lineage follows from the parent's, how many splits that had before, and
 * the color: maq_rec_lineage().
 */
#include <stdlib.h>
#include <string.h>

#include "shim/nccl/comm.h"

struct member {
    int32_t key;
    uint32_t rank; /* in the parent */
};

static int by_key(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

uint32_t *vg_split_ranks(uint32_t *n_out, const uint32_t (*all)[2], uint32_t n, uint32_t color)
{
    struct member *members = malloc(n * sizeof *members);
    uint32_t *ranks = malloc(n * sizeof *ranks), count = 0;
    for (uint32_t i = 0; members && ranks && i < n; i++)
        if (all[i][0] == color)
            members[count++] = (struct member){.key = (int32_t)all[i][1], .rank = i};
    if (members && ranks)
        qsort(members, count, sizeof *members, by_key);
    for (uint32_t i = 0; i < count; i++)
        ranks[i] = members[i].rank;
    free(members);
    *n_out = count;
    return ranks;
}

/* The child of these ranks of the parent: its place in it and who they are. */
static struct vg_comm *child(struct vg_comm *parent, uint64_t lineage, const uint32_t *ranks, uint32_t n)
{
    struct vg_comm *comm = vg_comm_new(n, 0, lineage);
    if (!comm)
        return NULL;
    comm->device = parent->device;
    comm->parent = parent->id;
    comm->supposed = parent->supposed;
    comm->members = parent->members ? malloc(n * sizeof *comm->members) : NULL;
    for (uint32_t i = 0; i < n; i++) {
        if (ranks[i] == parent->me)
            comm->me = i;
        if (comm->members)
            comm->members[i] = parent->members[ranks[i]];
    }
    return comm;
}

static int begin_split(struct vg_comm_job *job)
{
    struct vg_comm *parent = job->comm;
    job->x = (struct vg_exchange){.channel = vg_channel(parent->lineage, VG_CHANNEL_SPLIT),
                                  .n = parent->n,
                                  .me = parent->me,
                                  .members = parent->members,
                                  .mine = job->word,
                                  .bytes = sizeof job->word,
                                  .root = MAQ_REC_NONE,
                                  .colors = true};
    return vg_exchange_put(&job->x) ? VG_NCCL_SUCCESS : VG_NCCL_REMOTE_ERROR;
}

static int end_split(struct vg_comm_job *job)
{
    struct vg_comm *parent = job->comm, *comm = NULL;
    uint32_t color = job->word[0], n = 0, *ranks = NULL;
    uint64_t lineage = maq_rec_lineage(parent->lineage, parent->splits++, color);
    uint32_t(*all)[2] = malloc(parent->n * sizeof *all);
    int result = all && vg_exchange_get(&job->x, all) ? VG_NCCL_SUCCESS : VG_NCCL_REMOTE_ERROR;
    if (result == VG_NCCL_SUCCESS && (int)color != VG_NCCL_NO_COLOR) {
        ranks = vg_split_ranks(&n, (const uint32_t(*)[2])all, parent->n, color);
        comm = ranks ? child(parent, lineage, ranks, n) : NULL;
        if (comm) {
            comm->color = color;
            comm->key = job->word[1];
        }
        result = comm ? vg_comm_define(comm) : VG_NCCL_SYSTEM_ERROR;
    }
    *job->out = comm;
    free(all);
    free(ranks);
    return result;
}

NCCL_API(int, ncclCommSplit, struct vg_comm *comm, int color, int key, struct vg_comm **out, const void *config);
int ncclCommSplit(struct vg_comm *comm, int color, int key, struct vg_comm **out, const void *config)
{
    (void)config;
    int error = vg_comm_check(comm);
    if (error != VG_NCCL_SUCCESS)
        return error;
    if (!out || (color < 0 && color != VG_NCCL_NO_COLOR))
        return VG_NCCL_INVALID_ARGUMENT;
    vg_call();
    *out = NULL;
    return vg_group_job(&(struct vg_comm_job){
        .comm = comm, .out = out, .begin = begin_split, .end = end_split, .word = {(uint32_t)color, (uint32_t)key}});
}

/* Everybody gives the same list, so nobody is asked. Those in it do not call. */
NCCL_API(int, ncclCommShrink, struct vg_comm *comm, const int *without, int n_without, struct vg_comm **out,
         const void *config, int flags);
int ncclCommShrink(struct vg_comm *comm, const int *without, int n_without, struct vg_comm **out, const void *config,
                   int flags)
{
    (void)config;
    (void)flags;
    if (!comm || comm->alive != VG_COMM_ALIVE || !without || n_without < 1 || !out)
        return VG_NCCL_INVALID_ARGUMENT;
    uint32_t *ranks = malloc(comm->n * sizeof *ranks);
    if (!ranks)
        return VG_NCCL_SYSTEM_ERROR;
    uint64_t gone = maq_rec_hash(without, (uint64_t)n_without * sizeof *without, 0);
    uint32_t n = 0;
    bool here = false;
    for (uint32_t i = 0; i < comm->n; i++) {
        bool left = false;
        for (int k = 0; k < n_without; k++)
            left = left || without[k] == (int)i;
        if (!left)
            ranks[n++] = i;
        here = here || (!left && i == comm->me);
    }
    vg_call();
    *out = here ? child(comm, maq_rec_lineage(comm->lineage, comm->splits++, gone), ranks, n) : NULL;
    free(ranks);
    return *out ? vg_comm_define(*out) : VG_NCCL_INVALID_ARGUMENT;
}
