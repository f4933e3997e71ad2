/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve_autoscaling.h - a rule by which a fleet has as many replicas as its load asks for.
 *
 * As Kubernetes' HorizontalPodAutoscaler decides with a metric per pod (autoscaling/v2 with its default behaviour; pkg/controller/podautoscaler at 0006726).
 * Each time that it looks, with R replicas that are there or start, and a load of M in all:
 *
 *   asked     = M / (target R) within 1 +- tolerance ? R : ceil(M / target)
 *   settled   = asked >= R ? asked : the most that was asked for within down_after_s
 *   wanted    = settled, no more than max(B + up_count, ceil(B up_factor)) with B replicas a period ago; from `least` to all
 *
 * What is asked for takes requests start_s later. What is not wanted any more takes no more, and ends those that it has; the last ones go first.
 */
#ifndef MAQUETTE_SERVE_AUTOSCALING_H
#define MAQUETTE_SERVE_AUTOSCALING_H

#include "maquette/diag.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The load of a fleet, over the replicas that take requests and the router: identifier, name, what it is. Of pools each has its own: of replicas that compute prompts
 * for others a request has ended when its prompt is computed.
 */
/* clang-format off */
#define MAQ_AUTOSCALING_METRIC_LIST(X)                                                                                     \
    X(REQUESTS, "requests", "requests that were sent and have not ended")                                              \
    X(WAITING,  "waiting",  "those of them that do not run yet")                                                       \
    X(KV,       "kv",       "shares of the KV caches in use, added up")
/* clang-format on */
enum maq_autoscaling_metric {
#define MAQ_AUTOSCALING_ENUM(id, name, what) MAQ_AUTOSCALING_##id,
    MAQ_AUTOSCALING_METRIC_LIST(MAQ_AUTOSCALING_ENUM)
#undef MAQ_AUTOSCALING_ENUM
        MAQ_AUTOSCALING_METRIC_COUNT
};
MAQ_API const char *maq_autoscaling_metric_name(enum maq_autoscaling_metric metric);

struct maq_autoscaling_rule {
    enum maq_autoscaling_metric metric;
    double target;  /* load that a replica is to have */
    uint32_t least; /* replicas that are always wanted, at least 1 */
    uint32_t first; /* wanted at the first arrival; 0 = least */
    double every_s; /* between two looks */
    double down_after_s;
    double tolerance;  /* share by which the load may be off its target */
    uint32_t up_count; /* replicas that may be added within up_period_s, whichever is more */
    double up_factor;
    double up_period_s;
    double start_s; /* from a replica that is asked for to one that takes requests; no part of the text */
};

/*
 * Reads a rule: `METRIC=TARGET` and further pairs with commas between: least, first, every, down_after, tolerance, up_count, up_factor,
 * up_period; what is not said is as Kubernetes has it (15 s, 5 min, 0.1, 4, 2, 15 s). MAQ_BAD_INPUT: a place in the text, which faults call `from`, and why.
 */
MAQ_API enum maq_status maq_autoscaling_rule_read(struct maq_autoscaling_rule *out, const char *text, const char *from,
                                                  struct maq_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
