/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input_record.h - the input record of a slice (the file `inputs` of shim/link.h): everything that a run looked up in
 * the contributions of others.
 *
 * A program with equal inputs does the same; the passes of a capture wait for that. The device records what it looked
 * up in the contributions of others, maquette what was asked of the store. A slice need not be run again when all of
 * these look-ups would have the same results: contributions that were there are unchanged, and a rank that
 * contributes for the first time contributes what was guessed for it, so that the guesses for the others stay as they
 * are.
 */
#ifndef MAQ_LAUNCH_INPUT_RECORD_H
#define MAQ_LAUNCH_INPUT_RECORD_H

#include "launch/contributions.h"

/* Appends the look-ups in the store, once the program has ended. A file that the device did not begin is left as it is. */
enum maq_status maq_input_record_add_store(const char *path, const struct maq_store *store, struct maq_diag *diag);
/* Whether all look-ups in the file would have the same results in a settled table. false where that is not known. */
bool maq_input_record_same(const char *path, const struct maq_contributions *said, uint32_t rank);

/* What a program read that others were to say and had not said (shim/nccl/tainted_read.c). */
struct maq_unsaid_reads {
    uint32_t stopped_for; /* the rank for whose words it ended; MAQ_REC_NONE: it ended by itself */
    bool guessed;         /* it read such bytes and went on */
    bool loose;           /* in an exchange others were taken to say what no pattern has, as the colors of a split */
    bool supposed; /* of a gather of bytes it read what another member had said for that of one who had said nothing */
};
struct maq_unsaid_reads maq_input_record_unsaid(const char *path);

#endif
