/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train.c - the page of a training step: headline, where the step goes, the pipeline, memory, operators, where the costs come from.
 *
 * Beside the report's document the page carries what its charts of time need (`more`):
 *
 *   {"tick_s": 1e-6, "drawn": 1, "stages": [{"k": "ffb...", "m": [...], "c": [...], "g": [...], "d": [...], "t": [...], "b": [...]}],
 *    "layers": [[stage, chunk, first, n], ...], "band": bytes per second of the critical stage's memory,
 *    "chunks": 8, "program": [of each chunk of each stage], "passes": [[forward, backward, weight of a program], ...]}
 *
 * k, m, c, g, d are the spans of a stage: kind (a letter of `letters`), microbatch, chunk, ticks between the end of the span before and
 * its begin, ticks that it lasts. t and b are its live activations: ticks since the point before, KiB from then on. Long pipelines are
 * drawn from their begin, `drawn` is the share of spans that are there; of many points of memory the highest of each window is.
 */
#include <math.h>

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "maquette/report.h"
#include "report/html/html.h"
#include "report/money.h"
#include "report/train/assumptions.h"
#include "report/train/train_words.h"
#include "report/words.h"

#define SPANS_MAX 50000u
#define POINTS_MAX 20000u
#define TICKS_MAX 1e7
#define KIB 1024.0

/* Colours of the style sheet. */
static const char *const bucket_colors[MAQ_BUCKET_COUNT] = {[MAQ_BUCKET_FORWARD] = "c-forward",
                                                            [MAQ_BUCKET_BACKWARD] = "c-backward",
                                                            [MAQ_BUCKET_RECOMPUTE] = "c-recompute",
                                                            [MAQ_BUCKET_TP] = "c-tp",
                                                            [MAQ_BUCKET_CP] = "c-cp",
                                                            [MAQ_BUCKET_EP] = "c-ep",
                                                            [MAQ_BUCKET_PP] = "c-pp",
                                                            [MAQ_BUCKET_DP] = "c-dp",
                                                            [MAQ_BUCKET_BUBBLE] = "c-bubble",
                                                            [MAQ_BUCKET_OPTIMIZER] = "c-optimizer",
                                                            [MAQ_BUCKET_HOST] = "c-host",
                                                            [MAQ_BUCKET_OTHER] = "c-other"};

/* --- what charts of time show ------------------------------------------------------------------------------------ */

static const char letters[MAQ_SPAN_KIND_COUNT + 1] = "fbwpsgrnu"; /* in the order of enum maq_train_span_kind */

/* A power of ten, so that the step is at most TICKS_MAX of them. */
static double tick_of(double step_ns)
{
    double tick = 1;
    while (step_ns > TICKS_MAX * tick)
        tick *= 10;
    return tick;
}

/* The spans of a stage that are drawn: so many passes, and so many of what comes behind them. */
static bool is_drawn(uint32_t passes, uint32_t others, const struct maq_train_span *span, uint32_t most)
{
    return span->kind <= MAQ_SPAN_PAIR ? passes < most : span->kind != MAQ_SPAN_SEND || others < most;
}

enum column { COLUMN_MICROBATCH, COLUMN_CHUNK, COLUMN_GAP, COLUMN_LENGTH };

/* One column of the spans of a stage; returns how many are drawn. */
static uint32_t put_column(struct maq_buf *b, const struct maq_train_span *span, uint32_t n, enum column column,
                           double tick, uint32_t most)
{
    static const char keys[] = "mcgd";
    uint32_t passes = 0, others = 0;
    int64_t before = 0;
    maq_buf_addf(b, ",\"%c\":[", keys[column]);
    for (uint32_t i = 0; i < n; i++) {
        if (!is_drawn(passes, others, &span[i], most))
            continue;
        int64_t from = llround((double)span[i].start_ns / tick), to = llround((double)span[i].end_ns / tick);
        const int64_t values[] = {[COLUMN_MICROBATCH] = span[i].microbatch,
                                  [COLUMN_CHUNK] = span[i].chunk,
                                  [COLUMN_GAP] = from - before,
                                  [COLUMN_LENGTH] = to - from};
        maq_buf_addf(b, "%s%lld", passes + others > 0 ? "," : "", (long long)values[column]);
        before = to;
        passes += span[i].kind <= MAQ_SPAN_PAIR;
        others += span[i].kind > MAQ_SPAN_PAIR;
    }
    maq_buf_addc(b, ']');
    return passes + others;
}

static uint32_t put_spans(struct maq_buf *b, const struct maq_train_spans *spans, uint32_t stage, double tick)
{
    const struct maq_train_span *span = spans->spans + spans->first[stage];
    uint32_t n = spans->first[stage + 1] - spans->first[stage], most = SPANS_MAX / spans->n_stages / 2, shown = 0;
    uint32_t passes = 0, others = 0;
    maq_buf_adds(b, "\"k\":\"");
    for (uint32_t i = 0; i < n; i++) {
        if (!is_drawn(passes, others, &span[i], most))
            continue;
        maq_buf_addc(b, letters[span[i].kind]);
        passes += span[i].kind <= MAQ_SPAN_PAIR;
        others += span[i].kind > MAQ_SPAN_PAIR;
    }
    maq_buf_addc(b, '"');
    for (enum column c = COLUMN_MICROBATCH; c <= COLUMN_LENGTH; c++)
        shown = put_column(b, span, n, c, tick, most);
    return shown;
}

/* The highest point of each window of the points of a stage; with few points each is a window. */
static void put_points(struct maq_buf *b, const struct maq_train_memory *memory, uint32_t stage, double tick)
{
    const struct maq_train_memory_point *p = memory->points + memory->first[stage];
    uint32_t n = memory->first[stage + 1] - memory->first[stage];
    uint32_t most = POINTS_MAX / memory->n_stages, window = n / (most > 0 ? most : 1) + 1;
    for (int key = 0; key < 2; key++) {
        int64_t before = 0;
        maq_buf_adds(b, key == 0 ? ",\"t\":[" : ",\"b\":[");
        for (uint32_t i = 0; i < n; i += window) {
            uint32_t highest = i;
            for (uint32_t k = i; k < n && k < i + window; k++)
                highest = p[k].bytes > p[highest].bytes ? k : highest;
            int64_t at = llround((double)p[highest].t_ns / tick);
            maq_buf_addf(b, "%s%lld", i > 0 ? "," : "",
                         key == 0 ? (long long)(at - before) : llround(p[highest].bytes / KIB));
            before = at;
        }
        maq_buf_addc(b, ']');
    }
}

/* Programs of virtual stages, and of each the costliest operators of its passes: [operator, module, calls, seconds]. */
static void put_passes(struct maq_buf *b, const struct maq_train_spans *spans)
{
    maq_buf_addf(b, ",\"chunks\":%u,\"program\":[", spans->n_chunks);
    for (uint32_t i = 0; i < spans->n_stages * spans->n_chunks; i++)
        maq_buf_addf(b, "%s%u", i > 0 ? "," : "", spans->program[i]);
    maq_buf_adds(b, "],\"passes\":[");
    for (uint32_t i = 0; i < spans->n_programs; i++) {
        maq_buf_adds(b, i > 0 ? ",\n[" : "\n[");
        for (int k = MAQ_SPAN_FORWARD; k <= MAQ_SPAN_WEIGHT; k++) {
            const struct maq_train_pass *pass = &spans->passes[i][k];
            maq_buf_adds(b, k > 0 ? ",[" : "[");
            for (uint32_t o = 0; o < pass->n; o++)
                maq_buf_addf(b, "%s[\"%s\",\"%s\",%.0f,%.4g]", o > 0 ? "," : "", pass->ops[o].text, pass->ops[o].where,
                             pass->ops[o].count, pass->ops[o].seconds);
            maq_buf_addc(b, ']');
        }
        maq_buf_addc(b, ']');
    }
    maq_buf_addc(b, ']');
}

static void put_more(struct maq_buf *b, const struct maq_train_result *r, const struct maq_train_spans *spans,
                     const struct maq_train_memory *memory)
{
    const struct maq_job *job = r->job;
    double tick = tick_of(r->step_s * 1e9);
    uint32_t drawn = 0, all = 0;
    maq_buf_addf(b, "{\"tick_s\":%g,\"stages\":[", tick * 1e-9);
    for (uint32_t s = 0; s < r->n_stages; s++) {
        maq_buf_adds(b, s > 0 ? ",\n{" : "\n{");
        if (spans && s < spans->n_stages) {
            drawn += put_spans(b, spans, s, tick);
            all = spans->first[s + 1];
        } else {
            maq_buf_adds(b, "\"k\":\"\",\"m\":[],\"c\":[],\"g\":[],\"d\":[]");
        }
        if (memory && s < memory->n_stages)
            put_points(b, memory, s, tick);
        maq_buf_addc(b, '}');
    }
    maq_buf_addf(b, "],\"drawn\":%.4g,\"band\":%.6g,\"layers\":[", all > 0 ? (double)drawn / all : 1.0,
                 job->cluster.groups[job->stages[r->critical_stage].group].device.mem_bps);
    for (uint32_t v = 0; v < job->n_virtual; v++) {
        const struct maq_virtual_stage *stage = &job->virtual_stages[v];
        maq_buf_addf(b, "%s[%u,%u,%d,%d]", v > 0 ? "," : "", stage->stage, stage->chunk, stage->first_layer,
                     stage->n_layers);
    }
    maq_buf_adds(b, "]");
    if (spans)
        put_passes(b, spans);
    maq_buf_addc(b, '}');
}

/* --- headline ---------------------------------------------------------------------------------------------------- */

static void put_verdict(struct maq_html *h, const struct maq_train_result *r, const char *advice)
{
    struct maq_buf words;
    maq_buf_init(&words, 4096);
    maq_words_train_fit(&words, r);
    bool plain = words.len == 0;
    if (plain)
        maq_buf_adds(&words, "fits in memory");
    if (maq_train_odds_matter(r)) {
        maq_buf_adds(&words, "; ");
        maq_words_odds(&words, r);
    }
    if (!r->fits && advice)
        maq_buf_addf(&words, "\n%s", advice);
    h->out.failed |= words.failed;
    maq_html_verdict(h,
                     !r->fits                             ? MAQ_HTML_BAD
                     : plain && !maq_train_odds_matter(r) ? MAQ_HTML_GOOD
                                                          : MAQ_HTML_WARN,
                     words.ptr ? words.ptr : "");
    maq_buf_fini(&words);
}

static void put_cards(struct maq_html *h, const struct maq_train_result *r)
{
    char a[32], b[32], value[96], note[256];
    const struct maq_stage_result *st = &r->stages[r->worst_stage];
    const struct maq_money m = maq_money_of_train(r);
    maq_html_cards(h);
    maq__snprintf(note, sizeof note, "80 %% interval %s to %s", maq_format_time(a, r->step_low_s),
                  maq_format_time(b, r->step_high_s));
    maq_html_card_range(h, "Step time", maq_words_step(value, r->step_s), note, r->step_low_s, r->step_s,
                        r->step_high_s);
    maq__snprintf(value, sizeof value, "%s tokens/s", maq_words_rate(a, r->tokens_per_s));
    maq__snprintf(note, sizeof note, "%s per GPU", maq_words_rate(b, r->tokens_per_s_per_device));
    maq_html_card(h, "Throughput", value, note);
    maq__snprintf(value, sizeof value, "MFU %.1f %%", 100 * r->mfu);
    maq__snprintf(note, sizeof note, "HFU %.1f %%; %.4g model TFLOP/s per GPU of %.4g dense %s", 100 * r->hfu,
                  r->model_flops_per_device * 1e-12, r->peak_flops * 1e-12,
                  maq_dtype_name((enum maq_dtype)r->job->math_dtype));
    maq_html_card_gauge(h, "Utilization", value, note, r->mfu, false);
    maq__snprintf(value, sizeof value, "%s", maq_format_bytes(a, st->total_bytes));
    int n = maq__snprintf(note, sizeof note, "of %s on the fullest GPU (stage %u); ",
                          maq_format_bytes(a, st->capacity_bytes), r->worst_stage);
    maq__snprintf(note + n, sizeof note - (size_t)n, "80 %% interval %s to %s",
                  maq_format_bytes(a, r->memory_low * st->total_bytes),
                  maq_format_bytes(b, r->memory_high * st->total_bytes));
    maq_html_card_gauge(h, "Memory at its peak", value, note, st->total_bytes / st->capacity_bytes, !r->fits);
    if (m.per_hour > 0) {
        char usd[48], step[48];
        maq__snprintf(value, sizeof value, "%s", maq_words_usd(usd, m.per_trillion_tokens));
        maq__snprintf(note, sizeof note, "for 10^12 tokens; %s a step, %s an hour", maq_words_usd(step, m.per_step),
                      maq_words_usd(usd, m.per_hour));
        maq_html_card(h, "Cost", value, note);
    }
    maq_html_end_cards(h);
}

/* --- where the step goes ------------------------------------------------------------------------------------------ */

static void put_breakdown(struct maq_html *h, const struct maq_train_result *r)
{
    char text[MAQ_ASSUMPTIONS][MAQ_ASSUMPTION_SIZE], time[32];
    double largest = 0;
    for (int b = 0; b < MAQ_BUCKET_COUNT; b++)
        largest = r->bucket_s[b] > largest ? r->bucket_s[b] : largest;
    maq_html_section(h, "breakdown", "Where the step goes");
    maq_html_put(h, "<div class=\"pair\"><div>\n<div class=\"scroll\"><table><caption>");
    if (r->n_stages > 1)
        maq_html_textf(h, "Stage %u, the least idle", r->critical_stage);
    else
        maq_html_textf(h, "Of every GPU");
    maq_html_put(h, "</caption><thead><tr><th scope=\"col\">part</th><th scope=\"col\" class=\"n\">time</th>"
                    "<th scope=\"col\" class=\"n\">share</th><th></th></tr></thead>\n<tbody>\n");
    for (int b = 0; b < MAQ_BUCKET_COUNT; b++) {
        double share = r->step_s > 0 ? r->bucket_s[b] / r->step_s : 0;
        if (share < 5e-5)
            continue;
        maq_html_putf(h, "<tr><td>%s</td><td class=\"n\">%s</td><td class=\"n\">%.1f %%</td>",
                      maq_bucket_name((enum maq_bucket)b), maq_format_time(time, r->bucket_s[b]), 100 * share);
        maq_html_bar_cell(h, largest > 0 ? r->bucket_s[b] / largest : 0, bucket_colors[b]);
        maq_html_put(h, "</tr>\n");
    }
    maq_html_putf(
        h, "</tbody><tfoot><tr><td>step</td><td class=\"n\">%s</td><td class=\"n\">100.0 %%</td><td></td></tr></tfoot>",
        maq_words_step(time, r->step_s));
    maq_html_put(h, "</table></div>\n");
    for (size_t i = 0, n = maq_train_assumptions(text, r); i < n; i++)
        maq_html_note(h, "%s", text[i]);
    maq_html_put(h, "</div>\n");
    maq_html_chart(h, "breakdown-chart", r->n_stages > 1 ? "bars" : "bars one",
                   r->n_stages > 1 ? "Time of a step by pipeline stage; each bar is the whole step."
                                   : "Time of a step.");
    maq_html_put(h, "</div>\n");
    maq_html_end_section(h);
}

static void put_pipeline(struct maq_html *h, const struct maq_train_result *r)
{
    maq_html_section(h, "pipeline", r->n_stages > 1 ? "The pipeline" : "The step, pass by pass");
    maq_html_chart(
        h, "gantt", "gantt",
        "Passes of microbatches on every stage, and below them what travels: transfers to other stages, parameters, "
        "gradients. Drag to move, wheel with Ctrl (or after a click) to zoom, arrows and + - 0 as well; point at a "
        "pass "
        "for what it is.");
    maq_html_end_section(h);
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

static bool alike(const struct maq_stage_result *a, const struct maq_stage_result *b)
{
    for (int k = 0; k < MAQ_MEM_COUNT; k++)
        if (fabs(a->bytes[k] - b->bytes[k]) > 0.0005 * MAQ_GIB)
            return false;
    return fabs(a->capacity_bytes - b->capacity_bytes) <= 0.0005 * MAQ_GIB;
}

static void gib_cell(struct maq_table *t, double bytes)
{
    maq_table_cell(t, "%.2f", bytes / MAQ_GIB);
}

static void put_memory(struct maq_html *h, const struct maq_train_result *r)
{
    static const char *const names[MAQ_MEM_COUNT] = {"weights",     "gradients",     "optimizer",
                                                     "activations", "transient",     "cached",
                                                     "context",     "communicators", "graphs"};
    struct maq_table_column columns[MAQ_MEM_COUNT + 4] = {{"stage", false, false}};
    struct maq_table t;
    uint32_t n = 1;
    bool graphs = r->stages[r->worst_stage].bytes[MAQ_MEM_GRAPHS] > 0;
    for (int k = 0; k < MAQ_MEM_COUNT; k++)
        if (k != MAQ_MEM_GRAPHS || graphs)
            columns[n++] = (struct maq_table_column){names[k], true, false};
    columns[n++] = (struct maq_table_column){"total", true, false};
    columns[n++] = (struct maq_table_column){"needed", true, false};
    columns[n++] = (struct maq_table_column){"capacity", true, false};
    maq_table_init(&t, columns, n);
    for (uint32_t s = 0, end; s < r->n_stages; s = end) {
        const struct maq_stage_result *st = &r->stages[s];
        for (end = s + 1; end < r->n_stages && alike(st, &r->stages[end]);)
            end++;
        bool worst = r->n_stages > 1 && r->worst_stage >= s && r->worst_stage < end;
        maq_table_row(&t, st->needed_bytes > st->capacity_bytes ? MAQ_INK_BAD : worst ? MAQ_INK_TITLE : MAQ_INK_PLAIN);
        if (end - s > 1)
            maq_table_cell(&t, "%u-%u", s, end - 1);
        else
            maq_table_cell(&t, "%u", s);
        for (int k = 0; k < MAQ_MEM_COUNT; k++)
            if (k != MAQ_MEM_GRAPHS || graphs)
                gib_cell(&t, st->bytes[k]);
        gib_cell(&t, st->total_bytes);
        gib_cell(&t, st->needed_bytes);
        gib_cell(&t, st->capacity_bytes);
    }
    maq_html_section(h, "memory", "Memory");
    maq_html_put(h, "<div class=\"pair\">\n");
    maq_html_chart(h, "memory-chart", "bars",
                   "GiB per GPU at the peak of each stage, by what it holds, against the device's capacity.");
    maq_html_chart(h, "memory-time", "",
                   "GiB over the step: live activations, on top of everything else at its peak. Dashed: capacity.");
    maq_html_put(h, "</div>\n");
    maq_html_table(h, &t, "GiB per GPU at its peak");
    maq_table_fini(&t);
    maq_html_note(
        h,
        "total: what nvidia-smi shows. needed: without blocks that PyTorch's allocator holds and does not use, which "
        "decides whether it fits. cached: such blocks.");
    maq_html_end_section(h);
}

/* --- operators and provenance ------------------------------------------------------------------------------------- */

static void put_operators(struct maq_html *h, const struct maq_train_result *r)
{
    static const struct maq_table_column columns[] = {
        {"operator", false, true}, {"module", false, false}, {"calls", true, false}, {"time", true, false},
        {"busy", true, false},     {"TFLOP/s", true, false}, {"GB/s", true, false},  {"cost", false, false}};
    struct maq_table t;
    char text[32];
    if (r->n_ops == 0)
        return;
    maq_table_init(&t, columns, MAQ_COUNT(columns));
    for (uint32_t i = 0; i < r->n_ops; i++) {
        const struct maq_train_op *op = &r->ops[i];
        double per_s = op->seconds > 0 ? op->count / op->seconds : 0;
        maq_table_row(&t, MAQ_INK_PLAIN);
        maq_table_cell(&t, "%s", op->text);
        maq_table_cell(&t, "%s", op->where);
        maq_table_cell(&t, "%s", maq_words_integer(text, llround(op->count)));
        maq_table_cell(&t, "%s", maq_format_time(text, op->seconds));
        maq_table_cell(&t, "%.1f %%", 100 * op->share);
        if (op->collective) {
            maq_table_cell(&t, "%s", "");
            maq_table_cell(&t, "%s", "");
        } else {
            maq_table_cell(&t, "%.1f", op->flop * per_s * 1e-12);
            maq_table_cell(&t, "%.0f", op->bytes * per_s * 1e-9);
        }
        maq_table_cell(&t, "%s", maq_provider_name((enum maq_provider)op->provider));
    }
    maq_html_section(h, "operators", "Costliest operators");
    if (r->n_stages > 1)
        maq_html_note(h, "Of stage %u, over a step. busy: of the time in which the GPU computes.", r->critical_stage);
    maq_html_table(h, &t, NULL);
    maq_table_fini(&t);
    maq_html_chart(
        h, "roofline", "tall",
        "Roofline of the operators above that compute: work per byte of memory traffic that they cannot do without, "
        "and "
        "rate reached. Areas are shares of busy time. Lines: memory bandwidth and dense peak of the device.");
    maq_html_end_section(h);
}

static void put_provenance(struct maq_html *h, const struct maq_train_result *r)
{
    static const char *const colors[MAQ_PROVIDER_COUNT] = {[MAQ_PROVIDER_MEASURED] = "c-backward",
                                                           [MAQ_PROVIDER_FITTED] = "c-forward",
                                                           [MAQ_PROVIDER_ANALYTICAL] = "c-tp"};
    struct maq_buf words;
    maq_buf_init(&words, 4096);
    maq_html_section(h, "provenance", "Where the costs come from");
    maq_html_put(h, "<div class=\"scroll\"><table class=\"narrow\"><thead><tr><th scope=\"col\">cost</th>"
                    "<th scope=\"col\" class=\"n\">of the time</th><th></th></tr></thead>\n<tbody>\n");
    for (int p = 0; p < MAQ_PROVIDER_COUNT; p++) {
        if (!colors[p])
            continue;
        maq_html_putf(h, "<tr><td>%s</td><td class=\"n\">%.1f %%</td>", maq_provider_name((enum maq_provider)p),
                      100 * r->provider_share[p]);
        maq_html_bar_cell(h, r->provider_share[p], colors[p]);
        maq_html_put(h, "</tr>\n");
    }
    maq_html_put(h, "</tbody></table></div>\n");
    maq_words_provenance(&words, r);
    maq_html_note(h, "%s", words.ptr ? words.ptr : "");
    words.len = 0;
    maq_words_measured(&words, r);
    if (words.len > 0)
        maq_html_note(h, "%s", words.ptr);
    maq_html_note(h, "%s", MAQ_WORDS_UTILIZATION);
    h->out.failed |= words.failed;
    maq_buf_fini(&words);
    maq_html_end_section(h);
}

enum maq_status maq_report_train_html(char **out, const struct maq_train_result *result,
                                      const struct maq_train_spans *spans, const struct maq_train_memory *memory,
                                      const struct maq_report_opts *opts, struct maq_diag *diag)
{
    struct maq_html h;
    struct maq_buf more;
    char *document = NULL;
    enum maq_status status = maq_report_train_json(&document, result, opts, diag);
    if (status != MAQ_OK)
        return status;
    maq_buf_init(&more, (size_t)64 * 1024 * 1024);
    put_more(&more, result, spans, memory);
    maq_html_begin(&h, "train", result->job->name);
    maq_html_job(&h, result->job, true);
    put_verdict(&h, result, opts ? opts->advice : NULL);
    put_cards(&h, result);
    put_breakdown(&h, result);
    if (spans)
        put_pipeline(&h, result);
    put_memory(&h, result);
    put_operators(&h, result);
    put_provenance(&h, result);
    maq_html_settings(&h, opts ? opts->explain : NULL);
    status = maq_html_finish(out, &h, document, &more, diag);
    maq_buf_fini(&more);
    return status;
}
