/* SPDX-License-Identifier: Apache-2.0 */
/* run_text.c - ranks of a program that ran, as text: what they did, in what time, and who priced it. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "report/page.h"
#include "report/words.h"

#define LABEL 14
#define ROWS 8  /* operators that are listed */
#define NAMED 8 /* ranks, in a line */

static const char *share_name(size_t provider)
{
    return provider == MAQ_PROVIDER_NONE ? "copies and rules" : maq_provider_name((enum maq_provider)provider);
}

/* "fitted 61 %, analytical 20 %, modelled 15 %" */
static void put_shares(struct maq_buf *b, const struct maq_launch_rank *r)
{
    if (r->device_ns == 0)
        return;
    double all = (double)r->device_ns;
    for (size_t i = MAQ_PROVIDER_COUNT; i-- > 0;)
        if (r->by_provider_ns[i] > 0)
            maq_buf_addf(b, "%s%s %.0f %%", b->len > 0 ? ", " : "", share_name(i),
                         100 * (double)r->by_provider_ns[i] / all);
    if (r->modelled_ns > 0)
        maq_buf_addf(b, "%skernels as streams of bytes %.0f %%", b->len > 0 ? ", " : "",
                     100 * (double)r->modelled_ns / all);
}

static void put_status(struct maq_page *page, const struct maq_launch_rank *r)
{
    bool fine = r->status == 0;
    if (r->status > 128)
        maq_page_putf(page, MAQ_INK_BAD, "ended by signal %d", r->status - 128);
    else
        maq_page_putf(page, fine ? MAQ_INK_PLAIN : MAQ_INK_BAD, "exit status %d", r->status);
}

static void put_one(struct maq_page *page, const struct maq_launch_rank *r)
{
    char a[32], b[32], c[32], text[512];
    struct maq_buf shares;
    maq__snprintf(text, sizeof text, "%.2f s of the host's processors, %s of its memory", r->host_cpu_s,
                  maq_format_bytes(a, (double)r->host_peak_bytes));
    if (!r->records) {
        maq_page_field(page, LABEL, "host", text);
        maq_page_putf(page, MAQ_INK_PLAIN, "\nThe program used no device.\n");
        return;
    }
    maq_page_putf(page, MAQ_INK_PLAIN, "%-*s", LABEL, "calls");
    maq_page_putf(page, MAQ_INK_PLAIN, "%s: %s launches, %s collectives", maq_words_integer(a, (int64_t)r->calls),
                  maq_words_integer(b, (int64_t)r->launches), maq_words_integer(c, (int64_t)r->collectives));
    maq_page_putf(page, MAQ_INK_PLAIN, ", %s messages", maq_words_integer(a, (int64_t)r->messages));
    maq_page_putf(page, MAQ_INK_PLAIN, ", %s exchanges; %s distinct operators, %s communicators\n",
                  maq_words_integer(a, (int64_t)r->exchanges), maq_words_integer(b, r->operators),
                  maq_words_integer(c, r->communicators));
    maq_page_field(page, LABEL, "virtual time", maq_format_time(a, 1e-9 * (double)r->virtual_ns));
    maq_buf_init(&shares, 512);
    put_shares(&shares, r);
    maq_page_putf(page, MAQ_INK_PLAIN, "%-*s%s%s%s\n", LABEL, "device time",
                  maq_format_time(a, 1e-9 * (double)r->device_ns), shares.len > 0 ? ": " : "",
                  shares.len > 0 ? shares.ptr : "");
    maq_buf_fini(&shares);
    maq_page_putf(page, MAQ_INK_PLAIN, "%-*s%s on the device%s\n", LABEL, "memory",
                  maq_format_bytes(a, (double)r->peak_bytes), r->out_of_memory ? ", which ran out of it" : "");
    maq_page_field(page, LABEL, "host", text);
    maq_page_putf(page, MAQ_INK_PLAIN, "%-*s%s%s%s\n", LABEL, "trace", maq_format_bytes(a, (double)r->trace_bytes),
                  r->trace ? " in " : ", not kept", r->trace ? r->trace : "");
}

static void put_ranks(struct maq_page *page, const struct maq_launch *s)
{
    static const struct maq_table_column columns[] = {{"rank", true, false},          {"status", true, false},
                                                      {"calls", true, false},         {"device time", true, false},
                                                      {"device memory", true, false}, {"host", true, false}};
    struct maq_table t;
    char text[32];
    maq_table_init(&t, columns, MAQ_COUNT(columns));
    for (uint32_t i = 0; i < s->n_ranks; i++) {
        const struct maq_launch_rank *r = &s->rank[i];
        maq_table_row(&t, r->status == 0 ? MAQ_INK_PLAIN : MAQ_INK_BAD);
        maq_table_cell(&t, "%u", r->rank);
        maq_table_cell(&t, "%d", r->status);
        maq_table_cell(&t, "%s", maq_words_integer(text, (int64_t)r->calls));
        maq_table_cell(&t, "%s", maq_format_time(text, 1e-9 * (double)r->device_ns));
        maq_table_cell(&t, "%s", maq_format_bytes(text, (double)r->peak_bytes));
        maq_table_cell(&t, "%s", maq_format_bytes(text, (double)r->host_peak_bytes));
    }
    maq_table_print(page, &t, 0);
    maq_table_fini(&t);
}

/* ---- operators by their time ---- */

static double time_of(const struct maq_asked *a)
{
    return (double)a->ns * (double)a->launches;
}

/* By time, equal ones in the order of asking. */
static int compare(const void *left, const void *right)
{
    const struct maq_asked *a = *(const struct maq_asked *const *)left, *b = *(const struct maq_asked *const *)right;
    double x = time_of(a), y = time_of(b);
    if (x != y)
        return x < y ? 1 : -1;
    return (a > b) - (a < b);
}

static void put_operators(struct maq_page *page, const struct maq_launch *s)
{
    static const struct maq_table_column columns[] = {{"operator", false, true},
                                                      {"launches", true, false},
                                                      {"each", true, false},
                                                      {"together", true, false},
                                                      {"priced as", false, false}};
    struct maq_arena arena;
    struct maq_table t;
    char text[32];
    maq_arena_init(&arena, 0);
    const struct maq_asked **rows = MAQ_ARENA_NEW(&arena, const struct maq_asked *, s->n_asked);
    if (!rows || s->n_asked == 0) {
        maq_arena_fini(&arena);
        return;
    }
    for (uint32_t i = 0; i < s->n_asked; i++)
        rows[i] = &s->asked[i];
    qsort(rows, s->n_asked, sizeof *rows, compare);
    maq_table_init(&t, columns, MAQ_COUNT(columns));
    for (uint32_t i = 0; i < s->n_asked && i < ROWS; i++) {
        const struct maq_asked *a = rows[i];
        maq_table_row(&t, MAQ_INK_PLAIN);
        if (a->collective)
            maq_table_cell(&t, "%s of %s over %u ranks", a->name, maq_format_bytes(text, (double)a->bytes), a->ranks);
        else
            maq_table_cell(&t, "%s", maq_text_clean(&arena, a->name));
        maq_table_cell(&t, "%s", maq_words_integer(text, (int64_t)a->launches));
        maq_table_cell(&t, "%s", maq_format_time(text, 1e-9 * (double)a->ns));
        maq_table_cell(&t, "%s", maq_format_time(text, 1e-9 * time_of(a)));
        maq_table_cell(&t, "%s", a->modelled ? "stream of bytes" : share_name(a->provider));
    }
    maq_page_putf(page, MAQ_INK_PLAIN, "\n");
    maq_table_print(page, &t, 0);
    maq_table_fini(&t);
    if (s->n_asked > ROWS)
        maq_page_putf(page, MAQ_INK_FAINT, "and %u more\n", s->n_asked - ROWS);
    maq_arena_fini(&arena);
}

/* Of these, ranks that may have had more to say. */
static void put_failed(struct maq_page *page, const struct maq_launch *s)
{
    for (uint32_t i = 0; i < s->n_first; i++) {
        const struct maq_launch_first *f = &s->first[i];
        if (f->status == 0)
            continue;
        maq_page_putf(page, MAQ_INK_PLAIN, "%-*s", LABEL, "failed");
        maq_page_putf(page, MAQ_INK_BAD, "rank %u of those, exit status %d (`--rank %u` shows why): nothing is kept\n",
                      f->rank, (int)f->status, f->rank);
        return;
    }
}

/* Ranks whose words the program read. */
static void put_first(struct maq_page *page, const struct maq_launch *s)
{
    if (s->n_first == 0 && s->n_kept == 0)
        return;
    maq_page_putf(page, MAQ_INK_PLAIN, "%-*s", LABEL, "read");
    if (s->n_first > 0)
        maq_page_putf(page, MAQ_INK_PLAIN, "what rank%s", s->n_first > 1 ? "s" : "");
    for (uint32_t i = 0; i < s->n_first && i < NAMED; i++)
        maq_page_putf(page, MAQ_INK_PLAIN, "%s %u", i > 0 ? "," : "", s->first[i].rank);
    if (s->n_first > NAMED)
        maq_page_putf(page, MAQ_INK_PLAIN, " and %u more", s->n_first - NAMED);
    if (s->n_first > 0)
        maq_page_putf(page, MAQ_INK_PLAIN, " said, which ran first%s", s->n_kept > 0 ? "; and " : "");
    if (s->n_kept > 0)
        maq_page_putf(page, MAQ_INK_PLAIN, "what %u rank%s said in an earlier run", s->n_kept,
                      s->n_kept > 1 ? "s" : "");
    maq_page_putf(page, MAQ_INK_PLAIN, "\n");
    put_failed(page, s);
}

enum maq_status maq_report_launch_text(char **out, const struct maq_launch *s, const struct maq_report_opts *opts,
                                       struct maq_diag *diag)
{
    struct maq_page page;
    char a[32];
    maq_page_init(&page, opts);
    if (s->n_ranks == 1) {
        maq_page_putf(&page, MAQ_INK_TITLE, "rank %u of %s", s->rank[0].rank, maq_words_integer(a, s->world));
        maq_page_putf(&page, MAQ_INK_PLAIN, ", %u on a node, on %s: ", s->per_node, s->device);
        put_status(&page, &s->rank[0]);
        maq_page_putf(&page, MAQ_INK_PLAIN, "\n\n");
        put_one(&page, &s->rank[0]);
    } else {
        maq_page_putf(&page, MAQ_INK_TITLE, "all %u ranks at once", s->n_ranks);
        maq_page_putf(&page, MAQ_INK_PLAIN, ", %u on a node, on %s\n\n", s->per_node, s->device);
        put_ranks(&page, s);
    }
    if (s->store_requests > 0)
        maq_page_putf(&page, MAQ_INK_PLAIN, "%-*s%s requests, %u keys made up for ranks that are not there\n", LABEL,
                      "store", maq_words_integer(a, (int64_t)s->store_requests), s->invented);
    put_first(&page, s);
    put_operators(&page, s);
    return maq_page_finish(out, &page, diag);
}
