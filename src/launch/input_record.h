/*
 * input_record.h - whether a slice that is run again would be told the same: the file `given` (shim/link.h).
 *
 * A program that is told the same does the same; that is what the passes of a capture wait for. The device writes down what it looked up in
 * the contributions of others, maquette what was asked of the store. A slice need not be run again when all of that would be answered as
 * it was: what others had said is what they say now, and whoever speaks for the first time says what was guessed of him, where that
 * leaves the guesses of the rest as they are.
 */
#ifndef MAQ_LAUNCH_INPUT_RECORD_H
#define MAQ_LAUNCH_INPUT_RECORD_H

#include "launch/contributions.h"

/* The store's part, once the program has ended: a file that the device did not begin stays as it is. */
enum maq_status maq_input_record_add_store(const char *path, const struct maq_store *store, struct maq_diag *diag);
/* Whether rank would be told by a settled table what the file has. false where that is not known. */
bool maq_input_record_same(const char *path, const struct maq_contributions *said, uint32_t rank);

#endif
