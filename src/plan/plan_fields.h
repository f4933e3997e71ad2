/* plan_fields.h - the option tables of a plan and of a workload: every key, its aliases, default, range and
 * one line of documentation. */
#ifndef MAQ_PLAN_FIELDS_H
#define MAQ_PLAN_FIELDS_H

#include "maquette/plan.h"
#include "spec/field.h"

/* Keys whose value is not one scalar; read by plan_read(). */
struct maq_plan_doc {
    struct maq_plan plan;
    struct maq_node *recompute_modules, *graph_scope;
};

extern const struct maq_field maq_plan_fields[];     /* of struct maq_plan_doc */
extern const struct maq_field maq_workload_fields[]; /* of struct maq_workload */

#define MAQ_PLAN_FIELDS_MAX 80
#define MAQ_WORKLOAD_FIELDS_MAX 16

/* Name of a recomputable part in Megatron's spelling ("core_attn"), or NULL when the part is not one. */
const char *maq_part_recompute_name(enum maq_part part);

#endif
