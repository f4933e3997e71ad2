/* SPDX-License-Identifier: Apache-2.0 */
/* serve.c - what two reports of a deployment are compared by: latencies, throughput, an iteration, memory. */
#include "maquette/serve.h"
#include "base/check.h"
#include "base/str.h"
#include "base/text.h"
#include "report/diff/diff.h"

static const char *const statistics[] = {"p50", "p90", "p95", "p99"};

/* The mean with its interval as a figure; its quantiles as rows. */
static void add_latency(struct maq_diff_reader *r, struct maq_diff_table *t, const char *key, const char *name)
{
    struct maq_node *of[MAQ_DIFF_SIDES];
    char path[48];
    maq__snprintf(path, sizeof path, "latency.%s", key);
    maq_diff_nodes(of, r->diff, path);
    maq_diff_interval(maq_diff_figure(r, key, name, MAQ_DIFF_SECONDS, -1, maq_diff_member(r, of, "mean")), 0.8,
                      maq_diff_member(r, of, "mean_low"), maq_diff_member(r, of, "mean_high"));
    for (size_t i = 0; i < MAQ_COUNT(statistics); i++) {
        const char *row_key = maq_arena_printf(&r->diff->arena, "%s.%s", key, statistics[i]);
        const char *row_name = maq_arena_printf(&r->diff->arena, "%s %s", name, statistics[i]);
        if (row_key && row_name)
            maq_diff_row(r, t, row_key, row_name, maq_diff_member(r, of, statistics[i]));
        else
            r->status = maq_worse(r->status, MAQ_NO_MEMORY);
    }
}

static struct maq_diff_pair over(struct maq_diff_pair a, struct maq_diff_pair b)
{
    struct maq_diff_pair ratio = {0};
    for (int s = 0; s < MAQ_DIFF_SIDES; s++) {
        ratio.has[s] = a.has[s] && b.has[s] && b.of[s] > 0;
        ratio.of[s] = ratio.has[s] ? a.of[s] / b.of[s] : 0;
    }
    return ratio;
}

/* What was asked of the deployment is not in its settings: how long prompts and answers are, in the mean. */
static void add_throughput(struct maq_diff_reader *r)
{
    static const struct {
        const char *path, *key, *name;
        enum maq_diff_unit unit;
    } figures[] = {
        {"throughput.requests_per_s", "requests_per_s", "requests/s", MAQ_DIFF_PER_S},
        {"throughput.output_tokens_per_s", "output_tokens_per_s", "output tokens/s", MAQ_DIFF_PER_S},
        {"throughput.output_tokens_per_s_per_device", "output_tokens_per_s_per_device", "per GPU", MAQ_DIFF_PER_S},
        {"throughput.output_tokens_per_s_per_user", "output_tokens_per_s_per_user", "per user", MAQ_DIFF_PER_S},
        {"capacity.requests_per_s", "capacity_requests_per_s", "most requests/s", MAQ_DIFF_PER_S},
        {"slo.goodput.requests_per_s", "goodput_requests_per_s", "goodput requests/s", MAQ_DIFF_PER_S}};
    for (size_t i = 0; i < MAQ_COUNT(figures); i++)
        (void)maq_diff_figure(r, figures[i].key, figures[i].name, figures[i].unit, 1,
                              maq_diff_number(r, figures[i].path));
    (void)maq_diff_figure(r, "usd_per_million_output_tokens", "USD for 10^6 output tokens", MAQ_DIFF_USD, -1,
                          maq_diff_number(r, "money.usd_per_million_output_tokens"));
    struct maq_diff_pair rate = maq_diff_number(r, "throughput.requests_per_s");
    (void)maq_diff_figure(r, "requests", "requests", MAQ_DIFF_COUNT, 0, maq_diff_number(r, "throughput.requests"));
    (void)maq_diff_figure(r, "input_tokens_per_request", "prompt tokens a request", MAQ_DIFF_COUNT, 0,
                          over(maq_diff_number(r, "throughput.input_tokens_per_s"), rate));
    (void)maq_diff_figure(r, "output_tokens_per_request", "output tokens a request", MAQ_DIFF_COUNT, 0,
                          over(maq_diff_number(r, "throughput.output_tokens_per_s"), rate));
}

/* The mean iteration: its parts are told of all iterations together. */
static void add_iteration(struct maq_diff_reader *r)
{
    struct maq_node *of[MAQ_DIFF_SIDES];
    struct maq_diff_pair count = maq_diff_number(r, "iterations.count");
    maq_diff_nodes(of, r->diff, "breakdown");
    if (!of[MAQ_DIFF_BEFORE] && !of[MAQ_DIFF_AFTER])
        return;
    struct maq_diff_table *t =
        maq_diff_table(r, "iteration", "Where the time of an iteration goes", MAQ_DIFF_SECONDS, -1);
    maq_diff_members(r, t, of, "_s");
    for (uint32_t i = 0; i < t->n; i++)
        t->rows[i].value = over(t->rows[i].value, count);
    maq_diff_add_up(r, t, "iteration_s", "iteration", maq_diff_sum(t), "");
    (void)maq_diff_figure(r, "iterations", "iterations", MAQ_DIFF_COUNT, 0, count);
    (void)maq_diff_figure(r, "mean_requests", "requests in one", MAQ_DIFF_COUNT, 0,
                          maq_diff_number(r, "iterations.mean_requests"));
    (void)maq_diff_figure(r, "kv_peak", "KV cache in use, at most", MAQ_DIFF_SHARE, 0,
                          maq_diff_number(r, "iterations.kv_peak"));
}

/* One batch alone (--batch). */
static void add_batch(struct maq_diff_reader *r)
{
    static const struct {
        const char *parts, *whole, *key, *title, *name;
    } passes[] = {{"batch.prefill", "batch.prefill_s", "prefill_s", "Where the time of prefill goes", "prefill"},
                  {"batch.decode", "batch.decode_s", "decode_s", "Where the time of decode goes", "decode"}};
    struct maq_node *of[MAQ_DIFF_SIDES];
    maq_diff_nodes(of, r->diff, "batch");
    if (!of[MAQ_DIFF_BEFORE] && !of[MAQ_DIFF_AFTER])
        return;
    (void)maq_diff_figure(r, "token_s", "a token", MAQ_DIFF_SECONDS, -1, maq_diff_number(r, "batch.token_s"));
    for (size_t i = 0; i < MAQ_COUNT(passes); i++) {
        struct maq_diff_pair whole = maq_diff_number(r, passes[i].whole);
        (void)maq_diff_figure(r, passes[i].key, passes[i].name, MAQ_DIFF_SECONDS, -1, whole);
        maq_diff_nodes(of, r->diff, passes[i].parts);
        struct maq_diff_table *t = maq_diff_table(r, passes[i].name, passes[i].title, MAQ_DIFF_SECONDS, -1);
        maq_diff_members(r, t, of, "_s");
        maq_diff_add_up(r, t, passes[i].key, passes[i].name, whole, "in no category");
    }
}

static void add_memory(struct maq_diff_reader *r)
{
    struct maq_diff_table *t = maq_diff_table(r, "memory", "Memory of the fullest GPU", MAQ_DIFF_BYTES, 0);
    for (int k = 0; k < MAQ_SERVE_MEM_COUNT; k++) {
        const char *name = maq_serve_memory_name((enum maq_serve_memory)k);
        const char *path = maq_arena_printf(&r->diff->arena, "memory.%s_bytes", name);
        const char *key = maq_arena_printf(&r->diff->arena, "%s_bytes", name);
        const char *words = maq_diff_words(&r->diff->arena, maq_str_of(name));
        if (path && key && words)
            maq_diff_row(r, t, key, words, maq_diff_number(r, path));
        else
            r->status = maq_worse(r->status, MAQ_NO_MEMORY);
    }
    maq_diff_add_up(r, t, "memory_bytes", "total", maq_diff_sum(t), "");
}

void maq_diff_read_serve(struct maq_diff_reader *r)
{
    r->diff->of = "what predictions can be off by";
    r->diff->is_prediction = true;
    maq_diff_require(r, "deployment");
    maq_diff_require(r, "memory");
    maq_diff_settings(r, "deployment", "deployment");
    for (int s = 0; s < MAQ_DIFF_SIDES; s++) {
        const struct maq_node *fits = maq_diff_node(r->diff, (enum maq_diff_side)s, "memory.fits");
        const struct maq_node *late = maq_diff_node(r->diff, (enum maq_diff_side)s, "throughput.overloaded");
        if (fits && fits->kind == MAQ_NODE_SCALAR && maq_str_is(fits->text, "false"))
            r->diff->verdict[s] = "does not fit in memory";
        else if (late && late->kind == MAQ_NODE_SCALAR && maq_str_is(late->text, "true"))
            r->diff->verdict[s] = "is overloaded: requests come faster than they are served";
    }
    struct maq_node *latency[MAQ_DIFF_SIDES];
    maq_diff_nodes(latency, r->diff, "latency");
    if (latency[MAQ_DIFF_BEFORE] || latency[MAQ_DIFF_AFTER]) {
        struct maq_diff_table *t = maq_diff_table(r, "latency", "Latencies", MAQ_DIFF_SECONDS, -1);
        add_latency(r, t, "ttft_s", "TTFT");
        add_latency(r, t, "tpot_s", "TPOT");
        add_latency(r, t, "itl_s", "ITL");
        add_latency(r, t, "e2el_s", "E2EL");
    }
    add_throughput(r);
    add_iteration(r);
    add_batch(r);
    add_memory(r);
}
