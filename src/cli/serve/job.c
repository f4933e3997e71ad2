/* SPDX-License-Identifier: Apache-2.0 */
/* job.c - the job of a deployment: model, cluster and degrees are keys of a training job's plan, with a batch that suits them. */
#include <string.h>

#include "cli/codes.h"
#include "cli/serve/options.h"

/* A deployment is a replica: the batch only has to suit the ranks. */
static const char *const batch_keys[] = {"workload.global_batch_size", "plan.micro_batch_size"};

/* "--model Qwen/Qwen3-32B-FP8": the catalogue has the model without what is said of its weights. */
static enum maq_status read_checkpoint(struct serve_checkpoint *out, struct cli *cli)
{
    *out = (struct serve_checkpoint){.said = false};
    for (size_t i = 0; i < cli->n_overrides; i++) {
        struct maq_override *o = &cli->overrides[i];
        if (strcmp(o->path, "model") != 0 || strcmp(o->flag, cli_serve_table[SERVE_MODEL].name) != 0 ||
            (cli->served && cli->served->weights_said) || !maq_checkpoint_name(&out->name, o->value))
            continue;
        out->said = true;
        if (out->name.model_len == 0)
            continue;
        o->value = cli_printf(cli, "%.*s", (int)out->name.model_len, o->value + out->name.model_at);
        if (!o->value)
            return MAQ_NO_MEMORY;
    }
    return MAQ_OK;
}

/* Whatever the batch is: it has to be something. */
static enum maq_status load_open(struct maq_loaded_job **loaded, struct cli *cli)
{
    const char *path = cli->n_args > 0 ? cli->args[0] : NULL;
    enum maq_status status = cli_add_override(cli, "serve", batch_keys[1], "1");
    if (status == MAQ_OK)
        status = cli_add_override(cli, "serve", batch_keys[0], "1");
    return status == MAQ_OK ? cli_read_job(loaded, cli, path, true) : status;
}

enum maq_status cli_serve_load(struct maq_loaded_job **loaded, struct cli *cli)
{
    struct maq_loaded_job *open;
    enum maq_status status = load_open(&open, cli);
    if (status != MAQ_OK)
        return status;
    uint32_t devices = 0;
    const struct maq_cluster *c = &maq_job_get(open)->cluster;
    for (uint32_t g = 0; g < c->n_groups; g++)
        devices += (uint32_t)c->groups[g].nodes * (uint32_t)c->groups[g].devices_per_node;
    maq_job_free(open);
    cli->n_overrides--;
    const char *count = cli_printf(cli, "%u", devices);
    if (!count)
        return MAQ_NO_MEMORY;
    status = cli_add_override(cli, "serve", batch_keys[0], count);
    if (status == MAQ_OK) /* of training: its sequences are none that an engine cuts */
        status = cli_add_override(cli, "serve", "plan.sequence_parallel", "false");
    return status == MAQ_OK ? cli_read_job(loaded, cli, cli->n_args > 0 ? cli->args[0] : NULL, false) : status;
}

static enum maq_status begin(struct serve_checkpoint *checkpoint, struct cli *cli)
{
    if (cli->n_args == 0 && cli->n_overrides == 0)
        return cli_usage(cli, MAQ_CODE_CLI_ARGUMENT,
                         "maquette serve --model llama-3.1-8b --cluster h100-sxm:8 --rate 4", "there is no deployment");
    return read_checkpoint(checkpoint, cli);
}

enum maq_status cli_serve_job(struct maq_loaded_job **loaded, struct serve_checkpoint *checkpoint, struct cli *cli)
{
    enum maq_status status = begin(checkpoint, cli);
    if (status == MAQ_OK)
        status = cli_add_override(cli, "serve", MAQ_JOB_FLEET_MEMBER, "0");
    return status == MAQ_OK ? cli_serve_load(loaded, cli) : status;
}

enum maq_status cli_serve_open_job(struct maq_loaded_job **loaded, struct serve_checkpoint *checkpoint, struct cli *cli)
{
    enum maq_status status = begin(checkpoint, cli);
    return status == MAQ_OK ? load_open(loaded, cli) : status;
}
