/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mqt.h - the .mqt file: a captured job in one file of checksummed, compressed sections. docs/trace-format.md has the
 * format.
 */
#ifndef MAQ_CAPTURE_MQT_MQT_H
#define MAQ_CAPTURE_MQT_MQT_H

#include <stddef.h>

#include "base/arena.h"
#include "maquette/capture.h"

#define MAQ_MQT_MAGIC "maqjob\n"
#define MAQ_MQT_VERSION 1

struct maq_mqt_head {
    char magic[8];
    uint32_t version, head_bytes;
    uint64_t file_bytes;
    uint32_t n_sections, zero;
};

/* The table of sections follows the head, then their bytes. zlib where stored < raw. */
struct maq_mqt_section {
    uint32_t kind;  /* enum maq_mqt_kind */
    uint32_t crc32; /* of the stored bytes */
    uint64_t at, stored, raw;
};
enum maq_mqt_kind {
    MAQ_MQT_JOB = 1,
    MAQ_MQT_TEXTS,
    MAQ_MQT_OPS,
    MAQ_MQT_COMMS,
    MAQ_MQT_CLASS,
    MAQ_MQT_RECORDS,
    MAQ_MQT_NAMES
};

/* Probe and reader, for the table of readers; n paths, of which there may be one only. */
bool maq_mqt_probe(const unsigned char *head, size_t n);
enum maq_status maq_mqt_read(struct maq_capture **out, const char *const *paths, uint32_t n, struct maq_diag *diag);
/* From memory, for tests; `name` is for messages. */
enum maq_status maq_mqt_parse(struct maq_capture **out, const void *bytes, size_t n, const char *name,
                              struct maq_diag *diag);

/* Why a capture from a file is invalid; NULL when it is valid. check_numbers.c */
const char *maq_capture_fault(const struct maq_capture *capture, struct maq_arena *scratch);

#endif
