/* SPDX-License-Identifier: Apache-2.0 */
/*
 * readers.h - the readers of foreign traces, for the table of readers in maq_capture_read().
 *
 * A probe looks at the first bytes of a file (up to MAQ_IMPORT_PROBE, compressed if the file is). A reader takes all
 * paths of one kind and makes one capture, or a diagnostic of any input.
 */
#ifndef MAQ_CAPTURE_IMPORT_READERS_H
#define MAQ_CAPTURE_IMPORT_READERS_H

#include "maquette/capture.h"

#define MAQ_IMPORT_PROBE 4096

/* The PyTorch profiler's JSON, plain or gzip. */
bool maq_import_kineto_probe(const unsigned char *head, size_t n);
enum maq_status maq_import_kineto(struct maq_capture **out, const char *const *paths, uint32_t n,
                                  struct maq_diag *diag);

/* Chakra execution traces. */
bool maq_import_chakra_probe(const unsigned char *head, size_t n);
enum maq_status maq_import_chakra(struct maq_capture **out, const char *const *paths, uint32_t n,
                                  const struct maq_capture_read_opts *opts, struct maq_diag *diag);

#endif
