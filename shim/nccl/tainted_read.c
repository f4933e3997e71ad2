/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tainted_read.c - the program reads what a rank that did not run was to say: maquette is told, and the user.
 *
 * In a host program: nothing; there everybody runs.
 *
 * Where the card says `stops 1` and that rank can be run, the program ends here, before it goes on with something that is not so: maquette
 * runs the rank, and then this one from its beginning (launch/prerequisites.h). Otherwise the program reads the guess, which is said by name on
 * standard error, before whatever the program makes of it. Floating-point numbers are passed over: they are what kernels computed, most of the
 * time. That they were read is written down, for a program that fails.
 */
#include <stdio.h>
#include <unistd.h>

#include "shim/core/core.h"
#include "shim/nccl/nccl.h"

enum { SAID_MOST = 8 }; /* lines on standard error */

static const char *what_it_is(uint32_t kind)
{
    static const char *const names[] = {[MAQ_REC_ALL_REDUCE] = "all-reduce",
                                        [MAQ_REC_BROADCAST] = "broadcast",
                                        [MAQ_REC_GATHER] = "gather",
                                        [MAQ_REC_SCATTER] = "scatter"};
    return kind < sizeof names / sizeof *names && names[kind] ? names[kind] : "message";
}

static void say(const struct vg_taint *u)
{
    static unsigned said;
    char who[32] = "a rank", line[320];
    if (said > SAID_MOST)
        return;
    if (u->rank != MAQ_REC_NONE)
        (void)snprintf(who, sizeof who, "rank %u", u->rank);
    int n = said < SAID_MOST
                ? snprintf(line, sizeof line,
                           "maquette: rank %u reads %llu bytes that %s, place %u of %u, was to say (%s %llu of this "
                           "communicator): nobody has said them, %s is read\n",
                           vg_card()->rank, (unsigned long long)u->bytes, who, u->place, u->n, what_it_is(u->kind),
                           (unsigned long long)u->call, u->zeros ? "zeros" : "what was in the buffer")
                : snprintf(line, sizeof line, "maquette: and more that nobody has said\n");
    said++;
    if (n > 0 && write(STDERR_FILENO, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1) < 0)
        return;
}

void vg_tainted_read(const struct vg_taint *u)
{
    const struct vg_card *card = vg_card();
    if (u->real) { /* a loss, mostly; where the program fails it may have been something else */
        vg_input_record_lookup(u->channel, 0, u->place, NULL, 0, true);
        return;
    }
    /* One that waits for this rank goes on from what this one has said, where samples are asked; else guesses get further: ranks that answer each other
     * one message at a time would run for each. */
    const bool waits = vg_waits(u->rank) && card->stops != VG_STOPS_FOR_SAMPLES;
    const bool stops = card->stops && u->rank != MAQ_REC_NONE && u->rank != card->rank && !vg_ran(u->rank) && !waits;
    vg_lock();
    vg_input_record_tainted_read(u, stops);
    if (stops) {
        vg_flush();
        _exit(MAQ_STOPPED_STATUS);
    }
    say(u);
    vg_unlock();
}
