/* SPDX-License-Identifier: Apache-2.0 */
/* test_arena.c - lifetimes, alignment, zeroing, caps, reuse and failure of arenas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/arena.h"

static size_t asked, allowed;

static bool count_and_limit(size_t bytes)
{
    (void)bytes;
    return asked++ < allowed;
}

static bool is_zero(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i])
            return false;
    return true;
}

static void test_alignment_and_zero(void **state)
{
    struct maq_arena a;
    (void)state;
    maq_arena_init(&a, 0);
    for (size_t align = 1; align <= 64; align *= 2) {
        for (size_t size = 0; size < 200; size += 7) {
            char *p = maq_arena_alloc(&a, size, align);
            assert_non_null(p);
            assert_int_equal((uintptr_t)p % align, 0);
            assert_true(is_zero(p, size));
            memset(p, 0xA5, size);
        }
    }
    maq_arena_fini(&a);
    assert_null(a.block);
    assert_int_equal(a.used, 0);
    assert_non_null(maq_arena_alloc(&a, 10, 8)); /* usable again */
    maq_arena_fini(&a);
}

static void test_large_requests(void **state)
{
    struct maq_arena a;
    (void)state;
    maq_arena_init(&a, 0);
    char *small = maq_arena_alloc(&a, 100, 8);
    char *large = maq_arena_alloc(&a, 10 << 20, 64);
    assert_non_null(small);
    assert_non_null(large);
    memset(large, 1, 10 << 20);
    assert_true(is_zero(small, 100));
    assert_int_equal(a.used, 100 + (10 << 20));
    assert_null(maq_arena_alloc(&a, SIZE_MAX, 1));
    assert_null(maq_arena_alloc(&a, SIZE_MAX / 2, 64));
    maq_arena_fini(&a);
}

static void test_cap(void **state)
{
    struct maq_arena a;
    (void)state;
    maq_arena_init(&a, 1000);
    assert_non_null(maq_arena_alloc(&a, 999, 1));
    assert_null(maq_arena_alloc(&a, 2, 1));
    assert_non_null(maq_arena_alloc(&a, 1, 1));
    assert_null(maq_arena_alloc(&a, 0, 1)); /* even nothing takes one byte, so that pointers differ */
    maq_arena_fini(&a);
}

static void test_array_overflow(void **state)
{
    struct maq_arena a;
    (void)state;
    maq_arena_init(&a, 0);
    assert_null(MAQ_ARENA_NEW(&a, uint64_t, SIZE_MAX / 8 + 2));
    uint64_t *none = MAQ_ARENA_NEW(&a, uint64_t, 0);
    assert_non_null(none);
    uint64_t *some = MAQ_ARENA_NEW(&a, uint64_t, 5);
    assert_int_equal((uintptr_t)some % _Alignof(uint64_t), 0);
    assert_ptr_not_equal(none, some);
    maq_arena_fini(&a);
}

static void test_strings(void **state)
{
    struct maq_arena a;
    (void)state;
    maq_arena_init(&a, 0);
    assert_string_equal(maq_arena_strdup(&a, (struct maq_str){"abcdef", 3}), "abc");
    assert_string_equal(maq_arena_strdup(&a, (struct maq_str){NULL, 0}), "");
    assert_string_equal(maq_arena_printf(&a, "%d %s %.2f", 42, "x", 1.5), "42 x 1.50");
    maq_arena_fini(&a);
}

static void test_mark_and_reset(void **state)
{
    struct maq_arena a;
    (void)state;
    maq_arena_init(&a, 0);
    char *kept = maq_arena_alloc(&a, 8, 8);
    strcpy(kept, "keep me");
    struct maq_arena_mark mark = maq_arena_mark(&a);
    char *first = maq_arena_alloc(&a, 1000, 8);
    memset(first, 0xFF, 1000);
    maq_arena_alloc(&a, 1 << 20, 8);
    maq_arena_reset(&a, mark);
    assert_int_equal(a.used, 8);
    char *again = maq_arena_alloc(&a, 1000, 8);
    assert_ptr_equal(again, first);
    assert_true(is_zero(again, 1000)); /* reused memory is zero as well */
    assert_string_equal(kept, "keep me");
    maq_arena_fini(&a);
}

/* A loop of mark, work, reset asks the heap in its first turn only. */
/* What is not cleared is aligned, counted and disturbs nothing that has to be zero behind or after it. */
static void test_raw(void **state)
{
    struct maq_arena a;
    (void)state;
    maq_arena_init(&a, 0);
    for (int turn = 0; turn < 3; turn++) {
        struct maq_arena_mark mark = maq_arena_mark(&a);
        char *zero = maq_arena_alloc(&a, 100, 8);
        double *raw = MAQ_ARENA_RAW(&a, double, 1000 + 500 * turn);
        char *behind = maq_arena_alloc(&a, 20000, 1);
        assert_true(zero && raw && behind && (uintptr_t)raw % _Alignof(double) == 0);
        assert_true(is_zero(zero, 100) && is_zero(behind, 20000));
        assert_int_equal(a.used, 100 + sizeof(double) * (1000 + 500 * (size_t)turn) + 20000);
        memset(zero, 0xA5, 100);
        memset(raw, 0xA5, sizeof(double) * (1000 + 500 * (size_t)turn));
        memset(behind, 0xA5, 20000);
        maq_arena_reset(&a, mark);
    }
    assert_null(MAQ_ARENA_RAW(&a, double, SIZE_MAX / 2));
    maq_arena_fini(&a);
}

static void test_hot_loop_allocates_nothing(void **state)
{
    struct maq_arena a;
    (void)state;
    maq_arena_init(&a, 0);
    for (int marked_empty = 0; marked_empty < 2; marked_empty++) {
        if (!marked_empty)
            maq_arena_alloc(&a, 8, 8);
        struct maq_arena_mark mark = maq_arena_mark(&a);
        asked = 0;
        allowed = SIZE_MAX;
        maq__set_alloc_gate(count_and_limit);
        size_t after_first = 0;
        for (int turn = 0; turn < 20; turn++) {
            for (size_t i = 0; i < 100; i++)
                assert_non_null(maq_arena_alloc(&a, i % 10 == 0 ? 100000 : 3000, 64));
            maq_arena_reset(&a, mark);
            if (turn == 0)
                after_first = asked;
        }
        maq__set_alloc_gate(NULL);
        assert_true(after_first > 0);
        assert_int_equal(asked, after_first);
        maq_arena_fini(&a);
    }
}

static void test_out_of_memory(void **state)
{
    struct maq_arena a;
    (void)state;
    maq_arena_init(&a, 0);
    asked = 0;
    allowed = 1;
    maq__set_alloc_gate(count_and_limit);
    assert_non_null(maq_arena_alloc(&a, 60000, 1));
    assert_null(maq_arena_alloc(&a, 60000, 1));
    assert_null(maq_arena_printf(&a, "%100000d", 1));
    assert_non_null(maq_arena_alloc(&a, 100, 1)); /* what fits still fits */
    maq__set_alloc_gate(NULL);
    maq_arena_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alignment_and_zero),
        cmocka_unit_test(test_large_requests),
        cmocka_unit_test(test_cap),
        cmocka_unit_test(test_array_overflow),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_mark_and_reset),
        cmocka_unit_test(test_raw),
        cmocka_unit_test(test_hot_loop_allocates_nothing),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
