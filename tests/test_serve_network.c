/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers over shared ports: closed forms of one, two and staggered ones, growth, fairness, and that bytes and ports are respected. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "random_draws.h"
#include "serve/transfer/network.h"

#define MOST 64

/* Transfers that are given all at once when they begin, and when they end. */
struct plan {
    uint32_t n;
    double at_s[MOST], bytes[MOST], most_bps[MOST], out[MOST], in[MOST];
    uint32_t from[MOST], to[MOST];
    double end_s[MOST];
};

static void finish_one(struct maq_network *net, struct plan *p)
{
    uint32_t user;
    double at = net->next_s;
    if (maq_network_step(net, &user))
        p->end_s[user] = at;
}

static void run(struct plan *p, const double *port_bps, uint32_t n_ports)
{
    struct maq_network net;
    assert_true(maq_network_init(&net, n_ports));
    for (uint32_t i = 0; i < n_ports; i++)
        net.ports[i].bps = port_bps[i];
    for (uint32_t i = 0; i < p->n; i++) {
        while (net.next_s <= p->at_s[i])
            finish_one(&net, p);
        struct maq_flow_begin b = {.port = {p->from[i], p->to[i]},
                                   .share = {p->out[i], p->in[i]},
                                   .most_bps = p->most_bps[i],
                                   .begins_s = p->at_s[i],
                                   .user = i};
        uint32_t flow = maq_network_begin(&net, p->at_s[i], &b);
        maq_network_give(&net, p->at_s[i], flow, p->bytes[i]);
        maq_network_close(&net, p->at_s[i], flow);
    }
    while (!isinf(net.next_s))
        finish_one(&net, p);
    assert_int_equal(net.n, 0);
    assert_false(net.failed);
    maq_network_fini(&net);
}

static void add(struct plan *p, double at_s, double bytes, uint32_t from, uint32_t to)
{
    uint32_t i = p->n++;
    p->at_s[i] = at_s;
    p->bytes[i] = bytes;
    p->from[i] = from;
    p->to[i] = to;
    p->out[i] = p->in[i] = 1;
    p->most_bps[i] = (double)INFINITY;
}

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-12 * fabs(want)))
        fail_msg("got %.17g, want %.17g", got, want);
}

static void test_one_and_two(void **state)
{
    const double ports[] = {50, 50, 50, 50};
    struct plan one = {0}, two = {0}, apart = {0}, into_one = {0};
    (void)state;
    add(&one, 1, 100, 0, 1);
    run(&one, ports, 4);
    near(one.end_s[0], 1 + 100. / 50);
    add(&two, 1, 100, 0, 1); /* one port sends both */
    add(&two, 1, 100, 0, 2);
    run(&two, ports, 4);
    near(two.end_s[0], 1 + 2 * 100. / 50);
    assert_true(two.end_s[0] == two.end_s[1]);
    add(&into_one, 0, 100, 0, 3); /* one port takes both */
    add(&into_one, 0, 100, 1, 3);
    run(&into_one, ports, 4);
    near(into_one.end_s[1], 2 * 100. / 50);
    add(&apart, 0, 100, 0, 2);
    add(&apart, 0, 100, 1, 3);
    run(&apart, ports, 4);
    near(apart.end_s[1], 100. / 50);
}

/* a begins, b joins after d seconds, and a leaves first: the port never idles, and each has half of it while both are there. */
static void test_staggered(void **state)
{
    const double ports[] = {10, 1000, 1000};
    struct plan p = {0};
    (void)state;
    add(&p, 0, 100, 0, 1);
    add(&p, 4, 90, 0, 2);
    run(&p, ports, 3);
    double a = 4 + 2 * (100 - 4 * 10.) / 10, b = (100 + 90) / 10.;
    near(p.end_s[0], a);
    near(p.end_s[1], b);
}

/* The textbook case of max-min fairness: who is held up elsewhere leaves the rest to others. */
static void test_max_min(void **state)
{
    const double ports[] = {10, 4, 100, 100};
    struct plan p = {0};
    (void)state;
    add(&p, 0, 1000, 0, 2);
    add(&p, 0, 2, 1, 2);
    add(&p, 0, 16, 0, 3); /* port 0: 5 and 5 */
    p.most_bps[1] = 1;
    run(&p, ports, 4);
    near(p.end_s[1], 2);
    near(p.end_s[2], 16 / 5.);
    near(p.end_s[0], (1000 + 16) / 10.);
    struct plan q = {0};
    add(&q, 0, 30, 0, 2); /* at most 2 a second: the other one has 8 */
    add(&q, 0, 80, 0, 3);
    q.most_bps[0] = 2;
    run(&q, ports, 4);
    near(q.end_s[1], 10);
    near(q.end_s[0], 15);
}

/* One end needs half as many bytes through each of its ports: it is the other that says how long it takes. */
static void test_shares(void **state)
{
    const double ports[] = {10, 10, 10};
    struct plan p = {0};
    (void)state;
    add(&p, 0, 100, 0, 1);
    add(&p, 0, 100, 2, 1);
    p.in[0] = p.in[1] = 0.5;
    run(&p, ports, 3);
    near(p.end_s[0], 10);
    near(p.end_s[1], 10);
}

/* Two share a port until one of them is cut: it has sent its half by then, and the other has all of the port from then on. */
static void test_cut(void **state)
{
    struct maq_network net;
    uint32_t user = 7, flow[2];
    (void)state;
    assert_true(maq_network_init(&net, 3));
    net.ports[0].bps = 10;
    for (uint32_t i = 0; i < 2; i++) {
        struct maq_flow_begin b = {
            .port = {0, 1 + i}, .share = {1, 1}, .most_bps = (double)INFINITY, .begins_s = 2, .user = i};
        flow[i] = maq_network_begin(&net, 2, &b);
        maq_network_give(&net, 2, flow[i], 100);
        maq_network_close(&net, 2, flow[i]);
    }
    near(maq_network_cancel(&net, 6, flow[0]), 4 * 5.);
    assert_int_equal(net.n, 1);
    near(net.next_s, 6 + (100 - 20) / 10.);
    assert_true(maq_network_step(&net, &user));
    assert_int_equal(user, 1);
    assert_true(isinf(net.next_s));
    maq_network_fini(&net);
}

static void test_without_limit(void **state)
{
    const double inf = (double)INFINITY, ports[] = {inf, inf};
    struct plan p = {0};
    (void)state;
    add(&p, 3, 1e12, 0, 1);
    add(&p, 3, 1e12, 0, 1);
    add(&p, 5, 0, 0, 1);
    run(&p, ports, 2);
    assert_true(p.end_s[0] == 3 && p.end_s[1] == 3 && p.end_s[2] == 5);
}

/*
 * Layers of a prompt come evenly from 1 s to 11 s, 10 bytes a second. A port that is faster has all at the end but what came last; one that is
 * slower is busy from the beginning on.
 */
static void grown(double bps, double *end_s)
{
    struct maq_network net;
    uint32_t user = 7;
    assert_true(maq_network_init(&net, 2));
    net.ports[0].bps = bps;
    struct maq_flow_begin b = {.port = {0, 1}, .share = {1, 1}, .most_bps = (double)INFINITY, .begins_s = 1};
    uint32_t flow = maq_network_begin(&net, 0, &b);
    maq_network_grow(&net, 0, flow, 10, 1, 11);
    while (net.next_s < 11)
        assert_false(maq_network_step(&net, &user));
    near(maq_network_given(&net, 11, flow), 100);
    maq_network_give(&net, 11, flow, 5);
    maq_network_close(&net, 11, flow);
    *end_s = 0;
    while (!isinf(net.next_s)) {
        double at = net.next_s;
        if (maq_network_step(&net, &user))
            *end_s = at;
    }
    maq_network_fini(&net);
}

static void test_growth(void **state)
{
    double end;
    (void)state;
    grown(50, &end);
    near(end, 11 + 5 / 50.);
    grown(4, &end);
    near(end, 1 + 105 / 4.);
    grown(10, &end);
    near(end, 11 + 5 / 10.);
}

/* A backlog from before the growth is worked off at full speed, then it goes as fast as bytes come. */
static void test_catches_up(void **state)
{
    struct maq_network net;
    uint32_t user;
    (void)state;
    assert_true(maq_network_init(&net, 2));
    net.ports[0].bps = 30;
    struct maq_flow_begin b = {.port = {0, 1}, .share = {1, 1}, .most_bps = (double)INFINITY, .begins_s = 0};
    uint32_t flow = maq_network_begin(&net, 0, &b);
    maq_network_grow(&net, 0, flow, 10, 0, 10);
    maq_network_give(&net, 0, flow, 40);
    maq_network_close(&net, 0, flow);
    near(net.next_s, 40 / (30. - 10)); /* the backlog is gone */
    assert_false(maq_network_step(&net, &user));
    near(net.next_s, 10);
    while (!maq_network_step(&net, &user))
        ;
    near(net.now_s, 10);
    maq_network_fini(&net);
}

/* By chance: no port carries more than it can, which a sum over what has ended by some time shows; more room is never later for the last one. */
static void test_random(void **state)
{
    uint64_t draws = 99;
    (void)state;
    for (int round = 0; round < 200; round++) {
        double ports[6], wide[6], at = 0, last = 0, last_wide = 0, busy[6] = {0};
        struct plan p = {0};
        for (int i = 0; i < 6; i++) {
            ports[i] = draw(&draws, 1, 100);
            wide[i] = 2 * ports[i];
        }
        uint32_t n = draw(&draws, 1, 30);
        for (uint32_t i = 0; i < n; i++) {
            at += draw(&draws, 0, 2) ? uniform(&draws, 0, 3) : 0;
            add(&p, at, draw(&draws, 0, 500), draw(&draws, 0, 2), 3 + draw(&draws, 0, 2));
            p.out[i] = draw(&draws, 0, 1) ? 1 : 0.25;
        }
        struct plan q = p;
        run(&p, ports, 6);
        run(&q, wide, 6);
        for (uint32_t i = 0; i < n; i++) {
            double alone = fmax(p.bytes[i] * p.out[i] / ports[p.from[i]], p.bytes[i] / ports[p.to[i]]);
            if (p.end_s[i] < p.at_s[i] + alone * (1 - 1e-9))
                fail_msg("faster than alone");
            last = fmax(last, p.end_s[i]);
            last_wide = fmax(last_wide, q.end_s[i]);
            busy[p.from[i]] += p.bytes[i] * p.out[i];
            busy[p.to[i]] += p.bytes[i];
        }
        for (int i = 0; i < 6; i++)
            assert_true(busy[i] / ports[i] <= (last - p.at_s[0]) * (1 + 1e-9) + 1e-9);
        assert_true(last_wide <= last * (1 + 1e-9));
    }
}

static long countdown;
static bool gate(size_t bytes)
{
    (void)bytes;
    return countdown-- != 0;
}

static void test_memory_runs_out(void **state)
{
    bool ran = false;
    (void)state;
    for (long n = 0; !ran && n < 20; n++) {
        struct maq_network net;
        countdown = n;
        maq__set_alloc_gate(gate);
        ran = maq_network_init(&net, 2);
        struct maq_flow_begin b = {.port = {0, 1}, .share = {1, 1}, .most_bps = 1};
        uint32_t flow = ran ? maq_network_begin(&net, 0, &b) : MAQ_NO_FLOW, user;
        if (flow != MAQ_NO_FLOW) {
            maq_network_close(&net, 0, flow);
            assert_true(maq_network_step(&net, &user));
        }
        maq__set_alloc_gate(NULL);
        ran = ran && !net.failed;
        maq_network_fini(&net);
    }
    assert_true(ran);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_and_two),     cmocka_unit_test(test_staggered),  cmocka_unit_test(test_max_min),
        cmocka_unit_test(test_shares),          cmocka_unit_test(test_cut),        cmocka_unit_test(test_without_limit),
        cmocka_unit_test(test_growth),          cmocka_unit_test(test_catches_up), cmocka_unit_test(test_random),
        cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
