/* SPDX-License-Identifier: Apache-2.0 */
/* page.c - text, colours, bars and aligned tables of a page, counted in terminal cells. See page.h. */
#include "report/page.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"

#define PAGE_MAX ((size_t)64 << 20)
#define GAP 2 /* blanks between columns */
#define DEFAULT_COLUMNS 100
#define LEAST_COLUMNS 40

void maq_page_init(struct maq_page *page, const struct maq_report_opts *opts)
{
    *page = (struct maq_page){.columns = DEFAULT_COLUMNS};
    maq_buf_init(&page->out, PAGE_MAX);
    if (!opts)
        return;
    page->color = opts->color;
    page->unicode = opts->unicode;
    if (opts->columns > 0)
        page->columns = opts->columns < LEAST_COLUMNS ? LEAST_COLUMNS : opts->columns;
}

enum maq_status maq_page_finish(char **out, struct maq_page *page, struct maq_diag *diag)
{
    maq_buf_adds(&page->out, "");
    if (!page->out.failed && page->out.ptr) {
        *out = page->out.ptr;
        return MAQ_OK;
    }
    maq_buf_fini(&page->out);
    return maq_no_memory(diag, "a report");
}

/* --- ink and plain text -------------------------------------------------------------------------------------- */

static const char *const inks[] = {
    [MAQ_INK_PLAIN] = "",         [MAQ_INK_TITLE] = "\x1b[1m", [MAQ_INK_HEAD] = "\x1b[1m", [MAQ_INK_FAINT] = "\x1b[2m",
    [MAQ_INK_BAD] = "\x1b[1;31m", [MAQ_INK_GOOD] = "\x1b[32m", [MAQ_INK_BAR] = "\x1b[36m"};

static void ink_on(struct maq_page *page, enum maq_ink ink)
{
    if (page->color)
        maq_buf_adds(&page->out, inks[ink]);
}

static void ink_off(struct maq_page *page, enum maq_ink ink)
{
    if (page->color && ink != MAQ_INK_PLAIN)
        maq_buf_adds(&page->out, "\x1b[0m");
}

static void blanks(struct maq_page *page, size_t n)
{
    while (n-- > 0)
        maq_buf_addc(&page->out, ' ');
}

void maq_page_putf(struct maq_page *page, enum maq_ink ink, const char *fmt, ...)
{
    char line[1024];
    va_list args;
    va_start(args, fmt);
    int n = maq__vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    if (n < 0)
        page->out.failed = true;
    ink_on(page, ink);
    maq_buf_adds(&page->out, line);
    ink_off(page, ink);
}

size_t maq_text_cells(struct maq_str s)
{
    size_t cells = 0;
    uint32_t cp;
    for (size_t i = 0; i < s.len; cells++)
        i += maq_utf8_next(&cp, s.ptr + i, s.len - i);
    return cells;
}

/* Bytes of the first `cells` characters. */
static size_t prefix_bytes(struct maq_str s, size_t cells)
{
    size_t i = 0;
    uint32_t cp;
    while (i < s.len && cells-- > 0)
        i += maq_utf8_next(&cp, s.ptr + i, s.len - i);
    return i;
}

/* A line may end before s[i]: at a blank that is not a number's before its unit, and behind a '+'. */
static bool may_break(struct maq_str s, size_t i)
{
    return (s.ptr[i] == ' ' && !(i + 1 < s.len && s.ptr[i + 1] == '%')) || s.ptr[i - 1] == '+';
}

/* Bytes that go into a line of so many cells: up to the last break, or as many as there is room for of a longer word. */
static size_t line_bytes(struct maq_str s, size_t cells)
{
    size_t most = prefix_bytes(s, cells), cut = most;
    while (cut > 0 && cut < s.len && !may_break(s, cut))
        cut--;
    return cut > 0 ? cut : most;
}

/* Takes what goes into the next line off `rest`. */
static struct maq_str take_line(struct maq_str *rest, size_t cells)
{
    if (rest->len == 0) /* a row may have fewer cells than columns */
        return (struct maq_str){0};
    struct maq_str line = {rest->ptr, line_bytes(*rest, cells)};
    size_t taken = line.len;
    while (taken < rest->len && rest->ptr[taken] == ' ')
        taken++;
    rest->ptr += taken;
    rest->len -= taken;
    return line;
}

/*
 * Control characters, and those that hide or reorder text (as in diag_format.c, without its escapes: this is a
 * title, not evidence).
 */
static bool is_unsafe(uint32_t cp)
{
    return cp == MAQ_UTF8_BAD || cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || cp == 0xad || cp == 0x61c ||
           (cp >= 0x200b && cp <= 0x200f) || (cp >= 0x2028 && cp <= 0x202e) || (cp >= 0x2060 && cp <= 0x206f) ||
           cp == 0xfeff || (cp >= 0xfff9 && cp <= 0xfffb) || (cp >= 0xe0000 && cp <= 0xe0fff);
}

const char *maq_text_clean(struct maq_arena *arena, const char *text)
{
    struct maq_str s = maq_str_of(text);
    char *copy = maq_arena_alloc(arena, s.len + 1, 1), *to = copy;
    if (!copy)
        return "";
    for (size_t i = 0; i < s.len;) {
        uint32_t cp;
        size_t n = maq_utf8_next(&cp, s.ptr + i, s.len - i);
        if (is_unsafe(cp)) {
            *to++ = '?';
        } else {
            memcpy(to, s.ptr + i, n);
            to += n;
        }
        i += n;
    }
    return copy;
}

void maq_page_field(struct maq_page *page, size_t label_width, const char *label, const char *text)
{
    struct maq_str rest = maq_str_of(text);
    size_t room = page->columns > label_width + 20 ? page->columns - label_width : 20;
    ink_on(page, MAQ_INK_FAINT);
    maq_buf_adds(&page->out, label);
    ink_off(page, MAQ_INK_FAINT);
    size_t cells = maq_text_cells(maq_str_of(label));
    blanks(page, cells < label_width ? label_width - cells : cells > 0);
    while (rest.len > 0) {
        struct maq_str line = take_line(&rest, room);
        maq_buf_add(&page->out, line.ptr, line.len);
        if (rest.len > 0) {
            maq_buf_addc(&page->out, '\n');
            blanks(page, label_width);
        }
    }
    maq_buf_addc(&page->out, '\n');
}

/*
 * Eighths of a cell where the terminal has block characters, whole cells of '#' otherwise. Anything above zero
 * shows.
 */
void maq_page_bar(struct maq_page *page, double share, size_t width)
{
    static const char *const eighths[] = {"", "\u258f", "\u258e", "\u258d", "\u258c", "\u258b", "\u258a", "\u2589"};
    double most = (double)width;
    double cells = share > 0 ? share * most : 0;
    size_t used = 0;
    cells = cells > most ? most : cells;
    ink_on(page, MAQ_INK_BAR);
    if (page->unicode) {
        unsigned parts = (unsigned)lround(cells * 8);
        parts = share > 0 && parts == 0 ? 1 : parts;
        for (; used < parts / 8; used++)
            maq_buf_adds(&page->out, "\u2588");
        maq_buf_adds(&page->out, eighths[parts % 8]);
        used += parts % 8 > 0;
    } else {
        size_t whole = (size_t)lround(cells);
        for (whole = share > 0 && whole == 0 ? 1 : whole; used < whole; used++)
            maq_buf_addc(&page->out, '#');
    }
    ink_off(page, MAQ_INK_BAR);
    blanks(page, used < width ? width - used : 0);
}

/* --- tables ------------------------------------------------------------------------------------------------- */

struct maq_table_row_data {
    struct maq_str cell[MAQ_TABLE_COLUMNS];
    size_t n;
    enum maq_ink ink;
};

void maq_table_init(struct maq_table *t, const struct maq_table_column *columns, size_t n)
{
    MAQ_ASSERT(n <= MAQ_TABLE_COLUMNS);
    *t = (struct maq_table){.columns = columns, .n_columns = n};
    maq_arena_init(&t->arena, PAGE_MAX);
}

void maq_table_fini(struct maq_table *t)
{
    maq_arena_fini(&t->arena);
}

void maq_table_row(struct maq_table *t, enum maq_ink ink)
{
    if (t->n_rows == t->size && !t->failed) {
        size_t size = t->size ? t->size * 2 : 32;
        struct maq_table_row_data *rows = MAQ_ARENA_NEW(&t->arena, struct maq_table_row_data, size);
        if (rows && t->n_rows > 0)
            memcpy(rows, t->rows, t->n_rows * sizeof *rows);
        t->failed = !rows;
        t->rows = rows ? rows : t->rows;
        t->size = rows ? size : t->size;
    }
    if (!t->failed)
        t->rows[t->n_rows++].ink = ink;
}

void maq_table_cell(struct maq_table *t, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    int n = maq__vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (t->failed || n < 0 || t->n_rows == 0) {
        t->failed = true;
        return;
    }
    struct maq_table_row_data *row = &t->rows[t->n_rows - 1];
    MAQ_ASSERT(row->n < t->n_columns);
    const char *copy = maq_arena_strdup(&t->arena, maq_str_of(text));
    t->failed |= !copy;
    row->cell[row->n++] = maq_str_of(copy);
}

/* Widths of the columns; columns that may shrink give way, from the last one on, until the row fits. */
static void measure(size_t *width, const struct maq_page *page, const struct maq_table *t, size_t indent)
{
    size_t total = indent;
    for (size_t c = 0; c < t->n_columns; c++) {
        width[c] = maq_text_cells(maq_str_of(t->columns[c].head));
        for (size_t r = 0; r < t->n_rows; r++) {
            size_t cells = maq_text_cells(t->rows[r].cell[c]);
            width[c] = cells > width[c] ? cells : width[c];
        }
        total += width[c] + (c > 0 && width[c] > 0 ? GAP : 0);
    }
    for (size_t c = t->n_columns; c-- > 0 && total > page->columns;) {
        if (!t->columns[c].shrink)
            continue;
        size_t least = 12, over = total - page->columns;
        size_t cut = width[c] > least + over ? over : width[c] > least ? width[c] - least : 0;
        width[c] -= cut;
        total -= cut;
    }
}

/* One line of a row; whether it goes on below. */
static bool put_line(struct maq_page *page, const struct maq_table *t, const size_t *width, struct maq_str *cells,
                     enum maq_ink ink, size_t indent)
{
    size_t owed = indent; /* blanks to write before the next text: none at the end of a line */
    bool more = false;
    for (size_t c = 0; c < t->n_columns; c++) {
        if (width[c] == 0)
            continue;
        bool cut = !t->wraps && maq_text_cells(cells[c]) > width[c];
        struct maq_str cell = cut ? cells[c] : take_line(&cells[c], width[c]);
        if (cut)
            cell.len = prefix_bytes(cell, width[c] - 3);
        size_t n = cut ? width[c] : maq_text_cells(cell);
        owed += t->columns[c].right ? width[c] - n : 0;
        if (n > 0) {
            blanks(page, owed);
            owed = 0;
            ink_on(page, ink);
            maq_buf_add(&page->out, cell.ptr, cell.len);
            maq_buf_adds(&page->out, cut ? "..." : "");
            ink_off(page, ink);
        }
        owed += GAP + (t->columns[c].right ? 0 : width[c] - n);
        more |= t->wraps && cells[c].len > 0;
    }
    maq_buf_addc(&page->out, '\n');
    return more;
}

static void put_row(struct maq_page *page, const struct maq_table *t, const size_t *width, const struct maq_str *cells,
                    enum maq_ink ink, size_t indent)
{
    struct maq_str rest[MAQ_TABLE_COLUMNS];
    memcpy(rest, cells, sizeof rest);
    while (put_line(page, t, width, rest, ink, indent))
        ;
}

void maq_table_print(struct maq_page *page, const struct maq_table *t, size_t indent)
{
    size_t width[MAQ_TABLE_COLUMNS];
    struct maq_str head[MAQ_TABLE_COLUMNS] = {{0}};
    if (t->failed) {
        page->out.failed = true;
        return;
    }
    measure(width, page, t, indent);
    bool any = false;
    for (size_t c = 0; c < t->n_columns; c++) {
        head[c] = maq_str_of(t->columns[c].head);
        any |= head[c].len > 0;
    }
    if (any)
        put_row(page, t, width, head, MAQ_INK_FAINT, indent);
    for (size_t r = 0; r < t->n_rows; r++)
        put_row(page, t, width, t->rows[r].cell, t->rows[r].ink, indent);
}

struct maq_str maq_table_at(const struct maq_table *t, size_t row, size_t column)
{
    MAQ_ASSERT(row < t->n_rows && column < t->n_columns);
    return t->rows[row].cell[column];
}

enum maq_ink maq_table_ink(const struct maq_table *t, size_t row)
{
    MAQ_ASSERT(row < t->n_rows);
    return t->rows[row].ink;
}
