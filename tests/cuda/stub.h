/* SPDX-License-Identifier: Apache-2.0 */
/* stub.h - what the stand-in for CUDA's libraries (stub.c) remembers, for test_module.c to look at. */
#ifndef MAQ_TESTS_CUDA_STUB_H
#define MAQ_TESTS_CUDA_STUB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stub {
    uint32_t allocations, streams, events, products, layouts, descriptors, comms; /* made and not given back */
    uint32_t launches, spins, flushes, faults;
    int gpus, device;       /* device: the current one */
    bool sticky, exhausted; /* an error that stays; no more memory */
    char fault[256];        /* the first thing that was wrong with a call */
};
extern struct stub stub;

#endif
