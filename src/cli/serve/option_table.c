/* SPDX-License-Identifier: Apache-2.0 */
/* option_table.c - the options of maquette serve: names, words that they take, help; and the value of one. */
#include "cli/serve/options.h"

#include <stddef.h>
#include <string.h>

#include "cli/codes.h"

static const char *const weights[] = {"bf16", "fp8", "fp8-block", "int8", "int4", "mxfp4", "nvfp4", NULL};
static const char *const kv_types[] = {"auto", "bf16", "fp8", NULL};
static const char *const exchanges[] = {
#define EXCHANGE(id, name, what) [MAQ_EXCHANGE_##id] = name,
    MAQ_SERVE_EXCHANGE_LIST(EXCHANGE)
#undef EXCHANGE
        [MAQ_EXCHANGE_COUNT] = NULL};
static const char *const moe_backends[] = {
#define BACKEND(id, name, what) [MAQ_MOE_BACKEND_##id] = name,
    MAQ_MOE_BACKEND_LIST(BACKEND)
#undef BACKEND
        [MAQ_MOE_BACKEND_COUNT] = NULL};
static const char *const routers[] = {
#define ROUTER(id, name, what) [MAQ_ROUTER_##id] = name,
    MAQ_ROUTER_LIST(ROUTER)
#undef ROUTER
        [MAQ_ROUTER_COUNT] = NULL};
static const char *const transfers[] = {
#define TRANSFER(id, name, what) [MAQ_KV_TRANSFER_##id] = name,
    MAQ_KV_TRANSFER_LIST(TRANSFER)
#undef TRANSFER
        [MAQ_KV_TRANSFER_COUNT] = NULL};
static const char *const afd_exchanges[] = {
#define AFD_EXCHANGE(id, name, what) [MAQ_AFD_##id] = name,
    MAQ_AFD_EXCHANGE_LIST(AFD_EXCHANGE)
#undef AFD_EXCHANGE
        [MAQ_AFD_EXCHANGE_COUNT] = NULL};
static const char *const drafts[] = {
#define DRAFT(id, name, what) [MAQ_DRAFT_##id] = name,
    MAQ_DRAFT_LIST(DRAFT)
#undef DRAFT
        [MAQ_DRAFT_COUNT] = NULL};
static const char *const tier_policies[] = {"lru", "arc", NULL};
static const char *const engines[] = {"vllm", "sglang", "trtllm", NULL};
static const char *const policies[] = {"fcfs", "priority", NULL};
static const char *const capacities[] = {"guaranteed-no-evict", "max-utilization", NULL};
static const char *const front_ends[] = {"own", "dynamo", "none", NULL};
static const char *const switches[] = {"auto", "on", "off", NULL};

static const char *const placements[] = {"pack", "spread", NULL}; /* as maq_fleet_placement_name() has them */

const struct cli_option cli_serve_table[] = {
    [SERVE_MODEL] = CLI_OPTION_MODEL,
    [SERVE_CLUSTER] = CLI_OPTION_CLUSTER,
    [SERVE_SET] = CLI_OPTION_SET,
    [SERVE_PRICE] = CLI_OPTION_PRICE,
    [SERVE_TP] = {"--tp", CLI_JOB, "N", "tensor parallelism (1)", "plan.tensor_model_parallel_size", NULL},
    [SERVE_PP] = {"--pp", CLI_JOB, "N", "pipeline parallelism (1)", "plan.pipeline_model_parallel_size", NULL},
    [SERVE_DP] = {"--dp", CLI_VALUE, "N",
                  "attention data parallelism: so many TP groups, each with requests and a cache of its own, share the "
                  "experts (1)",
                  NULL, NULL},
    [SERVE_EP] = {"--ep", CLI_VALUE, "N",
                  "of the ranks (tp x dp, or of FFN), so many spread the experts; the rest cut them (1; with --dp "
                  "or --afd-ffn-ranks all)",
                  NULL, NULL},
    [SERVE_EXCHANGE] = {"--expert-exchange", CLI_VALUE, "NAME",
                        "how tokens reach experts with --dp (auto: as the engine does)", NULL, exchanges},
    [SERVE_MOE_BACKEND] = {"--moe-backend", CLI_VALUE, "NAME",
                           "whose kernels compute experts (auto: as the engine's release does)", NULL, moe_backends},
    [SERVE_SKEW] = {"--expert-skew", CLI_VALUE, "CV",
                    "how unlike experts are in how often they are chosen, deviation over mean: fewer are read, and "
                    "ranks of --ep wait for the busiest (0: by chance alone)",
                    NULL, NULL},
    [SERVE_AFD_RANKS] = {"--afd-ffn-ranks", CLI_VALUE, "N",
                         "attention and FFN on GPUs of their own: so many more have experts and dense FFN, tp x dp "
                         "attention with the cache (0)",
                         NULL, NULL},
    [SERVE_AFD_MICRO_BATCHES] = {"--afd-micro-batches", CLI_VALUE, "N",
                                 "parts of an iteration that take turns on either side (2)", NULL, NULL},
    [SERVE_AFD_EXCHANGE] = {"--afd-exchange", CLI_VALUE, "NAME",
                            "p2p: each token once to one of these GPUs; m2n: to all that have an expert of it, and "
                            "these have routed experts alone (p2p)",
                            NULL, afd_exchanges},
    [SERVE_AFD_BANDWIDTH] = {"--afd-bandwidth", CLI_VALUE, "GB/S",
                             "between the sides, of each GPU, each way (its NICs', or its NVLink's in a domain); inf: "
                             "free",
                             NULL, NULL},
    [SERVE_REPLICAS] = {"--replicas", CLI_VALUE, "N", "so many such deployments behind a router (1)", NULL, NULL},
    [SERVE_ROUTER] = {"--router", CLI_VALUE, "NAME",
                      "to which of them a request goes (round-robin); prefix: where the most of its prompt was sent "
                      "before",
                      NULL, routers},
    [SERVE_ROUTER_REQUESTS] = {"--router-max-requests", CLI_VALUE, "N",
                               "requests of a replica that have not ended, at most; others wait at the router (any "
                               "number)",
                               NULL, NULL},
    [SERVE_ROUTER_QUEUE] = {"--router-queue", CLI_VALUE, "N",
                            "requests that wait there, at most; others are refused (any number)", NULL, NULL},
    [SERVE_PREFILL_REPLICAS] = {"--prefill-replicas", CLI_VALUE, "N",
                                "so many more compute prompts, and --replicas go on from their keys and values (0)",
                                NULL, NULL},
    [SERVE_PREFILL_TP] = {"--prefill-tp", CLI_VALUE, "N", "tensor parallelism of those (as --tp)", NULL, NULL},
    [SERVE_PREFILL_PP] = {"--prefill-pp", CLI_VALUE, "N", "pipeline parallelism (as --pp)", NULL, NULL},
    [SERVE_PREFILL_DP] = {"--prefill-dp", CLI_VALUE, "N", "attention data parallelism (as --dp)", NULL, NULL},
    [SERVE_PREFILL_EP] = {"--prefill-ep", CLI_VALUE, "N", "expert parallelism (as --ep)", NULL, NULL},
    [SERVE_PREFILL_CLUSTER] = {"--prefill-cluster", CLI_VALUE, "CLUSTER",
                               "they have a cluster of their own (--cluster; of one with two kinds of nodes the first)",
                               NULL, NULL},
    [SERVE_PREFILL_SEQS] = {"--prefill-max-num-seqs", CLI_VALUE, "N",
                            "requests that run in one of them at a time (as --max-num-seqs)", NULL, NULL},
    [SERVE_PREFILL_TOKENS] = {"--prefill-max-num-batched-tokens", CLI_VALUE, "N",
                              "tokens of their iterations (as --max-num-batched-tokens)", NULL, NULL},
    [SERVE_PREFILL_ROUTER] = {"--prefill-router", CLI_VALUE, "NAME", "to which of them a request goes (as --router)",
                              NULL, routers},
    [SERVE_KV_TRANSFER] = {"--kv-transfer", CLI_VALUE, "NAME",
                           "when keys and values go over (auto: vllm and trtllm pull, sglang chunk)", NULL, transfers},
    [SERVE_KV_BANDWIDTH] = {"--kv-transfer-bandwidth", CLI_VALUE, "GB/S",
                            "of each GPU, each way (its NICs', or its NVLink's in a domain); inf: free", NULL, NULL},
    [SERVE_LOCAL_PREFILL] = {"--max-local-prefill-length", CLI_VALUE, "N",
                             "prompts with at most so many tokens that decode has not cached are computed there (0)",
                             NULL, NULL},
    [SERVE_FAILURES] = {"--failures", CLI_VALUE, "WHAT",
                        "replicas fail: a name of maquette show failures, a file, or name and key=value pairs "
                        "(llama3,detection=10s)",
                        NULL, NULL},
    [SERVE_SPARES] = {"--spare-nodes", CLI_VALUE, "N", "nodes that stand by for those that fail (0)", NULL, NULL},
    [SERVE_PLACEMENT] = {"--placement", CLI_VALUE, "pack|spread",
                         "of replicas on nodes: one behind another, or each where fewest GPUs are taken (pack)", NULL,
                         placements},
    [SERVE_AUTOSCALE] = {"--autoscale", CLI_VALUE, "WHAT",
                         "how many of the replicas are to be there: a file (time_s,replicas; of pools "
                         "prefill_replicas, too), or a rule on their load (requests=8,least=2; of pools those that "
                         "decode)",
                         NULL, NULL},
    [SERVE_PREFILL_AUTOSCALE] = {"--prefill-autoscale", CLI_VALUE, "RULE",
                                 "the same rule of those that compute prompts, by requests whose prompts are not "
                                 "computed",
                                 NULL, NULL},
    [SERVE_START_TIME] = {"--start-time", CLI_VALUE, "TIME",
                          "until a replica that is asked for, or has its nodes back, takes requests (2min)", NULL,
                          NULL},
    [SERVE_WEIGHTS_FROM] = {"--weights-from", CLI_VALUE, "disk|peer|RATE",
                            "what it loads its weights from, on top of --start-time: drives of its nodes, as fast as "
                            "the cluster or RATE (7GB/s) says, or a replica that is there",
                            NULL, NULL},
    [SERVE_WHAT_IF] = {"--what-if", CLI_VALUE, "LIST",
                       "the same requests and failures with other options: 'replicas=4; spare-nodes=1 start-time=30s', "
                       "each beside what is asked",
                       NULL, NULL},
    [SERVE_VARY] = {"--vary", CLI_AXES, "KEY=V,V",
                    "each combination of values of options, a row each: --vary rate=2..64:x2 --vary tp=2,4,8", NULL,
                    NULL},
    [SERVE_WEIGHTS] = {"--weights", CLI_VALUE, "TYPE", "what weights are in memory and how they are multiplied (bf16)",
                       NULL, weights},
    [SERVE_EXPERT_WEIGHTS] = {"--expert-weights", CLI_VALUE, "TYPE", "of routed experts, where that is another type",
                              NULL, weights},
    [SERVE_KV_DTYPE] = {"--kv-cache-dtype", CLI_VALUE, "TYPE", "of keys and values in the cache (16 bits)", NULL,
                        kv_types},
    [SERVE_ENGINE] = {"--engine", CLI_VALUE, "NAME", "whose kernels, defaults and host times (vllm)", NULL, engines},
    [SERVE_VERSION] = {"--engine-version", CLI_VALUE, "VERSION", "of the engine (the newest that is known)", NULL,
                       NULL},
    [SERVE_FRONT_END] = {"--front-end", CLI_VALUE, "WHOSE",
                         "takes requests: the engine's (own), Dynamo's, or nobody's, of its own times", NULL,
                         front_ends},
    [SERVE_WARM] = {"--warm", CLI_FLAG, NULL,
                    "the engine has served for long: kernels that it compiles for a number of tokens are there", NULL,
                    NULL},
    [SERVE_SEQS] = {"--max-num-seqs", CLI_VALUE, "N", "requests that run at a time (by the GPU: 256 or 1,024)", NULL,
                    NULL},
    [SERVE_TOKENS] = {"--max-num-batched-tokens", CLI_VALUE, "N",
                      "tokens of an iteration (by the GPU: 2,048 to 16,384)", NULL, NULL},
    [SERVE_LEN] = {"--max-model-len", CLI_VALUE, "N", "tokens of a request, in and out (the model's)", NULL, NULL},
    [SERVE_BLOCK] = {"--block-size", CLI_VALUE, "N", "tokens of a block of the KV cache (16)", NULL, NULL},
    [SERVE_UTILIZATION] = {"--gpu-memory-utilization", CLI_VALUE, "SHARE", "of the GPU's memory (0.9)", NULL, NULL},
    [SERVE_BLOCKS] = {"--num-gpu-blocks-override", CLI_VALUE, "N", "blocks of the KV cache (as many as fit)", NULL,
                      NULL},
    [SERVE_LONG_PREFILL] = {"--long-prefill-token-threshold", CLI_VALUE, "N",
                            "tokens of one prompt in an iteration, where others are under way (0: no such limit)", NULL,
                            NULL},
    [SERVE_NO_CACHING] = {"--no-enable-prefix-caching", CLI_FLAG, NULL, "prefixes are not kept", NULL, NULL},
    [SERVE_NO_CHUNKED] = {"--no-enable-chunked-prefill", CLI_FLAG, NULL, "a prompt is computed whole, or not yet", NULL,
                          NULL},
    [SERVE_EAGER] = {"--enforce-eager", CLI_FLAG, NULL, "no CUDA graphs", NULL, NULL},
    [SERVE_POLICY] = {"--scheduling-policy", CLI_VALUE, "NAME", "who goes first (fcfs)", NULL, policies},
    [SERVE_CAPACITY] = {"--capacity-scheduler-policy", CLI_VALUE, "NAME",
                        "TensorRT-LLM: whom it takes in: who finds room to the end (guaranteed-no-evict), or now", NULL,
                        capacities},
    [SERVE_WAIT_ITERATIONS] =
        {"--batch-wait-timeout-iters", CLI_VALUE, "N",
         "TensorRT-LLM: prompts wait beside decodes for a fuller batch, at most so many iterations (0)", NULL, NULL},
    [SERVE_WAIT_SHARE] = {"--batch-wait-max-tokens-ratio", CLI_VALUE, "SHARE",
                          "what a full one is, of --max-num-batched-tokens (0: any)", NULL, NULL},
    [SERVE_ASYNC] = {"--async-scheduling", CLI_VALUE, "auto|on|off",
                     "the next iteration is prepared while one runs (auto: as the engine's version does)", NULL,
                     switches},
    [SERVE_TEMPERATURE] = {"--temperature", CLI_VALUE, "T",
                           "at which all requests are sampled (0: the likeliest token)", NULL, NULL},
    [SERVE_TOP_P] = {"--top-p", CLI_VALUE, "P", "from the likeliest tokens with this share of the probability (1: all)",
                     NULL, NULL},
    [SERVE_TOP_K] = {"--top-k", CLI_VALUE, "K", "from the K likeliest tokens (0: all)", NULL, NULL},
    [SERVE_HOST_SIZE] = {"--kv-offloading-size", CLI_VALUE, "SIZE",
                         "memory of the host for keys and values, of each TP group: 64GiB (0: none)", NULL, NULL},
    [SERVE_HOST_POLICY] = {"--kv-offloading-policy", CLI_VALUE, "lru|arc", "what it forgets first (lru)", NULL,
                           tier_policies},
    [SERVE_HOST_CHUNK] = {"--kv-offloading-blocks-per-chunk", CLI_VALUE, "N",
                          "blocks that are stored and loaded as one (1)", NULL, NULL},
    [SERVE_HOST_BANDWIDTH] = {"--kv-offloading-bandwidth", CLI_VALUE, "RATE",
                              "of a GPU to its host, each way: 50GB/s (of the device); inf: free", NULL, NULL},
    [SERVE_HOST_PROMPTS] = {"--kv-offload-prompt-only", CLI_FLAG, NULL, "what is generated is not stored", NULL, NULL},
    [SERVE_SSD_SIZE] = {"--kv-ssd-size", CLI_VALUE, "SIZE", "a drive behind it, of each TP group; inf: all that comes",
                        NULL, NULL},
    [SERVE_SSD_BANDWIDTH] = {"--kv-ssd-bandwidth", CLI_VALUE, "RATE",
                             "of the drives of a node; 12GB/s,8GB/s to read and to write", NULL, NULL},
    [SERVE_REMOTE_SIZE] = {"--kv-remote-size", CLI_VALUE, "SIZE", "a pool that all replicas share; inf: all that comes",
                           NULL, NULL},
    [SERVE_REMOTE_BANDWIDTH] = {"--kv-remote-bandwidth", CLI_VALUE, "RATE",
                                "of the pool, each way (as fast as the replicas' networks)", NULL, NULL},
    [SERVE_REMOTE_LATENCY] = {"--kv-remote-latency", CLI_VALUE, "TIME", "of a transfer to or from it (of the fabric)",
                              NULL, NULL},
    [SERVE_LORA] = {"--enable-lora", CLI_FLAG, NULL, "LoRA adapters by request", NULL, NULL},
    [SERVE_LORA_SLOTS] = {"--max-loras", CLI_VALUE, "N",
                          "adapters in a GPU at a time (1; sglang 8, none as one of them)", NULL, NULL},
    [SERVE_LORA_RANK] = {"--max-lora-rank", CLI_VALUE, "R", "rank that they have room for (16)", NULL, NULL},
    [SERVE_LORA_HOST] = {"--max-cpu-loras", CLI_VALUE, "N", "adapters in host memory (as --max-loras; sglang all)",
                         NULL, NULL},
    [SERVE_LORA_TARGETS] = {"--lora-target-modules", CLI_VALUE, "LIST",
                            "what has adapters: q_proj,v_proj or other names (all linears, with vllm routed experts)",
                            NULL, NULL},
    [SERVE_LORA_BANDWIDTH] = {"--lora-read-bandwidth", CLI_VALUE, "RATE",
                              "at which one is read that the host has not (as fast as it is copied to a GPU)", NULL,
                              NULL},
    [SERVE_ENCODER] = {"--encoder-model", CLI_VALUE, "MODEL",
                       "the vision tower that images pass, as a model of its own, or none (its vision_config's)", NULL,
                       NULL},
    [SERVE_ENCODER_MERGE] = {"--encoder-merge", CLI_VALUE, "N",
                             "patches on a side that become a token (1; Qwen2-VL 2, Gemma 3 4)", NULL, NULL},
    [SERVE_ENCODER_PATCH] = {"--encoder-patch", CLI_VALUE, "N", "pixels on a side of a patch, for --image-size (14)",
                             NULL, NULL},
    [SERVE_ENCODE_REPLICAS] = {"--encode-replicas", CLI_VALUE, "N",
                               "so many more GPUs have the vision tower, in front of replicas that have not (0)", NULL,
                               NULL},
    [SERVE_DRAFT_METHOD] = {"--speculative-method", CLI_VALUE, "NAME",
                            "speculative decoding: who drafts (draft-model, where a model is named)", NULL, drafts},
    [SERVE_DRAFT_MODEL] = {"--speculative-model", CLI_VALUE, "MODEL",
                           "the smaller model that drafts, or one whose last layer an EAGLE head is like (the model's "
                           "own)",
                           NULL, NULL},
    [SERVE_DRAFT_TOKENS] = {"--num-speculative-tokens", CLI_VALUE, "K", "drafts of a request in an iteration", NULL,
                            NULL},
    [SERVE_DRAFT_TP] = {"--speculative-tp", CLI_VALUE, "N", "ranks that a smaller model is cut over (as --tp)", NULL,
                        NULL},
    [SERVE_ACCEPTANCE] = {"--acceptance", CLI_VALUE, "SHARES",
                          "of drafts: 0.7 of each behind accepted ones, 0.8,0.6,0.4 of all verifications at each "
                          "place (as vLLM logs it), or a file with the columns position and accepted",
                          NULL, NULL},
    [SERVE_ISL] = {"--isl", CLI_VALUE, "N", "tokens of a prompt (1,024)", NULL, NULL},
    [SERVE_OSL] = {"--osl", CLI_VALUE, "N", "tokens that are generated (128)", NULL, NULL},
    [SERVE_SPREAD] = {"--length-spread", CLI_VALUE, "SHARE",
                      "lengths are drawn evenly from 1 - SHARE to 1 + SHARE times that (0)", NULL, NULL},
    [SERVE_SHARED] = {"--shared-prefix", CLI_VALUE, "N", "tokens that all prompts begin with (0)", NULL, NULL},
    [SERVE_DISTINCT] = {"--distinct-prompts", CLI_VALUE, "N",
                        "each request has one of so many prompts, drawn; what prefix caches make of that (as many as "
                        "requests)",
                        NULL, NULL},
    [SERVE_ADAPTERS] = {"--adapters", CLI_VALUE, "N", "each request asks for one of so many adapters (0)", NULL, NULL},
    [SERVE_ADAPTER_ZIPF] = {"--adapter-zipf", CLI_VALUE, "A",
                            "the k-th is asked for in proportion to 1 / k^A (0: all alike)", NULL, NULL},
    [SERVE_ADAPTER_NONE] = {"--adapter-none", CLI_VALUE, "SHARE", "of the requests ask for none (0)", NULL, NULL},
    [SERVE_IMAGES] = {"--images-per-request", CLI_VALUE, "N",
                      "images in front of the text of each prompt, beside --isl (0)", NULL, NULL},
    [SERVE_IMAGE_TOKENS] = {"--image-tokens", CLI_VALUE, "N",
                            "tokens of an image, also of a file that has `images` alone", NULL, NULL},
    [SERVE_IMAGE_SIZE] = {"--image-size", CLI_VALUE, "WxH", "or its pixels, as the model's processor takes them", NULL,
                          NULL},
    [SERVE_RATE] = {"--rate", CLI_VALUE, "R", "requests a second", NULL, NULL},
    [SERVE_BURSTINESS] = {"--burstiness", CLI_VALUE, "K",
                          "shape of the gamma distribution of their gaps: 1 is Poisson, less is burstier (1)", NULL,
                          NULL},
    [SERVE_CONCURRENCY] = {"--concurrency", CLI_VALUE, "N",
                           "instead of a rate: so many requests are under way at all times", NULL, NULL},
    [SERVE_NUMBER] = {"--num-requests", CLI_VALUE, "N", "how many (10 for each of a concurrency, else 1,000)", NULL,
                      NULL},
    [SERVE_DURATION] = {"--duration", CLI_VALUE, "TIME", "how long they come, instead: 90s, 10m, 1h", NULL, NULL},
    [SERVE_REQUESTS] = {"--requests", CLI_VALUE, "FILE",
                        "a table or lines of JSON: arrival_s, prompt, output, or the names of Azure's, Mooncake's and "
                        "benchmark clients' "
                        "files; --rate redraws when",
                        NULL, NULL},
    [SERVE_FROM] = {"--requests-from", CLI_VALUE, "TIME", "of the file those that come so long behind its first (0)",
                    NULL, NULL},
    [SERVE_SPEED] = {"--speed", CLI_VALUE, "X", "the file's requests come X times as fast (1)", NULL, NULL},
    [SERVE_SEED] = {"--seed", CLI_VALUE, "N", "of what is drawn at random (0)", NULL, NULL},
    [SERVE_BATCH] = {"--batch", CLI_VALUE, "N", "one batch of N equal requests alone: prefill, then a token at a time",
                     NULL, NULL},
    [SERVE_SLO] = {"--slo", CLI_LIST, "BOUNDS",
                   "exit status 1 where one is missed, and the goodput: 'ttft_p95<500ms, tpot_p95<40ms'; ttft, tpot, "
                   "itl or e2el, with _mean, _p50, _p90, _p95 or _p99",
                   NULL, NULL},
    [SERVE_FIND_RATE] = {"--find-rate", CLI_FLAG, NULL,
                         "the most traffic that holds --slo (without: that is served as fast as it comes), and what "
                         "becomes of it",
                         NULL, NULL},
    [SERVE_DRAWS] = {"--draws", CLI_VALUE, "N",
                     "streams of requests that --find-rate tries (6), or draws of --failures (20), for an interval",
                     NULL, NULL},
    [SERVE_POWER] = {"--power", CLI_FLAG, NULL, "watts of a GPU while it serves, and joules of a token", NULL, NULL},
    [SERVE_HTML] = CLI_OPTION_HTML,
    [SERVE_TRACE] =
        {"--trace", CLI_VALUE, "FILE",
         "timeline of iterations and requests for ui.perfetto.dev; FILE.json for Chrome's format, FILE.gz compressed",
         NULL, NULL},
    [SERVE_JSON] = {"--json", CLI_FLAG, NULL, "JSON instead of text (schema maquette.serve/1)", NULL, NULL},
    [SERVE_PER_REQUEST] = {"--per-request", CLI_VALUE, "FILE.csv", "write each request's times", NULL, NULL},
    [SERVE_OUTPUT] = CLI_OPTION_OUTPUT,
    [SERVE_SPACE] = {"--space", CLI_JOB, "KEY=V,V",
                     "values of an axis: tp, pp, dp, ep, engine, weights, kv-cache-dtype, max-num-seqs, "
                     "max-num-batched-tokens; may be given again",
                     "space", NULL},
    [SERVE_WRITE] = {"--write", CLI_VALUE, "FILE", "the best deployment as a job file for maquette serve", NULL, NULL},
    [SERVE_COMMAND] = {"--write-command", CLI_VALUE, "FILE", "the same as the engine's command line", NULL, NULL},
    [SERVE_MANIFEST] = {"--write-manifest", CLI_VALUE, "FILE", "the same as a manifest for NVIDIA Dynamo", NULL, NULL},
    [SERVE_HELM] = {"--write-helm-values", CLI_VALUE, "FILE", "the same as values of llm-d's Helm chart", NULL, NULL},
    [SERVE_NO_FRONT] = {"--no-front", CLI_FLAG, NULL, "throughput against latency is not shown", NULL, NULL},
    [SERVE_NO_POOLS] = {"--no-pools", CLI_FLAG, NULL, "prompts are computed where tokens are: no disaggregation", NULL,
                        NULL},
    [SERVE_AVAILABILITY] = {"--availability", CLI_VALUE, "X",
                            "with --failures: share of the time in which as many replicas are there as hold the bounds "
                            "(0.99)",
                            NULL, NULL},
    [SERVE_THREADS] = {"--threads", CLI_VALUE, "N", "threads (one per core); the result does not depend on it", NULL,
                       NULL},
};
_Static_assert(CLI_COUNT(cli_serve_table) == SERVE_COUNT, "an option per number");
_Static_assert(CLI_COUNT(cli_serve_table) <= CLI_OPTIONS_MAX, "a value per option");

/* ---- a value ---- */

enum maq_status cli_serve_number(struct cli *cli, double *out, int option, double least, double most, double otherwise)
{
    const char *text = cli->values[option];
    bool time = option == SERVE_DURATION || option == SERVE_FROM;
    *out = otherwise;
    if (!text)
        return MAQ_OK;
    size_t n = strlen(text);
    if (time && n > 1 && text[n - 1] == 'm') /* as benchmark clients write minutes */
        text = cli_printf(cli, "%sin", text);
    if (!text)
        return MAQ_NO_MEMORY;
    if (!maq_quantity_read(out, text, time ? MAQ_QUANTITY_TIME : MAQ_QUANTITY_NUMBER) || !(*out >= least) ||
        !(*out <= most))
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, time ? "for example 90s, 10m, 1h" : NULL,
                         "%s takes a %s from %g to %g%s, not '%.60s'", cli_serve_table[option].name,
                         time ? "time" : "number", least, most, time ? " s" : "", cli->values[option]);
    return MAQ_OK;
}

int cli_serve_word(const struct cli *cli, int option, int otherwise)
{
    const char *const *words = cli_serve_table[option].words;
    for (int i = 0; cli->values[option] && words[i]; i++)
        if (strcmp(cli->values[option], words[i]) == 0)
            return i;
    return otherwise;
}
