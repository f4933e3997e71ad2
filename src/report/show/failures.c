/* SPDX-License-Identifier: Apache-2.0 */
/* failures.c - failures of published fleets: the list, and one of them with its causes, times and source. */
#include <math.h>

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "maquette/failures.h"
#include "report/show/show.h"
#include "spec/catalogue.h"

#define LABEL 14
#define THOUSAND_NODE_DAYS (8 * 86400 * 1000.0)

static void json_delay(struct maq_json map, const char *key, struct maq_delay d)
{
    if (d.median_s < 0) {
        maq_json_null(map, key);
        return;
    }
    struct maq_json delay = maq_json_map(map, key);
    maq_json_real(delay, "median_s", d.median_s);
    maq_json_real(delay, "mean_s", d.mean_s);
}

static void json_failures(struct maq_json map, const struct maq_failures *f)
{
    maq_json_text(map, "name", f->name);
    maq_json_text(map, "title", f->title);
    MAQ_JSON_REALS(map, {"per_1000_node_days", f->rate * THOUSAND_NODE_DAYS}, {"per_device_s", f->rate},
                   {"spread", f->spread}, {"shape", f->shape}, {"age_s", f->age_s},
                   {"together_share", f->together_share}, {"together_nodes", f->together_nodes});
    json_delay(map, "detection", f->detection);
    json_delay(map, "requeue", f->requeue);
    json_delay(map, "restart", f->restart);
    json_delay(map, "repair", f->repair);
    struct maq_json causes = maq_json_list(map, "causes");
    for (uint32_t i = 0; i < f->n_causes; i++) {
        struct maq_json cause = maq_json_item(causes);
        maq_json_text(cause, "name", f->causes[i].name);
        maq_json_real(cause, "share", f->causes[i].share);
        maq_json_bool(cause, "loses_node", f->causes[i].loses_node);
        maq_json_text(cause, "takes", maq_failure_reach_name(f->causes[i].takes));
        if (f->causes[i].loses_node)
            json_delay(cause, "repair", f->causes[i].own_repair ? f->causes[i].repair : f->repair);
    }
    maq_json_text(map, "source", f->source);
}

enum maq_status maq_show_failures(struct maq_show *s)
{
    static const struct maq_table_column columns[] = {{"failures", false, false},
                                                      {"per 1,000 node-days", true, false},
                                                      {"causes", true, false},
                                                      {"title", false, true}};
    struct maq_table t;
    enum maq_status status = MAQ_OK;
    const struct maq_catalogue_entry *e;
    struct maq_json list = s->json ? maq_json_list(*s->json, "failures") : (struct maq_json){0};
    maq_table_init(&t, columns, MAQ_COUNT(columns));
    t.wraps = true;
    for (size_t i = 0; status == MAQ_OK && (e = maq_catalogue_at("variability/failures", i)) != NULL; i++) {
        struct maq_loaded_failures *loaded = NULL;
        status = maq_failures_load(&loaded, e->name, s->diag);
        if (status != MAQ_OK)
            break;
        const struct maq_failures *f = maq_failures_get(loaded);
        if (s->json) {
            json_failures(maq_json_item(list), f);
        } else {
            maq_table_row(&t, MAQ_INK_PLAIN);
            maq_table_cell(&t, "%s", f->name);
            maq_table_cell(&t, "%.2f", f->rate * THOUSAND_NODE_DAYS);
            maq_table_cell(&t, "%u", f->n_causes);
            maq_table_cell(&t, "%s", f->title);
        }
        maq_failures_free(loaded);
    }
    if (s->page)
        maq_table_print(s->page, &t, 0);
    maq_table_fini(&t);
    return status;
}

static void put_delay(struct maq_page *page, const char *label, struct maq_delay d)
{
    char text[128], median[32], mean[32];
    if (d.median_s < 0)
        maq__snprintf(text, sizeof text, "by the number of devices: %s on 1,024, %s on 16,384",
                      maq_format_time(median, maq_startup_s(1024)), maq_format_time(mean, maq_startup_s(16384)));
    else if (d.mean_s > d.median_s)
        maq__snprintf(text, sizeof text, "median %s, mean %s (lognormal)", maq_format_time(median, d.median_s),
                      maq_format_time(mean, d.mean_s));
    else
        maq__snprintf(text, sizeof text, "%s", maq_format_time(median, d.median_s));
    maq_page_field(page, LABEL, label, text);
}

static void put_causes(struct maq_page *page, const struct maq_failures *f)
{
    static const struct maq_table_column columns[] = {{"cause", false, false},
                                                      {"share", true, false},
                                                      {"takes", false, false},
                                                      {"node", false, false},
                                                      {"back after, mean", true, false}};
    struct maq_table t;
    char time[32];
    maq_table_init(&t, columns, MAQ_COUNT(columns));
    t.wraps = true;
    for (uint32_t i = 0; i < f->n_causes; i++) {
        maq_table_row(&t, MAQ_INK_PLAIN);
        maq_table_cell(&t, "%s", f->causes[i].name);
        maq_table_cell(&t, "%.1f %%", 100 * f->causes[i].share);
        maq_table_cell(&t, "%s", maq_failure_reach_name(f->causes[i].takes));
        maq_table_cell(&t, "%s", f->causes[i].loses_node ? "to repair" : "starts again");
        maq_table_cell(
            &t, "%s",
            !f->causes[i].loses_node
                ? "-"
                : maq_format_time(time, f->causes[i].own_repair ? f->causes[i].repair.mean_s : f->repair.mean_s));
    }
    maq_page_putf(page, MAQ_INK_PLAIN, "\n");
    maq_table_print(page, &t, 0);
    maq_table_fini(&t);
}

static void put_failures(struct maq_page *page, const struct maq_failures *f)
{
    char text[160], n[32];
    double node_day = f->rate * f->devices_per_node * 86400;
    maq_page_putf(page, MAQ_INK_TITLE, "%s", f->name);
    maq_page_putf(page, MAQ_INK_PLAIN, "  %s\n\n", f->title);
    maq__snprintf(text, sizeof text, "%.3g per node of %u devices and day; a job of 1,024 devices fails every %s",
                  node_day, f->devices_per_node, f->rate > 0 ? maq_format_time(n, 1 / (f->rate * 1024)) : "never");
    maq_page_field(page, LABEL, "rate", text);
    if (f->spread > 0) {
        maq__snprintf(text, sizeof text, "90 %% of fleets within a factor of %.2f", exp(1.645 * f->spread));
        maq_page_field(page, LABEL, "spread", text);
    }
    if (f->together_share > 0) {
        maq__snprintf(text, sizeof text, "%.0f %% of the losses take %.0f nodes", 100 * f->together_share,
                      f->together_nodes);
        maq_page_field(page, LABEL, "together", text);
    }
    put_delay(page, "detection", f->detection);
    put_delay(page, "requeue", f->requeue);
    put_delay(page, "restart", f->restart);
    put_delay(page, "repair", f->repair);
    put_causes(page, f);
    maq_page_putf(page, MAQ_INK_PLAIN, "\n");
    maq_page_field(page, LABEL, "source", f->source);
}

enum maq_status maq_show_failure(struct maq_show *s, const char *name)
{
    struct maq_loaded_failures *loaded = NULL;
    MAQ_TRY(maq_failures_load(&loaded, name, s->diag));
    if (s->json)
        json_failures(*s->json, maq_failures_get(loaded));
    else
        put_failures(s->page, maq_failures_get(loaded));
    maq_failures_free(loaded);
    return MAQ_OK;
}
