/* SPDX-License-Identifier: Apache-2.0 */
/* autoscaling_rule.c - a rule for the number of replicas as it is written: `requests=8,least=2,down_after=10min`. */
#include "maquette/serve_autoscaling.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/str.h"
#include "base/text.h"
#include "serve/codes.h"
#include "spec/field.h"

static const char *const names[] = {
#define NAME(id, name, what) name,
    MAQ_AUTOSCALING_METRIC_LIST(NAME)
#undef NAME
        NULL};

const char *maq_autoscaling_metric_name(enum maq_autoscaling_metric metric)
{
    return (unsigned)metric < MAQ_AUTOSCALING_METRIC_COUNT ? names[metric] : "unknown";
}

/* As it is written: one of the metrics has a value above 0. */
struct written {
    double target[MAQ_AUTOSCALING_METRIC_COUNT];
    int32_t least, first, up_count;
    double every_s, down_after_s, tolerance, up_factor, up_period_s;
};

#define ROW(kind_, member_, key_, ...) kind_(struct written, member_, key_, __VA_ARGS__)
static const struct maq_field fields[] = {
    ROW(MAQ_FIELD_DOUBLE, target[MAQ_AUTOSCALING_REQUESTS], "requests", .min = 1e-3, .max = 1e6,
        .doc = "requests under way, of a replica"),
    ROW(MAQ_FIELD_DOUBLE, target[MAQ_AUTOSCALING_WAITING], "waiting", .min = 1e-3, .max = 1e6,
        .doc = "requests that do not run yet, of a replica"),
    ROW(MAQ_FIELD_DOUBLE, target[MAQ_AUTOSCALING_KV], "kv", .min = 1e-3, .max = 1,
        .doc = "share of the KV cache in use"),
    ROW(MAQ_FIELD_I32, least, "least", .aliases = "min", .def = "1", .min = 1, .max = 1e6,
        .doc = "replicas that are always wanted"),
    ROW(MAQ_FIELD_I32, first, "first", .min = 1, .max = 1e6, .doc = "wanted at the first arrival; as `least`"),
    ROW(MAQ_FIELD_QTY, every_s, "every", MAQ_DIM_TIME, .def = "15s", .min = 0.1, .max = 1e6,
        .doc = "between two looks"),
    ROW(MAQ_FIELD_QTY, down_after_s, "down_after", MAQ_DIM_TIME, .def = "300s", .min = 0, .max = 1e6,
        .doc = "fewer are wanted when fewer were for so long"),
    ROW(MAQ_FIELD_DOUBLE, tolerance, "tolerance", .def = "0.1", .min = 0, .max = 1,
        .doc = "share by which the load may be off its target"),
    ROW(MAQ_FIELD_I32, up_count, "up_count", .def = "4", .min = 0, .max = 1e6,
        .doc = "replicas that may be added in a period, or as many as make"),
    ROW(MAQ_FIELD_DOUBLE, up_factor, "up_factor", .def = "2", .min = 1, .max = 1e6,
        .doc = "times those that there were, whichever is more"),
    ROW(MAQ_FIELD_QTY, up_period_s, "up_period", MAQ_DIM_TIME, .def = "15s", .min = 0.1, .max = 1e6,
        .doc = "the period"),
    MAQ_FIELD_END};

static enum maq_status choose_metric(struct maq_autoscaling_rule *out, const struct written *w, struct maq_diag *diag)
{
    uint32_t n = 0;
    for (int m = 0; m < MAQ_AUTOSCALING_METRIC_COUNT; m++)
        if (w->target[m] > 0) {
            out->metric = (enum maq_autoscaling_metric)m;
            out->target = w->target[m];
            n++;
        }
    if (n == 1)
        return MAQ_OK;
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_AUTOSCALING, (struct maq_span){0},
                         "requests=8, waiting=2 or kv=0.7",
                         n == 0 ? "a rule for the number of replicas says no load that a replica is to have"
                                : "a rule for the number of replicas is about one load, and this one says several");
}

static enum maq_status read(struct maq_autoscaling_rule *out, struct maq_doc *doc, struct maq_arena *arena,
                            struct maq_diag *diag)
{
    struct written w = {.every_s = 0};
    MAQ_TRY(maq_fields_read_map(&w, fields, doc->root, "rule for the number of replicas", arena, diag));
    *out = (struct maq_autoscaling_rule){.least = (uint32_t)w.least,
                                         .first = (uint32_t)w.first,
                                         .every_s = w.every_s,
                                         .down_after_s = w.down_after_s,
                                         .tolerance = w.tolerance,
                                         .up_count = (uint32_t)w.up_count,
                                         .up_factor = w.up_factor,
                                         .up_period_s = w.up_period_s};
    return choose_metric(out, &w, diag);
}

enum maq_status maq_autoscaling_rule_read(struct maq_autoscaling_rule *out, const char *text, const char *from,
                                          struct maq_diag *diag)
{
    struct maq_doc doc;
    struct maq_arena arena;
    char *lines = maq_doc_of_pairs(text, NULL);
    if (!lines)
        return maq_no_memory(diag, "a rule");
    maq_arena_init(&arena, 0);
    enum maq_status status = maq_doc_parse(&doc, from, maq_str_of(lines), MAQ_ORIGIN_FLAG, diag);
    if (status == MAQ_OK)
        status = read(out, &doc, &arena, diag);
    maq_doc_fini(&doc);
    maq_arena_fini(&arena);
    free(lines);
    return status;
}
