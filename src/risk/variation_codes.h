/* variation_codes.h - the diagnostics of variation, 1630 to 1649 of the range in base/codes.h: stable, never reused. Same form as there. */
#ifndef MAQ_RISK_VARIATION_CODES_H
#define MAQ_RISK_VARIATION_CODES_H

#define MAQ_CODE_LIST_VARIATION(X)                                                                                     \
    X(RISK_TABLE, 1630, "a table without the columns that are needed")                                                 \
    X(RISK_ROW, 1631, "a row of a table with a wrong number of values, or with one that is none")                      \
    X(RISK_SHORT, 1632, "a series too short to learn from")                                                            \
    X(RISK_FILE, 1633, "a file of a kind that variation cannot be learnt from")                                        \
    X(RISK_TRACE, 1634, "a recorded job whose operations do not fit together")                                         \
    X(RISK_SHAPE, 1635, "a shape of a recorded job that cannot be")                                                    \
    X(RISK_SLOW, 1636, "a slow part that the job does not have")                                                       \
    X(RISK_LIMIT, 1637, "more rows, operations or samples than can be held")

enum maq_variation_code {
#define MAQ_CODE_ENUM(name, code, text) MAQ_CODE_##name = (code),
    MAQ_CODE_LIST_VARIATION(MAQ_CODE_ENUM)
#undef MAQ_CODE_ENUM
};

#endif
