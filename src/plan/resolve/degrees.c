/* SPDX-License-Identifier: Apache-2.0 */
/*
 * degrees.c - how the devices are shared among the degrees: what is left for data parallelism and for experts, shards that nobody shares, and what the
 * widths of a model let be cut.
 */
#include "plan/resolve/resolve.h"

#include "base/check.h"

#define MOST_TOKENS 1073741824.0 /* of a level: as seq_length */

/* The degree that is to blame where their product does not divide the devices: the first that does not by itself, else the last. */
static const char *culprit(const struct maq_plan *p, int64_t devices)
{
    const struct {
        const char *key;
        int32_t n;
    } degrees[] = {{"tensor_model_parallel_size", p->tp},
                   {"context_parallel_size", p->cp},
                   {"pipeline_model_parallel_size", p->pp}};
    const char *last = degrees[0].key;
    for (size_t i = 0; i < MAQ_COUNT(degrees); i++) {
        if (devices % degrees[i].n != 0)
            return degrees[i].key;
        last = degrees[i].n > 1 ? degrees[i].key : last;
    }
    return last;
}

void maq__resolve_dp(struct maq_resolver *r)
{
    struct maq_plan *p = &r->job->plan;
    int64_t devices = r->job->cluster.devices, model = (int64_t)p->tp * p->cp * p->pp;
    if (model > devices || devices % model != 0) {
        MAQ_REFUSE(r, MAQ_CODE_PLAN_DEGREES, culprit(p, devices),
                   model > devices ? "take smaller degrees or more nodes"
                                   : "choose degrees whose product divides the number of devices",
                   "tp %d x cp %d x pp %d = %lld does not divide the cluster's %lld devices", p->tp, p->cp, p->pp,
                   (long long)model, (long long)devices);
        r->job->dp = 1;
        return;
    }
    r->job->dp = (int32_t)(devices / model);
    if (p->dp != 0 && p->dp != r->job->dp)
        MAQ_REFUSE(r, MAQ_CODE_PLAN_DEGREES, "data_parallel_size", "leave it out: it follows from the others",
                   "data_parallel_size %d, but %lld devices / (tp %d x cp %d x pp %d) = %d", p->dp, (long long)devices,
                   p->tp, p->cp, p->pp, r->job->dp);
    p->dp = r->job->dp;
}

bool maq_sharding_is_moot(const struct maq_plan *p, const struct maq_model *model, int64_t stage_devices)
{
    int64_t etp = p->etp > 0 ? p->etp : p->ep > 1 ? 1 : p->tp;
    bool alone = stage_devices / p->tp == p->num_optimizer_instances;
    return alone && (!maq_model_find_module(model, MAQ_MODULE_ROUTER, MAQ_PART_COUNT) || stage_devices == etp * p->ep);
}

/*
 * Shards of one rank are no shards: nothing is gathered, cast for it or held otherwise. Those on the host come and go all the same. What
 * is refused as it is written comes before.
 */
void maq__resolve_sharding(struct maq_resolver *r)
{
    struct maq_plan *p = &r->job->plan;
    if (r->failed || p->sharding == MAQ_SHARDING_NONE || p->offload_param != MAQ_OFFLOAD_NONE ||
        !maq_sharding_is_moot(p, &r->job->model, (int64_t)p->tp * p->cp * r->job->dp))
        return;
    p->sharding = MAQ_SHARDING_NONE;
    p->num_optimizer_instances = 1;
}

/* One vector per sequence enters a pyramid, and tokens change in number on the way: there is nothing that CP or sequence
 * parallelism could cut alike everywhere. */
void maq__check_pyramid(struct maq_resolver *r)
{
    const struct maq_plan *p = &r->job->plan;
    if (!r->job->model.pyramid)
        return;
    if (p->cp > 1)
        MAQ_REFUSE(r, MAQ_CODE_PLAN_DEGREES, "context_parallel_size", "leave it out",
                   "context_parallel_size %d, but the layers of %s differ in their number of tokens", p->cp,
                   r->job->model.name);
    if (p->tp > 1 && p->sequence_parallel == MAQ_ON)
        MAQ_REFUSE(r, MAQ_CODE_PLAN_DEGREES, "sequence_parallel", "leave it out",
                   "sequence parallelism, but the layers of %s differ in their number of tokens", r->job->model.name);
    for (uint32_t k = 0; k < r->job->model.n_kinds && !r->failed; k++) {
        double tokens = (double)r->job->workload.seq / (double)r->job->model.kinds[k].of_tokens *
                        (double)r->job->model.kinds[k].tokens;
        if (tokens > MOST_TOKENS) {
            r->failed = true;
            maq_diag_add(r->diag, MAQ_ERROR, MAQ_CODE_PLAN_BATCH, maq_place_of(r->at->workload, "seq_length"), NULL,
                         "a level of %s has %.3g tokens of a sequence, over the limit of %.3g", r->job->model.name,
                         tokens, MOST_TOKENS);
        }
    }
}

void maq__resolve_experts(struct maq_resolver *r)
{
    if (r->failed) /* the degrees do not fit: what is left over for experts means nothing */
        return;
    struct maq_plan *p = &r->job->plan;
    const struct maq_module *router = maq_model_find_module(&r->job->model, MAQ_MODULE_ROUTER, MAQ_PART_COUNT);
    if (!router) {
        if (p->ep > 1)
            MAQ_REFUSE(r, MAQ_CODE_PLAN_DEGREES, "expert_model_parallel_size", "leave it out",
                       "expert_model_parallel_size %d, but %s has no routed experts", p->ep, r->job->model.name);
        p->ep = 1;
        p->etp = p->tp;
        r->job->edp = r->job->dp * p->cp;
        return;
    }
    if (p->etp == 0)
        p->etp = p->ep > 1 ? 1 : p->tp;
    int64_t stage = (int64_t)p->tp * p->cp * r->job->dp, experts = (int64_t)p->etp * p->ep;
    r->job->edp = 1;
    if (stage % experts != 0)
        MAQ_REFUSE(
            r, MAQ_CODE_PLAN_DEGREES, "expert_model_parallel_size", "expert-tp x ep must divide tp x cp x dp",
            "expert-tp %d x ep %d = %lld does not divide the %lld devices of a pipeline stage (tp %d x cp %d x dp %d)",
            p->etp, p->ep, (long long)experts, (long long)stage, p->tp, p->cp, r->job->dp);
    else
        r->job->edp = (int32_t)(stage / experts);
    if (router->u.moe.experts % p->ep != 0)
        MAQ_REFUSE(r, MAQ_CODE_PLAN_DEGREES, "expert_model_parallel_size", NULL,
                   "%d experts cannot be shared evenly by expert_model_parallel_size %d", router->u.moe.experts, p->ep);
}

/* Features that TP cuts must divide by it; KV heads may also be copied. */
void maq__check_widths(struct maq_resolver *r, const struct maq_layer *layer)
{
    const struct maq_plan *p = &r->job->plan;
    for (uint32_t i = 0; i < layer->n_modules && !r->failed; i++) {
        const struct maq_module *m = &layer->modules[i];
        if (m->kind == MAQ_MODULE_ATTENTION) {
            int32_t h = m->u.attention.heads, kv = m->u.attention.kv_heads;
            if (h % p->tp != 0)
                MAQ_REFUSE(r, MAQ_CODE_PLAN_DEGREES, "tensor_model_parallel_size", NULL,
                           "%d attention heads cannot be shared evenly by tp %d", h, p->tp);
            else if (kv % p->tp != 0 && p->tp % kv != 0)
                MAQ_REFUSE(r, MAQ_CODE_PLAN_DEGREES, "tensor_model_parallel_size", NULL,
                           "%d key/value heads can be neither shared nor copied evenly by tp %d", kv, p->tp);
            bool a2a = p->cp_comm == MAQ_CP_A2A || p->cp_comm == MAQ_CP_A2A_P2P;
            int32_t inner = p->cp_comm == MAQ_CP_A2A ? p->cp : p->cp_a2a;
            if (a2a && p->cp > 1 && (h / p->tp) % inner != 0)
                MAQ_REFUSE(r, MAQ_CODE_PLAN_DEGREES, "context_parallel_size",
                           "all-to-all context parallelism spreads heads: use p2p or a smaller group",
                           "%d attention heads per TP rank cannot be spread over an all-to-all group of %d", h / p->tp,
                           inner);
        } else if (m->shard == MAQ_SHARD_COLUMN && m->out % p->tp != 0 && m->part == MAQ_PART_MLP) {
            MAQ_REFUSE(r, MAQ_CODE_PLAN_DEGREES, "tensor_model_parallel_size", NULL,
                       "%s of %lld features cannot be shared evenly by tp %d", m->name, (long long)m->out, p->tp);
        } else if (m->shard == MAQ_SHARD_EXPERT && m->kind == MAQ_MODULE_EXPERT_LINEAR &&
                   (m->in % p->etp != 0 || m->out % p->etp != 0)) {
            MAQ_REFUSE(r, MAQ_CODE_PLAN_DEGREES, "expert_tensor_parallel_size", NULL,
                       "expert features %lld x %lld cannot be shared evenly by expert-tp %d", (long long)m->in,
                       (long long)m->out, p->etp);
        }
    }
}
