/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codes.h - the diagnostics of this floor, 1700 to 1799: stable, never reused.
 *
 * Same form as base/codes.h. The text is the short name of the fault for the documentation, not the message a user sees.
 */
#ifndef MAQ_REPORT_TIMELINE_CODES_H
#define MAQ_REPORT_TIMELINE_CODES_H

/*    name            code  what it is                                                                      */
#define MAQ_CODE_LIST_TRACE(X)                                                                                         \
    X(TRACE_OPEN, 1700, "a trace file cannot be opened")                                                               \
    X(TRACE_WRITE, 1701, "a trace cannot be written to its end")                                                       \
    X(TRACE_ORDER, 1702, "slices of one thread that are out of order or overlap")                                      \
    X(TRACE_LEFT_OUT, 1703, "a timeline of the beginning of a long run")

enum maq_trace_code {
#define MAQ_CODE_ENUM(name, code, text) MAQ_CODE_##name = (code),
    MAQ_CODE_LIST_TRACE(MAQ_CODE_ENUM)
#undef MAQ_CODE_ENUM
};

#endif
