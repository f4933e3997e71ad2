/* SPDX-License-Identifier: Apache-2.0 */
/*
 * autoscaling.h - how many replicas a rule wants (maquette/serve_autoscaling.h).
 *
 * Decisions alone: who looks at the load, starts replicas and sends requests is autoscaling_run.c and availability.c. The first replicas are wanted.
 */
#ifndef MAQ_SERVE_FLEET_AUTOSCALING_H
#define MAQ_SERVE_FLEET_AUTOSCALING_H

#include "maquette/serve.h"
#include "maquette/serve_autoscaling.h"

/* What was asked for, and what came of it. */
struct maq_autoscaling_look {
    double at_s;
    uint32_t asked, added;
};

struct maq_autoscaling {
    const struct maq_autoscaling_rule *rule; /* NULL: there is none */
    uint32_t all, wanted;
    double next_s;                      /* when it looks again */
    struct maq_autoscaling_look *looks; /* [n], in the order of time; those that still count begin at `from` */
    uint32_t n, from, size;
    struct maq_replica_count *changes; /* [n_changes] of `wanted`, the first at the beginning */
    uint32_t n_changes, changes_size;
};

/* Begins at at_s. To be ended even on failure. */
enum maq_status maq_autoscaling_init(struct maq_autoscaling *s, const struct maq_autoscaling_rule *rule, uint32_t all,
                                     double at_s);
void maq_autoscaling_fini(struct maq_autoscaling *s);

/* It looks, at next_s: the fleet has `load`. */
enum maq_status maq_autoscaling_look(struct maq_autoscaling *s, double load);

#endif
