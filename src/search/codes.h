/* codes.h - the diagnostics of searches, 1600 to 1629 of the range in base/codes.h. Same form as there. */
#ifndef MAQ_SEARCH_CODES_H
#define MAQ_SEARCH_CODES_H

#include "base/codes.h"

#define MAQ_CODE_LIST_SEARCH(X)                                                                                        \
    X(SEARCH_AXIS, 1600, "a key that a search cannot vary")                                                            \
    X(SEARCH_VALUE, 1601, "a value that an axis of the search does not take")                                          \
    X(SEARCH_EMPTY, 1602, "a search in which no plan fits the model and the cluster's shape")

enum maq_search_code {
#define MAQ_CODE_ENUM(name, code, text) MAQ_CODE_##name = (code),
    MAQ_CODE_LIST_SEARCH(MAQ_CODE_ENUM)
#undef MAQ_CODE_ENUM
};

#endif
