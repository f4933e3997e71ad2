/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scalar_type.h - types of a tensor's elements: as names of kernels have them and as c10::ScalarType, and how they are read and written.
 */
#ifndef MAQ_SHIM_SCALAR_TYPE_H
#define MAQ_SHIM_SCALAR_TYPE_H

#include <stdbool.h>
#include <stdint.h>

enum vg_scalar_type {
    VG_SCALAR_BOOL,
    VG_SCALAR_U8,
    VG_SCALAR_I8,
    VG_SCALAR_I16,
    VG_SCALAR_I32,
    VG_SCALAR_I64,
    VG_SCALAR_F16, /* from here on not whole */
    VG_SCALAR_BF16,
    VG_SCALAR_F32,
    VG_SCALAR_F64,
    VG_SCALAR_NONE
};
enum { VG_ELEMENT_MOST = 16 }; /* bytes of an element: a complex number */

/* By a mangled name that begins with it (Itanium C++ ABI, 5.1.5.2) or the number of c10::ScalarType; VG_SCALAR_NONE: of none of these types. */
enum vg_scalar_type vg_scalar_mangled(const char *name);
enum vg_scalar_type vg_scalar_numbered(unsigned number);
bool vg_scalar_is_real(enum vg_scalar_type type);
unsigned vg_scalar_bytes(enum vg_scalar_type type);
/* Bytes of an element of a mangled type; VG_ELEMENT_MOST, a complex number's, where it is none that is known. */
unsigned vg_mangled_bytes(const char *type);
/* Whole numbers. Cut to their width; a truth value is whether it is not zero. */
int64_t vg_whole_load(const void *from, enum vg_scalar_type type);
void vg_whole_store(void *to, int64_t x, enum vg_scalar_type type);
/* The others, rounded. */
double vg_scalar_load_real(const void *from, enum vg_scalar_type type);
void vg_scalar_store_real(void *to, double x, enum vg_scalar_type type);

#endif
