/* SPDX-License-Identifier: Apache-2.0 */
/* hopper.h - a device with an H100's figures that is none of the database, for tests of costs. */
#ifndef MAQ_TESTS_HOPPER_H
#define MAQ_TESTS_HOPPER_H

#include "maquette/cluster.h"

static inline struct maq_device hopper_named(const char *name)
{
    struct maq_device d = {.name = name,
                           .arch = MAQ_ARCH_HOPPER,
                           .vector_flops = 67e12,
                           .mem_bytes = 80e9,
                           .mem_bps = 3.35e12,
                           .l2_bytes = 50e6,
                           .l2_bps = 9.7e12,
                           .sms = 132,
                           .clock_hz = 1.8e9,
                           .launch_s = 4e-6,
                           .host_bps = 63e9};
    d.peak_flops[MAQ_BF16] = 989e12;
    d.peak_flops[MAQ_FP8] = 1979e12;
    return d;
}

#endif
