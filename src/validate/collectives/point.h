/* SPDX-License-Identifier: Apache-2.0 */
/*
 * point.h - one measured collective: what ran, where, how long it took.
 *
 * Points come from rows of a table of nccl-tests results (row.c) and from kernel tables (validate/kernels/communication.c). Both name
 * their machine in maquette's one-line form; machines are loaded once and shared.
 */
#ifndef MAQ_VALIDATE_COLLECTIVES_POINT_H
#define MAQ_VALIDATE_COLLECTIVES_POINT_H

#include "base/arena.h"
#include "maquette/cost.h"

struct maq_coll_point {
    const struct maq_cluster *cluster;
    struct maq_coll coll;
    enum maq_library library; /* whose kernels ran */
    double measured_s;
    const char *doubt; /* too little is known for a comparison; static text, NULL = none */
};

/* Whether the group lies in one scale-up domain. */
bool maq__coll_point_near(const struct maq_coll_point *point);

struct maq_coll_clusters {
    struct maq_arena *arena;
    struct maq_coll_machine *first;
    struct maq_str given; /* the machine of every row, in place of what it says; empty = none */
};

/* Settings of a run that decide which algorithms there are. */
struct maq_coll_setting {
    bool no_multicast;         /* NVLS switched off */
    bool in_network_reduction; /* SHARP switched on: NCCL does not use it by itself */
};

/* The machine of a one-line form, loaded when it is new; NULL when it cannot be: out of memory, or why in diag. */
const struct maq_cluster *maq__coll_cluster(struct maq_coll_clusters *clusters, struct maq_str text,
                                            struct maq_coll_setting setting, struct maq_diag *diag);

#endif
