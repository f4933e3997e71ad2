/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vllm_options.c - the options of `vllm serve` and of vllm.entrypoints.openai.api_server.
 *
 * Those of vLLM 0.33.0 (entrypoints/common/cli_args.py, engine/arg_utils.py), and at the end what earlier releases had. Each name, and how
 * many values it takes, is held against the real parser by tests/test_vllm_options.py, where vLLM is installed. Which of three kinds an
 * option is, is decided here: what changes neither the passes nor the scheduler nor the memory is passed over.
 */
#include "base/check.h"
#include "serve/command/command.h"

static const struct maq_command_row rows[] = {
    /* ---- what serve knows ---- */
    {MAQ_TAKES_ONE, MAQ_COMMAND_MODEL, "model"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_TP, "tensor-parallel-size|-tp"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_PP, "pipeline-parallel-size|-pp"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_DP, "data-parallel-size|-dp"},
    {MAQ_TAKES_SWITCH, MAQ_COMMAND_EP_ALL, "enable-expert-parallel|-ep"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_EXCHANGE, "all2all-backend"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_MOE_BACKEND, "moe-backend"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_DTYPE, "dtype"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_QUANTIZATION, "quantization|-q"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_KV_DTYPE, "kv-cache-dtype"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_LEN, "max-model-len"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_SEQS, "max-num-seqs"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_TOKENS, "max-num-batched-tokens"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_BLOCK, "block-size"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_BLOCKS, "num-gpu-blocks-override"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_UTILIZATION, "gpu-memory-utilization|device-memory-utilization"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_LONG_PREFILL, "long-prefill-token-threshold"},
    {MAQ_TAKES_SWITCH, MAQ_COMMAND_CACHING, "enable-prefix-caching"},
    {MAQ_TAKES_SWITCH, MAQ_COMMAND_CHUNKED, "enable-chunked-prefill"},
    {MAQ_TAKES_SWITCH, MAQ_COMMAND_EAGER, "enforce-eager"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_GRAPH_TOKENS, "max-cudagraph-capture-size"},
    {MAQ_TAKES_SWITCH, MAQ_COMMAND_ASYNC, "async-scheduling"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_POLICY, "scheduling-policy"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_SPEC_CONFIG, "speculative-config|-sc"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_SPEC_METHOD, "spec-method"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_SPEC_MODEL, "spec-model"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_SPEC_TOKENS, "spec-tokens"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_LEVEL, "optimization-level|-O"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_KV_SIZE, "kv-offloading-size"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_KV_BACKEND, "kv-offloading-backend"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_KV_CONNECTOR, "kv-transfer-config"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_ADDITIONAL, "additional-config"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_COMPILATION, "compilation-config|-cc"},
    {MAQ_TAKES_SWITCH, MAQ_COMMAND_DBO, "enable-dbo"},
    {MAQ_TAKES_SWITCH, MAQ_COMMAND_LORA, "enable-lora"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_LORA_SLOTS, "max-loras"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_LORA_RANK, "max-lora-rank"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_LORA_HOST, "max-cpu-loras"},

    /* ---- what changes the prediction and is not modelled ---- */
    {MAQ_TAKES_ONE, MAQ_COMMAND_SAID,
     "config api-server-count|-asc runner convert quantization-config hf-config-path hf-overrides "
     "model-class-overrides "
     "pooler-config model-impl attention-backend mamba-backend mamba-ssu-algorithm decode-context-parallel-size|-dcp "
     "dcp-comm-backend prefill-context-parallel-size|-pcp ubatch-size elastic-ep-max-dp-size "
     "dbo-decode-token-threshold dbo-prefill-token-threshold eplb-config expert-placement-strategy "
     "kv-cache-memory-bytes prefix-cache-retention-interval mamba-cache-dtype mamba-ssm-cache-dtype mamba-block-size "
     "prefix-match-unit mamba-cache-mode replayssm-buffer-len offload-backend "
     "cpu-offload-gb offload-group-size offload-num-in-group offload-prefetch-step lora-dtype "
     "max-num-scheduled-tokens max-num-active-seqs max-num-queued-reqs max-num-queued-tokens "
     "scheduler-cls watermark prefill-schedule-interval stream-interval ir-op-priority "
     "linear-backend sparse-indexer-topk-backend "
     "diffusion-config|-dc ec-transfer-config attention-config|-ac "
     "engram-config kernel-config performance-mode gdn-prefill-backend kda-prefill-backend "
     "kda-decode-backend dcp-kv-cache-interleave-size cp-kv-cache-interleave-size"},
    {MAQ_TAKES_SOME, MAQ_COMMAND_SAID,
     "kv-cache-dtype-skip-layers cpu-offload-params offload-params lora-target-modules "
     "cudagraph-capture-sizes logits-processors"},
    {MAQ_TAKES_SWITCH, MAQ_COMMAND_SAID,
     "enable-return-routed-experts disable-sliding-window skip-tokenizer-init dcp-q-replicate enable-hc-sp "
     "enable-batch-sharded-sampling enable-elastic-ep enable-eplb disable-custom-all-reduce "
     "kv-sharing-fast-prefill swa-bounded-replay enable-mamba-shared-prefix-checkpoint use-replayssm "
     "enable-tower-connector-lora fully-sharded-loras specialize-active-lora enable-mixed-moe-lora-format "
     "enable-moe-shared-loras long-prefill-token-threshold-adaptive disable-hybrid-kv-cache-manager monokernel "
     "tokens-only enable-scale-out"},
    {MAQ_TAKES_SWITCH, MAQ_COMMAND_SAID_OFF, "scheduler-reserve-full-isl"},

    /* ---- what changes nothing that is predicted ---- */
    {MAQ_TAKES_NONE, MAQ_COMMAND_PASSED,
     "help|-h headless grpc data-parallel-multi-port-external-lb|-dpm disable-log-stats aggregate-engine-logging"},
    {MAQ_TAKES_MAYBE, MAQ_COMMAND_PASSED, "hf-token"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_PASSED,
     "chat-template chat-template-content-format default-chat-template-kwargs reasoning-effort-map response-role "
     "tool-call-parser tool-parser-plugin tool-strict-level tool-server max-log-len sse-keep-alive-interval "
     "cohere-format "
     "anthropic-disabled-thinking-effort fingerprint-mode fingerprint-value host port grpc-port "
     "data-parallel-supervisor-port dp-supervisor-probe-interval-s dp-supervisor-probe-timeout-s "
     "dp-supervisor-probe-failure-threshold uds uvicorn-log-level disable-access-log-for-endpoints allowed-origins "
     "allowed-methods allowed-headers ssl-keyfile ssl-certfile ssl-ca-certs ssl-cert-reqs ssl-ciphers root-path "
     "middleware h11-max-incomplete-event-size h11-max-header-count tokenizer tokenizer-mode seed "
     "allowed-local-media-path revision code-revision tokenizer-revision max-logprobs logprobs-mode config-format "
     "generation-config override-generation-config sleep-mode-backend io-processor-plugin renderer-num-workers "
     "load-format download-dir safetensors-load-strategy safetensors-prefetch-num-threads "
     "safetensors-prefetch-block-size model-loader-extra-config pt-load-map-location mamba-cache-philox-rounds "
     "reasoning-parser reasoning-parser-plugin distributed-executor-backend master-addr master-port nnodes|-n "
     "node-rank|-r distributed-timeout-seconds cpu-distributed-timeout-seconds device-ids data-parallel-rank|-dpn "
     "data-parallel-start-rank|-dpr data-parallel-size-local|-dpl data-parallel-address|-dpa "
     "data-parallel-rpc-port|-dpp "
     "data-parallel-backend|-dpb dp-sync-interval max-parallel-loading-workers worker-cls worker-extension-cls "
     "fault-tolerance-config prefix-caching-hash-algo limit-mm-per-prompt media-io-kwargs mm-processor-kwargs "
     "mm-processor-cache-gb mm-processor-cache-type mm-hasher-algorithm mm-shm-cache-max-object-size-mb "
     "mm-encoder-tp-mode mm-encoder-attn-backend mm-encoder-attn-dtype mm-encoder-fp8-scale-path "
     "mm-encoder-fp8-scale-save-path mm-encoder-fp8-scale-save-margin video-pruning-rate video-pruning-method "
     "mm-tensor-ipc mm-processor-device mm-ipc-gpu-memory-gb default-mm-loras max-lora-cls-labels logging-config "
     "log-level log-config-file show-hidden-metrics-for-version otlp-traces-endpoint per-request-spec-decode-metrics "
     "kv-cache-metrics-sample custom-histogram-buckets jit-monitor-mode watermark-config kv-events-config "
     "ec-manager-config reasoning-config structured-outputs-config aux-output-config profiler-config watchdog-config "
     "weight-transfer-config shutdown-timeout"},
    {MAQ_TAKES_SOME, MAQ_COMMAND_PASSED,
     "lora-modules api-key allowed-media-domains served-model-name sleep-preserve-parameter-names ignore-patterns "
     "numa-bind-nodes "
     "numa-bind-cpus collect-detailed-traces"},
    {MAQ_TAKES_SWITCH, MAQ_COMMAND_PASSED,
     "trust-request-chat-template trust-request-mm-kwargs return-tokens-as-token-ids enable-auto-tool-choice "
     "exclude-tools-when-tool-choice-none enable-prompt-tokens-details enable-per-request-metrics "
     "enable-server-load-tracking enable-force-include-usage enable-tokenizer-info-endpoint enable-log-outputs "
     "enable-log-deltas cohere-is-reasoning-model log-error-stack disable-uvicorn-access-log allow-credentials "
     "enable-ssl-refresh enable-request-id-headers disable-fastapi-docs enable-offline-docs "
     "enable-flash-late-interaction trust-remote-code allow-deprecated-quantization return-sampling-mask "
     "use-fp64-gumbel enable-trace-replay disable-cascade-attn enable-prompt-embeds enable-sleep-mode "
     "sleep-mode-offload-cudagraph enable-cumem-allocator enable-nccl-comm-suspend use-tqdm-on-load "
     "enable-mamba-cache-stochastic-rounding numa-bind data-parallel-hybrid-lb|-dph data-parallel-external-lb|-dpe "
     "enable-ep-weight-filter enable-shm-tensor-arena disable-nccl-for-dp-synchronization ray-workers-use-nsight "
     "enable-fault-tolerance language-model-only enable-mm-embeds mm-encoder-only interleave-mm-strings "
     "skip-mm-profiling mm-device-do-normalize kv-cache-metrics cudagraph-metrics enable-layerwise-nvtx-tracing "
     "enable-mfu-metrics enable-logging-iteration-details jit-monitor-verbose disable-chunked-mm-input "
     "enable-flashinfer-autotune fail-on-environ-validation enable-log-requests"},

    /* ---- of earlier releases ---- */
    {MAQ_TAKES_ONE, MAQ_COMMAND_SPEC_MODEL, "speculative-model"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_SPEC_TOKENS, "num-speculative-tokens"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_SAID,
     "num-scheduler-steps num-lookahead-slots max-seq-len-to-capture "
     "max-context-len-to-capture scheduler-delay-factor max-num-partial-prefills max-long-partial-prefills "
     "lora-extra-vocab-size num-redundant-experts eplb-window-size eplb-step-interval"},
    {MAQ_TAKES_SOME, MAQ_COMMAND_SAID, "cuda-graph-sizes"},
    {MAQ_TAKES_NONE, MAQ_COMMAND_SAID, "disable-async-output-proc"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_PASSED,
     "swap-space task device preemption-mode guided-decoding-backend rope-scaling rope-theta tokenizer-pool-size "
     "tokenizer-pool-type logits-processor-pattern"},
    {MAQ_TAKES_NONE, MAQ_COMMAND_PASSED,
     "use-v2-block-manager worker-use-ray engine-use-ray enable-reasoning disable-frontend-multiprocessing "
     "disable-mm-preprocessor-cache enable-multimodal-encoder-data-parallel calculate-kv-scales"},
};

const struct maq_command_engine maq__command_vllm = {
    .engine = MAQ_ENGINE_VLLM, .name = "vLLM", .prefixes = true, .rows = rows, .n_rows = MAQ_COUNT(rows)};
