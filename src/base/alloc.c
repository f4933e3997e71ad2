/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc.c - malloc(), calloc() and realloc() behind a gate that tests can close, with a limit on one request; and
 * doubling of growing columns. See alloc.h.
 */
#include "base/alloc.h"

#include <stdatomic.h>
#include <stdlib.h>

static _Atomic(maq_alloc_gate *) alloc_gate;

void maq__set_alloc_gate(maq_alloc_gate *gate)
{
    atomic_store(&alloc_gate, gate);
}

/* No machine this runs on has half a tebibyte for one request; refusing here keeps sanitizers' own limits out of it. */
#define REQUEST_MAX ((size_t)1 << 39)

static bool allowed(size_t bytes)
{
    if (bytes > REQUEST_MAX)
        return false;
    maq_alloc_gate *gate = atomic_load_explicit(&alloc_gate, memory_order_relaxed);
    return !gate || gate(bytes);
}

void *maq__malloc(size_t bytes)
{
    return allowed(bytes) ? malloc(bytes ? bytes : 1) : NULL;
}

void *maq__aligned_alloc(size_t align, size_t bytes)
{
    return allowed(bytes) ? aligned_alloc(align, bytes) : NULL;
}

void *maq__calloc(size_t bytes)
{
    return allowed(bytes) ? calloc(1, bytes ? bytes : 1) : NULL;
}

void *maq__realloc(void *old, size_t bytes)
{
    return allowed(bytes) ? realloc(old, bytes ? bytes : 1) : NULL;
}

bool maq__grow(void **column, uint32_t *size, uint32_t n, size_t each)
{
    if (n < *size)
        return true;
    uint64_t more = *size ? (uint64_t)*size * 2 : 64;
    void *p = more <= UINT32_MAX / 2 ? maq__realloc(*column, (size_t)more * each) : NULL;
    if (!p)
        return false;
    *column = p;
    *size = (uint32_t)more;
    return true;
}
