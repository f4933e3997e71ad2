/* SPDX-License-Identifier: Apache-2.0 */
/* test_emulate_price.c - operators and collectives of a trace against the chain's own answers, and a user's kernel times. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/str.h"
#include "capture/price/price.h"
#include "cluster/cluster_load.h"
#include "temp.h"

struct machines {
    struct maq_diag *diag;
    struct maq_doc doc;
    struct maq_arena arena;
    struct maq_cluster cluster;
    struct maq_pricer pricer;
};

static void machines_open(struct machines *m, const char *text)
{
    m->diag = maq_diag_new();
    maq_arena_init(&m->arena, 0);
    assert_int_equal(maq_doc_parse(&m->doc, "c", maq_str_of(text), MAQ_ORIGIN_DOCUMENT, m->diag), MAQ_OK);
    assert_int_equal(maq_cluster_load(&m->cluster, m->doc.root, &m->arena, m->diag), MAQ_OK);
    m->pricer = (struct maq_pricer){.cluster = &m->cluster};
}

static void machines_close(struct machines *m)
{
    maq_doc_fini(&m->doc);
    maq_arena_fini(&m->arena);
    maq_diag_free(m->diag);
}

static uint64_t chain_ns(const struct machines *m, struct maq_op op)
{
    return (uint64_t)(maq_cost_op(NULL, &op, &m->cluster.groups[0].device).seconds * 1e9 + 0.5);
}

/* cuBLAS's column-major m x n is the chain's n x m. */
static void test_library_operators(void **state)
{
    struct machines m;
    machines_open(&m, "h100-sxm:8 x 2");
    const struct maq_device *d = &m.cluster.groups[0].device;
    struct maq_rec_op gemm = {.kind = MAQ_REC_GEMM, .type = MAQ_REC_BF16, .out = MAQ_REC_BF16, .d = {4096, 1024, 512}};
    struct maq_op same = {.kind = MAQ_OP_GEMM, .dtype = MAQ_BF16, .d = {1024, 4096, 512}};
    struct maq_price p = maq_price_op(&m.pricer, &gemm, NULL, d);
    assert_int_equal(p.ns, chain_ns(&m, same));
    assert_false(p.modelled);
    struct maq_rec_op att = {
        .kind = MAQ_REC_ATTENTION, .type = MAQ_REC_BF16, .flags = MAQ_REC_CAUSAL, .d = {4, 16, 2, 2048, 2048, 128}};
    struct maq_op fa = {.kind = MAQ_OP_ATTENTION,
                        .dtype = MAQ_BF16,
                        .flags = MAQ_OP_CAUSAL,
                        .d = {8192, 1025, 16, 2, 128, 128}}; /* 2048 - 1023.5, rounded */
    assert_int_equal(maq_price_op(&m.pricer, &att, NULL, d).ns, chain_ns(&m, fa));
    att.d[3] = 1; /* decoding: a query sees all keys, causal or not */
    fa = (struct maq_op){.kind = MAQ_OP_ATTENTION, .dtype = MAQ_BF16, .flags = MAQ_OP_CAUSAL, .queries = 1};
    memcpy(fa.d, (int64_t[]){4, 2048, 16, 2, 128, 128}, sizeof fa.d);
    assert_int_equal(maq_price_op(&m.pricer, &att, NULL, d).ns, chain_ns(&m, fa));
    struct maq_rec_op norm = {.kind = MAQ_REC_NORM, .type = MAQ_REC_BF16, .d = {8192, 4096}};
    assert_int_equal(maq_price_op(&m.pricer, &norm, NULL, d).ns,
                     chain_ns(&m, (struct maq_op){.kind = MAQ_OP_NORM, .dtype = MAQ_BF16, .d = {8192, 4096}}));
    machines_close(&m);
}

/* Attention over sequences: those that decode and those that do not, each as an operator; a program that serves has its engine's kernels. */
static void test_known_kernels(void **state)
{
    struct machines m;
    machines_open(&m, "h100-sxm");
    const struct maq_device *d = &m.cluster.groups[0].device;
    struct maq_rec_op mixed = {.kind = MAQ_REC_SEQUENCES,
                               .type = MAQ_REC_BF16,
                               .flags = MAQ_REC_CAUSAL,
                               .d = {2048, 700, 1024, 16, 900, MAQ_REC_HEADS(32, 8, 128, 128)}};
    struct maq_op prompts = {.kind = MAQ_OP_ATTENTION, .dtype = MAQ_BF16, .flags = MAQ_OP_CAUSAL, .queries = 1024};
    struct maq_op decodes = {.kind = MAQ_OP_ATTENTION, .dtype = MAQ_BF16, .queries = 1};
    memcpy(prompts.d, (int64_t[]){2048, 700, 32, 8, 128, 128}, sizeof prompts.d);
    memcpy(decodes.d, (int64_t[]){16, 900, 32, 8, 128, 128}, sizeof decodes.d);
    struct maq_price p = maq_price_op(&m.pricer, &mixed, NULL, d);
    assert_false(p.modelled);
    assert_in_range(p.ns, chain_ns(&m, prompts) + chain_ns(&m, decodes) - 1,
                    chain_ns(&m, prompts) + chain_ns(&m, decodes) + 1);
    mixed.d[3] = 0;
    assert_int_equal(maq_price_op(&m.pricer, &mixed, NULL, d).ns, chain_ns(&m, prompts));
    mixed.d[0] = 0;
    assert_int_equal(maq_price_op(&m.pricer, &mixed, NULL, d).ns, 0);
    mixed.d[3] = 16;
    assert_int_equal(maq_price_op(&m.pricer, &mixed, NULL, d).ns, chain_ns(&m, decodes));

    static const struct {
        struct maq_rec_op rec;
        struct maq_op op;
    } cases[] = {
        {{.kind = MAQ_REC_ELEMENTWISE, .type = MAQ_REC_BF16, .d = {1 << 20, 4, 2}},
         {.kind = MAQ_OP_ELEMENTWISE, .dtype = MAQ_BF16, .d = {1 << 20, 4, 2}}},
        {{.kind = MAQ_REC_GATED_ACTIVATION, .type = MAQ_REC_F16, .d = {300, 4096}},
         {.kind = MAQ_OP_ACTIVATION, .dtype = MAQ_FP16, .flags = MAQ_OP_GATED, .d = {300, 8192, 4096}}},
        {{.kind = MAQ_REC_ROPE, .type = MAQ_REC_BF16, .d = {300, 5120}},
         {.kind = MAQ_OP_ROPE, .dtype = MAQ_BF16, .d = {300, 5120}}},
        {{.kind = MAQ_REC_EMBEDDING, .type = MAQ_REC_F32, .d = {300, 2048, 128256}},
         {.kind = MAQ_OP_EMBEDDING, .dtype = MAQ_FP32, .d = {300, 2048, 128256}}},
        {{.kind = MAQ_REC_SOFTMAX, .type = MAQ_REC_F32, .d = {300, 2048}},
         {.kind = MAQ_OP_SOFTMAX, .dtype = MAQ_FP32, .d = {300, 2048}}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(maq_price_op(&m.pricer, &cases[i].rec, NULL, d).ns, chain_ns(&m, cases[i].op));
    struct maq_rec_op part = {.kind = MAQ_REC_PART, .grid = {99, 1, 1}, .block = {128, 1, 1}, .bytes = 1 << 20};
    assert_int_equal(maq_price_op(&m.pricer, &part, NULL, d).ns, 0);

    struct maq_costs serving = {.library = MAQ_LIBRARY_VLLM, .short_run = true};
    struct maq_rec_op gemm = {
        .kind = MAQ_REC_GEMM, .type = MAQ_REC_BF16, .out = MAQ_REC_BF16, .d = {28672, 8192, 4096}};
    struct maq_op same = {.kind = MAQ_OP_GEMM, .dtype = MAQ_BF16, .d = {8192, 28672, 4096}};
    uint64_t training = maq_price_op(&m.pricer, &gemm, NULL, d).ns;
    assert_int_equal(training, chain_ns(&m, same));
    gemm.flags |= MAQ_REC_VLLM << MAQ_REC_ENGINE_SHIFT;
    uint64_t ns = maq_price_op(&m.pricer, &gemm, NULL, d).ns;
    assert_int_equal(ns, (uint64_t)(maq_cost_op(&serving, &same, d).seconds * 1e9 + 0.5));
    assert_int_not_equal(ns, training);
    gemm.flags |= 15u << MAQ_REC_ENGINE_SHIFT; /* of a trace by somebody else */
    assert_int_equal(maq_price_op(&m.pricer, &gemm, NULL, d).ns, training);
    machines_close(&m);
}

/* A kernel whose code was read takes the longer of its bytes and its products: a GEMM of its depth, or attention. */
static void test_kernels_that_were_read(void **state)
{
    struct machines m;
    machines_open(&m, "h100-sxm:8 x 2");
    const struct maq_device *d = &m.cluster.groups[0].device;
    const int64_t side = 4096, depth = 1024, flop = 2 * side * side * depth, written = 2 * side * side;
    struct maq_rec_op k = {.kind = MAQ_REC_WORK,
                           .type = MAQ_REC_BF16,
                           .out = MAQ_REC_TYPE_OTHER,
                           .d = {flop, 4 * side * depth, written, depth}};
    struct maq_price p = maq_price_op(&m.pricer, &k, NULL, d);
    assert_false(p.modelled);
    assert_int_equal(p.ns,
                     chain_ns(&m, (struct maq_op){.kind = MAQ_OP_GEMM, .dtype = MAQ_BF16, .d = {side, side, depth}}));
    k.d[1] = (int64_t)1 << 34; /* it is fed by a stream that takes longer */
    assert_int_equal(maq_price_op(&m.pricer, &k, NULL, d).ns,
                     chain_ns(&m, maq_price_stream((double)(k.d[1] + written))));
    k.d[0] = k.d[3] = 0;
    assert_int_equal(maq_price_op(&m.pricer, &k, NULL, d).ns,
                     chain_ns(&m, maq_price_stream((double)(k.d[1] + written))));

    const int64_t queries = 1 << 16, keys = 4096, features = 128; /* each query of each head has keys of its own */
    struct maq_rec_op a = {
        .kind = MAQ_REC_WORK,
        .type = MAQ_REC_BF16,
        .d = {4 * queries * keys * features, 6 * queries * features, 2 * queries * features, 2 * keys, features}};
    const struct maq_op same = {.kind = MAQ_OP_ATTENTION,
                                .dtype = MAQ_BF16,
                                .flags = MAQ_OP_FLASH2,
                                .d = {queries, keys, 1, 1, features, features}};
    assert_int_equal(maq_price_op(&m.pricer, &a, NULL, d).ns, chain_ns(&m, same));
    struct maq_rec_op loss = {
        .kind = MAQ_REC_WORK, .type = MAQ_REC_BF16, .d = {2 * depth * depth * depth, 64, 2, depth * depth * depth}};
    assert_int_equal(maq_price_op(&m.pricer, &loss, NULL, d).ns,
                     chain_ns(&m, (struct maq_op){.kind = MAQ_OP_GEMM, .dtype = MAQ_BF16, .d = {depth, depth, depth}}));
    machines_close(&m);
}

/* A pointer into a pool reaches more than a kernel touches; a persistent kernel touches more than its threads. */
static void test_own_kernels(void **state)
{
    struct machines m;
    machines_open(&m, "h100-sxm:8 x 2");
    const struct maq_device *d = &m.cluster.groups[0].device;
    struct maq_rec_op k = {.kind = MAQ_REC_KERNEL, .grid = {1 << 16, 1, 1}, .block = {256, 1, 1}, .bytes = 1ull << 40};
    struct maq_price pool = maq_price_op(&m.pricer, &k, NULL, d);
    double moved = 65536.0 * 256 * 48;
    assert_true(pool.modelled);
    assert_true((double)pool.ns > moved / d->mem_bps * 1e9 && (double)pool.ns < 2 * moved / d->mem_bps * 1e9);
    k.grid[0] = (uint32_t)d->sms;
    k.bytes = 1ull << 30;
    assert_true((double)maq_price_op(&m.pricer, &k, NULL, d).ns > (double)k.bytes / d->mem_bps * 1e9);
    k.bytes = 0;
    k.grid[0] = 0;
    assert_true(maq_price_op(&m.pricer, &k, NULL, d).ns > 0);
    machines_close(&m);
}

static void test_collectives(void **state)
{
    struct machines m;
    machines_open(&m, "h100-sxm:8 x 16, rail 400G");
    uint32_t near[8], far[16], both[16];
    for (uint32_t i = 0; i < 8; i++)
        near[i] = 8 + i;
    for (uint32_t i = 0; i < 16; i++) {
        far[i] = 3 + 8 * (15 - i);    /* in any order */
        both[i] = i / 2 * 16 + i % 2; /* no progression: two in each of eight nodes */
    }
    struct maq_price_group g = {.member = near, .size = 8, .world = 128};
    struct maq_coll c = {.kind = MAQ_COLL_ALL_GATHER, .sharers = 1, .bytes = 8 * 1e6};
    c.at = maq_cluster_place(&m.cluster, 8, 8, 1);
    uint64_t ns = maq_price_coll(&m.pricer, MAQ_REC_ALL_GATHER, 1000000, &g).ns;
    assert_int_equal(ns, (uint64_t)(maq_cost_coll(NULL, &c, &m.cluster).seconds * 1e9 + 0.5));
    /* one of eight groups that lie alike */
    g = (struct maq_price_group){.member = far, .size = 16, .world = 128};
    c = (struct maq_coll){.kind = MAQ_COLL_ALL_REDUCE, .sharers = 8, .bytes = 1e6};
    c.at = maq_cluster_place(&m.cluster, 3, 16, 8);
    ns = maq_price_coll(&m.pricer, MAQ_REC_ALL_REDUCE, 1000000, &g).ns;
    assert_int_equal(ns, (uint64_t)(maq_cost_coll(NULL, &c, &m.cluster).seconds * 1e9 + 0.5));
    /* without being told who: with rank 11 at position 1 only every eighth rank fits */
    g = (struct maq_price_group){.size = 16, .rank = 11, .position = 1, .world = 128};
    struct maq_placement at = maq_price_place(&m.cluster, &g);
    assert_int_equal(at.per_node, 1);
    assert_int_equal(at.domains, 16);
    g.member = both;
    at = maq_price_place(&m.cluster, &g);
    assert_int_equal(at.per_node, 2);
    assert_int_equal(at.domains, 8);
    assert_int_equal(at.size, 16);
    /* a message inside a node is faster than one between nodes */
    assert_true(maq_price_message(&m.pricer, 1 << 24, 0, 1).ns < maq_price_message(&m.pricer, 1 << 24, 0, 9).ns);
    for (uint32_t kind = 0; kind <= MAQ_REC_COLL_COUNT; kind++)
        assert_true(maq_price_coll(&m.pricer, kind, 1 << 20, &g).ns > 0);
    machines_close(&m);
}

static struct maq_replay_kernels *times_of(const char *text, enum maq_status *status)
{
    char path[] = "/tmp/maq-times-XXXXXX";
    struct maq_replay_kernels *t = NULL;
    temp_text(path, text);
    struct maq_diag *diag = maq_diag_new();
    *status = maq_replay_kernels_read(&t, path, diag);
    assert_int_equal(*status == MAQ_OK, maq_diag_errors(diag) == 0);
    maq_diag_free(diag);
    unlink(path);
    return t;
}

static void test_kernel_times(void **state)
{
    enum maq_status status;
    struct maq_replay_kernels *t =
        times_of("grid,name,ns\n4x2,\"f(int, int)\",100\n,\"f(int, int)\",200\n8,g,300.4\n8,g,400\n", &status);
    assert_int_equal(status, MAQ_OK);
    assert_true(maq_replay_kernels_find(t, "f(int, int)", 11, (uint32_t[3]){2, 4, 1}) == 100);
    assert_true(maq_replay_kernels_find(t, "f(int, int)", 11, (uint32_t[3]){2, 4, 9}) == 200);
    assert_true(maq_replay_kernels_find(t, "g", 1, (uint32_t[3]){8, 1, 1}) == 400);
    assert_true(maq_replay_kernels_find(t, "g", 1, (uint32_t[3]){9, 1, 1}) < 0);
    assert_true(maq_replay_kernels_find(t, "h", 1, (uint32_t[3]){8, 1, 1}) < 0);
    struct machines m;
    machines_open(&m, "h100-sxm");
    m.pricer.kernels = t;
    struct maq_rec_op g = {.kind = MAQ_REC_KERNEL, .grid = {8, 1, 1}, .block = {32, 1, 1}, .name_bytes = 1};
    struct maq_price p = maq_price_op(&m.pricer, &g, "g", &m.cluster.groups[0].device);
    assert_int_equal(p.ns, 400);
    assert_int_equal(p.provider, MAQ_PROVIDER_MEASURED);
    machines_close(&m);
    maq_replay_kernels_free(t);
    static const char *const bad[] = {
        "", "a,b\nf,1\n", "name,ns\nf,x\n", "name,ns\n,3\n", "name,ns\nf,-1\n", "name,grid,ns\nf,0x1,4\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        times_of(bad[i], &status);
        assert_int_equal(status, MAQ_BAD_INPUT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_library_operators),
        cmocka_unit_test(test_known_kernels),
        cmocka_unit_test(test_kernels_that_were_read),
        cmocka_unit_test(test_own_kernels),
        cmocka_unit_test(test_collectives),
        cmocka_unit_test(test_kernel_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
