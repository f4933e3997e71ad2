/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adapter_set.h - which LoRA adapters a batch has. A GPU has room for so many at a time, and a scheduler takes in nobody who would make it more.
 *
 * Few, so a list that is looked through. 0, no adapter, is one like others: SGLang gives it a slot, vLLM and TensorRT-LLM never put it in.
 */
#ifndef MAQ_SERVE_SCHED_ADAPTER_SET_H
#define MAQ_SERVE_SCHED_ADAPTER_SET_H

#include <stdbool.h>
#include <stdint.h>

struct maq_adapter_set {
    uint64_t *at; /* [n] */
    uint32_t n, size;
};

void maq_adapter_set_fini(struct maq_adapter_set *set);
bool maq_adapter_set_has(const struct maq_adapter_set *set, uint64_t adapter);
/* False when out of memory. */
bool maq_adapter_set_add(struct maq_adapter_set *set, uint64_t adapter);
/* Whether there would be at most `most` with this one. */
bool maq_adapter_set_fits(const struct maq_adapter_set *set, uint64_t adapter, int32_t most);

#endif
