/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_llm_d.c - the best fleet as values of llm-d's Helm chart.
 *
 * The chart is llm-d-modelservice v0.4.12 (llm-d-incubation/llm-d-modelservice, charts/llm-d-modelservice, whose values.schema.json
 * says what a file may have). A release of it is vLLM in one pool, `decode`, or in two; a fleet that is neither is refused.
 *
 *   a replica on one node       a pod. The chart writes `vllm serve`, model, port, --tensor-parallel-size and --data-parallel-size
 *                               (modelCommand vllmServe); `args` are the other options
 *   a replica on several nodes  a LeaderWorkerSet, a pod for each node (multinode). The chart gives all of them the same words, so that
 *                               the command is a shell's: each pod finds its number and its leader in what LeaderWorkerSet sets,
 *                               and all but the first are without an API server. vLLM shares ranks out by --nnodes and --node-rank
 *
 * Requests reach prefill through a proxy beside decode, which has decode's port then: vLLM is behind it on another one. The image, the secret
 * and the labels of an InferencePool are the reader's to fill in.
 */
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "base/text.h"
#include "report/codes.h"
#include "report/serve/engine_arguments.h"
#include "report/serve/plan_write.h"

#define SERVICE_PORT 8000 /* the chart's own values */
#define PROXIED_PORT 8200
#define CHECKPOINT_BYTES 4.0 /* of the volume that it is loaded into, for each parameter: 16 bits, and as much again */

struct pool {
    const struct maq_serve_candidate *c;
    struct maq_engine_arguments a;
    uint32_t replicas, nodes;
    enum maq_role role;
    int port; /* of vLLM */
};

static enum maq_status check(const struct maq_report_serve_plan *p, struct maq_diag *diag)
{
    static const char hint[] = "--write-manifest, or --write-command";
    const struct maq_serve_candidate *c = maq_plan_part(p, 0);
    bool pools = p->search->n_fleet == 2 && p->search->fleet[0].role != MAQ_ROLE_BOTH;
    if (c->options.engine != MAQ_ENGINE_VLLM)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_PLAN_FORM, (struct maq_span){0}, hint,
                             "llm-d's chart starts vLLM, and the best fleet is of %s",
                             maq_engine_name(c->options.engine));
    if (p->search->n_fleet > 1 && !pools)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_PLAN_FORM, (struct maq_span){0}, hint,
                             "a release of llm-d's chart has one kind of replica, the best fleet %u",
                             p->search->n_fleet);
    return MAQ_OK;
}

/* ---- the command of a pod ---- */

static bool is_of_chart(const char *flag)
{
    return strcmp(flag, "--tensor-parallel-size") == 0 || strcmp(flag, "--data-parallel-size") == 0;
}

static void put_args(struct maq_buf *b, const struct pool *l)
{
    maq_buf_adds(b, "    modelCommand: vllmServe\n    args:");
    size_t empty = b->len;
    for (uint32_t i = 0; i < l->a.n; i++) {
        if (is_of_chart(l->a.at[i].flag))
            continue;
        maq_buf_addf(b, "\n    - %s", l->a.at[i].flag);
        if (l->a.at[i].value[0])
            maq_buf_addf(b, "\n    - \"%s\"", l->a.at[i].value);
    }
    if (l->role != MAQ_ROLE_BOTH)
        maq_buf_adds(b, "\n    - --kv-transfer-config\n    - '" MAQ_PLAN_NIXL "'");
    maq_buf_adds(b, b->len == empty ? " []\n" : "\n");
}

static void put_script(struct maq_buf *b, const struct pool *l)
{
    const char *model = l->c->job->model.name;
    maq_buf_addf(b,
                 "    modelCommand: custom\n    command: [/bin/sh, -c]\n    args:\n    - >-\n      exec vllm serve %s "
                 "--served-model-name %s --port %d\n      --nnodes %u --node-rank $LWS_WORKER_INDEX --master-addr "
                 "$LWS_LEADER_ADDRESS\n      $(test $LWS_WORKER_INDEX = 0 || echo --headless)\n",
                 model, model, l->port, l->nodes);
    for (uint32_t i = 0; i < l->a.n; i++)
        maq_buf_addf(b, "      %s%s%s\n", l->a.at[i].flag, l->a.at[i].value[0] ? " " : "", l->a.at[i].value);
    if (l->role != MAQ_ROLE_BOTH)
        maq_buf_adds(b, "      --kv-transfer-config '" MAQ_PLAN_NIXL "'\n");
}

/* What NIXL has to know to be found by the other pool. */
static void put_handover(struct maq_buf *b)
{
    maq_buf_adds(b, "    env:\n    - name: VLLM_NIXL_SIDE_CHANNEL_HOST\n      valueFrom: {fieldRef: {fieldPath: "
                    "status.podIP}}\n");
}

/* ---- a pool ---- */

static void put_pool(struct maq_buf *b, const struct pool *l)
{
    const struct maq_serve_candidate *c = l->c;
    uint32_t gpus = maq_plan_gpus_of_node(c), dp = (uint32_t)c->options.dp, local = dp / l->nodes;
    maq_buf_addf(b,
                 "%s: # %s\n  create: true\n  replicas: %u\n  parallelism:\n    tensor: %d\n    data: %u\n    "
                 "dataLocal: %u\n    workers: %u\n",
                 l->role == MAQ_ROLE_PREFILL ? "prefill" : "decode", c->job->cluster.groups[0].device.name, l->replicas,
                 c->job->plan.tp, dp, local > 0 ? local : 1, l->nodes);
    maq_buf_addf(b, "  containers:\n  - name: vllm\n    image: vllm-runtime # of your registry\n");
    if (l->nodes > 1)
        put_script(b, l);
    else
        put_args(b, l);
    if (l->role != MAQ_ROLE_BOTH)
        put_handover(b);
    if (l->a.other_checkpoint)
        maq_buf_addf(b, "    # of a checkpoint whose weights are %s\n", maq_weights_name(c->options.weights));
    maq_buf_addf(b,
                 "    ports:\n    - containerPort: %d\n    resources:\n      limits: {nvidia.com/gpu: \"%u\"}\n      "
                 "requests: {nvidia.com/gpu: \"%u\"}\n    mountModelVolume: true\n",
                 l->port, gpus, gpus);
}

static struct pool pool_of(const struct maq_report_serve_plan *p, uint32_t part)
{
    const struct maq_serve_part_of_fleet *f = &p->search->fleet[part];
    struct pool l = {.c = maq_plan_part(p, part), .replicas = f->replicas, .role = f->role};
    l.nodes = maq_plan_nodes(l.c);
    l.port = l.role == MAQ_ROLE_DECODE ? PROXIED_PORT : SERVICE_PORT;
    maq_engine_arguments(&l.a, l.c->job, &l.c->options);
    return l;
}

enum maq_status maq_report_serve_plan_llm_d(char **out, const struct maq_report_serve_plan *p, struct maq_diag *diag)
{
    struct maq_buf b;
    MAQ_TRY(check(p, diag));
    bool pools = p->search->n_fleet == 2, multinode = false;
    const struct maq_model *m = &maq_plan_part(p, 0)->job->model;
    for (uint32_t i = 0; i < p->search->n_fleet; i++)
        multinode = multinode || maq_plan_nodes(maq_plan_part(p, i)) > 1;
    maq_buf_init(&b, MAQ_PLAN_LARGEST);
    maq_buf_addf(&b,
                 "# values of llm-d-modelservice v0.4.12\nmultinode: %s\nmodelArtifacts:\n  name: \"%s\"\n  uri: "
                 "\"hf://%s\"\n  size: %.0fGi\n  authSecretName: hf-token-secret\n  labels:\n    "
                 "llm-d.ai/inference-serving: \"true\"\naccelerator:\n  type: nvidia\n",
                 multinode ? "true" : "false", m->name, m->name,
                 (double)m->params * CHECKPOINT_BYTES / (double)(1u << 30) + 0.5);
    maq_buf_addf(&b, "routing:\n  servicePort: %d\n  proxy:\n    enabled: %s\n    targetPort: %d\n", SERVICE_PORT,
                 pools ? "true" : "false", PROXIED_PORT);
    for (uint32_t i = 0; i < p->search->n_fleet; i++) {
        struct pool l = pool_of(p, i);
        put_pool(&b, &l);
    }
    if (!pools)
        maq_buf_adds(&b, "prefill:\n  create: false\n");
    *out = maq_buf_take(&b);
    return *out ? MAQ_OK : MAQ_NO_MEMORY;
}
