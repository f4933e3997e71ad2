/* SPDX-License-Identifier: Apache-2.0 */
/* point.c - loads the machines that points name, once each. See point.h. */
#include "validate/collectives/point.h"

#include "base/str.h"
#include "cluster/cluster_load.h"

struct maq_coll_machine {
    struct maq_coll_machine *next;
    struct maq_str text;
    struct maq_coll_setting setting;
    struct maq_cluster cluster;
};

bool maq__coll_point_near(const struct maq_coll_point *point)
{
    return point->coll.at.domains == 1;
}

static enum maq_status load(struct maq_coll_machine *m, struct maq_arena *arena, struct maq_diag *diag)
{
    struct maq_doc doc;
    enum maq_status status = maq_doc_parse(&doc, "cluster", m->text, MAQ_ORIGIN_DOCUMENT, diag);
    if (status == MAQ_OK)
        status = maq_cluster_load(&m->cluster, doc.root, arena, diag);
    maq_doc_fini(&doc);
    for (uint32_t g = 0; status == MAQ_OK && g < m->cluster.n_groups; g++) {
        m->cluster.groups[g].domain_multicast &= !m->setting.no_multicast;
        m->cluster.groups[g].fabric.in_network_reduction = m->setting.in_network_reduction;
    }
    return status;
}

static bool same_setting(struct maq_coll_setting a, struct maq_coll_setting b)
{
    return a.no_multicast == b.no_multicast && a.in_network_reduction == b.in_network_reduction;
}

const struct maq_cluster *maq__coll_cluster(struct maq_coll_clusters *clusters, struct maq_str text,
                                            struct maq_coll_setting setting, struct maq_diag *diag)
{
    for (struct maq_coll_machine *m = clusters->first; m; m = m->next)
        if (same_setting(m->setting, setting) && maq_str_eq(m->text, text))
            return &m->cluster;
    struct maq_coll_machine *m = MAQ_ARENA_NEW(clusters->arena, struct maq_coll_machine, 1);
    const char *copy = maq_arena_strdup(clusters->arena, text);
    if (!m || !copy)
        return NULL;
    m->text = maq_str_of(copy);
    m->setting = setting;
    if (load(m, clusters->arena, diag) != MAQ_OK)
        return NULL;
    m->next = clusters->first;
    clusters->first = m;
    return &m->cluster;
}
