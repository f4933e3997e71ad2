/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost_keys.h - the `cost` section of a document: the file of measured kernels, the best provider of the cost chain
 * that may answer, and what a device costs in money.
 */
#ifndef MAQ_PLAN_COST_KEYS_H
#define MAQ_PLAN_COST_KEYS_H

#include "spec/field.h"

#define MAQ_COST_FIELDS 3

struct maq_cost_doc {
    struct maq_str measured; /* file; "" = none */
    int provider;            /* enum maq_provider behind NONE: 0 = analytical */
    double usd_per_hour;     /* of a device; 0 = what the devices say */
};

extern const struct maq_field maq_cost_fields[];

#endif
