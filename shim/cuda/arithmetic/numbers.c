/* SPDX-License-Identifier: Apache-2.0 */
/*
 * numbers.c - types of numbers, and whether those that a kernel reads are known. See numbers.h.
 */
#include "shim/cuda/arithmetic/numbers.h"
#include "shim/nccl/nccl.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;                        /* mangled */
    uint8_t scalar_type, bytes, record_type; /* c10::ScalarType; enum maq_rec_type of those that are not whole */
} types[VG_NUMBER_NONE] = {
    [VG_NUMBER_BOOL] = {"b", 11, 1, 0},
    [VG_NUMBER_U8] = {"h", 0, 1, 0},
    [VG_NUMBER_I8] = {"a", 1, 1, 0},
    [VG_NUMBER_I16] = {"s", 2, 2, 0},
    [VG_NUMBER_I32] = {"i", 3, 4, 0},
    [VG_NUMBER_I64] = {"l", 4, 8, 0},
    [VG_NUMBER_F16] = {"N3c104HalfE", 5, 2, MAQ_REC_F16},
    [VG_NUMBER_BF16] = {"N3c108BFloat16E", 15, 2, MAQ_REC_BF16},
    [VG_NUMBER_F32] = {"f", 6, 4, MAQ_REC_F32},
    [VG_NUMBER_F64] = {"d", 7, 8, MAQ_REC_F64},
};

enum vg_number vg_number_mangled(const char *name)
{
    enum vg_number type = 0;
    while (type < VG_NUMBER_NONE && strncmp(name, types[type].name, strlen(types[type].name)) != 0)
        type++;
    return type;
}

enum vg_number vg_number_scalar_type(unsigned number)
{
    enum vg_number type = 0;
    while (type < VG_NUMBER_NONE && types[type].scalar_type != number)
        type++;
    return type;
}

bool vg_number_is_real(enum vg_number type)
{
    return type >= VG_NUMBER_F16 && type < VG_NUMBER_NONE;
}

unsigned vg_number_bytes(enum vg_number type)
{
    return type < VG_NUMBER_NONE ? types[type].bytes : 0;
}

unsigned vg_mangled_bytes(const char *type)
{
    static const struct {
        const char *name;
        unsigned bytes;
    } others[] = {{"c", 1},
                  {"t", 2},
                  {"j", 4},
                  {"m", 8},
                  {"x", 8},
                  {"y", 8},
                  {"N3c1013Float8_e4m3fnE", 1},
                  {"N3c1011Float8_e5m2E", 1}};
    const enum vg_number number = vg_number_mangled(type);
    if (number != VG_NUMBER_NONE)
        return vg_number_bytes(number);
    for (unsigned i = 0; i < sizeof others / sizeof *others; i++)
        if (strncmp(type, others[i].name, strlen(others[i].name)) == 0)
            return others[i].bytes;
    return VG_ELEMENT_MOST;
}

int64_t vg_whole_load(const void *from, enum vg_number type)
{
    const unsigned bytes = vg_number_bytes(type);
    int64_t x = 0;
    memcpy(&x, from, bytes); /* little-endian */
    if (type == VG_NUMBER_BOOL)
        return x != 0;
    if (type == VG_NUMBER_U8 || bytes == 0 || bytes >= sizeof x)
        return x;
    const unsigned shift = 64 - 8 * bytes; /* the sign */
    return (int64_t)((uint64_t)x << shift) >> shift;
}

void vg_whole_store(void *to, int64_t x, enum vg_number type)
{
    if (type == VG_NUMBER_BOOL)
        x = x != 0;
    memcpy(to, &x, vg_number_bytes(type));
}

double vg_number_load_real(const void *from, enum vg_number type)
{
    return vg_real_load(from, types[type].record_type);
}

void vg_number_store_real(void *to, double x, enum vg_number type)
{
    vg_real_store(to, x, types[type].record_type);
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
