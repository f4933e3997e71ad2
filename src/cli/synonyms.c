/* SPDX-License-Identifier: Apache-2.0 */
/*
 * synonyms.c - words of other programs for what maquette has: the hint when somebody writes one of them.
 *
 * "Did you mean" by letters finds slips of the pen. What stands here are words that people bring along, from Megatron-LM, DeepSpeed,
 * torchtitan, Hugging Face and torchrun, and from other simulators; nothing in their letters says what they are here.
 */
#include <string.h>

#include "cli/cli.h"

/* Words between bars, '-' and '_' alike, capitals as small letters. */
static const struct meant {
    const char *words, *hint;
} options[] = {
    /* the machine */
    {"gpu|gpus|num-gpus|ngpus|n-gpus|gpu-count|num-devices|devices|device|world-size|nproc|nproc-per-node|gpus-per-"
     "node|gpu-type|"
     "accelerator|hardware|nodes|nnodes|num-nodes|n-nodes|network|nic|bandwidth|interconnect|fabric|topology",
     "the cluster says it: --cluster 'h100-sxm:8 x 4, rail 400G' is 4 nodes of 8"},
    /* the batch */
    {"global-batch|train-batch-size|global-train-batch-size|batch|bs|batch-size|total-batch-size",
     "--global-batch-size (--gbs), sequences of all GPUs in a step"},
    {"micro-batch|per-device-train-batch-size|per-gpu-batch-size|train-micro-batch-size-per-gpu|local-batch-size|"
     "device-train-microbatch-size|per-device-batch-size",
     "--micro-batch-size (--mbs), sequences of one pass"},
    {"grad-accum|num-microbatches|accumulate-grad-batches|gas",
     "--gradient-accumulation-steps, or --global-batch-size (--gbs): gbs / (mbs x dp) microbatches follow from it"},
    {"seq-len|sequence-length|seqlen|max-seq-len|max-seq-length|context-length|block-size|ctx|max-length|context|"
     "tokens",
     "--seq-length (--seq), tokens of a sequence"},
    /* numbers */
    {"bf16|fp16|fp32|fp8|dtype|torch-dtype|mixed-precision|params-dtype|param-dtype|amp|half|bfloat16|float16|"
     "quantization",
     "--precision bf16, fp16, fp8-current, ..."},
    /* parallelism */
    {"fsdp|zero3|fully-sharded|fsdp2|full-shard", "--zero 3"},
    {"ddp|distributed-data-parallel|zero0|no-shard", "--zero 0"},
    {"zero1|use-distributed-optimizer|distributed-optimizer", "--zero 1, which is the default"},
    {"zero2|shard-grad-op", "--zero 2"},
    {"stage|zero-stage|zero-optimization|sharding-strategy|fsdp-sharding-strategy|dp-shard|data-parallel-shard-degree",
     "--zero 0 to 3"},
    {"hsdp|dp-replicate|data-parallel-replicate-degree",
     "--num-distributed-optimizer-instances (--hsdp-replicas) with --zero 3"},
    {"tensor-parallel|tensor-parallel-size|tensor-parallel-degree|tp-size|tp-degree|tensor-mp-size|model-parallel-size|"
     "mp",
     "--tensor-model-parallel-size (--tp)"},
    {"pipeline-parallel|pipeline-parallel-size|pipeline-parallel-degree|pp-size|pp-degree|pipeline-stages|num-stages|"
     "pipe-parallel-size",
     "--pipeline-model-parallel-size (--pp)"},
    {"context-parallel|context-parallel-degree|cp-size|cp-degree|ring-attention|ulysses|ulysses-sequence-parallel-size",
     "--context-parallel-size (--cp), with --cp-comm-type p2p (ring) or a2a (Ulysses)"},
    {"expert-parallel|expert-parallel-size|expert-parallel-degree|ep-size|moe-expert-parallel-size",
     "--expert-model-parallel-size (--ep)"},
    {"data-parallel|data-parallel-degree|dp-size|dp-degree",
     "it follows from the cluster: GPUs / (tp x cp x pp); --dp checks it"},
    /* memory */
    {"gradient-checkpointing|activation-checkpointing|activation-checkpoint|checkpoint-activations|recompute-"
     "activations|remat|ac|"
     "activation-checkpoint-mode|recomputation|gc",
     "--recompute full, or --recompute selective"},
    {"cpu-offload|offload|offload-optimizer|optimizer-cpu-offload|zero-offload",
     "--optimizer-offload-fraction 1, --cpu-offloading-num-layers N"},
    {"flash-attn|flash-attention|use-flash-attn|attn-implementation|sdpa|attn",
     "--attention-backend flash, flash2, unfused, ..."},
    {"lora|peft|lora-r|peft-scheme|lora-alpha", "--lora-rank 16"},
    {"compile|torch-compile", "--cuda-graphs takes the host's launch costs away; --framework says whose kernels run"},
    /* what is asked for */
    {"output-json|format|json-output|as-json|json-file", "--json, with --output FILE for a file"},
    {"o|out|output-file|outfile|save", "--output FILE"},
    {"v|verbose|debug|details|show-config", "--explain lists every setting and where it came from"},
    {"timeline|profile-trace|chrome-trace|perfetto|trace-file|export-trace", "--trace FILE"},
    {"config|job|yaml|f|file|job-file", "the job file stands by itself: maquette train JOB.yaml"},
    {"model-name|model-path|model-name-or-path|model-config|checkpoint|hf-model|arch", "--model NAME or a config.json"},
    {"backend|engine-name|trainer|launcher", "--framework NAME (maquette show frameworks)"},
};

static const struct meant commands[] = {
    {"simulate|sim|predict|estimate|step|train-step|forecast|model|time|memory|run-train|pretrain|finetune|job",
     "train"},
    {"search|optimize|optimise|tune|autotune|find|best|sweep|planner|auto|parallelize", "plan"},
    {"list|ls|info|describe|catalogue|catalog|models|gpus|gpu|devices|fabrics|frameworks|schedules|failures|print|"
     "explain",
     "show"},
    {"serving|inference|infer|generate|deploy|latency|throughput|vllm|sglang|trtllm", "serve"},
    {"benchmark|bench|measure|microbenchmark|calibrate", "profile"},
    {"check|accuracy|evaluate|eval|verify|test", "validate"},
    {"compare|comparison|delta|regression", "diff"},
    {"trace|record|import|convert", "capture"},
    {"failure|failures-run|goodput|reliability|variance|uncertainty|distribution", "risk"},
    {"topology|cluster|clusters", "islands"},
};

static char folded(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c == '_' ? '-' : c;
}

static bool same(const char *word, size_t n, const char *name, size_t len)
{
    if (n != len)
        return false;
    for (size_t i = 0; i < n; i++)
        if (folded(word[i]) != folded(name[i]))
            return false;
    return true;
}

static const char *look_up(const struct meant *table, size_t rows, const char *name, size_t len)
{
    for (size_t i = 0; i < rows; i++)
        for (const char *at = table[i].words; *at;) {
            size_t n = strcspn(at, "|");
            if (same(at, n, name, len))
                return table[i].hint;
            at += n + (at[n] == '|');
        }
    return NULL;
}

const char *cli_option_synonym(const char *name, size_t len)
{
    return look_up(options, CLI_COUNT(options), name, len);
}

const char *cli_command_synonym(const char *name)
{
    return look_up(commands, CLI_COUNT(commands), name, strlen(name));
}
