/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_islands.c - measured nodes to islands: the three rules hold on random nodes, and nothing that may be joined stays apart.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/arena.h"
#include "cluster/islands_find.h"
#include "maquette/islands.h"
#include "temp.h"

#define MOST 24

static const struct maq_island_tolerance tolerance = {0.1, 0.05, 0.2, 0.15};

struct fleet {
    struct maq_measured_node nodes[MOST];
    double link_bps[MOST * MOST];
    uint32_t n, island_of[MOST], islands;
};

struct dice {
    uint64_t state;
};

static double uniform(struct dice *d)
{
    d->state = d->state * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX */
    return (double)(d->state >> 11) * 0x1p-53;
}

static void find(struct fleet *f)
{
    struct maq_arena arena;
    maq_arena_init(&arena, 0);
    f->islands = maq_islands_find(f->island_of, f->nodes, f->n, f->link_bps, &tolerance, &arena);
    maq_arena_fini(&arena);
    assert_true(f->islands > 0);
}

static void set_link(struct fleet *f, uint32_t a, uint32_t b, double bps)
{
    f->link_bps[a * f->n + b] = f->link_bps[b * f->n + a] = bps;
}

/* Zones of two kinds of devices, with noise on everything. */
static void random_fleet(struct fleet *f, uint32_t seed)
{
    struct dice d = {seed};
    static const char *const devices[] = {"a100-80gb", "t4"};
    *f = (struct fleet){.n = 2 + (uint32_t)(uniform(&d) * (MOST - 2))};
    uint32_t zone[MOST] = {0};
    for (uint32_t i = 0; i < f->n; i++) {
        bool fast = uniform(&d) < 0.6;
        zone[i] = (uint32_t)(3 * uniform(&d));
        f->nodes[i] = (struct maq_measured_node){.name = "n",
                                                 .device = devices[!fast],
                                                 .devices = uniform(&d) < 0.9 ? 4 : 8,
                                                 .flops = (fast ? 250e12 : 40e12) * (1 + 0.12 * uniform(&d)),
                                                 .mem_bytes = fast ? 80e9 : 15e9,
                                                 .bps = (fast ? 200e9 : 8e9) * (1 + 0.3 * uniform(&d))};
    }
    for (uint32_t i = 0; i < f->n; i++)
        for (uint32_t k = 0; k < i; k++)
            set_link(f, i, k, (zone[i] == zone[k] ? 3e9 : 1e9) * (1 + 0.16 * uniform(&d)));
}

static double compute_of(const struct maq_measured_node *node)
{
    return node->flops;
}

static double memory_of(const struct maq_measured_node *node)
{
    return node->mem_bytes;
}

static double bandwidth_of(const struct maq_measured_node *node)
{
    return node->bps;
}

static double spread(const struct fleet *f, const bool *in, double (*figure)(const struct maq_measured_node *node))
{
    double least = HUGE_VAL, most = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        double v = figure(&f->nodes[i]);
        least = in[i] ? fmin(least, v) : least;
        most = in[i] ? fmax(most, v) : most;
    }
    return most / least - 1;
}

/* R1 to R3, written from their words. */
static bool is_island(const struct fleet *f, const bool *in)
{
    double inside = HUGE_VAL, fastest = 0, slowest = HUGE_VAL, leaving = 0;
    const struct maq_measured_node *first = NULL;
    for (uint32_t i = 0; i < f->n; i++) {
        if (!in[i])
            continue;
        first = first ? first : &f->nodes[i];
        if (f->nodes[i].devices != first->devices || f->nodes[i].device != first->device)
            return false;
        inside = fmin(inside, f->nodes[i].bps);
        for (uint32_t k = 0; k < f->n; k++) {
            double bps = f->link_bps[i * f->n + k];
            if (in[k] && k != i) {
                fastest = fmax(fastest, bps);
                slowest = fmin(slowest, bps);
            } else if (!in[k]) {
                leaving = fmax(leaving, bps);
            }
        }
    }
    return inside >= fastest && slowest * (1 + tolerance.network) >= leaving &&
           slowest * (1 + tolerance.network) >= fastest && spread(f, in, compute_of) <= tolerance.compute &&
           spread(f, in, memory_of) <= tolerance.memory && spread(f, in, bandwidth_of) <= tolerance.bandwidth;
}

static uint32_t members(const struct fleet *f, uint32_t island, bool *in)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->n; i++)
        if (f->island_of[i] == island) {
            in[i] = true;
            n++;
        }
    return n;
}

static void test_rules_hold(void **unused)
{
    (void)unused;
    uint32_t several = 0, nodes = 0, islands = 0;
    for (uint32_t seed = 1; seed <= 2000; seed++) {
        struct fleet f;
        random_fleet(&f, seed);
        find(&f);
        for (uint32_t a = 0; a < f.islands; a++) {
            bool in[MOST] = {false};
            uint32_t n = members(&f, a, in);
            assert_true(n > 0);
            several += n > 1;
            if (n > 1 && !is_island(&f, in))
                fail_msg("fleet %u: island %u breaks a rule", seed, a);
        }
        nodes += f.n;
        islands += f.islands;
    }
    print_message("# %u nodes, %u islands, %u of them of several nodes\n", nodes, islands, several);
    assert_true(several > 1000 && islands < nodes * 2 / 3);
}

/* Equal nodes on one network are one island; a node that is slower, and a node far away, are not in it. */
static void test_outsiders(void **unused)
{
    (void)unused;
    struct fleet f = {.n = 8};
    for (uint32_t i = 0; i < f.n; i++)
        f.nodes[i] = (struct maq_measured_node){"n", "a100-80gb", 8, 250e12, 80e9, 200e9};
    for (uint32_t i = 0; i < f.n; i++)
        for (uint32_t k = 0; k < i; k++)
            set_link(&f, i, k, 3e9);
    find(&f);
    assert_int_equal(f.islands, 1);
    f.nodes[3].flops = 200e12; /* beyond the tolerance, and on the same network */
    find(&f);
    assert_int_equal(f.islands, 2);
    for (uint32_t i = 0; i < f.n; i++)
        assert_int_equal(f.island_of[i], i == 3);
}

static void test_far_node(void **unused)
{
    (void)unused;
    struct fleet f = {.n = 5};
    for (uint32_t i = 0; i < f.n; i++)
        f.nodes[i] = (struct maq_measured_node){"n", "h100-sxm", 8, 700e12, 80e9, 450e9};
    for (uint32_t i = 0; i < f.n; i++)
        for (uint32_t k = 0; k < i; k++)
            set_link(&f, i, k, i == 2 || k == 2 ? 1e9 : 50e9);
    find(&f);
    assert_int_equal(f.islands, 2);
    for (uint32_t i = 0; i < f.n; i++)
        assert_int_equal(f.island_of[i], i == 2);
}

#define NODE(name)                                                                                                     \
    "  - {name: " name ", device: t4, devices: 4, compute: 40 TFLOP/s, memory: 15 GB, bandwidth: 6 GB/s}\n"

/* A node that is there twice, links of no bandwidth or with themselves, and one that nobody measured: said, and an island of what is left. */
static void test_dirt(void **state)
{
    static const char text[] =
        "nodes:\n" NODE("a") NODE("b") NODE("c") NODE("b") "links:\n"
                                                           "  - {between: [a, b], bandwidth: 9 Gb/s}\n"
                                                           "  - {between: [a, c], bandwidth: 4 Gb/s}\n"
                                                           "  - {between: [b, c], bandwidth: 0 Gb/s}\n"
                                                           "  - {between: [c, c], bandwidth: 9 Gb/s}\n";
    static const char says[] =
        "3 nodes: 2 rows left out with a value that cannot be (the first at line 9), 1 repetition left out (line 5), "
        "1 link without a measurement";
    struct maq_diag *diag = maq_diag_new();
    struct maq_islands *islands = NULL;
    char path[] = "/tmp/maq-islands-XXXXXX";
    temp_text(path, text);
    assert_int_equal(maq_islands_load(&islands, path, diag), MAQ_OK);
    assert_int_equal(islands->n_nodes, 3);
    assert_int_equal(islands->n, 2);
    assert_true(islands->between_bps[1] == 0.5e9); /* of b and c: as slow as a and c */
    assert_int_equal(maq_diag_count(diag), 1);
    const struct maq_diag_item *item = maq_diag_at(diag, 0);
    if (!memmem(item->msg.ptr, item->msg.len, says, strlen(says)))
        fail_msg("%.*s", (int)item->msg.len, item->msg.ptr);
    maq_islands_free(islands);
    maq_diag_set_strict(diag, true);
    assert_int_equal(maq_islands_load(&islands, path, diag), MAQ_BAD_INPUT);
    unlink(path);
    maq_diag_free(diag);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rules_hold), cmocka_unit_test(test_outsiders),
                                       cmocka_unit_test(test_far_node), cmocka_unit_test(test_dirt)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
