/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_risk_queue.c - sums along streams and maxima where they join, against queueing theory.
 *
 * Customers that come one after another are a stream of a graph, what serves them is another, and a service begins
 * when its customer has come and the one before is through: a queue is a graph (Lindley, "The theory of queues with a
 * single server", 1952). With arrivals by Poisson's process of rate l and services of mean 1 and squared coefficient
 * of variation c the mean wait is
 *
 *   W = l (1 + c) / 2 / (1 - l)       (Pollaczek and Khinchine)
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/stat/law.h"
#include "base/stat/rng.h"
#include "maquette/graph.h"

enum { LANES = 8, CUSTOMERS = 60000, WARM = 10000, BATCH = 5000 };
#define UNIT_NS 1e6 /* durations are whole nanoseconds */

static void draw(double *dur, uint32_t item, const struct maq_law *law, uint32_t entity)
{
    for (uint32_t k = 0; k < LANES; k++) {
        struct maq_rng r = maq_rng_of(11, MAQ_RNG_TEST, (entity * LANES + k) * 2u * CUSTOMERS + item);
        dur[(size_t)item * LANES + k] = floor(UNIT_NS * maq_law_sample(law, &r) + 0.5);
    }
}

/* Mean wait in units, and its standard error from batches of all lanes. */
static double wait(double *error, const struct maq_law *service, double rate, uint32_t entity)
{
    uint32_t n = 2 * CUSTOMERS, *item = calloc(n, sizeof *item), *stream = calloc(n, sizeof *stream),
             *pred_at = calloc(n + 1, sizeof *pred_at), *pred = calloc((size_t)3 * CUSTOMERS, sizeof *pred), edges = 0,
             one = 1;
    double *dur = malloc((size_t)n * LANES * sizeof *dur), *finish = malloc((size_t)n * LANES * sizeof *finish);
    struct maq_node_tag *tag = calloc(n, sizeof *tag);
    double makespan[LANES], sum = 0, square = 0;
    struct maq_law gap = maq_law_exponential(1 / rate);
    assert_true(item && stream && pred_at && pred && dur && finish && tag);
    for (uint32_t i = 0; i < CUSTOMERS; i++) { /* node 2i: a customer comes; 2i + 1: is served */
        draw(dur, 2 * i, &gap, entity);
        draw(dur, 2 * i + 1, service, entity);
        item[2 * i] = 2 * i;
        item[2 * i + 1] = 2 * i + 1;
        stream[2 * i + 1] = 1;
        pred_at[2 * i] = edges;
        if (i > 0)
            pred[edges++] = 2 * i - 2;
        pred_at[2 * i + 1] = edges;
        pred[edges++] = 2 * i;
        if (i > 0)
            pred[edges++] = 2 * i - 1;
    }
    pred_at[n] = edges;
    struct maq_graph g = {.n_nodes = n,
                          .n_edges = edges,
                          .n_classes = 1,
                          .n_items = n,
                          .item = item,
                          .stream = stream,
                          .pred_at = pred_at,
                          .pred = pred,
                          .tag = tag,
                          .multiplicity = &one};
    maq_engine_static(makespan, finish, &g, LANES, dur);
    uint32_t batches = 0;
    for (uint32_t from = WARM; from < CUSTOMERS; from += BATCH)
        for (uint32_t k = 0; k < LANES; k++, batches++) {
            double mean = 0;
            for (uint32_t i = from; i < from + BATCH; i++) {
                size_t come = (size_t)2 * i * LANES + k, served = come + LANES;
                mean += (finish[served] - dur[served] - finish[come]) / BATCH / UNIT_NS;
            }
            sum += mean;
            square += mean * mean;
        }
    double mean = sum / batches;
    *error = sqrt((square / batches - mean * mean) / (batches - 1));
    free(item);
    free(stream);
    free(pred_at);
    free(pred);
    free(dur);
    free(finish);
    free(tag);
    return mean;
}

static void test_waits(void **state)
{
    const struct {
        const char *name;
        struct maq_law service;
        double c, expected; /* published: 4, 2, 10 */
    } queues[] = {{"M/M/1", maq_law_exponential(1), 1, 4},
                  {"M/D/1", maq_law_constant(1), 0, 2},
                  {"M/G/1", maq_law_gamma(0.25, 4), 4, 10}};
    (void)state;
    for (uint32_t q = 0; q < 3; q++) {
        double error, mean = wait(&error, &queues[q].service, 0.8, q);
        assert_true(fabs(0.8 * (1 + queues[q].c) / 2 / (1 - 0.8) - queues[q].expected) < 1e-12);
        if (fabs(mean - queues[q].expected) > 4 * error || error > 0.05 * queues[q].expected)
            fail_msg("%s: %.4f +- %.4f, expected %.0f", queues[q].name, mean, error, queues[q].expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_waits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
