/* SPDX-License-Identifier: Apache-2.0 */
/* shim_streams.h - streams of the zero-GPU device with work of a given length. */
#ifndef MAQ_TESTS_SHIM_STREAMS_H
#define MAQ_TESTS_SHIM_STREAMS_H

#include "shim/core/stream.h"

static void work(struct vg_stream *s, uint64_t ns)
{
    vg_enqueue(s, (struct maq_rec){.kind = MAQ_REC_SET, .bytes = 1, .ns = ns});
}

static int64_t end_of(struct vg_stream *s)
{
    int64_t end;
    assert_true(vg_stream_end(s, &end));
    return end;
}

static struct vg_stream *fresh(void)
{
    return vg_stream_new(VG_STREAM_NON_BLOCKING, 0);
}

#endif
