/* SPDX-License-Identifier: Apache-2.0 */
/* operands.c - whether what a launch reads is in place and known. See operands.h. */
#include "shim/cuda/arithmetic/operands.h"

static bool on_device(const void *p)
{
    struct vg_alloc a;
    return vg_mem_find(p, &a) && (a.kind == MAQ_REC_DEVICE || a.kind == MAQ_REC_POOL);
}

bool vg_arithmetic_in_place(const struct vg_arithmetic *a, const struct vg_launch *l)
{
    bool all = on_device(a->out);
    for (unsigned i = 0; i < VG_OPERANDS_MOST && all; i++)
        all = !a->in[i].at || on_device(a->in[i].at);
    /* in real time: a kernel behind a message reads what that brought */
    for (unsigned i = 0; i < VG_OPERANDS_MOST && all && l->stream; i++)
        if (a->in[i].at)
            vg_payload_settle(a->in[i].at, a->in[i].bytes, l->stream);
    if (all && l->stream)
        vg_payload_settle(a->out, a->out_bytes, l->stream);
    return all && vg_mem_touch(a->out, a->out_bytes);
}

unsigned vg_arithmetic_known(const struct vg_arithmetic *a)
{
    unsigned known = 0;
    for (unsigned i = 0; i < VG_OPERANDS_MOST; i++)
        known += a->in[i].at && vg_mem_true(a->in[i].at, a->in[i].bytes) && vg_mem_touch(a->in[i].at, a->in[i].bytes);
    return known;
}
