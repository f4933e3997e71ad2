/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_shim_nvtx.c - a program's NVTX finds the functions of the device, and its ranges are marks in the trace.
 *
 * The tables are made here as NVTX 3 has them in a program (shim/abi/nvtx.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <pthread.h>

#include <cmocka.h>

#include "shim/abi/nvtx.h"
#include "shim_card.h"

int InitializeInjectionNvtx2(const void *(*table_of)(uint32_t id));

enum { CORE = 16, CORE2 = 16 };
static abi_nvtx_function core[CORE], core2[CORE2], *to_core[CORE], *to_core2[CORE2];
static unsigned core_size = CORE;

static int table_of(int module, abi_nvtx_function ***table, unsigned *n)
{
    *table = module == ABI_NVTX_MODULE_CORE ? to_core : module == ABI_NVTX_MODULE_CORE2 ? to_core2 : NULL;
    *n = module == ABI_NVTX_MODULE_CORE ? core_size : CORE2;
    return *table != NULL;
}

static struct abi_nvtx_callbacks callbacks = {sizeof callbacks, table_of};

static const void *tables(uint32_t id)
{
    return id == ABI_NVTX_TABLE_CALLBACKS ? &callbacks : NULL;
}

static const void *no_tables(uint32_t id)
{
    (void)id;
    return NULL;
}

static int push(const char *text)
{
    return ((int (*)(const char *))core[ABI_NVTX_RANGE_PUSH_A])(text);
}

static int pop(void)
{
    return ((int (*)(void))core[ABI_NVTX_RANGE_POP])();
}

static void *in_thread(void *user)
{
    (void)push("a watchdog's");
    (void)pop();
    return user;
}

/* Kinds of marks in the trace in their order, with the number of their text: "push 0". */
static void expect_marks(const char *want)
{
    static const char *const names[] = {"point", "push", "pop", "step"};
    char got[512] = "";
    size_t n;
    struct maq_rec *records = shim_records(&n);
    for (size_t i = 0; i < n; i++)
        if (records[i].kind == MAQ_REC_MARK)
            snprintf(got + strlen(got), sizeof got - strlen(got), "%s %u\n", names[records[i].arg & 3], records[i].id);
    free(records);
    assert_string_equal(got, want);
}

static void test_refused(void **state)
{
    (void)state;
    assert_int_equal(InitializeInjectionNvtx2(no_tables), 0);
    assert_int_equal(InitializeInjectionNvtx2(NULL), 0);
    callbacks.bytes = 4;
    assert_int_equal(InitializeInjectionNvtx2(tables), 0);
    callbacks.bytes = sizeof callbacks;
    core_size = ABI_NVTX_RANGE_PUSH_A; /* an older program, whose table ends before */
    assert_int_equal(InitializeInjectionNvtx2(tables), 1);
    assert_null(core[ABI_NVTX_RANGE_PUSH_A]);
    assert_non_null(core[ABI_NVTX_MARK_A]);
    core_size = CORE;
}

static void test_marks(void **state)
{
    (void)state;
    assert_int_equal(InitializeInjectionNvtx2(tables), 1);
    struct abi_nvtx_attributes with = {
        .bytes = sizeof with, .message_type = ABI_NVTX_MESSAGE_ASCII, .message = "optimizer"};
    assert_int_equal(pop(), -1); /* nothing to pop */
    assert_int_equal(push("forward"), 0);
    assert_int_equal(((int (*)(const void *))core[ABI_NVTX_RANGE_PUSH_EX])(&with), 1);
    ((void (*)(const char *))core[ABI_NVTX_MARK_A])("here");
    uint64_t range = ((uint64_t(*)(const char *))core[ABI_NVTX_RANGE_START_A])("forward");
    assert_int_equal(pop(), 1);
    assert_int_equal(pop(), 0);
    ((void (*)(uint64_t))core[ABI_NVTX_RANGE_END])(range);
    ((void (*)(uint64_t))core[ABI_NVTX_RANGE_END])(range + 7); /* none */
    with.message_type = ABI_NVTX_MESSAGE_REGISTERED;
    with.message = ((const void *(*)(const void *, const char *))core2[ABI_NVTX_DOMAIN_STRING_A])(NULL, "here");
    assert_int_equal(((int (*)(void *, const void *))core2[ABI_NVTX_DOMAIN_PUSH_EX])(NULL, &with), 0);
    assert_int_equal(((int (*)(void *))core2[ABI_NVTX_DOMAIN_POP])(NULL), 0);
    free((void *)(uintptr_t)with.message);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, in_thread, NULL), 0);
    pthread_join(thread, NULL);
    expect_marks("push 0\npush 1\npoint 2\npush 0\npop 1\npop 0\npop 0\npush 2\npop 2\n");
}

/* What is deeper than anybody nests is counted and not recorded; the rest comes out even. */
static void test_deep(void **state)
{
    (void)state;
    size_t before, after;
    struct maq_rec *records = shim_records(&before);
    free(records);
    for (int i = 0; i < 200; i++)
        assert_int_equal(push("deep"), i);
    for (int i = 199; i >= 0; i--)
        assert_int_equal(pop(), i);
    assert_int_equal(pop(), -1);
    records = shim_records(&after);
    int open = 0, most = 0;
    for (size_t i = before; i < after; i++) {
        open += records[i].kind != MAQ_REC_MARK ? 0 : records[i].arg == MAQ_REC_PUSH ? 1 : -1;
        most = open > most ? open : most;
    }
    free(records);
    assert_int_equal(open, 0);
    assert_int_equal(most, 128);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_refused), cmocka_unit_test(test_marks),
                                       cmocka_unit_test(test_deep)};
    for (int i = 0; i < CORE; i++)
        to_core[i] = &core[i];
    for (int i = 0; i < CORE2; i++)
        to_core2[i] = &core2[i];
    shim_card("memory 67108864\n");
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    shim_done();
    return failed;
}
