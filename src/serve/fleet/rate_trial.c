/* SPDX-License-Identifier: Apache-2.0 */
/* rate_trial.c - a stream of requests, faster and slower. */
#include "serve/fleet/rate_trial.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"

#define NEAR_STEP 1.03
#define MOST_STEPS 40 /* halvings and doublings */

enum maq_status maq_rate_trial_begin(struct maq_rate_trial *t, struct maq_diag *diag)
{
    MAQ_ASSERT(t->draw->n > 0);
    double span = t->draw->at[t->draw->n - 1].arrival_s - t->draw->at[0].arrival_s;
    t->own_rate = span > 0 ? (t->draw->n - 1) / span : 1;
    t->high = (double)INFINITY;
    t->fits = true;
    t->scaled = maq__calloc(t->draw->n * sizeof *t->scaled);
    return t->scaled ? MAQ_OK : maq_no_memory(diag, "requests");
}

void maq_rate_trial_end(struct maq_rate_trial *t)
{
    free(t->scaled);
    t->scaled = NULL;
}

/*
 * A fleet that does not keep up has more requests in it the longer they come, even if its latencies have not grown beyond their bounds
 * yet. From when it has filled, which takes as long as a request stays (or half of the stream, where that is shorter), to the last arrival: those that are there in the mean of the second
 * half, less those of the first, are more than so many of the requests that came in a half. Where they come and go by chance, both means
 * differ by the root of their sum.
 */
#define GROWS_SHARE 0.05
#define CHANCE 2

static double overlap(double from, double to, double a, double b)
{
    return fmax(0, fmin(to, b) - fmax(from, a));
}

static bool grows(const struct maq_serve_result *r, const struct maq_requests *q)
{
    double begin = q->at[0].arrival_s, end = q->at[q->n - 1].arrival_s,
           filled = fmin(begin + r->e2el_s.mean, (begin + end) / 2), half = (end - filled) / 2, there[2] = {0},
           came = 0;
    if (half <= 0)
        return false;
    for (uint32_t i = 0; i < q->n; i++) {
        came += q->at[i].arrival_s > filled;
        for (int k = 0; k < 2; k++)
            there[k] +=
                overlap(q->at[i].arrival_s, r->served[i].last_s, filled + k * half, filled + (k + 1) * half) / half;
    }
    double more = there[1] - there[0];
    return more > CHANCE * sqrt(there[0] + there[1]) && more > GROWS_SHARE * came / 2;
}

static void learn(struct maq_rate_trial *t, double rate, bool held, const struct maq_serve_result *r,
                  const struct maq_slo_outcome *o)
{
    if (held) {
        t->low = rate;
        t->met = *o;
        t->e2el_s = r->e2el_s.mean;
        t->ttft_s = r->ttft_s.mean;
        t->tpot_s = r->tpot_s.mean;
    } else {
        t->high = rate;
        t->missed = *o;
        t->overloaded = r->overloaded;
    }
}

bool maq_rate_try(struct maq_rate_trial *t, double rate, struct maq_diag *diag)
{
    struct maq_requests q = *t->draw;
    struct maq_serve_result *r;
    struct maq_slo_outcome o;
    for (uint32_t i = 0; i < q.n; i++) {
        t->scaled[i] = t->draw->at[i];
        t->scaled[i].arrival_s = (t->draw->at[i].arrival_s - t->draw->at[0].arrival_s) * (t->own_rate / rate);
    }
    q.at = t->scaled;
    q.give_up = isinf(rate) ? NULL : t->slo; /* all at once tell how fast they are served */
    t->status = maq_fleet_run(&r, t->fleet, &q, diag);
    if (t->status != MAQ_OK)
        return false;
    maq_slo_judge(&o, t->slo, r, &q);
    bool whole = r->fits && r->finished == r->n_requests;
    if (whole && !isinf(rate))
        r->overloaded |= grows(r, &q);
    t->runs++;
    t->fits = r->fits;
    t->served_per_s = isinf(rate) ? r->requests_per_s : t->served_per_s;
    learn(t, rate, o.all_met && whole && !r->overloaded && !isinf(rate), r, &o);
    maq_serve_free(r);
    return true;
}

bool maq_rate_narrow(struct maq_rate_trial *t, double guess, bool near)
{
    double step = near ? NEAR_STEP : 2;
    if (!maq_rate_try(t, fmax(guess, t->least), NULL))
        return false;
    for (int i = 0; i < MOST_STEPS && (isinf(t->high) || t->low <= 0) && t->high > t->least; i++) {
        if (!maq_rate_try(t, t->low > 0 ? t->low * step : fmax(t->high / step, t->least), NULL))
            return false;
        step = step * step < 2 ? step * step : 2;
    }
    while (t->low > 0 && !isinf(t->high) && t->high > t->low * (1 + t->tolerance))
        if (!maq_rate_try(t, sqrt(t->low * t->high), NULL))
            return false;
    return true;
}
