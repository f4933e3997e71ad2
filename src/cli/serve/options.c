/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.c - what an engine is told, and what is asked of it. Degrees are keys of a plan and go into the job (job.c).
 */
#include "cli/serve/options.h"

#include <stddef.h>
#include <string.h>

#include "cli/codes.h"

/* What is a word or a switch; what is not given is left as it is. */
static void read_words(struct maq_serve_options *o, bool weights_said, struct cli *cli)
{
    static const int modes[] = {MAQ_AUTO, MAQ_ON, MAQ_OFF};
    bool experts = weights_said && !cli->values[SERVE_WEIGHTS];
    o->exchange = (enum maq_serve_exchange)cli_serve_word(cli, SERVE_EXCHANGE, (int)o->exchange);
    o->moe_backend = (enum maq_moe_backend)cli_serve_word(cli, SERVE_MOE_BACKEND, (int)o->moe_backend);
    o->engine = (enum maq_engine)cli_serve_word(cli, SERVE_ENGINE, (int)o->engine);
    o->version = cli->values[SERVE_VERSION];
    o->weights = (enum maq_weights)cli_serve_word(cli, SERVE_WEIGHTS, (int)o->weights);
    o->expert_weights =
        (enum maq_weights)cli_serve_word(cli, SERVE_EXPERT_WEIGHTS, experts ? (int)o->expert_weights : (int)o->weights);
    o->kv_fp8 = cli_serve_word(cli, SERVE_KV_DTYPE, o->kv_fp8 ? 2 : 0) == 2;
    o->no_prefix_caching |= cli->values[SERVE_NO_CACHING] != NULL;
    o->no_chunked_prefill |= cli->values[SERVE_NO_CHUNKED] != NULL;
    o->enforce_eager |= cli->values[SERVE_EAGER] != NULL;
    o->warm |= cli->values[SERVE_WARM] != NULL;
    o->by_priority = cli_serve_word(cli, SERVE_POLICY, o->by_priority) == 1;
    o->max_utilization = cli_serve_word(cli, SERVE_CAPACITY, o->max_utilization) == 1;
    o->front_end = (uint8_t)cli_serve_word(cli, SERVE_FRONT_END, o->front_end);
    if (cli->values[SERVE_ASYNC])
        o->async_scheduling = modes[cli_serve_word(cli, SERVE_ASYNC, 0)];
}

static enum maq_status read_engine(struct serve_given *given, struct cli *cli)
{
    struct maq_serve_options *o = &given->options;
    double x;
    uint32_t n;
    enum maq_status worst = MAQ_OK, status;
    static const struct {
        int option;
        size_t at; /* an int32_t */
        uint32_t most;
    } counts[] = {
        {SERVE_DP, offsetof(struct maq_serve_options, dp), 4096},
        {SERVE_EP, offsetof(struct maq_serve_options, ep), 4096},
        {SERVE_SEQS, offsetof(struct maq_serve_options, max_num_seqs), 1 << 20},
        {SERVE_TOKENS, offsetof(struct maq_serve_options, max_num_batched_tokens), 1 << 20},
        {SERVE_BLOCK, offsetof(struct maq_serve_options, block_size), 1 << 16},
        {SERVE_LONG_PREFILL, offsetof(struct maq_serve_options, long_prefill_token_threshold), 1 << 20},
        {SERVE_WAIT_ITERATIONS, offsetof(struct maq_serve_options, batch_wait_iterations), 1 << 20},
    };
    for (size_t i = 0; i < CLI_COUNT(counts); i++) {
        int32_t *at = (int32_t *)(void *)((char *)o + counts[i].at);
        status = cli_count(cli, &n, (size_t)counts[i].option, 1, counts[i].most, (uint32_t)*at);
        *at = (int32_t)n;
        worst = cli_first_fault(worst, status);
    }
    worst = cli_first_fault(worst, cli_count(cli, &n, SERVE_LEN, 1, 1u << 30, (uint32_t)o->max_model_len));
    o->max_model_len = n;
    worst = cli_first_fault(worst, cli_count(cli, &n, SERVE_BLOCKS, 2, 1u << 28, (uint32_t)o->blocks));
    o->blocks = n;
    worst = cli_first_fault(worst, cli_serve_number(cli, &x, SERVE_WAIT_SHARE, 0, 1, o->batch_wait_share));
    o->batch_wait_share = x;
    worst = cli_first_fault(worst, cli_serve_number(cli, &o->expert_skew, SERVE_SKEW, 0, 4, o->expert_skew));
    worst = cli_first_fault(worst, cli_serve_number(cli, &o->temperature, SERVE_TEMPERATURE, 0, 100, o->temperature));
    worst = cli_first_fault(worst, cli_serve_number(cli, &o->top_p, SERVE_TOP_P, 1e-6, 1, o->top_p > 0 ? o->top_p : 1));
    worst = cli_first_fault(worst, cli_count(cli, &n, SERVE_TOP_K, 0, 1u << 30, (uint32_t)o->top_k));
    o->top_k = (int32_t)n;
    worst = cli_first_fault(worst, cli_serve_number(cli, &x, SERVE_UTILIZATION, 0.01, 1, o->gpu_memory_utilization));
    if (cli->values[SERVE_UTILIZATION])
        o->static_memory_share = o->free_memory_share = 0;
    o->gpu_memory_utilization = x;
    read_words(o, given->weights_said, cli);
    return worst;
}

/* TensorRT-LLM waits for a fuller batch where both are said, how long and how full; one alone does nothing, which its file may say all the same. */
static enum maq_status check_batch_wait(struct cli *cli, const struct maq_serve_options *o)
{
    bool iterations = o->batch_wait_iterations > 0, share = o->batch_wait_share > 0;
    const int said = iterations ? SERVE_WAIT_ITERATIONS : SERVE_WAIT_SHARE;
    const char *hint = iterations ? "add --batch-wait-max-tokens-ratio 0.9: waits while the batch has less than that"
                                  : "add --batch-wait-timeout-iters 20: waits for so many iterations at most";
    if (o->engine != MAQ_ENGINE_TRTLLM || iterations == share)
        return MAQ_OK;
    if (cli->values[said])
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, hint, "%s alone has no effect: no batch waits",
                         cli_serve_table[said].name);
    maq_diag_add(cli->diag, MAQ_WARNING, MAQ_CODE_CLI_SCHEDULER, (struct maq_span){0}, hint,
                 "%s of the engine's configuration alone has no effect: no batch waits",
                 iterations ? "batch_wait_timeout_iters" : "batch_wait_max_tokens_ratio");
    return MAQ_OK;
}

/* The likeliest token is taken where nothing is drawn: a choice of those that are drawn from says nothing then. */
static enum maq_status check_sampling(struct cli *cli, const struct maq_serve_options *o)
{
    const bool narrows[] = {o->top_p > 0 && o->top_p<1, o->top_k> 0};
    static const int options[] = {SERVE_TOP_P, SERVE_TOP_K};
    enum maq_status worst = MAQ_OK;
    for (size_t i = 0; i < CLI_COUNT(options) && o->temperature <= 0; i++)
        if (narrows[i] && cli->values[options[i]])
            worst = cli_first_fault(worst, cli_usage(cli, MAQ_CODE_CLI_VALUE, "--temperature 1",
                                                     "%s has no effect: at a temperature of 0 the likeliest token is "
                                                     "taken",
                                                     cli_serve_table[options[i]].name));
    return worst;
}

/* What a router lets in. */
static enum maq_status read_admission(struct serve_given *out, struct cli *cli)
{
    struct maq_admission *a = &out->admission;
    enum maq_status worst = cli_count(cli, &a->max_requests, SERVE_ROUTER_REQUESTS, 1, 1u << 30, 0);
    worst = cli_first_fault(worst, cli_count(cli, &a->max_waiting, SERVE_ROUTER_QUEUE, 0, 1u << 30, 0));
    a->bounded = cli->values[SERVE_ROUTER_QUEUE] != NULL;
    if (cli->values[SERVE_ROUTER_QUEUE] && !cli->values[SERVE_ROUTER_REQUESTS])
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, "--router-max-requests 64",
                         "--router-queue: replicas take all requests, and none waits at the router");
    if (cli->values[SERVE_ROUTER_REQUESTS] && (cli->values[SERVE_TRACE] || out->batch > 0))
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, "without --trace and --batch",
                         "--router-max-requests is of requests that come to a router");
    return worst;
}

/* Replicas, and how much they carry. */
static enum maq_status read_fleet(struct serve_given *out, struct cli *cli)
{
    enum maq_status worst = cli_count(cli, &out->replicas, SERVE_REPLICAS, 1, 65536, out->replicas);
    worst = cli_first_fault(
        worst, cli_count(cli, &out->draws, SERVE_DRAWS, 1, MAQ_CAPACITY_DRAWS, cli->values[SERVE_FAILURES] ? 20 : 6));
    out->router = (enum maq_router)cli_serve_word(cli, SERVE_ROUTER, (int)out->router);
    worst = cli_first_fault(worst, read_admission(out, cli));
    out->placement = (enum maq_fleet_placement)cli_serve_word(cli, SERVE_PLACEMENT, MAQ_PLACEMENT_PACK);
    if (cli->values[SERVE_PLACEMENT] && !cli->values[SERVE_FAILURES] && !cli->values[SERVE_PREFILL_REPLICAS] &&
        out->n_members == 0)
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, "--failures llama3",
                         "--placement has no effect: no node fails, and nothing goes from one replica to another");
    if (cli->values[SERVE_ROUTER] && out->replicas == 1 && out->n_members == 0 && !cli->values[SERVE_PREFILL_REPLICAS])
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, "--replicas 4", "--router: there is one replica, to which all goes");
    if (cli->values[SERVE_DRAWS] && (!out->find_rate || out->requests) && !cli->values[SERVE_FAILURES])
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, "--find-rate without --requests, or --failures",
                         "--draws: nothing is drawn more than once");
    if (out->find_rate && (out->spec.concurrency > 0 || out->spec.rate > 0 || out->batch > 0))
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, "without --rate, --concurrency and --batch",
                         "--find-rate: the rate is what is looked for");
    if ((out->find_rate || out->replicas > 1) && cli->values[SERVE_TRACE])
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, "one deployment at one rate",
                         "--trace shows one run of one deployment");
    if (out->replicas > 1 && out->batch > 0)
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, NULL, "--batch times one deployment: without --replicas");
    return worst;
}

/* What is asked of requests that come; of one batch alone there is no such figure. */
static enum maq_status read_asked(struct serve_given *out, struct cli *cli)
{
    static const int asked[] = {SERVE_SLO, SERVE_TRACE, SERVE_POWER};
    for (size_t i = 0; cli->values[SERVE_BATCH] && i < CLI_COUNT(asked); i++)
        if (cli->values[asked[i]])
            return cli_usage(cli, MAQ_CODE_CLI_VALUE, "--rate, --concurrency or --requests, in place of --batch",
                             "%s: one batch alone has no requests that wait and come", cli_serve_table[asked[i]].name);
    return cli->values[SERVE_SLO] ? maq_slo_read(&out->slo, cli->values[SERVE_SLO], cli->diag) : MAQ_OK;
}

/* What the engine's own command line says; ranks that share experts need a model that has some. */
static void read_command(struct serve_given *out, struct cli *cli, const struct maq_job *job, bool open)
{
    const struct maq_serve_command *c = cli->served;
    bool experts = maq_model_has_experts(&job->model);
    int32_t replicas = c->replicas;
    out->options = c->options;
    out->weights_said = c->weights_said;
    bool sides = c->options.afd.ffn_ranks > 0;
    if (c->dp > 1 && (experts || sides))
        out->options.dp = c->dp;
    else if (c->dp > 1)
        replicas = c->dp;
    if ((out->options.dp > 1 || sides) && out->options.ep == 0 && !open)
        out->options.ep = 1; /* as the engine cuts them where it is not told to spread them */
    if (c->expert_parallel && experts && !open)
        out->options.ep = sides ? c->options.afd.ffn_ranks : job->plan.tp * (out->options.dp > 1 ? out->options.dp : 1);
    out->replicas = replicas > 1 ? (uint32_t)replicas : 1;
    if (out->options.engine == MAQ_ENGINE_VLLM) /* its front end sends where the fewest wait and run */
        out->router = MAQ_ROUTER_LEAST_REQUESTS;
}

static void take_weights(struct serve_given *out, const struct maq_checkpoint_name *said)
{
    out->options.weights = said->weights;
    out->options.expert_weights = said->expert_weights;
    out->weights_said = true;
}

/* Where no option says in what type weights are: the checkpoint's config.json, or its name. */
static void choose_weights(struct serve_given *out, const struct serve_checkpoint *checkpoint, struct cli *cli,
                           const struct maq_job *job)
{
    struct maq_checkpoint_name said;
    if (cli->values[SERVE_WEIGHTS] || out->weights_said)
        return;
    if (maq_checkpoint_weights(&said, &job->model)) {
        take_weights(out, &said);
    } else if (job->model.quantization.method) {
        maq_diag_add(cli->diag, MAQ_WARNING, MAQ_CODE_CLI_QUANTIZATION, (struct maq_span){0},
                     "--weights fp8-block, for instance",
                     "weights are taken to be in 16 bits: quant_method '%s' of the model's "
                     "config.json is not known here",
                     job->model.quantization.method);
    } else if (checkpoint->said) {
        take_weights(out, &checkpoint->name);
        maq_checkpoint_warn(&checkpoint->name, (struct maq_span){0}, "--weights", cli->diag);
    }
}

enum maq_status cli_serve_options(struct serve_given *out, const struct serve_checkpoint *checkpoint, struct cli *cli,
                                  const struct maq_job *job, bool open)
{
    *out = (struct serve_given){.replicas = 1, .n_members = out->n_members};
    if (cli->served)
        read_command(out, cli, job, open);
    out->options.stop = cli->stop; /* of a call; a person's Ctrl-C ends the program */
    choose_weights(out, checkpoint, cli, job);
    bool ep_said = out->options.ep > 0 || cli->values[SERVE_EP];
    enum maq_status status = cli_first_fault(read_engine(out, cli), cli_serve_requests(out, cli, open));
    if (open) {
        if (maq_tier_options_any(&out->options.tiers)) /* of the engine's command line */
            maq_diag_add(cli->diag, MAQ_WARNING, MAQ_CODE_CLI_TIERS, (struct maq_span){0},
                         "maquette serve with the best of them, and its tiers",
                         "deployments are compared without host memory, drives and pools behind their caches");
        out->options.tiers = (struct maq_tier_options){.policy = MAQ_TIER_LRU};
    }
    if (status == MAQ_OK)
        status = cli_serve_speculation(out, cli, job, open);
    if (!open)
        status = cli_first_fault(status, cli_serve_tiers(out, cli));
    status = cli_first_fault(status, cli_serve_lora(out, cli));
    if (open)
        cli_serve_own_tower(out, cli, job);
    else
        status = cli_first_fault(status, cli_serve_images(out, cli, job));
    status = cli_first_fault(status, cli_serve_afd(out, cli, open));
    if (out->options.afd.ffn_ranks > 0 && !ep_said && !open)
        out->options.ep = maq_model_has_experts(&job->model) ? out->options.afd.ffn_ranks : 1;
    else if (out->options.dp > 1 && !ep_said && !open)
        out->options.ep = out->options.dp * job->plan.tp;
    static const int trtllm_alone[] = {SERVE_CAPACITY, SERVE_WAIT_ITERATIONS, SERVE_WAIT_SHARE};
    for (size_t i = 0; i < CLI_COUNT(trtllm_alone); i++)
        if (cli->values[trtllm_alone[i]] && out->options.engine != MAQ_ENGINE_TRTLLM)
            status = cli_first_fault(
                status, cli_usage(cli, MAQ_CODE_CLI_VALUE, "--engine trtllm", "%s is TensorRT-LLM's, not %s's",
                                  cli_serve_table[trtllm_alone[i]].name, maq_engine_name(out->options.engine)));
    status = cli_first_fault(status, check_batch_wait(cli, &out->options));
    status = cli_first_fault(status, check_sampling(cli, &out->options));
    if (out->options.engine == MAQ_ENGINE_TRTLLM)
        maq_diag_add(cli->diag, MAQ_WARNING, MAQ_CODE_CLI_SCHEDULER, (struct maq_span){0}, NULL,
                     "kernels, limits and host times are those of %s; which requests an iteration takes is decided as "
                     "vLLM's scheduler does, but for whom it takes in",
                     maq_engine_name(out->options.engine));
    if (status == MAQ_OK && !open)
        status = read_fleet(out, cli);
    if (status == MAQ_OK && open)
        out->router = (enum maq_router)cli_serve_word(cli, SERVE_ROUTER, MAQ_ROUTER_LEAST_REQUESTS);
    return cli_first_fault(status, read_asked(out, cli));
}
