/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assumed_contributions.c - what a rank that nobody has run yet would have put into an exchange.
 *
 * The first slices of a capture know little of the others. What they assume is in this order:
 *
 * 1. A pattern. Where three members or more are known (oneself is one), every 4-byte word is looked at as a function of
 *    the rank i in the exchange (rank_pattern.h): the same for all, ranks, local ranks, nodes, colors of tensor, pipeline and data groups. Where none
 *    explains all known words, a sum over the digits of i (digits.c).
 * 2. A group, in a split: colors may be hashes (PyTorch's are), and then no pattern has them. Where two members or more of the
 *    own color are known, ranks and keys of a group are taken to grow evenly: rank = first + stride * key. It has as many
 *    members as its largest known key asks for, rounded up to a divisor of n where nobody known stands in the way.
 *    Where nobody else is known, the color is taken for the rank of the first member, as it is in PyTorch from 2.15 on, and
 *    groups for blocks of a regular mesh, as large as they can be. A first member takes its stride to be 1.
 * 3. The node rule. Where the own contribution holds the own host name, or a hash of it by one of the usual functions
 *    (Bernstein's h * 33 + c and h * 33 ^ c from 5381, 64 and 32 bit, of the name or of the name and the boot id of the
 *    kernel behind it: what NCCL's documentation, nccl-tests and llm.c use), ranks on other nodes have their own node's.
 *    Otherwise all ranks of a job would be on one host.
 * 4. A copy of one's own.
 *
 * Later slices replace guesses by what was said; `maquette capture` repeats until nothing changes.
 */
#include "shim/nccl/digits.h"
#include "shim/nccl/nccl.h"
#include "shim/nccl/rank_pattern.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATTERNS_MOST = 64 }; /* bytes of a contribution in which patterns are looked for */

void vg_host_name(char *out, uint32_t node)
{
    snprintf(out, VG_HOST_NAME, "node%05u", node);
}

/* --- patterns --------------------------------------------------------------------------------------------------------- */

struct known {
    const unsigned char *all, *have;
    uint32_t n, me;
    uint64_t bytes;
};

static bool is_known(const struct known *k, uint32_t i)
{
    return i == k->me || k->have[i];
}

static uint32_t word(const struct known *k, uint32_t i, uint64_t at)
{
    uint32_t w;
    memcpy(&w, k->all + (uint64_t)i * k->bytes + at, sizeof w);
    return w;
}

/* What is known of one word: rank[m] says word[m], and x[m] as a whole number with a sign. All have room for all members. */
struct word_said {
    uint32_t *rank, *word, *words; /* words: of every member, by digits */
    int64_t *x;
    uint32_t n;
};

static void collect(struct word_said *said, const struct known *k, uint64_t at)
{
    said->n = 0;
    for (uint32_t i = 0; i < k->n; i++)
        if (is_known(k, i)) {
            said->rank[said->n] = i;
            said->word[said->n] = word(k, i, at);
            said->x[said->n] = (int32_t)said->word[said->n];
            said->n++;
        }
}

/* One word of those who are not known; false when there is no pattern in it. *steady: see vg_assumed_contributions(). */
static bool fill_word(unsigned char *all, const struct known *k, uint64_t at, struct word_said *s, bool *steady)
{
    struct vg_rank_pattern pattern;
    collect(s, k, at);
    const bool simple = vg_rank_pattern(&pattern, k->n, vg_card()->per_node, s->rank, s->x, s->n);
    if (!simple && (!is_known(k, 0) ||
                    !vg_digits(s->words, steady, k->n, &(struct vg_said){s->rank, s->word, s->n, word(k, 0, at)})))
        return false;
    for (uint32_t i = 0; i < k->n; i++) {
        const uint32_t w = simple ? (uint32_t)vg_rank_pattern_at(&pattern, i) : s->words[i];
        if (!is_known(k, i))
            memcpy(all + (uint64_t)i * k->bytes + at, &w, sizeof w);
    }
    return true;
}

/*
 * Fills by patterns; false when some word has none. Patterns are steady: the first that explains what is known explains what it says
 * itself as well, and those before it have failed on what is known already.
 */
static bool fill_by_patterns(unsigned char *all, const struct known *k, bool *steady)
{
    uint32_t seen = 0;
    for (uint32_t i = 0; i < k->n; i++)
        seen += is_known(k, i);
    const bool looks = seen >= 3 && k->bytes % 4 == 0 && k->bytes <= PATTERNS_MOST;
    int64_t *x = looks ? malloc((sizeof *x + 3 * sizeof(uint32_t)) * k->n) : NULL;
    if (!x)
        return false;
    uint32_t *rest = (uint32_t *)(x + k->n);
    struct word_said said = {rest, rest + k->n, rest + 2 * (uint64_t)k->n, x, 0};
    bool fine = true;
    for (uint64_t at = 0; at < k->bytes && fine; at += 4)
        fine = fill_word(all, k, at, &said, steady);
    free(x);
    return fine;
}

/* --- groups ----------------------------------------------------------------------------------------------------------- */

struct group {
    uint32_t color;
    int64_t first, stride, members;
    bool named; /* nobody else is known: the color says who is first */
};

/* Key of rank i in the group if it is on its line, from 0 on; -1: it is not. */
static int64_t on_line(const struct group *g, uint32_t i)
{
    int64_t away = (int64_t)i - g->first;
    return away >= 0 && away % g->stride == 0 ? away / g->stride : -1;
}

/* The line through all known members of the own color; false: they are on none. */
static bool find_line(struct group *g, const struct known *k)
{
    int64_t key = (int32_t)word(k, k->me, 4);
    *g = (struct group){.color = word(k, k->me, 0)};
    for (uint32_t i = 0; i < k->n && !g->stride; i++) {
        int64_t keys = (int32_t)word(k, i, 4) - key, ranks = (int64_t)i - k->me;
        if (is_known(k, i) && word(k, i, 0) == g->color && keys != 0 && ranks % keys == 0)
            g->stride = ranks / keys;
    }
    g->named = !g->stride && g->color <= k->me && (key > 0 ? (k->me - g->color) % key == 0 : g->color == k->me);
    if (g->named)
        g->stride = key > 0 ? (k->me - g->color) / key : 1;
    g->first = k->me - key * g->stride;
    bool fits = g->stride > 0 && g->first >= 0 && key >= 0;
    for (uint32_t i = 0; i < k->n && fits; i++)
        if (is_known(k, i) && word(k, i, 0) == g->color)
            fits = on_line(g, i) == (int32_t)word(k, i, 4);
    return fits;
}

/* How many there are: between the largest known key and the first known one on the line who is no member. */
static void count_members(struct group *g, const struct known *k)
{
    int64_t least = 1, most = ((int64_t)k->n - 1 - g->first) / g->stride + 1;
    for (uint32_t i = 0; i < k->n; i++) {
        int64_t key = is_known(k, i) ? on_line(g, i) : -1;
        if (key >= least && word(k, i, 0) == g->color)
            least = key + 1;
        else if (key >= 0 && key < most && word(k, i, 0) != g->color)
            most = key;
    }
    g->members = least > 0 ? least : 1;
    if (g->named && k->n % g->stride == 0) {
        int64_t blocks = k->n / g->stride;
        for (g->members = blocks; g->members > least && (blocks % g->members || g->first / g->stride % g->members);)
            g->members--;
        return;
    }
    while (g->members < most && k->n % g->members != 0)
        g->members++;
}

static bool fill_by_group(unsigned char *all, const struct known *k)
{
    struct group g;
    if (k->bytes != 8 || (int32_t)word(k, k->me, 0) < 0 || !find_line(&g, k))
        return false;
    count_members(&g, k);
    for (uint32_t i = 0; i < k->n; i++) {
        int64_t key = on_line(&g, i);
        bool member = key >= 0 && key < g.members;
        uint32_t said[2] = {member ? g.color : UINT32_MAX, member ? (uint32_t)key : 0}; /* UINT32_MAX: no color */
        if (!is_known(k, i))
            memcpy(all + (uint64_t)i * k->bytes, said, sizeof said);
    }
    return true;
}

/* --- nodes ------------------------------------------------------------------------------------------------------------ */

#define BOOT_ID "/proc/sys/kernel/random/boot_id"
#define BOOT_ID_BYTES 40

static uint64_t bernstein(const char *name, const char *suffix, bool xors)
{
    uint64_t h = 5381;
    for (int part = 0; part < 2; part++)
        for (const char *at = part ? suffix : name; *at; at++)
            h = xors ? (h * 33) ^ (unsigned char)*at : h * 33 + (unsigned char)*at;
    return h;
}

static void read_boot_id(char *out)
{
    int fd = open(BOOT_ID, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, out, BOOT_ID_BYTES - 1);
    if (fd >= 0)
        (void)close(fd);
    out[n > 0 ? n : 0] = '\0';
    out[strcspn(out, "\n")] = '\0';
}

/* How a contribution tells its host. */
struct host {
    enum { NOTHING, TEXT, HASH } how;
    uint64_t at;                /* where in it */
    unsigned width;             /* of the hash */
    bool xors;                  /* which hash */
    char suffix[BOOT_ID_BYTES]; /* behind the name */
};

static bool find_text(struct host *h, const unsigned char *mine, uint64_t bytes, const char *name)
{
    size_t length = strlen(name);
    const unsigned char *found = length >= 4 && length <= bytes ? memmem(mine, bytes, name, length) : NULL;
    if (found)
        *h = (struct host){.how = TEXT, .at = (uint64_t)(found - mine)};
    return found != NULL;
}

/* A hash of the name and the suffix that *h has. */
static bool find_hash(struct host *h, const unsigned char *mine, uint64_t bytes, const char *name)
{
    for (int xors = 0; xors < 2; xors++) {
        uint64_t hash = bernstein(name, h->suffix, xors);
        for (unsigned width = 8; width >= 4; width -= 4)
            for (uint64_t at = 0; at + width <= bytes && bytes <= 4096; at += 4)
                if (memcmp(mine + at, &hash, width) == 0) {
                    h->how = HASH;
                    h->at = at;
                    h->width = width;
                    h->xors = xors;
                    return true;
                }
    }
    return false;
}

static struct host find_host(const unsigned char *mine, uint64_t bytes, const char *name)
{
    struct host h = {0};
    if (find_text(&h, mine, bytes, name) || find_hash(&h, mine, bytes, name))
        return h;
    read_boot_id(h.suffix);
    (void)find_hash(&h, mine, bytes, name);
    return h;
}

static uint32_t node_of(uint32_t i, uint32_t me, const uint32_t *members)
{
    const struct vg_card *card = vg_card();
    if (members)
        return members[i] / card->per_node;
    int64_t rank = (int64_t)card->rank + i - me; /* as if they followed each other */
    return (uint32_t)((rank < 0 ? 0 : rank) / card->per_node);
}

static void tell_host(unsigned char *to, const struct host *h, uint64_t bytes, uint32_t node)
{
    char name[VG_HOST_NAME];
    vg_host_name(name, node);
    if (h->how == TEXT && strlen(name) <= bytes - h->at)
        memcpy(to + h->at, name, strlen(name));
    if (h->how == HASH) {
        uint64_t hash = bernstein(name, h->suffix, h->xors);
        memcpy(to + h->at, &hash, h->width);
    }
}

bool vg_assumed_contributions(void *all, const unsigned char *have, uint32_t n, uint32_t me, const uint32_t *members,
                              uint64_t bytes, bool colors)
{
    const struct known k = {.all = all, .have = have, .n = n, .me = me, .bytes = bytes};
    unsigned char *to = all;
    const unsigned char *mine = to + (uint64_t)me * bytes;
    bool steady = true;
    if (bytes == 0 || fill_by_patterns(to, &k, &steady))
        return steady;
    if (colors && fill_by_group(to, &k))
        return false;
    char name[HOST_NAME_MAX + 1] = "";
    (void)gethostname(name, sizeof name - 1);
    struct host h = find_host(mine, bytes, name);
    name[strcspn(name, ".")] = '\0'; /* its first label: what programs hash */
    if (h.how == NOTHING)
        h = find_host(mine, bytes, name);
    const bool steady_copy =
        bytes % 4 != 0 || bytes > PATTERNS_MOST; /* whoever else speaks, no pattern is looked for */
    uint32_t here = node_of(me, me, members);
    for (uint32_t i = 0; i < n; i++) {
        if (i == me || have[i])
            continue;
        memcpy(to + (uint64_t)i * bytes, mine, bytes);
        if (h.how != NOTHING && node_of(i, me, members) != here)
            tell_host(to + (uint64_t)i * bytes, &h, bytes, node_of(i, me, members));
    }
    return steady_copy;
}
