/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mixed_plan.c - loading, parsing and freeing a mixed plan, in maquette's form or Sailor's. docs/plan-form.md describes
 * the document.
 */
#include "plan/mixed/mixed_plan.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/str.h"
#include "plan/keys.h"
#include "plan/mixed/codes.h"
#include "spec/cannot_read.h"

#define MAX_PLAN_BYTES ((size_t)1 << 30) /* a short text can have a large "count" */

const char *const maq__mixed_schedules[] = {
    "auto",    "gpipe",          "1f1b", "interleaved", "zb-h1",      "zb-h2", "zb-1p",  "zb-2p",
    "zb-auto", "interleaved-zb", "zb-v", "dualpipe",    "dualpipe-v", "v-min", "v-half", NULL};
const char *const maq__mixed_shardings[] = {"no_shard", "optim", "optim_grads", "optim_grads_params", NULL};
const char *const maq__mixed_recomputes[] = {"none", "selective", "full", NULL};
const char *const maq__mixed_cp_comms[] = {"p2p", "all_gather", "a2a", "a2a+p2p", NULL};
_Static_assert(MAQ_COUNT(maq__mixed_schedules) == MAQ_SCHEDULE_COUNT + 1, "a word per schedule");
_Static_assert(MAQ_COUNT(maq__mixed_shardings) == MAQ_SHARDING_PARAMS + 2, "a word per way of sharding");
_Static_assert(MAQ_COUNT(maq__mixed_recomputes) == MAQ_RECOMPUTE_FULL + 2, "a word per way of recomputing");
_Static_assert(MAQ_COUNT(maq__mixed_cp_comms) == MAQ_CP_A2A_P2P + 2, "a word per kind of CP");

/* ---- loading ---- */

struct maq_loaded_mixed_plan *maq__mixed_new(size_t most_bytes)
{
    struct maq_loaded_mixed_plan *loaded = maq__calloc(sizeof *loaded);
    if (loaded)
        maq_arena_init(&loaded->arena, most_bytes);
    return loaded;
}

static enum maq_status take(struct maq_loaded_mixed_plan **out, struct maq_doc *doc, struct maq_diag *diag)
{
    if (!doc->root || doc->root->kind != MAQ_NODE_MAP)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_MIXED_FORM, doc->root ? doc->root->at : (struct maq_span){0},
                             "docs/plan-form.md has an example", "a plan is a map");
    struct maq_loaded_mixed_plan *loaded = maq__mixed_new(MAX_PLAN_BYTES);
    if (!loaded)
        return maq_no_memory(diag, "the plan");
    bool foreign = maq_node_peek(doc->root, "pipeline_list") != NULL;
    enum maq_status status =
        (foreign ? maq__mixed_import : maq__mixed_read)(&loaded->plan, doc->root, &loaded->arena, diag);
    if (status != MAQ_OK) {
        maq_mixed_plan_free(loaded);
        return status;
    }
    *out = loaded;
    return MAQ_OK;
}

enum maq_status maq_mixed_plan_load(struct maq_loaded_mixed_plan **out, const char *path, struct maq_diag *diag)
{
    struct maq_doc doc;
    MAQ_TRY(maq_file_expected(path, "a plan: what `maquette plan --write` wrote (docs/plan-form.md)", diag));
    enum maq_status status = maq_doc_load(&doc, path, MAQ_ORIGIN_DOCUMENT, diag);
    if (status == MAQ_OK)
        status = take(out, &doc, diag);
    maq_doc_fini(&doc);
    return status;
}

enum maq_status maq_mixed_plan_parse(struct maq_loaded_mixed_plan **out, const char *name, struct maq_str text,
                                     struct maq_diag *diag)
{
    struct maq_doc doc;
    enum maq_status status = maq_doc_parse(&doc, name, text, MAQ_ORIGIN_DOCUMENT, diag);
    if (status == MAQ_OK)
        status = take(out, &doc, diag);
    maq_doc_fini(&doc);
    return status;
}

const struct maq_mixed_plan *maq_mixed_plan_get(const struct maq_loaded_mixed_plan *loaded)
{
    return &loaded->plan;
}

enum maq_status maq__mixed_hand_out(struct maq_loaded_mixed_plan **out, struct maq_loaded_mixed_plan *loaded,
                                    bool filled, struct maq_diag *diag)
{
    if (!filled) {
        maq_mixed_plan_free(loaded);
        return maq_no_memory(diag, "the plan");
    }
    *out = loaded;
    return MAQ_OK;
}

void maq_mixed_plan_free(struct maq_loaded_mixed_plan *loaded)
{
    if (!loaded)
        return;
    maq_arena_fini(&loaded->arena);
    free(loaded);
}
