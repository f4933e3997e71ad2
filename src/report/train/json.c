/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - a training step as a document, schema maquette.train/1: docs/json.md. */
#include <string.h>

#include "base/str.h"
#include "base/text.h"
#include "maquette/report.h"
#include "report/job_json.h"
#include "report/money.h"
#include "report/step_json.h"
#include "report/train/assumptions.h"

static void add_offloaded(struct maq_json memory, const char *where, const struct maq_offloaded *o)
{
    if (!(o->weights + o->gradients + o->optimizer > 0))
        return;
    struct maq_json map = maq_json_map(memory, where);
    maq_json_count(map, "weights_bytes", o->weights);
    maq_json_count(map, "gradients_bytes", o->gradients);
    maq_json_count(map, "optimizer_bytes", o->optimizer);
}

static void add_stage(struct maq_json list, const struct maq_stage_result *st, uint32_t number)
{
    struct maq_json stage = maq_json_item(list);
    maq_json_int(stage, "stage", number);
    maq_json_count(stage, "parameters", st->params);
    maq_json_int(stage, "peak_microbatches", st->peak_microbatches);
    struct maq_json memory = maq_json_map(stage, "memory");
    for (int k = 0; k < MAQ_MEM_COUNT; k++) {
        char key[40];
        maq__snprintf(key, sizeof key, "%s_bytes", maq_mem_name((enum maq_mem_kind)k));
        maq_json_count(memory, key, st->bytes[k]);
    }
    maq_json_count(memory, "allocated_bytes", st->allocated_bytes);
    maq_json_count(memory, "reserved_bytes", st->reserved_bytes);
    maq_json_count(memory, "total_bytes", st->total_bytes);
    maq_json_count(memory, "needed_bytes", st->needed_bytes);
    maq_json_count(memory, "capacity_bytes", st->capacity_bytes);
    add_offloaded(memory, "host", &st->host);
    add_offloaded(memory, "nvme", &st->nvme);
    maq_json_real(stage, "busy_s", st->busy_s);
    maq_json_buckets(maq_json_map(stage, "breakdown"), st->bucket_s);
}

static void add_operators(struct maq_json document, const struct maq_train_result *r)
{
    struct maq_json list = maq_json_list(document, "operators");
    for (uint32_t i = 0; i < r->n_ops; i++) {
        const struct maq_train_op *op = &r->ops[i];
        struct maq_json row = maq_json_item(list);
        maq_json_text(row, "operator", op->text);
        maq_json_text(row, "module", op->where);
        maq_json_text(row, "provider", maq_provider_name((enum maq_provider)op->provider));
        maq_json_count(row, "calls", op->count);
        if (!op->collective)
            MAQ_JSON_REALS(row, {"flop_per_call", op->flop}, {"bytes_per_call", op->bytes});
        maq_json_real(row, "time_s", op->seconds);
        maq_json_real(row, "busy_share", op->share);
    }
}

/* Whether it computes: pauses do not, nor do copies to and from the host, which run beside. */
static bool computes(int kind)
{
    return kind != MAQ_OP_GAP && kind != MAQ_OP_HOST_COPY;
}

/* Seconds of what computes by kind of operator, longest first: as long as forward, backward, recompute and optimizer together. */
static void add_kinds(struct maq_json document, const struct maq_train_result *r)
{
    struct maq_json list = maq_json_list(document, "kinds");
    bool told[MAQ_OP_KIND_COUNT] = {false};
    for (;;) {
        int longest = -1;
        for (int k = 0; k < MAQ_OP_KIND_COUNT; k++)
            if (computes(k) && !told[k] && r->kind_s[k] > 0 && (longest < 0 || r->kind_s[k] > r->kind_s[longest]))
                longest = k;
        if (longest < 0)
            return;
        told[longest] = true;
        struct maq_json row = maq_json_item(list);
        maq_json_text(row, "kind", maq_op_kind_name((enum maq_op_kind)longest));
        maq_json_real(row, "time_s", r->kind_s[longest]);
    }
}

static void add_provenance(struct maq_json document, const struct maq_train_result *r)
{
    struct maq_json map = maq_json_map(document, "provenance");
    MAQ_JSON_REALS(map, {"measured_share", r->provider_share[MAQ_PROVIDER_MEASURED]},
                   {"fitted_share", r->provider_share[MAQ_PROVIDER_FITTED]},
                   {"analytical_share", r->provider_share[MAQ_PROVIDER_ANALYTICAL]}, {"relative_error", r->error});
    if (!r->job->measured)
        return;
    struct maq_json file = maq_json_map(map, "measured");
    maq_json_text(file, "file", r->job->measured);
    maq_json_bool(file, "asked", r->measured.asked);
    MAQ_JSON_INTS(file, {"held", r->measured.held}, {"other_devices", r->measured.others}, {"items", r->measured.items},
                  {"hits", r->measured.hits});
}

static void add_assumed(struct maq_json document, const struct maq_train_result *r)
{
    char text[MAQ_ASSUMPTIONS][MAQ_ASSUMPTION_SIZE];
    size_t n = maq_train_assumptions(text, r);
    struct maq_json list = maq_json_list(document, "assumptions");
    for (size_t i = 0; i < n; i++)
        maq_json_word(list, text[i]);
}

static void add_engine(struct maq_json document, const struct maq_report_engine *e)
{
    if (!e)
        return;
    struct maq_json map = maq_json_map(document, "engine");
    maq_json_text(map, "name", e->name);
    maq_json_real(map, "step_time_s", e->step_s);
    maq_json_int(map, "nodes", e->nodes);
    maq_json_int(map, "edges", e->edges);
}

/* `key = value  (origin)` lines as {"key": "origin"}: the values stand in `job`. */
static void add_origins(struct maq_json document, const char *lines)
{
    struct maq_str rest = maq_str_of(lines), line, key;
    if (!lines)
        return;
    struct maq_json map = maq_json_map(document, "origins");
    while (rest.ptr && rest.len > 0) {
        char name[128], origin[32];
        rest = maq_str_split(rest, '\n', &line);
        const char *open = memrchr(line.ptr, '(', line.len);
        maq_str_split(line, '=', &key);
        key = maq_str_trim(key);
        if (!open || key.len >= sizeof name)
            continue;
        maq__snprintf(name, sizeof name, "%.*s", (int)key.len, key.ptr);
        maq__snprintf(origin, sizeof origin, "%.*s", (int)(line.ptr + line.len - open - 2), open + 1);
        maq_json_text(map, name, origin);
    }
}

static void add_headline(struct maq_json d, const struct maq_train_result *r)
{
    maq_json_bool(d, "fits", r->fits);
    MAQ_JSON_REALS(d, {"step_time_s", r->step_s}, {"step_time_low_s", r->step_low_s},
                   {"step_time_high_s", r->step_high_s}, {"memory_low", r->memory_low}, {"memory_high", r->memory_high},
                   {"fit_probability", r->fit_probability}, {"tokens_per_s", r->tokens_per_s},
                   {"tokens_per_s_per_device", r->tokens_per_s_per_device}, {"mfu", r->mfu}, {"hfu", r->hfu},
                   {"model_flop", r->model_flop}, {"hardware_flop", r->hardware_flop},
                   {"model_flop_per_s_per_device", r->model_flops_per_device}, {"peak_flop_per_s", r->peak_flops});
    maq_json_int(d, "critical_stage", r->critical_stage);
    maq_json_real(d, "bubble_fraction", r->bubble_fraction);
    maq_json_int(d, "worst_memory_stage", r->worst_stage);
}

enum maq_status maq_report_train_json(char **out, const struct maq_train_result *result,
                                      const struct maq_report_opts *opts, struct maq_diag *diag)
{
    struct maq_json_document document;
    maq_json_begin(&document, "maquette.train/1");
    struct maq_json d = document.root;
    maq_json_job(maq_json_map(d, "job"), result->job);
    add_headline(d, result);
    maq_json_money(d, maq_money_of_train(result));
    maq_json_text(d, "advice", opts ? opts->advice : NULL);
    add_engine(d, opts ? opts->engine : NULL);
    maq_json_buckets(maq_json_map(d, "breakdown"), result->bucket_s);
    struct maq_json stages = maq_json_list(d, "stages");
    for (uint32_t s = 0; s < result->n_stages; s++)
        add_stage(stages, &result->stages[s], s);
    add_operators(d, result);
    add_kinds(d, result);
    add_provenance(d, result);
    add_assumed(d, result);
    add_origins(d, opts ? opts->explain : NULL);
    return maq_json_finish(out, &document, diag);
}
