/* SPDX-License-Identifier: Apache-2.0 */
/* steady.c - iterations of a steady state, by the same passes that the event loop has. */
#include "serve/engine/steady.h"

#include <math.h>

#include "serve/engine/batch.h"

#define MOST_PIECES 64

/* An iteration: from when it is prepared until it has left the last stage, and how long it holds the slowest. */
struct span {
    double all_s, stage_s;
    double draft_s; /* of all_s: behind the tokens that come out of it */
};

struct pieces {
    struct maq_pass_chunk at[MOST_PIECES];
    uint32_t n;
};

/* `tokens` of prompts as whole ones, and what is left as a piece of another, which sees half of the rest in the mean. */
static void cut(struct pieces *out, int64_t tokens, int64_t whole, int64_t cached)
{
    for (out->n = 0; tokens > 0 && out->n < MOST_PIECES; out->n++) {
        int64_t n = tokens < whole || out->n + 1 == MOST_PIECES ? tokens : whole;
        out->at[out->n] = (struct maq_pass_chunk){n, n < whole ? cached + (whole - n) / 2 : cached};
        tokens -= n;
    }
}

/* Tokens that a request has of an iteration in the mean, and that it brings to one. */
static double yield_of(const struct maq_deployment *d)
{
    const struct maq_speculation *s = &d->options.speculation;
    return s->method == MAQ_DRAFT_NONE ? 1 : maq_acceptance_length(s);
}

static int64_t queries_of(const struct maq_deployment *d)
{
    return d->options.speculation.method == MAQ_DRAFT_NONE ? 1 : d->options.speculation.verified;
}

/* Iterations that a request has behind its first token. */
static double iterations_of(const struct maq_deployment *d, const struct maq_steady_load *load)
{
    return fmax(fmax(load->output - 1, 1) / yield_of(d), 1);
}

/* What is drafted behind the batches of all ranks, of which `with` have `prompts` that end. */
static double draft_s(struct maq_deployment *d, const struct maq_pass_batch *ranks, int64_t keys, double prompts,
                      int32_t with)
{
    struct maq_pass_parts work = {0};
    int64_t room = d->options.max_num_seqs - ranks[0].decodes, ends = (int64_t)prompts < room ? (int64_t)prompts : room;
    if (d->options.speculation.method == MAQ_DRAFT_NONE)
        return 0;
    for (int32_t r = 0; r < d->passes.dp; r++)
        d->drafts[r] = maq_batch_drafts(d, &ranks[r], keys, r < with ? ends : 0);
    return maq_draft_s(d, d->drafts, maq_batch_launch_mode(d, ranks), &work);
}

/* Beside `batch` requests that decode on each rank, `prompt` tokens of prompts on `with` of them. */
static struct span iterate(struct maq_deployment *d, const struct maq_steady_load *load, uint32_t batch, int64_t prompt,
                           int32_t with, struct maq_pass_batch *ranks)
{
    struct pieces pieces;
    struct maq_pass_batch plain = maq_batch_decodes(d, batch), more = plain;
    int64_t whole = (int64_t)fmax(load->prompt - load->cached + 0.5, 1),
            keys = (int64_t)(load->prompt + load->output / 2 + 0.5), queries = queries_of(d);
    cut(&pieces, prompt, whole, (int64_t)load->cached);
    for (uint32_t w = 0; w < d->passes.n_windows; w++)
        plain.decode_keys[w] = more.decode_keys[w] = (int64_t)batch * maq_pass_keys(&d->passes, w, keys);
    more.chunks = pieces.at;
    more.n_chunks = pieces.n;
    more.tokens += prompt;
    more.sampled += (prompt + whole - 1) / whole;
    more.padded = maq_batch_launch(d, more.tokens, more.n_chunks, queries).padded;
    for (int32_t r = 0; r < d->passes.dp; r++)
        ranks[r] = r < with ? more : plain;
    maq_batch_pad(d, ranks);
    struct span s = {.draft_s = draft_s(d, ranks, keys, floor((double)prompt / (double)whole), with)};
    for (uint32_t stage = 0; stage < d->passes.n_stages; stage++) {
        struct maq_pass_parts parts;
        double at = maq_batch_stage_s(d, stage, ranks, maq_batch_launch_mode(d, ranks), &parts) +
                    (stage + 1 == d->passes.n_stages ? s.draft_s : 0);
        s.stage_s = at > s.stage_s ? at : s.stage_s;
        s.all_s += at + (stage > 0 ? maq_batch_transfer_s(d, more.tokens) : 0);
    }
    double host = maq_batch_host_s(d, batch + pieces.n);
    s.all_s = d->host.async ? fmax(s.all_s, host) : s.all_s + host;
    s.stage_s = fmax(s.stage_s, host); /* one host prepares all of them */
    return s;
}

/* Of two kinds of iteration, a share of the second: how long until a batch of a pipeline is there again. */
static double mixed(const struct maq_deployment *d, struct span without, struct span with, double share)
{
    double all = without.all_s + share * (with.all_s - without.all_s),
           stage = without.stage_s + share * (with.stage_s - without.stage_s);
    return fmax(all, stage * d->passes.n_stages);
}

/*
 * With `tokens` of prompts at once. Ranks have theirs at different times, which the share of iterations follows in which any has some, and
 * how many have then.
 */
static double in_pieces(struct maq_deployment *d, const struct maq_steady_load *load, uint32_t batch, struct span none,
                        double tokens, double share, struct maq_pass_batch *ranks)
{
    double any = 1 - pow(1 - share, d->passes.dp);
    int32_t with = (int32_t)fmax(1, d->passes.dp * share / fmax(any, 1e-12) + 0.5);
    return mixed(d, none, iterate(d, load, batch, (int64_t)ceil(tokens), with, ranks), any);
}

void maq_steady_at(struct maq_steady *out, struct maq_deployment *d, const struct maq_steady_load *load, uint32_t batch,
                   struct maq_pass_batch *ranks)
{
    const struct maq_serve_options *o = &d->options;
    double stages = d->passes.n_stages, dp = d->passes.dp, iterations = iterations_of(d, load),
           prompt = fmax(load->prompt - load->cached, 1), q = batch * prompt / iterations,
           most = fmin(o->max_num_batched_tokens, (double)d->passes.most_tokens) - (double)(batch * queries_of(d)),
           kept = batch * stages * (load->prompt + load->output / 2), at_once = most;
    *out = (struct maq_steady){.batch = batch, .concurrent = (uint32_t)(batch * stages * dp)};
    out->held = most >= 1 && kept <= (double)d->kv_tokens && batch * stages <= (double)o->max_num_seqs;
    if (!out->held)
        return;
    if (o->long_prefill_token_threshold > 0)
        at_once = fmin(most, o->long_prefill_token_threshold);
    struct span none = iterate(d, load, batch, 0, 0, ranks);
    double piece = prompt / ceil(prompt / at_once);
    out->likely_s = out->least_s = in_pieces(d, load, batch, none, piece, fmin(q / piece, 1), ranks);
    for (double p = 2 * piece; p < 2 * most; p *= 2) {
        double tokens = fmin(p, most);
        out->least_s = fmin(out->least_s, in_pieces(d, load, batch, none, tokens, fmin(q / tokens, 1), ranks));
    }
    double kept_up = fmin(1, most / q); /* where prompts do not leave room for so many to decode, fewer do */
    out->most_per_s = kept_up * out->concurrent / (iterations * out->least_s);
    out->likely_per_s = kept_up * out->concurrent / (iterations * out->likely_s);
    out->least_s /= yield_of(d);
    out->likely_s /= yield_of(d);
}

double maq_steady_first_s(struct maq_deployment *d, const struct maq_steady_load *load, struct maq_pass_batch *ranks)
{
    double prompt = fmax(load->prompt - load->cached, 1), s = 0,
           most = fmin(d->options.max_num_batched_tokens, (double)d->passes.most_tokens);
    for (double left = prompt; left > 0; left -= most) {
        const struct span i = iterate(d, load, 0, (int64_t)fmin(left, most), 1, ranks);
        s += i.all_s - i.draft_s;
    }
    return s;
}

double maq_steady_prefill_per_s(struct maq_deployment *d, const struct maq_steady_load *load,
                                struct maq_pass_batch *ranks)
{
    double prompt = fmax(load->prompt - load->cached, 1), best = 0,
           most = fmin(d->options.max_num_batched_tokens, (double)d->passes.most_tokens);
    for (double tokens = most; tokens >= fmin(prompt, most); tokens /= 2) {
        struct span s = iterate(d, load, 0, (int64_t)tokens, d->passes.dp, ranks);
        best = fmax(best, d->passes.dp * tokens / prompt / s.stage_s);
    }
    return best;
}

void maq_steady_decode_at(struct maq_steady *out, struct maq_deployment *d, const struct maq_steady_load *load,
                          uint32_t batch, struct maq_pass_batch *ranks)
{
    double stages = d->passes.n_stages, kept = batch * stages * (load->prompt + load->output / 2);
    *out = (struct maq_steady){.batch = batch, .concurrent = (uint32_t)(batch * stages * d->passes.dp)};
    out->held = batch * queries_of(d) <= d->passes.most_tokens && kept <= (double)d->kv_tokens &&
                batch * stages <= (double)d->options.max_num_seqs;
    if (!out->held)
        return;
    struct span none = iterate(d, load, batch, 0, 0, ranks);
    double each = mixed(d, none, none, 0);
    out->least_s = out->likely_s = each / yield_of(d);
    out->most_per_s = out->likely_per_s = out->concurrent / (iterations_of(d, load) * each);
}
