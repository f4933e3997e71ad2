/*
 * gloo.h - addresses of gloo, for ranks that are not there: what a value of the rendezvous store says. Keys are PREFIX/RANK, alike
 * in a group but for the rank.
 */
#ifndef MAQ_LAUNCH_STORE_GLOO_H
#define MAQ_LAUNCH_STORE_GLOO_H

#include "base/str.h"

/* Whether a value is what a rank of gloo says of itself. */
bool maq_gloo_said(struct maq_str value);
/* What of it is the same in every run, in place: its address is taken out. Nothing, where it is something else. */
void maq_gloo_settle(char *value, size_t n);
/* What the rank that `key` belongs to says where it is not there, in the way of `other`, which one of its group said. NULL: it
 * belongs to none, or no memory; the caller frees it. */
char *maq_gloo_absent(size_t *n_out, struct maq_str key, struct maq_str other);
/* What the keys of a group have in common: PREFIX; .ptr NULL: it belongs to none. */
struct maq_str maq_gloo_group(struct maq_str key);
/* The rank that the key belongs to, in a group of `ranks` as what another of it said tells (0: it does not). false: to none. */
bool maq_gloo_rank_of(uint32_t *rank, uint32_t *ranks, struct maq_str key, struct maq_str other);

#endif
