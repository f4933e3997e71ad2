/*
 * search.c - coordinate search over the coefficients.
 *
 * Loss: weighted mean of |ln(predicted / measured)|, cut off at CUT so that rows which no coefficient can reach (a
 * protocol chosen wrongly, an outlier) do not pull. One coefficient at a time is made larger or smaller by a step and
 * kept if the loss falls; steps shrink. Coefficients of a generation see its rows inside a domain, those of a transport
 * the rows that cross it, the first before the second. Everything in a fixed order: same input, same bytes.
 */
#include <math.h>

#include "base/check.h"
#include "fit.h"

#define CUT 0.7
#define WIDE 3.0  /* the cut while the rough shape is found */
#define GAIN 1e-6 /* least fall of the loss that counts */

struct problem {
    const struct samples *samples;
    uint32_t except;
    int generation, transport; /* whose rows; -1 = any */
    double cut;
};

double sample_error(const struct sample *s)
{
    return log(maq__coll_s(&s->point.coll, &s->links, s->point.library) / s->point.measured_s);
}

static bool counts(const struct problem *p, const struct sample *s)
{
    if (s->source == p->except)
        return false;
    if (p->transport >= 0)
        return s->transport == p->transport;
    return s->transport < 0 && s->generation == p->generation;
}

static double loss(const struct problem *p)
{
    double sum = 0, weight = 0;
    for (uint32_t i = 0; i < p->samples->n; i++) {
        const struct sample *s = &p->samples->list[i];
        if (!counts(p, s))
            continue;
        double e = fabs(sample_error(s));
        sum += s->weight * fmin(e, p->cut);
        weight += s->weight;
    }
    return weight > 0 ? sum / weight : 0;
}

struct bound {
    double least, most, unit; /* unit: step of a coefficient that is 0 */
};

/* Tries to make *x larger and smaller; true when it moved. */
static bool step(double *x, struct bound b, double size, double *best, const struct problem *p)
{
    double from = *x;
    bool moved = false;
    for (int sign = 1; sign >= -1; sign -= 2) {
        double to = fabs(from) > b.unit ? from * (1 + sign * size * (from < 0 ? -1 : 1)) : from + sign * size * b.unit;
        to = fabs(to) < 0.05 * b.unit ? 0 : to;
        *x = fmin(fmax(to, b.least), b.most);
        double now = *x != from ? loss(p) : *best;
        if (now < *best - GAIN) {
            *best = now;
            from = *x;
            moved = true;
        }
        *x = from;
    }
    return moved;
}

static bool step_curve(struct maq_coll_curve *c, bool network, double size, double *best, const struct problem *p)
{
    static const struct bound start = {0, 1e-3, 1e-6}, hops = {0, 200, 0.2}, share = {1e-4, 1, 1e-4},
                              wide = {1e-4, 10, 1e-4}, overlap = {-3, 1, 0.2};
    bool moved = false;
    if (!(c->share > 0))
        return false;
    moved |= step(&c->start_s, start, size, best, p);
    moved |= step(&c->hops, hops, size, best, p);
    if (network)
        moved |= step(&c->gap, hops, size, best, p);
    moved |= step(&c->share, network ? share : wide, size, best, p);
    moved |= step(&c->overlap, overlap, size, best, p);
    return moved;
}

static bool round_near(struct maq_coll_generation *g, double size, double *best, const struct problem *p)
{
    static const struct bound bytes = {1e3, 1e9, 1}, part = {0.1, 1, 0.1}, power = {0, 4, 0.2};
    bool moved = false;
    for (int i = 0; i < MAQ_COLL_NEAR_COUNT; i++)
        moved |= step_curve(&g->near[i], false, size, best, p);
    moved |= step(&g->ll_bytes, bytes, size, best, p);
    moved |= step(&g->span, part, size, best, p);
    (void)power;
    return moved;
}

static bool round_far(struct maq_coll_transport *t, double size, double *best, const struct problem *p)
{
    static const struct bound channel = {1e9, 1e11, 1e9};
    static const struct bound part = {0.3, 1, 0.1};
    bool moved = false;
    for (int i = 0; i < MAQ_COLL_FAR_COUNT; i++)
        moved |= step_curve(&t->far[i], true, size, best, p);
    moved |= step(&t->channel_bps, channel, size, best, p);
    return moved | step(&t->shared_port, part, size, best, p);
}

static void search_near(struct maq_coll_generation *g, struct problem p, const double *sizes, size_t n, size_t rounds)
{
    double best = loss(&p);
    for (size_t k = 0; k < n; k++)
        for (size_t r = 0; r < rounds && round_near(g, sizes[k], &best, &p); r++)
            ;
}

static void search_far(struct maq_coll_transport *t, struct problem p, const double *sizes, size_t n, size_t rounds)
{
    double best = loss(&p);
    for (size_t k = 0; k < n; k++)
        for (size_t r = 0; r < rounds && round_far(t, sizes[k], &best, &p); r++)
            ;
}

void fit_search(struct fit *fit, const struct samples *samples, uint32_t except, bool quick)
{
    static const double rough[] = {0.6, 0.4, 0.25, 0.15}, fine[] = {0.5, 0.25, 0.1, 0.3, 0.05, 0.1, 0.03, 0.01};
    size_t skip = quick ? 4 : 0, rounds = quick ? 2 : 6;
    for (int g = 0; g < FIT_GENERATIONS; g++) {
        if (!quick)
            search_near(&fit->generations[g], (struct problem){samples, except, g, -1, WIDE}, rough, 4, rounds);
        search_near(&fit->generations[g], (struct problem){samples, except, g, -1, CUT}, fine + skip, 8 - skip, rounds);
    }
    for (int t = 0; t < MAQ_TRANSPORT_COUNT; t++) {
        if (!quick)
            search_far(&fit->transports[t], (struct problem){samples, except, -1, t, WIDE}, rough, 4, rounds);
        search_far(&fit->transports[t], (struct problem){samples, except, -1, t, CUT}, fine + skip, 8 - skip, rounds);
    }
}
