/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch_expression.c - evaluates expressions over the arguments of a launch.
 *
 * An expression is evaluated from its text each time: it is short, a launch has a row for each request, and nothing has to be kept. The
 * same walk without a launch checks a rule when it is read.
 */
#include "shim/cuda/launch_expression.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH_MOST = 32, OFFSET_MOST = 4096, LEAST_ADDRESS = 4096 };

/* --- types by name ---------------------------------------------------------------------------------------------------------- */

enum maq_rec_type vg_element_type(const char *kernel)
{
    static const struct {
        const char *word;
        enum maq_rec_type type;
    } words[] = {{"bfloat16", MAQ_REC_BF16}, {"BFloat16", MAQ_REC_BF16}, {"half", MAQ_REC_F16},
                 {"Half", MAQ_REC_F16},      {"e4m3", MAQ_REC_F8E4M3},   {"e5m2", MAQ_REC_F8E5M2}};
    enum maq_rec_type type = MAQ_REC_F32;
    const char *first = NULL;
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++) {
        const char *at = strstr(kernel, words[i].word);
        if (at != NULL && (first == NULL || at < first)) {
            first = at;
            type = words[i].type;
        }
    }
    return type;
}

uint32_t vg_element_bytes(const char *kernel)
{
    switch ((int)vg_element_type(kernel)) {
    case MAQ_REC_BF16:
    case MAQ_REC_F16:
        return 2;
    case MAQ_REC_F8E4M3:
    case MAQ_REC_F8E5M2:
        return 1;
    default:
        return 4;
    }
}

/* --- expressions ------------------------------------------------------------------------------------------------------------ */

struct walk {
    const char *at;
    const struct vg_launch *launch; /* NULL: only the form is looked at */
    int64_t i;
    bool dead; /* a part that is not chosen: nothing is read */
    bool ok;
    unsigned depth;
};

static int64_t choice(struct walk *w);

static bool takes(struct walk *w, const char *word)
{
    while (*w->at == ' ')
        w->at++;
    size_t n = strlen(word);
    if (strncmp(w->at, word, n) != 0)
        return false;
    w->at += n;
    return true;
}

static int64_t fail(struct walk *w)
{
    w->ok = false;
    return 0;
}

static bool reads(const struct walk *w)
{
    return w->launch != NULL && !w->dead && w->ok;
}

/* The bytes of an argument, or NULL. */
static const void *argument(const struct vg_launch *l, uint32_t k, uint32_t *bytes)
{
    const struct vg_code *code = &l->kernel->code;
    if (!code->found || k >= code->n_params)
        return NULL;
    *bytes = code->param[k].bytes;
    if (l->args != NULL)
        return l->args[k];
    bool inside = l->packed != NULL && (uint64_t)code->param[k].offset + *bytes <= l->packed_bytes;
    return inside ? (const char *)l->packed + code->param[k].offset : NULL;
}

/* Element `index` of what the pointer at p points to, where the host may read and write it; NULL. */
static void *behind(const void *pointer, int64_t index, uint32_t size)
{
    uint64_t p;
    struct vg_alloc a;
    if (index < 0 || index > INT32_MAX)
        return NULL;
    memcpy(&p, pointer, sizeof p);
    p += (uint64_t)index * size;
    void *place = (void *)(uintptr_t)p; // NOLINT(performance-no-int-to-ptr)
    bool there = p >= LEAST_ADDRESS && vg_mem_find(place, &a) && p + size <= a.base + a.bytes;
    return there && (!maq_rec_on_device(a.kind) || vg_mem_touch(place, size)) ? place : NULL;
}

void *vg_element(const struct vg_launch *l, uint32_t k, int64_t index, uint32_t size)
{
    uint32_t bytes;
    const void *given = argument(l, k, &bytes);
    return given != NULL && bytes == sizeof(void *) ? behind(given, index, size) : NULL;
}

static int64_t whole(const char *p, uint32_t bytes)
{
    int64_t wide;
    int32_t narrow;
    if (bytes == 1)
        return (unsigned char)*p;
    memcpy(bytes == 8 ? (void *)&wide : (void *)&narrow, p, bytes);
    return bytes == 8 ? wide : narrow;
}

static bool number(struct walk *w, unsigned long *n, unsigned long most)
{
    char *end;
    *n = strtoul(w->at, &end, 10);
    if (end == w->at || *n > most)
        return false;
    w->at = end;
    return true;
}

/* Behind `a`: K, K@OFFSET.i32, or what a pointer in either place points to, K.i32[index]. */
static int64_t of_argument(struct walk *w)
{
    unsigned long k, offset = 0;
    if (!number(w, &k, VG_PARAMS_MOST - 1))
        return fail(w);
    const bool inside = takes(w, "@");
    if (inside && !number(w, &offset, OFFSET_MOST))
        return fail(w);
    uint32_t size = takes(w, ".i32") ? 4 : takes(w, ".i64") ? 8 : takes(w, ".u8") ? 1 : 0, bytes = 0;
    const bool points = size > 0 && takes(w, "[");
    int64_t index = points ? choice(w) : 0;
    if ((points && !takes(w, "]")) || (!points && inside != (size > 0)))
        return fail(w);
    if (!reads(w))
        return 0;
    const char *p = argument(w->launch, (uint32_t)k, &bytes);
    if (p == NULL || (inside && offset + (points ? sizeof(void *) : size) > bytes) ||
        (!inside && points && bytes != sizeof(void *)))
        return fail(w);
    p += offset;
    if (points)
        p = behind(p, index, size);
    else if (!inside)
        size = bytes;
    return p != NULL && (size == 1 || size == 4 || size == 8) ? whole(p, size) : fail(w);
}

/* Behind `s`: K. */
static int64_t size_of_argument(struct walk *w)
{
    unsigned long k;
    uint32_t bytes = 0;
    if (!number(w, &k, VG_PARAMS_MOST - 1))
        return fail(w);
    if (reads(w) && argument(w->launch, (uint32_t)k, &bytes) == NULL)
        return fail(w);
    return bytes;
}

/* Behind `m`: K, a pointer. */
static int64_t memory_of_argument(struct walk *w)
{
    unsigned long k;
    uint32_t bytes = 0;
    uint64_t p;
    struct vg_alloc a;
    if (!number(w, &k, VG_PARAMS_MOST - 1))
        return fail(w);
    if (!reads(w))
        return 1;
    const void *given = argument(w->launch, (uint32_t)k, &bytes);
    if (given == NULL || bytes != sizeof p)
        return fail(w);
    memcpy(&p, given, sizeof p);
    void *place = (void *)(uintptr_t)p; // NOLINT(performance-no-int-to-ptr)
    return p >= LEAST_ADDRESS && vg_mem_find(place, &a) ? (int64_t)(a.base + a.bytes - p) : fail(w);
}

/* Behind `t`: K. A literal is L, a letter for its type, digits and E: int, unsigned, long and long long of both kinds. */
static int64_t template_number(struct walk *w)
{
    unsigned long k;
    if (!number(w, &k, VG_PARAMS_MOST - 1))
        return fail(w);
    if (!reads(w))
        return 0;
    for (const char *at = strchr(w->launch->kernel->name, 'L'); at != NULL; at = strchr(at + 1, 'L')) {
        const size_t n = at[1] != '\0' && strchr("ijlmxy", at[1]) != NULL ? strspn(at + 2, "0123456789") : 0;
        if (n > 0 && at[2 + n] == 'E' && k-- == 0)
            return strtoll(at + 2, NULL, 10);
    }
    return fail(w);
}

static int64_t atom(struct walk *w)
{
    if (takes(w, "(")) {
        int64_t x = choice(w);
        return takes(w, ")") ? x : fail(w);
    }
    if (takes(w, "-"))
        return (int64_t)(0 - (uint64_t)atom(w));
    const struct vg_dim3 grid = w->launch != NULL ? w->launch->grid : (struct vg_dim3){1, 1, 1};
    if (takes(w, "gx"))
        return grid.x;
    if (takes(w, "gy"))
        return grid.y;
    if (takes(w, "gz"))
        return grid.z;
    if (takes(w, "bx"))
        return w->launch != NULL ? w->launch->block.x : 1;
    if (takes(w, "s"))
        return size_of_argument(w);
    if (takes(w, "t"))
        return template_number(w);
    if (takes(w, "m"))
        return memory_of_argument(w);
    if (takes(w, "e"))
        return w->launch != NULL ? vg_element_bytes(w->launch->kernel->name) : 1;
    if (takes(w, "i"))
        return w->i;
    if (takes(w, "a"))
        return of_argument(w);
    char *end;
    int64_t x = strtoll(w->at, &end, 0);
    if (end == w->at)
        return fail(w);
    w->at = end;
    return x;
}

enum { LEVELS = 6 };
static const char *const operators[LEVELS][5] = {{"||"},     {"&&"},         {"==", "!="}, {"<=", ">=", "<", ">"},
                                                 {"+", "-"}, {"*", "/", "%"}};

static int64_t combine(struct walk *w, unsigned level, unsigned which, int64_t x, int64_t y)
{
    const uint64_t a = (uint64_t)x, b = (uint64_t)y; /* wraps, and is never undefined */
    switch (level * 4 + which) {
    case 0:
        return x != 0 || y != 0;
    case 4:
        return x != 0 && y != 0;
    case 8:
        return x == y;
    case 9:
        return x != y;
    case 12:
        return x <= y;
    case 13:
        return x >= y;
    case 14:
        return x < y;
    case 15:
        return x > y;
    case 16:
        return (int64_t)(a + b);
    case 17:
        return (int64_t)(a - b);
    case 20:
        return (int64_t)(a * b);
    default:
        break;
    }
    if (y == 0 || y == -1) /* of which one has no quotient, and the other one that may not fit */
        return y == 0 ? (reads(w) ? fail(w) : 0) : which == 1 ? (int64_t)(0 - a) : 0;
    return which == 1 ? x / y : x % y;
}

static int64_t binary(struct walk *w, unsigned level)
{
    if (level == LEVELS)
        return atom(w);
    int64_t x = binary(w, level + 1);
    for (;;) {
        unsigned which = 0;
        while (operators[level][which] != NULL && !takes(w, operators[level][which]))
            which++;
        if (operators[level][which] == NULL || !w->ok)
            return x;
        x = combine(w, level, which, x, binary(w, level + 1));
    }
}

static int64_t choice(struct walk *w)
{
    if (++w->depth > DEPTH_MOST)
        return fail(w);
    int64_t x = binary(w, 0);
    if (takes(w, "?")) {
        const bool dead = w->dead;
        w->dead = dead || x == 0;
        int64_t yes = choice(w);
        if (!takes(w, ":"))
            return fail(w);
        w->dead = dead || x != 0;
        int64_t no = choice(w);
        w->dead = dead;
        x = x != 0 ? yes : no;
    }
    w->depth--;
    return x;
}

int64_t vg_expression(const char *text, const char *end, const struct vg_launch *l, int64_t i, bool *ok)
{
    struct walk w = {.at = text, .launch = l, .i = i, .ok = true};
    int64_t x = choice(&w);
    *ok = w.ok && takes(&w, end) && w.at[strspn(w.at, " \t")] == '\0';
    return x;
}

bool vg_is_expression(const char *text, const char *end)
{
    bool ok;
    (void)vg_expression(text, end, NULL, 0, &ok);
    return ok;
}
