/* SPDX-License-Identifier: Apache-2.0 */
/* report_post_training.h - a step of post-training as text, as JSON and as a page. In the manner of report.h. */
#ifndef MAQUETTE_REPORT_POST_TRAINING_H
#define MAQUETTE_REPORT_POST_TRAINING_H

#include "maquette/post_training.h"
#include "maquette/report.h"

#ifdef __cplusplus
extern "C" {
#endif

MAQ_API enum maq_status maq_report_post_training_text(char **out, const struct maq_post_training_result *result,
                                                      const struct maq_report_opts *opts, struct maq_diag *diag);
/* Schema "maquette.post_training/1". */
MAQ_API enum maq_status maq_report_post_training_json(char **out, const struct maq_post_training_result *result,
                                                      const struct maq_report_opts *opts, struct maq_diag *diag);

/* An HTML page that needs nothing else: docs/html.md. */
MAQ_API enum maq_status maq_report_post_training_html(char **out, const struct maq_post_training_result *result,
                                                      const struct maq_report_opts *opts, struct maq_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
