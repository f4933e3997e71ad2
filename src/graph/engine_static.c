/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_static.c - the static engine: one pass in topological order.
 *
 *     finish[v] = max_{u in pred(v)} finish[u] + dur[item[v]]
 *
 * Lanes are independent; K = 1 and K = 8 have their own loops because the compiler then keeps the lanes in
 * registers. Doubles hold whole nanoseconds exactly up to 2^53 (104 days), and a maximum and a sum of such
 * numbers are exact, so lanes, loops and compilers agree bit for bit.
 */
#include "maquette/graph.h"

static void run_one(double *restrict makespan, double *restrict finish, const struct maq_graph *g,
                    const double *restrict dur)
{
    const uint32_t *restrict item = g->item, *restrict at = g->pred_at, *restrict pred = g->pred;
    double end = 0;
    uint32_t e = 0;
    for (uint32_t v = 0, n = g->n_nodes; v < n; v++) {
        double t = 0;
        for (uint32_t stop = at[v + 1]; e < stop; e++) {
            double f = finish[pred[e]];
            t = f > t ? f : t;
        }
        t += dur[item[v]];
        finish[v] = t;
        end = t > end ? t : end;
    }
    *makespan = end;
}

#define LANES 8

static void run_lanes(double *restrict makespan, double *restrict finish, const struct maq_graph *g,
                      const double *restrict dur, uint32_t K, uint32_t from)
{
    double end[LANES] = {0};
    for (uint32_t v = 0; v < g->n_nodes; v++) {
        double t[LANES] = {0};
        for (uint32_t e = g->pred_at[v]; e < g->pred_at[v + 1]; e++) {
            const double *f = &finish[(size_t)g->pred[e] * K + from];
            for (int k = 0; k < LANES; k++)
                t[k] = f[k] > t[k] ? f[k] : t[k];
        }
        const double *d = &dur[(size_t)g->item[v] * K + from];
        double *out = &finish[(size_t)v * K + from];
        for (int k = 0; k < LANES; k++) {
            t[k] += d[k];
            out[k] = t[k];
            end[k] = t[k] > end[k] ? t[k] : end[k];
        }
    }
    for (int k = 0; k < LANES; k++)
        makespan[from + (uint32_t)k] = end[k];
}

static void run_lane(double *makespan, double *finish, const struct maq_graph *g, const double *dur, uint32_t K,
                     uint32_t k)
{
    double end = 0;
    for (uint32_t v = 0; v < g->n_nodes; v++) {
        double t = 0;
        for (uint32_t e = g->pred_at[v]; e < g->pred_at[v + 1]; e++) {
            double f = finish[(size_t)g->pred[e] * K + k];
            t = f > t ? f : t;
        }
        t += dur[(size_t)g->item[v] * K + k];
        finish[(size_t)v * K + k] = t;
        end = t > end ? t : end;
    }
    makespan[k] = end;
}

void maq_engine_static(double *makespan, double *finish, const struct maq_graph *graph, uint32_t K, const double *dur)
{
    if (K == 1) {
        run_one(makespan, finish, graph, dur);
        return;
    }
    uint32_t k = 0;
    for (; k + LANES <= K; k += LANES)
        run_lanes(makespan, finish, graph, dur, K, k);
    for (; k < K; k++)
        run_lane(makespan, finish, graph, dur, K, k);
}

double maq_graph_start(const struct maq_graph *graph, const double *finish, uint32_t node)
{
    double t = 0;
    for (uint32_t e = graph->pred_at[node]; e < graph->pred_at[node + 1]; e++)
        t = finish[graph->pred[e]] > t ? finish[graph->pred[e]] : t;
    return t;
}
