/* SPDX-License-Identifier: Apache-2.0 */
/* lora.c - slots for LoRA adapters, and requests that ask for adapters. */
#include "cli/codes.h"
#include "cli/serve/options.h"

#define MOST_BPS 1e16

/* What is said of adapters where there are none. */
static enum maq_status check_said(struct cli *cli, const struct serve_given *g)
{
    static const int slots[] = {SERVE_LORA_SLOTS,   SERVE_LORA_RANK,      SERVE_LORA_HOST,
                                SERVE_LORA_TARGETS, SERVE_LORA_BANDWIDTH, SERVE_ADAPTERS};
    for (size_t i = 0; !g->options.lora.enabled && i < CLI_COUNT(slots); i++)
        if (cli->values[slots[i]])
            return cli_usage(cli, MAQ_CODE_CLI_VALUE, "--enable-lora", "%s: the deployment serves no adapters",
                             cli_serve_table[slots[i]].name);
    static const int drawn[] = {SERVE_ADAPTER_ZIPF, SERVE_ADAPTER_NONE};
    for (size_t i = 0; g->spec.adapters == 0 && i < CLI_COUNT(drawn); i++)
        if (cli->values[drawn[i]])
            return cli_usage(cli, MAQ_CODE_CLI_VALUE, "--adapters 16", "%s: there are none to choose from",
                             cli_serve_table[drawn[i]].name);
    if (cli->values[SERVE_ADAPTERS] && cli->values[SERVE_REQUESTS])
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, "a column `adapter` of the file",
                         "--adapters: the requests of a file say for themselves which adapter they ask for");
    if (cli->values[SERVE_ADAPTERS] && cli->values[SERVE_BATCH])
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, "--concurrency in place of --batch",
                         "--adapters: requests of one batch alone ask for none");
    return MAQ_OK;
}

enum maq_status cli_serve_lora(struct serve_given *out, struct cli *cli)
{
    struct maq_lora_options *o = &out->options.lora;
    static const struct {
        int option;
        uint32_t most;
    } counts[] = {{SERVE_LORA_SLOTS, 1 << 20}, {SERVE_LORA_RANK, 1 << 16}, {SERVE_LORA_HOST, 1 << 30}};
    int32_t *at[] = {&o->max_loras, &o->max_lora_rank, &o->max_cpu_loras};
    enum maq_status worst = MAQ_OK;
    for (size_t i = 0; i < CLI_COUNT(counts); i++) {
        uint32_t n;
        worst =
            cli_first_fault(worst, cli_count(cli, &n, (size_t)counts[i].option, 1, counts[i].most, (uint32_t)*at[i]));
        *at[i] = (int32_t)n;
    }
    o->enabled |= cli->values[SERVE_LORA] != NULL;
    if (cli->values[SERVE_LORA_TARGETS])
        o->targets = cli->values[SERVE_LORA_TARGETS];
    const char *rate = cli->values[SERVE_LORA_BANDWIDTH];
    if (rate &&
        !(maq_quantity_read(&o->read_bps, rate, MAQ_QUANTITY_RATE) && o->read_bps > 0 && o->read_bps <= MOST_BPS))
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, "2GB/s", "--lora-read-bandwidth takes a rate, not '%.60s'", rate);
    worst = cli_first_fault(worst, cli_count(cli, &out->spec.adapters, SERVE_ADAPTERS, 1, 1 << 20, 0));
    worst = cli_first_fault(worst, cli_serve_number(cli, &out->spec.adapter_zipf, SERVE_ADAPTER_ZIPF, 0, 100, 0));
    worst = cli_first_fault(worst, cli_serve_number(cli, &out->spec.adapter_none, SERVE_ADAPTER_NONE, 0, 1, 0));
    return cli_first_fault(worst, check_said(cli, out));
}
