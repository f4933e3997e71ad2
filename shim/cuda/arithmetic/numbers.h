/* SPDX-License-Identifier: Apache-2.0 */
/*
 * numbers.h - what the kinds of kernels that are computed share: types of numbers, operands in memory of the device, and where a kernel writes.
 */
#ifndef MAQ_SHIM_NUMBERS_H
#define MAQ_SHIM_NUMBERS_H

#include "shim/cuda/cuda.h"

enum vg_number {
    VG_NUMBER_BOOL,
    VG_NUMBER_U8,
    VG_NUMBER_I8,
    VG_NUMBER_I16,
    VG_NUMBER_I32,
    VG_NUMBER_I64,
    VG_NUMBER_F16, /* from here on not whole */
    VG_NUMBER_BF16,
    VG_NUMBER_F32,
    VG_NUMBER_F64,
    VG_NUMBER_NONE
};
/* Numbers of a tensor: one for each rank of the largest job that maquette reads. Tensors of a concatenation. */
enum { VG_NUMBERS_MOST = 1 << 16, VG_OPERANDS_MOST = 8, VG_ELEMENT_MOST = 16 };

/* By a mangled name that begins with it (Itanium C++ ABI, 5.1.5.2) or the number of c10::ScalarType; VG_NUMBER_NONE: of none of these types. */
enum vg_number vg_number_mangled(const char *name);
enum vg_number vg_number_scalar_type(unsigned number);
bool vg_number_is_real(enum vg_number type);
unsigned vg_number_bytes(enum vg_number type);
/* Bytes of an element of a mangled type; VG_ELEMENT_MOST, a complex number's, where it is none that is known. */
unsigned vg_mangled_bytes(const char *type);
/* Whole numbers. Cut to their width; a truth value is whether it is not zero. */
int64_t vg_whole_load(const void *from, enum vg_number type);
void vg_whole_store(void *to, int64_t x, enum vg_number type);
/* The others, rounded. */
double vg_number_load_real(const void *from, enum vg_number type);
void vg_number_store_real(void *to, double x, enum vg_number type);

/* What a launch reads and what it makes of it. */
struct vg_arithmetic {
    struct vg_operand {
        const void *at; /* NULL: there is none */
        uint64_t bytes;
    } in[VG_OPERANDS_MOST];
    void *out;
    uint64_t out_bytes;
    unsigned char *value; /* [out_bytes], from begin to end */
};
/* Whether output and operands are in place, once what peers are still to send has come; and how many operands the host knows. */
bool vg_arithmetic_in_place(const struct vg_arithmetic *a, const struct vg_launch *launch);
unsigned vg_arithmetic_known(const struct vg_arithmetic *a);

/* Where a kernel writes: at most so many bytes from there. */
struct vg_output {
    const void *at; /* NULL: there are no more */
    uint64_t bytes;
};

#endif
