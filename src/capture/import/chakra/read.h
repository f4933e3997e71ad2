/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read.h - a Chakra trace in memory, and its conversion to records.
 */
#ifndef MAQ_CAPTURE_IMPORT_CHAKRA_READ_H
#define MAQ_CAPTURE_IMPORT_CHAKRA_READ_H

#include "base/mended.h"
#include "capture/import/chakra/chakra.h"
#include "capture/import/traced_job.h"

struct maq_chakra_node {
    uint64_t id;
    const char *name;
    uint32_t dep, n_deps; /* into deps; all kinds of them */
    uint8_t type;         /* enum maq_chakra_type */
    bool on_host, group_continues;
    uint8_t dtype;
    int64_t ns, stream, record, copy, mark, comm_type, bytes, root, src, dst; /* -1 = not said */
    const char *pg;                                                           /* NULL = not said */
    bool untimed;                                                             /* its duration was below zero */
    struct maq_rec_op op;
};

struct maq_chakra_dep {
    uint64_t node; /* its id, and after link_nodes() of records.c its place in node */
    bool control;  /* ctrl_deps: the host's order; else data_deps */
};

struct maq_chakra_group {
    const char *pg, *name;
    uint32_t n;
    const uint32_t *member;
};

struct maq_chakra {
    const char *path;
    struct maq_arena *arena;
    uint32_t n, size;
    struct maq_chakra_node *node;
    uint32_t n_deps, dep_size;
    struct maq_chakra_dep *dep;
    uint32_t n_groups, group_size;
    struct maq_chakra_group *group;
    int64_t rank, world, per_node; /* -1 = not said */
    const char *device;
    bool ours;       /* maquette wrote it */
    uint32_t n_seen; /* nodes read, kept or not */
    struct maq_mending mended;
    enum maq_chakra_comm_size stated; /* what comm_size is of, as the file says; BY_WRITER = it does not */
};

/* What is said once of all files of a job. */
struct maq_chakra_tally {
    enum maq_chakra_comm_size sized_by; /* of the file that is read */
    uint32_t shared_out;                /* collectives whose size is what the writer was taken to mean */
    uint64_t n_against;                 /* control dependencies against the order (order.c) */
    uint64_t n_missing;                 /* control dependencies on nodes that their file does not have */
    uint64_t waiting, missing;          /* the first of them: ids */
    const char *path;                   /* its file, in the job's arena */
};

/* Fills *out in any case: maq_chakra_fini(). */
enum maq_status maq_chakra_read(struct maq_chakra *out, const char *path, struct maq_arena *arena,
                                struct maq_diag *diag);
enum maq_status maq_chakra_parse(struct maq_chakra *out, const char *path, const void *bytes, size_t n,
                                 struct maq_arena *arena, struct maq_diag *diag);
void maq_chakra_fini(struct maq_chakra *c);

/* Places of the nodes in the order in which one host takes them. Control dependencies against it are taken out of the nodes, and *n_against
 * grows by how many. MAQ_NO: data dependencies lead in a circle. In scratch. order.c */
enum maq_status maq_chakra_order(uint32_t **order, struct maq_chakra *c, struct maq_arena *scratch,
                                 uint64_t *n_against);

/* Adds the records of a rank, with nodes in topological order. tally->sized_by says what comm_size is of. records.c */
enum maq_status maq_chakra_records(struct maq_import_job *job, struct maq_import_rank *rank, struct maq_chakra *c,
                                   struct maq_chakra_tally *tally);

#endif
