/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.c - reads a cluster and a cost chain from overrides: see machine.h.
 *
 *     cluster     the one-line form, a file, or a map, of which single values can be set: cluster.device.memory_bandwidth
 *     cost        {measured: FILE, provider: analytical|fitted|measured}, as in a job
 */
#include "replay/machine.h"

#include "base/check.h"
#include "capture/codes.h"
#include "cluster/cluster_load.h"
#include "plan/cost_keys.h"

static enum maq_status read_costs(struct maq_machine *m, struct maq_node *map, struct maq_diag *diag)
{
    struct maq_cost_doc costs;
    MAQ_TRY(maq_fields_check_keys(maq_cost_fields, NULL, map, "cost", diag));
    MAQ_TRY(maq_fields_read(&costs, maq_cost_fields, map, NULL, &m->arena, diag));
    m->costs.best = (enum maq_provider)(MAQ_PROVIDER_NONE + 1 + costs.provider);
    if (costs.measured.len == 0)
        return MAQ_OK;
    const char *path = maq_arena_strdup(&m->arena, costs.measured);
    MAQ_TRY(path ? maq_measured_open(&m->measured, path, diag) : MAQ_NO_MEMORY);
    m->costs.measured = m->measured;
    return MAQ_OK;
}

enum maq_status maq_machine_open(struct maq_machine *out, const struct maq_override *overrides, size_t n,
                                 struct maq_diag *diag)
{
    *out = (struct maq_machine){0};
    maq_arena_init(&out->arena, 0);
    MAQ_TRY(maq_doc_init_empty(&out->doc));
    for (size_t i = 0; i < n; i++)
        MAQ_TRY(maq_doc_set_value(&out->doc, overrides[i].path, overrides[i].value, overrides[i].flag, diag));
    struct maq_node *cluster = maq_node_get(out->doc.root, "cluster"), *cost = maq_node_get(out->doc.root, "cost");
    if (!cluster)
        return maq_diag_fail(MAQ_USAGE, diag, MAQ_CODE_REPLAY_EDIT, (struct maq_span){0},
                             "--cluster \"h200-sxm:8 x 4, rail 400G\", or --set 'cluster={device: h200-sxm, ...}'",
                             "%s changes nothing: durations stay as recorded where no cluster is given",
                             overrides[0].flag);
    MAQ_TRY(maq_cluster_load(&out->cluster, cluster, &out->arena, diag));
    MAQ_TRY(read_costs(out, cost, diag));
    return maq_doc_check_unused(&out->doc, diag);
}

void maq_machine_close(struct maq_machine *m)
{
    maq_measured_close(m->measured);
    maq_doc_fini(&m->doc);
    maq_arena_fini(&m->arena);
}
