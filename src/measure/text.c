/* SPDX-License-Identifier: Apache-2.0 */
/* text.c - a plan of measurements and its outcome, as text for people and as JSON for programs. */
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "cost/measured/op_key.h"
#include "graph/items.h"
#include "measure/parts.h"
#include "measure/plan.h"
#include "report/page.h"
#include "report/words.h"

const char *maq_profile_item_words(char buf[96], const struct maq_profile_item *it)
{
    struct maq_item item = {.is_coll = it->c.is_coll, .op = it->c.op, .coll = it->c.coll};
    return maq_item_describe(buf, &item);
}

const char *maq_profile_row_words(char buf[96], const struct maq_kernel_row *row)
{
    struct maq_item item = {.is_coll = row->is_coll, .op = row->op, .coll = row->coll};
    return maq_item_describe(buf, &item);
}

/* --- text ------------------------------------------------------------------------------------------------------ */

static void put_head(struct maq_page *page, const struct maq_profile *p)
{
    char time[32];
    const char *device = p->cluster.groups[p->group].device.name;
    uint32_t planned = p->counts[MAQ_PROFILE_PLANNED], measured = p->counts[MAQ_PROFILE_MEASURED];
    maq_page_putf(page, MAQ_INK_TITLE, "%u operators and collectives for %s%s%s%s\n", p->n, device, p->gpu ? " (" : "",
                  p->gpu ? p->gpu : "", p->gpu ? ")" : "");
    if (!p->gpu)
        maq_page_putf(page, MAQ_INK_PLAIN, "%u to be measured in about %s", planned,
                      maq_format_time(time, p->estimate_s));
    else
        maq_page_putf(page, MAQ_INK_PLAIN, "%u measured", measured);
    maq_page_putf(page, MAQ_INK_PLAIN, "; %u in the file already, %u cannot be measured here",
                  p->counts[MAQ_PROFILE_HELD], p->counts[MAQ_PROFILE_SKIPPED] + p->counts[MAQ_PROFILE_REFUSED]);
    if (p->counts[MAQ_PROFILE_LEFT] > 0)
        maq_page_putf(page, MAQ_INK_BAD, ", %u left for another time", p->counts[MAQ_PROFILE_LEFT]);
    if (p->other_devices > 0)
        maq_page_putf(page, MAQ_INK_PLAIN, "; %u more run on other devices of the cluster", p->other_devices);
    maq_buf_adds(&page->out, "\n\n");
}

/* A time with how far the prediction is off, or why there is none. */
static void put_outcome(struct maq_table *t, const struct maq_profile_item *it)
{
    char time[32];
    if (it->state == MAQ_PROFILE_MEASURED)
        maq_table_cell(t, "%s, predicted %+.0f %%", maq_format_time(time, it->times.median_s),
                       100 * (it->predicted_s / it->times.median_s - 1));
    else
        maq_table_cell(t, "%s",
                       it->state == MAQ_PROFILE_HELD ? "in the file"
                                                     : maq_profile_state_name((enum maq_profile_state)it->state));
}

void maq_profile_items_table(struct maq_table *t, const struct maq_profile *p, uint32_t most)
{
    static const struct maq_table_column columns[] = {
        {"operator", false, true}, {"calls", true, false},     {"predicted", true, false}, {"share", true, false},
        {"memory", true, false},   {"measuring", true, false}, {"outcome", false, false}};
    char text[96], time[32], bytes[32], calls[32];
    maq_table_init(t, columns, MAQ_COUNT(columns));
    for (uint32_t i = 0; i < p->n && i < most; i++) {
        const struct maq_profile_item *it = &p->items[i];
        bool work = it->state == MAQ_PROFILE_PLANNED || it->state == MAQ_PROFILE_MEASURED;
        maq_table_row(t, work ? MAQ_INK_PLAIN : MAQ_INK_FAINT);
        maq_table_cell(t, "%s", maq_profile_item_words(text, it));
        maq_table_cell(t, "%s", it->calls > 0 ? maq_words_integer(calls, (int64_t)(it->calls + 0.5)) : "-");
        maq_table_cell(t, "%s", maq_format_time(time, it->predicted_s));
        maq_table_cell(t, "%.1f %%", 100 * it->share);
        maq_table_cell(t, "%s", work ? maq_format_bytes(bytes, it->bytes) : "");
        maq_table_cell(t, "%s", work ? maq_format_time(time, it->estimate_s) : "");
        put_outcome(t, it);
    }
}

/* Why operators are left out. */
static void put_reasons(struct maq_page *page, const struct maq_profile *p)
{
    char text[96];
    bool any = false;
    for (uint32_t i = 0; i < p->n; i++) {
        const struct maq_profile_item *it = &p->items[i];
        if (!it->why)
            continue;
        if (!any)
            maq_page_putf(page, MAQ_INK_HEAD, "\nNot measured\n");
        maq_page_putf(page, MAQ_INK_PLAIN, "  %s: %s\n", maq_profile_item_words(text, it), it->why);
        any = true;
    }
}

enum maq_status maq_profile_text(char **out, const struct maq_profile *profile, const struct maq_report_opts *opts,
                                 struct maq_diag *diag)
{
    struct maq_page page;
    struct maq_table items;
    maq_page_init(&page, opts);
    put_head(&page, profile);
    maq_profile_items_table(&items, profile, UINT32_MAX);
    maq_table_print(&page, &items, 0);
    maq_table_fini(&items);
    put_reasons(&page, profile);
    return maq_page_finish(out, &page, diag);
}

/* --- JSON ------------------------------------------------------------------------------------------------------ */

void maq_profile_json_key(struct maq_json row, bool is_coll, const struct maq_op *op, const struct maq_coll *coll)
{
    char flags[MAQ_OP_FLAGS_SIZE];
    if (is_coll) {
        maq_json_text(row, "kind", maq_coll_kind_name((enum maq_coll_kind)coll->kind));
        maq_json_count(row, "bytes", coll->bytes);
        maq_json_int(row, "ranks", coll->at.size);
        maq_json_int(row, "per_node", coll->at.per_node);
        return;
    }
    maq_json_text(row, "kind", maq_op_kind_name((enum maq_op_kind)op->kind));
    maq_json_text(row, "dtype", maq_dtype_name((enum maq_dtype)op->dtype));
    maq_json_text(row, "flags", maq_op_flags_text(flags, op));
    maq_json_int(row, "queries", op->queries);
    for (int i = 0; i < 6; i++) {
        char name[8];
        maq__snprintf(name, sizeof name, "d%d", i);
        maq_json_int(row, name, op->d[i]);
    }
}

void maq_profile_json_times(struct maq_json row, const struct maq_kernel_times *times)
{
    maq_json_int(row, "n", times->n);
    MAQ_JSON_REALS(row, {"median_s", times->median_s}, {"min_s", times->min_s}, {"p90_s", times->p90_s},
                   {"stddev_s", times->stddev_s});
}

static void add_item(struct maq_json list, const struct maq_profile_item *it)
{
    struct maq_json row = maq_json_item(list);
    maq_profile_json_key(row, it->c.is_coll, &it->c.op, &it->c.coll);
    maq_json_count(row, "calls", it->calls);
    maq_json_real(row, "predicted_s", it->predicted_s);
    maq_json_real(row, "predicted_share", it->share);
    maq_json_count(row, "memory_bytes", it->bytes);
    maq_json_real(row, "estimate_s", it->estimate_s);
    maq_json_text(row, "state", maq_profile_state_name((enum maq_profile_state)it->state));
    maq_json_text(row, "why", it->why);
    if (it->state == MAQ_PROFILE_MEASURED)
        maq_profile_json_times(maq_json_map(row, "measured"), &it->times);
}

enum maq_status maq_profile_json(char **out, const struct maq_profile *profile, struct maq_diag *diag)
{
    struct maq_json_document document;
    maq_json_begin(&document, "maquette.profile/1");
    struct maq_json d = document.root;
    maq_json_text(d, "device", profile->cluster.groups[profile->group].device.name);
    maq_json_text(d, "gpu", profile->gpu);
    maq_json_text(d, "file", profile->path);
    maq_json_text(d, "mode", maq_kernel_mode_name(profile->opts.sustained ? MAQ_KERNEL_SUSTAINED : MAQ_KERNEL_BURST));
    maq_json_text(d, "cache", profile->opts.warm ? "warm" : "cold");
    maq_json_real(d, "estimate_s", profile->estimate_s);
    maq_json_int(d, "on_other_devices", profile->other_devices);
    struct maq_json counts = maq_json_map(d, "counts");
    for (int s = 0; s < MAQ_PROFILE_STATE_COUNT; s++)
        maq_json_int(counts, maq_profile_state_name((enum maq_profile_state)s), profile->counts[s]);
    struct maq_json list = maq_json_list(d, "items");
    for (uint32_t i = 0; i < profile->n; i++)
        add_item(list, &profile->items[i]);
    return maq_json_finish(out, &document, diag);
}
