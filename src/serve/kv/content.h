/* SPDX-License-Identifier: Apache-2.0 */
/*
 * content.h - what the tokens of a request are, as far as a prefix cache can tell: which of its blocks are equal to blocks of others.
 *
 * A request begins with `n_prefix` runs of `unit` tokens that have names: runs of equal names, behind equal beginnings, are equal
 * tokens. What follows, and what is generated, is the request's own. Recordings of a scheduler and traces with hashes of blocks
 * (Mooncake: 512 tokens each) both say so much and no more.
 *
 * Keys and values are made by weights, too: with an adapter of LoRA tokens are equal to those of requests with the same one alone (vLLM's
 * generate_block_hash_extra_keys(), SGLang's extra_key, TensorRT-LLM's BlockKey).
 */
#ifndef MAQ_SERVE_KV_CONTENT_H
#define MAQ_SERVE_KV_CONTENT_H

#include <stdint.h>

struct maq_content {
    const uint64_t *prefix; /* [n_prefix], borrowed */
    uint32_t n_prefix, unit;
    uint64_t own;     /* differs between requests */
    uint64_t adapter; /* 0 = none */
};

/*
 * The hash of `tokens` tokens from token `first` on (a multiple of `tokens`) behind a beginning with the hash `parent` (0 = none):
 * never 0. Two blocks of equal content have equal hashes; others differ but for chance, 2^-64 for each pair.
 */
uint64_t maq_content_hash(const struct maq_content *content, uint64_t parent, int64_t first, int32_t tokens);

/* What `tokens` tokens from token `first` on are, whatever is before them. */
uint64_t maq_content_page(const struct maq_content *content, int64_t first, int32_t tokens);
/* Tokens that two contents have in common, at most `most`. */
int64_t maq_content_common(const struct maq_content *a, const struct maq_content *b, int64_t most);

#endif
