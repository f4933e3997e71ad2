/* SPDX-License-Identifier: Apache-2.0 */
/* step_json.h - what documents about a step share: where its time goes, by bucket. */
#ifndef MAQ_REPORT_STEP_JSON_H
#define MAQ_REPORT_STEP_JSON_H

#include "report/json_util.h"

/* seconds[MAQ_BUCKET_COUNT] */
void maq_json_buckets(struct maq_json map, const double *seconds);

#endif
