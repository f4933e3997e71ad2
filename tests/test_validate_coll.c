/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_validate_coll.c - measured collectives: what a row says, what the kernel tables say, and the report.
 *
 * Rows are invented. The published table is read when MAQ_SHARED names the folder it lies in.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/check.h"
#include "base/str.h"
#include "cost/collective/collective.h"
#include "maquette/validate.h"
#include "validate/collectives/row.h"
#include "validate/kernels/communication.h"

#define HEADER                                                                                                         \
    "source,gpu,num_gpus,gpus_per_node,interconnect,collective,size_bytes,time_us,algbw_GBs,busbw_GBs,notes\n"

/* ---- rows ---- */

struct table {
    struct maq_coll_table t;
    struct maq_arena arena;
    struct maq_diag *diag;
    struct maq_coll_clusters clusters;
};

static void open_table(struct table *o, const char *text)
{
    *o = (struct table){0};
    maq_arena_init(&o->arena, 0);
    o->diag = maq_diag_new();
    o->clusters.arena = &o->arena;
    assert_int_equal(maq_csv_parse(&o->t.csv, "t.csv", maq_str_of(text), &o->arena, o->diag), MAQ_OK);
    assert_int_equal(maq__coll_table_bind(&o->t, o->diag), MAQ_OK);
}

static void close_table(struct table *o)
{
    maq_arena_fini(&o->arena);
    maq_diag_free(o->diag);
}

static const struct maq_node_group *group_of(const struct maq_coll_point *p)
{
    return &p->cluster->groups[p->coll.at.group];
}

static void test_what_a_row_says(void **state)
{
    (void)state;
    struct table o;
    struct maq_coll_point p;
    open_table(&o, HEADER
               "a,NVIDIA H100 80GB HBM3,8,8,NVLink4+NVSwitch,all_reduce,1048576,25.4,,,\n"
               "a,NVIDIA H100 80GB HBM3,20,2,NVLink4 intra; InfiniBand 400Gb/s per GPU inter,alltoall,1e6,,10,,\n"
               "a,NVIDIA A100-SXM4-40GB,8,4,NVLink3 intra; Slingshot-11 2x200Gb/s per node inter,all_gather,1e6,,,10,\n"
               "a,NVIDIA A100-SXM4-80GB,16,8,NVLink3 intra; EFA 4x100Gb/s (p4de) inter,all_reduce,8,164,,,\n"
               "a,NVIDIA H100 80GB HBM3,16,8,NVLink4 intra; EFAv2 3200Gb/s (p5) inter,all_reduce,8,69,,,\n"
               "a,DGX GB200 rack,72,4,NVLink5 NVL72 rack,all_reduce,1e9,3100,,,\n"
               "a,NVIDIA H200,8,8,NVLink4+NVSwitch,all_reduce,1e9,4800,,,\"NVLS off\"\n");

    assert_null(maq__coll_row(&p, &o.t, 0, &o.clusters, o.diag));
    assert_string_equal(group_of(&p)->device.name, "h100-sxm");
    assert_int_equal(p.coll.kind, MAQ_COLL_ALL_REDUCE);
    assert_true(fabs(p.measured_s - 25.4e-6) < 1e-12 && p.coll.bytes == 1048576);
    assert_true(maq__coll_point_near(&p) && group_of(&p)->domain_multicast);

    assert_null(maq__coll_row(&p, &o.t, 1, &o.clusters, o.diag)); /* size / algorithm bandwidth */
    assert_true(fabs(p.measured_s - 1e6 / 10e9) < 1e-12);
    assert_int_equal(p.coll.at.domains, 10);
    assert_int_equal(p.coll.at.per_node, 2);
    assert_true(group_of(&p)->fabric.nic_bps == 5e10 && group_of(&p)->nics_per_node == 2);

    assert_null(maq__coll_row(&p, &o.t, 2, &o.clusters, o.diag)); /* bus bandwidth: 7/8 */
    assert_true(fabs(p.measured_s - 1e6 * 7 / 8 / 10e9) < 1e-12);
    assert_int_equal(group_of(&p)->nics_per_node, 2);
    assert_int_equal(group_of(&p)->fabric.transport, MAQ_TRANSPORT_CXI);

    assert_null(maq__coll_row(&p, &o.t, 3, &o.clusters, o.diag));
    assert_int_equal(group_of(&p)->nics_per_node, 4);
    assert_int_equal(group_of(&p)->fabric.transport, MAQ_TRANSPORT_EFA);
    assert_null(maq__coll_row(&p, &o.t, 4, &o.clusters, o.diag));
    assert_int_equal(group_of(&p)->nics_per_node, 32);

    assert_null(maq__coll_row(&p, &o.t, 5, &o.clusters, o.diag)); /* one domain over 18 nodes */
    assert_true(maq__coll_point_near(&p));
    assert_int_equal(p.coll.at.per_domain, 72);

    assert_null(maq__coll_row(&p, &o.t, 6, &o.clusters, o.diag));
    assert_false(group_of(&p)->domain_multicast);
    close_table(&o);
}

static void test_names_of_collectives(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum maq_coll_kind kind;
    } cases[] = {
        {"all_reduce", MAQ_COLL_ALL_REDUCE}, {"AllReduce", MAQ_COLL_ALL_REDUCE},
        {"all-gather", MAQ_COLL_ALL_GATHER}, {"reducescatter", MAQ_COLL_REDUCE_SCATTER},
        {"alltoall", MAQ_COLL_ALL_TO_ALL},   {"all_to_all", MAQ_COLL_ALL_TO_ALL},
        {"Broadcast", MAQ_COLL_BROADCAST},   {"send_recv", MAQ_COLL_SEND_RECV},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct table o;
        struct maq_coll_point p;
        char text[256];
        snprintf(text, sizeof text, HEADER "a,NVIDIA H100,8,8,,%s,8,1,,,\n", cases[i].name);
        open_table(&o, text);
        assert_null(maq__coll_row(&p, &o.t, 0, &o.clusters, o.diag));
        assert_int_equal(p.coll.kind, cases[i].kind);
        close_table(&o);
    }
}

static void test_rows_that_say_too_little(void **state)
{
    (void)state;
    static const char *const whys[] = {"device missing or unknown",      "collective missing or unknown",
                                       "number of devices missing",      "size missing",
                                       "size larger than any buffer",    "not measured",
                                       "ports of the network not stated"};
    struct table o;
    struct maq_coll_point p;
    open_table(&o, HEADER "a,Abacus 9,8,8,,all_reduce,8,1,,,\n"
                          "a,NVIDIA H100,8,8,,all_scatter,8,1,,,\n"
                          "a,NVIDIA H100,1,8,,all_reduce,8,1,,,\n"
                          "a,NVIDIA H100,8,8,,all_reduce,,1,,,\n"
                          "a,NVIDIA H100,8,8,,all_reduce,1e300,1,,,\n"
                          "a,NVIDIA H100,8,8,,all_reduce,8,,,,\n"
                          "a,NVIDIA A100-SXM4-40GB,8,4,A100 4/node; Slingshot-11,all_reduce,8,1,,,\n"
                          "a,NVIDIA A100-SXM4-40GB,8,4,Slingshot-11 2x200Gb/s per node,all_reduce,8,1,,,default TCP\n");
    for (uint32_t i = 0; i < MAQ_COUNT(whys); i++)
        assert_string_equal(maq__coll_row(&p, &o.t, i, &o.clusters, o.diag), whys[i]);
    assert_null(maq__coll_row(&p, &o.t, 7, &o.clusters, o.diag));
    assert_non_null(strstr(p.doubt, "TCP"));
    assert_int_equal(group_of(&p)->fabric.transport, MAQ_TRANSPORT_SOCKETS);
    close_table(&o);
}

/* ---- kernel tables ---- */

struct cells {
    const char *names[12], *texts[12];
};

static struct maq_str get_cell(void *user, const char *column)
{
    const struct cells *c = user;
    for (size_t i = 0; i < MAQ_COUNT(c->names) && c->names[i]; i++)
        if (strcmp(c->names[i], column) == 0)
            return maq_str_of(c->texts[i]);
    return MAQ_STR("");
}

static struct maq_kernel_comm read_kernel(const char *table, const char *system, const char *framework,
                                          const struct cells *c, struct table *o)
{
    struct maq_kernel_comm out;
    union {
        const void *from;
        void *to;
    } user = {c};
    struct maq_kernel_cells cells = {get_cell, user.to};
    assert_true(maq__kernel_comm_row(&out, maq_str_of(table), maq_str_of(system), maq_str_of(framework), &cells,
                                     &o->clusters, o->diag));
    return out;
}

static void test_kernel_tables(void **state)
{
    (void)state;
    struct table o;
    open_table(&o, HEADER);
    static const struct cells nccl = {{"op_name", "nccl_dtype", "num_gpus", "message_size", "latency"},
                                      {"all_gather", "half", "4", "1048576", "0.0136"}},
                              custom = {{"num_gpus", "message_size", "latency", "backend"},
                                        {"8", "128", "0.0048", "vllm_graph"}},
                              eager = {{"num_gpus", "message_size", "latency", "backend"},
                                       {"8", "128", "0.03", "vllm_eager"}},
                              fast = {{"node_num", "hidden_size", "num_token", "num_topk", "num_experts",
                                       "combine_avg_t_us", "dispatch_avg_t_us"},
                                      {"1", "2048", "1", "8", "128", "11.151", "10.313"}},
                              normal = {{"node_num", "hidden_size", "num_token", "num_topk", "dispatch_sms",
                                         "combine_sms", "dispatch_transmit_us", "combine_transmit_us"},
                                        {"1", "7168", "4096", "8", "20", "20", "492", "983"}},
                              sms = {{"node_num", "hidden_size", "num_token", "num_topk", "dispatch_sms", "combine_sms",
                                      "dispatch_transmit_us", "combine_transmit_us"},
                                     {"1", "7168", "4096", "8", "12", "12", "492", "983"}},
                              wide = {{"op_name", "kernel_source", "moe_dtype", "num_tokens", "hidden_size", "topk",
                                       "num_experts", "moe_ep_size", "latency"},
                                      {"alltoall_combine", "NVLinkOneSided", "nvfp4", "64", "7168", "8", "256", "32",
                                       "0.04"}};

    struct maq_kernel_comm k = read_kernel("nccl", "h100_sxm", "nccl", &nccl, &o);
    assert_int_equal(k.n, 1);
    assert_true(k.points[0].coll.bytes == 2097152 && k.points[0].coll.at.size == 4);
    assert_true(fabs(k.points[0].measured_s - 13.6e-6) < 1e-12);

    k = read_kernel("custom_allreduce", "h100_sxm", "vllm", &custom, &o);
    assert_int_equal(k.points[0].library, MAQ_LIBRARY_VLLM);
    assert_true(k.points[0].coll.bytes == 256);
    k = read_kernel("custom_allreduce", "h100_sxm", "vllm", &eager, &o);
    assert_true(k.n == 0 && k.why);

    k = read_kernel("wideep_deepep_ll", "h100_sxm", "sglang", &fast, &o);
    assert_int_equal(k.n, 2);
    assert_int_equal(k.points[0].coll.kind, MAQ_COLL_DISPATCH);
    assert_true(k.points[0].coll.flags & MAQ_COLL_LOW_LATENCY);
    assert_true(k.points[0].coll.bytes == 8 * (2048 + 64)); /* a copy per expert, FP8 and its scales */
    assert_true(k.points[1].coll.bytes == 8 * 2048 * 2);
    assert_true(k.points[0].coll.rows == 1 && k.points[0].coll.row_bytes == 2048 + 64);
    assert_true(k.points[1].coll.rows == 1 && k.points[1].coll.row_bytes == 2048 * 2);

    k = read_kernel("wideep_deepep_normal", "h100_sxm", "sglang", &normal, &o);
    assert_int_equal(k.n, 2);
    assert_true(fabs(k.points[1].coll.bytes / (4096.0 * 7168 * 2) - 8 * (1 - pow(7.0 / 8, 8))) < 1e-9);
    k = read_kernel("wideep_deepep_normal", "h100_sxm", "sglang", &sms, &o);
    assert_true(k.n == 0 && k.why);

    k = read_kernel("trtllm_alltoall", "gb200", "trtllm", &wide, &o);
    assert_int_equal(k.n, 1);
    assert_true(k.points[0].coll.flags & MAQ_COLL_ONE_SIDED);
    assert_true(maq__coll_point_near(&k.points[0])); /* 32 devices of an NVL72 */

    struct maq_kernel_comm other;
    struct maq_kernel_cells none = {get_cell, NULL};
    assert_false(maq__kernel_comm_row(&other, MAQ_STR("gemm"), MAQ_STR("h100_sxm"), MAQ_STR("vllm"), &none, &o.clusters,
                                      o.diag));
    close_table(&o);
}

/* ---- the report ---- */

static const char four[] = HEADER "x,NVIDIA H100,8,8,,all_reduce,1048576,20,,,\n"
                                  "x,NVIDIA H100,16,8,IB NDR,all_reduce,1e9,4000,,,\n"
                                  "y,NVIDIA H100,8,8,,all_gather,1e9,2500,,,\n"
                                  "y,Abacus 9,8,8,,all_gather,1e9,2500,,,\n";

static struct maq_validate_coll_result *compare(const char *text, const struct maq_validate_opts *opts)
{
    struct maq_validate_coll_result *r;
    struct maq_diag *diag = maq_diag_new();
    assert_int_equal(maq_validate_collectives_text(&r, "t.csv", maq_str_of(text), opts, diag), MAQ_OK);
    maq_diag_free(diag);
    return r;
}

static const struct maq_validate_coll_group *find(const struct maq_validate_coll_result *r, const char *by,
                                                  const char *name, const char *distance)
{
    for (uint32_t i = 0; i < r->n_groups; i++)
        if (strcmp(r->groups[i].by, by) == 0 && strcmp(r->groups[i].name, name) == 0 &&
            strcmp(r->groups[i].distance, distance) == 0)
            return &r->groups[i];
    return NULL;
}

static void test_groups(void **state)
{
    (void)state;
    struct maq_validate_coll_result *r = compare(four, NULL);
    assert_int_equal(r->n_rows, 4);
    assert_int_equal(find(r, "total", "total", "all")->stat.n, 3);
    assert_int_equal(find(r, "total", "total", "near")->stat.n, 2);
    assert_int_equal(find(r, "total", "total", "far")->stat.n, 1);
    assert_int_equal(find(r, "source", "x", "far")->stat.n, 1);
    assert_null(find(r, "source", "y", "far"));
    assert_int_equal(find(r, "collective", "all_gather", "all")->stat.n, 1);
    assert_int_equal(r->n_skips, 1);
    assert_int_equal(r->skips[0].rows, 1);
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(r->rows[i].error == r->rows[i].predicted_s / r->rows[i].measured_s - 1);
        assert_true(r->rows[i].stated_error > 0 && strlen(r->rows[i].how) > 0 && strlen(r->rows[i].largest) > 0);
    }
    maq_validate_coll_free(r);
}

static void test_filters(void **state)
{
    (void)state;
    const struct maq_validate_filter where[] = {{"source", "x"}};
    struct maq_validate_opts opts = MAQ_VALIDATE_OPTS_INIT;
    opts.where = where;
    opts.n_where = 1;
    struct maq_validate_coll_result *r = compare(four, &opts);
    assert_int_equal(r->n_kept, 2);
    assert_int_equal(find(r, "total", "total", "all")->stat.n, 2);
    maq_validate_coll_free(r);
}

static void test_report(void **state)
{
    (void)state;
    struct maq_validate_coll_result *r = compare(four, NULL);
    char *text = maq_validate_coll_text(r, 2), *json = maq_validate_coll_json(r), *svg = maq_validate_coll_svg(r);
    assert_non_null(strstr(text, "1 of 4 rows left out: 1 device missing or unknown"));
    assert_non_null(strstr(text, "worst 2"));
    assert_non_null(strstr(svg, "</svg>"));
    json_t *doc = json_loads(json, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(doc, "schema")), "maquette.validate.collectives/1");
    json_t *rows = json_object_get(doc, "rows");
    assert_int_equal(json_array_size(rows), 4);
    json_t *first = json_array_get(rows, 0);
    assert_true(json_real_value(json_object_get(first, "measured")) == 20e-6);
    assert_non_null(json_object_get(first, "predicted"));
    assert_non_null(json_object_get(first, "error"));
    assert_non_null(json_object_get(json_array_get(rows, 3), "skipped"));
    assert_true(json_array_size(json_object_get(doc, "groups")) > 5);
    json_decref(doc);
    free(text);
    free(json);
    free(svg);
    maq_validate_coll_free(r);
}

static void test_bad_tables(void **state)
{
    (void)state;
    struct maq_validate_coll_result *r;
    struct maq_diag *diag = maq_diag_new();
    assert_int_equal(maq_validate_collectives_text(&r, "t", MAQ_STR("gpu,num_gpus\nx,8\n"), NULL, diag), MAQ_BAD_INPUT);
    assert_int_equal(maq_validate_collectives_text(&r, "t", MAQ_STR(""), NULL, diag), MAQ_BAD_INPUT);
    assert_int_equal(maq_validate_collectives(&r, "/nonexistent/table.csv", NULL, diag), MAQ_IO);
    maq_diag_free(diag);
    r = compare(HEADER, NULL);
    assert_int_equal(r->n_groups, 0);
    maq_validate_coll_free(r);
}

/* The bars that are met, on the public table: rows capped per source. */
static void test_published(void **state)
{
    (void)state;
    const char *shared = getenv("MAQ_SHARED");
    char path[4096];
    struct maq_validate_coll_result *r;
    struct maq_diag *diag = maq_diag_new();
    snprintf(path, sizeof path, "%s/data/measured/collectives.csv", shared ? shared : "/nonexistent");
    enum maq_status status = maq_validate_collectives(&r, path, NULL, diag);
    maq_diag_free(diag);
    if (status != MAQ_OK) {
        print_message("no %s\n", path);
        skip();
    }
    const struct maq_validate_coll_group *near = find(r, "capped", "total", "near"),
                                         *far = find(r, "capped", "total", "far");
    print_message("near: median %.1f %%, 90 %% within %.1f %%; far: %.1f, %.1f\n", 100 * near->stat.median,
                  100 * near->stat.p90, 100 * far->stat.median, 100 * far->stat.p90);
    assert_true(near->stat.median <= 0.06 && near->stat.p90 <= 0.20);
    assert_true(far->stat.median <= 0.12);
    maq_validate_coll_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_row_says),
        cmocka_unit_test(test_names_of_collectives),
        cmocka_unit_test(test_rows_that_say_too_little),
        cmocka_unit_test(test_kernel_tables),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_filters),
        cmocka_unit_test(test_report),
        cmocka_unit_test(test_bad_tables),
        cmocka_unit_test(test_published),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
