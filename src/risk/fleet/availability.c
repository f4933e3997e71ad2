/* SPDX-License-Identifier: Apache-2.0 */
/*
 * availability.c - the closed form of fleet_availability.h: the law of how many replicas are out, as polynomials whose coefficient of x^i
 * is the probability of i.
 * Replicas of less than a node: r stand on each (spread: as many or one more), and a place that waits for a node takes all of them. Of several nodes each: m places
 * belong to a replica, and j places that wait, any of them, hit h replicas, one place after another: the next one is of a replica that is
 * hit already with probability (h m - j) / (n m - j). Replicas that begin on one node and end on the next are taken as the second, with as
 * many places as they have nodes in the mean. A node that is lost by a failure that takes one replica, one of its GPUs, hits any replica;
 * where there are no spare nodes it is a longer outage of that.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/stat/special_functions.h"
#include "maquette/fleet_availability.h"

#define NEGLIGIBLE 1e-18 /* probabilities that are left out */
#define QUANTILES 64
#define ROUNDS 16 /* of how often a spare node is at hand, and how long places are out besides */

/* ---- what fails, how often, for how long ---- */

/* Of a place, a second, and of a replica where it says so. */
struct rates {
    double node, own;             /* failures that take a place; of a replica: those that take it alone */
    double node_s, own_s;         /* mean time out; of a place, apart from waiting for a node */
    double lost_node, lost_alone; /* nodes lost by the first, by the others */
    double repair_s;              /* mean time in repair of those that are counted in it */
};

static double mean_of(const struct maq_delay *d)
{
    return !(d->median_s > 0) ? 0 : d->mean_s > d->median_s ? d->mean_s : d->median_s;
}

static double at_quantile(const struct maq_delay *d, double u)
{
    double sigma = d->mean_s > d->median_s && d->median_s > 0 ? sqrt(2 * log(d->mean_s / d->median_s)) : 0;
    return d->median_s > 0 ? d->median_s * exp(sigma * maq_normal_quantile(u)) : 0;
}

/* Mean of what a is longer than b. */
static double mean_excess(const struct maq_delay *a, const struct maq_delay *b)
{
    double of_b[QUANTILES], sum = 0;
    if (!(a->median_s > 0))
        return 0;
    for (int k = 0; k < QUANTILES; k++)
        of_b[k] = at_quantile(b, (k + 0.5) / QUANTILES);
    for (int i = 0; i < QUANTILES; i++) {
        double of_a = at_quantile(a, (i + 0.5) / QUANTILES);
        for (int k = 0; k < QUANTILES; k++)
            sum += fmax(0, of_a - of_b[k]);
    }
    return sum / (QUANTILES * QUANTILES);
}

/* Where nothing is said of causes a failure loses its node. */
static const struct maq_failure_cause any = {.share = 1, .loses_node = true, .takes = MAQ_FAILURE_NODE};

/* Of replicas that have GPUs on m nodes; at_hand: share of lost nodes for which a spare one is there, excess_s: asking less repair. */
static struct rates rates_of(const struct maq_availability_spec *s, double m, double at_hand, double excess_s)
{
    const struct maq_failures *f = s->failures;
    struct rates r = {0};
    double repairs = 0;
    for (uint32_t i = 0; i < (f->n_causes > 0 ? f->n_causes : 1); i++) {
        const struct maq_failure_cause *c = f->n_causes > 0 ? &f->causes[i] : &any;
        const struct maq_delay *repair = c->own_repair ? &c->repair : &f->repair;
        bool node = c->takes == MAQ_FAILURE_NODE;
        double times = c->loses_node ? 1 + f->together_share * (fmax(1, floor(f->together_nodes + 0.5)) - 1) : 1,
               gpu_rate = f->rate * c->share * times, rate = gpu_rate * s->gpus_per_node,
               out_s = mean_of(c->own_detection ? &c->detection : &f->detection) + s->start_s + s->load_s;
        if (c->loses_node) {
            double late_s = c->own_repair ? mean_excess(&f->requeue, repair) : excess_s;
            out_s += at_hand * mean_of(&f->requeue) + (1 - at_hand) * late_s;
            out_s += node || s->spare_nodes > 0 ? 0 : mean_of(repair);
            *(node ? &r.lost_node : &r.lost_alone) += rate;
            repairs += node || s->spare_nodes > 0 ? rate * mean_of(repair) : 0;
        }
        bool place = node || (s->network && m <= 1 && c->takes == MAQ_FAILURE_LINK); /* all replicas on it at once */
        double own = c->takes == MAQ_FAILURE_GPU ? gpu_rate * s->gpus : m > 1 ? rate * m : 0;
        *(place ? &r.node : &r.own) += place ? rate : own;
        *(place ? &r.node_s : &r.own_s) += (place ? rate : own) * out_s;
    }
    double counted = r.lost_node + (s->spare_nodes > 0 ? r.lost_alone : 0);
    r.node_s = r.node > 0 ? r.node_s / r.node : 0;
    r.own_s = r.own > 0 ? r.own_s / r.own : 0;
    r.repair_s = counted > 0 ? repairs / counted : 0;
    return r;
}

/* ---- polynomials ---- */

struct law {
    double *at; /* [n] */
    uint32_t n;
};

static bool new_law(struct law *l, uint32_t n)
{
    *l = (struct law){maq__calloc(n * sizeof *l->at), n};
    return l->at != NULL;
}

static void trim(struct law *l)
{
    while (l->n > 1 && l->at[l->n - 1] < NEGLIGIBLE)
        l->n--;
}

/* a times b takes the place of a. */
static bool multiply(struct law *a, const struct law *b)
{
    struct law product;
    if (!new_law(&product, a->n + b->n - 1))
        return false;
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t k = 0; k < b->n; k++)
            product.at[i + k] += a->at[i] * b->at[k];
    free(a->at);
    *a = product;
    trim(a);
    return true;
}

/* base to the power of n, in *out. */
static bool power(struct law *out, const struct law *base, uint32_t n)
{
    struct law square = {0};
    bool ok = new_law(out, 1) && new_law(&square, base->n);
    if (ok) {
        out->at[0] = 1;
        memcpy(square.at, base->at, base->n * sizeof *base->at);
    }
    for (; ok && n > 0; n /= 2) {
        ok = !(n & 1) || multiply(out, &square);
        ok = ok && (n == 1 || multiply(&square, &square));
    }
    free(square.at);
    return ok;
}

/* Of n that are out with probability q each, and `more` that are out in any case; times `weight`, added to [n + more + 1]. */
static void add_binomial(double *at, uint32_t n, double q, uint32_t more, double weight)
{
    for (uint32_t i = 0; i <= n && weight > 0; i++) {
        double ln = maq_log_gamma(n + 1.0) - maq_log_gamma(i + 1.0) - maq_log_gamma(n - i + 1.0);
        at[i + more] += weight * exp(ln) * pow(q, i) * pow(1 - q, n - i);
    }
}

static bool add_law(struct law *sum, const struct law *more, double weight)
{
    if (more->n > sum->n) {
        double *at = maq__realloc(sum->at, more->n * sizeof *at);
        if (!at)
            return false;
        memset(at + sum->n, 0, (more->n - sum->n) * sizeof *at);
        *sum = (struct law){at, more->n};
    }
    for (uint32_t i = 0; i < more->n; i++)
        sum->at[i] += weight * more->at[i];
    return true;
}

/* ---- places that wait for a node ---- */

struct fleet {
    const struct maq_availability_spec *spec;
    uint32_t n, places;
    uint32_t on[2], with[2]; /* whole_nodes: replicas on a place, and places that have so many, of two kinds */
    bool whole_nodes;        /* replicas of less than a node, whole ones on each */
    double m;                /* places of a replica, where not */
    struct rates rates;
    double node_out, own_out; /* shares of the time in which a place that has a node, and a replica, is out */
    struct law waiting;       /* places that wait */
    double takes_all;         /* share of them that have nobody; of the others one replica is out */
};

static double settling(double rate, double s)
{
    return rate * s / (1 + rate * s);
}

/*
 * The law of nodes in repair, and so of places that wait; *at_hand: of nodes that are lost those that find a spare one. Without spare nodes
 * those whose failures take one replica wait for themselves alone, and are no part of it.
 */
static bool find_waiting(struct fleet *f, double *at_hand)
{
    uint32_t spares = f->spec->spare_nodes, most = 2 * f->places + 2 * spares + 64, n = 0;
    const struct rates *r = &f->rates;
    double node = r->lost_node / (1 + r->node * r->node_s), alone = spares > 0 ? r->lost_alone : 0,
           share = node > 0 ? node / (node + alone) : 0, at = 1, sum = 0, births = 0, served = 0;
    free(f->waiting.at);
    if (!new_law(&f->waiting, most + 1))
        return false;
    for (uint32_t k = 0; k <= most; k++) { /* relative to nobody in repair, scaled where that grows */
        uint32_t waiting = k > spares ? k - spares : 0;
        double birth = node * fmax(0, f->places - share * waiting) + alone * f->places;
        f->waiting.at[waiting] += at;
        n = waiting + 1;
        sum += at;
        births += at * birth;
        served += k < spares ? at * birth : 0;
        if (at < NEGLIGIBLE * sum && birth * r->repair_s < k + 1)
            break;
        at *= birth * r->repair_s / (k + 1);
        if (at > 1e200) {
            for (uint32_t i = 0; i < n; i++)
                f->waiting.at[i] *= 1e-200;
            at *= 1e-200;
            sum *= 1e-200;
            births *= 1e-200;
            served *= 1e-200;
        }
    }
    for (uint32_t i = 0; i < n; i++)
        f->waiting.at[i] /= sum;
    f->waiting.n = n;
    trim(&f->waiting);
    *at_hand = births > 0 ? served / births : 1;
    f->takes_all = share;
    return true;
}

/* One behind another all places are full but the last; spread, some have one replica more than the others. */
static void set_kinds(struct fleet *f, bool spread)
{
    uint32_t on = spread ? f->n / f->places + 1 : f->spec->gpus_per_node / f->spec->gpus,
             with = spread ? f->n % f->places : f->places - 1;
    if (!f->whole_nodes)
        return;
    f->on[0] = on;
    f->with[0] = with;
    f->on[1] = spread ? on - 1 : f->n - on * with;
    f->with[1] = f->places - with;
}

static bool begin(struct fleet *f, const struct maq_availability_spec *spec, uint32_t n)
{
    uint32_t gpus = spec->gpus, per_node = spec->gpus_per_node;
    double touched = 0, before = -1, at_hand = spec->spare_nodes > 0 ? 1 : 0;
    bool spread = spec->spread_nodes > 0 && gpus <= per_node;
    *f = (struct fleet){.spec = spec, .n = n, .whole_nodes = spread || per_node % gpus == 0};
    f->places = (uint32_t)(((uint64_t)n * gpus + per_node - 1) / per_node);
    if (spread)
        f->places = n < spec->spread_nodes ? n : spec->spread_nodes;
    set_kinds(f, spread);
    for (uint64_t k = 0; !f->whole_nodes && k < n; k++) {
        uint64_t first = k * gpus / per_node, last = ((k + 1) * gpus - 1) / per_node;
        touched += (double)(last - first + 1);
    }
    f->m = f->whole_nodes ? 1 : touched / n;
    double excess_s = mean_excess(&spec->failures->requeue, &spec->failures->repair);
    for (int i = 0; i < ROUNDS && fabs(at_hand - before) > 1e-12; i++) {
        before = at_hand;
        f->rates = rates_of(spec, f->m, at_hand, excess_s);
        if (!find_waiting(f, &at_hand))
            return false;
    }
    f->node_out = settling(f->rates.node, f->rates.node_s);
    f->own_out = settling(f->rates.own, f->rates.own_s);
    return true;
}

/* ---- how many replicas are out ---- */

/* Of a place with r replicas that has a node. */
static bool place_law(struct law *out, const struct fleet *f, uint32_t r)
{
    if (!new_law(out, r + 1))
        return false;
    out->at[r] += f->node_out;
    add_binomial(out->at, r, f->own_out, 0, 1 - f->node_out);
    return true;
}

/* One replica more is hit, whichever: one that is out already, perhaps. */
static bool hit_any(struct law *l, uint32_t n)
{
    struct law more;
    if (!new_law(&more, l->n + 1))
        return false;
    for (uint32_t i = 0; i < l->n && i <= n; i++) {
        more.at[i] += l->at[i] * i / n;
        more.at[i + 1] += l->at[i] * (n - i) / n;
    }
    free(l->at);
    *l = more;
    trim(l);
    return true;
}

/* given: the law where j places wait that have nobody. Of others that wait each hits any replica; by how many there are, added to *out. */
static bool add_alone(struct law *out, struct law *given, const struct fleet *f, uint32_t j)
{
    bool ok = true;
    for (uint32_t d = j; ok && d < f->waiting.n; d++) {
        double ln = maq_log_gamma(d + 1.0) - maq_log_gamma(j + 1.0) - maq_log_gamma(d - j + 1.0),
               share = exp(ln) * pow(f->takes_all, j) * pow(1 - f->takes_all, d - j);
        ok = (d == j || hit_any(given, f->n)) && add_law(out, given, f->waiting.at[d] * share);
    }
    return ok;
}

/* Of n[0] places of one kind and n[1] of another that have a node, beside `gone` replicas that are out; times `weight`. */
static bool add_places(struct law *sum, const struct law kinds[2], const uint32_t n[2], uint32_t gone, double weight)
{
    struct law l = {0}, more = {0}, shifted = {0};
    bool ok = power(&l, &kinds[0], n[0]) && power(&more, &kinds[1], n[1]) && multiply(&l, &more) &&
              new_law(&shifted, l.n + gone);
    if (ok)
        memcpy(shifted.at + gone, l.at, l.n * sizeof *l.at);
    ok = ok && add_law(sum, &shifted, weight);
    free(l.at);
    free(more.at);
    free(shifted.at);
    return ok;
}

static double log_choose(uint32_t n, uint32_t k)
{
    return maq_log_gamma(n + 1.0) - maq_log_gamma(k + 1.0) - maq_log_gamma(n - k + 1.0);
}

/* Places that wait are any of them: how many of the second kind are among j is hypergeometric. */
static bool of_whole_nodes(struct law *out, const struct fleet *f)
{
    const uint32_t *on = f->on, *with = f->with;
    struct law kinds[2] = {{0}, {0}};
    bool ok = place_law(&kinds[0], f, on[0]) && place_law(&kinds[1], f, on[1]);
    for (uint32_t j = 0; ok && j < f->waiting.n && j <= f->places; j++) {
        struct law given = {0};
        ok = new_law(&given, 1);
        for (uint32_t i = j > with[0] ? j - with[0] : 0; ok && i <= j && i <= with[1]; i++) {
            const uint32_t there[2] = {with[0] - (j - i), with[1] - i};
            double ln = log_choose(with[1], i) + log_choose(with[0], j - i) - log_choose(f->places, j);
            ok = add_places(&given, kinds, there, (j - i) * on[0] + i * on[1], exp(ln));
        }
        ok = ok && add_alone(out, &given, f, j);
        free(given.at);
    }
    free(kinds[0].at);
    free(kinds[1].at);
    return ok;
}

/* The law of replicas that j places hit, from that of j - 1. */
static void hit_one_more(double *hit, uint32_t n, double m, uint32_t j)
{
    for (uint32_t h = n; h > 0; h--) {
        double left = n * m - (j - 1), again = fmax(0, fmin(1, (h * m - (j - 1)) / left)),
               new = fmax(0, fmin(1, (n - (h - 1)) * m / left));
        hit[h] = hit[h] * again + hit[h - 1] * new;
    }
    hit[0] = 0;
}

static bool of_several_nodes(struct law *out, const struct fleet *f)
{
    double q = 1 - pow(1 - f->node_out, f->m) * (1 - f->own_out), *hit = maq__calloc((f->n + 1u) * sizeof *hit);
    bool ok = hit != NULL;
    if (ok)
        hit[0] = 1;
    for (uint32_t j = 0; ok && j < f->waiting.n && j <= f->places; j++) {
        struct law given = {0};
        if (j > 0)
            hit_one_more(hit, f->n, f->m, j);
        ok = new_law(&given, f->n + 1);
        for (uint32_t h = 0; ok && h <= f->n; h++)
            if (hit[h] >= NEGLIGIBLE)
                add_binomial(given.at, f->n - h, q, h, hit[h]);
        ok = ok && add_alone(out, &given, f, j);
        free(given.at);
    }
    free(hit);
    return ok;
}

static bool law_of(struct law *out, struct fleet *f, const struct maq_availability_spec *spec, uint32_t n)
{
    *f = (struct fleet){.spec = spec};
    bool ok =
        new_law(out, 1) && begin(f, spec, n) && (f->whole_nodes ? of_whole_nodes(out, f) : of_several_nodes(out, f));
    free(f->waiting.at);
    f->waiting.at = NULL;
    return ok;
}

/* ---- what is asked ---- */

enum maq_status maq_availability_of(struct maq_availability *out, const struct maq_availability_spec *spec, uint32_t n,
                                    uint32_t needed)
{
    struct fleet f;
    struct law law;
    *out = (struct maq_availability){.out_every_s = (double)INFINITY};
    MAQ_ASSERT(needed >= 1 && needed <= n && spec->gpus >= 1 && spec->gpus_per_node >= 1);
    if (!law_of(&law, &f, spec, n)) {
        free(law.at);
        return MAQ_NO_MEMORY;
    }
    for (uint32_t i = 0; i < law.n && i <= n; i++) {
        double there = n - i;
        out->share += n - i >= needed ? law.at[i] : 0;
        out->carried += law.at[i] * fmin(1, there / needed);
        out->replicas += law.at[i] * there;
    }
    free(law.at);
    out->one = out->replicas / n;
    double often = (f.rates.node * f.m + f.rates.own) * out->one;
    if (often > 0) {
        out->out_every_s = 1 / often;
        out->out_s = (1 - out->one) / often;
    }
    return MAQ_OK;
}

enum maq_status maq_availability_needs(uint32_t *n, const struct maq_availability_spec *spec, uint32_t needed,
                                       uint32_t most, double share)
{
    for (uint32_t k = needed; k <= most; k++) {
        struct maq_availability a;
        MAQ_TRY(maq_availability_of(&a, spec, k, needed));
        if (a.share >= share) {
            *n = k;
            return MAQ_OK;
        }
    }
    *n = 0;
    return MAQ_OK;
}
