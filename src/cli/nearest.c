/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nearest.c - the word that was probably meant.
 *
 * Edit distance with swaps of neighbours (restricted Damerau-Levenshtein), letters without case, '-' and '_' alike. A
 * word counts as near when a third of its letters or fewer differ.
 */
#include <ctype.h>
#include <stdint.h>

#include "cli/cli.h"

#define LONGEST 64

static int letter(char c)
{
    return c == '_' ? '-' : tolower((unsigned char)c);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t distance(const char *a, size_t n, const char *b, size_t m)
{
    size_t rows[3][LONGEST + 1];
    size_t *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= m; j++)
        last[j] = before[j] = j;
    for (size_t i = 1; i <= n; i++) {
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            bool same = letter(a[i - 1]) == letter(b[j - 1]);
            row[j] = least(least(last[j], row[j - 1]) + 1, last[j - 1] + !same);
            if (i > 1 && j > 1 && letter(a[i - 1]) == letter(b[j - 2]) && letter(a[i - 2]) == letter(b[j - 1]))
                row[j] = least(row[j], before[j - 2] + 1);
        }
        size_t *free_row = before;
        before = last;
        last = row;
        row = free_row;
    }
    return last[m];
}

void cli_nearest_init(struct cli_nearest *n, const char *word, size_t len)
{
    *n = (struct cli_nearest){.word = word, .word_len = len, .distance = len / 3 + 1};
}

void cli_nearest_try(struct cli_nearest *n, const char *candidate, size_t len)
{
    if (n->word_len > LONGEST || len > LONGEST || n->word_len == 0 || len == 0)
        return;
    size_t d = distance(n->word, n->word_len, candidate, len);
    if (d < n->distance) {
        n->distance = d;
        n->best = candidate;
        n->best_len = len;
    }
}
