/* SPDX-License-Identifier: Apache-2.0 */
/* document_places.c - where in a document a setting is written, for what is found out about it later. See job_build.h. */
#include "base/str.h"
#include "plan/job_build.h"

const struct maq_node *maq_value_in(const struct maq_node *section, const struct maq_field *fields, const char *key)
{
    const struct maq_field *f = maq_fields_find(fields, maq_str_of(key));
    bool map = section && section->kind == MAQ_NODE_MAP;
    for (const struct maq_node *n = map && f ? section->first : NULL; n; n = n->next)
        if (maq_fields_find(fields, n->key) == f)
            return n;
    return NULL;
}

/* Its place; else the section's, unless a flag of another setting made that. */
static struct maq_span place_in(const struct maq_node *section, const struct maq_field *fields, const char *key)
{
    const struct maq_node *n = maq_value_in(section, fields, key);
    if (n)
        return n->at;
    return section && section->origin != MAQ_ORIGIN_FLAG ? section->at : (struct maq_span){0, 0, 0};
}

struct maq_span maq_place_of(const struct maq_node *workload, const char *key)
{
    return place_in(workload, maq_workload_fields, key);
}

struct maq_span maq_place_of_plan(const struct maq_job_places *at, const char *key)
{
    struct maq_span place = place_in(at->plan, maq_plan_fields, key);
    bool whole = at->plan && place.file == at->plan->at.file && place.off == at->plan->at.off;
    return whole && at->searched ? (struct maq_span){0, 0, 0} : place;
}
