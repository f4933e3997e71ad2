/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_name.c - the catalogue's GPU in a name as drivers, profilers and people write it.
 *
 * A name of a GPU is words between blanks, and those again are parts between hyphens and underscores: first the longest run of words that
 * the catalogue knows ("NVIDIA H100 80GB HBM3"), the one further in front where two are equally long; failing that, the same of parts
 * ("DGX-H100", "H100-80GB-SXM-custom"). How many there are ("8x", "x8") is said elsewhere.
 */
#include "cluster/device_name.h"

#include <string.h>

#include "base/str.h"

#define MAX_WORDS 32

struct words {
    struct maq_str at[MAX_WORDS];
    size_t n;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool separates(char c, bool parts)
{
    return (c >= 0 && c <= ' ') || (c != '\0' && strchr("()[]/,;+@", c)) || (parts && (c == '-' || c == '_'));
}

/* "8xH100" and "H100x8" without the count; a count alone becomes nothing. */
static struct maq_str without_count(struct maq_str word)
{
    size_t n = 0;
    while (n < word.len && is_digit(word.ptr[n]))
        n++;
    if (n > 0 && n < word.len && maq_char_lower(word.ptr[n]) == 'x')
        return (struct maq_str){word.ptr + n + 1, word.len - n - 1};
    n = word.len;
    while (n > 0 && is_digit(word.ptr[n - 1]))
        n--;
    if (n > 0 && n < word.len && (word.ptr[n - 1] == 'x' || (n == 1 && word.ptr[0] == 'X')))
        return (struct maq_str){word.ptr, n - 1};
    return word;
}

static void split_name(struct words *w, struct maq_str gpu, bool parts)
{
    w->n = 0;
    while (gpu.len > 0 && w->n < MAX_WORDS) {
        size_t n = 0;
        while (n < gpu.len && !separates(gpu.ptr[n], parts))
            n++;
        struct maq_str word = without_count((struct maq_str){gpu.ptr, n});
        if (word.len > 0 && !maq_str_ieq(word, "x"))
            w->at[w->n++] = word;
        n += n < gpu.len;
        gpu = (struct maq_str){gpu.ptr + n, gpu.len - n};
    }
}

/* Words [from, from + n) joined by blanks, as the catalogue looks them up. */
static const struct maq_catalogue_entry *find_run(const struct words *w, size_t from, size_t n)
{
    char name[128];
    size_t len = 0;
    for (size_t i = from; i < from + n; i++) {
        if (len + w->at[i].len + 1 > sizeof name)
            return NULL;
        if (i > from)
            name[len++] = ' ';
        memcpy(name + len, w->at[i].ptr, w->at[i].len);
        len += w->at[i].len;
    }
    return maq_catalogue_find("devices", (struct maq_str){name, len});
}

static const struct maq_catalogue_entry *find_longest(const struct words *w)
{
    for (size_t n = w->n; n > 0; n--)
        for (size_t from = 0; from + n <= w->n; from++) {
            const struct maq_catalogue_entry *entry = find_run(w, from, n);
            if (entry)
                return entry;
        }
    return NULL;
}

const struct maq_catalogue_entry *maq_device_named(struct maq_str gpu)
{
    struct words w;
    split_name(&w, gpu, false);
    const struct maq_catalogue_entry *entry = find_longest(&w);
    if (entry)
        return entry;
    split_name(&w, gpu, true);
    return find_longest(&w);
}
