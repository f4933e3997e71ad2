/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_shim_fatbin.c - parameters of kernels from fat binaries: plain, packed, of several architectures, cut off anywhere.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <dlfcn.h>

#include "cubin.h"
#include "shim/cuda/fatbin.h"

static const struct cubin_kernel kernels[] = {
    {.name = "axpy", .n = 3, .bytes = {8, 8, 4}}, {.name = "big", .n = 2, .bytes = {4000, 1}}, {.name = "none"}};
static const char *const names[] = {"big", "nowhere", "axpy", "none"};
enum { N = 4 };

static void expect_all(const struct vg_code *code)
{
    assert_true(code[0].found && !code[1].found && code[2].found && code[3].found);
    assert_int_equal(code[0].n_params, 2);
    assert_int_equal(code[0].param[0].bytes, 4000);
    assert_int_equal(code[0].param[1].offset, 4000);
    assert_int_equal(code[2].n_params, 3);
    assert_int_equal(code[2].param[2].offset, 16);
    assert_int_equal(code[2].param[2].bytes, 4);
    assert_int_equal(code[2].registers, 40);
    assert_int_equal(code[3].n_params, 0);
}

static void clear(struct vg_code *code)
{
    for (int i = 0; i < N; i++)
        free(code[i].param);
    memset(code, 0, N * sizeof *code);
}

static unsigned char elf[16384], packed[32768], fat[65536];

static void test_plain(void **state)
{
    struct vg_code code[N] = {{0}};
    size_t n = cubin_elf(elf, kernels, 3);
    assert_int_equal(vg_image_bytes(elf), n);
    assert_int_equal(vg_image_read(code, names, N, elf, n, 90), 3);
    expect_all(code);
    clear(code);
    size_t end = cubin_entry(fat, 16, 1, 90, 0, "ptx", 3, 0);
    end = cubin_entry(fat, end, 2, 90, 0, elf, n, 0);
    cubin_head(fat, end);
    assert_int_equal(vg_image_bytes(fat), end);
    assert_int_equal(vg_image_read(code, names, N, fat, end, 90), 3);
    expect_all(code);
    clear(code);
}

/* Of several architectures the one that runs here is read. */
static void test_architectures(void **state)
{
    static const struct cubin_kernel old[] = {{.name = "axpy", .n = 1, .bytes = {2}}},
                                     wanted[] = {{.name = "axpy", .n = 1, .bytes = {4}}},
                                     newer[] = {{.name = "axpy", .n = 1, .bytes = {8}}};
    const char *const name = "axpy";
    struct vg_code code = {0};
    size_t end = 16;
    end = cubin_entry(fat, end, 2, 80, 0, elf, cubin_elf(elf, old, 1), 0);
    end = cubin_entry(fat, end, 2, 90, 0, elf, cubin_elf(elf, wanted, 1), 0);
    end = cubin_entry(fat, end, 2, 100, 0, elf, cubin_elf(elf, newer, 1), 0);
    cubin_head(fat, end);
    const struct {
        unsigned capability, bytes;
    } cases[] = {{80, 2}, {86, 2}, {90, 4}, {100, 8}, {103, 8}, {70, 8}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(vg_image_read(&code, &name, 1, fat, end, cases[i].capability), 1);
        assert_int_equal(code.param[0].bytes, cases[i].bytes);
        free(code.param);
        memset(&code, 0, sizeof code);
    }
}

/* Of a section of shared memory the device's part is no kernel's, where the file says that it is there: nvcc 13 for sm_80 and sm_90. */
static void test_shared(void **state)
{
    static const struct cubin_kernel ampere[] = {{.name = "axpy", .shared = 1024}, {.name = "none"}},
                                     hopper[] = {{.name = "axpy", .shared = 2048},
                                                 {.name = "none", .shared = 1024, .reserves = true}};
    static const char *const wanted[] = {"axpy", "none"};
    const struct {
        const struct cubin_kernel *kernels;
        unsigned shared[2];
    } cases[] = {{ampere, {1024, 0}}, {hopper, {1024, 0}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct vg_code code[2] = {{0}};
        vg_image_read(code, wanted, 2, elf, cubin_elf(elf, cases[i].kernels, 2), 90);
        for (size_t k = 0; k < 2; k++) {
            assert_int_equal(code[k].shared_bytes, cases[i].shared[k]);
            free(code[k].param);
        }
    }
}

static void test_lz4(void **state)
{
    struct vg_code code[N] = {{0}};
    size_t n = cubin_elf(elf, kernels, 3), small = cubin_lz4(packed, elf, n);
    size_t end = cubin_entry(fat, 16, 2, 90, 0x2000, packed, small, n);
    cubin_head(fat, end);
    assert_int_equal(vg_image_read(code, names, N, fat, end, 90), 3);
    expect_all(code);
    clear(code);
    for (size_t i = 0; i < small; i += 7) { /* damaged: nothing, or something, and no harm */
        fat[16 + 64 + i] ^= 0x5a;
        vg_image_read(code, names, N, fat, end, 90);
        fat[16 + 64 + i] ^= 0x5a;
        clear(code);
    }
}

static void test_zstd(void **state)
{
    void *library = dlopen("libzstd.so.1", RTLD_NOW);
    void *symbol = library != NULL ? dlsym(library, "ZSTD_compress") : NULL;
    size_t (*pack)(void *, size_t, const void *, size_t, int);
    if (symbol == NULL) {
        print_message("no libzstd.so.1\n");
        skip();
    }
    memcpy(&pack, &symbol, sizeof pack);
    struct vg_code code[N] = {{0}};
    size_t n = cubin_elf(elf, kernels, 3), small = pack(packed, sizeof packed, elf, n, 3);
    size_t end = cubin_entry(fat, 16, 2, 90, 0x8000, packed, small, n);
    cubin_head(fat, end);
    assert_int_equal(vg_image_read(code, names, N, fat, end, 90), 3);
    expect_all(code);
    clear(code);
}

struct seen {
    unsigned n;
    char text[128];
};

static void note(const char *name, void *user)
{
    struct seen *s = user;
    s->n++;
    strcat(strcat(s->text, name), " ");
}

static void test_names(void **state)
{
    struct seen s = {0};
    size_t n = cubin_elf(elf, kernels, 3);
    vg_image_kernels(elf, n, 90, note, &s);
    assert_string_equal(s.text, "axpy big none ");
}

/* Cut off anywhere, in a buffer of exactly that size. */
static void test_cut_off(void **state)
{
    struct vg_code code[N] = {{0}};
    size_t n = cubin_elf(elf, kernels, 3);
    size_t end = cubin_entry(fat, 16, 2, 90, 0, elf, n, 0);
    cubin_head(fat, end);
    for (size_t i = 0; i < end; i++) {
        unsigned char *exact = malloc(i + 1);
        memcpy(exact, fat, i);
        vg_image_read(code, names, N, exact, i, 90);
        clear(code);
        free(exact);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),   cmocka_unit_test(test_architectures), cmocka_unit_test(test_shared),
        cmocka_unit_test(test_lz4),     cmocka_unit_test(test_zstd),          cmocka_unit_test(test_names),
        cmocka_unit_test(test_cut_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
