/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topology.c - from what a machine says of itself to a node group.
 *
 * A scale-up domain is a set of GPUs that NVLink joins, over switches or directly, in one hop or in several (the cube mesh of eight V100:
 * NCCL's rings go around it). Its bandwidth is that of the links of the GPU that has fewest. A node whose domains differ in size is not
 * one that this program can describe.
 */
#include "cluster/topology.h"

#include <string.h>

#include "base/text.h"
#include "spec/doc_internal.h"
#include "spec/foreign_file.h"

enum maq__topology_kind maq__topology_kind(const char *path)
{
    const struct maq_foreign *f = maq_foreign_file(path);
    if (f && strstr(f->what, "topology file of NCCL"))
        return MAQ__TOPOLOGY_NCCL;
    return f && strstr(f->what, "nvidia-smi topo -m") ? MAQ__TOPOLOGY_SMI : MAQ__TOPOLOGY_NONE;
}

enum maq_status maq__topology_read(struct maq__topology *out, const char *path, struct maq_span at,
                                   struct maq_diag *diag)
{
    struct maq_buf text;
    enum maq_status status = maq__doc_read(&text, path, diag);
    struct maq_str all = {text.ptr ? text.ptr : "", text.len};
    *out = (struct maq__topology){0};
    if (status != MAQ_OK) {
        maq_buf_fini(&text);
        return status;
    }
    switch (maq__topology_kind(path)) {
    case MAQ__TOPOLOGY_SMI:
        status = maq__topology_smi(out, all, path, at, diag);
        break;
    case MAQ__TOPOLOGY_NCCL:
        status = maq__topology_nccl(out, all, path, at, diag);
        break;
    case MAQ__TOPOLOGY_NONE:
        status =
            maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_TOPOLOGY, at,
                          "nvidia-smi topo -m >topo.txt, or NCCL_TOPO_DUMP_FILE=topo.xml of any program that uses NCCL",
                          "%.200s is no topology of a node that is known here", path);
        break;
    }
    maq_buf_fini(&text);
    if (status == MAQ_OK && out->gpus == 0)
        status = maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_TOPOLOGY, at, NULL, "%.200s has no GPU", path);
    return status;
}

/* --- domains ------------------------------------------------------------------------------------------------------- */

/* Links of a matrix of which a GPU has more in all pairs together than at all go to switches. */
static void find_switches(struct maq__topology *t, int32_t links_of_a_device)
{
    for (int32_t a = 0; t->switches_as_pairs && a < t->gpus; a++) {
        int32_t sum = 0, most = 0;
        for (int32_t b = 0; b < t->gpus; b++) {
            sum += t->links[a][b];
            most = t->links[a][b] > most ? t->links[a][b] : most;
        }
        if (sum <= links_of_a_device)
            continue;
        t->to_switch[a] = most;
        memset(t->links[a], 0, sizeof t->links[a]);
    }
}

static bool joined(const struct maq__topology *t, int32_t a, int32_t b)
{
    return t->links[a][b] > 0 || t->links[b][a] > 0 || (t->to_switch[a] > 0 && t->to_switch[b] > 0);
}

/* Numbers the domains from 0 on; returns how many there are. */
static int32_t find_domains(int32_t domain[MAQ_TOPOLOGY_MOST], const struct maq__topology *t)
{
    int32_t n = 0;
    for (int32_t g = 0; g < t->gpus; g++)
        domain[g] = -1;
    for (int32_t first = 0; first < t->gpus; first++) {
        if (domain[first] >= 0)
            continue;
        domain[first] = n;
        for (bool grown = true; grown;) {
            grown = false;
            for (int32_t a = 0; a < t->gpus; a++)
                for (int32_t b = 0; b < t->gpus; b++)
                    if (domain[a] == n && domain[b] < 0 && joined(t, a, b)) {
                        domain[b] = n;
                        grown = true;
                    }
        }
        n++;
    }
    return n;
}

/* NVLinks of the GPU that has fewest. */
static int32_t fewest_links(const struct maq__topology *t)
{
    int32_t fewest = INT32_MAX;
    for (int32_t a = 0; a < t->gpus; a++) {
        int32_t links = t->to_switch[a];
        for (int32_t b = 0; b < t->gpus; b++)
            links += t->links[a][b];
        fewest = links < fewest ? links : fewest;
    }
    return fewest;
}

static enum maq_status apply_domain(struct maq__group_spec *spec, struct maq__topology *t, const char *path,
                                    struct maq_span at, struct maq_diag *diag)
{
    const int32_t links = spec->device.domain_links;
    if (links > 0)
        find_switches(t, links);
    int32_t domain[MAQ_TOPOLOGY_MOST], count[MAQ_TOPOLOGY_MOST] = {0}, n = find_domains(domain, t);
    bool over_pcie =
        spec->device.domain_bps <= spec->device.host_bps; /* cards without NVLink: the file has nothing to add */
    if (spec->domain > 0 || over_pcie)
        return MAQ_OK;
    for (int32_t g = 0; g < t->gpus; g++)
        count[domain[g]]++;
    for (int32_t d = 1; d < n; d++)
        if (count[d] != count[0])
            return maq_diag_fail(
                MAQ_BAD_INPUT, diag, MAQ_CODE_TOPOLOGY, at,
                "describe the nodes as groups of their own, or say `domain 1` where NVLink is not used",
                "%.200s: NVLink joins %d GPUs here and %d there", path, (int)count[0], (int)count[d]);
    /* A domain that is sold to span nodes shows one node of it here. */
    if (spec->device.domain_devices > spec->device.devices_per_node && n == 1 &&
        t->gpus <= spec->device.devices_per_node)
        return MAQ_OK;
    spec->domain = count[0];
    spec->domain_at = at;
    if (count[0] > 1 && !(spec->domain_bps > 0) && links > 0 && fewest_links(t) != links)
        spec->domain_bps = spec->device.domain_bps * fewest_links(t) / links;
    return MAQ_OK;
}

enum maq_status maq__topology_apply(struct maq__group_spec *spec, struct maq__topology *t, const char *path,
                                    struct maq_span at, struct maq_diag *diag)
{
    if (spec->per_node > 0 && spec->per_node != t->gpus)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_TOPOLOGY, at, NULL, "%.200s has %d GPUs, and a node %d",
                             path, (int)t->gpus, (int)spec->per_node);
    spec->per_node = t->gpus;
    MAQ_TRY(apply_domain(spec, t, path, at, diag));
    if (spec->nics == 0 && !spec->rail)
        spec->nics = t->nics;
    if (!(spec->nic_bps > 0) && !spec->fabric && spec->fabric_name.len == 0 && t->nic_bps > 0) {
        spec->nic_bps = t->nic_bps;
        spec->rate_at = at;
    }
    return MAQ_OK;
}

enum maq_status maq__group_topology(struct maq__group_spec *spec, struct maq_str file, struct maq_span at,
                                    struct maq_arena *arena, struct maq_diag *diag)
{
    struct maq__topology topology;
    const char *path = maq_arena_strdup(arena, file);
    if (!path)
        return maq_no_memory(diag, NULL);
    MAQ_TRY(maq__topology_read(&topology, path, at, diag));
    struct maq_device said;
    MAQ_TRY(maq__device_by_pci_id(&said, topology.pci_device, at, arena, diag));
    if (said.name && said.arch != spec->device.arch)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_TOPOLOGY, at,
                             "name the GPU that the file is of, or give the other file",
                             "%.200s is of a node of %s, and this one has %s", path, said.name, spec->device.name);
    return maq__topology_apply(spec, &topology, path, at, diag);
}
