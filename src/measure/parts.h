/* SPDX-License-Identifier: Apache-2.0 */
/* parts.h - what documents, texts and pages of plans and of files of measured kernels share. */
#ifndef MAQ_MEASURE_PARTS_H
#define MAQ_MEASURE_PARTS_H

#include "cost/measured/store.h"
#include "measure/plan.h"
#include "report/html/html.h"
#include "report/json_util.h"
#include "report/page.h"

/* The columns of the file that say what was measured, and the figures. */
void maq_profile_json_key(struct maq_json row, bool is_coll, const struct maq_op *op, const struct maq_coll *coll);
void maq_profile_json_times(struct maq_json row, const struct maq_kernel_times *times);

/* "gemm 8192x14336x4096 bf16": what is to be measured, and what was. */
const char *maq_profile_item_words(char buf[96], const struct maq_profile_item *item);
const char *maq_profile_row_words(char buf[96], const struct maq_kernel_row *row);

/* The first `most` operators of a plan with what became of them. The caller ends it (maq_table_fini). */
void maq_profile_items_table(struct maq_table *table, const struct maq_profile *profile, uint32_t most);

/* ---- pages ---- */

#define MAQ_PROFILE_PAGE_ROWS 500u /* of a table; the document has all */

/* Names for the charts of a page, as {"names": [...]}, free(); NULL when out of memory. `name`: of number i, in buf or static. */
char *maq_profile_names(uint32_t n, const char *(*name)(char buf[96], const void *of, uint32_t i), const void *of);
/* maq_html_finish() with them; takes `document` and `names` (free()). */
enum maq_status maq_profile_finish_page(char **out, struct maq_html *h, char *document, char *names,
                                        struct maq_diag *diag);

#endif
