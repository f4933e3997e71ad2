/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_shim_memory.c - memory of the zero-GPU device: capacity to the byte, what fails where, which bytes are real, what
 * the host may believe of what it reads back, virtual memory, pools, and copies.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "shim/core/memory.h"
#include "shim/cuda/cuda.h"
#include "shim_card.h"

#define MIB ((uint64_t)1 << 20)
#define TOTAL (64 * MIB)

int cudaMalloc(void **p, size_t bytes);
int cudaFree(void *p);
int cudaMallocAsync(void **p, size_t bytes, void *stream);
int cudaFreeAsync(void *p, void *stream);
int cudaMallocHost(void **p, size_t bytes);
int cudaMemcpy(void *to, const void *from, size_t bytes, int kind);
int cudaMemcpy2D(void *to, size_t tp, const void *from, size_t fp, size_t w, size_t h, int kind);
int cudaMemset(void *to, int value, size_t bytes);
int cudaGetLastError(void);
int cudaMemPoolGetAttribute(void *pool, int attribute, void *value);
int cudaDeviceGetDefaultMemPool(void **pool, int device);
int cudaPointerGetAttributes(struct vg_pointer_attributes *out, const void *p);
int cuMemAddressReserve(uint64_t *at, size_t bytes, size_t alignment, uint64_t wish, unsigned long long flags);
int cuMemAddressFree(uint64_t at, size_t bytes);
int cuMemCreate(uint64_t *handle, size_t bytes, const void *properties, unsigned long long flags);
int cuMemRelease(uint64_t handle);
int cuMemMap(uint64_t at, size_t bytes, size_t offset, uint64_t handle, unsigned long long flags);
int cuMemUnmap(uint64_t at, size_t bytes);

static uint64_t free_bytes(void)
{
    uint64_t f;
    vg_mem_info(&f, NULL, NULL);
    return f;
}

static uint64_t peak(void)
{
    uint64_t p;
    vg_mem_info(NULL, NULL, &p);
    return p;
}

/* Large allocations take whole pages, small ones share them; everything comes back. */
static void test_capacity(void **state)
{
    void *a, *b, *c;
    assert_int_equal(free_bytes(), TOTAL);
    assert_int_equal(cudaMalloc(&a, 3 * MIB), VG_OK);
    assert_int_equal(free_bytes(), TOTAL - 4 * MIB);
    assert_int_equal(cudaMalloc(&b, 1000), VG_OK);
    assert_int_equal(free_bytes(), TOTAL - 6 * MIB);
    assert_int_equal(cudaMalloc(&c, MIB), VG_OK); /* fits beside it */
    assert_int_equal(free_bytes(), TOTAL - 6 * MIB);
    assert_int_equal((uintptr_t)b % 512, 0);
    assert_int_equal((uintptr_t)a % (2 * MIB), 0);
    assert_int_equal(peak(), 4 * MIB + 1000);
    assert_int_equal(cudaFree(a) | cudaFree(b) | cudaFree(c), VG_OK);
    assert_int_equal(free_bytes(), TOTAL);
    assert_int_equal(peak(), 4 * MIB + 1000);
    assert_int_equal(cudaFree(NULL), VG_OK);
    assert_int_equal(cudaFree(&a), VG_INVALID_VALUE);
}

/* Out of memory is the call that does not fit, and no call before it. */
static void test_out_of_memory(void **state)
{
    void *p[40];
    size_t before, n, i = 0;
    free(shim_records(&before));
    while (cudaMalloc(&p[i], 2 * MIB) == VG_OK)
        i++;
    assert_int_equal(i, 32);
    assert_null(p[i]);
    assert_int_equal(cudaGetLastError(), VG_OUT_OF_MEMORY);
    assert_int_equal(cudaGetLastError(), VG_OK);
    struct maq_rec *r = shim_records(&n);
    assert_int_equal(n - before, 33);
    assert_int_equal(r[n - 1].kind, MAQ_REC_ALLOC);
    assert_int_equal(r[n - 1].flags, MAQ_REC_FAILED);
    assert_int_equal(r[n - 1].bytes, 2 * MIB);
    assert_int_equal(r[n - 2].flags, 0);
    free(r);
    assert_int_equal(cudaMalloc(&p[i], 1), VG_OUT_OF_MEMORY); /* not even a shared page */
    assert_int_equal(cudaFree(p[7]), VG_OK);
    assert_int_equal(cudaMalloc(&p[7], MIB + 1), VG_OK);
    while (i-- > 0)
        cudaFree(p[i]);
    assert_int_equal(free_bytes(), TOTAL);
    assert_int_equal(cudaMalloc(&p[0], SIZE_MAX / 2), VG_OUT_OF_MEMORY);
    cudaGetLastError();
}

static void test_find(void **state)
{
    char *p;
    struct vg_alloc a;
    assert_int_equal(cudaMalloc((void **)&p, 3 * MIB), VG_OK);
    assert_true(vg_mem_find(p + 3 * MIB - 1, &a));
    assert_int_equal(a.base, (uintptr_t)p);
    assert_int_equal(a.bytes, 3 * MIB);
    assert_false(a.backed);
    assert_false(vg_mem_find(p + 3 * MIB, &a));
    assert_false(vg_mem_find(&a, &a));
    struct vg_pointer_attributes attributes;
    assert_int_equal(cudaPointerGetAttributes(&attributes, p + 5), VG_OK);
    assert_int_equal(attributes.type, VG_MEMORY_DEVICE);
    assert_int_equal(cudaPointerGetAttributes(&attributes, &a), VG_OK);
    assert_int_equal(attributes.type, VG_MEMORY_UNREGISTERED);
    cudaFree(p);
}

/* The host reads back what it wrote, until something else may have written there. */
static void test_truth(void **state)
{
    char *p, out[256], in[256];
    for (int i = 0; i < 256; i++)
        in[i] = (char)i;
    assert_int_equal(cudaMalloc((void **)&p, 8 * MIB), VG_OK);
    char *at = p + 5 * MIB - 100; /* across a block */
    assert_int_equal(cudaMemcpy(at, in, 256, VG_COPY_H2D), VG_OK);
    assert_int_equal(cudaMemcpy(out, at, 256, VG_COPY_D2H), VG_OK);
    assert_memory_equal(in, out, 256);
    char *copy = p + 1000;
    assert_int_equal(cudaMemcpy(copy, at, 256, VG_COPY_D2D), VG_OK);
    assert_int_equal(cudaMemcpy(out, copy + 6, 250, VG_COPY_D2H), VG_OK);
    assert_memory_equal(in + 6, out, 250);
    vg_mem_written(at + 100, 10);
    assert_true(vg_mem_true(at, 100));
    assert_false(vg_mem_true(at, 101));
    size_t n;
    assert_int_equal(cudaMemcpy(out, at, 256, VG_COPY_D2H), VG_OK);
    struct maq_rec *r = shim_records(&n);
    assert_int_equal(r[n - 1].kind, MAQ_REC_READ);
    assert_int_equal(r[n - 1].flags, MAQ_REC_SYNTH);
    assert_int_equal(r[n - 1].arg, 5 * MIB - 100);
    assert_int_equal(r[n - 1].bytes, 256);
    free(r);
    for (int i = 0; i < 256; i++)
        assert_int_equal(out[i], i >= 100 && i < 110 ? 0 : (char)i);
    assert_int_equal(cudaMemcpy(copy, at, 256, VG_COPY_D2D), VG_OK); /* and so is a copy of it */
    assert_true(vg_mem_true(copy, 100) && !vg_mem_true(copy + 100, 1) && !vg_mem_true(copy + 109, 1));
    assert_true(vg_mem_true(copy + 110, 146) && !vg_mem_true(copy + 256, 1));
    vg_mem_blank(at - 4, 256); /* what others are given of it: only what is known, and zeros */
    for (int i = 0; i < 252; i++)
        assert_int_equal(at[i], i >= 100 && i < 110 ? 0 : (char)i);
    assert_true(vg_mem_true(at, 100));
    assert_int_equal(cudaMemset(p, 7, 4096), VG_OK);
    assert_int_equal(cudaMemcpy(out, p + 2000, 256, VG_COPY_D2H), VG_OK);
    assert_int_equal(out[255], 7);
    vg_mem_written_anywhere();
    assert_false(vg_mem_true(p, 1));
    assert_int_equal(cudaMemcpy(p + 8 * MIB - 8, in, 9, VG_COPY_H2D), VG_INVALID_VALUE); /* past its end */
    cudaFree(p);
    cudaGetLastError();
}

/* Copies of more than 1 MiB move no bytes and cost no host memory; rows are copied one by one. */
static void test_copies(void **state)
{
    char *p, *q, rows[4][8], back[4][8];
    assert_int_equal(cudaMalloc((void **)&p, 16 * MIB), VG_OK);
    assert_int_equal(cudaMallocHost((void **)&q, 16 * MIB), VG_OK);
    assert_false(vg_mem_touch(p, 16 * MIB));
    assert_true(vg_mem_touch(q, 16 * MIB));
    int64_t t = vg_now();
    assert_int_equal(cudaMemcpy(p, q, 16 * MIB, VG_COPY_H2D), VG_OK);
    assert_int_equal(vg_now() - t, 100 + 1000 + 16 * MIB); /* a call, the copy's start, 1 GB/s */
    assert_false(vg_mem_true(p, 1));
    for (int i = 0; i < 32; i++)
        rows[i / 8][i % 8] = (char)i;
    assert_int_equal(cudaMemcpy2D(p, 64, rows, 8, 8, 4, VG_COPY_H2D), VG_OK);
    assert_int_equal(cudaMemcpy2D(back, 8, p, 64, 8, 4, VG_COPY_D2H), VG_OK);
    assert_memory_equal(rows, back, sizeof rows);
    cudaFree(p);
    cudaFree(q);
}

static void test_virtual_memory(void **state)
{
    struct {
        int type, handles;
        struct vg_location where;
        void *windows;
        char flags[8];
    } properties = {.type = 1, .where = {1, 0}};
    uint64_t at, handle[2];
    struct vg_alloc a;
    assert_int_equal(cuMemAddressReserve(&at, 32 * MIB, 0, 0, 0), VG_OK);
    assert_int_equal(free_bytes(), TOTAL); /* addresses are free */
    assert_int_equal(cuMemCreate(&handle[0], 20 * MIB, &properties, 0), VG_OK);
    assert_int_equal(cuMemCreate(&handle[1], 2 * MIB, &properties, 0), VG_OK);
    assert_int_equal(free_bytes(), TOTAL - 22 * MIB);
    uint64_t too_much;
    assert_int_equal(cuMemCreate(&too_much, 44 * MIB, &properties, 0), VG_OUT_OF_MEMORY);
    assert_int_equal(cuMemCreate(&too_much, MIB, &properties, 0), VG_INVALID_VALUE);
    assert_int_equal(cuMemMap(at, 20 * MIB, 0, handle[0], 0), VG_OK);
    assert_int_equal(cuMemMap(at + 20 * MIB, 2 * MIB, 0, handle[1], 0), VG_OK);
    assert_true(vg_mem_find((void *)(uintptr_t)(at + 21 * MIB), &a));
    assert_int_equal(a.bytes, 2 * MIB);
    void *last = (void *)(uintptr_t)(at + 19 * MIB); /* a tensor may lie in both, and nothing behind them */
    assert_int_equal(cudaMemset(last, 0, 3 * MIB), VG_OK);
    assert_int_equal(cudaMemcpy((void *)(uintptr_t)at, last, 3 * MIB, 3), VG_OK);
    assert_int_equal(cudaMemset(last, 0, 3 * MIB + 1), VG_INVALID_VALUE);
    assert_int_equal(cuMemRelease(handle[0]), VG_OK); /* still mapped */
    assert_int_equal(free_bytes(), TOTAL - 22 * MIB);
    assert_int_equal(cuMemUnmap(at, 22 * MIB), VG_OK);
    assert_int_equal(free_bytes(), TOTAL - 2 * MIB);
    assert_int_equal(cuMemRelease(handle[1]), VG_OK);
    assert_int_equal(free_bytes(), TOTAL);
    assert_false(vg_mem_find((void *)(uintptr_t)at, &a));
    assert_int_equal(cuMemAddressFree(at, 32 * MIB), VG_OK);
}

static void test_pool(void **state)
{
    void *p, *pool;
    uint64_t used = 1;
    assert_int_equal(cudaDeviceGetDefaultMemPool(&pool, 0), VG_OK);
    assert_int_equal(cudaMallocAsync(&p, 5 * MIB, NULL), VG_OK);
    assert_int_equal(cudaMemPoolGetAttribute(pool, 7, &used), VG_OK);
    assert_int_equal(used, 5 * MIB);
    assert_int_equal(cudaFreeAsync(p, NULL), VG_OK);
    assert_int_equal(cudaMemPoolGetAttribute(pool, 7, &used), VG_OK);
    assert_int_equal(used, 0);
    assert_int_equal(cudaMemPoolGetAttribute(pool, 8, &used), VG_OK);
    assert_int_equal(used, 0); /* the highest that was asked for while it was there */
    assert_int_equal(free_bytes(), TOTAL);
}

/* Many small ones in any order: nothing overlaps, nothing is lost. */
static void test_many(void **state)
{
    char *p[600];
    uint64_t size[600], seed = 1;
    for (int i = 0; i < 600; i++) {
        seed = maq_rec_mix(seed, (uint64_t)i);
        size[i] = 1 + seed % 40000;
        assert_int_equal(cudaMalloc((void **)&p[i], size[i]), VG_OK);
        if (i % 3 == 2) {
            cudaFree(p[i - 1]);
            p[i - 1] = NULL;
        }
        memset(p[i], i, size[i]);
    }
    for (int i = 0; i < 600; i++)
        for (uint64_t k = 0; p[i] != NULL && k < size[i]; k++)
            if (p[i][k] != (char)i)
                fail_msg("allocation %d was written by another", i);
    for (int i = 0; i < 600; i++)
        cudaFree(p[i]);
    assert_int_equal(free_bytes(), TOTAL);
}

int main(void)
{
    shim_card("memory 67108864\n");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_capacity), cmocka_unit_test(test_out_of_memory), cmocka_unit_test(test_find),
        cmocka_unit_test(test_truth),    cmocka_unit_test(test_copies),        cmocka_unit_test(test_virtual_memory),
        cmocka_unit_test(test_pool),     cmocka_unit_test(test_many),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    shim_done();
    return failed;
}
