/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster_text.c - the cluster of a row, in maquette's one-line form.
 *
 * Device and counts have columns of their own. The network is prose: "8x 400 Gb/s NDR InfiniBand per node", "400 Gb/s RDMA per GPU",
 * "1600 Gbps node-node RoCE". It is read one part after the other (parts are separated by ',' or ';'), leaving out parts about
 * storage, management and PCIe, for
 *
 *     a rate     bits per second; bytes per second when the B is a capital; of a generation of InfiniBand ("NDR") where none is stated
 *     a count    "8x" in front, "x 8" behind: so many ports of that rate in a node
 *     a scope    "per GPU": a port for every device; "per node", "node-node", "inter-node": all ports of a node together
 *     a kind     InfiniBand, RoCE, Omni-Path, EFA, TCPX, Slingshot; a rate without one is of the kind that the device is usually sold with
 *
 * A note may name several fabrics, "1x Ethernet 100Gb/s, 8x InfiniBand 400Gb/s": a part with a rate begins another one where there is one
 * already. NCCL takes the fastest, so the one with the most bandwidth of a node counts, not the first.
 *
 * A rate for the whole node without a count is spread over as many ports as the node has devices, but for EFA, whose cards have one
 * rate. What is not said is what the device is usually sold with.
 */
#include "validate/train/interpret.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "cluster/cluster_load.h"
#include "cluster/device_name.h"
#include "spec/catalogue.h"
#include "validate/phrase.h"

static const struct {
    const char *phrase, *kind;
} kinds[] = {
    {"tcp|sockets", "tcp"},
    {"slingshot*&software matching", "soft-slingshot-11"},
    {"gib", "gib"},
    {"roce|rocev2|roce2|spectrum-x", "roce"},
    {"efa*", "efa"},
    {"*tcpx*", "gpudirect"},
    {"omnipath|omni-path|opa", "omnipath"},
    {"slingshot*", "slingshot"},
    {"infiniband|ib|ndr*|hdr*|edr|xdr", "ib"},
};

/* A kind by name, the whole of it: its preset knows rate and ports. */
static const struct {
    const char *kind, *preset;
} presets[] = {{"gpudirect", "gpudirect-tcpx"},
               {"omnipath", "omnipath-100"},
               {"slingshot", "slingshot-11"},
               {"soft-slingshot-11", "soft-slingshot-11"},
               {"tcp", "tcp-200"},
               {"gib", "gib-roce-400"}};

static const char rate_pattern[] = "# tb/s|#tb/s|# tbps|#tbps|# tbit*|#tbit*|# gb/s|#gb/s|# gb/sec|#gb/sec|# "
                                   "gbps|#gbps|# gbit*|#gbit*|# gigabit*|#gigabit*|"
                                   "# (gb/s*|# gb|#gb|#gbe|# gbe|#g";
static const char node_scope[] =
    "per node|per server|per host|node-node|inter-node|internode|node-to-node|between nodes";
static const char other_traffic[] =
    "storage|management|pcie-nic|gpu-pcie|pcie|ethernet nic|nvlink*|nvswitch|xgmi|infinity fabric";

#define FASTEST_PORT 800.0 /* Gb/s: XDR. A larger rate alone is that of a node */

struct network {
    double gbps; /* of `ports` when ports > 0, else by scope */
    int64_t ports;
    bool per_device, per_node;
    const char *kind;
};

/* In Gb/s: "Tb" is 1000 of them, a capital B counts bytes. */
static bool read_rate(double *gbps, struct maq_str part)
{
    struct maq_phrase_match m;
    if (!maq__phrase_in(part, rate_pattern, &m) || m.number[0] <= 0)
        return false;
    *gbps = m.number[0];
    for (size_t i = 0; i + 1 < m.at.len; i++) {
        bool tera = m.at.ptr[i] == 'T' || m.at.ptr[i] == 't', giga = m.at.ptr[i] == 'G' || m.at.ptr[i] == 'g';
        if (!tera && !giga)
            continue;
        *gbps *= (tera ? 1000 : 1) * (m.at.ptr[i + 1] == 'B' ? 8 : 1);
        break;
    }
    return true;
}

/* A port of a generation of InfiniBand, where its name is all that is said [Gb/s]. */
static bool read_generation(struct network *net, struct maq_str part)
{
    static const struct {
        const char *phrase, *counted;
        double gbps;
    } generations[] = {{"hdr100", "#x hdr100", 100}, {"ndr200", "#x ndr200", 200}, {"edr", "#x edr", 100},
                       {"hdr*", "#x hdr*", 200},     {"ndr*", "#x ndr*", 400},     {"xdr*", "#x xdr*", 800}};
    struct maq_phrase_match m;
    for (size_t i = 0; i < MAQ_COUNT(generations); i++)
        if (maq__phrase_in(part, generations[i].phrase, NULL)) {
            net->gbps = generations[i].gbps;
            if (maq__phrase_in(part, generations[i].counted, &m) && m.number[0] >= 1 && m.number[0] <= 1024)
                net->ports = (int64_t)m.number[0];
            return true;
        }
    return false;
}

/* The rate of a part and how many ports have it; false: it has none. */
static bool read_bandwidth(struct network *net, struct maq_str part)
{
    struct maq_phrase_match m;
    if (read_rate(&net->gbps, part)) {
        if (maq__phrase_in(part, "#x|x #|x#", &m) && m.number[0] >= 1 && m.number[0] <= 1024)
            net->ports = (int64_t)m.number[0];
        return true;
    }
    if (read_generation(net, part))
        return true;
    if (!maq__phrase_in(part, "#x #", &m) || m.number[1] < 25) /* "4x200": Gb/s */
        return false;
    net->ports = (int64_t)m.number[0];
    net->gbps = m.number[1];
    return true;
}

/* What a part says; of another fabric than `net` where it has a rate and `net` has one: then it goes to *next, and true is returned. */
static bool read_part(struct network *net, struct network *next, struct maq_str part)
{
    struct network own = {0};
    if (maq__phrase_in(part, other_traffic, NULL))
        return false;
    for (size_t i = 0; i < MAQ_COUNT(kinds) && !own.kind; i++)
        if (maq__phrase_in(part, kinds[i].phrase, NULL))
            own.kind = kinds[i].kind;
    own.per_device = maq__phrase_in(part, "per gpu|per device|per accelerator", NULL);
    own.per_node = maq__phrase_in(part, node_scope, NULL);
    bool rated = !maq__phrase_in(part, "#gbe&infiniband",
                                 NULL) && /* one excludes the other: the rate is that of something else */
                 read_bandwidth(&own, part);
    if (rated && net->gbps > 0) {
        *next = own;
        return true;
    }
    if (rated) {
        net->gbps = own.gbps;
        net->ports = own.ports;
    }
    net->kind = net->kind ? net->kind : own.kind;
    net->per_device |= own.per_device;
    net->per_node |= own.per_node;
    return false;
}

/* Of a node, as maq__network_text() will take it [Gb/s]. */
static double node_gbps(const struct network *net, int64_t per_node)
{
    if (net->ports > 0)
        return (double)net->ports * net->gbps;
    return net->per_node || (net->gbps > FASTEST_PORT && !net->per_device) ? net->gbps : net->gbps * (double)per_node;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "2x200Gb/s" becomes "2x 200Gb/s", the words that phrases know; a sign of multiplication and '*' are an x too. */
static void add_spread(struct maq_buf *out, struct maq_str note)
{
    for (size_t i = 0; i < note.len; i++) {
        if (i + 1 < note.len && note.ptr[i] == '\xC3' && note.ptr[i + 1] == '\x97') { /* U+00D7 */
            maq_buf_adds(out, i > 0 && is_digit(note.ptr[i - 1]) ? "x " : "x");
            i++;
            continue;
        }
        if (note.ptr[i] == '*' && i > 0 && i + 1 < note.len && is_digit(note.ptr[i - 1]) && is_digit(note.ptr[i + 1])) {
            maq_buf_adds(out, "x ");
            continue;
        }
        maq_buf_addc(out, note.ptr[i]);
        if (note.ptr[i] == 'x' && i > 0 && i + 1 < note.len && is_digit(note.ptr[i - 1]) && is_digit(note.ptr[i + 1]))
            maq_buf_addc(out, ' ');
    }
}

static struct network read_network(struct maq_str note, int64_t per_node)
{
    struct network net = {0}, best = {0}, next;
    while (note.ptr) {
        size_t n = 0;
        while (n < note.len && note.ptr[n] != ',' && note.ptr[n] != ';')
            n++;
        if (read_part(&net, &next, (struct maq_str){note.ptr, n})) {
            best = node_gbps(&net, per_node) > node_gbps(&best, per_node) ? net : best;
            net = next;
        }
        note = n < note.len ? (struct maq_str){note.ptr + n + 1, note.len - n - 1} : (struct maq_str){0};
    }
    return node_gbps(&net, per_node) > node_gbps(&best, per_node) || best.gbps == 0 ? net : best;
}

static const char *preset_of(const char *kind)
{
    for (size_t i = 0; kind && i < MAQ_COUNT(presets); i++)
        if (maq_str_is(maq_str_of(kind), presets[i].kind))
            return presets[i].preset;
    return NULL;
}

/* EFA's cards where their number is not stated: those of the machine that the prose names. */
static const char *efa_preset(struct maq_str note)
{
    if (maq__phrase_in(note, "efav1|efa v1|*p4d*|efa 4x100*", NULL))
        return "efa-v1";
    if (maq__phrase_in(note, "efav3|efa v3|*p5en*|*p6*", NULL))
        return "efa-v3";
    return "efa-v2";
}

enum maq_network_guess maq__network_text(struct maq_buf *b, double *gbps, const char **kind, struct maq_str note,
                                         int64_t per_node)
{
    struct maq_buf spread;
    maq_buf_init(&spread, 4096);
    add_spread(&spread, note);
    struct network net = read_network((struct maq_str){spread.ptr, spread.len}, per_node);
    b->failed |= spread.failed;
    maq_buf_fini(&spread);
    bool cards = net.kind && maq_str_is(maq_str_of(net.kind), "efa");
    const char *preset = cards ? efa_preset(note) : preset_of(net.kind);
    *gbps = net.gbps;
    *kind = cards ? preset : net.kind ? net.kind : "";
    if (net.gbps > 0 && net.gbps < 1e5 && net.ports > 0) {
        maq_buf_addf(b, ", nics %lld x %gG %s", (long long)net.ports, net.gbps, *kind);
    } else if (net.gbps > 0 && net.per_device && !cards) {
        maq_buf_addf(b, ", rail %gG %s", net.gbps, *kind);
    } else if (net.gbps >= 100 && net.gbps < 1e5 && (net.per_node || net.gbps > 400) && cards) {
        maq_buf_addf(b, ", nics %lld x 100G %s", (long long)(net.gbps / 100), preset);
    } else if (net.gbps > 0 && (net.per_node || (net.gbps > FASTEST_PORT && !net.per_device))) {
        maq_buf_addf(b, ", nics %lld x %gG %s", (long long)per_node, net.gbps / (double)per_node, *kind);
        return MAQ_NETWORK_PORT_EACH;
    } else if (net.gbps > 0) {
        maq_buf_addf(b, ", rail %gG %s", net.gbps, *kind);
        return MAQ_NETWORK_RATE_EACH;
    } else if (preset) {
        maq_buf_addf(b, ", %s", preset);
    } else {
        return MAQ_NETWORK_USUAL;
    }
    return MAQ_NETWORK_STATED;
}

/* Appends ", nics ..." or nothing. */
static void add_network(struct maq_interpretation *in, struct maq_buf *b)
{
    double gbps;
    const char *kind;
    if (in->nodes == 1)
        return;
    switch (maq__network_text(b, &gbps, &kind, maq_row_text(&in->row, MAQ_COLUMN_inter_node_bw_note), in->per_node)) {
    case MAQ_NETWORK_PORT_EACH:
        maq__assume(in, "network: %g Gb/s of a node come from one port per device", gbps);
        break;
    case MAQ_NETWORK_RATE_EACH:
        maq__assume(in, "network: a port of %g Gb/s for every device", gbps);
        break;
    case MAQ_NETWORK_USUAL:
        maq__assume(in, "network: what the device is usually sold with%s%s", kind[0] ? ", though the row says " : "",
                    kind);
        break;
    case MAQ_NETWORK_STATED:
        break;
    }
}

/* Devices of a node: as stated, if that divides the job; a job smaller than a node has a node to itself. */
static void choose_nodes(struct maq_interpretation *in, int64_t usual)
{
    int64_t per_node = in->per_node;
    if (per_node < 1) {
        per_node = in->devices < usual ? in->devices : usual;
        maq__assume(in, "%lld devices in a node: gpus_per_node is not stated", (long long)per_node);
    }
    if (per_node > in->devices)
        per_node = in->devices;
    if (in->devices % per_node != 0) {
        int64_t stated = per_node;
        while (in->devices % per_node != 0)
            per_node--;
        maq__assume(in, "%lld of the %lld devices of a node are used", (long long)per_node, (long long)stated);
    }
    in->per_node = per_node;
    in->nodes = in->devices / per_node;
}

/* A name that says more than the entry: another memory, or another board. The entry is taken all the same, with a remark. */
static void compare_name(struct maq_interpretation *in, struct maq_str gpu, const struct maq_catalogue_entry *entry,
                         const struct maq_device *device)
{
    static const char *const boards[] = {"pcie", "nvl", "3e"};
    struct maq_phrase_match m;
    char show[MAQ_SHOW_SIZE];
    bool other = false;
    for (size_t i = 0; i < MAQ_COUNT(boards); i++)
        other |= maq__phrase_in(gpu, boards[i], NULL) && !strstr(entry->name, boards[i]);
    /* a capacity on the label is in 10^9 or 2^30 bytes, and some of it is not for programs */
    if (maq__phrase_in(gpu, "#gb|# gb|#g|#gib", &m) && m.number[0] > 0)
        other |= m.number[0] * 1.0737 < device->mem_bytes / 1e9 * 0.98 || m.number[0] * 0.88 > device->mem_bytes / 1e9;
    if (other)
        maq__assume(in, "gpu '%s' as the catalogue's %s", maq_str_show(show, gpu), entry->name);
}

/* What the rules need to know of a device: its generation; and how many of them a node usually has. */
static int64_t look_at_device(struct maq_interpretation *in, struct maq_str gpu,
                              const struct maq_catalogue_entry *entry)
{
    int64_t usual = 8;
    struct maq_node name = {.kind = MAQ_NODE_SCALAR, .text = maq_str_of(entry->name)};
    struct maq_device device;
    if (maq_device_load(&device, &name, in->arena, NULL) == MAQ_OK) {
        in->arch = device.arch;
        usual = device.devices_per_node;
        compare_name(in, gpu, entry, &device);
    } else {
        in->failed = true;
    }
    return usual;
}

/*
 * Jobs over several NVL72 are placed in equal segments, so that groups of 2, 4, .. 64 ranks lie in one domain (Slurm's --segment 16; the
 * 64 ranks of HybridEP in Megatron-Bridge's recipes).
 */
#define NVL72_DEVICES 72
#define NVL72_SEGMENT 64

static void add_domain(struct maq_interpretation *in, struct maq_buf *b)
{
    if (in->nodes == 1 || NVL72_DEVICES % in->per_node != 0 ||
        !maq__phrase_in(maq_row_text(&in->row, MAQ_COLUMN_intra_node_bw_note), "*nvl72", NULL))
        return;
    bool segments =
        in->devices > NVL72_DEVICES && in->devices % NVL72_SEGMENT == 0 && NVL72_SEGMENT % in->per_node == 0;
    maq_buf_addf(b, ", domain %d", segments ? NVL72_SEGMENT : NVL72_DEVICES);
    if (segments)
        maq__assume(in, "%d of the %d devices of each NVLink domain are used", NVL72_SEGMENT, NVL72_DEVICES);
}

void maq__interpret_cluster(struct maq_interpretation *in)
{
    struct maq_str gpu = maq_row_text(&in->row, MAQ_COLUMN_gpu);
    const struct maq_catalogue_entry *device = maq_device_named(gpu);
    char show[MAQ_SHOW_SIZE];
    if (!device) {
        maq__give_up(in, MAQ_VALIDATE_SKIP_NO_DEVICE, "gpu '%s' is none of the catalogue (maquette show gpus)",
                     maq_str_show(show, gpu));
        return;
    }
    if (in->devices > 1 << 20) {
        maq__give_up(in, MAQ_VALIDATE_SKIP_NO_DEVICE, "more than %d devices", 1 << 20);
        return;
    }
    choose_nodes(in, look_at_device(in, gpu, device));
    struct maq_buf b;
    maq_buf_init(&b, 1024);
    maq_buf_addf(&b, "%s:%lld x %lld", device->name, (long long)in->per_node, (long long)in->nodes);
    add_domain(in, &b);
    add_network(in, &b);
    in->cluster = b.failed ? NULL : maq_arena_strdup(in->arena, (struct maq_str){b.ptr, b.len});
    in->failed |= !in->cluster;
    maq_buf_fini(&b);
}
