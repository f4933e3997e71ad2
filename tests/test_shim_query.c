/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_shim_query.c - asking whether something is done: free, and yet a loop that does nothing else comes to its end, which is when that
 * is done: the loop waits, however often it asks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "shim/core/await.h"
#include "shim/core/core.h"
#include "shim/math/operator.h"

int cudaEventCreateWithFlags(void **event, unsigned flags);
int cudaEventRecord(void *event, void *stream);
int cudaEventQuery(void *event);
int cudaStreamQuery(void *stream);

enum { NOT_READY = 600 };

static void test_query(void **unused)
{
    (void)unused;
    void *event;
    int asked = 0;
    assert_int_equal(cudaEventCreateWithFlags(&event, 2), 0);
    vg_lock();
    assert_true(math_library(NULL, "long", MAQ_REC_F32, 1000000000, MATH_ANYWHERE)); /* a millisecond at 1 TB/s */
    vg_unlock();
    assert_int_equal(cudaEventRecord(event, NULL), 0);
    const int64_t begin = vg_now();
    int64_t end;
    assert_true(vg_event_end(vg_event_of(event), &end) && end > begin);
    for (int i = 0; i < 10000; i++) /* as an allocator that makes a list of so many tensors */
        assert_int_equal(i % 2 ? cudaEventQuery(event) : cudaStreamQuery(NULL), NOT_READY);
    assert_int_equal(vg_now(), begin);
    int64_t before = vg_host_taken();
    while (cudaEventQuery(event) == NOT_READY)
        assert_true(++asked < 1000000);
    assert_true(asked > 0);
    assert_int_equal(vg_now(), end);
    assert_int_equal(vg_host_taken(), 0); /* it waited, and worked nothing */
    assert_true(before >= 0);
    assert_int_equal(cudaStreamQuery(NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_query)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
