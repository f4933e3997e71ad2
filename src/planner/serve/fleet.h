/* SPDX-License-Identifier: Apache-2.0 */
/* fleet.h - fleets of the best candidates: of node groups, and what they carry together. */
#ifndef MAQ_PLANNER_SERVE_FLEET_H
#define MAQ_PLANNER_SERVE_FLEET_H

#include "planner/serve/searching.h"

/* The fleet of the best candidates of the groups, bests[n], UINT32_MAX: it has none. */
enum maq_status maq_serve_compose(struct maq_serve_searching *s, const uint32_t *bests, uint32_t n);
/* The result's fleet is that of [n] parts. False: out of memory. */
bool maq_serve_set_fleet(struct maq_serve_search_result *r, const struct maq_serve_part_of_fleet *parts, uint32_t n);
/* Where the result's rate is the sum of what its replicas carry alone: what they carry together. */
enum maq_status maq_serve_confirm(struct maq_serve_search_result *r, const struct maq_serve_search_opts *opts);

#endif
