/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_topology.c - what a machine says of itself, from any bytes: the matrix of nvidia-smi where they begin with a tab, else NCCL's file. */
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "cluster/topology.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct maq__topology t = {0};
    struct maq_str text = {(const char *)data, size};
    struct maq_diag *diag = maq_diag_new();
    bool matrix = size > 0 && data[0] == '\t';
    enum maq_status status =
        diag ? (matrix ? maq__topology_smi : maq__topology_nccl)(&t, text, "x", (struct maq_span){0}, diag)
             : MAQ_NO_MEMORY;
    if (status == MAQ_OK && t.gpus > 0) {
        struct maq__group_spec spec = {.multicast = -1, .contention = -1.0};
        spec.device.domain_bps = 300e9;
        spec.device.arch = MAQ_ARCH_AMPERE;
        if (maq__topology_apply(&spec, &t, "x", (struct maq_span){0}, diag) == MAQ_OK)
            MAQ_ASSERT(spec.per_node > 0 && spec.domain >= 1 && spec.per_node % spec.domain == 0 &&
                       spec.domain_bps >= 0);
    }
    maq_diag_free(diag);
    return 0;
}
