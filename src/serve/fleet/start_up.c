/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start_up.c - how long it takes until the weights of a replica are in its GPUs.
 *
 *   from a drive   every rank goes through all tensors of the checkpoint and keeps its part (vLLM, model_loader/weight_utils.py,
 *                  safetensors_weights_iterator), which the node reads once for all of them; then it is copied over the link of the GPU:
 *
 *                      checkpoint / drives of a node  +  weights of a rank / link to the host
 *
 *   from a peer    each GPU is sent what it holds by the GPU of that rank of a replica that is there, on another node:
 *
 *                      weights of a rank / port of a GPU
 *
 * of the stage that has the most, or of the side where attention and FFN are on GPUs of their own. Bytes are those that weights have in memory: a checkpoint of wider types has more.
 */
#include <math.h>

#include "maquette/serve_fleet.h"
#include "serve/codes.h"
#include "serve/fleet/handover.h"

static enum maq_status unknown(struct maq_diag *diag, const char *what)
{
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_START, (struct maq_span){0}, "--weights-from 7GB/s",
                         "weights come from %s, and the cluster does not say how fast that is", what);
}

static enum maq_status load(double *out, const struct maq_deployment *d, enum maq_weights_source from, double bps,
                            struct maq_diag *diag)
{
    const struct maq_node_group *g = &d->job->cluster.groups[d->job->stages[0].group];
    const struct maq_replica_placement stand = {.cluster = &d->job->cluster, .first = g->first_rank};
    double rank = fmax(d->memory[MAQ_SERVE_MEM_WEIGHTS], d->ffn_memory[MAQ_SERVE_MEM_WEIGHTS]),
           link = d->device->host_copy_bps;
    link = link > 0 ? link : d->device->host_bps;
    if (from == MAQ_WEIGHTS_FROM_PEER) {
        double port = bps > 0 ? bps : maq_port_bps(&stand, MAQ_OTHER_NODE);
        *out = rank / port;
        return port > 0 ? MAQ_OK : unknown(diag, "a replica that is there");
    }
    double drives = bps > 0 ? bps : d->device->nvme_read_bps * g->devices_per_node;
    if (!(drives > 0) || !(link > 0))
        return unknown(diag, "a drive");
    *out = maq_deployment_checkpoint_bytes(d) / drives + rank / link;
    return MAQ_OK;
}

enum maq_status maq_serve_load_s(double *out, const struct maq_job *job, const struct maq_serve_options *options,
                                 enum maq_weights_source from, double bps, struct maq_diag *diag)
{
    struct maq_deployment d;
    enum maq_status status = maq_deployment_init(&d, job, options, diag);
    if (status == MAQ_OK)
        status = load(out, &d, from, bps, diag);
    maq_deployment_fini(&d);
    return status;
}
