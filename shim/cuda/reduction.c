/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduction.c - one number of whole numbers that the host knows, a sum, the least or the largest: the one thing that the device computes.
 *
 * Programs take the largest of what their ranks gathered and size a buffer by it: torch.distributed does so for every object that is
 * gathered or broadcast. What was gathered is known here (nccl/payload.c), and one number made of it must be too, or what
 * follows is cut to nothing. It also adds sizes one to the other, to find where each of several objects begins.
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
 *
 * A number is added to one that is on the device, or two that are, by the kernels for element-wise functions. Their arguments are how
 * many elements there are, the function, and the pointers, where it writes first (CUDALoops.cuh); the function holds `other` and
 * `alpha`, or `alpha` alone, and gives self + alpha * other (torchgen/dest/ufunc.py, BinaryInternal.h). One element is computed.
 */
#include "shim/cuda/cuda.h"

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
enum { INPUTS_MOST = 1 << 16 }; /* one for each rank of the largest job that maquette reads */
enum operation { SUM, LARGEST, LEAST, NO_OPERATION };

/* Element bytes of the whole numbers that a kernel of this name reduces, input and output alike; 0: not one of these. */
static uint32_t element_of(const char *name, enum operation *op)
{
    static const struct {
        const char *word;
        enum operation op;
    } words[] = {{"11sum_functorI", SUM}, {"13MaxNanFunctorI", LARGEST}, {"13MinNanFunctorI", LEAST}};
    *op = NO_OPERATION;
    if (strncmp(name, "_ZN2at6native13reduce_kernelI", 29) != 0)
        return 0;
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(name, words[i].word) != NULL)
            *op = words[i].op;
    if (*op == NO_OPERATION)
        return 0;
    return strstr(name, "ReduceOpIl") != NULL && strstr(name, "EEjlLi") != NULL   ? 8
           : strstr(name, "ReduceOpIi") != NULL && strstr(name, "EEjiLi") != NULL ? 4
                                                                                  : 0;
}

static uint32_t word_at(const char *arg, uint32_t word)
{
    uint32_t value;
    memcpy(&value, arg + (size_t)word * sizeof value, sizeof value);
    return value;
}

/* Does the configuration begin at this word? */
static bool is_configuration(const struct vg_launch *l, const char *arg, uint32_t at, uint32_t element)
{
    const uint32_t inputs = word_at(arg, at + WORD_INPUTS);
    return word_at(arg, at + WORD_ELEMENT) == element && inputs > 0 && inputs <= INPUTS_MOST &&
           word_at(arg, at + WORD_OUTPUTS) == 1 && word_at(arg, at + WORD_WIDTH) == l->block.x &&
           word_at(arg, at + WORD_HEIGHT) == l->block.y && word_at(arg, at + WORD_THREADS) == l->block.x * l->block.y &&
           word_at(arg, at + WORD_DIMENSIONS) == 1 && word_at(arg, at + WORD_SIZE) == inputs &&
           word_at(arg, at + WORD_STRIDE) == element;
}

static bool on_device(const void *p)
{
    struct vg_alloc a;
    return vg_mem_find(p, &a) && (a.kind == MAQ_REC_DEVICE || a.kind == MAQ_REC_POOL);
}

/* Fills in where it reads and writes. */
static bool find_places(struct vg_reduction *fold, const struct vg_launch *l, uint32_t element)
{
    const char *arg = l->args[0];
    const uint32_t bytes = l->kernel->code.param[0].bytes;
    void *place[3];
    for (uint32_t at = 0; at < WORDS_SEARCHED && (at + WORD_POINTERS + 7) * sizeof at <= bytes; at++) {
        if (!is_configuration(l, arg, at, element))
            continue;
        memcpy(place, arg + (((at + WORD_POINTERS + 1) & ~1u) * sizeof at), sizeof place);
        *fold = (struct vg_reduction){.in = {place[0]}, .out = place[1], .bytes = element};
        fold->in_bytes = (uint64_t)word_at(arg, at + WORD_INPUTS) * element;
        return on_device(place[0]) && on_device(place[1]) && place[2] == NULL;
    }
    return false;
}

static int64_t reduce(const char *in, uint32_t n, uint32_t element, enum operation op)
{
    int64_t acc = 0;
    for (uint32_t i = 0; i < n; i++) {
        int64_t x = 0;
        int32_t narrow = 0;
        memcpy(element == 8 ? (void *)&x : (void *)&narrow, in + (size_t)i * element, element);
        x = element == 8 ? x : narrow;
        if (i == 0)
            acc = x;
        else if (op == SUM)
            acc = (int64_t)((uint64_t)acc + (uint64_t)x); /* wraps, as there */
        else if (op == LARGEST ? x > acc : x < acc)
            acc = x;
    }
    return acc;
}

/* What peers are still to send must have come, in real time: a kernel behind a message reads what that brought. */
static void settle(const struct vg_reduction *fold, struct vg_stream *s)
{
    for (unsigned i = 0; i < 2 && fold->in[i] && s; i++)
        vg_payload_settle(fold->in[i], fold->in_bytes, s);
    if (s)
        vg_payload_settle(fold->out, fold->bytes, s);
}

static bool known(const struct vg_reduction *fold, const struct vg_launch *l)
{
    settle(fold, l->stream);
    bool all = vg_mem_touch(fold->out, fold->bytes);
    for (unsigned i = 0; i < 2 && fold->in[i] && all; i++)
        all = vg_mem_true(fold->in[i], fold->in_bytes) && vg_mem_touch(fold->in[i], fold->in_bytes);
    return all;
}

static bool reduces(struct vg_reduction *fold, const struct vg_launch *l)
{
    enum operation op;
    uint32_t element = element_of(l->kernel->name, &op);
    if (element == 0 || l->kernel->code.n_params != 1 || !find_places(fold, l, element) || !known(fold, l))
        return false;
    fold->value = reduce(fold->in[0], (uint32_t)(fold->in_bytes / element), element, op);
    return true;
}

/* self + alpha * other, of one element. */
static bool adds(struct vg_reduction *fold, const struct vg_launch *l)
{
    enum { ELEMENT = 8 };
    const char *name = l->kernel->name;
    const struct vg_code *code = &l->kernel->code;
    bool of_one = strstr(name, "21CUDAFunctorOnSelf_addIlEESt5arrayIPcLm2E") != NULL;
    bool of_two = strstr(name, "15CUDAFunctor_addIlEESt5arrayIPcLm3E") != NULL;
    uint32_t function = of_one ? 2 * ELEMENT : ELEMENT, pointers = of_one ? 2 : 3;
    int32_t elements;
    int64_t number[2], self, other; /* other, alpha; or alpha */
    void *place[3] = {NULL, NULL, NULL};
    if (strstr(name, "_elementwise_kernelI") == NULL || (!of_one && !of_two) || code->n_params < 3 ||
        code->param[0].bytes != sizeof elements || code->param[1].bytes != function ||
        code->param[2].bytes != pointers * sizeof *place)
        return false;
    memcpy(&elements, l->args[0], sizeof elements);
    memcpy(number, l->args[1], function);
    memcpy(place, l->args[2], pointers * sizeof *place);
    *fold = (struct vg_reduction){.in = {place[1], place[2]}, .out = place[0], .in_bytes = ELEMENT, .bytes = ELEMENT};
    if (elements != 1 || !on_device(place[0]) || !on_device(place[1]) || (of_two && !on_device(place[2])) ||
        !known(fold, l))
        return false;
    memcpy(&self, place[1], ELEMENT);
    memcpy(&other, of_two ? place[2] : (void *)&number[0], ELEMENT);
    fold->value = (int64_t)((uint64_t)self + (uint64_t)number[of_two ? 0 : 1] * (uint64_t)other);
    return true;
}

bool vg_fold_begin(struct vg_reduction *fold, const struct vg_launch *l)
{
    return l->args != NULL && l->kernel->code.found && (reduces(fold, l) || adds(fold, l));
}

void vg_fold_end(const struct vg_reduction *fold)
{
    int32_t narrow = (int32_t)fold->value;
    memcpy(fold->out, fold->bytes == 8 ? (const void *)&fold->value : (const void *)&narrow, fold->bytes);
    vg_mem_told(fold->out, fold->bytes);
    for (unsigned i = 0; i < 2 && fold->in[i]; i++)
        vg_taint_copy(fold->out, fold->in[i], fold->in_bytes);
}
