/* SPDX-License-Identifier: Apache-2.0 */
/* test_cost_coll.c - closed forms of the algorithms, properties of collectives, and published nccl-tests figures. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cost/collective/collective.h"
#include "maquette/cost.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define MIB 1048576.0

static void assert_close(double a, double b, double rtol)
{
    if (!(fabs(a - b) <= rtol * fabs(b)))
        print_message("%.17g is not %.17g\n", a, b);
    assert_true(fabs(a - b) <= rtol * fabs(b));
}

/* Links without latency that give all they have. */
static struct maq_coll_links ideal(double per_domain, double domains, double near_bps, double rank_bps)
{
    return (struct maq_coll_links){
        .ranks = per_domain * domains,
        .per_domain = per_domain,
        .domains = domains,
        .near_bps = near_bps,
        .rank_bps = rank_bps,
        .domain_bps = rank_bps * per_domain,
        .generation = &maq__coll_ideal_generation,
        .transport = &maq__coll_ideal_transport,
    };
}

static struct maq_node_group h100(void)
{
    return (struct maq_node_group){
        .device = {.name = "h100", .arch = MAQ_ARCH_HOPPER, .host_bps = 63e9},
        .nodes = 4096,
        .devices_per_node = 8,
        .domain_devices = 8,
        .domain_bps = 450e9,
        .domain_latency_s = 0.83e-6,
        .domain_contention = -1.0,
        .domain_multicast = true,
        .nics_per_node = 8,
        .fabric = {.name = "ib", .nic_bps = 50e9, .latency_s = 5e-6, .efficiency = 0.97},
        .rail_optimized = true,
    };
}

static struct maq_cluster cluster_of(struct maq_node_group *g)
{
    return (struct maq_cluster){
        .name = "test",
        .n_groups = 1,
        .groups = g,
        .oversubscription = 1.0,
        .devices = (uint32_t)(g->nodes * g->devices_per_node),
    };
}

static struct maq_coll coll_of(enum maq_coll_kind kind, double bytes, uint32_t per_node, uint32_t nodes)
{
    return (struct maq_coll){
        .kind = (uint16_t)kind,
        .sharers = 1,
        .bytes = bytes,
        .at = {.size = per_node * nodes, .per_domain = per_node, .domains = nodes, .per_node = per_node},
    };
}

static double seconds(const struct maq_coll *coll, const struct maq_cluster *cluster)
{
    struct maq_cost cost = maq_cost_coll(NULL, coll, cluster);
    assert_true(isfinite(cost.seconds) && cost.seconds >= 0.0);
    assert_true(isfinite(cost.error) && cost.error >= 0.0f && cost.error < 1.0f);
    return cost.seconds;
}

/* Of links alone. */
static double fastest(enum maq_coll_kind kind, double bytes, const struct maq_coll_links *l)
{
    struct maq_coll coll = {.kind = (uint16_t)kind, .bytes = bytes};
    return maq__coll_parts(&coll, l, MAQ_LIBRARY_TRAINING).total_s;
}

static double time_of(enum maq_coll_kind kind, double bytes, uint32_t per_node, uint32_t nodes)
{
    struct maq_node_group g = h100();
    struct maq_cluster c = cluster_of(&g);
    struct maq_coll coll = coll_of(kind, bytes, per_node, nodes);
    return seconds(&coll, &c);
}

static void test_names(void **state)
{
    (void)state;
    for (int i = 0; i < MAQ_COLL_KIND_COUNT; i++)
        for (int j = 0; j < i; j++)
            assert_string_not_equal(maq_coll_kind_name((enum maq_coll_kind)i),
                                    maq_coll_kind_name((enum maq_coll_kind)j));
}

/* Without latency and losses: the textbook volumes over the bandwidth. */
static void test_closed_forms(void **state)
{
    (void)state;
    const double B = 100e9, S = 1e9;
    for (double n = 2; n <= 64; n *= 2) {
        struct maq_coll_links l = ideal(n, 1, B, 0);
        for (int proto = 0; proto < MAQ_PROTO_COUNT; proto++) {
            assert_close(maq__ring(MAQ_COLL_ALL_GATHER, S, &l, (enum maq_coll_proto)proto).total_s, (n - 1) / n * S / B,
                         1e-14);
            assert_close(maq__ring(MAQ_COLL_REDUCE_SCATTER, S, &l, (enum maq_coll_proto)proto).total_s,
                         (n - 1) / n * S / B, 1e-14);
            assert_close(maq__ring(MAQ_COLL_ALL_REDUCE, S, &l, (enum maq_coll_proto)proto).total_s,
                         2 * (n - 1) / n * S / B, 1e-14);
            assert_close(maq__ring(MAQ_COLL_BROADCAST, S, &l, (enum maq_coll_proto)proto).total_s, S / B, 1e-14);
        }
        assert_close(fastest(MAQ_COLL_ALL_GATHER, S, &l), (n - 1) / n * S / B, 1e-14);
        assert_close(fastest(MAQ_COLL_ALL_TO_ALL, S, &l), (n - 1) / n * S / B, 1e-14);
        assert_close(fastest(MAQ_COLL_SEND_RECV, S, &l), S / B, 1e-14);
        assert_close(maq__tree(S, &l, MAQ_PROTO_SIMPLE).total_s, 2 * S / B, 1e-14);
        assert_close(maq__multicast(S, &l).total_s, (1 + 1 / n) * S / B, 1e-14);
    }
}

/* All-reduce is reduce-scatter and all-gather: the same bytes on the wire. */
static void test_all_reduce_is_two_halves(void **state)
{
    (void)state;
    for (double p = 1; p <= 8; p *= 2)
        for (double d = 2; d <= 128; d *= 2) {
            struct maq_coll_links l = ideal(p, d, 450e9, 50e9);
            double halves = maq__ring(MAQ_COLL_REDUCE_SCATTER, 1e9, &l, MAQ_PROTO_SIMPLE).total_s +
                            maq__ring(MAQ_COLL_ALL_GATHER, 1e9, &l, MAQ_PROTO_SIMPLE).total_s;
            assert_close(maq__ring(MAQ_COLL_ALL_REDUCE, 1e9, &l, MAQ_PROTO_SIMPLE).total_s, halves, 1e-13);
        }
}

static void test_closed_forms_between_nodes(void **state)
{
    (void)state;
    const double S = 1e9, near = 450e9, nic = 50e9;
    struct maq_coll_links l = ideal(8, 4, near, nic); /* 32 ranks, 400 GB/s of network per node */
    assert_close(maq__ring(MAQ_COLL_ALL_GATHER, S, &l, MAQ_PROTO_SIMPLE).total_s, 31.0 / 32.0 * S / 400e9, 1e-14);
    assert_close(maq__exchange(S, &l).total_s, 24.0 / 32.0 * S / nic, 1e-14);
    assert_close(maq__tree(S, &l, MAQ_PROTO_SIMPLE).total_s, S / 200e9,
                 1e-14); /* up and down: 400 / 2, less than 450 / 2 inside */
    l.domain_bps = 300e9;
    assert_close(maq__tree(S, &l, MAQ_PROTO_SIMPLE).total_s, S / 150e9, 1e-14);
    l.domains = 2; /* two nodes exchange: every byte leaves a node once */
    l.ranks = 16;
    l.domain_bps = 100e9;
    assert_close(maq__tree(S, &l, MAQ_PROTO_SIMPLE).total_s, S / 100e9, 1e-14);
    l.domains = 8;
    l.in_network_reduction = true;
    assert_close(maq__tree(S, &l, MAQ_PROTO_SIMPLE).total_s, S / 100e9, 1e-14);
}

static void test_one_member_or_no_bytes(void **state)
{
    (void)state;
    for (int kind = 0; kind < MAQ_COLL_KIND_COUNT; kind++) {
        assert_true(time_of((enum maq_coll_kind)kind, 1e9, 1, 1) == 0.0);
        assert_true(time_of((enum maq_coll_kind)kind, 0.0, 8, 2) == 0.0);
        assert_true(time_of((enum maq_coll_kind)kind, -5.0, 8, 2) == 0.0);
        assert_true(time_of((enum maq_coll_kind)kind, (double)NAN, 8, 2) == 0.0);
    }
}

/* Data sheets hold: no rank moves its share faster than its links. */
static void test_not_faster_than_links(void **state)
{
    (void)state;
    for (uint32_t nodes = 1; nodes <= 512; nodes *= 2)
        for (double bytes = 1; bytes <= 1e11; bytes *= 7) {
            double n = 8.0 * nodes, ring = (n - 1) / n * bytes / 450e9,
                   far = nodes > 1 ? (n - 8) / n * bytes / 50e9 : 0.0;
            assert_true(time_of(MAQ_COLL_ALL_GATHER, bytes, 8, nodes) >= ring);
            assert_true(time_of(MAQ_COLL_REDUCE_SCATTER, bytes, 8, nodes) >= ring);
            assert_true(time_of(MAQ_COLL_ALL_REDUCE, bytes, 8, nodes) >= bytes / 450e9);
            assert_true(time_of(MAQ_COLL_ALL_TO_ALL, bytes, 8, nodes) >= far);
        }
}

static void test_larger_message_not_faster(void **state)
{
    (void)state;
    static const uint32_t shapes[][2] = {{2, 1}, {4, 1}, {8, 1}, {1, 2}, {1, 16}, {8, 2}, {8, 3}, {8, 64}, {4, 512}};
    for (int kind = 0; kind < MAQ_COLL_KIND_COUNT; kind++)
        for (size_t i = 0; i < COUNT(shapes); i++) {
            double before = 0.0;
            for (double bytes = 1.0; bytes < 1e13; bytes *= 1.07) {
                double now = time_of((enum maq_coll_kind)kind, bytes, shapes[i][0], shapes[i][1]);
                assert_true(now >= before);
                before = now;
            }
        }
}

/*
 * More nodes at the same bytes are never faster. (More members inside a domain can be: NVLS moves S (1 + 1/n), and
 * each brings its NIC.)
 */
static void test_more_nodes_not_faster(void **state)
{
    (void)state;
    for (int kind = 0; kind < MAQ_COLL_KIND_COUNT; kind++)
        for (uint32_t per_node = 1; per_node <= 8; per_node *= 2)
            for (double bytes = 100.0; bytes < 1e11; bytes *= 10.0) {
                double before = 0.0;
                for (uint32_t nodes = kind == MAQ_COLL_SEND_RECV ? 2 : 1; nodes <= 1024; nodes *= 2) {
                    double now = time_of((enum maq_coll_kind)kind, bytes, per_node, nodes);
                    assert_true(now >= before * (1.0 - 1e-12));
                    before = now;
                }
            }
}

static void test_better_links_not_slower(void **state)
{
    (void)state;
    for (int kind = 0; kind < MAQ_COLL_KIND_COUNT; kind++)
        for (int what = 0; what < 4; what++)
            for (uint32_t nodes = 1; nodes <= 16; nodes *= 4) {
                double before = INFINITY;
                for (double factor = 0.125; factor <= 16.0; factor *= 2.0) {
                    struct maq_node_group g = h100();
                    if (what == 0)
                        g.domain_bps *= factor;
                    else if (what == 1)
                        g.fabric.nic_bps *= factor;
                    else if (what == 2)
                        g.domain_latency_s /= factor;
                    else
                        g.fabric.latency_s /= factor;
                    struct maq_cluster c = cluster_of(&g);
                    struct maq_coll coll = coll_of((enum maq_coll_kind)kind, 64 * MIB, 8, nodes);
                    double now = seconds(&coll, &c);
                    assert_true(now <= before * (1.0 + 1e-12));
                    before = now;
                }
            }
}

static void test_sharing_and_oversubscription(void **state)
{
    (void)state;
    struct maq_node_group g = h100();
    struct maq_cluster c = cluster_of(&g);
    struct maq_coll alone = coll_of(MAQ_COLL_ALL_GATHER, 1e9, 1, 16);
    double t = seconds(&alone, &c);

    /* one NIC each: eight groups side by side do not disturb one another */
    struct maq_coll eight = alone;
    eight.sharers = 8;
    assert_close(seconds(&eight, &c), t, 1e-12);
    /* half as many NICs: they do */
    g.nics_per_node = 4;
    assert_true(seconds(&alone, &c) <= t * (1 + 1e-12));
    assert_true(seconds(&eight, &c) > 1.9 * t);
    g.nics_per_node = 8;
    /* through an oversubscribed spine */
    c.oversubscription = 3.0;
    assert_close(seconds(&alone, &c), t, 1e-12);
    alone.at.crosses_switch = true;
    assert_true(seconds(&alone, &c) > 2.8 * t);
}

/* Two domains exchange by a tree, every byte once; NCCL_ALGO=ring sends 2 (n - 1) / n of them. */
static void test_rings_alone(void **state)
{
    (void)state;
    struct maq_coll_links l = ideal(1, 2, 450e9, 50e9);
    l.ranks = 2;
    l.rings_only = true;
    assert_close(fastest(MAQ_COLL_ALL_REDUCE, 1e9, &l), 1e9 / 50e9, 1e-14);
    l = ideal(4, 2, 450e9, 50e9);
    double tree = fastest(MAQ_COLL_ALL_REDUCE, 1e9, &l);
    l.rings_only = true;
    assert_close(fastest(MAQ_COLL_ALL_REDUCE, 1e9, &l), 2 * 7.0 / 8.0 * 1e9 / 200e9, 1e-14);
    assert_close(tree, 1e9 / 200e9, 1e-14);
    struct maq_node_group g = h100();
    struct maq_cluster c = cluster_of(&g);
    struct maq_coll coll = coll_of(MAQ_COLL_ALL_REDUCE, 1e9, 8, 1);
    double multicast = seconds(&coll, &c);
    c.nccl_algo = MAQ_NCCL_ALGO_RING;
    assert_true(seconds(&coll, &c) > multicast);
}

/* PCIe: a pair has it for itself; each of eight gets (8/2)^-contention of its rate, with an error where nobody knows. */
static void test_pcie_contention(void **state)
{
    (void)state;
    struct maq_node_group g = h100();
    g.domain_bps = g.device.host_bps;
    g.domain_multicast = false;
    struct maq_cluster c = cluster_of(&g);
    struct maq_coll two = coll_of(MAQ_COLL_ALL_GATHER, 1e9, 2, 1), eight = coll_of(MAQ_COLL_ALL_GATHER, 1e9, 8, 1);
    assert_true(g.domain_contention < 0.0);
    double pair = seconds(&two, &c), assumed = seconds(&eight, &c);
    double pair_error = maq_cost_coll(NULL, &two, &c).error, assumed_error = maq_cost_coll(NULL, &eight, &c).error;
    g.domain_contention = 1.0;
    double shared = seconds(&eight, &c);
    assert_true(seconds(&two, &c) == pair && maq_cost_coll(NULL, &two, &c).error == pair_error);
    assert_true(maq_cost_coll(NULL, &eight, &c).error < 0.5 && assumed_error > 0.9);
    g.domain_contention = 0.0;
    double whole = seconds(&eight, &c);
    assert_true(seconds(&two, &c) == pair && whole > 7.0 / 8.0 * 1e9 / g.domain_bps);
    assert_close(whole, shared / 4.0, 0.01);
    assert_true(whole < assumed && assumed < shared);
    g.domain_contention = 2.0;
    assert_close(seconds(&eight, &c), shared * 4.0, 0.01);
}

/* Pairs of cards: a ring leaves a node once, not once for each pair, and is held back by PCIe between them. */
static void test_pairs_share_a_node(void **state)
{
    (void)state;
    struct maq_node_group g = h100();
    g.domain_devices = 2;
    g.domain_multicast = false;
    struct maq_cluster c = cluster_of(&g);
    struct maq_coll coll = {.kind = MAQ_COLL_ALL_GATHER, .sharers = 2, .bytes = 1e9};
    coll.at = (struct maq_placement){.size = 16, .per_domain = 1, .domains = 16, .per_node = 4};
    struct maq_coll_links links = maq__coll_links(&coll, &c);
    assert_close(links.per_domain, 4.0, 1e-15);
    assert_close(links.domains, 4.0, 1e-15);
    assert_close(links.domain_bps, 4.0 * maq_node_group_network_bps(&g), 1e-15);
    assert_true(links.near_bps < g.device.host_bps && !links.multicast);
    coll.at = (struct maq_placement){.size = 4, .per_domain = 2, .domains = 2, .per_node = 4};
    links = maq__coll_links(&coll, &c); /* one node: no network */
    assert_close(links.domains, 1.0, 1e-15);
    assert_close(links.near_bps, g.device.host_bps, 1e-15);
    assert_true(links.rank_bps == 0.0 && maq__coll_regime(&coll, &c) == MAQ_COLL_REGIME_PCIE);
    coll.at = (struct maq_placement){.size = 2, .per_domain = 2, .domains = 1, .per_node = 2};
    links = maq__coll_links(&coll, &c); /* one pair */
    assert_close(links.near_bps, g.domain_bps, 1e-15);
}

static void test_in_network_reduction_helps(void **state)
{
    (void)state;
    struct maq_node_group g = h100();
    g.fabric.nic_bps = 25e9;
    struct maq_cluster c = cluster_of(&g);
    struct maq_coll coll = coll_of(MAQ_COLL_ALL_REDUCE, 1e9, 8, 32);
    double without = seconds(&coll, &c);
    g.fabric.in_network_reduction = true;
    assert_true(seconds(&coll, &c) < 0.7 * without);
}

/* Every table that was fitted: generations, transports, engines, kernels of the expert exchange. */
static void test_every_table_is_monotone(void **state)
{
    (void)state;
    static const uint32_t flags[] = {0, MAQ_COLL_LOW_LATENCY, MAQ_COLL_ONE_SIDED, MAQ_COLL_HYBRID};
    for (int arch = 0; arch < MAQ_ARCH_COUNT; arch++)
        for (int transport = 0; transport < MAQ_TRANSPORT_COUNT; transport++)
            for (int library = 0; library < MAQ_LIBRARY_COUNT; library++)
                for (int kind = 0; kind < MAQ_COLL_KIND_COUNT; kind++) {
                    struct maq_node_group g = h100();
                    g.device.arch = arch;
                    g.fabric.transport = transport;
                    g.nics_per_node = arch % 2 ? 8 : 4; /* shared ports too */
                    struct maq_cluster c = cluster_of(&g);
                    struct maq_costs costs = {.library = (enum maq_library)library};
                    double smaller[5] = {0};
                    for (double bytes = 1.0; bytes < 1e12; bytes *= 3.7) {
                        double fewer = 0.0;
                        for (uint32_t i = 0; i < 5; i++) {
                            struct maq_coll coll =
                                coll_of((enum maq_coll_kind)kind, bytes, 8, i == 0 ? 1 : 1u << (2 * i - 1));
                            coll.flags = flags[(arch + library) % COUNT(flags)];
                            double now = maq_cost_coll(&costs, &coll, &c).seconds;
                            bool tiny = kind == MAQ_COLL_ALL_TO_ALL && maq__coll_transports[transport].tiny_s > 0.0 &&
                                        bytes / 3.7 <= MAQ_COLL_TINY * (double)coll.at.size;
                            assert_true(isfinite(now) && (now >= smaller[i] || tiny));
                            assert_true(i < 2 || now >= fewer * (1.0 - 1e-12));
                            smaller[i] = fewer = now;
                        }
                    }
                }
}

/* Slingshot: parts that fit a descriptor are fetched by the host, one for each peer over the network; a byte more is not. */
static void test_tiny_parts(void **state)
{
    (void)state;
    for (int transport = 0; transport < MAQ_TRANSPORT_COUNT; transport++) {
        struct maq_node_group g = h100();
        g.fabric.transport = transport;
        struct maq_cluster c = cluster_of(&g);
        bool slingshot = transport == MAQ_TRANSPORT_CXI || transport == MAQ_TRANSPORT_CXI_SW;
        double each = maq__coll_transports[transport].tiny_s;
        assert_true(slingshot ? each > 5e-6 && each < 50e-6 : each == 0.0);
        for (uint32_t nodes = 2; nodes <= 64; nodes *= 2) {
            double n = 8.0 * nodes, peers = n - 8.0;
            struct maq_coll fits = coll_of(MAQ_COLL_ALL_TO_ALL, MAQ_COLL_TINY * n, 8, nodes),
                            more = coll_of(MAQ_COLL_ALL_TO_ALL, MAQ_COLL_TINY * n + n, 8, nodes);
            double longer = seconds(&fits, &c) - seconds(&more, &c);
            assert_true(slingshot ? longer > 0.2 * peers * each && longer < 1.2 * peers * each : longer <= 0.0);
        }
    }
}

/* Coefficients that are not there would be zero: a share of nothing is forever. */
static void test_every_table_is_filled(void **state)
{
    (void)state;
    for (int arch = 0; arch < MAQ_ARCH_COUNT; arch++)
        for (int i = 0; i < MAQ_COLL_NEAR_COUNT; i++) {
            const struct maq_coll_curve *c = &maq__coll_generations[arch].near[i];
            assert_true(c->share > 0 && c->share <= (i == MAQ_COLL_NEAR_COPY ? 10 : 1));
            assert_true(c->start_s >= 0 && c->start_s < 1e-3 && c->hops >= 0 && c->overlap <= 1);
        }
    for (int t = 0; t < MAQ_TRANSPORT_COUNT; t++)
        for (int i = 0; i < MAQ_COLL_FAR_COUNT; i++) {
            const struct maq_coll_curve *c = &maq__coll_transports[t].far[i];
            assert_true(c->share > 0 && c->share <= 1 && c->start_s >= 0 && c->gap >= 0 && c->overlap <= 1);
            assert_true(maq__coll_transports[t].shared_port <= 1 && maq__coll_transports[t].shared_tree <= 1);
        }
    for (int r = 0; r < MAQ_COLL_REGIME_COUNT; r++)
        for (int b = 0; b < MAQ_COLL_BAND_COUNT; b++)
            assert_true(maq__coll_errors[r][b] > 0.01f && maq__coll_errors[r][b] < 1.0f);
}

/* Serving engines bring kernels that beat NCCL on small messages, inside a domain only. */
static void test_engines(void **state)
{
    (void)state;
    struct maq_node_group g = h100();
    struct maq_cluster c = cluster_of(&g);
    for (int library = MAQ_LIBRARY_TRTLLM; library < MAQ_LIBRARY_COUNT; library++) {
        struct maq_costs costs = {.library = (enum maq_library)library};
        struct maq_coll small = coll_of(MAQ_COLL_ALL_REDUCE, 4096.0, 8, 1),
                        far = coll_of(MAQ_COLL_ALL_REDUCE, 4096.0, 8, 2);
        assert_true(maq_cost_coll(&costs, &small, &c).seconds < 0.6 * maq_cost_coll(NULL, &small, &c).seconds);
        assert_true(maq_cost_coll(&costs, &far, &c).seconds == maq_cost_coll(NULL, &far, &c).seconds);
    }
}

/* What most of the time is, where there is no doubt. */
static void test_largest_part(void **state)
{
    (void)state;
    struct maq_node_group g = h100();
    struct maq_cluster c = cluster_of(&g);
    static const struct {
        double bytes;
        uint32_t per_node, nodes;
        const char *largest;
    } rows[] = {{1e10, 8, 1, "scale-up link"}, {1e10, 1, 16, "network"}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct maq_coll coll = coll_of(MAQ_COLL_ALL_GATHER, rows[i].bytes, rows[i].per_node, rows[i].nodes);
        struct maq_coll_links links = maq__coll_links(&coll, &c);
        struct maq_coll_parts parts = maq__coll_parts(&coll, &links, MAQ_LIBRARY_TRAINING);
        assert_string_equal(maq__coll_largest(&parts), rows[i].largest);
        assert_close(parts.total_s, seconds(&coll, &c), 1e-15);
    }
}

static void test_extremes_are_finite(void **state)
{
    (void)state;
    static const double sizes[] = {1e-300, 1.0, 1e9, 1099511627776.0, 1e300};
    struct maq_node_group good = h100(),
                          empty = {.devices_per_node = 8, .domain_devices = 8, .nics_per_node = 1, .nodes = 1};
    struct maq_cluster c[] = {cluster_of(&good), cluster_of(&empty)};
    for (int kind = 0; kind <= MAQ_COLL_KIND_COUNT; kind++)
        for (size_t i = 0; i < COUNT(sizes); i++)
            for (size_t k = 0; k < COUNT(c); k++)
                for (uint32_t nodes = 1; nodes != 0; nodes = nodes < 1u << 28 ? nodes * 16 : 0) {
                    struct maq_coll coll = coll_of((enum maq_coll_kind)kind, sizes[i], 8, nodes);
                    seconds(&coll, &c[k]);
                    coll.sharers = 0;
                    seconds(&coll, &c[k]);
                }
    struct maq_coll lost = coll_of(MAQ_COLL_ALL_REDUCE, 1e9, 8, 2);
    lost.at.group = 7; /* no such group */
    assert_true(seconds(&lost, &c[0]) == 0.0);
}

static void test_determinism(void **state)
{
    (void)state;
    double a = time_of(MAQ_COLL_ALL_REDUCE, 123456789.0, 8, 16), b = time_of(MAQ_COLL_ALL_REDUCE, 123456789.0, 8, 16);
    assert_memory_equal(&a, &b, sizeof a);
}

/*
 * Published figures, GB/s of bus bandwidth or algorithm bandwidth, that the structure of the model rests on.
 *   H100: NVIDIA/dgxc-benchmarking, xxrjun/nccl-tests-cluster (IB NDR); H200, B200: stas00/ml-engineering; 2 x 8
 *   B200: a GKE A4 run
 */
static void test_published_bus_bandwidth(void **state)
{
    (void)state;
    static const struct {
        enum maq_coll_kind kind;
        uint32_t per_node, nodes;
        double bytes, busbw, tolerance;
    } rows[] = {
        {MAQ_COLL_ALL_REDUCE, 8, 1, 17179869184.0, 480e9, 0.06}, /* NVLS */
        {MAQ_COLL_ALL_REDUCE, 4, 1, 17179869184.0, 367e9, 0.06}, /* ring and NVLS are equal */
        {MAQ_COLL_ALL_GATHER, 8, 1, 17179869184.0, 362e9, 0.08},
        {MAQ_COLL_ALL_TO_ALL, 8, 1, 17179869184.0, 348e9, 0.06},
        {MAQ_COLL_SEND_RECV, 2, 1, 17179869184.0, 367e9, 0.06},
        {MAQ_COLL_ALL_REDUCE, 1, 10, 17179869184.0, 48.9e9, 0.05},
        {MAQ_COLL_ALL_REDUCE, 2, 10, 17179869184.0, 97.9e9, 0.05},
        {MAQ_COLL_ALL_REDUCE, 8, 2, 17179869184.0, 472e9, 0.08},
        {MAQ_COLL_ALL_TO_ALL, 8, 2, 17179869184.0, 92e9, 0.05},
        {MAQ_COLL_ALL_REDUCE, 8, 1, 67108864.0, 362e9, 0.10}, /* 324.7 us */
        {MAQ_COLL_ALL_REDUCE, 8, 1, 1048576.0, 67e9, 0.10},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        double n = rows[i].per_node * rows[i].nodes;
        double factor = rows[i].kind == MAQ_COLL_ALL_REDUCE  ? 2 * (n - 1) / n
                        : rows[i].kind == MAQ_COLL_SEND_RECV ? 1.0
                                                             : (n - 1) / n;
        double got = factor * rows[i].bytes / time_of(rows[i].kind, rows[i].bytes, rows[i].per_node, rows[i].nodes);
        if (fabs(got / rows[i].busbw - 1) > rows[i].tolerance)
            print_message("row %zu: %.1f GB/s, published %.1f\n", i, got / 1e9, rows[i].busbw / 1e9);
        assert_true(fabs(got / rows[i].busbw - 1) <= rows[i].tolerance);
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The n-th comma field of a line; quoted fields are not split. */
static bool field(char *out, size_t size, const char *line, int n)
{
    bool quoted = false;
    for (; *line && n > 0; line++) {
        quoted ^= *line == '"';
        n -= *line == ',' && !quoted;
    }
    size_t len = 0;
    for (; line[len] && line[len] != ',' && line[len] != '\n' && len + 1 < size; len++)
        out[len] = line[len];
    out[len] = '\0';
    return n == 0;
}

/* Error over all H100 rows of at least 1 MiB, inside a node and over InfiniBand, of the collected nccl-tests. */
static void test_measured_rows(void **state)
{
    (void)state;
    const char *shared = getenv("MAQ_SHARED"), *root = getenv("MAQ_SOURCE_ROOT");
    char path[4096], line[4096];
    snprintf(path, sizeof path, "%s%s/data/measured/collectives.csv",
             shared ? shared
             : root ? root
                    : "",
             shared ? "" : "/../shared");
    FILE *f = fopen(path, "r");
    if (!f) {
        print_message("no %s\n", path);
        skip();
    }
    static double errors[4096];
    static const char *const kinds[] = {"all_reduce", "all_gather", "reduce_scatter", "alltoall"};
    size_t n = 0;
    while (fgets(line, sizeof line, f) && n < COUNT(errors)) {
        char source[256], gpu[64], ranks[16], per_node[16], name[32], bytes[32], us[32];
        if (!field(source, sizeof source, line, 0) || !field(gpu, sizeof gpu, line, 2) ||
            !field(ranks, sizeof ranks, line, 3) || !field(per_node, sizeof per_node, line, 4) ||
            !field(name, sizeof name, line, 6) || !field(bytes, sizeof bytes, line, 7) ||
            !field(us, sizeof us, line, 8))
            continue;
        bool wanted = strncmp(source, "xxrjun", 6) == 0 || strncmp(source, "NVIDIA/dgxc", 11) == 0;
        double size = strtod(bytes, NULL), time = strtod(us, NULL) * 1e-6;
        uint32_t total = (uint32_t)strtoul(ranks, NULL, 10), local = (uint32_t)strtoul(per_node, NULL, 10);
        if (!wanted || strncmp(gpu, "NVIDIA H100", 11) != 0 || size < MIB || !(time > 0) || local == 0)
            continue;
        for (size_t k = 0; k < COUNT(kinds); k++)
            if (strcmp(name, kinds[k]) == 0)
                errors[n++] = fabs(
                    time_of((enum maq_coll_kind)k, size, local < total ? local : total, (total + local - 1) / local) /
                        time -
                    1);
    }
    fclose(f);
    assert_true(n > 100);
    qsort(errors, n, sizeof errors[0], by_value);
    print_message("%zu rows: median error %.1f %%, 90 %% within %.1f %%\n", n, 100 * errors[n / 2],
                  100 * errors[n * 9 / 10]);
    assert_true(errors[n / 2] < 0.10);
    assert_true(errors[n * 9 / 10] < 0.25);
}

/* A broadcast by every member in turn is as many broadcasts of a part. */
static void test_broadcast_in_turn(void **state)
{
    (void)state;
    struct maq_node_group g = h100();
    struct maq_cluster c = cluster_of(&g);
    struct maq_coll one = coll_of(MAQ_COLL_BROADCAST, 1e9 / 64, 8, 4), all = coll_of(MAQ_COLL_BROADCAST, 1e9, 8, 4);
    all.flags = MAQ_COLL_TURNS(64);
    assert_true(fabs(seconds(&all, &c) / (64 * seconds(&one, &c)) - 1.0) < 1e-12);
    all.flags = MAQ_COLL_TURNS(1);
    assert_true(seconds(&all, &c) < 64 * seconds(&one, &c));
}

/*
 * DeepEP's own figures between H800 nodes (deepseek-ai/DeepEP, README: 4,096 tokens of 7,168, 8 of 256 experts within 4 nodes, FP8 out and
 * BF16 back): bytes of the copies to nodes, the own one included, over the time. Two nodes are held up by their NVLink, not by the network,
 * because every copy goes on to several ranks.
 */
static void test_published_exchanges(void **state)
{
    (void)state;
    static const struct {
        uint32_t nodes;
        double ranks_hit, out_GBps, back_GBps; /* distinct ranks of a token */
    } cases[] = {{2, 6.36, 43, 43}, {4, 7.12, 58, 57}, {8, 7.12, 51, 50}};
    struct maq_node_group g = h100();
    g.domain_bps = 200e9;
    struct maq_cluster c = cluster_of(&g);
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int back = 0; back < 2; back++) {
            double row = 4096.0 * 7168 * (back ? 2.0 : 1.0 + 4.0 / 128), copies = cases[i].nodes == 2 ? 2 : 4;
            struct maq_coll coll =
                coll_of(back ? MAQ_COLL_COMBINE : MAQ_COLL_DISPATCH, row * cases[i].ranks_hit, 8, cases[i].nodes);
            coll.far_bytes = row * copies * (cases[i].nodes - 1) / cases[i].nodes;
            coll.rows = 4096.0;
            coll.row_bytes = row / coll.rows;
            double rate = row * copies / seconds(&coll, &c) / 1e9, want = back ? cases[i].back_GBps : cases[i].out_GBps;
            print_message("%u nodes %s: %.1f GB/s, published %.0f\n", cases[i].nodes, back ? "back" : "out", rate,
                          want);
            assert_close(rate, want, 0.1);
        }
}

/*
 * HybridEP inside the scale-up domain of Blackwell against the figures of DeepEP V2, kernels of the same kind (its README: SM100, EP8 without
 * a network, 24 SMs): bytes of the copies to ranks, the own one included, over the time of a large exchange.
 */
static void test_published_hybrid(void **state)
{
    (void)state;
    struct maq_node_group g = h100();
    g.device.arch = MAQ_ARCH_BLACKWELL;
    g.domain_bps = 900e9;
    struct maq_cluster c = cluster_of(&g);
    for (int back = 0; back < 2; back++) {
        struct maq_coll coll = coll_of(back ? MAQ_COLL_COMBINE : MAQ_COLL_DISPATCH, 1e9, 8, 1);
        coll.flags = MAQ_COLL_HYBRID;
        double rate = coll.bytes / seconds(&coll, &c) / 1e9, want = back ? 675 : 643;
        print_message("%s: %.0f GB/s, published %.0f\n", back ? "back" : "out", rate, want);
        assert_close(rate, want, 0.1);
    }
}

/* What goes once to a domain and is copied on there is no slower than copies that cross by themselves. */
static void test_copies_inside_domains(void **state)
{
    (void)state;
    struct maq_node_group g = h100();
    struct maq_cluster c = cluster_of(&g);
    for (int k = MAQ_COLL_DISPATCH; k <= MAQ_COLL_COMBINE; k++) {
        struct maq_coll each = coll_of((enum maq_coll_kind)k, 1e9, 8, 4), once = each, all = each;
        once.far_bytes = 0.25e9;
        all.far_bytes = 0.75e9; /* every copy for the other three nodes */
        assert_true(seconds(&once, &c) < seconds(&each, &c));
        assert_true(seconds(&all, &c) == seconds(&each, &c));
        all.far_bytes = 1e12; /* no more than that */
        assert_true(seconds(&all, &c) == seconds(&each, &c));
    }
}

/*
 * As many bytes in more rows: a row has a price of its own, and a rank's own rows count beside their copies. Both by hand on the curve of
 * DeepEP's combine; short rows of few copies are the dearest per byte; nothing is known of rows that nobody counted.
 */
static void test_rows_of_an_exchange(void **state)
{
    (void)state;
    struct maq_node_group g = h100();
    struct maq_cluster c = cluster_of(&g);
    for (int k = MAQ_COLL_DISPATCH; k <= MAQ_COLL_COMBINE; k++) {
        struct maq_coll none = coll_of((enum maq_coll_kind)k, 64e6, 8, 1), few = none, many = none;
        few.rows = 2048;
        few.row_bytes = 14336;
        many.rows = 16384;
        many.row_bytes = 2048;
        assert_true(seconds(&none, &c) < seconds(&few, &c) && seconds(&few, &c) < seconds(&many, &c));

        struct maq_coll_links l = maq__coll_links(&few, &c);
        struct maq_coll_generation mine = *l.generation;
        struct maq_coll_curve *curve =
            &mine.near[k == MAQ_COLL_COMBINE ? MAQ_COLL_NEAR_EP_COMBINE : MAQ_COLL_NEAR_EP_DISPATCH];
        *curve = (struct maq_coll_curve){.start_s = 1e-5, .hops = 2, .gap = 0.02, .share = 0.5, .own = 1.5};
        l.generation = &mine;
        double sent = 64e6 * 7.0 / 8.0, own = 2048.0 * 14336.0 * 1.5;
        assert_close(maq__coll_parts(&few, &l, MAQ_LIBRARY_TRAINING).total_s,
                     1e-5 + (2 + 0.02 * 2048) * l.near_s + (sent + own) / (0.5 * l.near_bps), 1e-12);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broadcast_in_turn),
        cmocka_unit_test(test_rows_of_an_exchange),
        cmocka_unit_test(test_published_exchanges),
        cmocka_unit_test(test_published_hybrid),
        cmocka_unit_test(test_copies_inside_domains),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_closed_forms),
        cmocka_unit_test(test_all_reduce_is_two_halves),
        cmocka_unit_test(test_closed_forms_between_nodes),
        cmocka_unit_test(test_one_member_or_no_bytes),
        cmocka_unit_test(test_not_faster_than_links),
        cmocka_unit_test(test_larger_message_not_faster),
        cmocka_unit_test(test_more_nodes_not_faster),
        cmocka_unit_test(test_better_links_not_slower),
        cmocka_unit_test(test_sharing_and_oversubscription),
        cmocka_unit_test(test_rings_alone),
        cmocka_unit_test(test_pcie_contention),
        cmocka_unit_test(test_pairs_share_a_node),
        cmocka_unit_test(test_in_network_reduction_helps),
        cmocka_unit_test(test_every_table_is_monotone),
        cmocka_unit_test(test_tiny_parts),
        cmocka_unit_test(test_every_table_is_filled),
        cmocka_unit_test(test_engines),
        cmocka_unit_test(test_largest_part),
        cmocka_unit_test(test_extremes_are_finite),
        cmocka_unit_test(test_determinism),
        cmocka_unit_test(test_published_bus_bandwidth),
        cmocka_unit_test(test_measured_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
