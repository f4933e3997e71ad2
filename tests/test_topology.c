/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_topology.c - node groups from what machines say of themselves: matrices and files in the forms of nvidia-smi and NCCL, of machines
 * whose links are public, against what is known of them; broken files; both spellings.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/text.h"
#include "cluster/topology.h"
#include "maquette/cluster.h"
#include "spec/catalogue.h"
#include "temp.h"

struct loaded {
    struct maq_diag *diag;
    struct maq_doc doc;
    struct maq_arena arena;
    struct maq_cluster cluster;
    enum maq_status status;
};

static void load(struct loaded *l, const char *text)
{
    memset(l, 0, sizeof *l);
    l->diag = maq_diag_new();
    maq_arena_init(&l->arena, 0);
    assert_int_equal(maq_doc_parse(&l->doc, "c", maq_str_of(text), MAQ_ORIGIN_DOCUMENT, l->diag), MAQ_OK);
    l->status = maq_cluster_load(&l->cluster, l->doc.root, &l->arena, l->diag);
}

static void unload(struct loaded *l)
{
    maq_doc_fini(&l->doc);
    maq_arena_fini(&l->arena);
    maq_diag_free(l->diag);
}

/* --- files ---------------------------------------------------------------------------------------------------------- */

/* A machine: NVLinks between its GPUs, or to switches; ports and their rate in Mb/s. */
struct machine {
    int gpus, to_switch, nics, mbps;
    uint32_t pci_device;
    const char *links; /* gpus x gpus digits; NULL = none */
};

static int links_of(const struct machine *m, int a, int b)
{
    return m->links ? m->links[a * m->gpus + b] - '0' : 0;
}

/* As `nvidia-smi topo -m` prints it. */
static char *matrix(const struct machine *m)
{
    struct maq_buf b;
    maq_buf_init(&b, 1 << 20);
    maq_buf_addf(&b, "\t\033[4m");
    for (int g = 0; g < m->gpus; g++)
        maq_buf_addf(&b, "GPU%d\t", g);
    for (int n = 0; n < m->nics; n++)
        maq_buf_addf(&b, "NIC%d\t", n);
    maq_buf_addf(&b, "CPU Affinity\tNUMA Affinity\tGPU NUMA ID\033[0m\n");
    for (int g = 0; g < m->gpus; g++) {
        maq_buf_addf(&b, "GPU%d\t", g);
        for (int o = 0; o < m->gpus; o++) {
            int links = m->to_switch > 0 ? m->to_switch : links_of(m, g, o);
            if (o == g)
                maq_buf_addf(&b, " X \t");
            else if (links > 0)
                maq_buf_addf(&b, "NV%d\t", links);
            else
                maq_buf_addf(&b, "SYS\t");
        }
        for (int n = 0; n < m->nics; n++)
            maq_buf_addf(&b, "%s\t", n * m->gpus / m->nics <= g && g < (n + 1) * m->gpus / m->nics ? "PXB" : "SYS");
        maq_buf_addf(&b, "0-51\t0\t\tN/A\n");
    }
    for (int n = 0; n < m->nics; n++) {
        maq_buf_addf(&b, "NIC%d\t", n);
        for (int o = 0; o < m->gpus + m->nics; o++)
            maq_buf_addf(&b, "SYS\t");
        maq_buf_addf(&b, "\n");
    }
    maq_buf_addf(
        &b, "\nLegend:\n\n  X    = Self\n  NV#  = Connection traversing a bonded set of # NVLinks\n\nNIC Legend:\n\n");
    for (int n = 0; n < m->nics; n++)
        maq_buf_addf(&b, "  NIC%d: mlx5_%d\n", n, n);
    return b.ptr;
}

/* As NCCL dumps it. A port of another rate is there, as on machines with a network for storage. */
static char *dump(const struct machine *m)
{
    struct maq_buf b;
    maq_buf_init(&b, 1 << 20);
    maq_buf_addf(&b, "<system version=\"1\">\n  <cpu numaid=\"0\" arch=\"x86_64\" vendor=\"GenuineIntel\">\n");
    for (int g = 0; g < m->gpus; g++) {
        maq_buf_addf(&b, "    <pci busid=\"0000:%02x:00.0\" class=\"0x060400\" device=\"0xc030\">\n",
                     0x10u + (unsigned)g);
        maq_buf_addf(&b, "      <pci busid=\"0000:%02x:00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x%x\">\n",
                     0x40u + (unsigned)g, m->pci_device);
        maq_buf_addf(&b, "        <gpu dev=\"%d\" sm=\"90\" rank=\"%d\" gdr=\"1\">\n", g, g);
        for (int left = m->to_switch, s = 0; left > 0; left -= 5, s++) /* over several switches */
            maq_buf_addf(&b, "          <nvlink target=\"0000:%02x:00.0\" count=\"%d\" tclass=\"0x068000\"/>\n",
                         (unsigned)s, left < 5 ? left : 5);
        for (int o = 0; o < m->gpus; o++)
            if (links_of(m, g, o) > 0)
                maq_buf_addf(&b, "          <nvlink target=\"0000:%02x:00.0\" count=\"%d\" tclass=\"0x030200\"/>\n",
                             0x40u + (unsigned)o, links_of(m, g, o));
        maq_buf_addf(&b, "        </gpu>\n      </pci>\n    </pci>\n");
    }
    for (int n = 0; n < m->nics; n++)
        maq_buf_addf(&b, "    <nic><net name=\"mlx5_%d\" dev=\"%d\" speed=\"%d\"/></nic>\n", n, n, m->mbps);
    maq_buf_addf(&b,
                 "    <nic><net name=\"eth0\" dev=\"%d\" speed=\"10000\"/><net name=\"part\" dev=\"99\" net=\"0\" "
                 "speed=\"800000\"/>"
                 "</nic>\n  </cpu>\n</system>\n",
                 m->nics);
    return b.ptr;
}

/* What the line makes of a file, with FILE in it for the name. */
static void load_with(struct loaded *l, const char *line, const char *bytes, char path[64])
{
    char text[512];
    snprintf(path, 64, "/tmp/maquette-test-topology-XXXXXX");
    temp_text(path, bytes);
    const char *at = strstr(line, "FILE");
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - line), line, path, at + 4);
    load(l, text);
    unlink(path);
}

/* --- machines whose links are known ----------------------------------------------------------------------------------- */

/* The hybrid cube mesh of a DGX-1 with V100 (NVIDIA's whitepaper, WP-08437): six links of each GPU. */
#define CUBE_MESH                                                                                                      \
    "01122000"                                                                                                         \
    "10210200"                                                                                                         \
    "12020010"                                                                                                         \
    "21200001"                                                                                                         \
    "20000112"                                                                                                         \
    "02001021"                                                                                                         \
    "00101202"                                                                                                         \
    "00012120"

static const struct known {
    const char *device;
    struct machine machine;
    int domain;
    double domain_gbs;
} known[] = {
    {"h100-sxm", {.gpus = 8, .to_switch = 18, .nics = 8, .mbps = 400000, .pci_device = 0x2330}, 8, 450},
    {"h800", {.gpus = 8, .to_switch = 8, .nics = 8, .mbps = 400000, .pci_device = 0x2324}, 8, 200},
    {"a100-80gb", {.gpus = 8, .to_switch = 12, .nics = 4, .mbps = 200000, .pci_device = 0x20b2}, 8, 300},
    {"a100-40gb", {.gpus = 4, .nics = 2, .mbps = 100000, .pci_device = 0x20b0, .links = "0444404444044440"}, 4, 300},
    {"v100-16gb", {.gpus = 8, .nics = 4, .mbps = 100000, .pci_device = 0x1db1, .links = CUBE_MESH}, 8, 150},
    {"a40", {.gpus = 4, .nics = 1, .mbps = 100000, .pci_device = 0x2235, .links = "0400400000040040"}, 2, 56.25},
    {"h100-pcie", {.gpus = 8, .nics = 2, .mbps = 200000, .pci_device = 0x2331}, 1, 300},
    {"b200", {.gpus = 8, .to_switch = 18, .nics = 8, .mbps = 400000, .pci_device = 0x2901}, 8, 900},
    {"l40s", {.gpus = 4, .nics = 2, .mbps = 200000, .pci_device = 0x26b9}, 4, 31.5},
};

static void expect(const struct loaded *l, const struct known *k, bool rate)
{
    if (l->status != MAQ_OK)
        fail_msg("%s: %s", k->device, maq_diag_format(l->diag, 0, false));
    const struct maq_node_group *g = &l->cluster.groups[0];
    assert_string_equal(g->device.name, k->device);
    assert_int_equal(g->devices_per_node, k->machine.gpus);
    if (g->domain_devices != k->domain || g->domain_bps > k->domain_gbs * 1.0001e9 ||
        g->domain_bps < k->domain_gbs * 0.9999e9)
        fail_msg("%s: domains of %d at %g", k->device, (int)g->domain_devices, g->domain_bps);
    assert_int_equal(g->nics_per_node, k->machine.nics);
    if (rate)
        assert_true(g->fabric.nic_bps == k->machine.mbps * 1.25e5);
}

static void test_known_machines(void **state)
{
    (void)state;
    for (size_t i = 0; i < MAQ_COUNT(known); i++) {
        const struct known *k = &known[i];
        char *xml = dump(&k->machine), *text = matrix(&k->machine), path[64], line[128];
        struct loaded l;
        load_with(&l, "FILE", xml, path);
        expect(&l, k, false); /* of one node without a network */
        unload(&l);
        snprintf(line, sizeof line, "%s x 3, topology FILE", k->device);
        load_with(&l, line, xml, path);
        expect(&l, k, true);
        assert_int_equal(l.cluster.devices, 3 * k->machine.gpus);
        unload(&l);
        load_with(&l, line, text, path);
        expect(&l, k, false);
        unload(&l);
        snprintf(line, sizeof line, "{device: %s, nodes: 3, topology: FILE}", k->device);
        load_with(&l, line, text, path);
        expect(&l, k, false);
        unload(&l);
        free(text);
        free(xml);
    }
}

/* IDs that are known belong to one entry each, and are read as the lists of devices write them. */
static void test_pci_ids(void **state)
{
    (void)state;
    struct loaded l;
    load(&l, "{device: {base: h100-sxm, pci_ids: [26B9, 0001]}}");
    assert_int_equal(l.status, MAQ_OK);
    const struct maq_device *d = &l.cluster.groups[0].device;
    assert_true(d->pci_ids[0] == 0x26b9 && d->pci_ids[1] == 1 && d->pci_ids[2] == 0);
    unload(&l);
    load(&l, "{device: {base: h100-sxm, name: mine}}"); /* another board */
    assert_true(l.status == MAQ_OK && l.cluster.groups[0].device.pci_ids[0] == 0);
    unload(&l);
    static const char *const bad[] = {"0x26b9", "[0x26b9]", "[26b]",
                                      "[0000]", "[26bg]",   "[1111, 1112, 1113, 1114, 1115]"};
    for (size_t i = 0; i < MAQ_COUNT(bad); i++) {
        char text[128];
        snprintf(text, sizeof text, "{device: {base: h100-sxm, pci_ids: %s}}", bad[i]);
        load(&l, text);
        assert_int_equal(l.status, MAQ_BAD_INPUT);
        unload(&l);
    }
    for (size_t i = 0; maq_catalogue_at("devices", i); i++) {
        const char *name = maq_catalogue_at("devices", i)->name;
        load(&l, name);
        assert_int_equal(l.status, MAQ_OK);
        for (int k = 0; k < MAQ_MOST_PCI_IDS && l.cluster.groups[0].device.pci_ids[k] > 0; k++) {
            struct maq_device found;
            assert_int_equal(maq__device_by_pci_id(&found, l.cluster.groups[0].device.pci_ids[k], (struct maq_span){0},
                                                   &l.arena, l.diag),
                             MAQ_OK);
            assert_string_equal(found.name, name);
        }
        unload(&l);
    }
}

/* What is written wins over what the machine says. */
static void test_the_line_wins(void **state)
{
    (void)state;
    char *xml = dump(&known[0].machine), path[64];
    struct loaded l;
    load_with(&l, "h100-sxm:8 x 2, topology FILE, nics 4 x 200G, domain 4 300GB/s", xml, path);
    assert_int_equal(l.status, MAQ_OK);
    const struct maq_node_group *g = &l.cluster.groups[0];
    assert_true(g->nics_per_node == 4 && g->domain_devices == 4 && g->domain_bps == 300e9 && g->fabric.nic_bps == 25e9);
    unload(&l);
    free(xml);
}

/* A node of a rack: what is seen of its domain is the node. */
static void test_a_node_of_a_rack(void **state)
{
    (void)state;
    const struct machine node = {.gpus = 4, .to_switch = 18, .nics = 4, .mbps = 400000, .pci_device = 0x2941};
    char *text = matrix(&node), path[64];
    struct loaded l;
    load_with(&l, "gb200:4 x 18, topology FILE", text, path);
    assert_int_equal(l.status, MAQ_OK);
    assert_int_equal(l.cluster.groups[0].domain_devices, 72);
    unload(&l);
    free(text);
}

/* --- what cannot be used ---------------------------------------------------------------------------------------------- */

static void expect_error(const char *line, const char *bytes, const char *says)
{
    struct loaded l;
    char path[64];
    load_with(&l, line, bytes, path);
    char *text = maq_diag_format(l.diag, 0, false);
    assert_int_equal(l.status, MAQ_BAD_INPUT);
    if (!strstr(text, says))
        fail_msg("not '%s' in:\n%s", says, text);
    free(text);
    unload(&l);
}

static void test_errors(void **state)
{
    (void)state;
    const struct machine uneven = {.gpus = 4, .nics = 1, .mbps = 100000, .links = "0400400000000000"};
    char *xml = dump(&known[0].machine), *text = matrix(&known[0].machine), *other = matrix(&uneven);
    expect_error("h100-sxm:4, topology FILE", xml, "has 8 GPUs, and a node 4");
    expect_error("a100-80gb, topology FILE", xml, "is of a node of h100-sxm, and this one has a100-80gb");
    expect_error("a40:4, topology FILE", other, "NVLink joins 2 GPUs here and 1 there");
    expect_error("FILE", text, "does not say which GPUs its 8 are");
    expect_error("h100-sxm, topology FILE", "model: gpt2\n", "no topology of a node");
    expect_error("h100-sxm, topology FILE, topology b", xml, "given twice");
    expect_error("h100-sxm, topology , cpu zen3, topology FILE", xml, "expected a file");
    *strstr(xml, "</gpu>") = ' ';
    expect_error("h100-sxm, topology FILE", xml, "mismatched tag");
    *strstr(text, "GPU7\tNV18\t") = '\0';
    expect_error("h100-sxm, topology FILE", text, "fewer rows than columns");
    free(other);
    free(text);
    free(xml);
}

/* Cut anywhere, and with any byte changed, a file is read or refused. */
static void test_damage(void **state)
{
    (void)state;
    char *whole[] = {dump(&known[4].machine), matrix(&known[4].machine)};
    for (int k = 0; k < 2; k++) {
        size_t n = strlen(whole[k]);
        for (size_t i = 0; i < n; i += 7) {
            struct maq__topology t = {0};
            struct maq_diag *diag = maq_diag_new();
            struct maq_str cut = {whole[k], i};
            char kept = whole[k][i];
            (void)(k == 0 ? maq__topology_nccl : maq__topology_smi)(&t, cut, "x", (struct maq_span){0}, diag);
            whole[k][i] = (char)(kept ^ (1 << i % 7));
            t = (struct maq__topology){0};
            (void)(k == 0 ? maq__topology_nccl : maq__topology_smi)(&t, (struct maq_str){whole[k], n}, "x",
                                                                    (struct maq_span){0}, diag);
            assert_true(t.gpus >= 0 && t.gpus <= MAQ_TOPOLOGY_MOST && t.nics >= 0);
            whole[k][i] = kept;
            maq_diag_free(diag);
        }
        free(whole[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_machines),   cmocka_unit_test(test_the_line_wins), cmocka_unit_test(test_pci_ids),
        cmocka_unit_test(test_a_node_of_a_rack), cmocka_unit_test(test_errors),        cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
