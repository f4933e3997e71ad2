/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalogue.c - lookups in the compiled-in documents: see catalogue.h.
 *
 * There are some hundred entries and a run looks up a handful: a scan in order is the simplest thing that works.
 */
#include "spec/catalogue.h"

#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "spec/catalogue_data.h"
#include "spec/doc_internal.h"

static bool in_section(const struct maq_catalogue_entry *e, const char *section)
{
    return strcmp(e->section, section) == 0;
}

/* Does s begin with prefix, ASCII case ignored (strncasecmp would ask the locale)? */
static bool begins_with(struct maq_str s, struct maq_str prefix)
{
    for (size_t i = 0; i < prefix.len; i++)
        if (i >= s.len || maq_char_lower(s.ptr[i]) != maq_char_lower(prefix.ptr[i]))
            return false;
    return true;
}

/* Without the maker's words: "NVIDIA A100 80GB PCIe" is what the driver prints, "A100-80GB-PCIe" what people write. */
static struct maq_str without_maker(struct maq_str name)
{
    static const char *const words[] = {"nvidia ", "amd ", "instinct ", "tesla ", "geforce "};
    for (size_t i = 0; i < MAQ_COUNT(words); i++) {
        struct maq_str word = maq_str_of(words[i]);
        if (name.len > word.len && begins_with(name, word))
            name = (struct maq_str){name.ptr + word.len, name.len - word.len};
    }
    return name;
}

static char folded(char c)
{
    return c == ' ' || c == '_' ? '-' : maq_char_lower(c);
}

/* ASCII case, maker and the kind of separator do not tell names apart. */
static bool same_name(struct maq_str a, struct maq_str b)
{
    a = without_maker(a);
    b = without_maker(b);
    for (size_t i = 0; a.len == b.len && i < a.len; i++)
        if (folded(a.ptr[i]) != folded(b.ptr[i]))
            return false;
    return a.len == b.len && a.len > 0;
}

static bool has_name(const struct maq_catalogue_entry *e, struct maq_str name)
{
    struct maq_str rest = maq_str_of(e->aliases), alias;
    if (same_name(maq_str_of(e->name), name))
        return true;
    while (rest.ptr) {
        rest = maq_str_split(rest, '|', &alias);
        if (same_name(alias, name))
            return true;
    }
    return false;
}

const struct maq_catalogue_entry *maq__catalogue_find_in(const struct maq_catalogue_entry *entries, size_t n,
                                                         const char *section, struct maq_str name)
{
    for (size_t i = 0; i < n; i++)
        if (in_section(&entries[i], section) && has_name(&entries[i], name))
            return &entries[i];
    return NULL;
}

/* Of names that begin with a word the shortest: "megatron" is megatron-lm before megatron-bridge. */
struct beginning {
    const char *entry; /* NULL: none yet */
    size_t len;
};

static void try_beginning(struct beginning *b, struct maq_str name, struct maq_str word, const char *entry)
{
    if (begins_with(name, word) && (!b->entry || name.len < b->len))
        *b = (struct beginning){entry, name.len};
}

static bool divides(char c)
{
    return c == '-' || c == '_' || c == ' ';
}

/* The next letters up to a dash. */
static struct maq_str next_word(struct maq_str *rest)
{
    size_t n = 0;
    while (rest->len > 0 && divides(rest->ptr[0]))
        *rest = (struct maq_str){rest->ptr + 1, rest->len - 1};
    while (n < rest->len && !divides(rest->ptr[n]))
        n++;
    struct maq_str word = {rest->ptr, n};
    *rest = (struct maq_str){rest->ptr + n, rest->len - n};
    return word;
}

/* Whether a name has all words of another, in their order: "llama-3-8b" those of "llama-8b", "megatron-deepspeed" "deepspeed". */
static bool has_words(struct maq_str name, struct maq_str words)
{
    struct maq_str want = next_word(&words), has;
    if (words.len + want.len < 3)
        return false;
    while (want.len > 0 && (has = next_word(&name)).len > 0)
        if (maq_str_same(has, want))
            want = next_word(&words);
    return want.len == 0;
}

/* Whether two names are one but for dashes: "gpt-3" and "gpt3". */
static bool same_letters(struct maq_str a, struct maq_str b)
{
    size_t i = 0, k = 0;
    for (;;) {
        while (i < a.len && divides(a.ptr[i]))
            i++;
        while (k < b.len && divides(b.ptr[k]))
            k++;
        if (i == a.len || k == b.len)
            return i == a.len && k == b.len && i > 0;
        if (maq_char_lower(a.ptr[i++]) != maq_char_lower(b.ptr[k++]))
            return false;
    }
}

/*
 * The entry that is called so but for dashes; else one whose name, else one of whose aliases, begins with the word; else the shortest
 * name with all its words; else by edit distance over names and aliases.
 */
const char *maq__catalogue_nearest_in(const struct maq_catalogue_entry *entries, size_t n, const char *section,
                                      struct maq_str name)
{
    const char *nearest = NULL, *same = NULL;
    struct beginning begins = {0}, alias_begins = {0}, words = {0};
    struct maq_nearest near;
    maq__nearest_init(&near, name);
    for (size_t i = 0; i < n; i++) {
        const struct maq_catalogue_entry *e = &entries[i];
        if (!in_section(e, section))
            continue;
        struct maq_str rest = maq_str_of(e->aliases), alias;
        uint32_t before = near.distance;
        maq__nearest_try(&near, maq_str_of(e->name));
        while (rest.ptr) {
            rest = maq_str_split(rest, '|', &alias);
            maq__nearest_try(&near, alias);
            same = same_letters(alias, name) ? e->name : same;
            if (name.len >= 3)
                try_beginning(&alias_begins, alias, name, e->name);
        }
        if (near.distance < before)
            nearest = e->name;
        same = same_letters(maq_str_of(e->name), name) ? e->name : same;
        if (has_words(maq_str_of(e->name), name) && (!words.entry || strlen(e->name) < words.len))
            words = (struct beginning){e->name, strlen(e->name)};
        if (name.len >= 2)
            try_beginning(&begins, maq_str_of(e->name), name, e->name);
    }
    /* "h100" begins "h100-sxm", and "v100-sxm" another name of v100-32gb; "a100" one letter away is not what was meant. */
    if (same)
        return same;
    nearest = words.entry ? words.entry : nearest;
    return begins.entry ? begins.entry : alias_begins.entry ? alias_begins.entry : nearest;
}

const struct maq_catalogue_entry *maq_catalogue_find(const char *section, struct maq_str name)
{
    return maq__catalogue_find_in(maq__catalogue, maq__catalogue_count, section, name);
}

const char *maq_catalogue_nearest(const char *section, struct maq_str name)
{
    return maq__catalogue_nearest_in(maq__catalogue, maq__catalogue_count, section, name);
}

const struct maq_catalogue_entry *maq_catalogue_at(const char *section, size_t i)
{
    for (size_t k = 0; k < maq__catalogue_count; k++)
        if (in_section(&maq__catalogue[k], section) && i-- == 0)
            return &maq__catalogue[k];
    return NULL;
}
