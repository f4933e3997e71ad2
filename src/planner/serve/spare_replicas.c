/* SPDX-License-Identifier: Apache-2.0 */
/* spare_replicas.c - how many replicas it takes with failures: how many are there of so many, by bisection of how many it takes. */
#include "planner/serve/spare_replicas.h"

#include <math.h>

#include "base/check.h"
#include "base/threads.h"

static uint32_t room_of(const struct maq_serve_candidate *c)
{
    return maq_serve_group_devices(c) / c->gpus;
}

enum maq_status maq_serve_with_spares(uint32_t *out, const struct maq_serve_searching *s,
                                      const struct maq_serve_candidate *c, uint32_t needed,
                                      struct maq_serve_together with)
{
    const struct maq_serve_reserve *r = s->opts->reserve;
    uint32_t room = room_of(c);
    *out = needed <= room ? needed : 0;
    return r && *out > 0 ? r->replicas(out, r->user, c, needed, room, with) : MAQ_OK;
}

enum maq_status maq_serve_counted_on(uint32_t *out, const struct maq_serve_searching *s,
                                     const struct maq_serve_candidate *c, uint32_t replicas,
                                     struct maq_serve_together with)
{
    uint32_t high = replicas + 1, all;
    *out = s->opts->reserve ? 0 : replicas;
    while (s->opts->reserve && high - *out > 1) { /* `high` are not there of so many */
        uint32_t between = *out + (high - *out) / 2;
        MAQ_TRY(maq_serve_with_spares(&all, s, c, between, with));
        *(all > 0 && all <= replicas ? out : &high) = between;
    }
    return MAQ_OK;
}

/* Replicas in all for a rate, of which each carries so much. */
static enum maq_status for_rate(uint32_t *out, const struct maq_serve_searching *s, const struct maq_serve_candidate *c,
                                double per_s)
{
    double needed = ceil(s->rate / per_s);
    *out = 0;
    return needed <= room_of(c) ? maq_serve_with_spares(out, s, c, (uint32_t)needed, maq_serve_by_itself) : MAQ_OK;
}

static enum maq_status fill(const struct maq_serve_searching *s, struct maq_serve_candidate *c)
{
    MAQ_TRY(maq_serve_counted_on(&c->counted_on, s, c, room_of(c), maq_serve_by_itself));
    if (s->rate <= 0)
        return MAQ_OK;
    MAQ_TRY(for_rate(&c->likely_replicas, s, c, c->likely_per_s));
    return for_rate(&c->least_replicas, s, c, c->most_per_s * MAQ_SERVE_SEARCH_MARGIN);
}

static bool work(void *user, uint32_t i, struct maq_arena *scratch)
{
    const struct maq_serve_searching *s = user;
    (void)scratch;
    return s->out->candidates[i].verdict != MAQ_SERVE_VERDICT_OPEN || fill(s, &s->out->candidates[i]) == MAQ_OK;
}

/* Too slow by itself, it may still be one side of two pools. */
static bool may_serve(const struct maq_serve_candidate *c)
{
    return c->verdict == MAQ_SERVE_VERDICT_OPEN || c->prefill_per_s > 0 || c->decode_per_s > 0;
}

/* Limits of the engine do not change what is loaded. */
static enum maq_status load_all(struct maq_serve_searching *s, struct maq_diag *diag)
{
    const struct maq_serve_reserve *r = s->opts->reserve;
    struct maq_serve_candidate *c = s->out->candidates;
    for (uint32_t i = 0, n; r && i < s->out->n; i += n) {
        double load_s = 0;
        n = maq_serve_run_of_passes(&c[i], s->out->n - i);
        for (uint32_t k = i; k < i + n; k++) {
            if (!may_serve(&c[k]))
                continue;
            if (load_s <= 0)
                MAQ_TRY(r->load(&load_s, r->user, &c[k], diag));
            c[k].load_s = load_s;
        }
    }
    return MAQ_OK;
}

enum maq_status maq_serve_reserve_all(struct maq_serve_searching *s, struct maq_diag *diag)
{
    MAQ_TRY(load_all(s, diag));
    return maq_parallel_run(work, s, 0, s->out->n, s->opts->threads) ? MAQ_OK : maq_no_memory(diag, "a search");
}
