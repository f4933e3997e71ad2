/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_optimizers.c - LAMB, GaLore, paged moments, the 1-bit optimizers and ZeRO++: memory by hand, time by bounds and by what has to be
 * the same, what cannot be, and the words of frameworks for them.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "predict.h"

#define LAYERS 32.0
#define ALL 8030261248.0                /* of Llama 3.1 8B */
#define NORMS ((2 * LAYERS + 1) * 4096) /* tensors of 4,096 numbers */

static void assert_same(double got, double want)
{
    if (got < want * (1 - 1e-9) || got > want * (1 + 1e-9))
        fail_msg("%.1f, want %.1f", got, want);
}

static double bytes_of(int what, const char *cluster, const char *settings)
{
    struct prediction p = predict_batch("llama-3.1-8b", cluster, settings, 64, 1024);
    double n = p.result->stages[0].bytes[what];
    drop(&p);
    return n;
}

static double step_on(const char *cluster, const char *settings)
{
    struct prediction p = predict_batch("llama-3.1-8b", cluster, settings, 64, 1024);
    double t = p.result->step_s;
    drop(&p);
    return t;
}

/* Over 8 ranks, beside the master weight of 4 bytes. */
static void test_states(void **unused)
{
    static const struct {
        const char *settings;
        double each;
    } rows[] = {{"optimizer: lamb", 8},
                {"optimizer: onebit_adam", 8 + 4 + 4.0 / 8},
                {"optimizer: onebit_adam, onebit_warmup: true", 8},
                {"optimizer: onebit_lamb", 12 + 4 + 4.0 / 8},
                {"optimizer: onebit_lamb, onebit_warmup: true", 12 + 4 + 4.0 / 8},
                {"optimizer: zero_one_adam", 12 + 4 + 4.0 / 8}};
    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char plan[256];
        snprintf(plan, sizeof plan, "zero: 0, %s", rows[i].settings);
        assert_same(bytes_of(MAQ_MEM_OPTIMIZER, "b200:8", plan), ALL * (4 + rows[i].each));
    }
}

/* Moments of r x the longer side, a projection of r x the shorter one in the gradient's 4 bytes. A rank above a side is the side. */
static void test_low_rank_states(void **unused)
{
    static const struct {
        const char *settings;
        double matrices, moments, projections; /* numbers of a layer */
        double each;                           /* bytes of a moment, two of them */
    } rows[] = {
        {"galore_rank: 128, galore_target_modules: q_proj", 4096.0 * 4096, 128 * 4096, 128 * 4096, 8},
        {"galore_rank: 128, galore_target_modules: 'k_proj,down_proj'", 4096.0 * (1024 + 14336), 128 * (4096 + 14336),
         128 * (1024 + 4096), 8},
        {"galore_rank: 128, galore_target_modules: q_proj, use_apollo: true", 4096.0 * 4096, 128 * 4096, 128 * 4096, 8},
        {"galore_rank: 2048, galore_target_modules: v_proj", 4096.0 * 1024, 1024 * 4096, 1024 * 1024, 8},
        {"galore_rank: 16, galore_target_modules: q_proj, exp_avg_dtype: bf16", 4096.0 * 4096, 16 * 4096, 16 * 4096, 4},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char plan[256];
        snprintf(plan, sizeof plan, "zero: 0, %s", rows[i].settings);
        assert_same(bytes_of(MAQ_MEM_OPTIMIZER, "b200:8", plan),
                    ALL * (4 + rows[i].each) +
                        LAYERS * (rows[i].each * (rows[i].moments - rows[i].matrices) + 4 * rows[i].projections));
    }
    double gradients[2];
    for (int layers = 0; layers < 2; layers++) {
        struct prediction p = predict_batch(
            "llama-3.1-8b", "b200:1", layers ? "galore_rank: 64, galore_layerwise: true" : "galore_rank: 64", 1, 1024);
        gradients[layers] = p.result->stages[0].bytes[MAQ_MEM_GRADIENTS];
        drop(&p);
    }
    assert_same(gradients[0], 4 * ALL);
    assert_same(gradients[1], 4 * 128256.0 * 4096); /* of the embedding, or of the output */
}

/* A decomposition is at least 26 n^3 FLOP of a square matrix; every step has its share. */
static void test_time_of_low_rank(void **unused)
{
    const double flop = LAYERS * 26 * pow(4096, 3), peak = 66.9e12;
    (void)unused;
    double often = step_on("h100-sxm:8",
                           "zero: 0, galore_rank: 128, galore_target_modules: q_proj, galore_update_proj_gap: 1"),
           seldom =
               step_on("h100-sxm:8",
                       "zero: 0, galore_rank: 128, galore_target_modules: q_proj, galore_update_proj_gap: 1000000"),
           middle = step_on("h100-sxm:8",
                            "zero: 0, galore_rank: 128, galore_target_modules: q_proj, galore_update_proj_gap: 2");
    assert_true(often - seldom > flop / peak);
    assert_true(fabs((middle - seldom) / (often - seldom) - 0.5) < 0.05);
    /* APOLLO decomposes nothing: beside GaLore's rest it has three passes more over each gradient and one product less */
    double apollo = step_on("h100-sxm:8", "zero: 0, galore_rank: 128, galore_target_modules: q_proj, use_apollo: true"),
           always = step_on("h100-sxm:8", "zero: 0, galore_rank: 128, galore_target_modules: q_proj, use_apollo: true, "
                                          "galore_update_proj_gap: 1");
    const double passes = LAYERS * 4096.0 * 4096 * 5 * 4 / 3.35e12;
    assert_true(apollo < seldom + 4 * passes && apollo > seldom - 4 * passes);
    assert_true(always > apollo && always - apollo < 0.01 * (often - seldom));
}

struct paged {
    double managed, resident, total, needed, host, capacity, step;
};

static struct paged paged_on(const char *cluster, const char *settings)
{
    struct prediction p = predict_batch("llama-3.1-8b", cluster, settings, 1, 1024);
    const struct maq_stage_result *st = &p.result->stages[0];
    struct paged r = {st->managed_bytes,  st->resident_bytes, st->total_bytes, st->needed_bytes,
                      st->host.optimizer, st->capacity_bytes, p.result->step_s};
    drop(&p);
    return r;
}

/* Where there is room they lie on the device and cost nothing; else what is over lies on the host, and all of them come and go. */
static void test_paged(void **unused)
{
    const char *yes = "recompute: full, pure_low_precision: true, paged_optimizer: true",
               *no = "recompute: full, pure_low_precision: true";
    (void)unused;
    const struct paged wide = paged_on("b200:1", yes), apart = paged_on("b200:1", no),
                       narrow = paged_on("a100-40gb:1", yes), lost = paged_on("a100-40gb:1", no);
    assert_same(wide.managed, 4 * (ALL - NORMS));
    assert_same(wide.resident, wide.managed);
    assert_true(wide.host <= 0 && wide.step >= apart.step && wide.step <= apart.step);
    assert_true(wide.needed < apart.needed - 0.9 * wide.managed);
    assert_true(narrow.needed < narrow.capacity && lost.needed > lost.capacity);
    assert_true(narrow.host > 0 && narrow.total <= narrow.capacity * (1 + 1e-9));
    assert_same(narrow.host + narrow.resident, narrow.managed);
    assert_true(narrow.step - lost.step > 2 * narrow.managed / 32e9); /* PCIe 4, one way or the other */
    /* adapters of rank 16 next to 4,096 numbers are too small, those of an MLP are not */
    assert_true(paged_on("b200:1", "lora_rank: 16, lora_target_modules: q_proj, paged_optimizer: true").managed <= 0);
    assert_same(paged_on("b200:1", "lora_rank: 16, lora_target_modules: up_proj, paged_optimizer: true").managed,
                8 * LAYERS * 16 * 14336);
}

/*
 * Over a network that decides everything: of P / 8 bytes of each of a node's 8 devices 24 parts of 32 leave it, then as much of the sums of all;
 * of gradients of 4 bytes six times P come and go. An exchange in every 16th step is a 16th of that.
 */
static void test_signs(void **unused)
{
    const char *slow = "h100-sxm:8 x 4, nics 1 x 10G roce";
    (void)unused;
    double adam = step_on(slow, "zero: 0, optimizer: adam"), signs = step_on(slow, "zero: 0, optimizer: onebit_adam"),
           warm = step_on(slow, "zero: 0, optimizer: onebit_adam, onebit_warmup: true"),
           every = step_on(slow, "zero: 0, optimizer: zero_one_adam"),
           sixteenth = step_on(slow, "zero: 0, optimizer: zero_one_adam, local_step_interval: 16"),
           alone = step_on(slow, "zero: 0, optimizer: zero_one_adam, local_step_interval: 65536");
    const double nic = 1.25e9, least = (0.75 * ALL + 0.75 * ALL / 8) / nic;
    assert_true(signs > least && signs < 2 * least);
    assert_true(adam > 6 * ALL / nic && fabs(warm / adam - 1) < 0.1);
    assert_true(every > sixteenth && fabs((every - alone) / (sixteenth - alone) / 16 - 1) < 0.3);
}

/* hpZ: a second copy of the parameters in 2 bytes over so many ranks. None of them changes what else is held. */
static void test_plus_plus_memory(void **unused)
{
    const char *nodes = "h100-sxm:8 x 4, rail 100G";
    (void)unused;
    double plain = bytes_of(MAQ_MEM_WEIGHTS, nodes, "zero: 3");
    assert_same(bytes_of(MAQ_MEM_WEIGHTS, nodes, "zero: 3, zero_hpz_partition_size: 8") - plain, ALL * 2 / 8);
    assert_same(bytes_of(MAQ_MEM_WEIGHTS, nodes, "zero: 3, hpz: 16") - plain, ALL * 2 / 16);
    assert_same(
        bytes_of(MAQ_MEM_WEIGHTS, nodes, "zero: 3, zero_quantized_weights: true, zero_quantized_gradients: true"),
        plain);
}

/* Each takes traffic off a slow network: half of the gathers, the second gather, three quarters of the reduction and more. */
static void test_plus_plus_time(void **unused)
{
    const char *slow = "h100-sxm:8 x 4, nics 1 x 10G roce", *node = "h100-sxm:8";
    (void)unused;
    double plain = step_on(slow, "zero: 3"), weights = step_on(slow, "zero: 3, zero_quantized_weights: true"),
           second = step_on(slow, "zero: 3, hpz: 8"),
           gradients = step_on(slow, "zero: 3, zero_quantized_gradients: true"),
           all = step_on(slow, "zero: 3, hpz: 8, zero_quantized_weights: true, zero_quantized_gradients: true");
    assert_true(weights < plain && second < plain && gradients < plain);
    assert_true(all < weights && all < second && all < gradients);
    /* in one node gradients are reduced as they are */
    double alone = step_on(node, "zero: 3, zero_quantized_gradients: true"), same = step_on(node, "zero: 3");
    assert_true(alone >= same && alone <= same);
}

/* The step as a graph of its operators is the fast path's. */
static void test_paths(void **unused)
{
    static const char *const plans[] = {"zero: 3, hpz: 8, zero_quantized_weights: true, zero_quantized_gradients: true",
                                        "zero: 3, hpz: 8, fsdp_prefetch: 0",
                                        "zero: 3, zero_quantized_weights: true, reshard_after_forward: false",
                                        "zero: 0, optimizer: onebit_adam",
                                        "zero: 0, optimizer: zero_one_adam, local_step_interval: 4",
                                        "zero: 0, pp: 2, optimizer: onebit_lamb",
                                        "zero: 0, galore_rank: 64",
                                        "zero: 1, optimizer: lamb"};
    (void)unused;
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        struct prediction p = predict_batch("llama-3.1-8b", "h100-sxm:8 x 2, rail 100G", plans[i], 64, 1024);
        struct maq_train_graph g;
        double full;
        assert_int_equal(maq_train_graph(&g, maq_job_get(p.job), NULL), MAQ_OK);
        double *ends = malloc(sizeof *ends * (g.graph.n_nodes + 1));
        maq_engine_static(&full, ends, &g.graph, 1, g.dur_ns);
        if (fabs(p.result->step_s / (full * 1e-9) - 1) > 1e-9)
            fail_msg("%s: %.9f s, as a graph %.9f s", plans[i], p.result->step_s, full * 1e-9);
        free(ends);
        maq_train_graph_free(&g);
        drop(&p);
    }
}

static void test_refusals(void **unused)
{
    static const char *const rows[][2] = {
        {"zero: 1, galore_rank: 64", "works on whole matrices"},
        {"zero: 0, galore_rank: 64, galore_layerwise: true", "neither reduced nor added up"},
        {"zero: 0, galore_rank: 64, optimizer: lion", "goes with Adam and Adafactor"},
        {"zero: 0, galore_rank: 64, galore_target_modules: nothing", "is no module"},
        {"zero: 1, optimizer: onebit_adam", "do not go with ZeRO"},
        {"zero: 0, optimizer: lamb, paged_optimizer: true", "paged moments of Adam and Lion"},
        {"zero: 3, tp: 2, hpz: 2", "out of all ranks"},
        {"zero: 3, hpz: 3", "do not divide"}};
    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "{model: llama-3.1-8b, cluster: 'h100-sxm:8', plan: {%s}, workload: {global_batch_size: 8, "
                 "seq_length: 1024}}",
                 rows[i][0]);
        expect_refused(text, rows[i][1]);
    }
}

/* A framework's file is the job that says the same in the keys of the plan. */
static void test_files(void **unused)
{
    static const char *const rows[] = {
        "{train_batch_size: 64, train_micro_batch_size_per_gpu: 1, bf16: {enabled: true}, optimizer: {type: "
        "OneBitAdam}}",
        "{train_batch_size: 64, zero_optimization: {stage: 3, zero_hpz_partition_size: 8, zero_quantized_weights: "
        "true}}",
        "{output_dir: x, learning_rate: 1, optim: galore_adamw, optim_args: 'rank=64, update_proj_gap=100', "
        "optim_target_modules: [.*.attn.*]}",
        "{output_dir: x, learning_rate: 1, optim: paged_adamw_8bit}",
        "{model_name_or_path: llama-3.1-8b, template: llama3, finetuning_type: full, use_galore: true, galore_rank: "
        "32}"};
    static const struct maq_override over[] = {{"--cluster", "cluster", "h100-sxm:8"},
                                               {"--model", "model", "llama-3.1-8b"}};
    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct maq_loaded_job *box;
        struct maq_diag *diag = maq_diag_new();
        if (maq_job_parse(&box, "file.yaml", maq_str_of(rows[i]), over, i == 4 ? 1 : 2, diag) != MAQ_OK)
            fail_msg("%s: %s", rows[i], maq_diag_format(diag, 0, false));
        const struct maq_plan *p = &maq_job_get(box)->plan;
        assert_true(i != 0 || p->update == MAQ_UPDATE_ONEBIT_ADAM);
        assert_true(i != 1 || (p->hpz == 8 && p->quantized_weights && !p->quantized_gradients));
        assert_true(i != 2 || (p->galore_rank == 64 && p->galore_gap == 100 &&
                               maq_str_is(p->galore_targets, "q_proj,k_proj,v_proj,o_proj")));
        assert_true(i != 3 || (p->paged_optimizer && p->optimizer_dtype == MAQ_INT8));
        assert_true(i != 4 || (p->galore_rank == 32 && p->galore_gap == 200 && p->galore_targets.len == 0));
        maq_job_free(box);
        maq_diag_free(diag);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_low_rank_states),
        cmocka_unit_test(test_time_of_low_rank),
        cmocka_unit_test(test_paged),
        cmocka_unit_test(test_signs),
        cmocka_unit_test(test_plus_plus_memory),
        cmocka_unit_test(test_plus_plus_time),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
