/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codes.h - the diagnostics of profiles and mixed plans, 1600 to 1619 of the range in base/codes.h: stable, never
 * reused. Same form as there.
 */
#ifndef MAQ_PLAN_MIXED_CODES_H
#define MAQ_PLAN_MIXED_CODES_H

#define MAQ_CODE_LIST_MIXED(X)                                                                                         \
    X(PROFILE_FORM, 1600, "a file of a profile folder that does not have the form of its layout")                      \
    X(PROFILE_VALUE, 1601, "a number of a profile folder out of its range")                                            \
    X(PROFILE_LAYERS, 1602, "layers of a profiled model that are missing, or do not fit its other tables")             \
    X(PROFILE_NAME, 1603, "a model, device or zone that the profile folder does not have")                             \
    X(MIXED_FORM, 1610, "a mixed plan of the wrong form")                                                              \
    X(MIXED_COVER, 1611, "stages that do not cover the layers one after the other")                                    \
    X(MIXED_PLACE, 1612, "a replica whose degrees do not fit its devices or its stage")                                \
    X(MIXED_SHARE, 1613, "micro batches that do not add up to the step")                                               \
    X(MIXED_TECHNIQUE, 1614, "a memory technique that means nothing")                                                  \
    X(MIXED_UNPRICED, 1615, "a plan that the profile, the judge or the job's node groups have no costs for")

enum maq_mixed_code {
#define MAQ_CODE_ENUM(name, code, text) MAQ_CODE_##name = (code),
    MAQ_CODE_LIST_MIXED(MAQ_CODE_ENUM)
#undef MAQ_CODE_ENUM
};

#endif
