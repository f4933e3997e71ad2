/* SPDX-License-Identifier: Apache-2.0 */
/* test_cluster.c - the two spellings of a cluster, their diagnostics, and placement against enumeration. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "cluster/cluster_internal.h"
#include "maquette/cluster.h"
#include "temp.h"

/* --- loading ------------------------------------------------------------------------------------------------ */

struct loaded {
    struct maq_diag *diag;
    struct maq_doc doc;
    struct maq_arena arena;
    struct maq_cluster cluster;
    enum maq_status status;
};

/* The text is a whole YAML document: a plain scalar is the synthetic form. */
static void load(struct loaded *l, const char *text)
{
    memset(l, 0, sizeof *l);
    l->diag = maq_diag_new();
    assert_non_null(l->diag);
    maq_arena_init(&l->arena, 0);
    l->status = maq_doc_parse(&l->doc, "c", maq_str_of(text), MAQ_ORIGIN_DOCUMENT, l->diag);
    assert_int_equal(l->status, MAQ_OK);
    assert_non_null(l->doc.root);
    l->status = maq_cluster_load(&l->cluster, l->doc.root, &l->arena, l->diag);
    if (l->status == MAQ_OK)
        l->status = maq_doc_check_unused(&l->doc, l->diag);
    assert_true((l->status == MAQ_OK) == (maq_diag_errors(l->diag) == 0));
}

static void unload(struct loaded *l)
{
    maq_doc_fini(&l->doc);
    maq_arena_fini(&l->arena);
    maq_diag_free(l->diag);
}

static void assert_close(double got, double want)
{
    if (!(got >= want * (1 - 1e-9) - 1e-300 && got <= want * (1 + 1e-9) + 1e-300))
        fail_msg("got %.17g, want %.17g", got, want);
}

/* Replaces the first "@" by the list of fabrics of the catalogue. */
static char *with_fabrics(const char *text, struct maq_arena *arena)
{
    const char *at = strchr(text, '@');
    if (!at)
        return maq_arena_printf(arena, "%s", text);
    return maq_arena_printf(arena, "%.*s%s%s", (int)(at - text), text, maq__catalogue_names("fabrics", arena), at + 1);
}

static void expect_diag(const char *text, const char *want)
{
    struct loaded l;
    load(&l, text);
    assert_int_equal(l.status, MAQ_BAD_INPUT);
    char *got = maq_diag_format(l.diag, 0, false);
    assert_string_equal(got, with_fabrics(want, &l.arena));
    free(got);
    unload(&l);
}

/* --- synthetic form --------------------------------------------------------------------------------------------- */

struct want_group {
    const char *device;
    int nodes, per_node, domain, nics;
    double nic_bps;
    const char *fabric;
    bool rail;
};

static void expect_groups(const char *text, size_t n, const struct want_group *want, int leaf, double oversubscription)
{
    struct loaded l;
    uint32_t rank = 0;
    load(&l, text);
    if (l.status != MAQ_OK)
        fail_msg("%s: %s", text, maq_diag_format(l.diag, 0, false));
    assert_int_equal(l.cluster.n_groups, n);
    assert_int_equal(l.cluster.nodes_per_switch, leaf);
    assert_close(l.cluster.oversubscription, oversubscription);
    for (size_t i = 0; i < n; i++) {
        const struct maq_node_group *g = &l.cluster.groups[i];
        assert_string_equal(g->device.name, want[i].device);
        assert_int_equal(g->nodes, want[i].nodes);
        assert_int_equal(g->devices_per_node, want[i].per_node);
        assert_int_equal(g->domain_devices, want[i].domain);
        assert_int_equal(g->nics_per_node, want[i].nics);
        assert_close(g->fabric.nic_bps, want[i].nic_bps);
        assert_string_equal(g->fabric.name, want[i].fabric);
        assert_int_equal(g->rail_optimized, want[i].rail);
        assert_int_equal(g->first_rank, rank);
        rank += (uint32_t)(want[i].nodes * want[i].per_node);
    }
    assert_int_equal(l.cluster.devices, rank);
    unload(&l);
}

#define EXPECT(text_, leaf_, over_, ...)                                                                               \
    do {                                                                                                               \
        const struct want_group want_[] = {__VA_ARGS__};                                                               \
        expect_groups(text_, MAQ_COUNT(want_), want_, leaf_, over_);                                                   \
    } while (0)

static void test_examples_of_the_header(void **state)
{
    (void)state;
    EXPECT("h100-sxm:8 x 2048, rail 400G", 0, 1, {"h100-sxm", 2048, 8, 8, 8, 50e9, "ib-ndr", true});
    EXPECT("gb200:4 x 18, domain 72, rail 400G", 0, 1, {"gb200", 18, 4, 72, 4, 50e9, "ib-ndr", true});
    EXPECT("a100-80gb:8 x 4, nics 4 x 100G roce", 0, 1, {"a100-80gb", 4, 8, 8, 4, 12.5e9, "roce-100", false});
    EXPECT("h100-sxm:8 x 64, efa-v2", 0, 1, {"h100-sxm", 64, 8, 8, 32, 12.5e9, "efa-v2", false});
    EXPECT("h100-sxm:8 x 512, rail 400G, leaf 32, oversubscription 2", 32, 2,
           {"h100-sxm", 512, 8, 8, 8, 50e9, "ib-ndr", true});
    EXPECT("a100-80gb:8 x 2, rail 200G + v100-32gb:8 x 4, rail 100G", 0, 1,
           {"a100-80gb", 2, 8, 8, 8, 25e9, "ib-hdr", true}, {"v100-32gb", 4, 8, 8, 8, 12.5e9, "ib-edr", true});
}

static void test_defaults(void **state)
{
    (void)state;
    EXPECT("h100", 0, 1, {"h100-sxm", 1, 8, 8, 8, 50e9, "ib-ndr", false});
    EXPECT("A100", 0, 1, {"a100-80gb", 1, 8, 8, 8, 25e9, "ib-hdr", false});
    EXPECT("gb200", 0, 1, {"gb200", 1, 4, 72, 4, 50e9, "ib-ndr", false});
    EXPECT("gh200 x 2", 0, 1, {"gh200-96gb", 2, 4, 4, 4, 50e9, "ib-ndr", false});
    EXPECT("h100-pcie:8", 0, 1, {"h100-pcie", 1, 8, 2, 8, 50e9, "ib-ndr", false});     /* bridges of two */
    EXPECT("h100-pcie:3", 0, 1, {"h100-pcie", 1, 3, 1, 3, 50e9, "ib-ndr", false});     /* cannot be paired off */
    EXPECT("a100-80gb:4 x 2", 0, 1, {"a100-80gb", 2, 4, 4, 4, 25e9, "ib-hdr", false}); /* never beyond the node */
    EXPECT("a100-80gb:16", 0, 1, {"a100-80gb", 1, 16, 8, 16, 25e9, "ib-hdr", false});
    EXPECT("gb200:5", 0, 1, {"gb200", 1, 5, 70, 5, 50e9, "ib-ndr", false});
    EXPECT("v100:8 x 2", 0, 1, {"v100-32gb", 2, 8, 8, 4, 12.5e9, "ib-edr", false}); /* DGX-1V: half a port each */
    EXPECT("v100:8 x 2, ib-edr", 0, 1, {"v100-32gb", 2, 8, 8, 8, 12.5e9, "ib-edr", false});
    EXPECT("l4:1 x 2", 0, 1, {"l4", 2, 1, 1, 1, 12.5e9, "ethernet-100", false}); /* at least one port */
}

static void test_spacing_and_case(void **state)
{
    (void)state;
    EXPECT("h100-sxm:8x4,rail 400G,leaf 2", 2, 1, {"h100-sxm", 4, 8, 8, 8, 50e9, "ib-ndr", true});
    EXPECT("'  H100-SXM : 8   X 4 ,  RAIL   400g  , Leaf 2  '", 2, 1, {"h100-sxm", 4, 8, 8, 8, 50e9, "ib-ndr", true});
    EXPECT("h100*4", 0, 1, {"h100-sxm", 4, 8, 8, 8, 50e9, "ib-ndr", false});
    EXPECT("h100 x4+a100 x2", 0, 1, {"h100-sxm", 4, 8, 8, 8, 50e9, "ib-ndr", false},
           {"a100-80gb", 2, 8, 8, 8, 25e9, "ib-hdr", false});
    EXPECT("\"h100:8 x\\t4\"", 0, 1, {"h100-sxm", 4, 8, 8, 8, 50e9, "ib-ndr", false});
    EXPECT("h100:8 x 1_000", 0, 1, {"h100-sxm", 1000, 8, 8, 8, 50e9, "ib-ndr", false});
}

static void test_rates(void **state)
{
    static const char *const same[] = {"400G", "400Gb/s", "400 Gb/s", "400Gbps", "50GB/s", "50 GB/s", "0.4T", "400 G"};
    char text[64];
    (void)state;
    for (size_t i = 0; i < MAQ_COUNT(same); i++) {
        snprintf(text, sizeof text, "h100 x 2, rail %s", same[i]);
        EXPECT(text, 0, 1, {"h100-sxm", 2, 8, 8, 8, 50e9, "ib-ndr", true});
    }
    EXPECT("h100 x 2, rail", 0, 1, {"h100-sxm", 2, 8, 8, 8, 50e9, "ib-ndr", true});
    EXPECT("h100 x 2, rail 200G", 0, 1, {"h100-sxm", 2, 8, 8, 8, 25e9, "ib-hdr", true});
    EXPECT("h100 x 2, rail 400G roce", 0, 1, {"h100-sxm", 2, 8, 8, 8, 50e9, "roce-400", true});
    EXPECT("h100 x 2, rail 400 Gb/s RoCE", 0, 1, {"h100-sxm", 2, 8, 8, 8, 50e9, "roce-400", true});
    EXPECT("h100 x 2, rail roce-200", 0, 1, {"h100-sxm", 2, 8, 8, 8, 25e9, "roce-200", true});
    EXPECT("h100 x 2, rail 400G, slingshot-11", 0, 1, {"h100-sxm", 2, 8, 8, 8, 50e9, "slingshot-11 at 400 Gb/s", true});
    EXPECT("h100 x 2, rail 500G", 0, 1, {"h100-sxm", 2, 8, 8, 8, 62.5e9, "ib-ndr at 500 Gb/s", true});
    EXPECT("h100 x 2, nics 2", 0, 1, {"h100-sxm", 2, 8, 8, 2, 50e9, "ib-ndr", false});
    EXPECT("h100 x 2, nics 4x200G", 0, 1, {"h100-sxm", 2, 8, 8, 4, 25e9, "ib-hdr", false});
    EXPECT("h100 x 2, nics 4 x gpudirect-tcpx", 0, 1, {"h100-sxm", 2, 8, 8, 4, 25e9, "gpudirect-tcpx", false});
    EXPECT("h100 x 2, efa", 0, 1, {"h100-sxm", 2, 8, 8, 32, 12.5e9, "efa-v2", false});
    EXPECT("h100 x 2, nics 16 x 200G efa", 0, 1, {"h100-sxm", 2, 8, 8, 16, 25e9, "efa-v3", false});
    struct loaded l;
    load(&l, "h100 x 32, domain 256 300GB/s");
    assert_int_equal(l.status, MAQ_OK);
    assert_int_equal(l.cluster.groups[0].domain_devices, 256);
    assert_close(l.cluster.groups[0].domain_bps, 300e9);
    unload(&l);
}

static void test_unknown_names(void **state)
{
    (void)state;
    expect_diag("h100-smx:8 x 4", "c:1:1: error[MAQ1200]: unknown device 'h100-smx'\n"
                                  "  1 | h100-smx:8 x 4\n"
                                  "    | ^~~~~~~~\n"
                                  "hint: did you mean 'h100-sxm'?\n");
    expect_diag("h100:8 x 4, rial 400G",
                "c:1:13: error[MAQ1203]: unknown word 'rial'\n"
                "  1 | h100:8 x 4, rial 400G\n"
                "    |             ^~~~\n"
                "hint: did you mean 'rail'? words: rail, nics, domain, cpu, nvme, topology, leaf, "
                "oversubscription, or a fabric: @\n");
    expect_diag("h100:8 x 4, ib-nrd",
                "c:1:13: error[MAQ1203]: unknown word 'ib-nrd'\n"
                "  1 | h100:8 x 4, ib-nrd\n"
                "    |             ^~~~~~\n"
                "hint: did you mean 'ib-ndr'? words: rail, nics, domain, cpu, nvme, topology, leaf, "
                "oversubscription, or a fabric: @\n");
    expect_diag("{device: h100, nodes: 4, fabric: ib-nrd}", "c:1:34: error[MAQ1201]: unknown fabric 'ib-nrd'\n"
                                                            "  1 | {device: h100, nodes: 4, fabric: ib-nrd}\n"
                                                            "    |                                  ^~~~~~\n"
                                                            "hint: did you mean 'ib-ndr'?\n");
}

static void test_numbers(void **state)
{
    (void)state;
    expect_diag("h100:0 x 4", "c:1:6: error[MAQ1204]: the number of devices per node must be 1 to 1024, not 0\n"
                              "  1 | h100:0 x 4\n"
                              "    |      ^\n");
    expect_diag("h100:8 x -4", "c:1:10: error[MAQ1204]: the number of nodes must be 1 to 1000000, not -4\n"
                               "  1 | h100:8 x -4\n"
                               "    |          ^~\n");
    expect_diag("h100:8 x 99999999999999999999",
                "c:1:10: error[MAQ1204]: the number of nodes must be 1 to 1000000, not 99999999999999999999\n"
                "  1 | h100:8 x 99999999999999999999\n"
                "    |          ^~~~~~~~~~~~~~~~~~~~\n");
    expect_diag("h100:8.5", "c:1:6: error[MAQ1204]: the number of devices per node must be 1 to 1024, not 8.5\n"
                            "  1 | h100:8.5\n"
                            "    |      ^~~\n");
    expect_diag("h100:1024 x 1000000",
                "c:1:1: error[MAQ1208]: the cluster has more than 16000000 devices, the most that maquette counts\n"
                "  1 | h100:1024 x 1000000\n"
                "    | ^~~~~~~~~~~~~~~~~~~\n");
    expect_diag("h100 x 4, leaf 0", "c:1:16: error[MAQ1204]: the number of nodes under a leaf switch must be 1 to "
                                    "1000000, not 0\n"
                                    "  1 | h100 x 4, leaf 0\n"
                                    "    |                ^\n");
    expect_diag("h100 x 4, oversubscription 0.5",
                "c:1:28: error[MAQ1204]: the oversubscription must be 1 to 1000, not 0.5\n"
                "  1 | h100 x 4, oversubscription 0.5\n"
                "    |                            ^~~\n");
    expect_diag("h100 x 4, oversubscription two",
                "c:1:28: error[MAQ1202]: the oversubscription must be a number\n"
                "  1 | h100 x 4, oversubscription two\n"
                "    |                            ^~~\n"
                "hint: uplinks carry 1/factor of the downlinks: `oversubscription 2`\n");
    expect_diag("h100 x 4, nics 4 x 0.5G", "c:1:20: error[MAQ1206]: a link rate must be 1 Gb/s to 100 Tb/s, not 0.5G\n"
                                           "  1 | h100 x 4, nics 4 x 0.5G\n"
                                           "    |                    ^~~~\n"
                                           "hint: write 400G for 400 Gb/s, or the unit in full: 400Gb/s, 50GB/s\n");
    expect_diag("h100 x 4, rail 400", "c:1:16: error[MAQ1206]: '400' is not a data rate: no unit\n"
                                      "  1 | h100 x 4, rail 400\n"
                                      "    |                ^~~\n"
                                      "hint: write 400G for 400 Gb/s, or the unit in full: 400Gb/s, 50GB/s\n");
    expect_diag("h100 x 4, rail roce",
                "c:1:16: error[MAQ1206]: 'roce' is a kind of fabric and needs a rate\n"
                "  1 | h100 x 4, rail roce\n"
                "    |                ^~~~\n"
                "hint: for example `rail 400G roce`, or a fabric by its full name, `roce-400`\n");
}

/* Each line of `want` is one finding: place, code, message. The caret line is checked by the tests above. */
static void expect_messages(const char *text, const char *want)
{
    struct loaded l;
    char got[4096] = "";
    size_t used = 0;
    load(&l, text);
    assert_int_equal(l.status, MAQ_BAD_INPUT);
    for (size_t i = 0; i < maq_diag_count(l.diag); i++) {
        const struct maq_diag_item *item = maq_diag_at(l.diag, i);
        struct maq_place at = maq_diag_place(l.diag, item->at);
        int n = snprintf(got + used, sizeof got - used, "%u+%u %u %.*s\n", at.column, item->at.len, item->code,
                         (int)item->msg.len, item->msg.ptr);
        assert_true(n > 0 && (size_t)n < sizeof got - used);
        used += (size_t)n;
    }
    assert_string_equal(got, want);
    unload(&l);
}

static void test_syntax(void **state)
{
    (void)state;
    expect_messages("'h100:'", "7+0 1202 expected a number of devices per node, not the end\n");
    expect_messages("''", "2+0 1202 expected a device, not the end\n");
    expect_messages("h100 8",
                    "6+1 1202 expected ':' and devices per node, 'x' and a number of nodes, or ',', not '8'\n");
    expect_messages("h100:8 y 4", "8+1 1202 expected 'x' and a number of nodes, or ',', not 'y'\n");
    expect_messages("h100:8 x", "9+0 1202 expected a number of nodes, not the end\n");
    expect_messages("h100:8 x four", "10+4 1202 expected a number of nodes, not 'four'\n");
    expect_messages("h100:8 x 4 rail", "12+4 1202 expected ',' or '+', not 'rail'\n");
    expect_messages(
        "h100:8 x 4,",
        "12+0 1202 expected a property (rail, nics, domain, cpu, nvme, topology, leaf, oversubscription, or a "
        "fabric), not the end\n");
    expect_messages("h100 +", "7+0 1202 expected a device, not the end\n");
    expect_messages("+ h100", "1+1 1202 expected a device, not '+'\n");
    expect_messages("h100, nics", "11+0 1202 expected a number of network ports, not the end\n");
    expect_messages("h100, nics 4 200G", "14+4 1202 expected 'x' and a rate, or a fabric, not '200G'\n");
    expect_messages("h100, nics 4 x", "15+0 1202 expected a rate or a fabric, not the end\n");
    expect_messages("h100, oversubscription", "23+0 1202 expected a factor, not the end\n");
    expect_messages("h100, rail 400G roce more", "22+4 1202 expected ',' or '+', not 'more'\n");
    expect_messages("h100, rail, nics 4", "13+4 1205 the ports of a group (`rail`, `nics`) are given twice\n");
    expect_messages("h100, efa-v2, ib-ndr", "15+6 1205 the fabric of a group is given twice\n");
    expect_messages("h100, domain 8, domain 4", "17+6 1205 the domain of a group is given twice\n");
    expect_messages("h100, leaf 4 + a100, leaf 4", "22+4 1205 the leaf size of the cluster is given twice\n");
    expect_messages("h100, oversubscription 2, oversubscription 2",
                    "27+16 1205 the oversubscription of the cluster is given twice\n");
    expect_messages("h100 x 2, domain 12", "18+2 1207 a domain of 12 devices does not fit nodes of 8: it must divide a "
                                           "node or be whole nodes\n");
    expect_messages("h100 x 2, domain 70000",
                    "18+5 1204 the number of devices in a domain must be 1 to 65536, not 70000\n");
    expect_messages("h100, nics 0", "12+1 1204 the number of network ports must be 1 to 1024, not 0\n");
}

static void test_all_faults_at_once(void **state)
{
    (void)state;
    expect_messages(
        "nope x 2, foo + h100:0, rail 400 + a100 x 2, domain 3",
        "1+4 1200 unknown device 'nope'\n"
        "11+3 1203 unknown word 'foo'\n"
        "22+1 1204 the number of devices per node must be 1 to 1024, not 0\n"
        "30+3 1206 '400' is not a data rate: no unit\n"
        "53+1 1207 a domain of 3 devices does not fit nodes of 8: it must divide a node or be whole nodes\n");
    /* Escapes move the text against the source: the whole value is marked. */
    expect_messages("\"h100:8\\tx 0\"", "1+13 1204 the number of nodes must be 1 to 1000000, not 0\n");
}

static void test_too_many_groups(void **state)
{
    (void)state;
    char text[8 * 300];
    size_t n = 0;
    for (int i = 0; i < 257; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%st4", i ? " + " : "");
    char want[128];
    snprintf(want, sizeof want, "1+%zu 1208 a cluster may have at most 256 groups\n", n);
    expect_messages(text, want);
}

/* --- documents ---------------------------------------------------------------------------------------------- */

static void test_document(void **state)
{
    (void)state;
    EXPECT("{device: h100, nodes: 4}", 0, 1, {"h100-sxm", 4, 8, 8, 8, 50e9, "ib-ndr", false});
    EXPECT("{device: h100, num_nodes: 4, gpus_per_node: 4}", 0, 1, {"h100-sxm", 4, 4, 4, 4, 50e9, "ib-ndr", false});
    EXPECT("name: research\n"
           "nodes_per_switch: 32\n"
           "oversubscription: 2.5\n"
           "groups:\n"
           "  - {device: h100-sxm, nodes: 64, fabric: ib-ndr, rail_optimized: true}\n"
           "  - {device: a100, nodes: 4, nics_per_node: 4, nic_rate: 100 Gb/s, fabric: roce}\n"
           "  - {device: l4, devices_per_node: 1, fabric: {rate: 25 Gb/s, latency: 20 us, efficiency: 0.5}}\n"
           "  - {device: a100, fabric: {base: ib-hdr, rate: 100 Gb/s, name: mine}}\n",
           32, 2.5, {"h100-sxm", 64, 8, 8, 8, 50e9, "ib-ndr", true},
           {"a100-80gb", 4, 8, 8, 4, 12.5e9, "roce-100", false}, {"l4", 1, 1, 1, 1, 3.125e9, "fabric", false},
           {"a100-80gb", 1, 8, 8, 8, 12.5e9, "mine", false});
    struct loaded l;
    load(&l, "{name: a b, device: {base: h100, memory: 40 GiB, name: half}, nodes: 2, domain_bandwidth: 100 GB/s, "
             "domain_latency: 3 us, domain_multicast: false, domain_devices: 4}");
    assert_int_equal(l.status, MAQ_OK);
    const struct maq_node_group *g = &l.cluster.groups[0];
    assert_string_equal(l.cluster.name, "a b");
    assert_string_equal(g->device.name, "half");
    assert_close(g->device.mem_bytes, 40.0 * (1 << 30));
    assert_close(g->device.mem_bps, 3.35e12);
    assert_close(g->domain_bps, 100e9);
    assert_close(g->domain_latency_s, 3e-6);
    assert_int_equal(g->domain_devices, 4);
    assert_false(g->domain_multicast);
    assert_int_equal(l.cluster.nccl_algo, MAQ_NCCL_ALGO_AUTO);
    unload(&l);
    load(&l, "{nccl_algo: ring, groups: [{device: {base: l40s, domain: {contention: 0.5}}, fabric: ena-50}]}");
    assert_int_equal(l.status, MAQ_OK);
    assert_int_equal(l.cluster.nccl_algo, MAQ_NCCL_ALGO_RING);
    assert_close(l.cluster.groups[0].domain_contention, 0.5);
    assert_int_equal(l.cluster.groups[0].fabric.transport, MAQ_TRANSPORT_ENA);
    unload(&l);
}

/* Measured rates go with the power they were measured under, unless the map has rates of its own; GeForce's matrix units do not feel it. */
static void test_power_limits(void **state)
{
    (void)state;
    const struct {
        const char *device;
        double tflops; /* sustained, 16 bits */
    } cases[] = {
        {"{base: h100-sxm}", 794.5},
        {"{base: h100-sxm, power: 700 W}", 794.5},
        {"{base: h100-sxm, power: 350 W}", 794.5 * 0.7937005},
        {"{base: h100-sxm, power: 2100 W}", 989.4}, /* 1,146: not above the peak */
        {"{base: h100-sxm, power: 500 W, sustained: {bf16: 600 TFLOP/s}}", 600},
        {"{base: h100-pcie, power: 250 W}", 572.3 * 0.8939035}, /* not measured itself */
        {"{base: rtx-4090, power: 225 W}", 180.8},              /* of the whole die; 165.2 are sold */
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        char text[160];
        struct loaded l;
        snprintf(text, sizeof text, "{device: %s}", cases[i].device);
        load(&l, text);
        assert_int_equal(l.status, MAQ_OK);
        double got = l.cluster.groups[0].device.sustained_flops[MAQ_BF16] / 1e12;
        assert_true(got > 0.999 * cases[i].tflops && got < 1.001 * cases[i].tflops);
        unload(&l);
    }
}

/* What shares PCIe is the device's, unless the group says it, or says what the devices of a node reach together. */
static void test_contention(void **state)
{
    (void)state;
    const struct {
        const char *text;
        double contention;
    } rows[] = {
        {"{groups: [{device: l40s}]}", 1.95},
        {"{groups: [{device: l40s, domain_contention: 0.3}]}", 0.3},
        {"{groups: [{device: l40s, domain_bandwidth: 12 GB/s}]}", 0.0},
        {"{groups: [{device: l40s, domain_bandwidth: 12 GB/s, domain_contention: 0.3}]}", 0.3},
        {"{groups: [{device: rtx-3090}]}", 0.56},
        {"{groups: [{device: rtx-3090, domain_bandwidth: 40 GB/s}]}", 0.56},
        {"{groups: [{device: t4}]}", 0.0},
        {"{groups: [{device: a40}]}", -1.0},
        {"rtx-4090:8 x 2", -1.0},
    };
    for (size_t i = 0; i < MAQ_COUNT(rows); i++) {
        struct loaded l;
        load(&l, rows[i].text);
        assert_int_equal(l.status, MAQ_OK);
        assert_true(l.cluster.groups[0].domain_contention == rows[i].contention);
        unload(&l);
    }
}

static void test_document_faults(void **state)
{
    (void)state;
    expect_messages("[h100]", "1+6 1209 a cluster is one line, a file, or a map, not a list\n");
    expect_messages("{groups: []}", "10+2 1209 `groups` must be a list with at least one node group\n");
    expect_messages("{groups: [h100, {device: a100}]}", "11+4 1209 a node group must be a map\n");
    expect_messages("{groups: [{device: h100}], nodes: 4, device: a100}",
                    "28+5 1212 'nodes' belongs to a node group and stands beside `groups`\n"
                    "38+6 1212 'device' belongs to a node group and stands beside `groups`\n");
    expect_messages("{device: h100, nodez: 4}", "16+5 1021 unknown key 'nodez' in cluster\n");
    expect_messages("{groups: [{device: h100, leaf: 4}]}", "26+4 1021 unknown key 'leaf' in node group\n");
    expect_messages("{device: nope, fabric: nope}", "10+4 1200 unknown device 'nope'\n");
    expect_messages("{device: h100, fabric: nope}", "24+4 1201 unknown fabric 'nope'\n");
    expect_messages("{device: h100, fabric: roce}", "24+4 1206 'roce' is a kind of fabric and needs a rate\n");
    expect_messages("{device: h100, fabric: {rate: 100 Gb/s}}", "24+16 1215 fabric 'fabric' lacks its latency\n");
    expect_messages("{device: h100, fabric: [a]}",
                    "24+3 1209 a fabric is a catalogue name, a file, or a map, not a list\n");
    expect_messages("{device: [h100]}", "10+6 1209 a device is a catalogue name, a file, or a map, not a list\n");
    expect_messages("{device: h100, domain_devices: 3}", "32+1 1207 a domain of 3 devices does not fit nodes of 8: it "
                                                         "must divide a node or be whole nodes\n");
    expect_messages("{device: {base: h100, peak: {bf16: 500 TFLOP/s}}}",
                    "10+39 1211 device 'h100-sxm': sustained bf16 of 794 TFLOP/s exceeds its peak of 500 TFLOP/s\n");
    expect_messages("{device: {base: h100, sustained_from: h100-sxx}}", "39+8 1200 unknown device 'h100-sxx'\n");
    expect_messages("{device: {name: x, memory: 10 GiB}}",
                    "10+25 1210 device 'x' lacks: peak, memory_bandwidth, vector, "
                    "sms, clock, power, host, launch\n");
    expect_messages("{device: {base: h100, peak: 5, domain: {devicez: 3}}}",
                    "29+1 1209 peak of a device must be a map\n"
                    "41+7 1021 unknown key 'devicez' in domain\n");
    expect_messages("{device: {base: {base: {base: {base: {base: {base: {base: {base: {base: {base: h100}}}}}}}}}}}",
                    "73+12 1213 more than 8 devices in a chain of `base`\n");
    expect_messages("{device: {base: h100, fabric: foo}, nodes: 4, nic_rate: 100 Gb/s}",
                    "10+25 1201 unknown fabric 'foo'\n");
    static const char mine[] = "{device: {name: x, memory: 10 GiB, peak: {bf16: 1 TFLOP/s}, memory_bandwidth: 1 TB/s, "
                               "vector: 1 TFLOP/s, sms: 4, clock: 1 GHz, power: 10 W, host: 10 GB/s, launch: 1 us}%s}";
    char text[512];
    snprintf(text, sizeof text, mine, ", nodes: 4");
    expect_messages(text, "10+159 1214 device 'x' has no usual network, and 4 nodes need one\n");
    snprintf(text, sizeof text, mine, "");
    EXPECT(text, 0, 1, {"x", 1, 8, 1, 1, 0, "none", false});
}

static void test_files(void **state)
{
    (void)state;
    char dir[] = "/tmp/maq-cluster-XXXXXX", path[64], device[64], fabric[64], text[256];
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/c.yaml", dir);
    snprintf(device, sizeof device, "%s/d.yaml", dir);
    snprintf(fabric, sizeof fabric, "%s/f.yml", dir);
    write_text(device, "{base: h100, name: own, memory: 60 GiB}\n");
    write_text(fabric, "{base: ib-ndr, name: wire, rate: 300 Gb/s}\n");
    snprintf(text, sizeof text, "{device: %s, nodes: 3, fabric: %s}\n", device, fabric);
    write_text(path, text);
    EXPECT(path, 0, 1, {"own", 3, 8, 8, 8, 37.5e9, "wire", false});
    write_text(path, "h100:4 x 2, rail 200G\n");
    EXPECT(path, 0, 1, {"h100-sxm", 2, 4, 4, 4, 25e9, "ib-hdr", true});
    struct loaded l;
    write_text(device, "{memory: 10 GiB, peak: {bf16: 1 TFLOP/s}, memory_bandwidth: 1 TB/s, vector: 1 TFLOP/s, sms: 4, "
                       "clock: 1 GHz, power: 10 W, host: 10 GB/s, launch: 1 us}\n");
    snprintf(text, sizeof text, "{device: %s}\n", device);
    load(&l, text);
    assert_int_equal(l.status, MAQ_OK);
    assert_string_equal(l.cluster.groups[0].device.name, device);
    assert_int_equal(l.cluster.groups[0].device.arch, MAQ_ARCH_OTHER); /* nobody said which */
    unload(&l);
    write_text(path, "[1]\n");
    load(&l, path);
    assert_int_equal(l.status, MAQ_BAD_INPUT);
    assert_int_equal(maq_diag_at(l.diag, 0)->code, MAQ_CODE_CLUSTER_FORM);
    unload(&l);
    write_text(path, "other.yaml\n"); /* a file that names a file is no device */
    load(&l, path);
    assert_int_equal(l.status, MAQ_BAD_INPUT);
    assert_int_equal(maq_diag_at(l.diag, 0)->code, MAQ_CODE_UNKNOWN_DEVICE);
    unload(&l);
    remove(path), remove(device), remove(fabric), remove(dir);
    load(&l, path);
    assert_int_equal(l.status, MAQ_IO);
    unload(&l);
}

/* --- placement ---------------------------------------------------------------------------------------------- */

static uint64_t rng_state = 12345;
static uint32_t random_below(uint32_t n)
{
    rng_state = rng_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((rng_state >> 33) % n);
}

struct member {
    uint32_t group, node, domain, leaf, place;
};

static struct member locate(const struct maq_cluster *c, uint32_t rank)
{
    struct member m = {0};
    uint32_t node_base = 0, domain_base = 0;
    for (uint32_t g = 0;; g++) {
        const struct maq_node_group *x = &c->groups[g];
        uint32_t n = (uint32_t)(x->nodes * x->devices_per_node), p = (uint32_t)x->devices_per_node;
        uint32_t d = (uint32_t)x->domain_devices;
        if (rank < x->first_rank + n) {
            uint32_t local = rank - x->first_rank;
            m.group = g;
            m.node = node_base + local / p;
            m.domain = domain_base + local / d;
            m.leaf = c->nodes_per_switch ? m.node / (uint32_t)c->nodes_per_switch : 0;
            m.place = d < p ? local % p / d : 0;
            return m;
        }
        node_base += (uint32_t)x->nodes;
        domain_base += n; /* more than there are domains: distinct is enough */
    }
}

#define MOST 512

static struct maq_placement enumerate(const struct maq_cluster *c, uint32_t first, uint32_t size, uint32_t stride)
{
    static struct member m[MOST];
    struct maq_placement at = {.size = size};
    uint32_t nodes = 0, slow[3] = {0};
    bool leaves = false, places = false, rails = false;
    for (uint32_t i = 0; i < size; i++)
        m[i] = locate(c, first + i * stride);
    slow[0] = slow[1] = slow[2] = m[0].group;
    for (uint32_t i = 0; i < size; i++) {
        uint32_t in_domain = 0, in_node = 0;
        bool new_domain = true, new_node = true;
        for (uint32_t k = 0; k < size; k++) {
            in_domain += m[k].domain == m[i].domain;
            in_node += m[k].node == m[i].node;
            new_domain &= k >= i || m[k].domain != m[i].domain;
            new_node &= k >= i || m[k].node != m[i].node;
            leaves |= m[k].leaf != m[i].leaf;
            places |= m[k].node != m[i].node && m[k].place != m[i].place;
        }
        at.domains += new_domain;
        nodes += new_node;
        at.per_domain = in_domain > at.per_domain ? in_domain : at.per_domain;
        at.per_node = in_node > at.per_node ? in_node : at.per_node;
        const struct maq_node_group *g = &c->groups[m[i].group];
        rails |= g->rail_optimized;
        if (g->domain_bps < c->groups[slow[0]].domain_bps)
            slow[0] = m[i].group;
        if (g->device.host_bps < c->groups[slow[1]].device.host_bps)
            slow[1] = m[i].group;
        if (maq_node_group_network_bps(g) < maq_node_group_network_bps(&c->groups[slow[2]]))
            slow[2] = m[i].group;
    }
    at.group = (uint16_t)slow[at.domains == 1 ? 0 : nodes == 1 ? 1 : 2];
    if (at.domains > 1 && nodes > 1 && c->nodes_per_switch > 0)
        at.crosses_switch = leaves || (rails && places);
    return at;
}

static void random_cluster(struct maq_cluster *c, struct maq_node_group *groups, uint32_t most_groups)
{
    *c = (struct maq_cluster){.n_groups = 1 + random_below(most_groups), .groups = groups, .oversubscription = 2};
    c->nodes_per_switch = random_below(2) ? (int32_t)random_below(5) : 0;
    for (uint32_t i = 0; i < c->n_groups; i++) {
        struct maq_node_group *g = &groups[i];
        *g = (struct maq_node_group){.nodes = 1 + (int32_t)random_below(12)};
        g->devices_per_node = 1 + (int32_t)random_below(12);
        if (random_below(3) == 0) {
            g->domain_devices = g->devices_per_node * (1 + (int32_t)random_below(4));
        } else {
            do
                g->domain_devices = 1 + (int32_t)random_below((uint32_t)g->devices_per_node);
            while (g->devices_per_node % g->domain_devices);
        }
        g->domain_bps = 1e9 * (1 + random_below(3));
        g->device.host_bps = 1e9 * (1 + random_below(3));
        g->nics_per_node = 1 + (int32_t)random_below(8);
        g->fabric = (struct maq_fabric){.nic_bps = 1e9, .efficiency = 0.5, .latency_s = 1e-6};
        g->rail_optimized = random_below(2);
        g->first_rank = c->devices;
        c->devices += (uint32_t)(g->nodes * g->devices_per_node);
    }
}

static void test_placement_against_enumeration(void **state)
{
    struct maq_node_group groups[5];
    struct maq_cluster c;
    (void)state;
    for (int round = 0; round < 1500; round++) {
        random_cluster(&c, groups, round % 2 ? 5 : 1);
        for (int k = 0; k < 40; k++) {
            uint32_t first = random_below(c.devices), left = c.devices - first;
            uint32_t stride = 1 + random_below(random_below(2) ? 8 : left), most = (left - 1) / stride + 1;
            uint32_t size = 1 + random_below(most < MOST ? most : MOST);
            struct maq_placement got = maq_cluster_place(&c, first, size, stride);
            struct maq_placement want = enumerate(&c, first, size, stride);
            if (memcmp(&got, &want, sizeof got) != 0)
                fail_msg("first %u size %u stride %u: got %u x %u, %u per node, switch %d, group %u; want %u x %u, %u, "
                         "%d, %u",
                         first, size, stride, got.domains, got.per_domain, got.per_node, got.crosses_switch, got.group,
                         want.domains, want.per_domain, want.per_node, want.crosses_switch, want.group);
            assert_int_equal(maq_cluster_group_of(&c, first) - c.groups, locate(&c, first).group);
        }
    }
}

static void test_placement_examples(void **state)
{
    struct loaded l;
    struct maq_placement at;
    (void)state;
    load(&l, "h100:8 x 64, rail 400G, leaf 32, oversubscription 2");
    at = maq_cluster_place(&l.cluster, 0, 8, 1); /* TP 8 */
    assert_int_equal(at.domains, 1);
    assert_int_equal(at.per_domain, 8);
    assert_false(at.crosses_switch);
    at = maq_cluster_place(&l.cluster, 3, 32, 8); /* one rail of one rail group */
    assert_int_equal(at.domains, 32);
    assert_int_equal(at.per_domain, 1);
    assert_false(at.crosses_switch);
    at = maq_cluster_place(&l.cluster, 3, 64, 8); /* the same rail, two rail groups */
    assert_true(at.crosses_switch);
    at = maq_cluster_place(&l.cluster, 0, 16, 1); /* two nodes, all rails: PXN */
    assert_int_equal(at.domains, 2);
    assert_int_equal(at.per_domain, 8);
    assert_false(at.crosses_switch);
    unload(&l);

    load(&l, "h100-pcie:8 x 4, rail 200G, leaf 4");
    at = maq_cluster_place(&l.cluster, 0, 2, 1); /* under the bridge */
    assert_int_equal(at.domains, 1);
    at = maq_cluster_place(&l.cluster, 0, 4, 1); /* two pairs of one node */
    assert_int_equal(at.domains, 2);
    assert_int_equal(at.per_node, at.size);
    assert_false(at.crosses_switch);
    at = maq_cluster_place(&l.cluster, 0, 16, 1); /* rails that no NVLink joins */
    assert_true(at.crosses_switch);
    at = maq_cluster_place(&l.cluster, 5, 4, 8); /* one rail */
    assert_false(at.crosses_switch);
    unload(&l);

    load(&l, "gb200:4 x 36, domain 72, rail 400G, leaf 36");
    at = maq_cluster_place(&l.cluster, 0, 72, 1);
    assert_int_equal(at.domains, 1);
    assert_int_equal(at.per_node, 4);
    at = maq_cluster_place(&l.cluster, 0, 18, 8);
    assert_int_equal(at.domains, 2);
    assert_int_equal(at.per_domain, 9);
    assert_int_equal(at.per_node, 1);
    at = maq_cluster_place(&l.cluster, 0, 48, 3); /* 24 in each rack, 1 or 2 in a node */
    assert_int_equal(at.per_domain, 24);
    assert_int_equal(at.per_node, 2);
    assert_int_equal(at.size, at.per_domain * at.domains); /* even */
    unload(&l);
}

/* Every path has all its links: no device sends more than its own PCIe link holds, and another port never makes it slower. */
static void test_links_are_capped(void **state)
{
    struct maq_node_group groups[5];
    struct maq_cluster c;
    uint32_t capped = 0;
    (void)state;
    for (int round = 0; round < 400; round++) {
        random_cluster(&c, groups, 4);
        for (uint32_t i = 0; i < c.n_groups && round % 2; i++)
            groups[i].device.host_bps /= 8;
        for (int k = 0; k < 20; k++) {
            uint32_t size = 1 + random_below(c.devices), sharers = 1 + random_below(4);
            struct maq_placement at = maq_cluster_place(&c, random_below(c.devices - size + 1), size, 1);
            struct maq_node_group *g = &groups[at.group];
            double most = g->device.host_bps, before = maq_cluster_links(&c, &at, sharers).far.bps;
            assert_true(before <= most);
            assert_true(maq_node_group_network_bps(g) <= most);
            capped += before >= most;
            g->nics_per_node++;
            double after = maq_cluster_links(&c, &at, sharers).far.bps;
            assert_true(after >= before && after <= most);
            g->device.pcie_bps = 2 * most; /* its ports hang on a wider link than the host's */
            assert_true(maq_cluster_links(&c, &at, sharers).far.bps >= after);
            g->device.pcie_bps = 0;
            g->nics_per_node--;
        }
    }
    assert_true(capped > 100);
    struct loaded l;
    load(&l, "h100:1 x 4, nics 8 x 400G");
    struct maq_placement at = maq_cluster_place(&l.cluster, 0, 4, 1);
    assert_true(maq_cluster_links(&l.cluster, &at, 1).far.bps == 63e9);
    unload(&l);
    load(&l, "b300:8 x 4"); /* 800 Gb/s a port, on PCIe 6.0 */
    at = maq_cluster_place(&l.cluster, 0, 32, 1);
    assert_true(maq_cluster_links(&l.cluster, &at, 1).far.bps > 63e9);
    unload(&l);
}

static void test_links(void **state)
{
    struct loaded l;
    struct maq_placement at;
    struct maq_links links;
    (void)state;
    load(&l, "h100:8 x 64, rail 400G, leaf 32, oversubscription 2");
    at = maq_cluster_place(&l.cluster, 0, 8, 1);
    links = maq_cluster_links(&l.cluster, &at, 1);
    assert_close(links.near.bps, 450e9);
    assert_true(links.far.bps == 0 && links.far.latency_s == 0);
    at = maq_cluster_place(&l.cluster, 0, 16, 1);
    links = maq_cluster_links(&l.cluster, &at, 1);
    assert_close(links.far.bps, 50e9 * 0.97);
    assert_close(links.far.latency_s, 5e-6);
    at = maq_cluster_place(&l.cluster, 0, 64, 8);
    assert_close(maq_cluster_links(&l.cluster, &at, 8).far.bps, 50e9 * 0.97 / 2);
    assert_close(maq_node_group_network_bps(&l.cluster.groups[0]), 50e9 * 0.97);
    unload(&l);

    load(&l, "a100:8 x 4, nics 4 x 200G"); /* two devices share a port */
    at = maq_cluster_place(&l.cluster, 0, 4, 8);
    assert_close(maq_cluster_links(&l.cluster, &at, 1).far.bps, 25e9 * 0.97); /* alone: a whole port */
    assert_close(maq_cluster_links(&l.cluster, &at, 4).far.bps, 25e9 * 0.97);
    assert_close(maq_cluster_links(&l.cluster, &at, 8).far.bps, 12.5e9 * 0.97);
    assert_close(maq_cluster_links(&l.cluster, &at, 99).far.bps, 12.5e9 * 0.97);
    at = maq_cluster_place(&l.cluster, 0, 32, 1);
    assert_close(maq_cluster_links(&l.cluster, &at, 1).far.bps, 12.5e9 * 0.97);
    unload(&l);

    load(&l, "h100:8 x 2, efa-v2"); /* four ports each, and never more */
    at = maq_cluster_place(&l.cluster, 0, 2, 8);
    assert_close(maq_cluster_links(&l.cluster, &at, 1).far.bps, 4 * 12.5e9 * 0.84);
    unload(&l);

    load(&l, "h100-pcie:8 x 2"); /* pairs of one node: PCIe, not the network */
    at = maq_cluster_place(&l.cluster, 0, 8, 1);
    links = maq_cluster_links(&l.cluster, &at, 1);
    assert_close(links.near.bps, 300e9);
    assert_close(links.host.bps, 63e9);
    assert_true(links.far.bps == 0 && links.far.latency_s == 0);
    at = maq_cluster_place(&l.cluster, 0, 16, 1); /* of both nodes: PCIe and the network */
    links = maq_cluster_links(&l.cluster, &at, 1);
    assert_close(links.host.bps, 63e9);
    assert_true(links.far.bps > 0);
    at = maq_cluster_place(&l.cluster, 0, 2, 8); /* one device of each: the network alone */
    links = maq_cluster_links(&l.cluster, &at, 1);
    assert_true(links.host.bps == 0 && links.far.bps > 0);
    unload(&l);

    load(&l, "h100:8 x 2, rail 400G + a100:8 x 2, rail 200G"); /* the slower side rules */
    at = maq_cluster_place(&l.cluster, 0, 4, 8);
    assert_int_equal(at.group, 1);
    assert_close(maq_cluster_links(&l.cluster, &at, 1).far.bps, 25e9 * 0.97);
    unload(&l);
}

/* Two groups of 25 Gb/s (T4) and 100 Gb/s (V100) ports, one for the four devices of a node. */
#define ISLANDS                                                                                                        \
    "groups: [{device: t4, nodes: 2, devices_per_node: 4, nics_per_node: 1, fabric: {base: ethernet-100, rate: 25 "    \
    "Gb/s, "                                                                                                           \
    "efficiency: 1}}, {group_name: volta, device: v100-32gb, nodes: 2, devices_per_node: 4, nics_per_node: 1, "        \
    "fabric: {base: "                                                                                                  \
    "ethernet-100, efficiency: 1}}, {device: a100, nodes: 1, devices_per_node: 8}]"

/* What a transfer between the first device of one group and that of another gets, `sharers` of its node sending. */
static struct maq_link between(const struct maq_cluster *c, uint32_t a, uint32_t b, uint32_t sharers)
{
    uint32_t first = c->groups[a].first_rank;
    struct maq_placement at = maq_cluster_place(c, first, 2, c->groups[b].first_rank - first);
    return maq_cluster_links(c, &at, sharers).far;
}

static void test_group_links(void **state)
{
    struct loaded without, l;
    (void)state;
    load(&without, "{" ISLANDS "}");
    load(&l, "{" ISLANDS ", links: [{between: [volta, t4], bandwidth: 9.2 Gb/s, flow_bandwidth: 5.5 Gb/s, latency: "
             "2 ms}, {between: [t4, a100-80gb], bandwidth: 400 Gb/s}]}");
    assert_int_equal(l.status, MAQ_OK);
    assert_int_equal(l.cluster.n_links, 2);
    assert_string_equal(maq_node_group_name(&l.cluster.groups[0]), "t4");
    assert_string_equal(maq_node_group_name(&l.cluster.groups[1]), "volta");
    assert_close(between(&without.cluster, 0, 1, 4).bps, 25e9 / 8 / 4);
    assert_close(between(&l.cluster, 0, 1, 1).bps, 5.5e9 / 8); /* one flow */
    assert_close(between(&l.cluster, 0, 1, 2).bps, 9.2e9 / 8 / 2);
    assert_close(between(&l.cluster, 0, 1, 4).bps, 9.2e9 / 8 / 4);
    assert_close(between(&l.cluster, 0, 1, 4).latency_s, 2e-3);
    /* a link adds nothing to what ports give, and is of its two groups alone */
    assert_close(between(&l.cluster, 0, 2, 4).bps, between(&without.cluster, 0, 2, 4).bps);
    assert_close(between(&l.cluster, 1, 2, 4).bps, between(&without.cluster, 1, 2, 4).bps);
    /* a group inside one node group crosses none; one over all three crosses the slowest */
    struct maq_placement at = maq_cluster_place(&l.cluster, 0, 8, 1);
    assert_int_equal(at.link, 0);
    at = maq_cluster_place(&l.cluster, 0, l.cluster.devices, 1);
    assert_int_equal(at.link, 1);
    unload(&l);
    unload(&without);
}

static void test_group_link_faults(void **state)
{
    (void)state;
#define FAULT(links, want)                                                                                             \
    expect_messages("{groups: [{device: t4}, {device: h100}, {device: t4}], links: " links "}", want)
    FAULT("3", "63+1 1209 `links` must be a list of at most 255 links\n");
    FAULT("[3]", "64+1 1209 a link must be a map\n");
    FAULT("[{between: [h100-sxm, b200], latency: 1 us}]", "85+4 1216 there is no node group 'b200'\n");
    FAULT("[{between: [h100-sxm, t4], latency: 1 us}]", "85+2 1216 2 node groups are called 't4'\n");
    FAULT("[{between: [h100-sxm, h100-sxm], latency: 1 us}]", "74+20 1216 a link joins two different node groups\n");
    FAULT("[{between: [h100-sxm], latency: 1 us}]", "74+10 1216 `between` must be a list of two node groups\n");
#undef FAULT
    expect_messages("{groups: [{device: t4}, {device: h100}], links: [{between: [t4, h100-sxm]}]}",
                    "50+25 1216 a link that says nothing\n");
    expect_messages("{groups: [{device: t4}, {device: h100}], links: [{between: [t4, h100-sxm], latency: 1 us}, "
                    "{between: [h100-sxm, t4], latency: 1 us}]}",
                    "92+40 1216 a second link between the same node groups\n");
    expect_messages("{groups: [{device: t4}, {device: h100}], links: [{between: [t4, h100-sxm], rate: 1 Gb/s}]}",
                    "76+4 1021 unknown key 'rate' in link\n");
}

static void test_dtypes(void **state)
{
    (void)state;
    for (int t = 0; t < MAQ_DTYPE_COUNT; t++)
        assert_true(maq_dtype_name((enum maq_dtype)t)[0] && maq_dtype_bytes((enum maq_dtype)t) > 0);
    assert_string_equal(maq_dtype_name(MAQ_BF16), "bf16");
    assert_close(maq_dtype_bytes(MAQ_FP4), 0.5);
    assert_close(maq_dtype_bytes(MAQ_TF32), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_examples_of_the_header),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_spacing_and_case),
        cmocka_unit_test(test_rates),
        cmocka_unit_test(test_unknown_names),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_syntax),
        cmocka_unit_test(test_all_faults_at_once),
        cmocka_unit_test(test_too_many_groups),
        cmocka_unit_test(test_document),
        cmocka_unit_test(test_power_limits),
        cmocka_unit_test(test_contention),
        cmocka_unit_test(test_document_faults),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_placement_against_enumeration),
        cmocka_unit_test(test_placement_examples),
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_links_are_capped),
        cmocka_unit_test(test_group_links),
        cmocka_unit_test(test_group_link_faults),
        cmocka_unit_test(test_dtypes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
