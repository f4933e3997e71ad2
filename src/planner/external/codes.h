/* SPDX-License-Identifier: Apache-2.0 */
/* codes.h - the diagnostics of parallelizers, 1660 to 1669 of the range in base/codes.h: stable, never reused. Same form as there. */
#ifndef MAQ_PLANNER_EXTERNAL_CODES_H
#define MAQ_PLANNER_EXTERNAL_CODES_H

#define MAQ_CODE_LIST_SLICES(X)                                                                                        \
    X(PARALLELIZER_LOAD, 1660, "a parallelizer that cannot be started or loaded")                                      \
    X(PARALLELIZER_VERSION, 1661, "a parallelizer of another version of the interface")                                \
    X(PARALLELIZER_DIED, 1662, "a parallelizer that ended before it answered")                                         \
    X(PARALLELIZER_TIMEOUT, 1663, "a parallelizer that did not answer in time")                                        \
    X(PARALLELIZER_ANSWER, 1664, "an answer of a parallelizer that is not of the form")                                \
    X(PARALLELIZER_VALUE, 1665, "an answer of a parallelizer that means nothing")                                      \
    X(PARALLELIZER_FAILED, 1666, "a parallelizer that says that it failed")                                            \
    X(SLICES_LIMIT, 1667, "more slices, islands or plans than a search over slices can hold")                          \
    X(SLICES_STOPPED, 1668, "a search over slices that was asked to stop")                                             \
    X(SLICES_FORM, 1669, "a plan that the form of mixed plans has no words for")

enum maq_slices_code {
#define MAQ_CODE_ENUM(name, code, text) MAQ_CODE_##name = (code),
    MAQ_CODE_LIST_SLICES(MAQ_CODE_ENUM)
#undef MAQ_CODE_ENUM
};

#endif
