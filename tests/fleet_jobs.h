/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_jobs.h - what tests of fleets have in common: runs of them, and events of their replicas. To be included after cmocka's header. */
#ifndef MAQ_TESTS_FLEET_JOBS_H
#define MAQ_TESTS_FLEET_JOBS_H

#include "maquette/serve_fleet.h"

static inline struct maq_serve_result *serve_fleet(const struct maq_fleet *fleet, const struct maq_requests *q)
{
    struct maq_serve_result *r = NULL;
    struct maq_diag *diag = maq_diag_new();
    if (maq_fleet_run(&r, fleet, q, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return r;
}

/* Events of a replica that fails, is known to have, and is back. */
static inline void outage(struct maq_fleet_event out[3], uint32_t replica, double fails, double lost, double back)
{
    out[0] = (struct maq_fleet_event){fails, replica, MAQ_FLEET_FAILS};
    out[1] = (struct maq_fleet_event){lost, replica, MAQ_FLEET_LOST};
    out[2] = (struct maq_fleet_event){back, replica, MAQ_FLEET_BACK};
}

/* By time; those of one time stay as they are. */
static inline void sort_events(struct maq_fleet_event *events, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t j = i; j > 0 && events[j - 1].at_s > events[j].at_s; j--) {
            struct maq_fleet_event e = events[j];
            events[j] = events[j - 1];
            events[j - 1] = e;
        }
}

#endif
