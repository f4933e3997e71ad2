/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spare_replicas.h - replicas beside those that hold the bounds, where replicas fail (struct maq_serve_reserve). Without failures there are none,
 * and all of them count.
 */
#ifndef MAQ_PLANNER_SERVE_SPARE_REPLICAS_H
#define MAQ_PLANNER_SERVE_SPARE_REPLICAS_H

#include "planner/serve/searching.h"

/* Fills load_s, likely_replicas, least_replicas and counted_on of all candidates that have their closed form. */
enum maq_status maq_serve_reserve_all(struct maq_serve_searching *s, struct maq_diag *diag);
static const struct maq_serve_together maq_serve_by_itself = {.parts = 1};
/* Replicas in all so that `needed` are there; *out = 0: the node group has no room for them. */
enum maq_status maq_serve_with_spares(uint32_t *out, const struct maq_serve_searching *s,
                                      const struct maq_serve_candidate *c, uint32_t needed,
                                      struct maq_serve_together with);
/* The most that are there when there are `replicas` in all. */
enum maq_status maq_serve_counted_on(uint32_t *out, const struct maq_serve_searching *s,
                                     const struct maq_serve_candidate *c, uint32_t replicas,
                                     struct maq_serve_together with);

#endif
