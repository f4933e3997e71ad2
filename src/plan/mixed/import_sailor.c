/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_sailor.c - plans in the form of Sailor's executed ones (plan_config_*.json) as mixed plans.
 *
 *   {"zone": Z, "mbs": n, "gbs": n, "real": s, "red_grads": s, "max_mem": bytes, "N": nodes,
 *    "pipeline_list": [{"num_stages": S, "layers_per_stage": [[0, 1, ...], ...], "dp": [D, ...],
 *                       "tmp_per_stage": [[ [[[device, devices, zone], ...], TP], one per replica ], one per stage]}]}
 *
 * `devices` of a lone entry is what the node has, not what the replica uses: that is TP. With several entries it is the number of
 * the node's devices in the group. `real` is the mean over steps of the wall time of a step, `red_grads` the part of it in the
 * reduction on rank 0, `max_mem` the memory in use as nvidia-smi shows it, on the fullest device, at the end of a run of its own
 * (sailor's pipe_engine.py and process_results.py).
 */
#include "base/check.h"
#include "base/str.h"
#include "plan/mixed/codes.h"
#include "plan/mixed/mixed_plan.h"
#include "spec/field.h"

struct config_keys {
    struct maq_str zone;
    int32_t micro_batch, global_batch, nodes;
    double step_s, reduce_s, memory_bytes;
    struct maq_node *pipelines;
};
struct pipeline_keys {
    int32_t stages;
    struct maq_node *layers, *places, *dp;
};

static const struct maq_field config_fields[] = {
    MAQ_FIELD_STR(struct config_keys, zone, "zone", .doc = "of the plan"),
    MAQ_FIELD_I32(struct config_keys, micro_batch, "mbs", .min = 1, .max = 1e6, .required = true, .doc = "micro batch"),
    MAQ_FIELD_I32(struct config_keys, global_batch, "gbs", .min = 1, .max = 1e6, .required = true,
                  .doc = "global batch"),
    MAQ_FIELD_I32(struct config_keys, nodes, "N", .def = "0", .min = 0, .max = 1e6, .doc = "nodes"),
    MAQ_FIELD_DOUBLE(struct config_keys, step_s, "real", .def = "0", .min = 0, .max = 1e9, .doc = "step, s"),
    MAQ_FIELD_DOUBLE(struct config_keys, reduce_s, "red_grads", .def = "0", .min = 0, .max = 1e9,
                     .doc = "reduction, s"),
    MAQ_FIELD_DOUBLE(struct config_keys, memory_bytes, "max_mem", .def = "0", .min = 0, .max = 1e15,
                     .doc = "memory, bytes"),
    MAQ_FIELD_NODE(struct config_keys, pipelines, "pipeline_list", .required = true, .doc = "pipelines"),
    MAQ_FIELD_END};

static const struct maq_field pipeline_fields[] = {
    MAQ_FIELD_I32(struct pipeline_keys, stages, "num_stages", .min = 1, .max = 1e6, .required = true, .doc = "stages"),
    MAQ_FIELD_NODE(struct pipeline_keys, layers, "layers_per_stage", .required = true, .doc = "layers by stage"),
    MAQ_FIELD_NODE(struct pipeline_keys, places, "tmp_per_stage", .required = true, .doc = "replicas by stage"),
    MAQ_FIELD_NODE(struct pipeline_keys, dp, "dp", .required = true, .doc = "replicas by stage"), MAQ_FIELD_END};

struct importer {
    struct maq_mixed_plan *plan;
    struct maq_arena *arena;
    struct maq_diag *diag;
};

#define FAIL(r, code, node, hint, ...)                                                                                 \
    maq_diag_fail(MAQ_BAD_INPUT, (r)->diag, MAQ_CODE_MIXED_##code, (node)->at, (hint), __VA_ARGS__)
#define PLACE_FORM "a replica is [[[device, devices, zone], ...], TP]"

static enum maq_status whole(struct importer *r, uint32_t *out, struct maq_node *node, int64_t min)
{
    int64_t value;
    if (!maq_node_i64(&value, node, r->diag))
        return MAQ_BAD_INPUT;
    if (value < min || value > 1000000)
        return FAIL(r, FORM, node, NULL, "a number from %d to 1000000 is expected here", (int)min);
    *out = (uint32_t)value;
    return MAQ_OK;
}

static enum maq_status list_of(struct importer *r, struct maq_node *node, uint32_t n, const char *hint)
{
    return node->kind == MAQ_NODE_SEQ && node->count > 0 && (n == 0 || node->count == n)
               ? MAQ_OK
               : FAIL(r, FORM, node, hint, n > 0 ? "a list of %u entries is expected here" : "a list is expected here",
                      n);
}

static enum maq_status import_member(struct importer *r, struct maq_mixed_member *out, struct maq_node *node)
{
    MAQ_TRY(list_of(r, node, 3, PLACE_FORM));
    struct maq_node *device = node->first, *devices = device->next, *zone = devices->next;
    if (device->kind != MAQ_NODE_SCALAR || zone->kind != MAQ_NODE_SCALAR || device->text.len == 0)
        return FAIL(r, FORM, node, PLACE_FORM, "a device and a zone are names");
    MAQ_TRY(whole(r, &out->devices, devices, 1));
    MAQ_TRY(maq__mixed_keep(&out->device, device->text, r->arena, r->diag));
    return maq__mixed_keep(&out->zone, zone->text, r->arena, r->diag);
}

static enum maq_status import_replica(struct importer *r, struct maq_mixed_replica *out, struct maq_node *node)
{
    MAQ_TRY(list_of(r, node, 2, PLACE_FORM));
    struct maq_node *list = node->first;
    MAQ_TRY(list_of(r, list, 0, PLACE_FORM));
    struct maq_mixed_member *members = MAQ_ARENA_NEW(r->arena, struct maq_mixed_member, list->count);
    uint64_t devices = 0;
    if (!members)
        return maq_no_memory(r->diag, "the plan");
    *out = (struct maq_mixed_replica){.members = members, .cp = 1, .ep = 1};
    MAQ_TRY(whole(r, &out->tp, list->next, 1));
    for (struct maq_node *n = list->first; n; n = n->next) {
        MAQ_TRY(import_member(r, &members[out->n_members], n));
        devices += members[out->n_members++].devices;
    }
    if (out->n_members == 1 && out->tp <= members[0].devices)
        members[0].devices = out->tp;
    else if (devices != out->tp)
        return FAIL(r, PLACE, node, PLACE_FORM, "%llu devices for TP %u", (unsigned long long)devices, out->tp);
    return MAQ_OK;
}

static enum maq_status import_layers(struct importer *r, struct maq_mixed_stage *out, uint32_t next,
                                     struct maq_node *list)
{
    MAQ_TRY(list_of(r, list, 0, NULL));
    out->first_layer = next;
    out->on_devices_of = -1;
    for (struct maq_node *n = list->first; n; n = n->next, out->layers++) {
        uint32_t layer;
        MAQ_TRY(whole(r, &layer, n, 0));
        if (layer != next + out->layers && n == list->first)
            return FAIL(r, COVER, n, "layers count up from 0 over the stages", "layer %u stands where %u comes next",
                        layer, next);
        if (layer != next + out->layers) /* a slip of the pen: one of the published plans has 29 between 18 and 20 */
            maq_diag_add(r->diag, MAQ_WARNING, MAQ_CODE_MIXED_COVER, n->at, NULL,
                         "layer %u is taken for %u, which comes next", layer, next + out->layers);
    }
    return MAQ_OK;
}

static enum maq_status import_stage(struct importer *r, struct maq_mixed_stage *out, struct maq_node *places,
                                    struct maq_node *dp)
{
    uint32_t n;
    MAQ_TRY(whole(r, &n, dp, 1));
    MAQ_TRY(list_of(r, places, n, "as many replicas as `dp` says"));
    struct maq_mixed_replica *replicas = MAQ_ARENA_NEW(r->arena, struct maq_mixed_replica, n);
    if (!replicas)
        return maq_no_memory(r->diag, "the plan");
    out->replicas = replicas;
    for (struct maq_node *place = places->first; place; place = place->next)
        MAQ_TRY(import_replica(r, &replicas[out->n_replicas++], place));
    return MAQ_OK;
}

static enum maq_status import_pipeline(struct importer *r, struct maq_mixed_pipeline *out, struct maq_node *node)
{
    struct pipeline_keys k = {0};
    if (node->kind != MAQ_NODE_MAP)
        return FAIL(r, FORM, node, NULL, "a pipeline is a map");
    MAQ_TRY(maq_fields_read(&k, pipeline_fields, node, NULL, r->arena, r->diag));
    MAQ_TRY(maq_fields_check_keys(pipeline_fields, NULL, node, "pipeline", r->diag));
    uint32_t n = (uint32_t)k.stages, next = 0;
    MAQ_TRY(list_of(r, k.layers, n, "as many as num_stages"));
    MAQ_TRY(list_of(r, k.places, n, "as many as num_stages"));
    MAQ_TRY(list_of(r, k.dp, n, "as many as num_stages"));
    struct maq_mixed_stage *stages = MAQ_ARENA_NEW(r->arena, struct maq_mixed_stage, n);
    if (!stages)
        return maq_no_memory(r->diag, "the plan");
    *out = (struct maq_mixed_pipeline){.stages = stages};
    struct maq_node *layers = k.layers->first, *places = k.places->first, *dp = k.dp->first;
    for (; layers; layers = layers->next, places = places->next, dp = dp->next) {
        struct maq_mixed_stage *s = &stages[out->n_stages++];
        MAQ_TRY(import_layers(r, s, next, layers));
        next += s->layers;
        MAQ_TRY(import_stage(r, s, places, dp));
    }
    if (r->plan->layers > 0 && r->plan->layers != next)
        return FAIL(r, COVER, node, "every pipeline holds the whole model", "a pipeline of %u layers beside one of %u",
                    next, r->plan->layers);
    r->plan->layers = next;
    return MAQ_OK;
}

enum maq_status maq__mixed_import(struct maq_mixed_plan *out, struct maq_node *root, struct maq_arena *arena,
                                  struct maq_diag *diag)
{
    struct importer r = {.plan = out, .arena = arena, .diag = diag};
    struct config_keys k = {0};
    MAQ_TRY(maq_fields_read(&k, config_fields, root, NULL, arena, diag));
    MAQ_TRY(maq_fields_check_keys(config_fields, NULL, root, "executed plan", diag));
    *out = (struct maq_mixed_plan){.micro_batch = (uint32_t)k.micro_batch,
                                   .global_batch = (uint32_t)k.global_batch,
                                   .schedule = MAQ_SCHEDULE_1F1B,
                                   .measured = {k.step_s, k.reduce_s, k.memory_bytes}};
    MAQ_TRY(maq__mixed_keep(&out->zone, k.zone, arena, diag));
    MAQ_TRY(list_of(&r, k.pipelines, 0, NULL));
    struct maq_mixed_pipeline *pipelines = MAQ_ARENA_NEW(arena, struct maq_mixed_pipeline, k.pipelines->count);
    if (!pipelines)
        return maq_no_memory(diag, "the plan");
    out->pipelines = pipelines;
    for (struct maq_node *n = k.pipelines->first; n; n = n->next)
        MAQ_TRY(import_pipeline(&r, &pipelines[out->n_pipelines++], n));
    return MAQ_OK;
}
