/* SPDX-License-Identifier: Apache-2.0 */
/* json.h - members that the documents of plans and of files share. */
#ifndef MAQ_MEASURE_JSON_H
#define MAQ_MEASURE_JSON_H

#include "cost/measured/store.h"
#include "report/json_util.h"

/* The columns of the file that say what was measured, and the figures. */
void maq_profile_json_key(struct maq_json row, bool is_coll, const struct maq_op *op, const struct maq_coll *coll);
void maq_profile_json_times(struct maq_json row, const struct maq_kernel_times *times);

#endif
