/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jit_kernel.c - records of launches whose kernel's PTX can be read.
 *
 * A launch does the same as another one of its kernel with the same grid and the same numbers among its arguments, wherever its tensors lie. Where
 * a loop's length or an address came out of memory, as the lengths of sequences do, what was read there has to be the same as well, or as unknown: it
 * is kept by the argument that points to it and how far behind. So each kind of launch is walked once.
 *
 * A product of matrices writes each number once, of 16 bits in most cases, and
 *
 *     depth = flop / (2 * numbers written)
 *
 * Where products follow upon powers of two, and each power stands for more than one number that is written, it is attention: an output of
 * softmax(Q K^T) V takes a power for each key that a query sees, and 4 flop for each key and feature, so
 *
 *     features = flop / (4 * powers)
 *
 * but for the few powers that rescale sums, wherefore it is the nearest multiple of what tensor cores take. A product with powers in its epilogue has
 * none of its flop behind them, attention's forward pass half, and both passes more than a quarter.
 */
#include "shim/cuda/jit_kernel.h"

#include <stdlib.h>
#include <string.h>

#include "shim/grow.h"
#include "shim/ptx/ptx.h"

enum {
    ENTRIES_MOST = 256,
    WORDS_MOST = 4096,
    LAST_WORDS = 64,
    UNKNOWN_MOST = 64,
    PARAMS_MOST = 512,
    NUMBER_BYTES = 2,
    VECTOR_BYTES = 32, /* the widest access of a thread */
    FEATURES_LEAST = 16,
    FEATURES_MOST = 512,
    FEATURES_STEP = 16
};

/* Something in memory that a walk asked for. */
struct word {
    uint32_t param, bytes;
    uint64_t known;         /* whether anybody knows it */
    uint64_t behind, value; /* where: so far behind where the parameter points to */
};

struct vg_jit_work {
    uint64_t key;
    struct word *word; /* [n_words], owned */
    uint32_t n_words;
    bool good;
    bool writes_elsewhere;              /* where nobody knows */
    uint64_t farthest;                  /* bytes behind a parameter at which it was seen to write, at most */
    uint64_t written[PARAMS_MOST / 64]; /* bits: it writes where the parameter points to */
    struct vg_ptx_work work;
};

struct vg_jit {
    bool sought;
    struct vg_ptx *code; /* NULL: there is none */
    struct vg_jit_work *entry;
    uint32_t n, room;
};

/* A launch, while it is looked at. */
struct look {
    const void *param[PARAMS_MOST];
    uint32_t bytes[PARAMS_MOST];
    uint64_t base[PARAMS_MOST]; /* where a parameter points to; 0: it is no pointer */
    uint32_t n;
    struct word *word;
    uint32_t n_words, words_room, n_unknown;
    bool foreign; /* something was read that no parameter points to, or too much */
    bool writes_elsewhere;
    uint64_t farthest;
    uint64_t written[PARAMS_MOST / 64];
};

struct vg_jit *vg_jit_new(void)
{
    return calloc(1, sizeof(struct vg_jit));
}

/* --- arguments ---------------------------------------------------------------------------------------------------------------- */

static bool take_params(struct look *k, const struct vg_launch *l)
{
    const struct vg_code *code = &l->kernel->code;
    k->n = code->n_params;
    for (uint32_t i = 0; i < k->n; i++) {
        struct vg_alloc a;
        uint64_t p = 0;
        k->bytes[i] = code->param[i].bytes;
        if (l->args != NULL)
            k->param[i] = l->args[i];
        else if (l->packed != NULL && (uint64_t)code->param[i].offset + k->bytes[i] <= l->packed_bytes)
            k->param[i] = (const char *)l->packed + code->param[i].offset;
        if (k->param[i] == NULL)
            return false;
        if (k->bytes[i] == sizeof p)
            memcpy(&p, k->param[i], sizeof p);
        k->base[i] = p != 0 && vg_mem_find((const void *)(uintptr_t)p, &a) ? p : 0; // NOLINT(performance-no-int-to-ptr)
    }
    return true;
}

/* Grid, block and the arguments that are no pointers. */
static uint64_t key_of(const struct look *k, const struct vg_launch *l)
{
    uint64_t key = maq_rec_hash(&l->grid, sizeof l->grid, 0);
    key = maq_rec_hash(&l->block, sizeof l->block, key);
    for (uint32_t i = 0; i < k->n; i++)
        key = k->base[i] != 0 ? maq_rec_mix(key, i) : maq_rec_hash(k->param[i], k->bytes[i], key);
    return key;
}

/* --- memory ------------------------------------------------------------------------------------------------------------------- */

static bool read_word(uint64_t address, uint32_t bytes, uint64_t *out)
{
    struct vg_alloc a;
    const void *p = (const void *)(uintptr_t)address; // NOLINT(performance-no-int-to-ptr)
    if (!vg_mem_find(p, &a) || address - a.base > a.bytes - bytes || !vg_mem_true(p, bytes))
        return false;
    *out = 0;
    memcpy(out, p, bytes);
    return true;
}

/* The parameter that points to an address, or before it; UINT32_MAX: none. */
static uint32_t param_before(const struct look *k, uint64_t address)
{
    uint32_t at = UINT32_MAX;
    for (uint32_t i = 0; i < k->n; i++) /* the nearest */
        if (k->base[i] != 0 && k->base[i] <= address && (at == UINT32_MAX || k->base[i] > k->base[at]))
            at = i;
    return at;
}

static void stored(void *user, uint64_t address)
{
    struct look *k = user;
    const uint32_t at = param_before(k, address);
    if (at == UINT32_MAX) {
        k->writes_elsewhere = true;
        return;
    }
    k->written[at / 64] |= (uint64_t)1 << at % 64;
    k->farthest = address - k->base[at] > k->farthest ? address - k->base[at] : k->farthest;
}

/* Keeps what was asked for, unless it is among the last of what is kept already; threads of a block ask for the same. */
static bool keep_word(struct look *k, const struct word *w)
{
    for (uint32_t i = k->n_words; i-- > 0 && i + LAST_WORDS >= k->n_words;)
        if (memcmp(&k->word[i], w, sizeof *w) == 0)
            return true;
    struct word *bigger =
        k->n_words < WORDS_MOST ? vg_grown(k->word, k->n_words, &k->words_room, 64, sizeof *bigger) : NULL;
    if (bigger == NULL)
        return false;
    k->word = bigger;
    bigger[k->n_words++] = *w;
    return true;
}

static bool word(void *user, uint64_t address, uint32_t bytes, uint64_t *out)
{
    struct look *k = user;
    const bool known = read_word(address, bytes, out);
    const uint32_t at = param_before(k, address);
    const struct word w = {at, bytes, known, at != UINT32_MAX ? address - k->base[at] : 0, known ? *out : 0};
    if (known)
        k->foreign = at == UINT32_MAX || !keep_word(k, &w) || k->foreign;
    else if (at != UINT32_MAX && k->n_unknown < UNKNOWN_MOST) /* most of it is data, of which the first do */
        k->n_unknown += keep_word(k, &w);
    return known;
}

static bool still_so(const struct vg_jit_work *e, const struct look *k)
{
    for (uint32_t i = 0; i < e->n_words; i++) {
        const struct word *w = &e->word[i];
        uint64_t now;
        const bool known = k->base[w->param] != 0 && read_word(k->base[w->param] + w->behind, w->bytes, &now);
        if (known != w->known || (known && now != w->value))
            return false;
    }
    return true;
}

/* Where nothing that is known mattered, only what is unknown has to stay so. */
static void drop_known(struct look *k)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < k->n_words; i++)
        if (!k->word[i].known)
            k->word[n++] = k->word[i];
    k->n_words = n;
}

/* --- walks -------------------------------------------------------------------------------------------------------------------- */

static const struct vg_jit_work *keep(struct vg_jit *c, struct vg_jit_work e)
{
    struct vg_jit_work *bigger = c->n < ENTRIES_MOST ? vg_grown(c->entry, c->n, &c->room, 4, sizeof *bigger) : NULL;
    struct vg_jit_work *at;
    if (bigger != NULL) {
        c->entry = bigger;
        at = &bigger[c->n++];
    } else if (c->n > 0) { /* one of those before makes room, whichever */
        at = &c->entry[e.key % c->n];
        free(at->word);
    } else {
        free(e.word);
        return NULL;
    }
    *at = e;
    return at;
}

static struct vg_jit_work walk(const struct vg_jit *c, struct look *k, const struct vg_launch *l, uint64_t key)
{
    const struct vg_ptx_launch launch = {.grid = {l->grid.x, l->grid.y, l->grid.z},
                                         .block = {l->block.x, l->block.y, l->block.z},
                                         .param = k->param,
                                         .param_bytes = k->bytes,
                                         .word = word,
                                         .stored = stored,
                                         .user = k};
    struct vg_jit_work e = {.key = key};
    e.good = vg_ptx_work(&e.work, c->code, &launch);
    e.writes_elsewhere = k->writes_elsewhere || k->foreign;
    e.farthest = k->farthest;
    memcpy(e.written, k->written, sizeof e.written);
    if (!e.work.steered)
        drop_known(k);
    e.word = k->word;
    e.n_words = k->n_words;
    k->word = NULL;
    return e;
}

/* What the launch does, walked or kept; NULL: no memory. */
static const struct vg_jit_work *work_of(struct vg_jit *c, const struct vg_launch *l)
{
    struct look k = {.n = 0};
    if (!take_params(&k, l))
        return NULL;
    const uint64_t key = key_of(&k, l);
    for (uint32_t i = 0; i < c->n; i++)
        if (c->entry[i].key == key && still_so(&c->entry[i], &k))
            return &c->entry[i];
    return keep(c, walk(c, &k, l, key));
}

/* --- the record --------------------------------------------------------------------------------------------------------------- */

static int64_t rounded(double x)
{
    return x < 9e18 ? (int64_t)(x + 0.5) : INT64_MAX;
}

static void describe(struct maq_rec_op *op, const struct vg_ptx_work *w)
{
    op->kind = MAQ_REC_WORK;
    op->type = w->type;
    op->d[0] = rounded(w->flop);
    op->d[1] = rounded(w->read);
    op->d[2] = rounded(w->written);
    if (w->flop <= 0)
        return;
    const double numbers = w->written / NUMBER_BYTES,
                 features = w->exponentials > 0 ? w->flop / (4 * w->exponentials) : 0;
    op->d[3] = numbers > 0 ? rounded(w->flop / 2 / numbers) : 0;
    if (w->flop_after > w->flop / 4 && w->exponentials > numbers && features >= FEATURES_LEAST &&
        features <= FEATURES_MOST)
        op->d[4] = rounded(features / FEATURES_STEP) * FEATURES_STEP;
}

void vg_jit_apply(struct maq_rec_op *op, const struct vg_jit_work *w)
{
    if (w != NULL && op->kind == MAQ_REC_KERNEL && w->work.flop + w->work.read + w->work.written > 0)
        describe(op, &w->work);
}

const struct vg_jit_work *vg_jit_look(const struct vg_launch *l)
{
    struct vg_jit *c = l->kernel->jit;
    if (c == NULL || !l->kernel->code.found || l->kernel->code.n_params > PARAMS_MOST)
        return NULL;
    if (!c->sought) {
        size_t bytes;
        char *text = vg_triton_text(l->kernel->image, l->kernel->name, &bytes);
        c->code = text != NULL ? vg_ptx_read(text, bytes, l->kernel->name) : NULL;
        c->sought = true;
        free(text);
    }
    if (c->code == NULL || vg_ptx_params(c->code) != l->kernel->code.n_params)
        return NULL;
    const struct vg_jit_work *w = work_of(c, l);
    return w != NULL && w->good ? w : NULL;
}

/*
 * From each parameter that it writes to, what it writes in all, and twice as far as the blocks that were walked do: these lie evenly in the grid, and
 * rows of an output may lie apart.
 */
bool vg_jit_writes(const struct vg_jit_work *w, const struct vg_launch *l)
{
    struct look k = {.n = 0};
    if (w == NULL || w->writes_elsewhere || !take_params(&k, l))
        return false;
    const uint64_t far = w->farthest < UINT64_MAX / 4 ? 2 * w->farthest + VECTOR_BYTES : UINT64_MAX / 2;
    const uint64_t all = (uint64_t)rounded(w->work.written), bytes = all > far ? all : far;
    for (uint32_t i = 0; i < k.n; i++)
        if (w->written[i / 64] >> i % 64 & 1)
            vg_mem_written((const void *)(uintptr_t)k.base[i], bytes); // NOLINT(performance-no-int-to-ptr)
    return true;
}
