/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl_tests_log.h - what nccl-tests prints, as the table that row.h reads.
 *
 * A log may hold several tests, one after another, and what their launcher and NCCL print between and in front of the lines: "[1,0]<stdout>:"
 * of Open MPI, "0: " of srun, "+ mpirun ... all_reduce_perf" of a script, "NCCL INFO ..." of NCCL_DEBUG. Of a test it says
 *
 *   collective               "# Collective test starting: all_reduce_perf", or the last word ..._perf before the table
 *   devices, and how many    "#  Rank  0 Group  0 Pid 12 on  node1 device  0 [0000:07:00] NVIDIA H100 80GB HBM3", one line a rank
 *   sockets, NVLS            "NCCL INFO Using network Socket", "NCCL_NVLS_ENABLE set by environment to 0"
 *   size, time out of place  a row: size, count, type, redop, root, time, algbw, busbw, #wrong, and the same in place
 *
 * as version 2.19.6 of nccl-tests prints them (its util.cu), and older ones without Group. What joins the nodes is not in it.
 */
#ifndef MAQ_VALIDATE_COLLECTIVES_NCCL_TESTS_LOG_H
#define MAQ_VALIDATE_COLLECTIVES_NCCL_TESTS_LOG_H

#include "validate/csv.h"

/* Whether a text is such a log: it has the line that names the columns, or the one that repeats the arguments. */
bool maq_nccl_tests_log_is(struct maq_str text);

/*
 * The measurements of a log, with the columns of row.h; fields point into text (borrowed), `name` and the arena: all outlive the table.
 * A row that broke off, that two ranks wrote at once or whose size is not that of its elements is left out and counted
 * (base/mended.h). `collective`: of tests that do not say which they are; NULL = such rows have none.
 */
enum maq_status maq_nccl_tests_log_read(struct maq_csv *out, const char *name, struct maq_str text,
                                        const char *collective, struct maq_arena *arena, struct maq_diag *diag);

#endif
