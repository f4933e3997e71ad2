/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codes.h - the diagnostics of risk, 1630 to 1659 of the range in base/codes.h: stable, never reused. Same form as there.
 * From 1630 on variation of step times, from 1650 on failures and runs.
 */
#ifndef MAQ_RISK_CODES_H
#define MAQ_RISK_CODES_H

#define MAQ_CODE_LIST_RISK(X)                                                                                          \
    X(RISK_TABLE, 1630, "a table without the columns that are needed")                                                 \
    X(RISK_ROW, 1631, "a row of a table with a wrong number of values, or with one that is none")                      \
    X(RISK_SHORT, 1632, "a series too short to learn from")                                                            \
    X(RISK_FILE, 1633, "a file of a kind that variation cannot be learnt from")                                        \
    X(RISK_TRACE, 1634, "a recorded job whose operations do not fit together")                                         \
    X(RISK_SHAPE, 1635, "a shape of a recorded job that cannot be")                                                    \
    X(RISK_SLOW, 1636, "a slow part that the job does not have")                                                       \
    X(RISK_LIMIT, 1637, "more rows, operations or samples than can be held")                                           \
    X(RISK_KERNEL, 1638, "a kernel of a variation that is none, or that is there twice")                               \
    X(RISK_PROFILE, 1639, "a profiler's trace that cannot be read, or with nothing to learn from")                     \
    X(RISK_STEP, 1640, "a step whose variation has no model here")                                                     \
    X(UNKNOWN_FAILURES, 1650, "failures that the catalogue does not have")                                             \
    X(FAILURES_FORM, 1651, "failures of the wrong form")                                                               \
    X(FAILURES_RATE, 1652, "a rate of failures that is not number/unit/time")                                          \
    X(FAILURES_CONTRADICT, 1653, "failures whose settings do not go together")                                         \
    X(RUN_OPTION, 1654, "a run that cannot be simulated as described")                                                 \
    X(RUN_ENDLESS, 1655, "a run that does not come to its end")                                                        \
    X(RUN_NO_MEMORY, 1656, "out of memory for a simulation of runs")

enum maq_risk_code {
#define MAQ_CODE_ENUM(name, code, text) MAQ_CODE_##name = (code),
    MAQ_CODE_LIST_RISK(MAQ_CODE_ENUM)
#undef MAQ_CODE_ENUM
};

#endif
