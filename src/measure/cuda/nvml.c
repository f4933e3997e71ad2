/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml.c - reads clocks, power and temperature through NVML. Constants are those of NVML's interface: clock domains,
 * sensors, 0 for success. See nvml.h.
 */
#include "measure/cuda/nvml.h"

#include <dlfcn.h>
#include <string.h>

#define CLOCK_SM 1
#define CLOCK_MEMORY 2
#define SENSOR_GPU 0
#define POWER_INSTANT 186

/* The address of a function through one of an object, which is how dlsym gives it. */
static bool find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

void maq_nvml_open(struct maq_nvml *nvml, const char *bus_id, char driver[32])
{
    int (*init)(void), (*version)(char *, unsigned), (*by_bus)(const char *, void **);
    memset(nvml, 0, sizeof *nvml);
    nvml->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!nvml->library)
        return;
    bool good = find(nvml->library, "nvmlInit_v2", &init) && find(nvml->library, "nvmlShutdown", &nvml->shutdown) &&
                find(nvml->library, "nvmlSystemGetDriverVersion", &version) &&
                find(nvml->library, "nvmlDeviceGetHandleByPciBusId_v2", &by_bus) &&
                find(nvml->library, "nvmlDeviceGetClockInfo", &nvml->clock) &&
                find(nvml->library, "nvmlDeviceGetPowerUsage", &nvml->power) &&
                find(nvml->library, "nvmlDeviceGetTemperature", &nvml->temperature);
    if (!good || init() != 0) {
        dlclose(nvml->library);
        memset(nvml, 0, sizeof *nvml);
        return;
    }
    (void)find(nvml->library, "nvmlDeviceGetFieldValues", &nvml->fields);
    if (version(driver, 32) != 0)
        driver[0] = '\0';
    if (by_bus(bus_id, &nvml->device) != 0)
        nvml->device = NULL;
}

/* Of this moment where the driver has that: a burst is over long before a mean of a second knows of it. */
static bool sense_power(const struct maq_nvml *nvml, unsigned *milliwatt)
{
    struct maq_nvml_field now = {.field = POWER_INSTANT};
    if (nvml->fields && nvml->fields(nvml->device, 1, &now) == 0 && now.status == 0) {
        *milliwatt = now.value.number;
        return true;
    }
    return nvml->power(nvml->device, milliwatt) == 0;
}

void maq_nvml_sense(const struct maq_nvml *nvml, struct maq_profile_sense *out)
{
    unsigned value;
    memset(out, 0, sizeof *out);
    if (!nvml->device)
        return;
    if (nvml->clock(nvml->device, CLOCK_SM, &value) == 0)
        out->sm_hz = value * 1e6;
    if (nvml->clock(nvml->device, CLOCK_MEMORY, &value) == 0)
        out->memory_hz = value * 1e6;
    if (sense_power(nvml, &value))
        out->power_w = value * 1e-3;
    if (nvml->temperature(nvml->device, SENSOR_GPU, &value) == 0)
        out->celsius = value;
}

void maq_nvml_close(struct maq_nvml *nvml)
{
    if (!nvml->library)
        return;
    (void)nvml->shutdown();
    dlclose(nvml->library);
    memset(nvml, 0, sizeof *nvml);
}
