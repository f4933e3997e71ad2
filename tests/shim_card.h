/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shim_card.h - a test is itself a program on the zero-GPU device: its run card, and what it left in its trace.
 */
#ifndef MAQ_TESTS_SHIM_CARD_H
#define MAQ_TESTS_SHIM_CARD_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/core/core.h"

static char shim_folder[64];

static inline const char *shim_path(const char *name)
{
    static char path[4][128];
    static unsigned next;
    char *out = path[next++ % 4];
    snprintf(out, sizeof path[0], "%s/%s", shim_folder, name);
    return out;
}

/* Before anything else of the device: `more` is more lines of the card. */
static inline void shim_card(const char *more)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(shim_folder, sizeof shim_folder, "%.40s/maquette-XXXXXX", tmp ? tmp : "/tmp");
    if (mkdtemp(shim_folder) == NULL)
        abort();
    FILE *card = fopen(shim_path("card"), "w");
    if (card == NULL)
        abort();
    fprintf(card, "world 1\nrank 0\nper_node 2\ncall_ns 100\nlaunch_ns 1000\ncopy_bps 1e9\nhbm_bps 1e12\ntrace %s\n%s",
            shim_path("trace"), more);
    fclose(card);
    setenv(MAQ_RUN_CARD, shim_path("card"), 1);
}

/* The same, of a card with 64 MiB of memory and a file of values: `lines`. */
static inline void shim_card_of_values(const char *lines)
{
    shim_card("");
    FILE *card = fopen(shim_path("card"), "a"), *values = fopen(shim_path("values"), "w");
    if (card == NULL || values == NULL)
        abort();
    fprintf(card, "memory 67108864\nvalues %s\n", shim_path("values"));
    fputs(lines, values);
    fclose(card);
    fclose(values);
}

static inline void shim_done(void)
{
    unlink(shim_path("values"));
    unlink(shim_path("card"));
    unlink(shim_path("trace"));
    rmdir(shim_folder);
}

/* What is in the trace so far: records[0..n), payloads left out. Owned by the caller. */
static inline struct maq_rec *shim_records(size_t *n)
{
    vg_flush();
    FILE *f = fopen(shim_path("trace"), "rb");
    *n = 0;
    if (f == NULL)
        return NULL;
    struct stat st;
    if (fstat(fileno(f), &st) != 0)
        abort();
    struct maq_rec *out = calloc((size_t)st.st_size / sizeof *out + 1, sizeof *out);
    struct maq_rec_head head;
    if (fread(&head, sizeof head, 1, f) != 1 || memcmp(head.magic, MAQ_REC_MAGIC, 8) != 0)
        abort();
    while (fread(&out[*n], sizeof *out, 1, f) == 1) {
        const struct maq_rec *r = &out[(*n)++];
        bool payload = r->kind == MAQ_REC_DEF_OP || r->kind == MAQ_REC_DEF_COMM || r->kind == MAQ_REC_DEF_TEXT ||
                       r->kind == MAQ_REC_READ || r->kind == MAQ_REC_BOOT;
        if (payload)
            fseek(f, (long)maq_rec_padded(r->bytes), SEEK_CUR);
    }
    fclose(f);
    return out;
}

#endif
