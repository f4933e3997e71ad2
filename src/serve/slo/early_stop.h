/* SPDX-License-Identifier: Apache-2.0 */
/*
 * early_stop.h - bounds that a run can no longer hold, whatever becomes of the requests that have not ended.
 *
 * A quantile is missed once more requests are over the limit than lie above it, a mean once the sum alone is over the limit times all of
 * them. A quantile of a report is the middle of a bin (serve/engine/latency.h), so that a request counts only if its bin is over, too.
 */
#ifndef MAQ_SERVE_SLO_EARLY_STOP_H
#define MAQ_SERVE_SLO_EARLY_STOP_H

#include "maquette/serve.h"

struct maq_slo_hope {
    const struct maq_slo *slo;   /* n = 0: it is never lost */
    uint32_t n;                  /* requests of the run */
    uint32_t over[MAQ_SLO_MOST]; /* requests */
    double sum_s[MAQ_SLO_MOST];
    bool lost;
};

/* A request has ended, of so many tokens. */
void maq_slo_hope_add(struct maq_slo_hope *hope, const struct maq_served *served, int64_t tokens);

#endif
