/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduction.c - one number of whole numbers that the host knows: a sum, the least or the largest, whether any or all are not zero.
 *
 * Programs take the largest of what their ranks gathered and size a buffer by it: torch.distributed does so for every object that is
 * gathered or broadcast. What was gathered is known here (shim/nccl/payload.c), and one number made of it must be too, or what
 * follows is cut to nothing. Generation ends when no request is left (Hugging Face's generate(): the largest of a 1 for each that has not ended).
 *
 * PyTorch reduces with one kernel, at::native::reduce_kernel. Its name says types and operation; its only argument says
 * the rest (aten/src/ATen/native/cuda/Reduce.cuh, struct ReduceOp, and OffsetCalculator.cuh). After an identity value come, in words
 * of four bytes, the configuration, how inputs lie and how outputs lie, each with room for 25 dimensions, and then the pointers:
 *
 *     0 element size   1 inputs   2 outputs   3 steps, blocks and factors   11 width   12 height   13 threads
 *     16 dimensions of the inputs   17 the size of the first (as a divisor of three words)   92 its stride in bytes
 *     243, or the next that is aligned to eight bytes: where it reads, where it writes, a second place to write (none)
 *
 * What a tensor does not have is not filled in, so nothing is searched for: a launch is computed if its name is
 * understood, its argument has all of this in its place and agrees with the launch, it has one output, the inputs lie
 * one behind the other, and all are known. Anything else is a kernel like others.
 */
#include "shim/cuda/arithmetic/kernel_kinds.h"
#include "shim/cuda/arithmetic/offset_calculator.h"
#include "shim/cuda/arithmetic/scalar_type.h"

#include <stdlib.h>
#include <string.h>

enum {
    WORD_ELEMENT,
    WORD_INPUTS,
    WORD_OUTPUTS,
    WORD_WIDTH = 11,
    WORD_HEIGHT,
    WORD_THREADS,
    WORD_DIMENSIONS = 16,
    WORD_SIZE,
    WORD_STRIDE = 92,
    WORD_POINTERS = 243,
    WORDS_SEARCHED = 16 /* an identity is small */
};
enum operation { SUM, LARGEST, LEAST, ANY, ALL, NO_OPERATION };

/* What a kernel of this name does. Any and all are of numbers of any type and give truth values; the rest gives what it is given. */
struct reduction {
    enum operation op;
    enum vg_scalar_type in, out; /* out: of the element that is passed on, too */
};

static bool is_kernel(const char *name)
{
    static const char kernel[] = "_ZN2at6native13reduce_kernelI";
    return strncmp(name, kernel, sizeof kernel - 1) == 0;
}

static struct reduction reduction_of(const char *name)
{
    static const char of[] = "8ReduceOpI";
    static const struct {
        const char *word;
        enum operation op;
    } words[] = {{"11sum_functorI", SUM},
                 {"13MaxNanFunctorI", LARGEST},
                 {"13MinNanFunctorI", LEAST},
                 {"14or_kernel_cuda", ANY},
                 {"15and_kernel_cuda", ALL}};
    struct reduction r = {.op = NO_OPERATION};
    if (!is_kernel(name))
        return r;
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(name, words[i].word) != NULL)
            r.op = words[i].op;
    const char *in = strstr(name, of), *out = in ? strstr(in, "EEj") : NULL; /* the index's type, then the output's */
    if (r.op == NO_OPERATION || !in || !out || strncmp(out + 4, "Li", 2) != 0)
        return (struct reduction){.op = NO_OPERATION};
    r.in = vg_scalar_mangled(in + sizeof of - 1);
    r.out = vg_scalar_mangled(out + 3);
    const bool truth = r.op == ANY || r.op == ALL;
    if (r.in == VG_SCALAR_NONE || vg_scalar_is_real(r.in) || r.out != (truth ? VG_SCALAR_BOOL : r.in))
        r.op = NO_OPERATION;
    return r;
}

/* Whether the configuration that begins at this word would be of this launch. */
static bool is_of_launch(const struct vg_launch *l, const char *arg, uint32_t at)
{
    return vg_word_at(arg, at + WORD_WIDTH) == l->block.x && vg_word_at(arg, at + WORD_HEIGHT) == l->block.y &&
           vg_word_at(arg, at + WORD_THREADS) == l->block.x * l->block.y;
}

/* Does the configuration begin at this word? */
static bool is_configuration(const struct vg_launch *l, const char *arg, uint32_t at, const struct reduction *r)
{
    const uint32_t inputs = vg_word_at(arg, at + WORD_INPUTS);
    return vg_word_at(arg, at + WORD_ELEMENT) == vg_scalar_bytes(r->out) && inputs > 0 && inputs <= VG_NUMBERS_MOST &&
           vg_word_at(arg, at + WORD_OUTPUTS) == 1 && is_of_launch(l, arg, at) &&
           vg_word_at(arg, at + WORD_DIMENSIONS) == 1 && vg_word_at(arg, at + WORD_SIZE) == inputs &&
           vg_word_at(arg, at + WORD_STRIDE) == vg_scalar_bytes(r->in);
}

/* Fills in where it reads and writes. */
static bool find_places(struct vg_arithmetic *a, const struct vg_launch *l, const struct reduction *r)
{
    const char *arg = l->args[0];
    const uint32_t bytes = l->kernel->code.param[0].bytes;
    void *place[3];
    for (uint32_t at = 0; at < WORDS_SEARCHED && (at + WORD_POINTERS + 7) * sizeof at <= bytes; at++) {
        if (!is_configuration(l, arg, at, r))
            continue;
        memcpy(place, arg + (((at + WORD_POINTERS + 1) & ~1u) * sizeof at), sizeof place);
        *a = (struct vg_arithmetic){
            .in = {{place[0], (uint64_t)vg_word_at(arg, at + WORD_INPUTS) * vg_scalar_bytes(r->in)}},
            .out = place[1],
            .out_bytes = vg_scalar_bytes(r->out)};
        return place[0] != NULL && place[2] == NULL;
    }
    return false;
}

bool vg_reduction_moves(uint64_t *read, uint64_t *written, const struct vg_launch *l)
{
    static const char of[] = "8ReduceOpI";
    const char *in = strstr(l->kernel->name, of), *arg = l->args[0];
    if (!is_kernel(l->kernel->name) || in == NULL || l->kernel->code.n_params != 1)
        return false;
    const uint32_t bytes = l->kernel->code.param[0].bytes;
    for (uint32_t at = 0; at < WORDS_SEARCHED && (at + WORD_POINTERS + 7) * sizeof at <= bytes; at++) {
        const uint64_t outputs = vg_word_at(arg, at + WORD_OUTPUTS), inputs = vg_word_at(arg, at + WORD_INPUTS);
        if (!is_of_launch(l, arg, at) || inputs == 0 || outputs == 0)
            continue;
        *read = inputs * outputs * vg_mangled_bytes(in + sizeof of - 1);
        *written = outputs * vg_word_at(arg, at + WORD_ELEMENT);
        return true;
    }
    return false;
}

/* Beside its outputs a reduction of several blocks writes into scratch memory of its own, which no program reads. */
bool vg_reduction_writes(struct vg_output place[VG_PLACES], const struct vg_launch *l)
{
    const char *out =
        strstr(l->kernel->name, "EEj"); /* the index's type, then the output's; a second output is of indices */
    const unsigned width[VG_PLACES] = {out ? vg_mangled_bytes(out + 3) : VG_ELEMENT_MOST, sizeof(int64_t)};
    if (!is_kernel(l->kernel->name) || l->kernel->code.n_params != 1)
        return false;
    const char *arg = l->args[0];
    const uint32_t bytes = l->kernel->code.param[0].bytes;
    void *at[3];
    for (uint32_t word = 0; word < WORDS_SEARCHED && (word + WORD_POINTERS + 7) * sizeof word <= bytes; word++) {
        const uint64_t outputs = vg_word_at(arg, word + WORD_OUTPUTS);
        if (!is_of_launch(l, arg, word) || vg_word_at(arg, word + WORD_INPUTS) == 0 || outputs == 0)
            continue;
        memcpy(at, arg + (((word + WORD_POINTERS + 1) & ~1u) * sizeof word), sizeof at);
        for (unsigned i = 0; i < VG_PLACES; i++)
            place[i] = (struct vg_output){at[i + 1], outputs * width[i]};
        return at[1] != NULL;
    }
    return false;
}

static int64_t reduce(const struct vg_operand *in, const struct reduction *r)
{
    const unsigned width = vg_scalar_bytes(r->in);
    int64_t acc = 0;
    for (uint64_t at = 0; at < in->bytes; at += width) {
        int64_t x = vg_whole_load((const char *)in->at + at, r->in);
        x = r->out == VG_SCALAR_BOOL ? x != 0 : x;
        if (at == 0)
            acc = x;
        else if (r->op == SUM)
            acc = (int64_t)((uint64_t)acc + (uint64_t)x); /* wraps, as there */
        else if (r->op == LARGEST || r->op == ANY ? x > acc : x < acc)
            acc = x;
    }
    return acc;
}

/*
 * How many of a mask are not zero, by which nonzero() and masks as indices size their result: one tile of cub's sum over thrust's transform_iterator,
 * whose arguments are the iterator (a pointer and what it does), where it writes, and how many.
 */
static bool counts(struct vg_arithmetic *a, const struct vg_launch *l)
{
    static const char counted[] = "NonZeroOpI";
    const struct vg_code *code = &l->kernel->code;
    const char *type = strstr(l->kernel->name, counted);
    const enum vg_scalar_type in = type ? vg_scalar_mangled(type + sizeof counted - 1) : VG_SCALAR_NONE;
    int64_t n = 0;
    if (in == VG_SCALAR_NONE || vg_scalar_is_real(in) ||
        strstr(l->kernel->name, "28DeviceReduceSingleTileKernelI") == NULL || code->n_params < 3 ||
        code->param[0].bytes < sizeof(void *) || code->param[1].bytes != sizeof(void *) || code->param[2].bytes < 4 ||
        code->param[2].bytes > sizeof n)
        return false;
    *a = (struct vg_arithmetic){.out = NULL};
    memcpy(&a->in[0].at, l->args[0], sizeof(void *));
    memcpy(&a->out, l->args[1], sizeof(void *));
    memcpy(&n, l->args[2], code->param[2].bytes);
    a->in[0].bytes = n > 0 ? (uint64_t)n * vg_scalar_bytes(in) : 0;
    a->out_bytes = vg_scalar_bytes(VG_SCALAR_I32);
    if (n <= 0 || n > VG_NUMBERS_MOST || !a->in[0].at || !a->out || !vg_arithmetic_in_place(a, l) ||
        vg_arithmetic_known(a) == 0 || (a->value = malloc(a->out_bytes)) == NULL)
        return false;
    int64_t count = 0;
    for (uint64_t at = 0; at < a->in[0].bytes; at += vg_scalar_bytes(in))
        count += vg_whole_load((const char *)a->in[0].at + at, in) != 0;
    vg_whole_store(a->value, count, VG_SCALAR_I32);
    return true;
}

bool vg_reduces(struct vg_arithmetic *a, const struct vg_launch *l)
{
    if (l->kernel->code.n_params != 1)
        return counts(a, l);
    const struct reduction r = reduction_of(l->kernel->name);
    if (r.op == NO_OPERATION || !find_places(a, l, &r) || !vg_arithmetic_in_place(a, l) ||
        vg_arithmetic_known(a) == 0 || (a->value = malloc(a->out_bytes)) == NULL)
        return false;
    vg_whole_store(a->value, reduce(&a->in[0], &r), r.out);
    return true;
}
