/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oracle.h - values that the host reads back although no kernel ran: from a file that somebody recorded, or wrote.
 */
#ifndef MAQ_SHIM_ORACLE_H
#define MAQ_SHIM_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

/* Reads the file, if that has not been done: its rules count from here on, behind those that are always there (value_rules.h). */
void vg_values_load(void);
/* Fills to[bytes] with what the n-th read at (allocation, offset) gave, n counting the calls; false: the file does not say. */
bool vg_oracle(void *to, uint64_t bytes, uint32_t allocation, uint64_t offset);

#endif
