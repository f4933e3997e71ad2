/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools of prefill and decode: the time of a request that nobody disturbs, by hand, for each engine; times of transfers; that requests, bytes and blocks are
 * conserved whatever is drawn; and what is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "effort.h"
#include "failing_alloc.h"
#include "maquette/serve_fleet.h"
#include "serve/codes.h"
#include "serve/engine/batch.h"
#include "serve_jobs.h"

#define MOST 200
#define FREE ((double)INFINITY)

struct pools {
    const struct maq_loaded_job *prefill, *decode;
    struct maq_serve_options p, d;
    uint32_t n_prefill, n_decode;
    struct maq_handover handover;
    enum maq_router router;
    bool apart; /* a cluster for each */
};

static enum maq_status try_pools(struct maq_serve_result **out, const struct pools *x, const struct maq_requests *q,
                                 struct maq_diag *diag)
{
    const struct maq_fleet_member members[] = {
        {.job = maq_job_get(x->prefill), .options = &x->p, .replicas = x->n_prefill, .role = MAQ_ROLE_PREFILL},
        {.job = maq_job_get(x->decode),
         .options = &x->d,
         .replicas = x->n_decode,
         .role = MAQ_ROLE_DECODE,
         .own_cluster = x->apart}};
    const struct maq_fleet fleet = {.members = members,
                                    .n_members = 2,
                                    .router = x->router,
                                    .prefill_router = x->router,
                                    .seed = 3,
                                    .handover = x->handover};
    return maq_fleet_run(out, &fleet, q, diag);
}

static struct maq_serve_result *run(const struct pools *x, const struct maq_requests *q)
{
    struct maq_serve_result *r = NULL;
    struct maq_diag *diag = maq_diag_new();
    if (try_pools(&r, x, q, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return r;
}

static struct pools one_each(const struct maq_loaded_job *job, enum maq_engine engine)
{
    struct pools x = {.prefill = job, .decode = job, .n_prefill = 1, .n_decode = 1};
    x.p.engine = x.d.engine = engine;
    x.p.front_end = x.d.front_end = MAQ_FRONT_END_NONE; /* no tokens of others are written */
    return x;
}

/* ---- by hand ---- */

/* What an engine takes for the steps of one request, or of `batch` that go on together. */
struct times {
    double arrive_s, host_s, respond_s, stream_s, prefill_s, decode_s, first_decode_s;
};

static struct times times_of(const struct maq_loaded_job *job, const struct maq_serve_options *o, int64_t batch,
                             int64_t prompt, int64_t output)
{
    struct maq_deployment d;
    struct maq_serve_batch whole, last;
    assert_int_equal(maq_deployment_init(&d, maq_job_get(job), o, NULL), MAQ_OK);
    double speed = maq_device_host_speed(d.device);
    double token_s = d.host.arrive_token_s + d.host.enter_token_s + d.host.tokenize_s;
    struct times t = {.arrive_s = (d.host.arrive_s + d.host.enter_s + token_s * (double)prompt) / speed,
                      .host_s = maq_batch_host_s(&d, (uint32_t)batch),
                      .respond_s = d.host.respond_s / speed,
                      .stream_s = d.host.stream_s / speed};
    maq_deployment_fini(&d);
    assert_int_equal(maq_serve_static(&whole, maq_job_get(job), o, batch, prompt, output, NULL), MAQ_OK);
    assert_int_equal(maq_serve_static(&last, maq_job_get(job), o, batch, prompt - 1, 2, NULL), MAQ_OK);
    t.prefill_s = whole.prefill_s;
    t.decode_s = whole.decode_s;      /* of all tokens but the first */
    t.first_decode_s = last.decode_s; /* of the last token of the prompt again */
    return t;
}

/*
 * Transfers are free, and nobody else is there. With vLLM a request goes to prefill, back, and to decode, which computes a token to have the first one; with
 * TensorRT-LLM decode has that token when it hears of the request; with SGLang it hears of it with prefill.
 */
static void test_alone(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    for (int e = 0; e < MAQ_ENGINE_COUNT; e++) {
        struct pools x = one_each(job, (enum maq_engine)e);
        struct maq_request list[3];
        x.p.front_end = x.d.front_end = MAQ_FRONT_END_DYNAMO;
        x.handover.bps = FREE;
        for (uint32_t i = 0; i < 3; i++)
            list[i] = (struct maq_request){.arrival_s = 10 * i, .prompt = 1500, .output = 100};
        const struct maq_requests q = {.at = list, .n = 3};
        struct maq_serve_result *r = run(&x, &q);
        const struct times t = times_of(job, &x.d, 1, 1500, 100);
        double prefill = t.arrive_s + t.host_s + t.prefill_s, ttft = 0, rest = 0;
        if (e == MAQ_ENGINE_VLLM)
            ttft = prefill + t.respond_s + t.arrive_s + t.host_s + t.first_decode_s + t.respond_s + t.stream_s;
        if (e == MAQ_ENGINE_SGLANG)
            ttft = prefill + t.respond_s;
        if (e == MAQ_ENGINE_TRTLLM)
            ttft = prefill + t.respond_s + t.arrive_s + t.respond_s;
        rest = t.decode_s + (e == MAQ_ENGINE_VLLM ? 0 : t.host_s + t.stream_s);
        for (uint32_t i = 0; i < 3; i++) {
            const struct maq_served *s = &r->served[i];
            expect_close(s->first_s - s->arrival_s, ttft, 1e-6, maq_engine_name((enum maq_engine)e));
            expect_close(s->last_s - s->first_s, rest, 1e-5, "tokens behind the first");
            assert_true(r->pools->handed[i].ends_s == r->pools->handed[i].begins_s);
        }
        maq_serve_free(r);
    }
    maq_job_free(job);
}

/* Eight prompts at once in one pass of prefill; they go on as a batch of eight. */
static void test_batch(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    struct pools x = one_each(job, MAQ_ENGINE_SGLANG);
    struct maq_request list[8];
    x.handover.bps = FREE;
    x.p.async_scheduling = x.d.async_scheduling = MAQ_OFF;
    for (uint32_t i = 0; i < 8; i++)
        list[i] = (struct maq_request){.prompt = 900, .output = 50};
    list[0].prompt = 900;
    const struct maq_requests q = {.at = list, .n = 8};
    struct maq_serve_result *r = run(&x, &q);
    struct times t = times_of(job, &x.d, 8, 900, 50);
    for (uint32_t i = 1; i < 8; i++) /* the first one is in a prefill of its own, since they enter one after another */
        expect_close(r->served[i].last_s, r->served[7].last_s, 1e-12, "they end together");
    expect_close(r->served[7].last_s - r->served[7].first_s, t.decode_s, 0.03, "tokens of a batch");
    maq_serve_free(r);
    maq_job_free(job);
}

/* ---- transfers ---- */

static double bytes_of_llama_8b(int64_t prompt, int32_t block)
{
    int64_t tokens = (prompt + block - 1) / block * block;
    return (double)tokens * 32 * 8 * (128 + 128) * 2;
}

struct transfer_case {
    const char *plan_p, *plan_d;
    double ports_p, ports_d; /* that work side by side */
};

/* One at a time: whole blocks over as many ports as the side has that has fewer; and what is sent is what was written. */
static void test_time_of_a_transfer(void **state)
{
    static const struct transfer_case cases[] = {{"", "", 1, 1},
                                                 {", tp: 4", ", tp: 4", 4, 4},
                                                 {", tp: 2", ", tp: 8", 2, 8},
                                                 {", tp: 8", ", tp: 2", 8, 2},
                                                 {", tp: 2, pp: 2", ", tp: 2", 4, 2},
                                                 {", tp: 4", ", tp: 2, pp: 2", 4, 4}};
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct maq_loaded_job *p = load("llama-3.1-8b", "h100-sxm:8", cases[c].plan_p, 8),
                              *d = load("llama-3.1-8b", "h100-sxm:8", cases[c].plan_d, 8);
        struct pools x = {.prefill = p, .decode = d, .n_prefill = 1, .n_decode = 1, .apart = true};
        struct maq_request list[2] = {{.prompt = 5000, .output = 3}, {.arrival_s = 10, .prompt = 77, .output = 3}};
        const struct maq_requests q = {.at = list, .n = 2};
        x.handover = (struct maq_handover){.bps = 1e9, .latency_s = 1e-3};
        struct maq_serve_result *r = run(&x, &q);
        double ports = fmin(cases[c].ports_p, cases[c].ports_d);
        for (uint32_t i = 0; i < 2; i++) {
            const struct maq_handed *h = &r->pools->handed[i];
            double bytes = bytes_of_llama_8b(list[i].prompt, 16);
            expect_close(h->bytes, bytes, 1e-12, "bytes");
            expect_close(h->written_bytes, bytes, 1e-12, "written");
            expect_close(h->ends_s - h->begins_s, 1e-3 + bytes / (ports * 1e9), 1e-9, "time of a transfer");
        }
        expect_close(r->pools->bytes, r->pools->handed[0].bytes + r->pools->handed[1].bytes, 1e-12, "sum of bytes");
        expect_close(r->pools->bps, ports * 1e9, 1e-9, "bandwidth");
        maq_serve_free(r);
        maq_job_free(p);
        maq_job_free(d);
    }
}

/* The clusters' own ports: NICs between nodes, the scale-up link in one. */
static void test_ports_of_clusters(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8, rail 400G", ", tp: 4", 8),
                          *wide = load("llama-3.1-8b", "h100-sxm:8 x 2, rail 400G", ", tp: 8", 16);
    struct pools near = one_each(job, MAQ_ENGINE_VLLM), far = one_each(wide, MAQ_ENGINE_VLLM);
    struct maq_request request = {.prompt = 4096, .output = 2};
    const struct maq_requests q = {.at = &request, .n = 1};
    const struct maq_node_group *g = &maq_job_get(job)->cluster.groups[0];
    struct maq_serve_result *a = run(&near, &q), *b = run(&far, &q);
    expect_close(a->pools->bps, 4 * g->domain_bps, 1e-9, "NVLink");
    expect_close(b->pools->bps, 8 * maq_node_group_network_bps(g), 1e-9, "NICs");
    assert_true(maq_node_group_network_bps(g) < 5e10);
    maq_serve_free(a);
    maq_serve_free(b);
    maq_job_free(job);
    maq_job_free(wide);
}

/* Latents are on every rank: decode is sent as many as it has ranks, and prefill has written one. Heads of fewer than ranks likewise. */
static void test_copies(void **state)
{
    (void)state;
    struct maq_loaded_job *p = load("deepseek-v2-lite", "h100-sxm:8", ", tp: 2", 8),
                          *d = load("deepseek-v2-lite", "h100-sxm:8", ", tp: 4", 8);
    struct pools x = {.prefill = p, .decode = d, .n_prefill = 1, .n_decode = 1, .apart = true};
    struct maq_request request = {.prompt = 1600, .output = 2};
    const struct maq_requests q = {.at = &request, .n = 1};
    x.handover.bps = 1e9;
    struct maq_serve_result *r = run(&x, &q);
    double latents = 1600. * 27 * (512 + 64) * 2;
    expect_close(r->pools->written_bytes, latents, 1e-12, "latents that are written");
    expect_close(r->pools->bytes, 4 * latents, 1e-12, "latents that are sent");
    /* each of two ranks sends two copies */
    const struct maq_handed *h = &r->pools->handed[0];
    expect_close(h->ends_s - h->begins_s, 2 * latents / 1e9, 1e-2, "their time");
    maq_serve_free(r);
    maq_job_free(p);
    maq_job_free(d);
}

/* Two that come at once over one port take twice as long, both; over two, as long as one. */
static void test_contention(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    struct maq_request list[2] = {{.prompt = 4096, .output = 2}, {.prompt = 4096, .output = 2}};
    const struct maq_requests q = {.at = list, .n = 2};
    double alone = bytes_of_llama_8b(4096, 16) / 1e8;
    for (uint32_t decodes = 1; decodes <= 2; decodes++) {
        struct pools x = {.prefill = job, .decode = job, .n_prefill = 2, .n_decode = decodes, .handover.bps = 1e8};
        struct maq_serve_result *r = run(&x, &q);
        const struct maq_handed *h = r->pools->handed;
        assert_true(h[0].replica != h[1].replica);
        double apart = h[1].begins_s - h[0].begins_s; /* a request enters after the other */
        assert_true(apart >= 0 && apart < 0.1);
        expect_close(h[0].ends_s - h[0].begins_s, decodes == 1 ? 2 * alone - apart : alone, 1e-3, "the first");
        expect_close(h[1].ends_s - h[0].begins_s, decodes == 1 ? 2 * alone : alone + apart, 1e-3, "the second");
        maq_serve_free(r);
    }
    maq_job_free(job);
}

/*
 * A prompt of four chunks. SGLang sends three of them while others are computed, if the port is fast enough: what is left at the end is the last one.
 * A slow port works from the end of the first chunk on.
 */
static void test_chunks(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    struct maq_request request = {.prompt = 8192, .output = 2};
    const struct maq_requests q = {.at = &request, .n = 1};
    static const double bps[] = {1e11, 1e8};
    for (int i = 0; i < 2; i++) {
        struct pools x = one_each(job, MAQ_ENGINE_SGLANG);
        x.p.max_num_batched_tokens = 2048;
        x.handover = (struct maq_handover){.bps = bps[i], .latency_s = 1e-9};
        struct maq_serve_result *r = run(&x, &q);
        const struct maq_handed *h = &r->pools->handed[0];
        double bytes = bytes_of_llama_8b(8192, 1);
        assert_true(h->begins_s < h->computed_s && r->served[0].scheduled_s < h->begins_s);
        if (i == 0)
            expect_close(h->ends_s - h->computed_s, bytes / 4 / bps[i], 1e-6, "the last chunk");
        else
            expect_close(h->ends_s - h->begins_s, bytes / bps[i], 1e-6, "all chunks");
        assert_true(h->reserved_s <= r->served[0].scheduled_s);
        maq_serve_free(r);
    }
    maq_job_free(job);
}

/* Layer by layer what is left behind the prompt is one layer of 32. */
static void test_layers(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    struct maq_request request = {.prompt = 4096, .output = 2};
    const struct maq_requests q = {.at = &request, .n = 1};
    struct pools x = one_each(job, MAQ_ENGINE_VLLM);
    x.handover = (struct maq_handover){.transfer = MAQ_KV_TRANSFER_LAYER, .bps = 1e11, .latency_s = 1e-9};
    struct maq_serve_result *layer = run(&x, &q);
    x.handover.transfer = MAQ_KV_TRANSFER_PUSH;
    struct maq_serve_result *push = run(&x, &q);
    const struct maq_handed *a = &layer->pools->handed[0], *b = &push->pools->handed[0];
    double bytes = bytes_of_llama_8b(4096, 16);
    expect_close(a->computed_s, b->computed_s, 1e-12, "prefill");
    expect_close(a->ends_s - a->computed_s, bytes / 32 / 1e11, 1e-4, "the last layer");
    expect_close(b->ends_s - b->computed_s, bytes / 1e11 + 1e-9, 1e-6, "all layers");
    maq_serve_free(layer);
    maq_serve_free(push);
    maq_job_free(job);
}

/* ---- by chance ---- */

/* Few: a request has up to 3,400 tokens. */
static int64_t draw_blocks(enum maq_engine engine, int32_t block_size, uint64_t *draws)
{
    int64_t block = block_size ? block_size : engine == MAQ_ENGINE_SGLANG ? 1 : 16, tokens = draw(draws, 3600, 6000);
    return tokens / block + 2;
}

static struct pools draw_pools(const struct maq_loaded_job *job, uint64_t *draws)
{
    static const enum maq_kv_transfer of_vllm[] = {MAQ_KV_TRANSFER_PULL, MAQ_KV_TRANSFER_PUSH, MAQ_KV_TRANSFER_LAYER};
    enum maq_engine engine = (enum maq_engine)draw(draws, 0, MAQ_ENGINE_COUNT - 1);
    struct pools x = {.prefill = job, .decode = job, .n_prefill = draw(draws, 1, 3), .n_decode = draw(draws, 1, 3)};
    x.p = draw_options(draws, engine);
    x.d = draw_options(draws, engine);
    x.d.block_size = x.p.block_size;
    x.p.blocks = x.p.blocks ? draw_blocks(engine, x.p.block_size, draws) : 0;
    x.d.blocks = draw(draws, 0, 2) ? draw_blocks(engine, x.p.block_size, draws) : 0;
    x.p.by_priority = x.d.by_priority;
    x.p.one_by_one = x.d.one_by_one = false;
    if (engine == MAQ_ENGINE_TRTLLM) /* whole prompts */
        x.p.max_num_batched_tokens = 4096;
    x.d.sglang.reserved_decode_tokens = (int32_t)draw(draws, 1, 100);
    x.router = (enum maq_router)draw(draws, 0, MAQ_ROUTER_COUNT - 1);
    x.handover.bps = draw(draws, 0, 4) ? exp2(uniform(draws, 24, 38)) : FREE;
    x.handover.latency_s = draw(draws, 0, 1) ? uniform(draws, 0, 0.01) : 0;
    if (engine == MAQ_ENGINE_VLLM)
        x.handover.transfer = of_vllm[draw(draws, 0, 2)];
    if (engine != MAQ_ENGINE_SGLANG && draw(draws, 0, 2) == 0)
        x.handover.max_local_prefill = draw(draws, 1, (uint32_t)x.d.max_num_batched_tokens);
    return x;
}

static void expect_conserved(const struct maq_serve_result *r, const struct pools *x, const struct maq_requests *q)
{
    const struct maq_serve_pools *p = r->pools;
    double ttft = 0, parts = 0, bytes = 0;
    uint32_t prefills = 0, decodes = 0;
    assert_int_equal(r->finished, q->n);
    assert_int_equal(p->n + p->local, q->n);
    for (uint32_t i = 0; i < q->n; i++) {
        const struct maq_served *s = &r->served[i];
        const struct maq_handed *h = &p->handed[i];
        assert_true(s->arrival_s <= s->scheduled_s && s->scheduled_s < s->first_s && s->first_s <= s->last_s);
        assert_true(s->replica >= x->n_prefill && s->replica < r->n_replicas);
        if (h->local)
            continue;
        assert_true(h->replica < x->n_prefill);
        assert_true(s->scheduled_s < h->computed_s && h->computed_s <= h->ends_s && h->begins_s <= h->ends_s);
        assert_true(h->reserved_s <= h->begins_s && h->ends_s < s->first_s);
        int32_t block = x->d.block_size ? x->d.block_size : x->d.engine == MAQ_ENGINE_SGLANG ? 1 : 16;
        block = x->d.block_size == 0 && x->d.engine == MAQ_ENGINE_TRTLLM ? 32 : block;
        assert_true(h->bytes <= bytes_of_llama_8b(q->at[i].prompt, block) * (1 + 1e-12) && h->bytes > 0);
        expect_close(h->bytes, h->written_bytes, 1e-12, "bytes");
        ttft += s->first_s - s->arrival_s;
        bytes += h->bytes;
    }
    for (int k = 0; k < MAQ_HANDOVER_PART_COUNT; k++) {
        assert_true(p->part_s[k] >= -1e-9);
        parts += p->part_s[k];
    }
    for (uint32_t k = 0; k < r->n_replicas; k++)
        *(k < x->n_prefill ? &prefills : &decodes) += r->replicas[k].requests;
    assert_int_equal(prefills, p->n);
    assert_int_equal(decodes, q->n);
    if (p->n > 0)
        expect_close(parts, ttft / p->n, 1e-9, "parts of the time to the first token");
    expect_close(p->bytes + 1, bytes + 1, 1e-9, "sum of bytes");
}

static struct maq_requests draw_small(struct maq_request *list, uint64_t *draws)
{
    struct maq_requests q = draw_requests(list, draw(draws, 1, 60), draws);
    for (uint32_t i = 0; i < q.n; i++)
        list[i].output = 1 + list[i].output % 400;
    return q;
}

/* Whatever is drawn ends, and is the same whether iterations are done one by one or many at once, and twice the same. */
static void test_conserved(void **state)
{
    (void)state;
    static struct maq_request list[60];
    uint32_t preempted = 0, local = 0; /* runs */
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    for (uint64_t seed = 1; seed <= EFFORT(40, 150, 1500); seed++) {
        uint64_t draws = seed;
        struct pools x = draw_pools(job, &draws);
        const struct maq_requests q = draw_small(list, &draws);
        struct maq_serve_result *a = run(&x, &q), *again = run(&x, &q);
        x.p.one_by_one = x.d.one_by_one = true;
        struct maq_serve_result *b = run(&x, &q);
        expect_conserved(a, &x, &q);
        /* who is preempted behind many at once finds a little less of itself cached: only what nobody looks for is left out there */
        if (a->preemptions == 0 || x.d.no_prefix_caching || x.d.engine != MAQ_ENGINE_VLLM)
            expect_same(a, b, 1e-9);
        assert_memory_equal(a->served, again->served, q.n * sizeof *a->served);
        assert_memory_equal(&a->itl_s, &again->itl_s, sizeof a->itl_s);
        preempted += a->preemptions > 0;
        local += a->pools->local > 0;
        maq_serve_free(a);
        maq_serve_free(again);
        maq_serve_free(b);
    }
    assert_true(preempted > EFFORT(1u, 5u, 50u) && local > EFFORT(1u, 5u, 50u)); /* they have been met */
    maq_job_free(job);
}

/*
 * Little's law, for blocks: the mean of those that prefill has in use is what requests hold times how long they hold it. The engine adds up the one as time goes,
 * the other follows from the times of requests: from the first iteration (a prompt is one here) until it is sent.
 */
static void test_little(void **state)
{
    (void)state;
    enum { N = 150 };
    static struct maq_request list[N];
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    for (int e = 0; e < MAQ_ENGINE_COUNT; e++) {
        struct pools x = one_each(job, (enum maq_engine)e);
        uint64_t draws = 11;
        double at = 0, held = 0, tokens = 0;
        for (uint32_t i = 0; i < N; i++) {
            at += uniform(&draws, 0, 0.8);
            list[i] = (struct maq_request){.arrival_s = at, .prompt = draw(&draws, 100, 3000), .output = 20};
        }
        const struct maq_requests q = {.at = list, .n = N};
        x.p.block_size = x.d.block_size = 16;
        x.p.no_prefix_caching = x.d.no_prefix_caching = true;
        x.handover.bps = 1e9; /* a transfer takes a fifth of a second, a prompt a twentieth */
        struct maq_serve_result *r = run(&x, &q);
        for (uint32_t i = 0; i < N; i++) {
            const struct maq_handed *h = &r->pools->handed[i];
            int64_t whole = (list[i].prompt + 15) / 16 * 16;
            held += (double)whole * (h->ends_s - r->served[i].scheduled_s);
            tokens += (double)list[i].prompt * (h->ends_s - h->computed_s);
        }
        double end = 0;
        for (uint32_t i = 0; i < N; i++)
            end = fmax(end, r->pools->handed[i].ends_s);
        double capacity = (double)r->pools->prefill->kv_tokens;
        expect_close(r->pools->prefill->kv_mean * capacity * end, held, 0.03, "blocks in use");
        expect_close(r->pools->held_share * capacity * r->duration_s, tokens, 1e-6, "of prompts that are computed");
        maq_serve_free(r);
    }
    maq_job_free(job);
}

/*
 * Who decodes is whoever has the fewest requests when a prompt is computed: worked out again from when prompts were computed and requests ended. So nobody who
 * goes ahead of others, or stays behind them, is seen as he was at another time.
 */
static void test_fewest_requests(void **state)
{
    enum { N = 600, K = 3 };
    static struct maq_request list[N];
    (void)state;
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    struct pools x = one_each(job, MAQ_ENGINE_VLLM);
    uint64_t draws = 5;
    uint32_t looked_at = 0;
    double at = 0;
    for (uint32_t i = 0; i < N; i++) {
        at += uniform(&draws, 0, 0.06);
        list[i] =
            (struct maq_request){.arrival_s = at, .prompt = draw(&draws, 100, 2900), .output = draw(&draws, 10, 300)};
    }
    const struct maq_requests q = {.at = list, .n = N};
    x.n_prefill = 2;
    x.n_decode = K;
    x.router = MAQ_ROUTER_LEAST_REQUESTS;
    double respond_s = times_of(job, &x.d, 1, 100, 2).respond_s;
    struct maq_serve_result *r = run(&x, &q);
    for (uint32_t i = 0; i < N; i++) {
        uint32_t load[K] = {0}, best = 0, at_once = 0;
        double t = r->pools->handed[i].computed_s, nearest = 1;
        for (uint32_t j = 0; j < N; j++) {
            double end_s = r->served[j].last_s - respond_s, computed_s = r->pools->handed[j].computed_s;
            load[r->served[j].replica - x.n_prefill] += computed_s < t && end_s > t;
            nearest = fmin(nearest, fabs(end_s - t));
            at_once += fabs(computed_s - t) <= 0;
        }
        for (uint32_t k = 1; k < K; k++)
            best = load[k] < load[best] ? k : best;
        if (at_once > 1 || nearest < 2e-3) /* the host takes a while to see an end */
            continue;
        looked_at++;
        assert_int_equal(r->served[i].replica - x.n_prefill, best);
    }
    assert_true(looked_at > N / 2);
    maq_serve_free(r);
    maq_job_free(job);
}

/* All prompts are short enough for decode: prefill has nothing to do, and decode is a fleet without roles. */
static void test_all_local(void **state)
{
    (void)state;
    static struct maq_request list[60];
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    for (uint64_t seed = 1; seed <= 10; seed++) {
        uint64_t draws = seed;
        struct pools x = one_each(job, MAQ_ENGINE_VLLM);
        const struct maq_requests q = draw_small(list, &draws);
        x.d = draw_options(&draws, MAQ_ENGINE_VLLM);
        x.p.block_size = x.d.block_size;
        x.n_decode = 2;
        x.handover.max_local_prefill = 1 << 20;
        const struct maq_fleet_member both = {.job = maq_job_get(job), .options = &x.d, .replicas = 2};
        const struct maq_fleet fleet = {.members = &both, .n_members = 1, .router = x.router, .seed = 3};
        struct maq_serve_result *a = run(&x, &q), *b = NULL;
        assert_int_equal(maq_fleet_run(&b, &fleet, &q, NULL), MAQ_OK);
        assert_int_equal(a->pools->local, q.n);
        assert_int_equal(a->replicas[0].requests, 0);
        for (uint32_t i = 0; i < q.n; i++)
            a->served[i].replica--;
        for (uint32_t i = 0; i < q.n; i++) {
            expect_close(a->served[i].first_s, b->served[i].first_s, 1e-12, "first token");
            expect_close(a->served[i].last_s, b->served[i].last_s, 1e-12, "last token");
            assert_int_equal(a->served[i].cached, b->served[i].cached);
        }
        assert_int_equal(a->iterations, b->iterations);
        expect_close(a->busy_s, b->busy_s, 1e-9, "busy");
        expect_close(a->itl_s.p99, b->itl_s.p99, 1e-9, "ITL");
        maq_serve_free(a);
        maq_serve_free(b);
    }
    maq_job_free(job);
}

/* Of a long prompt decode has the front: what it has not is short, and it computes that by itself. */
static void test_local_behind_a_prefix(void **state)
{
    (void)state;
    static const uint64_t names[] = {1, 2, 3, 4};
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    struct maq_request list[3];
    for (uint32_t i = 0; i < 3; i++)
        list[i] =
            (struct maq_request){.arrival_s = 10 * i, .prompt = 2200, .output = 5, .n_prefix = 4, .prefix = names};
    list[2].n_prefix = 0;
    const struct maq_requests q = {.at = list, .n = 3, .prefix_unit = 512};
    struct pools x = one_each(job, MAQ_ENGINE_VLLM);
    x.handover.max_local_prefill = 300;
    struct maq_serve_result *r = run(&x, &q);
    assert_false(r->pools->handed[0].local);
    assert_true(r->pools->handed[1].local);
    assert_int_equal(r->served[1].cached, 2048);
    assert_false(r->pools->handed[2].local);
    x.handover.max_local_prefill = 0; /* then it is sent but the front */
    struct maq_serve_result *sent = run(&x, &q);
    assert_false(sent->pools->handed[1].local);
    expect_close(sent->pools->handed[1].bytes, bytes_of_llama_8b(2200, 16) - bytes_of_llama_8b(2048, 16), 1e-12,
                 "the rest");
    maq_serve_free(r);
    maq_serve_free(sent);
    maq_job_free(job);
}

/* Decode has room for one of these at a time: with SGLang prefill waits for that, and nothing else is later. */
static void test_prefill_waits_for_room(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    struct maq_request list[4];
    for (uint32_t i = 0; i < 4; i++)
        list[i] = (struct maq_request){.prompt = 1000, .output = 100};
    const struct maq_requests q = {.at = list, .n = 4};
    struct pools x = one_each(job, MAQ_ENGINE_SGLANG);
    x.d.blocks = 1800;
    x.d.block_size = x.p.block_size = 1;
    struct maq_serve_result *r = run(&x, &q);
    for (uint32_t i = 1; i < 4; i++) {
        assert_true(r->pools->handed[i].reserved_s > r->served[i - 1].last_s - 0.01);
        assert_true(r->served[i].scheduled_s >= r->pools->handed[i].reserved_s);
    }
    assert_true(r->pools->part_s[MAQ_HANDOVER_RESERVE] > r->pools->part_s[MAQ_HANDOVER_PREFILL]);
    x = one_each(job, MAQ_ENGINE_VLLM);
    x.d.blocks = 1200 / 16;
    struct maq_serve_result *v = run(&x, &q);
    for (uint32_t i = 1; i < 4; i++) { /* with vLLM it is the computed prompt that waits */
        assert_true(v->pools->handed[i].reserved_s > v->served[i - 1].last_s - 0.01);
        assert_true(v->pools->handed[i].computed_s < v->pools->handed[1].reserved_s);
    }
    assert_true(v->pools->part_s[MAQ_HANDOVER_ROOM] > 0.1);
    maq_serve_free(r);
    maq_serve_free(v);
    maq_job_free(job);
}

/* ---- what is refused, and failing allocations ---- */

static void expect_refused(const struct pools *x, uint16_t code, const char *word)
{
    struct maq_request request = {.prompt = 100, .output = 10};
    const struct maq_requests q = {.at = &request, .n = 1};
    struct maq_serve_result *r = NULL;
    struct maq_diag *diag = maq_diag_new();
    assert_int_equal(try_pools(&r, x, &q, diag), MAQ_BAD_INPUT);
    assert_int_equal(maq_diag_at(diag, 0)->code, code);
    if (!strstr(maq_diag_at(diag, 0)->msg.ptr, word))
        fail_msg("'%s' says nothing of '%s'", maq_diag_at(diag, 0)->msg.ptr, word);
    maq_diag_free(diag);
}

/* gpt2 has twelve heads. */
static struct maq_loaded_job *load_gpt2(int tp)
{
    char text[256];
    struct maq_loaded_job *box = NULL;
    snprintf(
        text, sizeof text,
        "{model: gpt2, cluster: 'h100-sxm:6', plan: {micro_batch_size: 1, tp: %d}, workload: {global_batch_size: 6, "
        "seq_length: 768}}",
        tp);
    assert_int_equal(maq_job_parse(&box, "test", maq_str_of(text), NULL, 0, NULL), MAQ_OK);
    return box;
}

static void test_refused(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8),
                          *other = load("llama-2-7b", "h100-sxm:8", "", 8), *three = load_gpt2(3), *two = load_gpt2(2),
                          *stages = load("llama-3.1-8b", "h100-sxm:8", ", pp: 2", 8);
    struct pools x = one_each(job, MAQ_ENGINE_VLLM);
    x.n_prefill = 5;
    x.n_decode = 4;
    expect_refused(&x, MAQ_CODE_SERVE_POOLS, "need 9 GPUs, the cluster has 8");
    x = one_each(job, MAQ_ENGINE_VLLM);
    x.p.kv_fp8 = true;
    expect_refused(&x, MAQ_CODE_SERVE_POOLS, "8 on the other");
    x = one_each(job, MAQ_ENGINE_VLLM);
    x.p.block_size = 32;
    expect_refused(&x, MAQ_CODE_SERVE_POOLS, "multiple");
    x = one_each(job, MAQ_ENGINE_SGLANG);
    x.d.block_size = 16;
    expect_refused(&x, MAQ_CODE_SERVE_POOLS, "the same");
    x = one_each(job, MAQ_ENGINE_VLLM);
    x.d.engine = MAQ_ENGINE_SGLANG;
    expect_refused(&x, MAQ_CODE_SERVE_POOLS, "their own kind");
    x = one_each(job, MAQ_ENGINE_VLLM);
    x.decode = other;
    expect_refused(&x, MAQ_CODE_SERVE_POOLS, "mean nothing");
    x.prefill = three;
    x.decode = two;
    x.apart = true;
    expect_refused(&x, MAQ_CODE_SERVE_POOLS, "do not come out even");
    struct maq_loaded_job *mixed = load("llama-3.1-8b", "h100-sxm:8 + h20:8", "", 16);
    x = one_each(mixed, MAQ_ENGINE_VLLM);
    expect_refused(&x, MAQ_CODE_SERVE_POOLS, "several kinds");
    maq_job_free(mixed);
    x = one_each(job, MAQ_ENGINE_SGLANG);
    x.decode = stages;
    expect_refused(&x, MAQ_CODE_SERVE_POOLS, "stage");
    x = one_each(job, MAQ_ENGINE_TRTLLM);
    x.handover.transfer = MAQ_KV_TRANSFER_LAYER;
    expect_refused(&x, MAQ_CODE_SERVE_POOLS, "layer");
    x = one_each(job, MAQ_ENGINE_SGLANG);
    x.handover.max_local_prefill = 10;
    expect_refused(&x, MAQ_CODE_SERVE_POOLS, "compute no prompts");
    x = one_each(job, MAQ_ENGINE_TRTLLM);
    x.handover.max_local_prefill = 10000;
    expect_refused(&x, MAQ_CODE_SERVE_POOLS, "takes whole prompts");
    maq_job_free(job);
    maq_job_free(other);
    maq_job_free(three);
    maq_job_free(two);
    maq_job_free(stages);
}

static void expect_roles_refused(enum maq_role a, enum maq_role b, const struct maq_loaded_job *job)
{
    const struct maq_serve_options o = {.engine = MAQ_ENGINE_VLLM};
    const struct maq_fleet_member members[] = {{.job = maq_job_get(job), .options = &o, .replicas = 1, .role = a},
                                               {.job = maq_job_get(job), .options = &o, .replicas = 1, .role = b}};
    const struct maq_fleet fleet = {.members = members, .n_members = 2};
    struct maq_request request = {.prompt = 100, .output = 10};
    const struct maq_requests q = {.at = &request, .n = 1};
    struct maq_serve_result *r = NULL;
    struct maq_diag *diag = maq_diag_new();
    assert_int_equal(maq_fleet_run(&r, &fleet, &q, diag), MAQ_BAD_INPUT);
    assert_int_equal(maq_diag_at(diag, 0)->code, MAQ_CODE_SERVE_POOLS);
    maq_diag_free(diag);
}

static void test_roles(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("gpt2", "h100-sxm:8", "", 8);
    expect_roles_refused(MAQ_ROLE_PREFILL, MAQ_ROLE_PREFILL, job);
    expect_roles_refused(MAQ_ROLE_DECODE, MAQ_ROLE_DECODE, job);
    expect_roles_refused(MAQ_ROLE_BOTH, MAQ_ROLE_DECODE, job);
    expect_roles_refused(MAQ_ROLE_BOTH, MAQ_ROLE_PREFILL, job);
    maq_job_free(job);
}

static void test_memory_runs_out(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("gpt2", "h100-sxm:8", "", 8);
    struct maq_request list[12];
    for (uint32_t i = 0; i < 12; i++)
        list[i] = (struct maq_request){.prompt = 20, .output = 5};
    const struct maq_requests q = {.at = list, .n = 12, .concurrency = 8};
    for (int e = 0; e < 2; e++) {
        struct pools x = one_each(job, e ? MAQ_ENGINE_SGLANG : MAQ_ENGINE_VLLM);
        x.p.max_num_batched_tokens = x.d.max_num_batched_tokens = 64;
        x.p.blocks = x.d.blocks = e ? 1000 : 40;
        x.n_decode = 2;
        struct failing f = {0};
        while (next_failing(&f)) {
            struct maq_serve_result *r = NULL;
            enum maq_status status = try_pools(&r, &x, &q, NULL);
            expect_failing(&f, status, r);
            maq_serve_free(r);
        }
    }
    maq_job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_batch),
        cmocka_unit_test(test_time_of_a_transfer),
        cmocka_unit_test(test_ports_of_clusters),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_contention),
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_conserved),
        cmocka_unit_test(test_little),
        cmocka_unit_test(test_fewest_requests),
        cmocka_unit_test(test_all_local),
        cmocka_unit_test(test_local_behind_a_prefix),
        cmocka_unit_test(test_prefill_waits_for_room),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_roles),
        cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
