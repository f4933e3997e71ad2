/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input_record.c - compares the look-ups that a slice recorded with a settled table of contributions: entries, runs
 * of members, and keys of the store. See input_record.h.
 */
#include "launch/input_record.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "launch/private_folder.h"

#define FILE_MAX ((size_t)1 << 30)

/* ---- contributions at a place ---- */

/* Index of the first entry of a settled table at or after that place; t->n: none. Not for keys of the store. */
static uint32_t first_from(const struct maq_contributions *t, uint64_t channel, uint32_t seq, uint32_t rank)
{
    uint32_t low = 0, high = t->n;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        const struct maq_contribution *s = &t->at[mid];
        bool before = s->channel != channel ? s->channel < channel : s->seq != seq ? s->seq < seq : s->rank < rank;
        if (before)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* The contribution at a place; NULL: there is none. */
static const struct maq_contribution *said_at(const struct maq_contributions *t, uint64_t channel, uint32_t seq,
                                              uint32_t rank)
{
    uint32_t i = first_from(t, channel, seq, rank);
    const struct maq_contribution *s = i < t->n ? &t->at[i] : NULL;
    return s && s->channel == channel && s->seq == seq && s->rank == rank ? s : NULL;
}

static bool same_exchange(const struct maq_input *g, const char *words, const struct maq_contributions *t)
{
    bool confirmed = false, open = false;
    for (uint32_t i = 0; i < g->n; i++) {
        uint64_t was;
        memcpy(&was, words + i * sizeof was, sizeof was);
        if (i == g->rank || (g->root != MAQ_REC_NONE && i != g->root))
            continue;
        const struct maq_contribution *s = said_at(t, g->channel, g->seq, i);
        if (s && s->n != g->result) /* the device does not take a contribution of another size */
            s = NULL;
        if ((was & 1) && (!s || maq_input_hash(s->bytes, s->n, true) != was))
            return false;
        if (!(was & 1) && s && maq_input_hash(s->bytes, s->n, false) != was)
            return false;
        confirmed = confirmed || (!(was & 1) && s);
        open = open || !s;
    }
    if (!confirmed || g->steady == MAQ_INPUT_SETTLED)
        return true;
    /* once all ranks have contributed, the value is certain and no longer a guess */
    return g->steady == MAQ_INPUT_STEADY && open;
}

static bool same_lookup(const struct maq_input *g, const struct maq_contributions *t)
{
    const struct maq_contribution *s = said_at(t, g->channel, g->seq, g->rank);
    return g->result == (s ? maq_input_hash(s->bytes, s->n, true) : 0);
}

/* The part of a contribution that a collective reads. */
struct part {
    uint64_t at, n;
};

/*
 * Whether the contributions at places [first, end) are equal to `was`, by hash. A rank without a contribution was taken to
 * contribute the same.
 */
static bool same_run(const struct maq_input *g, struct part part, uint32_t first, uint32_t end, uint64_t was,
                     const struct maq_contributions *t)
{
    bool said = was & 1;
    uint32_t i = first_from(t, g->channel, g->seq, first), found = 0;
    for (; i < t->n && t->at[i].channel == g->channel && t->at[i].seq == g->seq && t->at[i].rank < end; i++) {
        const struct maq_contribution *s = &t->at[i];
        if (s->rank == g->rank || s->n != g->result)
            continue;
        if (maq_input_hash(s->bytes + part.at, part.n, said) != was)
            return false;
        found++;
    }
    bool own = g->rank >= first && g->rank < end;
    return !said || found == end - first - own;
}

static bool same_reads(const struct maq_input *g, const char *words, const struct maq_contributions *t)
{
    uint64_t pair[2];
    if (g->n < 2 || g->n % 2 != 0)
        return false;
    memcpy(pair, words, sizeof pair);
    struct part part = {pair[0], pair[1]};
    if (part.at > g->result || part.n > g->result - part.at)
        return false;
    for (uint32_t k = 2; k < g->n; k += 2) {
        uint64_t next = g->root;
        memcpy(pair, words + k * sizeof *pair, sizeof pair);
        if (k + 2 < g->n)
            memcpy(&next, words + (k + 2) * sizeof *pair, sizeof next);
        if (pair[0] >= next || next > g->root || !same_run(g, part, (uint32_t)pair[0], (uint32_t)next, pair[1], t))
            return false;
    }
    return true;
}

/* ---- keys of the store ---- */

struct keys {
    struct maq_input *at; /* of the file, by hash of the key */
    uint32_t n, size;
    bool listed;
};

static int by_key(const void *left, const void *right)
{
    const struct maq_input *a = left, *b = right;
    if (a->channel != b->channel)
        return a->channel < b->channel ? -1 : 1;
    return a->result < b->result ? -1 : a->result > b->result;
}

static struct maq_input *key_in(const struct keys *keys, uint64_t hash)
{
    struct maq_input want = {.channel = hash};
    uint32_t low = 0, high = keys->n;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (by_key(&keys->at[mid], &want) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low < keys->n && keys->at[low].channel == hash ? &keys->at[low] : NULL;
}

/* Whether every key of the table that the slice asked for has the same value, and no key that it got is gone. */
static bool same_keys(struct keys *keys, const struct maq_contributions *t, uint32_t rank)
{
    uint32_t given = 0, found = 0;
    if (keys->n > 0)
        qsort(keys->at, keys->n, sizeof *keys->at, by_key);
    for (uint32_t i = 0; i < keys->n; i++)
        given += keys->at[i].result != 0;
    for (uint32_t i = 0; i < t->n; i++) {
        struct maq_str key, value;
        if (t->at[i].by == rank || !maq_contributions_key(&key, &value, &t->at[i]))
            continue;
        const struct maq_input *was = key_in(keys, maq_rec_hash(key.ptr, key.len, 0));
        if (was ? was->result != maq_input_hash(value.ptr, value.len, true) : keys->listed)
            return false;
        found += was != NULL;
    }
    return found == given;
}

/* ---- the file ---- */

enum maq_status maq_input_record_add_store(const char *path, const struct maq_store *store, struct maq_diag *diag)
{
    struct maq_buf b;
    char *bytes;
    size_t n;
    MAQ_TRY(maq_folder_read(&bytes, &n, path, FILE_MAX, NULL));
    if (!bytes)
        return MAQ_OK;
    maq_buf_init(&b, FILE_MAX);
    maq_buf_add(&b, bytes, n);
    free(bytes);
    if (store->listed)
        maq_buf_add(&b, &(struct maq_input){.kind = MAQ_INPUT_KEYS}, sizeof(struct maq_input));
    for (uint32_t i = 0; i < store->n; i++) {
        const struct maq_store_key *k = &store->keys[i];
        struct maq_input g = {
            .kind = MAQ_INPUT_KEY, .channel = maq_rec_hash(k->key.ptr, k->key.len, 0), .result = k->given_hash};
        if (k->asked || (store->listed && k->given))
            maq_buf_add(&b, &g, sizeof g);
    }
    enum maq_status status = b.failed ? MAQ_NO_MEMORY : maq_folder_write(path, b.ptr, b.len, diag);
    maq_buf_fini(&b);
    return status;
}

/* One entry at `at`; *at moves behind it. false: not the same, or damaged. */
static bool same_entry(const char *bytes, size_t n, size_t *at, struct keys *keys, const struct maq_contributions *said)
{
    struct maq_input g;
    if (n - *at < sizeof g)
        return false;
    memcpy(&g, bytes + *at, sizeof g);
    *at += sizeof g;
    switch (g.kind) {
    case MAQ_INPUT_HEAD: /* of each process that the program has */
        return true;
    case MAQ_INPUT_EXCHANGE:
    case MAQ_INPUT_READS: {
        const char *words = bytes + *at;
        if ((n - *at) / sizeof(uint64_t) < g.n)
            return false;
        *at += g.n * sizeof(uint64_t);
        return g.kind == MAQ_INPUT_READS ? same_reads(&g, words, said) : same_exchange(&g, words, said);
    }
    case MAQ_INPUT_LOOKUP:
        return same_lookup(&g, said);
    case MAQ_INPUT_TAINTED_READ: /* what was read there is in the entry before it */
        return true;
    case MAQ_INPUT_KEYS:
        keys->listed = true;
        return true;
    case MAQ_INPUT_KEY:
        if (!maq__grow((void **)&keys->at, &keys->size, keys->n, sizeof *keys->at))
            return false;
        keys->at[keys->n++] = g;
        return true;
    default:
        return false;
    }
}

bool maq_input_record_same(const char *path, const struct maq_contributions *said, uint32_t rank)
{
    struct keys keys = {0};
    struct maq_input head;
    char *bytes;
    size_t n, at = 0;
    if (maq_folder_read(&bytes, &n, path, FILE_MAX, NULL) != MAQ_OK || !bytes)
        return false;
    bool same = n >= sizeof head;
    if (same) {
        memcpy(&head, bytes, sizeof head);
        same = head.kind == MAQ_INPUT_HEAD;
    }
    while (same && at < n)
        same = same_entry(bytes, n, &at, &keys, said);
    same = same && same_keys(&keys, said, rank);
    free(keys.at);
    free(bytes);
    return same;
}

/* Whether what somebody else is taken to say was read, of a collective of bytes. */
static bool supposed_bytes(const struct maq_input *g, const char *words)
{
    if (g->kind == MAQ_INPUT_LOOKUP)
        return g->result == 0 && g->steady;
    if (g->kind != MAQ_INPUT_READS || !g->steady)
        return false;
    for (uint32_t k = 2; k + 1 < g->n; k += 2) {
        uint64_t run[2], next = g->root;
        memcpy(run, words + k * sizeof *run, sizeof run);
        if (k + 3 < g->n)
            memcpy(&next, words + (k + 2) * sizeof *run, sizeof next);
        const bool own = g->rank >= run[0] && g->rank < next;
        if (!(run[1] & 1) && next > run[0] + own)
            return true;
    }
    return false;
}

struct maq_unsaid_reads maq_input_record_unsaid(const char *path)
{
    struct maq_input g;
    struct maq_unsaid_reads out = {.stopped_for = MAQ_REC_NONE};
    char *bytes;
    size_t n;
    if (maq_folder_read(&bytes, &n, path, FILE_MAX, NULL) != MAQ_OK || !bytes)
        return out;
    for (size_t at = 0; n - at >= sizeof g;) {
        memcpy(&g, bytes + at, sizeof g);
        at += sizeof g;
        bool words = g.kind == MAQ_INPUT_EXCHANGE || g.kind == MAQ_INPUT_READS;
        if (words && (n - at) / sizeof(uint64_t) < g.n)
            break;
        out.supposed = out.supposed || supposed_bytes(&g, bytes + at);
        out.loose = out.loose || (g.kind == MAQ_INPUT_EXCHANGE && g.steady == MAQ_INPUT_LOOSE);
        at += words ? g.n * sizeof(uint64_t) : 0;
        bool read = g.kind == MAQ_INPUT_TAINTED_READ;
        if (read && g.steady)
            out.stopped_for = g.rank;
        out.guessed = out.guessed || (read && !g.steady);
    }
    free(bytes);
    return out;
}
