/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_shim_ptx.c - a kernel's PTX from any bytes, and the walk of its first thread. */
#include <stddef.h>
#include <stdint.h>

#include "shim/ptx/instruction.h"

enum { PARAMS = 16 };

static bool word(void *user, uint64_t address, uint32_t bytes, uint64_t *out)
{
    *out = address / bytes % 7;
    return user == NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t value = 4096;
    const void *param[PARAMS];
    uint32_t bytes[PARAMS];
    struct vg_ptx_walk w;
    struct vg_ptx *code = vg_ptx_read((const char *)data, size, "k");
    for (unsigned i = 0; i < PARAMS; i++) {
        param[i] = &value;
        bytes[i] = sizeof value;
    }
    const struct vg_ptx_launch launch = {
        .grid = {3, 2, 1}, .block = {64, 1, 1}, .param = param, .param_bytes = bytes, .word = word};
    if (code != NULL && vg_ptx_params(code) <= PARAMS && vg_ptx_walk_begin(&w, code)) {
        vg_ptx_walk(&w, code, &launch);
        vg_ptx_walk_end(&w);
    }
    vg_ptx_free(code);
    return 0;
}
