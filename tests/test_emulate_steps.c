/* SPDX-License-Identifier: Apache-2.0 */
/* test_emulate_steps.c - where the steps of programs are that mark none: as Megatron-LM, DDP, FSDP, llm.c and nccl-tests run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "capture/steps.h"
#include "shim/record.h"

enum { RECORDS = 20000, OPS = 256, STEPS = 16 };

/* A program, written record by record; `step` is where each of its steps begins. */
static struct {
    struct maq_rec record[RECORDS];
    uint32_t n, step[STEPS + 1], n_steps;
} p;
static struct maq_rec_op what[OPS];
static struct maq_captured_op op[OPS];
static char names[OPS][8];

static void put(struct maq_rec r)
{
    assert_true(p.n < RECORDS);
    p.record[p.n++] = r;
}

/* n launches of kernels first, first + 1, ..., with what a framework does between them. */
static void launch(uint32_t first, uint32_t n)
{
    static uint32_t allocations;
    for (uint32_t i = 0; i < n; i++) {
        put((struct maq_rec){.kind = MAQ_REC_LAUNCH, .id = first + i});
        if (allocations++ % 7 == 0) /* whenever it needs a segment */
            put((struct maq_rec){.kind = MAQ_REC_ALLOC, .id = allocations});
    }
}

static void reduce(uint32_t comm, uint64_t bytes)
{
    put((struct maq_rec){.kind = MAQ_REC_COLL, .id = comm, .bytes = bytes});
}

static void begin_step(void)
{
    p.step[p.n_steps++] = p.n;
}

/* The kernel of the first operator has another grid in each step. */
static void token_dependent(void)
{
    launch(p.n_steps, 1);
}

static void begin(void)
{
    memset(&p, 0, sizeof p);
    for (uint32_t i = 0; i < OPS; i++) {
        snprintf(names[i], sizeof names[i], "%u", i < STEPS ? 0 : i);
        what[i] = (struct maq_rec_op){.kind = MAQ_REC_KERNEL, .grid = {1 + i, 1, 1}};
        op[i] = (struct maq_captured_op){.name = names[i], .what = &what[i]};
    }
    launch(20, 40); /* weights are set */
    for (uint32_t i = 0; i < 6; i++)
        launch(20, 3);
    reduce(0, 8);
}

/* The steps that are found, of which the first `skipped` are not, begin within `slack` records of where they do. */
static void expect(uint32_t skipped, uint32_t slack)
{
    struct maq_rank_class class = {.record = p.record};
    struct maq_capture capture = {.n_ops = OPS, .op = op, .n_classes = 1, .class_of_ranks = &class};
    struct maq_arena arena;
    const uint32_t *at;
    uint32_t n;
    bool marked;
    launch(60, 5); /* the last loss */
    put((struct maq_rec){.kind = MAQ_REC_END});
    class.n_records = p.n;
    maq_arena_init(&arena, 0);
    assert_int_equal(maq_capture_steps(&at, &n, &marked, &capture, 0, &arena), MAQ_OK);
    assert_false(marked);
    assert_int_equal(n, p.n_steps - skipped);
    for (uint32_t i = 0; i + 1 < n; i++) { /* a step ends where the next begins */
        int32_t away = (int32_t)at[i] - (int32_t)p.step[skipped + i + 1];
        assert_in_range(away + (int32_t)slack, 0, 2 * slack);
        assert_true(at[i] < at[i + 1]);
    }
    assert_true(n == 0 || at[n - 1] < p.n);
    maq_arena_fini(&arena);
}

static void layers(uint32_t n, uint32_t first, uint32_t kernels)
{
    for (uint32_t i = 0; i < n; i++) {
        launch(first, kernels);
        reduce(1, 4096);
    }
}

static void forward(bool gets)
{
    if (gets)
        put((struct maq_rec){.kind = MAQ_REC_RECV, .id = 2, .arg = 1, .bytes = 1 << 20});
    layers(6, 70, 12);
    put((struct maq_rec){.kind = MAQ_REC_SEND, .id = 2, .arg = 1, .bytes = 1 << 20});
}

static void backward(void)
{
    put((struct maq_rec){.kind = MAQ_REC_RECV, .id = 2, .arg = 1, .bytes = 1 << 20});
    layers(6, 90, 20);
}

/* A stage of a pipeline, 1F1B, 16 micro batches of 6 layers; two steps, of which the first sets the optimizer's memory. */
static void test_megatron(void **state)
{
    (void)state;
    for (uint32_t ahead = 0; ahead < 4; ahead++) {
        begin();
        for (uint32_t s = 0; s < 2; s++) {
            begin_step();
            launch(120, 2); /* gradients to zero */
            for (uint32_t i = 0; i < ahead; i++)
                forward(true);
            for (uint32_t i = ahead; i < 16; i++) {
                forward(true);
                backward();
            }
            for (uint32_t i = 0; i < ahead; i++)
                backward();
            reduce(3, 1 << 28);
            if (s == 0)
                launch(130, 30);
            launch(160, 12);
            reduce(0, 4);
        }
        expect(0, 8);
    }
}

/* Buckets are cut anew after the first step. */
static void test_ddp(void **state)
{
    (void)state;
    begin();
    for (uint32_t s = 0; s < 5; s++) {
        begin_step();
        launch(70, 50);
        launch(120, 30);
        reduce(0, s == 0 ? 3 << 20 : 1 << 20);
        launch(150, 30);
        if (s > 0)
            reduce(0, 2 << 20);
        launch(180, 20);
    }
    expect(1, 105); /* of the first, what is behind its reduction is like the others */
}

static void test_fsdp(void **state)
{
    (void)state;
    begin();
    for (uint32_t s = 0; s < 3; s++) {
        begin_step();
        token_dependent();
        layers(12, 70, 9);
        layers(12, 90, 15);
        launch(120, 60);
    }
    expect(0, 8);
}

/* Losses of batches that are not trained on, then steps of four micro batches. */
static void test_llm_c(void **state)
{
    (void)state;
    begin();
    for (uint32_t i = 0; i < 20; i++)
        layers(12, 70, 10);
    for (uint32_t s = 0; s < 6; s++) {
        begin_step();
        for (uint32_t i = 0; i < 4; i++) {
            token_dependent();
            layers(12, 70, 10);
            layers(12, 90, 18);
        }
        reduce(0, 1 << 28);
        launch(120, 16);
    }
    expect(0, 300); /* it may begin among the batches before */
}

/* 5 and 20 times the same collective, and then a larger one: the steps are those of one size. */
static void test_nccl_tests(void **state)
{
    (void)state;
    begin();
    for (uint32_t size = 0; size < 3; size++)
        for (uint32_t i = 0; i < 25; i++) {
            if (size == 0 && i < STEPS)
                begin_step();
            reduce(0, 1024 << size);
        }
    p.n_steps = 25;
    struct maq_rank_class class = {.record = p.record, .n_records = p.n};
    struct maq_capture capture = {.n_ops = OPS, .op = op, .n_classes = 1, .class_of_ranks = &class};
    struct maq_arena arena;
    const uint32_t *at;
    uint32_t n;
    bool marked;
    maq_arena_init(&arena, 0);
    assert_int_equal(maq_capture_steps(&at, &n, &marked, &capture, 0, &arena), MAQ_OK);
    assert_int_equal(n, 25);
    for (uint32_t i = 0; i + 1 < STEPS; i++)
        assert_int_equal(at[i], p.step[i + 1]);
    maq_arena_fini(&arena);
}

static void test_nothing_repeats(void **state)
{
    (void)state;
    memset(&p, 0, sizeof p);
    expect(0, 0);
    begin();
    p.n = 0;
    launch(70, 100);
    expect(0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_megatron), cmocka_unit_test(test_ddp),        cmocka_unit_test(test_fsdp),
        cmocka_unit_test(test_llm_c),    cmocka_unit_test(test_nccl_tests), cmocka_unit_test(test_nothing_repeats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
