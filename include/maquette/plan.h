/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - the strategy: how a model is cut over a cluster, in Megatron-LM's words.
 *
 * The degrees multiply: devices = tp * cp * dp * pp, and inside one pipeline stage devices = etp * ep * edp
 * for the routed experts. Ranks are numbered by `rank_order`, fastest first ("tp-cp-ep-dp-pp": the members of
 * a TP group are neighbours).
 *
 * Zero means "default" for every field; maq_plan_resolve() (called by maq_job_load) fills the defaults in and
 * refuses what cannot be.
 */
#ifndef MAQUETTE_PLAN_H
#define MAQUETTE_PLAN_H

#include "maquette/cluster.h"
#include "maquette/model.h"

#ifdef __cplusplus
extern "C" {
#endif

enum maq_schedule_kind {
    MAQ_SCHEDULE_AUTO, /* 1F1B, or interleaved 1F1B when there are virtual stages */
    MAQ_SCHEDULE_GPIPE,
    MAQ_SCHEDULE_1F1B,
    MAQ_SCHEDULE_INTERLEAVED,
    MAQ_SCHEDULE_ZB_H1, /* from here on backward passes are split */
    MAQ_SCHEDULE_ZB_H2,
    MAQ_SCHEDULE_ZB_1P, /* searched with the durations at hand under a limit of memory: pp microbatches, twice as many, */
    MAQ_SCHEDULE_ZB_2P,
    MAQ_SCHEDULE_ZB_AUTO, /* as many as zero_bubble_max_pending_backward says */
    MAQ_SCHEDULE_INTERLEAVED_ZB,
    MAQ_SCHEDULE_ZB_V,
    MAQ_SCHEDULE_DUALPIPE,
    MAQ_SCHEDULE_DUALPIPE_V,
    MAQ_SCHEDULE_V_MIN,
    MAQ_SCHEDULE_V_HALF,
    MAQ_SCHEDULE_COUNT
};
MAQ_API const char *maq_schedule_name(enum maq_schedule_kind kind);

enum maq_cp_comm { MAQ_CP_P2P, MAQ_CP_ALL_GATHER, MAQ_CP_A2A, MAQ_CP_A2A_P2P };
enum maq_sharding {                     /* data_parallel_sharding_strategy */
                    MAQ_SHARDING_NONE,  /* no_shard: DDP, ZeRO-0 */
                    MAQ_SHARDING_OPTIM, /* ZeRO-1: Megatron's distributed optimizer */
                    MAQ_SHARDING_GRADS, /* ZeRO-2 */
                    MAQ_SHARDING_PARAMS /* ZeRO-3, FSDP */
};
enum maq_recompute { MAQ_RECOMPUTE_NONE, MAQ_RECOMPUTE_SELECTIVE, MAQ_RECOMPUTE_FULL };
enum maq_recompute_method { MAQ_RECOMPUTE_UNIFORM, MAQ_RECOMPUTE_BLOCK };
enum maq_precision {
    MAQ_PRECISION_AUTO, /* bf16 where the device has it, fp16 otherwise */
    MAQ_PRECISION_FP32,
    MAQ_PRECISION_FP16,
    MAQ_PRECISION_BF16,
    MAQ_PRECISION_FP8_DELAYED,
    MAQ_PRECISION_FP8_CURRENT,
    MAQ_PRECISION_FP8_ROWWISE, /* a scale for each row of what is multiplied (torchao's rowwise recipe) */
    MAQ_PRECISION_FP8_BLOCKWISE,
    MAQ_PRECISION_MXFP8,
    MAQ_PRECISION_NVFP4,
    MAQ_PRECISION_COUNT
};
MAQ_API const char *maq_precision_name(enum maq_precision precision);
enum maq_dispatcher { /* moe_token_dispatcher_type */
                      MAQ_DISPATCHER_ALLTOALL,
                      MAQ_DISPATCHER_ALLGATHER,
                      MAQ_DISPATCHER_DEEPEP, /* flex: fused permute, NVLink and RDMA together, node-limited de-duplication */
                      MAQ_DISPATCHER_HYBRIDEP
};
enum maq_attention_backend {
    MAQ_ATTENTION_AUTO,
    MAQ_ATTENTION_FLASH,  /* the best fused kernels of the generation: cuDNN, FlashAttention-3 */
    MAQ_ATTENTION_FLASH2, /* FlashAttention-2, PyTorch's own */
    MAQ_ATTENTION_FLASH1, /* the first FlashAttention */
    MAQ_ATTENTION_TRITON, /* the same algorithm written in Triton */
    MAQ_ATTENTION_UNFUSED
};
enum maq_loss_function { /* whose cross-entropy: Megatron-LM's works in place, PyTorch's does not */
                         MAQ_LOSS_VOCAB_PARALLEL,
                         MAQ_LOSS_TORCH,
                         MAQ_LOSS_LINEAR, /* one operation with the product of the output layer, whose logits are never whole (Liger) */
                         MAQ_LOSS_CUT /* the same, and the backward pass computes the logits again (Cut Cross-Entropy) */
};
enum maq_selective_ac { MAQ_SELECTIVE_AC_LAYER, MAQ_SELECTIVE_AC_OP }; /* torchtitan's selective_ac_option */
/* How parameters are updated: Adam; momentum; Muon for the matrices of the layers, Adam for the rest; Lion, with one moment; Adafactor,
 * whose second moment is a sum for each row and column; LAMB; DeepSpeed's 1-bit Adam, 1-bit LAMB and 0/1 Adam, which reduce signs of
 * their momentum in place of gradients. */
enum maq_update {
    MAQ_UPDATE_ADAM,
    MAQ_UPDATE_SGD,
    MAQ_UPDATE_MUON,
    MAQ_UPDATE_LION,
    MAQ_UPDATE_ADAFACTOR,
    MAQ_UPDATE_LAMB,
    MAQ_UPDATE_ONEBIT_ADAM, /* from here on momentum is exchanged as signs */
    MAQ_UPDATE_ONEBIT_LAMB,
    MAQ_UPDATE_ZERO_ONE_ADAM
};
/* What LoRA's frozen linears are kept in: as trained; 8 bits (LLM.int8()); QLoRA's NormalFloat, its scales quantized too or not. */
enum maq_base_quantization { MAQ_BASE_NONE, MAQ_BASE_INT8, MAQ_BASE_NF4, MAQ_BASE_NF4_DOUBLE };
enum maq_muon_tp { MAQ_MUON_DUPLICATED, MAQ_MUON_BLOCKWISE }; /* Megatron Core's muon_tp_mode */
/* Parts of a layer that are CUDA graphs of their own: bits of plan.graph_scope, Megatron Core's cuda_graph_scope. */
enum maq_graphed_part {
    MAQ_GRAPH_ATTN,           /* the mixer with the norm in front */
    MAQ_GRAPH_MAMBA,          /* the same, where it is one of Mamba's or alike */
    MAQ_GRAPH_MLP,            /* a dense MLP with the norm in front */
    MAQ_GRAPH_MOE_ROUTER,     /* the norm in front of the experts, router, shared experts */
    MAQ_GRAPH_MOE_PREPROCESS, /* what prepares the exchange: no module of its own here */
    MAQ_GRAPH_MOE,            /* all of the experts' part */
    MAQ_GRAPH_COUNT
};
MAQ_API const char *maq_graphed_part_name(enum maq_graphed_part part);
/* Modules whose inputs wait on the host from forward to backward: bits of plan.offload_modules, Megatron Core's offload_modules. */
enum maq_offload_module {
    MAQ_OFFLOAD_ATTN_NORM,       /* the norm in front of attention, where it is a kernel of its own */
    MAQ_OFFLOAD_QKV_LINEAR,      /* what makes Q, K and V, with the norm where they are one */
    MAQ_OFFLOAD_CORE_ATTN,       /* Q, K and V */
    MAQ_OFFLOAD_ATTN_PROJ,       /* what attention returned */
    MAQ_OFFLOAD_MLP_NORM,        /* the norm in front of the experts */
    MAQ_OFFLOAD_EXPERT_FC1,      /* tokens of the experts */
    MAQ_OFFLOAD_MOE_ACT,         /* what goes into the activation between their products */
    MAQ_OFFLOAD_FUSED_GROUP_MLP, /* all that the experts keep */
    MAQ_OFFLOAD_COUNT
};
MAQ_API const char *maq_offload_module_name(enum maq_offload_module module);
/* Where the shards of ZeRO-3's parameters, and the optimizer's states, are while nobody uses them. */
enum maq_offload_device { MAQ_OFFLOAD_NONE, MAQ_OFFLOAD_CPU, MAQ_OFFLOAD_NVME };
MAQ_API const char *maq_offload_device_name(enum maq_offload_device device);
enum maq_module_loading { MAQ_MODULES_LAZY, MAQ_MODULES_EAGER }; /* CUDA_MODULE_LOADING */
enum maq_auto_bool { MAQ_AUTO, MAQ_OFF, MAQ_ON };

#define MAQ_MAX_STAGES 1024 /* pipeline stages times virtual stages */

struct maq_plan {
    /* degrees */
    int32_t tp, pp, cp, ep, etp, dp; /* dp: 0 = what is left */
    int32_t vp;                      /* model chunks per stage (virtual pipeline size) */
    int sequence_parallel;           /* enum maq_auto_bool: auto = tp > 1 */
    struct maq_str rank_order;       /* permutation of "tp-cp-ep-dp-pp" */
    int cp_comm;                     /* enum maq_cp_comm */
    int32_t cp_a2a;                  /* hierarchical CP: size of the inner all-to-all group */

    /* pipeline */
    int schedule;               /* enum maq_schedule_kind */
    bool account_for_embedding; /* the embedding counts as a layer in the split */
    bool account_for_loss;
    int32_t first_stage_layers, last_stage_layers; /* 0 = even */
    struct maq_str
        layout; /* Megatron's "Et*3|(tt|)*29,m|L", "4,5,5,4" (layers per virtual stage) or "balanced"; empty = even */
    bool vocab_parallel_pipeline; /* embedding and head spread over all stages (vocabulary parallelism) */
    bool disable_backward_fusion; /* vocabulary parallelism: gradients of the output layer in two passes */
    bool use_interlaced_schedule; /* vocabulary parallelism: the interlaced pipeline */
    int overlap_p2p;              /* enum maq_auto_bool: auto = with virtual stages */
    bool scatter_gather_p2p;  /* without sequence parallelism, each TP rank sends its share of what all of them hold */
    int32_t microbatch_group; /* microbatches per interleaving group; 0 = pp */
    int32_t zb_limit;         /* zb-auto: zero_bubble_max_pending_backward, microbatches of a stage; 0 = what fits */
    int32_t zb_memory_percentile; /* zb-auto without a limit: percent of the device that may be allocated */
    bool post_validation;         /* zero bubble: a stage updates and begins the next step without those behind it */

    /* data parallelism */
    int sharding;                                  /* enum maq_sharding */
    int32_t num_optimizer_instances;               /* HSDP: replicas of the sharded state; shards = dp*cp / this */
    int overlap_grad_reduce, overlap_param_gather; /* enum maq_auto_bool */
    bool reshard_after_forward; /* FSDP FULL_SHARD; false keeps parameters between forward and backward */
    bool gather_once;           /* FSDP: gather parameters once per step; gradients are reduced once, too */
    /* FSDP: gradients add up whole over the microbatches and are reduced behind the last (no_sync); where backward passes gather parameters
     * again, times are those of a reduction in each */
    bool reduce_once;
    int32_t fsdp_prefetch;    /* layers gathered ahead */
    int32_t bucket_layers;    /* layers per gradient bucket; 0 = by size */
    bool quantized_weights;   /* ZeRO++: parameters gathered in 8 bits (qwZ) */
    bool quantized_gradients; /* ZeRO++: gradients reduced in 4 bits by two all-to-alls (qgZ) */
    int32_t hpz; /* ZeRO++: ranks that share a second copy, for the backward pass (hpZ); 1 = there is none */
    double reduce_bucket_size; /* DeepSpeed: elements of the flat buffer that gradients are reduced in; 0 = none */

    /* batch */
    int32_t mbs;

    /* memory */
    int recompute;        /* enum maq_recompute */
    int recompute_method; /* enum maq_recompute_method */
    int32_t
        recompute_num_layers; /* full: layers per checkpoint (uniform) or recomputed layers per virtual stage (block) */
    struct maq_str
        recompute_stages; /* block: recomputed layers per virtual stage of each stage, "4,2,0,0"; empty = as above */
    uint32_t recompute_parts; /* selective: bit set of enum maq_part */
    int32_t offload_layers;   /* cpu_offloading_num_layers: activations of this many layers go to the host */
    bool offload_inputs;      /* fine_grained_activation_offloading: inputs of some modules of every layer do */
    uint32_t offload_modules; /* bits of enum maq_offload_module */
    int selective_ac;         /* enum maq_selective_ac */
    int loss_function;        /* enum maq_loss_function */
    bool fp32_upcast;         /* PyTorch's cross-entropy: logits become 4-byte numbers first */
    int cuda_module_loading;  /* enum maq_module_loading */
    bool expandable_segments; /* of PYTORCH_CUDA_ALLOC_CONF, and the next two; 0 = not set */
    int32_t max_split_size_mb, roundup_power2_divisions;
    double optimizer_offload; /* share of the optimizer state on the host, 0..1 */
    int offload_optimizer;    /* enum maq_offload_device: where that share is; MAQ_OFFLOAD_NONE = CPU */
    int offload_param;        /* enum maq_offload_device: shards of the parameters under ZeRO-3 */
    double offload_tile; /* sub_group_size: elements that an optimizer on NVMe reads, updates and writes at a time */
    bool offload_reads_ahead, offload_writes_behind; /* pipeline_read, pipeline_write: beside the update of a tile */

    /* the update */
    int update;          /* enum maq_update */
    int muon_tp_mode;    /* enum maq_muon_tp */
    int32_t muon_steps;  /* iterations */
    bool onebit_warmup;  /* 1-bit optimizers: a step of the first ones, in which gradients are reduced whole */
    int32_t local_steps; /* 0/1 Adam: steps from one exchange of momentum to the next */
    bool
        paged_optimizer; /* bitsandbytes: moments in managed memory, which goes to the host where the device's is short */
    int32_t galore_rank;   /* GaLore: rank of what moments are kept of; 0 = moments of all */
    int32_t galore_gap;    /* update_proj_gap: steps from one decomposition of a gradient to the next */
    bool use_apollo;       /* the projection is random, and scales the gradient instead of replacing it: APOLLO */
    bool galore_layerwise; /* each parameter is updated as soon as its gradient is there, which is freed then */
    struct maq_str galore_targets; /* comma list of module names, as lora_targets; empty = every linear of the layers */
    uint32_t galore_sites;         /* what they are in the model; derived when a job is completed */

    /* precision */
    int precision;         /* enum maq_precision */
    int grad_dtype;        /* main gradients: enum maq_dtype (FP32 default) */
    int grad_reduce_dtype; /* on the wire; MAQ_DTYPE_COUNT in a plan that is not resolved: as the wrapper has it */
    bool fp8_param_gather; /* parameters gathered in 8 bits */
    bool wide_ends;        /* first_last_layers_bf16: 8- and 4-bit recipes leave layers at both ends in 16 bits */
    int32_t wide_at_start, wide_at_end; /* how many then */
    bool fp8_output;                    /* fp8_output_proj: the head is quantized as well */
    bool fp8_attention;                 /* fp8_dot_product_attention */
    int optimizer_dtype;                /* moments: FP32 default */
    bool pure_low_precision;            /* no FP32 master weights, moments and gradients in the 16-bit type */

    /* mixture of experts */
    int dispatcher;   /* enum maq_dispatcher */
    int32_t flex_sms; /* moe_flex_dispatcher_num_sms: SMs of the kernels of deepep and hybridep; 0 = as they come */
    double capacity_factor; /* > 0: tokens over so many times the mean of an expert are dropped; 0 = dropless */
    int pads_experts;       /* with a capacity: every expert's input is padded to it, so that all shapes are known */
    double imbalance;       /* load of the busiest EP rank over the mean, >= 1, unless experts are padded */
    int overlap_ep;         /* all-to-all of one microbatch under the compute of another */
    bool overlap_shared_experts;
    bool delay_wgrad; /* delay_wgrad_compute: gradients of weights run beside the exchanges; needs overlap_ep */

    /* kernels and overlap inside a layer */
    int overlap_tp;        /* tp_comm_overlap */
    int attention_backend; /* enum maq_attention_backend */
    bool cuda_graphs;      /* no host launch cost in the layers */
    uint32_t graph_scope;  /* without it: bits of enum maq_graphed_part, one launch a layer */
    bool
        softmax_fusion; /* masked_softmax_fusion: scale, mask and softmax of unfused attention in one kernel; needs fused_kernels */
    bool
        softmax_fp32; /* attention_softmax_in_fp32: where they are not, the scores are converted for the softmax and back */
    bool fused_kernels;      /* bias+activation, bias+dropout+add, RoPE, cross-entropy in one kernel each */
    bool loss_fusion;        /* cross_entropy_loss_fusion: also needs fused_kernels */
    bool op_fuser;           /* use_transformer_engine_op_fuser: bias and clamping of experts inside their products */
    bool weight_grad_fusion; /* gradient_accumulation_fusion: wgrad GEMMs add into the main gradient */

    /* fine-tuning */
    int32_t lora_rank;           /* 0 = all parameters are trained */
    int base_quantization;       /* enum maq_base_quantization */
    struct maq_str lora_targets; /* comma list of module names; empty = the linears of attention and MLP */
    bool use_dora; /* adapters that change the direction of a weight, and a trained magnitude of each of its rows */
    uint32_t lora_sites; /* what they are in the model (plan/lora_targets.h); derived when a job is completed */
};

/* A batch of training. */
struct maq_workload {
    int64_t seq;          /* tokens per (packed or padded) sequence */
    int32_t gbs;          /* sequences per step */
    int32_t accumulation; /* microbatches of a replica in a step, as given; 0 = what gbs leaves */
    double length_mean;   /* mean length of the documents packed or padded into a sequence; 0 = seq (one document) */
    double length_cv;     /* coefficient of variation of their length (lognormal), truncated at seq */
    bool packed;          /* documents fill sequences and attend to themselves only; false = one per sequence, padded */
};

/*
 * The layers and blocks of one virtual stage, in pipeline position order: position v holds layers [first,
 * first + count). Embedding and output sit on the first and the last position (or are spread,
 * vocab_parallel_pipeline).
 */
struct maq_virtual_stage {
    uint16_t stage, chunk; /* device stage and the chunk number on it */
    int32_t first_layer, n_layers;
    bool embedding, output, mtp; /* what else it holds */
    bool redone_given;           /* its stage has a number of recomputed layers of its own: */
    int32_t redone_layers;
};

#ifdef __cplusplus
}
#endif
#endif
