/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digits.c - a number that every rank of an exchange says, as a sum over the digits of its rank.
 *
 * Coordinates of ranks are digits of the rank in a mixed radix (tensor, context, data, pipeline), and colors and keys of splits are sums
 * of them with factors: the color of a data group is p * tp + t. Written in the finest radix, the prime factors of n in some order,
 *
 *     i = x_0 + r_0 (x_1 + r_1 (x_2 + ...))       w(i) = w(0) + sum of c_k x_k
 *
 * covers all of them. Slices run the ranks that divide the world, of which each has one digit that is not 0 in such a radix, so the c_k are
 * read off; all other ranks that are known must agree. Orders of the primes are tried in turn. Where a c_k stays open there is no answer.
 *
 * What is known has to be, so an order that it contradicts stays contradicted when more is known. One that was left because a c_k was open
 * may answer then, and before others: the answer is not steady.
 */
#include "shim/nccl/digits.h"

#include <string.h>

enum { DIGITS = 32, ORDERS = 4096 };

struct radix {
    uint32_t r[DIGITS];
    unsigned n;
};

struct sum {
    int64_t c[DIGITS];
    bool found[DIGITS];
};

/* The digits of i. */
static void spell(uint32_t x[DIGITS], const struct radix *radix, uint32_t i)
{
    for (unsigned k = 0; k < radix->n; k++) {
        x[k] = i % radix->r[k];
        i /= radix->r[k];
    }
}

/* What member i says beyond what is explained; *open is its one digit whose factor is not known, DIGITS = none, -1 = several. */
static int64_t rest(int *open, const struct sum *s, const struct radix *radix, uint32_t i, uint32_t w0, uint32_t w)
{
    uint32_t x[DIGITS];
    int64_t left = (int32_t)(w - w0);
    *open = DIGITS;
    spell(x, radix, i);
    for (unsigned k = 0; k < radix->n; k++) {
        if (x[k] == 0)
            continue;
        if (s->found[k])
            left -= s->c[k] * x[k];
        else
            *open = *open == DIGITS ? (int)k : -1;
    }
    return left;
}

enum answer { CONTRADICTED, OPEN, EXPLAINED };

static enum answer explains(struct sum *s, const struct radix *radix, const struct vg_said *said)
{
    bool more = true;
    memset(s, 0, sizeof *s);
    while (more) {
        more = false;
        for (uint32_t m = 0; m < said->n; m++) {
            uint32_t x[DIGITS];
            int open;
            int64_t left = rest(&open, s, radix, said->rank[m], said->word0, said->word[m]);
            if (open == DIGITS && left != 0)
                return CONTRADICTED;
            if (open < 0 || open == DIGITS)
                continue;
            spell(x, radix, said->rank[m]);
            if (left % (int64_t)x[open] != 0)
                return CONTRADICTED;
            s->c[open] = left / (int64_t)x[open];
            s->found[open] = more = true;
        }
    }
    for (unsigned k = 0; k < radix->n; k++)
        if (!s->found[k])
            return OPEN;
    return EXPLAINED;
}

/* The next order of the factors, as a number's digits count: false after the last. Equal factors are not told apart. */
static bool next_order(struct radix *radix)
{
    unsigned i = radix->n, j = radix->n;
    while (i > 1 && radix->r[i - 2] >= radix->r[i - 1])
        i--;
    if (i < 2)
        return false;
    while (radix->r[j - 1] <= radix->r[i - 2])
        j--;
    uint32_t swap = radix->r[i - 2];
    radix->r[i - 2] = radix->r[j - 1];
    radix->r[j - 1] = swap;
    for (unsigned a = i - 1, b = radix->n - 1; a < b; a++, b--) {
        swap = radix->r[a];
        radix->r[a] = radix->r[b];
        radix->r[b] = swap;
    }
    return true;
}

/* Prime factors, ascending: the first order. */
static void factor(struct radix *radix, uint32_t n)
{
    radix->n = 0;
    for (uint32_t p = 2; n > 1 && radix->n < DIGITS; p += p == 2 ? 1 : 2) {
        if ((uint64_t)p * p > n)
            p = n;
        for (; n % p == 0 && radix->n < DIGITS; n /= p)
            radix->r[radix->n++] = p;
    }
}

bool vg_digits(uint32_t *words, bool *steady, uint32_t n, const struct vg_said *said)
{
    struct radix radix;
    struct sum s;
    bool found = false;
    factor(&radix, n);
    for (unsigned tries = 0; !found && tries < ORDERS; tries++) {
        enum answer answer = explains(&s, &radix, said);
        found = answer == EXPLAINED;
        *steady = *steady && answer != OPEN;
        if (!found && !next_order(&radix))
            return false;
    }
    for (uint32_t i = 0; found && i < n; i++) {
        uint32_t x[DIGITS];
        int64_t w = said->word0;
        spell(x, &radix, i);
        for (unsigned k = 0; k < radix.n; k++)
            w += s.c[k] * x[k];
        words[i] = (uint32_t)w;
    }
    return found;
}
