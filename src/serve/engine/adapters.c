/* SPDX-License-Identifier: Apache-2.0 */
/* adapters.c - slots for adapters in the order of their last use. */
#include "serve/engine/adapters.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "serve/engine/engine.h"

void maq_adapters_fini(struct maq_rank_adapters *a)
{
    maq_adapter_set_fini(&a->batch);
    maq_adapter_set_fini(&a->gpu);
    maq_adapter_set_fini(&a->host);
}

/* Takes the one at a place out. */
static void take_out(struct maq_adapter_set *s, uint32_t at)
{
    for (uint32_t i = at + 1; i < s->n; i++)
        s->at[i - 1] = s->at[i];
    s->n--;
}

/* It is used: the last in the list. False: it is not there. */
static bool touch(struct maq_adapter_set *s, uint64_t adapter)
{
    for (uint32_t i = s->n; i-- > 0;)
        if (s->at[i] == adapter) {
            take_out(s, i);
            s->at[s->n++] = adapter;
            return true;
        }
    return false;
}

/* One more of at most `most`, in the place of the first that is not `kept`; false: out of memory. */
static bool put(struct maq_adapter_set *s, uint64_t adapter, int32_t most, const struct maq_adapter_set *kept)
{
    for (uint32_t i = 0; (int64_t)s->n >= most && i < s->n; i++)
        if (!maq_adapter_set_has(kept, s->at[i]))
            take_out(s, i);
    return maq_adapter_set_add(s, adapter);
}

/* What is waited for so that all of a rank's batch are in slots. */
struct wait {
    uint32_t copies, reads;
};

static struct wait fetch(struct maq_serve_engine *e, struct maq_rank_adapters *a)
{
    const struct maq_lora_options *o = &e->d->options.lora;
    struct wait w = {0};
    for (uint32_t i = 0; i < a->batch.n; i++)
        (void)touch(&a->host, a->batch.at[i]);
    for (uint32_t i = 0; i < a->batch.n; i++) {
        uint64_t adapter = a->batch.at[i];
        if (touch(&a->gpu, adapter))
            continue;
        w.copies++;
        e->failed |= !put(&a->gpu, adapter, o->max_loras, &a->batch);
        if (maq_adapter_set_has(&a->host, adapter))
            continue;
        w.reads++;
        e->failed |= !put(&a->host, adapter, o->max_cpu_loras, &a->batch);
    }
    return w;
}

static uint64_t adapter_of(const struct maq_serve_engine *e, const struct maq_engine_rank *rank, uint32_t slot)
{
    return e->clients->requests->at[rank->slots[slot].request].adapter;
}

static void use(struct maq_serve_engine *e, uint32_t r, uint32_t slot, int64_t tokens)
{
    struct maq_engine_rank *rank = &e->ranks[r];
    uint64_t adapter = adapter_of(e, rank, slot);
    if (adapter == 0)
        return;
    e->failed |= !maq_adapter_set_add(&rank->adapters.batch, adapter);
    e->batches[r].adapted += tokens;
}

/* Ranks wait for the one that waits longest. */
static void wait_for_all(struct maq_serve_engine *e)
{
    struct wait most = {0};
    for (uint32_t r = 0; r < e->n_ranks; r++) {
        struct maq_rank_adapters *a = &e->ranks[r].adapters;
        struct wait w = fetch(e, a);
        e->batches[r].adapters = a->batch.n;
        most.copies = w.copies > most.copies ? w.copies : most.copies;
        most.reads = w.reads > most.reads ? w.reads : most.reads;
        e->adapters_seen.copies += w.copies;
        e->adapters_seen.reads += w.reads;
    }
    e->adapter_copy_s = most.copies * e->d->adapters.copy_s;
    e->adapter_read_s = most.reads * e->d->adapters.read_s;
}

void maq_adapters_launch(struct maq_serve_engine *e, uint32_t place)
{
    if (!e->d->options.lora.enabled)
        return;
    for (uint32_t r = 0; r < e->n_ranks; r++) {
        const struct maq_iteration *it = &e->ranks[r].it[place];
        e->ranks[r].adapters.batch.n = 0;
        for (uint32_t i = 0; i < it->n; i++)
            use(e, r, it->scheduled[i].slot, it->scheduled[i].tokens);
    }
    wait_for_all(e);
}

void maq_adapters_steady_decodes(struct maq_serve_engine *e)
{
    if (!e->d->options.lora.enabled)
        return;
    for (uint32_t r = 0; r < e->n_ranks; r++) {
        const struct maq_steady_decodes *s = &e->ranks[r].steady_decodes;
        e->ranks[r].adapters.batch.n = 0;
        for (uint32_t i = 0; i < s->n; i++)
            use(e, r, s->slots[i], 1);
    }
    wait_for_all(e);
}

/* ---- the result ---- */

static int by_number(const void *x, const void *y)
{
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return (a > b) - (a < b);
}

/* Requests with an adapter, and different ones of them. */
static void count_requests(struct maq_lora_result *out, const struct maq_requests *q)
{
    uint64_t *all = maq__malloc(q->n * sizeof *all + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < q->n; i++) {
        out->requests += q->at[i].adapter != 0;
        if (all && q->at[i].adapter != 0)
            all[n++] = q->at[i].adapter;
    }
    if (all)
        qsort(all, n, sizeof *all, by_number);
    for (uint32_t i = 0; i < n; i++)
        out->adapters += i == 0 || all[i] != all[i - 1];
    free(all);
}

void maq_adapters_fill(const struct maq_serve_engine *engines, uint32_t n, struct maq_serve_result *out)
{
    const struct maq_deployment *d = engines[0].d;
    struct maq_lora_result *l = &out->lora;
    uint64_t active = 0, iterations = 0;
    if (!d->options.lora.enabled)
        return;
    *l = (struct maq_lora_result){
        .known = true, .adapter_bytes = d->adapters.slot_bytes, .file_bytes = d->adapters.file_bytes};
    for (uint32_t i = 0; i < n; i++) {
        const struct maq_adapters_seen *s = &engines[i].adapters_seen;
        l->copies += s->copies;
        l->reads += s->reads;
        l->copy_s += s->copy_s;
        l->read_s += s->read_s;
        active += s->active;
        iterations += engines[i].iterations * engines[i].n_ranks;
    }
    l->mean_active = iterations > 0 ? (double)active / (double)iterations : 0;
    count_requests(l, engines[0].clients->requests);
}
