/* SPDX-License-Identifier: Apache-2.0 */
/*
 * afd_check.c - deployments whose attention and FFN cannot be on GPUs of their own.
 *
 * Of engines vLLM has it by a plugin (vllm-project/afd-plugin), SGLang since its pull request 36258 for one model; TensorRT-LLM has none (its issue 6577).
 * vLLM's plugin gives each GPU of FFN as many of attention (its NCCL_P2P_CONNECTOR_USER_GUIDE.md wants them to be no fewer), which is asked here of either
 * side where tokens go to one GPU; where they go to several nothing has to divide.
 */
#include "base/check.h"
#include "serve/codes.h"
#include "serve/engine/deployment.h"

static enum maq_status refuse(struct maq_diag *diag, const char *hint, const char *text)
{
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_AFD, (struct maq_span){0}, hint,
                         "attention and FFN on GPUs of their own: %s", text);
}

static enum maq_status check_engine(const struct maq_job *job, const struct maq_serve_options *o, struct maq_diag *diag)
{
    if (o->engine == MAQ_ENGINE_TRTLLM)
        return refuse(diag, "--engine vllm or sglang", "TensorRT-LLM does not cut a model so");
    if (job->plan.pp > 1)
        return refuse(diag, "--pp 1", "layers go to and fro between two sides, and are not cut into stages besides");
    if (o->speculation.method != MAQ_DRAFT_NONE)
        return refuse(diag, "without --speculative-method", "what drafts has no place on either side here");
    if (o->lora.enabled)
        return refuse(diag, "without --enable-lora", "adapters of linears on both sides are not modelled");
    if (o->exchange != MAQ_EXCHANGE_AUTO)
        return refuse(diag, "--afd-exchange p2p or m2n, without --expert-exchange",
                      "tokens get to the experts from the other side");
    return MAQ_OK;
}

/* All of a side are of one kind, and there are as many. */
static enum maq_status check_places(const struct maq_job *job, const struct maq_serve_options *o, struct maq_diag *diag)
{
    const struct maq_cluster *c = &job->cluster;
    uint32_t attention = (uint32_t)(job->plan.tp * o->dp), ffn = (uint32_t)o->afd.ffn_ranks,
             first = maq_afd_first_ffn(c, attention);
    if (first + ffn > c->devices || attention > c->devices)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_AFD, (struct maq_span){0},
                             "a larger --cluster, or fewer of either",
                             "%u GPUs of attention and %u of FFN from the %uth on: the cluster has %u", attention, ffn,
                             first + 1, c->devices);
    if (c->n_groups > 1 && (maq_cluster_group_of(c, attention - 1) != &c->groups[0] ||
                            maq_cluster_group_of(c, first) != maq_cluster_group_of(c, first + ffn - 1)))
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_AFD, (struct maq_span){0},
                             "attention on the first kind of nodes, FFN on the second",
                             "%u GPUs of attention and %u of FFN: those of a side are not of one kind", attention, ffn);
    uint32_t more = attention > ffn ? attention : ffn, fewer = attention > ffn ? ffn : attention;
    if (o->afd.exchange == MAQ_AFD_P2P && more % fewer != 0)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_AFD, (struct maq_span){0},
                             "numbers of which one divides the other, or --afd-exchange m2n",
                             "%u GPUs of attention do not come out even on %u of FFN", attention, ffn);
    return MAQ_OK;
}

static enum maq_status uneven(const struct maq_job *job, const struct maq_module *m, int64_t width, int64_t by,
                              struct maq_diag *diag)
{
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_AFD, (struct maq_span){0},
                         "--afd-ffn-ranks that divides it; of experts --ep as well",
                         "%s of %s is %lld wide, which %lld GPUs of FFN do not divide", m->name ? m->name : "the FFN",
                         job->model.name, (long long)width, (long long)by);
}

/* Experts are spread over --ep groups, whose ranks cut them; all else that is FFN's is cut over all ranks. */
static enum maq_status check_module(const struct maq_job *job, const struct maq_serve_options *o,
                                    const struct maq_module *m, struct maq_diag *diag)
{
    const int64_t ffn = o->afd.ffn_ranks, each = ffn / o->ep;
    bool column = m->shard == MAQ_SHARD_COLUMN, row = m->shard == MAQ_SHARD_ROW;
    if (m->kind == MAQ_MODULE_EXPERT_ACTIVATION && m->u.moe.experts % o->ep != 0)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_AFD, (struct maq_span){0}, "an --ep that divides them",
                             "%d experts of %s do not come out even on %d groups of GPUs", m->u.moe.experts,
                             job->model.name, o->ep);
    if (m->kind == MAQ_MODULE_EXPERT_ACTIVATION && m->out % each != 0)
        return uneven(job, m, m->out, each, diag);
    if (o->afd.exchange == MAQ_AFD_P2P && (m->part == MAQ_PART_MLP || m->part == MAQ_PART_SHARED_EXPERTS) &&
        (column || row)) {
        int64_t width = column ? m->out : m->in;
        if (width % ffn != 0)
            return uneven(job, m, width, ffn, diag);
    }
    return MAQ_OK;
}

static enum maq_status check_model(const struct maq_job *job, const struct maq_serve_options *o, struct maq_diag *diag)
{
    const struct maq_model *model = &job->model;
    bool any = false;
    for (uint32_t k = 0; k < model->n_kinds; k++)
        for (uint32_t i = 0; i < model->kinds[k].n_modules; i++) {
            const struct maq_module *m = &model->kinds[k].modules[i];
            any = any || m->part == MAQ_PART_MOE || (m->part == MAQ_PART_MLP && o->afd.exchange == MAQ_AFD_P2P);
            MAQ_TRY(check_module(job, o, m, diag));
        }
    if (any)
        return MAQ_OK;
    return o->afd.exchange == MAQ_AFD_P2P
               ? refuse(diag, "--afd-ffn-ranks 0", "no layer of the model has an FFN")
               : refuse(diag, "--afd-exchange p2p", "m2n is of routed experts, which no layer of the model has");
}

enum maq_status maq_afd_check(const struct maq_job *job, const struct maq_serve_options *o, struct maq_diag *diag)
{
    if (o->afd.ffn_ranks <= 0)
        return MAQ_OK;
    MAQ_TRY(check_engine(job, o, diag));
    MAQ_TRY(check_places(job, o, diag));
    return check_model(job, o, diag);
}

/* Replicas stand one behind another, each on GPUs that follow each other. */
enum maq_status maq_afd_check_replica(const struct maq_deployment *d, enum maq_role role, struct maq_diag *diag)
{
    if (!d->afd)
        return MAQ_OK;
    if (role == MAQ_ROLE_PREFILL)
        return refuse(diag, "--afd-ffn-ranks for replicas that decode",
                      "replicas that compute prompts alone have both");
    if (maq_cluster_group_of(&d->job->cluster,
                             maq_afd_first_ffn(&d->job->cluster, (uint32_t)d->afd->attention_ranks)) !=
        &d->job->cluster.groups[0])
        return refuse(diag, "one deployment in which nothing fails, or one kind of nodes",
                      "replicas of a fleet, and nodes of two kinds for each of them");
    return MAQ_OK;
}
