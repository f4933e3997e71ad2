/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_mixed_properties.c - what must hold of plans over several node groups, on random jobs: whatever allows more is not slower.
 *
 * Jobs are small, of dense models with a tied table and without, and of experts, on two or three node groups. Compared are closed
 * forms, which are what the search bounds: the best of a job is not below the bound of one that allows more, and where both are
 * exact not below its best.
 *
 * maq-test: long
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/units.h"
#include "effort.h"
#include "mixed_brute.h"
#include "planner/mixed/search_state.h"
#include "random_draws.h"

#define JOBS (SANITIZED ? 2 : 12)

/* A step waits for the slowest of all devices, 0.8 % x the expected maximum of a few more normal ones; nothing else grows with a node. */
#define WAITED 1.005

static const char *const models[] = {
    "{base: gpt2, num_hidden_layers: 4}",
    "{base: gpt2-medium, num_hidden_layers: 6}",
    "{base: llama-2-7b, num_hidden_layers: 2}",
    "{base: mixtral-8x7b, num_layers: 2, hidden_size: 1024}",
};
static const char *const devices[] = {"v100-16gb", "t4", "a100-40gb", "h100-sxm"};
static const char *const lists[] = {"recompute=none", "vp=1", "tp=1", "sharding=no_shard", "mbs=1,2", "ep=1"};

struct drawn {
    uint32_t groups, device[3], nodes[3], per_node[3], rate, model, gbs;
};

static struct drawn draw_job(uint64_t seed)
{
    uint64_t state = seed * 7919 + 3;
    struct drawn d = {.groups = draw(&state, 2, 3), .rate = draw(&state, 1, 4) * 10};
    for (uint32_t g = 0; g < d.groups; g++) {
        d.device[g] = draw(&state, 0, MAQ_COUNT(devices) - 1);
        d.nodes[g] = draw(&state, 1, 2);
        d.per_node[g] = 1u << draw(&state, 0, 1);
    }
    d.model = draw(&state, 0, MAQ_COUNT(models) - 1);
    d.gbs = 4u << draw(&state, 0, 2);
    return d;
}

static struct searched search(const struct drawn *d, const struct maq_mixed_search_opts *opts)
{
    char text[1024];
    int n = snprintf(text, sizeof text,
                     "{model: %s, workload: {seq: 1024, gbs: %u}, plan: {precision: fp16}, cluster: {groups: [",
                     models[d->model], d->gbs);
    for (uint32_t g = 0; g < d->groups; g++)
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "{device: %s, nodes: %u, devices_per_node: %u, nics_per_node: 1, fabric: {base: ethernet-100, "
                      "rate: %u Gb/s}},",
                      devices[d->device[g]], d->nodes[g], d->per_node[g], d->rate);
    snprintf(text + n, sizeof text - (size_t)n, "]}}");
    return search_groups(text, opts);
}

static void check(const char *what, uint64_t seed, const struct searched *less, const struct searched *more,
                  double may_lose)
{
    const struct maq_mixed_search_result *a = less->result, *b = more->result;
    if (a->n_plans == 0)
        return;
    assert_true(b->n_plans > 0);
    assert_true(b->bound_s <= b->composed_s * (1 + 1e-9));
    double best = a->exact && b->exact ? b->composed_s : b->bound_s;
    if (!(best <= a->composed_s * may_lose * (1 + 1e-9)))
        fail_msg("job %u, %s: %.9g s, %.9g s with more", (unsigned)seed, what, a->composed_s, best);
}

static void more_is_never_slower(void **ignored)
{
    uint32_t fit = 0;
    for (uint64_t seed = 0; seed < JOBS; seed++) {
        struct maq_mixed_search_opts opts = MAQ_MIXED_SEARCH_OPTS_INIT, other = opts;
        struct drawn d = draw_job(seed);
        opts.threads = other.threads = 1;
        struct searched plain = search(&d, &opts);
        fit += plain.result->n_plans > 0;

        other.lists = &lists[seed % MAQ_COUNT(lists)];
        other.n_lists = 1;
        struct searched fewer_ways = search(&d, &other);
        check(other.lists[0], seed, &fewer_ways, &plain, 1);
        done(&fewer_ways);

        /* With more memory than the cluster says no node group is searched alone, and where one is no plan leaves a node of it out. */
        other = opts;
        other.together_only = true;
        struct searched together = search(&d, &other);
        other.more_bytes = 4e9;
        struct searched memory = search(&d, &other);
        check("memory", seed, &together, &memory, 1);
        done(&memory);

        struct drawn faster = d, larger = d;
        faster.rate *= 2;
        struct searched network = search(&faster, &opts);
        check("network", seed, &plain, &network, 1);
        done(&network);

        other.more_bytes = 0;
        if (larger.nodes[seed % d.groups]++ > 1) { /* of one node all hops are inside; of several none is taken to be */
            struct searched nodes = search(&larger, &other);
            check("nodes", seed, &together, &nodes, WAITED);
            done(&nodes);
        }
        done(&together);
        done(&plain);
    }
    assert_true(fit > JOBS / 2);
}

/* The halves of a tied table are added up between the first stage and the last one: a stage that is both has nothing to send, however
 * slow the network between its nodes is. */
static void one_stage_ties_nothing(void **ignored)
{
    struct maq_mixed_search_opts opts = MAQ_MIXED_SEARCH_OPTS_INIT;
    const struct drawn d = {2, {0, 3}, {1, 2}, {1, 2}, 10, 1, 4}; /* gpt2-medium on a V100 and two nodes of two H100 */
    opts.threads = 1;
    struct searched s = search(&d, &opts);
    assert_true(s.result->n_plans == 1 && s.result->plans[0].n_stages == 1);
    const struct maq_mixed_search_plan *p = &s.result->plans[0];
    assert_true(p->composed_s <= (p->microbatches - 1) * p->bottleneck_s + p->fill_s + p->wait_s + p->sync_s * 1.001);
    assert_true(fabs(p->composed_s / p->step_s - 1) < 0.15);
    done(&s);
}

/* Asked to fit in nine of ten runs, every stage leaves the room for it, and the plan is no faster. */
static void room_is_left(void **ignored)
{
    static const char text[] =
        "{model: {base: llama-2-7b, num_hidden_layers: 10}, workload: {seq: 2048, gbs: 16}, plan: {precision: fp16}, "
        "cluster: {groups: [{device: v100-16gb, nodes: 1, devices_per_node: 4}, {device: t4, nodes: 1, "
        "devices_per_node: 4}]}}";
    struct maq_mixed_search_opts opts = MAQ_MIXED_SEARCH_OPTS_INIT;
    opts.threads = 1;
    struct searched full = search_groups(text, &opts);
    opts.min_fit_probability = 0.9;
    struct searched roomy = search_groups(text, &opts);
    opts.as_predicted = true;
    struct searched again = search_groups(text, &opts);
    assert_true(full.result->n_plans > 0 && roomy.result->n_plans > 0 && again.result->n_plans > 0);
    struct maq_mixed_search_headroom h = maq_mixed_search_headroom(full.result, 0, full.job);
    assert_true(h.stage < full.result->plans[0].n_stages && h.fit_probability < 0.9);
    assert_true(h.fit_probability == maq_train_fit_probability(h.needed_bytes, h.device_bytes));
    assert_true(maq_mixed_search_headroom(roomy.result, 0, roomy.job).fit_probability >= 0.9 - 1e-12);
    assert_true(roomy.result->plans[0].step_s >= full.result->plans[0].step_s);
    assert_true(roomy.result->min_fit_probability == 0.9 && again.result->min_fit_probability == 0);
    assert_true(again.result->plans[0].step_s == full.result->plans[0].step_s);
    done(&full);
    done(&roomy);
    done(&again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_is_never_slower),
        cmocka_unit_test(one_stage_ties_nothing),
        cmocka_unit_test(room_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
