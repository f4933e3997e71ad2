/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_counted.c - a cache that only counts its blocks decides as one whose blocks have numbers: two schedulers with the same random
 * requests, few blocks and so preemptions, in which after a while some have beginnings that others have, too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "random_draws.h"
#include "serve/sched/trtllm.h"
#include "serve/sched/vllm.h"

#define STEPS 400u

struct twins {
    struct maq_scheduler *s[2]; /* [0] counts */
    struct maq_iteration it[2];
    uint32_t requests, running;
    uint64_t preempted, found;
};

static void begin(struct twins *t, uint64_t *draws, bool caching)
{
    const struct maq_kv_group group = {.kind = MAQ_KV_FULL, .block_size = 16};
    const struct maq_vllm_knobs knobs = {.max_num_seqs = (int32_t)draw(draws, 4, 32),
                                         .max_num_batched_tokens = (int32_t)draw(draws, 64, 512),
                                         .max_model_len = 2048,
                                         .chunked_prefill = true,
                                         .stagger = 1};
    struct maq_kv_options kv = {.groups = &group,
                                .n_groups = 1,
                                .blocks = draw(draws, 60, 140),
                                .caching = caching,
                                .max_len = 2048,
                                .in_flight = 512};
    const struct maq_trtllm_rules rules = {.capacity = MAQ_TRTLLM_MAX_UTILIZATION};
    bool trtllm = draw(draws, 0, 2) == 0;
    *t = (struct twins){0};
    for (int k = 0; k < 2; k++) {
        kv.counts = k == 0;
        assert_int_equal(trtllm ? maq_trtllm_new(&t->s[k], &knobs, &kv, &rules) : maq_vllm_new(&t->s[k], &knobs, &kv),
                         MAQ_OK);
    }
}

static void add(struct twins *t, uint64_t *draws, const uint64_t *names, bool shared)
{
    uint32_t order = ++t->requests;
    bool named = shared && draw(draws, 0, 2) == 0;
    const struct maq_scheduler_request r = {
        .prompt = draw(draws, 70, 600),
        .output = draw(draws, 1, 300),
        .arrival = order,
        .order = order,
        .content = {
            .prefix = named ? names : NULL, .n_prefix = named ? draw(draws, 1, 4) : 0, .unit = 16, .own = order}};
    uint32_t slot = t->s[0]->ops->add(t->s[0], &r);
    assert_int_equal(slot, t->s[1]->ops->add(t->s[1], &r));
}

static void expect_equal(struct twins *t)
{
    const struct maq_iteration *a = &t->it[0], *b = &t->it[1];
    struct maq_scheduler_load x = t->s[0]->ops->load(t->s[0]), y = t->s[1]->ops->load(t->s[1]);
    assert_true(!t->s[0]->failed && !t->s[1]->failed);
    assert_int_equal(x.running, y.running);
    assert_int_equal(x.waiting, y.waiting);
    assert_int_equal(x.used, y.used);
    t->running = x.running;
    assert_int_equal(a->n, b->n);
    assert_int_equal(a->n_preempted, b->n_preempted);
    assert_int_equal(a->n_finished, b->n_finished);
    for (uint32_t i = 0; i < a->n; i++) {
        assert_int_equal(a->scheduled[i].slot, b->scheduled[i].slot);
        assert_int_equal(a->scheduled[i].tokens, b->scheduled[i].tokens);
        assert_int_equal(a->scheduled[i].computed, b->scheduled[i].computed);
        assert_int_equal(a->scheduled[i].hit, b->scheduled[i].hit);
        t->found += a->scheduled[i].hit > 0;
    }
    for (uint32_t i = 0; i < a->n_preempted; i++)
        assert_int_equal(a->preempted[i], b->preempted[i]);
    for (uint32_t i = 0; i < a->n_finished; i++)
        assert_int_equal(a->finished[i], b->finished[i]);
}

/* Some iterations at once, where the next are alike. */
static void skip_some(struct twins *t, uint64_t *draws)
{
    struct maq_steady_decodes x, y;
    bool a = t->s[0]->ops->steady_decodes(t->s[0], &x), b = t->s[1]->ops->steady_decodes(t->s[1], &y);
    assert_int_equal(a, b);
    if (!a || x.n == 0)
        return;
    assert_int_equal(x.free, y.free);
    assert_int_equal(x.most, y.most);
    assert_memory_equal(x.taken, y.taken, x.period * sizeof *x.taken);
    int64_t steps = 0, left = x.free, most = draw(draws, 1, 60);
    for (; steps < x.most && steps < most && x.taken[steps % x.period] <= left; steps++)
        left -= x.taken[steps % x.period];
    if (steps == 0)
        return;
    (t->s[0]->ops->skip)(t->s[0], &x, steps); /* a macro of cmocka has the name */
    (t->s[1]->ops->skip)(t->s[1], &y, steps);
}

static void run(struct twins *t, uint64_t *draws, const uint64_t *names, uint32_t shared_from)
{
    for (uint32_t step = 0; step < STEPS; step++) {
        while (draw(draws, 0, 12) == 0)
            add(t, draws, names, step >= shared_from);
        for (int k = 0; k < 2; k++) {
            maq_iteration_clear(&t->it[k]);
            t->s[k]->ops->decide(t->s[k], &t->it[k]);
        }
        expect_equal(t);
        t->preempted += t->it[0].n_preempted;
        for (int k = 0; k < 2; k++)
            t->s[k]->ops->end(t->s[k], &t->it[k], NULL);
        expect_equal(t);
        skip_some(t, draws);
    }
}

static void test_twins(void **state)
{
    (void)state;
    static const uint64_t names[] = {11, 12, 13, 14, 15};
    uint64_t preempted = 0, found = 0;
    uint32_t counted = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        uint64_t draws = seed;
        struct twins t;
        bool caching = seed % 5 > 0;
        begin(&t, &draws, caching);
        run(&t, &draws, names, seed % 3 ? STEPS : STEPS / 2);
        const struct maq_vllm *v = (const struct maq_vllm *)t.s[0];
        bool counts = v->kv.counted; /* until the first that could look for a block */
        assert_true(!caching || t.preempted == 0 || !counts);
        preempted += t.preempted;
        found += t.found;
        counted += counts;
        for (int k = 0; k < 2; k++) {
            t.s[k]->ops->fini(t.s[k]);
            maq_iteration_fini(&t.it[k]);
        }
    }
    print_message("%llu preemptions, %llu prefixes found, %u caches that counted to the end\n",
                  (unsigned long long)preempted, (unsigned long long)found, counted);
    assert_true(preempted > 100 && found > 100 && counted > 5 && counted < 55);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_twins)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
