/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_images.c - requests with images: what the tower adds to a request alone, where vLLM cuts a prompt for its budget, and which images begin in a chunk are
 * closed forms, and so is what a pool that encodes adds to requests that come together; a tower or such a pool that nobody needs changes nothing; every image passes the tower once where nobody is preempted, by engine, in pools, by chance.
 *
 * maq-test: long
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/check.h"
#include "effort.h"
#include "failing_alloc.h"
#include "fleet_jobs.h"
#include "maquette/serve_fleet.h"
#include "serve/codes.h"
#include "serve/sched/image_tokens.h"
#include "serve_jobs.h"

#define MOST 60

/* SigLIP so400m's layers. */
static const char tower_of[] = "{model_type: bert, num_hidden_layers: 27, hidden_size: 1152, intermediate_size: 4304, "
                               "num_attention_heads: 16, vocab_size: 588, max_position_embeddings: 4096, "
                               "type_vocab_size: 0}";

struct setting {
    struct maq_loaded_job *job, *tower;
    struct maq_serve_options o;
};

static struct setting begin(enum maq_engine engine)
{
    struct setting s = {.job = load("llama-3.1-8b", "h100-sxm:8", "", 8), .tower = load(tower_of, "h100-sxm:8", "", 8)};
    s.o.engine = engine;
    s.o.encoder = (struct maq_encoder_options){.tower = maq_job_get(s.tower), .merge = 4};
    return s;
}

static void end(struct setting *s)
{
    maq_job_free(s->job);
    maq_job_free(s->tower);
}

/* ---- by hand ---- */

/* Images in a chunk, one by one. */
static void test_images_in_a_chunk(void **state)
{
    (void)state;
    uint64_t draws = 7;
    for (int trial = 0; trial < 20000; trial++) {
        const struct maq_image_run r = {draw(&draws, 0, 40), draw(&draws, 1, 30), draw(&draws, 0, 6)};
        int64_t computed = draw(&draws, 0, 150), tokens = draw(&draws, 0, 150), budget = draw(&draws, 0, 150);
        int64_t begun = 0, within = tokens;
        for (int64_t i = 0; i < r.n; i++) {
            int64_t at = r.from + i * r.tokens;
            if (at < computed || at >= computed + tokens)
                continue;
            begun++;
            if (begun * r.tokens > budget && within == tokens)
                within = at - computed;
        }
        assert_int_equal(maq_images_begun(&r, computed, tokens), begun);
        if (begun * r.tokens > budget)
            assert_int_equal(maq_images_within(&r, computed, tokens, budget), within);
        else
            assert_int_equal(maq_images_within(&r, computed, tokens, budget), tokens);
    }
}

/* A request that is alone: its first token is later by what its images take, and nothing else is. An image of four times the patches takes more than four times as long. */
static void test_alone(void **state)
{
    (void)state;
    for (int e = 0; e < MAQ_ENGINE_COUNT; e++) {
        struct setting s = begin((enum maq_engine)e);
        double takes[3];
        for (int k = 0; k < 3; k++) {
            struct maq_request one = {.prompt = 2500, .output = 20};
            const struct maq_requests q = {.at = &one, .n = 1};
            struct maq_serve_result *text = serve(s.job, &s.o, &q);
            one.images = k == 1 ? 2 : 1;
            one.image_tokens = k == 2 ? 1024 : 256;
            struct maq_serve_result *r = serve(s.job, &s.o, &q);
            takes[k] = r->encoded.encode_s;
            assert_true(r->encoded.known && r->encoded.images == one.images && r->encoded.requests == 1);
            expect_close(r->encoded.patches, (double)(one.images * one.image_tokens * 16), 1e-12, "patches");
            expect_close(r->ttft_s.mean, text->ttft_s.mean + takes[k], 1e-9, "first token");
            expect_close(r->e2el_s.mean, text->e2el_s.mean + takes[k], 1e-9, "last token");
            expect_close(r->part_s[MAQ_SERVE_ENCODER], takes[k], 1e-12, "its part");
            assert_true(text->encoded.images == 0 && text->part_s[MAQ_SERVE_ENCODER] <= 0);
            maq_serve_free(text);
            maq_serve_free(r);
        }
        assert_true(takes[1] > 1.7 * takes[0] && takes[1] < 2.001 * takes[0]);
        assert_true(takes[2] > 4 * takes[0] && takes[2] < 16 * takes[0]);
        /* products of the layers' 411 M weights and 4096 x 4096 scores, at between the peak of an H100 and a third of it */
        double flop = 2 * 411e6 * 4096 + 4.0 * 4096 * 4096 * 1152 * 27;
        assert_true(takes[0] > flop / 989e12 && takes[0] < 3 * flop / 989e12);
        end(&s);
    }
}

static void note(const struct maq_serve_iteration *it, void *user)
{
    int64_t *list = user;
    if (list[0] < 15)
        list[++list[0]] = it->tokens;
}

/* Ten images of 1,000 tokens and 100 of text, 2,048 tokens of an iteration: vLLM cuts in front of the third image that would begin in it. */
static void test_budget(void **state)
{
    (void)state;
    static const int64_t cut[] = {2000, 2000, 2000, 2000, 2048, 52}, whole[] = {2048, 2048, 2048, 2048, 1908};
    const struct maq_request one = {.prompt = 10100, .output = 1, .images = 10, .image_tokens = 1000};
    const struct maq_requests q = {.at = &one, .n = 1};
    for (int e = 0; e < MAQ_ENGINE_TRTLLM; e++) {
        int64_t seen[16] = {0};
        const int64_t *want = e == MAQ_ENGINE_VLLM ? cut : whole;
        size_t n = e == MAQ_ENGINE_VLLM ? MAQ_COUNT(cut) : MAQ_COUNT(whole);
        struct setting s = begin((enum maq_engine)e);
        s.o.max_num_batched_tokens = 2048;
        s.o.watch = note;
        s.o.watch_user = seen;
        struct maq_serve_result *r = serve(s.job, &s.o, &q);
        assert_int_equal(r->encoded.images, 10);
        assert_int_equal(seen[0], n);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(seen[i + 1], want[i]);
        maq_serve_free(r);
        end(&s);
    }
}

/* An image that is larger than an iteration begins where nothing else does. */
static void test_large_image(void **state)
{
    (void)state;
    const struct maq_request list[] = {{.prompt = 3100, .output = 5, .images = 2, .image_tokens = 1500},
                                       {.prompt = 3100, .output = 5, .images = 2, .image_tokens = 1500}};
    const struct maq_requests q = {.at = list, .n = 2};
    struct setting s = begin(MAQ_ENGINE_VLLM);
    s.o.max_num_batched_tokens = 1024;
    struct maq_serve_result *r = serve(s.job, &s.o, &q);
    assert_int_equal(r->encoded.images, 4);
    assert_int_equal(r->finished, 2);
    maq_serve_free(r);
    end(&s);
}

/* A tower that nobody needs takes memory and nothing else. */
static void test_no_images(void **state)
{
    (void)state;
    struct maq_request list[MOST];
    for (int e = 0; e < MAQ_ENGINE_COUNT; e++) {
        uint64_t draws = 5;
        struct setting s = begin((enum maq_engine)e);
        const struct maq_requests q = draw_requests(list, MOST, &draws);
        struct maq_serve_options without = s.o;
        without.encoder = (struct maq_encoder_options){.tower = NULL};
        struct maq_serve_result *a = serve(s.job, &s.o, &q), *b = serve(s.job, &without, &q);
        double tower = a->memory[MAQ_SERVE_MEM_WEIGHTS] - b->memory[MAQ_SERVE_MEM_WEIGHTS];
        expect_close(tower, a->encoded.weights_bytes, 1e-9, "its weights");
        assert_true(tower > 2 * 411e6 && tower < 2 * 425e6);
        assert_true(a->blocks < b->blocks && !b->encoded.known);
        s.o.blocks = without.blocks = 6000 * (e == MAQ_ENGINE_SGLANG ? 16 : 1);
        maq_serve_free(a);
        maq_serve_free(b);
        a = serve(s.job, &s.o, &q);
        b = serve(s.job, &without, &q);
        assert_memory_equal(a->served, b->served, q.n * sizeof *a->served);
        maq_serve_free(a);
        maq_serve_free(b);
        end(&s);
    }
}

/* Of pools, prefill has the images; decode has them of prompts that it computes by itself. */
static void test_pools(void **state)
{
    (void)state;
    struct maq_request list[20];
    const int64_t n = MAQ_COUNT(list);
    for (uint32_t i = 0; i < n; i++)
        list[i] = (struct maq_request){
            .arrival_s = 0.05 * i, .prompt = 900, .output = 20, .images = 1 + i % 2, .image_tokens = 256};
    const struct maq_requests q = {.at = list, .n = (uint32_t)n};
    for (int e = 0; e < MAQ_ENGINE_COUNT; e++) {
        struct setting s = begin((enum maq_engine)e);
        const struct maq_fleet_member members[] = {
            {.job = maq_job_get(s.job), .options = &s.o, .replicas = 1, .role = MAQ_ROLE_PREFILL},
            {.job = maq_job_get(s.job), .options = &s.o, .replicas = 1, .role = MAQ_ROLE_DECODE}};
        const struct maq_fleet fleet = {.members = members, .n_members = 2};
        struct maq_serve_result *r = NULL;
        assert_int_equal(maq_fleet_run(&r, &fleet, &q, NULL), MAQ_OK);
        assert_int_equal(r->encoded.images, 30);
        assert_int_equal(r->pools->prefill->encoded.images, 30);
        assert_true(r->part_s[MAQ_SERVE_ENCODER] <= 0 && r->pools->prefill->part_s[MAQ_SERVE_ENCODER] > 0);
        maq_serve_free(r);
        end(&s);
    }
}

/* ---- a pool that encodes ---- */

/*
 * Requests with an image each that come together to a server which passes one at a time: the k-th waits for those before it, and then takes what it takes as text, later
 * by the passes and the way of its embeddings, of 2 bytes over NVLink.
 */
static void test_pool_that_encodes(void **state)
{
    (void)state;
    enum { N = 5 };
    for (int e = 0; e < MAQ_ENGINE_COUNT; e++) {
        struct setting s = begin((enum maq_engine)e);
        struct maq_request list[N];
        s.o.encoder.elsewhere = true;
        s.o.max_num_batched_tokens = 2048;
        const struct maq_fleet_member member = {.job = maq_job_get(s.job), .options = &s.o, .replicas = 1};
        const struct maq_fleet fleet = {.members = &member, .n_members = 1, .encode_replicas = 1};
        for (uint32_t i = 0; i < N; i++)
            list[i] = (struct maq_request){.prompt = 1600, .output = 2};
        struct maq_requests q = {.at = list, .n = 1};
        struct maq_serve_result *text = serve_fleet(&fleet, &q);
        assert_true(text->encoded.known && text->encoded.images == 0);
        for (uint32_t i = 0; i < N; i++) {
            list[i].images = 1;
            list[i].image_tokens = 1500;
        }
        struct maq_serve_result *one = serve_fleet(&fleet, &q);
        const struct maq_encoded *x = &one->encoded;
        expect_close(x->bytes, 1500.0 * 4096 * 2, 1e-12, "embeddings");
        expect_close(x->transfer_s, x->bytes / 450e9, 1e-9, "their way");
        expect_close(one->ttft_s.mean, text->ttft_s.mean + x->encode_s + x->transfer_s, 1e-9, "first token");
        expect_close(x->busy_share, x->encode_s / one->duration_s, 1e-9, "how busy it is");
        assert_true(one->n_devices == 2 && x->wait_s <= 0 && x->replicas == 1);
        expect_close(one->memory[MAQ_SERVE_MEM_WEIGHTS], 16.06e9, 1e-2, "weights of a replica without a tower");
        q.n = N;
        struct maq_serve_result *all = serve_fleet(&fleet, &q);
        expect_close(all->encoded.encode_s, N * x->encode_s, 1e-9, "passes");
        expect_close(all->encoded.wait_s, x->encode_s * (N - 1) / 2, 1e-9, "waits");
        for (uint32_t i = 0; i < N; i++) /* when each has its embeddings, at the earliest */
            assert_true(all->served[i].scheduled_s > (i + 1) * x->encode_s + x->transfer_s);
        maq_serve_free(text);
        maq_serve_free(one);
        maq_serve_free(all);
        end(&s);
    }
}

/* A replica fails while images are encoded: their request is with nobody yet, and goes to the other one, once. */
static void test_fails_meanwhile(void **state)
{
    (void)state;
    const struct maq_request one = {.prompt = 1600, .output = 5, .images = 1, .image_tokens = 1500};
    const struct maq_requests q = {.at = &one, .n = 1};
    struct setting s = begin(MAQ_ENGINE_VLLM);
    struct maq_fleet_event events[3];
    s.o.encoder.elsewhere = true;
    const struct maq_fleet_member member = {.job = maq_job_get(s.job), .options = &s.o, .replicas = 2};
    const struct maq_fleet fleet = {
        .members = &member, .n_members = 1, .encode_replicas = 1, .events = events, .n_events = 3};
    outage(events, 0, 1e-4, 2e-4, 10);
    struct maq_serve_result *r = serve_fleet(&fleet, &q);
    assert_true(r->encoded.encode_s > 1e-3 && r->served[0].replica == 1 && r->served[0].retries == 0);
    assert_int_equal(r->availability.retried, 0);
    assert_true(r->served[0].scheduled_s > r->encoded.encode_s && r->served[0].scheduled_s < r->served[0].first_s);
    maq_serve_free(r);
    end(&s);
}

/* In front of replicas, or of prefill and decode; one fails, others have a limit: all images are encoded once, all requests end. */
static void test_pool_by_chance(void **state)
{
    (void)state;
    static struct maq_request list[MOST];
    struct setting s = begin(MAQ_ENGINE_VLLM);
    uint32_t retried = 0, waited = 0;
    for (uint64_t seed = 1; seed <= EFFORT(30, 90, 2000); seed++) {
        uint64_t draws = seed, all = 0;
        struct maq_fleet_event events[3];
        struct maq_serve_options o = {.engine = (enum maq_engine)draw(&draws, 0, MAQ_ENGINE_COUNT - 1),
                                      .encoder = s.o.encoder};
        bool pools = draw(&draws, 0, 1);
        o.encoder.elsewhere = true;
        const struct maq_fleet_member members[] = {
            {.job = maq_job_get(s.job),
             .options = &o,
             .replicas = draw(&draws, 1, 2),
             .role = pools ? MAQ_ROLE_DECODE : MAQ_ROLE_BOTH},
            {.job = maq_job_get(s.job), .options = &o, .replicas = draw(&draws, 1, 2), .role = MAQ_ROLE_PREFILL}};
        struct maq_fleet fleet = {.members = members,
                                  .n_members = pools ? 2 : 1,
                                  .router = (enum maq_router)draw(&draws, 0, MAQ_ROUTER_COUNT - 1),
                                  .seed = seed,
                                  .encode_replicas = draw(&draws, 1, 3),
                                  .admission = {.max_requests = pools ? 0 : draw(&draws, 0, 1) * draw(&draws, 1, 8)}};
        const struct maq_requests q = draw_requests(list, draw(&draws, 1, MOST), &draws);
        for (uint32_t i = 0; i < q.n; i++) {
            list[i].output = 1 + list[i].output % 200;
            list[i].images = draw(&draws, 0, 3);
            list[i].image_tokens =
                list[i].images > 0 ? (list[i].prompt - (int64_t)list[i].n_prefix * q.prefix_unit) / list[i].images : 0;
            list[i].images = list[i].image_tokens > 0 ? list[i].images : 0;
            all += list[i].images;
        }
        double at = uniform(&draws, 0, 2);
        outage(events, draw(&draws, 0, members[0].replicas - 1), at, at + 0.3, at + 2);
        fleet.events = events;
        fleet.n_events = draw(&draws, 0, 1) * 3;
        struct maq_serve_result *a = serve_fleet(&fleet, &q), *b = serve_fleet(&fleet, &q);
        assert_int_equal(a->finished, q.n);
        assert_int_equal(a->encoded.images, all);
        for (uint32_t i = 0; i < q.n; i++)
            assert_true(a->served[i].arrival_s <= a->served[i].scheduled_s &&
                        a->served[i].scheduled_s < a->served[i].first_s);
        assert_memory_equal(a->served, b->served, q.n * sizeof *a->served);
        retried += a->availability.retried;
        waited += a->admission.waited;
        maq_serve_free(a);
        maq_serve_free(b);
    }
    print_message("%u requests tried again, %u waited\n", retried, waited);
    assert_true(retried > 20 && waited > 20);
    end(&s);
}

/* Without images a pool is not there: the same, to the bit. */
static void test_pool_without_images(void **state)
{
    (void)state;
    struct maq_request list[MOST];
    for (int k = 0; k < 2 * MAQ_ENGINE_COUNT; k++) {
        uint64_t draws = 11;
        struct setting s = begin((enum maq_engine)(k / 2));
        const struct maq_requests q = draw_requests(list, MOST, &draws);
        struct maq_serve_options without = s.o;
        s.o.encoder.elsewhere = s.o.one_by_one = without.one_by_one = true;
        without.encoder = (struct maq_encoder_options){.tower = NULL};
        struct maq_fleet_member members[] = {
            {.job = maq_job_get(s.job), .replicas = 2, .role = k % 2 ? MAQ_ROLE_DECODE : MAQ_ROLE_BOTH},
            {.job = maq_job_get(s.job), .replicas = 2, .role = MAQ_ROLE_PREFILL}};
        struct maq_fleet fleet = {.members = members, .n_members = 1 + k % 2, .router = MAQ_ROUTER_LEAST_REQUESTS};
        s.o.blocks = without.blocks = 6000 * (k / 2 == MAQ_ENGINE_SGLANG ? 16 : 1);
        members[0].options = members[1].options = &without;
        struct maq_serve_result *a = serve_fleet(&fleet, &q);
        members[0].options = members[1].options = &s.o;
        fleet.encode_replicas = 2;
        struct maq_serve_result *b = serve_fleet(&fleet, &q);
        assert_memory_equal(a->served, b->served, q.n * sizeof *a->served);
        assert_int_equal(b->n_devices, a->n_devices + 2);
        maq_serve_free(a);
        maq_serve_free(b);
        end(&s);
    }
}

/* ---- by chance ---- */

static void test_every_image_once(void **state)
{
    (void)state;
    static struct maq_request list[MOST];
    struct setting s = begin(MAQ_ENGINE_VLLM);
    uint32_t preempted = 0, images = 0;
    for (uint64_t seed = 1; seed <= EFFORT(30, 90, 2000); seed++) {
        uint64_t draws = seed, all = 0;
        struct maq_serve_options o = draw_options(&draws, (enum maq_engine)draw(&draws, 0, MAQ_ENGINE_COUNT - 1));
        o.encoder = s.o.encoder;
        o.encoder.merge = (int32_t)draw(&draws, 1, 4);
        if (o.engine == MAQ_ENGINE_TRTLLM) /* whole prompts */
            o.max_num_batched_tokens = 4096;
        const struct maq_requests q = draw_requests(list, draw(&draws, 1, MOST), &draws);
        for (uint32_t i = 0; i < q.n; i++) {
            int64_t room = list[i].prompt - (int64_t)list[i].n_prefix * q.prefix_unit;
            list[i].output = 1 + list[i].output % 300;
            list[i].images = draw(&draws, 0, 3);
            list[i].image_tokens = list[i].images > 0 ? room / list[i].images / (1 + draw(&draws, 0, 2)) : 0;
            list[i].images = list[i].image_tokens > 0 ? list[i].images : 0;
            all += list[i].images;
        }
        struct maq_serve_result *b, *a = serve_both_ways(&b, s.job, o, &q, 1e-9);
        assert_int_equal(a->encoded.images, b->encoded.images);
        if (a->preemptions == 0)
            assert_int_equal(a->encoded.images, all);
        preempted += a->preemptions > 0;
        images += (uint32_t)all;
        maq_serve_free(a);
        maq_serve_free(b);
    }
    print_message("%u images, %u runs with preemptions\n", images, preempted);
    assert_true(images > 500);
    end(&s);
}

/* ---- where they come from, and what is refused ---- */

static void test_drawn_and_read(void **state)
{
    (void)state;
    const struct maq_request_spec spec = {
        .n = 3, .rate = 1, .prompt = 100, .output = 5, .images = 2, .image_tokens = 256};
    static const char table[] = "prompt,output,images,image_tokens\n900,5,2,600\n900,5,0,0\n900,5,,\n";
    static const char lines[] =
        "{\"prompt\": 900, \"output\": 5, \"image_tokens\": 300}\n{\"prompt\": 9, \"output\": 5, \"images\": 1}\n";
    struct maq_request_set *set;
    assert_int_equal(maq_requests_generate(&set, &spec, NULL), MAQ_OK);
    const struct maq_request *q = maq_requests_get(set)->at;
    assert_true(q[2].prompt == 612 && q[2].images == 2 && q[2].image_tokens == 256);
    maq_requests_free(set);
    for (int k = 0; k < 3; k++) {
        char path[] = "/tmp/maquette-images-XXXXXX";
        const char *text = k == 0 ? table : k == 1 ? lines : "prompt,output,images\n900,5,-1\n";
        int fd = mkstemp(path);
        assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
        close(fd);
        enum maq_status status =
            maq_requests_read(&set, path, &(const struct maq_request_reading){.most = k == 0 ? 2 : 0}, NULL);
        unlink(path);
        assert_int_equal(status, k == 2 ? MAQ_BAD_INPUT : MAQ_OK);
        if (k == 2)
            continue;
        q = maq_requests_get(set)->at;
        if (k == 0)
            assert_true(q[0].images == 2 && q[0].image_tokens == 300 && q[1].images == 0);
        else
            assert_true(q[0].images == 1 && q[0].image_tokens == 300 && q[1].images == 1 && q[1].image_tokens == 0);
        maq_requests_free(set);
    }
    /* pixels: Qwen2-VL's 28 a token, at least one */
    assert_true(maq_image_side(896, 14, 4) == 16 && maq_image_side(1000, 14, 2) == 36 && maq_image_side(3, 14, 2) == 1);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        struct maq_request r;
        bool tower;
    } cases[] = {{{.prompt = 900, .output = 5, .images = 1, .image_tokens = 256}, false},
                 {{.prompt = 900, .output = 5, .images = 1}, true},
                 {{.prompt = 900, .output = 5, .images = 4, .image_tokens = 256}, true},
                 {{.prompt = 9000, .output = 5, .images = 1, .image_tokens = 5000}, true}};
    struct setting s = begin(MAQ_ENGINE_VLLM);
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        const struct maq_requests q = {.at = &cases[i].r, .n = 1};
        struct maq_serve_options o = s.o;
        struct maq_serve_result *r = NULL;
        struct maq_diag *diag = maq_diag_new();
        o.encoder.tower = cases[i].tower ? o.encoder.tower : NULL;
        assert_int_equal(maq_serve_run(&r, maq_job_get(s.job), &o, &q, diag), MAQ_BAD_INPUT);
        assert_int_equal(maq_diag_at(diag, 0)->code, MAQ_CODE_SERVE_IMAGES);
        maq_diag_free(diag);
    }
    /* a pool without a tower, one that nobody leaves images to, none that images are left to, one that the cluster has no GPUs for */
    static const struct {
        bool tower, elsewhere;
        uint32_t servers, code;
    } pools[] = {{false, true, 1, MAQ_CODE_SERVE_IMAGES},
                 {true, false, 1, MAQ_CODE_SERVE_IMAGES},
                 {true, true, 0, MAQ_CODE_SERVE_IMAGES},
                 {true, true, 7, MAQ_CODE_SERVE_RANKS}};
    for (size_t i = 0; i < 2 * MAQ_COUNT(pools); i++) {
        const struct maq_requests q = {.at = &cases[0].r, .n = 1};
        struct maq_serve_options o = s.o;
        struct maq_serve_result *r = NULL;
        struct maq_diag *diag = maq_diag_new();
        const struct maq_fleet_member member = {
            .job = maq_job_get(s.job), .options = &o, .replicas = i % 2 && pools[i / 2].servers < 7 ? 1 : 2};
        const struct maq_fleet fleet = {.members = &member, .n_members = 1, .encode_replicas = pools[i / 2].servers};
        o.encoder.tower = pools[i / 2].tower ? o.encoder.tower : NULL;
        o.encoder.elsewhere = pools[i / 2].elsewhere;
        assert_int_equal(maq_fleet_run(&r, &fleet, &q, diag), MAQ_BAD_INPUT);
        assert_int_equal(maq_diag_at(diag, 0)->code, pools[i / 2].code);
        maq_diag_free(diag);
    }
    end(&s);
}

static void test_memory_runs_out(void **state)
{
    (void)state;
    const struct maq_request list[] = {{.prompt = 900, .output = 5, .images = 3, .image_tokens = 256},
                                       {.prompt = 90, .output = 5}};
    const struct maq_requests q = {.at = list, .n = 2};
    struct setting s = begin(MAQ_ENGINE_VLLM);
    struct failing f = {0};
    while (next_failing(&f)) {
        struct maq_serve_result *r = NULL;
        enum maq_status status = maq_serve_run(&r, maq_job_get(s.job), &s.o, &q, NULL);
        expect_failing(&f, status, r);
        maq_serve_free(r);
    }
    s.o.encoder.elsewhere = true;
    const struct maq_fleet_member member = {.job = maq_job_get(s.job), .options = &s.o, .replicas = 2};
    const struct maq_fleet fleet = {.members = &member, .n_members = 1, .encode_replicas = 2};
    f = (struct failing){0};
    while (next_failing(&f)) {
        struct maq_serve_result *r = NULL;
        enum maq_status status = maq_fleet_run(&r, &fleet, &q, NULL);
        expect_failing(&f, status, r);
        maq_serve_free(r);
    }
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_images_in_a_chunk),
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_budget),
        cmocka_unit_test(test_large_image),
        cmocka_unit_test(test_no_images),
        cmocka_unit_test(test_pools),
        cmocka_unit_test(test_pool_that_encodes),
        cmocka_unit_test(test_fails_meanwhile),
        cmocka_unit_test(test_pool_by_chance),
        cmocka_unit_test(test_pool_without_images),
        cmocka_unit_test(test_every_image_once),
        cmocka_unit_test(test_drawn_and_read),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
