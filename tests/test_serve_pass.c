/* SPDX-License-Identifier: Apache-2.0 */
/* test_serve_pass.c - the kernels of a pass: experts that tokens chose, prompts side by side, products in 4 bits. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/str.h"
#include "maquette/job.h"
#include "maquette/serve.h"
#include "serve/codes.h"
#include "serve/pass/pass.h"

#define MOST 4096

static struct maq_loaded_job *load(const char *model, const char *cluster, int tp)
{
    char text[512];
    struct maq_loaded_job *box = NULL;
    struct maq_diag *diag = maq_diag_new();
    snprintf(text, sizeof text, "{model: %s, cluster: '%s', plan: {tp: %d, micro_batch_size: 1}, workload: {gbs: 8}}",
             model, cluster, tp);
    if (maq_job_parse(&box, "test", maq_str_of(text), NULL, 0, diag) != MAQ_OK)
        fail_msg("%s\n%s", text, maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return box;
}

static double part_s(struct maq_passes *p, const struct maq_pass_batch *b, enum maq_serve_part part)
{
    struct maq_pass_parts parts = {0};
    maq_pass_add(p, 0, b, &parts);
    return parts.ns[part] * 1e-9;
}

static double experts_s(struct maq_passes *p, int64_t tokens)
{
    const struct maq_pass_batch b = {
        .tokens = tokens, .padded = tokens, .sampled = 1, .decodes = tokens, .queries = 1, .decode_keys = {tokens}};
    return part_s(p, &b, MAQ_SERVE_EXPERTS);
}

/*
 * Sixteen tokens of 8 experts each choose 82 of 128 in the mean: the kernel reads so many, and takes 0.64 of what it takes where all
 * are read, more or less what does not depend on that. Dealt evenly they would choose all 128.
 */
static void test_experts_that_are_read(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("qwen3-30b-a3b", "h100-sxm:8", 1);
    const struct maq_serve_options o = {.engine = MAQ_ENGINE_VLLM};
    struct maq_arena arena;
    struct maq_passes p;
    maq_arena_init(&arena, 0);
    assert_int_equal(maq_passes_init(&p, maq_job_get(job), &o, MOST, &arena), MAQ_OK);
    double all = experts_s(&p, 256), last = 0;
    for (int64_t tokens = 1; tokens <= 256; tokens *= 2) { /* more tokens never take less */
        double s = experts_s(&p, tokens);
        assert_true(s >= last);
        last = s;
    }
    double read = 1 - pow(1 - 8.0 / 128, 16), s = experts_s(&p, 16);
    assert_true(fabs(read - 0.644) < 0.001);
    assert_true(s > 0.85 * read * all && s < 1.15 * read * all);
    maq_arena_fini(&arena);
    maq_job_free(job);
}

static double skewed_s(double skew, int32_t ep, int64_t tokens)
{
    struct maq_loaded_job *job = load("qwen3-30b-a3b", "h100-sxm:8", ep);
    const struct maq_serve_options o = {.engine = MAQ_ENGINE_VLLM, .ep = ep, .expert_skew = skew};
    struct maq_arena arena;
    struct maq_passes p;
    maq_arena_init(&arena, 0);
    assert_int_equal(maq_passes_init(&p, maq_job_get(job), &o, MOST, &arena), MAQ_OK);
    double s = experts_s(&p, tokens);
    maq_arena_fini(&arena);
    maq_job_free(job);
    return s;
}

/*
 * Where experts are not alike in how often they are chosen, a batch reads fewer of them: of 16 tokens (1 + 16 * 0.0645)^-1, a half, are not
 * read with a deviation as large as the mean, where by chance it is 0.36. And ranks that have some each wait for the busiest.
 */
static void test_popular_experts(void **state)
{
    (void)state;
    double last = INFINITY;
    for (int i = 0; i <= 8; i++) {
        double s = skewed_s(i / 4.0, 1, 16);
        assert_true(s <= last);
        last = s;
    }
    double read = 1 - 1 / (1 - 16 * log1p(-8.0 / 128)), s = skewed_s(1, 1, 16), all = skewed_s(0, 1, 256);
    assert_true(fabs(read - 0.508) < 0.001);
    assert_true(s > 0.85 * read * all && s < 1.2 * read * all);
    assert_true(fabs(skewed_s(1e-4, 8, 64) / skewed_s(0, 8, 64) - 1) < 1e-6);
    assert_true(skewed_s(1, 8, 2048) > 1.1 * skewed_s(0, 8, 2048));
    assert_true(skewed_s(1, 1, 2048) <= skewed_s(0, 1, 2048));
}

static double comm_s(const char *model, const char *version, enum maq_engine engine, int32_t tp, int64_t tokens)
{
    struct maq_loaded_job *job = load(model, "h200:8", tp);
    const struct maq_serve_options o = {.engine = engine, .version = version};
    struct maq_arena arena;
    struct maq_passes p;
    const struct maq_pass_batch b = {
        .tokens = tokens, .padded = tokens, .sampled = 1, .decodes = tokens, .queries = 1, .decode_keys = {tokens}};
    maq_arena_init(&arena, 0);
    assert_int_equal(maq_passes_init(&p, maq_job_get(job), &o, MOST, &arena), MAQ_OK);
    double s = part_s(&p, &b, MAQ_SERVE_COMM);
    maq_arena_fini(&arena);
    maq_job_free(job);
    return s;
}

/* Ranks that have some of the heads each need the others' for a norm over all of them: one more sum a layer of MiniMax's, of OLMo's all heads. */
static void test_norms_over_all_heads(void **state)
{
    (void)state;
    for (int32_t tp = 2; tp <= 8; tp *= 2) {
        double wide = comm_s("minimax-m2", "0.18.0", MAQ_ENGINE_VLLM, tp, 8),
               plain = comm_s("qwen3-235b-a22b", "0.18.0", MAQ_ENGINE_VLLM, tp, 8);
        /* 62 layers with three sums, and 94 with two of a third more bytes, at the latency of a sum all of them */
        assert_true(wide / 62 / 3 > 0.7 * plain / 94 / 2 && wide / 62 / 3 < 1.1 * plain / 94 / 2);
    }
    assert_true(comm_s("minimax-m2", "0.18.0", MAQ_ENGINE_VLLM, 1, 8) <= 0);
    double few = comm_s("olmo-2-7b", "0.18.0", MAQ_ENGINE_VLLM, 4, 16),
           many = comm_s("olmo-2-7b", "0.18.0", MAQ_ENGINE_VLLM, 4, 2048),
           other = comm_s("llama-2-7b", "0.18.0", MAQ_ENGINE_VLLM, 4, 2048);
    assert_true(many > few);
    assert_true(many > 1.4 * other); /* queries and keys are gathered, each as wide as what two sums have */
}

/* Prompts of one pass are one kernel: more of them take longer, by less than a kernel for each would. */
static void test_prompts_side_by_side(void **state)
{
    (void)state;
    static const char *const models[] = {"llama-3.1-8b", "deepseek-v2-lite", "gpt-oss-20b"};
    for (size_t m = 0; m < MAQ_COUNT(models); m++) {
        struct maq_loaded_job *job = load(models[m], "h100-sxm:8", 1);
        const struct maq_serve_options o = {.engine = MAQ_ENGINE_VLLM};
        struct maq_pass_chunk chunks[16];
        struct maq_arena arena;
        struct maq_passes p;
        maq_arena_init(&arena, 0);
        assert_int_equal(maq_passes_init(&p, maq_job_get(job), &o, MOST, &arena), MAQ_OK);
        for (int i = 0; i < 16; i++)
            chunks[i] = (struct maq_pass_chunk){64, i % 2 ? 256 : 0};
        double one = 0, last = 0;
        for (uint32_t n = 1; n <= 16; n *= 2) {
            const struct maq_pass_batch b = {
                .tokens = 64 * n, .padded = 64 * n, .sampled = n, .queries = 1, .chunks = chunks, .n_chunks = n};
            double s = part_s(&p, &b, MAQ_SERVE_ATTENTION);
            assert_true(s > last);
            one = n == 1 ? s : one;
            last = s;
        }
        assert_true(last < 12 * one);
        /* a prompt of one token beside others, and alone */
        chunks[0].queries = 1;
        const struct maq_pass_batch b = {
            .tokens = 1, .padded = 1, .sampled = 1, .queries = 1, .chunks = chunks, .n_chunks = 1};
        double least = part_s(&p, &b, MAQ_SERVE_ATTENTION);
        assert_true(least > 0 && least <= 1.5 * one);
        maq_arena_fini(&arena);
        maq_job_free(job);
    }
}

static double attention_s(const struct maq_serve_options *o, const char *device, int64_t decodes, int64_t prompt)
{
    struct maq_loaded_job *job = load("llama-3.1-8b", device, 1);
    struct maq_arena arena;
    struct maq_passes p;
    const struct maq_pass_chunk chunk = {prompt, 0};
    const struct maq_pass_batch b = {.tokens = decodes + prompt,
                                     .padded = decodes + prompt,
                                     .sampled = decodes,
                                     .decodes = decodes,
                                     .queries = 1,
                                     .decode_keys = {decodes * 1024},
                                     .chunks = &chunk,
                                     .n_chunks = prompt > 0};
    maq_arena_init(&arena, 0);
    assert_int_equal(maq_passes_init(&p, maq_job_get(job), o, MOST, &arena), MAQ_OK);
    double s = part_s(&p, &b, MAQ_SERVE_ATTENTION);
    maq_arena_fini(&arena);
    maq_job_free(job);
    return s;
}

/* What 128 that decode take of a pass of 32 layers beside a prompt, over what they take alone. */
static double beside_a_prompt(const struct maq_serve_options *o, const char *device)
{
    return (attention_s(o, device, 128, 256) - attention_s(o, device, 0, 256)) / attention_s(o, device, 128, 0);
}

/*
 * FlashAttention 2 packs the heads that share a key only where all sequences have one query. LLMServingSim's profile of vLLM 0.19 has 128 that decode with
 * 1,024 keys at 405 us a layer alone and 672 beside 16 tokens of a prompt, an RTX 4090's at 606 and 1,428.
 */
static void test_decodes_beside_prompts(void **state)
{
    (void)state;
    const struct maq_serve_options vllm = {.engine = MAQ_ENGINE_VLLM, .version = "0.19.0"},
                                   first = {.engine = MAQ_ENGINE_VLLM, .version = "0.7.3"},
                                   narrow = {.engine = MAQ_ENGINE_VLLM, .version = "0.19.0", .kv_fp8 = true},
                                   trtllm = {.engine = MAQ_ENGINE_TRTLLM};
    double pro = beside_a_prompt(&vllm, "rtx-pro-6000-server:1"), geforce = beside_a_prompt(&vllm, "rtx-4090:1");
    print_message("# %g and %g times\n", pro, geforce);
    assert_true(fabs(pro / (672.0 / 405) - 1) < 0.2);
    assert_true(fabs(geforce / (1428.0 / 606) - 1) < 0.2);
    assert_true(beside_a_prompt(&vllm, "a100-80gb:1") > 1.5);
    /* FlashAttention 3, engines and releases with a kernel for each, and a cache that it does not take */
    assert_true(beside_a_prompt(&vllm, "h100-sxm:1") < 1.1);
    assert_true(beside_a_prompt(&first, "a100-80gb:1") < 1.1);
    assert_true(beside_a_prompt(&trtllm, "a100-80gb:1") < 1.1);
    assert_true(beside_a_prompt(&narrow, "rtx-pro-6000-server:1") < 1.1);
}

/* TensorRT-LLM's attention of prompts in 8 bits, where the cache is: twice the rate of the matrix units, and the exponentials as before. */
static void test_prompts_in_8_bits(void **state)
{
    (void)state;
    const struct maq_serve_options wide = {.engine = MAQ_ENGINE_TRTLLM},
                                   narrow = {.engine = MAQ_ENGINE_TRTLLM, .kv_fp8 = true},
                                   first = {.engine = MAQ_ENGINE_TRTLLM, .version = "0.17", .kv_fp8 = true};
    double is = attention_s(&narrow, "l40s:1", 0, MOST) / attention_s(&wide, "l40s:1", 0, MOST),
           was = attention_s(&first, "l40s:1", 0, MOST) / attention_s(&wide, "l40s:1", 0, MOST);
    print_message("# %g, before %g\n", is, was);
    assert_true(is > 0.5 && is < 0.75);
    assert_true(was > 0.9 && was < 1.1);
    assert_true(attention_s(&narrow, "l40s:1", 64, 0) <= attention_s(&first, "l40s:1", 64, 0));
}

/* Mixers of the first stage, kernel by kernel. */
static double mixers_ns(const struct maq_passes *p, const struct maq_pass_batch *b)
{
    struct maq_pass_parts parts = {0};
    for (uint32_t k = 0; k < p->stages[0].n_layers; k++)
        maq_pass_mixer(p, p->stages[0].layers[k].layer, p->stages[0].layers[k].count, b, MAQ_MIXER_WHOLE, &parts);
    return parts.ns[MAQ_SERVE_ATTENTION] + parts.ns[MAQ_SERVE_COMM];
}

/* What maq_pass_add() makes of the same batch, beyond what it makes of its tokens. */
static double added_ns(struct maq_passes *p, const struct maq_pass_batch *b)
{
    struct maq_pass_parts with = {0}, layers = {0};
    maq_pass_add(p, 0, b, &with);
    maq_pass_layers(p, &p->stages[0], MAQ_PASS_WHOLE, b->padded, false, &layers);
    return with.ns[MAQ_SERVE_ATTENTION] + with.ns[MAQ_SERVE_COMM] - layers.ns[MAQ_SERVE_ATTENTION] -
           layers.ns[MAQ_SERVE_COMM];
}

static void expect_near(double got, double want, double within, const char *model, int64_t keys)
{
    if (fabs(got - want) > within * want)
        fail_msg("%s, %lld keys: %.9g in place of %.9g ns", model, (long long)keys, got, want);
}

/* Prices that are kept are those of the kernels at every sixteenth key, and near to them in between; beside prompts as alone. */
static void test_kept_prices(void **state)
{
    (void)state;
    static const char *const models[] = {"llama-3.1-8b", "deepseek-v2-lite", "gpt-oss-20b", "qwen3-next-80b-a3b"};
    const struct maq_pass_chunk chunk = {300, 1000};
    for (size_t m = 0; m < MAQ_COUNT(models); m++) {
        struct maq_loaded_job *job = load(models[m], "h100-sxm:8", 1);
        const struct maq_serve_options o = {.engine = MAQ_ENGINE_VLLM};
        struct maq_arena arena;
        struct maq_passes p;
        maq_arena_init(&arena, 0);
        assert_int_equal(maq_passes_init(&p, maq_job_get(job), &o, MOST, &arena), MAQ_OK);
        for (int again = 0; again < 2; again++)
            for (int64_t n = 1; n <= 200; n = 3 * n + 1)
                for (int64_t keys = 1; keys < 40000; keys = keys < 64 ? keys + 5 : 16 * (keys / 11)) {
                    struct maq_pass_batch b = {.tokens = n, .padded = n, .decodes = n, .queries = 1};
                    for (uint32_t w = 0; w < p.n_windows; w++)
                        b.decode_keys[w] = n * maq_pass_keys(&p, w, keys);
                    double alone = mixers_ns(&p, &b), exact = keys % MAQ_PASS_KEY_STEP == 0 ? 1e-9
                                                              : keys < 64                   ? 2e-2
                                                                                            : 4e-3;
                    expect_near(added_ns(&p, &b), alone, exact, models[m], keys);
                    b.chunks = &chunk;
                    b.n_chunks = 1;
                    b.tokens = b.padded = n + chunk.queries;
                    expect_near(added_ns(&p, &b), mixers_ns(&p, &b), exact, models[m], keys);
                }
        maq_arena_fini(&arena);
        maq_job_free(job);
    }
}

/* What the power limit takes off a product goes by its share of what its own type reaches: in a run of minutes a product in 4 bits of few
 * rows, which memory bounds, is as long as in a loop; and runs of minutes are between loops and weeks. */
static void test_power(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("llama-3.1-8b", "b200:8", 1);
    struct maq_device device = maq_job_get(job)->cluster.groups[0].device, *d = &device;
    device.l2_bps = device.mem_bps; /* what a loop found in the cache is another difference (test_cost_fitted.c) */
    const struct maq_costs loop = {.library = MAQ_LIBRARY_TRTLLM, .burst = true},
                           minutes = {.library = MAQ_LIBRARY_TRTLLM, .short_run = true},
                           weeks = {.library = MAQ_LIBRARY_TRTLLM};
    for (int64_t m = 16; m <= 16384; m *= 4)
        for (int t = 0; t < 3; t++) {
            const int types[] = {MAQ_BF16, MAQ_FP8, MAQ_FP4};
            const struct maq_op op = {.kind = MAQ_OP_GEMM, .dtype = (uint8_t)types[t], .d = {m, 8192, 8192, 1}};
            double a = maq_cost_op(&loop, &op, d).seconds, b = maq_cost_op(&minutes, &op, d).seconds,
                   c = maq_cost_op(&weeks, &op, d).seconds;
            assert_true(a <= b * (1 + 1e-12) && b <= c * (1 + 1e-12));
            if (types[t] == MAQ_FP4 && m <= 256)
                assert_true(c < 1.02 * a);
        }
    maq_job_free(job);
}

/* Seconds that sampling takes of `rows` rows of 131,072 entries on `device`. */
static double sampling_s(const char *device, int64_t rows, const struct maq_serve_options *o)
{
    struct maq_loaded_job *job = load("mistral-nemo-12b", device, 1);
    struct maq_arena arena;
    struct maq_passes p;
    struct maq_pass_parts parts = {0};
    maq_arena_init(&arena, 0);
    assert_int_equal(maq_passes_init(&p, maq_job_get(job), o, MOST, &arena), MAQ_OK);
    assert_int_equal(p.job->model.vocab, 131072);
    maq_pass_sample(&p, rows, &parts);
    maq_arena_fini(&arena);
    maq_job_free(job);
    return parts.ns[MAQ_SERVE_SAMPLING] * 1e-9;
}

/* What vLLM's developers measured of the filters alone on a B200, ms (vllm-project/vllm#40376); what else a token takes is in both. */
static void test_filters(void **state)
{
    (void)state;
    static const struct {
        const char *version;
        int64_t rows;
        double top_p, ms;
    } measured[] = {{"0.12.0", 128, 0.9, 2.318},
                    {"0.12.0", 512, 0.9, 6.150},
                    {"0.17.0", 512, 0.9, 2.013},
                    {"0.20.0", 512, 0.9, 0.372},
                    {"0.20.0", 128, 0.9, 0.139}};
    for (size_t i = 0; i < MAQ_COUNT(measured); i++) {
        struct maq_serve_options o = {.engine = MAQ_ENGINE_VLLM, .version = measured[i].version, .temperature = 0.8};
        double without = sampling_s("b200:1", measured[i].rows, &o);
        o.top_p = measured[i].top_p;
        double with = sampling_s("b200:1", measured[i].rows, &o), off = (with - without) * 1e3 / measured[i].ms - 1;
        if (fabs(off) > (measured[i].ms < 1 ? 0.35 : 0.1))
            fail_msg("vllm %s, %lld rows: %.3f ms, measured %.3f", o.version, (long long)measured[i].rows,
                     (with - without) * 1e3, measured[i].ms);
    }
}

/* Greedy sampling heeds neither; top_p of 1 and top_k of 0 keep all; top_k alone is not sorted from 0.8 on. */
static void test_what_filters(void **state)
{
    (void)state;
    struct maq_serve_options greedy = {.engine = MAQ_ENGINE_VLLM, .version = "0.12.0"}, filtered = greedy, all = greedy,
                             first = greedy;
    filtered.top_p = 0.9;
    all.temperature = 1, all.top_p = 1;
    assert_true(sampling_s("h100-sxm:1", 64, &greedy) == sampling_s("h100-sxm:1", 64, &filtered));
    double random = sampling_s("h100-sxm:1", 64, &all);
    assert_true(random > sampling_s("h100-sxm:1", 64, &greedy));
    all.top_k = 50;
    double selected = sampling_s("h100-sxm:1", 64, &all);
    all.top_p = 0.9;
    assert_true(selected > random && selected < 1.8 * random && sampling_s("h100-sxm:1", 64, &all) > 3 * random);
    first.version = "0.6.3", first.temperature = 1, first.top_k = 50;
    assert_true(sampling_s("h100-sxm:1", 64, &first) > 3 * random);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_experts_that_are_read),
        cmocka_unit_test(test_popular_experts),
        cmocka_unit_test(test_norms_over_all_heads),
        cmocka_unit_test(test_kept_prices),
        cmocka_unit_test(test_prompts_side_by_side),
        cmocka_unit_test(test_decodes_beside_prompts),
        cmocka_unit_test(test_prompts_in_8_bits),
        cmocka_unit_test(test_power),
        cmocka_unit_test(test_filters),
        cmocka_unit_test(test_what_filters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
