/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.h - model + cluster + plan + workload (+ cost): everything a simulation needs, checked.
 *
 *   model: llama-3.1-405b                      # catalogue name, config.json, or a map
 *   cluster: h100-sxm:8 x 2048, rail 400G      # synthetic string, file, or a map
 *   plan: {tensor_model_parallel_size: 8, pipeline_model_parallel_size: 16, micro_batch_size: 1}
 *   workload: {global_batch_size: 2048, seq_length: 8192}
 *   framework: megatron-lm                     # what runs it: optional, see framework.h
 *   serve: {engine: vllm, rate: 8}             # optional: options of maquette serve, without dashes
 *   fleet: [{replicas: 2, cluster: h100-sxm:8}, {replicas: 3, cluster: a100-80gb:8}] # optional: replicas of several kinds, for maquette serve
 *   cost: {measured: kernels.db}               # optional: kernels that were measured, and who may answer
 *
 * A job is frozen once loaded: read-only, any thread.
 */
#ifndef MAQUETTE_JOB_H
#define MAQUETTE_JOB_H

#include "maquette/framework.h"
#include "maquette/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Where a pipeline stage runs. A stage that spans several kinds of device goes at the pace of the slowest and must
 * fit the smallest, because its data-parallel ranks wait for each other.
 */
struct maq_stage_place {
    uint16_t group; /* node group of its slowest device */
    uint32_t first_rank;
    double capacity_bytes;              /* of its smallest device */
    double peak_flops;                  /* mean dense peak of its devices in the recipe's matrix type */
    const struct maq_placement *groups; /* [MAQ_GROUP_COUNT] as its ranks lie */
};

/* The process groups that communication runs on; DP_CP is what gradients are reduced over. */
enum maq_group_kind {
    MAQ_GROUP_TP,
    MAQ_GROUP_CP,
    MAQ_GROUP_CP_INNER, /* hierarchical CP: the all-to-all part */
    MAQ_GROUP_CP_OUTER, /* hierarchical CP: the ring part */
    MAQ_GROUP_DP_CP,
    MAQ_GROUP_SHARD,   /* the part of DP_CP that holds one copy of the sharded state */
    MAQ_GROUP_REPLICA, /* across shard groups (HSDP) */
    MAQ_GROUP_SECOND,  /* the part of SHARD that shares a second copy of the parameters (ZeRO++) */
    MAQ_GROUP_PP,
    MAQ_GROUP_EP,
    MAQ_GROUP_ETP,
    MAQ_GROUP_EDP,   /* data parallelism of the experts */
    MAQ_GROUP_TP_CP, /* norms and routers: where a token's activations are spread */
    MAQ_GROUP_COUNT
};

struct maq_job {
    const char *name;
    struct maq_model model;
    struct maq_cluster cluster;
    struct maq_plan plan; /* resolved */
    struct maq_workload workload;
    struct maq_framework framework;
    const char
        *measured; /* file of measured kernels (`maquette profile`) that costs are looked up in first; NULL = none */
    int cost_provider; /* enum maq_provider of cost.h: the best one that may answer */
    /* derived, filled by the loader */
    int32_t dp, edp;
    int32_t microbatches;                           /* per pipeline and step */
    struct maq_placement groups[MAQ_GROUP_COUNT];   /* of the first stage */
    const struct maq_stage_place *stages;           /* [pp] */
    uint32_t n_virtual;                             /* pp * vp (2 pp for DualPipe: both directions) */
    const struct maq_virtual_stage *virtual_stages; /* in pipeline order */
    int math_dtype, store_dtype;                    /* enum maq_dtype: of quantized linears; of activations */
};

struct maq_node;       /* of a document, opaque here */
struct maq_loaded_job; /* owns a job and all it points to */

/* One `path = value` laid over the document, by any name of the setting: flag is what the user typed ("--tp", "--set"). */
struct maq_override {
    const char *flag, *path, *value;
};

/*
 * Loads a job file (path may be NULL: then the overrides are all there is). *out is owned by the caller. All
 * faults of the document are reported.
 */
MAQ_API enum maq_status maq_job_load(struct maq_loaded_job **out, const char *path,
                                     const struct maq_override *overrides, size_t n_overrides, struct maq_diag *diag);
/* The same from text; name is for messages. */
MAQ_API enum maq_status maq_job_parse(struct maq_loaded_job **out, const char *name, struct maq_str text,
                                      const struct maq_override *overrides, size_t n_overrides, struct maq_diag *diag);
/*
 * An open job, for a search: model, cluster, workload and cost are complete, the plan is as it is written (0 = the search
 * decides), and nothing is derived from it. The global batch size must be given.
 */
MAQ_API enum maq_status maq_job_load_open(struct maq_loaded_job **out, const char *path,
                                          const struct maq_override *overrides, size_t n_overrides,
                                          struct maq_diag *diag);
MAQ_API enum maq_status maq_job_parse_open(struct maq_loaded_job **out, const char *name, struct maq_str text,
                                           const struct maq_override *overrides, size_t n_overrides,
                                           struct maq_diag *diag);
/* The open job of a complete one, for a search of it: the plan as it was written. *out must not outlive `job`, whose it borrows. */
MAQ_API enum maq_status maq_job_reopen(struct maq_loaded_job **out, const struct maq_loaded_job *job,
                                       struct maq_diag *diag);

/* An open job with a plan, completed and checked. *out is owned by the caller and must not outlive `open`, whose model and
 * cluster it borrows. */
MAQ_API enum maq_status maq_job_complete(struct maq_loaded_job **out, const struct maq_loaded_job *open,
                                         const struct maq_plan *plan, struct maq_diag *diag);
/* Whether the document or a flag sets a key of the plan, by any of its names. */
MAQ_API bool maq_job_sets(const struct maq_loaded_job *loaded, const char *key);
/* Whether a flag does. */
MAQ_API bool maq_job_flag_sets(const struct maq_loaded_job *loaded, const char *key);
MAQ_API const struct maq_job *maq_job_get(const struct maq_loaded_job *loaded); /* borrowed */
MAQ_API void maq_job_free(struct maq_loaded_job *loaded);

/*
 * The document of an open job with a plan, as YAML that maquette reads: `maquette train` of it predicts that plan. What the
 * document does not say and the plan leaves at its default is left out. Owned by the caller (free()); NULL when out of memory.
 */
MAQ_API char *maq_job_write(const struct maq_loaded_job *open, const struct maq_plan *plan);
/* The same on one node group of its cluster alone; of several the job has to name them ("h100-sxm:8 x 2 + l40s:8", or a list `groups`): maq_job_names_groups(). */
MAQ_API char *maq_job_write_on(const struct maq_loaded_job *open, const struct maq_plan *plan, uint32_t group);
MAQ_API bool maq_job_names_groups(const struct maq_loaded_job *open);

/* An axis of a scan: any key of the plan by any of its names, and values as documents have them. */
struct maq_plan_axis {
    const char *key;
    const char *const *values;
    size_t n;
};
/*
 * The plans of a scan: every combination of the axes' values over the plan of an open job; the last axis changes fastest. `plans` has
 * room for them, *n_plans (may be NULL) gets their number; plans = NULL: that alone, and no value is read. All faults are said. What the
 * plans point to lives with `open`.
 */
MAQ_API enum maq_status maq_plan_grid(struct maq_plan *plans, size_t *n_plans, struct maq_loaded_job *open,
                                      const struct maq_plan_axis *axes, size_t n_axes, struct maq_diag *diag);

/* A completed job as the arguments of Megatron-LM's training scripts, one per line; what it has no argument for is left out, and
 * named by maq_framework_words(). Owned by the caller (free()); NULL when out of memory. */
MAQ_API char *maq_job_megatron_arguments(const struct maq_job *job);

/*
 * The other way round: what the arguments of a Megatron-LM training script say of a job, as overrides for maq_job_load(): all but
 * the cluster. `words` are those of the command line; the launcher and the script before the first argument are passed over.
 * Arguments that change neither time nor memory are left out, unknown ones are named in a warning, and for an `open` job (a search)
 * what the search decides is left out too. A line without --num-layers describes no model: its words on one are left out. What is set
 * points into `words`, which must outlive it. *out is the caller's (maq_megatron_free).
 */
struct maq_megatron {
    struct maq_override *overrides;
    size_t n_overrides;
};
MAQ_API enum maq_status maq_megatron_read(struct maq_megatron **out, const char *const *words, size_t n_words,
                                          bool open, struct maq_diag *diag);
/* Leaves out what the line says of the model: something else says which it is. */
MAQ_API void maq_megatron_drop_model(struct maq_megatron *read);
MAQ_API void maq_megatron_free(struct maq_megatron *read);
/* Whether a word is the name of an argument that maq_megatron_read() knows ("num-layers", without its dashes). */
MAQ_API bool maq_megatron_knows(const char *name);

/*
 * Settings of the document and of flags that change nothing beside the others (recompute_method without full recomputation): an
 * error for each, and MAQ_BAD_INPUT. Not in question: defaults, what a framework profile sets, and what `line` sets (NULL: none),
 * another program's command line, which carries such by right. Of an open job: what a search cannot change. And warnings of what
 * the job as it is written would not do: sequences longer than a table of positions, adapters of routed experts.
 */
MAQ_API enum maq_status maq_job_check_effects(const struct maq_loaded_job *loaded, const struct maq_megatron *line,
                                              struct maq_diag *diag);

/* An entry of the section `serve`: an option of `maquette serve` without its dashes. False: there are no more. Borrowed from the job. */
struct maq_serve_entry {
    struct maq_str key, value;
    bool is_text; /* else a list or a map */
    struct maq_span key_at, at;
};
MAQ_API bool maq_job_serve_entry(struct maq_serve_entry *out, const struct maq_loaded_job *loaded, size_t i);

/*
 * A member of the section `fleet`: so many replicas that are alike. Its job is the document with what the member says laid over it: of the one whose number
 * the override `fleet.member` has, without which a document with a fleet is a fault. NULL: there are no more, or no fleet. Borrowed from the job.
 */
#define MAQ_JOB_FLEET_MEMBER "fleet.member"
struct maq_job_member {
    uint32_t replicas;
    double weight;    /* of each, for routers; 0 = not said */
    int role;         /* enum maq_role of serve.h */
    bool own_cluster; /* it says its cluster; those that do not share the document's */
    struct maq_span at;
    const struct maq_node *serve; /* its own section, opaque; NULL: it has none */
};
MAQ_API const struct maq_job_member *maq_job_fleet_member(const struct maq_loaded_job *loaded, uint32_t i);
/* An entry of a member's own section `serve`, which those of the job's begin with. */
MAQ_API bool maq_job_member_serve_entry(struct maq_serve_entry *out, const struct maq_job_member *member, size_t i);

/* Every value of plan and workload with where it came from, as `key = value  (origin)` lines; owned by the
 * caller (free()). */
MAQ_API char *maq_job_explain(const struct maq_loaded_job *loaded);

/* Rows of the option table of a section ("plan", "workload"), for --help and docs: i from 0 until false, or below
 * maq_job_options(), which counts them. Strings are static. */
struct maq_option {
    const char *key, *aliases, *def, *doc;
};
MAQ_API size_t maq_job_options(const char *section);
MAQ_API bool maq_job_option(const char *section, size_t i, struct maq_option *out);

#ifdef __cplusplus
}
#endif
#endif
