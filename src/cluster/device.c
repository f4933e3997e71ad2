/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.c - a device from the catalogue or from a map.
 *
 * One table names every figure; `base:` starts from another entry, and what the map writes lies over it. Figures
 * are checked once, on the finished device: nothing that the cost models divide by may be missing, and a
 * measured rate may not exceed the peak it was measured under.
 */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "cluster/catalogue_entry.h"
#include "cluster/host_cpu.h"
#include "spec/catalogue.h"
#include "spec/field.h"
#include "spec/unverified.h"

static const char *const arch_names[] = {"volta", "turing", "ampere", "ada",   "hopper", "blackwell",
                                         "cdna2", "cdna3",  "cdna4",  "other", NULL};
_Static_assert(MAQ_COUNT(arch_names) == MAQ_ARCH_COUNT + 1, "a name per architecture");

/* The device being read, and what is not in it in the form of the document. */
struct device_reader {
    struct maq_device d;
    struct maq__entry_head head;
    struct maq_str fabric, sustained_from;
    struct maq_node *peak, *sustained, *domain, *pci_ids;
};

#define QTY(member_, key_, dim_, ...) MAQ_FIELD_QTY(struct device_reader, d.member_, key_, dim_, __VA_ARGS__)
#define I32(member_, key_, ...) MAQ_FIELD_I32(struct device_reader, d.member_, key_, __VA_ARGS__)

static const struct maq_field device_fields[] = {
    MAQ_ENTRY_HEAD(struct device_reader, head, "catalogue name of the device to start from", "full name",
                   "where the figures come from"),
    MAQ_FIELD_ENUM(struct device_reader, d.arch, "arch", arch_names, .doc = "generation whose kernels run on it"),
    MAQ_FIELD_NODE(struct device_reader, pci_ids, "pci_ids",
                   .doc = "PCI device IDs, in hexadecimal digits: the GPU of a file of NCCL's is known by them"),
    MAQ_FIELD_NODE(struct device_reader, peak, "peak", .doc = "dense matrix rate by element type, without sparsity"),
    MAQ_FIELD_NODE(struct device_reader, sustained, "sustained",
                   .doc = "best matrix rate measured under the power limit, by element type"),
    MAQ_FIELD_STR(struct device_reader, sustained_from, "sustained_from",
                  .doc = "not measured: the catalogue device whose rate it is, by SMs and the power of each"),
    QTY(vector_flops, "vector", MAQ_DIM_FLOPS, .min = 1e9, .max = 1e18, .doc = "FP32 rate outside the matrix units"),
    QTY(mem_bytes, "memory", MAQ_DIM_BYTES, .min = 1e8, .max = 1e15, .doc = "memory that a program can allocate"),
    QTY(mem_bps, "memory_bandwidth", MAQ_DIM_RATE, .min = 1e9, .max = 1e16, .doc = "peak memory bandwidth"),
    MAQ_FIELD_BOOL(struct device_reader, d.inline_ecc, "inline_ecc",
                   .doc = "ECC is on and its bits lie among the data, a byte of 16, and are read with them (GDDR6)"),
    QTY(l2_bytes, "l2", MAQ_DIM_BYTES, .min = 0, .max = 1e13, .doc = "last-level on-chip cache"),
    QTY(l2_bps, "l2_bandwidth", MAQ_DIM_RATE, .min = 0, .max = 1e17, .doc = "read bandwidth of that cache"),
    I32(sms, "sms", .min = 1, .max = 100000, .doc = "streaming multiprocessors or compute units"),
    QTY(clock_hz, "clock", MAQ_DIM_FREQ, .min = 1e6, .max = 1e11, .doc = "boost clock, at which the peaks are stated"),
    I32(exponentials, "exponentials", .min = 1, .max = 4096, .doc = "exponentials of an SM each clock; usually 16"),
    QTY(tdp_w, "power", MAQ_DIM_POWER, .min = 1, .max = 1e5, .doc = "power limit"),
    QTY(launch_s, "launch", MAQ_DIM_TIME, .min = 0, .max = 1, .doc = "time of the host to launch one kernel"),
    MAQ_FIELD_NODE(struct device_reader, domain, "domain",
                   .doc = "scale-up link: devices, bandwidth, latency, multicast"),
    QTY(host_bps, "host", MAQ_DIM_RATE, .min = 1e6, .max = 1e15, .doc = "link to the host, per direction"),
    QTY(pcie_bps, "pcie", MAQ_DIM_RATE, .min = 1e6, .max = 1e15,
        .doc = "its own PCIe link, where network ports hang on that; as `host`"),
    I32(host_devices, "host_devices", .min = 1, .max = MAQ_MAX_PER_NODE,
        .doc = "devices behind one link to the host, a PCIe switch's; 1"),
    QTY(host_mem_bps, "host_memory_bandwidth", MAQ_DIM_RATE, .min = 1e9, .max = 1e15,
        .doc = "peak of the memory of a usual node's host; by its core"),
    MAQ_FIELD_ENUM(struct device_reader, d.host_cpu, "host_cpu", maq__host_cpu_names,
                   .doc = "core of the CPU that it is usually sold with"),
    QTY(host_clock_hz, "host_clock", MAQ_DIM_FREQ, .min = MAQ_MIN_CLOCK_HZ, .max = MAQ_MAX_CLOCK_HZ,
        .doc = "clock of its busy cores"),
    QTY(usd_per_hour, "price", MAQ_DIM_MONEY, .min = 0, .max = 1e6, .doc = "rent of one device"),
    I32(devices_per_node, "devices_per_node", .min = 1, .max = MAQ_MAX_PER_NODE, .doc = "usual devices in a node"),
    MAQ_FIELD_STR(struct device_reader, fabric, "fabric", .doc = "network it is usually sold with"),
    MAQ_FIELD_DOUBLE(struct device_reader, d.nics_per_device, "nics_per_device", .min = 0.01, .max = 64,
                     .doc = "ports of that network; as many as the fabric usually has"),
    MAQ_FIELD_END};

static const struct maq_field domain_fields[] = {
    MAQ_FIELD_I32(struct maq_device, domain_devices, "devices", .min = 1, .max = MAQ_MAX_DOMAIN,
                  .doc = "devices in one scale-up domain"),
    MAQ_FIELD_QTY(struct maq_device, domain_bps, "bandwidth", MAQ_DIM_RATE, .min = 1e6, .max = 1e15,
                  .doc = "per device and direction"),
    MAQ_FIELD_I32(struct maq_device, domain_links, "links", .min = 0, .max = MAQ_MAX_NVLINKS,
                  .doc = "NVLinks of a device, which have that bandwidth together; 0: another link"),
    MAQ_FIELD_QTY(struct maq_device, domain_latency_s, "latency", MAQ_DIM_TIME, .min = 0, .max = 1,
                  .doc = "one message, one way"),
    MAQ_FIELD_BOOL(struct maq_device, domain_multicast, "multicast", .doc = "the switch reduces and multicasts"),
    MAQ_FIELD_DOUBLE(struct maq_device, domain_contention, "contention", .min = 0, .max = MAQ_MAX_CONTENTION,
                     .doc = "PCIe: the rate of each of n devices that send falls with n/2 to this power"),
    MAQ_FIELD_END};

#define RATE(array_, dtype_, key_)                                                                                     \
    MAQ_FIELD_QTY(struct maq_device, array_[dtype_], key_, MAQ_DIM_FLOPS, .min = 0, .max = 1e19, .doc = "dense")
#define RATES(array_)                                                                                                  \
    RATE(array_, MAQ_FP32, "fp32"), RATE(array_, MAQ_TF32, "tf32"), RATE(array_, MAQ_FP16, "fp16"),                    \
        RATE(array_, MAQ_BF16, "bf16"), RATE(array_, MAQ_FP8, "fp8"), RATE(array_, MAQ_FP6, "fp6"),                    \
        RATE(array_, MAQ_FP4, "fp4"), RATE(array_, MAQ_INT8, "int8"), MAQ_FIELD_END

static const struct maq_field peak_fields[] = {RATES(peak_flops)};
static const struct maq_field sustained_fields[] = {RATES(sustained_flops)};

#define SECTION(what) (what), MAQ_CODE_CLUSTER_FORM, what " of a device must be a map"

/*
 * Two boards of one die, one with `sms` and `power` times what the other one has: what an SM draws grows with the cube of its clock
 * (the law at the head of cost/fitted/fitted.c, without what is drawn at rest), so that
 *
 *   rate = rate' sms (power / sms)^(1/3)
 *
 * Above its peak on a board that is sold with a part of its die's matrix rate, or at a lower clock: that much power would hold.
 *
 * Of boards whose rates are both measured: A100 PCIe from SXM -3 %, GH200 from H100 +4, GB200 from B200 +4, B300 from B200 +2,
 * MI325X from MI300X -6.
 */
static double rate_under(double rate, double sms, double power)
{
    return rate * sms * cbrt(power / sms);
}

/* A base's rates were measured under the base's power: another limit leaves another clock. What is not held back stays so. */
static void limit_power(struct maq_device *d, const struct maq_device *base)
{
    for (int t = 0; t < MAQ_DTYPE_COUNT && base->tdp_w > 0; t++)
        if (d->sustained_flops[t] < d->peak_flops[t])
            d->sustained_flops[t] =
                fmin(rate_under(d->sustained_flops[t], 1, d->tdp_w / base->tdp_w), d->peak_flops[t]);
}

/* A list of hexadecimal numbers of 16 bits, as the lists of devices write them. */
static enum maq_status read_pci_ids(uint32_t out[MAQ_MOST_PCI_IDS], const struct maq_node *list, struct maq_diag *diag)
{
    size_t n = 0;
    bool good = !list || (list->kind == MAQ_NODE_SEQ && list->count <= MAQ_MOST_PCI_IDS);
    for (const struct maq_node *item = good && list ? list->first : NULL; good && item; item = item->next) {
        uint64_t id = 0;
        good = item->kind == MAQ_NODE_SCALAR && item->text.len == 4 && maq_str_hex_to_u64(&id, item->text) && id > 0;
        out[n++] = (uint32_t)id;
    }
    if (good)
        return MAQ_OK;
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_CLUSTER_FORM, list->at, "as `lspci -n` says them: [2330]",
                         "pci_ids of a device is a list of up to %d numbers of four hexadecimal digits",
                         MAQ_MOST_PCI_IDS);
}

static enum maq_status lay(void *value, struct maq_node *map, struct maq_arena *arena, struct maq_diag *diag)
{
    struct maq_device *out = value;
    struct device_reader r = {.d = *out};
    enum maq_status status = maq__entry_read(&r, &r.head, device_fields, "device", map, arena, diag);
    status = maq_worse(status, maq__entry_section(&r.d, peak_fields, r.peak, SECTION("peak"), arena, diag));
    status =
        maq_worse(status, maq__entry_section(&r.d, sustained_fields, r.sustained, SECTION("sustained"), arena, diag));
    status = maq_worse(status, maq__entry_section(&r.d, domain_fields, r.domain, SECTION("domain"), arena, diag));
    memset(r.d.pci_ids, 0, sizeof r.d.pci_ids); /* another board than its base */
    status = maq_worse(status, read_pci_ids(r.d.pci_ids, r.pci_ids, diag));
    if (r.d.tdp_w != out->tdp_w && !r.sustained && !r.peak)
        limit_power(&r.d, out);
    status = maq_worse(status, maq_unverified_read(&r.d.unverified, map, NULL, "device", arena, diag));
    MAQ_TRY(status);
    MAQ_TRY(maq__entry_keep_head(&r.d.name, &r.d.title, &r.d.source, &r.head, arena, diag));
    MAQ_TRY(maq__entry_keep(&r.d.fabric, r.fabric, arena, diag));
    MAQ_TRY(maq__entry_keep(&r.d.sustained_from, r.sustained_from, arena, diag));
    *out = r.d;
    return MAQ_OK;
}

static const struct maq__entry_kind device_kind = {
    .section = "devices", .noun = "device", .unknown_code = MAQ_CODE_UNKNOWN_DEVICE, .lay = lay};

/* What nothing can be computed without. */
static enum maq_status check_complete(const struct maq_device *d, struct maq_span at, struct maq_diag *diag)
{
    const struct {
        bool missing;
        const char *key;
    } needs[] = {
        {!(d->mem_bytes > 0), "memory"},    {!(d->mem_bps > 0), "memory_bandwidth"},
        {!(d->vector_flops > 0), "vector"}, {d->sms <= 0, "sms"},
        {!(d->clock_hz > 0), "clock"},      {!(d->tdp_w > 0), "power"},
        {!(d->host_bps > 0), "host"},       {!(d->launch_s > 0), "launch"},
    };
    bool any_peak = false;
    for (int t = 0; t < MAQ_DTYPE_COUNT; t++)
        any_peak |= d->peak_flops[t] > 0;
    struct maq_buf list;
    maq_buf_init(&list, 256);
    if (!any_peak)
        maq_buf_adds(&list, "peak");
    for (size_t i = 0; i < MAQ_COUNT(needs); i++)
        if (needs[i].missing)
            maq_buf_addf(&list, "%s%s", list.len > 0 ? ", " : "", needs[i].key);
    enum maq_status status = MAQ_OK;
    if (list.failed)
        status = maq_no_memory(diag, NULL);
    else if (list.len > 0)
        status = maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_DEVICE_LACKS, at,
                               "give them, or start from a catalogue entry with `base: NAME`", "device '%s' lacks: %s",
                               d->name, list.ptr);
    maq_buf_fini(&list);
    return status;
}

static enum maq_status check_consistent(const struct maq_device *d, struct maq_span at, struct maq_diag *diag)
{
    enum maq_status status = MAQ_OK;
    for (int t = 0; t < MAQ_DTYPE_COUNT; t++) {
        if (d->sustained_flops[t] <= d->peak_flops[t])
            continue;
        char sustained[32], peak[32];
        maq_format_flops(sustained, d->sustained_flops[t]);
        maq_format_flops(peak, d->peak_flops[t]);
        status = maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_DEVICE_CONTRADICTS, at,
                               "a changed peak needs a changed `sustained` (0 FLOP/s = not known)",
                               "device '%s': sustained %s of %s exceeds its peak of %s", d->name,
                               maq_dtype_name((enum maq_dtype)t), sustained, peak);
    }
    return status;
}

/* What has a neutral default. */
static void complete(struct maq_device *d)
{
    if (!d->name)
        d->name = "device";
    if (!d->title)
        d->title = d->name;
    if (!d->source)
        d->source = "";
    if (d->domain_devices == 0)
        d->domain_devices = 1;
    if (d->domain_bps <= 0)
        d->domain_bps = d->host_bps;
    if (d->devices_per_node == 0)
        d->devices_per_node = 8;
    maq__host_cpu_complete(d);
}

static enum maq_status check(struct maq_device *d, struct maq_span at, struct maq_diag *diag)
{
    complete(d);
    enum maq_status status = check_complete(d, at, diag);
    return maq_worse(status, check_consistent(d, at, diag));
}

/* As the catalogue has it. */
static enum maq_status load_measured(struct maq_device *out, struct maq_str name, struct maq_span at,
                                     struct maq_arena *arena, struct maq_diag *diag)
{
    struct maq_device d = {.arch = MAQ_ARCH_OTHER, .domain_contention = -1.0};
    MAQ_TRY(maq__entry_by_name((struct maq__entry){&device_kind, &d, &d.name}, name, at, arena, diag));
    MAQ_TRY(check(&d, at, diag));
    *out = d;
    return MAQ_OK;
}

/* Rates that were not measured, and of which a measurement says only that power does not hold them back, are those of another board of the die. */
static enum maq_status take_sustained(struct maq_device *d, struct maq_span at, struct maq_arena *arena,
                                      struct maq_diag *diag)
{
    struct maq_device like;
    if (!d->sustained_from || !d->sustained_from[0])
        return MAQ_OK;
    MAQ_TRY(load_measured(&like, maq_str_of(d->sustained_from), at, arena, diag));
    double sms = (double)d->sms / (double)like.sms, power = d->tdp_w / like.tdp_w;
    bool taken = false;
    for (int t = 0; t < MAQ_DTYPE_COUNT; t++) {
        double own = d->sustained_flops[t];
        if (!(d->peak_flops[t] > 0) || (own > 0 && own < d->peak_flops[t]))
            continue;
        d->sustained_flops[t] = fmax(own, rate_under(like.sustained_flops[t], sms, power));
        taken |= d->sustained_flops[t] > own;
    }
    d->sustained_from = taken ? d->sustained_from : NULL;
    return MAQ_OK;
}

enum maq_status maq_device_load(struct maq_device *out, struct maq_node *node, struct maq_arena *arena,
                                struct maq_diag *diag)
{
    struct maq_device d = {.arch = MAQ_ARCH_OTHER, .domain_contention = -1.0};
    MAQ_TRY(maq__entry_load((struct maq__entry){&device_kind, &d, &d.name}, node, arena, diag));
    MAQ_TRY(check(&d, node->at, diag));
    const struct maq_node *from = node->kind == MAQ_NODE_MAP ? maq_node_peek(node, "sustained_from") : NULL;
    MAQ_TRY(take_sustained(&d, from ? from->at : node->at, arena, diag));
    *out = d;
    return MAQ_OK;
}

enum maq_status maq__device_by_name(struct maq_device *out, struct maq_str name, struct maq_span at,
                                    struct maq_arena *arena, struct maq_diag *diag)
{
    struct maq_device d;
    MAQ_TRY(load_measured(&d, name, at, arena, diag));
    MAQ_TRY(take_sustained(&d, at, arena, diag));
    *out = d;
    return MAQ_OK;
}

enum maq_status maq__device_by_pci_id(struct maq_device *out, uint32_t id, struct maq_span at, struct maq_arena *arena,
                                      struct maq_diag *diag)
{
    const struct maq_catalogue_entry *entry;
    for (size_t i = 0; (entry = maq_catalogue_at("devices", i)) != NULL; i++) {
        struct maq_device d;
        MAQ_TRY(maq__device_by_name(&d, maq_str_of(entry->name), at, arena, diag));
        for (int k = 0; id > 0 && k < MAQ_MOST_PCI_IDS; k++)
            if (d.pci_ids[k] == id) {
                *out = d;
                return MAQ_OK;
            }
    }
    *out = (struct maq_device){0};
    return MAQ_OK;
}
