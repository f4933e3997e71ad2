/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arithmetic.c - types of whole numbers, and where those lie that are computed. See arithmetic.h.
 */
#include "shim/cuda/arithmetic.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    char letter;
    uint8_t scalar_type, bytes; /* c10/core/ScalarType.h */
} types[VG_WHOLE_NONE] = {
    [VG_WHOLE_BOOL] = {'b', 11, 1}, [VG_WHOLE_U8] = {'h', 0, 1},  [VG_WHOLE_I8] = {'a', 1, 1},
    [VG_WHOLE_I16] = {'s', 2, 2},   [VG_WHOLE_I32] = {'i', 3, 4}, [VG_WHOLE_I64] = {'l', 4, 8},
};

enum vg_whole vg_whole_mangled(char letter)
{
    enum vg_whole type = 0;
    while (type < VG_WHOLE_NONE && types[type].letter != letter)
        type++;
    return type;
}

enum vg_whole vg_whole_scalar_type(unsigned number)
{
    enum vg_whole type = 0;
    while (type < VG_WHOLE_NONE && types[type].scalar_type != number)
        type++;
    return type;
}

unsigned vg_whole_bytes(enum vg_whole type)
{
    return type < VG_WHOLE_NONE ? types[type].bytes : 0;
}

unsigned vg_mangled_bytes(const char *type)
{
    static const struct {
        const char *letters;
        unsigned bytes;
    } builtin[] = {{"bahc", 1}, {"st", 2}, {"ijf", 4}, {"lmxyd", 8}};
    static const struct {
        const char *name;
        unsigned bytes;
    } named[] = {{"N3c104HalfE", 2}, {"N3c108BFloat16E", 2}, {"N3c1013Float8_e4m3fnE", 1}, {"N3c1011Float8_e5m2E", 1}};
    for (unsigned i = 0; i < sizeof builtin / sizeof *builtin; i++)
        if (*type != '\0' && strchr(builtin[i].letters, *type))
            return builtin[i].bytes;
    for (unsigned i = 0; i < sizeof named / sizeof *named; i++)
        if (strncmp(type, named[i].name, strlen(named[i].name)) == 0)
            return named[i].bytes;
    return VG_ELEMENT_MOST;
}

int64_t vg_whole_load(const void *from, enum vg_whole type)
{
    int64_t x = 0;
    memcpy(&x, from, vg_whole_bytes(type)); /* little-endian */
    const unsigned shift = 64 - 8 * vg_whole_bytes(type);
    if (type == VG_WHOLE_BOOL)
        return x != 0;
    return type == VG_WHOLE_U8 ? x : (int64_t)((uint64_t)x << shift) >> shift;
}

void vg_whole_store(void *to, int64_t x, enum vg_whole type)
{
    if (type == VG_WHOLE_BOOL)
        x = x != 0;
    memcpy(to, &x, vg_whole_bytes(type));
}

static bool on_device(const void *p)
{
    struct vg_alloc a;
    return vg_mem_find(p, &a) && (a.kind == MAQ_REC_DEVICE || a.kind == MAQ_REC_POOL);
}

bool vg_arithmetic_in_place(const struct vg_arithmetic *a, const struct vg_launch *l)
{
    bool all = on_device(a->out);
    for (unsigned i = 0; i < VG_OPERANDS_MOST && all; i++)
        all = !a->in[i].at || on_device(a->in[i].at);
    /* in real time: a kernel behind a message reads what that brought */
    for (unsigned i = 0; i < VG_OPERANDS_MOST && all && l->stream; i++)
        if (a->in[i].at)
            vg_payload_settle(a->in[i].at, a->in[i].bytes, l->stream);
    if (all && l->stream)
        vg_payload_settle(a->out, a->out_bytes, l->stream);
    return all && vg_mem_touch(a->out, a->out_bytes);
}

unsigned vg_arithmetic_known(const struct vg_arithmetic *a)
{
    unsigned known = 0;
    for (unsigned i = 0; i < VG_OPERANDS_MOST; i++)
        known += a->in[i].at && vg_mem_true(a->in[i].at, a->in[i].bytes) && vg_mem_touch(a->in[i].at, a->in[i].bytes);
    return known;
}

bool vg_arithmetic_begin(struct vg_arithmetic *a, const struct vg_launch *l)
{
    *a = (struct vg_arithmetic){.out = NULL};
    return l->args != NULL && l->kernel->code.found &&
           (vg_elementwise(a, l) || vg_reduces(a, l) || vg_concatenates(a, l) || vg_running_sum(a, l));
}

bool vg_arithmetic_writes(struct vg_place place[VG_PLACES], const struct vg_launch *l)
{
    return l->args != NULL && l->kernel->code.found &&
           (vg_elementwise_writes(place, l) || vg_reduction_writes(place, l) || vg_concatenation_writes(place, l) ||
            vg_output_place(place, l) || vg_running_sum_writes(place, l));
}

void vg_arithmetic_end(struct vg_arithmetic *a)
{
    memcpy(a->out, a->value, a->out_bytes);
    vg_mem_told(a->out, a->out_bytes);
    for (unsigned i = 0; i < VG_OPERANDS_MOST; i++)
        if (a->in[i].at)
            vg_taint_copy(a->out, a->in[i].at, a->in[i].bytes);
    free(a->value);
    a->value = NULL;
}
