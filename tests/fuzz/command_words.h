/* SPDX-License-Identifier: Apache-2.0 */
/* command_words.h - for targets that take any text as a command line: its words, between blanks and line ends. */
#ifndef MAQ_TESTS_FUZZ_COMMAND_WORDS_H
#define MAQ_TESTS_FUZZ_COMMAND_WORDS_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define WORDS 256

static inline void require(bool holds)
{
    if (!holds)
        abort();
}

/* The first WORDS words; `text` is cut up. */
static inline size_t cut(const char *words[WORDS], char *text)
{
    size_t n = 0;
    for (char *at = strtok(text, " \t\r\n"); at && n < WORDS; at = strtok(NULL, " \t\r\n"))
        words[n++] = at;
    return n;
}

#endif
