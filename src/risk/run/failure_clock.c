/* SPDX-License-Identifier: Apache-2.0 */
/*
 * failure_clock.c - draws failure times by inversion: hazard over piecewise constant rates, or the minimum over
 * Weibull nodes of one age and a heap of renewed ones. See failure_clock.h.
 */
#include "risk/run/failure_clock.h"

#include <math.h>

#include "base/stat/special_functions.h"

void maq_run_clock_init(struct maq_run_clock *c, const struct maq_run_model *m, uint32_t replica)
{
    const struct maq_failures *f = m->failures;
    *c = (struct maq_run_clock){.m = m, .factor = 1, .calm = 1, .burst = 1, .burst_changes = (double)INFINITY};
    c->next = (double)INFINITY;
    if (!(m->rate > 0))
        return;
    if (f->spread > 0)
        c->factor = exp(f->spread * maq_normal_quantile(maq_rng_at(m->seed, MAQ_RNG_STATIC, replica, 0)));
    if (f->burst_times > 1) {
        c->calm = (f->burst_every_s + f->burst_lasts_s) / (f->burst_every_s + f->burst_times * f->burst_lasts_s);
        c->burst = c->calm * f->burst_times;
        c->burst_rng = maq_rng_of(m->seed, MAQ_RNG_REGIME, replica);
        /* In a burst at the start as often as at any time. */
        c->in_burst = maq_rng_next(&c->burst_rng) < f->burst_lasts_s / (f->burst_every_s + f->burst_lasts_s);
        c->burst_changes =
            -log(maq_rng_next(&c->burst_rng)) * 1e9 * (c->in_burst ? f->burst_lasts_s : f->burst_every_s);
    }
    if (f->shape != 1) {
        c->eta = 1 / (m->node_rate * c->factor) / exp(maq_log_gamma(1 + 1 / f->shape));
        c->hazard = pow(f->age_s * 1e9 / c->eta, f->shape);
        c->never_failed = m->nodes;
    }
}

void maq_run_clock_fini(struct maq_run_clock *c)
{
    maq_heap_free(&c->renewed);
}

static void change_burst(struct maq_run_clock *c)
{
    const struct maq_failures *f = c->m->failures;
    c->in_burst = !c->in_burst;
    c->burst_changes -= log(maq_rng_next(&c->burst_rng)) * 1e9 * (c->in_burst ? f->burst_lasts_s : f->burst_every_s);
}

static void draw_exponential(struct maq_run_clock *c, int64_t lemons, double u)
{
    const struct maq_failures *f = c->m->failures;
    double left = -log(u), at = c->now, base = c->m->node_rate * c->factor;
    double nodes = (double)c->m->nodes;
    if (f->lemon_share > 0)
        base *= (nodes + (f->lemon_times - 1) * (double)lemons) / (1 + f->lemon_share * (f->lemon_times - 1));
    else
        base *= nodes;
    for (;;) {
        double rate = base * (c->in_burst ? c->burst : c->calm), room = (c->burst_changes - at) * rate;
        if (left < room || isinf(c->burst_changes)) {
            c->next = at + left / rate;
            return;
        }
        left -= room;
        at = c->burst_changes;
        change_burst(c);
    }
}

/* The nodes that never failed, or the first of the others. */
static void draw_weibull(struct maq_run_clock *c, double u)
{
    const struct maq_failures *f = c->m->failures;
    double first = (double)INFINITY;
    if (c->never_failed > 0) {
        double hazard = c->hazard - log(u) / (double)c->never_failed;
        first = c->eta * pow(hazard, 1 / f->shape) - f->age_s * 1e9;
        first = first > c->now ? first : c->now;
    }
    double other = c->renewed.n > 0 ? (double)c->renewed.at[0] : (double)INFINITY;
    c->next = first < other ? first : other;
    double grown = pow((c->next + f->age_s * 1e9) / c->eta, f->shape);
    if (first < other)
        c->never_failed--;
    else
        (void)maq_heap_pop(&c->renewed);
    c->hazard = grown > c->hazard ? grown : c->hazard;
}

void maq_run_clock_draw(struct maq_run_clock *c, int64_t lemons, double u)
{
    if (!(c->m->rate > 0))
        return;
    if (c->m->failures->shape == 1)
        draw_exponential(c, lemons, u);
    else
        draw_weibull(c, u);
}

void maq_run_clock_renew(struct maq_run_clock *c, double u)
{
    if (c->m->failures->shape == 1)
        return;
    double length = c->eta * pow(-log(u), 1 / c->m->failures->shape);
    maq_heap_push(&c->renewed, (int64_t)fmin(c->now + length, 9e18));
}
