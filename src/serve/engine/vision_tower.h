/* SPDX-License-Identifier: Apache-2.0 */
/* vision_tower.h - a vision tower on some GPUs, and what a pass of it takes. vision_tower.c */
#ifndef MAQ_SERVE_ENGINE_VISION_TOWER_H
#define MAQ_SERVE_ENGINE_VISION_TOWER_H

#include "serve/engine/deployment.h"

/* What passes the tower of an image that has so many tokens in the prompt. */
struct maq_image maq_tower_image(const struct maq_deployment *d, int64_t tokens);
/* Notes it among the chunks of a pass, [*n]: a chunk for each of its tiles. False: out of memory. */
bool maq_tower_add_image(struct maq_pass_chunk **chunks, uint32_t *n, uint32_t *size, const struct maq_image *image);
/* The tower of a deployment's options, over `tp` ranks. */
enum maq_status maq_tower_init(struct maq_tower *t, const struct maq_deployment *d, int32_t tp,
                               struct maq_arena *arena);
/* One pass over images, a chunk each; *work has what it adds to products and traffic. */
double maq_tower_pass_s(struct maq_tower *t, const struct maq_deployment *d, const struct maq_pass_chunk *images,
                        uint32_t n, struct maq_pass_parts *work);

#endif
