/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch_expression.h - whole numbers made of the arguments of a launch, as rules about kernels write them (value_rules.h, operator_rules.h).
 *
 *     numbers   i   gx gy gz (blocks of the grid)   bx (threads of a block, along x)   e (bytes of an element, by the kernel's name)
 *     aK             argument K, a number
 *     aK@32.i64      the number at byte 32 of argument K, a structure (.u8, .i32, .i64)
 *     sK             bytes of argument K
 *     mK             bytes from where argument K points to, to the end of that allocation
 *     tK             the K-th whole number, from 0, among the template arguments in the kernel's mangled name, truth values not counted
 *     aK.i32[index]  aK@32.i64[index]      an element of what the pointer there points to
 *     * / %   + -   < <= > >=   == !=   &&   ||   c ? x : y   ( )
 *
 * on 64 bits, as in C. A division by zero, an argument that there is not, or memory that nobody can see, has no value. What is read is what
 * the host, a copy or a rule wrote there last.
 */
#ifndef MAQ_SHIM_LAUNCH_EXPRESSION_H
#define MAQ_SHIM_LAUNCH_EXPRESSION_H

#include "shim/cuda/cuda.h"

/* The value of a text that ends at `end` (a text, "" for the whole) for row i of a launch; *ok false: it has none. */
int64_t vg_expression(const char *text, const char *end, const struct vg_launch *launch, int64_t i, bool *ok);
/* Whether a text is an expression. */
bool vg_is_expression(const char *text, const char *end);

/* Element `index` of what argument k points to, where the host may read and write it; NULL. */
void *vg_element(const struct vg_launch *launch, uint32_t k, int64_t index, uint32_t size);

/* The element type that a kernel's name names first; 32-bit floating point where it names none. */
enum maq_rec_type vg_element_type(const char *kernel);
uint32_t vg_element_bytes(const char *kernel);

#endif
