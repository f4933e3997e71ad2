/* SPDX-License-Identifier: Apache-2.0 */
/* pools.c - a pool of replicas that compute prompts, beside the one that the other options describe: its options, its job. */
#include <math.h>
#include <string.h>

#include "cli/codes.h"
#include "cli/serve/options.h"

static const char cluster_key[] = "cluster";

static struct maq_override *last_of(struct cli *cli, const char *path)
{
    for (size_t i = cli->n_overrides; i-- > 0;)
        if (strcmp(cli->overrides[i].path, path) == 0)
            return &cli->overrides[i];
    return NULL;
}

/* Instead of what is said of a key there is something else. */
static enum maq_status lay_over(struct cli *cli, int option, const char *path)
{
    struct maq_override *o = last_of(cli, path);
    if (!cli->values[option])
        return MAQ_OK;
    if (!o)
        return cli_add_override(cli, cli_serve_table[option].name, path, cli->values[option]);
    o->flag = cli_serve_table[option].name;
    o->value = cli->values[option];
    return MAQ_OK;
}

enum maq_status cli_serve_split_cluster(struct cli *cli)
{
    struct maq_override *o = last_of(cli, cluster_key);
    const char *plus = o ? strchr(o->value, '+') : NULL;
    if (!cli->values[SERVE_PREFILL_REPLICAS] || cli->values[SERVE_PREFILL_CLUSTER] || !plus || strchr(plus + 1, '+'))
        return MAQ_OK;
    const char *first = cli_printf(cli, "%.*s", (int)(plus - o->value), o->value);
    if (!first)
        return MAQ_NO_MEMORY;
    cli->values[SERVE_PREFILL_CLUSTER] = first;
    o->value = plus + 1;
    return MAQ_OK;
}

/* Options that say something of pools where there is none. */
static enum maq_status check_alone(struct cli *cli, int last)
{
    for (int i = SERVE_PREFILL_TP; i <= last; i++)
        if (cli->values[i])
            return cli_usage(cli, MAQ_CODE_CLI_VALUE, "--prefill-replicas 1",
                             "%s: no replicas compute prompts for others", cli_serve_table[i].name);
    return MAQ_OK;
}

static enum maq_status check_use(const struct serve_given *given, struct cli *cli)
{
    if (cli->values[SERVE_TRACE])
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, "one deployment at one rate",
                         "--trace shows one run of one deployment");
    if (given->batch > 0)
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, NULL, "--batch times one deployment: without --prefill-replicas");
    return MAQ_OK;
}

static enum maq_status read_handover(struct serve_given *out, struct cli *cli)
{
    uint32_t local;
    double gbps = 0;
    enum maq_status worst = cli_count(cli, &local, SERVE_LOCAL_PREFILL, 0, 1u << 30, 0);
    bool is_free = cli->values[SERVE_KV_BANDWIDTH] && strcmp(cli->values[SERVE_KV_BANDWIDTH], "inf") == 0;
    if (!is_free)
        worst = cli_first_fault(worst, cli_serve_number(cli, &gbps, SERVE_KV_BANDWIDTH, 1e-3, 1e6, 0));
    out->prefill_router = (enum maq_router)cli_serve_word(cli, SERVE_PREFILL_ROUTER, (int)out->router);
    out->handover = (struct maq_handover){
        .transfer = (enum maq_kv_transfer)cli_serve_word(cli, SERVE_KV_TRANSFER, MAQ_KV_TRANSFER_AUTO),
        .bps = is_free ? (double)INFINITY : gbps * 1e9,
        .max_local_prefill = local};
    return worst;
}

/* Where experts are spread over all ranks that share them, so are prefill's. */
static enum maq_status read_options(struct serve_given *out, struct cli *cli, const struct maq_job *job,
                                    const struct maq_job *prefill)
{
    struct maq_serve_options *o = &out->prefill;
    uint32_t dp, ep, seqs, tokens;
    *o = out->options;
    int32_t ranks = o->afd.ffn_ranks > 0 ? o->afd.ffn_ranks : job->plan.tp * (o->dp > 1 ? o->dp : 1);
    bool spread = o->ep > 1 && o->ep == ranks;
    o->afd = (struct maq_afd_options){.ffn_ranks = 0}; /* it is of those that decode */
    enum maq_status worst = cli_count(cli, &dp, SERVE_PREFILL_DP, 1, 4096, (uint32_t)o->dp);
    worst = cli_first_fault(worst, cli_count(cli, &ep, SERVE_PREFILL_EP, 1, 4096, 0));
    worst = cli_first_fault(worst, cli_count(cli, &seqs, SERVE_PREFILL_SEQS, 1, 1 << 20, (uint32_t)o->max_num_seqs));
    worst = cli_first_fault(
        worst, cli_count(cli, &tokens, SERVE_PREFILL_TOKENS, 1, 1 << 20, (uint32_t)o->max_num_batched_tokens));
    o->dp = (int32_t)dp;
    o->max_num_seqs = (int32_t)seqs;
    o->max_num_batched_tokens = (int32_t)tokens;
    o->ep = ep > 0 ? (int32_t)ep : spread ? prefill->plan.tp * (o->dp > 1 ? o->dp : 1) : o->ep;
    return cli_first_fault(worst, read_handover(out, cli));
}

enum maq_status cli_serve_handover(struct serve_given *out, struct cli *cli, bool roles)
{
    enum maq_status status = check_alone(cli, roles ? SERVE_PREFILL_TOKENS : SERVE_LOCAL_PREFILL);
    return status == MAQ_OK && roles ? read_handover(out, cli) : status;
}

enum maq_status cli_serve_pools(struct serve_given *out, struct maq_loaded_job **loaded, struct cli *cli,
                                const struct maq_job *job)
{
    *loaded = NULL;
    if (!cli->values[SERVE_PREFILL_REPLICAS])
        return check_alone(cli, SERVE_LOCAL_PREFILL);
    enum maq_status status = cli_count(cli, &out->prefill_replicas, SERVE_PREFILL_REPLICAS, 1, 65536, 0);
    if (status == MAQ_OK)
        status = check_use(out, cli);
    if (status == MAQ_OK)
        status = lay_over(cli, SERVE_PREFILL_TP, cli_serve_table[SERVE_TP].path);
    if (status == MAQ_OK)
        status = lay_over(cli, SERVE_PREFILL_PP, cli_serve_table[SERVE_PP].path);
    if (status == MAQ_OK)
        status = lay_over(cli, SERVE_PREFILL_CLUSTER, cluster_key);
    out->own_cluster = cli->values[SERVE_PREFILL_CLUSTER] != NULL;
    if (status == MAQ_OK)
        status = cli_serve_load(loaded, cli);
    return status == MAQ_OK ? read_options(out, cli, job, maq_job_get(*loaded)) : status;
}
