/* SPDX-License-Identifier: Apache-2.0 */
/*
 * contributions.c - a growing table of contributions: read from traces, from stores and from its own file, sorted,
 * hashed and written. See contributions.h.
 */
#include "launch/contributions.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "capture/trace/rank_trace.h"
#include "launch/codes.h"
#include "launch/private_folder.h"
#include "launch/store/gloo.h"

#define ENTRIES_MAX (1u << 26)
#define FILE_MAX ((size_t)4 << 30)

void maq_contributions_init(struct maq_contributions *t)
{
    *t = (struct maq_contributions){0};
    maq_arena_init(&t->arena, 0);
}

void maq_contributions_fini(struct maq_contributions *t)
{
    free(t->at);
    maq_arena_fini(&t->arena);
    *t = (struct maq_contributions){0};
}

static enum maq_status no_memory(struct maq_diag *diag)
{
    return maq_diag_fail(MAQ_NO_MEMORY, diag, MAQ_CODE_LAUNCH_LIMIT, (struct maq_span){0}, NULL,
                         "more contributions to exchanges than can be held");
}

/* Adds an entry and returns its n bytes, to be filled by the caller. */
static char *add(struct maq_contributions *t, struct maq_contribution said)
{
    if (t->n == t->size) {
        uint32_t size = t->size ? t->size * 2 : 256;
        struct maq_contribution *grown = size <= ENTRIES_MAX ? maq__realloc(t->at, size * sizeof *grown) : NULL;
        if (!grown)
            return NULL;
        t->at = grown;
        t->size = size;
    }
    char *bytes = maq_arena_alloc(&t->arena, said.n + 1, 8);
    said.bytes = bytes;
    if (bytes)
        t->at[t->n++] = said;
    return bytes;
}

static bool add_bytes(struct maq_contributions *t, struct maq_contribution said, const void *bytes)
{
    char *to = add(t, said);
    if (to && said.n > 0)
        memcpy(to, bytes, said.n);
    return to != NULL;
}

enum maq_status maq_contributions_add(struct maq_contributions *t, const struct maq_contribution *said,
                                      struct maq_diag *diag)
{
    return add_bytes(t, *said, said->bytes) ? MAQ_OK : no_memory(diag);
}

/* ---- where they come from ---- */

/* How many a rank has put into each channel: it numbers them by its own. */
struct counter {
    uint64_t channel;
    uint32_t n;
};
struct counters {
    struct counter *at;
    uint32_t n, size;
};

static bool next_of(struct counters *c, uint64_t channel, uint32_t *seq)
{
    uint32_t i = c->n;
    while (i > 0 && c->at[i - 1].channel != channel)
        i--;
    if (i == 0) {
        if (c->n == c->size) {
            uint32_t size = c->size ? c->size * 2 : 64;
            struct counter *grown = maq__realloc(c->at, size * sizeof *grown);
            if (!grown)
                return false;
            c->at = grown;
            c->size = size;
        }
        c->at[c->n++] = (struct counter){.channel = channel};
        i = c->n;
    }
    *seq = c->at[i - 1].n++;
    return true;
}

enum maq_status maq_contributions_add_trace(struct maq_contributions *t, uint32_t rank, const char *path,
                                            struct maq_diag *diag)
{
    struct maq_trace_reader trace;
    struct maq_rec rec;
    struct counters counters = {0};
    const void *payload;
    bool fine = true, more = true;
    if (access(path, F_OK) != 0 || maq_trace_open_rank(&trace, path, NULL) != MAQ_OK)
        return MAQ_OK;
    while (fine && maq_trace_next(&trace, &more, &rec, &payload, NULL) == MAQ_OK && more) {
        struct maq_contribution said = {.channel = rec.ns, .rank = rec.arg, .by = rank, .n = rec.bytes};
        if (rec.kind != MAQ_REC_BOOT || rec.ns >= MAQ_PEERS_TOGETHER)
            continue;
        fine = next_of(&counters, rec.ns, &said.seq) && (rec.bytes == 0 || add_bytes(t, said, payload));
    }
    free(counters.at);
    maq_trace_close_rank(&trace);
    return fine ? MAQ_OK : no_memory(diag);
}

enum maq_status maq_contributions_add_store(struct maq_contributions *t, uint32_t rank, const struct maq_store *store,
                                            struct maq_diag *diag)
{
    for (uint32_t i = 0; i < store->n; i++) {
        const struct maq_store_key *k = &store->keys[i];
        uint64_t len = k->key.len;
        if (!k->set || !k->there || k->absent)
            continue;
        char *to = add(t, (struct maq_contribution){
                              .channel = MAQ_PEERS_STORE, .rank = rank, .by = rank, .n = sizeof len + len + k->n});
        if (!to)
            return no_memory(diag);
        memcpy(to, &len, sizeof len);
        memcpy(to + sizeof len, k->key.ptr, len);
        memcpy(to + sizeof len + len, k->value, k->n);
        maq_gloo_settle(to + sizeof len + len, k->n);
    }
    return MAQ_OK;
}

enum maq_status maq_contributions_add_file(struct maq_contributions *t, const char *path, struct maq_diag *diag)
{
    struct maq_peers_head head = {.n_entries = 0};
    char *bytes;
    size_t n;
    MAQ_TRY(maq_folder_read(&bytes, &n, path, FILE_MAX, diag));
    if (!bytes)
        return MAQ_OK;
    bool form = n >= sizeof head;
    if (form)
        memcpy(&head, bytes, sizeof head);
    form = form && memcmp(head.magic, MAQ_PEERS_MAGIC, sizeof head.magic) == 0 &&
           head.n_entries <= (n - sizeof head) / sizeof(struct maq_peers_entry);
    bool memory = true;
    for (uint64_t i = 0; form && memory && i < head.n_entries; i++) {
        struct maq_peers_entry e;
        memcpy(&e, bytes + sizeof head + i * sizeof e, sizeof e);
        form = e.at <= n && e.bytes <= n - e.at;
        if (form)
            memory =
                add_bytes(t, (struct maq_contribution){e.channel, e.seq, e.rank, e.rank, e.bytes, NULL}, bytes + e.at);
    }
    free(bytes);
    if (!form)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_LAUNCH_LIMIT, (struct maq_span){0},
                             "maquette capture writes it beside the captured job",
                             "'%.200s' holds no contributions of ranks, or is damaged", path);
    return memory ? MAQ_OK : no_memory(diag);
}

/* ---- order ---- */

static struct maq_str key_of(const struct maq_contribution *s)
{
    uint64_t len = 0;
    if (s->channel != MAQ_PEERS_STORE || s->n < sizeof len)
        return (struct maq_str){NULL, 0};
    memcpy(&len, s->bytes, sizeof len);
    return (struct maq_str){s->bytes + sizeof len, len <= s->n - sizeof len ? (size_t)len : 0};
}

static int by_text(struct maq_str a, struct maq_str b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int order = n > 0 ? memcmp(a.ptr, b.ptr, n) : 0;
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

/*
 * By place; then by the rank that contributed it. Entries of one rank at one place, of which a trace has none and a file
 * none, by content.
 */
static int compare(const void *left, const void *right)
{
    const struct maq_contribution *a = left, *b = right;
    int order = ORDER(a->channel, b->channel);
    if (order == 0 && a->channel == MAQ_PEERS_STORE)
        order = by_text(key_of(a), key_of(b));
    else if (order == 0)
        order = ORDER(a->seq, b->seq) != 0 ? ORDER(a->seq, b->seq) : ORDER(a->rank, b->rank);
    if (order == 0)
        order = ORDER(a->by, b->by);
    if (order == 0)
        order = by_text((struct maq_str){a->bytes, a->n}, (struct maq_str){b->bytes, b->n});
    return order;
}

static bool same_place(const struct maq_contribution *a, const struct maq_contribution *b)
{
    if (a->channel != b->channel)
        return false;
    if (a->channel == MAQ_PEERS_STORE)
        return maq_str_eq(key_of(a), key_of(b));
    return a->seq == b->seq && a->rank == b->rank;
}

void maq_contributions_settle(struct maq_contributions *t)
{
    uint32_t kept = 0, keys = 0;
    if (t->n > 1)
        qsort(t->at, t->n, sizeof *t->at, compare);
    for (uint32_t i = 0; i < t->n; i++)
        if (kept == 0 || !same_place(&t->at[kept - 1], &t->at[i]))
            t->at[kept++] = t->at[i];
    t->n = kept;
    for (uint32_t i = 0; i < t->n; i++)
        if (t->at[i].channel == MAQ_PEERS_STORE)
            t->at[i].seq = keys++;
}

bool maq_contributions_key(struct maq_str *key, struct maq_str *value, const struct maq_contribution *s)
{
    *key = key_of(s);
    if (!key->ptr)
        return false;
    size_t before = sizeof(uint64_t) + key->len;
    *value = (struct maq_str){s->bytes + before, s->n - before};
    return true;
}

void maq_contributions_give(const struct maq_contributions *t, struct maq_store *store, uint32_t rank)
{
    for (uint32_t i = 0; i < t->n; i++) {
        struct maq_str key, value;
        if (t->at[i].by == rank || !maq_contributions_key(&key, &value, &t->at[i]))
            continue;
        if (maq_gloo_said(value) && maq_store_lives(store, t->at[i].by))
            maq_store_expect(store, key); /* its address in this run */
        else
            maq_store_give(store, key, value.ptr, value.len);
    }
}

bool maq_contributions_ran(const struct maq_contributions *t, uint32_t rank)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (t->at[i].channel == MAQ_PEERS_RAN && t->at[i].rank == rank)
            return true;
    return false;
}

uint64_t maq_contributions_hash(const struct maq_contributions *t, uint32_t first)
{
    uint64_t h = t->n - first;
    for (uint32_t i = first; i < t->n; i++) {
        const struct maq_contribution *s = &t->at[i];
        h = maq_rec_mix(maq_rec_mix(h, s->channel), (uint64_t)s->seq << 32 | s->rank);
        h = maq_rec_hash(s->bytes, s->n, h);
    }
    return h;
}

enum maq_status maq_contributions_write(const struct maq_contributions *t, const char *path, struct maq_diag *diag)
{
    struct maq_peers_head head = {.magic = MAQ_PEERS_MAGIC, .n_entries = t->n};
    uint64_t at = sizeof head + (uint64_t)t->n * sizeof(struct maq_peers_entry);
    struct maq_buf out;
    maq_buf_init(&out, FILE_MAX);
    maq_buf_add(&out, &head, sizeof head);
    for (uint32_t i = 0; i < t->n; i++) {
        const struct maq_contribution *s = &t->at[i];
        struct maq_peers_entry e = {.channel = s->channel, .seq = s->seq, .rank = s->rank, .at = at, .bytes = s->n};
        maq_buf_add(&out, &e, sizeof e);
        at += (s->n + 7) & ~(uint64_t)7;
    }
    for (uint32_t i = 0; i < t->n; i++) {
        static const char zeros[8];
        maq_buf_add(&out, t->at[i].bytes, t->at[i].n);
        maq_buf_add(&out, zeros, (8 - t->at[i].n % 8) % 8);
    }
    enum maq_status status = out.failed ? no_memory(diag) : maq_folder_write(path, out.ptr, out.len, diag);
    maq_buf_fini(&out);
    return status;
}
