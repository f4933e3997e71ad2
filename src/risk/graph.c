/*
 * graph.c - the distribution of the time of a graph with times: a captured job's, for instance.
 *
 * What varies is what varies in a step (variation.h), put onto the nodes of the graph. A draw is one duration vector; the static
 * engine evaluates eight at once:
 *
 *   kernel          recorded x rank x noise(operator)          rank: of the slowest of the n ranks of the class, P(rank <= x)^n = u
 *   communication   recorded x noise(collective) x congestion  congestion not inside tensor-parallel groups
 *   either          by the law of its own, where the variation has one: recorded x rank x law(operator)
 *   host, copies    recorded
 *   all of it       x step x hour x mode or spike
 *
 * Lasting differences of GPUs and nodes are one lognormal of the sum of their variances, so ranks of a node are taken to be
 * independent. That the slowest rank of a class decides is exact when its ranks meet and wait for each other; kernels' noise is drawn for
 * one rank, and equal operators share it within a draw. Work that differs from microbatch to microbatch is in the record already; GPUs that are
 * slow for a while are not looked at.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/check.h"
#include "base/codes.h"
#include "base/stats.h"
#include "base/text.h"
#include "maquette/risk.h"
#include "risk/kernel_names.h"
#include "risk/law.h"
#include "risk/order.h"
#include "risk/signature.h"
#include "risk/special.h"
#include "risk/variation.h"

#define LANES 8u
#define PI 3.14159265358979323846
#define DRAWS 2000u
#define DRAWS_LEAST 200u
#define NODE_DRAWS 4e8 /* what all runs together may take: some seconds */
#define SOURCES ((1u << MAQ_SOURCE_COUNT) - 1 - (1u << MAQ_SOURCE_MICROBATCH) - (1u << MAQ_SOURCE_EPISODE))
#define NONE UINT32_MAX
#define OWN 16u /* numbers of operators are above those of all */

static const struct maq_span nowhere;

/* An item as one class has it. */
struct cell {
    double ns;
    uint32_t class_id, signature; /* signature: of the item's name */
    uint8_t sort;
    bool inside; /* communication inside a tensor-parallel group */
    int16_t law; /* of its own: index of the variation's kernels; -1 = none */
};

struct sampler {
    const struct maq_timed_graph *timed;
    struct maq_graph graph; /* the same, its items being cells */
    struct maq_arena arena;
    uint32_t n_cells, n_signatures, *cell_of;
    struct cell *cell;
    double *dur, *finish;
    uint64_t seed;
    uint32_t draws;
};

static enum maq_status no_memory(struct maq_diag *diag)
{
    return maq_diag_fail(MAQ_NO_MEMORY, diag, MAQ_CODE_NO_MEMORY, nowhere, NULL, "out of memory for a distribution");
}

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
static uint32_t *signatures(struct sampler *s)
{
    uint32_t n = s->timed->graph.n_items;
    struct named *named = MAQ_ARENA_NEW(&s->arena, struct named, n);
    uint32_t *of = MAQ_ARENA_NEW(&s->arena, uint32_t, n);
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
static uint32_t *by_class(struct sampler *s)
{
    const struct maq_graph *g = &s->timed->graph;
    uint32_t *at = MAQ_ARENA_NEW(&s->arena, uint32_t, (size_t)g->n_classes + 2);
    uint32_t *order = MAQ_ARENA_NEW(&s->arena, uint32_t, g->n_nodes);
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

static bool make_cells(struct sampler *s, const struct maq_variation *v)
{
    struct seen {
        uint32_t class1, cell; /* class1: class + 1 */
    };
    const struct maq_graph *g = &s->timed->graph;
    uint32_t *signature = signatures(s), *order = by_class(s);
    struct seen *seen = MAQ_ARENA_NEW(&s->arena, struct seen, (size_t)g->n_items * 2);
    s->cell_of = MAQ_ARENA_NEW(&s->arena, uint32_t, g->n_nodes);
    s->cell = MAQ_ARENA_NEW(&s->arena, struct cell, g->n_nodes);
    if (!signature || !order || !seen || !s->cell_of || !s->cell)
        return false;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        uint32_t node = order[i], class_id = g->stream[node] / MAQ_STREAM_COUNT, item = g->item[node];
        bool inside = g->tag[node].bucket == MAQ_BUCKET_TP;
        struct seen *at = &seen[(size_t)item * 2 + inside];
        if (at->class1 != class_id + 1) {
            *at = (struct seen){class_id + 1, s->n_cells};
            s->cell[s->n_cells++] =
                (struct cell){s->timed->dur_ns[item],
                              class_id,
                              signature[item],
                              s->timed->item_sort[item],
                              inside,
                              law_of(v, s->timed->item_name[item], s->timed->item_sort[item], g->tag[node].bucket)};
        }
        s->cell_of[node] = at->cell;
    }
    s->graph = *g;
    s->graph.item = s->cell_of;
    s->graph.n_items = s->n_cells;
    return true;
}

/* --- draws ------------------------------------------------------------------------------------------------------------------ */

static double sigma_of(double cv)
{
    return sqrt(log1p(cv * cv));
}

static double lognormal_at(double sigma, uint64_t seed, uint32_t stream, uint32_t entity, uint32_t draw)
{
    return sigma > 0 ? exp(sigma * maq_normal_quantile(maq_rng_at(seed, stream, entity, draw))) : 1;
}

/* Factor of the slowest of n ranks: its probability to be exceeded is 1 - u^(1/n). */
static double slowest(const struct maq_variation *v, double n, double u)
{
    double lasting = v->gpu_cv * v->gpu_cv + v->node_cv * v->node_cv;
    double sigma = sqrt(log1p(lasting)), q = -expm1(log(u) / n);
    if (v->gpu_outlier_share <= 0)
        return sigma > 0 ? exp(-sigma * maq_normal_quantile(q)) : 1;
    struct maq_law part[2] = {maq_law_lognormal(1, fmax(sigma, 1e-12)),
                              maq_law_lognormal(v->gpu_outlier_ratio, fmax(sigma_of(v->gpu_outlier_cv), 1e-12))};
    double weight[2] = {1 - v->gpu_outlier_share, v->gpu_outlier_share};
    struct maq_law law = maq_law_mixture(part, weight, 2);
    return maq_law_upper(&law, q);
}

/* A run of an operator with a law of its own. */
static double own_law(const struct sampler *s, const struct maq_kernel_law *law, uint32_t signature, uint32_t draw)
{
    struct maq_law body = maq_kernel_law_body(law);
    double factor = maq_law_quantile(&body, maq_rng_at(s->seed, MAQ_RNG_STEP, signature, draw));
    bool slow = law->slow_share > 0 && maq_rng_at(s->seed, MAQ_RNG_SPIKE, OWN + signature, draw) < law->slow_share;
    return slow ? factor * law->slow_ratio : factor;
}

/* Factors of one draw on kernels of a class and on signatures. */
static void fill_lane(struct sampler *s, const struct maq_variation *v, uint32_t draw, uint32_t lane)
{
    bool congested = maq_rng_at(s->seed, MAQ_RNG_REGIME, 0, draw) < v->congested_share;
    double pass = sigma_of(v->pass_cv), communication = sigma_of(v->communication_cv), rank = 1;
    uint32_t last = NONE;
    for (uint32_t i = 0; i < s->n_cells; i++) {
        const struct cell *c = &s->cell[i];
        double factor = 1;
        if (c->sort == MAQ_ITEM_COMPUTE) {
            if (c->class_id != last)
                rank = slowest(v, s->graph.multiplicity[c->class_id],
                               maq_rng_at(s->seed, MAQ_RNG_STATIC, c->class_id, draw));
            last = c->class_id;
            factor = rank * (c->law >= 0 ? own_law(s, &v->kernel[c->law], c->signature, draw)
                                         : lognormal_at(pass, s->seed, MAQ_RNG_STEP, c->signature, draw));
        } else if (c->sort == MAQ_ITEM_COMMUNICATION) {
            factor = c->law >= 0 ? own_law(s, &v->kernel[c->law], c->signature, draw)
                                 : lognormal_at(communication, s->seed, MAQ_RNG_STEP, c->signature, draw);
            factor *= congested && !c->inside ? v->congested_ratio : 1;
        }
        s->dur[(size_t)i * LANES + lane] = nearbyint(c->ns * factor);
    }
}

/* What all of a draw shares. */
static double shared(const struct sampler *s, const struct maq_variation *v, uint32_t draw)
{
    double factor = lognormal_at(sigma_of(v->step_cv), s->seed, MAQ_RNG_STEP, NONE, draw);
    if (maq_rng_at(s->seed, MAQ_RNG_SPIKE, 0, (uint64_t)draw * 2) < v->spike_share) {
        double u = maq_rng_at(s->seed, MAQ_RNG_SPIKE, 0, (uint64_t)draw * 2 + 1);
        return factor * fmax(1, v->spike_ratio * exp(sigma_of(v->spike_cv) * maq_normal_quantile(u)));
    }
    if (v->slow_mode_share > 0 && maq_rng_at(s->seed, MAQ_RNG_SPIKE, 1, draw) < v->slow_mode_share)
        factor *= v->slow_mode_ratio;
    if (v->diurnal_swing > 0)
        factor *= 1 + 0.5 * v->diurnal_swing * sin(PI * (maq_rng_at(s->seed, MAQ_RNG_SPIKE, 2, draw) - 0.5));
    return factor;
}

static void sample(struct sampler *s, const struct maq_variation *v, double *out_s)
{
    for (uint32_t from = 0; from < s->draws; from += LANES) {
        double makespan[LANES];
        for (uint32_t k = 0; k < LANES; k++)
            fill_lane(s, v, from + k, k);
        maq_engine_static(makespan, s->finish, &s->graph, LANES, s->dur);
        for (uint32_t k = 0; k < LANES && from + k < s->draws; k++)
            out_s[from + k] = makespan[k] * 1e-9 * shared(s, v, from + k);
    }
}

/* --- what is said of it ------------------------------------------------------------------------------------------------------ */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of sorted draws, with the 95 % interval of its order statistics. */
static struct maq_risk_quantile quantile(double *sorted, uint32_t n, double p)
{
    uint32_t low = maq_order_lower(n, p, 0.975), high = maq_order_upper(n, p, 0.975);
    return (struct maq_risk_quantile){maq_quantile(sorted, n, p), low > 0 ? sorted[low - 1] : (double)NAN,
                                      high > 0 ? sorted[high - 1] : (double)NAN};
}

static void describe(struct maq_risk_graph *out, double *draws, uint32_t n)
{
    static const double p[] = {[MAQ_RISK_P50] = 0.5, [MAQ_RISK_P95] = 0.95, [MAQ_RISK_P99] = 0.99};
    double mean = maq_mean(draws, n), sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += (draws[i] - mean) * (draws[i] - mean);
    out->sd_s = sqrt(sum / (n - 1));
    double half = 1.96 * out->sd_s / sqrt(n); /* 97.5 % of the normal distribution */
    qsort(draws, n, sizeof *draws, by_value);
    out->p5 = quantile(draws, n, 0.05);
    for (size_t f = 0; f < MAQ_COUNT(p); f++)
        out->figure[f] = quantile(draws, n, p[f]);
    out->figure[MAQ_RISK_MEAN] = (struct maq_risk_quantile){mean, mean - half, mean + half};
}

static int by_alone(const void *a, const void *b)
{
    const struct maq_risk_source *x = a, *y = b;
    if (x->alone_s < y->alone_s || x->alone_s > y->alone_s)
        return x->alone_s > y->alone_s ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void find_sources(struct maq_risk_graph *out, struct sampler *s, const struct maq_variation *v, double *draws)
{
    double whole = out->figure[MAQ_RISK_P95].value_s;
    for (uint32_t i = 0; i < MAQ_SOURCE_COUNT; i++) {
        if (!(SOURCES & 1u << i) || !maq_variation_has(v, (enum maq_source)i))
            continue;
        struct maq_variation alone = maq_variation_only(v, 1u << i),
                             others = maq_variation_only(v, SOURCES & ~(1u << i));
        struct maq_risk_source *source = &out->source[out->n_sources++];
        source->name = maq_source_name((enum maq_source)i);
        source->text = maq_source_text((enum maq_source)i);
        sample(s, &alone, draws);
        source->alone_s = maq_quantile(draws, s->draws, 0.95) - out->base_s;
        sample(s, &others, draws);
        source->removed_s = whole - maq_quantile(draws, s->draws, 0.95);
    }
    qsort(out->source, out->n_sources, sizeof *out->source, by_alone);
}

static int by_share(const void *a, const void *b)
{
    const struct maq_risk_longest *x = a, *y = b;
    if (x->seconds < y->seconds || x->seconds > y->seconds)
        return x->seconds > y->seconds ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* What the longest path through the graph is made of, when nothing varies: whatever makes that longer makes all longer. */
static bool find_drivers(struct maq_risk_graph *out, struct sampler *s)
{
    const struct maq_graph *g = &s->graph;
    struct maq_risk_longest *all = MAQ_ARENA_NEW(&s->arena, struct maq_risk_longest, s->n_signatures);
    double end;
    uint32_t v = 0;
    for (uint32_t i = 0; i < s->n_cells; i++)
        s->dur[i] = s->cell[i].ns;
    if (!all)
        return false;
    maq_engine_static(&end, s->finish, g, 1, s->dur);
    for (uint32_t i = 0; i < g->n_nodes; i++)
        v = s->finish[i] > s->finish[v] ? i : v;
    while (g->n_nodes > 0 && v != NONE) {
        struct maq_risk_longest *d = &all[s->cell[s->cell_of[v]].signature];
        d->name = s->timed->item_name[s->timed->graph.item[v]];
        d->seconds += s->dur[s->cell_of[v]] * 1e-9;
        d->count += s->dur[s->cell_of[v]] > 0;
        uint32_t before = NONE;
        for (uint32_t e = g->pred_at[v]; e < g->pred_at[v + 1]; e++)
            if (before == NONE || s->finish[g->pred[e]] > s->finish[before])
                before = g->pred[e];
        v = before;
    }
    out->base_s = end * 1e-9;
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_signatures; i++)
        if (all[i].seconds > 0)
            all[n++] = all[i];
    qsort(all, n, sizeof *all, by_share);
    out->n_drivers = n < MAQ_RISK_DRIVERS ? n : MAQ_RISK_DRIVERS;
    memcpy(out->driver, all, out->n_drivers * sizeof *all);
    return true;
}

static enum maq_status run(struct maq_risk_graph *out, struct sampler *s, const struct maq_risk_graph_opts *opts,
                           struct maq_diag *diag)
{
    struct maq_variation v;
    MAQ_TRY(maq_variation_load(&v, opts->variation, diag));
    if (!make_cells(s, &v))
        return no_memory(diag);
    double most = NODE_DRAWS / (2.0 * MAQ_SOURCE_COUNT) / (s->graph.n_nodes + 1.0);
    s->draws = opts->draws ? opts->draws : most >= DRAWS ? DRAWS : most <= DRAWS_LEAST ? DRAWS_LEAST : (uint32_t)most;
    s->seed = opts->seed ? opts->seed : 1;
    s->dur = maq__malloc(((size_t)s->n_cells + 1) * LANES * sizeof *s->dur);
    s->finish = maq__malloc(((size_t)s->graph.n_nodes + 1) * LANES * sizeof *s->finish);
    double *draws = maq__malloc(((size_t)s->draws + 1) * sizeof *draws);
    enum maq_status status = s->dur && s->finish && draws && find_drivers(out, s) ? MAQ_OK : no_memory(diag);
    if (status == MAQ_OK) {
        struct maq_variation all = maq_variation_only(&v, SOURCES);
        out->draws = s->draws;
        sample(s, &all, draws);
        describe(out, draws, s->draws);
        if (!opts->no_sources)
            find_sources(out, s, &v, draws);
    }
    free(draws);
    return status;
}

enum maq_status maq_risk_graph(struct maq_risk_graph *out, const struct maq_timed_graph *timed,
                               const struct maq_risk_graph_opts *opts, struct maq_diag *diag)
{
    struct sampler s = {.timed = timed};
    struct maq_risk_graph result = {0};
    maq_arena_init(&s.arena, 0);
    enum maq_status status = run(&result, &s, opts, diag);
    free(s.dur);
    free(s.finish);
    maq_arena_fini(&s.arena);
    if (status == MAQ_OK)
        *out = result;
    return status;
}
