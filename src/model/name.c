/* SPDX-License-Identifier: Apache-2.0 */
/*
 * name.c - which entry of the catalogue a name means.
 *
 *   llama-3.1-8b                         a name or alias of the catalogue
 *   meta-llama/Llama-3.1-8B-Instruct     the repository on Hugging Face that an entry's source names, with its owner or
 *   Llama-3.1-8B-Instruct                without; words that say how the weights were tuned do not count, as tuning
 *                                        changes no shape
 *
 *   Qwen/Qwen2.5-Coder-7B                another repository of the same owner, whose name is an alias of the entry
 *
 * Another owner's repository is not taken for it, nor a path with a slip of the pen.
 */
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "model/load.h"

static bool says_tuning(struct maq_str word)
{
    static const char *const words[] = {"base", "chat", "hf", "instruct", "it", "pt", "thinking"};
    for (size_t i = 0; i < MAQ_COUNT(words); i++)
        if (maq_str_ieq(word, words[i]))
            return true;
    return false;
}

/* The next word between dashes that does not speak of tuning; empty at the end. */
static struct maq_str next_word(struct maq_str *rest)
{
    struct maq_str word = {0};
    while (rest->ptr) {
        *rest = maq_str_split(*rest, '-', &word);
        if (!says_tuning(word))
            return word;
    }
    return (struct maq_str){0};
}

static bool same_but_tuning(struct maq_str a, struct maq_str b)
{
    struct maq_str x, y;
    do {
        x = next_word(&a);
        y = next_word(&b);
    } while (x.ptr && y.ptr && maq_str_same(x, y));
    return !x.ptr && !y.ptr;
}

/* Owner and name of the repository in an entry's source; false where that is something else. */
static bool repository_of(struct maq_str *owner, struct maq_str *repository, const struct maq_catalogue_entry *e)
{
    static const char site[] = "huggingface.co/";
    const char *at = strstr(e->text, site);
    if (!at)
        return false;
    at += sizeof site - 1;
    struct maq_str address = {at, strcspn(at, " ,;()\"'\r\n")};
    *repository = maq_str_split(address, '/', owner);
    return repository->len > 0;
}

/* The name of the entry's repository, or one of its aliases. */
static bool has_name(const struct maq_catalogue_entry *e, struct maq_str repository, struct maq_str name)
{
    struct maq_str rest = maq_str_of(e->aliases), alias;
    if (same_but_tuning(name, repository) || same_but_tuning(name, maq_str_of(e->name)))
        return true;
    while (rest.ptr && rest.len > 0) {
        rest = maq_str_split(rest, '|', &alias);
        if (same_but_tuning(name, alias))
            return true;
    }
    return false;
}

const struct maq_catalogue_entry *maq_model_entry(struct maq_str name)
{
    struct maq_str owner = {0}, repository = name, theirs, its;
    const struct maq_catalogue_entry *e = maq_catalogue_find("models", name);
    if (e || name.len == 0)
        return e;
    if (memchr(name.ptr, '/', name.len))
        repository = maq_str_split(name, '/', &owner);
    for (size_t i = 0; (e = maq_catalogue_at("models", i)) != NULL; i++)
        if (repository_of(&theirs, &its, e) && (!owner.ptr || maq_str_same(owner, theirs)) &&
            has_name(e, its, repository))
            return e;
    return NULL;
}
