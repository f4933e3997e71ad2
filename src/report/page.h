/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page.h - text for a terminal: a growing page, tables that line up, bars.
 *
 * All text is UTF-8; a character counts one cell (names in the catalogue are ASCII; what a user writes is counted the
 * same way). Colours are put around cells after they have been padded, so that they never shift a column.
 */
#ifndef MAQ_REPORT_PAGE_H
#define MAQ_REPORT_PAGE_H

#include "base/arena.h"
#include "base/str.h"
#include "maquette/report.h"

enum maq_ink { MAQ_INK_PLAIN, MAQ_INK_TITLE, MAQ_INK_HEAD, MAQ_INK_FAINT, MAQ_INK_BAD, MAQ_INK_GOOD, MAQ_INK_BAR };

struct maq_page {
    struct maq_buf out;
    uint32_t columns;
    bool color, unicode;
};

void maq_page_init(struct maq_page *page, const struct maq_report_opts *opts);
/* The page's text to the caller of the public function; MAQ_NO_MEMORY when any append failed. */
enum maq_status maq_page_finish(char **out, struct maq_page *page, struct maq_diag *diag);

void maq_page_putf(struct maq_page *page, enum maq_ink ink, const char *fmt, ...) MAQ_PRINTF(3, 4);
/* "label     text", the text broken between words and continued under itself. */
void maq_page_field(struct maq_page *page, size_t label_width, const char *label, const char *text);
/* Takes a line of a report: its label, "" where it goes on with the one before, and its text, without control characters. */
struct maq_lines {
    void (*put)(void *user, const char *label, const char *text);
    void *user;
};
/* share (0..1) of `width` cells, padded with blanks to the width. */
void maq_page_bar(struct maq_page *page, double share, size_t width);

/* Characters of s; bytes that are not UTF-8 count one each. */
size_t maq_text_cells(struct maq_str s);
/* A name that a user may have written, without control characters; in `arena`, "" when out of memory. */
const char *maq_text_clean(struct maq_arena *arena, const char *text);

struct maq_table_column {
    const char *head;
    bool right;  /* numbers */
    bool shrink; /* gives way when the table is wider than the page: what it holds is cut with "..." */
};

#define MAQ_TABLE_COLUMNS 16

struct maq_table {
    struct maq_arena arena;
    const struct maq_table_column *columns;
    size_t n_columns, n_rows, size;
    struct maq_table_row_data *rows;
    bool wraps; /* what columns that give way hold goes on below, between words, and is not cut */
    bool failed;
};

/* columns is borrowed. */
void maq_table_init(struct maq_table *t, const struct maq_table_column *columns, size_t n);
void maq_table_fini(struct maq_table *t);
/* Begins a row; cells follow from the left, missing ones are empty. */
void maq_table_row(struct maq_table *t, enum maq_ink ink);
void maq_table_cell(struct maq_table *t, const char *fmt, ...) MAQ_PRINTF(2, 3);
void maq_table_print(struct maq_page *page, const struct maq_table *t, size_t indent);
/* A cell, for who prints tables elsewhere, and the ink of its row. */
struct maq_str maq_table_at(const struct maq_table *t, size_t row, size_t column);
enum maq_ink maq_table_ink(const struct maq_table *t, size_t row);

#endif
