/* SPDX-License-Identifier: Apache-2.0 */
/* cluster.c - devices and fabrics: the lists, and one of them with all its figures. */
#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "cluster/cluster_load.h"
#include "report/show/show.h"
#include "report/words.h"
#include "spec/catalogue.h"

#define LABEL 20

static enum maq_status load_device(struct maq_device *out, struct maq_show *s, const char *name)
{
    struct maq_node node = {.kind = MAQ_NODE_SCALAR, .text = maq_str_of(name)};
    return maq_device_load(out, &node, s->arena, s->diag);
}

static enum maq_status load_fabric(struct maq_fabric *out, struct maq_show *s, const char *name)
{
    struct maq_node node = {.kind = MAQ_NODE_SCALAR, .text = maq_str_of(name)};
    return maq_fabric_load(out, &node, s->arena, s->diag);
}

/* Empty for what is not known. */
static void cell_or_blank(struct maq_table *t, double value, const char *text)
{
    maq_table_cell(t, "%s", value > 0 ? text : "");
}

/* --- devices -------------------------------------------------------------------------------------------------- */

static void gpu_row(struct maq_table *t, const struct maq_device *d)
{
    char n[32];
    maq_table_row(t, MAQ_INK_PLAIN);
    maq_table_cell(t, "%s", d->name);
    maq_table_cell(t, "%s", maq_format_bytes(n, d->mem_bytes));
    maq_table_cell(t, "%s", maq_format_rate(n, d->mem_bps));
    static const enum maq_dtype shown[] = {MAQ_FP16, MAQ_FP8, MAQ_FP4};
    for (size_t i = 0; i < MAQ_COUNT(shown); i++) {
        maq__snprintf(n, sizeof n, "%.0f", d->peak_flops[shown[i]] * 1e-12);
        cell_or_blank(t, d->peak_flops[shown[i]], n);
    }
    maq_table_cell(t, "%d", d->domain_devices);
    cell_or_blank(t, d->domain_bps, maq_format_rate(n, d->domain_bps));
    maq_table_cell(t, "%.0f W", d->tdp_w);
}

static void json_device(struct maq_show *s, struct maq_json map, const struct maq_device *d)
{
    maq_json_device(map, d);
    maq_show_unverified(s, map, LABEL, d->unverified);
}

enum maq_status maq_show_gpus(struct maq_show *s)
{
    static const struct maq_table_column columns[] = {
        {"GPU", false, false},      {"memory", true, false},  {"bandwidth", true, false},
        {"fp16 TF/s", true, false}, {"fp8", true, false},     {"fp4", true, false},
        {"scale-up", true, false},  {"per GPU", true, false}, {"power", true, false}};
    struct maq_table t;
    enum maq_status status = MAQ_OK;
    const struct maq_catalogue_entry *e;
    struct maq_json list = s->json ? maq_json_list(*s->json, "gpus") : (struct maq_json){0};
    maq_table_init(&t, columns, MAQ_COUNT(columns));
    t.wraps = true;
    for (size_t i = 0; status == MAQ_OK && (e = maq_catalogue_at("devices", i)) != NULL; i++) {
        struct maq_device d;
        status = load_device(&d, s, e->name);
        if (status == MAQ_OK && s->json)
            json_device(s, maq_json_item(list), &d);
        else if (status == MAQ_OK)
            gpu_row(&t, &d);
    }
    if (s->page)
        maq_table_print(s->page, &t, 0);
    maq_table_fini(&t);
    return status;
}

static void field(struct maq_page *page, const char *label, const char *fmt, ...) MAQ_PRINTF(3, 4);
static void field(struct maq_page *page, const char *label, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    if (maq__vsnprintf(text, sizeof text, fmt, args) < 0)
        text[0] = '\0';
    va_end(args);
    maq_page_field(page, LABEL, label, text);
}

static void text_rates(struct maq_page *page, const struct maq_device *d)
{
    for (int t = 0; t < MAQ_DTYPE_COUNT; t++) {
        char label[32], peak[32], sustained[32], from[96] = "";
        if (d->peak_flops[t] <= 0)
            continue;
        maq__snprintf(label, sizeof label, "matrix %s", maq_dtype_name((enum maq_dtype)t));
        maq_format_flops(peak, d->peak_flops[t]);
        if (d->sustained_from)
            maq__snprintf(from, sizeof from, " (of %.60s, by SMs and power)", d->sustained_from);
        if (d->sustained_flops[t] >= d->peak_flops[t])
            field(page, label, "%s dense peak, in short loops under the power limit too%s", peak, from);
        else if (d->sustained_flops[t] > 0)
            field(page, label, "%s dense peak, %s sustained under the power limit%s", peak,
                  maq_format_flops(sustained, d->sustained_flops[t]), from);
        else
            field(page, label, "%s dense peak", peak);
    }
}

static void text_device(struct maq_show *s, const struct maq_device *d)
{
    struct maq_page *page = s->page;
    char a[32], b[32];
    maq_page_putf(page, MAQ_INK_TITLE, "%s", d->name);
    maq_page_putf(page, MAQ_INK_PLAIN, "  %s\n\n", d->title);
    text_rates(page, d);
    field(page, "vector fp32", "%s", maq_format_flops(a, d->vector_flops));
    field(page, "memory", "%s at %s%s", maq_format_bytes(a, d->mem_bytes), maq_format_rate(b, d->mem_bps),
          d->inline_ecc ? ", a 16th of it ECC" : "");
    if (d->l2_bytes > 0 && d->l2_bps > 0)
        field(page, "L2", "%s at %s", maq_format_bytes(a, d->l2_bytes), maq_format_rate(b, d->l2_bps));
    else if (d->l2_bytes > 0)
        field(page, "L2", "%s", maq_format_bytes(a, d->l2_bytes));
    field(page, "SMs", "%d at %.4g GHz", d->sms, d->clock_hz * 1e-9);
    field(page, "power limit", "%.4g W", d->tdp_w);
    field(page, "kernel launch", "%s of host time", maq_format_time(a, d->launch_s));
    field(page, "scale-up domain", "%d GPUs, %s per GPU and direction, %s per message%s", d->domain_devices,
          maq_format_rate(a, d->domain_bps), maq_format_time(b, d->domain_latency_s),
          d->domain_multicast ? ", switch reduces and multicasts" : "");
    field(page, "host link", d->host_devices > 1 ? "%s per direction, %d GPUs behind one" : "%s per direction",
          maq_format_rate(a, d->host_bps), d->host_devices);
    if (d->pcie_bps > 0)
        field(page, "PCIe", "%s per direction, to its network ports", maq_format_rate(a, d->pcie_bps));
    if (d->domain_contention >= 0)
        field(page, "PCIe", "the rate of each of n GPUs that send falls with n/2 to the power %.4g",
              d->domain_contention);
    field(page, "host CPU", "%s at %.4g GHz", maq_host_cpu_name((enum maq_host_cpu)d->host_cpu),
          d->host_clock_hz * 1e-9);
    if (d->host_mem_bps > 0)
        field(page, "host memory", "%s in a usual node, shared by its GPUs", maq_format_rate(a, d->host_mem_bps));
    field(page, "usual node", "%d GPUs%s%s", d->devices_per_node, d->fabric ? ", network " : "",
          d->fabric ? d->fabric : "");
    if (d->usd_per_hour > 0)
        field(page, "price", "%.4g USD per GPU and hour", d->usd_per_hour);
    field(page, "source", "%s", d->source);
    maq_show_unverified(s, (struct maq_json){0}, LABEL, d->unverified);
}

enum maq_status maq_show_gpu(struct maq_show *s, const char *name)
{
    struct maq_device d;
    MAQ_TRY(load_device(&d, s, name));
    if (s->json)
        json_device(s, *s->json, &d);
    else
        text_device(s, &d);
    return MAQ_OK;
}

/* --- fabrics -------------------------------------------------------------------------------------------------- */

static void json_fabric(struct maq_show *s, struct maq_json map, const struct maq_fabric *f)
{
    maq_json_fabric(map, f);
    maq_show_unverified(s, map, LABEL, f->unverified);
}

enum maq_status maq_show_fabrics(struct maq_show *s)
{
    static const struct maq_table_column columns[] = {
        {"fabric", false, false},   {"port", true, false},     {"latency", true, false}, {"efficiency", true, false},
        {"ports/GPU", true, false}, {"reduces", false, false}, {"title", false, true}};
    struct maq_table t;
    enum maq_status status = MAQ_OK;
    const struct maq_catalogue_entry *e;
    struct maq_json list = s->json ? maq_json_list(*s->json, "fabrics") : (struct maq_json){0};
    maq_table_init(&t, columns, MAQ_COUNT(columns));
    t.wraps = true;
    for (size_t i = 0; status == MAQ_OK && (e = maq_catalogue_at("fabrics", i)) != NULL; i++) {
        struct maq_fabric f;
        char n[32];
        status = load_fabric(&f, s, e->name);
        if (status != MAQ_OK)
            break;
        if (s->json) {
            json_fabric(s, maq_json_item(list), &f);
            continue;
        }
        maq_table_row(&t, MAQ_INK_PLAIN);
        maq_table_cell(&t, "%s", f.name);
        maq_table_cell(&t, "%s", maq_words_bit_rate(n, f.nic_bps));
        maq_table_cell(&t, "%s", maq_format_time(n, f.latency_s));
        maq_table_cell(&t, "%.0f %%", 100 * f.efficiency);
        maq_table_cell(&t, "%.3g", f.nics_per_device);
        maq_table_cell(&t, "%s", f.in_network_reduction ? "yes" : "");
        maq_table_cell(&t, "%s", f.title);
    }
    if (s->page)
        maq_table_print(s->page, &t, 0);
    maq_table_fini(&t);
    return status;
}

enum maq_status maq_show_fabric(struct maq_show *s, const char *name)
{
    struct maq_fabric f;
    char a[32], b[32];
    MAQ_TRY(load_fabric(&f, s, name));
    if (s->json) {
        json_fabric(s, *s->json, &f);
        return MAQ_OK;
    }
    maq_page_putf(s->page, MAQ_INK_TITLE, "%s", f.name);
    maq_page_putf(s->page, MAQ_INK_PLAIN, "  %s\n\n", f.title);
    field(s->page, "port", "%s line rate per direction (%s), %.3g per GPU as usually sold",
          maq_words_bit_rate(a, f.nic_bps), maq_format_rate(b, f.nic_bps), f.nics_per_device);
    field(s->page, "latency", "%s between two nodes, software included", maq_format_time(a, f.latency_s));
    field(s->page, "efficiency", "%.3g %% of the line rate for large messages", 100 * f.efficiency);
    field(s->page, "transport", "%s", maq_transport_name((enum maq_transport)f.transport));
    field(s->page, "reduces", "%s", f.in_network_reduction ? "yes: switches can reduce (SHARP)" : "no");
    field(s->page, "source", "%s", f.source);
    maq_show_unverified(s, (struct maq_json){0}, LABEL, f.unverified);
    return MAQ_OK;
}
