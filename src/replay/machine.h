/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.h - the cluster and the cost chain of other hardware for a replay, from overrides of a job's `cluster` and
 * `cost` sections.
 */
#ifndef MAQ_REPLAY_MACHINE_H
#define MAQ_REPLAY_MACHINE_H

#include "maquette/cost.h"
#include "maquette/replay.h"
#include "spec/doc.h"

struct maq_machine {
    struct maq_arena arena;
    struct maq_doc doc;
    struct maq_cluster cluster;
    struct maq_costs costs;
    struct maq_measured *measured;
};

/* Borrows the text of the overrides. All faults are reported; *out is to be closed (maq_machine_close()) in any case. */
enum maq_status maq_machine_open(struct maq_machine *out, const struct maq_override *overrides, size_t n,
                                 struct maq_diag *diag);
void maq_machine_close(struct maq_machine *m);

#endif
