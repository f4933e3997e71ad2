/* SPDX-License-Identifier: Apache-2.0 */
/* afd_lines.h - deployments whose attention and FFN are on GPUs of their own, in words. */
#ifndef MAQ_REPORT_SERVE_AFD_LINES_H
#define MAQ_REPORT_SERVE_AFD_LINES_H

#include "base/str.h"
#include "maquette/serve.h"

/* ": 4 of attention and 2 of FFN (ep2), p2p, 3 micro-batches" */
void maq_afd_add_sides(struct maq_buf *line, const struct maq_serve_result *r);
/* "a GPU of FFN 60.1 of 141.0 GiB: weights 55.11, activations 1.70, context 0.73", and whether that fits. */
void maq_afd_add_memory(struct maq_buf *line, const struct maq_serve_result *r);
/* How busy both sides and the ways between them are for `all_s`. */
void maq_afd_add_times(struct maq_buf *line, const struct maq_afd_times *t, double all_s);

#endif
