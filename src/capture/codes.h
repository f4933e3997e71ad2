/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codes.h - the diagnostics of emulation, 1670 to 1689 of the range in base/codes.h: stable, never reused. Same form as
 * there. Up to 1679 traces, captured jobs and their replay; from 1680 on running programs
 * (src/launch). 1718 is of a captured job's graph.
 */
#ifndef MAQ_CAPTURE_CODES_H
#define MAQ_CAPTURE_CODES_H

#define MAQ_CODE_LIST_CAPTURE(X)                                                                                       \
    X(CAPTURE_FORM, 1670, "a file that is no trace of a rank and no captured job, or a damaged one")                   \
    X(CAPTURE_TRUNCATED, 1671, "a trace that ends in the middle of a record")                                          \
    X(CAPTURE_RANKS, 1672, "traces that do not belong to one job")                                                     \
    X(CAPTURE_UNMATCHED, 1673, "a collective or a message that does not meet on all its members")                      \
    X(CAPTURE_UNKNOWN_RANKS, 1674, "ranks of which nothing is known")                                                  \
    X(REPLAY_DEADLOCK, 1675, "ranks that wait for each other for ever")                                                \
    X(REPLAY_EDIT, 1676, "an edit that the captured job has no place for")                                             \
    X(REPLAY_FAILED, 1677, "a failure that ends the job")                                                              \
    X(KERNEL_TIMES, 1678, "a file of kernel times of the wrong form")                                                  \
    X(CAPTURE_LIMIT, 1679, "a captured job larger than can be held")                                                   \
    X(GRAPH_LIMIT, 1718, "a captured job with more nodes than a graph can hold")

enum maq_capture_code {
#define MAQ_CODE_ENUM(name, code, text) MAQ_CODE_##name = (code),
    MAQ_CODE_LIST_CAPTURE(MAQ_CODE_ENUM)
#undef MAQ_CODE_ENUM
};

#endif
