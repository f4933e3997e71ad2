/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read.c - bounds on latencies as they are written: METRIC_STATISTIC<TIME, one after another with commas between.
 *
 * A fault has its place in the text. Where a name is not known the nearest one is said; names that other tools put the other way round
 * (p95_ttft) count as near.
 */
#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/str.h"
#include "base/text.h"
#include "base/units.h"
#include "maquette/slo.h"
#include "serve/codes.h"

#define FLAG "--slo"
#define FORM "write it as ttft_p95<500ms"

static const char *const metrics[MAQ_SLO_METRIC_COUNT] = {
#define NAME(id, name) name,
    MAQ_SLO_METRIC_LIST(NAME)};
static const char *const statistics[MAQ_SLO_STATISTIC_COUNT] = {MAQ_SLO_STATISTIC_LIST(NAME)
#undef NAME
};

const char *maq_slo_metric_name(enum maq_slo_metric metric)
{
    return (unsigned)metric < MAQ_SLO_METRIC_COUNT ? metrics[metric] : "unknown";
}

const char *maq_slo_statistic_name(enum maq_slo_statistic statistic)
{
    return (unsigned)statistic < MAQ_SLO_STATISTIC_COUNT ? statistics[statistic] : "unknown";
}

struct reader {
    struct maq_slo *out;
    struct maq_diag *diag;
    struct maq_str source;
    uint32_t file;
    enum maq_status status;
};

static struct maq_span span(const struct reader *r, struct maq_str part)
{
    return (struct maq_span){r->file, (uint32_t)(part.ptr - r->source.ptr), (uint32_t)part.len};
}

#define FAULT(r, code, part, hint, ...)                                                                                \
    ((r)->status = maq_diag_fail(MAQ_BAD_INPUT, (r)->diag, (code), span((r), (part)), (hint), __VA_ARGS__))

/* "ttft_p95" of its two halves, in one order or in the other. */
static struct maq_str joined(char buf[32], const char *a, const char *b)
{
    maq__snprintf(buf, 32, "%s_%s", a, b);
    return maq_str_of(buf);
}

/* The bound whose name it is; false: none. */
static bool find(struct maq_slo_bound *out, struct maq_str name)
{
    char buf[32];
    for (int m = 0; m < MAQ_SLO_METRIC_COUNT; m++)
        for (int s = 0; s < MAQ_SLO_STATISTIC_COUNT; s++)
            if (maq_str_same(name, joined(buf, metrics[m], statistics[s]))) {
                out->metric = (enum maq_slo_metric)m;
                out->statistic = (enum maq_slo_statistic)s;
                return true;
            }
    return false;
}

/* What was probably meant: a metric without its statistic, halves in another order, a slip of the pen. */
static void hint_of(char hint[160], struct maq_str name)
{
    uint32_t least = name.len < 6 ? 2 : 4;
    char buf[32];
    const char *metric = NULL, *statistic = NULL;
    for (int m = 0; m < MAQ_SLO_METRIC_COUNT; m++)
        for (int s = 0; s < MAQ_SLO_STATISTIC_COUNT; s++) {
            uint32_t straight = maq_str_distance(name, joined(buf, metrics[m], statistics[s]), least),
                     turned = maq_str_distance(name, joined(buf, statistics[s], metrics[m]), least),
                     d = straight < turned ? straight : turned;
            if (d < least) {
                least = d;
                metric = metrics[m];
                statistic = statistics[s];
            }
        }
    for (int m = 0; m < MAQ_SLO_METRIC_COUNT; m++)
        if (maq_str_ieq(name, metrics[m])) {
            maq__snprintf(hint, 160, "of which requests? %s_mean, %s_p50, %s_p90, %s_p95 or %s_p99", metrics[m],
                          metrics[m], metrics[m], metrics[m], metrics[m]);
            return;
        }
    if (metric)
        maq__snprintf(hint, 160, "did you mean '%s_%s'?", metric, statistic);
    else
        maq__snprintf(hint, 160, "ttft, tpot, itl or e2el, then _mean, _p50, _p90, _p95 or _p99");
}

static void read_time(struct reader *r, struct maq_slo_bound *b, struct maq_str text)
{
    const char *why;
    if (text.len > 0 && (text.ptr[0] == '<' || text.ptr[0] == '>' || text.ptr[0] == '='))
        FAULT(r, MAQ_CODE_SLO_FORM, text, FORM, "a bound is an upper one, with < or <=");
    else if (!maq_quantity_parse(&b->limit.most_s, text, MAQ_DIM_TIME, &why))
        FAULT(r, MAQ_CODE_BAD_QUANTITY, text, "a time with its unit: 500ms, 1.5s, 800us", "'%.*s': %s",
              (int)(text.len < 40 ? text.len : 40), text.ptr, why);
    else if (!(b->limit.most_s > 0))
        FAULT(r, MAQ_CODE_SLO_FORM, text, NULL, "no latency is below zero: this bound is never met");
}

static void read_bound(struct reader *r, struct maq_str text)
{
    struct maq_slo_bound b = {0};
    char hint[160];
    size_t n = 0;
    while (n < text.len && !strchr("<>=:", text.ptr[n]))
        n++;
    struct maq_str name = maq_str_trim((struct maq_str){text.ptr, n}), most = {text.ptr + n, text.len - n};
    if (n == text.len || text.ptr[n] != '<') {
        FAULT(r, MAQ_CODE_SLO_FORM, text, FORM,
              n == text.len ? "a bound without its limit" : "a bound is an upper one, with < or <=");
        return;
    }
    n = most.len > 1 && most.ptr[1] == '=' ? 2 : 1;
    b.limit.inclusive = n == 2;
    enum maq_status before = r->status;
    if (!find(&b, name)) {
        hint_of(hint, name);
        FAULT(r, MAQ_CODE_SLO_METRIC, name.len > 0 ? name : text, hint, "no latency is called '%.*s'",
              (int)(name.len < 40 ? name.len : 40), name.ptr);
        before = MAQ_BAD_INPUT;
    }
    read_time(r, &b, maq_str_trim((struct maq_str){most.ptr + n, most.len - n}));
    for (uint32_t i = 0; before != MAQ_BAD_INPUT && i < r->out->n; i++)
        if (r->out->at[i].metric == b.metric && r->out->at[i].statistic == b.statistic) {
            FAULT(r, MAQ_CODE_SLO_TWICE, name, "keep one", "'%.*s' has two bounds", (int)name.len, name.ptr);
            return;
        }
    if (r->status == MAQ_OK)
        r->out->at[r->out->n++] = b;
}

enum maq_status maq_slo_read(struct maq_slo *out, const char *text, struct maq_diag *diag)
{
    struct maq_arena arena;
    maq_arena_init(&arena, 0);
    const char *line = maq_arena_printf(&arena, FLAG " %s", text);
    struct reader r = {.out = out, .diag = diag, .source = maq_str_of(line)};
    *out = (struct maq_slo){0};
    if (line)
        r.file = maq_diag_add_source(diag, FLAG, r.source.ptr, r.source.len);
    if (!line || (diag && !r.file)) {
        maq_arena_fini(&arena);
        return maq_no_memory(diag, "bounds on latencies");
    }
    struct maq_str rest = maq_str_of(line + strlen(FLAG) + 1), part;
    bool empty = maq_str_trim(rest).len == 0;
    if (empty)
        FAULT(&r, MAQ_CODE_SLO_FORM, ((struct maq_str){line, strlen(FLAG)}), FORM, "there is no bound");
    while (!empty && rest.ptr) {
        rest = maq_str_split(rest, ',', &part);
        struct maq_str bound = maq_str_trim(part);
        if (bound.len > 0)
            read_bound(&r, bound);
        else
            FAULT(&r, MAQ_CODE_SLO_FORM, part, FORM, "there is no bound between two commas, or behind the last one");
    }
    maq_arena_fini(&arena);
    if (r.status != MAQ_OK)
        *out = (struct maq_slo){0};
    return r.status;
}
