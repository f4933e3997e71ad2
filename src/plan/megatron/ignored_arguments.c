/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ignored_arguments.c - arguments of Megatron-LM that change neither time nor memory of a training step.
 *
 * Of megatron/training/arguments.py and megatron/training/config (core 0.12 and later): paths, logs, checkpoints, seeds,
 * learning rates, evaluation. An argument that is neither here nor in read_arguments.c is named in a warning.
 */
#include <string.h>

#include "base/check.h"
#include "plan/megatron/ignored_arguments.h"

/* A '*' at the end stands for any ending. */
static const char *const patterns[] = {
    "accumulate-allreduce-grads-in-fp32", /* what it does with --bf16 anyway */
    "adam-*",
    "adlr-*",
    "apply-layernorm-1p",
    "apply-query-key-layer-scaling",
    "apply-wd-to-qk-layernorm",
    "async-*",
    "auto-detect-ckpt-format",
    "calculate-per-token-loss",
    "check-for-*",
    "check-weight-hash-across-dp-replicas-interval",
    "ckpt-*",
    "clip-grad",
    "config-logger-dir",
    "data-args-path",
    "data-cache-path",
    "data-path",
    "data-parallel-random-init",
    "dataloader-*",
    "decoupled-*",
    "dist-ckpt-*",
    "distributed-backend",
    "distributed-timeout-*",
    "distrib-optim-*",
    "enable-exactly-numeric-match",
    "enable-experimental",
    "enable-ft-package",
    "enable-zb-runtime", /* another runtime for the same schedules */
    "end-weight-decay",
    "eod-mask-loss",
    "eval-*",
    "exit-*",
    "exp-avg-sq-dtype", /* there is one type for both moments: that of --exp-avg-dtype */
    "finetune",
    "flight-recorder-*",
    "fp8-amax-*",
    "fp8-interval",
    "fp8-margin",
    "full-validation",
    "gpu-sniff-test-interval",
    "hysteresis",
    "init-method-*",
    "initial-loss-scale",
    "iterations-to-skip",
    "lazy-mpu-init",
    "legacy-tokenizer",
    "load*",
    "local-rank",
    "log-*",
    "logging-level",
    "loss-scale*",
    "lr*",
    "manual-gc*",
    "merge-file",
    "min-loss-scale",
    "min-lr",
    "mock-data",
    "moe-aux-loss-coeff",
    "moe-enable-deepep", /* the default of --moe-token-dispatcher-type flex */
    "moe-grouped-gemm",
    "moe-per-layer-logging",
    "moe-permute-fusion",
    "moe-router-bias-update-rate",
    "moe-router-dtype",
    "moe-router-load-balancing-type",
    "moe-router-pre-softmax",
    "moe-router-score-function",
    "moe-router-topk-scaling-factor",
    "moe-z-loss-coeff",
    "mtp-loss-scaling-factor",
    "muon-coefficient-type",
    "muon-extra-scale-factor",
    "muon-fp32-matmul-prec",
    "muon-momentum",
    "muon-nesterov",
    "muon-scalar-optimizer",
    "muon-scale-mode",
    "nccl-communicator-config-path",
    "no-check-for-nan-in-loss-and-grad",
    "no-create-attention-mask-in-dataloader",
    "no-data-sharding",
    "no-load-*",
    "no-mmap-bin-files",
    "no-one-logger",
    "no-persist-layer-norm",
    "no-pre-communication-optimization",
    "no-save-*",
    "no-weight-decay-cond-type",
    "non-persistent-*",
    "norm-epsilon",
    "num-dataset-builder-threads",
    "num-workers",
    "object-storage-cache-path",
    "one-logger-*",
    "otel-*",
    "override-*",
    "per-split-data-args-path",
    "pretrained-checkpoint",
    "profile*",
    "qk-clip*",
    "record-memory-history",
    "rerun-*",
    "reset-*",
    "rope-*",
    "rotary-base",
    "rotary-interleaved",
    "rotary-scaling-factor",
    "rotary-seq-len-interpolation-factor",
    "save*",
    "seed",
    "sgd-momentum",
    "skip-train",
    "special-tokens",
    "split",
    "start-eval-at-iter",
    "start-weight-decay",
    "straggler-*",
    "te-rng-tracker",
    "tensorboard-*",
    "test-data-path",
    "test-mode",
    "tiktoken-*",
    "timing-log-*",
    "tokenizer-*",
    "tp-comm-overlap-cfg",
    "train-data-path",
    "train-iters",
    "train-samples",
    "train-sync-interval",
    "trust-remote-code",
    "use-checkpoint-*",
    "use-dist-ckpt",
    "use-gloo-process-groups",
    "use-mcore-models",
    "use-mp-args-from-checkpoint-args",
    "use-persistent-ckpt-worker",
    "use-precision-aware-optimizer", /* what makes types of moments and gradients count */
    "use-pytorch-profiler",
    "use-rope-scaling",
    "use-tokenizer-model-from-checkpoint-args",
    "valid-data-path",
    "vocab-extra-ids",
    "wandb-*",
    "wd-incr-steps",
    "weight-decay*",
    "yarn-*",
    "zero-bubble-pipeline-timers-*",
};

static bool matches(const char *pattern, struct maq_str name)
{
    size_t n = strlen(pattern);
    if (pattern[n - 1] == '*')
        return name.len >= n - 1 && strncmp(name.ptr, pattern, n - 1) == 0;
    return maq_str_is(name, pattern);
}

bool maq__megatron_says_nothing(struct maq_str name)
{
    for (size_t i = 0; i < MAQ_COUNT(patterns); i++)
        if (matches(patterns[i], name))
            return true;
    return false;
}
