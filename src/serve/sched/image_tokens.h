/* SPDX-License-Identifier: Apache-2.0 */
/* image_tokens.h - images in a prompt, one behind another, as a scheduler sees them. */
#ifndef MAQ_SERVE_SCHED_IMAGE_TOKENS_H
#define MAQ_SERVE_SCHED_IMAGE_TOKENS_H

#include <stdint.h>

struct maq_image_run {
    int64_t from, tokens; /* the first token of the first one; tokens of each */
    uint32_t n;           /* 0: there are none */
};

/* Images whose first token is before `end`. */
static inline int64_t maq_images_before(const struct maq_image_run *r, int64_t end)
{
    int64_t n = end > r->from && r->n > 0 ? (end - r->from + r->tokens - 1) / r->tokens : 0;
    return n < r->n ? n : r->n;
}

/* Images that pass the tower with `tokens` tokens behind `computed` ones. */
static inline int64_t maq_images_begun(const struct maq_image_run *r, int64_t computed, int64_t tokens)
{
    return maq_images_before(r, computed + tokens) - maq_images_before(r, computed);
}

/* Of these tokens, those in front of the first image that is too many where `budget` tokens of images may pass it. */
static inline int64_t maq_images_within(const struct maq_image_run *r, int64_t computed, int64_t tokens, int64_t budget)
{
    int64_t n = maq_images_begun(r, computed, tokens), most = n > 0 ? budget / r->tokens : 0;
    return n <= most ? tokens : r->from + (maq_images_before(r, computed) + most) * r->tokens - computed;
}

#endif
