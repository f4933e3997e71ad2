/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topology.c - from what a machine says of itself to a node group.
 *
 * A scale-up domain is a set of GPUs that NVLink joins, over switches or directly, in one hop or in several (the cube mesh of eight V100:
 * NCCL's rings go around it). Its bandwidth is that of the links of the GPU that has fewest. A node whose domains differ in size is not
 * one that this program can describe.
 */
#include "cluster/topology.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "spec/catalogue.h"
#include "spec/doc_internal.h"
#include "spec/foreign_file.h"

/* Per link and direction: NVLink 2 to 4; NVLink 5; the bridges of GA102 (A6000, A40, RTX 3090). NVIDIA's architecture whitepapers. */
#define LINK_BPS 25e9
#define LINK_5_BPS 50e9
#define LINK_GA102_BPS 14.0625e9

/* NVIDIA's open-gpu-kernel-modules, README of release 550; V100 and T4: pci.ids. One ID may be sold under several names. */
static const struct {
    uint32_t id;
    const char *name;
} devices[] = {
    {0x1db1, "v100-16gb"},
    {0x1db5, "v100-32gb"},
    {0x1db6, "v100-32gb-pcie"},
    {0x1eb8, "t4"},
    {0x20b0, "a100-40gb"},
    {0x20b2, "a100-80gb"},
    {0x20b5, "a100-80gb-pcie"},
    {0x20b7, "a30"},
    {0x20f1, "a100-40gb-pcie"},
    {0x20f3, "a800-80gb"},
    {0x20f5, "a800-80gb-pcie"},
    {0x20f6, "a800-40gb-pcie"},
    {0x2203, "rtx-3090-ti"},
    {0x2204, "rtx-3090"},
    {0x2230, "a6000"},
    {0x2231, "a5000"},
    {0x2235, "a40"},
    {0x2236, "a10"},
    {0x2237, "a10g"},
    {0x2321, "h100-nvl"},
    {0x2322, "h800-pcie"},
    {0x2324, "h800"},
    {0x2329, "h20"},
    {0x2330, "h100-sxm"},
    {0x2331, "h100-pcie"},
    {0x2335, "h200"},
    {0x2684, "rtx-4090"},
    {0x26b1, "rtx-6000-ada"},
    {0x26b5, "l40"},
    {0x26b9, "l40s"},
    {0x26ba, "l20"},
    {0x27b8, "l4"},
};

const char *maq__topology_device(const struct maq__topology *t)
{
    for (size_t i = 0; i < MAQ_COUNT(devices); i++)
        if (devices[i].id == t->pci_device)
            return devices[i].name;
    return NULL;
}

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

/* 0: not known here, and the device's own bandwidth stands. */
static double link_bps(const struct maq_device *device)
{
    if (device->arch == MAQ_ARCH_BLACKWELL)
        return LINK_5_BPS;
    if (device->arch > MAQ_ARCH_BLACKWELL) /* what follows in the list is of other makers, or later */
        return 0;
    return fmod(device->domain_bps, LINK_BPS) == 0 ? LINK_BPS : LINK_GA102_BPS;
}

static enum maq_status apply_domain(struct maq__group_spec *spec, const struct maq__topology *t, const char *path,
                                    struct maq_span at, struct maq_diag *diag)
{
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
    if (count[0] > 1 && !(spec->domain_bps > 0)) {
        double bps = fewest_links(t) * link_bps(&spec->device);
        if (bps > 0 && fabs(bps / spec->device.domain_bps - 1) > 1e-9)
            spec->domain_bps = bps;
    }
    return MAQ_OK;
}

enum maq_status maq__topology_apply(struct maq__group_spec *spec, const struct maq__topology *t, const char *path,
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
    const char *said = maq__topology_device(&topology);
    struct maq_device other;
    if (said && maq__device_by_name(&other, maq_str_of(said), at, arena, diag) == MAQ_OK &&
        other.arch != spec->device.arch)
        maq_diag_add(diag, MAQ_WARNING, MAQ_CODE_TOPOLOGY, at, NULL, "%.200s is of a node of %s, and this one has %s",
                     path, said, spec->device.name);
    return maq__topology_apply(spec, &topology, path, at, diag);
}
