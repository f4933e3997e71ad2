/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve_lora.h - LoRA adapters by request: how many a deployment holds, and what became of them.
 *
 *   disk ==reads==> host memory [ max_cpu_loras ] ==copies==> GPU [ max_loras slots of rank max_lora_rank ]
 *
 * A linear y = W x of in numbers and out numbers, of which the engine fuses n (q, k and v are 3), has for each slot A of n x rank x in and B of out x rank,
 * in 16 bits and allocated when the engine starts. Of a linear that is cut over a TP group by its outputs B is cut, by its inputs A. A batch that has
 * adapters adds B A x to its products, by two kernels for each linear: the first for all that is fused, the second for all of its outputs.
 */
#ifndef MAQUETTE_SERVE_LORA_H
#define MAQUETTE_SERVE_LORA_H

#include <stdbool.h>
#include <stdint.h>

#include "maquette/diag.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zero where nothing is said. */
struct maq_lora_options {
    bool enabled;
    int32_t max_loras;     /* slots of a GPU; 0 = the engine's default */
    int32_t max_lora_rank; /* 0 = 16, vLLM's default */
    int32_t max_cpu_loras; /* that the host holds; 0 = as many as slots (vLLM), all of them (SGLang) */
    const char
        *targets; /* words of lora_target_modules, a comma list; NULL = all linears of the layers, and routed experts */
    double read_bps; /* at which an adapter is read that the host does not hold; 0 = as fast as it is copied to a GPU */
};

/* What became of them, in a run. */
struct maq_lora_result {
    bool known;           /* false: there are none, and the rest is zero */
    double adapter_bytes; /* of a slot, on the fullest GPU */
    double file_bytes;    /* of an adapter, all of it */
    uint32_t adapters;    /* different ones that were asked for */
    uint32_t requests;    /* with one */
    uint64_t copies, reads;
    double copy_s, read_s; /* iterations waited for that, all of them together */
    double mean_active;    /* different ones of an iteration */
};

#ifdef __cplusplus
}
#endif
#endif
