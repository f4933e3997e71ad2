/* SPDX-License-Identifier: Apache-2.0 */
/*
 * default_values.c - the default values of axes that neither the document nor a flag nor a list sets.
 *
 * Without `full` they are what Megatron-LM runs and people use: 1F1B and interleaved pipelines; optimizer sharding and FSDP,
 * over all data-parallel ranks or one copy in each scale-up domain; recomputation of nothing, of one or all cheap modules, of N
 * layers, of all; two rank orders; and, where framework and devices have them, switches that hide communication or launches. `full`
 * adds other schedules, every number of virtual stages and of sharded copies, every set of recomputed modules, offloading, sequence
 * parallelism switched off, more rank orders and uneven ends.
 */
#include "planner/space/default_values.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "plan/job_build.h"
#include "plan/keys.h"
#include "planner/space/layer_layouts.h"

struct list {
    struct maq_axis_values *out;
    struct maq_arena *arena;
    uint32_t size;
    bool failed;
};

static void add(struct list *l, int32_t value)
{
    if (l->out->n == l->size) {
        uint32_t size = l->size > 0 ? 2 * l->size : 16;
        int32_t *grown = MAQ_ARENA_NEW(l->arena, int32_t, size);
        if (!grown) {
            l->failed = true;
            return;
        }
        if (l->out->n > 0)
            memcpy(grown, l->out->at, l->out->n * sizeof *grown);
        l->out->at = grown;
        l->size = size;
    }
    l->out->at[l->out->n++] = value;
}

static void add_all(struct list *l, const int32_t *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        add(l, values[i]);
}
#define ADD_ALL(l, ...) add_all((l), (const int32_t[]){__VA_ARGS__}, MAQ_COUNT(((const int32_t[]){__VA_ARGS__})))

static void add_divisors(struct list *l, int64_t of, int64_t limit)
{
    for (int64_t d = 1; d <= of && d <= limit; d++)
        if (of % d == 0)
            add(l, (int32_t)d);
}

static const struct maq_module *find(const struct maq_job *job, enum maq_module_kind kind)
{
    return maq_model_find_module(&job->model, kind, MAQ_PART_COUNT);
}

/* ---- degrees ---- */

/*
 * A TP group that leaves its scale-up domain is slow, not impossible: up to twice the domain, and up to two nodes, are
 * tried.
 */
static void tp_values(struct list *l, const struct maq_job *job)
{
    const struct maq_node_group *g = &job->cluster.groups[0];
    int32_t reach = g->domain_devices > g->devices_per_node ? g->domain_devices : g->devices_per_node;
    const struct maq_module *attention = find(job, MAQ_MODULE_ATTENTION);
    int32_t heads = attention ? attention->u.attention.heads : 0;
    for (int32_t d = 1; d <= 2 * reach && (uint32_t)d <= job->cluster.devices; d++)
        if (job->cluster.devices % (uint32_t)d == 0 && (heads == 0 || heads % d == 0))
            add(l, d);
}

/* Each CP rank takes two chunks of the sequence; below 256 tokens a rank has less than a tile of attention. */
static void cp_values(struct list *l, const struct maq_job *job)
{
    for (int64_t d = 1; d <= job->cluster.devices && (d == 1 || job->workload.seq / d >= 256); d++)
        if (job->cluster.devices % d == 0 && (d == 1 || job->workload.seq % (2 * d) == 0))
            add(l, (int32_t)d);
}

static void ep_values(struct list *l, const struct maq_job *job)
{
    const struct maq_module *router = find(job, MAQ_MODULE_ROUTER);
    add_divisors(l, router ? router->u.moe.experts : 1, job->cluster.devices);
}

static void mbs_values(struct list *l, const struct maq_job *job, bool full)
{
    if (full)
        add_divisors(l, job->workload.gbs, 64);
    else
        for (int32_t b = 1; b <= 16 && b <= job->workload.gbs; b *= 2)
            add(l, b);
}

/* ---- pipeline ---- */

static void vp_values(struct list *l, const struct maq_job *job, bool full)
{
    int32_t layers = (int32_t)job->model.num_layers;
    for (int32_t v = 1; v <= layers; v++)
        if (full || v <= 8 || layers % v == 0)
            add(l, v);
}

/* The output may be worth many layers (small models of large vocabularies, multi-token prediction); the embedding computes nothing. */
static void layout_values(struct list *l, const struct maq_job *job, bool full)
{
    int32_t most_first = full ? 2 : 1, most_last = most_first;
    double output = ceil(maq_layout_output(job)) + (full ? 1 : 0);
    if (output > most_last)
        most_last = output < MAQ_LAYOUT_END ? (int32_t)output : MAQ_LAYOUT_END - 1;
    for (int32_t sum = 0; sum <= most_first + most_last; sum++)
        for (int32_t first = 0; first <= most_first; first++)
            if (sum - first >= 0 && sum - first <= most_last)
                add(l, first * MAQ_LAYOUT_END + sum - first);
    if (maq_layout_uneven(job))
        add(l, MAQ_LAYOUT_BY_WORK);
}

static void schedule_values(struct list *l, bool full)
{
    ADD_ALL(l, MAQ_SCHEDULE_1F1B, MAQ_SCHEDULE_INTERLEAVED);
    if (full)
        ADD_ALL(l, MAQ_SCHEDULE_GPIPE, MAQ_SCHEDULE_ZB_H1, MAQ_SCHEDULE_ZB_H2, MAQ_SCHEDULE_ZB_1P, MAQ_SCHEDULE_ZB_2P,
                MAQ_SCHEDULE_INTERLEAVED_ZB, MAQ_SCHEDULE_ZB_V, MAQ_SCHEDULE_DUALPIPE, MAQ_SCHEDULE_DUALPIPE_V,
                MAQ_SCHEDULE_V_MIN, MAQ_SCHEDULE_V_HALF);
}

/* ---- memory ---- */

/* Modules of the model that can be recomputed apart from the rest of their layer. */
static uint32_t recomputable(const struct maq_job *job)
{
    uint32_t parts = 0;
    for (uint32_t k = 0; k < job->model.n_kinds; k++)
        for (uint32_t i = 0; i < job->model.kinds[k].n_modules; i++) {
            enum maq_part part = job->model.kinds[k].modules[i].part;
            if (maq_part_recompute_name(part))
                parts |= 1u << part;
        }
    return parts;
}

static void recompute_values(struct list *l, const struct maq_job *job, bool full)
{
    uint32_t parts = recomputable(job);
    add(l, MAQ_RECOMPUTE_VALUE_NONE);
    for (uint32_t set = parts; set != 0; set = (set - 1) & parts) { /* every subset */
        bool one = (set & (set - 1)) == 0;
        if (full || one || set == parts)
            add(l, (int32_t)(MAQ_RECOMPUTE_VALUE_PARTS | set));
    }
    add(l, MAQ_RECOMPUTE_VALUE_BLOCK);
    if (full) /* Megatron-LM has one number for all stages */
        add(l, MAQ_RECOMPUTE_VALUE_STAGES);
    add(l, MAQ_RECOMPUTE_VALUE_UNIFORM + 1);
    for (int32_t n = 2; full && n <= 8; n *= 2)
        add(l, MAQ_RECOMPUTE_VALUE_UNIFORM + n);
}

/* ---- switches that hide communication or launches ---- */

/* Whether all devices are NVIDIA's of data centres, of this generation or a later one, with NVLink between them. */
static bool has_nvlink(const struct maq_job *job, enum maq_device_arch oldest)
{
    bool all = true;
    for (uint32_t g = 0; g < job->cluster.n_groups; g++) {
        const struct maq_node_group *group = &job->cluster.groups[g];
        int arch = group->device.arch;
        all = all && !maq_node_group_domain_is_pcie(group) && group->domain_devices > 1 &&
              (arch == MAQ_ARCH_BLACKWELL || arch == MAQ_ARCH_HOPPER ||
               (arch == MAQ_ARCH_AMPERE && oldest == MAQ_ARCH_AMPERE));
    }
    return all;
}

/* DeepEP; HybridEP, which is made for domains of more than a node, where they are. */
static void dispatcher_values(struct list *l, const struct maq_search_space *space, const struct maq_job *job,
                              bool open)
{
    const struct maq_node_group *g = &job->cluster.groups[0];
    int32_t fused = g->domain_devices > g->devices_per_node ? MAQ_DISPATCHER_HYBRIDEP : MAQ_DISPATCHER_DEEPEP;
    add(l, space->base.dispatcher);
    if (open && job->framework.has_fused_exchange && find(job, MAQ_MODULE_ROUTER) && has_nvlink(job, MAQ_ARCH_HOPPER) &&
        space->base.dispatcher == MAQ_DISPATCHER_ALLTOALL)
        add(l, fused);
}

static void overlap_tp_values(struct list *l, const struct maq_search_space *space, const struct maq_job *job,
                              bool open)
{
    add(l, space->base.overlap_tp);
    if (open && job->framework.has_tp_overlap && has_nvlink(job, MAQ_ARCH_AMPERE) && space->base.overlap_tp == MAQ_AUTO)
        add(l, MAQ_ON);
}

static bool has_shared_experts(const struct maq_job *job)
{
    return maq_model_find_module(&job->model, MAQ_MODULE_LINEAR, MAQ_PART_SHARED_EXPERTS) != NULL;
}

/* Shared experts under the exchange of tokens; which plans cannot have it, the branches say. */
static void shared_values(struct list *l, const struct maq_search_space *space, const struct maq_job *job, bool open)
{
    add(l, space->base.overlap_shared_experts);
    if (open && job->framework.has_shared_overlap && has_shared_experts(job) && !space->base.overlap_shared_experts)
        add(l, true);
}

/* Parts of the model's layers whose shapes do not change from step to step. */
static uint32_t graph_parts(const struct maq_job *job)
{
    uint32_t parts = 0;
    for (uint32_t k = 0; k < job->model.n_kinds; k++) {
        const struct maq_layer *layer = &job->model.kinds[k];
        bool mlp = false, attends = false, scans = false;
        for (uint32_t i = 0; i < layer->n_modules; i++) {
            mlp |= layer->modules[i].part == MAQ_PART_MLP;
            attends |= layer->modules[i].kind == MAQ_MODULE_ATTENTION;
            scans |= layer->modules[i].kind == MAQ_MODULE_SSM_SCAN;
        }
        parts |= attends ? 1u << MAQ_GRAPH_ATTN : scans ? 1u << MAQ_GRAPH_MAMBA : 0;
        parts |= layer->moe ? 1u << MAQ_GRAPH_MOE_ROUTER | 1u << MAQ_GRAPH_MOE_PREPROCESS
                 : mlp      ? 1u << MAQ_GRAPH_MLP
                            : 0;
    }
    return parts;
}

/*
 * CUDA graphs, on NVIDIA's devices: of all passes of a step where shapes are fixed, that is without experts or with a capacity for
 * them; of parts of layers where they are not. Packed sequences have lengths that no graph knows beforehand.
 */
static void graph_values(struct list *l, const struct maq_search_space *space, const struct maq_job *job, bool open)
{
    int32_t base = maq_space_graphs_of(&space->base);
    bool nvidia = true, fixed = !find(job, MAQ_MODULE_ROUTER) || maq_plan_knows_expert_rows(&space->base);
    for (uint32_t g = 0; g < job->cluster.n_groups; g++)
        nvidia &= job->cluster.groups[g].device.arch < MAQ_ARCH_CDNA2; /* those before it are NVIDIA's */
    add(l, base);
    if (!open || base != 0 || !nvidia || !job->framework.has_cuda_graphs ||
        (job->workload.packed && job->workload.length_mean > 0))
        return;
    int32_t value = fixed ? MAQ_GRAPHS_VALUE_ITERATION : (int32_t)graph_parts(job);
    if (value != 0)
        add(l, value);
}

static void offload_values(struct list *l, const struct maq_job *job, bool full)
{
    add(l, 0);
    for (int32_t n = 1; full && n <= (int32_t)job->model.num_layers; n *= 4)
        add(l, n);
}

static void replica_values(struct list *l, const struct maq_job *job, bool full)
{
    add(l, 1);
    add(l, MAQ_VALUE_PER_DOMAIN);
    for (uint32_t n = 2; n <= (full ? 16u : 4u) && n <= job->cluster.devices; n *= 2)
        add(l, (int32_t)n);
}

static void order_values(struct list *l, struct maq_search_space *space, bool full)
{
    static const char *const orders[] = {"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp", "tp-pp-cp-ep-dp",
                                         "tp-ep-dp-cp-pp", "cp-tp-ep-dp-pp", "tp-dp-cp-ep-pp"};
    space->orders = MAQ_ARENA_NEW(l->arena, struct maq_str, MAQ_COUNT(orders));
    l->failed |= !space->orders;
    for (uint32_t i = 0; i < (full ? MAQ_COUNT(orders) : 2) && !l->failed; i++) {
        space->orders[space->n_orders++] = (struct maq_str){orders[i], strlen(orders[i])};
        add(l, (int32_t)i);
    }
}

enum maq_status maq_space_default(struct maq_axis_values *out, struct maq_search_space *space,
                                  const struct maq_job *job, enum maq_axis axis, const struct maq_search_opts *opts,
                                  struct maq_arena *arena)
{
    const bool full = opts->full;
    struct list l = {.out = out, .arena = arena};
    switch (axis) {
    case MAQ_AXIS_PRECISION: /* a matter of convergence: left to the user */
    case MAQ_AXIS_INPUTS: /* each set of modules is a search of its own, and only Megatron Core of 2025 has them: likewise */
        add(&l, MAQ_VALUE_AS_WRITTEN);
        break;
    case MAQ_AXIS_DISPATCHER:
        dispatcher_values(&l, space, job, !opts->keep_switches);
        break;
    case MAQ_AXIS_OVERLAP_TP:
        overlap_tp_values(&l, space, job, !opts->keep_switches);
        break;
    case MAQ_AXIS_SHARED:
        shared_values(&l, space, job, !opts->keep_switches);
        break;
    case MAQ_AXIS_DELAY_WGRAD: /* Megatron Core's, whose passes are merged */
        add(&l, space->base.delay_wgrad);
        if (opts->full && !opts->keep_switches && job->framework.has_shared_overlap && find(job, MAQ_MODULE_ROUTER))
            add(&l, !space->base.delay_wgrad);
        break;
    case MAQ_AXIS_GRAPHS:
        graph_values(&l, space, job, !opts->keep_switches);
        break;
    case MAQ_AXIS_OVERLAP_EP: /* not every plan can have it: also where a profile does */
        add(&l, space->base.overlap_ep);
        if (find(job, MAQ_MODULE_ROUTER))
            add(&l, space->base.overlap_ep == MAQ_ON ? MAQ_OFF : MAQ_ON);
        break;
    case MAQ_AXIS_TP:
        tp_values(&l, job);
        break;
    case MAQ_AXIS_CP:
        cp_values(&l, job);
        break;
    case MAQ_AXIS_CP_COMM:
        ADD_ALL(&l, MAQ_CP_P2P, MAQ_CP_ALL_GATHER, MAQ_CP_A2A, MAQ_CP_A2A_P2P);
        break;
    case MAQ_AXIS_PP:
        add_divisors(&l, job->cluster.devices, job->model.num_layers);
        break;
    case MAQ_AXIS_EP:
        ep_values(&l, job);
        break;
    case MAQ_AXIS_ETP:
        if (find(job, MAQ_MODULE_ROUTER))
            ADD_ALL(&l, 1, MAQ_VALUE_LIKE_TP);
        else
            add(&l, MAQ_VALUE_AS_WRITTEN);
        break;
    case MAQ_AXIS_MBS:
        mbs_values(&l, job, full);
        break;
    case MAQ_AXIS_SP:
        add(&l, job->model.pyramid ? MAQ_OFF : MAQ_ON); /* refused there: plan/resolve/resolve.c */
        if (full && !job->model.pyramid)
            add(&l, MAQ_OFF);
        break;
    case MAQ_AXIS_ORDER:
        order_values(&l, space, full);
        break;
    case MAQ_AXIS_SCHEDULE:
        schedule_values(&l, full);
        break;
    case MAQ_AXIS_VP:
        vp_values(&l, job, full);
        break;
    case MAQ_AXIS_LAYOUT:
        layout_values(&l, job, full);
        break;
    case MAQ_AXIS_SHARDING:
        ADD_ALL(&l, MAQ_SHARDING_NONE, MAQ_SHARDING_OPTIM, MAQ_SHARDING_GRADS, MAQ_SHARDING_PARAMS);
        break;
    case MAQ_AXIS_REPLICAS:
        replica_values(&l, job, full);
        break;
    case MAQ_AXIS_RECOMPUTE:
        recompute_values(&l, job, full);
        break;
    case MAQ_AXIS_OFFLOAD:
        offload_values(&l, job, full);
        break;
    case MAQ_AXIS_HOST_OPTIM:
        add(&l, 0);
        if (full)
            add(&l, 1000);
        break;
    case MAQ_AXIS_COUNT:
        break;
    }
    return l.failed ? MAQ_NO_MEMORY : MAQ_OK;
}
