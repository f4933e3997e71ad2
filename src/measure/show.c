/* SPDX-License-Identifier: Apache-2.0 */
/* show.c - what a file of measured kernels holds: `maquette profile show`, as text, JSON and a page. */
#include <string.h>

#include "base/check.h"
#include "base/units.h"
#include "measure/parts.h"
#include "measure/plan.h"

static bool same_machine(const struct maq_kernel_machine *a, const struct maq_kernel_machine *b)
{
    const char *const x[] = {a->device, a->gpu, a->driver, a->cuda, a->cublas, a->cudnn, a->nccl};
    const char *const y[] = {b->device, b->gpu, b->driver, b->cuda, b->cublas, b->cudnn, b->nccl};
    for (size_t i = 0; i < MAQ_COUNT(x); i++)
        if (strcmp(x[i], y[i]) != 0)
            return false;
    return true;
}

/* Each machine that rows are of: its device, and "NVIDIA H100, driver 550.54; 3 measurements". */
static void put_machine(const struct maq_lines *to, const struct maq_kernel_machine *at, uint32_t n)
{
    const struct {
        const char *name, *version;
    } parts[] = {
        {"driver", at->driver}, {"CUDA", at->cuda}, {"cuBLAS", at->cublas}, {"cuDNN", at->cudnn}, {"NCCL", at->nccl}};
    struct maq_buf words;
    struct maq_arena arena;
    maq_buf_init(&words, 1 << 14);
    maq_arena_init(&arena, 0);
    maq_buf_adds(&words, *at->gpu ? maq_text_clean(&arena, at->gpu) : "a GPU without a name");
    for (size_t i = 0; i < MAQ_COUNT(parts); i++)
        if (*parts[i].version)
            maq_buf_addf(&words, ", %s %s", parts[i].name, maq_text_clean(&arena, parts[i].version));
    maq_buf_addf(&words, "; %u measurements", n);
    to->put(to->user, maq_text_clean(&arena, at->device), words.ptr ? words.ptr : "");
    maq_arena_fini(&arena);
    maq_buf_fini(&words);
}

static void put_machines(const struct maq_lines *to, const struct maq_kernel_rows *rows)
{
    for (uint32_t i = 0; i < rows->n; i++) {
        uint32_t n = 0;
        bool first = true;
        for (uint32_t j = 0; j < rows->n; j++)
            if (same_machine(&rows->at[j].at, &rows->at[i].at)) {
                first = first && j >= i;
                n++;
            }
        if (first)
            put_machine(to, &rows->at[i].at, n);
    }
}

/* "1755 MHz"; a dash when it is not known. */
static void put_known(struct maq_table *t, double value, const char *unit)
{
    if (value > 0)
        maq_table_cell(t, "%.0f %s", value, unit);
    else
        maq_table_cell(t, "-");
}

static void make_table(struct maq_table *t, const struct maq_kernel_rows *rows, uint32_t most)
{
    static const struct maq_table_column columns[] = {
        {"operator", false, true}, {"device", false, false},  {"as", false, false},
        {"kernel", false, true},   {"n", true, false},        {"median", true, false},
        {"spread", true, false},   {"SM clock", true, false}, {"power", true, false}};
    char text[96], time[32];
    maq_table_init(t, columns, MAQ_COUNT(columns));
    for (uint32_t i = 0; i < rows->n && i < most; i++) {
        const struct maq_kernel_row *row = &rows->at[i];
        maq_table_row(t, MAQ_INK_PLAIN);
        maq_table_cell(t, "%s", maq_profile_row_words(text, row));
        maq_table_cell(t, "%s", row->at.device);
        maq_table_cell(t, "%s%s", maq_kernel_mode_name((enum maq_kernel_mode)row->mode), row->warm ? " warm" : "");
        maq_table_cell(t, "%s", row->kernel);
        maq_table_cell(t, "%u", row->times.n);
        maq_table_cell(t, "%s", maq_format_time(time, row->times.median_s));
        maq_table_cell(t, "%.1f %%", 100 * row->times.stddev_s / row->times.median_s);
        put_known(t, row->state.sm_hz / 1e6, "MHz");
        put_known(t, row->state.power_w, "W");
    }
}

static void put_line(void *user, const char *label, const char *text)
{
    maq_page_putf(user, MAQ_INK_HEAD, "%s: ", label);
    maq_page_putf(user, MAQ_INK_PLAIN, "%s\n", text);
}

enum maq_status maq_profile_show_text(char **out, const char *path, const struct maq_report_opts *opts,
                                      struct maq_diag *diag)
{
    struct maq_arena arena;
    struct maq_kernel_rows rows;
    struct maq_page page;
    struct maq_table table;
    const struct maq_lines to = {put_line, &page};
    maq_arena_init(&arena, 0);
    enum maq_status status = maq_kernel_rows_read(&rows, path, &arena, diag);
    if (status == MAQ_OK) {
        maq_page_init(&page, opts);
        put_machines(&to, &rows);
        if (rows.n == 0) {
            maq_page_putf(&page, MAQ_INK_PLAIN, "%s holds no measurements yet\n", maq_text_clean(&arena, path));
        } else {
            maq_buf_addc(&page.out, '\n');
            make_table(&table, &rows, UINT32_MAX);
            maq_table_print(&page, &table, 0);
            maq_table_fini(&table);
        }
        status = maq_page_finish(out, &page, diag);
    }
    maq_arena_fini(&arena);
    return status;
}

/* ---- JSON ----------------------------------------------------------------------------------------------------- */

static void add_row(struct maq_json list, const struct maq_kernel_row *row)
{
    struct maq_json map = maq_json_item(list);
    maq_json_text(map, "device", row->at.device);
    maq_json_text(map, "gpu", row->at.gpu);
    maq_json_text(map, "driver", row->at.driver);
    maq_json_text(map, "cuda", row->at.cuda);
    maq_json_text(map, "cublas", row->at.cublas);
    maq_json_text(map, "cudnn", row->at.cudnn);
    maq_json_text(map, "nccl", row->at.nccl);
    maq_profile_json_key(map, row->is_coll, &row->op, &row->coll);
    maq_json_text(map, "mode", maq_kernel_mode_name((enum maq_kernel_mode)row->mode));
    maq_json_text(map, "cache", row->warm ? "warm" : "cold");
    maq_json_text(map, "kernel", row->kernel);
    maq_profile_json_times(map, &row->times);
    const struct {
        const char *name;
        double value;
    } known[] = {{"sm_clock_hz", row->state.sm_hz},
                 {"memory_clock_hz", row->state.memory_hz},
                 {"power_w", row->state.power_w},
                 {"temperature_c", row->state.celsius}};
    for (size_t i = 0; i < MAQ_COUNT(known); i++) {
        if (known[i].value > 0)
            maq_json_real(map, known[i].name, known[i].value);
        else
            maq_json_null(map, known[i].name);
    }
    maq_json_text(map, "created", row->created);
}

static enum maq_status make_json(char **out, const struct maq_kernel_rows *rows, const char *path,
                                 struct maq_diag *diag)
{
    struct maq_json_document document;
    maq_json_begin(&document, "maquette.kernels/1");
    maq_json_text(document.root, "file", path);
    struct maq_json list = maq_json_list(document.root, "rows");
    for (uint32_t i = 0; i < rows->n; i++)
        add_row(list, &rows->at[i]);
    return maq_json_finish(out, &document, diag);
}

enum maq_status maq_profile_show_json(char **out, const char *path, struct maq_diag *diag)
{
    struct maq_arena arena;
    struct maq_kernel_rows rows;
    maq_arena_init(&arena, 0);
    enum maq_status status = maq_kernel_rows_read(&rows, path, &arena, diag);
    if (status == MAQ_OK)
        status = make_json(out, &rows, path, diag);
    maq_arena_fini(&arena);
    return status;
}

/* ---- the page -------------------------------------------------------------------------------------------------- */

static void put_fact(void *user, const char *label, const char *text)
{
    maq_html_fact(user, label, text);
}

static const char *row_name(char buf[96], const void *of, uint32_t i)
{
    return maq_profile_row_words(buf, &((const struct maq_kernel_rows *)of)->at[i]);
}

static void put_page(struct maq_html *h, const struct maq_kernel_rows *rows, const char *path)
{
    const struct maq_lines to = {put_fact, h};
    struct maq_arena arena;
    struct maq_table t;
    maq_arena_init(&arena, 0);
    maq_html_begin(h, "profile", "Measured kernels");
    h->nature = "Kernels measured on a GPU.";
    maq_html_facts(h);
    maq_html_fact(h, "file", maq_text_clean(&arena, path));
    put_machines(&to, rows);
    maq_html_end_facts(h);
    if (rows->n == 0)
        maq_html_verdict(h, MAQ_HTML_WARN, "the file holds no measurements yet");
    maq_html_put(h, "</header>\n<main>\n");
    if (rows->n > 0) {
        maq_html_section(h, "times", "How long they take");
        maq_html_chart(h, "kinds", "bars", "Each measurement by its kind: the median of its repetitions.");
        maq_html_end_section(h);
        maq_html_section(h, "rows", "The measurements");
        make_table(&t, rows, MAQ_PROFILE_PAGE_ROWS);
        maq_html_table(h, &t, NULL);
        maq_table_fini(&t);
        if (rows->n > MAQ_PROFILE_PAGE_ROWS)
            maq_html_note(h, "and %u more, in the document", rows->n - MAQ_PROFILE_PAGE_ROWS);
        maq_html_note(h, "Spread: the standard deviation over the median.");
        maq_html_end_section(h);
    }
    maq_arena_fini(&arena);
}

enum maq_status maq_profile_show_html(char **out, const char *path, const struct maq_report_opts *opts,
                                      struct maq_diag *diag)
{
    struct maq_arena arena;
    struct maq_kernel_rows rows;
    struct maq_html h = {0};
    char *document;
    (void)opts;
    maq_arena_init(&arena, 0);
    enum maq_status status = maq_kernel_rows_read(&rows, path, &arena, diag);
    if (status == MAQ_OK)
        status = make_json(&document, &rows, path, diag);
    if (status == MAQ_OK) {
        put_page(&h, &rows, path);
        status = maq_profile_finish_page(out, &h, document, maq_profile_names(rows.n, row_name, &rows), diag);
    }
    maq_arena_fini(&arena);
    return status;
}
