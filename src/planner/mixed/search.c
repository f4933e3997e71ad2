/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.c - maq_mixed_search(): the search for compositions (compositions.h), then the alternatives to them
 * (alternatives.h).
 */
#include "maquette/planner_mixed.h"

#include "base/check.h"
#include "planner/mixed/alternatives.h"
#include "planner/mixed/compositions.h"

enum maq_status maq_mixed_search(struct maq_mixed_search_result **out, const struct maq_loaded_job *open,
                                 const struct maq_mixed_search_opts *opts, struct maq_diag *diag)
{
    struct maq_mixed_search_result *r;
    MAQ_TRY(maq_mixed_compositions(&r, open, opts, diag));
    struct maq_mixed_run *run = r->owner;
    enum maq_status status =
        r->planner == MAQ_MIXED_PLANNER_ALL ? maq_mixed_alternatives(run, open, opts, diag) : MAQ_OK;
    if (status != MAQ_OK) {
        maq_mixed_search_free(r);
        return status;
    }
    maq_mixed_settle(run);
    run->costs.watch = (struct maq_chain_watch){.stop = NULL};
    *out = r;
    return MAQ_OK;
}

const char *maq_mixed_planner_name(enum maq_mixed_planner planner)
{
    static const char *const names[] = {"all", "metis", "sailor", "alpa", "uniform"};
    _Static_assert(MAQ_COUNT(names) == MAQ_MIXED_PLANNER_COUNT, "a name for each");
    return (unsigned)planner < MAQ_MIXED_PLANNER_COUNT ? names[planner] : "?";
}
