/* machine.h - other hardware for a replay, as overrides of a job's `cluster` and `cost` say it. */
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

/* Borrows the overrides' text. All faults are told; *out is to be closed in any case. */
enum maq_status maq_machine_open(struct maq_machine *out, const struct maq_override *overrides, size_t n,
                                 struct maq_diag *diag);
void maq_machine_close(struct maq_machine *m);

#endif
