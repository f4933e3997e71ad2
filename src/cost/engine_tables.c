/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_tables.c - whose measured table has a kernel that an engine runs.
 *
 * Products in 8 bits are the same libraries' in all engines: SGLang's table has CUTLASS's and DeepGEMM's. vLLM's has its host's launches in those with blocks of scales, and kernels that its releases did not choose in others;
 * TensorRT-LLM's has a search for the largest value in those with one scale, and slower kernels in 4 bits, than its engine launches. Its
 * products with blocks are its own; on Blackwell, where they are DeepGEMM's, they stand for SGLang's and vLLM's too: SGLang's rows have the
 * packing of the weights' scales in every call there (collect_gemm.py of ai-dynamo/aiconfigurator 095f58a passes them in FP32, and
 * DeepGEMM's transform_sf_into_required_layout is four kernels then, 7 to 9 us), which the engine does once, when it loads. Conversions are
 * vLLM's, for SGLang as well, whose rows are PyTorch's copies. Of absorbed latent attention, one key for all heads that is wider than its value, vLLM's rows are
 * 160 us and more whatever the batch and the heads: its host's launches, too.
 */
#include "cost/engine_tables.h"

enum maq_library maq_engine_table(enum maq_library engine, const struct maq_op *op, const struct maq_device *device)
{
    if (engine == MAQ_LIBRARY_TRAINING)
        return engine;
    if (op->kind == MAQ_OP_QUANTIZE)
        return engine == MAQ_LIBRARY_SGLANG ? MAQ_LIBRARY_VLLM : engine;
    if (op->kind == MAQ_OP_ATTENTION && op->d[3] == 1 && op->d[4] > op->d[5])
        return engine == MAQ_LIBRARY_VLLM ? MAQ_LIBRARY_SGLANG : engine;
    if (op->kind != MAQ_OP_GEMM)
        return engine;
    if (op->dtype == MAQ_FP8 && op->flags & MAQ_OP_BLOCKS)
        return engine == MAQ_LIBRARY_TRTLLM || device->arch >= MAQ_ARCH_BLACKWELL ? MAQ_LIBRARY_TRTLLM
                                                                                  : MAQ_LIBRARY_SGLANG;
    bool narrow = op->dtype == MAQ_FP8 || (op->dtype == MAQ_FP4 && engine == MAQ_LIBRARY_TRTLLM);
    return narrow ? MAQ_LIBRARY_SGLANG : engine;
}
