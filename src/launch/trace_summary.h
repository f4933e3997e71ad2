/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_summary.h - sums of a rank's trace for the result of a launch: counts, times, memory.
 *
 * What a killed program leaves is read up to its last whole record (rank_trace.h).
 */
#ifndef MAQ_LAUNCH_TRACE_SUMMARY_H
#define MAQ_LAUNCH_TRACE_SUMMARY_H

#include "launch/price_server.h"

/* Adds up a trace: everything in *out that a trace tells. Launches are counted in the table of `asks` too. */
enum maq_status maq_rank_trace_sum(struct maq_launch_rank *out, const char *path, struct maq_price_server *asks,
                                   struct maq_diag *diag);

#endif
