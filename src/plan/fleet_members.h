/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fleet_members.h - the section `fleet` of a job: replicas of several kinds, each a job of its own that the document says the rest of.
 *
 *   model: llama-3.1-8b                      # of all
 *   serve: {router: least-requests, slo: 'ttft_p95<500ms'}
 *   fleet:
 *     - {replicas: 2, cluster: h100-sxm:8, plan: {tp: 1}, serve: {max_num_seqs: 256}}
 *     - {replicas: 3, cluster: a100-80gb:8, plan: {tp: 2}, weight: 0.5}
 *
 * The job of a member is the document's with what the member says laid over it: its cluster in place of the document's, its settings of `plan` and `serve` beside
 * and before the document's. Keys of either have their places, so that faults name them.
 */
#ifndef MAQ_PLAN_FLEET_MEMBERS_H
#define MAQ_PLAN_FLEET_MEMBERS_H

#include "maquette/job.h"
#include "spec/doc.h"

/* Lays member `member` over the document; a document without a fleet stays as it is, and so does one that has fewer. */
enum maq_status maq_fleet_member_lay(struct maq_doc *doc, uint32_t member, struct maq_diag *diag);
/* *out: [*n] in the arena, of a `fleet` that is there. */
enum maq_status maq_fleet_members_read(struct maq_job_member **out, uint32_t *n, struct maq_node *fleet,
                                       struct maq_arena *arena, struct maq_diag *diag);

#endif
