/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor_lists.c - kernels over lists of tensors, as optimizers, norms and clipping of gradients launch them: how many numbers they go over.
 *
 * A block does one chunk of one tensor, and which is in an argument, a structure for lists of `depth` tensors each: PyTorch's
 * (aten/src/ATen/native/cuda/MultiTensorApply.cuh, 2.1 to 2.15, by the generation of CUDA that it is built with), and Apex's and Transformer
 * Engine's (csrc/multi_tensor_apply.cuh; transformer_engine/common/multi_tensor), whose chunk is the first argument:
 *
 *     address[depth][tensors]   numbers[tensors]   (an 8-byte word for each tensor)   tensor of each block   chunk of each block   (first tensor)
 *
 * Its size says which of these it is. What is read and written of each number is in the name: functors of PyTorch's have the depth, how many lists
 * are read, and which is written; Adam reads four lists and writes three.
 */
#include "shim/cuda/operator_rules.h"

#include <stdlib.h>
#include <string.h>

#include "shim/cuda/launch_expression.h"

enum { DEPTHS = 6, CHUNK = 65536 };

struct layout {
    uint16_t tensors[DEPTHS]; /* by depth, from 1; 0: none */
    uint16_t blocks;
    uint8_t number_bytes, index_bytes, word_bytes, end_bytes;
};
static const struct layout layouts[] = {
    {{110, 64, 48, 36, 30, 0}, 320, 8, 1, 0, 4},  {{770, 448, 336, 252, 210, 0}, 2240, 8, 2, 0, 4}, /* PyTorch */
    {{96, 64, 48, 36, 30, 0}, 320, 8, 1, 8, 0},   {{672, 448, 336, 252, 210, 0}, 2240, 8, 2, 8, 0}, /* with scalars */
    {{96, 64, 48, 36, 30, 0}, 320, 8, 1, 4, 0},   {{672, 448, 336, 252, 210, 0}, 2240, 8, 2, 4, 0},
    {{110, 64, 48, 36, 30, 0}, 320, 8, 1, 8, 4},  {{770, 448, 336, 252, 210, 0}, 2240, 8, 2, 8, 4}, /* with steps */
    {{110, 64, 48, 36, 30, 24}, 320, 4, 1, 0, 4}, /* Apex, Transformer Engine */
    {{110, 64, 48, 36, 30, 24}, 320, 8, 1, 0, 4},
};

struct lists {
    const char *at;
    const struct layout *layout;
    uint32_t depth;
    int64_t chunk;
};

static uint32_t padded(uint32_t bytes, uint32_t to)
{
    return (bytes + to - 1) / to * to;
}

/* Where blocks' tensors stand; *chunks: where their chunks do. */
static uint32_t blocks_at(const struct layout *y, uint32_t depth, uint32_t *chunks)
{
    const uint32_t tensors = y->tensors[depth - 1];
    const uint32_t at = tensors * (depth * (uint32_t)sizeof(void *) + y->number_bytes + y->word_bytes);
    *chunks = padded(at + (uint32_t)y->blocks * y->index_bytes, 4);
    return at;
}

static const struct layout *layout_of(uint32_t bytes, uint32_t depth)
{
    for (unsigned i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        uint32_t chunks;
        if (depth < 1 || depth > DEPTHS || layouts[i].tensors[depth - 1] == 0)
            continue;
        blocks_at(&layouts[i], depth, &chunks);
        if (padded(chunks + 4u * layouts[i].blocks + layouts[i].end_bytes, 8) == bytes)
            return &layouts[i];
    }
    return NULL;
}

/* The number behind `word` in a mangled name: "TensorListMetadataILi4EE"; 0: there is none. */
static uint32_t number_behind(const char *name, const char *word)
{
    const char *at = strstr(name, word);
    at = at != NULL ? strstr(at + strlen(word), "Li") : NULL;
    return at != NULL ? (uint32_t)strtoul(at + 2, NULL, 10) : 0;
}

static bool find_lists(struct lists *out, const struct vg_launch *l)
{
    const struct vg_code *code = &l->kernel->code;
    *out = (struct lists){.depth = number_behind(l->kernel->name, "ListMetadata"), .chunk = CHUNK};
    if (!code->found || l->args == NULL)
        return false;
    for (uint32_t i = 0; i < code->n_params && out->layout == NULL; i++) {
        out->at = l->args[i];
        out->layout = layout_of(code->param[i].bytes, out->depth);
        if (out->layout != NULL && i > 0) { /* Apex's: chunk, a flag, the lists */
            out->chunk = 0;
            memcpy(&out->chunk, l->args[0],
                   code->param[0].bytes < sizeof out->chunk ? code->param[0].bytes : sizeof out->chunk);
        }
    }
    return out->layout != NULL && out->at != NULL && out->chunk > 0;
}

static int64_t field_at(const char *at, uint32_t bytes)
{
    uint64_t x = 0;
    memcpy(&x, at, bytes);
    return (int64_t)x;
}

static int64_t numbers_of(const struct lists *t, uint32_t blocks)
{
    const struct layout *y = t->layout;
    const uint32_t tensors = y->tensors[t->depth - 1];
    uint32_t chunks, index = blocks_at(y, t->depth, &chunks);
    const char *numbers = t->at + (size_t)tensors * t->depth * sizeof(void *);
    int64_t sum = 0;
    for (uint32_t b = 0; b < blocks && b < y->blocks; b++) {
        const int64_t tensor = field_at(t->at + index + (size_t)b * y->index_bytes, y->index_bytes);
        if (tensor >= tensors)
            return 0;
        const int64_t all = field_at(numbers + tensor * y->number_bytes, y->number_bytes);
        const int64_t left = all - field_at(t->at + chunks + 4u * (size_t)b, 4) * t->chunk;
        sum += left < 0 ? 0 : left < t->chunk ? left : t->chunk;
    }
    return sum;
}

/* Lists that are read and that are written: "BinaryOpScalarFunctorIfLi2ELi2ELi0EE" reads two. */
static void lists_touched(const char *name, uint32_t depth, int64_t *read, int64_t *written)
{
    const char *functor = strstr(name, "Functor"), *at = functor != NULL ? strstr(functor, "Li") : NULL;
    *read = depth;
    *written = 1;
    if (strstr(name, "Adam") != NULL && depth >= 4) {
        *written = depth - 1; /* not the gradient */
    } else if (strstr(name, "Norm") != NULL && depth == 1) {
        *written = 0;
    } else if (at != NULL) {
        char *end;
        const uint32_t own = (uint32_t)strtoul(at + 2, &end, 10);
        const bool second = own == depth && strncmp(end, "ELi", 3) == 0;
        const uint32_t inputs = second ? (uint32_t)strtoul(end + 3, NULL, 10) : depth;
        *read = inputs >= 1 && inputs <= depth ? inputs : depth;
    }
}

void vg_tensor_lists_apply(struct maq_rec_op *op, const struct vg_launch *l)
{
    struct lists t;
    int64_t read, written;
    if (op->kind != MAQ_REC_KERNEL || strstr(l->kernel->name, "multi_tensor_apply_kernel") == NULL ||
        !find_lists(&t, l))
        return;
    const int64_t numbers = numbers_of(&t, l->grid.x), bytes = vg_element_bytes(l->kernel->name);
    if (numbers <= 0)
        return;
    lists_touched(l->kernel->name, t.depth, &read, &written);
    op->kind = MAQ_REC_WORK;
    op->d[1] = numbers * read * bytes;
    op->d[2] = numbers * written * bytes;
}
