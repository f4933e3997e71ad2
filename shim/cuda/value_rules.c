/* SPDX-License-Identifier: Apache-2.0 */
/*
 * value_rules.c - reads rules, and does what they say at a launch.
 *
 * An expression is evaluated from its text each time: it is short, a launch has a row for each request, and nothing has to be kept. The
 * same walk without a launch checks a rule when it is read.
 */
#include "shim/cuda/value_rules.h"
#include "shim/cuda/oracle.h"
#include "shim/grow.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS_MOST = 1 << 16, WRITTEN_MOST = 64, DEPTH_MOST = 32 };

struct rule {
    char *name;         /* a part of the kernel's; the one allocation, with the texts behind it */
    int64_t parameters; /* 0: any */
    const char *count, *place, *value;
    uint32_t argument, bytes; /* of PLACE; of its element */
};
static struct rule *rules;
static uint32_t n_rules, rules_room;

/* What rules wrote last. */
static struct {
    uintptr_t from, to;
} written[WRITTEN_MOST];
static uint32_t n_written;

/* --- expressions -------------------------------------------------------------------------------------------------------- */

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

/* Element `index` of what argument k points to, where the host may read and write it; NULL. */
static void *element(const struct vg_launch *l, uint32_t k, int64_t index, uint32_t size)
{
    uint32_t bytes;
    uint64_t p;
    struct vg_alloc a;
    const void *given = argument(l, k, &bytes);
    if (given == NULL || bytes != sizeof p || index < 0 || index > INT32_MAX)
        return NULL;
    memcpy(&p, given, sizeof p);
    p += (uint64_t)index * size;
    void *place = (void *)(uintptr_t)p; // NOLINT(performance-no-int-to-ptr)
    bool there = p >= 4096 && vg_mem_find(place, &a) && p + size <= a.base + a.bytes;
    return there && (!maq_rec_on_device(a.kind) || vg_mem_touch(place, size)) ? place : NULL;
}

static int64_t whole(const void *p, uint32_t bytes)
{
    int64_t wide;
    int32_t narrow;
    memcpy(bytes == 8 ? (void *)&wide : (void *)&narrow, p, bytes);
    return bytes == 8 ? wide : narrow;
}

/* Behind `a`: K, or K.i32[index]. */
static int64_t of_argument(struct walk *w)
{
    char *end;
    unsigned long k = strtoul(w->at, &end, 10);
    if (end == w->at || k >= VG_PARAMS_MOST)
        return fail(w);
    w->at = end;
    uint32_t bytes = takes(w, ".i32[") ? 4 : takes(w, ".i64[") ? 8 : 0;
    const void *p = NULL;
    if (bytes > 0) {
        int64_t index = choice(w);
        if (!takes(w, "]"))
            return fail(w);
        p = reads(w) ? element(w->launch, (uint32_t)k, index, bytes) : NULL;
    } else if (reads(w)) {
        p = argument(w->launch, (uint32_t)k, &bytes);
    }
    if (!reads(w))
        return 0;
    return p != NULL && (bytes == 4 || bytes == 8) ? whole(p, bytes) : fail(w);
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

/* The value of a whole text, up to `end`; *ok false: it has none. */
static int64_t value_of(const char *text, const char *end, const struct vg_launch *l, int64_t i, bool *ok)
{
    struct walk w = {.at = text, .launch = l, .i = i, .ok = true};
    int64_t x = choice(&w);
    *ok = w.ok && takes(&w, end) && w.at[strspn(w.at, " \t")] == '\0';
    return x;
}

/* Whether a text is an expression. */
static bool has_value(const char *text, const char *end)
{
    bool ok;
    (void)value_of(text, end, NULL, 0, &ok);
    return ok;
}

/* --- the table ------------------------------------------------------------------------------------------------------------ */

/* Cuts a text at blanks: the next word, or NULL. */
static char *word(char **rest)
{
    return strtok_r(NULL, " \t", rest);
}

/* The parts of a rule, from its own copy of the line; what is wrong, or NULL. */
static const char *cut(struct rule *r, char *line)
{
    char *rest = line, *type, *slash, *equals, *end;
    if (strtok_r(line, " \t", &rest) == NULL || (r->name = word(&rest)) == NULL || (r->count = word(&rest)) == NULL ||
        (type = word(&rest)) == NULL)
        return "the form is: kernel NAME COUNT i32|i64 aK[INDEX] = VALUE";
    if ((slash = strrchr(r->name, '/')) != NULL) {
        r->parameters = strtoll(slash + 1, &end, 10);
        if (r->parameters <= 0 || *end != '\0')
            return "behind the / of a kernel's name stands how many parameters it has";
        *slash = '\0';
    }
    r->bytes = strcmp(type, "i32") == 0 ? 4 : strcmp(type, "i64") == 0 ? 8 : 0;
    if (r->bytes == 0)
        return "the type of what a rule writes is i32 or i64";
    rest += strspn(rest, " \t");
    equals = strstr(rest, " = ");
    if (*rest != 'a' || equals == NULL)
        return "behind the type stands aK[INDEX] = VALUE, with blanks around the =";
    unsigned long k = strtoul(rest + 1, &end, 10);
    if (end == rest + 1 || *end != '[' || k >= VG_PARAMS_MOST)
        return "a rule writes into what an argument points to: aK[INDEX]";
    *equals = '\0';
    r->argument = (uint32_t)k;
    r->place = end + 1;
    r->value = equals + 3;
    if (!has_value(r->count, ""))
        return "the count is no expression";
    if (!has_value(r->place, "]"))
        return "the index is no expression";
    return has_value(r->value, "") ? NULL : "the value is no expression";
}

bool vg_rule_take(const char *line, const char **why)
{
    size_t n = strcspn(line, "#\r\n");
    while (n > 0 && (line[n - 1] == ' ' || line[n - 1] == '\t'))
        n--;
    struct rule *bigger = vg_grown(rules, n_rules, &rules_room, 16, sizeof *rules);
    char *own = bigger != NULL ? strndup(line, n) : NULL;
    *why = "out of memory";
    if (bigger != NULL)
        rules = bigger;
    if (own == NULL)
        return false;
    struct rule r = {.bytes = 0};
    *why = cut(&r, own);
    if (*why != NULL) {
        free(own);
        return false;
    }
    rules[n_rules++] = r;
    return true;
}

/* --- at a launch ------------------------------------------------------------------------------------------------------------ */

static void note_written(const void *p, uint32_t bytes)
{
    uintptr_t at = (uintptr_t)p;
    for (uint32_t i = 0; i < WRITTEN_MOST; i++)
        if (written[i].from <= at && at <= written[i].to) { /* in it, or behind it */
            if (written[i].to < at + bytes)
                written[i].to = at + bytes;
            return;
        }
    written[n_written % WRITTEN_MOST].from = at;
    written[n_written % WRITTEN_MOST].to = at + bytes;
    n_written++;
}

bool vg_rule_wrote(const void *p, uint64_t bytes)
{
    uintptr_t at = (uintptr_t)p;
    for (uint32_t i = 0; i < WRITTEN_MOST; i++)
        if (written[i].from <= at && at + bytes <= written[i].to)
            return vg_mem_touch(p, bytes);
    return false;
}

static void apply(const struct rule *r, const struct vg_launch *l)
{
    bool ok;
    int64_t n = value_of(r->count, "", l, 0, &ok);
    for (int64_t i = 0; ok && i < n && i < ROWS_MOST; i++) {
        int64_t x = value_of(r->value, "", l, i, &ok);
        int64_t index = ok ? value_of(r->place, "]", l, i, &ok) : 0;
        void *place = ok ? element(l, r->argument, index, r->bytes) : NULL;
        if (place == NULL)
            return;
        int32_t narrow = (int32_t)x;
        memcpy(place, r->bytes == 8 ? (const void *)&x : (const void *)&narrow, r->bytes);
        vg_mem_told(place, r->bytes);
        note_written(place, r->bytes);
    }
}

/* Kernels are few and launches many: those that no rule speaks of are kept, by hash. */
static bool spoken_of(const struct vg_kernel *kernel)
{
    enum { KERNELS = 1024 };
    static const char *none[KERNELS]; /* names, which are never freed */
    const char **slot = &none[maq_rec_mix((uintptr_t)kernel->name, 0) % KERNELS];
    if (*slot == kernel->name)
        return false;
    for (uint32_t i = 0; i < n_rules; i++)
        if (strstr(kernel->name, rules[i].name) != NULL)
            return true;
    *slot = kernel->name;
    return false;
}

void vg_rules_apply(const struct vg_launch *l)
{
    const struct vg_kernel *kernel = l->kernel;
    vg_values_load();
    if (!spoken_of(kernel))
        return;
    for (uint32_t i = 0; i < n_rules; i++)
        if (strstr(kernel->name, rules[i].name) != NULL &&
            (rules[i].parameters == 0 || rules[i].parameters == (int64_t)kernel->code.n_params))
            apply(&rules[i], l);
}
