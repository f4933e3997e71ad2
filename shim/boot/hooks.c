/* hooks.c - the device's side of hooks.h. */
#include "shim/boot/hooks.h"

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
};
