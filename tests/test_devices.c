/* SPDX-License-Identifier: Apache-2.0 */
/* test_devices.c - every device and fabric of the catalogue loads, and its figures make sense together. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "cluster/cluster_internal.h"
#include "cost/analytical/analytical.h"
#include "maquette/cluster.h"
#include "spec/catalogue.h"

struct fixture {
    struct maq_diag *diag;
    struct maq_arena arena;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->diag = maq_diag_new();
    assert_non_null(f->diag);
    maq_arena_init(&f->arena, 0);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    maq_arena_fini(&f->arena);
    maq_diag_free(f->diag);
    free(f);
    return 0;
}

static struct maq_device device(struct fixture *f, const char *name)
{
    struct maq_device d;
    if (maq__device_by_name(&d, maq_str_of(name), (struct maq_span){0}, &f->arena, f->diag) != MAQ_OK)
        fail_msg("%s: %s", name, maq_diag_format(f->diag, 0, false));
    return d;
}

static struct maq_fabric fabric(struct fixture *f, const char *name)
{
    struct maq_fabric x;
    if (maq__fabric_by_name(&x, maq_str_of(name), (struct maq_span){0}, &f->arena, f->diag) != MAQ_OK)
        fail_msg("%s: %s", name, maq_diag_format(f->diag, 0, false));
    return x;
}

#define BETWEEN(d, value, lo, hi)                                                                                      \
    do {                                                                                                               \
        if (!((value) >= (lo) && (value) <= (hi)))                                                                     \
            fail_msg("%s: " #value " = %g is not within %g .. %g", (d)->name, (double)(value), (double)(lo),           \
                     (double)(hi));                                                                                    \
    } while (0)

/* Where both types have matrix units, the narrower one is at least as fast. */
static void check_order(const struct maq_device *d)
{
    static const enum maq_dtype slow_to_fast[][2] = {
        {MAQ_FP32, MAQ_TF32}, {MAQ_TF32, MAQ_FP16}, {MAQ_TF32, MAQ_BF16}, {MAQ_FP16, MAQ_FP8},
        {MAQ_BF16, MAQ_FP8},  {MAQ_FP8, MAQ_FP6},   {MAQ_FP6, MAQ_FP4},   {MAQ_FP16, MAQ_INT8},
    };
    for (size_t i = 0; i < MAQ_COUNT(slow_to_fast); i++) {
        double slow = d->peak_flops[slow_to_fast[i][0]], fast = d->peak_flops[slow_to_fast[i][1]];
        if (slow > 0 && fast > 0)
            BETWEEN(d, fast, slow, 8 * slow);
    }
    if (d->peak_flops[MAQ_FP16] > 0 && d->peak_flops[MAQ_BF16] > 0)
        BETWEEN(d, d->peak_flops[MAQ_BF16], d->peak_flops[MAQ_FP16], d->peak_flops[MAQ_FP16]);
}

static void check_compute(const struct maq_device *d)
{
    double fp16 = d->peak_flops[MAQ_FP16];
    BETWEEN(d, fp16, 5e13, 1e16);
    check_order(d);
    for (int t = 0; t < MAQ_DTYPE_COUNT; t++)
        if (d->sustained_flops[t] > 0)
            BETWEEN(d, d->sustained_flops[t], 0.35 * d->peak_flops[t],
                    (d->sustained_from ? 4 : 1) *
                        d->peak_flops[t]); /* an H20 has the power of a whole die and a quarter of its rate */
    /* FP32 lanes: 64, 128 (256 on CDNA 3 and 4 by packing) per SM, two FLOP each. */
    double per_cycle = d->vector_flops / (d->sms * d->clock_hz);
    BETWEEN(d, per_cycle, 120, 290);
    double matrix_per_cycle = fp16 / (d->sms * d->clock_hz);
    BETWEEN(d, matrix_per_cycle, 500, 9000);
    BETWEEN(d, d->sms, 40, 320);
    BETWEEN(d, d->clock_hz, 1.3e9, 2.8e9);
    BETWEEN(d, d->tdp_w, 70, 2500);
    BETWEEN(d, d->launch_s, 1e-6, 2e-5);
}

static void check_memory(const struct maq_device *d)
{
    BETWEEN(d, d->mem_bytes, 14.0 * (1 << 30), 300.0 * (1 << 30));
    BETWEEN(d, d->mem_bps, 3e11, 2.5e13);
    BETWEEN(d, d->mem_bytes / d->mem_bps, 0.005, 0.09); /* seconds to read it all */
    BETWEEN(d, fabs(d->l2_bytes), 0, 300e6);
    if (d->l2_bps > 0)
        BETWEEN(d, d->l2_bps, 1.5 * d->mem_bps, 10 * d->mem_bps);
    assert_true(d->l2_bytes > 0 || d->l2_bps == 0);
}

static void check_links(struct fixture *f, const struct maq_device *d)
{
    BETWEEN(d, d->domain_devices, 2, 72);
    BETWEEN(d, d->domain_bps, 15e9, 1800e9);
    BETWEEN(d, d->domain_latency_s, 3e-7, 3e-6);
    BETWEEN(d, d->host_bps, 15e9, 450e9);
    BETWEEN(d, d->devices_per_node, 4, 8);
    assert_true(d->domain_bps < d->mem_bps && d->host_bps <= d->domain_bps * 1.2);
    assert_non_null(d->fabric);
    struct maq_fabric usual = fabric(f, d->fabric);
    BETWEEN(d, usual.nic_bps * usual.efficiency, 1e9, d->domain_bps * 1.1);
}

static void test_every_device(void **state)
{
    struct fixture *f = *state;
    const struct maq_catalogue_entry *e;
    size_t n = 0;
    for (size_t i = 0; (e = maq_catalogue_at("devices", i)) != NULL; i++, n++) {
        struct maq_device d = device(f, e->name);
        assert_string_equal(d.name, e->name);
        assert_true(d.title[0] && d.source[0] && strcmp(d.title, d.name) != 0);
        check_compute(&d);
        check_memory(&d);
        check_links(f, &d);
    }
    assert_true(n >= 52);
    assert_int_equal(maq_diag_count(f->diag), 0);
}

static void test_every_fabric(void **state)
{
    struct fixture *f = *state;
    const struct maq_catalogue_entry *e;
    size_t n = 0;
    for (size_t i = 0; (e = maq_catalogue_at("fabrics", i)) != NULL; i++, n++) {
        struct maq_fabric x = fabric(f, e->name);
        assert_string_equal(x.name, e->name);
        assert_true(x.title[0] && x.source[0]);
        BETWEEN(&x, x.nic_bps, 1.25e9, 100e9);
        BETWEEN(&x, x.latency_s, 1e-6, 1e-4);
        BETWEEN(&x, x.efficiency, 0.2, 1);
        BETWEEN(&x, x.nics_per_device, 0.1, 8);
    }
    assert_true(n >= 15);
    assert_int_equal(maq_diag_count(f->diag), 0);
}

/* The names that people write. */
static void test_aliases(void **state)
{
    static const char *const names[][2] = {
        {"H100", "h100-sxm"},
        {"h100", "h100-sxm"},
        {"A100", "a100-80gb"},
        {"A100-80GB", "a100-80gb"},
        {"A100-40GB", "a100-40gb"},
        {"A800-80GB", "a800-80gb"},
        {"B200", "b200"},
        {"GB200", "gb200"},
        {"H200", "h200"},
        {"GH200", "gh200-96gb"},
        {"V100", "v100-32gb"},
        {"H100-96GB-HBM2e-500W", "h100-sxm-96gb-hbm2e-500w"},
        {"H100-80GB", "h100-sxm"},
        {"RTX-A6000", "a6000"},
        {"RTXPRO6000", "rtx-pro-6000-server"},
        {"RTX-PRO-6000-Blackwell", "rtx-pro-6000"},
        {"MI300X", "mi300x"},
        {"A100-SXM4-80GB", "a100-80gb"},
        {"A100-PCIe-80GB", "a100-80gb-pcie"},
        {"A10G", "a10g"},
        {"NVIDIA A10G", "a10g"},
        {"A30", "a30"},
        {"RTX 5090", "rtx-5090"},
        {"RTX 3090 Ti", "rtx-3090-ti"},
        {"RTX 3090", "rtx-3090"},
        {"RTX A5000", "a5000"},
        {"Quadro RTX 8000", "quadro-rtx-8000"},
        {"V100-PCIe-16GB", "v100-32gb-pcie"},
        {"NVIDIA H200 NVL", "h200-nvl"},
        {"MI250", "mi250"},
        {"MI250X", "mi250x"},
        {"MI300A", "mi300a"},
        {"MI350X", "mi350x"},
        {"NVIDIA GH200 120GB", "gh200-96gb"},
    };
    for (size_t i = 0; i < MAQ_COUNT(names); i++)
        assert_string_equal(device(*state, names[i][0]).name, names[i][1]);
}

static void assert_rel(double got, double want)
{
    if (!(fabs(got / want - 1) < 1e-6))
        fail_msg("got %g, want %g", got, want);
}

/* A few figures as they stand in the datasheets, typed a second time. */
static void test_known_figures(void **state)
{
    struct maq_device h100 = device(*state, "h100-sxm"), a100 = device(*state, "a100-80gb"),
                      b200 = device(*state, "b200");
    assert_rel(h100.peak_flops[MAQ_BF16], 989.4e12);
    assert_rel(h100.peak_flops[MAQ_FP8], 1978.9e12);
    assert_rel(h100.mem_bps, 3.35e12);
    assert_rel(h100.mem_bytes, 81089.0 * (1 << 20));
    assert_rel(h100.domain_bps, 450e9);
    assert_rel(a100.peak_flops[MAQ_BF16], 312e12);
    assert_rel(a100.sustained_flops[MAQ_BF16], 271.2e12);
    assert_rel(a100.mem_bps, 2.039e12);
    assert_rel(b200.peak_flops[MAQ_FP4], 9e15);
    assert_rel(b200.domain_bps, 900e9);
    assert_true(a100.peak_flops[MAQ_FP32] == 0 && a100.peak_flops[MAQ_FP8] == 0);
    assert_true(h100.domain_multicast && b200.domain_multicast && !a100.domain_multicast);
    assert_int_equal(h100.arch, MAQ_ARCH_HOPPER);
}

/*
 * FLOP per SM and cycle of the matrix units, FP32 sums: boards of one die differ by a factor of two. GeForce boards and the A10G have half
 * of what professional boards have.
 */
static void test_matrix_rate_per_cycle(void **state)
{
    static const struct {
        const char *name;
        double flop;
    } boards[] = {
        {"a10", 1024},       {"a40", 1024},          {"a6000", 1024},      {"a5000", 1024},
        {"a10g", 512},       {"rtx-3090", 512},      {"rtx-3090-ti", 512}, {"rtx-6000-ada", 1024},
        {"rtx-4090", 512},   {"rtx-5090", 512},      {"a30", 2048},        {"quadro-rtx-8000", 1024},
        {"titan-rtx", 1024}, {"rtx-pro-6000", 1024}, {"mi300a", 2048},     {"mi300x", 2048},
        {"mi350x", 4096},    {"mi250", 1024},        {"mi250x", 1024},     {"v100-32gb-pcie", 1024},
    };
    for (size_t i = 0; i < MAQ_COUNT(boards); i++) {
        struct maq_device d = device(*state, boards[i].name);
        double got = d.peak_flops[MAQ_FP16] / (d.sms * d.clock_hz);
        BETWEEN(&d, got / boards[i].flop, 0.985, 1.02);
    }
}

/* Boards with a part of the matrix rate of their die hold it; and 4-bit rates are of boards that take block scales, whatever their generation. */
static void test_rtx_boards(void **state)
{
    static const char *const half[] = {"rtx-3090", "rtx-3090-ti", "rtx-4090", "rtx-5090", "a10g", "l40", "l20", "h20"};
    for (size_t i = 0; i < MAQ_COUNT(half); i++) {
        struct maq_device d = device(*state, half[i]);
        BETWEEN(&d, maq__held_share(&d, MAQ_BF16), 0.99, 1.0);
        BETWEEN(&d, maq__held_share(&d, MAQ_FP16), 0.99, 1.0);
    }
    assert_rel(device(*state, "rtx-pro-6000").sustained_flops[MAQ_BF16], 429e12);
    assert_int_equal(device(*state, "rtx-pro-6000").arch, MAQ_ARCH_ADA);
    assert_int_equal(device(*state, "rtx-5090").arch, MAQ_ARCH_ADA);
    assert_true(device(*state, "rtx-5090").peak_flops[MAQ_FP4] > 0 && device(*state, "l40s").peak_flops[MAQ_FP4] == 0);
}

/* Rates of a board of the same die, by SMs and power: what that says of boards that are measured, and where it is used. */
static void test_sustained_from(void **state)
{
    static const struct {
        const char *measured, *from;
    } pairs[] = {{"a100-80gb-pcie", "a100-80gb"},
                 {"gh200-144gb", "h100-sxm"},
                 {"gb200", "b200"},
                 {"b300", "b200"},
                 {"mi325x", "mi300x"}};
    double sum = 0;
    for (size_t i = 0; i < MAQ_COUNT(pairs); i++) {
        struct maq_device d = device(*state, pairs[i].measured), like = device(*state, pairs[i].from);
        double sms = (double)d.sms / like.sms,
               said = like.sustained_flops[MAQ_BF16] * sms * cbrt(d.tdp_w / like.tdp_w / sms);
        assert_null(d.sustained_from); /* its own */
        BETWEEN(&d, said / d.sustained_flops[MAQ_BF16], 0.93, 1.05);
        sum += fabs(said / d.sustained_flops[MAQ_BF16] - 1);
    }
    assert_true(sum / MAQ_COUNT(pairs) < 0.045);
    struct maq_device pcie = device(*state, "h100-pcie"), sxm = device(*state, "h100-sxm");
    assert_string_equal(pcie.sustained_from, "h100-sxm");
    for (int t = MAQ_BF16; t <= MAQ_FP8; t++)
        assert_rel(pcie.sustained_flops[t], sxm.sustained_flops[t] * 114 / 132 * cbrt(350.0 / 114 / (700.0 / 132)));
    assert_rel(device(*state, "a5000").sustained_flops[MAQ_BF16], 118e12 * 64 / 84 * cbrt(230.0 / 64 / (300.0 / 84)));
    BETWEEN(&sxm, device(*state, "h200-nvl").sustained_flops[MAQ_BF16],
            1.1 * device(*state, "h100-nvl").sustained_flops[MAQ_BF16], 835.5e12); /* of another power than its base */
}

/* Entries made from another one with `base:` differ in what they say and in nothing else. */
static void test_derived(void **state)
{
    struct maq_device a100 = device(*state, "a100-80gb"), a800 = device(*state, "a800-80gb");
    struct maq_device h100 = device(*state, "h100-sxm"), h500 = device(*state, "h100-sxm-96gb-hbm2e-500w");
    struct maq_device h200 = device(*state, "h200"), h800 = device(*state, "h800");
    assert_rel(a800.domain_bps, 200e9);
    assert_rel(h800.domain_bps, 200e9);
    assert_rel(a800.mem_bps, a100.mem_bps);
    assert_rel(h200.peak_flops[MAQ_BF16], h100.peak_flops[MAQ_BF16]);
    assert_rel(h200.mem_bps, 4.8e12);
    assert_rel(h500.mem_bps, 2.4e12);
    assert_rel(h500.tdp_w, 500);
    assert_rel(h500.peak_flops[MAQ_BF16], 989.4e12);
    assert_true(h500.sustained_flops[MAQ_BF16] == 699e12); /* derived from the 700 W part */
    assert_false(device(*state, "gh200-96gb").domain_multicast);
}

/* A device from a document; its status. What it points to lives in the fixture. */
static enum maq_status load(struct fixture *f, struct maq_device *d, const char *text)
{
    struct maq_doc doc;
    enum maq_status status = maq_doc_parse(&doc, "device.yaml", maq_str_of(text), MAQ_ORIGIN_DOCUMENT, f->diag);
    if (status == MAQ_OK)
        status = maq_device_load(d, doc.root, &f->arena, f->diag);
    maq_doc_fini(&doc);
    return status;
}

/* Figures that were not read at their source: an entry's own, and its base's as far as it does not write them anew. */
static void test_unverified(void **state)
{
    struct fixture *f = *state;
    struct maq_device d;
#define BASE "{base: h100-pcie, power: 600 W, l2: 40 MiB, peak: {fp8: 1500 TFLOP/s}, unverified: [power, l2, peak.fp8]}"
    assert_null(device(f, "h100-pcie").unverified);
    assert_int_equal(load(f, &d, BASE), MAQ_OK);
    assert_string_equal(d.unverified, "power, l2, peak.fp8");
    assert_int_equal(load(f, &d, "{base: " BASE ", l2: 50 MiB, clock: 1.7 GHz, unverified: [clock]}"), MAQ_OK);
    assert_string_equal(d.unverified, "power, peak.fp8, clock");
    assert_int_equal(load(f, &d, "{base: " BASE ", l2: 50 MiB, power: 1 kW, peak: {fp8: 1600 TFLOP/s}}"), MAQ_OK);
    assert_null(d.unverified);
#undef BASE
}

/* Names that the entry does not write, and what is no list of names. */
static void test_unverified_refused(void **state)
{
    static const struct {
        const char *text, *at, *says;
    } wrong[] = {
        {"base: h100-sxm\npower: 600 W\nunverified: [powr]\n", ":3:14:", "did you mean 'power'?"},
        {"base: h100-sxm\npower: 600 W\nunverified: [power, l2]\n", ":3:21:", "'l2', which this device does not give"},
        {"base: h100-sxm\npeak: {fp8: 1500 TFLOP/s}\nunverified: [peak.fp9]\n", ":3:14:", "did you mean 'peak.fp8'?"},
        {"base: h100-sxm\npower: 600 W\nunverified: power\n", ":3:13:", "must be a list"},
        {"base: h100-sxm\npower: 600 W\nunverified: [{power: 1}]\n", ":3:14:", "must be a list"},
    };
    for (size_t i = 0; i < MAQ_COUNT(wrong); i++) {
        struct fixture f = {.diag = maq_diag_new()};
        struct maq_device d;
        (void)state;
        maq_arena_init(&f.arena, 0);
        assert_int_equal(load(&f, &d, wrong[i].text), MAQ_BAD_INPUT);
        char *said = maq_diag_format(f.diag, 0, false);
        if (maq_diag_count(f.diag) != 1 || !strstr(said, wrong[i].at) || !strstr(said, wrong[i].says))
            fail_msg("%zu: %s", i, said);
        free(said);
        maq_arena_fini(&f.arena);
        maq_diag_free(f.diag);
    }
}

/* A fabric's work the same way; the catalogue's own lists name what its entries write, or the loader would say so. */
static void test_unverified_fabric(void **state)
{
    struct fixture *f = *state;
    struct maq_doc doc;
    struct maq_fabric x;
    static const char text[] =
        "base: {base: ib-ndr, efficiency: 0.9, latency: 4 us, unverified: [efficiency, latency]}\nlatency: 3 us\n";
    assert_int_equal(maq_doc_parse(&doc, "fabric.yaml", maq_str_of(text), MAQ_ORIGIN_DOCUMENT, f->diag), MAQ_OK);
    assert_int_equal(maq_fabric_load(&x, doc.root, &f->arena, f->diag), MAQ_OK);
    maq_doc_fini(&doc);
    assert_string_equal(x.unverified, "efficiency");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_device, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_every_fabric, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_aliases, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_known_figures, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_matrix_rate_per_cycle, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_sustained_from, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_rtx_boards, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_derived, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unverified, set_up, tear_down),
        cmocka_unit_test(test_unverified_refused),
        cmocka_unit_test_setup_teardown(test_unverified_fabric, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
