/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_shim_fatbin.c - parameters of kernels from any bytes. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "shim/cuda/fatbin.h"

static void ignore(const char *name, void *user)
{
    *(size_t *)user += (size_t)name[0];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"axpy", "big", "k"};
    struct vg_code code[3] = {{0}};
    size_t sum = 0;
    vg_image_read(code, names, 3, data, size, 90);
    vg_image_kernels(data, size, 90, ignore, &sum);
    for (int i = 0; i < 3; i++)
        free(code[i].param);
    return 0;
}
