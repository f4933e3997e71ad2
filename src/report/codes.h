/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codes.h - the diagnostics of reports, 1890 to 1899: stable, never reused. Same form as base/codes.h.
 */
#ifndef MAQ_REPORT_CODES_H
#define MAQ_REPORT_CODES_H

/*    name            code  what it is                                                                      */
#define MAQ_CODE_LIST_REPORT(X) X(SHOW_UNKNOWN, 1890, "a name that the catalogue does not have")

enum maq_report_code {
#define MAQ_CODE_ENUM(name, code, text) MAQ_CODE_##name = (code),
    MAQ_CODE_LIST_REPORT(MAQ_CODE_ENUM)
#undef MAQ_CODE_ENUM
};

#endif
