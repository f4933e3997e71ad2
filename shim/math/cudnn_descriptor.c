/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudnn_descriptor.c - descriptors of cuDNN's backend API: bags of attributes, whatever they are called.
 *
 * An attribute holds references to the descriptors in it.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/math/dnn.h"

#define DESCRIPTOR_MAGIC 0x646e6e2d646573u

struct dnn_descriptor *dnn_new(int kind)
{
    struct dnn_descriptor *d = calloc(1, sizeof *d);
    if (d == NULL)
        return NULL;
    d->magic = DESCRIPTOR_MAGIC;
    d->kind = kind;
    d->references = 1;
    return d;
}

struct dnn_descriptor *dnn_descriptor_of(void *p)
{
    struct dnn_descriptor *d = (struct dnn_descriptor *)p;
    return d != NULL && d->magic == DESCRIPTOR_MAGIC ? d : NULL;
}

size_t dnn_width(int type)
{
    switch (type) {
    case ABI_CUDNN_TYPE_BOOLEAN:
    case ABI_CUDNN_TYPE_CHAR:
        return 1;
    case ABI_CUDNN_TYPE_HANDLE:
    case ABI_CUDNN_TYPE_INT64:
    case ABI_CUDNN_TYPE_DOUBLE:
    case ABI_CUDNN_TYPE_VOID_PTR:
    case ABI_CUDNN_TYPE_DESCRIPTOR:
        return 8;
    case ABI_CUDNN_TYPE_FRACTION:
        return 16;
    default: /* float, int32, and all enumerations */
        return 4;
    }
}

static void attribute_free(struct dnn_attribute *a)
{
    if (a->type == ABI_CUDNN_TYPE_DESCRIPTOR)
        for (int64_t i = 0; i < a->n; i++)
            dnn_release(((struct dnn_descriptor **)a->value)[i]);
    free(a->value);
    free(a);
}

void dnn_clear(struct dnn_descriptor *d)
{
    while (d->attributes != NULL) {
        struct dnn_attribute *a = d->attributes;
        d->attributes = a->next;
        attribute_free(a);
    }
}

/* References form no circle: a descriptor is final, and closed, before another may hold it. */
void dnn_release(struct dnn_descriptor *d)
{
    if (d == NULL || --d->references > 0)
        return;
    dnn_clear(d);
    d->magic = 0;
    free(d);
}

const struct dnn_attribute *dnn_find(const struct dnn_descriptor *d, int name)
{
    for (const struct dnn_attribute *a = d != NULL ? d->attributes : NULL; a != NULL; a = a->next)
        if (a->name == name)
            return a;
    return NULL;
}

struct dnn_descriptor *dnn_child(const struct dnn_descriptor *d, int name, int64_t i)
{
    const struct dnn_attribute *a = dnn_find(d, name);
    return a != NULL && a->type == ABI_CUDNN_TYPE_DESCRIPTOR && i < a->n ? ((struct dnn_descriptor **)a->value)[i]
                                                                         : NULL;
}

int64_t dnn_number(const struct dnn_descriptor *d, int name, int64_t otherwise)
{
    const struct dnn_attribute *a = dnn_find(d, name);
    int64_t wide = 0;
    if (a == NULL || a->n < 1 || dnn_width(a->type) > 8)
        return otherwise;
    memcpy(&wide, a->value, dnn_width(a->type)); /* little-endian */
    return wide;
}

int dnn_set(struct dnn_descriptor *d, int name, int type, int64_t n, const void *values)
{
    if (n < 0 || n > INT32_MAX || (n > 0 && values == NULL))
        return ABI_CUDNN_BAD_PARAM;
    struct dnn_attribute *a = calloc(1, sizeof *a);
    if (a == NULL || (a->value = calloc((size_t)n + 1, dnn_width(type))) == NULL) {
        free(a);
        return ABI_CUDNN_ALLOC_FAILED;
    }
    a->name = name;
    a->type = type;
    a->n = n;
    if (n > 0)
        memcpy(a->value, values, (size_t)n * dnn_width(type));
    if (type == ABI_CUDNN_TYPE_DESCRIPTOR)
        for (int64_t i = 0; i < n; i++) {
            struct dnn_descriptor *child = dnn_descriptor_of(((void **)a->value)[i]);
            ((struct dnn_descriptor **)a->value)[i] = child;
            if (child != NULL)
                child->references++;
        }
    for (struct dnn_attribute **at = &d->attributes; *at != NULL; at = &(*at)->next)
        if ((*at)->name == name) {
            struct dnn_attribute *old = *at;
            *at = old->next;
            attribute_free(old);
            break;
        }
    a->next = d->attributes;
    d->attributes = a;
    return ABI_CUDNN_SUCCESS;
}
