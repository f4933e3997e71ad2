/*
 * contributions.h - what ranks said to each other: the contributions of slices to exchanges and to the rendezvous store.
 *
 * A table of contributions comes from the traces of slices (BOOT records) and from what they set in the store; it is written as the
 * file that the next slices read (shim/link.h). Keys of the store are entries of the same file, behind all others: channel
 * MAQ_PEERS_STORE, seq counts them, rank is who set it, and the bytes are the length of the key (uint64), the key, the value. Before
 * them, on channel MAQ_PEERS_RAN, is an entry without bytes for every rank that ran, and on MAQ_PEERS_PATTERNS (shim/link.h) where
 * communicators lie.
 */
#ifndef MAQ_LAUNCH_CONTRIBUTIONS_H
#define MAQ_LAUNCH_CONTRIBUTIONS_H

#include "base/arena.h"
#include "launch/store/store.h"
#include "shim/link.h"

#define MAQ_PEERS_STORE UINT64_MAX
#define MAQ_PEERS_RAN (UINT64_MAX - 1)

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

/* One more, with its bytes. */
enum maq_status maq_contributions_add(struct maq_contributions *t, const struct maq_contribution *said,
                                      struct maq_diag *diag);
/* What a rank's trace holds. A file that is none holds nothing. */
enum maq_status maq_contributions_add_trace(struct maq_contributions *t, uint32_t rank, const char *path,
                                            struct maq_diag *diag);
/* What a rank set in its store, in the order of keys. */
enum maq_status maq_contributions_add_store(struct maq_contributions *t, uint32_t rank, const struct maq_store *store,
                                            struct maq_diag *diag);
/* What is in a file; a damaged one is MAQ_BAD_INPUT. A file that is not there holds nothing. */
enum maq_status maq_contributions_add_file(struct maq_contributions *t, const char *path, struct maq_diag *diag);

/* Order, one entry of each place: of two the one of the lower rank counts, of two of one rank the first. */
void maq_contributions_settle(struct maq_contributions *t);
/* The keys, for a slice of `rank`: those that it set are left to it. */
void maq_contributions_give(const struct maq_contributions *t, struct maq_store *store, uint32_t rank);
/* Key and value of an entry of the store; false: it is of something else. */
bool maq_contributions_key(struct maq_str *key, struct maq_str *value, const struct maq_contribution *s);
/* Whether a settled table has it that this rank ran. */
bool maq_contributions_ran(const struct maq_contributions *t, uint32_t rank);
/* Of a settled table. */
enum maq_status maq_contributions_write(const struct maq_contributions *t, const char *path, struct maq_diag *diag);
/* Of the entries from `first` on, in the order in which they stand. */
uint64_t maq_contributions_hash(const struct maq_contributions *t, uint32_t first);

#endif
