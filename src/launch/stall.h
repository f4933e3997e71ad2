/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stall.h - sees that a program does nothing: its processes take no time of a processor, and ask for nothing.
 *
 * Such a program waits for somebody by means of its own, sockets or memory that its ranks share; maquette stands in for neither. A process
 * that sleeps on the clock of the zero-GPU device does not count: its sleep is over at once.
 */
#ifndef MAQ_LAUNCH_STALL_H
#define MAQ_LAUNCH_STALL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct maq_stall {
    double since_s; /* 0: not looked yet */
    uint64_t ticks; /* of the processes, then */
    double looked_s;
};

/*
 * Whether the processes below `keeper` have done nothing for `limit_s`, up to `now_s`; to be called again and again. A limit that is not
 * positive: never.
 */
bool maq_stall_look(struct maq_stall *s, pid_t keeper, double now_s, double limit_s);

#endif
