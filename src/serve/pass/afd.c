/* SPDX-License-Identifier: Apache-2.0 */
/* afd.c - the two sides of a pass, what goes between them, and micro-batches. */
#include "serve/pass/afd.h"

#include <math.h>

#include "base/check.h"

/* ---- ways ---- */

/* Of the groups of ranks that experts are spread over, those that a token needs in the mean. */
static double groups_of_token(const struct maq_moe_geometry *g, double groups)
{
    double none = 1, experts = g->experts, own = experts / groups;
    for (int32_t j = 0; j < g->topk; j++)
        none *= experts - own - j > 0 ? (experts - own - j) / (experts - j) : 0;
    return groups * (1 - none);
}

/* What tokens of a layer of a kind do on their way to FFN GPUs. */
static void look_at_kind(struct maq_afd *a, uint32_t kind, const struct maq_layer *layer)
{
    const struct maq_module *dispatch = NULL;
    bool any = false;
    for (uint32_t i = 0; i < layer->n_modules; i++) {
        const struct maq_module *m = &layer->modules[i];
        any = any || maq_pass_has(&a->ffn, m);
        if (m->kind == MAQ_MODULE_DISPATCH)
            dispatch = m;
    }
    bool routed = a->exchange == MAQ_AFD_M2N && dispatch;
    a->ways[kind] = !any ? 0 : routed ? groups_of_token(&dispatch->u.moe, a->ffn.ep) * a->ffn.moe_tp : 1;
    a->width[kind] = routed ? dispatch->in : layer->hidden;
}

/* ---- what goes between the sides ---- */

/* Over the longest way that there is between the sides, all GPUs of a node at once. */
static double transfer_s(const struct maq_afd *a, double bytes)
{
    const struct maq_links l = maq_cluster_links(&a->attention.job->cluster, &a->pair, a->sharers);
    const struct maq_link link = l.far.bps > 0 ? l.far : l.host.bps > 0 ? l.host : l.near;
    double busiest = bytes / (a->attention_ranks < a->ffn_ranks ? a->attention_ranks : a->ffn_ranks);
    if (isinf(a->bps))
        return 0;
    return link.latency_s + busiest / (a->bps > 0 ? a->bps : link.bps);
}

/* A TP group of attention gathers what each of its ranks was sent of its tokens; parts of a token's sum are added. */
static void take_in(const struct maq_afd *a, int64_t tokens, double ways, int64_t width, struct maq_pass_parts *out)
{
    const struct maq_passes *p = &a->attention;
    int64_t rows = (tokens + p->job->plan.tp - 1) / p->job->plan.tp, reads = (int64_t)(2 * ways + 0.5);
    struct maq_op add = maq_pass_op(MAQ_OP_ELEMENTWISE, &p->plain, 0, rows * width, reads, 2, 0);
    if (a->exchange == MAQ_AFD_M2N && ways > 1)
        maq_pass_cost(p, &add, 1, MAQ_SERVE_POINTWISE, out);
    maq_pass_coll(p, MAQ_COLL_ALL_GATHER, (double)tokens * (double)width * 2, 1, out);
}

/* FFN GPUs that were sent each token once gather all of them, and what they make of it goes back to where a token came in. */
static void share_tokens(const struct maq_afd *a, double bytes, struct maq_pass_parts *out)
{
    if (a->exchange != MAQ_AFD_P2P)
        return;
    maq_pass_coll(&a->ffn, MAQ_COLL_ALL_GATHER, bytes, 1, out);
    maq_pass_coll(&a->ffn, MAQ_COLL_REDUCE_SCATTER, bytes, 1, out);
}

#define TRANSFERS 2.0 /* kernels that send and receive, on either side */

/* Of a layer, with so many tokens of each rank of attention. */
static const struct maq_afd_border *border_of(struct maq_afd *a, uint32_t kind, int64_t each)
{
    struct maq_afd_border *b = &a->borders[kind][each];
    if (b->known)
        return b;
    b->known = true;
    if (!(a->ways[kind] > 0))
        return b;
    int64_t width = a->width[kind];
    double once = (double)(each * a->attention.dp) * (double)width * 2;
    b->bytes = once * a->ways[kind];
    b->s = transfer_s(a, b->bytes);
    take_in(a, each, a->ways[kind], width, &b->attention);
    share_tokens(a, once, &b->ffn);
    b->attention.kernels += TRANSFERS;
    b->ffn.kernels += TRANSFERS;
    return b;
}

/* ---- micro-batches ---- */

/* Of `all` in n parts the i-th begins there: the first ones have one more. */
static int64_t begin_of(int64_t all, uint32_t i, uint32_t n)
{
    int64_t more = all % n;
    return all / n * i + (i < more ? i : more);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Pieces of prompts between two places of the batch's tokens, of which the first prompt is behind those that decode. */
static uint32_t cut_prompts(struct maq_pass_chunk *out, const struct maq_pass_batch *b, int64_t from, int64_t to)
{
    uint32_t n = 0;
    int64_t at = b->decodes * b->queries;
    for (uint32_t k = 0; k < b->n_chunks && at < to; at += b->chunks[k++].queries) {
        int64_t first = from > at ? from - at : 0, end = least(b->chunks[k].queries, to - at);
        if (first < end)
            out[n++] = (struct maq_pass_chunk){end - first, b->chunks[k].context + first};
    }
    return n;
}

struct maq_pass_batch maq_afd_slice(const struct maq_passes *p, const struct maq_pass_batch *b, uint32_t i, uint32_t n,
                                    struct maq_pass_chunk *chunks)
{
    int64_t from = begin_of(b->tokens, i, n), to = begin_of(b->tokens, i + 1, n), first = least(from, b->decodes),
            end = least(to, b->decodes);
    MAQ_ASSERT(b->queries == 1 || b->decodes == 0);
    struct maq_pass_batch s = {.tokens = to - from,
                               .padded = begin_of(b->padded, i + 1, n) - begin_of(b->padded, i, n),
                               .decodes = end - first,
                               .queries = b->queries,
                               .chunks = chunks};
    for (uint32_t w = 0; w < p->n_windows && b->decodes > 0; w++)
        s.decode_keys[w] = b->decode_keys[w] * end / b->decodes - b->decode_keys[w] * first / b->decodes;
    s.n_chunks = cut_prompts(chunks, b, from, to);
    return s;
}

static void slice_all(struct maq_afd *a, const struct maq_pass_batch *batches, uint32_t i, uint32_t n)
{
    for (int32_t r = 0; r < a->attention.dp; r++)
        a->slices[r] = maq_afd_slice(&a->attention, &batches[r], i, n, &a->chunks[(size_t)r * a->chunks_each]);
}

/* As many as there are, or as the fullest rank has tokens. */
static uint32_t micro_batches_of(const struct maq_afd *a, const struct maq_pass_batch *batches)
{
    int64_t most = 1;
    for (int32_t r = 0; r < a->attention.dp; r++)
        most = batches[r].padded > most ? batches[r].padded : most;
    return (uint32_t)least(most, a->micro_batches);
}

/* ---- a pass ---- */

static double sum_s(const struct maq_pass_parts *p)
{
    double ns = 0;
    for (int i = 0; i < MAQ_SERVE_PART_COUNT; i++)
        ns += p->ns[i];
    return ns * 1e-9;
}

static void add_times(struct maq_pass_parts *to, const struct maq_pass_parts *more, double times)
{
    for (int i = 0; i < MAQ_SERVE_PART_COUNT; i++)
        to->ns[i] += more->ns[i] * times;
    to->matrix_ns += more->matrix_ns * times;
    to->memory_ns += more->memory_ns * times;
    to->kernels += more->kernels * times;
}

/* One micro-batch in one layer of a kind, and what that is in all of them. */
static struct maq_ping_pong_layer one_layer(struct maq_afd_pass *out, struct maq_afd *a, uint32_t kind, int64_t each)
{
    struct maq_pass_parts attention = {0}, ffn = {0};
    const struct maq_afd_border *border = border_of(a, kind, each);
    double times = a->layers_of[kind];
    maq_pass_add(&a->attention, kind, a->slices, &attention);
    maq_pass_sum(&attention, &border->attention);
    if (a->ways[kind] > 0) {
        maq_pass_add(&a->ffn, kind, a->slices, &ffn);
        maq_pass_sum(&ffn, &border->ffn);
    }
    add_times(&out->attention, &attention, times);
    add_times(&out->ffn, &ffn, times);
    out->times.to_ffn_s += border->s * times;
    out->times.to_attn_s += border->s * times;
    out->times.sent_bytes += border->bytes * times;
    out->times.back_bytes += border->bytes * times;
    return (struct maq_ping_pong_layer){{[MAQ_PING_ATTENTION] = sum_s(&attention),
                                         [MAQ_PING_TO_FFN] = border->s,
                                         [MAQ_PING_FFN] = sum_s(&ffn),
                                         [MAQ_PING_TO_ATTENTION] = border->s}};
}

/* Tokens of a rank of the micro-batch, so that as many ranks bring the sum up to all of them: as maq_pass_add() counts. */
static int64_t tokens_of_rank(const struct maq_afd *a)
{
    int64_t all = 0;
    for (int32_t r = 0; r < a->attention.dp; r++)
        all += a->slices[r].padded;
    return (all + a->attention.dp - 1) / a->attention.dp;
}

void maq_afd_pass(struct maq_afd_pass *out, struct maq_afd *a, const struct maq_pass_batch *batches)
{
    const uint32_t n = micro_batches_of(a, batches);
    *out = (struct maq_afd_pass){.micro_batches = n};
    for (uint32_t i = 0; i < n; i++) {
        struct maq_pass_parts first = {0};
        slice_all(a, batches, i, n);
        int64_t each = tokens_of_rank(a);
        maq_pass_add(&a->attention, a->n_kinds + MAQ_PASS_EMBEDDING, a->slices, &first);
        maq_pass_sum(&out->attention, &first);
        a->first_s[i] = sum_s(&first);
        for (uint32_t k = 0; k < a->n_kinds; k++)
            if (a->layers_of[k] > 0)
                a->times[(size_t)i * a->n_kinds + k] = one_layer(out, a, k, each);
    }
    struct maq_pass_parts head = {0};
    maq_pass_add(&a->attention, a->n_kinds + MAQ_PASS_HEAD, batches, &head);
    maq_pass_sum(&out->attention, &head);
    out->s = sum_s(&head) + maq_ping_pong_s(&(const struct maq_ping_pong){.kind_of = a->kind_of,
                                                                          .n_layers = a->n_layers,
                                                                          .n_kinds = a->n_kinds,
                                                                          .micro_batches = n,
                                                                          .first_s = a->first_s,
                                                                          .layers = a->times,
                                                                          .left_s = a->left_s});
    out->times.attention_s = sum_s(&out->attention);
    out->times.ffn_s = sum_s(&out->ffn);
}

/* Attention computes all of them, one after another, and its layers but for their mixers take as long whatever the keys. */
double maq_afd_least_s(struct maq_afd *a, const struct maq_pass_batch *batches)
{
    const uint32_t n = micro_batches_of(a, batches);
    double s = 0;
    for (uint32_t i = 0; i < n; i++) {
        slice_all(a, batches, i, n);
        for (uint32_t k = 0; k < a->n_kinds; k++)
            s += a->layers_of[k] * maq_pass_least_s(&a->attention, k, a->slices);
    }
    return s;
}

double maq_afd_hiding(const struct maq_afd_times *t)
{
    double around = t->attention_s + t->to_ffn_s + t->ffn_s + t->to_attn_s,
           most = fmax(fmax(t->attention_s, t->ffn_s), fmax(t->to_ffn_s, t->to_attn_s));
    return most > 0 ? around / most : 0;
}

/* ---- construction ---- */

uint32_t maq_afd_first_ffn(const struct maq_cluster *cluster, uint32_t attention_ranks)
{
    if (cluster->n_groups > 1 && attention_ranks <= cluster->groups[1].first_rank)
        return cluster->groups[1].first_rank;
    return attention_ranks;
}

/* FFN is cut over all of its GPUs as over a TP group. */
static void place_ffn(struct maq_afd *a, const struct maq_job *job, uint32_t first)
{
    const struct maq_cluster *cluster = &job->cluster;
    const uint32_t last = first + (uint32_t)a->ffn_ranks - 1;
    a->ffn_job = *job;
    a->ffn_job.plan.tp = a->ffn_ranks;
    a->ffn_job.groups[MAQ_GROUP_TP] = maq_cluster_place(cluster, first, (uint32_t)a->ffn_ranks, 1);
    a->pair = maq_cluster_place(cluster, 0, 2, last);
    int32_t node = cluster->groups[a->pair.group].devices_per_node,
            more = a->attention_ranks > a->ffn_ranks ? a->attention_ranks : a->ffn_ranks;
    a->sharers = (uint16_t)(more < node ? more : node);
}

static enum maq_status list_layers(struct maq_afd *a, const struct maq_model *m, struct maq_arena *arena)
{
    a->n_kinds = m->n_kinds;
    a->n_layers = m->num_layers;
    uint32_t *kind_of = MAQ_ARENA_NEW(arena, uint32_t, a->n_layers);
    a->layers_of = MAQ_ARENA_NEW(arena, uint32_t, a->n_kinds);
    a->ways = MAQ_ARENA_NEW(arena, double, a->n_kinds);
    a->width = MAQ_ARENA_NEW(arena, int64_t, a->n_kinds);
    if (!kind_of || !a->layers_of || !a->ways || !a->width)
        return MAQ_NO_MEMORY;
    for (uint32_t l = 0; l < a->n_layers; l++) {
        kind_of[l] = m->kind_of[l];
        a->layers_of[kind_of[l]]++;
    }
    a->kind_of = kind_of;
    for (uint32_t k = 0; k < a->n_kinds; k++)
        look_at_kind(a, k, &m->kinds[k]);
    return MAQ_OK;
}

static enum maq_status make_room(struct maq_afd *a, int64_t most_tokens, struct maq_arena *arena)
{
    size_t dp = (size_t)a->attention.dp, n = (size_t)a->micro_batches;
    a->chunks_each = (uint32_t)most_tokens + 1; /* no piece has less than a token */
    a->borders = MAQ_ARENA_NEW(arena, struct maq_afd_border *, a->n_kinds);
    a->slices = MAQ_ARENA_NEW(arena, struct maq_pass_batch, dp);
    a->chunks = MAQ_ARENA_NEW(arena, struct maq_pass_chunk, dp * a->chunks_each);
    a->times = MAQ_ARENA_NEW(arena, struct maq_ping_pong_layer, n * a->n_kinds);
    a->first_s = MAQ_ARENA_NEW(arena, double, n);
    a->left_s = MAQ_ARENA_NEW(arena, double, n);
    for (uint32_t k = 0; a->borders && k < a->n_kinds; k++) {
        a->borders[k] = MAQ_ARENA_NEW(arena, struct maq_afd_border, (size_t)most_tokens + 1);
        if (!a->borders[k])
            return MAQ_NO_MEMORY;
    }
    return a->borders && a->slices && a->chunks && a->times && a->first_s && a->left_s ? MAQ_OK : MAQ_NO_MEMORY;
}

enum maq_status maq_afd_init(struct maq_afd **out, const struct maq_job *job, const struct maq_serve_options *o,
                             int64_t most_tokens, struct maq_arena *arena)
{
    struct maq_afd *a = MAQ_ARENA_NEW(arena, struct maq_afd, 1);
    const struct maq_cluster *cluster = &job->cluster;
    if (!a)
        return MAQ_NO_MEMORY;
    a->micro_batches = o->afd.micro_batches;
    a->attention_ranks = job->plan.tp * (o->dp > 1 ? o->dp : 1);
    a->ffn_ranks = o->afd.ffn_ranks;
    a->exchange = (enum maq_afd_exchange)o->afd.exchange;
    a->bps = o->afd.bps;
    uint32_t first = maq_afd_first_ffn(cluster, (uint32_t)a->attention_ranks);
    place_ffn(a, job, first);
    const struct maq_device *attention = &cluster->groups[job->stages[0].group].device,
                            *ffn = &maq_cluster_group_of(cluster, first)->device;
    MAQ_TRY(maq_passes_init_side(&a->attention, job, attention, o, MAQ_PASS_ATTENTION, most_tokens, arena));
    MAQ_TRY(maq_passes_init_side(&a->ffn, &a->ffn_job, ffn, o, MAQ_PASS_FFN, most_tokens, arena));
    MAQ_TRY(list_layers(a, &job->model, arena));
    MAQ_TRY(make_room(a, most_tokens, arena));
    *out = a;
    return MAQ_OK;
}
