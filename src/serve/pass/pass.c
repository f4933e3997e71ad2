/* SPDX-License-Identifier: Apache-2.0 */
/* pass.c - the stages of a deployment as lists of layers, and passes through them. */
#include "serve/pass/pass.h"

#include <stddef.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "cost/analytical/analytical.h"
#include "cost/engine_tables.h"
#include "serve/engine_release.h"

static const struct maq_pass_type types[MAQ_WEIGHTS_COUNT] = {
    [MAQ_WEIGHTS_BF16] = {.dtype = MAQ_BF16, .bytes = 2},
    [MAQ_WEIGHTS_FP8] = {.dtype = MAQ_FP8, .quantizes = true, .bytes = 1},
    [MAQ_WEIGHTS_FP8_BLOCK] = {.dtype = MAQ_FP8,
                               .flags = MAQ_OP_BLOCKS,
                               .quantizes = true,
                               .bytes = 1 + 4.0 / (128 * 128)},
    [MAQ_WEIGHTS_INT8] = {.dtype = MAQ_BF16, .flags = MAQ_OP_WEIGHT8, .bytes = 1},
    [MAQ_WEIGHTS_INT4] = {.dtype = MAQ_BF16, .flags = MAQ_OP_WEIGHT4, .bytes = 0.5 + 2.0 / 128},
    [MAQ_WEIGHTS_MXFP4] = {.dtype = MAQ_BF16, .flags = MAQ_OP_WEIGHT4, .bytes = 0.5 + 1.0 / 32},
    [MAQ_WEIGHTS_NVFP4] = {.dtype = MAQ_FP4, .quantizes = true, .bytes = 0.5 + 1.0 / 16},
};

struct maq_op maq_pass_op(enum maq_op_kind kind, const struct maq_pass_type *type, unsigned flags, int64_t d0,
                          int64_t d1, int64_t d2, int64_t d3)
{
    return (struct maq_op){
        .kind = (uint16_t)kind,
        .dtype = (uint8_t)type->dtype,
        .flags =
            (uint8_t)(flags |
                      (kind == MAQ_OP_GEMM || kind == MAQ_OP_EXPERTS || kind == MAQ_OP_MLA_BLOCK ? type->flags : 0)),
        .d = {d0, d1, d2, d3}};
}

double maq_pass_seconds(const struct maq_passes *p, const struct maq_op *op)
{
    struct maq_costs costs = p->costs;
    costs.library = maq_engine_table(p->costs.library, op, p->device);
    return maq_cost_op(&costs, op, p->device).seconds;
}

void maq_pass_cost(const struct maq_passes *p, const struct maq_op *op, double times, enum maq_serve_part part,
                   struct maq_pass_parts *out)
{
    const struct maq_work work = maq_op_work(op);
    out->ns[part] += maq_pass_seconds(p, op) * 1e9 * times;
    out->matrix_ns += work.matrix_flop / maq__matrix_peak(p->device, (enum maq_dtype)op->dtype) * 1e9 * times;
    out->memory_ns += work.bytes / p->device->mem_bps * 1e9 * times;
    out->kernels += times;
}

void maq_pass_coll(const struct maq_passes *p, enum maq_coll_kind kind, double bytes, double times,
                   struct maq_pass_parts *out)
{
    struct maq_coll c = {.kind = (uint16_t)kind, .sharers = 1, .bytes = bytes, .at = p->job->groups[MAQ_GROUP_TP]};
    if (p->job->plan.tp == 1)
        return;
    out->ns[MAQ_SERVE_COMM] += maq_cost_coll(&p->costs, &c, &p->job->cluster).seconds * 1e9 * times;
    out->kernels += times;
}

void maq_pass_exchange(const struct maq_passes *p, struct maq_coll coll, double times, struct maq_pass_parts *out)
{
    coll.sharers = 1;
    coll.at = p->wide;
    out->ns[MAQ_SERVE_COMM] += maq_cost_coll(&p->costs, &coll, &p->job->cluster).seconds * 1e9 * times;
    out->kernels += times;
}

/* ---- construction ---- */

static bool is_routed(const struct maq_layer *layer)
{
    uint32_t i = 0;
    while (i < layer->n_modules && layer->modules[i].kind != MAQ_MODULE_ROUTER)
        i++;
    return i < layer->n_modules;
}

static enum maq_status list_layers(struct maq_passes *p, struct maq_pass_stage *s, uint32_t first, uint32_t n)
{
    const struct maq_model *m = &p->job->model;
    s->depth = n;
    s->layers = MAQ_ARENA_NEW(p->arena, struct maq_pass_layer, m->n_kinds);
    if (!s->layers)
        return MAQ_NO_MEMORY;
    for (uint32_t i = first; i < first + n; i++) {
        const struct maq_layer *layer = &m->kinds[m->kind_of[i]];
        uint32_t k = 0;
        s->routed += is_routed(layer);
        while (k < s->n_layers && s->layers[k].layer != layer)
            k++;
        if (k == s->n_layers) {
            struct maq_pass_layer *l = &s->layers[s->n_layers++];
            l->layer = layer;
            l->window = maq_pass_mixer_window(&l->chooses, p, layer);
        }
        s->layers[k].count++;
    }
    return MAQ_OK;
}

/* Engines cut the layers evenly; what is left over goes to the stages before the last, which has the head. */
static enum maq_status cut_stages(struct maq_passes *p)
{
    uint32_t pp = (uint32_t)p->job->plan.pp, layers = p->job->model.num_layers, first = 0, over = layers % pp;
    p->n_stages = pp;
    p->stages = MAQ_ARENA_NEW(p->arena, struct maq_pass_stage, pp);
    if (!p->stages)
        return MAQ_NO_MEMORY;
    for (uint32_t s = 0; s < pp; s++) {
        bool gets = over > 0 && pp > 1 && s + 1 + over >= pp && s + 1 < pp;
        uint32_t n = layers / pp + (gets || (over > 0 && pp > 1 && over >= pp) ? 1 : 0);
        if (s + 1 == pp)
            n = layers - first;
        p->stages[s].first = s == 0;
        p->stages[s].last = s + 1 == pp;
        MAQ_TRY(list_layers(p, &p->stages[s], first, n));
        p->stages[s].compiled = maq_pass_compiled_kernels(p, &p->stages[s]);
        first += n;
    }
    return MAQ_OK;
}

static void list_windows(struct maq_passes *p)
{
    const struct maq_model *m = &p->job->model;
    p->windows[0] = 0;
    p->n_windows = 1;
    for (uint32_t k = 0; k < m->n_kinds; k++)
        for (uint32_t i = 0; i < m->kinds[k].n_modules; i++) {
            const struct maq_module *module = &m->kinds[k].modules[i];
            int64_t window = module->kind == MAQ_MODULE_ATTENTION ? maq_pass_window(&module->u.attention) : 0;
            uint32_t w = 0;
            while (w < p->n_windows && p->windows[w] != window)
                w++;
            if (w == p->n_windows && w < MAQ_PASS_WINDOWS)
                p->windows[p->n_windows++] = window;
        }
}

/*
 * How tokens reach the experts where nothing is said: gathered by all and summed by reduce-scatter, in 16 bits (vLLM's
 * allgather_reducescatter, SGLang without an a2a backend); TensorRT-LLM gathers what NVFP4 has quantized already
 * (_torch/modules/fused_moe). Its one-sided exchange, which newer releases choose by topology, is taken only where it is asked for.
 */
static void choose_exchange(struct maq_passes *p, const struct maq_serve_options *o)
{
    p->exchange = o->exchange;
    if (p->exchange == MAQ_EXCHANGE_AUTO)
        p->exchange = MAQ_EXCHANGE_GATHER;
    bool narrow = p->exchange != MAQ_EXCHANGE_GATHER || o->engine == MAQ_ENGINE_TRTLLM;
    p->exchange_bytes = 2;
    if (narrow && o->expert_weights == MAQ_WEIGHTS_NVFP4)
        p->exchange_bytes = types[MAQ_WEIGHTS_NVFP4].bytes;
    else if (p->exchange != MAQ_EXCHANGE_GATHER && p->experts.dtype == MAQ_FP8)
        p->exchange_bytes = 1 + 4.0 / 128;
}

/* Times that are known, for each stage, of up to n batches. */
static struct maq_pass_parts **new_table(struct maq_passes *p, size_t n)
{
    struct maq_pass_parts **t = MAQ_ARENA_NEW(p->arena, struct maq_pass_parts *, p->n_stages);
    for (uint32_t s = 0; t && s < p->n_stages; s++) {
        t[s] = MAQ_ARENA_NEW(p->arena, struct maq_pass_parts, n);
        if (!t[s])
            return NULL;
    }
    return t;
}

/* Layers of one kind alone, as often as a layer of it: once. */
static enum maq_status list_kinds(struct maq_passes *p)
{
    const struct maq_model *m = &p->job->model;
    bool ends = p->own_scope == MAQ_PASS_ATTENTION;
    p->n_stages = m->n_kinds + (ends ? MAQ_PASS_ENDS : 0);
    p->stages = MAQ_ARENA_NEW(p->arena, struct maq_pass_stage, p->n_stages);
    if (!p->stages)
        return MAQ_NO_MEMORY;
    for (uint32_t k = 0; k < m->n_kinds; k++) {
        struct maq_pass_layer *l = MAQ_ARENA_NEW(p->arena, struct maq_pass_layer, 1);
        if (!l)
            return MAQ_NO_MEMORY;
        *l = (struct maq_pass_layer){.layer = &m->kinds[k], .count = 1};
        l->window = maq_pass_mixer_window(&l->chooses, p, l->layer);
        p->stages[k] =
            (struct maq_pass_stage){.layers = l, .n_layers = 1, .depth = 1, .routed = is_routed(&m->kinds[k])};
    }
    if (ends) {
        p->stages[m->n_kinds + MAQ_PASS_EMBEDDING].first = true;
        p->stages[m->n_kinds + MAQ_PASS_HEAD].last = true;
    }
    return MAQ_OK;
}

/* All but its stages and what is known of them. `ranks`: that have experts. */
static void begin(struct maq_passes *p, const struct maq_job *job, const struct maq_device *device,
                  const struct maq_serve_options *o, int32_t ranks, int64_t most_tokens, struct maq_arena *arena)
{
    static const enum maq_library libraries[MAQ_ENGINE_COUNT] = {[MAQ_ENGINE_VLLM] = MAQ_LIBRARY_VLLM,
                                                                 [MAQ_ENGINE_SGLANG] = MAQ_LIBRARY_SGLANG,
                                                                 [MAQ_ENGINE_TRTLLM] = MAQ_LIBRARY_TRTLLM};
    *p = (struct maq_passes){.job = job,
                             .own = *job,
                             .device = device,
                             .costs = {.library = libraries[o->engine], .short_run = true},
                             .linear = types[o->weights],
                             .plain = types[MAQ_WEIGHTS_BF16],
                             .engine = o->engine,
                             .release = maq_engine_release(o->version),
                             .kv_fp8 = o->kv_fp8,
                             .sampling = maq_pass_sampling_of(o),
                             .ep = o->ep > 1 ? o->ep : 1,
                             .expert_skew = o->expert_skew,
                             .dp = o->dp > 1 ? o->dp : 1,
                             .most_tokens = most_tokens,
                             .arena = arena};
    p->compiled = o->engine == MAQ_ENGINE_VLLM && !o->enforce_eager && p->release >= MAQ_VLLM_COMPILED;
    p->experts = types[o->expert_weights];
    p->fuses_norm = o->engine == MAQ_ENGINE_TRTLLM && job->plan.tp > 1;
    p->moe_tp = ranks / p->ep > 0 ? ranks / p->ep : 1;
    choose_exchange(p, o);
    maq_pass_choose_experts(p, o);
    p->own.plan.ep = p->ep;
    p->own.plan.etp = p->moe_tp;
    p->own.plan.sequence_parallel = MAQ_OFF;
    list_windows(p);
}

/* Room for what is known of its stages. */
static enum maq_status make_tables(struct maq_passes *p)
{
    bool own = p->own_scope != MAQ_PASS_NOTHING, all = p->all_scope != MAQ_PASS_NOTHING;
    size_t n = (size_t)p->most_tokens + 1;
    p->by_tokens = own ? new_table(p, n) : NULL;
    p->by_all = all ? new_table(p, 2 * n) : NULL;
    p->by_rows = MAQ_ARENA_NEW(p->arena, struct maq_pass_parts, n);
    p->decodes = MAQ_ARENA_NEW(p->arena, struct maq_pass_decode *, p->n_stages);
    for (uint32_t s = 0; own && p->decodes && s < p->n_stages; s++) {
        p->decodes[s] = MAQ_ARENA_NEW(p->arena, struct maq_pass_decode, MAQ_PASS_DECODES);
        if (!p->decodes[s])
            return MAQ_NO_MEMORY;
    }
    return (p->by_tokens || !own) && p->by_rows && p->decodes && (p->by_all || !all) ? MAQ_OK : MAQ_NO_MEMORY;
}

enum maq_status maq_passes_init(struct maq_passes *p, const struct maq_job *job, const struct maq_serve_options *o,
                                int64_t most_tokens, struct maq_arena *arena)
{
    int32_t ranks = job->plan.tp * (o->dp > 1 ? o->dp : 1);
    begin(p, job, &job->cluster.groups[job->stages[0].group].device, o, ranks, most_tokens, arena);
    p->own_scope = p->dp > 1 ? MAQ_PASS_OWN : MAQ_PASS_WHOLE;
    p->all_scope = p->dp > 1 ? MAQ_PASS_EXPERTS : MAQ_PASS_NOTHING;
    p->wide = maq_cluster_place(&job->cluster, 0, (uint32_t)ranks, 1);
    MAQ_TRY(cut_stages(p));
    MAQ_TRY(maq_pass_lora_init(p, o));
    return make_tables(p);
}

enum maq_status maq_passes_init_side(struct maq_passes *p, const struct maq_job *job, const struct maq_device *device,
                                     const struct maq_serve_options *o, enum maq_pass_scope side, int64_t most_tokens,
                                     struct maq_arena *arena)
{
    begin(p, job, device, o, o->afd.ffn_ranks, most_tokens, arena);
    p->own_scope = side == MAQ_PASS_ATTENTION ? side : MAQ_PASS_NOTHING;
    p->all_scope = side == MAQ_PASS_FFN ? side : MAQ_PASS_NOTHING;
    p->experts_alone = o->afd.exchange == MAQ_AFD_M2N;
    MAQ_TRY(list_kinds(p));
    return make_tables(p);
}

void maq_pass_sum(struct maq_pass_parts *to, const struct maq_pass_parts *more)
{
    for (int i = 0; i < MAQ_SERVE_PART_COUNT; i++)
        to->ns[i] += more->ns[i];
    to->matrix_ns += more->matrix_ns;
    to->memory_ns += more->memory_ns;
    to->kernels += more->kernels;
    to->between += more->between;
}

static bool same_shape(const struct maq_pass_decode *a, const struct maq_pass_decode *b)
{
    return a->decodes == b->decodes && a->queries == b->queries && a->padded == b->padded && a->layer == b->layer &&
           a->keys == b->keys && a->indexed == b->indexed;
}

static int64_t below(double keys)
{
    return (int64_t)keys / MAQ_PASS_KEY_STEP * MAQ_PASS_KEY_STEP;
}

/* The ends of a step of keys, between which times grow evenly. */
enum { FEWER, MORE };

/* Of those that decode alone, with `keys` each. */
static const struct maq_pass_parts *decodes_at(struct maq_passes *p, uint32_t stage, uint32_t layer,
                                               const struct maq_pass_step *step, int64_t keys,
                                               const struct maq_pass_batch *b)
{
    const struct maq_pass_layer *l = &p->stages[stage].layers[layer];
    struct maq_pass_decode shape = {.decodes = step->decodes,
                                    .queries = step->queries,
                                    .padded = step->padded,
                                    .layer = layer,
                                    .keys = keys > 0 ? keys : 1,
                                    .indexed = step->indexed};
    uint64_t place = maq_hash_words(&shape, offsetof(struct maq_pass_decode, parts)) % MAQ_PASS_DECODES;
    struct maq_pass_decode *known = &p->decodes[stage][place];
    if (!same_shape(known, &shape)) {
        struct maq_pass_batch at = *b;
        for (uint32_t w = 0; w < p->n_windows; w++)
            at.decode_keys[w] = b->decodes * shape.keys;
        if (shape.indexed > 0)
            at.decode_keys[0] = b->decodes * shape.indexed;
        maq_pass_mixer(p, l->layer, l->count, &at, MAQ_MIXER_DECODES | (shape.padded >= 0 ? MAQ_MIXER_TOKENS : 0u),
                       &shape.parts);
        *known = shape;
    }
    return &known->parts;
}

/* The step that a batch's keys are in. */
static struct maq_pass_step *step_of(struct maq_pass_layer *l, const struct maq_pass_batch *b, int64_t from,
                                     int64_t indexed)
{
    struct maq_pass_step *s = &l->step;
    int64_t padded = b->n_chunks == 0 ? b->padded : -1;
    if (s->decodes != b->decodes || s->from != from || s->padded != padded || s->queries != b->queries ||
        s->indexed != indexed) {
        s->decodes = b->decodes;
        s->queries = b->queries;
        s->padded = padded;
        s->from = from;
        s->indexed = indexed;
        s->known[FEWER] = s->known[MORE] = false;
    }
    return s;
}

/* Its end, of so many keys. */
static void know(struct maq_passes *p, uint32_t stage, uint32_t layer, struct maq_pass_step *s, int end, int64_t keys,
                 const struct maq_pass_batch *b)
{
    if (!s->known[end])
        s->at[end] = *decodes_at(p, stage, layer, s, keys, b);
    s->known[end] = true;
}

static void add_share(struct maq_pass_parts *to, const struct maq_pass_parts *more, double share)
{
    for (int i = 0; i < MAQ_SERVE_PART_COUNT; i++)
        to->ns[i] += more->ns[i] * share;
    to->matrix_ns += more->matrix_ns * share;
    to->memory_ns += more->memory_ns * share;
    to->kernels += more->kernels * share;
    to->between += more->between * share;
}

static void add_decodes(struct maq_passes *p, uint32_t stage, uint32_t layer, const struct maq_pass_batch *b,
                        struct maq_pass_parts *out)
{
    struct maq_pass_layer *l = &p->stages[stage].layers[layer];
    double keys = maq_pass_mean_keys(b, l->window);
    int64_t from = below(keys), to = from + MAQ_PASS_KEY_STEP, least = from > 0 ? from : 1,
            indexed = l->chooses ? below(maq_pass_mean_keys(b, 0)) + MAQ_PASS_KEY_STEP : 0;
    double share = (keys - (double)least) / (double)(to - least);
    struct maq_pass_step *step = step_of(l, b, from, indexed);
    know(p, stage, layer, step, FEWER, from, b);
    add_share(out, &step->at[FEWER], 1 - share);
    if (share > 0) {
        know(p, stage, layer, step, MORE, to, b);
        add_share(out, &step->at[MORE], share);
    }
}

/* Adds the mixers of one batch. */
static void add_batch(struct maq_passes *p, uint32_t stage, const struct maq_pass_batch *b, struct maq_pass_parts *out)
{
    const struct maq_pass_stage *s = &p->stages[stage];
    maq_pass_lora(p, stage, b, out);
    for (uint32_t k = 0; k < s->n_layers; k++) {
        if (b->decodes > 0)
            add_decodes(p, stage, k, b, out);
        if (b->n_chunks > 0 || b->decodes == 0)
            maq_pass_mixer(p, s->layers[k].layer, s->layers[k].count, b, MAQ_MIXER_PROMPTS | MAQ_MIXER_TOKENS, out);
    }
}

/* The layers' mixers, which no other rank's batch changes; of several ranks all wait for the one that takes longest. */
static void add_mixers(struct maq_passes *p, uint32_t stage, const struct maq_pass_batch *batches,
                       struct maq_pass_parts *out)
{
    struct maq_pass_parts longest = {0};
    double most = -1;
    if (p->dp == 1)
        add_batch(p, stage, &batches[0], &longest);
    for (int32_t r = 0; p->dp > 1 && r < p->dp; r++) {
        struct maq_pass_parts own = {0};
        double sum = 0;
        add_batch(p, stage, &batches[r], &own);
        for (int i = 0; i < MAQ_SERVE_PART_COUNT; i++)
            sum += own.ns[i];
        if (sum > most) {
            most = sum;
            longest = own;
        }
    }
    maq_pass_sum(out, &longest);
}

/* What the tokens of all ranks pass together: as many of each as brings their sum up to it. */
static void add_common(struct maq_passes *p, uint32_t stage, const struct maq_pass_batch *batches,
                       struct maq_pass_parts *out)
{
    int64_t all = 0;
    bool decodes = true;
    for (int32_t r = 0; r < p->dp; r++) {
        all += batches[r].padded;
        decodes = decodes && batches[r].n_chunks == 0;
    }
    int64_t each = (all + p->dp - 1) / p->dp;
    struct maq_pass_parts *known = &p->by_all[stage][2 * each + decodes];
    if (known->kernels <= 0)
        maq_pass_layers(p, &p->stages[stage], p->all_scope, each * p->dp, decodes, known);
    maq_pass_sum(out, known);
}

/* What the tokens of the rank that has most of them pass alone. */
static const struct maq_pass_parts *own_layers(struct maq_passes *p, uint32_t stage,
                                               const struct maq_pass_batch *batches)
{
    int64_t padded = 0;
    for (int32_t r = 0; r < p->dp; r++)
        padded = batches[r].padded > padded ? batches[r].padded : padded;
    MAQ_ASSERT(padded <= p->most_tokens);
    struct maq_pass_parts *known = &p->by_tokens[stage][padded];
    if (known->kernels <= 0)
        maq_pass_layers(p, &p->stages[stage], p->own_scope, padded, false, known);
    return known;
}

/* The head, for the rank that samples most. */
static const struct maq_pass_parts *head(struct maq_passes *p, const struct maq_pass_batch *batches)
{
    int64_t sampled = 0;
    for (int32_t r = 0; r < p->dp; r++)
        sampled = batches[r].sampled > sampled ? batches[r].sampled : sampled;
    struct maq_pass_parts *known = &p->by_rows[sampled];
    if (known->kernels <= 0)
        maq_pass_head(p, sampled, known);
    return known;
}

void maq_pass_add(struct maq_passes *p, uint32_t stage, const struct maq_pass_batch *batches,
                  struct maq_pass_parts *out)
{
    bool own = p->own_scope != MAQ_PASS_NOTHING;
    if (own)
        maq_pass_sum(out, own_layers(p, stage, batches));
    if (p->all_scope != MAQ_PASS_NOTHING)
        add_common(p, stage, batches, out);
    if (own)
        add_mixers(p, stage, batches, out);
    if (p->stages[stage].last)
        maq_pass_sum(out, head(p, batches));
}

double maq_pass_least_s(struct maq_passes *p, uint32_t stage, const struct maq_pass_batch *batches)
{
    const struct maq_pass_parts *layers = own_layers(p, stage, batches);
    double ns = 0;
    for (int i = 0; i < MAQ_SERVE_PART_COUNT; i++)
        ns += layers->ns[i];
    return ns * 1e-9;
}
