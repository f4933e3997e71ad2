/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codes.h - the diagnostics of reports, 1890 to 1899: stable, never reused. Same form as base/codes.h.
 */
#ifndef MAQ_REPORT_CODES_H
#define MAQ_REPORT_CODES_H

/*    name            code  what it is                                                                      */
#define MAQ_CODE_LIST_REPORT(X)                                                                                        \
    X(SHOW_UNKNOWN, 1890, "a name that the catalogue does not have")                                                   \
    X(DIFF_NO_REPORT, 1891, "a file that is no report of maquette")                                                    \
    X(DIFF_SCHEMA, 1892, "a report that cannot be compared: of another kind, another version, or incomplete")          \
    X(DIFF_COMMANDS, 1893, "reports of two commands")                                                                  \
    X(PLAN_FORM, 1894, "a fleet that a form of manifest has no words for")

enum maq_report_code {
#define MAQ_CODE_ENUM(name, code, text) MAQ_CODE_##name = (code),
    MAQ_CODE_LIST_REPORT(MAQ_CODE_ENUM)
#undef MAQ_CODE_ENUM
};

#endif
