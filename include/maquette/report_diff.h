/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_diff.h - two reports of one command, as documents, side by side: which settings differ, which figures moved, and what they are
 * made of. *out of the functions that write is owned by the caller (free()).
 *
 * What is compared are the documents that `--json` writes, of this program or of another version of it: docs/diff.md.
 */
#ifndef MAQUETTE_REPORT_DIFF_H
#define MAQUETTE_REPORT_DIFF_H

#include "maquette/report.h"

#ifdef __cplusplus
extern "C" {
#endif

struct maq_diff;

/* Reads two files; "-" is standard input. *out is owned by the caller (maq_diff_free). */
MAQ_API enum maq_status maq_diff_load(struct maq_diff **out, const char *before, const char *after,
                                      struct maq_diag *diag);
/* The same of two texts; the names are for messages and for what is written. */
MAQ_API enum maq_status maq_diff_parse(struct maq_diff **out, const char *before_name, struct maq_str before,
                                       const char *after_name, struct maq_str after, struct maq_diag *diag);
MAQ_API void maq_diff_free(struct maq_diff *diff);

MAQ_API enum maq_status maq_report_diff_text(char **out, const struct maq_diff *diff,
                                             const struct maq_report_opts *opts, struct maq_diag *diag);
/* Schema "maquette.diff/1". */
MAQ_API enum maq_status maq_report_diff_json(char **out, const struct maq_diff *diff,
                                             const struct maq_report_opts *opts, struct maq_diag *diag);
/* As one HTML file that needs no network and carries the document. */
MAQ_API enum maq_status maq_report_diff_html(char **out, const struct maq_diff *diff,
                                             const struct maq_report_opts *opts, struct maq_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
