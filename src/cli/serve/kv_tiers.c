/* SPDX-License-Identifier: Apache-2.0 */
/* kv_tiers.c - host memory, drives and a pool behind the GPU's cache, as they are asked for. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "cli/codes.h"
#include "cli/serve/options.h"

#define MOST_BYTES 1e18
#define MOST_BPS 1e16

/* A quantity of a kind, or "inf"; what is not given is left as it is. */
static enum maq_status read_quantity(struct cli *cli, double *out, int option, enum maq_quantity kind, const char *text,
                                     double most, const char *example)
{
    if (!text)
        return MAQ_OK;
    double x = strcmp(text, "inf") == 0 ? (double)INFINITY : -1;
    if (isinf(x) || (maq_quantity_read(&x, text, kind) && x >= 0 && x <= most)) {
        *out = x;
        return MAQ_OK;
    }
    return cli_usage(cli, MAQ_CODE_CLI_VALUE, example, "%s takes %s of at least 0, not '%.60s'",
                     cli_serve_table[option].name,
                     kind == MAQ_QUANTITY_BYTES  ? "a size"
                     : kind == MAQ_QUANTITY_RATE ? "a rate"
                                                 : "a time",
                     text);
}

/* "12GB/s", or "12GB/s,8GB/s" to read and to write. */
static enum maq_status read_drives(struct cli *cli, struct maq_tier_options *o)
{
    const char *text = cli->values[SERVE_SSD_BANDWIDTH], *comma = text ? strchr(text, ',') : NULL;
    const char *first = comma ? cli_printf(cli, "%.*s", (int)(comma - text), text) : text;
    if (text && !first)
        return MAQ_NO_MEMORY;
    enum maq_status status =
        read_quantity(cli, &o->ssd_read_bps, SERVE_SSD_BANDWIDTH, MAQ_QUANTITY_RATE, first, MOST_BPS, "12GB/s,8GB/s");
    return cli_first_fault(status, read_quantity(cli, &o->ssd_write_bps, SERVE_SSD_BANDWIDTH, MAQ_QUANTITY_RATE,
                                                 comma ? comma + 1 : first, MOST_BPS, "12GB/s,8GB/s"));
}

/* What is said of a tier that is not there. */
static enum maq_status check_said(struct cli *cli, const struct maq_tier_options *o)
{
    static const struct {
        int option;
        enum maq_tier_kind of;
        int size;
    } said[] = {{SERVE_HOST_POLICY, MAQ_TIER_HOST, SERVE_HOST_SIZE},
                {SERVE_HOST_CHUNK, MAQ_TIER_HOST, SERVE_HOST_SIZE},
                {SERVE_HOST_BANDWIDTH, MAQ_TIER_HOST, SERVE_HOST_SIZE},
                {SERVE_HOST_PROMPTS, MAQ_TIER_HOST, SERVE_HOST_SIZE},
                {SERVE_SSD_BANDWIDTH, MAQ_TIER_SSD, SERVE_SSD_SIZE},
                {SERVE_REMOTE_BANDWIDTH, MAQ_TIER_REMOTE, SERVE_REMOTE_SIZE},
                {SERVE_REMOTE_LATENCY, MAQ_TIER_REMOTE, SERVE_REMOTE_SIZE}};
    for (size_t i = 0; i < CLI_COUNT(said); i++)
        if (cli->values[said[i].option] && !(o->bytes[said[i].of] > 0) && !cli->values[said[i].size] &&
            !(said[i].of == MAQ_TIER_HOST && maq_tier_options_any(o)))
            return cli_usage(cli, MAQ_CODE_CLI_VALUE, cli_printf(cli, "%s 64GiB", cli_serve_table[said[i].size].name),
                             "%s: there is no such tier", cli_serve_table[said[i].option].name);
    return MAQ_OK;
}

enum maq_status cli_serve_tiers(struct serve_given *out, struct cli *cli)
{
    static const struct {
        int option, kind;
        size_t at;
        double most;
        const char *example;
    } rows[] = {
        {SERVE_HOST_SIZE, MAQ_QUANTITY_BYTES, offsetof(struct maq_tier_options, bytes[MAQ_TIER_HOST]), MOST_BYTES,
         "64GiB"},
        {SERVE_SSD_SIZE, MAQ_QUANTITY_BYTES, offsetof(struct maq_tier_options, bytes[MAQ_TIER_SSD]), MOST_BYTES, "2TB"},
        {SERVE_REMOTE_SIZE, MAQ_QUANTITY_BYTES, offsetof(struct maq_tier_options, bytes[MAQ_TIER_REMOTE]), MOST_BYTES,
         "10TB"},
        {SERVE_HOST_BANDWIDTH, MAQ_QUANTITY_RATE, offsetof(struct maq_tier_options, host_bps), MOST_BPS, "50GB/s"},
        {SERVE_REMOTE_BANDWIDTH, MAQ_QUANTITY_RATE, offsetof(struct maq_tier_options, remote_bps), MOST_BPS, "50GB/s"},
        {SERVE_REMOTE_LATENCY, MAQ_QUANTITY_TIME, offsetof(struct maq_tier_options, remote_latency_s), 3600, "10us"},
    };
    struct maq_tier_options *o = &out->options.tiers;
    enum maq_status worst = MAQ_OK;
    uint32_t n;
    for (size_t i = 0; i < CLI_COUNT(rows); i++)
        worst = cli_first_fault(worst, read_quantity(cli, (double *)(void *)((char *)o + rows[i].at), rows[i].option,
                                                     (enum maq_quantity)rows[i].kind, cli->values[rows[i].option],
                                                     rows[i].most, rows[i].example));
    worst = cli_first_fault(worst, read_drives(cli, o));
    worst = cli_first_fault(worst, cli_count(cli, &n, SERVE_HOST_CHUNK, 1, 1024, (uint32_t)o->chunk_blocks));
    o->chunk_blocks = (int32_t)n;
    if (cli->values[SERVE_HOST_POLICY])
        o->policy = strcmp(cli->values[SERVE_HOST_POLICY], "arc") == 0 ? MAQ_TIER_ARC : MAQ_TIER_LRU;
    o->prompt_only |= cli->values[SERVE_HOST_PROMPTS] != NULL;
    return cli_first_fault(worst, check_said(cli, o));
}
