/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_mqt.c - a captured job from any bytes: what reads is checked, replayed and written again.
 *
 * Checksums are put right first, so that mutations reach what is behind them.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/arena.h"
#include "base/check.h"
#include "capture/mqt/mqt.h"
#include "maquette/replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_right(uint8_t *file, size_t size)
{
    struct maq_mqt_head head;
    if (size < sizeof head)
        return;
    memcpy(&head, file, sizeof head);
    head.file_bytes = size;
    memcpy(file, &head, sizeof head);
    for (uint32_t i = 0; i < head.n_sections && i < 64; i++) {
        struct maq_mqt_section s;
        size_t at = sizeof head + i * sizeof s;
        if (at + sizeof s > size)
            return;
        memcpy(&s, file + at, sizeof s);
        if (s.at <= size && s.stored <= size - s.at)
            s.crc32 = (uint32_t)crc32(crc32(0, NULL, 0), file + s.at, (uInt)s.stored);
        memcpy(file + at, &s, sizeof s);
    }
}

static bool small(const struct maq_capture *c)
{
    uint64_t records = 0;
    for (uint32_t i = 0; i < c->n_classes; i++)
        records += c->class_of_ranks[i].n_records;
    return c->world <= 4096 && records <= 100000;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct maq_capture *c = NULL;
    uint8_t *file = malloc(size + 1);
    struct maq_diag *diag = maq_diag_new();
    if (!file || size > 1u << 20) {
        free(file);
        maq_diag_free(diag);
        return 0;
    }
    memcpy(file, data, size);
    put_right(file, size);
    enum maq_status status = maq_mqt_parse(&c, file, size, "fuzz", diag);
    MAQ_ASSERT((status == MAQ_OK) == (maq_diag_errors(diag) == 0));
    if (c && small(c)) {
        struct maq_replay *r = NULL;
        struct maq_capture_stats *s = NULL;
        (void)maq_capture_check(c, diag);
        if (maq_capture_stats(&s, c, diag) == MAQ_OK)
            maq_capture_stats_free(s);
        if (maq_capture_replay(&r, c, NULL, diag) == MAQ_OK)
            maq_replay_free(r);
    }
    maq_capture_free(c);
    maq_diag_free(diag);
    free(file);
    return 0;
}
