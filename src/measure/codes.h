/* SPDX-License-Identifier: Apache-2.0 */
/* codes.h - the diagnostics of measuring, 1450 to 1499: stable, never reused. Same form as base/codes.h. */
#ifndef MAQ_MEASURE_CODES_H
#define MAQ_MEASURE_CODES_H

/*    name               code  what it is                                                                   */
#define MAQ_CODE_LIST_PROFILE(X)                                                                                       \
    X(PROFILE_NO_GPU, 1450, "no GPU that can be measured")                                                             \
    X(PROFILE_FAILED, 1451, "a GPU that failed while it was measured")                                                 \
    X(PROFILE_DEVICE, 1452, "a GPU that the catalogue does not know by that name")                                     \
    X(PROFILE_OTHER_DEVICE, 1453, "a job that is for another GPU than the one at hand")                                \
    X(PROFILE_NOTHING, 1454, "nothing is asked to be measured")                                                        \
    X(PROFILE_TABLE, 1455, "a table of measurements with a value that cannot be read")                                 \
    X(PROFILE_NO_MEMORY, 1456, "out of memory for a plan of measurements")

enum maq_profile_code {
#define MAQ_CODE_ENUM(name, code, text) MAQ_CODE_##name = (code),
    MAQ_CODE_LIST_PROFILE(MAQ_CODE_ENUM)
#undef MAQ_CODE_ENUM
};

#endif
