/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - the options of `maquette serve`: a deployment, its engine's limits, its requests. */
#ifndef MAQ_CLI_SERVE_OPTIONS_H
#define MAQ_CLI_SERVE_OPTIONS_H

#include "cli/cli.h"
#include "maquette/serve_command.h"
#include "maquette/serve_fleet.h"

enum {
    SERVE_MODEL,
    SERVE_CLUSTER,
    SERVE_SET,
    SERVE_PRICE,
    SERVE_TP,
    SERVE_PP,
    SERVE_DP,
    SERVE_EP,
    SERVE_EXCHANGE,
    SERVE_MOE_BACKEND,
    SERVE_SKEW,
    SERVE_AFD_RANKS,
    SERVE_AFD_MICRO_BATCHES,
    SERVE_AFD_EXCHANGE,
    SERVE_AFD_BANDWIDTH,
    SERVE_REPLICAS,
    SERVE_ROUTER,
    SERVE_ROUTER_REQUESTS,
    SERVE_ROUTER_QUEUE,
    SERVE_PREFILL_REPLICAS,
    SERVE_PREFILL_TP,
    SERVE_PREFILL_PP,
    SERVE_PREFILL_DP,
    SERVE_PREFILL_EP,
    SERVE_PREFILL_CLUSTER,
    SERVE_PREFILL_SEQS,
    SERVE_PREFILL_TOKENS,
    SERVE_PREFILL_ROUTER,
    SERVE_KV_TRANSFER,
    SERVE_KV_BANDWIDTH,
    SERVE_LOCAL_PREFILL,
    SERVE_FAILURES,
    SERVE_SPARES,
    SERVE_PLACEMENT,
    SERVE_AUTOSCALE,
    SERVE_PREFILL_AUTOSCALE,
    SERVE_START_TIME,
    SERVE_WEIGHTS_FROM,
    SERVE_WHAT_IF,
    SERVE_VARY,
    SERVE_WEIGHTS,
    SERVE_EXPERT_WEIGHTS,
    SERVE_KV_DTYPE,
    SERVE_ENGINE,
    SERVE_VERSION,
    SERVE_FRONT_END,
    SERVE_WARM,
    SERVE_SEQS,
    SERVE_TOKENS,
    SERVE_LEN,
    SERVE_BLOCK,
    SERVE_UTILIZATION,
    SERVE_BLOCKS,
    SERVE_LONG_PREFILL,
    SERVE_NO_CACHING,
    SERVE_NO_CHUNKED,
    SERVE_EAGER,
    SERVE_POLICY,
    SERVE_CAPACITY,
    SERVE_WAIT_ITERATIONS,
    SERVE_WAIT_SHARE,
    SERVE_ASYNC,
    SERVE_TEMPERATURE,
    SERVE_TOP_P,
    SERVE_TOP_K,
    SERVE_HOST_SIZE,
    SERVE_HOST_POLICY,
    SERVE_HOST_CHUNK,
    SERVE_HOST_BANDWIDTH,
    SERVE_HOST_PROMPTS,
    SERVE_SSD_SIZE,
    SERVE_SSD_BANDWIDTH,
    SERVE_REMOTE_SIZE,
    SERVE_REMOTE_BANDWIDTH,
    SERVE_REMOTE_LATENCY,
    SERVE_LORA,
    SERVE_LORA_SLOTS,
    SERVE_LORA_RANK,
    SERVE_LORA_HOST,
    SERVE_LORA_TARGETS,
    SERVE_LORA_BANDWIDTH,
    SERVE_ENCODER,
    SERVE_ENCODER_MERGE,
    SERVE_ENCODER_PATCH,
    SERVE_ENCODE_REPLICAS,
    SERVE_DRAFT_METHOD,
    SERVE_DRAFT_MODEL,
    SERVE_DRAFT_TOKENS,
    SERVE_DRAFT_TP,
    SERVE_ACCEPTANCE,
    SERVE_ISL,
    SERVE_OSL,
    SERVE_SPREAD,
    SERVE_SHARED,
    SERVE_DISTINCT,
    SERVE_ADAPTERS,
    SERVE_ADAPTER_ZIPF,
    SERVE_ADAPTER_NONE,
    SERVE_IMAGES,
    SERVE_IMAGE_TOKENS,
    SERVE_IMAGE_SIZE,
    SERVE_RATE,
    SERVE_BURSTINESS,
    SERVE_CONCURRENCY,
    SERVE_NUMBER,
    SERVE_DURATION,
    SERVE_REQUESTS,
    SERVE_FROM,
    SERVE_SPEED,
    SERVE_SEED,
    SERVE_BATCH,
    SERVE_SLO,
    SERVE_FIND_RATE,
    SERVE_DRAWS,
    SERVE_POWER,
    SERVE_HTML,
    SERVE_TRACE,
    SERVE_JSON,
    SERVE_PER_REQUEST,
    SERVE_OUTPUT,
    /* of `serve plan` alone */
    SERVE_SPACE,
    SERVE_WRITE,
    SERVE_COMMAND,
    SERVE_MANIFEST,
    SERVE_HELM,
    SERVE_NO_FRONT,
    SERVE_NO_POOLS,
    SERVE_AVAILABILITY,
    SERVE_THREADS,
    SERVE_COUNT
};
extern const struct cli_option cli_serve_table[];

/* What was given, as the library takes it. */
struct serve_given {
    struct maq_serve_options options;
    bool weights_said; /* options.weights and options.expert_weights are */
    struct maq_request_spec spec;
    const char *requests; /* a file; NULL = drawn at random */
    double speed, from_s;
    uint32_t replicas;
    enum maq_router router;
    struct maq_admission admission;
    enum maq_fleet_placement placement;
    bool find_rate;
    uint32_t draws; /* of requests, for --find-rate */
    int64_t batch;  /* one batch alone; 0 = not */
    struct maq_slo slo;
    /* a pool that computes prompts for the one above; 0 = none. pools.c */
    uint32_t prefill_replicas;
    struct maq_serve_options prefill;
    enum maq_router prefill_router;
    struct maq_handover handover;
    bool own_cluster;                     /* it stands on one of its own */
    struct maq_loaded_failures *failures; /* outages.c; owned by the caller, as counts is */
    struct maq_replica_count *counts;
    uint32_t n_counts, spare_nodes;
    struct maq_autoscaling_rule scaling, prefill_scaling; /* a target of 0: none */
    double start_s;
    uint32_t n_members;             /* of a fleet document, of which replicas are all; 0 = it is none. fleet.c */
    struct maq_loaded_job *drafter; /* a model that drafts, as a job; owned by the caller; NULL = none */
    struct maq_loaded_job *tower;   /* a vision tower, likewise */
    uint32_t encode_replicas;       /* GPUs that encode images for the others; 0 = none */
};

/* What --model says of the weights, by its name. */
struct serve_checkpoint {
    bool said;
    struct maq_checkpoint_name name;
};

/* The job of a deployment: model, cluster and degrees, a batch that suits them. *loaded is owned by the caller (maq_job_free). */
enum maq_status cli_serve_job(struct maq_loaded_job **loaded, struct serve_checkpoint *checkpoint, struct cli *cli);
/* The same for a search: what nobody says of the degrees is left open. */
enum maq_status cli_serve_open_job(struct maq_loaded_job **loaded, struct serve_checkpoint *checkpoint,
                                   struct cli *cli);
/* Options that the job's section `serve` has and the command line does not. job_section.c */
enum maq_status cli_serve_section(struct cli *cli, const struct maq_loaded_job *loaded);
/* What the section `serve` of a member of a fleet says of all of it, its router, requests and the like, is a fault. */
enum maq_status cli_serve_check_member(struct cli *cli, const struct maq_job_member *member);
/* The job of the options as they are. */
enum maq_status cli_serve_load(struct maq_loaded_job **loaded, struct cli *cli);

/* ---- option_table.c ---- */

/* Of an option that takes words: the place of its value among them, `otherwise` where it is not given. */
int cli_serve_word(const struct cli *cli, int option, int otherwise);
enum maq_status cli_serve_number(struct cli *cli, double *out, int option, double least, double most, double otherwise);

/* ---- requests.c ---- */

/* Which requests come, and when; `open`: of a search, which may look for how many. */
enum maq_status cli_serve_requests(struct serve_given *out, struct cli *cli, bool open);
/* How the file of --requests is read, in draw number `draw` of what is drawn. */
struct maq_request_reading cli_serve_reading(const struct serve_given *given, uint32_t draw);
/* Draw number `draw` of the requests that were asked for; of a file that says when they come there is one. */
enum maq_status cli_serve_draw(struct maq_request_set **out, struct cli *cli, const struct serve_given *given,
                               uint32_t draw);
/* The first draw; where a concurrency is kept for a time, as many requests as this fleet is sent in it. */
enum maq_status cli_serve_draw_for(struct maq_request_set **out, struct cli *cli, const struct maq_fleet *fleet,
                                   const struct serve_given *given);
/* The file says when its requests come, and nothing else does. */
bool cli_serve_is_recorded(const struct serve_given *given);

/* ---- pools.c ---- */

/* Where a cluster of two kinds of nodes is given, the first one's are prefill's: before the job is loaded. */
enum maq_status cli_serve_split_cluster(struct cli *cli);
/* What is said of the pool that computes prompts, of which `job` is the other one's; the job of it: *loaded is owned by the caller, NULL: there is no such pool. */
enum maq_status cli_serve_pools(struct serve_given *out, struct maq_loaded_job **loaded, struct cli *cli,
                                const struct maq_job *job);
/* How pools of a fleet document hand over; without roles an option that says it is a fault. */
enum maq_status cli_serve_handover(struct serve_given *out, struct cli *cli, bool roles);

/* ---- outages.c ---- */

/* What is said of replicas that come, leave and fail, once the requests are read, and who serves. */
enum maq_status cli_serve_outages(struct serve_given *out, struct cli *cli, const struct maq_fleet_member *members,
                                  uint32_t n_members);
bool cli_serve_has_outages(const struct serve_given *given);
/* How long the weights of a deployment take to load, where replicas start and something says from where; else 0. */
enum maq_status cli_serve_load_time(double *load_s, struct cli *cli, const struct maq_job *job,
                                    const struct maq_serve_options *options);
/* The fleet under them: *r is owned by the caller, *room is for what it points to. */
enum maq_status cli_serve_run_outages(struct maq_serve_result **r, struct maq_attainment *room,
                                      const struct maq_fleet *fleet, const struct maq_requests *requests,
                                      const struct serve_given *given, struct cli *cli);

/* Attention and FFN on GPUs of their own: afd.c */
enum maq_status cli_serve_afd(struct serve_given *out, struct cli *cli, bool open);
/* Adapters of LoRA, of the deployment and of requests: lora.c */
enum maq_status cli_serve_lora(struct serve_given *out, struct cli *cli);
/* Images of requests, and the tower that they pass: images.c */
/* For a search: whether the model brings its own. */
void cli_serve_own_tower(struct serve_given *out, const struct cli *cli, const struct maq_job *job);
enum maq_status cli_serve_images(struct serve_given *out, struct cli *cli, const struct maq_job *job);
/* The deployment's job with another model, cut over `tp` ranks: *loaded is owned by the caller. speculation.c */
enum maq_status cli_serve_other_model(struct maq_loaded_job **loaded, struct cli *cli, const struct maq_job *job,
                                      int option, const char *model, const char *tp, struct maq_diag *diag);
/* Tiers behind the GPU's blocks: kv_tiers.c */
enum maq_status cli_serve_tiers(struct serve_given *out, struct cli *cli);
/* Speculative decoding, once the requests are read; `open`: the model's degrees are not known, and a smaller one is whole on each rank.
 * speculation.c */
enum maq_status cli_serve_speculation(struct serve_given *out, struct cli *cli, const struct maq_job *job, bool open);
/* What a job's section `serve` cannot say: files that are written, searches, keys of the job. job_section.c */
bool cli_serve_is_of_the_line(size_t option);
enum maq_status cli_serve_options(struct serve_given *out, const struct serve_checkpoint *checkpoint, struct cli *cli,
                                  const struct maq_job *job, bool open);

#endif
