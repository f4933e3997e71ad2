/* SPDX-License-Identifier: Apache-2.0 */
/* test_device_slots.c - devices of a pool as replicas take them: none twice, groups in one room where there is one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "random_draws.h"
#include "train/mixed/device_slots.h"

static struct maq_device_slots open_on(struct maq_arena *arena, uint32_t nodes, uint32_t per_node, uint32_t domain)
{
    struct maq_device_slots s;
    const struct maq_pool pool = {
        .group = {.nodes = (int32_t)nodes, .devices_per_node = (int32_t)per_node, .domain_devices = (int32_t)domain},
        .count = nodes * per_node,
        .per_node = per_node};
    assert_true(maq_device_slots_open(&s, &pool, arena));
    return s;
}

static void test_examples(void **unused)
{
    (void)unused;
    static const struct {
        uint32_t nodes, per_node, domain, sizes[8], firsts[8]; /* sizes end at 0 */
    } cases[] = {
        {2, 4, 4, {1, 2, 2, 2, 1}, {0, 1, 4, 6, 3}}, /* a hole is left, and filled */
        {2, 4, 4, {1, 4, 2, 1}, {0, 4, 1, 3}},
        {2, 4, 2, {1, 2, 4, 1}, {0, 2, 4, 1}},    /* pairs under bridges; four are a whole node */
        {4, 4, 16, {3, 8, 4, 1}, {0, 3, 11, 15}}, /* a domain of four nodes is one room */
        {2, 3, 3, {2, 2, 2}, {0, 3, 2}},          /* what is left lies in two nodes */
        {3, 4, 4, {2, 8, 2}, {0, 4, 2}},          /* two whole nodes */
        {1, 4, 4, {2, 4}, {0, UINT32_MAX}},
    };
    struct maq_arena arena;
    maq_arena_init(&arena, 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct maq_device_slots s = open_on(&arena, cases[i].nodes, cases[i].per_node, cases[i].domain);
        for (int k = 0; k < 8 && cases[i].sizes[k] > 0; k++) {
            uint32_t first = maq_device_slots_take(&s, cases[i].sizes[k]);
            if (first != cases[i].firsts[k])
                fail_msg("case %zu: replica %d begins at %u", i, k, first);
        }
    }
    maq_arena_fini(&arena);
}

/* Powers of two: as long as devices are left for a replica, it has them in one room, or in whole ones; and none is taken twice. */
static void test_powers_of_two(void **unused)
{
    (void)unused;
    struct maq_arena arena;
    maq_arena_init(&arena, 0);
    uint64_t d = 7;
    for (int round = 0; round < 2000; round++) {
        uint32_t per_node = 1u << draw(&d, 0, 4), nodes = draw(&d, 1, 6), left = nodes * per_node;
        struct maq_device_slots s = open_on(&arena, nodes, per_node, per_node);
        bool taken[256] = {false};
        while (left > 0) {
            uint32_t size = 1u << draw(&d, 0, 4);
            if (size > per_node || size > left)
                continue;
            uint32_t first = maq_device_slots_take(&s, size);
            assert_true(first != UINT32_MAX && first / per_node == (first + size - 1) / per_node);
            for (uint32_t k = first; k < first + size; k++) {
                assert_false(taken[k]);
                taken[k] = true;
            }
            left -= size;
        }
        assert_int_equal(maq_device_slots_take(&s, 1), UINT32_MAX);
    }
    maq_arena_fini(&arena);
}

/* A stage lies in one room where there is a place for it, else in halves; its replicas one behind the other where it does. */
static void test_stages(void **unused)
{
    (void)unused;
    static const struct {
        uint32_t nodes, each[4], replicas[4], firsts[4][4];
    } cases[] = {
        /* the second would lie in two nodes behind the first, and the third fills what that leaves */
        {2, {1, 2, 1}, {4, 4, 4}, {{0, 1, 2, 3}, {8, 10, 12, 14}, {4, 5, 6, 7}}},
        {3, {2, 4, 2}, {1, 4, 3}, {{0}, {8, 12, 16, 20}, {2, 4, 6}}}, /* two whole nodes */
        {2, {2, 2, 2}, {3, 3, 2}, {{0, 2, 4}, {8, 10, 12}, {6, 14}}}, /* halves */
        {2, {4, 4}, {1, 3}, {{0}, {8, 12, 4}}},                       /* an odd one: the larger half first */
        {1, {4, 4}, {1, 2}, {{0}, {4, UINT32_MAX}}},                  /* no more are left */
    };
    struct maq_arena arena;
    maq_arena_init(&arena, 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct maq_device_slots s = open_on(&arena, cases[i].nodes, 8, 8);
        for (int k = 0; k < 4 && cases[i].each[k] > 0; k++) {
            uint32_t first[4] = {0};
            maq_device_slots_take_stage(&s, cases[i].each[k], cases[i].replicas[k], first);
            assert_memory_equal(first, cases[i].firsts[k], sizeof first);
        }
    }
    maq_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_examples), cmocka_unit_test(test_powers_of_two),
                                       cmocka_unit_test(test_stages)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
