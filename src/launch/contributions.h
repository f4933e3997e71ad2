/* SPDX-License-Identifier: Apache-2.0 */
/*
 * contributions.h - contributions: what ranks put into exchanges (shim/link.h) and set in the rendezvous store, as
 * recorded in slices.
 *
 * A table of contributions is filled from the traces of slices (BOOT records) and from the keys that they set in the
 * store. It is written as the file that the next slices read (shim/link.h). Keys of the store are entries of the same
 * file, behind all others: channel MAQ_PEERS_STORE, seq counts them, rank is the rank that set it, and the bytes are
 * the length of the key (uint64), the key, the value. Before them, on channel MAQ_PEERS_RAN (shim/link.h), is an entry
 * without bytes for every rank that ran, and on MAQ_PEERS_PATTERNS are the members of communicators.
 */
#ifndef MAQ_LAUNCH_CONTRIBUTIONS_H
#define MAQ_LAUNCH_CONTRIBUTIONS_H

#include "base/arena.h"
#include "launch/store/store.h"
#include "shim/link.h"

#define MAQ_PEERS_STORE UINT64_MAX

/* A contribution; bytes are borrowed from the table's arena. */
struct maq_contribution {
    uint64_t channel;
    uint32_t seq, rank; /* in the exchange */
    uint32_t by;        /* the rank of the job that ran */
    uint64_t n;
    const char *bytes;
};

struct maq_contributions {
    struct maq_arena arena;
    struct maq_contribution *at;
    uint32_t n, size;
};

void maq_contributions_init(struct maq_contributions *t);
void maq_contributions_fini(struct maq_contributions *t);

/* Adds a contribution; its bytes are copied. */
enum maq_status maq_contributions_add(struct maq_contributions *t, const struct maq_contribution *said,
                                      struct maq_diag *diag);
/* Adds the contributions in a rank's trace. A file that is no trace adds nothing. */
enum maq_status maq_contributions_add_trace(struct maq_contributions *t, uint32_t rank, const char *path,
                                            struct maq_diag *diag);
/* Adds the keys that a rank set in its store, in the order of keys. */
enum maq_status maq_contributions_add_store(struct maq_contributions *t, uint32_t rank, const struct maq_store *store,
                                            struct maq_diag *diag);
/* Adds the contributions in a file; a damaged one is MAQ_BAD_INPUT. A missing file adds nothing. */
enum maq_status maq_contributions_add_file(struct maq_contributions *t, const char *path, struct maq_diag *diag);

/* Sorts the table and keeps one entry for each place: of two, that of the lower rank; of two of one rank, the first. */
void maq_contributions_settle(struct maq_contributions *t);
/* Puts the keys of the table into the store of a slice of `rank`, without those that this rank sets itself. */
void maq_contributions_give(const struct maq_contributions *t, struct maq_store *store, uint32_t rank);
/* Key and value of an entry; false: it is not one of the store. */
bool maq_contributions_key(struct maq_str *key, struct maq_str *value, const struct maq_contribution *s);
/* Whether this rank ran, by a settled table. */
bool maq_contributions_ran(const struct maq_contributions *t, uint32_t rank);
/* Writes a settled table to a file. */
enum maq_status maq_contributions_write(const struct maq_contributions *t, const char *path, struct maq_diag *diag);
/* A hash of the entries from `first` on, in their order. */
uint64_t maq_contributions_hash(const struct maq_contributions *t, uint32_t first);

#endif
