/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vision.h - a vision tower from `vision_config` and the keys beside it, before it becomes an architecture. vision.c reads keys and makes the layers that all towers have;
 * vision_towers.c is what each of them has in front of its layers and behind them.
 */
#ifndef MAQ_MODEL_HF_VISION_H
#define MAQ_MODEL_HF_VISION_H

#include "maquette/vision.h"
#include "model/hf/config.h"

struct maq_hf_vision {
    /* vision_config */
    int64_t hidden, embed, layers, heads, ffn, channels, merge, temporal, window, positions, out;
    double mlp_ratio;
    struct maq_node *image, *patches, *full_layers, *deepstack;
    bool qkv_bias, qk_norm, mask_token, mean_pool, positioned, pools;
    struct maq_str norm_name;
    int64_t output_dim, projector_in, projector_out; /* Llama 4 */
    double shuffle;
    /* beside it */
    struct maq_node *feature_layer;
    struct maq_str strategy;
    bool projector_bias;
    int64_t tokens_per_image, outer_merge, most_tiles;
    double downsample;
    /* settled */
    int64_t image_size, patch;
    int64_t run;           /* layers that patches pass: up to the one whose features are taken */
    int64_t features;      /* layers whose features are joined */
    int64_t text;          /* width of the text model */
    struct maq_str around; /* model_type of the whole */
};

struct maq_hf_tower {
    const char *types; /* of vision_config, or of the whole where that has none */
    const char *facts; /* defaults of its class, in the words of config.json */
    /* Takes from `v` what is its own, and sets `arch` and the rest of *out. */
    void (*build)(struct maq_vision *out, struct maq_architecture *arch, struct maq_hf_vision *v,
                  struct maq_model_reader *r);
};

/* The tower of a type; NULL = none is known. */
const struct maq_hf_tower *maq__hf_tower(struct maq_str type);

/*
 * Reads the tower of a model whose maps are those of `around`, and which is there but for it: model->vision, or a warning that it is not known. `vision` is the map.
 * Faults in a tower that is known are errors.
 */
void maq__hf_vision_read(struct maq_model *model, struct maq_node *vision, bool lenient,
                         struct maq_model_reader *around, struct maq_str type);

#endif
