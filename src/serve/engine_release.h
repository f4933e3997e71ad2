/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_release.h - which release of an engine it is: what one does and an earlier one does not is decided by these.
 */
#ifndef MAQ_SERVE_ENGINE_RELEASE_H
#define MAQ_SERVE_ENGINE_RELEASE_H

#include <stdint.h>

/* Releases by their order: "0.5.10" is MAQ_RELEASE(0, 5, 10), "1.2.0rc2" MAQ_RELEASE(1, 2, 0); what has none (a nightly build, NULL) is the
 * newest: INT32_MAX. */
#define MAQ_RELEASE(major, minor, patch) (((major)*1000 + (minor)) * 1000 + (patch))
int32_t maq_engine_release(const char *version);

/* vLLM: the first with CUDA graphs, the first whose engine is the one of today (V1, compiled by torch), the first whose graphs of decodes hold
 * attention, too (cudagraph_mode FULL_AND_PIECEWISE), the first that schedules asynchronously; and for experts in 8 bits the first that takes
 * DeepGEMM's kernels, and the first that takes FlashInfer's. */
#define MAQ_VLLM_GRAPHS MAQ_RELEASE(0, 2, 6)
#define MAQ_VLLM_COMPILED MAQ_RELEASE(0, 8, 0)
#define MAQ_VLLM_FUSES_CONVERSION                                                                                      \
    MAQ_RELEASE(0, 10, 0) /* of an input into 8 bits, with the norm or activation in front of it */
#define MAQ_VLLM_WHOLE_GRAPHS MAQ_RELEASE(0, 11, 0)
#define MAQ_VLLM_COUNTS_GRAPHS MAQ_RELEASE(0, 21, 0) /* what its CUDA graphs take is no memory of its cache */
#define MAQ_VLLM_ASYNC MAQ_RELEASE(0, 14, 0)
#define MAQ_VLLM_DEEPGEMM MAQ_RELEASE(0, 11, 0)
#define MAQ_VLLM_FLASHINFER MAQ_RELEASE(0, 15, 0)
#define MAQ_VLLM_KEEPS_WORKSPACE MAQ_RELEASE(0, 13, 0) /* of experts, from one layer to the next */
#define MAQ_VLLM_SECOND_RUNNER MAQ_RELEASE(0, 33, 0)   /* the first whose model runner is the second by default */

/* SGLang: the first that cuts the last prompt of a prefill where max_prefill_tokens is less than it (managers/schedule_policy.py), and the
 * first whose tree of prefixes keeps states of recurrent layers while iterations are decided ahead. */
#define MAQ_SGLANG_CUTS_LAST MAQ_RELEASE(0, 5, 13)
#define MAQ_SGLANG_STATES_OVERLAP MAQ_RELEASE(0, 5, 14)

/* TensorRT-LLM: the first that runs PyTorch's modules and not engines that are built. */
#define MAQ_TRTLLM_PYTORCH MAQ_RELEASE(1, 0, 0)

#endif
