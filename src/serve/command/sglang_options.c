/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sglang_options.c - the options of sglang.launch_server.
 *
 * Those of SGLang's page of them (docs/advanced_features/server_arguments.md of sgl-project/sglang, commit 004813e), with deprecated names, and those of
 * HiCache of 0.5.23 (srt/arg_groups/fields/memory.py). A release may have others: a word that is not here is refused, so that none is passed over unread.
 */
#include "base/check.h"
#include "serve/command/command.h"

static const struct maq_command_row rows[] = {
    /* ---- what serve knows ---- */
    {MAQ_TAKES_ONE, MAQ_COMMAND_MODEL, "model-path|model"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_TP, "tensor-parallel-size|tp-size|tp"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_PP, "pipeline-parallel-size|pp-size|pp"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_DP, "data-parallel-size|dp-size|dp"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_EP, "expert-parallel-size|ep-size|ep"},
    {MAQ_TAKES_NONE, MAQ_COMMAND_DP_ATTENTION, "enable-dp-attention"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_DP_ATTENTION_RANKS, "attn-dp-size|attention-data-parallel-size"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_EXCHANGE, "moe-a2a-backend"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_MOE_BACKEND, "moe-runner-backend"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_DEEPEP_MODE, "deepep-mode"},
    {MAQ_TAKES_NONE, MAQ_COMMAND_EP_ALL, "enable-ep-moe"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_DTYPE, "dtype"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_QUANTIZATION, "quantization"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_KV_DTYPE, "kv-cache-dtype"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_LEN, "context-length"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_SEQS, "max-running-requests"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_CHUNK, "chunked-prefill-size"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_BLOCK, "page-size"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_POOL, "max-total-tokens"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_STATIC_SHARE, "mem-fraction-static"},
    {MAQ_TAKES_NONE, MAQ_COMMAND_NO_CACHING, "disable-radix-cache"},
    {MAQ_TAKES_NONE, MAQ_COMMAND_EAGER, "disable-cuda-graph"},
    {MAQ_TAKES_NONE, MAQ_COMMAND_NO_ASYNC, "disable-overlap-schedule"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_POLICY, "schedule-policy"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_CONSERVATIVENESS, "schedule-conservativeness"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_EVICTION, "radix-eviction-policy"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_MAX_PREFILL, "max-prefill-tokens"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_PREFILL_REQUESTS, "prefill-max-requests"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_RECV_INTERVAL, "scheduler-recv-interval"},
    {MAQ_TAKES_NONE, MAQ_COMMAND_LORA, "enable-lora"},
    {MAQ_TAKES_SOME, MAQ_COMMAND_LORA, "lora-paths"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_LORA_SLOTS, "max-loras-per-batch"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_LORA_RANK, "max-lora-rank"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_RESERVED_DECODE, "num-reserved-decode-tokens"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_GRAPH_REQUESTS, "cuda-graph-max-bs|cuda-graph-max-bs-decode"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_PREFILL_GRAPH_TOKENS, "piecewise-cuda-graph-max-tokens|cuda-graph-max-bs-prefill"},
    {MAQ_TAKES_NONE, MAQ_COMMAND_NO_PREFILL_GRAPH, "disable-piecewise-cuda-graph|disable-prefill-cuda-graph"},
    {MAQ_TAKES_NONE, MAQ_COMMAND_MIXED, "enable-mixed-chunk"},
    {MAQ_TAKES_NONE, MAQ_COMMAND_BY_PRIORITY, "enable-priority-scheduling"},
    {MAQ_TAKES_NONE, MAQ_COMMAND_LOW_FIRST, "schedule-low-priority-values-first"},
    {MAQ_TAKES_NONE, MAQ_COMMAND_NO_PREEMPTION, "disable-priority-preemption"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_PREEMPTS_BY, "priority-scheduling-preemption-threshold"},
    {MAQ_TAKES_NONE, MAQ_COMMAND_HICACHE, "enable-hierarchical-cache"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_HICACHE_RATIO, "hicache-ratio"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_HICACHE_SIZE, "hicache-size"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_HICACHE_SHARE, "hicache-host-memory-fraction"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_HICACHE_WRITE, "hicache-write-policy"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_HICACHE_IO, "hicache-io-backend"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_HICACHE_LAYOUT, "hicache-mem-layout"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_HICACHE_MODE, "hicache-host-memory-mode"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_SPEC_METHOD, "speculative-algorithm"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_SPEC_MODEL, "speculative-draft-model-path|speculative-draft-model"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_SPEC_TOKENS, "speculative-num-steps"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_SPEC_BRANCHES, "speculative-eagle-topk"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_SPEC_VERIFIED, "speculative-num-draft-tokens"},

    /* ---- what changes the prediction and is not modelled ---- */
    {MAQ_TAKES_ONE, MAQ_COMMAND_SAID,
     "config model-impl modelopt-quant max-queued-requests "
     "swa-full-tokens-ratio "
     "prefill-delayer-max-delay-passes prefill-delayer-token-usage-low-watermark prefill-delayer-queue-min-ratio "
     "prefill-delayer-max-delay-ms attention-context-parallel-size|attn-cp-size moe-data-parallel-size|moe-dp-size "
     "pp-max-micro-batch-size pp-async-batch-depth stream-interval json-model-override-args "
     "max-loaded-loras lora-eviction-policy lora-backend max-lora-chunk-size "
     "lora-drain-wait-threshold attention-backend prefill-attention-backend decode-attention-backend sampling-backend "
     "dsa-prefill-backend|nsa-prefill-backend|nsa-prefill dsa-decode-backend|nsa-decode-backend|nsa-decode "
     "fp8-gemm-backend fp4-gemm-backend speculative-accept-threshold-single "
     "speculative-accept-threshold-acc speculative-token-map speculative-attention-mode "
     "speculative-draft-attention-backend speculative-moe-runner-backend speculative-moe-a2a-backend "
     "speculative-draft-model-quantization speculative-ngram-min-bfs-breadth speculative-ngram-max-bfs-breadth "
     "speculative-ngram-match-type speculative-ngram-max-trie-depth speculative-ngram-capacity "
     "flashinfer-mxfp4-moe-precision deepep-dispatcher-output-dtype "
     "ep-num-redundant-experts ep-dispatch-algorithm init-expert-location eplb-algorithm "
     "eplb-rebalance-num-iterations eplb-rebalance-layers-per-chunk eplb-min-rebalancing-utilization-threshold "
     "deepep-config moe-dense-tp-size elastic-ep-backend max-mamba-cache-size mamba-ssm-dtype mamba-full-memory-ratio "
     "mamba-scheduler-strategy mamba-track-interval hicache-storage-backend hicache-storage-prefetch-policy "
     "hicache-storage-backend-extra-config "
     "hierarchical-sparse-attention-extra-config kt-weight-path kt-method kt-cpuinfer kt-threadpool-count "
     "kt-num-gpu-experts kt-max-deferred-experts-per-token dllm-algorithm dllm-algorithm-config cpu-offload-gb "
     "offload-group-size offload-num-in-group offload-prefetch-step offload-mode "
     "tbo-token-distribution-threshold piecewise-cuda-graph-tokens piecewise-cuda-graph-compiler torch-compile-max-bs "
     "torchao-config triton-attention-num-kv-splits triton-attention-split-tile-size "
     "num-continuous-decode-steps dsa-prefill-cp-mode|nsa-prefill-cp-mode "
     "dynamic-batch-tokenizer-batch-size dynamic-batch-tokenizer-batch-timeout disaggregation-mode "
     "disaggregation-transfer-backend disaggregation-decode-polling-interval "
     "pdmux-config-path sm-group-num hybrid-kvcache-ratio forward-hooks tokenizer-worker-num"},
    {MAQ_TAKES_SOME, MAQ_COMMAND_SAID, "lora-target-modules cuda-graph-bs"},
    {MAQ_TAKES_NONE, MAQ_COMMAND_SAID,
     "skip-tokenizer-init is-embedding enable-fp32-lm-head quantize-and-serve enable-quant-communications "
     "enable-dynamic-chunking disable-hybrid-swa-memory "
     "enable-prefill-delayer enable-lora-overlap-loading enable-multi-layer-eagle "
     "enable-flashinfer-allreduce-fusion enable-aiter-allreduce-fusion enable-fused-grouped-gemm-combine enable-eplb "
     "enable-elastic-expert-backup enable-deepep-waterfill enable-lmcache "
     "disable-cuda-graph-padding enable-nccl-nvls enable-symm-mem disable-flashinfer-cutlass-moe-fp4-allgather "
     "disable-custom-all-reduce enable-mscclpp enable-torch-symm-mem "
     "enable-dp-lm-head enable-two-batch-overlap enable-single-batch-overlap enable-torch-compile "
     "enforce-piecewise-cuda-graph triton-attention-reduce-in-fp32 "
     "flashinfer-mla-disable-ragged disable-shared-experts-fusion disable-chunked-prefix-cache "
     "enable-return-hidden-states enable-return-routed-experts enable-deterministic-inference "
     "enable-attn-tp-input-scattered enable-dsa-prefill-context-parallel|enable-nsa-prefill-context-parallel "
     "enable-fused-qk-norm-rope enable-dynamic-batch-tokenizer disaggregation-decode-enable-offload-kvcache "
     "encoder-only enable-pdmux enable-deepep-moe enable-flashinfer-cutlass-moe enable-flashinfer-cutedsl-moe "
     "enable-flashinfer-trtllm-moe enable-triton-kernel-moe enable-flashinfer-mxfp4-moe disable-flashinfer-autotune"},

    /* ---- what changes nothing that is predicted ---- */
    {MAQ_TAKES_ONE, MAQ_COMMAND_PASSED,
     "tokenizer-path tokenizer-mode load-format model-loader-extra-config revision host port fastapi-root-path warmups "
     "nccl-port quantization-param-path modelopt-checkpoint-restore-path modelopt-checkpoint-save-path "
     "modelopt-export-path rl-quant-profile device random-seed constrained-json-whitespace-pattern watchdog-timeout "
     "soft-watchdog-timeout dist-timeout download-dir base-gpu-id gpu-id-step custom-sigquit-handler log-level "
     "log-level-http log-requests-level log-requests-format crash-dump-folder tokenizer-metrics-custom-labels-header "
     "gc-warning-threshold-secs decode-log-interval kv-events-config otlp-traces-endpoint export-metrics-to-file-dir "
     "api-key admin-api-key served-model-name weight-version chat-template hf-chat-template-name completion-template "
     "file-storage-path reasoning-parser tool-call-parser tool-server sampling-defaults load-balance-method "
     "dist-init-addr|nccl-init-addr nnodes node-rank preferred-sampling-params grammar-backend mm-attention-backend "
     "speculative-draft-model-revision speculative-draft-load-format expert-distribution-recorder-mode "
     "expert-distribution-recorder-buffer-size mooncake-ib-device multi-item-scoring-delimiter rl-on-policy-target "
     "debug-tensor-dump-output-folder debug-tensor-dump-layers debug-tensor-dump-input-file debug-tensor-dump-inject "
     "disaggregation-bootstrap-port disaggregation-ib-device encoder-transfer-backend "
     "weight-loader-prefetch-num-threads remote-instance-weight-loader-seed-instance-ip "
     "remote-instance-weight-loader-seed-instance-service-port "
     "remote-instance-weight-loader-send-weights-group-ports remote-instance-weight-loader-backend "
     "mm-max-concurrent-calls mm-per-request-timeout mm-process-config limit-mm-data-per-request decrypted-config-file "
     "decrypted-draft-config-file msprobe-dump-config load-watch-interval"},
    {MAQ_TAKES_MAYBE, MAQ_COMMAND_PASSED, "model-checksum"},
    {MAQ_TAKES_SOME, MAQ_COMMAND_PASSED,
     "log-requests-target uvicorn-access-log-exclude-prefixes tokenizer-metrics-allowed-custom-labels "
     "bucket-time-to-first-token bucket-inter-token-latency bucket-e2e-request-latency prompt-tokens-buckets "
     "generation-tokens-buckets prefill-delayer-forward-passes-buckets prefill-delayer-wait-seconds-buckets numa-node "
     "encoder-urls custom-weight-loader"},
    {MAQ_TAKES_NONE, MAQ_COMMAND_PASSED,
     "help|-h trust-remote-code enable-multimodal grpc-mode skip-server-warmup "
     "checkpoint-engine-wait-weights-before-ready abort-on-priority-when-disabled incremental-streaming-output "
     "constrained-json-disable-any-whitespace sleep-on-idle log-requests show-time-cost enable-metrics "
     "enable-mfu-metrics enable-metrics-for-all-schedulers collect-tokens-histogram "
     "enable-request-time-stats-logging enable-trace export-metrics-to-file enable-cache-report "
     "enable-expert-distribution-metrics elastic-ep-rejoin enable-profile-cuda-graph enable-cudagraph-gc "
     "enable-layerwise-nvtx-marker enable-tokenizer-batch-encode disable-tokenizer-batch-decode "
     "disable-outlines-disk-cache enable-torch-compile-debug-mode enable-nan-detection enable-p2p-check "
     "delete-ckpt-after-loading enable-memory-saver enable-weights-cpu-backup enable-draft-weights-cpu-backup "
     "allow-auto-truncate enable-custom-logit-processor disable-fast-image-processor keep-mm-feature-on-device "
     "enable-precise-embedding-interpolation language-only weight-loader-disable-mmap "
     "weight-loader-prefetch-checkpoints remote-instance-weight-loader-start-seed-via-transfer-engine "
     "enable-broadcast-mm-inputs-process mm-enable-dp-encoder enable-mm-global-cache enable-prefix-mm-cache "
     "prefill-round-robin-balance crash-on-nan"},
};

const struct maq_command_engine maq__command_sglang = {
    .engine = MAQ_ENGINE_SGLANG, .name = "SGLang", .prefixes = true, .rows = rows, .n_rows = MAQ_COUNT(rows)};
