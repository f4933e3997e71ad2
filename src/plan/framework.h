/* SPDX-License-Identifier: Apache-2.0 */
/*
 * framework.h - loading a framework profile, and its plan settings under those of a document.
 *
 * Profiles know the job they are for: a setting may hold only for some hardware, models or precisions (`cases`).
 */
#ifndef MAQ_PLAN_FRAMEWORK_H
#define MAQ_PLAN_FRAMEWORK_H

#include "maquette/framework.h"
#include "plan/keys.h"

/* What the conditions of a profile's cases may ask. */
struct maq_framework_facts {
    int arch; /* enum maq_device_arch of the first node group */
    bool moe; /* the model has routed experts */
    bool tensor_parallel, pipeline_parallel;
    bool paired;              /* there are passes of two microbatches side by side: no pipeline, or virtual stages */
    struct maq_str precision; /* as the document writes it; empty when it does not */
};

#define MAQ_FRAMEWORK_CASES 16

/* The profile's plan settings: which rows of maq_plan_fields it sets, and their values. */
struct maq_framework_plan {
    struct maq_plan_doc doc;
    bool set[MAQ_PLAN_FIELDS_MAX];
    bool may_set[MAQ_PLAN_FIELDS_MAX]; /* and those that it sets in some case, whether it holds or not */
    /* every case of the profile in words, whether it holds or not: "fp16: main_grads_dtype = fp16" */
    const char *cases[MAQ_FRAMEWORK_CASES];
    uint32_t n_cases;
};

extern const struct maq_field maq_framework_fields[]; /* of struct maq_framework: what is one scalar, for lists */
extern const struct maq_field maq_host_fields[];      /* of struct maq_host_costs */

/* What holds without `framework:`. */
extern const struct maq_framework maq_framework_default;

/* node: a name, a file or a map; NULL = the default profile. Strings and settings live in `arena`. */
enum maq_status maq_framework_load(struct maq_framework *out, struct maq_framework_plan *plan, struct maq_node *node,
                                   const struct maq_framework_facts *facts, struct maq_arena *arena,
                                   struct maq_diag *diag);

/* Whether the profile settles a key of the plan; whether its attention is unfused where the job says nothing. */
bool maq_framework_sets(const struct maq_framework_plan *plan, const char *key);
bool maq_framework_is_unfused(const struct maq_framework_plan *plan);

/* Fills the profile's settings into a plan read from a document, where origins[i] says that the value is a default. */
void maq_framework_underlay(struct maq_plan_doc *doc, uint8_t *origins, const struct maq_framework_plan *plan);

#endif
