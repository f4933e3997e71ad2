/* SPDX-License-Identifier: Apache-2.0 */
/* replay_parts.h - the table and lines about a replayed job that its text and its page share. replay.c */
#ifndef MAQ_REPORT_CAPTURE_REPLAY_PARTS_H
#define MAQ_REPORT_CAPTURE_REPLAY_PARTS_H

#include "maquette/report.h"
#include "report/page.h"

/* What stopped, where something did; how long the steps take. */
void maq_replay_lines(const struct maq_lines *to, const struct maq_replay *r);
/* Where the time of each class goes; the caller ends it (maq_table_fini). */
void maq_replay_classes_table(struct maq_table *t, const struct maq_replay *r);

#endif
