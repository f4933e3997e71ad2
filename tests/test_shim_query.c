/*
 * test_shim_query.c - asking whether something is done: free, and yet a loop that does nothing else comes to its end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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
    for (int i = 0; i < 60; i++)
        assert_int_equal(i % 2 ? cudaEventQuery(event) : cudaStreamQuery(NULL), NOT_READY);
    assert_int_equal(vg_now(), begin);
    while (cudaEventQuery(event) == NOT_READY)
        assert_true(++asked < 1000000);
    assert_true(vg_now() > begin && asked > 0);
    assert_int_equal(cudaStreamQuery(NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_query)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
