/* SPDX-License-Identifier: Apache-2.0 */
/*
 * no_effect.c - settings that somebody gives and that change nothing beside the others: refused, with what they need. And
 * warnings of what a job as it is written would not do.
 *
 * A number that comes out the same whatever a setting says would be taken for the answer to it. What a framework profile sets
 * is not somebody's wish, and another program's command line (behind `--`) or file carries such settings by right. A value that is the
 * default asks for nothing. Nor does a setting of communication ask for anything where its group has one rank (a schedule
 * without a pipeline, sequence parallelism without TP): what is tried over several degrees stays the same command.
 */
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "base/text.h"
#include "maquette/vision.h"
#include "model/codes.h"
#include "plan/codes.h"
#include "plan/job_build.h"

static bool full(const struct maq_plan *p)
{
    return p->recompute == MAQ_RECOMPUTE_FULL;
}

/* ---- when a setting is idle ---- */

static bool not_full(const struct maq_job *job)
{
    return !full(&job->plan);
}

static bool not_selective(const struct maq_job *job)
{
    return job->plan.recompute != MAQ_RECOMPUTE_SELECTIVE;
}

static bool not_zero3(const struct maq_job *job)
{
    return job->plan.sharding != MAQ_SHARDING_PARAMS;
}

static bool not_sharded(const struct maq_job *job)
{
    return job->plan.sharding == MAQ_SHARDING_NONE;
}

static bool whole_vocabulary(const struct maq_job *job)
{
    return !job->plan.vocab_parallel_pipeline;
}

static bool not_hierarchical(const struct maq_job *job)
{
    return job->plan.cp_comm != MAQ_CP_A2A_P2P;
}

static bool not_muon(const struct maq_job *job)
{
    return job->plan.update != MAQ_UPDATE_MUON;
}

static bool not_one_bit(const struct maq_job *job)
{
    return job->plan.update < MAQ_UPDATE_ONEBIT_ADAM;
}

static bool not_zero_one(const struct maq_job *job)
{
    return job->plan.update != MAQ_UPDATE_ZERO_ONE_ADAM || job->plan.onebit_warmup;
}

static bool no_projection(const struct maq_job *job)
{
    return job->plan.galore_rank == 0;
}

static bool not_narrow(const struct maq_job *job)
{
    return job->plan.precision < MAQ_PRECISION_FP8_DELAYED;
}

static bool no_wide_ends(const struct maq_job *job)
{
    return !job->plan.wide_ends;
}

static bool in_fp32(const struct maq_job *job)
{
    return job->plan.precision == MAQ_PRECISION_FP32;
}

static bool dense(const struct maq_job *job)
{
    return !maq_model_find_module(&job->model, MAQ_MODULE_ROUTER, MAQ_PART_COUNT);
}

static bool dropless(const struct maq_job *job)
{
    return job->plan.capacity_factor <= 0;
}

static bool no_shared_experts(const struct maq_job *job)
{
    return !maq_model_find_module(&job->model, MAQ_MODULE_LINEAR, MAQ_PART_SHARED_EXPERTS);
}

static bool no_flex(const struct maq_job *job)
{
    return job->plan.dispatcher != MAQ_DISPATCHER_DEEPEP && job->plan.dispatcher != MAQ_DISPATCHER_HYBRIDEP;
}

static bool deep_ep(const struct maq_job *job)
{
    return job->plan.dispatcher == MAQ_DISPATCHER_DEEPEP && job->plan.ep > 1;
}

static bool fused_attention(const struct maq_job *job)
{
    return job->plan.attention_backend != MAQ_ATTENTION_AUTO && job->plan.attention_backend != MAQ_ATTENTION_UNFUSED;
}

static bool megatrons_loss(const struct maq_job *job)
{
    return job->plan.loss_function != MAQ_LOSS_TORCH;
}

static bool all_trained(const struct maq_job *job)
{
    return job->plan.lora_rank == 0;
}

static bool optimizer_on_device(const struct maq_job *job)
{
    return !(job->plan.optimizer_offload > 0);
}

static bool optimizer_not_on_nvme(const struct maq_job *job)
{
    return job->plan.offload_optimizer != MAQ_OFFLOAD_NVME;
}

static bool no_lengths(const struct maq_job *job)
{
    return job->workload.length_mean <= 0;
}

static bool limits_nothing(const struct maq_job *job)
{
    return job->plan.schedule != MAQ_SCHEDULE_ZB_AUTO;
}

static bool limit_given(const struct maq_job *job)
{
    return limits_nothing(job) || job->plan.zb_limit > 0;
}

/* ---- which settings ---- */

static const struct rule {
    const char *key;
    bool (*idle)(const struct maq_job *job);
    const char *why, *hint;
    bool searched;       /* hangs on what a search decides: nothing to say of an open job */
    bool always;         /* its default, written down, asks for something as well */
    bool refused;        /* Megatron-LM does not start with it: a fault of its own command line, too */
    const char *nothing; /* another value that asks for nothing */
} plan_rules[] = {
    {"recompute_num_layers", not_full, "without recompute_granularity full", "set recompute_granularity: full",
     .searched = true},
    {"recompute_method", not_full, "without recompute_granularity full", "set recompute_granularity: full",
     .searched = true, .always = true},
    {"selective_ac_option", not_selective, "without recompute_granularity selective",
     "set recompute_granularity: selective, as torchtitan's mode selective", .searched = true},
    {"fsdp_prefetch", not_zero3, "below ZeRO-3", "set data_parallel_sharding_strategy: optim_grads_params (ZeRO-3)",
     .searched = true},
    {"reshard_after_forward", not_zero3, "below ZeRO-3",
     "set data_parallel_sharding_strategy: optim_grads_params (ZeRO-3)", .searched = true},
    {"gather_once_per_step", not_zero3, "below ZeRO-3",
     "set data_parallel_sharding_strategy: optim_grads_params (ZeRO-3)", .searched = true},
    {"reduce_once_per_step", not_zero3, "below ZeRO-3",
     "set data_parallel_sharding_strategy: optim_grads_params (ZeRO-3)", .searched = true},
    {"overlap_param_gather", not_sharded, "without shards of parameters or optimizer",
     "set data_parallel_sharding_strategy: optim (ZeRO-1) or more", .searched = true},
    {"disable_backward_fusion", whole_vocabulary, "without vocab_parallel_pipeline",
     "set vocab_parallel_pipeline: true", .searched = false},
    {"use_interlaced_schedule", whole_vocabulary, "without vocab_parallel_pipeline",
     "set vocab_parallel_pipeline: true", .searched = false},
    {"hierarchical_cp_a2a_size", not_hierarchical, "without cp_comm_type a2a+p2p", "set cp_comm_type: a2a+p2p",
     .searched = true},
    {"offload_optimizer_device", optimizer_on_device, "without optimizer_offload_fraction",
     "set optimizer_offload_fraction: 1", .searched = true},
    {"offload_sub_group_size", optimizer_not_on_nvme, "without offload_optimizer_device nvme",
     "set offload_optimizer_device: nvme", .searched = false},
    {"offload_pipeline_read", optimizer_not_on_nvme, "without offload_optimizer_device nvme",
     "set offload_optimizer_device: nvme", .searched = false},
    {"offload_pipeline_write", optimizer_not_on_nvme, "without offload_optimizer_device nvme",
     "set offload_optimizer_device: nvme", .searched = false},
    {"zero_bubble_max_pending_backward", limits_nothing, "without pipeline_schedule zb-auto",
     "set pipeline_schedule: zb-auto", .searched = true},
    {"zero_bubble_adaptive_memory_limit_percentile", limit_given,
     "without pipeline_schedule zb-auto, or with zero_bubble_max_pending_backward",
     "set pipeline_schedule: zb-auto, without a number of microbatches", .searched = true},
    {"muon_tp_mode", not_muon, "without Muon", "set optimizer: muon", .searched = false},
    {"muon_num_ns_steps", not_muon, "without Muon", "set optimizer: muon", .searched = false},
    {"onebit_warmup", not_one_bit, "without a 1-bit optimizer",
     "set optimizer: onebit_adam, onebit_lamb or zero_one_adam", .searched = false},
    {"local_step_interval", not_zero_one, "without 0/1 Adam behind its warm-up", "set optimizer: zero_one_adam",
     .searched = false},
    {"galore_update_proj_gap", no_projection, "without a rank", "set galore_rank", .searched = false},
    {"galore_target_modules", no_projection, "without a rank", "set galore_rank", .searched = false},
    {"use_apollo", no_projection, "without a rank", "set galore_rank", .searched = false},
    {"galore_layerwise", no_projection, "without a rank", "set galore_rank", .searched = false},
    {"zero_quantized_weights", not_zero3, "below ZeRO-3",
     "set data_parallel_sharding_strategy: optim_grads_params (ZeRO-3)", .searched = true},
    {"zero_quantized_gradients", not_zero3, "below ZeRO-3",
     "set data_parallel_sharding_strategy: optim_grads_params (ZeRO-3)", .searched = true},
    {"zero_hpz_partition_size", not_zero3, "below ZeRO-3",
     "set data_parallel_sharding_strategy: optim_grads_params (ZeRO-3)", .searched = true},
    {"fp8_param_gather", not_narrow, "without a recipe of 8 or 4 bits",
     "set precision: fp8-current, or another of these", .searched = true},
    {"first_last_layers_bf16", not_narrow, "without a recipe of 8 or 4 bits",
     "all layers are in 16 or 32 bits already; set precision: fp8-current, or another of these", .searched = true},
    {"num_layers_at_start_in_bf16", no_wide_ends, "without first_last_layers_bf16", "set first_last_layers_bf16: true",
     .searched = false},
    {"num_layers_at_end_in_bf16", no_wide_ends, "without first_last_layers_bf16", "set first_last_layers_bf16: true",
     .searched = false},
    {"pure_low_precision", in_fp32, "in fp32", "set precision: bf16", .searched = true},
    {"expert_tensor_parallel_size", dense, "on a model without routed experts", NULL, .nothing = "1"},
    {"moe_token_dispatcher_type", dense, "on a model without routed experts", NULL, .searched = false},
    {"moe_flex_dispatcher_num_sms", dense, "on a model without routed experts", NULL, .searched = false},
    {"moe_flex_dispatcher_num_sms", no_flex, "with this dispatcher",
     "set moe_token_dispatcher_type: deepep or hybridep", .searched = true},
    {"moe_expert_capacity_factor", dense, "on a model without routed experts", NULL, .searched = false},
    {"moe_pad_expert_input_to_capacity", dense, "on a model without routed experts", NULL, .searched = false},
    {"moe_pad_expert_input_to_capacity", dropless, "without a capacity", "set moe_expert_capacity_factor",
     .searched = false, .refused = true},
    {"moe_pad_expert_input_to_capacity", deep_ep, "with this dispatcher",
     "set moe_token_dispatcher_type: alltoall or hybridep", .searched = true},
    {"moe_imbalance", dense, "on a model without routed experts", NULL, .searched = false},
    {"overlap_moe_expert_parallel_comm", dense, "on a model without routed experts", NULL, .searched = false},
    {"delay_wgrad_compute", dense, "on a model without routed experts", NULL, .searched = false},
    {"moe_shared_expert_overlap", no_shared_experts, "on a model without shared experts", NULL, .searched = false},
    {"use_transformer_engine_op_fuser", dense, "on a model without routed experts", NULL, .searched = false},
    {"masked_softmax_fusion", fused_attention, "with fused attention", "set attention_backend: unfused",
     .searched = false},
    {"attention_softmax_in_fp32", fused_attention, "with fused attention", "set attention_backend: unfused",
     .searched = false},
    {"fp32_upcast", megatrons_loss, "without loss_function cross_entropy", "set loss_function: cross_entropy",
     .searched = false},
    {"lora_base_quantization", all_trained, "without a rank", "set lora_rank (--lora-rank)", .searched = false},
    {"lora_target_modules", all_trained, "without a rank", "set lora_rank (--lora-rank)", .searched = false},
    {"use_dora", all_trained, "without a rank", "set lora_rank (--lora-rank)", .searched = false},
};

static const struct rule workload_rules[] = {
    {"length_cv", no_lengths, "without length_mean", "set length_mean: tokens of a document", .searched = false},
    {"packed", no_lengths, "without length_mean", "set length_mean: tokens of a document", .searched = false},
};

/* ---- of groups of one rank ---- */

static bool no_pipeline(const struct maq_job *job)
{
    return job->plan.pp == 1;
}

static bool no_chunks(const struct maq_job *job)
{
    return job->plan.vp == 1;
}

static bool no_tp(const struct maq_job *job)
{
    return job->plan.tp == 1;
}

static bool no_cp(const struct maq_job *job)
{
    return job->plan.cp == 1;
}

static bool no_ep(const struct maq_job *job)
{
    return job->plan.ep == 1;
}

static bool no_dp(const struct maq_job *job)
{
    return (int64_t)job->dp * job->plan.cp == 1;
}

static bool not_fused(const struct maq_job *job)
{
    return !job->plan.fused_kernels;
}

/* Allowed, since what is tried over several degrees stays the same command; they do nothing all the same. */
static const struct {
    const char *key;
    bool (*idle)(const struct maq_job *job);
} lonely[] = {
    {"overlap_p2p_comm", no_pipeline},
    {"scatter_gather_tensors_in_pipeline", no_pipeline},
    {"scatter_gather_tensors_in_pipeline", no_tp},
    {"microbatch_group_size_per_vp_stage", no_chunks},
    {"tp_comm_overlap", no_tp},
    {"cp_comm_type", no_cp},
    {"hierarchical_cp_a2a_size", no_cp},
    {"overlap_moe_expert_parallel_comm", no_ep},
    {"delay_wgrad_compute", no_ep},
    {"overlap_grad_reduce", no_dp},
    {"overlap_param_gather", no_dp},
    {"cross_entropy_loss_fusion", not_fused},
};

bool maq_setting_is_idle(const char *key, const struct maq_job *job)
{
    for (size_t i = 0; i < MAQ_COUNT(plan_rules); i++)
        if (strcmp(key, plan_rules[i].key) == 0 && plan_rules[i].idle(job))
            return true;
    for (size_t i = 0; i < MAQ_COUNT(lonely); i++)
        if (strcmp(key, lonely[i].key) == 0 && lonely[i].idle(job))
            return true;
    return false;
}

/* ---- what is given ---- */

/* The value that somebody wrote, by whatever name of the key; NULL: none. */
static const struct maq_node *written(const struct maq_node *section, const struct maq_field *field,
                                      const struct maq_field *fields)
{
    const struct maq_node *n = section && section->kind == MAQ_NODE_MAP ? section->first : NULL;
    while (n && maq_fields_find(fields, n->key) != field)
        n = n->next;
    return n && maq_node_is_null(n) ? NULL : n;
}

static bool truth(struct maq_str text)
{
    return maq_str_ieq(text, "true") || maq_str_ieq(text, "yes") || maq_str_ieq(text, "on");
}

/* Whether a value says what the table's default says, or is not a value of its own ("auto"). */
static bool says_default(const struct maq_field *field, const struct maq_node *n)
{
    double value = 0, otherwise = 0;
    struct maq_str def = maq_str_of(field->def);
    if (n->kind != MAQ_NODE_SCALAR)
        return false;
    if (maq_str_is(n->text, "auto") || maq_str_eq(n->text, def))
        return true;
    if (field->type == MAQ_TYPE_BOOL)
        return truth(n->text) == truth(def);
    if (field->type == MAQ_TYPE_ENUM && maq_str_is(def, "auto")) /* a switch: off is what there is */
        return !truth(n->text);
    if (field->type == MAQ_TYPE_ENUM)
        return maq_field_name(field, n->text) == maq_field_name(field, def);
    return maq_str_to_double(&value, n->text) && maq_str_to_double(&otherwise, def) && value >= otherwise &&
           value <= otherwise;
}

struct check {
    const struct maq_job *job;
    const struct maq_megatron *line;
    bool open;
    struct maq_diag *diag;
    enum maq_status status;
};

static bool of_the_line(const struct check *c, const char *section, const char *key)
{
    size_t n = strlen(section);
    for (size_t i = 0; c->line && i < c->line->n_overrides; i++) {
        const char *path = c->line->overrides[i].path;
        if (strncmp(path, section, n) == 0 && path[n] == '.' && strcmp(path + n + 1, key) == 0)
            return true;
    }
    return false;
}

static void check_rule(struct check *c, const char *section, const struct maq_node *map, const struct maq_field *fields,
                       const struct rule *rule)
{
    const struct maq_field *field = maq_fields_find(fields, maq_str_of(rule->key));
    MAQ_ASSERT(field);
    const struct maq_node *n = written(map, field, fields);
    bool asks =
        rule->always || (n && !says_default(field, n) && !(rule->nothing && maq_str_is(n->text, rule->nothing)));
    if (!n || n->origin < MAQ_ORIGIN_DOCUMENT || !asks || (c->open && rule->searched) ||
        (of_the_line(c, section, rule->key) && !rule->refused) || !rule->idle(c->job))
        return;
    c->status = MAQ_BAD_INPUT;
    maq_diag_add(c->diag, MAQ_ERROR, MAQ_CODE_PLAN_NO_EFFECT, n->at, rule->hint ? rule->hint : "leave it out",
                 "%s has no effect %s", rule->key, rule->why);
}

/* ---- more layers than there are ---- */

/* Layers of the largest pipeline stage. */
static int32_t largest_stage(const struct maq_job *job)
{
    int32_t most = 0;
    for (int32_t s = 0; s < job->plan.pp; s++) {
        int32_t n = 0;
        for (uint32_t v = 0; v < job->n_virtual; v++)
            n += job->virtual_stages[v].stage == s ? job->virtual_stages[v].n_layers : 0;
        most = n > most ? n : most;
    }
    return most;
}

static void check_offloaded(struct check *c, const struct maq_node *map)
{
    const struct maq_field *field = maq_fields_find(maq_plan_fields, MAQ_STR("cpu_offloading_num_layers"));
    const struct maq_node *n = written(map, field, maq_plan_fields);
    int32_t there = c->open ? (int32_t)c->job->model.num_layers : largest_stage(c->job);
    if (!n || c->job->plan.offload_layers <= there)
        return;
    c->status = MAQ_BAD_INPUT;
    maq_diag_add(c->diag, MAQ_ERROR, MAQ_CODE_PLAN_OFFLOAD, n->at, NULL,
                 "cpu_offloading_num_layers %d, but %s has %d layers", c->job->plan.offload_layers,
                 c->open || c->job->plan.pp == 1 ? "the model" : "the largest pipeline stage", there);
}

/* Adapters sit on linears; experts' are grouped products of their own. */
static void warn_of_experts(const struct check *c, const struct maq_node *map)
{
    const struct maq_field *field = maq_fields_find(maq_plan_fields, MAQ_STR("lora_rank"));
    const struct maq_node *n = written(map, field, maq_plan_fields);
    if (n && c->job->plan.lora_rank > 0 &&
        maq_model_find_module(&c->job->model, MAQ_MODULE_EXPERT_LINEAR, MAQ_PART_COUNT))
        maq_diag_add(c->diag, MAQ_WARNING, MAQ_CODE_PLAN_ADAPTERS, n->at, NULL,
                     "routed experts get no adapters here: attention%s of %s has them",
                     no_shared_experts(c->job) ? "" : " and shared experts", c->job->model.name);
}

/* Positions that a table has been learned for: behind its last row there is nothing to look up. */
static void warn_of_positions(const struct check *c, const struct maq_node *workload)
{
    const struct maq_model *m = &c->job->model;
    char hint[160];
    for (uint32_t i = 0; i < m->embedding.n_modules; i++) {
        const struct maq_module *table = &m->embedding.modules[i];
        if (table->kind != MAQ_MODULE_EMBEDDING || m->pyramid || strcmp(table->name, "position_embeddings") != 0 ||
            m->max_seq <= 0 || c->job->workload.seq <= m->max_seq)
            continue;
        maq__snprintf(hint, sizeof hint, "use seq_length %lld, or give the model a larger max_position_embeddings",
                      (long long)m->max_seq);
        maq_diag_add(c->diag, MAQ_WARNING, MAQ_CODE_PLAN_BATCH, maq_place_of(workload, "seq_length"), hint,
                     "seq_length %lld, but %s has a table of %lld learned positions: as it is it could not run",
                     (long long)c->job->workload.seq, m->name, (long long)m->max_seq);
    }
}

/* A tower is of maquette serve. */
static void warn_of_vision(const struct check *c)
{
    const struct maq_vision *v = c->job->model.vision;
    if (v)
        maq_diag_add(c->diag, MAQ_WARNING, MAQ_CODE_MODEL_TEXT_ONLY, (struct maq_span){0}, NULL,
                     "only the text model is modelled, not the vision tower '%s' of %s", v->type, c->job->model.name);
}

enum maq_status maq_job_check_effects(const struct maq_loaded_job *loaded, const struct maq_megatron *line,
                                      struct maq_diag *diag)
{
    const struct maq_job_places at = maq_job_sections(loaded);
    struct check c = {.job = maq_job_get(loaded), .line = line, .open = maq_job_is_open(loaded), .diag = diag};
    for (size_t i = 0; i < MAQ_COUNT(plan_rules); i++)
        check_rule(&c, "plan", at.plan, maq_plan_fields, &plan_rules[i]);
    for (size_t i = 0; i < MAQ_COUNT(workload_rules); i++)
        check_rule(&c, "workload", at.workload, maq_workload_fields, &workload_rules[i]);
    check_offloaded(&c, at.plan);
    warn_of_experts(&c, at.plan);
    warn_of_positions(&c, at.workload);
    warn_of_vision(&c);
    return c.status;
}
