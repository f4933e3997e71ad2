/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_jobs.h - what tests of pools whose replicas come, leave and fail have in common: two pools of one job, runs of them, pools by chance, what holds of every
 * outcome. To be included after cmocka's header.
 */
#ifndef MAQ_TESTS_POOL_JOBS_H
#define MAQ_TESTS_POOL_JOBS_H

#include "fleet_jobs.h"
#include "serve_jobs.h"

#define FREE ((double)INFINITY)

struct setting {
    struct maq_loaded_job *job;
    struct maq_serve_options p, d;
    uint32_t n_prefill, n_decode;
    struct maq_handover handover;
    enum maq_router router;
    const struct maq_autoscaling_rule *decode_rule, *prefill_rule;
};

static inline struct setting one_each(enum maq_engine engine)
{
    struct setting s = {.job = load("llama-3.1-8b", "h100-sxm:8", "", 8), .n_prefill = 1, .n_decode = 1};
    s.p.engine = s.d.engine = engine;
    return s;
}

static inline enum maq_status try_run(struct maq_serve_result **out, const struct setting *s,
                                      const struct maq_fleet_event *events, uint32_t n, const struct maq_requests *q,
                                      struct maq_diag *diag)
{
    const struct maq_fleet_member members[] = {
        {.job = maq_job_get(s->job), .options = &s->p, .replicas = s->n_prefill, .role = MAQ_ROLE_PREFILL},
        {.job = maq_job_get(s->job), .options = &s->d, .replicas = s->n_decode, .role = MAQ_ROLE_DECODE}};
    const struct maq_fleet fleet = {.members = members,
                                    .n_members = 2,
                                    .router = s->router,
                                    .prefill_router = s->router,
                                    .seed = 3,
                                    .handover = s->handover,
                                    .events = events,
                                    .n_events = n,
                                    .scaling = s->decode_rule,
                                    .prefill_scaling = s->prefill_rule};
    return maq_fleet_run(out, &fleet, q, diag);
}

static inline struct maq_serve_result *run(const struct setting *s, const struct maq_fleet_event *events, uint32_t n,
                                           const struct maq_requests *q)
{
    struct maq_serve_result *r = NULL;
    struct maq_diag *diag = maq_diag_new();
    if (try_run(&r, s, events, n, q, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return r;
}

static inline struct setting draw_setting(struct maq_loaded_job *job, uint64_t *draws)
{
    static const enum maq_kv_transfer of_vllm[] = {MAQ_KV_TRANSFER_PULL, MAQ_KV_TRANSFER_PUSH, MAQ_KV_TRANSFER_LAYER};
    enum maq_engine engine = (enum maq_engine)draw(draws, 0, MAQ_ENGINE_COUNT - 1);
    struct setting s = {.job = job, .n_prefill = draw(draws, 1, 3), .n_decode = draw(draws, 1, 3)};
    s.p = draw_options(draws, engine);
    s.d = draw_options(draws, engine);
    s.d.block_size = s.p.block_size;
    int64_t block = s.p.block_size ? s.p.block_size : engine == MAQ_ENGINE_SGLANG ? 1 : 16;
    s.p.blocks = draw(draws, 0, 2) ? draw(draws, 3600, 6000) / block + 2 : 0;
    s.d.blocks = draw(draws, 0, 2) ? draw(draws, 3600, 6000) / block + 2 : 0;
    s.p.by_priority = s.d.by_priority;
    if (engine == MAQ_ENGINE_TRTLLM) /* whole prompts */
        s.p.max_num_batched_tokens = 4096;
    s.d.sglang.reserved_decode_tokens = (int32_t)draw(draws, 1, 100);
    s.router = (enum maq_router)draw(draws, 0, MAQ_ROUTER_COUNT - 1);
    s.handover.bps = draw(draws, 0, 4) ? exp2(uniform(draws, 24, 36)) : FREE;
    if (engine == MAQ_ENGINE_VLLM)
        s.handover.transfer = of_vllm[draw(draws, 0, 2)];
    if (engine != MAQ_ENGINE_SGLANG && draw(draws, 0, 2) == 0)
        s.handover.max_local_prefill = draw(draws, 1, (uint32_t)s.d.max_num_batched_tokens);
    return s;
}

static inline void expect_conserved(const struct maq_serve_result *r, const struct setting *s,
                                    const struct maq_requests *q)
{
    uint32_t decodes = 0, prefills = 0, retried = 0;
    double bytes = 0;
    assert_int_equal(r->finished, q->n);
    assert_int_equal(r->pools->n + r->pools->local, q->n);
    for (uint32_t i = 0; i < q->n; i++) {
        const struct maq_served *at = &r->served[i];
        const struct maq_handed *h = &r->pools->handed[i];
        assert_true(at->arrival_s <= at->scheduled_s && at->scheduled_s < at->first_s && at->first_s <= at->last_s);
        assert_true(at->replica >= s->n_prefill && at->replica < r->n_replicas);
        retried += at->retries > 0;
        if (h->local)
            continue;
        assert_true(h->replica < s->n_prefill);
        assert_true(at->scheduled_s < h->computed_s && h->computed_s <= h->ends_s && h->begins_s <= h->ends_s);
        assert_true(h->reserved_s <= h->begins_s && h->ends_s < at->first_s);
        bytes += h->bytes;
    }
    for (uint32_t k = 0; k < r->n_replicas; k++)
        *(k < s->n_prefill ? &prefills : &decodes) += r->replicas[k].requests;
    assert_int_equal(prefills, r->pools->n);
    assert_int_equal(decodes, q->n);
    assert_int_equal(retried, r->availability.retried);
    expect_close(r->pools->bytes + 1, bytes + 1, 1e-9, "sum of bytes");
    assert_true(r->pools->cut_bytes >= 0 && (r->pools->cut > 0 || r->pools->cut_bytes <= 0));
    assert_true(r->availability.replicas <= s->n_prefill + s->n_decode + 1e-9);
}

#endif
