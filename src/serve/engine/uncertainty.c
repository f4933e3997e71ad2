/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uncertainty.c - how sure a predicted latency is.
 *
 * Of the runs of a table that say what was served and how, a request stream against an engine, four in five measured between `low` and
 * `high` times the prediction (tools/fit-serve-error; docs/validate-serve.md has the share for sources that the fit had not seen). The same
 * factors hold for every deployment: what they would depend on, the engine, its release, the GPU, has too few sources to say. Gaps
 * between tokens are what TPOT is the mean of and have its factors; waiting is what TTFT is off by most, and has those of TTFT. A request's
 * whole time is its first token and the others behind it, both off in the same direction at once.
 */
#include "serve/engine/uncertainty.h"

#include "serve/engine/uncertainty_fit.h"

static const struct factors {
    double low, high;
} ttft = {MAQ_SERVE_TTFT_LOW, MAQ_SERVE_TTFT_HIGH}, tpot = {MAQ_SERVE_TPOT_LOW, MAQ_SERVE_TPOT_HIGH};

static void put(struct maq_serve_quantiles *q, const struct factors *f)
{
    q->low = q->mean * f->low;
    q->high = q->mean * f->high;
}

void maq_serve_intervals(struct maq_serve_result *r)
{
    double behind = r->e2el_s.mean - r->ttft_s.mean;
    put(&r->ttft_s, &ttft);
    put(&r->queue_s, &ttft);
    put(&r->tpot_s, &tpot);
    put(&r->itl_s, &tpot);
    r->e2el_s.low = r->ttft_s.low + behind * tpot.low;
    r->e2el_s.high = r->ttft_s.high + behind * tpot.high;
}

void maq_serve_interval(double *low, double *high, enum maq_serve_latency of)
{
    const struct factors *f = of == MAQ_SERVE_TTFT ? &ttft : &tpot;
    *low = f->low;
    *high = f->high;
}
