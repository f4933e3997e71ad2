/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vision.h - the vision tower of a model, as the `vision_config` of its config.json describes it.
 *
 *   image --resized, cut--> patches --[ embedding, layers ]--> features --[ projector: merges patches ]--> tokens of the prompt
 *
 * The tower is a model of its own whose layers are lists of the modules that text models have (model.h): its embedding is the linear that makes features of a patch
 * (with class token and positions), its output the projector, which works on `output.tokens` tokens for `output.of_tokens` patches. Modules between them whose features
 * are merged already stand with the merged ones: as many numbers, fewer rows.
 *
 * Towers: CLIP's and SigLIP's ViT with LLaVA's projector, Gemma 3's SigLIP, Pixtral with LLaVA's projector or Mistral's patch merger, Llama 4's, InternViT,
 * and those of Qwen2-VL, Qwen2.5-VL (windows), Qwen3-VL (features of several layers) and Qwen3.5. Parameters are those of their classes in `transformers` 5.24
 * (tools/model-truth/vision.py holds them against each other), sizes of images those of the image processors there.
 */
#ifndef MAQUETTE_VISION_H
#define MAQUETTE_VISION_H

#include "maquette/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What an image processor does with an image. */
enum maq_image_rule {
    MAQ_IMAGE_FIXED,   /* one size for all */
    MAQ_IMAGE_AREA,    /* sides to the nearest multiple of a token, the area between two bounds (Qwen) */
    MAQ_IMAGE_LONGEST, /* shrunk to a longest side, sides up to a multiple of a token (Pixtral) */
    MAQ_IMAGE_CANVAS,  /* tiles of the canvas that needs least scaling, and one of the whole (Llama 4) */
    MAQ_IMAGE_ASPECT,  /* tiles in the grid that is most like it, and one of the whole (InternVL) */
};

struct maq_vision {
    const char *type;       /* "siglip_vision_model", ...; static */
    struct maq_model model; /* the tower with its projector; no vocabulary */
    int64_t params;         /* of all that transformers has of it */
    int64_t
        idle_params; /* of these, of what no token passes (layers behind the one whose features are taken, a pooling head): not loaded, not in `model` */
    enum maq_image_rule rule;
    int32_t patch, merge; /* pixels on a side of a patch; patches on a side of a token */
    int64_t
        image_size; /* pixels on a side of the image, of a tile, or of the longest side; 0 where the rule has none */
    int64_t tile_patches,
        tile_tokens; /* of a tile, a class token among the patches; 0 where there are no tiles of one size */
    int64_t min_pixels, max_pixels; /* AREA */
    int32_t most_tiles;             /* CANVAS, ASPECT: without the one of the whole */
    int64_t embedding_width; /* numbers of a token that the text model gets, of all layers that it gets features of */
    const char *assumed;     /* what is in no config.json and is taken as published models have it; NULL = nothing */
};

/* An image on its way into the prompt. */
struct maq_image {
    int64_t tokens;  /* that the tower makes of it */
    int64_t marks;   /* that the processor puts between them and around */
    int64_t patches; /* that pass the tower, all tiles */
    int64_t tiles;   /* that do not see each other; 1 = the image is whole */
};

/* An image of so many pixels, both at least 1. */
MAQ_API struct maq_image maq_vision_image(const struct maq_vision *v, int64_t width, int64_t height);
/* An image that has so many tokens in the prompt, marks among them, as far as that says it: whole tiles, or tokens x merge x merge patches. */
MAQ_API struct maq_image maq_vision_image_of_tokens(const struct maq_vision *v, int64_t tokens);

#ifdef __cplusplus
}
#endif
#endif
