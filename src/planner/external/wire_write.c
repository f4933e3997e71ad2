/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire_write.c - writes the requests to a parallelizer as lines of JSON, with numbers that read back exactly. See
 * wire.h.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "planner/external/wire.h"

/* Takes the object. One line, numbers that read back as they are. */
static char *line_of(json_t *request)
{
    size_t flags = JSON_COMPACT | JSON_REAL_PRECISION(17);
    size_t n = request ? json_dumpb(request, NULL, 0, flags) : 0;
    char *text = n > 0 ? maq__malloc(n + 2) : NULL;
    if (text) {
        json_dumpb(request, text, n, flags);
        memcpy(text + n, "\n", 2);
    }
    json_decref(request);
    return text;
}

/* Takes the value; a request that lacks a member would be another question, so what fails once stays NULL. */
static void put(json_t **map, const char *key, json_t *value)
{
    if (*map && json_object_set_new(*map, key, value) != 0) {
        json_decref(*map);
        *map = NULL;
    }
}

static void put_count(json_t **map, const char *key, uint32_t value)
{
    put(map, key, json_integer(value));
}

static json_t *request_of(int64_t id, const char *op)
{
    json_t *map = json_object();
    put(&map, "id", json_integer(id));
    put(&map, "op", json_string(op));
    return map;
}

static json_t *layer_of(const struct maq_parallelizer_layer *l)
{
    json_t *map = json_object();
    put(&map, "kind", json_string(l->kind));
    put(&map, "parameters", json_real(l->parameters));
    put(&map, "forward_flop", json_real(l->forward_flop));
    put(&map, "kept_bytes", json_real(l->kept_bytes));
    put(&map, "recomputed_bytes", json_real(l->recomputed_bytes));
    put(&map, "boundary_bytes", json_real(l->boundary_bytes));
    return map;
}

char *maq_wire_open(int64_t id, const struct maq_parallelizer_model *m)
{
    json_t *map = request_of(id, "open"), *model = json_object(), *layers = json_array();
    put(&map, "version", json_integer(MAQ_PARALLELIZER_ABI));
    put(&model, "name", json_string(m->name));
    put_count(&model, "sequence_length", m->sequence_length);
    put_count(&model, "global_batch_size", m->global_batch_size);
    put(&model, "state_bytes", json_real(m->state_bytes));
    put(&model, "gradient_bytes", json_real(m->gradient_bytes));
    for (uint32_t i = 0; i < m->n_layers; i++)
        if (json_array_append_new(layers, layer_of(&m->layers[i])) != 0) {
            json_decref(layers);
            layers = NULL;
        }
    put(&model, "layers", layers);
    put(&map, "model", model);
    return line_of(map);
}

char *maq_wire_slice_model(int64_t id)
{
    return line_of(request_of(id, "slice_model"));
}

static json_t *slice_of(const struct maq_parallelizer_slice *s)
{
    json_t *map = json_object();
    put_count(&map, "first_atom", s->first_atom);
    put_count(&map, "atoms", s->atoms);
    put_count(&map, "first_layer", s->first_layer);
    put_count(&map, "layers", s->layers);
    put(&map, "signature", json_string(s->signature));
    return map;
}

char *maq_wire_concatenate(int64_t id, const struct maq_parallelizer_slice *front,
                           const struct maq_parallelizer_slice *back)
{
    json_t *map = request_of(id, "concatenate");
    put(&map, "front", slice_of(front));
    put(&map, "back", slice_of(back));
    return line_of(map);
}

static json_t *island_of(const struct maq_parallelizer_island *i)
{
    json_t *map = json_object();
    put_count(&map, "index", i->index);
    put(&map, "device", json_string(i->device));
    put_count(&map, "nodes", i->nodes);
    put_count(&map, "devices_per_node", i->devices_per_node);
    put(&map, "memory_bytes", json_real(i->memory_bytes));
    put(&map, "flop_per_s", json_real(i->flop_per_s));
    put(&map, "memory_bytes_per_s", json_real(i->memory_bytes_per_s));
    put(&map, "scale_up_bytes_per_s", json_real(i->scale_up_bytes_per_s));
    put(&map, "network_bytes_per_s", json_real(i->network_bytes_per_s));
    put(&map, "network_latency_s", json_real(i->network_latency_s));
    return map;
}

char *maq_wire_pair(int64_t id, const struct maq_parallelizer_slice *slice,
                    const struct maq_parallelizer_island *island, const struct maq_parallelizer_position *position)
{
    json_t *map = request_of(id, position ? "parallelize" : "profile");
    put(&map, "slice", slice_of(slice));
    put(&map, "island", island_of(island));
    if (position) {
        json_t *at = json_object();
        put_count(&at, "stages_behind", position->stages_behind);
        put_count(&at, "waves", position->waves);
        put_count(&at, "wave_samples", position->wave_samples);
        put_count(&at, "micro_batch_size", position->micro_batch_size);
        put(&map, "position", at);
    }
    return line_of(map);
}
