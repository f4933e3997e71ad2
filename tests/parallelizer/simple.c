/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simple.c - a parallelizer for tests, loaded as a shared object and compiled into a test: the fastest of two ways that fits, as one stage
 * and, on an even number of devices, as two. It answers with the best alone, so it is asked for parts of islands and for positions.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "maquette/parallelizer.h"

#define CONTEXT 5e8
#define RATE 0.4 /* of the peak */

struct simple {
    const struct maq_parallelizer_model *model;
    struct maq_parallelizer_atom *atoms;
    uint32_t n_atoms;
    struct maq_parallelizer_plan plans[2];
    struct maq_parallelizer_stage stages[3];
    char text[2][64];
};

static void simple_close(void *state)
{
    struct simple *s = state;
    free(s->atoms);
    free(s);
}

static enum maq_status simple_open(void **state, void *context, const struct maq_parallelizer_model *model, char *why)
{
    struct simple *s = calloc(1, sizeof *s);
    (void)context;
    if (!s || !(s->atoms = calloc(model->n_layers, sizeof *s->atoms))) {
        snprintf(why, MAQ_PARALLELIZER_WHY, "out of memory");
        free(s);
        return MAQ_NO_MEMORY;
    }
    s->model = model;
    /* pairs of equal layers */
    for (uint32_t i = 0; i < model->n_layers;) {
        struct maq_parallelizer_atom *a = &s->atoms[s->n_atoms++];
        bool pair = i + 1 < model->n_layers && strcmp(model->layers[i].kind, model->layers[i + 1].kind) == 0;
        a->layers = pair ? 2 : 1;
        snprintf(a->signature, sizeof a->signature, "%u %.40s", a->layers, model->layers[i].kind);
        i += a->layers;
    }
    *state = s;
    return MAQ_OK;
}

static enum maq_status simple_slice_model(const struct maq_parallelizer_atom **out, uint32_t *n, void *state, char *why)
{
    struct simple *s = state;
    (void)why;
    *out = s->atoms;
    *n = s->n_atoms;
    return MAQ_OK;
}

static double simple_flop(const struct simple *s, uint32_t first, uint32_t layers)
{
    double flop = 0;
    for (uint32_t i = first; i < first + layers; i++)
        flop += s->model->layers[i].forward_flop + s->model->layers[i].parameters;
    return flop;
}

static double simple_bytes(const struct simple *s, uint32_t first, uint32_t layers)
{
    double parameters = 0;
    for (uint32_t i = first; i < first + layers; i++)
        parameters += s->model->layers[i].parameters;
    return parameters * s->model->state_bytes;
}

static enum maq_status simple_profile(struct maq_parallelizer_profile *out, void *state,
                                      const struct maq_parallelizer_slice *slice,
                                      const struct maq_parallelizer_island *island, char *why)
{
    struct simple *s = state;
    double devices = (double)island->nodes * island->devices_per_node;
    (void)why;
    out->samples_per_s = devices * RATE * island->flop_per_s / (3 * simple_flop(s, slice->first_layer, slice->layers));
    out->min_bytes = CONTEXT + simple_bytes(s, slice->first_layer, slice->layers);
    return MAQ_OK;
}

static struct maq_parallelizer_stage simple_stage(const struct simple *s, uint32_t first, uint32_t layers,
                                                  uint32_t devices, bool redone,
                                                  const struct maq_parallelizer_island *island, uint32_t samples)
{
    struct maq_parallelizer_stage out = {.devices = devices, .recompute = -1, .sharding = -1};
    double kept = 0;
    for (uint32_t i = first; i < first + layers; i++)
        kept += redone ? s->model->layers[i].recomputed_bytes : s->model->layers[i].kept_bytes;
    out.time_s = samples * (redone ? 4 : 3) * simple_flop(s, first, layers) / (devices * RATE * island->flop_per_s);
    out.static_bytes = CONTEXT + simple_bytes(s, first, layers) / devices;
    out.flight_bytes = samples * kept / devices;
    out.sync_s = out.static_bytes / island->memory_bytes_per_s;
    out.boundary_bytes = samples * s->model->layers[first].boundary_bytes / devices;
    return out;
}

static bool simple_fits(const struct maq_parallelizer_stage *stage, uint32_t behind, uint32_t waves, double capacity)
{
    uint32_t held = behind + 1 < waves ? behind + 1 : waves;
    return stage->static_bytes + stage->flight_bytes * held <= capacity;
}

/* One stage, and two of about the same work: the plans are those that fit. */
static enum maq_status simple_parallelize(const struct maq_parallelizer_plan **out, uint32_t *n, void *state,
                                          const struct maq_parallelizer_slice *slice,
                                          const struct maq_parallelizer_island *island,
                                          const struct maq_parallelizer_position *position, char *why)
{
    struct simple *s = state;
    uint32_t devices = island->nodes * island->devices_per_node, half = slice->atoms / 2, before = 0;
    (void)why;
    *n = 0;
    *out = s->plans;
    for (uint32_t i = 0; i < half; i++)
        before += s->atoms[slice->first_atom + i].layers;
    for (int redone = 0; redone < 2 && *n == 0; redone++) {
        struct maq_parallelizer_stage *one = &s->stages[0], *front = &s->stages[1], *back = &s->stages[2];
        *one = simple_stage(s, slice->first_layer, slice->layers, devices, redone, island, position->wave_samples);
        one->atoms = slice->atoms;
        if (simple_fits(one, position->stages_behind, position->waves, island->memory_bytes)) {
            snprintf(s->text[*n], sizeof s->text[0], "one stage%s", redone ? ", all recomputed" : "");
            s->plans[*n] = (struct maq_parallelizer_plan){1, one, s->text[*n]};
            ++*n;
        }
        if (half == 0 || devices % 2 != 0)
            continue;
        *front = simple_stage(s, slice->first_layer, before, devices / 2, redone, island, position->wave_samples);
        *back = simple_stage(s, slice->first_layer + before, slice->layers - before, devices / 2, redone, island,
                             position->wave_samples);
        front->atoms = half;
        back->atoms = slice->atoms - half;
        if (simple_fits(front, position->stages_behind + 1, position->waves, island->memory_bytes) &&
            simple_fits(back, position->stages_behind, position->waves, island->memory_bytes)) {
            snprintf(s->text[*n], sizeof s->text[0], "two stages%s", redone ? ", all recomputed" : "");
            s->plans[*n] = (struct maq_parallelizer_plan){2, front, s->text[*n]};
            ++*n;
        }
    }
    return MAQ_OK;
}

static const struct maq_parallelizer simple_functions = {
    .abi = MAQ_PARALLELIZER_ABI,
    .size = sizeof(struct maq_parallelizer),
    .name = "simple",
    .flags = MAQ_PARALLELIZER_THREADS,
    .open = simple_open,
    .close = simple_close,
    .slice_model = simple_slice_model,
    .profile = simple_profile,
    .parallelize = simple_parallelize,
};

#ifndef SIMPLE_FOR_A_TEST
MAQ_API maq_parallelizer_entry_fn maq_parallelizer_entry;

const struct maq_parallelizer *maq_parallelizer_entry(void)
{
    return &simple_functions;
}
#endif
