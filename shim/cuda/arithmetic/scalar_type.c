/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scalar_type.c - elements of a tensor, read and written by their type.
 */
#include "shim/cuda/arithmetic/scalar_type.h"
#include "shim/nccl/nccl.h"

#include <string.h>

static const struct {
    const char *name;                        /* mangled */
    uint8_t scalar_type, bytes, record_type; /* c10::ScalarType; enum maq_rec_type of those that are not whole */
} types[VG_SCALAR_NONE] = {
    [VG_SCALAR_BOOL] = {"b", 11, 1, 0},
    [VG_SCALAR_U8] = {"h", 0, 1, 0},
    [VG_SCALAR_I8] = {"a", 1, 1, 0},
    [VG_SCALAR_I16] = {"s", 2, 2, 0},
    [VG_SCALAR_I32] = {"i", 3, 4, 0},
    [VG_SCALAR_I64] = {"l", 4, 8, 0},
    [VG_SCALAR_F16] = {"N3c104HalfE", 5, 2, MAQ_REC_F16},
    [VG_SCALAR_BF16] = {"N3c108BFloat16E", 15, 2, MAQ_REC_BF16},
    [VG_SCALAR_F32] = {"f", 6, 4, MAQ_REC_F32},
    [VG_SCALAR_F64] = {"d", 7, 8, MAQ_REC_F64},
};

enum vg_scalar_type vg_scalar_mangled(const char *name)
{
    enum vg_scalar_type type = 0;
    while (type < VG_SCALAR_NONE && strncmp(name, types[type].name, strlen(types[type].name)) != 0)
        type++;
    return type;
}

enum vg_scalar_type vg_scalar_numbered(unsigned number)
{
    enum vg_scalar_type type = 0;
    while (type < VG_SCALAR_NONE && types[type].scalar_type != number)
        type++;
    return type;
}

bool vg_scalar_is_real(enum vg_scalar_type type)
{
    return type >= VG_SCALAR_F16 && type < VG_SCALAR_NONE;
}

unsigned vg_scalar_bytes(enum vg_scalar_type type)
{
    return type < VG_SCALAR_NONE ? types[type].bytes : 0;
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
    const enum vg_scalar_type number = vg_scalar_mangled(type);
    if (number != VG_SCALAR_NONE)
        return vg_scalar_bytes(number);
    for (unsigned i = 0; i < sizeof others / sizeof *others; i++)
        if (strncmp(type, others[i].name, strlen(others[i].name)) == 0)
            return others[i].bytes;
    return VG_ELEMENT_MOST;
}

int64_t vg_whole_load(const void *from, enum vg_scalar_type type)
{
    const unsigned bytes = vg_scalar_bytes(type);
    int64_t x = 0;
    memcpy(&x, from, bytes); /* little-endian */
    if (type == VG_SCALAR_BOOL)
        return x != 0;
    if (type == VG_SCALAR_U8 || bytes == 0 || bytes >= sizeof x)
        return x;
    const unsigned shift = 64 - 8 * bytes; /* the sign */
    return (int64_t)((uint64_t)x << shift) >> shift;
}

void vg_whole_store(void *to, int64_t x, enum vg_scalar_type type)
{
    if (type == VG_SCALAR_BOOL)
        x = x != 0;
    memcpy(to, &x, vg_scalar_bytes(type));
}

double vg_scalar_load_real(const void *from, enum vg_scalar_type type)
{
    return vg_real_load(from, types[type].record_type);
}

void vg_scalar_store_real(void *to, double x, enum vg_scalar_type type)
{
    vg_real_store(to, x, types[type].record_type);
}
