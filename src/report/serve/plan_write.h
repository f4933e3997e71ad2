/* SPDX-License-Identifier: Apache-2.0 */
/* plan_write.h - what the forms share in which the best fleet is written: plan_write.c, plan_dynamo.c, plan_llm_d.c. */
#ifndef MAQ_REPORT_SERVE_PLAN_WRITE_H
#define MAQ_REPORT_SERVE_PLAN_WRITE_H

#include "maquette/report_serve.h"

#define MAQ_PLAN_LARGEST ((size_t)1 << 20) /* bytes of a file */

/* vLLM's replicas of either pool hand keys and values over by NIXL (its --kv-transfer-config). */
#define MAQ_PLAN_NIXL "{\"kv_connector\": \"NixlConnector\", \"kv_role\": \"kv_both\"}"

static inline const struct maq_serve_candidate *maq_plan_part(const struct maq_report_serve_plan *p, uint32_t part)
{
    return &p->search->candidates[p->search->fleet[part].candidate];
}
/* Nodes that a replica is on, and GPUs that it has of each. */
static inline uint32_t maq_plan_nodes(const struct maq_serve_candidate *c)
{
    uint32_t per_node = (uint32_t)c->job->cluster.groups[0].devices_per_node;
    return (c->gpus + per_node - 1) / per_node;
}
static inline uint32_t maq_plan_gpus_of_node(const struct maq_serve_candidate *c)
{
    uint32_t per_node = (uint32_t)c->job->cluster.groups[0].devices_per_node;
    return c->gpus < per_node ? c->gpus : per_node;
}

#endif
