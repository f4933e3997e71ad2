/* SPDX-License-Identifier: Apache-2.0 */
/* plan_json.c - the best deployment as a document: every candidate with its verdict, the fleet, the front. */
#include "base/check.h"
#include "base/text.h"
#include "report/json_util.h"
#include "report/serve/plan_parts.h"
#include "report/serve/plan_words.h"

static void add_axes(struct maq_json map, const struct maq_serve_candidate *c)
{
    MAQ_JSON_INTS(map, {"tp", c->at[MAQ_SERVE_AXIS_TP]}, {"pp", c->at[MAQ_SERVE_AXIS_PP]});
    if (!c->job)
        return;
    MAQ_JSON_INTS(map, {"dp", c->options.dp}, {"ep", c->options.ep});
    if (c->options.afd.ffn_ranks > 0)
        MAQ_JSON_INTS(map, {"afd_ffn_ranks", c->options.afd.ffn_ranks});
    if (c->options.afd.micro_batches > 0)
        MAQ_JSON_INTS(map, {"afd_micro_batches", c->options.afd.micro_batches});
    maq_json_text(map, "device", c->job->cluster.groups[0].device.name);
    maq_json_text(map, "engine", maq_engine_name(c->options.engine));
    maq_json_text(map, "weights", maq_weights_name(c->options.weights));
    maq_json_text(map, "expert_weights", maq_weights_name(c->options.expert_weights));
    maq_json_text(map, "kv_cache_dtype", c->options.kv_fp8 ? "fp8" : "auto");
    if (c->options.max_num_seqs > 0)
        MAQ_JSON_INTS(map, {"max_num_seqs", c->options.max_num_seqs});
    if (c->options.max_num_batched_tokens > 0)
        MAQ_JSON_INTS(map, {"max_num_batched_tokens", c->options.max_num_batched_tokens});
}

static void add_missed(struct maq_json map, const struct maq_serve_candidate *c)
{
    struct maq_json missed = maq_json_map(map, "missed_at");
    maq_json_real(missed, "requests_per_s", c->missed_rate);
    MAQ_JSON_INTS(missed, {"replicas", c->missed_replicas});
    maq_json_bool(missed, "overloaded", c->missed_overloaded);
    for (uint32_t i = 0; i < c->missed.slo.n; i++) {
        char key[40];
        maq__snprintf(key, sizeof key, "%s_%s_s", maq_slo_metric_name(c->missed.slo.at[i].metric),
                      maq_slo_statistic_name(c->missed.slo.at[i].statistic));
        maq_json_real(missed, key, c->missed.value_s[i]);
    }
}

static void add_candidate(struct maq_json list, const struct maq_serve_candidate *c)
{
    struct maq_json map = maq_json_item(list);
    add_axes(map, c);
    MAQ_JSON_INTS(map, {"group", c->group}, {"gpus", c->gpus});
    maq_json_text(map, "verdict", maq_serve_verdict_name(c->verdict));
    if (c->why)
        maq_json_text(map, "why", c->why);
    if (c->needed_bytes > 0)
        MAQ_JSON_REALS(map, {"needed_bytes", c->needed_bytes}, {"device_bytes", c->device_bytes});
    if (c->most_per_s > 0)
        MAQ_JSON_REALS(map, {"first_s", c->first_s}, {"token_s", c->token_s}, {"most_per_s", c->most_per_s},
                       {"likely_per_s", c->likely_per_s});
    if (c->rate > 0) {
        MAQ_JSON_INTS(map, {"replicas", c->replicas});
        if (c->with_spares != c->replicas)
            MAQ_JSON_INTS(map, {"with_spares", c->with_spares});
        MAQ_JSON_REALS(map, {"requests_per_s", c->rate}, {"ttft_mean_s", c->ttft_s}, {"tpot_mean_s", c->tpot_s},
                       {"slack", c->slack});
    }
    if (c->verdict == MAQ_SERVE_VERDICT_MISSED)
        add_missed(map, c);
}

static void add_fleet(struct maq_json root, const struct maq_report_serve_plan *p)
{
    const struct maq_serve_search_result *r = p->search;
    struct maq_json best = maq_json_map(root, "best"), list = maq_json_list(best, "fleet");
    for (uint32_t i = 0; i < r->n_fleet; i++) {
        struct maq_json item = maq_json_item(list);
        MAQ_JSON_INTS(item, {"replicas", r->fleet[i].replicas}, {"candidate", r->fleet[i].candidate});
        maq_json_text(item, "role", maq_role_name(r->fleet[i].role));
        add_axes(item, &r->candidates[r->fleet[i].candidate]);
    }
    MAQ_JSON_INTS(best, {"gpus", r->gpus});
    MAQ_JSON_REALS(best, {"requests_per_s", r->rate}, {"output_tokens_per_s", p->best->output_tokens_per_s},
                   {"ttft_mean_s", p->best->ttft_s.mean}, {"ttft_p95_s", p->best->ttft_s.p95},
                   {"tpot_mean_s", p->best->tpot_s.mean}, {"tpot_p95_s", p->best->tpot_s.p95});
    if (r->usd_per_hour > 0)
        maq_json_real(best, "usd_per_hour", r->usd_per_hour);
}

static void add_nearest(struct maq_json root, const struct maq_serve_nearest *m)
{
    if (m->value_s <= 0) {
        maq_json_null(root, "nearest");
        return;
    }
    struct maq_json map = maq_json_map(root, "nearest");
    MAQ_JSON_INTS(map, {"candidate", m->candidate});
    maq_json_text(map, "metric", maq_slo_metric_name(m->bound.metric));
    MAQ_JSON_REALS(map, {"limit_s", m->bound.limit.most_s}, {"value_s", m->value_s}, {"low_s", m->low_s},
                   {"high_s", m->high_s});
    maq_json_bool(map, "within_interval", m->low_s <= m->bound.limit.most_s);
}

enum maq_status maq_report_serve_plan_json(char **out, const struct maq_report_serve_plan *p,
                                           const struct maq_report_opts *opts, struct maq_diag *diag)
{
    const struct maq_serve_search_result *r = p->search;
    struct maq_json_document d;
    (void)opts;
    maq_json_begin(&d, "maquette.serve.plan/1");
    struct maq_buf slo;
    maq_buf_init(&slo, 1 << 14);
    maq_words_slo(&slo, p->opts->slo);
    maq_json_text(d.root, "model", maq_job_get(p->open)->model.name);
    maq_json_text(d.root, "cluster", maq_job_get(p->open)->cluster.name);
    maq_json_text(d.root, "slo", slo.len > 0 ? slo.ptr : NULL);
    d.failed |= slo.failed;
    maq_buf_fini(&slo);
    maq_json_positive(d.root, "asked_requests_per_s", p->opts->rate);
    MAQ_JSON_INTS(d.root, {"requests", r->n_requests}, {"runs", r->runs}, {"pools", r->pools},
                  {"pools_tried", r->pools_tried});
    maq_json_bool(d.root, "complete", r->complete);
    maq_json_bool(d.root, "carries", r->carries);
    if (p->best)
        add_fleet(d.root, p);
    else
        maq_json_null(d.root, "best");
    add_nearest(d.root, &r->nearest);
    if (p->failures)
        maq_serve_failures_json(d.root, p);
    struct maq_json counts = maq_json_map(d.root, "counts");
    for (int v = 0; v < MAQ_SERVE_VERDICT_COUNT; v++)
        maq_json_int(counts, maq_serve_verdict_name((enum maq_serve_verdict)v), r->counts[v]);
    struct maq_json front = maq_json_list(d.root, "front"), list = maq_json_list(d.root, "candidates");
    for (uint32_t i = 0; i < r->n_front; i++) {
        struct maq_json item = maq_json_item(front);
        MAQ_JSON_INTS(item, {"candidate", r->front[i].candidate}, {"concurrency", r->front[i].concurrency});
        MAQ_JSON_REALS(item, {"tokens_per_s_per_user", r->front[i].tokens_per_s_per_user},
                       {"tokens_per_s_per_gpu", r->front[i].tokens_per_s_per_gpu}, {"ttft_mean_s", r->front[i].ttft_s});
    }
    for (uint32_t i = 0; i < r->n; i++)
        add_candidate(list, &r->candidates[i]);
    return maq_json_finish(out, &d, diag);
}
