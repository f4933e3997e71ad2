/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_dynamo.c - the best fleet as a manifest for NVIDIA Dynamo.
 *
 * It has the form of the v1beta1 examples of ai-dynamo/dynamo (of its backends, agg.yaml). Which image it is, and what the
 * cluster calls its secret, are the reader's to fill in. Of TensorRT-LLM Dynamo reads a file in place of options.
 */
#include "base/str.h"
#include "base/text.h"
#include "report/serve/engine_arguments.h"
#include "report/serve/plan_write.h"

static void put_arguments(struct maq_buf *b, const struct maq_serve_candidate *c, enum maq_role role,
                          const struct maq_engine_arguments *a)
{
    maq_buf_addf(b, "        - args:\n          - %s\n          - \"%s\"\n",
                 c->options.engine == MAQ_ENGINE_VLLM ? "--model" : "--model-path", c->job->model.name);
    if (role != MAQ_ROLE_BOTH)
        maq_buf_addf(b, "          - --disaggregation-mode\n          - %s\n", maq_role_name(role));
    if (role == MAQ_ROLE_PREFILL && c->options.engine == MAQ_ENGINE_VLLM)
        maq_buf_adds(b, "          - --kv-transfer-config\n          - '" MAQ_PLAN_NIXL "'\n");
    for (uint32_t i = 0; i < a->n && c->options.engine != MAQ_ENGINE_TRTLLM; i++) {
        maq_buf_addf(b, "          - %s\n", a->at[i].flag);
        if (a->at[i].value[0])
            maq_buf_addf(b, "          - \"%s\"\n", a->at[i].value);
    }
    if (c->options.engine != MAQ_ENGINE_TRTLLM)
        return;
    maq_buf_adds(b, "          - --extra-engine-args\n          - config.yaml\n");
    for (uint32_t i = 0; i < a->n; i++)
        maq_buf_addf(b, "          # config.yaml: %s: %s\n", a->at[i].flag + 2,
                     a->at[i].value[0] ? a->at[i].value : "true");
    for (uint32_t i = 0; i < a->n_config; i++)
        maq_buf_addf(b, "          # config.yaml: %s\n", a->config[i]);
}

static void put_component(struct maq_buf *b, const struct maq_report_serve_plan *p, uint32_t part)
{
    const struct maq_serve_candidate *c = maq_plan_part(p, part);
    const struct maq_node_group *g = &c->job->cluster.groups[0];
    uint32_t nodes = maq_plan_nodes(c);
    struct maq_engine_arguments a;
    maq_engine_arguments(&a, c->job, &c->options);
    maq_buf_adds(b, "  - ");
    if (nodes > 1)
        maq_buf_addf(b, "multinode:\n      nodeCount: %u\n    ", nodes);
    enum maq_role role = p->search->fleet[part].role;
    maq_buf_addf(b, "name: worker-%u\n    type: %s\n    replicas: %u\n", part,
                 role == MAQ_ROLE_BOTH ? "worker" : maq_role_name(role), p->search->fleet[part].replicas);
    maq_buf_addf(b, "    podTemplate:\n      spec:\n        # %s\n        containers:\n", g->device.name);
    put_arguments(b, c, role, &a);
    maq_buf_addf(
        b,
        "          command: [python3, -m, %s]\n          envFrom:\n          - secretRef:\n              name: "
        "hf-token-secret\n          image: %s-runtime # of your registry\n          name: main\n          "
        "resources:\n            limits:\n              nvidia.com/gpu: \"%u\"\n",
        a.dynamo, maq_engine_name(c->options.engine), maq_plan_gpus_of_node(c));
}

enum maq_status maq_report_serve_plan_manifest(char **out, const struct maq_report_serve_plan *p, struct maq_diag *diag)
{
    struct maq_buf b;
    const char *engine = maq_engine_name(maq_plan_part(p, 0)->options.engine);
    (void)diag;
    maq_buf_init(&b, MAQ_PLAN_LARGEST);
    maq_buf_addf(&b,
                 "apiVersion: nvidia.com/v1beta1\nkind: DynamoGraphDeployment\nmetadata:\n  name: serve\nspec:\n  "
                 "backendFramework: %s\n  components:\n  - name: Frontend\n    type: frontend\n    replicas: 1\n    "
                 "podTemplate:\n      spec:\n        containers:\n        - image: %s-runtime # of your registry\n"
                 "          name: main\n",
                 engine, engine);
    for (uint32_t i = 0; i < p->search->n_fleet; i++)
        put_component(&b, p, i);
    *out = maq_buf_take(&b);
    return *out ? MAQ_OK : MAQ_NO_MEMORY;
}
