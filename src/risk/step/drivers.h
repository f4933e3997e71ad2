/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drivers.h - which parts of a step drive its 95th percentile: operations, parallel dimensions, stages.
 *
 * For each part three questions are answered on the same random numbers: it varies alone, it keeps half of its
 * variation, it keeps none. Factors that all GPUs share (noise of the whole step, spikes, the hour) and episodes belong
 * to no part: they vary in the last two questions, and not when a part varies alone.
 */
#ifndef MAQ_RISK_STEP_DRIVERS_H
#define MAQ_RISK_STEP_DRIVERS_H

#include "maquette/risk.h"
#include "risk/step/question.h"

/* *out and *n: the parts of a kind, owned by the caller (free). w has signatures. */
enum maq_status maq_step_drivers_find(struct maq_risk_driver **out, uint32_t *n, enum maq_risk_parts parts,
                                      const struct maq_step_question *w, const struct maq_variation *v);

#endif
