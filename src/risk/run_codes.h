/* run_codes.h - the diagnostics of failures and runs, 1650 to 1669 of the range in base/codes.h: stable, never reused. Same form as there. */
#ifndef MAQ_RISK_RUN_CODES_H
#define MAQ_RISK_RUN_CODES_H

#define MAQ_CODE_LIST_RISK_RUN(X)                                                                                      \
    X(UNKNOWN_FAILURES, 1650, "failures that the catalogue does not have")                                             \
    X(FAILURES_FORM, 1651, "failures of the wrong form")                                                               \
    X(FAILURES_RATE, 1652, "a rate of failures that is not number/unit/time")                                          \
    X(FAILURES_CONTRADICT, 1653, "failures whose settings do not go together")                                         \
    X(RUN_OPTION, 1654, "a run that cannot be simulated as described")                                                 \
    X(RUN_ENDLESS, 1655, "a run that does not come to its end")                                                        \
    X(RUN_NO_MEMORY, 1656, "out of memory for a simulation of runs")

enum maq_risk_run_code {
#define MAQ_CODE_ENUM(name, code, text) MAQ_CODE_##name = (code),
    MAQ_CODE_LIST_RISK_RUN(MAQ_CODE_ENUM)
#undef MAQ_CODE_ENUM
};

#endif
