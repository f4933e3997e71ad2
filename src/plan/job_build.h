/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_build.h - the steps by which a job is completed once its four sections are read. Each checks what it
 * decides and reports every fault with the place of the key that caused it (plan_at); see resolve/resolve.c,
 * layer_split.c, process_groups.c.
 */
#ifndef MAQ_PLAN_JOB_BUILD_H
#define MAQ_PLAN_JOB_BUILD_H

#include "base/arena.h"
#include "maquette/job.h"
#include "plan/keys.h"
#include "spec/doc.h"

/* Where to point when a plan value is at fault: the sections of the document (each may be NULL). */
struct maq_job_places {
    struct maq_node *plan, *workload, *model, *cluster;
    struct maq_node *list[MAQ_PLAN_LISTS];
    bool searched; /* a search has chosen the values that the document lacks, which have no place */
    /* only the costs of layers are needed: settings that need a certain order of passes are not checked */
    bool layers_only;
};

/* The value of a row by any of its names; NULL: it is not written. document_places.c */
const struct maq_node *maq_value_in(const struct maq_node *section, const struct maq_field *fields, const char *key);
/* Place of a key of the workload by any of its names: the value, else the section in its document, else nowhere. */
struct maq_span maq_place_of(const struct maq_node *workload, const char *key);
/* The same of the plan. */
struct maq_span maq_place_of_plan(const struct maq_job_places *at, const char *key);

/* Places in the document of an open job, for the plans of a search; its lists are not read again. NULL: nowhere. */
struct maq_job_places maq_job_written(const struct maq_loaded_job *open);
/* The sections of a job's document, and whether its plan is left to a search. */
struct maq_job_places maq_job_sections(const struct maq_loaded_job *loaded);
bool maq_job_is_open(const struct maq_loaded_job *loaded);
/* Memory that lives with the job. */
struct maq_arena *maq_job_arena(struct maq_loaded_job *loaded);
/* Whether the framework's profile settles a key of the plan, for this plan or for another one of the job. */
bool maq_job_framework_may_set(const struct maq_loaded_job *loaded, const char *key);

/* Defaults, degrees, precision, batch: fills plan, dp, edp, microbatches, dtypes. */
enum maq_status maq_job_resolve(struct maq_job *job, const struct maq_job_places *at, struct maq_diag *diag);

/* Why an optimizer, or ZeRO++, cannot work beside the other settings; NULL: it can. *key: which setting, *remedy: what to write. */
const char *maq_optimizer_fault(const struct maq_job *job, const char **key, const char **remedy);

/* Where LoRA's adapters sit in the model, and what GaLore projects: fills plan.lora_sites and galore_sites, or says which target names nothing. */
enum maq_status maq_job_place_adapters(struct maq_job *job, const struct maq_job_places *at, struct maq_diag *diag);

/*
 * Why a plan's offload_modules are refused, by themselves or together with what else the plan recomputes or offloads, and in
 * *remedy what to do about it. Static strings; NULL: nothing is wrong. Source: Megatron Core, transformer_config.py.
 */
const char *maq_offload_fault(const struct maq_plan *plan, const char **remedy);
const char *maq_offload_conflict(const struct maq_plan *plan, const char **remedy);

/*
 * The same for overlap_moe_expert_parallel_comm and delay_wgrad_compute in a resolved plan. The former needs passes of two microbatches that can overlap: without a
 * pipeline, with virtual stages, and in DualPipe (which Megatron Core does not have).
 */
const char *maq_overlap_ep_conflict(const struct maq_plan *plan, const char **remedy);
bool maq_plan_pairs_passes(const struct maq_plan *plan);
/* Whether each forward pass runs merged with a backward pass, layer by layer: Megatron Core's combined 1F1B. */
bool maq_plan_merges_passes(const struct maq_plan *plan);

/* Whether all experts are padded to a capacity, so that shapes are known beforehand: DeepEP's exchange, where there is one, cannot (Megatron Core,
 * transformer_config.py). */
bool maq_plan_knows_expert_rows(const struct maq_plan *plan);

/* The same for cuda_graph_scope. */
const char *maq_graphs_conflict(const struct maq_plan *plan, const char **remedy);

/* Whether sharding has nobody to share with in a stage of so many devices: groups of shards of one rank each, inside of experts and
 * outside. Such a plan is that without sharding, and maq_job_resolve() makes it so. */
bool maq_sharding_is_moot(const struct maq_plan *plan, const struct maq_model *model, int64_t stage_devices);

/* The attention backend on a device: that of the plan; where the plan leaves it open (node groups that differ), the best that
 * the device has. */
int maq_attention_on(const struct maq_plan *plan, const struct maq_device *device);

/* Whether a search chooses a setting, "plan.tensor_model_parallel_size". searched_keys.c */
bool maq_plan_is_searched(const char *path);

/* Whether a key of the plan does nothing in a completed job, whatever its value. no_effect.c */
bool maq_setting_is_idle(const char *key, const struct maq_job *job);

/* Tokens per sequence: the workload's, or the model's maximum up to 8192. */
int64_t maq_job_default_seq(const struct maq_job *job);

/*
 * The sections of an open job's document but its plan; of that what is no setting but a fact of the data (moe_imbalance). NULL
 * when out of memory.
 */
char *maq_job_write_around(const struct maq_loaded_job *open);

/* The whole document of a job, with its overrides, as text that reads back as the same. Owned by the caller (free()). */
char *maq_job_text(const struct maq_loaded_job *loaded);
/* A section of it alone, as the value of an option. Owned by the caller (free()); NULL when out of memory. */
char *maq_job_section_text(const struct maq_node *section);
/* Its model, and its cluster unless `cluster` is another, with a TP degree: a deployment of that. NULL when out of memory. */
char *maq_job_text_of_deployment(const struct maq_loaded_job *loaded, const struct maq_node *cluster, int32_t tp);
/* The document of a job, with its overrides; NULL when it is empty. */
const struct maq_node *maq_job_document(const struct maq_loaded_job *loaded);

/* The `search:` section of an open job, read by the search; NULL = none. Then maq_job_check_unused(). */
struct maq_node *maq_job_search_node(const struct maq_loaded_job *loaded);
/* The `rl:` section of a job, read by what predicts it; NULL = none. */
struct maq_node *maq_job_rl_node(const struct maq_loaded_job *loaded);
enum maq_status maq_job_check_unused(const struct maq_loaded_job *loaded, struct maq_diag *diag);

/* Which layers each virtual stage holds: fills n_virtual, virtual_stages. */
enum maq_status maq_job_split_layers(struct maq_job *job, const struct maq_job_places *at, struct maq_arena *arena,
                                     struct maq_diag *diag);

/* Virtual stages of a layout in Megatron's language; 0: it cannot be read. */
uint32_t maq_layout_stages(struct maq_str layout);

/* Placement of every process group and stage: fills groups, stages. */
enum maq_status maq_job_place_groups(struct maq_job *job, const struct maq_job_places *at, struct maq_arena *arena,
                                     struct maq_diag *diag);
/*
 * The same for a job of which only the first stage counts. It begins at device `first` of its nodes, which are all of one
 * kind.
 */
enum maq_status maq_job_place_stage(struct maq_job *job, uint32_t first, struct maq_arena *arena);

#endif
