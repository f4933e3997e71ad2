/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tier_jobs.h - what tests of memory behind the GPU's blocks have in common: requests that share beginnings, and when prompts are computed. To be included
 * after cmocka's header.
 */
#ifndef MAQ_TESTS_TIER_JOBS_H
#define MAQ_TESTS_TIER_JOBS_H

#include "base/check.h"
#include "serve_jobs.h"

#define UNIT 64u /* tokens of a name */

/* Requests one at a time that share beginnings of a tree of names. */
static inline struct maq_requests shared_requests(struct maq_request *list, uint64_t names[][8], uint32_t n,
                                                  uint64_t *draws)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t depth = draw(draws, 0, 8);
        for (uint32_t k = 0; k < depth; k++)
            names[i][k] = draw(draws, 1, 2);
        list[i] = (struct maq_request){.arrival_s = 2.0 * i, .prompt = UNIT * depth + draw(draws, 1, 100)};
        list[i].output = draw(draws, 1, 20);
        list[i].prefix = names[i];
        list[i].n_prefix = depth;
    }
    return (struct maq_requests){.at = list, .n = n, .prefix_unit = UNIT};
}

/* How many tokens of a request's beginning stand in one before it. */
static inline int64_t seen_before(const struct maq_requests *q, uint32_t i)
{
    uint32_t most = 0;
    for (uint32_t k = 0; k < i; k++) {
        uint32_t n = 0;
        while (n < q->at[i].n_prefix && n < q->at[k].n_prefix && q->at[i].prefix[n] == q->at[k].prefix[n])
            n++;
        most = n > most ? n : most;
    }
    return (int64_t)most * UNIT;
}

/* Over a slower link as much is found, and nobody is served before. */
static inline void expect_slower(const struct maq_serve_result *slow, const struct maq_serve_result *fast)
{
    assert_int_equal(slow->n_requests, fast->n_requests);
    for (uint32_t i = 0; i < fast->n_requests; i++) {
        assert_int_equal(slow->served[i].cached, fast->served[i].cached);
        assert_true(slow->served[i].first_s >= fast->served[i].first_s - 1e-9);
    }
}

/* Iterations with a prompt, in their order; maq_serve_options.watch = note_prefill, .watch_user = one of these. */
struct prefills {
    struct {
        double decided_s, starts_s, ends_s;
    } at[64];
    uint32_t n;
};

static inline void note_prefill(const struct maq_serve_iteration *it, void *user)
{
    struct prefills *p = user;
    if (it->prompts == 0)
        return;
    assert_true(p->n < MAQ_COUNT(p->at));
    p->at[p->n].decided_s = it->decided_s;
    p->at[p->n].starts_s = it->starts_s[0];
    p->at[p->n].ends_s = it->ends_s[0];
    p->n++;
}

#endif
