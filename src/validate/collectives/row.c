/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row.c - from a row of nccl-tests results to a collective on a cluster.
 *
 *   collective   nccl-tests' names: all_reduce, alltoall, sendrecv, ...; AllReduce, all-reduce and the like mean the same
 *   size_bytes   nccl-tests' size column: the buffer of struct maq_coll
 *   time_us      out of place; a row without it has a bandwidth, algorithm (size / time) or bus
 *   gpu          the driver's name: "NVIDIA H100 80GB HBM3" is H100, a run of words that the catalogue knows
 *   interconnect prose, of which the parts about the network are read as those of training runs are (validate/train/cluster_text.c)
 *   notes        settings that change which mechanism runs: NVLS off, TCP sockets
 *
 * Where the caller gives the machine (struct maq_coll_clusters), what a row says of device and network is not asked.
 *
 * sendrecv of nccl-tests is a ring: every rank sends to the next one and receives from the one before.
 */
#include "validate/collectives/row.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "base/text.h"
#include "cluster/device_name.h"
#include "validate/phrase.h"
#include "validate/train/interpret.h"

#define MAX_DEVICES 1048576
#define MAX_BYTES 1e15 /* no device has a thousandth of it */

static const struct maq_csv_wanted columns[MAQ_COLL_COLUMN_COUNT] = {
#define COLUMN_ROW(name, needed) [MAQ_COLL_COLUMN_##name] = {#name, needed, NULL},
    MAQ_COLL_COLUMN_LIST(COLUMN_ROW)
#undef COLUMN_ROW
};

static const struct {
    const char *name; /* letters and digits of it */
    enum maq_coll_kind kind;
} kinds[] = {
    {"allreduce", MAQ_COLL_ALL_REDUCE}, {"allgather", MAQ_COLL_ALL_GATHER}, {"reducescatter", MAQ_COLL_REDUCE_SCATTER},
    {"alltoall", MAQ_COLL_ALL_TO_ALL},  {"all2all", MAQ_COLL_ALL_TO_ALL},   {"broadcast", MAQ_COLL_BROADCAST},
    {"bcast", MAQ_COLL_BROADCAST},      {"sendrecv", MAQ_COLL_SEND_RECV},
};

enum maq_status maq__coll_table_bind(struct maq_coll_table *table, struct maq_diag *diag)
{
    return maq_csv_bind(table->at, &table->csv, columns, MAQ_COLL_COLUMN_COUNT, diag);
}

struct maq_str maq__coll_cell(const struct maq_coll_table *table, uint32_t row, enum maq_coll_column column)
{
    return maq_csv_get(&table->csv, row, table->at[column]);
}

/* A positive number; 0 when there is none. */
static double number(const struct maq_coll_table *table, uint32_t row, enum maq_coll_column column)
{
    double value;
    if (!maq_str_to_double(&value, maq__coll_cell(table, row, column)) || !isfinite(value) || value < 0)
        return 0;
    return value;
}

static bool read_kind(enum maq_coll_kind *out, struct maq_str name)
{
    char plain[32];
    maq__plain_name(plain, sizeof plain, name);
    for (size_t i = 0; i < MAQ_COUNT(kinds); i++)
        if (strcmp(plain, kinds[i].name) == 0) {
            *out = kinds[i].kind;
            return true;
        }
    return false;
}

/* Bus bandwidth over algorithm bandwidth, as nccl-tests defines it (its doc/PERFORMANCE.md). */
static double bus_factor(enum maq_coll_kind kind, double n)
{
    if (kind == MAQ_COLL_ALL_REDUCE)
        return 2.0 * (n - 1.0) / n;
    return kind == MAQ_COLL_BROADCAST || kind == MAQ_COLL_SEND_RECV ? 1.0 : (n - 1.0) / n;
}

static double seconds(const struct maq_coll_table *table, uint32_t row, enum maq_coll_kind kind, double bytes, double n)
{
    double us = number(table, row, MAQ_COLL_COLUMN_time_us), alg = number(table, row, MAQ_COLL_COLUMN_algbw_GBs),
           bus = number(table, row, MAQ_COLL_COLUMN_busbw_GBs);
    if (us > 0)
        return us * 1e-6;
    if (alg > 0)
        return bytes / (alg * 1e9);
    return bus > 0 ? bytes * bus_factor(kind, n) / (bus * 1e9) : 0;
}

/*
 * Settings that change what NCCL reaches the network through. The numbered ones are those of argonne-lcf/alcf-nccl-tests,
 * bench_opt.sh: 1 and 2 come before the plugin for libfabric is chosen, 5 has the host match messages.
 */
static const struct {
    const char *phrase, *network;
} settings[] = {
    {"tcp|sockets|setup2", "tcp; "},
    {"software matching|alltoall tuning", "slingshot-11 software matching; "},
};

/* The parts of the interconnect that are not about the links inside a node. */
static void network_parts(struct maq_buf *net, struct maq_str note, struct maq_str notes)
{
    for (size_t i = 0; i < MAQ_COUNT(settings); i++) /* first, so that it counts */
        if (maq__phrase_in(notes, settings[i].phrase, NULL))
            maq_buf_adds(net, settings[i].network);
    while (note.len > 0) {
        size_t n = 0;
        while (n < note.len && note.ptr[n] != ';')
            n++;
        struct maq_str part = {note.ptr, n};
        if (!maq__phrase_in(part, "nvlink*|intra|nvswitch|xgmi|infinity fabric", NULL))
            maq_buf_addf(net, "%.*s; ", (int)part.len, part.ptr);
        note = n < note.len ? (struct maq_str){note.ptr + n + 1, note.len - n - 1} : MAQ_STR("");
    }
}

/* Appends the network to a cluster's one-line form; false when too little is said: machines with Slingshot have one, two
 * or four ports in a node, where other networks go with their machine. */
static bool add_network(struct maq_buf *b, struct maq_str note, struct maq_str notes, int64_t per_node)
{
    struct maq_buf net;
    double gbps;
    const char *kind;
    maq_buf_init(&net, 1024);
    network_parts(&net, note, notes);
    (void)maq__network_text(b, &gbps, &kind, (struct maq_str){net.ptr ? net.ptr : "", net.len}, per_node);
    b->failed |= net.failed;
    bool known = gbps > 0 || !maq__phrase_in((struct maq_str){net.ptr ? net.ptr : "", net.len}, "slingshot*", NULL);
    maq_buf_fini(&net);
    return known;
}

static const char *find_cluster(const struct maq_cluster **out, const struct maq_coll_table *table, uint32_t row,
                                const struct maq_catalogue_entry *device, int64_t devices, int64_t per_node,
                                struct maq_coll_clusters *clusters, struct maq_diag *diag)
{
    bool known = true;
    struct maq_str note = maq__coll_cell(table, row, MAQ_COLL_COLUMN_interconnect),
                   notes = maq__coll_cell(table, row, MAQ_COLL_COLUMN_notes);
    struct maq_buf b;
    maq_buf_init(&b, 1024);
    if (clusters->given.len > 0) {
        maq_buf_addf(&b, "%.*s", (int)clusters->given.len, clusters->given.ptr);
    } else {
        maq_buf_addf(&b, "%s:%lld x %lld", device->name, (long long)per_node,
                     (long long)((devices + per_node - 1) / per_node));
        if (devices > per_node && 72 % per_node == 0 && maq__phrase_in(note, "*nvl72", NULL))
            maq_buf_addf(&b, ", domain 72");
        if (devices > per_node)
            known = add_network(&b, note, notes, per_node);
    }
    struct maq_coll_setting setting = {
        .no_multicast = maq__phrase_in(notes, "nvls off|nvls_enable=0|ring", NULL),
        .in_network_reduction = maq__phrase_in(note, "sharp", NULL) || maq__phrase_in(notes, "sharp", NULL),
    };
    *out = b.failed || !known ? NULL : maq__coll_cluster(clusters, (struct maq_str){b.ptr, b.len}, setting, diag);
    maq_buf_fini(&b);
    return !known ? "ports of the network not stated" : *out ? NULL : "a machine that maquette refuses";
}

/* Members of a node apart: a run of fewer ranks a node than it has devices is taken to have them evenly spaced. */
static uint32_t stride_of(const struct maq_cluster *cluster, uint32_t ranks_per_node)
{
    uint32_t devices = (uint32_t)cluster->groups[0].devices_per_node;
    return ranks_per_node < devices && devices % ranks_per_node == 0 ? devices / ranks_per_node : 1;
}

const char *maq__coll_row(struct maq_coll_point *out, const struct maq_coll_table *table, uint32_t row,
                          struct maq_coll_clusters *clusters, struct maq_diag *diag)
{
    enum maq_coll_kind kind;
    double n = number(table, row, MAQ_COLL_COLUMN_num_gpus),
           per_node = number(table, row, MAQ_COLL_COLUMN_gpus_per_node),
           bytes = number(table, row, MAQ_COLL_COLUMN_size_bytes);
    const struct maq_catalogue_entry *device = maq_device_named(maq__coll_cell(table, row, MAQ_COLL_COLUMN_gpu));
    if (!device && clusters->given.len == 0)
        return "device missing or unknown";
    if (!read_kind(&kind, maq__coll_cell(table, row, MAQ_COLL_COLUMN_collective)))
        return "collective missing or unknown";
    if (!(n >= 2 && n <= MAX_DEVICES && n == floor(n)))
        return "number of devices missing";
    if (!(bytes > 0))
        return "size missing";
    if (bytes > MAX_BYTES)
        return "size larger than any buffer";
    double s = seconds(table, row, kind, bytes, n);
    if (!(s > 0))
        return "not measured";
    if (!(per_node >= 1 && per_node == floor(per_node)))
        per_node = n < 8 ? n : 8;
    const struct maq_cluster *cluster;
    const char *why = find_cluster(&cluster, table, row, device, (int64_t)n, (int64_t)per_node, clusters, diag);
    if (why)
        return why;
    uint32_t stride = stride_of(cluster, (uint32_t)per_node);
    if ((n - 1) * stride >= cluster->devices)
        return "more devices or nodes than the machine has";
    *out = (struct maq_coll_point){
        .cluster = cluster,
        .coll = {.kind = (uint16_t)kind, .bytes = bytes, .at = maq_cluster_place(cluster, 0, (uint32_t)n, stride)},
        .measured_s = s,
    };
    if (maq__phrase_in(maq__coll_cell(table, row, MAQ_COLL_COLUMN_notes), "several groups at once", NULL))
        out->doubt = "several groups ran at once";
    if (out->coll.at.per_node < n && cluster->groups[out->coll.at.group].fabric.transport == MAQ_TRANSPORT_SOCKETS)
        out->doubt = "TCP sockets: how many of them, over which ports, is not stated";
    return NULL;
}
