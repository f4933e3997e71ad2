/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topology_nccl.c - the file that NCCL writes where NCCL_TOPO_DUMP_FILE names one, and reads from NCCL_TOPO_FILE.
 *
 *   <system version="1"><cpu numaid="0" ...>
 *     <pci busid="0000:18:00.0" class="0x060400" ...>
 *       <pci busid="0000:1b:00.0" class="0x030200" device="0x2330" ...>
 *         <gpu dev="0" sm="90" rank="0" gdr="1"><nvlink target="0000:07:00.0" count="18" tclass="0x068000"/></gpu></pci>
 *       <pci class="0x020700" ...><nic><net name="mlx5_0" dev="0" speed="400000" .../></nic></pci> ...
 *
 * Links whose target is of class 0x068000 go to switches, others to the PCI device that they name. A speed is in Mb/s. A port with
 * net="0" is part of another one. Ports slower than the fastest are not counted: they are there for storage and login. With several
 * <system> (NVL72) the first that has GPUs is the node. Source: NVIDIA/nccl, src/graph.
 */
#include <expat.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cluster/topology.h"

#define SWITCH_CLASS "0x068000"
#define MOST_DEPTH 64
#define BUS_ID 24

struct target {
    int32_t gpu, count;
    char bus[BUS_ID];
};

struct reader {
    struct maq__topology *t;
    XML_Parser parser;
    char pci[MOST_DEPTH][BUS_ID]; /* bus IDs of the open <pci> */
    uint32_t device[MOST_DEPTH];  /* their device IDs */
    int32_t depth;                /* of open <pci> */
    char gpu_bus[MAQ_TOPOLOGY_MOST][BUS_ID];
    struct target target[MAQ_TOPOLOGY_MOST * 32];
    int32_t n_targets;
    bool other_system; /* one after that with the GPUs */
    const char *why;   /* what is wrong */
};

static const char *attribute(const char **list, const char *name)
{
    for (; *list; list += 2)
        if (strcmp(list[0], name) == 0)
            return list[1];
    return NULL;
}

/* A number, decimal or hexadecimal with 0x; `otherwise` where there is none. */
static int64_t number(const char **list, const char *name, int64_t otherwise)
{
    const char *text = attribute(list, name);
    int64_t value = 0;
    if (!text)
        return otherwise;
    if (strncmp(text, "0x", 2) != 0)
        return maq_str_to_i64(&value, maq_str_of(text)) ? value : otherwise;
    uint64_t bits = 0;
    return maq_str_hex_to_u64(&bits, maq_str_of(text + 2)) && bits <= INT32_MAX ? (int64_t)bits : otherwise;
}

static void stop(struct reader *r, const char *why)
{
    r->why = why;
    (void)XML_StopParser(r->parser, XML_FALSE);
}

static void copy_bus(char out[BUS_ID], const char *bus)
{
    size_t n = bus ? strnlen(bus, BUS_ID - 1) : 0;
    if (n > 0)
        memcpy(out, bus, n);
    out[n] = '\0';
}

static void open_pci(struct reader *r, const char **list)
{
    if (r->depth == MOST_DEPTH) {
        stop(r, "PCI devices in more levels than any machine has");
        return;
    }
    copy_bus(r->pci[r->depth], attribute(list, "busid"));
    r->device[r->depth++] = (uint32_t)number(list, "device", 0);
}

static void open_gpu(struct reader *r)
{
    struct maq__topology *t = r->t;
    if (t->gpus == MAQ_TOPOLOGY_MOST) {
        stop(r, "more GPUs than a node has");
        return;
    }
    uint32_t device = r->depth > 0 ? r->device[r->depth - 1] : 0;
    if (t->gpus > 0 && device != t->pci_device) {
        stop(r, "GPUs of two kinds in a node");
        return;
    }
    t->pci_device = device;
    copy_bus(r->gpu_bus[t->gpus++], r->depth > 0 ? r->pci[r->depth - 1] : NULL);
}

static void open_nvlink(struct reader *r, const char **list)
{
    const char *class = attribute(list, "tclass"), *bus = attribute(list, "target");
    int64_t count = number(list, "count", 0);
    if (r->t->gpus == 0 || count <= 0 || count > 1024)
        return;
    if (class && strcmp(class, SWITCH_CLASS) == 0)
        r->t->to_switch[r->t->gpus - 1] += (int32_t)count;
    else if (bus && r->n_targets < (int32_t)(sizeof r->target / sizeof *r->target)) {
        struct target *target = &r->target[r->n_targets++];
        *target = (struct target){.gpu = r->t->gpus - 1, .count = (int32_t)count};
        copy_bus(target->bus, bus);
    }
}

static void open_net(struct reader *r, const char **list)
{
    struct maq__topology *t = r->t;
    double bps = (double)number(list, "speed", 0) * 1.25e5;
    if (!attribute(list, "dev") || number(list, "net", 1) == 0)
        return;
    bps = bps >= MAQ_MIN_LINK_BPS && bps <= MAQ_MAX_LINK_BPS ? bps : 0; /* some ports say -1 */
    if (bps > t->nic_bps)
        t->nics = 0;
    t->nic_bps = bps > t->nic_bps ? bps : t->nic_bps;
    t->nics += bps >= t->nic_bps;
}

static void opened(void *context, const char *name, const char **list)
{
    struct reader *r = context;
    if (strcmp(name, "system") == 0)
        r->other_system = r->t->gpus > 0;
    if (r->other_system || r->why)
        return;
    if (strcmp(name, "pci") == 0)
        open_pci(r, list);
    else if (strcmp(name, "gpu") == 0)
        open_gpu(r);
    else if (strcmp(name, "nvlink") == 0)
        open_nvlink(r, list);
    else if (strcmp(name, "net") == 0)
        open_net(r, list);
}

static void closed(void *context, const char *name)
{
    struct reader *r = context;
    if (!r->other_system && strcmp(name, "pci") == 0 && r->depth > 0)
        r->depth--;
}

/* Direct links, once all bus IDs are known. The other end may be no GPU: a host with NVLink. */
static void join(struct reader *r)
{
    for (int32_t i = 0; i < r->n_targets; i++)
        for (int32_t g = 0; g < r->t->gpus; g++)
            if (strcmp(r->target[i].bus, r->gpu_bus[g]) == 0)
                r->t->links[r->target[i].gpu][g] += r->target[i].count;
}

enum maq_status maq__topology_nccl(struct maq__topology *out, struct maq_str text, const char *path, struct maq_span at,
                                   struct maq_diag *diag)
{
    struct reader *r = maq__calloc(sizeof *r);
    XML_Parser parser = r ? XML_ParserCreate(NULL) : NULL;
    if (!parser) {
        free(r);
        return maq_no_memory(diag, NULL);
    }
    r->t = out;
    r->parser = parser;
    XML_SetUserData(parser, r);
    XML_SetElementHandler(parser, opened, closed);
    enum maq_status status = MAQ_OK;
    if (XML_Parse(parser, text.ptr, (int)text.len, XML_TRUE) == XML_STATUS_OK && !r->why)
        join(r);
    else
        status = maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_TOPOLOGY, at, NULL, "%.200s, line %lu: %s", path,
                               (unsigned long)XML_GetCurrentLineNumber(parser),
                               r->why ? r->why : XML_ErrorString(XML_GetErrorCode(parser)));
    XML_ParserFree(parser);
    free(r);
    return status;
}
