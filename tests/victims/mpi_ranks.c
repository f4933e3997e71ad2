/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi_ranks.c - an MPI program that checks what it gets: each collective, groups, messages, the host's name.
 *
 * usage: mpi_ranks meet | start     meet: all ranks run, so results are exact; start: any rank of many, alone
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "rank %d, line %d: %s\n", rank, __LINE__, #condition);                                     \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static int rank, n;

static void collectives(void)
{
    int sum = 0, ones = rank, all[64], row[64], *in_place = all;
    double most = 0.5 * rank, result;
    short narrow = (short)(rank - 2), least;
    uint8_t bits = (uint8_t)(1u << rank), seen;
    long root = rank == 2 ? 77 : 0;
    MPI_Bcast(&root, 1, MPI_LONG, 2, MPI_COMM_WORLD);
    CHECK(root == 77);
    MPI_Allreduce(&ones, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == n * (n - 1) / 2);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    CHECK(sum == n * (n - 1) / 2);
    MPI_Reduce(&most, &result, 1, MPI_DOUBLE, MPI_MAX, 1, MPI_COMM_WORLD);
    CHECK(rank != 1 || result == 0.5 * (n - 1));
    MPI_Allreduce(&narrow, &least, 1, MPI_SHORT, MPI_MIN, MPI_COMM_WORLD);
    CHECK(least == -2);
    MPI_Allreduce(&bits, &seen, 1, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
    CHECK(seen == (1u << n) - 1);
    in_place[rank] = 3 * rank;
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in_place, sizeof(int), MPI_BYTE, MPI_COMM_WORLD);
    for (int i = 0; i < n; i++)
        CHECK(in_place[i] == 3 * i);
    memset(all, 0, sizeof all);
    MPI_Gather(&rank, 1, MPI_INT, all, 1, MPI_INT, n - 1, MPI_COMM_WORLD);
    CHECK(rank != n - 1 || all[1] == 1);
    for (int i = 0; i < n; i++)
        all[i] = 100 * rank + i;
    MPI_Scatter(all, 1, MPI_INT, &sum, 1, MPI_INT, 1, MPI_COMM_WORLD);
    CHECK(sum == 100 + rank);
    MPI_Alltoall(all, 1, MPI_INT, row, 1, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < n; i++)
        CHECK(row[i] == 100 * i + rank);
    int counts[64], at[64], mine[64], total = 0, together[64 * 64];
    for (int i = 0; i < n; i++) {
        counts[i] = i;
        at[i] = total;
        total += i;
        mine[i] = rank;
    }
    MPI_Allgatherv(mine, rank, MPI_INT, together, counts, at, MPI_INT, MPI_COMM_WORLD);
    CHECK(n < 3 || (together[0] == 1 && together[total - 1] == n - 1));
}

static void groups(void)
{
    MPI_Comm half, twin, node, none;
    int r, size, same;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    MPI_Comm_rank(half, &r);
    MPI_Comm_size(half, &size);
    CHECK(size == (n + 1 - rank % 2) / 2 && r == size - 1 - rank / 2);
    int sum;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, half);
    CHECK(sum % 2 == (rank % 2) * size % 2);
    MPI_Comm_dup(half, &twin);
    MPI_Comm_compare(half, twin, &same);
    CHECK(same == MPI_CONGRUENT);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &size);
    CHECK(size == 2); /* ranks on a node, as the card says */
    MPI_Comm_split(MPI_COMM_WORLD, rank ? 0 : MPI_UNDEFINED, 0, &none);
    CHECK((none == MPI_COMM_NULL) == (rank == 0));
    MPI_Comm_free(&half);
    CHECK(half == MPI_COMM_NULL);
    MPI_Barrier(twin);
}

static void messages(void)
{
    const int big = 5 << 20; /* bytes: more than one piece of the segment */
    char *out = malloc((size_t)big), *in = malloc((size_t)big);
    int next = (rank + 1) % n, before = (rank + n - 1) % n, got;
    memset(out, 'a' + rank, (size_t)big);
    MPI_Status status;
    MPI_Request request;
    MPI_Send(out, big, MPI_CHAR, next, 7, MPI_COMM_WORLD); /* nobody has received yet */
    MPI_Recv(in, big, MPI_CHAR, before, 7, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_CHAR, &got);
    CHECK(got == big && status.MPI_SOURCE == before && status.MPI_TAG == 7 && in[big - 1] == 'a' + before);
    MPI_Irecv(in, 64, MPI_CHAR, before, 8, MPI_COMM_WORLD, &request);
    MPI_Send("short", 6, MPI_CHAR, next, 8, MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
    MPI_Get_count(&status, MPI_CHAR, &got);
    CHECK(got == 6 && strcmp(in, "short") == 0 && request == MPI_REQUEST_NULL);
    MPI_Sendrecv(&rank, 1, MPI_INT, next, 9, &got, 1, MPI_INT, before, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(got == before);
    free(out);
    free(in);
}

/* The local device, as programs find it: how many ranks before this one are on its host. */
static void local_rank(void)
{
    char host[1024] = "", processor[MPI_MAX_PROCESSOR_NAME];
    int length, local = 0;
    gethostname(host, sizeof host - 1);
    MPI_Get_processor_name(processor, &length);
    host[strcspn(host, ".")] = '\0';
    uint64_t hash = 5381, *all = malloc((size_t)n * sizeof *all);
    for (const char *at = host; *at; at++)
        hash = (hash * 33) ^ (unsigned char)*at;
    all[rank] = hash;
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, sizeof *all, MPI_BYTE, MPI_COMM_WORLD);
    for (int i = 0; i < rank; i++)
        local += all[i] == all[rank];
    printf("rank %d of %d, local %d, processor %s\n", rank, n, local, processor);
    free(all);
}

int main(int argc, char **argv)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Error_string(MPI_ERR_COMM, text, &length);
    CHECK(length == (int)strlen(text) && length > 3);
    if (argc > 1 && strcmp(argv[1], "meet") == 0) {
        collectives();
        groups();
        messages();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    local_rank();
    MPI_Finalize();
    return 0;
}
