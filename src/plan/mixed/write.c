/* SPDX-License-Identifier: Apache-2.0 */
/* write.c - writes a mixed plan as a JSON document, with defaults left out; docs/plan-form.md describes it. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "plan/keys.h"
#include "plan/mixed/mixed_plan.h"

/* Members of a JSON object, with the first failure kept. */
struct writer {
    bool failed;
};

static void put(struct writer *w, json_t *map, const char *key, json_t *value)
{
    if (!value || json_object_set_new(map, key, value) != 0)
        w->failed = true;
}

static void put_text(struct writer *w, json_t *map, const char *key, const char *text)
{
    if (text)
        put(w, map, key, json_string(text));
}

/* Writes a number unless it has its default. */
static void put_count(struct writer *w, json_t *map, const char *key, uint32_t n, uint32_t usual)
{
    if (n != usual)
        put(w, map, key, json_integer(n));
}

static json_t *append(struct writer *w, json_t *list)
{
    json_t *item = json_object();
    if (!item || json_array_append_new(list, item) != 0) {
        w->failed = true;
        return NULL;
    }
    return item;
}

static json_t *put_list(struct writer *w, json_t *map, const char *key)
{
    json_t *list = json_array();
    put(w, map, key, list);
    return w->failed ? NULL : list;
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_replica(const struct maq_mixed_replica *a, const struct maq_mixed_replica *b)
{
    bool same = a->n_members == b->n_members && same_text(a->group, b->group) && a->tp == b->tp && a->cp == b->cp &&
                a->ep == b->ep && a->etp == b->etp && a->cp_comm == b->cp_comm &&
                a->sequence_parallel == b->sequence_parallel && a->microbatches == b->microbatches;
    for (uint32_t i = 0; same && i < a->n_members; i++)
        same = same_text(a->members[i].device, b->members[i].device) &&
               same_text(a->members[i].zone, b->members[i].zone) && a->members[i].devices == b->members[i].devices;
    return same;
}

static void write_member(struct writer *w, json_t *map, const struct maq_mixed_member *m, uint32_t usual)
{
    put_text(w, map, "device", m->device);
    put_text(w, map, "zone", m->zone);
    put_count(w, map, "devices", m->devices, usual);
}

static void write_replica(struct writer *w, json_t *map, const struct maq_mixed_replica *r, uint32_t count)
{
    put_count(w, map, "count", count, 1);
    if (r->n_members == 1) {
        write_member(w, map, &r->members[0], r->members[0].devices);
    } else {
        json_t *members = put_list(w, map, "members");
        for (uint32_t i = 0; members && i < r->n_members; i++) {
            json_t *item = append(w, members);
            if (item)
                write_member(w, item, &r->members[i], 1);
        }
    }
    put_text(w, map, "group", r->group);
    put_count(w, map, "tensor_model_parallel_size", r->tp, 1);
    put_count(w, map, "context_parallel_size", r->cp, 1);
    put_count(w, map, "expert_model_parallel_size", r->ep, 1);
    put_count(w, map, "expert_tensor_parallel_size", r->etp, 0);
    if (r->cp_comm != MAQ_CP_P2P)
        put_text(w, map, "cp_comm_type", maq__mixed_cp_comms[r->cp_comm]);
    if (r->sequence_parallel)
        put(w, map, "sequence_parallel", json_true());
    put_count(w, map, "microbatches", r->microbatches, 0);
}

static void write_words(struct writer *w, json_t *map, enum maq_plan_list which, uint32_t bits)
{
    const struct maq_plan_words *words = &maq_plan_words[which];
    json_t *list = put_list(w, map, words->key);
    for (int bit = 0; list && bit < words->n; bit++)
        if (bits >> bit & 1 && json_array_append_new(list, json_string(words->word(bit))) != 0)
            w->failed = true;
}

static void write_stage(struct writer *w, json_t *map, const struct maq_mixed_stage *s)
{
    put(w, map, "first_layer", json_integer(s->first_layer));
    put(w, map, "layers", json_integer(s->layers));
    if (s->sharding != MAQ_SHARDING_NONE)
        put_text(w, map, "data_parallel_sharding_strategy", maq__mixed_shardings[s->sharding]);
    if (s->recompute != MAQ_RECOMPUTE_NONE)
        put_text(w, map, "recompute_granularity", maq__mixed_recomputes[s->recompute]);
    if (s->recompute == MAQ_RECOMPUTE_SELECTIVE && s->recompute_parts != 0)
        write_words(w, map, MAQ_PLAN_RECOMPUTE_MODULES, s->recompute_parts);
    put_count(w, map, "recompute_num_layers", s->recompute_layers, 0);
    if (s->optimizer_offload > 0)
        put(w, map, "optimizer_offload_fraction", json_real(s->optimizer_offload));
    put_count(w, map, "num_distributed_optimizer_instances", s->optimizer_instances, 0);
    put_count(w, map, "cpu_offloading_num_layers", s->offload_layers, 0);
    if (s->offload_modules != 0)
        write_words(w, map, MAQ_PLAN_OFFLOAD_MODULES, s->offload_modules);
    if (s->on_devices_of >= 0)
        put(w, map, "on_devices_of", json_integer(s->on_devices_of));
    json_t *replicas = put_list(w, map, "replicas");
    for (uint32_t i = 0, n; replicas && i < s->n_replicas; i += n) {
        for (n = 1; i + n < s->n_replicas && same_replica(&s->replicas[i], &s->replicas[i + n]);)
            n++;
        json_t *item = append(w, replicas);
        if (item)
            write_replica(w, item, &s->replicas[i], n);
    }
}

static void write_measured(struct writer *w, json_t *map, const struct maq_mixed_measured *m)
{
    json_t *measured = json_object();
    if (m->step_s > 0)
        put(w, measured, "step_time_s", json_real(m->step_s));
    if (m->reduce_s > 0)
        put(w, measured, "reduce_time_s", json_real(m->reduce_s));
    if (m->memory_bytes > 0)
        put(w, measured, "memory_bytes", json_real(m->memory_bytes));
    if (measured && json_object_size(measured) == 0)
        json_decref(measured);
    else
        put(w, map, "measured", measured);
}

static void write_plan(struct writer *w, json_t *root, const struct maq_mixed_plan *plan)
{
    put_text(w, root, "schema", "maquette.mixed-plan/1");
    put_text(w, root, "model", plan->model);
    put_text(w, root, "zone", plan->zone);
    put(w, root, "micro_batch_size", json_integer(plan->micro_batch));
    put(w, root, "global_batch_size", json_integer(plan->global_batch));
    put_text(w, root, "pipeline_schedule", maq__mixed_schedules[plan->schedule]);
    put_count(w, root, "microbatch_group_size_per_vp_stage", plan->microbatch_group, 0);
    if (plan->overlap_ep != MAQ_AUTO)
        put(w, root, "overlap_moe_expert_parallel_comm", json_boolean(plan->overlap_ep == MAQ_ON));
    json_t *pipelines = put_list(w, root, "pipelines");
    for (uint32_t p = 0; pipelines && p < plan->n_pipelines; p++) {
        const struct maq_mixed_pipeline *line = &plan->pipelines[p];
        json_t *item = append(w, pipelines);
        if (item)
            put_count(w, item, "microbatches", line->microbatches, 0);
        json_t *stages = item ? put_list(w, item, "stages") : NULL;
        for (uint32_t s = 0; stages && s < line->n_stages; s++) {
            json_t *stage = append(w, stages);
            if (stage)
                write_stage(w, stage, &line->stages[s]);
        }
    }
    write_measured(w, root, &plan->measured);
}

enum maq_status maq_mixed_plan_write(char **out, const struct maq_mixed_plan *plan, struct maq_diag *diag)
{
    struct writer w = {0};
    json_t *root = json_object();
    char *text = NULL;
    if (root) {
        write_plan(&w, root, plan);
        text = w.failed ? NULL : json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
        json_decref(root);
    }
    if (!text)
        return maq_no_memory(diag, "the plan");
    *out = text;
    return MAQ_OK;
}
