/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve_images.h - requests with images, and the vision tower that makes tokens of them.
 *
 *   image --patches--> [ tower: a forward pass over them ] --merge x merge patches become a token--> tokens of the prompt
 *
 * The images of a request stand one behind another in its prompt, behind its named prefix. An image passes the tower in front of the iteration that computes its first
 * token, on the GPUs that compute the prompt (the first stage), all of an iteration together; a prompt that is computed again is encoded again. With vLLM an iteration
 * encodes no more than max_num_batched_tokens tokens of images, and a prompt is cut in front of an image that would be too much (v1/core/sched/scheduler.py,
 * v1/core/encoder_cache_manager.py at 003ad86).
 */
#ifndef MAQUETTE_SERVE_IMAGES_H
#define MAQUETTE_SERVE_IMAGES_H

#include "maquette/job.h"
#include "maquette/vision.h"

#ifdef __cplusplus
extern "C" {
#endif

struct maq_encoder_options {
    const struct maq_job *
        tower; /* a job whose model is the tower: layers that see all patches of an image; NULL: there is none, or `own` */
    bool own;      /* the tower is that of the deployment's model (maq_model.vision, not NULL), with its projector */
    int32_t merge; /* patches on a side that become a token, of `tower`; 0 = 1 */
    int64_t image_tokens; /* of an image whose request does not say; 0: every one says */
    /* own: what an image of image_tokens tokens is; zero, and for all others: as far as their tokens say (maq_vision_image_of_tokens()) */
    struct maq_image image;
    bool elsewhere; /* a pool of the fleet encodes (maq_fleet.encode_replicas), and the deployment has no tower */
};

/* Whether there is a tower, in the deployment or elsewhere. */
MAQ_API bool maq_encoder_there(const struct maq_encoder_options *e);

/* Patches of one image that go together, at the most. */
#define MAQ_IMAGE_PATCHES 65536

/* What was encoded. */
struct maq_encoded {
    bool known;        /* false: there is no tower, and the rest is zero */
    uint32_t requests; /* with images */
    uint64_t images;   /* that passed the tower, again what was lost */
    double tokens, patches, encode_s;
    double weights_bytes; /* of the tower, on a GPU */
    /* of a pool: its GPUs, how busy they are; what an image waits for its pass and for its embeddings' way, the mean; bytes of these */
    uint32_t replicas;
    double busy_share, wait_s, transfer_s, bytes;
};

/* Tokens on a side of an image of so many pixels: the nearest number, at least one. */
MAQ_API int64_t maq_image_side(int64_t pixels, int32_t patch, int32_t merge);

#ifdef __cplusplus
}
#endif
#endif
