/* SPDX-License-Identifier: Apache-2.0 */
/* serve_parts.h - sections that the pages of a deployment share: of requests that come, and of one batch alone. */
#ifndef MAQ_REPORT_HTML_SERVE_PARTS_H
#define MAQ_REPORT_HTML_SERVE_PARTS_H

#include "maquette/report_serve.h"
#include "report/html/html.h"

/* What the time of `passes` passes together is spent on, as the mean of one. */
void maq_html_serve_parts(struct maq_html *h, const char *id, const char *title,
                          const double part_s[MAQ_SERVE_PART_COUNT], double passes);
/* What the memory of the fullest GPU is held by. */
void maq_html_serve_memory(struct maq_html *h, const struct maq_serve_result *r);

#endif
