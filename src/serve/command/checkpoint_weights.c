/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_weights.c - in which of the types that an engine knows it serves what quantization_config describes.
 *
 * Engines take weights as the checkpoint has them. Whole numbers of 4 bits are multiplied in 16 bits (AWQ, GPTQ), those of 8 bits in 8.
 */
#include "maquette/serve_command.h"

#define MX_GROUP 32 /* numbers that share a scale in MXFP4 (OCP Microscaling Formats 1.0) */

static bool type_of(enum maq_weights *out, const struct maq_quantization *q)
{
    if (q->bits == 8)
        *out = !q->floating ? MAQ_WEIGHTS_INT8 : q->blocks ? MAQ_WEIGHTS_FP8_BLOCK : MAQ_WEIGHTS_FP8;
    else if (q->bits == 4)
        *out = !q->floating ? MAQ_WEIGHTS_INT4 : q->group == MX_GROUP ? MAQ_WEIGHTS_MXFP4 : MAQ_WEIGHTS_NVFP4;
    return q->bits == 8 || q->bits == 4;
}

bool maq_checkpoint_weights(struct maq_checkpoint_name *out, const struct maq_model *model)
{
    enum maq_weights type;
    if (!model->quantization.method || !type_of(&type, &model->quantization))
        return false;
    bool all = !model->quantization.experts_alone || !maq_model_has_experts(model);
    *out = (struct maq_checkpoint_name){.weights = all ? type : MAQ_WEIGHTS_BF16, .expert_weights = type};
    return true;
}
