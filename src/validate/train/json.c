/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.c - a result as JSON, schema "maquette.validate.train/1". Numbers are written so that they read back exactly.
 */
#include "maquette/validate.h"

#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/str.h"
#include "base/text.h"

#define MAX_BYTES ((size_t)1 << 30)

static void add_string(struct maq_buf *b, const char *s)
{
    maq_buf_addc(b, '"');
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            maq_buf_addf(b, "\\%c", c);
        else if (c < 0x20 || c == 0x7F)
            maq_buf_addf(b, "\\u%04x", c);
        else
            maq_buf_addc(b, (char)c);
    }
    maq_buf_addc(b, '"');
}

/* Cells may hold bytes that are not UTF-8: those become U+FFFD. */
static void add_text(struct maq_buf *b, const char *s)
{
    struct maq_str rest = maq_str_of(s);
    struct maq_buf clean;
    maq_buf_init(&clean, MAX_BYTES);
    while (rest.len > 0) {
        uint32_t cp;
        size_t n = maq_utf8_next(&cp, rest.ptr, rest.len);
        if (cp == MAQ_UTF8_BAD)
            maq_buf_adds(&clean, "\xEF\xBF\xBD");
        else
            maq_buf_add(&clean, rest.ptr, n);
        rest = (struct maq_str){rest.ptr + n, rest.len - n};
    }
    b->failed |= clean.failed;
    add_string(b, clean.ptr ? clean.ptr : "");
    maq_buf_fini(&clean);
}

static void add_number(struct maq_buf *b, double x)
{
    char buf[32];
    maq_buf_adds(b, isfinite(x) ? maq_format_double(buf, x) : "null");
}

/* Numbers under their keys, one behind the other. */
struct figure {
    const char *key;
    double value;
};

static void add_figures(struct maq_buf *b, const struct figure *f, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        maq_buf_addf(b, "%s\"%s\": ", i > 0 ? ", " : "", f[i].key);
        add_number(b, f[i].value);
    }
}
#define ADD_FIGURES(b, ...)                                                                                            \
    add_figures(b, (const struct figure[]){__VA_ARGS__}, MAQ_COUNT(((const struct figure[]){__VA_ARGS__})))

static void add_named(struct maq_buf *b, const char *key, const char *text)
{
    maq_buf_addf(b, "\"%s\": ", key);
    add_text(b, text);
}

/* Before an object of a list that has one on each line. */
static void begin_item(struct maq_buf *b, uint32_t i, const char *indent)
{
    maq_buf_addf(b, "%s\n%s", i > 0 ? "," : "", indent);
}

/* ---- rows ---- */

static void add_detail(struct maq_buf *b, const struct maq_validate_row *row, enum maq_validate_metric metric)
{
    static const char *const kinds[] = {"allocated", "reserved", "total"};
    maq_buf_adds(b, metric == MAQ_VALIDATE_TIME ? ", \"share\": {" : ", \"bytes\": {");
    int n = metric == MAQ_VALIDATE_TIME ? MAQ_BUCKET_COUNT : MAQ_MEM_COUNT;
    for (int i = 0; i < n; i++) {
        maq_buf_adds(b, i > 0 ? ", " : "");
        if (metric == MAQ_VALIDATE_TIME)
            ADD_FIGURES(b, {maq_bucket_name((enum maq_bucket)i), row->bucket_share[i]});
        else
            ADD_FIGURES(b, {maq_mem_name((enum maq_mem_kind)i), row->mem_bytes[i]});
    }
    maq_buf_adds(b, "}");
    if (metric == MAQ_VALIDATE_MEMORY)
        maq_buf_addf(b, ", \"kind\": \"%s\"", kinds[row->mem_kind]);
    maq_buf_adds(b, ", \"assumed\": [");
    for (uint32_t i = 0; i < row->n_assumed; i++) {
        maq_buf_adds(b, i > 0 ? ", " : "");
        add_text(b, row->assumed[i]);
    }
    maq_buf_adds(b, "], \"job\": ");
    add_text(b, row->job);
}

/* Interval, and what that of the time was computed from. */
static void add_interval(struct maq_buf *b, const struct maq_validate_row *row, enum maq_validate_metric metric)
{
    maq_buf_adds(b, ", \"interval_80\": [");
    add_number(b, row->low[metric]);
    maq_buf_adds(b, ", ");
    add_number(b, row->high[metric]);
    maq_buf_adds(b, "]");
    if (metric != MAQ_VALIDATE_TIME)
        return;
    maq_buf_adds(b, ", \"regime\": {");
    for (int k = 0; k < MAQ_TRAIN_REGIME_COUNT; k++) {
        maq_buf_adds(b, k > 0 ? ", " : "");
        ADD_FIGURES(b, {maq_train_regime_name((enum maq_train_regime)k), row->regime[k]});
    }
    maq_buf_adds(b, "}");
}

static void add_row(struct maq_buf *b, const struct maq_validate_row *row, enum maq_validate_metric metric)
{
    const struct maq_validate_point *p = &row->points[metric];
    maq_buf_adds(b, "    {");
    add_named(b, "id", row->id);
    maq_buf_adds(b, ", ");
    add_named(b, "source", row->source);
    maq_buf_addf(b, ", \"line\": %u, \"metric\": \"%s\", ", row->line, maq_validate_metric_name(metric));
    add_named(b, "completeness", row->completeness);
    if (p->skip != MAQ_VALIDATE_SKIP_NONE) {
        maq_buf_addf(b, ", \"skipped\": \"%s\"", maq_validate_skip_text(p->skip));
        if (row->why[0]) {
            maq_buf_adds(b, ", ");
            add_named(b, "why", row->why);
        }
    } else {
        maq_buf_adds(b, ", ");
        ADD_FIGURES(b, {"measured", p->measured}, {"predicted", p->predicted}, {"error", p->error});
        add_detail(b, row, metric);
        add_interval(b, row, metric);
    }
    maq_buf_adds(b, "}");
}

static void add_rows(struct maq_buf *b, const struct maq_validate_result *r)
{
    bool first = true;
    maq_buf_adds(b, "  \"rows\": [");
    for (uint32_t i = 0; i < r->n_rows; i++)
        for (int m = 0; m < MAQ_VALIDATE_METRIC_COUNT; m++) {
            if (r->rows[i].points[m].skip == MAQ_VALIDATE_SKIP_FILTERED)
                continue;
            maq_buf_adds(b, first ? "\n" : ",\n");
            first = false;
            add_row(b, &r->rows[i], (enum maq_validate_metric)m);
        }
    maq_buf_adds(b, first ? "],\n" : "\n  ],\n");
}

/* ---- statistics ---- */

static void add_stat(struct maq_buf *b, const struct maq_validate_stat *s)
{
    maq_buf_addf(b, "{\"n\": %u, ", s->n);
    if (s->sources > 0)
        maq_buf_addf(b, "\"sources\": %u, ", s->sources);
    ADD_FIGURES(b, {"median", s->median}, {"mean", s->mean}, {"p90", s->p90}, {"bias", s->bias},
                {"median_signed", s->median_signed});
    maq_buf_adds(b, "}");
}

static void add_parts(struct maq_buf *b, const struct maq_validate_stat stats[MAQ_VALIDATE_PART_COUNT])
{
    static const char *const names[MAQ_VALIDATE_PART_COUNT] = {"all", "full", "near"};
    for (int part = 0; part < MAQ_VALIDATE_PART_COUNT; part++) {
        maq_buf_addf(b, "%s\"%s\": ", part > 0 ? ", " : "", names[part]);
        add_stat(b, &stats[part]);
    }
}

static void add_coverage(struct maq_buf *b, const char *key, const struct maq_validate_coverage *c)
{
    maq_buf_addf(b, "\"%s\": {\"n\": %u, \"inside\": %u, \"below\": %u, \"above\": %u}", key,
                 c->below + c->inside + c->above, c->inside, c->below, c->above);
}

static void add_group(struct maq_buf *b, const struct maq_validate_group *g, const char *indent)
{
    maq_buf_addc(b, '{');
    add_named(b, "name", g->name);
    maq_buf_addf(b, ", \"rows\": %u", g->rows);
    for (int m = 0; m < MAQ_VALIDATE_METRIC_COUNT; m++) {
        bool first = true;
        maq_buf_addf(b, ",\n%s\"%s\": {", indent, maq_validate_metric_name((enum maq_validate_metric)m));
        add_parts(b, g->stats[m]);
        maq_buf_addf(b, ",\n%s  \"capped\": {", indent);
        add_parts(b, g->capped[m]);
        maq_buf_adds(b, "}, \"skipped\": {");
        for (int k = 0; k < MAQ_VALIDATE_SKIP_COUNT; k++)
            if (g->skipped[m][k] > 0 && k != MAQ_VALIDATE_SKIP_FILTERED) {
                maq_buf_addf(b, "%s\"%s\": %u", first ? "" : ", ", maq_validate_skip_text((enum maq_validate_skip)k),
                             g->skipped[m][k]);
                first = false;
            }
        maq_buf_adds(b, "}}");
    }
    for (int m = 0; m < MAQ_VALIDATE_METRIC_COUNT; m++) {
        maq_buf_addf(b, ",\n%s\"%s_interval_80\": {", indent, maq_validate_metric_name((enum maq_validate_metric)m));
        add_coverage(b, "all", &g->coverage[m]);
        maq_buf_adds(b, ", ");
        add_coverage(b, "capped", &g->capped_coverage[m]);
        maq_buf_adds(b, "}");
    }
    maq_buf_adds(b, "}");
}

static void add_groups(struct maq_buf *b, const char *key, const struct maq_validate_grouping *g)
{
    maq_buf_addf(b, ",\n    \"%s\": [", key);
    for (uint32_t i = 0; i < g->n; i++) {
        begin_item(b, i, "      ");
        add_group(b, &g->groups[i], "        ");
    }
    maq_buf_adds(b, "]");
}

static void add_totals(struct maq_buf *b, const char *key,
                       const struct maq_validate_stat stats[][MAQ_VALIDATE_PART_COUNT])
{
    maq_buf_addf(b, ",\n    \"%s\": {", key);
    for (int m = 0; m < MAQ_VALIDATE_METRIC_COUNT; m++) {
        maq_buf_addf(b, "%s\"%s\": {", m > 0 ? ", " : "", maq_validate_metric_name((enum maq_validate_metric)m));
        add_parts(b, stats[m]);
        maq_buf_adds(b, "}");
    }
    maq_buf_adds(b, "}");
}

static void add_rival(struct maq_buf *b, const struct maq_validate_rival *v)
{
    maq_buf_addc(b, '{');
    add_named(b, "name", v->name);
    maq_buf_addf(b, ", \"n\": %u, ", v->n);
    ADD_FIGURES(b, {"maquette_mean", v->own_mean}, {"maquette_median", v->own_median}, {"fitted_mean", v->fitted_mean},
                {"fitted_median", v->fitted_median}, {"model_left_out_mean", v->left_out_mean},
                {"model_left_out_median", v->left_out_median}, {"utilisation", v->utilisation});
    maq_buf_adds(b, "}");
}

static void add_rivals(struct maq_buf *b, const char *key, const struct maq_validate_rival *v, uint32_t n)
{
    maq_buf_addf(b, ",\n      \"%s\": [", key);
    for (uint32_t i = 0; i < n; i++) {
        begin_item(b, i, "        ");
        add_rival(b, &v[i]);
    }
    maq_buf_adds(b, "]");
}

static void add_baseline(struct maq_buf *b, const struct maq_validate_baseline *base)
{
    maq_buf_adds(b, ",\n    \"constant_utilisation\": {\n      \"total\": ");
    add_rival(b, &base->total);
    add_rivals(b, "devices", base->devices, base->n_devices);
    add_rivals(b, "sources", base->sources, base->n_sources);
    maq_buf_adds(b, "\n    }");
}

static void add_rank(struct maq_buf *b, const struct maq_validate_ranking *k)
{
    maq_buf_addc(b, '{');
    add_named(b, "name", k->name);
    maq_buf_addf(b, ", \"sweeps\": %u, \"rows\": %u, ", k->sweeps, k->rows);
    ADD_FIGURES(b, {"mean_tau", k->mean_tau}, {"least_tau", k->least_tau}, {"mean_regret", k->mean_regret});
    maq_buf_adds(b, "}");
}

static void add_sweep(struct maq_buf *b, const struct maq_validate_sweep *s)
{
    maq_buf_addc(b, '{');
    add_named(b, "source", s->source);
    maq_buf_adds(b, ", ");
    add_named(b, "model", s->model);
    maq_buf_adds(b, ", ");
    add_named(b, "device", s->device);
    maq_buf_addf(b, ", \"devices\": %u, \"rows\": %u, ", s->devices, s->rows);
    ADD_FIGURES(b, {"tau", s->tau}, {"regret", s->regret});
    maq_buf_adds(b, "}");
}

static void add_ranking(struct maq_buf *b, const struct maq_validate_result *r)
{
    maq_buf_adds(b, ",\n    \"ranking\": {\n      \"total\": ");
    add_rank(b, &r->ranking);
    maq_buf_adds(b, ",\n      \"sources\": [");
    for (uint32_t i = 0; i < r->n_rankings; i++) {
        begin_item(b, i, "        ");
        add_rank(b, &r->rankings[i]);
    }
    maq_buf_adds(b, "],\n      \"sweeps\": [");
    for (uint32_t i = 0; i < r->n_sweeps; i++) {
        begin_item(b, i, "        ");
        add_sweep(b, &r->sweeps[i]);
    }
    maq_buf_adds(b, "]\n    }");
}

char *maq_validate_json(const struct maq_validate_result *r)
{
    struct maq_buf b;
    maq_buf_init(&b, MAX_BYTES);
    maq_buf_adds(&b, "{\n  \"schema\": \"maquette.validate.train/1\",\n  \"table\": ");
    add_text(&b, r->table);
    maq_buf_adds(&b, ",\n");
    add_rows(&b, r);
    maq_buf_adds(&b, "  \"summary\": {\n    \"total\": ");
    add_group(&b, &r->total, "      ");
    add_totals(&b, "each_source_weighted_equally", r->weighted);
    add_totals(&b, "capped_at_40_rows_per_source", r->total.capped);
    for (int by = 0; by < MAQ_VALIDATE_BY_COUNT; by++)
        add_groups(&b, maq_validate_by_key((enum maq_validate_by)by), &r->by[by]);
    add_baseline(&b, &r->baseline);
    add_ranking(&b, r);
    maq_buf_adds(&b, "\n  }\n}\n");
    return maq_buf_take(&b);
}
