/* SPDX-License-Identifier: Apache-2.0 */
/* failures.h - reading failures from nodes of a document: see maquette/failures.h. */
#ifndef MAQ_RISK_RUN_FAILURES_H
#define MAQ_RISK_RUN_FAILURES_H

#include "maquette/failures.h"
#include "spec/field.h"

/* A delay as it is written: a time, or {median, mean}, {median, sigma}, {mean, sd}. */
enum maq_status maq__delay_read(struct maq_delay *out, struct maq_node *node, struct maq_diag *diag);

/* "3.79e-3/node/day" as failures per second and what of: devices = 1 for gpu, `devices_per_node` for node. */
enum maq_status maq__failure_rate_read(double *per_device_s, struct maq_node *node, double devices_per_node,
                                       struct maq_diag *diag);

#endif
