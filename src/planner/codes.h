/* SPDX-License-Identifier: Apache-2.0 */
/* codes.h - the diagnostics of searches, 1620 to 1624 of the range in base/codes.h: stable, never reused. Same form as there. */
#ifndef MAQ_PLANNER_CODES_H
#define MAQ_PLANNER_CODES_H

#define MAQ_CODE_LIST_SEARCH(X)                                                                                        \
    X(SEARCH_AXIS, 1620, "a key that a search cannot vary")                                                            \
    X(SEARCH_VALUE, 1621, "a value that an axis of the search does not take")                                          \
    X(SEARCH_EMPTY, 1622, "a search in which no plan goes together with the cluster, the batch and the model")         \
    X(SEARCH_ONE_KIND, 1623, "a cluster of several kinds of nodes where one is searched")                              \
    X(SEARCH_VARY, 1624, "a variation that is none: a range of devices, or a cluster that cannot be varied")

enum maq_search_code {
#define MAQ_CODE_ENUM(name, code, text) MAQ_CODE_##name = (code),
    MAQ_CODE_LIST_SEARCH(MAQ_CODE_ENUM)
#undef MAQ_CODE_ENUM
};

#endif
