/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml.h - clocks, power and temperature from NVIDIA's management library, which is part of the driver.
 *
 * It is opened at run time: its header is not part of every installation of the CUDA toolkit, and a machine without
 * it (a container, a Tegra) can measure all the same, with the state unknown.
 */
#ifndef MAQ_MEASURE_CUDA_NVML_H
#define MAQ_MEASURE_CUDA_NVML_H

#include <stdbool.h>

#include "measure/backend.h"

/* A sensor by its number, as NVML lays it out. */
struct maq_nvml_field {
    unsigned field, scope;
    long long timestamp, latency_us;
    int type, status; /* 0: the value is there */
    union {
        unsigned number;
        unsigned long long widest;
    } value;
};

struct maq_nvml {
    void *library, *device; /* NULL: not there */
    int (*clock)(void *device, int domain, unsigned *mhz);
    int (*power)(void *device, unsigned *milliwatt);                   /* from Ampere on the mean of a second */
    int (*fields)(void *device, int n, struct maq_nvml_field *fields); /* NULL: an old driver's library has it not */
    int (*temperature)(void *device, int sensor, unsigned *celsius);
    int (*shutdown)(void);
};

/* The device with this PCI bus id; driver gets the driver's version. Nothing fails: what is not there is unknown. */
void maq_nvml_open(struct maq_nvml *nvml, const char *bus_id, char driver[32]);
void maq_nvml_sense(const struct maq_nvml *nvml, struct maq_profile_sense *out);
void maq_nvml_close(struct maq_nvml *nvml);

#endif
