/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gloo.h - addresses of gloo in values of the rendezvous store, and values for ranks that are absent. Keys are
 * PREFIX/RANK, equal in a group but for the rank.
 */
#ifndef MAQ_LAUNCH_STORE_GLOO_H
#define MAQ_LAUNCH_STORE_GLOO_H

#include "base/str.h"

/* Whether a value is the address of a rank of gloo. */
bool maq_gloo_said(struct maq_str value);
/*
 * Reduces such a value in place to what is the same in every run: its address is taken out. Does nothing to other
 * values.
 */
void maq_gloo_settle(char *value, size_t n);
/* The ranks of the group of such a value; 0: it does not have them. false: it is another value. */
bool maq_gloo_ranks(uint32_t *ranks, struct maq_str value);
/* A value for the absent rank of `key` in a group of `ranks` (0: unknown); owned by the caller (free()). NULL: the key belongs to no
 * rank of such a group, or out of memory. */
char *maq_gloo_absent(size_t *n_out, struct maq_str key, uint32_t ranks);
/* The common part of the keys of a group: PREFIX; .ptr NULL: the key belongs to no group. */
struct maq_str maq_gloo_group(struct maq_str key);
/* The rank of a key; false: it has none. */
bool maq_gloo_rank_of(uint32_t *rank, struct maq_str key);

#endif
