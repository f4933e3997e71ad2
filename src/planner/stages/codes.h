/* SPDX-License-Identifier: Apache-2.0 */
/* codes.h - the diagnostics of composition, 1625 to 1629 of the range in base/codes.h: stable, never reused. Same form as there. */
#ifndef MAQ_PLANNER_STAGES_CODES_H
#define MAQ_PLANNER_STAGES_CODES_H

#define MAQ_CODE_LIST_STAGES(X)                                                                                        \
    X(SEARCH_LIMIT, 1625, "a search over more node groups, layers or ways to run a stage than it can hold")            \
    X(SEARCH_MIXED, 1626, "something that a plan over several node groups, or a stage on any of them, cannot do")

enum maq_stages_code {
#define MAQ_CODE_ENUM(name, code, text) MAQ_CODE_##name = (code),
    MAQ_CODE_LIST_STAGES(MAQ_CODE_ENUM)
#undef MAQ_CODE_ENUM
};

#endif
