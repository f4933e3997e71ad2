/* SPDX-License-Identifier: Apache-2.0 */
/* graph_parts.h - tables about a captured job and about a graph with times, which their text and their page share. */
#ifndef MAQ_REPORT_CAPTURE_GRAPH_PARTS_H
#define MAQ_REPORT_CAPTURE_GRAPH_PARTS_H

#include "maquette/report.h"
#include "report/page.h"

/* Each makes a table, which the caller ends (maq_table_fini). */
void maq_graph_classes_table(struct maq_table *t, const struct maq_report_graph *g);
void maq_graph_communicators_table(struct maq_table *t, const struct maq_capture_stats *s);
void maq_graph_operators_table(struct maq_table *t, const struct maq_capture_stats *s);
/* "32 end, 49280 launch, ..." */
void maq_graph_records_words(struct maq_buf *b, const struct maq_capture_stats *s);

/* All items of one name, over the nodes of one class. */
struct maq_times_row {
    const char *name;
    double seconds, count;
};

/* Where the time of a graph goes: of the class that waits least for others. */
struct maq_times {
    struct maq_graph_times times;
    uint32_t class_id, n_rows;
    struct maq_times_row *row; /* longest first; free() */
};

enum maq_status maq_times_of(struct maq_times *out, const struct maq_timed_graph *g, const double *finish,
                             struct maq_diag *diag);
/* The longest operators, so many at most. */
void maq_times_table(struct maq_table *t, const struct maq_times *s, uint32_t most);

#endif
