/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_sglang.c - SGLang's scheduler and its radix tree by themselves: the tree against a list of what was inserted, small cases by hand, and random
 * requests with books beside them.
 *
 * The books are independent of the scheduler: each request ends once, after as many tokens as it samples; a prefill begins where the tree or the piece
 * before left off; tokens of the cache are conserved (available, in the tree, and held by requests beyond it); what runs locks its path and
 * nothing else is locked; budgets hold. That decisions are SGLang's is the business of test_validate_schedule.c.
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
#include "effort.h"
#include "failing_alloc.h"
#include "iteration_text.h"
#include "random_draws.h"
#include "serve/sched/sglang.h"

/* ---- the tree ---- */

#define MOST_KEYS 60u

static const uint64_t names[4][8] = {
    {1, 2, 3, 4, 5, 6, 7, 8}, {1, 2, 3, 9, 9, 9, 9, 9}, {1, 8, 8, 8, 8, 8, 8, 8}, {7, 7, 7, 7, 7, 7, 7, 7}};

static struct maq_content draw_content(uint64_t *draws, uint32_t own)
{
    return (struct maq_content){names[draw(draws, 0, 3)], draw(draws, 0, 8), 6, own, own % 4 == 3};
}

/* What the tree has of it: the longest that it has in common with anything that was inserted. */
static int64_t in_list(const struct maq_content *list, const int64_t *tokens, uint32_t n, const struct maq_content *c,
                       int64_t most, int64_t page)
{
    int64_t best = 0;
    for (uint32_t i = 0; i < n; i++) {
        int64_t both = maq_content_common(&list[i], c, tokens[i] < most ? tokens[i] : most) / page * page;
        best = both > best ? both : best;
    }
    return best;
}

static int64_t count_tokens(const struct maq_radix_tree *t, uint32_t node, int64_t *locked)
{
    int64_t sum = t->at[node].end - t->at[node].begin;
    *locked += t->at[node].locks > 0 ? sum : 0;
    for (uint32_t c = t->at[node].child; c != MAQ_RADIX_NONE; c = t->at[c].next) {
        assert_int_equal(t->at[c].parent, node);
        assert_int_equal(t->at[c].begin, t->at[node].end);
        assert_true(node == MAQ_RADIX_ROOT || t->at[node].locks >= t->at[c].locks);
        sum += count_tokens(t, c, locked);
    }
    bool leaf = node != MAQ_RADIX_ROOT && t->at[node].child == MAQ_RADIX_NONE && t->at[node].locks == 0;
    assert_int_equal(t->at[node].heap > 0, leaf);
    return sum;
}

static void expect_tree(const struct maq_radix_tree *t)
{
    int64_t locked = 0;
    assert_int_equal(count_tokens(t, MAQ_RADIX_ROOT, &locked), t->tokens);
    assert_int_equal(locked, t->locked);
    for (uint32_t i = 1; i < t->leaves[MAQ_RADIX_GPU_LEAF].n; i++) /* none goes before its parent in the heap */
        assert_int_equal(t->at[t->leaves[MAQ_RADIX_GPU_LEAF].at[i]].heap, i + 1);
}

static void test_tree_against_a_list(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        uint64_t draws = seed;
        struct maq_radix_tree t;
        struct maq_content list[MOST_KEYS];
        int64_t tokens[MOST_KEYS], page = (int64_t[]){1, 2, 3, 6, 4}[draw(&draws, 0, 4)];
        uint32_t node, held[MOST_KEYS];
        assert_int_equal(maq_radix_init(&t, (int32_t)page, (enum maq_radix_eviction)(seed % MAQ_RADIX_EVICTIONS)),
                         MAQ_OK);
        for (uint32_t i = 0; i < MOST_KEYS; i++) {
            list[i] = draw_content(&draws, i);
            tokens[i] = draw(&draws, 0, 60) / page * page;
            int64_t there = in_list(list, tokens, i, &list[i], tokens[i], page);
            const struct maq_radix_insert w = {tokens[i], draw(&draws, 0, 3), 0};
            assert_int_equal(maq_radix_insert(&t, &list[i], &w, &node), there);
            assert_int_equal(t.at[node].end, tokens[i]);
            struct maq_content other =
                draw(&draws, 0, 1) ? list[draw(&draws, 0, i)] : draw_content(&draws, MOST_KEYS + i);
            int64_t most = draw(&draws, 0, 70);
            assert_int_equal(maq_radix_match(&t, &other, most, &held[i]),
                             in_list(list, tokens, i + 1, &other, most, page));
            maq_radix_lock(&t, held[i]);
            expect_tree(&t);
        }
        int64_t all = t.tokens, evictable = maq_radix_evictable(&t), gone = 0, n;
        while ((n = maq_radix_evict(&t)) > 0) {
            gone += n;
            expect_tree(&t);
        }
        assert_int_equal(gone, evictable); /* all that is not locked can go, and nothing else */
        for (uint32_t i = 0; i < MOST_KEYS; i++)
            maq_radix_unlock(&t, held[i]);
        while ((n = maq_radix_evict(&t)) > 0)
            gone += n;
        assert_int_equal(gone, all);
        assert_int_equal(t.tokens, 0);
        assert_false(t.failed);
        maq_radix_fini(&t);
    }
}

/* Three beginnings; what is evicted first, by policy. */
static void test_evictions(void **state)
{
    (void)state;
    static const struct {
        enum maq_radix_eviction policy;
        int64_t first; /* tokens: a has 2, b 3, c 4 */
    } cases[] = {{MAQ_RADIX_LRU, 3}, {MAQ_RADIX_MRU, 2},  {MAQ_RADIX_FIFO, 2},    {MAQ_RADIX_FILO, 4},
                 {MAQ_RADIX_LFU, 4}, {MAQ_RADIX_SLRU, 4}, {MAQ_RADIX_PRIORITY, 3}};
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct maq_radix_tree t;
        uint32_t node;
        const struct maq_content a = {NULL, 0, 0, 1, 0}, b = {NULL, 0, 0, 2, 0}, c = {NULL, 0, 0, 3, 0};
        assert_int_equal(maq_radix_init(&t, 1, cases[i].policy), MAQ_OK);
        (void)maq_radix_insert(&t, &a, &(struct maq_radix_insert){2, 5, 0}, &node);
        (void)maq_radix_insert(&t, &b, &(struct maq_radix_insert){3, 1, 0}, &node);
        (void)maq_radix_insert(&t, &b, &(struct maq_radix_insert){3, 1, 0}, &node); /* twice */
        (void)maq_radix_insert(&t, &c, &(struct maq_radix_insert){4, 7, 0}, &node);
        (void)maq_radix_insert(&t, &a, &(struct maq_radix_insert){2, 5, 0}, &node);
        (void)maq_radix_match(&t, &a, 2, &node); /* the last one used */
        assert_int_equal(maq_radix_evict(&t), cases[i].first);
        maq_radix_fini(&t);
    }
}

/* ---- by hand ---- */

struct hand {
    struct maq_scheduler *s;
    struct maq_iteration it[2];
    uint64_t came;
};

static const struct maq_sglang_knobs plain = {.tokens = 100,
                                              .page = 1,
                                              .max_running = 8,
                                              .max_prefill = 1000,
                                              .chunk = 16,
                                              .conservativeness = 1,
                                              .caching = true};

static void open_hand(struct hand *h, const struct maq_sglang_knobs *knobs)
{
    *h = (struct hand){0};
    assert_int_equal(maq_sglang_new(&h->s, knobs), MAQ_OK);
}

static void close_hand(struct hand *h)
{
    maq_iteration_fini(&h->it[0]);
    maq_iteration_fini(&h->it[1]);
    h->s->ops->fini(h->s);
}

static void add(struct hand *h, int64_t prompt, int64_t output, int64_t limit, uint32_t named)
{
    const struct maq_scheduler_request new = {.prompt = prompt,
                                              .output = output,
                                              .limit = limit,
                                              .order = h->came,
                                              .content = {names[0], named, 6, h->came, 0}};
    h->came++;
    assert_true(h->s->ops->add(h->s, &new) != MAQ_NO_SLOT);
}

/* "0:4+ 1:2": by slot; "+" where a token is sampled, "!" before who was retracted. */
static const char *decided(struct hand *h, int which)
{
    struct maq_iteration *it = &h->it[which];
    h->s->ops->decide(h->s, it);
    return iteration_text(it);
}

static void expect_step(struct hand *h, const char *want)
{
    assert_string_equal(decided(h, 0), want);
    h->s->ops->end(h->s, &h->it[0], NULL);
    assert_false(h->s->failed);
}

/* Two prompts of which max_prefill_tokens holds one: since 0.5.13 the second begins beside it, up to the chunk, before it waited. */
static void test_budget_of_a_prefill(void **state)
{
    (void)state;
    for (int before = 0; before < 2; before++) {
        struct maq_sglang_knobs knobs = plain;
        struct hand h;
        knobs.max_prefill = 15;
        knobs.max_prefill_is_hard = before;
        open_hand(&h, &knobs);
        add(&h, 10, 1, 0, 0);
        add(&h, 9, 1, 0, 0);
        expect_step(&h, before ? "0:10+" : "0:10+ 1:6");
        expect_step(&h, before ? "1:9+" : "1:3+");
        close_hand(&h);
    }
}

/* Prompts go first, those that run wait meanwhile; the last one that does not fit the chunk is cut. */
static void test_prompts_first(void **state)
{
    (void)state;
    struct hand h;
    open_hand(&h, &plain);
    add(&h, 10, 3, 0, 0);
    expect_step(&h, "0:10+");
    add(&h, 9, 2, 0, 0);
    add(&h, 12, 1, 0, 0);
    expect_step(&h, "1:9+ 2:7");
    expect_step(&h, "2:5+");
    expect_step(&h, "0:1+ 1:1+");
    expect_step(&h, "0:1+");
    expect_step(&h, "");
    close_hand(&h);
    struct maq_sglang_knobs mixed = plain; /* those that run take their places of the chunk first */
    mixed.mixed = true;
    open_hand(&h, &mixed);
    add(&h, 10, 3, 0, 0);
    expect_step(&h, "0:10+");
    add(&h, 20, 1, 0, 0);
    expect_step(&h, "1:15 0:1+");
    expect_step(&h, "1:5+ 0:1+");
    expect_step(&h, "");
    close_hand(&h);
}

/* The second finds what the first computed, also while that still runs; what is generated is found, too. */
static void test_prefixes(void **state)
{
    (void)state;
    struct hand h;
    open_hand(&h, &plain);
    add(&h, 14, 2, 0, 2);
    expect_step(&h, "0:14+");
    add(&h, 15, 1, 0, 2);
    expect_step(&h, "1:3+");
    assert_int_equal(h.it[0].scheduled[0].hit, 12);
    expect_step(&h, "0:1+");
    add(&h, 12, 1, 0, 2); /* all of it is there: the last token is computed all the same */
    expect_step(&h, "0:1+");
    close_hand(&h);
}

/* Who is not known to stop is expected to sample a share of what it may; then the cache runs out, and who sampled least gives way. */
static void test_retraction(void **state)
{
    (void)state;
    struct hand h;
    struct maq_sglang_knobs knobs = plain;
    knobs.tokens = 37;
    knobs.conservativeness = 0.01;
    open_hand(&h, &knobs);
    add(&h, 10, 12, 13, 0);
    expect_step(&h, "0:10+");
    add(&h, 12, 12, 13, 0);
    expect_step(&h, "1:12+");
    for (int i = 0; i < 7; i++)
        expect_step(&h, "0:1+ 1:1+");
    expect_step(&h, "0:1+ !1"); /* of 37 tokens 36 are held; both sampled 8, and slot 1 has the longer prompt */
    assert_true(((struct maq_sglang *)(void *)h.s)->ratio > 0.9);
    for (int i = 0; i < 3; i++)
        expect_step(&h, "0:1+");
    assert_int_equal(h.it[0].n_finished, 1);
    expect_step(&h, "1:16"); /* its prompt made room, too: all of it again, with what it sampled */
    expect_step(&h, "1:4+");
    close_hand(&h);
}

/* With overlap who is sure to end is left out; who stops by itself is computed once too often, and that is lost. */
static void test_overlap(void **state)
{
    (void)state;
    struct hand h;
    struct maq_sglang_knobs knobs = plain;
    knobs.overlap = true;
    for (int known = 0; known < 2; known++) {
        open_hand(&h, &knobs);
        add(&h, 4, 2, known ? 0 : 9, 0);
        assert_string_equal(decided(&h, 0), "0:4+");
        assert_string_equal(decided(&h, 1), "0:1+");
        h.s->ops->end(h.s, &h.it[0], NULL);
        assert_int_equal(h.it[0].scheduled[0].came, 1);
        assert_string_equal(decided(&h, 0), known ? "" : "0:1+");
        h.s->ops->end(h.s, &h.it[1], NULL);
        assert_int_equal(h.it[1].n_finished, 1);
        if (!known) {
            h.s->ops->end(h.s, &h.it[0], NULL);
            assert_int_equal(h.it[0].scheduled[0].came, 0);
            assert_int_equal(h.it[0].n_finished, 0);
        }
        assert_int_equal(h.s->ops->load(h.s).used, 0);
        close_hand(&h);
    }
}

/* The longest prefix goes first, and of two that begin alike and are not there the second waits for the first. */
static void test_longest_prefix(void **state)
{
    (void)state;
    struct hand h;
    struct maq_sglang_knobs knobs = plain;
    knobs.policy = MAQ_SGLANG_LPM;
    knobs.tokens = 1000;
    knobs.chunk = 100;
    open_hand(&h, &knobs);
    add(&h, 50, 1, 0, 8);
    expect_step(&h, "0:50+");
    add(&h, 10, 1, 0, 0);
    add(&h, 50, 1, 0, 8);
    expect_step(&h, "1:2+ 0:10+"); /* 48 tokens of the second are there */
    close_hand(&h);
    open_hand(&h, &knobs);
    add(&h, 50, 1, 0, 8);
    add(&h, 55, 1, 0, 8);
    add(&h, 20, 1, 0, 0);
    expect_step(&h, "0:50+ 2:20+ 1:30");
    close_hand(&h);
}

/* ---- random requests ---- */

#define MOST 60u

/* With one row: who is far before the one that runs takes its place, who is not waits for its end. What the first had computed is in the tree. */
static void test_gives_way_by_priority(void **state)
{
    (void)state;
    static const char *const steps[2][7] = {{"1:12+ !0", "1:1+", "1:1+", "0:1+", "0:1+", "0:1+", "0:1+"},
                                            {"0:1+", "0:1+", "0:1+", "0:1+", "1:12+", "1:1+", "1:1+"}};
    for (int near = 0; near < 2; near++) {
        struct maq_sglang_knobs knobs = plain;
        struct hand h;
        knobs.max_running = 1;
        knobs.by_priority = knobs.preempts = true;
        knobs.preempts_by = 11;
        open_hand(&h, &knobs);
        const struct maq_scheduler_request last = {.prompt = 10, .output = 5, .priority = 3, .content = {.own = 1}},
                                           first = {.prompt = 12,
                                                    .output = 3,
                                                    .order = 1,
                                                    .priority = near ? 13 : 14,
                                                    .content = {.own = 2}};
        assert_int_equal(h.s->ops->add(h.s, &last), 0);
        expect_step(&h, "0:10+");
        assert_int_equal(h.s->ops->add(h.s, &first), 1);
        for (size_t i = 0; i < MAQ_COUNT(steps[0]); i++)
            expect_step(&h, steps[near][i]);
        expect_step(&h, "");
        close_hand(&h);
    }
}

struct book {
    int64_t prompt, output, computed, sampled;
    uint32_t slot, ended;
};

struct world {
    struct maq_sglang_knobs knobs;
    struct maq_scheduler *s;
    struct maq_iteration it[4];
    struct book book[MOST];
    uint32_t n, next, left, retracted;
    uint64_t draws, sum, hits, seed;
};

static void draw_world(struct world *w, uint64_t seed)
{
    *w = (struct world){.draws = seed, .seed = seed};
    uint64_t *d = &w->draws;
    int32_t page = (int32_t[]){1, 1, 4, 16}[draw(d, 0, 3)];
    w->knobs = (struct maq_sglang_knobs){.tokens = (int64_t)draw(d, 150, 900) / page * page,
                                         .page = page,
                                         .max_running = (int32_t)draw(d, 1, 30),
                                         .max_prefill = (int32_t)draw(d, 64, 400),
                                         .chunk = draw(d, 0, 3) ? (int32_t)draw(d, 48, 200) / page * page : 0,
                                         .max_requests = draw(d, 0, 3) ? 0 : 2,
                                         .lanes = draw(d, 0, 4) ? 1 : (int32_t)draw(d, 2, 4),
                                         .conservativeness = draw(d, 0, 1) ? 1 : 0.05,
                                         .policy = (uint8_t)draw(d, 0, MAQ_SGLANG_POLICIES - 1),
                                         .eviction = (uint8_t)draw(d, 0, MAQ_RADIX_EVICTIONS - 1),
                                         .caching = draw(d, 0, 3) > 0,
                                         .overlap = draw(d, 0, 1) > 0,
                                         .mixed = draw(d, 0, 3) == 0,
                                         .by_priority = draw(d, 0, 3) == 0};
    w->knobs.preempts = w->knobs.by_priority;
    w->knobs.preempts_by = 1 + (int32_t)(seed % 2);
    w->knobs.low_first = seed % 3 == 0;
    assert_int_equal(maq_sglang_new(&w->s, &w->knobs), MAQ_OK);
    w->n = w->left = draw(d, 1, MOST);
}

static void come(struct world *w)
{
    struct book *b = &w->book[w->next];
    int64_t most = w->knobs.tokens - 3 * (int64_t)w->knobs.page - 2;
    b->prompt = draw(&w->draws, 1, (uint32_t)most / 3);
    b->output = draw(&w->draws, 1, (uint32_t)most / 3);
    int64_t limit = draw(&w->draws, 0, 1) ? 0 : b->output + draw(&w->draws, 1, 30);
    const struct maq_scheduler_request new = {.prompt = b->prompt,
                                              .output = b->output,
                                              .limit = limit,
                                              .priority = (int32_t)draw(&w->draws, 0, 2),
                                              .order = w->next,
                                              .content = draw_content(&w->draws, w->next)};
    b->slot = w->s->ops->add(w->s, &new);
    assert_true(b->slot != MAQ_NO_SLOT);
    w->next++;
}

/* Tokens are conserved, and nobody but those that hold any locks any. */
static void expect_tokens(const struct world *w)
{
    const struct maq_sglang *s = (const struct maq_sglang *)(const void *)w->s;
    int64_t held = 0, page = s->knobs.page;
    uint32_t rows = 0;
    for (uint32_t i = 0; i < s->n_slots; i++) {
        const struct maq_sglang_request *r = &s->at[i];
        if (r->status == MAQ_SGLANG_FREE || r->held == 0)
            continue;
        rows++;
        held += (r->held + page - 1) / page * page - r->tree_owns;
        assert_true(r->tree_owns <= r->held && r->tree_owns % page == 0);
    }
    assert_int_equal(s->rows, rows);
    assert_true(s->available >= 0);
    assert_int_equal(s->available + s->tree.tokens + held, s->knobs.tokens);
    expect_tree(&s->tree);
}

static void check(struct world *w, const struct maq_iteration *it)
{
    int64_t tokens = 0, prompts = 0;
    for (uint32_t i = 0; i < it->n_preempted; i++)
        for (uint32_t k = 0; k < w->next; k++)
            if (w->book[k].slot == it->preempted[i] && !w->book[k].ended)
                w->book[k].computed = 0;
    w->retracted += it->n_preempted;
    for (uint32_t i = 0; i < it->n; i++) {
        const struct maq_scheduled *x = &it->scheduled[i];
        struct book *b = &w->book[x->order];
        assert_int_equal(b->slot, x->slot);
        assert_true(x->tokens >= 1 && x->drafts == 0);
        if (x->prefill && b->computed == 0) { /* from what the tree had */
            b->computed = x->computed;
            w->hits += (uint64_t)x->computed;
        }
        assert_int_equal(b->computed, x->computed);
        b->computed += x->tokens;
        tokens += x->tokens;
        prompts += x->prefill ? x->tokens : 0;
        w->sum = w->sum * 1000003 + (uint64_t)x->tokens * 64 + x->slot;
    }
    assert_int_equal(tokens, it->tokens);
    if (w->knobs.chunk > 0)
        assert_true(prompts <= w->knobs.chunk);
}

static void land(struct world *w, struct maq_iteration *it)
{
    w->s->ops->end(w->s, it, NULL);
    for (uint32_t i = 0; i < it->n; i++)
        w->book[it->scheduled[i].order].sampled += it->scheduled[i].came;
    for (uint32_t i = 0; i < it->n_finished; i++)
        for (uint32_t k = 0; k < w->next; k++)
            if (w->book[k].slot == it->finished[i] && !w->book[k].ended && w->book[k].sampled == w->book[k].output) {
                w->book[k].ended++;
                w->left--;
            }
}

static void live(struct world *w)
{
    uint32_t depth = w->knobs.lanes > 1 ? (uint32_t)w->knobs.lanes : w->knobs.overlap ? 2 : 1, first = 0, flying = 0;
    for (uint32_t step = 0; w->left > 0; step++) {
        if (step >= 60000) /* it goes on until all have ended */
            fail_msg("seed %llu", (unsigned long long)w->seed);
        while (w->next < w->n && draw(&w->draws, 0, 2) == 0)
            come(w);
        if (flying < depth) {
            struct maq_iteration *it = &w->it[(first + flying) % depth];
            w->s->ops->decide(w->s, it);
            check(w, it);
            expect_tokens(w);
            flying += it->n > 0;
            if (it->n > 0 && flying < depth)
                continue;
        }
        if (flying > 0) {
            land(w, &w->it[first]);
            first = (first + 1) % depth;
            flying--;
        }
        assert_false(w->s->failed);
        expect_tokens(w);
    }
    while (flying-- > 0) {
        land(w, &w->it[first]);
        first = (first + 1) % depth;
    }
}

static void end_world(struct world *w)
{
    const struct maq_scheduler_load load = w->s->ops->load(w->s);
    for (uint32_t k = 0; k < w->n; k++)
        assert_true(w->book[k].ended == 1 && w->book[k].sampled == w->book[k].output);
    assert_true(load.running == 0 && load.waiting == 0 && load.used == 0);
    for (uint32_t i = 0; i < 4; i++)
        maq_iteration_fini(&w->it[i]);
    w->s->ops->fini(w->s);
}

static void test_random_requests(void **state)
{
    (void)state;
    uint64_t retracted = 0, hits = 0;
    for (uint64_t seed = 1; seed <= EFFORT(100, 300, 3000); seed++) {
        struct world w, again;
        draw_world(&w, seed);
        live(&w);
        retracted += w.retracted;
        hits += w.hits;
        end_world(&w);
        if (seed % 20 == 0) { /* the same once more */
            draw_world(&again, seed);
            live(&again);
            assert_true(w.sum == again.sum);
            end_world(&again);
        }
    }
    print_message("%llu retracted, %llu tokens found\n", (unsigned long long)retracted, (unsigned long long)hits);
    assert_true(retracted > EFFORT(30, 100, 1000) && hits > EFFORT(1500, 5000, 50000));
}

/* ---- memory ---- */

static enum maq_status many_at_once(enum maq_sglang_policy policy)
{
    struct maq_sglang_knobs knobs = plain;
    struct maq_iteration it = {0};
    struct maq_scheduler *s = NULL;
    knobs.policy = (uint8_t)policy;
    knobs.tokens = 300;
    knobs.max_running = 64;
    knobs.conservativeness = 0.05;
    bool failed = maq_sglang_new(&s, &knobs) != MAQ_OK;
    for (uint32_t i = 0; i < 40 && !failed; i++) {
        const struct maq_scheduler_request new = {
            .prompt = 8, .output = 12, .limit = 13, .order = i, .content = {names[i % 4], 1, 6, i, 0}};
        failed = s->ops->add(s, &new) == MAQ_NO_SLOT || s->failed;
    }
    for (int i = 0; i < 90 && !failed; i++) {
        s->ops->decide(s, &it);
        failed |= s->failed;
        if (!failed)
            s->ops->end(s, &it, NULL);
        failed |= s->failed;
    }
    maq_iteration_fini(&it);
    if (s)
        s->ops->fini(s);
    return failed ? MAQ_NO_MEMORY : MAQ_OK;
}

static void test_memory_runs_out(void **state)
{
    (void)state;
    for (int policy = MAQ_SGLANG_FCFS; policy <= MAQ_SGLANG_DFS_WEIGHT; policy++) {
        struct failing f = {0};
        while (next_failing(&f))
            if (many_at_once((enum maq_sglang_policy)policy) != (f.nth > 0 ? MAQ_NO_MEMORY : MAQ_OK))
                fail_msg("policy %d: allocation %zu of %zu failed, and nobody says so", policy, f.nth, f.all);
        assert_true(f.all > 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tree_against_a_list),
        cmocka_unit_test(test_evictions),
        cmocka_unit_test(test_budget_of_a_prefill),
        cmocka_unit_test(test_prompts_first),
        cmocka_unit_test(test_prefixes),
        cmocka_unit_test(test_retraction),
        cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_longest_prefix),
        cmocka_unit_test(test_random_requests),
        cmocka_unit_test(test_gives_way_by_priority),
        cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests_name("SGLang's scheduler", tests, NULL, NULL);
}
