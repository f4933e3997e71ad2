/* SPDX-License-Identifier: Apache-2.0 */
/*
 * megatron.c - Megatron-LM's arguments as its reader of command lines takes them: words, without quotes and comments.
 */
#include <string.h>

#include "plan/words/words.h"

static bool is_space(char c)
{
    return c == ' ' || c == '\n';
}

/* The next word at *at into `to`, which has room for the rest of the text; false at the end. */
static bool next_word(const char **at, char **to)
{
    bool quoted = false;
    while (is_space(**at))
        ++*at;
    if (**at == '\0')
        return false;
    for (; **at != '\0' && (quoted || !is_space(**at)); ++*at) {
        if (**at == '"')
            quoted = !quoted;
        else
            *(*to)++ = **at;
    }
    *(*to)++ = '\0';
    return true;
}

enum maq_status maq_words_read_megatron(struct maq_megatron **read, const char *text, struct maq_arena *arena,
                                        struct maq_diag *diag)
{
    size_t n = 0, most = strlen(text) / 2 + 1;
    const char **words = MAQ_ARENA_NEW(arena, const char *, most);
    char *to = MAQ_ARENA_NEW(arena, char, strlen(text) + 2);
    if (!words || !to)
        return MAQ_NO_MEMORY;
    for (const char *word = to; n < most && next_word(&text, &to); word = to)
        words[n++] = word;
    return maq_megatron_read(read, words, n, false, diag);
}
