/* SPDX-License-Identifier: Apache-2.0 */
/*
 * synonyms.c - words of other programs for what maquette has: the hint when somebody writes one of them.
 *
 * "Did you mean" by letters finds slips of the pen. What stands here are words that people bring along, from Megatron-LM, DeepSpeed,
 * torchtitan, Hugging Face and torchrun, for serving from the clients of vLLM, SGLang and NVIDIA, and from other simulators; nothing in their letters says
 * what they are here. A word may stand twice: a hint that begins with an option is for the commands that have it.
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
    {"precision|dtype|quantization|quant|quant-algo|weight-dtype|gemm-quant-mode|fp8|fp4|int4|nvfp4|mxfp4",
     "--weights fp8, fp8-block, int4, mxfp4 or nvfp4; without it weights are in 16 bits, or as the checkpoint's name "
     "says"},
    {"kv-dtype|kvcache-dtype|kvcache-quant-mode|kv-cache-precision|kv-cache-type", "--kv-cache-dtype fp8"},
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
    {"config|job|yaml|f|file|job-file", "a job file stands by itself, without an option"},
    {"model-name|model-path|model-name-or-path|model-config|checkpoint|hf-model|arch", "--model NAME or a config.json"},
    {"backend|engine-name|trainer|launcher", "--framework NAME (maquette show frameworks)"},
    /* requests and who answers them */
    {"request-rate|qps|rps|requests-per-second|arrival-rate|queries-per-second", "--rate R, requests a second"},
    {"max-concurrency|users|num-users|concurrent-requests|in-flight|num-clients|concurrencies",
     "--concurrency N, requests under way at all times"},
    {"num-prompts|request-count|num-queries|n-requests|prompts", "--num-requests N"},
    {"input-len|random-input-len|input-length|input-tokens|prompt-len|prompt-tokens|prompt-length|input-seq-len|"
     "synthetic-input-tokens-mean|random-input",
     "--isl N, tokens of a prompt"},
    {"output-len|random-output-len|output-length|output-tokens|max-tokens|max-new-tokens|output-seq-len|"
     "output-tokens-mean|random-output|gen-len",
     "--osl N, tokens that are generated"},
    {"dataset|dataset-path|dataset-name|input-file|trace-file|workload|replay", "--requests FILE"},
    {"ttft|tpot|itl|sla|slos|ttft-slo|tpot-slo|itl-slo|target-ttft|target-tpot|goodput|latency|request-latency",
     "--slo 'ttft_p95<500ms, tpot_p95<40ms'"},
    {"max-batch-size|max-running-requests|max-running-seqs", "--max-num-seqs N, requests that an engine runs at once"},
    {"max-num-tokens|chunked-prefill-size|max-prefill-tokens", "--max-num-batched-tokens N, tokens of an iteration"},
    {"backend|framework|backend-name|server|inference-engine|system", "--engine vllm, sglang or trtllm"},
    {"backend-version|framework-version|vllm-version", "--engine-version 0.19.0"},
    {"instances|num-replicas|n-replicas|num-workers|workers|data-parallel-replicas", "--replicas N"},
    {"routing|routing-policy|router-policy|load-balancer|balance", "--router NAME"},
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

static bool has(const char *words, const char *name, size_t len)
{
    while (*words) {
        size_t n = strcspn(words, "|");
        if (same(words, n, name, len))
            return true;
        words += n + (words[n] == '|');
    }
    return false;
}

const char *cli_option_synonym(const char *name, size_t len, size_t *row)
{
    while (*row < CLI_COUNT(options))
        if (has(options[(*row)++].words, name, len))
            return options[*row - 1].hint;
    return NULL;
}

const char *cli_command_synonym(const char *name)
{
    for (size_t i = 0; i < CLI_COUNT(commands); i++)
        if (has(commands[i].words, name, strlen(name)))
            return commands[i].hint;
    return NULL;
}
