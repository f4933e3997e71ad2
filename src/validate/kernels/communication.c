/* SPDX-License-Identifier: Apache-2.0 */
/*
 * communication.c - reads the tables of collectives and of exchanges, each with its columns and units, into points of messages and times.
 *
 * Units of the tables (NVIDIA ai-dynamo/aiconfigurator): `latency` is in ms, columns ending in _us in microseconds.
 *
 *   nccl               message_size = elements of the full buffer, of nccl_dtype
 *   custom_allreduce   message_size = elements of BF16; the engine's own kernels where they apply, NCCL elsewhere.
 *                      `..._eager` rows have the host's time to launch in them and are left out
 *   wideep_deepep_*    DeepEP among the devices of one node; FP8 with a scale of 4 bytes per 128 elements to the experts,
 *                      BF16 back. The low-latency kernels send a copy for each of a token's experts, the normal ones a
 *                      copy for each rank that has one; *_sms are the SMs that the normal ones were given, of which 20
 *                      (DeepEP's default) and 24 are kept
 *   trtllm_alltoall    TensorRT-LLM's exchange over NVLink, in a domain that spans nodes; NVFP4 has a scale of one byte
 *                      per 16 elements. Results come back in BF16. `prepare` (indices only) and the low-precision
 *                      combine are no collective of maquette's
 *
 * Experts are hit at random: of e ranks a token with k experts needs e (1 - (1 - 1/e)^k).
 */
#include "validate/kernels/communication.h"

#include <math.h>

#include "base/check.h"
#include "base/str.h"
#include "base/text.h"

#define MOST_DEVICES 4096

static double cell_number(const struct maq_kernel_cells *cells, const char *column)
{
    double value;
    if (!maq_str_to_double(&value, cells->get(cells->user, column)) || !isfinite(value) || value < 0)
        return 0;
    return value;
}

static bool cell_is(const struct maq_kernel_cells *cells, const char *column, const char *text)
{
    return maq_str_is(cells->get(cells->user, column), text);
}

static const struct {
    const char *system, *device;
    uint32_t per_node, nodes; /* as many as a row can need */
    const char *domain;
} machines[] = {
    {"a100_sxm", "a100-80gb", 8, 1, ""}, {"l40s", "l40s", 8, 1, ""},
    {"h100_sxm", "h100-sxm", 8, 1, ""},  {"h200_sxm", "h200", 8, 1, ""},
    {"b200_sxm", "b200", 8, 1, ""},      {"gb200", "gb200", 4, 18, ", domain 72"},
    {"b300_sxm", "b300", 8, 1, ""},      {"gb300", "gb300", 4, 18, ", domain 72"},
};

struct comm_reader {
    struct maq_kernel_comm *out;
    struct maq_str framework;
    const struct maq_kernel_cells *cells;
    const struct maq_cluster *cluster;
    uint32_t per_node;
};

static const struct maq_cluster *find_machine(uint32_t *per_node, struct maq_str system,
                                              struct maq_coll_clusters *clusters, struct maq_diag *diag)
{
    char text[96];
    for (size_t i = 0; i < MAQ_COUNT(machines); i++)
        if (maq_str_is(system, machines[i].system)) {
            *per_node = machines[i].per_node;
            maq__snprintf(text, sizeof text, "%s:%u x %u%s", machines[i].device, machines[i].per_node,
                          machines[i].nodes, machines[i].domain);
            return maq__coll_cluster(clusters, maq_str_of(text), (struct maq_coll_setting){0}, diag);
        }
    return NULL;
}

static enum maq_library library_of(struct maq_str framework)
{
    for (int i = 0; i < MAQ_LIBRARY_COUNT; i++)
        if (maq_str_is(framework, maq_library_name((enum maq_library)i)))
            return (enum maq_library)i;
    return MAQ_LIBRARY_TRAINING;
}

static void add_point(struct comm_reader *r, enum maq_coll_kind kind, uint32_t flags, double bytes, double devices,
                      double seconds, enum maq_library library)
{
    struct maq_kernel_comm *out = r->out;
    if (!(devices >= 2 && devices <= MOST_DEVICES && devices <= (double)r->cluster->devices)) {
        out->why = "number of devices missing, or more than the machine has";
        return;
    }
    if (!(bytes > 0 && seconds > 0)) {
        out->why = "size or time missing";
        return;
    }
    out->points[out->n++] = (struct maq_coll_point){
        .cluster = r->cluster,
        .coll = {.kind = (uint16_t)kind,
                 .flags = flags,
                 .bytes = bytes,
                 .at = maq_cluster_place(r->cluster, 0, (uint32_t)devices, 1)},
        .library = library,
        .measured_s = seconds,
    };
}

static double element_bytes(const struct maq_kernel_cells *cells)
{
    return cell_is(cells, "nccl_dtype", "int8") ? 1.0 : cell_is(cells, "nccl_dtype", "float") ? 4.0 : 2.0;
}

static void read_nccl(struct comm_reader *r)
{
    static const struct {
        const char *name;
        enum maq_coll_kind kind;
    } ops[] = {{"all_reduce", MAQ_COLL_ALL_REDUCE},
               {"all_gather", MAQ_COLL_ALL_GATHER},
               {"reduce_scatter", MAQ_COLL_REDUCE_SCATTER},
               {"alltoall", MAQ_COLL_ALL_TO_ALL}};
    double bytes = cell_number(r->cells, "message_size") * element_bytes(r->cells);
    for (size_t i = 0; i < MAQ_COUNT(ops); i++)
        if (cell_is(r->cells, "op_name", ops[i].name)) {
            add_point(r, ops[i].kind, 0, bytes, cell_number(r->cells, "num_gpus"),
                      cell_number(r->cells, "latency") * 1e-3, MAQ_LIBRARY_TRAINING);
            return;
        }
    r->out->why = "an operation that NCCL does not have";
}

static bool ends_with(struct maq_str s, const char *end)
{
    struct maq_str e = maq_str_of(end);
    return s.len >= e.len && maq_str_eq((struct maq_str){s.ptr + s.len - e.len, e.len}, e);
}

static void read_custom(struct comm_reader *r)
{
    if (ends_with(r->cells->get(r->cells->user, "backend"), "_eager")) {
        r->out->why = "launched by the host one by one: its time is in the measurement";
        return;
    }
    add_point(r, MAQ_COLL_ALL_REDUCE, 0, cell_number(r->cells, "message_size") * 2.0, cell_number(r->cells, "num_gpus"),
              cell_number(r->cells, "latency") * 1e-3, library_of(r->framework));
}

/* Ranks of e that have at least one of a token's k experts. */
static double ranks_hit(double e, double k)
{
    return e * (1.0 - pow(1.0 - 1.0 / e, k));
}

struct exchange {
    double tokens, copies; /* of a rank; ranks that each of them is sent to */
    double devices;
    uint32_t flags;
    enum maq_library library;
};

static void add_exchange(struct comm_reader *r, enum maq_coll_kind kind, const struct exchange *x, double row_bytes,
                         double seconds)
{
    uint32_t before = r->out->n;
    add_point(r, kind, x->flags, x->tokens * x->copies * row_bytes, x->devices, seconds, x->library);
    if (r->out->n > before) {
        r->out->points[before].coll.rows = x->tokens;
        r->out->points[before].coll.row_bytes = row_bytes;
    }
}

static double fp8_row_bytes(double hidden)
{
    return hidden + hidden / 128.0 * 4.0;
}

static void read_deepep(struct comm_reader *r, bool low_latency)
{
    const struct maq_kernel_cells *c = r->cells;
    double hidden = cell_number(c, "hidden_size"), k = cell_number(c, "num_topk"),
           devices = cell_number(c, "node_num") * r->per_node;
    const struct exchange x = {.tokens = cell_number(c, "num_token"),
                               .copies = low_latency ? k : ranks_hit(devices, k),
                               .devices = devices,
                               .flags = low_latency ? MAQ_COLL_LOW_LATENCY : 0,
                               .library = MAQ_LIBRARY_SGLANG};
    double dispatch_us = cell_number(c, low_latency ? "dispatch_avg_t_us" : "dispatch_transmit_us"),
           combine_us = cell_number(c, low_latency ? "combine_avg_t_us" : "combine_transmit_us");
    double sms = cell_number(c, "dispatch_sms"), combine_sms = cell_number(c, "combine_sms");
    if (!low_latency && ((sms != 20 && sms != 24) || (combine_sms != 20 && combine_sms != 24))) {
        r->out->why = "another number of SMs than DeepEP's default";
        return;
    }
    add_exchange(r, MAQ_COLL_DISPATCH, &x, fp8_row_bytes(hidden), dispatch_us * 1e-6);
    add_exchange(r, MAQ_COLL_COMBINE, &x, hidden * 2.0, combine_us * 1e-6);
}

static void read_trtllm(struct comm_reader *r)
{
    const struct maq_kernel_cells *c = r->cells;
    double hidden = cell_number(c, "hidden_size"), e = cell_number(c, "moe_ep_size");
    double s = cell_number(c, "latency") * 1e-3;
    double row_bytes = cell_is(c, "moe_dtype", "nvfp4") ? hidden / 2.0 + hidden / 16.0
                       : cell_is(c, "moe_dtype", "fp8") ? fp8_row_bytes(hidden)
                                                        : 2.0 * hidden;
    const struct exchange x = {.tokens = cell_number(c, "num_tokens"),
                               .copies = e > 1 ? ranks_hit(e, cell_number(c, "topk")) : 0,
                               .devices = e,
                               .flags = cell_is(c, "kernel_source", "NVLinkOneSided") ? MAQ_COLL_ONE_SIDED : 0,
                               .library = MAQ_LIBRARY_TRTLLM};
    if (cell_is(c, "op_name", "alltoall_dispatch"))
        add_exchange(r, MAQ_COLL_DISPATCH, &x, row_bytes, s);
    else if (cell_is(c, "op_name", "alltoall_combine"))
        add_exchange(r, MAQ_COLL_COMBINE, &x, 2.0 * hidden, s);
    else
        r->out->why = "neither dispatch nor combine in BF16";
}

bool maq__kernel_comm_row(struct maq_kernel_comm *out, struct maq_str table, struct maq_str system,
                          struct maq_str framework, const struct maq_kernel_cells *cells,
                          struct maq_coll_clusters *clusters, struct maq_diag *diag)
{
    bool nccl = maq_str_is(table, "nccl"), custom = maq_str_is(table, "custom_allreduce"),
         ll = maq_str_is(table, "wideep_deepep_ll"), normal = maq_str_is(table, "wideep_deepep_normal");
    *out = (struct maq_kernel_comm){0};
    if (!nccl && !custom && !ll && !normal && !maq_str_is(table, "trtllm_alltoall"))
        return false;
    struct comm_reader r = {.out = out, .framework = framework, .cells = cells};
    r.cluster = find_machine(&r.per_node, system, clusters, diag);
    if (!r.cluster)
        out->why = "a system that maquette does not know";
    else if (nccl)
        read_nccl(&r);
    else if (custom)
        read_custom(&r);
    else if (ll || normal)
        read_deepep(&r, ll);
    else
        read_trtllm(&r);
    return true;
}
