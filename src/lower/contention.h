/* SPDX-License-Identifier: Apache-2.0 */
/*
 * contention.h - interference: the compute time that kernels lose while communication kernels hold some of the SMs.
 * contention.c has the rule.
 */
#ifndef MAQ_LOWER_CONTENTION_H
#define MAQ_LOWER_CONTENTION_H

#include "graph/segment.h"
#include "maquette/job.h"

/* Share of the compute time lost while communication runs on a stream, 0..1. */
void maq_contention_shares(double share[MAQ_STREAM_COUNT], const struct maq_plan *plan,
                           const struct maq_device *device);

#endif
