/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slice_classes.c - the atoms of a model as the parallelizer cuts it, its slices, and their classes: slices with the
 * same signature.
 *
 * Equal rows of atoms make equal slices, unless the parallelizer signs slices itself (concatenate()). See
 * enumeration.h.
 */
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "planner/external/codes.h"
#include "planner/external/enumeration.h"

static enum maq_status failed(const struct maq_enumeration *e, enum maq_status status, const char *why,
                              struct maq_diag *diag)
{
    struct maq_slices_fault fault = {.job = 0};
    maq_slices_fail(&fault, e, e->states[0], status, why);
    return maq_slices_report(e, &fault, diag);
}

/* ---- atoms ---- */

static enum maq_status wrong_atoms(const struct maq_enumeration *e, const char *what, uint64_t has, uint64_t limit,
                                   struct maq_diag *diag)
{
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_PARALLELIZER_VALUE, (struct maq_span){0},
                         "atoms follow each other and cover the layers of the model, each of at least one",
                         "parallelizer %.80s: %s: %llu, not %llu", e->source.functions.name, what,
                         (unsigned long long)has, (unsigned long long)limit);
}

static enum maq_status take_atoms(struct maq_enumeration *e, struct maq_parallelizer_atom **out, struct maq_diag *diag)
{
    const struct maq_parallelizer_atom *given = NULL;
    char why[MAQ_PARALLELIZER_WHY] = "";
    uint32_t n = 0, *before;
    uint64_t layers = 0;
    enum maq_status status = e->source.functions.slice_model(&given, &n, e->states[0], why);
    if (status != MAQ_OK)
        return failed(e, status, why, diag);
    if (!given || n == 0 || n > MAQ_PIECE_ATOMS)
        return maq_diag_fail(MAQ_LIMIT, diag, MAQ_CODE_SLICES_LIMIT, (struct maq_span){0}, "join layers to fewer atoms",
                             "parallelizer %.80s cuts the model into %u atoms; 1 to %u go", e->source.functions.name, n,
                             MAQ_PIECE_ATOMS);
    e->n_atoms = n;
    *out = MAQ_ARENA_NEW(e->arena, struct maq_parallelizer_atom, n);
    e->layers_before = before = MAQ_ARENA_NEW(e->arena, uint32_t, (size_t)n + 1);
    if (!*out || !before)
        return maq_no_memory(diag, "the search");
    memcpy(*out, given, n * sizeof **out);
    for (uint32_t i = 0; i < n; i++) {
        (*out)[i].signature[MAQ_PARALLELIZER_SIGNATURE - 1] = '\0';
        layers += (*out)[i].layers;
        if ((*out)[i].layers == 0 || layers > e->chain->model.n_layers)
            return wrong_atoms(e, "layers up to an atom", layers, e->chain->model.n_layers, diag);
        before[i + 1] = (uint32_t)layers;
    }
    if (layers != e->chain->model.n_layers)
        return wrong_atoms(e, "layers of all atoms", layers, e->chain->model.n_layers, diag);
    return MAQ_OK;
}

/* ---- slices ---- */

/*
 * A hash of the atoms' signatures (FNV-1a of 64 bits, with a terminator for each) is the slice's signature for the parallelizer;
 * classes are compared in full.
 */
static void name_slice(struct maq_parallelizer_slice *s, const struct maq_parallelizer_atom *atoms)
{
    uint64_t h = 0xcbf29ce484222325u;
    if (s->atoms == 1) {
        memcpy(s->signature, atoms[s->first_atom].signature, sizeof s->signature);
        return;
    }
    for (uint32_t i = s->first_atom; i < s->first_atom + s->atoms; i++)
        for (const char *c = atoms[i].signature;; c++) {
            h = (h ^ (unsigned char)*c) * 0x100000001b3u;
            if (*c == '\0')
                break;
        }
    maq__snprintf(s->signature, sizeof s->signature, "%u:%016llx", s->atoms, (unsigned long long)h);
}

/* Equal rows of atoms; of a parallelizer that concatenates, equal signatures. */
static bool is_same(const struct maq_enumeration *e, const struct maq_parallelizer_slice *a,
                    const struct maq_parallelizer_slice *b, const struct maq_parallelizer_atom *atoms)
{
    if (e->opts->ask_again)
        return false;
    if (strcmp(a->signature, b->signature) != 0 || a->atoms != b->atoms)
        return false;
    for (uint32_t i = 0; !e->source.functions.concatenate && i < a->atoms; i++)
        if (strcmp(atoms[a->first_atom + i].signature, atoms[b->first_atom + i].signature) != 0)
            return false;
    return true;
}

/* Slices of one more atom each: a slice is the one before it and its last atom. */
static enum maq_status sign(struct maq_enumeration *e, struct maq_parallelizer_slice *s,
                            const struct maq_parallelizer_slice *before, const struct maq_parallelizer_atom *atoms,
                            struct maq_diag *diag)
{
    char why[MAQ_PARALLELIZER_WHY] = "";
    uint32_t last = s->first_atom + s->atoms - 1;
    name_slice(s, atoms);
    if (!e->source.functions.concatenate || s->atoms == 1)
        return MAQ_OK;
    struct maq_parallelizer_slice back = {
        .first_atom = last, .atoms = 1, .first_layer = e->layers_before[last], .layers = atoms[last].layers};
    name_slice(&back, atoms);
    enum maq_status status = e->source.functions.concatenate(s->signature, e->states[0], before, &back, why);
    s->signature[MAQ_PARALLELIZER_SIGNATURE - 1] = '\0';
    return status == MAQ_OK ? MAQ_OK : failed(e, status, why, diag);
}

/* The class of a slice: looked for among those of as many atoms, from `from` on. */
static uint32_t class_of(struct maq_enumeration *e, const struct maq_parallelizer_slice *s, uint32_t from,
                         const struct maq_parallelizer_atom *atoms)
{
    for (uint32_t c = from; c < e->n_classes; c++)
        if (is_same(e, &e->classes[c], s, atoms))
            return c;
    e->classes[e->n_classes] = *s;
    return e->n_classes++;
}

enum maq_status maq_enumeration_classes(struct maq_enumeration *e, struct maq_diag *diag)
{
    struct maq_parallelizer_atom *atoms = NULL;
    MAQ_TRY(take_atoms(e, &atoms, diag));
    uint32_t n = e->n_atoms;
    struct maq_parallelizer_slice *slices = MAQ_ARENA_NEW(e->arena, struct maq_parallelizer_slice, n);
    e->class_of = MAQ_ARENA_NEW(e->arena, uint32_t, (size_t)n * n);
    e->classes = MAQ_ARENA_NEW(e->arena, struct maq_parallelizer_slice, (size_t)n * (n + 1) / 2);
    if (!atoms || !slices || !e->class_of || !e->classes)
        return maq_no_memory(diag, "the search");
    for (uint32_t length = 1; length <= n; length++) {
        uint32_t from = e->n_classes;
        for (uint32_t first = 0; first + length <= n; first++) {
            struct maq_parallelizer_slice before = slices[first];
            slices[first] =
                (struct maq_parallelizer_slice){.first_atom = first,
                                                .atoms = length,
                                                .first_layer = e->layers_before[first],
                                                .layers = e->layers_before[first + length] - e->layers_before[first]};
            MAQ_TRY(sign(e, &slices[first], &before, atoms, diag));
            e->class_of[(size_t)first * n + first + length - 1] = class_of(e, &slices[first], from, atoms);
        }
    }
    return MAQ_OK;
}
