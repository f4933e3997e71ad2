/* SPDX-License-Identifier: Apache-2.0 */
/* test_muon.c - the update by Muon against the products of every matrix, its share of the ranks, and its memory. */
#include "effects.h"

/* Two layers of Llama 3 8B, on `nodes` times eight devices. */
static struct prediction llama(const char *cluster, const char *plan)
{
    char text[1024];
    snprintf(text, sizeof text,
             "model: {base: llama-3-8b, num_hidden_layers: 2}\ncluster: '%s'\nplan: {mbs: 1, %s}\n"
             "workload: {seq: 1024, gbs: 128}\n",
             cluster, plan);
    return predict_text(text);
}

static double optimizer_s(const char *cluster, const char *plan)
{
    struct prediction p = llama(cluster, plan);
    double s = p.result->bucket_s[MAQ_BUCKET_OPTIMIZER];
    drop(&p);
    return s;
}

/* What five iterations of Muon take: those of ten less those of five. */
static double five_s(const char *cluster, const char *plan)
{
    char five[256], ten[256];
    snprintf(five, sizeof five, "optimizer: muon, %s", plan);
    snprintf(ten, sizeof ten, "optimizer: muon, muon_num_ns_steps: 10, %s", plan);
    return optimizer_s(cluster, ten) - optimizer_s(cluster, five);
}

static const struct matrix {
    int64_t m, n;
    int count;
} layer[] = {{4096, 4096, 2}, {1024, 4096, 2}, {4096, 28672, 1}, {4096, 14336, 1}};

static double product_s(const struct maq_device *d, int64_t rows, int64_t columns, int64_t inner)
{
    struct maq_op op = {
        .kind = MAQ_OP_GEMM, .dtype = MAQ_TF32, .flags = MAQ_OP_OUT_FP32, .d = {rows, columns, inner, 1}};
    return maq_cost_op(NULL, &op, d).seconds;
}

static double iteration_s(const struct maq_device *d, int64_t m, int64_t n)
{
    return product_s(d, m, m, n) + product_s(d, m, m, m) + product_s(d, m, n, m);
}

static struct maq_device h100(void)
{
    struct prediction p = llama("h100-sxm:8", "tp: 1");
    struct maq_device d = maq_job_get(p.job)->cluster.groups[0].device;
    drop(&p);
    return d;
}

/* Of a synchronous step the slowest of its devices counts, by up to 3 % on 64 (src/lower/lower.c). */
static void assert_slowest(double got, double want, const char *what)
{
    if (!(got >= want * (1 - 1e-9) && got < 1.03 * want))
        fail_msg("%s: got %.9g, want %.9g", what, got, want);
}

/* One device alone has all matrices, queries, keys and values each by itself. */
static void test_products(void **unused)
{
    (void)unused;
    const struct maq_device d = h100();
    double want = 0;
    for (size_t i = 0; i < MAQ_COUNT(layer); i++)
        want += 2 * 5 * layer[i].count * iteration_s(&d, layer[i].m, layer[i].n);
    assert_close(five_s("h100-sxm:1", "tp: 1"), want, 1e-6 * want, "all matrices of two layers");
}

/*
 * Sixteen ranks have twelve matrices, so that the busiest has the costliest alone, and 64 do no better. Of four each has one of the four
 * square ones, one of the four small ones, and one of the four that are left.
 */
static void test_shares(void **unused)
{
    (void)unused;
    const struct maq_device d = h100();
    double largest = 5 * iteration_s(&d, 4096, 28672);
    double even = 5 * (iteration_s(&d, 4096, 4096) + iteration_s(&d, 1024, 4096));
    assert_slowest(five_s("h100-sxm:8 x 2", "tp: 1"), largest, "16 ranks");
    assert_slowest(five_s("h100-sxm:8 x 8", "tp: 1"), largest, "64 ranks");
    assert_slowest(five_s("h100-sxm:4", "tp: 1"), even + largest, "4 ranks");
    double alone = five_s("h100-sxm:1", "tp: 1");
    assert_slowest(five_s("h100-sxm:8", "tp: 1, zero: no_shard"), alone, "each has all");
}

/* With blocks each TP rank works on its part; else all of them on the whole, which is gathered before. */
static void test_tensor_parallel(void **unused)
{
    (void)unused;
    const struct maq_device d = h100();
    double whole = five_s("h100-sxm:2", "tp: 2"), alone = five_s("h100-sxm:1", "tp: 1"), parts = 0;
    assert_slowest(whole, alone, "two ranks, all of it twice");
    static const struct matrix cut[] = {{2048, 4096, 2}, {512, 4096, 2}, {4096, 14336, 1}, {4096, 7168, 1}};
    for (size_t i = 0; i < MAQ_COUNT(cut); i++)
        parts += 2 * 5 * cut[i].count * iteration_s(&d, cut[i].m, cut[i].n);
    assert_slowest(five_s("h100-sxm:2", "tp: 2, muon_tp_mode: blockwise"), parts, "halves");
    double tp_s[2];
    for (int i = 0; i < 2; i++) {
        struct prediction p = llama("h100-sxm:2", i ? "tp: 2, optimizer: muon" : "tp: 2, optimizer: adam");
        tp_s[i] = p.result->bucket_s[MAQ_BUCKET_TP];
        drop(&p);
    }
    assert_true(tp_s[1] - tp_s[0] > 4.0 * 436e6 / 2 / 450e9); /* half of 436 M numbers of four bytes through NVLink */
}

/* Each rank has the matrices of its experts, and those that hold the same ones share them. */
static void test_experts(void **unused)
{
    (void)unused;
    double step[2];
    for (int i = 0; i < 2; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "model: {base: mixtral-8x7b, num_hidden_layers: 1}\ncluster: 'h100-sxm:8'\n"
                 "plan: {ep: %d, mbs: 1, optimizer: muon, zero: no_shard}\nworkload: {seq: 1024, gbs: 8}\n",
                 i == 0 ? 8 : 4);
        struct prediction p = predict_text(text);
        step[i] = p.result->bucket_s[MAQ_BUCKET_OPTIMIZER];
        drop(&p);
    }
    const struct maq_device d = h100();
    double expert = 5 * (iteration_s(&d, 4096, 28672) + iteration_s(&d, 4096, 14336));
    assert_true(step[1] - step[0] > expert && step[1] - step[0] < 1.5 * expert); /* one more, and its passes */
}

static double state_bytes(const char *plan)
{
    struct prediction p = llama("h100-sxm:1", plan);
    double bytes = p.result->stages[0].bytes[MAQ_MEM_OPTIMIZER];
    drop(&p);
    return bytes;
}

/* Master weight and moments: two of Adam, one of momentum; with Muon one of a matrix and two of the rest. */
static void test_memory(void **unused)
{
    (void)unused;
    double matrices = 2.0 * (2 * 4096.0 * 4096 + 2 * 1024.0 * 4096 + 4096.0 * 28672 + 4096.0 * 14336);
    double rest = 2.0 * 128256 * 4096 + 5 * 4096; /* table, head, norms */
    assert_close(state_bytes("optimizer: adam"), 12 * (matrices + rest), 1, "Adam");
    assert_close(state_bytes("optimizer: sgd"), 8 * (matrices + rest), 1, "momentum");
    assert_close(state_bytes("optimizer: muon"), 8 * matrices + 12 * rest, 1, "Muon");
}

static void test_momentum(void **unused)
{
    (void)unused;
    assert_true(optimizer_s("h100-sxm:1", "optimizer: sgd") < optimizer_s("h100-sxm:1", "optimizer: adam"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products), cmocka_unit_test(test_shares), cmocka_unit_test(test_tensor_parallel),
        cmocka_unit_test(test_experts),  cmocka_unit_test(test_memory), cmocka_unit_test(test_momentum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
