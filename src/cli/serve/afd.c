/* SPDX-License-Identifier: Apache-2.0 */
/* afd.c - attention and FFN on GPUs of their own: how many, in how many micro-batches, and what joins them. */
#include <math.h>
#include <string.h>

#include "cli/codes.h"
#include "cli/serve/options.h"

#define MOST_MICRO_BATCHES 64

enum maq_status cli_serve_afd(struct serve_given *out, struct cli *cli, bool open)
{
    struct maq_afd_options *o = &out->options.afd;
    static const int others[] = {SERVE_AFD_MICRO_BATCHES, SERVE_AFD_EXCHANGE, SERVE_AFD_BANDWIDTH};
    const char *rate = cli->values[SERVE_AFD_BANDWIDTH];
    uint32_t ranks, n;
    double gbps = 0;
    bool is_free = rate && strcmp(rate, "inf") == 0;
    enum maq_status worst = cli_count(cli, &ranks, SERVE_AFD_RANKS, 0, 4096, (uint32_t)o->ffn_ranks);
    worst = cli_first_fault(
        worst, cli_count(cli, &n, SERVE_AFD_MICRO_BATCHES, 1, MOST_MICRO_BATCHES, (uint32_t)o->micro_batches));
    if (!is_free)
        worst = cli_first_fault(worst, cli_serve_number(cli, &gbps, SERVE_AFD_BANDWIDTH, 1e-3, 1e6, 0));
    for (size_t i = 0; worst == MAQ_OK && ranks == 0 && !open && i < CLI_COUNT(others); i++)
        if (cli->values[others[i]])
            return cli_usage(cli, MAQ_CODE_CLI_VALUE, "--afd-ffn-ranks 4", "%s: attention and FFN are on the same GPUs",
                             cli_serve_table[others[i]].name);
    *o = (struct maq_afd_options){.ffn_ranks = (int32_t)ranks,
                                  .micro_batches = (int32_t)n,
                                  .exchange = (uint8_t)cli_serve_word(cli, SERVE_AFD_EXCHANGE, o->exchange),
                                  .bps = is_free ? (double)INFINITY : gbps * 1e9};
    return worst;
}
