/* codes.h - the diagnostics of searching for plans, 1600 to 1649: stable, never reused. Same form as base/codes.h. */
#ifndef MAQ_SEARCH_CODES_H
#define MAQ_SEARCH_CODES_H

/*    name               code  what it is                                                                   */
#define MAQ_CODE_LIST_SEARCH(X)                                                                                        \
    X(PROFILE_FORM, 1600, "a file of a profile folder that does not have the form of its layout")                      \
    X(PROFILE_VALUE, 1601, "a number of a profile folder out of its range")                                            \
    X(PROFILE_LAYERS, 1602, "layers of a profiled model that are missing, or do not fit its other tables")             \
    X(PROFILE_NAME, 1603, "a model, device or zone that the profile folder does not have")                             \
    X(MIXED_FORM, 1610, "a mixed plan of the wrong form")                                                              \
    X(MIXED_COVER, 1611, "stages that do not cover the layers one after the other")                                    \
    X(MIXED_PLACE, 1612, "a replica whose degrees do not fit its devices or its stage")                                \
    X(MIXED_SHARE, 1613, "micro batches that do not add up to the step")                                               \
    X(MIXED_TECHNIQUE, 1614, "a memory technique that means nothing")                                                  \
    X(MIXED_UNPRICED, 1615, "a plan that the profile or the judge has no costs for")                                   \
    X(SEARCH_AXIS, 1620, "a key that a search cannot vary")                                                            \
    X(SEARCH_VALUE, 1621, "a value that an axis of the search does not take")                                          \
    X(SEARCH_EMPTY, 1622, "a search in which no plan goes together with the cluster, the batch and the model")         \
    X(SEARCH_ONE_KIND, 1623, "a cluster of several kinds of nodes where one is searched")                              \
    X(SEARCH_VARY, 1624, "a variation that is none: a range of devices, or a cluster that cannot be varied")           \
    X(SEARCH_LIMIT, 1625, "a search over more node groups, layers or ways to run a stage than it can hold")            \
    X(SEARCH_MIXED, 1626, "something that a plan over several node groups cannot do")

enum maq_search_code {
#define MAQ_CODE_ENUM(name, code, text) MAQ_CODE_##name = (code),
    MAQ_CODE_LIST_SEARCH(MAQ_CODE_ENUM)
#undef MAQ_CODE_ENUM
};

#endif
