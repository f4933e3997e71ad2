/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read.c - reads maquette's form of a mixed plan: keys, defaults, and the conditions that a plan must satisfy.
 *
 * Layers count the embedding as layer 0 and the head as the last one. Checked here, without any cluster or model at hand:
 *
 *   - the stages of a pipeline cover the layers 0, 1, ... one after the other, and all pipelines cover the same number of them;
 *   - the devices of a replica's members are tp x cp of it; ep divides the ranks of the stage, tp x cp x replicas;
 *   - micro batches are given for all replicas of a stage (all pipelines of a plan) or for none, and add up to those of the
 *     pipeline (of the step: global batch over micro batch, rounded up);
 *   - recompute_num_layers goes with full recomputation and is at most the layers of the stage, recompute_modules goes with
 *     selective;
 *   - a kind of context parallelism goes with a degree of it, and expert-TP x ep divides the ranks of the stage where both are
 *     given;
 *   - on_devices_of names an earlier stage of as many replicas.
 */
#include "base/check.h"
#include "base/str.h"
#include "plan/job_build.h"
#include "plan/keys.h"
#include "plan/mixed/codes.h"
#include "plan/mixed/mixed_plan.h"
#include "spec/field.h"

struct plan_keys {
    struct maq_str schema, model, zone;
    int32_t micro_batch, global_batch, microbatch_group;
    int schedule, overlap_ep;
    struct maq_node *pipelines, *measured;
};
struct pipeline_keys {
    int32_t microbatches;
    struct maq_node *stages;
};
struct stage_keys {
    int32_t first_layer, layers, recompute_layers, on_devices_of, copies, offload_layers;
    int sharding, recompute;
    double optimizer_offload;
    struct maq_node *replicas, *modules, *offload_modules;
};
struct replica_keys {
    struct maq_str device, zone, group;
    int32_t count, tp, cp, ep, etp, microbatches;
    int cp_comm;
    bool sequence_parallel;
    struct maq_node *members;
};
struct member_keys {
    struct maq_str device, zone;
    int32_t devices;
};

#define MILLION 1000000 /* limit on layers, replicas, sequences: a larger number is taken for a typing error */
#define COUNT(T, member, key_, ...) MAQ_FIELD_I32(T, member, key_, .max = MILLION, __VA_ARGS__)

static const struct maq_field plan_fields[] = {
    MAQ_FIELD_STR(struct plan_keys, schema, "schema", .doc = "maquette.mixed-plan/1"),
    MAQ_FIELD_STR(struct plan_keys, model, "model", .doc = "name of the model in the profile"),
    MAQ_FIELD_STR(struct plan_keys, zone, "zone", .doc = "of replicas that name none"),
    COUNT(struct plan_keys, micro_batch, "micro_batch_size", .aliases = "mbs", .min = 1, .required = true,
          .doc = "sequences that pass the pipeline together"),
    COUNT(struct plan_keys, global_batch, "global_batch_size", .aliases = "gbs", .min = 1, .required = true,
          .doc = "sequences per step"),
    MAQ_FIELD_ENUM(struct plan_keys, schedule, "pipeline_schedule", maq__mixed_schedules, .aliases = "schedule",
                   .def = "1f1b", .doc = "order of the pipeline"),
    COUNT(struct plan_keys, microbatch_group, "microbatch_group_size_per_vp_stage", .def = "0", .min = 0,
          .doc = "interleaved: micro batches in a row of a virtual stage; 0 = as many as stages with devices"),
    MAQ_FIELD_ENUM(struct plan_keys, overlap_ep, "overlap_moe_expert_parallel_comm", maq_auto_bool_names,
                   .aliases = "overlap_ep", .def = "auto",
                   .doc = "exchanges of experts under another micro batch; auto = as the job says"),
    MAQ_FIELD_NODE(struct plan_keys, pipelines, "pipelines", .required = true, .doc = "list of pipelines"),
    MAQ_FIELD_NODE(struct plan_keys, measured, "measured", .doc = "what was measured of the executed plan"),
    MAQ_FIELD_END};

static const struct maq_field pipeline_fields[] = {
    COUNT(struct pipeline_keys, microbatches, "microbatches", .def = "0", .min = 0,
          .doc = "per step; 0 = an equal part"),
    MAQ_FIELD_NODE(struct pipeline_keys, stages, "stages", .required = true, .doc = "list of stages, front first"),
    MAQ_FIELD_END};

static const struct maq_field stage_fields[] = {
    COUNT(struct stage_keys, first_layer, "first_layer", .min = 0, .required = true, .doc = "0 = the embedding"),
    COUNT(struct stage_keys, layers, "layers", .min = 1, .required = true, .doc = "number of layers"),
    MAQ_FIELD_ENUM(struct stage_keys, sharding, "data_parallel_sharding_strategy", maq__mixed_shardings,
                   .aliases = "zero|sharding", .def = "no_shard", .doc = "what the replicas share (ZeRO)"),
    MAQ_FIELD_ENUM(struct stage_keys, recompute, "recompute_granularity", maq__mixed_recomputes, .aliases = "recompute",
                   .def = "none", .doc = "activation recomputation"),
    COUNT(struct stage_keys, recompute_layers, "recompute_num_layers", .def = "0", .min = 0,
          .doc = "full: the first ones of the stage; 0 = all"),
    MAQ_FIELD_NODE(struct stage_keys, modules, "recompute_modules", .doc = "selective: list of modules"),
    MAQ_FIELD_DOUBLE(struct stage_keys, optimizer_offload, "optimizer_offload_fraction", .def = "0", .min = 0, .max = 1,
                     .doc = "of the optimizer's states on the host"),
    COUNT(struct stage_keys, copies, "num_distributed_optimizer_instances", .aliases = "hsdp_replicas", .def = "1",
          .min = 1, .doc = "copies of what ZeRO shards"),
    COUNT(struct stage_keys, offload_layers, "cpu_offloading_num_layers", .aliases = "offload_layers", .def = "0",
          .min = 0, .doc = "activations of the first so many layers go to the host"),
    MAQ_FIELD_NODE(struct stage_keys, offload_modules, "offload_modules",
                   .doc = "list of modules whose inputs go to the host, of every layer"),
    MAQ_FIELD_I32(struct stage_keys, on_devices_of, "on_devices_of", .def = "-1", .min = -1, .max = MILLION,
                  .doc = "index of an earlier stage whose devices it shares"),
    MAQ_FIELD_NODE(struct stage_keys, replicas, "replicas", .required = true, .doc = "list of replicas"),
    MAQ_FIELD_END};

static const struct maq_field replica_fields[] = {
    COUNT(struct replica_keys, count, "count", .def = "1", .min = 1, .doc = "equal replicas"),
    MAQ_FIELD_STR(struct replica_keys, device, "device", .doc = "kind of GPU"),
    MAQ_FIELD_STR(struct replica_keys, zone, "zone", .doc = "where its node stands"),
    MAQ_FIELD_STR(struct replica_keys, group, "group", .aliases = "island", .doc = "node group or island"),
    COUNT(struct replica_keys, tp, "tensor_model_parallel_size", .aliases = "tp", .def = "1", .min = 1,
          .doc = "tensor parallelism"),
    COUNT(struct replica_keys, cp, "context_parallel_size", .aliases = "cp", .def = "1", .min = 1,
          .doc = "context parallelism"),
    COUNT(struct replica_keys, ep, "expert_model_parallel_size", .aliases = "ep", .def = "1", .min = 1,
          .doc = "expert parallelism over the replicas of the stage"),
    COUNT(struct replica_keys, etp, "expert_tensor_parallel_size", .aliases = "etp", .def = "0", .min = 0,
          .doc = "tensor parallelism of the experts; 0 = as tp"),
    MAQ_FIELD_ENUM(struct replica_keys, cp_comm, "cp_comm_type", maq__mixed_cp_comms, .def = "p2p",
                   .doc = "how attention crosses CP ranks"),
    MAQ_FIELD_BOOL(struct replica_keys, sequence_parallel, "sequence_parallel", .aliases = "sp", .def = "false",
                   .doc = "sequence parallelism with TP"),
    COUNT(struct replica_keys, microbatches, "microbatches", .def = "0", .min = 0,
          .doc = "per step and replica; 0 = an equal part"),
    MAQ_FIELD_NODE(struct replica_keys, members, "members",
                   .doc = "list of {device, zone, devices}: a TP group over several nodes or kinds of GPU"),
    MAQ_FIELD_END};

static const struct maq_field member_fields[] = {
    MAQ_FIELD_STR(struct member_keys, device, "device", .required = true, .doc = "kind of GPU"),
    MAQ_FIELD_STR(struct member_keys, zone, "zone", .doc = "where its node stands"),
    COUNT(struct member_keys, devices, "devices", .def = "1", .min = 1, .doc = "GPUs of this node"), MAQ_FIELD_END};

static const struct maq_field measured_fields[] = {
    MAQ_FIELD_DOUBLE(struct maq_mixed_measured, step_s, "step_time_s", .def = "0", .min = 0, .max = 1e9,
                     .doc = "seconds per step"),
    MAQ_FIELD_DOUBLE(struct maq_mixed_measured, reduce_s, "reduce_time_s", .def = "0", .min = 0, .max = 1e9,
                     .doc = "of it reducing gradients"),
    MAQ_FIELD_DOUBLE(struct maq_mixed_measured, memory_bytes, "memory_bytes", .def = "0", .min = 0, .max = 1e15,
                     .doc = "of the fullest device, as the driver counts it"),
    MAQ_FIELD_END};

struct mixed_reader {
    struct maq_mixed_plan *plan;
    struct maq_arena *arena;
    struct maq_diag *diag;
};

#define FAIL(r, code, node, hint, ...)                                                                                 \
    maq_diag_fail(MAQ_BAD_INPUT, (r)->diag, MAQ_CODE_MIXED_##code, (node)->at, (hint), __VA_ARGS__)

/* Reads one map by its table and refuses keys that the table does not have. */
static enum maq_status read_map(struct mixed_reader *r, void *target, const struct maq_field *fields,
                                struct maq_node *map, const char *what)
{
    if (map->kind != MAQ_NODE_MAP)
        return FAIL(r, FORM, map, NULL, "a %s is a map", what);
    map->used = true;
    return maq_fields_read_map(target, fields, map, what, r->arena, r->diag);
}

static enum maq_status is_list(struct mixed_reader *r, struct maq_node *list, const char *what)
{
    return list->kind == MAQ_NODE_SEQ && list->count > 0
               ? MAQ_OK
               : FAIL(r, FORM, list, NULL, "%s is a list with at least one entry", what);
}

/* ---- replicas ---- */

static enum maq_status read_members(struct mixed_reader *r, struct maq_mixed_replica *out, struct maq_node *list)
{
    MAQ_TRY(is_list(r, list, "members"));
    struct maq_mixed_member *members = MAQ_ARENA_NEW(r->arena, struct maq_mixed_member, list->count);
    if (!members)
        return maq_no_memory(r->diag, "the plan");
    enum maq_status status = MAQ_OK;
    for (struct maq_node *n = list->first; n; n = n->next) {
        struct member_keys k = {0};
        enum maq_status one = read_map(r, &k, member_fields, n, "member");
        status = maq_worse(status, one);
        if (one != MAQ_OK)
            continue;
        struct maq_mixed_member *m = &members[out->n_members++];
        m->devices = (uint32_t)k.devices;
        MAQ_TRY(maq__mixed_keep(&m->device, k.device, r->arena, r->diag));
        MAQ_TRY(maq__mixed_keep(&m->zone, k.zone, r->arena, r->diag));
    }
    out->members = members;
    return status;
}

static enum maq_status only_member(struct mixed_reader *r, struct maq_mixed_replica *out, const struct replica_keys *k)
{
    struct maq_mixed_member *m = MAQ_ARENA_NEW(r->arena, struct maq_mixed_member, 1);
    if (!m)
        return maq_no_memory(r->diag, "the plan");
    m->devices = out->tp * out->cp;
    MAQ_TRY(maq__mixed_keep(&m->device, k->device, r->arena, r->diag));
    MAQ_TRY(maq__mixed_keep(&m->zone, k->zone, r->arena, r->diag));
    out->members = m;
    out->n_members = 1;
    return MAQ_OK;
}

static enum maq_status check_place(struct mixed_reader *r, const struct maq_mixed_replica *out,
                                   const struct replica_keys *k, struct maq_node *node)
{
    uint64_t devices = 0, wanted = (uint64_t)out->tp * out->cp;
    for (uint32_t i = 0; i < out->n_members; i++)
        devices += out->members[i].devices;
    if (devices != wanted)
        return FAIL(r, PLACE, node, "the devices of the members are tp x cp", "%llu devices for tp %u x cp %u",
                    (unsigned long long)devices, out->tp, out->cp);
    if (k->sequence_parallel && out->tp == 1)
        return FAIL(r, PLACE, node, "leave sequence_parallel out, or give a TP degree",
                    "sequence parallelism without tensor parallelism");
    if (k->cp_comm != MAQ_CP_P2P && out->cp == 1)
        return FAIL(r, PLACE, node, "leave cp_comm_type out, or give a CP degree",
                    "a kind of context parallelism without a degree of it");
    return MAQ_OK;
}

static enum maq_status read_replica(struct mixed_reader *r, struct maq_mixed_replica *out, uint32_t *count,
                                    struct maq_node *node)
{
    struct replica_keys k = {0};
    MAQ_TRY(read_map(r, &k, replica_fields, node, "replica"));
    if ((k.device.len > 0) == (k.members != NULL))
        return FAIL(r, FORM, node, "`device: NAME`, or `members: [{device: NAME, devices: N}, ...]`",
                    k.members ? "a replica with both device and members" : "a replica without a device");
    *count = (uint32_t)k.count;
    out->tp = (uint32_t)k.tp;
    out->cp = (uint32_t)k.cp;
    out->ep = (uint32_t)k.ep;
    out->etp = k.etp == k.tp ? 0 : (uint32_t)k.etp;
    out->cp_comm = k.cp_comm;
    out->sequence_parallel = k.sequence_parallel;
    out->microbatches = (uint32_t)k.microbatches;
    if ((uint64_t)out->tp * out->cp > MAQ_MIXED_MAX_DEVICES)
        return FAIL(r, PLACE, node, NULL, "a replica of more than %u devices", MAQ_MIXED_MAX_DEVICES);
    MAQ_TRY(maq__mixed_keep(&out->group, k.group, r->arena, r->diag));
    MAQ_TRY(k.members ? read_members(r, out, k.members) : only_member(r, out, &k));
    return check_place(r, out, &k, node);
}

/* Every entry of the list stands for `count` equal replicas. */
static enum maq_status read_replicas(struct mixed_reader *r, struct maq_mixed_stage *out, struct maq_node *list)
{
    MAQ_TRY(is_list(r, list, "replicas"));
    struct maq_mixed_replica *entries = MAQ_ARENA_NEW(r->arena, struct maq_mixed_replica, list->count);
    uint32_t *counts = MAQ_ARENA_NEW(r->arena, uint32_t, list->count), i = 0;
    uint64_t total = 0;
    enum maq_status status = MAQ_OK;
    if (!entries || !counts)
        return maq_no_memory(r->diag, "the plan");
    for (struct maq_node *n = list->first; n; n = n->next, i++) {
        status = maq_worse(status, read_replica(r, &entries[i], &counts[i], n));
        total += counts[i];
    }
    MAQ_TRY(status);
    if (total > MILLION)
        return FAIL(r, PLACE, list, NULL, "a stage of more than %d replicas", MILLION);
    struct maq_mixed_replica *all = MAQ_ARENA_NEW(r->arena, struct maq_mixed_replica, total);
    if (!all)
        return maq_no_memory(r->diag, "the plan");
    for (i = 0; i < list->count; i++)
        for (uint32_t c = 0; c < counts[i]; c++)
            all[out->n_replicas++] = entries[i];
    out->replicas = all;
    return MAQ_OK;
}

/* ---- stages ---- */

static enum maq_status check_stage(struct mixed_reader *r, const struct maq_mixed_stage *s, struct maq_node *node)
{
    uint64_t ranks = 0;
    if (s->recompute_layers > 0 && s->recompute != MAQ_RECOMPUTE_FULL)
        return FAIL(r, TECHNIQUE, node, "add `recompute_granularity: full`, or take recompute_num_layers out",
                    "recompute_num_layers without full recomputation");
    if (s->optimizer_instances > 1 && s->sharding == MAQ_SHARDING_NONE)
        return FAIL(r, TECHNIQUE, node, "set data_parallel_sharding_strategy",
                    "nothing is sharded, so there are no copies of shards");
    if (s->offload_layers > s->layers)
        return FAIL(r, TECHNIQUE, node, NULL, "%u layers offloaded in a stage of %u", s->offload_layers, s->layers);
    if (s->recompute_layers > s->layers)
        return FAIL(r, TECHNIQUE, node, NULL, "%u layers recomputed in a stage of %u", s->recompute_layers, s->layers);
    for (uint32_t i = 0; i < s->n_replicas; i++)
        ranks += (uint64_t)s->replicas[i].tp * s->replicas[i].cp;
    for (uint32_t i = 0; i < s->n_replicas; i++) {
        const struct maq_mixed_replica *at = &s->replicas[i];
        if (ranks % ((uint64_t)at->ep * (at->etp > 0 ? at->etp : 1)) != 0)
            return FAIL(r, PLACE, node, "ep, times the experts' own TP where it is given, divides tp x cp x replicas",
                        "expert parallelism of %u x %u over %llu ranks", at->ep, at->etp > 0 ? at->etp : 1,
                        (unsigned long long)ranks);
    }
    return MAQ_OK;
}

/* Bits of a list of words. */
static enum maq_status read_words(struct mixed_reader *r, uint32_t *bits, struct maq_node *list,
                                  enum maq_plan_list which)
{
    const struct maq_plan_words *words = &maq_plan_words[which];
    MAQ_TRY(is_list(r, list, words->key));
    for (struct maq_node *n = list->first; n; n = n->next) {
        int bit = n->kind == MAQ_NODE_SCALAR ? maq_plan_word_bit(which, n->text) : -1;
        n->used = true;
        if (bit < 0)
            return FAIL(r, TECHNIQUE, n, words->known, "'%.*s' %s", (int)n->text.len, n->text.ptr ? n->text.ptr : "",
                        words->wrong);
        *bits |= 1u << bit;
    }
    return MAQ_OK;
}

/* Selective recomputation without a list is that of the core attention, as in Megatron-LM. */
static enum maq_status read_modules(struct mixed_reader *r, struct maq_mixed_stage *out, struct maq_node *list,
                                    struct maq_node *stage)
{
    if (!list) {
        out->recompute_parts = out->recompute == MAQ_RECOMPUTE_SELECTIVE ? 1u << MAQ_PART_CORE_ATTENTION : 0;
        return MAQ_OK;
    }
    if (out->recompute != MAQ_RECOMPUTE_SELECTIVE)
        return FAIL(r, TECHNIQUE, stage, "add `recompute_granularity: selective`, or take recompute_modules out",
                    "recompute_modules without selective recomputation");
    return read_words(r, &out->recompute_parts, list, MAQ_PLAN_RECOMPUTE_MODULES);
}

/* Whether the job's experts are fused is not known here; where they are not the stage is refused when it is priced. */
static enum maq_status read_offload(struct mixed_reader *r, struct maq_mixed_stage *out, struct maq_node *list)
{
    if (!list)
        return MAQ_OK;
    MAQ_TRY(read_words(r, &out->offload_modules, list, MAQ_PLAN_OFFLOAD_MODULES));
    const struct maq_plan plan = {.offload_modules = out->offload_modules,
                                  .offload_layers = (int32_t)out->offload_layers,
                                  .recompute = out->recompute,
                                  .recompute_parts = out->recompute_parts,
                                  .op_fuser = true};
    const char *remedy, *wrong = maq_offload_fault(&plan, &remedy);
    wrong = wrong ? wrong : maq_offload_conflict(&plan, &remedy);
    return wrong ? FAIL(r, TECHNIQUE, list, remedy, "%s", wrong) : MAQ_OK;
}

static enum maq_status read_stage(struct mixed_reader *r, struct maq_mixed_stage *out, struct maq_node *node)
{
    struct stage_keys k = {0};
    MAQ_TRY(read_map(r, &k, stage_fields, node, "stage"));
    *out = (struct maq_mixed_stage){.first_layer = (uint32_t)k.first_layer,
                                    .layers = (uint32_t)k.layers,
                                    .sharding = k.sharding,
                                    .recompute = k.recompute,
                                    .recompute_layers = (uint32_t)k.recompute_layers,
                                    .optimizer_offload = k.optimizer_offload,
                                    .optimizer_instances = k.copies > 1 ? (uint32_t)k.copies : 0,
                                    .offload_layers = (uint32_t)k.offload_layers,
                                    .on_devices_of = k.on_devices_of};
    MAQ_TRY(read_modules(r, out, k.modules, node));
    MAQ_TRY(read_offload(r, out, k.offload_modules));
    MAQ_TRY(read_replicas(r, out, k.replicas));
    return check_stage(r, out, node);
}

/* ---- pipelines ---- */

/* Layers in order; virtual stages on devices that exist. */
static enum maq_status check_chain(struct mixed_reader *r, const struct maq_mixed_pipeline *line, struct maq_node *list)
{
    uint32_t next = 0, i = 0;
    for (struct maq_node *n = list->first; n; n = n->next, i++) {
        const struct maq_mixed_stage *s = &line->stages[i];
        if (s->first_layer != next)
            return FAIL(r, COVER, n, "stages stand in the order of their layers, without gaps",
                        "stage %u begins at layer %u; layer %u comes next", i, s->first_layer, next);
        next += s->layers;
        if (s->on_devices_of >= (int32_t)i ||
            (s->on_devices_of >= 0 && line->stages[s->on_devices_of].n_replicas != s->n_replicas))
            return FAIL(r, PLACE, n, "name an earlier stage with as many replicas",
                        "stage %u cannot share the devices of stage %d", i, s->on_devices_of);
    }
    return MAQ_OK;
}

/* Shares of `total` micro batches: all of them given and adding up, or none. */
static enum maq_status check_share(struct mixed_reader *r, uint64_t sum, uint32_t given, uint32_t n, uint32_t total,
                                   struct maq_node *node, const char *what)
{
    if (given == 0 || (given == n && sum == total))
        return MAQ_OK;
    if (given < n)
        return FAIL(r, SHARE, node, "give all of them, or none", "microbatches of %u of %u %s", given, n, what);
    return FAIL(r, SHARE, node, NULL, "the %s have %llu micro batches together; there are %u", what,
                (unsigned long long)sum, total);
}

static enum maq_status check_shares(struct mixed_reader *r, struct maq_node *list)
{
    const struct maq_mixed_plan *plan = r->plan;
    uint64_t sum = 0;
    uint32_t given = 0;
    for (uint32_t p = 0; p < plan->n_pipelines; p++) {
        sum += plan->pipelines[p].microbatches;
        given += plan->pipelines[p].microbatches > 0;
    }
    MAQ_TRY(check_share(r, sum, given, plan->n_pipelines, maq_mixed_microbatches(plan), list, "pipelines"));
    for (uint32_t p = 0; p < plan->n_pipelines; p++)
        for (uint32_t i = 0; i < plan->pipelines[p].n_stages; i++) {
            const struct maq_mixed_stage *s = &plan->pipelines[p].stages[i];
            sum = given = 0;
            for (uint32_t j = 0; j < s->n_replicas; j++) {
                sum += s->replicas[j].microbatches;
                given += s->replicas[j].microbatches > 0;
            }
            MAQ_TRY(check_share(r, sum, given, s->n_replicas, maq_mixed_pipeline_microbatches(plan, p), list,
                                "replicas of a stage"));
        }
    return MAQ_OK;
}

static enum maq_status read_pipeline(struct mixed_reader *r, struct maq_mixed_pipeline *out, struct maq_node *node)
{
    struct pipeline_keys k = {0};
    MAQ_TRY(read_map(r, &k, pipeline_fields, node, "pipeline"));
    MAQ_TRY(is_list(r, k.stages, "stages"));
    struct maq_mixed_stage *stages = MAQ_ARENA_NEW(r->arena, struct maq_mixed_stage, k.stages->count);
    if (!stages)
        return maq_no_memory(r->diag, "the plan");
    *out = (struct maq_mixed_pipeline){.stages = stages, .microbatches = (uint32_t)k.microbatches};
    enum maq_status status = MAQ_OK;
    for (struct maq_node *n = k.stages->first; n; n = n->next)
        status = maq_worse(status, read_stage(r, &stages[out->n_stages++], n));
    return status != MAQ_OK ? status : check_chain(r, out, k.stages);
}

static enum maq_status read_pipelines(struct mixed_reader *r, struct maq_node *list)
{
    struct maq_mixed_plan *plan = r->plan;
    MAQ_TRY(is_list(r, list, "pipelines"));
    struct maq_mixed_pipeline *pipelines = MAQ_ARENA_NEW(r->arena, struct maq_mixed_pipeline, list->count);
    if (!pipelines)
        return maq_no_memory(r->diag, "the plan");
    plan->pipelines = pipelines;
    enum maq_status status = MAQ_OK;
    for (struct maq_node *n = list->first; n; n = n->next)
        status = maq_worse(status, read_pipeline(r, &pipelines[plan->n_pipelines++], n));
    MAQ_TRY(status);
    for (uint32_t p = 0; p < plan->n_pipelines; p++) {
        const struct maq_mixed_stage *last = &pipelines[p].stages[pipelines[p].n_stages - 1];
        uint32_t layers = last->first_layer + last->layers;
        if (p > 0 && layers != plan->layers)
            return FAIL(r, COVER, list, "every pipeline holds the whole model",
                        "pipeline 0 has %u layers, pipeline %u has %u", plan->layers, p, layers);
        plan->layers = layers;
    }
    return check_shares(r, list);
}

enum maq_status maq__mixed_read(struct maq_mixed_plan *out, struct maq_node *root, struct maq_arena *arena,
                                struct maq_diag *diag)
{
    struct mixed_reader r = {.plan = out, .arena = arena, .diag = diag};
    struct plan_keys k = {0};
    if (maq_node_peek(root, "cluster") || maq_node_peek(root, "workload"))
        return FAIL(&r, FORM, root, "maquette train predicts it", "this is a job, not a mixed plan");
    MAQ_TRY(read_map(&r, &k, plan_fields, root, "plan"));
    if (k.schema.len > 0 && !maq_str_is(k.schema, "maquette.mixed-plan/1"))
        return FAIL(&r, FORM, root, "this version reads maquette.mixed-plan/1", "a document of another schema");
    *out = (struct maq_mixed_plan){.micro_batch = (uint32_t)k.micro_batch,
                                   .global_batch = (uint32_t)k.global_batch,
                                   .schedule = k.schedule,
                                   .microbatch_group = (uint32_t)k.microbatch_group,
                                   .overlap_ep = k.overlap_ep};
    MAQ_TRY(maq__mixed_keep(&out->model, k.model, arena, diag));
    MAQ_TRY(maq__mixed_keep(&out->zone, k.zone, arena, diag));
    if (k.measured)
        MAQ_TRY(read_map(&r, &out->measured, measured_fields, k.measured, "measurement"));
    return read_pipelines(&r, k.pipelines);
}
