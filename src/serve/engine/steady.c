/* SPDX-License-Identifier: Apache-2.0 */
/* steady.c - iterations of a steady state, by the same passes that the event loop has. */
#include "serve/engine/steady.h"

#include <math.h>

#include "base/check.h"
#include "serve/engine/batch.h"

#define MOST_PIECES 64

/* An iteration: from when it is prepared until it has left the last stage, and how long it holds the slowest. */
struct span {
    double all_s, stage_s;
};

/* `prompt` tokens of prompts beside `batch` requests that decode. */
static struct span iterate(struct maq_deployment *d, const struct maq_steady_load *load, uint32_t batch, int64_t prompt,
                           struct maq_pass_batch *ranks)
{
    struct maq_pass_chunk pieces[MOST_PIECES];
    struct maq_pass_batch b = maq_batch_decodes(d, batch);
    int64_t whole = (int64_t)(load->prompt - load->cached + 0.5), left = prompt, cached = (int64_t)load->cached;
    whole = whole > 1 ? whole : 1;
    for (uint32_t w = 0; w < d->passes.n_windows; w++)
        b.decode_keys[w] =
            (int64_t)batch * maq_pass_keys(&d->passes, w, (int64_t)(load->prompt + load->output / 2 + 0.5));
    for (; left > 0 && b.n_chunks < MOST_PIECES; b.n_chunks++) {
        int64_t n = left < whole || b.n_chunks + 1 == MOST_PIECES ? left : whole;
        /* a piece of a prompt sees half of the rest in the mean */
        pieces[b.n_chunks] = (struct maq_pass_chunk){n, n < whole ? cached + (whole - n) / 2 : cached};
        left -= n;
    }
    b.chunks = pieces;
    b.tokens = batch + prompt;
    b.sampled = batch + (prompt + whole - 1) / whole;
    b.padded = b.tokens;
    if (maq_serve_graph_size(&d->options, b.tokens) > 0 && (prompt == 0 || d->options.engine != MAQ_ENGINE_SGLANG))
        b.padded = maq_serve_graph_size(&d->options, b.tokens);
    for (int32_t r = 0; r < d->passes.dp; r++)
        ranks[r] = b;
    maq_batch_pad(d, ranks);
    struct span s = {0};
    for (uint32_t stage = 0; stage < d->passes.n_stages; stage++) {
        struct maq_pass_parts parts;
        double at = maq_batch_stage_s(d, stage, ranks, &parts);
        s.stage_s = at > s.stage_s ? at : s.stage_s;
        s.all_s += at + (stage > 0 ? maq_batch_transfer_s(d, b.tokens) : 0);
    }
    double host = maq_batch_host_s(d, batch + b.n_chunks);
    s.all_s = d->host.async ? fmax(s.all_s, host) : s.all_s + host;
    s.stage_s = fmax(s.stage_s, host); /* one host prepares all of them */
    return s;
}

/* How long until a batch of a pipeline is there again. */
static double period(const struct maq_deployment *d, struct span s)
{
    return fmax(s.all_s, s.stage_s * d->passes.n_stages);
}

/* Of two kinds of iteration, a share of one of them. */
static double mixed(const struct maq_deployment *d, struct span without, struct span with, double share)
{
    const struct span s = {without.all_s + share * (with.all_s - without.all_s),
                           without.stage_s + share * (with.stage_s - without.stage_s)};
    return period(d, s);
}

void maq_steady_at(struct maq_steady *out, struct maq_deployment *d, const struct maq_steady_load *load, uint32_t batch,
                   struct maq_pass_batch *ranks)
{
    uint32_t under_way = d->passes.n_stages * (uint32_t)d->passes.dp;
    double decodes = load->output > 2 ? load->output - 1 : 1, prompt = fmax(load->prompt - load->cached, 1),
           q = batch * prompt / decodes, room = (double)d->options.max_num_batched_tokens - batch,
           most = fmin(room, (double)d->passes.most_tokens - batch),
           kept = batch * (double)d->passes.n_stages * (load->prompt + load->output / 2);
    *out = (struct maq_steady){.batch = batch, .concurrent = batch * under_way};
    out->held = q <= most && kept <= (double)d->kv_tokens &&
                (double)batch * d->passes.n_stages <= (double)d->options.max_num_seqs;
    if (most < 1)
        return;
    struct span none = iterate(d, load, batch, 0, ranks);
    double piece = fmax(fmin(prompt, most), fmin(q, most));
    out->whole_s = mixed(d, none, iterate(d, load, batch, (int64_t)ceil(piece), ranks), fmin(q / piece, 1));
    if (q >= 1)
        out->even_s = period(d, iterate(d, load, batch, (int64_t)fmin(q, most), ranks));
    else
        out->even_s = mixed(d, none, iterate(d, load, batch, 1, ranks), q);
    out->even_s = fmin(out->even_s, out->whole_s);
    out->most_per_s = out->concurrent / (decodes * out->even_s);
    out->per_s = out->concurrent / (decodes * out->whole_s);
}

double maq_steady_first_s(struct maq_deployment *d, const struct maq_steady_load *load, struct maq_pass_batch *ranks)
{
    double prompt = fmax(load->prompt - load->cached, 1), most = d->options.max_num_batched_tokens, s = 0;
    if (most > (double)d->passes.most_tokens)
        most = (double)d->passes.most_tokens;
    for (double left = prompt; left > 0; left -= most)
        s += iterate(d, load, 0, (int64_t)fmin(left, most), ranks).all_s;
    return s;
}
