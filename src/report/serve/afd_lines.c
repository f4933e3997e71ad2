/* SPDX-License-Identifier: Apache-2.0 */
/* afd_lines.c - lines of a report about a deployment whose attention and FFN are on GPUs of their own. */
#include "report/serve/afd_lines.h"

#include <math.h>

#include "base/units.h"

void maq_afd_add_sides(struct maq_buf *line, const struct maq_serve_result *r)
{
    const struct maq_afd_options *o = &r->options.afd;
    maq_buf_addf(line, ": %u of attention and %u of FFN", r->afd.attention_devices, r->afd.ffn_devices);
    if (r->options.ep > 1)
        maq_buf_addf(line, " (ep%d)", r->options.ep);
    maq_buf_addf(line, ", %s, %d micro-batch%s", maq_afd_exchange_name((enum maq_afd_exchange)o->exchange),
                 o->micro_batches, o->micro_batches == 1 ? "" : "es");
    if (isinf(o->bps))
        maq_buf_adds(line, ", free transfers");
    else if (o->bps > 0)
        maq_buf_addf(line, ", %g GB/s between them", o->bps / 1e9);
}

void maq_afd_add_memory(struct maq_buf *line, const struct maq_serve_result *r)
{
    const struct maq_afd_result *a = &r->afd;
    maq_buf_addf(line, "of FFN (%s) %.1f of %.1f GiB: weights %.2f, activations %.2f, context %.2f", a->ffn_device,
                 a->ffn_capacity_bytes * r->options.gpu_memory_utilization / MAQ_GIB, a->ffn_capacity_bytes / MAQ_GIB,
                 a->ffn_weights_bytes / MAQ_GIB, a->ffn_activations_bytes / MAQ_GIB, a->ffn_context_bytes / MAQ_GIB);
    if (!a->ffn_fits)
        maq_buf_adds(line, ", which does not fit: more --afd-ffn-ranks, narrower --weights, or a larger GPU");
}

void maq_afd_add_times(struct maq_buf *line, const struct maq_afd_times *t, double all_s)
{
    if (!(all_s > 0))
        return;
    maq_buf_addf(line,
                 "attention busy %.0f %%, FFN %.0f %%, transfers there %.0f %% and back %.0f %%: %.2f GB each way",
                 100 * t->attention_s / all_s, 100 * t->ffn_s / all_s, 100 * t->to_ffn_s / all_s,
                 100 * t->to_attn_s / all_s, t->sent_bytes / 1e9);
    maq_buf_addf(line, "; with %.1f micro-batches the busiest of them never waits", maq_afd_hiding(t));
}
