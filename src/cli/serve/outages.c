/* SPDX-License-Identifier: Apache-2.0 */
/* outages.c - `maquette serve --failures ... --autoscale ...`: replicas that come, leave and fail. */
#include "maquette/fleet_outages.h"

#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "cli/codes.h"
#include "cli/serve/options.h"

#define START_S 120.0

bool cli_serve_has_outages(const struct serve_given *given)
{
    return given->failures || given->n_counts > 0 || given->scaling.target > 0 || given->prefill_scaling.target > 0;
}

/* What does not go with them. */
static enum maq_status check(const struct serve_given *given, struct cli *cli)
{
    const char *which = cli->values[SERVE_FAILURES]    ? "--failures"
                        : cli->values[SERVE_AUTOSCALE] ? "--autoscale"
                                                       : "--prefill-autoscale";
    if (given->find_rate || given->batch > 0 || cli->values[SERVE_TRACE])
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, "--rate or --requests",
                         "%s is of requests that come over a time: without --find-rate, --batch and --trace", which);
    if (given->spec.concurrency > 0 && cli->values[SERVE_FAILURES])
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, "--rate or --requests",
                         "--failures: with --concurrency nobody knows for how long requests come");
    return MAQ_OK;
}

static enum maq_status read_rule(struct maq_autoscaling_rule *rule, struct cli *cli, int option, uint32_t replicas,
                                 double start_s)
{
    const char *name = cli_serve_table[option].name;
    enum maq_status status = maq_autoscaling_rule_read(rule, cli->values[option], name, cli->diag);
    uint32_t most = rule->first > rule->least ? rule->first : rule->least;
    rule->start_s = start_s;
    if (status == MAQ_OK && most > replicas)
        return cli_usage(cli, MAQ_CODE_CLI_VALUE,
                         option == SERVE_AUTOSCALE ? "--replicas is the most that there can be"
                                                   : "--prefill-replicas is the most that there can be",
                         "%s: %u replicas are to be there, of %u that there are", name, most, replicas);
    return status;
}

/* A file, or a rule, which no file is named like that people have. */
static enum maq_status read_autoscale(struct serve_given *out, struct cli *cli, uint32_t replicas, uint32_t prefill)
{
    const char *what = cli->values[SERVE_AUTOSCALE];
    struct stat st;
    if (!strchr(what, '=') || stat(what, &st) == 0)
        return maq_replica_counts_read(&out->counts, &out->n_counts, what, replicas, prefill, cli->diag);
    return read_rule(&out->scaling, cli, SERVE_AUTOSCALE, replicas, out->start_s);
}

static enum maq_status read_prefill_autoscale(struct serve_given *out, struct cli *cli, uint32_t prefill)
{
    if (prefill == 0)
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, "--autoscale, or --prefill-replicas 1",
                         "--prefill-autoscale: no replicas compute prompts for others");
    if (!strchr(cli->values[SERVE_PREFILL_AUTOSCALE], '='))
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, "a column prefill_replicas in the file of --autoscale",
                         "--prefill-autoscale takes a rule, not '%.60s'", cli->values[SERVE_PREFILL_AUTOSCALE]);
    if (out->n_counts > 0 && out->counts[0].prefill_replicas != MAQ_ALL_REPLICAS)
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, "without it, or without the column",
                         "--prefill-autoscale: the file of --autoscale has a column prefill_replicas");
    return read_rule(&out->prefill_scaling, cli, SERVE_PREFILL_AUTOSCALE, prefill, out->start_s);
}

static enum maq_status read_scaling(struct serve_given *out, struct cli *cli, const struct maq_fleet_member *members,
                                    uint32_t n_members)
{
    uint32_t replicas = 0, prefill = 0;
    enum maq_status worst = MAQ_OK;
    for (uint32_t i = 0; i < n_members; i++)
        *(members[i].role == MAQ_ROLE_PREFILL ? &prefill : &replicas) += members[i].replicas;
    if (cli->values[SERVE_AUTOSCALE])
        worst = read_autoscale(out, cli, replicas, prefill);
    if (cli->values[SERVE_PREFILL_AUTOSCALE])
        worst = cli_first_fault(worst, read_prefill_autoscale(out, cli, prefill));
    return worst;
}

/* What starting takes besides is somebody's to say: a default would be one with the weights. */
static enum maq_status check_loading(struct cli *cli)
{
    if (cli->values[SERVE_WEIGHTS_FROM] && !cli->values[SERVE_START_TIME])
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, "--start-time 60s",
                         "--weights-from: nothing says what starting takes beside loading weights");
    return MAQ_OK;
}

enum maq_status cli_serve_load_time(double *load_s, struct cli *cli, const struct maq_job *job,
                                    const struct maq_serve_options *options)
{
    const char *from = cli->values[SERVE_WEIGHTS_FROM];
    bool peer = from && strcmp(from, "peer") == 0;
    double bps = 0;
    *load_s = 0;
    if (!from)
        return MAQ_OK;
    if (!peer && strcmp(from, "disk") != 0 && !(maq_quantity_read(&bps, from, MAQ_QUANTITY_RATE) && bps > 0))
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, "disk, peer, or 7GB/s",
                         "--weights-from takes where weights come from, or at which rate, not '%.60s'", from);
    return maq_serve_load_s(load_s, job, options, peer ? MAQ_WEIGHTS_FROM_PEER : MAQ_WEIGHTS_FROM_DISK, bps, cli->diag);
}

enum maq_status cli_serve_outages(struct serve_given *out, struct cli *cli, const struct maq_fleet_member *members,
                                  uint32_t n_members)
{
    enum maq_status worst = cli_count(cli, &out->spare_nodes, SERVE_SPARES, 0, 65536, 0);
    const char *start = cli->values[SERVE_START_TIME];
    out->start_s = START_S;
    if (start && (!maq_quantity_read(&out->start_s, start, MAQ_QUANTITY_TIME) || out->start_s < 0))
        worst = cli_first_fault(worst, cli_usage(cli, MAQ_CODE_CLI_VALUE, "--start-time 90s",
                                                 "--start-time takes a time, not '%s'", start));
    if (!cli->values[SERVE_FAILURES] && !cli->values[SERVE_AUTOSCALE] && !cli->values[SERVE_PREFILL_AUTOSCALE]) {
        static const int idle[] = {SERVE_START_TIME, SERVE_WEIGHTS_FROM, SERVE_SPARES, SERVE_WHAT_IF};
        for (size_t i = 0; i < CLI_COUNT(idle); i++)
            if (cli->values[idle[i]])
                return cli_usage(cli, MAQ_CODE_CLI_VALUE, "--failures llama3, --autoscale requests=8",
                                 "%s has no effect: no replica fails or comes", cli_serve_table[idle[i]].name);
        return worst;
    }
    if (worst == MAQ_OK)
        worst = check_loading(cli);
    if (cli->values[SERVE_SPARES] && !cli->values[SERVE_FAILURES])
        worst = cli_first_fault(worst, cli_usage(cli, MAQ_CODE_CLI_VALUE, "--failures llama3",
                                                 "--spare-nodes has no effect: no node fails"));
    if (cli->values[SERVE_WHAT_IF] && !(cli->values[SERVE_FAILURES] && out->slo.n > 0))
        worst = cli_first_fault(worst, cli_usage(cli, MAQ_CODE_CLI_VALUE, "--failures llama3 --slo 'ttft_p95<500ms'",
                                                 "--what-if compares what is kept of bounds under failures"));
    worst = cli_first_fault(worst, check(out, cli));
    if (cli->values[SERVE_FAILURES])
        worst = cli_first_fault(worst, maq_failures_load(&out->failures, cli->values[SERVE_FAILURES], cli->diag));
    return cli_first_fault(worst, read_scaling(out, cli, members, n_members));
}

enum maq_status cli_serve_run_outages(struct maq_serve_result **r, struct maq_attainment *room,
                                      const struct maq_fleet *fleet, const struct maq_requests *requests,
                                      const struct serve_given *given, struct cli *cli)
{
    const struct maq_outage_spec spec = {.failures = given->failures ? maq_failures_get(given->failures) : NULL,
                                         .counts = given->counts,
                                         .n_counts = given->n_counts,
                                         .start_s = given->start_s,
                                         .spare_nodes = given->spare_nodes,
                                         .span_s = requests->n > 0 ? requests->at[requests->n - 1].arrival_s : 0,
                                         .seed = given->spec.seed};
    struct maq_fleet scaled = *fleet;
    scaled.scaling = given->scaling.target > 0 ? &given->scaling : NULL;
    scaled.prefill_scaling = given->prefill_scaling.target > 0 ? &given->prefill_scaling : NULL;
    bool judged = given->slo.n > 0 && given->failures;
    enum maq_status status = maq_fleet_attainment(judged ? room : NULL, r, &scaled, requests, &spec,
                                                  judged ? given->draws : 1, &given->slo, cli->diag);
    if (status == MAQ_OK)
        (*r)->attainment = judged && (*r)->fits ? room : NULL;
    return status;
}
