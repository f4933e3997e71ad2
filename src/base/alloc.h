/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc.h - the one door to the heap for src/base and src/spec, so that a test can close it.
 *
 * maq__set_alloc_gate() installs a function that is asked before every allocation and refuses it by returning
 * false; the fault-injection tests fail the n-th one, n = 1, 2, ... until a call succeeds. NULL (the default)
 * lets everything through. Memory comes from malloc and is given back with plain free().
 */
#ifndef MAQ_BASE_ALLOC_H
#define MAQ_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef bool maq_alloc_gate(size_t bytes);
void maq__set_alloc_gate(maq_alloc_gate *gate);

/* NULL when out of memory or refused. */
void *maq__malloc(size_t bytes);
void *maq__aligned_alloc(size_t align, size_t bytes); /* bytes: a multiple of align, a power of two */
void *maq__calloc(size_t bytes);
void *maq__realloc(void *old, size_t bytes);
/* Room for one more than n in a heap column of `size`; false when out of memory, and the column is as it was. */
bool maq__grow(void **column, uint32_t *size, uint32_t n, size_t each);

#endif
