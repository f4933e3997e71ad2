/*
 * store_gloo.h - addresses of gloo in the store, for ranks that are not there.
 */
#ifndef MAQ_SESSION_STORE_GLOO_H
#define MAQ_SESSION_STORE_GLOO_H

#include "session/store.h"

/* Whether a value is what a rank of gloo says of itself. */
bool maq_gloo_said(struct maq_str value);
/* What of it is the same in every run, in place: its address is taken out. Nothing, where it is something else. */
void maq_gloo_settle(char *value, size_t n);
/* What the rank that `key` belongs to says where it is not there, in the way of `other`, which one of its group said. NULL: it
 * belongs to none, or no memory; the caller frees it. */
char *maq_gloo_absent(size_t *n_out, struct maq_str key, struct maq_str other);
/* The value of a key of the same group; .ptr NULL: nobody of it has said anything. */
struct maq_str maq_gloo_sibling(const struct maq_store *s, struct maq_str key);
/* Whether the rank that the key belongs to lives, as far as the key tells: in a group of all ranks. */
bool maq_gloo_lives(const struct maq_store *s, struct maq_str key, struct maq_str sibling);

#endif
