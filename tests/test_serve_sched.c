/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_sched.c - the scheduler by itself: its queue against a sorted list, small cases by hand, and random requests whose books are
 * kept beside it.
 *
 * The books are independent of the scheduler: what each request was given, found cached and lost when it was preempted adds up to
 * prompt + output - 1 tokens when it ends (the last token that is sampled is never computed). Each ends once, budgets hold in every
 * iteration, nobody overtakes, and blocks are conserved; under all combinations of caching, priority, asynchronous iterations, drafts,
 * whole prompts and groups of layers. That decisions are vLLM's is the business of test_validate_schedule.c.
 */
#include "effort.h"
#include "serve_blocks.h"

#include <stdio.h>

#include "base/check.h"
#include "failing_alloc.h"
#include "iteration_text.h"
#include "random_draws.h"
#include "serve/sched/vllm.h"

/* ---- the queue ---- */

#define MOST_WAITING 300u

/* Where a new one stands in the plain list: the first place whose owner goes behind it, or the end. */
static uint32_t place_in(const struct maq_waiting *list, uint32_t n, const struct maq_waiting *w, bool by_priority)
{
    uint32_t i = 0;
    while (i < n && !(by_priority && maq_waiting_before(w, &list[i])))
        i++;
    return i;
}

static void put_at(struct maq_waiting *list, uint32_t *n, uint32_t place, struct maq_waiting w)
{
    memmove(&list[place + 1], &list[place], (*n - place) * sizeof *list);
    list[place] = w;
    (*n)++;
}

static void take_out(struct maq_waiting *list, uint32_t *n, uint32_t place)
{
    memmove(&list[place], &list[place + 1], (*n - place - 1) * sizeof *list);
    (*n)--;
}

static void one_queue(uint64_t seed, bool by_priority)
{
    uint64_t draws = seed, order = 0;
    struct maq_queue q = {.by_priority = by_priority};
    struct maq_waiting list[MOST_WAITING];
    uint32_t n = 0, grows = draw(&draws, 3, 6);
    for (int i = 0; i < 1500; i++) {
        uint32_t what = draw(&draws, 0, 9);
        struct maq_waiting w = {(int32_t)draw(&draws, 0, 3) - 1, (uint32_t)i, (double)draw(&draws, 0, 5), order++};
        if (what < grows && n < MOST_WAITING) {
            bool front = draw(&draws, 0, 2) == 0;
            assert_true(front ? maq_queue_push_front(&q, w) : maq_queue_push(&q, w));
            put_at(list, &n, front && !by_priority ? 0 : place_in(list, n, &w, by_priority), w);
        } else if (what < 9 && n > 0) {
            assert_int_equal(maq_queue_peek(&q).slot, list[0].slot);
            assert_int_equal(maq_queue_pop(&q).order, list[0].order);
            take_out(list, &n, 0);
        } else if (n > 0) {
            uint32_t place = draw(&draws, 0, n - 1);
            maq_queue_remove(&q, list[place].slot);
            maq_queue_remove(&q, UINT32_MAX - 1); /* nobody */
            take_out(list, &n, place);
        }
        assert_int_equal(q.n, n);
    }
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(maq_queue_pop(&q).order, list[i].order);
    assert_int_equal(q.n, 0);
    maq_queue_fini(&q);
}

static void test_queue_against_a_list(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        one_queue(seed, false);
        one_queue(seed, true);
    }
}

/* ---- by hand ---- */

struct hand {
    struct maq_vllm s;
    struct maq_iteration it, second;
    uint64_t came;
};

static const struct maq_kv_group in_fours = {MAQ_KV_FULL, 4, 0, 0};

/* What a case asks for; 0: 8 requests and 8 tokens at a time, chunked prefill, all of a prompt has room. */
struct ask {
    int32_t seqs, tokens, long_prefill, spec;
    bool adaptive, whole, priority, async, piecewise;
};

static struct maq_vllm_knobs knobs_of(struct ask a)
{
    return (struct maq_vllm_knobs){.max_num_seqs = a.seqs ? a.seqs : 8,
                                   .max_num_batched_tokens = a.tokens ? a.tokens : 8,
                                   .max_model_len = 100,
                                   .long_prefill_token_threshold = a.long_prefill,
                                   .adaptive_long_prefill = a.adaptive,
                                   .chunked_prefill = !a.whole,
                                   .priority = a.priority,
                                   .async = a.async,
                                   .reserve_full_isl = !a.piecewise,
                                   .spec_tokens = a.spec};
}

/* One group of blocks of 4 tokens. */
static void open_hand(struct hand *h, struct ask ask, uint32_t blocks, bool caching)
{
    const struct maq_vllm_knobs knobs = knobs_of(ask);
    const struct maq_kv_options kv = {.groups = &in_fours,
                                      .n_groups = 1,
                                      .blocks = blocks + 1,
                                      .caching = caching,
                                      .max_len = knobs.max_model_len,
                                      .in_flight = knobs.max_num_batched_tokens};
    *h = (struct hand){0};
    assert_int_equal(maq_vllm_init(&h->s, &knobs, &kv), MAQ_OK);
}

static void close_hand(struct hand *h)
{
    maq_iteration_fini(&h->it);
    maq_iteration_fini(&h->second);
    maq_vllm_fini(&h->s);
}

static uint32_t add(struct hand *h, int64_t prompt, int64_t output, int32_t priority)
{
    static const uint64_t names[] = {1, 2, 3, 4, 5, 6, 7, 8};
    uint32_t named = prompt / 4 < 8 ? (uint32_t)(prompt / 4) : 8;
    const struct maq_scheduler_request new = {.prompt = prompt,
                                              .output = output,
                                              .priority = priority,
                                              .arrival = (double)h->came,
                                              .order = h->came,
                                              .content = {names, named, 4, h->came, 0}};
    h->came++;
    uint32_t slot = maq_vllm_add(&h->s, &new);
    assert_true(slot != MAQ_NO_SLOT);
    return slot;
}

/* Decides, and says who got what: "0:4 1:2" by slot; "+" where a token is sampled, "!" before those that were preempted. */
static const char *decided(struct hand *h, struct maq_iteration *it)
{
    maq_vllm_decide(&h->s, it);
    return iteration_text(it);
}

static void expect_step(struct hand *h, const char *want)
{
    assert_string_equal(decided(h, &h->it), want);
    maq_vllm_end(&h->s, &h->it, NULL);
    assert_false(h->s.base.failed);
}

static void test_nobody(void **state)
{
    (void)state;
    struct hand h;
    open_hand(&h, (struct ask){0}, 10, true);
    expect_step(&h, "");
    assert_int_equal(h.it.tokens, 0);
    close_hand(&h);
}

/* A prompt in pieces, then a token an iteration; the last token is sampled and never computed. */
static void test_one_request(void **state)
{
    (void)state;
    struct hand h;
    open_hand(&h, (struct ask){.tokens = 4}, 10, true);
    add(&h, 10, 3, 0);
    expect_step(&h, "0:4");
    expect_step(&h, "0:4");
    expect_step(&h, "0:2+");
    expect_step(&h, "0:1+");
    assert_int_equal(h.it.n_finished, 0);
    expect_step(&h, "0:1+");
    assert_int_equal(h.it.n_finished, 1);
    assert_int_equal(h.s.kv.pool.n_free, 10);
    add(&h, 3, 1, 0); /* ends with its prompt, in the slot that is free again */
    expect_step(&h, "0:3+");
    assert_int_equal(h.it.n_finished, 1);
    expect_step(&h, "");
    close_hand(&h);
}

/* Those that run come first, then a part of a prompt fills the iteration. */
static void test_prompts_fill_up(void **state)
{
    (void)state;
    struct hand h;
    open_hand(&h, (struct ask){0}, 20, false);
    add(&h, 6, 3, 0);
    add(&h, 9, 2, 0);
    add(&h, 1, 2, 0);
    expect_step(&h, "0:6+ 1:2");
    expect_step(&h, "0:1+ 1:7+");
    expect_step(&h, "0:1+ 1:1+ 2:1+");
    assert_int_equal(h.it.n_finished, 2);
    expect_step(&h, "2:1+");
    close_hand(&h);
}

static void test_one_at_a_time(void **state)
{
    (void)state;
    struct hand h;
    open_hand(&h, (struct ask){.seqs = 1}, 20, false);
    add(&h, 2, 2, 0);
    add(&h, 2, 1, 0);
    expect_step(&h, "0:2+");
    expect_step(&h, "0:1+");
    expect_step(&h, "1:2+");
    expect_step(&h, "");
    close_hand(&h);
}

/* Without chunked prefill a prompt is computed whole, and nobody overtakes one that has to wait for that. */
static void test_whole_prompts(void **state)
{
    (void)state;
    struct hand h;
    open_hand(&h, (struct ask){.whole = true}, 20, false);
    add(&h, 5, 2, 0);
    add(&h, 8, 1, 0);
    add(&h, 1, 1, 0);
    expect_step(&h, "0:5+");
    expect_step(&h, "0:1+");
    expect_step(&h, "1:8+");
    expect_step(&h, "2:1+");
    close_hand(&h);
}

static void test_long_prompts_are_cut(void **state)
{
    (void)state;
    struct hand h;
    open_hand(&h, (struct ask){.long_prefill = 2}, 20, false);
    add(&h, 7, 1, 0);
    expect_step(&h, "0:7+"); /* alone there is no threshold */
    add(&h, 7, 1, 0);
    add(&h, 3, 1, 0);
    expect_step(&h, "0:2 1:2");
    expect_step(&h, "0:2 1:1+");
    expect_step(&h, "0:3+");
    close_hand(&h);
    open_hand(&h, (struct ask){.long_prefill = 2, .adaptive = true}, 20, false);
    add(&h, 7, 1, 0);
    add(&h, 7, 1, 0);
    expect_step(&h, "0:4 1:4"); /* a fair share of 8 is more than 2 */
    close_hand(&h);
}

/* 4 blocks: two requests of two each. The ninth token of the first takes the blocks of the second, whose first is found again. */
static void test_preemption(void **state)
{
    (void)state;
    for (int caching = 0; caching < 2; caching++) {
        struct hand h;
        open_hand(&h, (struct ask){.tokens = 16}, 4, caching);
        uint64_t own = 0;
        const struct maq_scheduler_request a = {.prompt = 8, .output = 4, .order = 0, .content = {&own, 0, 0, 1, 0}},
                                           b = {.prompt = 7,
                                                .output = 2,
                                                .order = 1,
                                                .arrival = 1,
                                                .content = {&own, 0, 0, 2, 0}};
        assert_true(maq_vllm_add(&h.s, &a) == 0 && maq_vllm_add(&h.s, &b) == 1);
        expect_step(&h, "0:8+ 1:7+");
        expect_step(&h, "0:1+ !1");
        assert_int_equal(h.s.at[1].preemptions, 1);
        assert_int_equal(h.s.waiting.n, 1);
        assert_int_equal(h.s.kv.pool.n_free, 1);
        expect_step(&h, "0:1+"); /* two blocks are needed, one is there */
        expect_step(&h, "0:1+");
        assert_int_equal(h.it.n_finished, 1);
        /* 8 known tokens: what it sampled is not sampled again; its first block was the last to be reused */
        expect_step(&h, caching ? "1:4+" : "1:8+");
        assert_int_equal(h.it.n_finished, 1);
        assert_int_equal(h.s.kv.pool.n_free, 4);
        close_hand(&h);
    }
}

static void test_who_gives_way(void **state)
{
    (void)state;
    struct hand h;
    open_hand(&h, (struct ask){.tokens = 16, .priority = true}, 4, false);
    add(&h, 7, 3, 5); /* the least urgent */
    add(&h, 8, 2, 1);
    expect_step(&h, "1:8+ 0:7+");
    expect_step(&h, "1:1+ !0");
    close_hand(&h);
    open_hand(&h, (struct ask){.tokens = 16, .priority = true}, 4, false);
    add(&h, 8, 2, 1);
    add(&h, 7, 3, 1); /* of equals the one that came last, which is in front of nobody */
    expect_step(&h, "0:8+ 1:7+");
    expect_step(&h, "0:1+ !1");
    close_hand(&h);
}

/* Who gave way had been given something already: that is taken back, and those behind it lose no turn. */
static void test_given_and_taken_back(void **state)
{
    (void)state;
    struct hand h;
    open_hand(&h, (struct ask){.tokens = 16, .priority = true}, 5, false);
    add(&h, 2, 9, 5);
    expect_step(&h, "0:2+");
    add(&h, 8, 3, 1);
    add(&h, 7, 3, 1);
    expect_step(&h, "0:1+ 1:8+ 2:7+");
    expect_step(&h, "1:1+ 2:1+ !0"); /* 5 blocks: of 1, 2 and 2 */
    assert_int_equal(h.it.tokens, 2);
    close_hand(&h);
}

/* What is taken back can be given again, and no more than that: 5 tokens are 3 and 2. */
static void test_taken_back_is_given_again(void **state)
{
    (void)state;
    struct hand h;
    open_hand(&h, (struct ask){.tokens = 5, .priority = true, .spec = 2}, 4, false);
    add(&h, 1, 9, 5);
    expect_step(&h, "0:1+");
    add(&h, 3, 9, 1);
    add(&h, 2, 9, 1);
    add(&h, 2, 9, 1);
    expect_step(&h, "0:1+ 1:3+ 2:1");
    expect_step(&h, "0:1+ 1:1+ 2:1+ 3:2+");
    for (uint32_t slot = 1; slot < 4; slot++)
        maq_vllm_propose(&h.s, slot, slot == 1 ? 2 : 1);
    expect_step(&h, "1:3+ 2:2+ !0"); /* 0 had one of them, and the block that 1 needs */
    close_hand(&h);
}

static void test_priorities(void **state)
{
    (void)state;
    struct hand h;
    open_hand(&h, (struct ask){.seqs = 1, .priority = true}, 10, false);
    add(&h, 1, 1, 2);
    add(&h, 2, 1, 1);
    add(&h, 3, 1, 1);
    add(&h, 4, 1, -1);
    expect_step(&h, "3:4+");
    expect_step(&h, "1:2+");
    expect_step(&h, "2:3+");
    expect_step(&h, "0:1+");
    close_hand(&h);
}

/* Whether a prompt is taken in piece by piece, or only when all of it has room. */
static void test_reserve(void **state)
{
    (void)state;
    struct hand h;
    open_hand(&h, (struct ask){.tokens = 12}, 6, false);
    add(&h, 8, 2, 0);
    add(&h, 17, 1, 0); /* 5 blocks, 4 are free */
    expect_step(&h, "0:8+");
    expect_step(&h, "0:1+");
    expect_step(&h, "1:12");
    close_hand(&h);
    open_hand(&h, (struct ask){.tokens = 12, .piecewise = true}, 6, false);
    add(&h, 8, 2, 0);
    add(&h, 17, 1, 0);
    expect_step(&h, "0:8+ 1:4");
    close_hand(&h);
}

/* What never fits waits, and stops those behind it. */
static void test_too_long_for_the_cache(void **state)
{
    (void)state;
    struct hand h;
    open_hand(&h, (struct ask){.tokens = 64}, 4, false);
    add(&h, 17, 1, 0);
    add(&h, 1, 1, 0);
    for (int i = 0; i < 3; i++)
        expect_step(&h, "");
    maq_vllm_abort(&h.s, 0);
    expect_step(&h, "1:1+");
    close_hand(&h);
}

/* An iteration is decided before the one before it has ended: its token is a placeholder. Nothing is decided for who is sure to end. */
static void test_async_by_hand(void **state)
{
    (void)state;
    struct hand h;
    open_hand(&h, (struct ask){.async = true}, 10, true);
    add(&h, 4, 2, 0);
    assert_string_equal(decided(&h, &h.it), "0:4+");
    assert_string_equal(decided(&h, &h.second), "0:1+");
    maq_vllm_end(&h.s, &h.it, NULL);
    assert_int_equal(h.it.n_finished, 0);
    assert_string_equal(decided(&h, &h.it), "");
    maq_vllm_end(&h.s, &h.second, NULL);
    assert_int_equal(h.second.n_finished, 1);
    assert_int_equal(h.s.kv.pool.n_free, 10);
    close_hand(&h);
}

/* Drafts: 1 + 2 are computed; of 2 accepted none is computed again, of none accepted both. */
static void test_drafts_by_hand(void **state)
{
    (void)state;
    struct hand h;
    open_hand(&h, (struct ask){.spec = 2}, 10, true);
    uint32_t slot = add(&h, 4, 6, 0);
    expect_step(&h, "0:4+");
    maq_vllm_propose(&h.s, slot, 2);
    assert_string_equal(decided(&h, &h.it), "0:3+");
    assert_int_equal(h.it.scheduled[0].drafts, 2);
    maq_vllm_end(&h.s, &h.it, (const int32_t[]){3});
    assert_int_equal(h.s.at[slot].tokens, 8); /* 4, one, and three */
    assert_int_equal(h.s.at[slot].computed, 7);
    maq_vllm_propose(&h.s, slot, 2);
    assert_string_equal(decided(&h, &h.it), "0:3+");
    maq_vllm_end(&h.s, &h.it, (const int32_t[]){1});
    assert_int_equal(h.s.at[slot].computed, 8);
    maq_vllm_propose(&h.s, slot, 2);
    assert_string_equal(decided(&h, &h.it), "0:3+");
    maq_vllm_end(&h.s, &h.it, (const int32_t[]){3}); /* one was wanted */
    assert_int_equal(h.it.n_finished, 1);
    assert_int_equal(h.s.kv.pool.n_free, 10);
    close_hand(&h);
}

static void test_given_up(void **state)
{
    (void)state;
    struct hand h;
    open_hand(&h, (struct ask){.seqs = 2}, 10, false);
    for (int i = 0; i < 4; i++)
        add(&h, 2, 5, 0);
    expect_step(&h, "0:2+ 1:2+");
    assert_string_equal(decided(&h, &h.it), "0:1+ 1:1+");
    maq_vllm_abort(&h.s, 0); /* while its iteration is under way; its slot gets a new owner */
    maq_vllm_abort(&h.s, 2); /* while it waits */
    assert_int_equal(add(&h, 3, 1, 0), 2);
    assert_int_equal(add(&h, 3, 1, 0), 0);
    maq_vllm_end(&h.s, &h.it, NULL);
    assert_int_equal(h.s.at[0].tokens, 3); /* nothing was sampled for the new one */
    expect_step(&h, "1:1+ 3:2+");
    close_hand(&h);
}

/* ---- random requests ---- */

#define MOST_REQUESTS 60u
#define MOST_SLOTS 64u
#define MOST_FLYING 4u

struct book {
    int64_t prompt, output, balance, sampled;
    int64_t under_way; /* tokens of iterations that have not ended, but for those of before a preemption */
    int64_t late;      /* tokens of iterations from before a preemption that have not ended */
    int64_t rejected;  /* drafts, all its life */
    int64_t given, hits, lost;
    uint32_t epoch, slot, ended;
    int32_t priority;
    double arrival;
    bool came, taken, given_up;
};

struct entry { /* of an iteration that is under way */
    uint32_t request, epoch;
};

struct world {
    uint64_t draws;
    struct maq_vllm_knobs knobs;
    struct maq_kv_group groups[3];
    struct maq_vllm s;
    struct maq_iteration it[MOST_FLYING]; /* under way at once: `depth` of them */
    struct entry entries[MOST_FLYING][MOST_SLOTS];
    struct book book[MOST_REQUESTS];
    uint64_t names[3][32];
    uint32_t n, next, left, owner[MOST_SLOTS], depth;
    bool aborts;
    uint64_t preemptions, hits, sum; /* sum: of all that was decided */
};

static void draw_world(struct world *w, uint64_t seed)
{
    uint64_t *d = &w->draws;
    *w = (struct world){.draws = seed * 104729 + 5};
    int32_t block = 4 << draw(d, 0, 2);
    w->knobs = (struct maq_vllm_knobs){.max_num_seqs = (int32_t)draw(d, 1, 16),
                                       .max_num_batched_tokens = (int32_t)draw(d, 16, 128),
                                       .max_model_len = 512,
                                       .long_prefill_token_threshold = draw(d, 0, 3) ? 0 : (int32_t)draw(d, 4, 16),
                                       .adaptive_long_prefill = draw(d, 0, 1),
                                       .chunked_prefill = draw(d, 0, 4) > 0,
                                       .priority = draw(d, 0, 2) == 0,
                                       .async = draw(d, 0, 1),
                                       .reserve_full_isl = draw(d, 0, 3) > 0};
    if (draw(d, 0, 2) == 0) {
        w->knobs.spec_tokens = (int32_t)draw(d, 1, 4);
        w->knobs.lookahead_tokens = draw(d, 0, 1) ? w->knobs.spec_tokens : 0;
        w->knobs.draft_slots = draw(d, 0, 2) ? 0 : w->knobs.spec_tokens - 1;
    }
    if (w->knobs.spec_tokens > 0 && draw(d, 0, 1)) { /* more is wanted than there is */
        w->knobs.max_num_batched_tokens = 16;
        w->knobs.max_num_seqs = 16;
    }
    if (!w->knobs.chunked_prefill) {
        w->knobs.max_num_batched_tokens = (int32_t)w->knobs.max_model_len;
        w->knobs.long_prefill_token_threshold = 0;
    }
    uint32_t n = draw(d, 0, 2) ? 1 : draw(d, 2, 3);
    for (uint32_t g = 0; g < n; g++)
        w->groups[g] = (struct maq_kv_group){g > 0 ? MAQ_KV_WINDOW : MAQ_KV_FULL, block, 10 + 30 * (int64_t)g, 0};
    const struct maq_kv_options kv = {.groups = w->groups,
                                      .n_groups = n,
                                      .blocks = (uint32_t)(draw(d, 520, 1200) / (uint32_t)block) * n +
                                                8 * n, /* each request fits alone */
                                      .caching = draw(d, 0, 3) > 0,
                                      .drops_last = w->knobs.lookahead_tokens > 0 && draw(d, 0, 1),
                                      .max_len = w->knobs.max_model_len,
                                      .in_flight = 2 * (int64_t)w->knobs.max_num_batched_tokens,
                                      .watermark = draw(d, 0, 3) ? 0 : 0.05};
    assert_int_equal(maq_vllm_init(&w->s, &w->knobs, &kv), MAQ_OK);
    w->n = draw(d, 1, MOST_REQUESTS);
    w->left = w->n;
    w->depth = draw(d, 0, 1) ? 1 : draw(d, 2, MOST_FLYING); /* more: the stages of a pipeline */
    if (w->knobs.async && w->depth < 2)
        w->depth = 2;
    w->aborts = draw(d, 0, 3) == 0;
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t k = 0; k < 32; k++)
            w->names[i][k] = i * 1000 + k;
    memset(w->owner, 0xff, sizeof w->owner);
}

static void come(struct world *w)
{
    struct book *b = &w->book[w->next];
    uint64_t *d = &w->draws;
    uint32_t named = draw(d, 0, 20), unit = (uint32_t)w->groups[0].block_size;
    b->prompt = named * unit + draw(d, 1, draw(d, 0, 1) ? 20 : 200);
    b->prompt = b->prompt < 430 ? b->prompt : 430;
    named = named * unit > b->prompt ? (uint32_t)b->prompt / unit : named;
    b->output = draw(d, 0, 3) ? draw(d, 1, 60) : 1;
    b->priority = (int32_t)draw(d, 0, 2);
    b->arrival = w->next;
    const struct maq_scheduler_request new = {.prompt = b->prompt,
                                              .output = b->output,
                                              .priority = b->priority,
                                              .arrival = b->arrival,
                                              .order = w->next,
                                              .content = {w->names[draw(d, 0, 2)], named, unit, w->next, 0}};
    b->slot = maq_vllm_add(&w->s, &new);
    assert_true(b->slot < MOST_SLOTS);
    b->came = true;
    w->owner[b->slot] = w->next++;
}

static void expect_blocks(const struct world *w)
{
    const struct maq_kv_request *all[MOST_SLOTS];
    for (uint32_t i = 0; i < w->s.n_slots; i++)
        all[i] = &w->s.at[i].kv;
    expect_conserved(&w->s.kv, all, w->s.n_slots);
}

/* Nobody who waits for the first time stands before one who was just taken in. */
static void expect_no_overtaking(const struct world *w, uint32_t request)
{
    const struct book *b = &w->book[request];
    for (uint32_t i = 0; i < w->next; i++) {
        const struct book *o = &w->book[i];
        if (i == request || o->ended || o->given_up || w->s.at[o->slot].status != MAQ_VLLM_WAITING)
            continue;
        bool before = w->knobs.priority && o->priority != b->priority ? o->priority < b->priority : i < request;
        assert_false(before);
    }
}

static void check_decision(struct world *w, const struct maq_iteration *it, struct entry *entries)
{
    const struct maq_vllm_knobs *k = &w->knobs;
    int64_t tokens = 0;
    bool seen[MOST_SLOTS] = {false};
    for (uint32_t i = 0; i < it->n_preempted; i++) {
        struct book *b = &w->book[w->owner[it->preempted[i]]];
        b->lost += b->balance;
        b->late += b->under_way;
        b->balance = b->under_way = 0;
        b->epoch++;
        w->preemptions++;
    }
    assert_true(w->s.n_running <= (uint32_t)k->max_num_seqs);
    for (uint32_t i = 0; i < it->n; i++) {
        const struct maq_scheduled *s = &it->scheduled[i];
        struct book *b = &w->book[w->owner[s->slot]];
        assert_false(seen[s->slot]);
        seen[s->slot] = true;
        assert_true(s->tokens >= 1 && s->drafts >= 0 && s->drafts <= k->spec_tokens && s->drafts < s->tokens);
        if (s->hit >= 0) { /* taken in */
            assert_int_equal(b->balance, 0);
            assert_int_equal(b->late, 0); /* what it sampled before has arrived */
            assert_int_equal(it->n_preempted, 0);
            assert_true(s->hit < b->prompt + b->output);
            b->balance = s->hit;
            b->hits += s->hit;
            w->hits += (uint64_t)s->hit;
            expect_no_overtaking(w, w->owner[s->slot]);
            if (!k->chunked_prefill)
                assert_true(s->samples);
        }
        assert_int_equal(s->computed, b->balance);
        b->balance += s->tokens;
        b->under_way += s->tokens;
        b->given += s->tokens;
        tokens += s->tokens;
        entries[i] = (struct entry){w->owner[s->slot], b->epoch};
        w->sum = w->sum * 1000003 + (uint64_t)s->tokens * 64 + s->slot;
    }
    assert_int_equal(tokens, it->tokens);
    assert_true(tokens + (int64_t)it->n * k->draft_slots <= k->max_num_batched_tokens);
}

/* Draws what was sampled; books it. */
static void land(struct world *w, struct maq_iteration *it, const struct entry *entries)
{
    int32_t sampled[MOST_SLOTS];
    uint32_t n = 0;
    for (uint32_t i = 0; i < it->n; i++) {
        const struct maq_scheduled *s = &it->scheduled[i];
        struct book *b = &w->book[entries[i].request];
        bool stale = entries[i].epoch != b->epoch;
        sampled[i] = s->samples ? 1 + (int32_t)draw(&w->draws, 0, (uint32_t)s->drafts) : 0;
        if (b->ended || b->given_up)
            continue;
        *(stale ? &b->late : &b->under_way) -= s->tokens;
        if (sampled[i] == 0)
            continue;
        int64_t kept = b->output - b->sampled < sampled[i] ? b->output - b->sampled : sampled[i];
        if (!stale) {
            b->balance -= s->drafts - (sampled[i] - 1) + (sampled[i] - kept);
            b->rejected += s->drafts - (sampled[i] - 1) + (sampled[i] - kept);
        }
        b->sampled += kept;
        if (b->sampled < b->output)
            continue;
        b->ended++;
        n++;
        /* what waits to be computed again when its last token arrives has nothing; else all but that token is computed */
        assert_int_equal(b->balance - b->under_way, stale ? 0 : b->prompt + b->output - 1);
        assert_int_equal(b->given + b->hits - b->lost - b->rejected, b->balance);
        w->left--;
    }
    maq_vllm_end(&w->s, it, sampled);
    assert_int_equal(it->n_finished, n);
    for (uint32_t i = 0; i < it->n_finished; i++)
        assert_int_equal(w->book[w->owner[it->finished[i]]].ended, 1);
    for (uint32_t i = 0; i < it->n && w->knobs.spec_tokens > 0 && !w->knobs.async; i++) {
        const struct book *b = &w->book[entries[i].request];
        if (sampled[i] > 0 && entries[i].epoch == b->epoch && !b->ended && !b->given_up)
            maq_vllm_propose(&w->s, b->slot, (int32_t)draw(&w->draws, 0, (uint32_t)w->knobs.spec_tokens));
    }
}

static void maybe_abort(struct world *w)
{
    uint32_t i = draw(&w->draws, 0, MOST_REQUESTS * 2);
    if (!w->aborts || i >= w->next || w->book[i].ended || w->book[i].given_up)
        return;
    maq_vllm_abort(&w->s, w->book[i].slot);
    w->book[i].given_up = true;
    w->left--;
}

static void live(struct world *w)
{
    for (uint32_t step = 0; w->left > 0; step++) {
        assert_true(step < 20000); /* it goes on until all have ended */
        while (w->next < w->n && draw(&w->draws, 0, 2) == 0)
            come(w);
        maybe_abort(w);
        uint32_t now = step % w->depth, oldest = (step + 1) % w->depth;
        maq_vllm_decide(&w->s, &w->it[now]);
        check_decision(w, &w->it[now], w->entries[now]);
        expect_blocks(w);
        if (step + 1 >= w->depth)
            land(w, &w->it[oldest], w->entries[oldest]);
        assert_false(w->s.base.failed);
        expect_blocks(w);
    }
}

static void end_world(struct world *w)
{
    assert_int_equal(w->s.kv.pool.n_free, w->s.kv.pool.n - 1);
    assert_int_equal(w->s.n_running, 0);
    assert_int_equal(w->s.waiting.n, 0);
    for (uint32_t i = 0; i < MOST_FLYING; i++)
        maq_iteration_fini(&w->it[i]);
    maq_vllm_fini(&w->s);
}

static void test_random_requests(void **state)
{
    (void)state;
    uint64_t preemptions = 0, hits = 0;
    for (uint64_t seed = 1; seed <= EFFORT(100, 400, 4000); seed++) {
        struct world w, again;
        draw_world(&w, seed);
        live(&w);
        preemptions += w.preemptions;
        hits += w.hits;
        end_world(&w);
        if (seed % 10 == 0) { /* the same once more */
            draw_world(&again, seed);
            live(&again);
            assert_true(w.sum == again.sum);
            end_world(&again);
        }
    }
    assert_true(preemptions > EFFORT(75, 300, 3000) && hits > EFFORT(2500, 10000, 100000));
}

/* ---- memory ---- */

/* MAQ_OK, or MAQ_NO_MEMORY where somebody says so. */
static enum maq_status many_at_once(void)
{
    const struct maq_kv_options kv = {
        .groups = &in_fours, .n_groups = 1, .blocks = 300, .caching = true, .max_len = 512};
    struct maq_vllm s;
    struct maq_iteration it = {0};
    uint64_t name = 1;
    bool failed = false;
    const struct maq_vllm_knobs knobs = knobs_of((struct ask){.seqs = 100, .tokens = 512});
    if (maq_vllm_init(&s, &knobs, &kv) != MAQ_OK) {
        maq_vllm_fini(&s);
        return MAQ_NO_MEMORY;
    }
    for (uint32_t i = 0; i < 120 && !failed; i++) {
        const struct maq_scheduler_request new = {.prompt = 8, .output = 6, .order = i, .content = {&name, 1, 4, i, 0}};
        failed = maq_vllm_add(&s, &new) == MAQ_NO_SLOT || s.base.failed;
    }
    for (int i = 0; i < 60 && !failed; i++) {
        maq_vllm_decide(&s, &it);
        failed |= s.base.failed;
        if (!failed)
            maq_vllm_end(&s, &it, NULL);
        failed |= s.base.failed;
    }
    maq_iteration_fini(&it);
    maq_vllm_fini(&s);
    return failed ? MAQ_NO_MEMORY : MAQ_OK;
}

static void test_memory_runs_out(void **state)
{
    (void)state;
    struct failing f = {0};
    while (next_failing(&f))
        if (many_at_once() != (f.nth > 0 ? MAQ_NO_MEMORY : MAQ_OK))
            fail_msg("allocation %zu of %zu failed, and nobody says so", f.nth, f.all);
    assert_true(f.all > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_queue_against_a_list),
        cmocka_unit_test(test_nobody),
        cmocka_unit_test(test_one_request),
        cmocka_unit_test(test_prompts_fill_up),
        cmocka_unit_test(test_one_at_a_time),
        cmocka_unit_test(test_whole_prompts),
        cmocka_unit_test(test_long_prompts_are_cut),
        cmocka_unit_test(test_preemption),
        cmocka_unit_test(test_who_gives_way),
        cmocka_unit_test(test_given_and_taken_back),
        cmocka_unit_test(test_taken_back_is_given_again),
        cmocka_unit_test(test_priorities),
        cmocka_unit_test(test_reserve),
        cmocka_unit_test(test_too_long_for_the_cache),
        cmocka_unit_test(test_async_by_hand),
        cmocka_unit_test(test_drafts_by_hand),
        cmocka_unit_test(test_given_up),
        cmocka_unit_test(test_random_requests),
        cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests_name("serving scheduler", tests, NULL, NULL);
}
