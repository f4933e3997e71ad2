/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_lora.c - LoRA adapters by request: what slots hold, what an iteration waits for, and what requests draw.
 *
 *   - bytes of a slot counted by hand, as vLLM and SGLang shape their buffers: dense and with experts, whole and cut, more ranks than KV heads
 *   - slots for which nobody asks change nothing but the memory that they take
 *   - as many slots as adapters: each is copied and read once. One slot and no host beyond it: nobody runs beside another adapter's requests
 *   - a batch with an adapter takes longer, with several of them longer still
 *   - iterations at once have the outcome of one by one, to the bit
 *   - requests that are drawn follow their law
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "serve_jobs.h"

static struct maq_serve_result *plan(const struct maq_loaded_job *job, const struct maq_serve_options *o)
{
    struct maq_serve_result *r = NULL;
    struct maq_diag *diag = maq_diag_new();
    if (maq_serve_plan(&r, maq_job_get(job), o, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return r;
}

static double slots_of(const char *model, const char *degrees, const struct maq_serve_options *o)
{
    struct maq_loaded_job *job = load(model, "h200:8", degrees, 8);
    struct maq_serve_result *r = plan(job, o);
    double bytes = r->memory[MAQ_SERVE_MEM_LORA];
    maq_serve_free(r);
    maq_job_free(job);
    return bytes;
}

/* ---- memory ---- */

/* A layer of Llama 3.1 8B: hidden 4096, 32 heads and 8 KV heads of 128, FFN 14336; numbers of A and B for rank 1. */
static double llama_layer(double tp)
{
    double q = 4096 / tp, kv = 2 * 128 * (8 / tp > 1 ? 8 / tp : 1);
    return 3 * 4096 + q + kv       /* q, k and v: A whole, B cut */
           + 4096 / tp + 4096      /* o: A cut, B whole */
           + 2 * 4096 + 28672 / tp /* gate and up */
           + 14336 / tp + 4096;    /* down */
}

static void test_slots_by_hand(void **state)
{
    (void)state;
    struct maq_serve_options o = {.lora = {.enabled = true, .max_loras = 3, .max_lora_rank = 64}};
    expect_close(slots_of("llama-3.1-8b", "", &o), 3.0 * 64 * 2 * 32 * llama_layer(1), 1e-12, "tp 1");
    expect_close(slots_of("llama-3.1-8b", ", tp: 4", &o), 3.0 * 64 * 2 * 32 * llama_layer(4), 1e-12, "tp 4");
    expect_close(slots_of("llama-3.1-8b", ", pp: 2", &o), 3.0 * 64 * 2 * 16 * llama_layer(1), 1e-12, "pp 2");
    o.lora.targets = "q_proj,v_proj";
    expect_close(slots_of("llama-3.1-8b", "", &o), 3.0 * 64 * 2 * 32 * (2 * 4096 + 4096 + 1024), 1e-12, "q and v");
    o.engine = MAQ_ENGINE_SGLANG;
    expect_close(slots_of("llama-3.1-8b", "", &o), 3.0 * 64 * 2 * 32 * (2 * 4096 + 4096 + 1024), 1e-12, "sglang");
    /* Llama 3.1 70B at TP 8 has a KV head a rank: hidden 8192, FFN 28672, 80 layers; vLLM's defaults: a slot of rank 16 */
    o = (struct maq_serve_options){.lora = {.enabled = true}};
    double layer = 3 * 8192 + 8192 / 8.0 + 256 + 8192 / 8.0 + 8192 + 2 * 8192 + 2 * 28672 / 8.0 + 28672 / 8.0 + 8192;
    expect_close(slots_of("llama-3.1-70b", ", tp: 8", &o), 16.0 * 2 * 80 * layer, 1e-12, "70B");
}

static void test_experts_by_hand(void **state)
{
    (void)state;
    /* Qwen3-30B-A3B: 48 layers, hidden 2048, 32 heads and 4 KV heads of 128, 128 experts of 768 */
    struct maq_serve_options o = {.lora = {.enabled = true}, .ep = 1};
    double attention = 3 * 2048 + 4096 + 1024 + 4096 + 2048, expert = 2 * 2048 + 2 * 768 + 768 + 2048;
    expect_close(slots_of("qwen3-30b-a3b", "", &o), 16.0 * 2 * 48 * (attention + 128 * expert), 1e-12, "experts");
    o.engine = MAQ_ENGINE_SGLANG; /* experts only where they are among the targets, which is not modelled */
    o.lora.max_loras = 1;
    expect_close(slots_of("qwen3-30b-a3b", "", &o), 16.0 * 2 * 48 * attention, 1e-12, "attention alone");
}

/* ---- requests ---- */

#define REQUESTS 60u

static struct maq_requests even_requests(struct maq_request *list, uint32_t n, uint32_t adapters, double gap)
{
    for (uint32_t i = 0; i < n; i++)
        list[i] = (struct maq_request){
            .arrival_s = i * gap, .prompt = 100, .output = 30, .adapter = adapters > 0 ? 1 + i % adapters : 0};
    return (struct maq_requests){.at = list, .n = n};
}

static void test_slots_for_nobody(void **state)
{
    (void)state;
    static struct maq_request list[REQUESTS];
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    for (int engine = 0; engine < MAQ_ENGINE_COUNT; engine++) {
        const struct maq_requests q = even_requests(list, REQUESTS, 0, 0.01);
        struct maq_serve_options o = {.engine = (enum maq_engine)engine, .blocks = 4000};
        struct maq_serve_result *without = serve(job, &o, &q);
        o.lora = (struct maq_lora_options){.enabled = true, .max_loras = 2};
        struct maq_serve_result *with = serve(job, &o, &q);
        expect_same(without, with, 0);
        assert_false(without->lora.known);
        assert_true(with->lora.known && with->lora.requests == 0 && with->lora.copies == 0);
        assert_true(with->memory[MAQ_SERVE_MEM_LORA] > 0 && without->memory[MAQ_SERVE_MEM_LORA] <= 0);
        maq_serve_free(without);
        maq_serve_free(with);
    }
    maq_job_free(job);
}

static void test_each_is_fetched_once(void **state)
{
    (void)state;
    static struct maq_request list[REQUESTS];
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    const struct maq_requests q = even_requests(list, REQUESTS, 5, 0.02);
    struct maq_serve_options o = {.lora = {.enabled = true, .max_loras = 5}};
    struct maq_serve_result *r = serve(job, &o, &q);
    assert_int_equal(r->lora.adapters, 5);
    assert_int_equal(r->lora.requests, REQUESTS);
    assert_int_equal(r->lora.copies, 5);
    assert_int_equal(r->lora.reads, 5);
    expect_close(r->lora.copy_s * 1e3,
                 5 * r->lora.adapter_bytes / maq_job_get(job)->cluster.groups[0].device.host_copy_bps * 1e3, 1e-9,
                 "copies");
    /* two slots: who has one keeps it as long as its requests come, so that each is still copied once, and the last waits */
    o.lora = (struct maq_lora_options){.enabled = true, .max_loras = 2, .max_cpu_loras = 5};
    struct maq_serve_result *few = serve(job, &o, &q);
    assert_int_equal(few->lora.reads, 5);
    assert_int_equal(few->lora.copies, 5);
    assert_true(few->ttft_s.mean > r->ttft_s.mean);
    assert_int_equal(few->finished, REQUESTS);
    /* one request after another: none of five in turn finds its adapter in a GPU, all but the first find it in the host's memory */
    static struct maq_request slow[REQUESTS];
    const struct maq_requests alone = even_requests(slow, REQUESTS, 5, 0.5);
    struct maq_serve_result *turns = serve(job, &o, &alone);
    assert_int_equal(turns->lora.reads, 5);
    assert_int_equal(turns->lora.copies, REQUESTS);
    maq_serve_free(turns);
    /* one slot: iterations have one adapter */
    o.lora = (struct maq_lora_options){.enabled = true, .max_loras = 1};
    struct maq_serve_result *one = serve(job, &o, &q);
    assert_true(one->lora.mean_active <= 1 && one->finished == REQUESTS);
    assert_int_equal(one->lora.reads, one->lora.copies);
    maq_serve_free(r);
    maq_serve_free(few);
    maq_serve_free(one);
    maq_job_free(job);
}

/* Long after the first one was fetched, a decode of all of them alone. */
static double tpot_of(const struct maq_loaded_job *job, const struct maq_serve_options *o, uint32_t adapters)
{
    static struct maq_request list[8];
    const struct maq_requests q = even_requests(list, 8, adapters, 0);
    struct maq_serve_result *r = serve(job, o, &q);
    double tpot = r->tpot_s.p50;
    maq_serve_free(r);
    return tpot;
}

static void test_adapters_take_time(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    struct maq_serve_options o = {.lora = {.enabled = true, .max_loras = 8, .max_lora_rank = 128}};
    double none = tpot_of(job, &o, 0), one = tpot_of(job, &o, 1), eight = tpot_of(job, &o, 8);
    assert_true(one > none && eight > one);
    o.lora.max_lora_rank = 8;
    assert_true(tpot_of(job, &o, 8) < eight);
    maq_job_free(job);
}

static void test_at_once_is_one_by_one(void **state)
{
    (void)state;
    static struct maq_request list[REQUESTS];
    struct maq_loaded_job *jobs[] = {load("llama-3.1-8b", "h100-sxm:8", "", 8),
                                     load("llama-3.1-8b", "h100-sxm:8", ", tp: 2", 8)};
    uint64_t copies = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        uint64_t draws = seed;
        struct maq_serve_options o = {.engine = (enum maq_engine)draw(&draws, 0, MAQ_ENGINE_COUNT - 1),
                                      .blocks = draw(&draws, 330, 900),
                                      .async_scheduling = draw(&draws, 0, 1) ? MAQ_ON : MAQ_OFF,
                                      .max_utilization = draw(&draws, 0, 1),
                                      .max_num_seqs = (int32_t)draw(&draws, 2, 64)};
        if (o.engine == MAQ_ENGINE_SGLANG)
            o.blocks *= 16; /* tokens */
        o.lora = (struct maq_lora_options){
            .enabled = true, .max_loras = (int32_t)draw(&draws, 2, 4), .max_cpu_loras = (int32_t)draw(&draws, 4, 6)};
        const struct maq_requests q = draw_requests(list, draw(&draws, 1, REQUESTS), &draws);
        for (uint32_t i = 0; i < q.n; i++)
            list[i].adapter = draw(&draws, 0, 7);
        struct maq_serve_result *b, *a = serve_both_ways(&b, jobs[seed % 2], o, &q, 0);
        assert_int_equal(a->lora.copies, b->lora.copies);
        assert_int_equal(a->lora.reads, b->lora.reads);
        assert_true(a->lora.mean_active <= o.lora.max_loras && a->lora.reads <= a->lora.copies);
        copies += a->lora.copies;
        maq_serve_free(a);
        maq_serve_free(b);
    }
    print_message("%llu copies\n", (unsigned long long)copies);
    assert_true(copies > 500);
    for (size_t i = 0; i < MAQ_COUNT(jobs); i++)
        maq_job_free(jobs[i]);
}

/* ---- what is drawn and read ---- */

static void test_drawn(void **state)
{
    (void)state;
    const struct maq_request_spec plain = {.n = 40000, .rate = 5, .prompt = 10, .output = 3, .spread = 0.5, .seed = 7};
    struct maq_request_spec spec = plain;
    struct maq_request_set *set, *other;
    uint32_t count[5] = {0};
    spec.adapters = 4;
    spec.adapter_zipf = 1;
    spec.adapter_none = 0.25;
    assert_int_equal(maq_requests_generate(&set, &spec, NULL), MAQ_OK);
    assert_int_equal(maq_requests_generate(&other, &plain, NULL), MAQ_OK);
    const struct maq_requests *q = maq_requests_get(set), *p = maq_requests_get(other);
    for (uint32_t i = 0; i < q->n; i++) {
        assert_true(q->at[i].adapter <= 4);
        count[q->at[i].adapter]++;
        assert_int_equal(p->at[i].adapter, 0); /* and all else is as without */
        assert_int_equal(q->at[i].prompt, p->at[i].prompt);
        assert_true(fabs(q->at[i].arrival_s - p->at[i].arrival_s) <= 0);
    }
    double all = 1 + 1 / 2.0 + 1 / 3.0 + 1 / 4.0; /* five standard deviations of a share of 40,000 are 0.0125 at most */
    assert_true(fabs(count[0] / 40000.0 - 0.25) < 0.0125);
    for (int k = 1; k <= 4; k++)
        assert_true(fabs(count[k] / 40000.0 - 0.75 / k / all) < 0.0125);
    maq_requests_free(set);
    maq_requests_free(other);
}

static struct maq_request_set *read_text(const char *text)
{
    char path[] = "/tmp/maq-lora-XXXXXX";
    struct maq_request_set *set = NULL;
    struct maq_diag *diag = maq_diag_new();
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *f = fdopen(fd, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    if (maq_requests_read(&set, path, &(const struct maq_request_reading){.most = 0}, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    remove(path);
    maq_diag_free(diag);
    return set;
}

static void test_read(void **state)
{
    (void)state;
    struct maq_request_set *set =
        read_text("arrival_s,prompt,output,lora\n0,10,2,sql\n1,10,2,\n2,10,2,sql\n3,10,2,3\n4,10,2,0\n");
    const struct maq_request *at = maq_requests_get(set)->at;
    assert_true(at[0].adapter != 0 && at[0].adapter == at[2].adapter);
    assert_true(at[1].adapter == 0 && at[3].adapter == 3 && at[4].adapter == 0);
    uint64_t sql = at[0].adapter;
    maq_requests_free(set);
    set = read_text(
        "{\"prompt\": 10, \"output\": 2, \"adapter\": \"sql\"}\n{\"prompt\": 10, \"output\": 2, \"adapter\": 3}\n"
        "{\"prompt\": 10, \"output\": 2, \"adapter\": null}\n");
    at = maq_requests_get(set)->at;
    assert_true(at[0].adapter == sql && at[1].adapter == 3 && at[2].adapter == 0);
    maq_requests_free(set);
}

static void test_faults(void **state)
{
    (void)state;
    static struct maq_request list[3];
    const struct maq_requests q = even_requests(list, 3, 2, 0);
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    const struct maq_serve_options faulty[] = {
        {.max_num_seqs = 4}, /* no slots at all */
        {.lora = {.enabled = true, .max_loras = 4, .max_cpu_loras = 2}},
        {.lora = {.enabled = true, .targets = "q_proj,no_such"}},
    };
    for (size_t i = 0; i < MAQ_COUNT(faulty); i++) {
        struct maq_serve_result *r = NULL;
        struct maq_diag *diag = maq_diag_new();
        assert_int_equal(maq_serve_run(&r, maq_job_get(job), &faulty[i], &q, diag), MAQ_BAD_INPUT);
        char *told = maq_diag_format(diag, 0, false);
        assert_non_null(told);
        assert_non_null(strstr(told, "MAQ1594"));
        free(told);
        maq_diag_free(diag);
    }
    maq_job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slots_by_hand),
        cmocka_unit_test(test_experts_by_hand),
        cmocka_unit_test(test_slots_for_nobody),
        cmocka_unit_test(test_each_is_fetched_once),
        cmocka_unit_test(test_adapters_take_time),
        cmocka_unit_test(test_at_once_is_one_by_one),
        cmocka_unit_test(test_drawn),
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
