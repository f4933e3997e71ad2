/* SPDX-License-Identifier: Apache-2.0 */
/* vary_table.h - requests with other values of some options, a row for each combination, as text and pages show them. vary.c */
#ifndef MAQ_REPORT_SERVE_VARY_TABLE_H
#define MAQ_REPORT_SERVE_VARY_TABLE_H

#include "maquette/report_serve.h"
#include "report/page.h"

/* Ends with maq_table_fini(); `columns` lives as long. */
void maq_serve_vary_table(struct maq_table *t, struct maq_table_column columns[MAQ_TABLE_COLUMNS],
                          const struct maq_serve_variants *variants);

#endif
