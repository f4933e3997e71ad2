/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elementwise_kernel_name.c - reads the mangled names of element-wise kernels (Itanium C++ ABI, 5.1). See elementwise_kernel_name.h.
 *
 * A part that is looked for begins with its length, so that no other name ends with it.
 */
#include "shim/cuda/arithmetic/elementwise_kernel_name.h"

#include <string.h>

/* Behind a part of the name; NULL: it has none. */
static const char *behind(const char *name, const char *part)
{
    const char *at = strstr(name, part);
    return at ? at + strlen(part) : NULL;
}

static bool has(const char *name, const char *part)
{
    return strstr(name, part) != NULL;
}

static void set_types(struct vg_function *f, unsigned operands, enum vg_scalar_type in, enum vg_scalar_type out)
{
    f->operands = (uint8_t)operands;
    f->out = out;
    for (unsigned i = 0; i < operands; i++)
        f->in[i] = in;
}

/* What a function of two does, by its own name. */
static enum vg_function_what binary_of(const char *name)
{
    static const struct {
        const char *part;
        enum vg_function_what what;
    } parts[] = {
        {"16BitwiseOrFunctorI", VG_OR},
        {"17BitwiseAndFunctorI", VG_AND},
        {"17BitwiseXorFunctorI", VG_XOR},
        {"10MulFunctorI", VG_PRODUCT},
        {"16CompareEqFunctorI", VG_COMPARE_EQUAL},
        {"23logical_and_kernel_cuda", VG_BOTH},
        {"22logical_or_kernel_cuda", VG_EITHER},
    };
    for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++)
        if (has(name, parts[i].part))
            return parts[i].what;
    return VG_NOTHING;
}

/* The next type of a list; *at moves behind it. One that is named more than once is S_, S0_ and so on from the second time on: of `before`, then. */
static enum vg_scalar_type next_type(const char **at, enum vg_scalar_type before)
{
    const char *p = *at;
    enum vg_scalar_type type = *p == 'S' ? before : vg_scalar_mangled(p);
    if (*p == 'S')
        *at = strchr(p, '_') ? strchr(p, '_') + 1 : p;
    else if (*p == 'N')
        *at = strchr(p, 'E') ? strchr(p, 'E') + 1 : p;
    else if (*p != '\0')
        *at = p + 1;
    return type;
}

/* A function of two, with both operands tensors or one of them a number: its types are two of operands and one of the result. */
static bool read_binary(struct vg_function *f, const char *name)
{
    const char *both = behind(name, "13BinaryFunctorI"), *first = behind(name, "13AUnaryFunctorI"),
               *second = behind(name, "13BUnaryFunctorI"),
               *types = both    ? both
                        : first ? first
                                : second;
    if (!types)
        return false;
    const char *at = types;
    const enum vg_scalar_type one = next_type(&at, VG_SCALAR_NONE), two = next_type(&at, one);
    set_types(f, both ? 2 : 1, one, next_type(&at, one));
    f->constant = both ? VG_NO_CONSTANT : first ? VG_FIRST_IS : VG_SECOND_IS;
    f->what = one == two ? binary_of(types) : VG_NOTHING;
    return true;
}

static bool read_sum(struct vg_function *f, const char *name)
{
    const char *both = behind(name, "15CUDAFunctor_addI"), *self = behind(name, "21CUDAFunctorOnSelf_addI"),
               *other = behind(name, "22CUDAFunctorOnOther_addI"),
               *type = both   ? both
                       : self ? self
                              : other;
    if (!type)
        return false;
    set_types(f, both ? 2 : 1, vg_scalar_mangled(type), vg_scalar_mangled(type));
    f->constant = both ? VG_NO_CONSTANT : self ? VG_SECOND_IS : VG_FIRST_IS;
    f->what = VG_WEIGHTED_SUM;
    return true;
}

static bool read_comparison(struct vg_function *f, const char *name)
{
    const char *both = behind(name, "14CompareFunctorI"), *number = behind(name, "21compare_scalar_kernelI"),
               *type = both ? both : number;
    if (!type)
        return false;
    set_types(f, both ? 2 : 1, vg_scalar_mangled(type), VG_SCALAR_BOOL);
    f->constant = both ? VG_NO_CONSTANT : VG_SECOND_IS;
    f->what = VG_COMPARE;
    return true;
}

/* Functions of one, and where(): the operands' types are those of the lambda, EUl...E. */
static bool read_lambda(struct vg_function *f, const char *name)
{
    static const char letters[] = "htjm"; /* where() is of so many bytes, as unsigned numbers: 1, 2, 4, 8 */
    static const enum vg_scalar_type wide[] = {VG_SCALAR_U8, VG_SCALAR_I16, VG_SCALAR_I32, VG_SCALAR_I64};
    const char *copy = behind(name, "27converting_copy_kernel_cudaI"), *arguments = NULL;
    const char *end = strstr(name, "EEvRNS_18TensorIteratorBaseERKT_"); /* what is behind it is of the kernel's own */
    for (const char *at = name; (at = behind(at, "EUl")) != NULL && (!end || at < end);)
        arguments = at;
    if (copy) {
        const enum vg_scalar_type from = next_type(&copy, VG_SCALAR_NONE);
        set_types(f, 1, from, next_type(&copy, from));
        f->what = VG_COPY;
    } else if (arguments && has(name, "17where_kernel_impl") && arguments[0] == 'b' && arguments[1] != '\0') {
        const char *at = strchr(letters, arguments[1]);
        enum vg_scalar_type type = arguments[1] == 'b' ? VG_SCALAR_BOOL : at ? wide[at - letters] : VG_SCALAR_NONE;
        set_types(f, 3, type, type);
        f->in[0] = VG_SCALAR_BOOL;
        f->what = VG_WHERE;
    } else if (arguments) {
        enum vg_scalar_type type = vg_scalar_mangled(arguments);
        const bool no = has(name, "23logical_not_kernel_cuda"),
                   bits = has(name, "23bitwise_not_kernel_cuda") && type == VG_SCALAR_BOOL;
        set_types(f, 1, type, no ? VG_SCALAR_BOOL : type);
        f->what = no || bits ? VG_NOT : has(name, "23direct_copy_kernel_cuda") ? VG_COPY : VG_NOTHING;
    }
    return f->what != VG_NOTHING;
}

/* arange(): the type is that of the case of a switch over byte, char, int, long, short. */
static bool read_range(struct vg_function *f, const char *name)
{
    if (!has(name, "elementwise_kernel_with_index") || !has(name, "arange_cuda_out"))
        return false;
    f->form = VG_CONTIGUOUS;
    f->what = VG_RANGE;
    f->out = has(name, "EENKUlvE_clEvENKUlvE1_")   ? VG_SCALAR_I32
             : has(name, "EENKUlvE_clEvENKUlvE2_") ? VG_SCALAR_I64
                                                   : VG_SCALAR_NONE;
    return true;
}

static enum vg_function_form form_of(const char *name)
{
    static const struct {
        const char *begins, *has;
        enum vg_function_form form;
    } forms[] = {{"29vectorized_elementwise_kernelILi", "", VG_CONTIGUOUS},
                 {"27unrolled_elementwise_kernelI", "15LoadWithoutCast", VG_CONTIGUOUS},
                 {"27unrolled_elementwise_kernelI", "13StoreWithCast", VG_CONTIGUOUS_CAST},
                 {"18elementwise_kernelILi", "22gpu_kernel_impl_nocastI", VG_STRIDED},
                 {"18elementwise_kernelILi", "15gpu_kernel_implI", VG_STRIDED_CAST}};
    static const char native[] = "_ZN2at6native";
    if (strncmp(name, native, sizeof native - 1) != 0)
        return VG_NO_FORM;
    const char *kernel = name + sizeof native - 1;
    for (unsigned i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strncmp(kernel, forms[i].begins, strlen(forms[i].begins)) == 0 && has(kernel, forms[i].has))
            return has(kernel, "27unrolled") && !has(kernel, "23TrivialOffsetCalculator") ? VG_NO_FORM : forms[i].form;
    return VG_NO_FORM;
}

/* A vector of the output's elements has 16 bytes, or fewer; until std::array came it had four elements, whatever they were. */
static uint8_t element_most(const char *name)
{
    const char *vector = behind(name, "29vectorized_elementwise_kernelILi");
    const int elements = vector && has(name, "St5arrayIPcLm") ? *vector - '0' : 0;
    return elements == 2 || elements == 4 || elements == 8 ? (uint8_t)(VG_ELEMENT_MOST / elements) : VG_ELEMENT_MOST;
}

static struct vg_function read_name(const char *name)
{
    struct vg_function f = {.name = name, .form = form_of(name), .element = element_most(name), .out = VG_SCALAR_NONE};
    for (unsigned i = 0; i < sizeof f.in / sizeof *f.in; i++)
        f.in[i] = VG_SCALAR_NONE;
    const char *fill = behind(name, "11FillFunctorI");
    if (f.form == VG_NO_FORM && !read_range(&f, name))
        return f;
    if (f.what == VG_RANGE) {
        f.operands = 0;
    } else if (fill) {
        set_types(&f, 0, VG_SCALAR_NONE, vg_scalar_mangled(fill));
        f.what = VG_FILL;
    } else if (!read_binary(&f, name) && !read_sum(&f, name) && !read_comparison(&f, name)) {
        (void)read_lambda(&f, name);
    }
    bool whole = f.out != VG_SCALAR_NONE;
    for (unsigned i = 0; i < f.operands; i++)
        whole = whole && f.in[i] != VG_SCALAR_NONE;
    f.what = whole ? f.what : VG_NOTHING;
    if (f.what != VG_NOTHING && f.form != VG_CONTIGUOUS_CAST && f.form != VG_STRIDED_CAST)
        f.element = (uint8_t)vg_scalar_bytes(f.out);
    return f;
}

const struct vg_function *vg_function_of(const char *name)
{
    static struct vg_function seen[1024]; /* kernels are few and launches many */
    struct vg_function *f = &seen[((uintptr_t)name >> 4) % (sizeof seen / sizeof *seen)];
    if (f->name != name)
        *f = read_name(name);
    return f;
}
