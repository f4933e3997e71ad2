/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hooks.c - the device's side of hooks.h.
 *
 * In a host program: the CUDA side of it, as the host side sees it.
 */
#include "shim/boot/hooks.h"

#include "shim/nccl/gather_guess.h"
#include "shim/nccl/nccl.h"

const struct vg_hooks maquette_vgpu_hooks = {
    .card = vg_card,
    .now = vg_now,
    .drives = vg_drives,
    .asked = vg_asked,
    .host = vg_host,
    .host_name = vg_host_name,
    .record = vg_exchange_record,
    .contribution = vg_contribution_of,
    .near = vg_contribution_near,
    .by_pattern = vg_gather_guess_by_pattern,
    .sample = vg_is_sample,
    .ran = vg_ran,
    .waits = vg_waits,
    .tainted_read = vg_tainted_read,
};
