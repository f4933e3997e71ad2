/* SPDX-License-Identifier: Apache-2.0 */
/* codes.h - the diagnostics of measured costs, 1400 to 1449: stable, never reused. Same form as base/codes.h. */
#ifndef MAQ_COST_CODES_H
#define MAQ_COST_CODES_H

/*    name               code  what it is                                                                   */
#define MAQ_CODE_LIST_COST(X)                                                                                          \
    X(KERNELS_OPEN, 1400, "a file of measured kernels that cannot be opened or written")                               \
    X(KERNELS_FORM, 1401, "a file that does not hold measured kernels, or in another version of the form")             \
    X(KERNELS_DAMAGED, 1402, "a damaged file of measured kernels")                                                     \
    X(KERNELS_ROW, 1403, "a measurement that means nothing")                                                           \
    X(KERNELS_BUSY, 1404, "a file of measured kernels that another program keeps locked")                              \
    X(KERNELS_NO_MEMORY, 1405, "out of memory for measured kernels")

enum maq_cost_code {
#define MAQ_CODE_ENUM(name, code, text) MAQ_CODE_##name = (code),
    MAQ_CODE_LIST_COST(MAQ_CODE_ENUM)
#undef MAQ_CODE_ENUM
};

#endif
