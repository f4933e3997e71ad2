/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.c - a training step for a terminal: what was asked, how fast, where the time goes, memory, operators,
 * how sure.
 *
 * The order is the order of questions: the first screen answers them, the rest is for whoever wants to know why.
 */
#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "report/job_text.h"
#include "report/money.h"
#include "report/train/assumptions.h"
#include "report/train/train_words.h"
#include "report/words.h"

#define LABEL MAQ_JOB_LABEL
#define BAR 40      /* cells of a full bar */
#define ROWS_MAX 24 /* rows of the memory table before its middle is left out */

/* --- does it fit --------------------------------------------------------------------------------------------- */

static void put_verdict(struct maq_page *page, const struct maq_train_result *r, const char *advice)
{
    struct maq_buf words;
    maq_buf_init(&words, 1024);
    maq_words_train_fit(&words, r);
    if (words.len > 0)
        maq_page_putf(page, MAQ_INK_BAD, "\n%s\n", words.ptr);
    else if (maq_train_odds_matter(r))
        maq_buf_addc(&page->out, '\n');
    if (!r->fits && advice)
        maq_page_putf(page, MAQ_INK_PLAIN, "%s\n", advice);
    words.len = 0;
    maq_words_odds(&words, r);
    if (words.len > 0)
        maq_page_putf(page, MAQ_INK_PLAIN, "%s\n", words.ptr);
    page->out.failed |= words.failed;
    maq_buf_fini(&words);
}

/* --- headline ------------------------------------------------------------------------------------------------ */

static void put_label(struct maq_page *page, const char *label)
{
    maq_page_putf(page, MAQ_INK_FAINT, "%-*s", LABEL, label);
}

static void put_headline(struct maq_page *page, const struct maq_train_result *r)
{
    char a[32], b[32];
    const struct maq_stage_result *st = &r->stages[r->worst_stage];
    maq_buf_addc(&page->out, '\n');
    put_label(page, "step");
    maq_page_putf(page, MAQ_INK_TITLE, "%s", maq_words_step(a, r->step_s));
    maq_page_putf(page, MAQ_INK_PLAIN, ", 80 %% interval %s to %s\n", maq_format_time(a, r->step_low_s),
                  maq_format_time(b, r->step_high_s));
    put_label(page, "throughput");
    maq_page_putf(page, MAQ_INK_TITLE, "%s tokens/s", maq_words_rate(a, r->tokens_per_s));
    maq_page_putf(page, MAQ_INK_PLAIN, ", %s per GPU\n", maq_words_rate(b, r->tokens_per_s_per_device));
    put_label(page, "utilization");
    maq_page_putf(page, MAQ_INK_TITLE, "MFU %.1f %%", 100 * r->mfu);
    maq_page_putf(page, MAQ_INK_PLAIN, ", HFU %.1f %% (%.4g model TFLOP/s per GPU of %.4g dense %s)\n", 100 * r->hfu,
                  r->model_flops_per_device * 1e-12, r->peak_flops * 1e-12,
                  maq_dtype_name((enum maq_dtype)r->job->math_dtype));
    put_label(page, "memory");
    maq_page_putf(page, r->fits ? MAQ_INK_TITLE : MAQ_INK_BAD, "%s", maq_format_bytes(a, st->total_bytes));
    maq_page_putf(page, MAQ_INK_PLAIN, " of %s on the fullest GPU (%.0f %%)", maq_format_bytes(b, st->capacity_bytes),
                  100 * st->total_bytes / st->capacity_bytes);
    maq_page_putf(page, MAQ_INK_PLAIN, ", 80 %% interval %s to %s\n",
                  maq_format_bytes(a, r->memory_low * st->total_bytes),
                  maq_format_bytes(b, r->memory_high * st->total_bytes));
    put_label(page, "");
    maq_page_putf(page, MAQ_INK_PLAIN, "%s allocated, ", maq_format_bytes(a, st->allocated_bytes));
    maq_page_putf(page, MAQ_INK_PLAIN, "%s reserved, %s in nvidia-smi\n", maq_format_bytes(a, st->reserved_bytes),
                  maq_format_bytes(b, st->total_bytes));
    if (st->total_bytes > st->needed_bytes) {
        put_label(page, "");
        maq_page_putf(page, MAQ_INK_PLAIN, "%s without cached blocks\n", maq_format_bytes(a, st->needed_bytes));
    }
}

static void put_money(struct maq_page *page, const struct maq_train_result *r)
{
    const struct maq_money m = maq_money_of_train(r);
    char hour[48], step[48], tokens[48];
    if (m.per_hour <= 0)
        return;
    put_label(page, "cost");
    maq_page_putf(page, MAQ_INK_TITLE, "%s for 10^12 tokens", maq_words_usd(tokens, m.per_trillion_tokens));
    maq_page_putf(page, MAQ_INK_PLAIN, ", %s a step, %s an hour\n", maq_words_usd(step, m.per_step),
                  maq_words_usd(hour, m.per_hour));
}

static void put_engine(struct maq_page *page, const struct maq_train_result *r, const struct maq_report_engine *e)
{
    char step[32], nodes[32];
    if (!e)
        return;
    put_label(page, "full graph");
    maq_page_putf(page, MAQ_INK_PLAIN, "%s by the %s engine over %s nodes, %+.3f %% from the step above\n",
                  maq_words_step(step, e->step_s), e->name, maq_words_integer(nodes, e->nodes),
                  r->step_s > 0 ? 100 * (e->step_s / r->step_s - 1) : 0.0);
}

/* --- where the step goes -------------------------------------------------------------------------------------- */

/* Assumptions that a part of the step rests on. */
static void put_assumed(struct maq_page *page, const struct maq_train_result *r)
{
    char text[MAQ_ASSUMPTIONS][MAQ_ASSUMPTION_SIZE];
    for (size_t i = 0, n = maq_train_assumptions(text, r); i < n; i++)
        maq_page_putf(page, MAQ_INK_FAINT, "  %s\n", text[i]);
}

static void put_breakdown(struct maq_page *page, const struct maq_train_result *r)
{
    double largest = 0;
    for (int b = 0; b < MAQ_BUCKET_COUNT; b++)
        largest = r->bucket_s[b] > largest ? r->bucket_s[b] : largest;
    if (r->n_stages > 1)
        maq_page_putf(page, MAQ_INK_HEAD, "\nWhere the step goes (stage %u, the least idle)\n", r->critical_stage);
    else
        maq_page_putf(page, MAQ_INK_HEAD, "\nWhere the step goes\n");
    for (int b = 0; b < MAQ_BUCKET_COUNT; b++) {
        char time[32];
        double share = r->step_s > 0 ? r->bucket_s[b] / r->step_s : 0;
        if (share < 5e-5)
            continue;
        maq_page_putf(page, MAQ_INK_PLAIN, "  %-17s%10s %6.1f %%  ", maq_bucket_name((enum maq_bucket)b),
                      maq_format_time(time, r->bucket_s[b]), 100 * share);
        maq_page_bar(page, largest > 0 ? r->bucket_s[b] / largest : 0, BAR);
        while (page->out.len > 0 && page->out.ptr && page->out.ptr[page->out.len - 1] == ' ')
            page->out.len--;
        maq_buf_addc(&page->out, '\n');
    }
    put_assumed(page, r);
}

/* --- memory -------------------------------------------------------------------------------------------------- */

/* Equal to the last digit that is shown. */
static bool alike(const struct maq_stage_result *a, const struct maq_stage_result *b)
{
    for (int k = 0; k < MAQ_MEM_COUNT; k++)
        if (fabs(a->bytes[k] - b->bytes[k]) > 0.0005 * MAQ_GIB)
            return false;
    return fabs(a->capacity_bytes - b->capacity_bytes) <= 0.0005 * MAQ_GIB;
}

static uint32_t run_end(const struct maq_train_result *r, uint32_t first)
{
    uint32_t end = first + 1;
    while (end < r->n_stages && alike(&r->stages[first], &r->stages[end]))
        end++;
    return end;
}

static bool has_graphs(const struct maq_train_result *r)
{
    return r->stages[r->worst_stage].bytes[MAQ_MEM_GRAPHS] > 0;
}

static void gib_cell(struct maq_table *t, double bytes)
{
    double x = bytes / MAQ_GIB;
    maq_table_cell(t, "%.*f", x < 99.995 ? 2 : x < 999.95 ? 1 : 0, x);
}

static void add_memory_row(struct maq_table *t, const struct maq_train_result *r, uint32_t first, uint32_t end)
{
    const struct maq_stage_result *st = &r->stages[first];
    bool over = st->needed_bytes > st->capacity_bytes, worst = r->worst_stage >= first && r->worst_stage < end;
    maq_table_row(t, over ? MAQ_INK_BAD : MAQ_INK_PLAIN);
    if (end - first > 1)
        maq_table_cell(t, "%u-%u", first, end - 1);
    else
        maq_table_cell(t, "%u", first);
    for (int k = 0; k < MAQ_MEM_CONTEXT; k++)
        gib_cell(t, st->bytes[k]);
    if (has_graphs(r))
        gib_cell(t, st->bytes[MAQ_MEM_GRAPHS]);
    gib_cell(t, st->bytes[MAQ_MEM_CONTEXT] + st->bytes[MAQ_MEM_NCCL]);
    gib_cell(t, st->total_bytes);
    maq_table_cell(t, "%.0f %%", 100 * st->total_bytes / st->capacity_bytes);
    maq_table_cell(t, "%s", worst && (over || r->n_stages > 1) ? "worst" : over ? "over" : "");
}

/* What the fullest GPU keeps elsewhere, and all of its node, which has room for so much; 0: not known. */
static void put_offloaded(struct maq_page *page, const char *where, const struct maq_offloaded *o,
                          const struct maq_node_group *node, double room)
{
    const double all = (o->weights + o->gradients + o->optimizer) * node->devices_per_node;
    char of[48] = "";
    if (room > 0)
        maq__snprintf(of, sizeof of, " of %.1f%s", room / MAQ_GIB, all > room ? ", more than it has" : "");
    maq_page_putf(page, room > 0 && all > room ? MAQ_INK_BAD : MAQ_INK_FAINT,
                  "  %s: weights %.2f, gradients %.2f, optimizer %.2f; in a node %.1f%s\n", where, o->weights / MAQ_GIB,
                  o->gradients / MAQ_GIB, o->optimizer / MAQ_GIB, all / MAQ_GIB, of);
}

static bool keeps(const struct maq_offloaded *o)
{
    return o->weights + o->gradients + o->optimizer > 0;
}

static void put_elsewhere(struct maq_page *page, const struct maq_train_result *r)
{
    const struct maq_stage_result *st = &r->stages[r->worst_stage];
    if (!keeps(&st->host) && !keeps(&st->nvme))
        return;
    const struct maq_node_group *node = &r->job->cluster.groups[r->job->stages[r->worst_stage].group];
    if (keeps(&st->host))
        put_offloaded(page, "in host memory", &st->host, node, node->host_mem_bytes);
    if (keeps(&st->nvme))
        put_offloaded(page, "on NVMe", &st->nvme, node, 0);
}

static void put_memory(struct maq_page *page, const struct maq_train_result *r)
{
    static const char *const numbers[] = {"weights", "gradients", "optimizer", "activations", "transient",
                                          "cached",  "graphs",    "runtime",   "total",       "used"};
    struct maq_table_column columns[MAQ_COUNT(numbers) + 2] = {{"stage", false, false}};
    uint32_t n = 1;
    for (size_t i = 0; i < MAQ_COUNT(numbers); i++)
        if (strcmp(numbers[i], "graphs") != 0 || has_graphs(r))
            columns[n++] = (struct maq_table_column){numbers[i], true, false};
    columns[n++] = (struct maq_table_column){"", false, false};
    const struct maq_stage_result *st = &r->stages[r->worst_stage];
    struct maq_table t;
    uint32_t runs = 0, at = 0, left_out = 0;
    maq_table_init(&t, columns, n);
    for (uint32_t s = 0; s < r->n_stages; s = run_end(r, s))
        runs++;
    for (uint32_t s = 0; s < r->n_stages; at++) {
        uint32_t end = run_end(r, s);
        bool worst = r->worst_stage >= s && r->worst_stage < end;
        if (runs <= ROWS_MAX || at < ROWS_MAX / 2 || at + ROWS_MAX / 4 >= runs || worst)
            add_memory_row(&t, r, s, end);
        else
            left_out++;
        s = end;
    }
    maq_page_putf(page, MAQ_INK_HEAD, "\nMemory per GPU at its peak, GiB of %.1f\n", st->capacity_bytes / MAQ_GIB);
    maq_table_print(page, &t, 2);
    maq_page_putf(page, MAQ_INK_FAINT,
                  "  runtime: CUDA context %.2f, communicators %.2f; cached: fragmentation of PyTorch's allocator",
                  st->bytes[MAQ_MEM_CONTEXT] / MAQ_GIB, st->bytes[MAQ_MEM_NCCL] / MAQ_GIB);
    if (left_out > 0)
        maq_page_putf(page, MAQ_INK_FAINT, "; %u rows between are not shown", left_out);
    maq_buf_addc(&page->out, '\n');
    if (has_graphs(r))
        maq_page_putf(page, MAQ_INK_FAINT,
                      "  graphs: driver %.2f for %.0f nodes, static buffers %.2f, not shared between two pools %.2f\n",
                      st->graphs.driver_bytes / MAQ_GIB, st->graphs.nodes, st->graphs.buffer_bytes / MAQ_GIB,
                      st->graphs.pool_bytes / MAQ_GIB);
    put_elsewhere(page, r);
    maq_table_fini(&t);
}

/* --- operators and provenance ---------------------------------------------------------------------------------- */

static void put_operators(struct maq_page *page, const struct maq_train_result *r)
{
    static const struct maq_table_column columns[] = {{"operator", false, true}, {"module", false, false},
                                                      {"calls", true, false},    {"time", true, false},
                                                      {"busy", true, false},     {"cost", false, false}};
    struct maq_table t;
    bool mixed = false; /* costs of more than one kind: otherwise the last lines say which */
    for (uint32_t i = 1; i < r->n_ops; i++)
        mixed |= r->ops[i].provider != r->ops[0].provider;
    if (r->n_ops == 0)
        return;
    maq_table_init(&t, columns, mixed ? MAQ_COUNT(columns) : MAQ_COUNT(columns) - 1);
    for (uint32_t i = 0; i < r->n_ops; i++) {
        const struct maq_train_op *op = &r->ops[i];
        char time[32], calls[32];
        maq_table_row(&t, MAQ_INK_PLAIN);
        maq_table_cell(&t, "%s", op->text);
        maq_table_cell(&t, "%s", op->where);
        maq_table_cell(&t, "%s", maq_words_integer(calls, (int64_t)llround(op->count)));
        maq_table_cell(&t, "%s", maq_format_time(time, op->seconds));
        maq_table_cell(&t, "%.1f %%", 100 * op->share);
        if (mixed)
            maq_table_cell(&t, "%s", maq_provider_name((enum maq_provider)op->provider));
    }
    if (r->n_stages > 1)
        maq_page_putf(page, MAQ_INK_HEAD, "\nCostliest operators of stage %u\n", r->critical_stage);
    else
        maq_page_putf(page, MAQ_INK_HEAD, "\nCostliest operators\n");
    maq_table_print(page, &t, 2);
    maq_table_fini(&t);
}

static void put_provenance(struct maq_page *page, const struct maq_train_result *r)
{
    struct maq_buf words;
    maq_buf_init(&words, 4096);
    maq_words_provenance(&words, r);
    maq_buf_addc(&page->out, '\n');
    maq_page_field(page, 0, "", words.ptr ? words.ptr : "");
    words.len = 0;
    maq_words_measured(&words, r);
    if (words.len > 0)
        maq_page_field(page, 0, "", words.ptr);
    page->out.failed |= words.failed;
    maq_buf_fini(&words);
    maq_page_field(page, 0, "", MAQ_WORDS_UTILIZATION);
}

/* --- --explain ------------------------------------------------------------------------------------------------ */

/* Lines of maq_job_explain(), `key = value  (origin)`, as a table. */
static void put_settings(struct maq_page *page, const char *lines)
{
    static const struct maq_table_column columns[] = {
        {"setting", false, false}, {"value", false, true}, {"from", false, false}};
    struct maq_table t;
    struct maq_str rest = maq_str_of(lines), line;
    if (!lines)
        return;
    maq_table_init(&t, columns, MAQ_COUNT(columns));
    t.wraps = true;
    while (rest.ptr && rest.len > 0) {
        rest = maq_str_split(rest, '\n', &line);
        struct maq_str key, value = maq_str_split(line, '=', &key), origin = {0};
        for (size_t i = value.len; i-- > 0 && origin.len == 0;)
            if (value.ptr[i] == '(') {
                origin = (struct maq_str){value.ptr + i + 1, value.len - i - 2};
                value.len = i;
            }
        key = maq_str_trim(key);
        value = maq_str_trim(value);
        maq_table_row(&t, maq_str_is(origin, "default") ? MAQ_INK_FAINT : MAQ_INK_PLAIN);
        maq_table_cell(&t, "%.*s", (int)key.len, key.ptr);
        maq_table_cell(&t, "%.*s", (int)value.len, value.ptr ? value.ptr : "");
        maq_table_cell(&t, "%.*s", (int)origin.len, origin.ptr ? origin.ptr : "");
    }
    maq_page_putf(page, MAQ_INK_HEAD, "\nSettings\n");
    maq_table_print(page, &t, 2);
    maq_table_fini(&t);
}

enum maq_status maq_report_train_text(char **out, const struct maq_train_result *result,
                                      const struct maq_report_opts *opts, struct maq_diag *diag)
{
    struct maq_page page;
    maq_page_init(&page, opts);
    maq_page_job(&page, result->job, MAQ_JOB_PLANNED);
    put_verdict(&page, result, opts ? opts->advice : NULL);
    put_headline(&page, result);
    put_money(&page, result);
    put_engine(&page, result, opts ? opts->engine : NULL);
    put_breakdown(&page, result);
    put_memory(&page, result);
    put_operators(&page, result);
    put_provenance(&page, result);
    put_settings(&page, opts ? opts->explain : NULL);
    return maq_page_finish(out, &page, diag);
}
