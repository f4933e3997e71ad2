/* SPDX-License-Identifier: Apache-2.0 */
/*
 * value_rules.c - reads rules, and does what they say at a launch.
 */
#include "shim/cuda/value_rules.h"
#include "shim/cuda/kernel_pattern.h"
#include "shim/cuda/launch_expression.h"
#include "shim/cuda/oracle.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS_MOST = 1 << 16, WRITTEN_MOST = 64 };

struct rule {
    struct vg_kernel_pattern about;
    const char *count, *place, *value;
    uint32_t argument, bytes; /* of PLACE; of its element */
};

/* What rules wrote last. */
static struct {
    uintptr_t from, to;
} written[WRITTEN_MOST];
static uint32_t n_written;

/* --- the table ------------------------------------------------------------------------------------------------------------ */

/* Cuts a text at blanks: the next word, or NULL. */
static char *word(char **rest)
{
    return strtok_r(NULL, " \t", rest);
}

/* The parts of a rule, from its own copy of the line; what is wrong, or NULL. */
static const char *cut(void *rule, char *line)
{
    struct rule *r = rule;
    char *rest = line, *name, *type, *equals, *end;
    if (strtok_r(line, " \t", &rest) == NULL || (name = word(&rest)) == NULL || (r->count = word(&rest)) == NULL ||
        (type = word(&rest)) == NULL)
        return "the form is: kernel NAME COUNT i32|i64 aK[INDEX] = VALUE";
    const char *why = vg_kernel_pattern_read(&r->about, name);
    if (why != NULL)
        return why;
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
    if (!vg_is_expression(r->count, ""))
        return "the count is no expression";
    if (!vg_is_expression(r->place, "]"))
        return "the index is no expression";
    return vg_is_expression(r->value, "") ? NULL : "the value is no expression";
}

static struct vg_rules rules = {.bytes = sizeof(struct rule), .cut = cut};

bool vg_rule_take(const char *line, const char **why)
{
    return vg_rules_take(&rules, line, why);
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
    int64_t n = vg_expression(r->count, "", l, 0, &ok);
    for (int64_t i = 0; ok && i < n && i < ROWS_MOST; i++) {
        int64_t x = vg_expression(r->value, "", l, i, &ok);
        int64_t index = ok ? vg_expression(r->place, "]", l, i, &ok) : 0;
        void *place = ok ? vg_element(l, r->argument, index, r->bytes) : NULL;
        if (place == NULL)
            return;
        int32_t narrow = (int32_t)x;
        memcpy(place, r->bytes == 8 ? (const void *)&x : (const void *)&narrow, r->bytes);
        vg_mem_told(place, r->bytes);
        note_written(place, r->bytes);
    }
}

/* Whether any rule names the kernel. */
static bool spoken_of(const struct vg_kernel *kernel)
{
    static struct vg_unnamed none;
    return vg_rules_name(&rules, &none, kernel);
}

void vg_rules_apply(const struct vg_launch *l)
{
    const struct vg_kernel *kernel = l->kernel;
    vg_values_load();
    if (!spoken_of(kernel))
        return;
    const struct rule *at = rules.at;
    for (uint32_t i = 0; i < rules.n; i++)
        if (vg_kernel_pattern_fits(&at[i].about, kernel))
            apply(&at[i], l);
}
