/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm.c - communicators: how they begin, what they say of themselves, how they end.
 *
 * The name of a communicator (its lineage) comes from the unique id that it was initialised with. The bytes of an id say
 * which rank made it and how many it had made before, so every member finds the same name without asking anybody. A rank
 * that runs alone and got its id from a peer that nobody has run yet holds bytes that are no id of ours (zeros, what was
 * in the buffer): its nth such communicator is taken to be the nth of rank 0, which is right for the communicator of all,
 * and the next slices are given the real bytes. An id that maquette's store made up is as good as a real one: it follows from
 * the key, under which every member looks, and the rank that would have set it may never run.
 *
 * At initialisation the members tell each other their global ranks (an exchange): that is the list in DEF_COMM. Where not all
 * have said it, members are known only if the communicator is of all ranks and this one has its own place in it; otherwise
 * they are supposed to lie as in other communicators of the size (member_pattern.c), if there are.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/nccl/comm.h"

/* --- unique ids ------------------------------------------------------------------------------------------------------- */

static const char id_magic[8] = "maqnccl";
struct id {
    char magic[8];
    uint32_t rank, nth;
};

static void write_id(struct vg_nccl_id *out, uint32_t rank, uint32_t nth)
{
    struct id id = {.rank = rank, .nth = nth};
    memcpy(id.magic, id_magic, sizeof id.magic);
    memset(out, 0, sizeof *out);
    memcpy(out, &id, sizeof id);
}

NCCL_API(int, ncclGetUniqueId, struct vg_nccl_id *out);
int ncclGetUniqueId(struct vg_nccl_id *out)
{
    static uint32_t made;
    if (!out)
        return VG_NCCL_INVALID_ARGUMENT;
    write_id(out, vg_card()->rank, __atomic_fetch_add(&made, 1, __ATOMIC_RELAXED));
    return VG_NCCL_SUCCESS;
}

/*
 * The lineage of a communicator that begins with this id. Where it begins with several, of which each is of another root
 * (ncclCommInitRankScalable; PyTorch has a root for each 128 ranks), the first is enough: no other communicator has it. The others
 * say where to connect, and those of roots that nobody has run yet are made up.
 */
static uint64_t lineage_of(struct vg_nccl_id id)
{
    static uint32_t nameless;
    if (memcmp(id.bytes, id_magic, sizeof id_magic) != 0 && memcmp(id.bytes, MAQ_MADE_UP_MAGIC, sizeof id_magic) != 0)
        write_id(&id, 0, __atomic_fetch_add(&nameless, 1, __ATOMIC_RELAXED));
    return maq_rec_hash(&id, sizeof id, 0);
}

/* --- the jobs of initialisation ----------------------------------------------------------------------------------------- */

static int begin_members(struct vg_comm_job *job)
{
    struct vg_comm *comm = job->comm;
    job->word[0] = vg_card()->rank;
    job->x = (struct vg_exchange){.channel = vg_channel(comm->lineage, VG_CHANNEL_MEMBERS),
                                  .n = comm->n,
                                  .me = comm->me,
                                  .mine = job->word,
                                  .bytes = sizeof job->word[0],
                                  .root = MAQ_REC_NONE,
                                  .ranks = true};
    return vg_exchange_put(&job->x) ? VG_NCCL_SUCCESS : VG_NCCL_REMOTE_ERROR;
}

/* Everybody below `world`, and nobody twice. */
static bool are_ranks(const uint32_t *members, uint32_t n)
{
    uint32_t world = vg_card()->world;
    unsigned char *seen = calloc(1, (uint64_t)world + 1);
    bool ok = seen && n <= world;
    for (uint32_t i = 0; ok && i < n; i++) {
        ok = members[i] < world && !seen[members[i]];
        if (ok)
            seen[members[i]] = 1;
    }
    free(seen);
    return ok;
}

static int end_members(struct vg_comm_job *job)
{
    struct vg_comm *comm = job->comm;
    uint32_t *members = malloc(comm->n * sizeof *members);
    job->x.nth = vg_comm_count(comm->n);
    if (!members || !vg_exchange_get(&job->x, members)) {
        free(members);
        return VG_NCCL_REMOTE_ERROR;
    }
    bool said = job->x.certain && are_ranks(members, comm->n);
    for (uint32_t i = 0; i < comm->n && !said && job->x.all_ranks; i++)
        members[i] = i;
    comm->supposed = !said && !job->x.all_ranks;
    if (!comm->supposed || (job->x.by_pattern && are_ranks(members, comm->n)))
        comm->members = members;
    else
        free(members);
    return vg_comm_define(comm);
}

static void drop_members(struct vg_comm_job *job)
{
    free(job->comm->members);
    free(job->comm);
    *job->out = NULL;
}

static int check_config(const struct vg_nccl_config *config)
{
    if (!config)
        return VG_NCCL_SUCCESS;
    bool known = config->size >= offsetof(struct vg_nccl_config, blocking) + sizeof config->blocking &&
                 config->magic == VG_NCCL_CONFIG_MAGIC;
    return known ? VG_NCCL_SUCCESS : VG_NCCL_INVALID_ARGUMENT;
}

static int init(struct vg_comm **out, int n, int me, const struct vg_nccl_id *ids, int n_ids,
                const struct vg_nccl_config *config)
{
    if (!out || n < 1 || me < 0 || me >= n || !ids || n_ids < 1 || check_config(config) != VG_NCCL_SUCCESS)
        return VG_NCCL_INVALID_ARGUMENT;
    vg_drive();
    vg_call();
    *out = vg_comm_new((uint32_t)n, (uint32_t)me, lineage_of(ids[0]));
    if (!*out)
        return VG_NCCL_SYSTEM_ERROR;
    return vg_group_job(&(struct vg_comm_job){
        .comm = *out, .out = out, .begin = begin_members, .end = end_members, .drop = drop_members});
}

NCCL_API(int, ncclCommInitRank, struct vg_comm **out, int n, struct vg_nccl_id id, int rank);
int ncclCommInitRank(struct vg_comm **out, int n, struct vg_nccl_id id, int rank)
{
    return init(out, n, rank, &id, 1, NULL);
}

NCCL_API(int, ncclCommInitRankConfig, struct vg_comm **out, int n, struct vg_nccl_id id, int rank,
         const struct vg_nccl_config *config);
int ncclCommInitRankConfig(struct vg_comm **out, int n, struct vg_nccl_id id, int rank,
                           const struct vg_nccl_config *config)
{
    return init(out, n, rank, &id, 1, config);
}

NCCL_API(int, ncclCommInitRankScalable, struct vg_comm **out, int n, int rank, int n_ids, const struct vg_nccl_id *ids,
         const struct vg_nccl_config *config);
int ncclCommInitRankScalable(struct vg_comm **out, int n, int rank, int n_ids, const struct vg_nccl_id *ids,
                             const struct vg_nccl_config *config)
{
    return n_ids > n ? VG_NCCL_INVALID_ARGUMENT : init(out, n, rank, ids, n_ids, config);
}

/* All devices of one process: nobody else is asked. */
NCCL_API(int, ncclCommInitAll, struct vg_comm **out, int n, const int *devices);
int ncclCommInitAll(struct vg_comm **out, int n, const int *devices)
{
    struct vg_nccl_id id;
    if (!out || n < 1 || ncclGetUniqueId(&id) != VG_NCCL_SUCCESS)
        return VG_NCCL_INVALID_ARGUMENT;
    vg_drive();
    vg_call();
    uint64_t lineage = lineage_of(id);
    for (int i = 0; i < n; i++) {
        out[i] = vg_comm_new((uint32_t)n, (uint32_t)i, lineage);
        if (!out[i])
            return VG_NCCL_SYSTEM_ERROR;
        out[i]->device = devices ? devices[i] : i;
        int result = vg_comm_define(out[i]);
        if (result != VG_NCCL_SUCCESS)
            return result;
    }
    return VG_NCCL_SUCCESS;
}

/* --- what they say, and their end ----------------------------------------------------------------------------------------- */

static int answer(const struct vg_comm *comm, int *out, int value)
{
    if (!comm || comm->alive != VG_COMM_ALIVE || !out)
        return VG_NCCL_INVALID_ARGUMENT;
    *out = value;
    return VG_NCCL_SUCCESS;
}

NCCL_API(int, ncclCommCount, const struct vg_comm *comm, int *out);
int ncclCommCount(const struct vg_comm *comm, int *out)
{
    return answer(comm, out, comm ? (int)comm->n : 0);
}

NCCL_API(int, ncclCommUserRank, const struct vg_comm *comm, int *out);
int ncclCommUserRank(const struct vg_comm *comm, int *out)
{
    return answer(comm, out, comm ? (int)comm->me : 0);
}

NCCL_API(int, ncclCommCuDevice, const struct vg_comm *comm, int *out);
int ncclCommCuDevice(const struct vg_comm *comm, int *out)
{
    return answer(comm, out, comm ? comm->device : 0);
}

/* Nothing is ever in progress: what NCCL does in the background is done when its call returns. A question like
 * cudaStreamQuery (clock.c), which loops ask between two of those. */
NCCL_API(int, ncclCommGetAsyncError, const struct vg_comm *comm, int *out);
int ncclCommGetAsyncError(const struct vg_comm *comm, int *out)
{
    return answer(comm, out, vg_comm_check(comm));
}

NCCL_API(int, ncclCommFinalize, struct vg_comm *comm);
int ncclCommFinalize(struct vg_comm *comm)
{
    vg_call();
    return vg_comm_check(comm);
}

static int bury(struct vg_comm *comm)
{
    vg_call();
    if (!comm)
        return VG_NCCL_SUCCESS; /* as NCCL has it */
    if (comm->alive != VG_COMM_ALIVE)
        return VG_NCCL_INVALID_ARGUMENT;
    comm->alive = 0;
    vg_buffers_end(comm);
    return VG_NCCL_SUCCESS;
}

NCCL_API(int, ncclCommDestroy, struct vg_comm *comm);
int ncclCommDestroy(struct vg_comm *comm)
{
    return bury(comm);
}

NCCL_API(int, ncclCommAbort, struct vg_comm *comm);
int ncclCommAbort(struct vg_comm *comm)
{
    return bury(comm);
}

NCCL_API(int, ncclCommRevoke, struct vg_comm *comm, int flags);
int ncclCommRevoke(struct vg_comm *comm, int flags)
{
    if (!comm || comm->alive != VG_COMM_ALIVE || flags)
        return VG_NCCL_INVALID_ARGUMENT;
    vg_call();
    comm->error = VG_NCCL_INVALID_USAGE;
    return VG_NCCL_SUCCESS;
}
