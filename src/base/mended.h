/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mended.h - what was mended in a file of recorded data: one account, for every reader of such data.
 *
 * Recorders leave dirt: durations below zero, lines of a launcher between the rows, rows that are there twice or not at all, an end
 * that is missing. A reader mends each piece where it stands and says so here: what it is, where it is, by how much time it may be off.
 * At the end the file gets one warning with all of it (MAQ1033). What cannot be used is left out; a file of which more is left out
 * than kept is refused with the first fault of it. Of findings that are strict (maq_diag_set_strict()) the first piece is an error.
 *
 *   struct maq_mending m;
 *   maq_mending_begin(&m, path, "line", "rows", diag);
 *   MAQ_TRY(maq_mend(&m, MAQ_MEND_NEGATIVE, line, code, "dur_us is %g", us)); m.moved_s += ...;
 *   MAQ_TRY(maq_mending_end(&m, rows_kept));
 */
#ifndef MAQ_BASE_MENDED_H
#define MAQ_BASE_MENDED_H

#include "maquette/diag.h"

/*    name       one of it                                  several                                                  */
#define MAQ_MEND_LIST(X)                                                                                               \
    X(LINE, "line left out that is none of the table", "lines left out that are none of the table")                    \
    X(VALUE, "row left out with a value that cannot be", "rows left out with a value that cannot be")                  \
    X(REPEATED, "repetition left out", "repetitions left out")                                                         \
    X(NEGATIVE, "duration below zero", "durations below zero")                                                         \
    X(UNTIMED, "duration missing", "durations missing")                                                                \
    X(CLOCK, "start that the clock had wrong", "starts that the clock had wrong")                                      \
    X(MISSING, "operation missing", "operations missing")                                                              \
    X(STEP, "step left out whose operations do not fit together",                                                      \
      "steps left out whose operations do not fit together")                                                           \
    X(RANK, "rank without a record", "ranks without a record")                                                         \
    X(LINK, "link without a measurement", "links without a measurement")                                               \
    X(END, "end missing", "ends missing")

enum maq_mend_kind {
#define MAQ_MEND_ENUM(name, one, several) MAQ_MEND_##name,
    MAQ_MEND_LIST(MAQ_MEND_ENUM)
#undef MAQ_MEND_ENUM
        MAQ_MEND_KINDS
};

struct maq_mending {
    const char *path, *place, *rows; /* borrowed; what a number of a place counts ("line"), what is counted ("rows") */
    struct maq_diag *diag;
    uint64_t n[MAQ_MEND_KINDS], first[MAQ_MEND_KINDS]; /* how many; where the first is, 0 = nowhere in particular */
    double moved_s;                                    /* by how much times may be off, all together */
    double recorded_s;                                 /* all durations of the record; 0 = that is not said */
    uint16_t code;                                     /* of the first that was left out: what to say where all is */
    struct maq_span at;
    char fault[256];
};

void maq_mending_begin(struct maq_mending *m, const char *path, const char *place, const char *rows,
                       struct maq_diag *diag);
/* One piece, in the words of the fault that it would be. MAQ_OK: it is counted, and the caller mends it. MAQ_BAD_INPUT: the findings
 * are strict, and it is reported under `code`. */
enum maq_status maq_mend(struct maq_mending *m, enum maq_mend_kind kind, uint64_t place, uint16_t code, const char *fmt,
                         ...) MAQ_PRINTF(5, 6);
/* The same with a place in a source of the findings. */
enum maq_status maq_mend_at(struct maq_mending *m, enum maq_mend_kind kind, uint64_t place, uint16_t code,
                            struct maq_span at, const char *fmt, ...) MAQ_PRINTF(6, 7);
/* The warning, where there is something to say. MAQ_BAD_INPUT: more was left out than the `kept` rows, and the first is reported. */
enum maq_status maq_mending_end(const struct maq_mending *m, uint64_t kept);

#endif
