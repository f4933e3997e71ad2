/* SPDX-License-Identifier: Apache-2.0 */
/* vary_table.h - the best plan on other numbers and kinds of devices, as a table. */
#ifndef MAQ_REPORT_PLAN_VARY_TABLE_H
#define MAQ_REPORT_PLAN_VARY_TABLE_H

#include "maquette/report.h"
#include "report/page.h"

#define MAQ_VARY_COLUMNS 14

/* Makes it, with `columns` for its own; the caller ends it (maq_table_fini). *priced: what tokens cost is known of a variant. */
void maq_vary_table(struct maq_table *table, struct maq_table_column columns[MAQ_VARY_COLUMNS], bool *priced,
                    const struct maq_search_variants *variants);

#endif
