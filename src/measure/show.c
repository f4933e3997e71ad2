/* SPDX-License-Identifier: Apache-2.0 */
/* show.c - what a file of measured kernels holds: `maquette profile show`. */
#include <string.h>

#include "base/check.h"
#include "base/units.h"
#include "graph/items.h"
#include "measure/json.h"
#include "measure/plan.h"
#include "report/page.h"

static bool same_machine(const struct maq_kernel_machine *a, const struct maq_kernel_machine *b)
{
    const char *const x[] = {a->device, a->gpu, a->driver, a->cuda, a->cublas, a->cudnn, a->nccl};
    const char *const y[] = {b->device, b->gpu, b->driver, b->cuda, b->cublas, b->cudnn, b->nccl};
    for (size_t i = 0; i < MAQ_COUNT(x); i++)
        if (strcmp(x[i], y[i]) != 0)
            return false;
    return true;
}

static void put_machine(struct maq_page *page, const struct maq_kernel_machine *at, uint32_t n)
{
    const struct {
        const char *name, *version;
    } parts[] = {
        {"driver", at->driver}, {"CUDA", at->cuda}, {"cuBLAS", at->cublas}, {"cuDNN", at->cudnn}, {"NCCL", at->nccl}};
    maq_page_putf(page, MAQ_INK_HEAD, "%s: %s", at->device, *at->gpu ? at->gpu : "a GPU without a name");
    for (size_t i = 0; i < MAQ_COUNT(parts); i++)
        if (*parts[i].version)
            maq_page_putf(page, MAQ_INK_PLAIN, ", %s %s", parts[i].name, parts[i].version);
    maq_page_putf(page, MAQ_INK_PLAIN, "; %u measurements\n", n);
}

static void put_machines(struct maq_page *page, const struct maq_kernel_rows *rows)
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
            put_machine(page, &rows->at[i].at, n);
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

static void put_rows(struct maq_page *page, const struct maq_kernel_rows *rows)
{
    static const struct maq_table_column columns[] = {
        {"operator", false, true}, {"device", false, false},  {"as", false, false},
        {"kernel", false, true},   {"n", true, false},        {"median", true, false},
        {"spread", true, false},   {"SM clock", true, false}, {"power", true, false}};
    struct maq_table t;
    char text[96], time[32];
    maq_table_init(&t, columns, MAQ_COUNT(columns));
    for (uint32_t i = 0; i < rows->n; i++) {
        const struct maq_kernel_row *row = &rows->at[i];
        struct maq_item item = {.is_coll = row->is_coll, .op = row->op, .coll = row->coll};
        maq_table_row(&t, MAQ_INK_PLAIN);
        maq_table_cell(&t, "%s", maq_item_describe(text, &item));
        maq_table_cell(&t, "%s", row->at.device);
        maq_table_cell(&t, "%s%s", maq_kernel_mode_name((enum maq_kernel_mode)row->mode), row->warm ? " warm" : "");
        maq_table_cell(&t, "%s", row->kernel);
        maq_table_cell(&t, "%u", row->times.n);
        maq_table_cell(&t, "%s", maq_format_time(time, row->times.median_s));
        maq_table_cell(&t, "%.1f %%", 100 * row->times.stddev_s / row->times.median_s);
        put_known(&t, row->state.sm_hz / 1e6, "MHz");
        put_known(&t, row->state.power_w, "W");
    }
    maq_table_print(page, &t, 0);
    maq_table_fini(&t);
}

enum maq_status maq_profile_show_text(char **out, const char *path, const struct maq_report_opts *opts,
                                      struct maq_diag *diag)
{
    struct maq_arena arena;
    struct maq_kernel_rows rows;
    struct maq_page page;
    maq_arena_init(&arena, 0);
    enum maq_status status = maq_kernel_rows_read(&rows, path, &arena, diag);
    if (status == MAQ_OK) {
        maq_page_init(&page, opts);
        put_machines(&page, &rows);
        if (rows.n == 0)
            maq_page_putf(&page, MAQ_INK_PLAIN, "%s holds no measurements yet\n", maq_text_clean(&arena, path));
        else
            maq_buf_addc(&page.out, '\n');
        if (rows.n > 0)
            put_rows(&page, &rows);
        status = maq_page_finish(out, &page, diag);
    }
    maq_arena_fini(&arena);
    return status;
}

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

enum maq_status maq_profile_show_json(char **out, const char *path, struct maq_diag *diag)
{
    struct maq_arena arena;
    struct maq_kernel_rows rows;
    struct maq_json_document document;
    maq_arena_init(&arena, 0);
    enum maq_status status = maq_kernel_rows_read(&rows, path, &arena, diag);
    if (status == MAQ_OK) {
        maq_json_begin(&document, "maquette.kernels/1");
        maq_json_text(document.root, "file", path);
        struct maq_json list = maq_json_list(document.root, "rows");
        for (uint32_t i = 0; i < rows.n; i++)
            add_row(list, &rows.at[i]);
        status = maq_json_finish(out, &document, diag);
    }
    maq_arena_fini(&arena);
    return status;
}
