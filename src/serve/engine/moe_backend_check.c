/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moe_backend_check.c - kernels of experts that are asked for, and of which there are no times: with such weights, or on such a GPU.
 *
 * Which weights and GPUs a backend of vLLM is for is in model_executor/layers/fused_moe/oracle/ of 0.33.0. Some that it has are not here, since tables
 * (src/cost/fitted) have no rows of them: Triton's in INT8 and INT4, FlashInfer's by CUTLASS in MXFP4, Marlin's in 8 bits and NVFP4.
 */
#include "serve/codes.h"
#include "serve/engine/deployment.h"

#define IN(id) (1u << MAQ_WEIGHTS_##id)

static const struct kernels {
    unsigned weights;
    int from; /* enum maq_device_arch: that and newer */
} kernels_of[MAQ_MOE_BACKEND_COUNT] = {
    [MAQ_MOE_BACKEND_TRITON] = {IN(BF16) | IN(FP8) | IN(FP8_BLOCK) | IN(MXFP4), 0},
    [MAQ_MOE_BACKEND_DEEP_GEMM] = {IN(FP8_BLOCK), MAQ_ARCH_HOPPER},
    [MAQ_MOE_BACKEND_CUTLASS] = {IN(FP8) | IN(FP8_BLOCK) | IN(NVFP4), MAQ_ARCH_HOPPER},
    [MAQ_MOE_BACKEND_FLASHINFER_CUTLASS] = {IN(BF16) | IN(FP8) | IN(FP8_BLOCK) | IN(NVFP4), MAQ_ARCH_HOPPER},
    [MAQ_MOE_BACKEND_FLASHINFER_TRTLLM] = {IN(BF16) | IN(FP8) | IN(FP8_BLOCK) | IN(MXFP4) | IN(NVFP4),
                                           MAQ_ARCH_BLACKWELL},
    [MAQ_MOE_BACKEND_FLASHINFER_AFP8] = {IN(MXFP4), MAQ_ARCH_BLACKWELL},
    [MAQ_MOE_BACKEND_MARLIN] = {IN(INT4) | IN(MXFP4), 0},
};

enum maq_status maq_moe_backend_check(const struct maq_job *job, const struct maq_device *device,
                                      const struct maq_serve_options *o, struct maq_diag *diag)
{
    const struct kernels *k = &kernels_of[o->moe_backend];
    const char *name = maq_moe_backend_name(o->moe_backend);
    if (o->moe_backend == MAQ_MOE_BACKEND_AUTO || !maq_model_has_experts(&job->model))
        return MAQ_OK;
    if (o->engine == MAQ_ENGINE_TRTLLM)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_EXPERTS, (struct maq_span){0},
                             "--engine vllm or sglang",
                             "--moe-backend %s: TensorRT-LLM is not asked whose kernels compute experts", name);
    if (device->arch < k->from)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_EXPERTS, (struct maq_span){0},
                             "auto takes those of the engine's release", "--moe-backend %s wants a newer GPU than %s",
                             name, device->name);
    if (!(k->weights & 1u << o->expert_weights))
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_EXPERTS, (struct maq_span){0},
                             "auto takes those of the engine's release",
                             "--moe-backend %s: no times are known of experts in %s by such kernels", name,
                             maq_weights_name(o->expert_weights));
    return MAQ_OK;
}
