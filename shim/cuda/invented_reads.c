/* SPDX-License-Identifier: Apache-2.0 */
/*
 * invented_reads.c - counts reads of values that nobody has written, by where in the program they are.
 *
 * Where the program is, is known by the kernel that it launched last and by how many bytes it reads; an address would not do, because an
 * allocator gives each turn of a loop another one. From the 1,008th read of a kind on the pointers of the last launches are kept, and at the
 * 1,024th the user is told which kernel had one to what is read (assumptions: most programs read less often at one place, and one that
 * hangs does it in a few seconds). Four places are told of.
 */
#include "shim/cuda/invented_reads.h"
#include "shim/core/core.h"

#include <stdio.h>
#include <unistd.h>

enum { LOOKS_AT = 1008, SAYS_AT = 1024, PLACES = 256, POINTERS = 4096, SAID_MOST = 4, NAME_MOST = 80 };

struct place {
    const char *kernel;
    uint64_t bytes, reads;
};
static struct place places[PLACES]; /* by hash; another one takes over */

/* Pointers of the last launches: a ring. */
static struct {
    uint64_t from, to;
    const char *kernel;
} pointers[POINTERS];
static uint64_t n_pointers;
bool vg_invented_looks;

void vg_invented_written(uint64_t from, uint64_t bytes, const char *kernel)
{
    const uint64_t at = n_pointers++ % POINTERS;
    pointers[at].from = from;
    pointers[at].to = from + bytes;
    pointers[at].kernel = kernel;
}

/* The kernel that was launched last with a pointer to p itself; else the last that may have written there. */
static const char *writer(uint64_t p)
{
    const char *covers = NULL;
    for (uint64_t i = n_pointers; i > 0 && i + POINTERS > n_pointers; i--) {
        const uint64_t at = (i - 1) % POINTERS;
        if (pointers[at].from == p)
            return pointers[at].kernel;
        if (covers == NULL && pointers[at].from <= p && p < pointers[at].to)
            covers = pointers[at].kernel;
    }
    return covers != NULL ? covers : "no kernel of the last";
}

static void say(const struct place *place, uint64_t p)
{
    static unsigned said;
    char line[640];
    if (said++ >= SAID_MOST)
        return;
    int n = snprintf(line, sizeof line,
                     "maquette: the program has read %llu bytes behind the kernel %.*s %d times and was given zeros, "
                     "since no kernel "
                     "runs; a pointer to them had: %.*s. If it waits for another value, say which by --values\n",
                     (unsigned long long)place->bytes, NAME_MOST, place->kernel, SAYS_AT, NAME_MOST, writer(p));
    if (n > 0 && write(STDERR_FILENO, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1) < 0)
        return; /* where standard error is closed, nobody is to be told */
}

void vg_invented_read(const void *p, uint64_t bytes, const char *kernel)
{
    struct place *place = &places[maq_rec_mix((uintptr_t)kernel, bytes) % PLACES];
    if (place->kernel != kernel || place->bytes != bytes)
        *place = (struct place){.kernel = kernel, .bytes = bytes};
    place->reads++;
    if (place->reads == LOOKS_AT)
        vg_invented_looks = true;
    if (place->reads == SAYS_AT) {
        say(place, (uintptr_t)p);
        vg_invented_looks = false;
    }
}
