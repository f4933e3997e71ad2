/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample.c - draws durations of all nodes from the variation, by random numbers with addresses (class, operator,
 * draw), and evaluates eight draws at once with the static engine. See sample.h.
 */
#include "risk/graph/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/stat/special_functions.h"
#include "base/text.h"
#include "risk/fit/kernel_names.h"
#include "risk/step/model.h"
#include "risk/step/signature.h"

#define LANES 8u
#define OWN 16u /* numbers of operators are above those of all */

/* --- cells ---------------------------------------------------------------------------------------------------------------- */

struct named {
    const char *name;
    uint32_t item;
};

static int by_name(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int c = strcmp(x->name, y->name);
    return c != 0 ? c : (x->item > y->item) - (x->item < y->item);
}

/* Items of one name are one operator. */
static uint32_t *signatures(struct maq_graph_sampler *s, struct maq_arena *arena)
{
    uint32_t n = s->timed->graph.n_items;
    struct named *named = MAQ_ARENA_NEW(arena, struct named, n);
    uint32_t *of = MAQ_ARENA_NEW(arena, uint32_t, n);
    if (!named || !of)
        return NULL;
    for (uint32_t i = 0; i < n; i++)
        named[i] = (struct named){s->timed->item_name[i], i};
    qsort(named, n, sizeof *named, by_name);
    for (uint32_t i = 0; i < n; i++) {
        s->n_signatures += i == 0 || strcmp(named[i].name, named[i - 1].name) != 0;
        of[named[i].item] = s->n_signatures - 1;
    }
    return of;
}

/* Nodes by class, so that one table of items serves all classes. */
static uint32_t *by_class(struct maq_graph_sampler *s, struct maq_arena *arena)
{
    const struct maq_graph *g = &s->timed->graph;
    uint32_t *at = MAQ_ARENA_NEW(arena, uint32_t, (size_t)g->n_classes + 2);
    uint32_t *order = MAQ_ARENA_NEW(arena, uint32_t, g->n_nodes);
    if (!at || !order)
        return NULL;
    for (uint32_t v = 0; v < g->n_nodes; v++)
        at[g->stream[v] / MAQ_STREAM_COUNT + 2]++;
    for (uint32_t c = 2; c < g->n_classes + 2; c++)
        at[c] += at[c - 1];
    for (uint32_t v = 0; v < g->n_nodes; v++)
        order[at[g->stream[v] / MAQ_STREAM_COUNT + 1]++] = v;
    return order;
}

/* What the variation calls an item: the first word of a name of ours; for a kernel's own name what risk fit takes it for. */
static int16_t law_of(const struct maq_variation *v, const char *name, uint8_t sort, uint8_t bucket)
{
    static const char *const groups[MAQ_BUCKET_COUNT] = {[MAQ_BUCKET_TP] = "tp",
                                                         [MAQ_BUCKET_CP] = "cp",
                                                         [MAQ_BUCKET_EP] = "ep",
                                                         [MAQ_BUCKET_PP] = "pp",
                                                         [MAQ_BUCKET_DP] = "dp"};
    bool communication = sort == MAQ_ITEM_COMMUNICATION;
    struct maq_str all = maq_str_of(name);
    char word[MAQ_KERNEL_NAME], of_group[MAQ_KERNEL_NAME + 4];
    int16_t any = -1;
    if (v->n_kernels == 0 || (!communication && sort != MAQ_ITEM_COMPUTE))
        return -1;
    maq__snprintf(word, sizeof word, "%.*s", (int)strcspn(name, " "), name);
    if (!maq_signature_known(word)) {
        struct maq_kernel_words words = {.kernel = all, .collective = communication ? all : MAQ_STR("")};
        maq_kernel_name(word, &words);
    }
    const char *group = communication && bucket < MAQ_BUCKET_COUNT ? groups[bucket] : NULL;
    maq__snprintf(of_group, sizeof of_group, "%s %s", word, group ? group : "");
    for (uint32_t i = 0; i < v->n_kernels; i++) {
        if (strcmp(v->kernel[i].name, of_group) == 0)
            return (int16_t)i;
        if (strcmp(v->kernel[i].name, word) == 0)
            any = (int16_t)i;
    }
    return any;
}

/* The class of each node; of communication that several classes share, the one with the slowest link. */
static uint32_t *classes(const struct maq_graph_sampler *s, struct maq_arena *arena)
{
    const struct maq_timed_graph *t = s->timed;
    uint32_t *of = MAQ_ARENA_NEW(arena, uint32_t, t->graph.n_nodes);
    if (!of)
        return NULL;
    for (uint32_t v = 0; v < t->graph.n_nodes; v++)
        of[v] = t->graph.stream[v] / MAQ_STREAM_COUNT;
    for (uint32_t i = 0; i < t->n_shares; i++) {
        uint32_t v = t->share[i].node, other = t->share[i].stream / MAQ_STREAM_COUNT;
        if (t->item_sort[t->graph.item[v]] == MAQ_ITEM_COMMUNICATION && s->link[other] > s->link[of[v]])
            of[v] = other;
    }
    return of;
}

static bool make_cells(struct maq_graph_sampler *s, const struct maq_variation *v, struct maq_arena *arena)
{
    struct seen {
        uint32_t class1, cell; /* class1: class + 1 */
    };
    const struct maq_graph *g = &s->timed->graph;
    uint32_t *signature = signatures(s, arena), *order = by_class(s, arena), *class_of = classes(s, arena);
    struct seen *seen = MAQ_ARENA_NEW(arena, struct seen, (size_t)g->n_items * 2);
    s->cell_of = MAQ_ARENA_NEW(arena, uint32_t, g->n_nodes);
    s->cell = MAQ_ARENA_NEW(arena, struct maq_graph_cell, g->n_nodes);
    if (!signature || !order || !class_of || !seen || !s->cell_of || !s->cell)
        return false;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        uint32_t node = order[i], class_id = class_of[node], item = g->item[node];
        uint8_t sort = s->timed->item_sort[item], bucket = g->tag[node].bucket;
        bool inside = bucket == MAQ_BUCKET_TP;
        struct seen *at = &seen[(size_t)item * 2 + inside];
        if (at->class1 != class_id + 1) {
            *at = (struct seen){class_id + 1, s->n_cells};
            s->cell[s->n_cells++] = (struct maq_graph_cell){s->timed->dur_ns[item],
                                                            class_id,
                                                            signature[item],
                                                            sort,
                                                            inside,
                                                            law_of(v, s->timed->item_name[item], sort, bucket)};
        }
        s->outside = s->outside || (sort == MAQ_ITEM_COMMUNICATION && !inside);
        s->cell_of[node] = at->cell;
    }
    s->graph = *g;
    s->graph.item = s->cell_of;
    s->graph.n_items = s->n_cells;
    return true;
}

/* --- what is quasi-random --------------------------------------------------------------------------------------------------- */

#define NO_DIMENSION UINT32_MAX

/* The operators that take most of the time of all nodes get the dimensions that classes and stragglers leave. */
static bool give_dimensions(struct maq_graph_sampler *s, struct maq_arena *arena)
{
    double *time = MAQ_ARENA_NEW(arena, double, s->n_signatures);
    uint32_t *of = MAQ_ARENA_NEW(arena, uint32_t, s->n_signatures);
    uint64_t next = (uint64_t)s->graph.n_classes + s->n_slow;
    s->dimension_of = of;
    if (!time || !of)
        return false;
    for (uint32_t i = 0; i < s->n_signatures; i++)
        of[i] = NO_DIMENSION;
    for (uint32_t v = 0; v < s->graph.n_nodes; v++) {
        const struct maq_graph_cell *c = &s->cell[s->cell_of[v]];
        if (c->sort == MAQ_ITEM_COMPUTE || c->sort == MAQ_ITEM_COMMUNICATION)
            time[c->signature] += c->ns;
    }
    for (; next < MAQ_QUASI_DIMENSIONS; next++) {
        uint32_t most = NO_DIMENSION;
        for (uint32_t i = 0; i < s->n_signatures; i++)
            if (of[i] == NO_DIMENSION && time[i] > 0 && (most == NO_DIMENSION || time[i] > time[most]))
                most = i;
        if (most == NO_DIMENSION)
            break;
        of[most] = (uint32_t)next;
    }
    s->dimensions = next < MAQ_QUASI_DIMENSIONS ? (uint32_t)next : MAQ_QUASI_DIMENSIONS;
    return true;
}

static bool make_quasi(struct maq_graph_sampler *s, struct maq_arena *arena)
{
    struct maq_sobol *q = MAQ_ARENA_NEW(arena, struct maq_sobol, MAQ_STEP_SCRAMBLINGS);
    s->quasi = q;
    if (!q || !give_dimensions(s, arena))
        return false;
    for (uint32_t i = 0; i < MAQ_STEP_SCRAMBLINGS; i++)
        maq_sobol_init(&q[i], s->dimensions, s->seed, i);
    return true;
}

/* Number `draw` of an address: quasi-random where it has a dimension. */
static double number(const struct maq_graph_sampler *s, uint64_t dimension, uint32_t stream, uint32_t entity,
                     uint64_t group, uint32_t draw)
{
    if (!s->independent && dimension < s->dimensions)
        return maq_sobol_at(&s->quasi[draw % MAQ_STEP_SCRAMBLINGS], draw / MAQ_STEP_SCRAMBLINGS, (uint32_t)dimension);
    return maq_rng_at(s->seed, stream, entity, group << 32 | draw);
}

/* The noise of an operator. */
static double operator_number(const struct maq_graph_sampler *s, uint32_t signature, uint32_t draw)
{
    return number(s, s->dimension_of[signature], MAQ_RNG_STEP, signature, 0, draw);
}

bool maq_graph_sampler_init(struct maq_graph_sampler *s, const struct maq_timed_graph *timed,
                            const struct maq_risk_graph_opts *opts, const struct maq_variation *v,
                            struct maq_arena *arena)
{
    uint32_t n = timed->graph.n_classes;
    *s = (struct maq_graph_sampler){
        .timed = timed, .slow = opts->slow, .n_slow = opts->n_slow, .seed = opts->seed > 0 ? opts->seed : 1};
    s->link = MAQ_ARENA_NEW(arena, double, n);
    s->rank = MAQ_ARENA_NEW(arena, double, n);
    if (!s->link || !s->rank)
        return false;
    for (uint32_t c = 0; c < n; c++) {
        s->link[c] = 1;
        s->ranks += timed->graph.multiplicity[c];
    }
    for (uint32_t i = 0; i < s->n_slow; i++)
        s->link[s->slow[i].class_id] = fmax(s->link[s->slow[i].class_id], s->slow[i].communication);
    if (!make_cells(s, v, arena) || !make_quasi(s, arena))
        return false;
    s->dur = MAQ_ARENA_NEW(arena, double, ((size_t)s->n_cells + 1) * LANES);
    s->finish = MAQ_ARENA_NEW(arena, double, ((size_t)timed->graph.n_nodes + 1) * LANES);
    return s->dur && s->finish;
}

/* --- draws ------------------------------------------------------------------------------------------------------------------ */

static double lognormal_at(double sigma, const struct maq_graph_sampler *s, uint32_t signature, uint32_t draw)
{
    return sigma > 0 ? exp(sigma * maq_normal_quantile(operator_number(s, signature, draw))) : 1;
}

/* Factor of the slowest of n ranks: its probability to be exceeded is 1 - u^(1/n). */
static double slowest(const struct maq_variation *v, double n, double u)
{
    double lasting = v->gpu_cv * v->gpu_cv + v->node_cv * v->node_cv;
    double sigma = sqrt(log1p(lasting)), q = -expm1(log(u) / n);
    if (v->gpu_outlier_share <= 0)
        return sigma > 0 ? exp(-sigma * maq_normal_quantile(q)) : 1;
    struct maq_law part[2] = {
        maq_law_lognormal(1, fmax(sigma, 1e-12)),
        maq_law_lognormal(v->gpu_outlier_ratio, fmax(maq_lognormal_sigma(v->gpu_outlier_cv), 1e-12))};
    double weight[2] = {1 - v->gpu_outlier_share, v->gpu_outlier_share};
    struct maq_law law = maq_law_mixture(part, weight, 2);
    return maq_law_upper(&law, q);
}

/* A run of an operator with a law of its own. */
static double own_law(const struct maq_graph_sampler *s, const struct maq_kernel_law *law, uint32_t signature,
                      uint32_t draw)
{
    struct maq_law body = maq_kernel_law_body(law);
    double factor = maq_law_quantile(&body, operator_number(s, signature, draw));
    bool slow = law->slow_share > 0 && maq_rng_at(s->seed, MAQ_RNG_SPIKE, OWN + signature, draw) < law->slow_share;
    return slow ? factor * law->slow_ratio : factor;
}

/* GPUs in an episode at a time, of one rank. */
static double episodes(const struct maq_variation *v)
{
    return v->episode_ratio > 1 ? v->episodes_per_gpu_day / 86400 * v->episode_lasts_s : 0;
}

uint32_t maq_graph_parts(struct maq_graph_part parts[MAQ_GRAPH_PARTS], const struct maq_graph_sampler *s,
                         const struct maq_variation *v)
{
    bool regimes = s->outside && v->congested_share > 0 && v->congested_ratio > 1;
    double none = exp(-episodes(v) * s->ranks);
    uint32_t n = 0;
    for (int episode = 0; episode < 2; episode++)
        for (int congested = 0; congested < 2; congested++) {
            double share = (episode ? 1 - none : none) * (congested ? v->congested_share
                                                          : regimes ? 1 - v->congested_share
                                                                    : 1);
            if ((regimes || !congested) && share > 0)
                parts[n++] = (struct maq_graph_part){share, congested ? v->congested_ratio : 1, episode};
        }
    return n;
}

/*
 * Draws how many ranks of a class are slow for a while; `rest` are expected in it and the classes after it, and there
 * was none before.
 */
static uint32_t slow_for_a_while(bool *any, double expected, double rest, double u)
{
    double none = exp(-expected), p = *any ? 1 - none : expm1(-expected) / expm1(-rest); /* at least one here */
    if (u < 1 - p)
        return 0;
    *any = true;
    uint32_t n = maq_poisson_quantile(expected, fmin(none + (u - (1 - p)) / p * (1 - none), 1 - 1e-16));
    return n > 0 ? n : 1;
}

/* Ranks of a class that draw together. */
enum { USUAL, IN_EPISODE, STRAGGLERS /* and one more for each */ };

/* The number of group `group` of a class. */
static double uniform_of(const struct maq_graph_sampler *s, uint32_t class_id, uint32_t draw, uint64_t group)
{
    uint64_t dimension = group == USUAL        ? class_id
                         : group == IN_EPISODE ? NO_DIMENSION
                                               : s->graph.n_classes + group - STRAGGLERS;
    return number(s, dimension, MAQ_RNG_STATIC, class_id, group, draw);
}

/* What the slowest rank of each class multiplies its kernels by. */
static void draw_ranks(struct maq_graph_sampler *s, const struct maq_variation *v, bool episode, uint32_t draw)
{
    double each = episodes(v), rest = each * s->ranks;
    bool any = false;
    for (uint32_t c = 0; c < s->graph.n_classes; c++) {
        double usual = s->graph.multiplicity[c], expected = each * usual, factor = 0;
        for (uint32_t i = 0; i < s->n_slow; i++) {
            const struct maq_risk_slow_class *g = &s->slow[i];
            if (g->class_id != c || !(g->ranks > 0))
                continue;
            usual -= g->ranks;
            factor = fmax(factor, g->kernels * slowest(v, g->ranks, uniform_of(s, c, draw, STRAGGLERS + (uint64_t)i)));
        }
        if (episode) {
            double u = maq_rng_at(s->seed, MAQ_RNG_REGIME, c, draw);
            double slow = fmin(slow_for_a_while(&any, expected, rest, u), usual);
            if (slow > 0)
                factor = fmax(factor, v->episode_ratio * slowest(v, slow, uniform_of(s, c, draw, IN_EPISODE)));
            usual -= slow;
            rest -= expected;
        }
        s->rank[c] = usual > 0 ? fmax(factor, slowest(v, usual, uniform_of(s, c, draw, USUAL))) : factor;
    }
}

/* Durations of one draw. */
static void fill_lane(struct maq_graph_sampler *s, const struct maq_variation *v, const struct maq_graph_part *part,
                      uint32_t draw, uint32_t lane)
{
    double pass = maq_lognormal_sigma(v->pass_cv), communication = maq_lognormal_sigma(v->communication_cv);
    draw_ranks(s, v, part->episode, draw);
    for (uint32_t i = 0; i < s->n_cells; i++) {
        const struct maq_graph_cell *c = &s->cell[i];
        double factor = 1;
        if (c->sort == MAQ_ITEM_COMPUTE)
            factor = s->rank[c->class_id] * (c->law >= 0 ? own_law(s, &v->kernel[c->law], c->signature, draw)
                                                         : lognormal_at(pass, s, c->signature, draw));
        else if (c->sort == MAQ_ITEM_COMMUNICATION)
            factor = (c->law >= 0 ? own_law(s, &v->kernel[c->law], c->signature, draw)
                                  : lognormal_at(communication, s, c->signature, draw)) *
                     (c->inside ? 1 : part->congestion * s->link[c->class_id]);
        s->dur[(size_t)i * LANES + lane] = nearbyint(c->ns * factor);
    }
}

void maq_graph_sample(double *out_ns, struct maq_graph_sampler *s, const struct maq_variation *v,
                      const struct maq_graph_part *part)
{
    for (uint32_t from = 0; from < s->draws; from += LANES) {
        double makespan[LANES];
        for (uint32_t k = 0; k < LANES; k++)
            fill_lane(s, v, part, from + k, k);
        maq_engine_static(makespan, s->finish, &s->graph, LANES, s->dur);
        for (uint32_t k = 0; k < LANES && from + k < s->draws; k++)
            out_ns[from + k] = makespan[k];
    }
}
