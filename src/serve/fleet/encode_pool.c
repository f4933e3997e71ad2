/* SPDX-License-Identifier: Apache-2.0 */
/* encode_pool.c - images through a pool of towers, their embeddings on the way to who computes prompts. */
#include "serve/fleet/encode_pool.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "serve/codes.h"
#include "serve/engine/batch.h"
#include "serve/fleet/handover.h"

static void find_next(struct maq_fleet_encode *p)
{
    p->next_s = p->network.next_s;
    for (uint32_t k = 0; k < p->n; k++)
        p->next_s = fmin(p->next_s, p->servers[k].ends_s);
}

/* ---- passes ---- */

/* Those that wait, as many as go together. */
static void begin_pass(struct maq_fleet_encode *p, struct maq_encode_server *s, double at_s)
{
    struct maq_pass_chunk *chunks = NULL;
    uint32_t size = 0, n = 0, n_chunks = 0;
    int64_t tokens = 0, patches = 0;
    struct maq_pass_parts work = {0};
    for (uint32_t i = s->first; i < s->n; i++) {
        const struct maq_image image = maq_tower_image(p->d, s->images[i].tokens);
        int64_t more = image.patches;
        if (n > 0 &&
            (tokens + s->images[i].tokens > p->d->options.max_num_batched_tokens || patches + more > MAQ_IMAGE_PATCHES))
            break;
        if (!maq_tower_add_image(&chunks, &n_chunks, &size, &image)) {
            p->failed = true;
            break;
        }
        n++;
        tokens += s->images[i].tokens;
        patches += more;
        p->seen.wait_s += at_s - s->images[i].at_s;
    }
    s->passing = n;
    s->ends_s = (double)INFINITY;
    if (n > 0 && !p->failed) {
        double takes = maq_batch_host_s(p->d, n) + maq_tower_pass_s(&p->tower, p->d, chunks, n_chunks, &work);
        s->ends_s = at_s + takes;
        s->busy_s += takes;
        p->seen.encode_s += takes;
        p->seen.images += n;
        p->seen.tokens += (double)tokens;
        p->seen.patches += (double)patches;
    }
    free(chunks);
}

/* Its embeddings leave, the next pass begins. */
static void end_pass(struct maq_fleet_encode *p, uint32_t server)
{
    struct maq_encode_server *s = &p->servers[server];
    const struct maq_model *model = &p->d->job->model;
    double at_s = s->ends_s,
           width = (double)(p->d->options.encoder.own ? model->vision->embedding_width : model->hidden);
    for (uint32_t i = 0; i < s->passing; i++) {
        const struct maq_encode_image *m = &s->images[s->first++];
        double bytes = (double)m->tokens * width * 2;
        const struct maq_flow_begin b = {.port = {server, p->n},
                                         .share = {1, 1},
                                         .most_bps = (double)INFINITY,
                                         .begins_s = at_s + p->latency_s,
                                         .user = m->request};
        uint32_t flow = maq_network_begin(&p->network, at_s, &b);
        if (flow == MAQ_NO_FLOW)
            return;
        maq_network_give(&p->network, at_s, flow, bytes);
        maq_network_close(&p->network, at_s, flow);
        p->flow_from[m->request] = at_s;
        p->seen.bytes += bytes;
    }
    if (s->first == s->n)
        s->first = s->n = 0;
    begin_pass(p, s, at_s);
}

/* ---- requests ---- */

bool maq_encode_send(struct maq_fleet_run *r, uint32_t request, double at_s)
{
    struct maq_fleet_encode *p = r->encode;
    const struct maq_request *q = &r->requests->at[request];
    const struct maq_image_run run = p ? maq_deployment_images(p->d, r->requests, q) : (struct maq_image_run){0};
    if (run.n == 0)
        return false;
    p->seen.requests++;
    p->left[request] = run.n;
    for (uint32_t i = 0; i < run.n; i++) {
        struct maq_encode_server *s = &p->servers[p->turn++ % p->n];
        if (!maq__grow((void **)&s->images, &s->size, s->n, sizeof *s->images)) {
            p->failed = true;
            return true;
        }
        s->images[s->n++] = (struct maq_encode_image){request, run.tokens, at_s};
    }
    for (uint32_t k = 0; k < p->n; k++)
        if (isinf(p->servers[k].ends_s) && p->servers[k].n > p->servers[k].first)
            begin_pass(p, &p->servers[k], at_s);
    find_next(p);
    return true;
}

bool maq_encode_step(struct maq_fleet_run *r)
{
    struct maq_fleet_encode *p = r->encode;
    uint32_t request, k = 0;
    bool ok = true;
    while (k < p->n && p->servers[k].ends_s > p->next_s)
        k++;
    if (k < p->n) {
        end_pass(p, k);
    } else if (maq_network_step(&p->network, &request)) {
        p->seen.transfer_s += p->network.now_s - p->flow_from[request];
        if (--p->left[request] == 0)
            ok = maq_fleet_route(r, request, p->network.now_s);
    }
    find_next(p);
    return ok && !p->failed && !p->network.failed;
}

/* ---- before and after ---- */

static enum maq_status refuse(struct maq_diag *diag, const char *hint, const char *text)
{
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_IMAGES, (struct maq_span){0}, hint, "%s", text);
}

enum maq_status maq_encode_check(const struct maq_fleet_run *r, struct maq_diag *diag)
{
    uint32_t servers = r->fleet->encode_replicas;
    const struct maq_cluster *c = &r->fleet->members[0].job->cluster;
    uint64_t needed = servers;
    for (uint32_t m = 0; m < r->fleet->n_members; m++) {
        const struct maq_deployment *d = &r->deployments[m];
        const struct maq_encoder_options *e = &d->options.encoder;
        if (servers > 0 && !maq_encoder_there(e))
            return refuse(diag, "--encoder-model, the tower as a model of its own, where its vision_config says none",
                          "a pool that encodes images needs a vision tower");
        if ((servers > 0) != e->elsewhere)
            return refuse(diag, NULL,
                          "a pool encodes images where its fleet's members leave that to it, and only there");
        bool own = r->fleet->members[m].own_cluster ||
                   (r->fleet->members[m].role == MAQ_ROLE_BOTH && m > 0 && !r->fleet->members[m].shares_cluster);
        needed += own ? 0 : (uint64_t)maq_deployment_devices(d) * r->fleet->members[m].replicas;
    }
    if (servers == 0 || needed <= c->devices)
        return MAQ_OK;
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_RANKS, (struct maq_span){0},
                         "a larger --cluster, or fewer --encode-replicas",
                         "replicas and %u GPUs that encode images need %llu GPUs, the cluster has %u", servers,
                         (unsigned long long)needed, c->devices);
}

/* In one node they are over its scale-up domain, else over the network. */
static enum maq_status begin_network(struct maq_fleet_encode *p)
{
    const struct maq_cluster *c = &p->d->job->cluster;
    const struct maq_replica_placement place = {.cluster = c};
    bool near = c->devices <= (uint32_t)c->groups[0].devices_per_node && c->groups[0].domain_bps > 0;
    double bps = maq_port_bps(&place, near ? MAQ_SAME_DOMAIN : MAQ_OTHER_NODE);
    if (!maq_network_init(&p->network, p->n + 1))
        return MAQ_NO_MEMORY;
    for (uint32_t k = 0; k < p->n && bps > 0; k++)
        p->network.ports[k].bps = bps;
    p->latency_s = near ? 0 : c->groups[0].fabric.latency_s;
    return MAQ_OK;
}

enum maq_status maq_encode_begin(struct maq_fleet_run *r)
{
    size_t requests = r->requests->n ? r->requests->n : 1u;
    uint32_t first = 0;
    if (r->fleet->encode_replicas == 0)
        return MAQ_OK;
    struct maq_fleet_encode *p = r->encode = maq__calloc(sizeof *p);
    if (!p)
        return MAQ_NO_MEMORY;
    maq_arena_init(&p->arena, 0);
    while (r->fleet->members[first].role == MAQ_ROLE_DECODE)
        first++;
    p->d = &r->deployments[first];
    p->n = r->fleet->encode_replicas;
    p->servers = maq__calloc(p->n * sizeof *p->servers);
    p->left = maq__calloc(requests * sizeof *p->left);
    p->flow_from = maq__calloc(requests * sizeof *p->flow_from);
    if (!p->servers || !p->left || !p->flow_from)
        return MAQ_NO_MEMORY;
    for (uint32_t k = 0; k < p->n; k++)
        p->servers[k].ends_s = (double)INFINITY;
    MAQ_TRY(maq_tower_init(&p->tower, p->d, 1, &p->arena));
    MAQ_TRY(begin_network(p));
    find_next(p);
    return MAQ_OK;
}

void maq_encode_end(struct maq_fleet_encode *p)
{
    if (!p)
        return;
    for (uint32_t k = 0; p->servers && k < p->n; k++)
        free(p->servers[k].images);
    free(p->servers);
    free(p->left);
    free(p->flow_from);
    maq_network_fini(&p->network);
    maq_arena_fini(&p->arena);
    free(p);
}

void maq_encode_fill(const struct maq_fleet_run *r, struct maq_serve_result *out)
{
    const struct maq_fleet_encode *p = r->encode;
    double busy = 0, gpu = r->fleet->members[0].job->cluster.groups[0].device.usd_per_hour;
    if (!p)
        return;
    struct maq_encoded *e = &out->encoded;
    *e = p->seen;
    e->known = true;
    e->replicas = p->n;
    e->weights_bytes = maq_tower_bytes(&p->tower);
    e->wait_s /= e->images > 0 ? (double)e->images : 1;
    e->transfer_s /= e->images > 0 ? (double)e->images : 1;
    for (uint32_t k = 0; k < p->n; k++)
        busy += p->servers[k].busy_s;
    e->busy_share = out->duration_s > 0 ? busy / out->duration_s / p->n : 0;
    out->n_devices += p->n;
    if (!out->availability.known)
        return;
    out->availability.gpus += p->n;
    out->availability.usd_per_hour += out->availability.usd_per_hour > 0 ? p->n * gpu : 0;
}
