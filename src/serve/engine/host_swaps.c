/* SPDX-License-Identifier: Apache-2.0 */
/* host_swaps.c - blocks that have moved with a decision, as time. */
#include "serve/engine/host_swaps.h"

#include "serve/engine/engine.h"
#include "serve/kv/swap.h"

double maq_swaps_decided(struct maq_serve_engine *e)
{
    const struct maq_deployment_tiers *t = &e->d->tiers;
    struct maq_tiers_seen *seen = &e->tiers_seen;
    double free_s = e->stage_free_s[e->d->passes.n_stages - 1], most = 0;
    for (uint32_t r = 0; r < e->n_ranks; r++) {
        struct maq_rank_swaps *was = &e->ranks[r].swaps;
        const struct maq_swap *now = e->ranks[r].sched->ops->swap(e->ranks[r].sched);
        double out = (double)(now->out - was->out), back = (double)(now->back - was->back);
        *was = (struct maq_rank_swaps){now->out, now->back};
        most = out > most ? out : most;
        most = back > most ? back : most;
        seen->written_bytes[MAQ_TIER_HOST] += out * t->loaded_bytes;
        seen->read_bytes[MAQ_TIER_HOST] += back * t->loaded_bytes;
    }
    if (!(most > 0))
        return 0;
    return (free_s > e->now_s ? free_s : e->now_s) + most * t->link_bytes / t->link_bps;
}
