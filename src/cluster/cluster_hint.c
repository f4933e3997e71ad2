/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster_hint.c - what a cluster in one line was probably meant to be: "64 h100", "h100x64", "2 nodes of 8 a100" and the
 * like, all of which say which device and how many.
 *
 * A text is cut into numbers and words; where a cut falls inside a word ("8xh100", "h100-64") is found by what the catalogue
 * knows. Two numbers are nodes and devices of a node: the one that is usual for the device is the latter.
 */
#include "cluster/cluster_internal.h"
#include "spec/catalogue.h"

#include <string.h>

#define NUMBERS 2

struct meant {
    struct maq_str device;
    int64_t numbers[NUMBERS];
    size_t n;
    bool strange; /* a word that says neither */
    bool boxes;   /* "dgx", "nodes": a single number is one of these */
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool known(struct maq_str word)
{
    return word.len > 1 && maq_catalogue_find("devices", word) != NULL;
}

static bool filler(struct maq_str word)
{
    static const char *const words[] = {"x",   "*",     "gpu",    "gpus", "of",    "with",   "each",
                                        "per", "times", "nvidia", "amd",  "cards", "devices"};
    for (size_t i = 0; i < MAQ_COUNT(words); i++)
        if (maq_str_ieq(word, words[i]))
            return true;
    return word.len == 0;
}

static bool number(struct meant *m, struct maq_str word)
{
    int64_t value;
    if (word.len == 0 || word.len > 7 || !maq_str_to_i64(&value, word) || value < 1)
        return false;
    if (m->n == NUMBERS)
        m->strange = true;
    else
        m->numbers[m->n++] = value;
    return true;
}

static bool separator(char c)
{
    return c == 'x' || c == 'X' || c == '*' || c == '-' || c == '_' || c == ':';
}

/* "h100x64", "h100-64": a device, a separator, a number; or "64xh100", "8h100": the other way round. */
static bool glued(struct meant *m, struct maq_str word)
{
    for (size_t i = 1; i < word.len; i++) {
        struct maq_str left = {word.ptr, i}, right = {word.ptr + i, word.len - i};
        struct maq_str past = {right.ptr + 1, right.len - 1};
        bool cut = separator(right.ptr[0]);
        if (cut && known(left) && number(m, past)) {
            m->device = left;
            return true;
        }
        if (is_digit(word.ptr[i - 1]) && (known(right) || (cut && known(past))) && number(m, left)) {
            m->device = known(right) ? right : past;
            return true;
        }
        if (cut && is_digit(word.ptr[0]) && past.len > 0 && is_digit(past.ptr[0]) && number(m, left)) /* "8x8" */
            return number(m, past);
    }
    return false;
}

/* A whole machine; what is behind "dgx-" is its device. */
static bool box(struct meant *m, struct maq_str *word)
{
    static const char *const words[] = {"dgx", "hgx", "node", "nodes", "server", "servers", "machine", "machines"};
    for (size_t i = 0; i < MAQ_COUNT(words); i++) {
        struct maq_str name = maq_str_of(words[i]);
        bool begins = word->len > name.len && word->ptr[name.len] == '-' &&
                      maq_str_same((struct maq_str){word->ptr, name.len}, name);
        m->boxes |= begins || maq_str_same(*word, name);
        if (maq_str_same(*word, name))
            return true;
        if (begins)
            *word = (struct maq_str){word->ptr + name.len + 1, word->len - name.len - 1};
    }
    return false;
}

static void take(struct meant *m, struct maq_str word)
{
    if (box(m, &word))
        return;
    if (filler(word) || number(m, word))
        return;
    if (!m->device.ptr && known(word))
        m->device = word;
    else if (!glued(m, word))
        m->strange = true;
}

/* Words between blanks, and around a ':'. */
static struct meant read(struct maq_str text)
{
    struct meant m = {0};
    size_t from = 0;
    for (size_t i = text.len; i > 0 && !m.device.ptr; i--) /* a name of several words: "rtx 4090" */
        if (memchr(text.ptr, ' ', i) && (i == text.len || text.ptr[i] == ' ' || text.ptr[i] == ':') &&
            known((struct maq_str){text.ptr, i})) {
            m.device = (struct maq_str){text.ptr, i};
            from = i;
        }
    for (size_t i = from; i <= text.len; i++)
        if (i == text.len || text.ptr[i] == ' ' || text.ptr[i] == '\t' || text.ptr[i] == ':') {
            take(&m, (struct maq_str){text.ptr + from, i - from});
            from = i + 1;
        }
    return m;
}

/* What clouds call machines, by the beginning of the name, as their documentation describes them. */
static const char *rented(struct maq_str word, struct maq_arena *arena)
{
    static const struct {
        const char *begins, *line;
    } machines[] = {
        {"p3dn", "v100-32gb:8, ena-50"},
        {"p3.16", "v100-16gb:8"},
        {"p4de", "a100-80gb:8, efa-v1"},
        {"p4d", "a100-40gb:8, efa-v1"},
        {"p5en", "h200:8, efa-v3"},
        {"p5e", "h200:8, efa-v2"},
        {"p5", "h100-sxm:8, efa-v2"},
        {"a2-ultragpu-8", "a100-80gb:8"},
        {"a2-highgpu-8", "a100-40gb:8"},
        {"a3-", "h100-sxm:8"},
        {"nd96asr", "a100-40gb:8, ib-hdr"},
        {"nd96amsr", "a100-80gb:8, ib-hdr"},
        {"nd96isr_h100", "h100-sxm:8, ib-ndr"},
        {"nd96isr_h200", "h200:8, ib-ndr"},
    };
    for (size_t i = 0; i < MAQ_COUNT(machines); i++) {
        struct maq_str begins = maq_str_of(machines[i].begins);
        if (word.len > begins.len && maq_str_same((struct maq_str){word.ptr, begins.len}, begins))
            return maq_arena_printf(arena, "a cluster names its devices: did you mean '%s'?", machines[i].line);
    }
    return NULL;
}

/* The line that words before the first comma say, with what is behind it. NULL: they say none. */
static const char *line_of(const struct meant *m, struct maq_str rest, struct maq_arena *arena)
{
    struct maq_device device;
    if (!m->device.ptr || m->strange || (m->n == 0 && !m->boxes) ||
        maq__device_by_name(&device, m->device, (struct maq_span){0}, arena, NULL) != MAQ_OK)
        return NULL;
    int64_t usual = device.devices_per_node > 0 ? device.devices_per_node : 8, per = usual, nodes;
    if (m->n == 2) {
        bool first = m->numbers[0] == usual && m->numbers[1] != usual;
        per = first ? m->numbers[0] : m->numbers[1];
        nodes = first ? m->numbers[1] : m->numbers[0];
    } else if (m->boxes) {
        nodes = m->n == 1 ? m->numbers[0] : 1;
    } else {
        per = m->numbers[0] < usual ? m->numbers[0] : usual;
        nodes = m->numbers[0] / per;
        if (m->numbers[0] % per != 0)
            return NULL;
    }
    const char *name = device.name;
    return nodes > 1 ? maq_arena_printf(arena, "%s:%lld x %lld%.*s", name, (long long)per, (long long)nodes,
                                        (int)rest.len, rest.ptr)
                     : maq_arena_printf(arena, "%s:%lld%.*s", name, (long long)per, (int)rest.len, rest.ptr);
}

/* What stands before the first property. */
static struct maq_str head_of(struct maq_str text)
{
    size_t end = 0;
    while (end < text.len && text.ptr[end] != ',' && text.ptr[end] != '+')
        end++;
    return (struct maq_str){text.ptr, end};
}

const char *maq__cluster_hint(struct maq_str text, struct maq_arena *arena)
{
    struct maq_str before = head_of(text), head = maq_str_trim(before);
    struct meant m = read(head);
    if (!m.device.ptr && m.n == 1 && !m.strange)
        return maq_arena_printf(arena, "a cluster names its devices: 'h100-sxm:8 x 2' is 2 nodes of 8");
    if (!m.device.ptr)
        return rented(head, arena);
    const char *line = line_of(&m, (struct maq_str){text.ptr + before.len, text.len - before.len}, arena);
    return line ? maq_arena_printf(arena, "did you mean '%s'?", line) : NULL;
}

bool maq_cluster_in_words(char *out, size_t size, const char *words)
{
    struct maq_arena arena;
    maq_arena_init(&arena, 0);
    struct maq_str text = maq_str_of(words), before = head_of(text);
    struct meant m = read(maq_str_trim(before));
    const char *line = line_of(&m, (struct maq_str){text.ptr + before.len, text.len - before.len}, &arena);
    bool fits = line && strlen(line) < size;
    if (fits)
        memcpy(out, line, strlen(line) + 1);
    maq_arena_fini(&arena);
    return fits;
}
