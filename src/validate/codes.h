/* SPDX-License-Identifier: Apache-2.0 */
/* codes.h - the numbers of the diagnostics of validation tables; ranges are in base/codes.h (1550-1569 of the workloads' range). */
#ifndef MAQ_VALIDATE_CODES_H
#define MAQ_VALIDATE_CODES_H

#include "base/codes.h"

#define MAQ_CODE_LIST_VALIDATE(X)                                                                                      \
    X(CSV_QUOTE, 1550, "a quoted field that does not end, or goes on after its closing quote")                         \
    X(CSV_WIDTH, 1551, "a record with more or fewer fields than there are columns")                                    \
    X(CSV_HEADER, 1552, "a table without columns, or with two of one name")                                            \
    X(CSV_SIZE, 1553, "a table over a limit of size")                                                                  \
    X(CSV_COLUMN, 1554, "a column that is needed and missing")                                                         \
    X(CSV_FILTER, 1555, "a filter on a column that the table does not have")                                           \
    X(VALIDATE_NOTHING, 1556, "no row could be compared")                                                              \
    X(VALIDATE_JOB, 1557, "plans without the job that they are plans of")                                              \
    X(CSV_UNREAD, 1558, "columns that nothing is read from")                                                           \
    X(KERNEL_FILE, 1560, "a file that is not named like a table of kernels")                                           \
    X(PLAN_FILES, 1561, "no executed plans where they are expected, or an archive that cannot be read")                \
    X(PLAN_PROFILE, 1562, "no profile to predict plans from")                                                          \
    X(RECORDING, 1563, "not a recording of a scheduler, or of one that maquette does not have")                        \
    X(SERVE_LOG, 1564, "no recorded run of an engine, or one that cannot be read")

enum maq_validate_code {
#define MAQ_CODE_ENUM(name, code, text) MAQ_CODE_##name = (code),
    MAQ_CODE_LIST_VALIDATE(MAQ_CODE_ENUM)
#undef MAQ_CODE_ENUM
};

#endif
