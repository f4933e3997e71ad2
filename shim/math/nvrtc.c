/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvrtc.c - run-time compilation that compiles nothing: every program succeeds, and its kernels keep their names.
 *
 * The result is a text that begins as PTX does and has one empty `.entry` for each kernel: functions that the source
 * declares with __global__, and each name expression under its lowered name. A lowered name is the expression with what no
 * symbol may contain replaced by '_': the real one is mangled, and only names that are looked up again matter. The CUBIN is
 * the same text. A module made of it (cuModuleLoadData) finds its kernels by these names; their parameters are not
 * known, so that launches of them are recorded without the memory they touch.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/abi/nvrtc.h"
#include "shim/math/operator.h"

/* Of the stubs: the generation of CUDA that this shared object stands in for. */
extern const int vg_cuda_major;

struct expression {
    struct expression *next;
    char *text, *lowered;
};

struct program {
    char *source, *ptx;
    size_t ptx_bytes; /* with its end */
    struct expression *expressions;
};

MATH_API(int, nvrtcVersion, int *major, int *minor)
{
    if (major == NULL || minor == NULL)
        return ABI_NVRTC_INVALID_INPUT;
    *major = vg_cuda_major;
    *minor = vg_cuda_major == 12 ? 8 : 0;
    return ABI_NVRTC_SUCCESS;
}

MATH_API(const char *, nvrtcGetErrorString, int result)
{
    switch (result) {
    case ABI_NVRTC_SUCCESS:
        return "NVRTC_SUCCESS";
    case ABI_NVRTC_OUT_OF_MEMORY:
        return "NVRTC_ERROR_OUT_OF_MEMORY";
    case ABI_NVRTC_INVALID_INPUT:
        return "NVRTC_ERROR_INVALID_INPUT";
    case ABI_NVRTC_INVALID_PROGRAM:
        return "NVRTC_ERROR_INVALID_PROGRAM";
    case ABI_NVRTC_COMPILATION:
        return "NVRTC_ERROR_COMPILATION";
    case ABI_NVRTC_NO_LOWERED_NAMES_BEFORE_COMPILATION:
        return "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION";
    case ABI_NVRTC_NAME_EXPRESSION_NOT_VALID:
        return "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID";
    default:
        return "unknown result of NVRTC";
    }
}

MATH_API(int, nvrtcGetNumSupportedArchs, int *n)
{
    if (n == NULL)
        return ABI_NVRTC_INVALID_INPUT;
    *n = 1;
    return ABI_NVRTC_SUCCESS;
}

MATH_API(int, nvrtcGetSupportedArchs, int *architectures)
{
    if (architectures == NULL)
        return ABI_NVRTC_INVALID_INPUT;
    *architectures = (int)vg_card()->capability;
    return ABI_NVRTC_SUCCESS;
}

MATH_API(int, nvrtcCreateProgram, struct program **out, const char *source, const char *name, int n_headers,
         const char *const *headers, const char *const *header_names)
{
    (void)name, (void)n_headers, (void)headers, (void)header_names;
    if (out == NULL || source == NULL)
        return ABI_NVRTC_INVALID_INPUT;
    struct program *p = calloc(1, sizeof *p);
    if (p == NULL || (p->source = strdup(source)) == NULL) {
        free(p);
        return ABI_NVRTC_OUT_OF_MEMORY;
    }
    *out = p;
    return ABI_NVRTC_SUCCESS;
}

MATH_API(int, nvrtcDestroyProgram, struct program **program)
{
    if (program == NULL || *program == NULL)
        return ABI_NVRTC_INVALID_PROGRAM;
    struct program *p = *program;
    while (p->expressions != NULL) {
        struct expression *e = p->expressions;
        p->expressions = e->next;
        free(e->text);
        free(e->lowered);
        free(e);
    }
    free(p->source);
    free(p->ptx);
    free(p);
    *program = NULL;
    return ABI_NVRTC_SUCCESS;
}

static bool is_of_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

MATH_API(int, nvrtcAddNameExpression, struct program *p, const char *text)
{
    if (p == NULL || text == NULL)
        return ABI_NVRTC_INVALID_INPUT;
    struct expression *e = calloc(1, sizeof *e);
    if (e == NULL || (e->text = strdup(text)) == NULL || (e->lowered = strdup(text)) == NULL) {
        if (e != NULL)
            free(e->text);
        free(e);
        return ABI_NVRTC_OUT_OF_MEMORY;
    }
    for (char *c = e->lowered; *c != '\0'; c++)
        if (!is_of_name(*c))
            *c = '_';
    e->next = p->expressions;
    p->expressions = e;
    return ABI_NVRTC_SUCCESS;
}

/* The name of the next function that the source declares with __global__ at or after *at: the last word before its
 * parameters, attributes with arguments of their own aside. */
static bool next_kernel(const char **at, const char **name, int *bytes)
{
    static const char key[] = "__global__";
    const char *c = strstr(*at, key);
    if (c == NULL)
        return false;
    for (c += sizeof key - 1; *c != '\0' && *c != ';' && *c != '{'; c++) {
        if (*c != '(')
            continue;
        const char *end = c;
        while (end > *at && isspace((unsigned char)end[-1]))
            end--;
        const char *begin = end;
        while (begin > *at && is_of_name(begin[-1]))
            begin--;
        const bool attribute = (end - begin == 17 && memcmp(begin, "__launch_bounds__", 17) == 0) ||
                               (end - begin == 13 && memcmp(begin, "__attribute__", 13) == 0);
        if (!attribute) {
            *name = begin;
            *bytes = (int)(end - begin);
            *at = c;
            return *bytes > 0;
        }
        int depth = 0;
        for (; *c != '\0'; c++) {
            depth += (*c == '(') - (*c == ')');
            if (depth == 0)
                break;
        }
        if (*c == '\0')
            return false;
    }
    *at = c;
    return false;
}

MATH_API(int, nvrtcCompileProgram, struct program *p, int n_options, const char *const *options)
{
    (void)n_options, (void)options;
    if (p == NULL)
        return ABI_NVRTC_INVALID_PROGRAM;
    free(p->ptx);
    p->ptx = NULL;
    FILE *f = open_memstream(&p->ptx, &p->ptx_bytes);
    if (f == NULL)
        return ABI_NVRTC_OUT_OF_MEMORY;
    fprintf(f, ".version %d.0\n.target sm_%u\n.address_size 64\n", vg_cuda_major == 12 ? 8 : 9, vg_card()->capability);
    const char *at = p->source, *name;
    int bytes;
    while (next_kernel(&at, &name, &bytes))
        fprintf(f, ".visible .entry %.*s()\n{\nret;\n}\n", bytes, name);
    for (const struct expression *e = p->expressions; e != NULL; e = e->next)
        fprintf(f, ".visible .entry %s()\n{\nret;\n}\n", e->lowered);
    if (fclose(f) != 0)
        return ABI_NVRTC_OUT_OF_MEMORY;
    p->ptx_bytes++;
    return ABI_NVRTC_SUCCESS;
}

MATH_API(int, nvrtcGetLoweredName, struct program *p, const char *text, const char **lowered)
{
    if (p == NULL || text == NULL || lowered == NULL)
        return ABI_NVRTC_INVALID_INPUT;
    if (p->ptx == NULL)
        return ABI_NVRTC_NO_LOWERED_NAMES_BEFORE_COMPILATION;
    for (const struct expression *e = p->expressions; e != NULL; e = e->next)
        if (strcmp(e->text, text) == 0) {
            *lowered = e->lowered;
            return ABI_NVRTC_SUCCESS;
        }
    return ABI_NVRTC_NAME_EXPRESSION_NOT_VALID;
}

static int size_of(const struct program *p, size_t *bytes)
{
    if (p == NULL || p->ptx == NULL)
        return ABI_NVRTC_INVALID_PROGRAM;
    if (bytes == NULL)
        return ABI_NVRTC_INVALID_INPUT;
    *bytes = p->ptx_bytes;
    return ABI_NVRTC_SUCCESS;
}

static int copy_of(const struct program *p, char *out)
{
    if (p == NULL || p->ptx == NULL)
        return ABI_NVRTC_INVALID_PROGRAM;
    if (out == NULL)
        return ABI_NVRTC_INVALID_INPUT;
    memcpy(out, p->ptx, p->ptx_bytes);
    return ABI_NVRTC_SUCCESS;
}

MATH_API(int, nvrtcGetPTXSize, const struct program *p, size_t *bytes)
{
    return size_of(p, bytes);
}

MATH_API(int, nvrtcGetPTX, const struct program *p, char *out)
{
    return copy_of(p, out);
}

MATH_API(int, nvrtcGetCUBINSize, const struct program *p, size_t *bytes)
{
    return size_of(p, bytes);
}

MATH_API(int, nvrtcGetCUBIN, const struct program *p, char *out)
{
    return copy_of(p, out);
}

/* The log is empty: one byte, its end. */
MATH_API(int, nvrtcGetProgramLogSize, const struct program *p, size_t *bytes)
{
    if (p == NULL || bytes == NULL)
        return ABI_NVRTC_INVALID_INPUT;
    *bytes = 1;
    return ABI_NVRTC_SUCCESS;
}

MATH_API(int, nvrtcGetProgramLog, const struct program *p, char *out)
{
    if (p == NULL || out == NULL)
        return ABI_NVRTC_INVALID_INPUT;
    out[0] = '\0';
    return ABI_NVRTC_SUCCESS;
}
