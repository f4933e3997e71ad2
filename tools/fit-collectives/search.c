/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.c - coordinate search over the coefficients.
 *
 * Loss: weighted mean of |ln(predicted / measured)|, cut off at CUT so that rows which no coefficient can reach (a
 * protocol chosen wrongly, an outlier) do not pull. One coefficient at a time is made larger or smaller by a step and
 * kept if the loss falls; steps shrink. Coefficients of a generation see its rows inside a domain, those of a transport
 * the rows that cross it, the first before the second. Everything in a fixed order: same input, same bytes.
 *
 * A row reads few of the coefficients, so its term of the loss is kept and worked out again only for a coefficient that it reads: which
 * those are is found by trying (readers_of_curves()), and every sum of kept terms is held against the loss in full now and then.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "fit.h"

#define CUT 0.7
#define WIDE 3.0  /* the cut while the rough shape is found */
#define GAIN 1e-6 /* least fall of the loss that counts */

struct problem {
    const struct samples *samples;
    uint32_t except;           /* origin to leave out; UINT32_MAX = none */
    int generation, transport; /* whose rows; -1 = any */
    double cut;
    uint32_t *rows; /* [n] those that count, in the order of the samples */
    uint32_t n;
    double weight;        /* of them */
    uint32_t *reads;      /* [n] readers that they belong to, as bits */
    double *kept, *tried; /* [n] their terms of the loss, now and with the move at hand */
};

/* Readers: a bit for each curve, then one for each of the other coefficients of a transport. */
#define EVERY_ROW UINT32_MAX
#define READS_CHANNEL (1u << 24)
#define READS_PORT (1u << 25)
#define READS_TINY (1u << 26)
_Static_assert(MAQ_COLL_NEAR_COUNT <= 24 && (int)MAQ_COLL_FAR_COUNT <= (int)MAQ_COLL_NEAR_COUNT,
               "a bit for each curve");

double sample_error(const struct sample *s)
{
    return log(maq__coll_parts(&s->point.coll, &s->links, s->point.library).total_s / s->point.measured_s);
}

static bool counts(const struct problem *p, const struct sample *s)
{
    if (s->origin == p->except)
        return false;
    if (p->transport >= 0)
        return s->transport == p->transport;
    return s->transport < 0 && s->generation == p->generation;
}

/* Lists the rows of a problem; false when out of memory. */
static bool list_rows(struct problem *p)
{
    p->rows = calloc(p->samples->n + 1, sizeof *p->rows);
    p->reads = calloc(p->samples->n + 1, sizeof *p->reads);
    p->kept = calloc(p->samples->n + 1, sizeof *p->kept);
    p->tried = calloc(p->samples->n + 1, sizeof *p->tried);
    if (!p->rows || !p->reads || !p->kept || !p->tried)
        return false;
    for (uint32_t i = 0; i < p->samples->n; i++)
        if (counts(p, &p->samples->list[i])) {
            p->rows[p->n++] = i;
            p->weight += p->samples->list[i].weight;
        }
    return true;
}

static void free_rows(struct problem *p)
{
    free(p->rows);
    free(p->reads);
    free(p->kept);
    free(p->tried);
}

/*
 * The loss after a move of coefficients that some rows read, or HUGE_VAL where it is not below `limit`: terms are not negative, so that a
 * sum that has reached the limit does not come back. What is found is the same as with all terms and without a limit, to the bit.
 */
static double loss_below(const struct problem *p, double limit, uint32_t readers)
{
    double sum = 0;
    if (p->weight <= 0)
        return 0;
    for (uint32_t k = 0; k < p->n; k++) {
        p->tried[k] = p->kept[k];
        if (p->reads[k] & readers) {
            const struct sample *s = &p->samples->list[p->rows[k]];
            p->tried[k] = s->weight * fmin(fabs(sample_error(s)), p->cut);
            if ((sum + p->tried[k]) / p->weight >= limit)
                return HUGE_VAL;
        }
        sum += p->tried[k];
    }
    return sum / p->weight < limit ? sum / p->weight : HUGE_VAL;
}

/* The coefficients that were tried stay. */
static void keep(struct problem *p)
{
    double *kept = p->kept;
    p->kept = p->tried;
    p->tried = kept;
}

/* The loss of all rows, which is kept. */
static double loss(struct problem *p)
{
    double all = loss_below(p, HUGE_VAL, EVERY_ROW);
    keep(p);
    return all;
}

static double time_of(const struct sample *s)
{
    return maq__coll_parts(&s->point.coll, &s->links, s->point.library).total_s;
}

static void set_curves(struct maq_coll_curve *curves, int n, double start_s)
{
    for (int i = 0; i < n; i++)
        curves[i].start_s = start_s;
}

/*
 * Marks the rows that read each curve. Times are minima, maxima and sums of what algorithms take. So who reads a curve has another time
 * where it alone takes nothing and all others take for ever, or the other way round, whatever their coefficients come to be.
 */
static void readers_of_curves(struct problem *p, struct maq_coll_curve *curves, int n)
{
    const double nothing = -1e30, ever = 1e30;
    struct maq_coll_curve was[MAQ_COLL_NEAR_COUNT];
    for (int i = 0; i < n; i++)
        was[i] = curves[i];
    for (uint32_t k = 0; k < p->n; k++) {
        const struct sample *s = &p->samples->list[p->rows[k]];
        set_curves(curves, n, ever);
        double all_ever = time_of(s);
        set_curves(curves, n, nothing);
        double all_nothing = time_of(s);
        for (int i = 0; i < n; i++) {
            set_curves(curves, n, ever);
            curves[i].start_s = nothing;
            bool differs = time_of(s) != all_ever;
            set_curves(curves, n, nothing);
            curves[i].start_s = ever;
            curves[i].share = 1 / ever; /* copies have no start */
            p->reads[k] |= differs || time_of(s) != all_nothing ? 1u << i : 0;
            curves[i].share = was[i].share;
        }
        for (int i = 0; i < n; i++)
            curves[i] = was[i];
    }
}

static void readers_near(struct problem *p, struct maq_coll_generation *g)
{
    double ll_bytes = g->ll_bytes;
    g->ll_bytes = HUGE_VAL; /* it may come to be considered for any row */
    readers_of_curves(p, g->near, MAQ_COLL_NEAR_COUNT);
    g->ll_bytes = ll_bytes;
}

static void readers_far(struct problem *p, struct maq_coll_transport *t)
{
    readers_of_curves(p, t->far, MAQ_COLL_FAR_COUNT);
    for (uint32_t k = 0; k < p->n; k++) {
        const struct sample *s = &p->samples->list[p->rows[k]];
        p->reads[k] |= (s->point.coll.kind == MAQ_COLL_SEND_RECV ? READS_CHANNEL : 0) |
                       (s->links.shared_port ? READS_PORT : 0) |
                       (s->point.coll.kind == MAQ_COLL_ALL_TO_ALL ? READS_TINY : 0);
    }
}

/* The sum of kept terms is the loss; anything else is a mistake of this file. */
static void check_kept(struct problem *p)
{
    double kept = loss_below(p, HUGE_VAL, 0);
    if (loss(p) == kept)
        return;
    fprintf(stderr, "fit-collectives: a row reads a coefficient that it is not known to read\n");
    abort();
}

struct bound {
    double least, most, unit; /* unit: step of a coefficient that is 0 */
};

struct coefficient {
    double *x;
    struct bound bound;
    uint32_t readers;
};

static double moved(const struct coefficient *c, double size)
{
    double from = *c->x, unit = c->bound.unit;
    double to = fabs(from) > unit ? from + size * fabs(from) : from + size * unit;
    to = fabs(to) < 0.05 * unit ? 0 : to;
    return fmin(fmax(to, c->bound.least), c->bound.most);
}

/* A coefficient that makes no difference goes back to where it was. */
static void undo_idle(const struct coefficient *c, double was, double now, struct problem *p)
{
    double is = *c->x;
    *c->x = was;
    if (loss_below(p, HUGE_VAL, c->readers) > now)
        *c->x = is;
    else
        keep(p);
}

/* Moves a by size, and b (if any) by other; keeps that if the loss falls. */
static bool try_move(const struct coefficient *a, double size, const struct coefficient *b, double other, double *best,
                     struct problem *p)
{
    double was_a = *a->x, was_b = b ? *b->x : 0;
    *a->x = moved(a, size);
    if (b)
        *b->x = moved(b, other);
    if (*a->x != was_a || (b && *b->x != was_b)) {
        double now = loss_below(p, *best - GAIN, a->readers | (b ? b->readers : 0));
        if (now < *best - GAIN) {
            *best = now;
            keep(p);
            if (b) {
                undo_idle(b, was_b, now, p);
                undo_idle(a, was_a, now, p);
            }
            return true;
        }
    }
    *a->x = was_a;
    if (b)
        *b->x = was_b;
    return false;
}

/* Every coefficient alone, up and down; then every two of them, one of which may make up for the other. */
static bool step_all(const struct coefficient *c, size_t n, double size, bool pairs, double *best, struct problem *p)
{
    bool any = false;
    for (size_t i = 0; i < n; i++)
        for (int up = 1; up >= -1; up -= 2)
            any |= try_move(&c[i], up * size, NULL, 0, best, p);
    for (size_t i = 0; pairs && i < n; i++)
        for (size_t j = 0; j < i; j++)
            for (int signs = 0; signs < 4; signs++)
                any |= try_move(&c[i], signs & 1 ? size : -size, &c[j], signs & 2 ? size : -size, best, p);
    return any;
}

/* What a coefficient of a curve may be. */
struct bounds {
    struct bound start, hops, gap, share, overlap, own;
};

static const struct bounds near_bounds = {{0, 1e-3, 1e-6},  {0, 200, 0.2}, {0, 0, 1},
                                          {1e-4, 10, 1e-4}, {-3, 1, 0.2},  {0, 0, 1}};
static const struct bounds far_bounds = {{0, 2e-4, 1e-6}, {0.2, 30, 0.2}, {0, 4, 0.02},
                                         {1e-4, 1, 1e-4}, {-3, 1, 0.2},   {0, 0, 1}};
/*
 * InfiniBand and RoCE have few small messages among the measurements, most of them disturbed: what NCCL itself reckons
 * with (src/graph/tuning.cc) bounds start and hops: up to 14 us a hop, 1 or 2 us between two steps, three times that in
 * bulk.
 */
static const struct bounds verbs_bounds = {{0, 2e-5, 1e-6}, {0.4, 3, 0.2}, {0, 0.1, 0.02},
                                           {1e-2, 1, 1e-4}, {-1, 1, 0.2},  {0, 0, 1}};
static const struct bound flagged_gap = {0.2, 0.4, 0.02}, bulk_gap = {0.6, 1.2, 0.02}, peer_gap = {0, 0.4, 0.02},
                          row_gap = {0, 1, 0.01}, own_rows = {0, 10, 0.1};

/* Half of what LL sends is flags, a sixteenth of what LL128 sends; copies stay on the device. */
static double near_share_most(int curve)
{
    return curve == MAQ_COLL_NEAR_RING_LL      ? 0.5
           : curve == MAQ_COLL_NEAR_RING_LL128 ? 0.9375
           : curve == MAQ_COLL_NEAR_COPY       ? 10
                                               : 1;
}

static double far_share_most(int curve)
{
    bool ll = curve == MAQ_COLL_FAR_RING_LL || curve == MAQ_COLL_FAR_TREE_LL;
    return ll ? 0.5 : curve == MAQ_COLL_FAR_RING_LL128 || curve == MAQ_COLL_FAR_TREE_LL128 ? 0.9375 : 1;
}

static struct bounds near_bounds_of(int curve)
{
    struct bounds b = near_bounds;
    b.share.most = near_share_most(curve);
    if (curve >= MAQ_COLL_NEAR_EP_DISPATCH) {
        b.gap = row_gap;
        b.own = own_rows;
    }
    return b;
}

/* In bulk a ring takes what the network gives, wherever long rings were measured; EFA has all-reduce alone, by trees. */
#define RING_LEAST 0.9

static struct bounds far_bounds_of(int transport, int curve)
{
    struct bounds b = transport == MAQ_TRANSPORT_VERBS ? verbs_bounds : far_bounds;
    b.share.most = far_share_most(curve);
    if (curve == MAQ_COLL_FAR_RING_SIMPLE && transport != MAQ_TRANSPORT_SOCKETS)
        b.share.least = RING_LEAST;
    if (transport != MAQ_TRANSPORT_VERBS)
        return b;
    if (curve == MAQ_COLL_FAR_RING_LL || curve == MAQ_COLL_FAR_RING_LL128)
        b.gap = flagged_gap;
    else if (curve == MAQ_COLL_FAR_RING_SIMPLE)
        b.gap = bulk_gap;
    else if (curve == MAQ_COLL_FAR_PEERS)
        b.gap = peer_gap;
    return b;
}

#define CURVE_COEFFICIENTS 6

static void list_curve(struct coefficient out[CURVE_COEFFICIENTS], struct maq_coll_curve *c, const struct bounds *b,
                       uint32_t reader)
{
    out[0] = (struct coefficient){&c->start_s, b->start, reader};
    out[1] = (struct coefficient){&c->hops, b->hops, reader};
    out[2] = (struct coefficient){&c->gap, b->gap, reader};
    out[3] = (struct coefficient){&c->share, b->share, reader};
    out[4] = (struct coefficient){&c->overlap, b->overlap, reader};
    out[5] = (struct coefficient){&c->own, b->own, reader};
}

/* Curves that no row has in common: what one run takes is nothing to the other. */
struct near_curves {
    int first, end;
};
static const struct near_curves near_runs[] = {{0, MAQ_COLL_NEAR_EP_DISPATCH},
                                               {MAQ_COLL_NEAR_EP_DISPATCH, MAQ_COLL_NEAR_COUNT}};

static bool round_near(struct maq_coll_generation *g, struct near_curves run, double size, bool pairs, double *best,
                       struct problem *p)
{
    struct coefficient c[CURVE_COEFFICIENTS + 2] = {
        [CURVE_COEFFICIENTS] = {&g->ll_bytes, {1e3, 1e9, 1}, EVERY_ROW},
        [CURVE_COEFFICIENTS + 1] = {&g->span, {0.1, 1, 0.1}, EVERY_ROW},
    };
    bool any = false;
    for (int i = run.first; i < run.end; i++) {
        const struct bounds b = near_bounds_of(i);
        list_curve(c, &g->near[i], &b, 1u << i);
        any |= step_all(c, CURVE_COEFFICIENTS + (i == 0 || i == MAQ_COLL_NEAR_MULTICAST ? 2 : 0), size, pairs, best, p);
    }
    return any;
}

static bool round_far(struct maq_coll_transport *t, double size, bool pairs, double *best, struct problem *p)
{
    bool slingshot = p->transport == MAQ_TRANSPORT_CXI || p->transport == MAQ_TRANSPORT_CXI_SW;
    struct coefficient c[CURVE_COEFFICIENTS + 4] = {
        [CURVE_COEFFICIENTS] = {&t->channel_bps, {1e9, 1e11, 1e9}, READS_CHANNEL},
        [CURVE_COEFFICIENTS + 1] = {&t->shared_port, {0.3, 1, 0.1}, READS_PORT},
        [CURVE_COEFFICIENTS + 2] = {&t->shared_tree, {0.3, 1, 0.1}, READS_PORT},
        [CURVE_COEFFICIENTS + 3] = {&t->tiny_s, {0, 1e-4, 1e-6}, READS_TINY}, /* the last: Slingshot alone */
    };
    bool any = false;
    for (int i = 0; i < MAQ_COLL_FAR_COUNT; i++) {
        const struct bounds b = far_bounds_of(p->transport, i);
        list_curve(c, &t->far[i], &b, 1u << i);
        any |= step_all(c, MAQ_COUNT(c) - (slingshot ? 0 : 1), size, pairs, best, p);
    }
    return any;
}

static void search_near(struct maq_coll_generation *g, struct problem *p, const double *sizes, size_t n, size_t rounds)
{
    double best = loss(p);
    for (size_t run = 0; run < MAQ_COUNT(near_runs); run++)
        for (size_t k = 0; k < n; k++, check_kept(p))
            for (size_t r = 0; r < rounds && round_near(g, near_runs[run], sizes[k], r % 3 == 2, &best, p); r++)
                ;
}

static void search_far(struct maq_coll_transport *t, struct problem *p, const double *sizes, size_t n, size_t rounds)
{
    double best = loss(p);
    for (size_t k = 0; k < n; k++, check_kept(p))
        for (size_t r = 0; r < rounds && round_far(t, sizes[k], r % 3 == 2, &best, p); r++)
            ;
}

/* Whether the origin left out has rows there: elsewhere nothing would change. */
static bool concerns(const struct problem *p)
{
    struct problem all = *p;
    all.except = UINT32_MAX;
    for (uint32_t i = 0; i < p->samples->n; i++)
        if (p->samples->list[i].origin == p->except && counts(&all, &p->samples->list[i]))
            return true;
    return p->except == UINT32_MAX;
}

void fit_search(struct fit *fit, const struct samples *samples, uint32_t except)
{
    static const double rough[] = {0.3, 0.2, 0.25, 0.15}, fine[] = {0.5, 0.25, 0.1, 0.3, 0.05, 0.1, 0.03, 0.01};
    const size_t rounds = 6;
    for (int g = 0; g < FIT_GENERATIONS; g++) {
        struct problem p = {.samples = samples, .except = except, .generation = g, .transport = -1, .cut = WIDE};
        if (!concerns(&p) || !list_rows(&p))
            continue;
        readers_near(&p, &fit->generations[g]);
        search_near(&fit->generations[g], &p, rough, MAQ_COUNT(rough), rounds);
        p.cut = CUT;
        search_near(&fit->generations[g], &p, fine, MAQ_COUNT(fine), rounds);
        free_rows(&p);
    }
    for (int t = 0; t < MAQ_TRANSPORT_COUNT; t++) {
        struct problem p = {.samples = samples, .except = except, .generation = -1, .transport = t, .cut = WIDE};
        if (!concerns(&p) || !list_rows(&p))
            continue;
        readers_far(&p, &fit->transports[t]);
        search_far(&fit->transports[t], &p, rough, MAQ_COUNT(rough), rounds);
        p.cut = CUT;
        search_far(&fit->transports[t], &p, fine, MAQ_COUNT(fine), rounds);
        free_rows(&p);
    }
}
