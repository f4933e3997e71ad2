/* SPDX-License-Identifier: Apache-2.0 */
/* diff_parts.h - lines and tables of a comparison, which its text and its page share. */
#ifndef MAQ_REPORT_DIFF_DIFF_PARTS_H
#define MAQ_REPORT_DIFF_DIFF_PARTS_H

#include "report/diff/diff.h"
#include "report/page.h"

/* The two reports; then, a line for each section, the settings that differ: "tp 8 -> 4, pp 1 -> 2". */
void maq_diff_asked_lines(const struct maq_lines *to, const struct maq_diff *diff);
/* What is wrong with the answer of a report: "b.json does not fit in memory". One at most for each. */
void maq_diff_verdict_lines(const struct maq_lines *to, const struct maq_diff *diff);

/* Each makes a table, which the caller ends (maq_table_fini()). */
void maq_diff_figures_table(struct maq_table *t, const struct maq_diff *diff);
/* `rows`: at most so many, the rest in one. */
void maq_diff_rows_table(struct maq_table *t, const struct maq_diff_table *table, uint32_t rows);
/* Whether a row of a table is nothing in both reports, and is not shown. */
bool maq_diff_row_is_nothing(const struct maq_diff_row *row);

/* "33.40 s": of a number that is shown beside others up to `most`; signed: with + or -. Returns buf. */
const char *maq_diff_value(char buf[48], double value, enum maq_diff_unit unit, double most, bool is_signed);
/* The `most` for a row of a table whose numbers are shown up to `most`, the row's own up to `row`: its own where little would be seen of it. */
double maq_diff_most_of_row(enum maq_diff_unit unit, double most, double row);
/* "-5.1 %", a change over what it is of; from ten times as much on "x 12". Returns buf. */
const char *maq_diff_percent(char buf[48], double change);
/* The same over a whole that it is a part of: "+1,234 %". Returns buf. */
const char *maq_diff_points(char buf[48], double share);

/* Whether the first figure's change is more than the reports can tell, as a sentence; or that nothing changed. */
void maq_diff_sentence(struct maq_buf *b, const struct maq_diff *diff);

#endif
