/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - the GPU at hand and the catalogue. */
#include "base/str.h"
#include "cluster/cluster_load.h"
#include "cluster/device_name.h"
#include "measure/codes.h"
#include "measure/plan.h"

const char *maq_profile_device_named(const char *gpu)
{
    const struct maq_catalogue_entry *e = maq_device_named(maq_str_of(gpu));
    return e ? e->name : NULL;
}

enum maq_status maq_profile_cluster_of(struct maq_cluster *out, const char *device, struct maq_arena *arena,
                                       struct maq_diag *diag)
{
    const char *name = maq_profile_device_named(device);
    if (!name)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_PROFILE_DEVICE, (struct maq_span){0},
                             "maquette show gpus lists the names", "the catalogue has no GPU '%.80s'", device);
    struct maq_node node = {.kind = MAQ_NODE_SCALAR, .text = maq_str_of(name)};
    return maq_cluster_load(out, &node, arena, diag);
}
