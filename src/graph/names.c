/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - names of the streams and buckets of maquette/graph.h. */
#include "maquette/graph.h"

const char *maq_stream_name(enum maq_stream stream)
{
    static const char *const names[MAQ_STREAM_COUNT] = {"compute", "tp", "cp", "ep", "dp", "pp", "copy", "host"};
    return (unsigned)stream < MAQ_STREAM_COUNT ? names[stream] : "?";
}

const char *maq_bucket_name(enum maq_bucket bucket)
{
    static const char *const names[MAQ_BUCKET_COUNT] = {
        "forward",         "backward",        "recompute", "exposed TP comm", "exposed CP comm",  "exposed EP comm",
        "exposed PP comm", "exposed DP comm", "bubble",    "optimizer",       "waiting for host", "other"};
    return (unsigned)bucket < MAQ_BUCKET_COUNT ? names[bucket] : "?";
}
