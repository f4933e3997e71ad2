/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_export.h - what `maquette graph` and `maquette risk` write of a captured job: its execution graph for other tools, where
 * its time goes, and the distribution of its step time.
 */
#ifndef MAQ_CLI_GRAPH_EXPORT_H
#define MAQ_CLI_GRAPH_EXPORT_H

#include "cli/cli.h"

extern const char *const cli_export_words[]; /* of --export */

/*
 * --export perfetto --output FILE: a trace for a viewer. --export chakra --output FOLDER: execution traces, FOLDER/PREFIX.RANK.et
 * with the last part of FOLDER as PREFIX, of the first rank of each class, or of every rank.
 */
enum maq_status cli_graph_export(struct cli *cli, const struct maq_capture *capture, const char *format,
                                 const char *path, bool every_rank);
/* Where its time goes, as text or JSON; file may be NULL; html: a page beside it, or NULL. */
enum maq_status cli_graph_times(struct cli *cli, const struct maq_capture *capture, bool json, const char *file,
                                const char *html);
/* The distribution of its step time, in the same way. */
enum maq_status cli_graph_risk(struct cli *cli, const struct maq_capture *capture,
                               const struct maq_risk_graph_opts *opts, bool json, const char *file, const char *html);

#endif
