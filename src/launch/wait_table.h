/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wait_table.h - the wait table of a rank: arrivals of its peers at its meetings in a replay, as a file for a libnccl
 * on a real GPU (shim/link.h, "waits").
 */
#ifndef MAQ_LAUNCH_WAIT_TABLE_H
#define MAQ_LAUNCH_WAIT_TABLE_H

#include "maquette/replay.h"

/* Replays the job with these edits and writes the waits of `rank` to `path`. */
enum maq_status maq_wait_table_write(const char *path, const struct maq_capture *job, uint32_t rank,
                                     const struct maq_edit *edits, uint32_t n_edits, struct maq_diag *diag);

#endif
