/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oracle.c - the file of values (card key `values`): lines
 *
 *     ALLOCATION OFFSET N TYPE VALUE...
 *     after NAME BYTES TYPE VALUE...
 *     kernel NAME COUNT TYPE PLACE = VALUE        (value_rules.h)
 *
 * ALLOCATION and OFFSET name device memory as the trace does, N is the number of the read there, from 0. The second form is
 * for programs whose allocator puts things where it likes: a read of BYTES after the launch of a kernel whose name has NAME in
 * it, with no other kernel in between. `*` in place of any of ALLOCATION, OFFSET, N, NAME and BYTES stands for all.
 *
 * TYPE is f32, f64, i32, i64, u8 or hex. Values are repeated until the read is full. In place of values `share TOTAL` (i32, i64, u8) gives
 * each of the n numbers that are read TOTAL / n, and the first TOTAL mod n of them one more: what a balanced router gives its
 * experts. The first line that fits speaks. `#` begins a comment. Lines that make no sense are passed over.
 */
#include "shim/cuda/oracle.h"
#include "shim/cuda/cuda.h"
#include "shim/cuda/operator_rules.h"
#include "shim/cuda/value_rules.h"
#include "shim/grow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VALUE_BYTES = 4096, ANY = -1 };
struct line {
    char *after;                                 /* part of a kernel's name; NULL: the place speaks */
    int64_t allocation, offset, nth, read_bytes; /* ANY */
    int64_t share;                               /* of this total; or ANY, and value[bytes] */
    uint32_t bytes;                              /* of one number where it is shared */
    unsigned char *value;
};
static struct line *lines;
static size_t n_lines;
static uint32_t room;

/* How often each place was read. */
struct place {
    uint64_t allocation, offset, reads;
};
static struct place *places;
static size_t n_places;
static uint32_t places_room;

static int64_t number(const char *text)
{
    char *end;
    long long n = strtoll(text, &end, 0);
    return strcmp(text, "*") == 0 ? ANY : end != text && *end == '\0' && n >= 0 ? n : INT64_MAX;
}

static uint32_t put(unsigned char *out, const void *value, uint32_t bytes)
{
    memcpy(out, value, bytes);
    return bytes;
}

/* One value of a type at out; bytes of it, 0 = none. */
static uint32_t value(const char *type, const char *text, unsigned char *out)
{
    char *end;
    double d = strtod(text, &end);
    bool real = end != text && *end == '\0';
    int64_t n = strtoll(text, &end, 0);
    bool whole = end != text && *end == '\0';
    unsigned long byte = strtoul(text, &end, 16);
    bool hex = end != text && *end == '\0' && byte < 256;
    if (strcmp(type, "f32") == 0 && real)
        return put(out, &(float){(float)d}, sizeof(float));
    if (strcmp(type, "f64") == 0 && real)
        return put(out, &d, sizeof d);
    if (strcmp(type, "i32") == 0 && whole)
        return put(out, &(int32_t){(int32_t)n}, sizeof(int32_t));
    if (strcmp(type, "i64") == 0 && whole)
        return put(out, &n, sizeof n);
    unsigned char one = (unsigned char)n, other = (unsigned char)byte;
    if (strcmp(type, "u8") == 0 && whole)
        return put(out, &one, 1);
    if (strcmp(type, "hex") == 0 && hex)
        return put(out, &other, 1);
    return 0;
}

static void keep(const struct line *line)
{
    struct line *bigger = vg_grown(lines, n_lines, &room, 16, sizeof *lines);
    if (bigger == NULL)
        return;
    lines = bigger;
    lines[n_lines++] = *line;
}

/* What follows the type: values, or `share TOTAL`. */
static bool take_values(struct line *line, const char *type, char **save)
{
    unsigned char bytes[VALUE_BYTES];
    char *w = strtok_r(NULL, " \t\n", save);
    line->share = ANY;
    if (w != NULL && strcmp(w, "share") == 0) {
        w = strtok_r(NULL, " \t\n", save);
        line->share = w != NULL ? number(w) : ANY;
        line->bytes = strcmp(type, "i64") == 0 ? 8 : strcmp(type, "i32") == 0 ? 4 : strcmp(type, "u8") == 0 ? 1 : 0;
        return line->share != ANY && line->share != INT64_MAX && line->bytes > 0;
    }
    for (; line->bytes + 8 <= VALUE_BYTES && w != NULL && *w != '#'; w = strtok_r(NULL, " \t\n", save)) {
        uint32_t size = value(type, w, bytes + line->bytes);
        if (size == 0)
            return false;
        line->bytes += size;
    }
    if (line->bytes == 0 || (line->value = malloc(line->bytes)) == NULL)
        return false;
    memcpy(line->value, bytes, line->bytes);
    return true;
}

static void take(char *text)
{
    char *save, *word[4];
    for (unsigned i = 0; i < 4; i++)
        if ((word[i] = strtok_r(i == 0 ? text : NULL, " \t\n", &save)) == NULL || word[0][0] == '#')
            return;
    struct line line = {.allocation = ANY, .offset = ANY, .nth = ANY, .read_bytes = ANY};
    const bool after = strcmp(word[0], "after") == 0;
    if (after) {
        line.read_bytes = number(word[2]);
    } else {
        line.allocation = number(word[0]);
        line.offset = number(word[1]);
        line.nth = number(word[2]);
    }
    if (line.allocation == INT64_MAX || line.offset == INT64_MAX || line.nth == INT64_MAX ||
        line.read_bytes == INT64_MAX || !take_values(&line, word[3], &save))
        return;
    if (after)
        line.after = strdup(strcmp(word[1], "*") == 0 ? "" : word[1]);
    if (!after || line.after != NULL)
        keep(&line);
    else
        free(line.value);
}

/* A rule that makes no sense is said: whoever wrote it waits for what it does. */
static void take_rule(const char *text, const char *path, unsigned number)
{
    const char *why;
    char line[768];
    if (strncmp(text, "operator ", 9) == 0 ? vg_operator_rule_take(text, &why) : vg_rule_take(text, &why))
        return;
    int n = snprintf(line, sizeof line, "maquette: %.256s:%u: this rule is passed over: %s\n", path, number, why);
    if (n > 0 && write(STDERR_FILENO, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1) < 0)
        return; /* where standard error is closed, nobody is to be told */
}

void vg_values_load(void)
{
    static bool loaded;
    if (loaded)
        return;
    loaded = true;
    const char *path = vg_card()->values;
    FILE *f = path[0] != '\0' && strcmp(path, "zero") != 0 ? fopen(path, "re") : NULL;
    static char text[65536];
    const char *why;
    for (unsigned i = 0; vg_rules_known[i] != NULL; i++)
        vg_rule_take(vg_rules_known[i], &why);
    for (unsigned at = 1; f != NULL && fgets(text, sizeof text, f) != NULL; at++)
        if (strncmp(text, "kernel ", 7) == 0 || strncmp(text, "operator ", 9) == 0)
            take_rule(text, path, at);
        else
            take(text);
    if (f != NULL)
        fclose(f);
    for (unsigned i = 0; vg_operator_rules_known[i] != NULL; i++)
        vg_operator_rule_take(vg_operator_rules_known[i], &why);
}

static uint64_t count(uint64_t allocation, uint64_t offset)
{
    for (size_t i = 0; i < n_places; i++)
        if (places[i].allocation == allocation && places[i].offset == offset)
            return places[i].reads++;
    struct place *bigger = vg_grown(places, n_places, &places_room, 64, sizeof *places);
    if (bigger == NULL)
        return 0;
    places = bigger;
    places[n_places++] = (struct place){allocation, offset, 1};
    return 0;
}

static bool fits(const struct line *l, uint64_t bytes, int64_t allocation, int64_t offset, int64_t nth)
{
    return (l->after == NULL || strstr(vg_last_kernel(), l->after) != NULL) &&
           (l->read_bytes == ANY || l->read_bytes == (int64_t)bytes) &&
           (l->allocation == ANY || l->allocation == allocation) && (l->offset == ANY || l->offset == offset) &&
           (l->nth == ANY || l->nth == nth);
}

static void fill(char *to, uint64_t bytes, const struct line *l)
{
    const int64_t n = (int64_t)(bytes / l->bytes);
    for (uint64_t at = 0; at < bytes; at += l->bytes) {
        int64_t whole = l->share == ANY || n == 0 ? 0 : l->share / n + ((int64_t)(at / l->bytes) < l->share % n);
        const void *one =
            l->share == ANY ? (const void *)l->value : &whole; /* little endian: its low bytes come first */
        memcpy(to + at, one, bytes - at < l->bytes ? bytes - at : l->bytes);
    }
}

bool vg_oracle(void *to, uint64_t bytes, uint32_t allocation, uint64_t offset)
{
    vg_values_load();
    if (n_lines == 0)
        return false;
    int64_t nth = (int64_t)count(allocation, offset);
    for (size_t i = 0; i < n_lines; i++)
        if (fits(&lines[i], bytes, allocation, (int64_t)offset, nth)) {
            fill(to, bytes, &lines[i]);
            return true;
        }
    return false;
}
