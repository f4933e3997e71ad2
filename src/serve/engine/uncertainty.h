/* SPDX-License-Identifier: Apache-2.0 */
/* uncertainty.h - the 80 % intervals of a result's latencies. */
#ifndef MAQ_SERVE_ENGINE_UNCERTAINTY_H
#define MAQ_SERVE_ENGINE_UNCERTAINTY_H

#include "maquette/serve.h"

/* Fills `low` and `high` of every latency, whose means are known. */
void maq_serve_intervals(struct maq_serve_result *r);

#endif
