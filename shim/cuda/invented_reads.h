/* SPDX-License-Identifier: Apache-2.0 */
/*
 * invented_reads.h - a program that goes on reading what no kernel has written is told so, once for each place in it.
 *
 * A loop that waits for a count, a token or a flag that a kernel would have computed never ends. Nobody can tell it from a loop
 * that only prints a loss, so that it is said and nothing is done.
 */
#ifndef MAQ_SHIM_INVENTED_READS_H
#define MAQ_SHIM_INVENTED_READS_H

#include <stdbool.h>
#include <stdint.h>

/* The host has read `bytes` at p, and what it got was invented. Launched last was `kernel`, a name that is never freed. */
void vg_invented_read(const void *p, uint64_t bytes, const char *kernel);
/* Whether pointers are looked at: then a launch says where each of its own may write. */
extern bool vg_invented_looks;
void vg_invented_written(uint64_t from, uint64_t bytes, const char *kernel);

#endif
