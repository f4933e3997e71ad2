/* SPDX-License-Identifier: Apache-2.0 */
/* diff_parts.c - lines and tables of a comparison, which its text and its page share. See diff_parts.h. */
#include "report/diff/diff_parts.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "plan/keys.h"

#define SETTINGS_MAX 16 /* of a line; the document has all */
#define ALIKE 1e-9      /* documents have 12 digits: what differs by less, of numbers computed from them, is the same */

static const char *const sides[] = {"before", "after"};

/* ---- what differs ------------------------------------------------------------------------------------------------- */

/* What a report says of itself, "-" where it does not. */
static struct maq_str text_at(const struct maq_diff *d, int side, const char *path)
{
    const struct maq_node *node = maq_diff_node(d, (enum maq_diff_side)side, path);
    return node && node->kind == MAQ_NODE_SCALAR ? node->text : MAQ_STR("-");
}

/* The name that the command line has for a key of a plan or a workload: "tp". */
static struct maq_str short_name(const struct maq_diff_setting *s)
{
    const struct maq_field *fields = strcmp(s->section, "plan") == 0       ? maq_plan_fields
                                     : strcmp(s->section, "workload") == 0 ? maq_workload_fields
                                                                           : NULL;
    const struct maq_field *field = fields ? maq_fields_find(fields, maq_str_of(s->key)) : NULL;
    struct maq_str first = maq_str_of(s->key);
    if (field && field->aliases)
        (void)maq_str_split(maq_str_of(field->aliases), '|', &first);
    return first;
}

static void add_value(struct maq_buf *b, const struct maq_node *node)
{
    char show[MAQ_SHOW_SIZE];
    if (!node)
        maq_buf_adds(b, "none");
    else if (node->kind == MAQ_NODE_SCALAR)
        maq_buf_adds(b, node->text.len > 0 ? maq_str_show(show, node->text) : "none");
    else
        maq_buf_addf(b, "%u of them", node->count);
}

/* Where something is from is no setting, and what follows from a name that differs is said by the name. */
static bool is_told(const struct maq_diff_setting *s)
{
    const char *last = strrchr(s->key, '.');
    last = last ? last + 1 : s->key;
    return !s->aside && strcmp(last, "source") != 0 && strcmp(last, "title") != 0;
}

static void section_line(const struct maq_lines *to, const struct maq_diff *d, const char *section, struct maq_buf *b)
{
    struct maq_arena arena;
    uint32_t told = 0, more = 0;
    b->len = 0;
    for (uint32_t i = 0; i < d->n_settings; i++) {
        const struct maq_diff_setting *s = &d->settings[i];
        if (strcmp(s->section, section) != 0 || !is_told(s))
            continue;
        if (told == SETTINGS_MAX) {
            more++;
            continue;
        }
        struct maq_str name = short_name(s);
        maq_buf_adds(b, told++ > 0 ? ", " : "");
        maq_buf_add(b, name.ptr, name.len);
        maq_buf_adds(b, name.len > 0 ? " " : "");
        add_value(b, s->of[MAQ_DIFF_BEFORE]);
        maq_buf_adds(b, " -> ");
        add_value(b, s->of[MAQ_DIFF_AFTER]);
    }
    if (more > 0)
        maq_buf_addf(b, ", and %u more", more);
    if (told == 0 || !b->ptr)
        return;
    maq_arena_init(&arena, 0);
    to->put(to->user, section, maq_text_clean(&arena, b->ptr));
    maq_arena_fini(&arena);
}

void maq_diff_asked_lines(const struct maq_lines *to, const struct maq_diff *d)
{
    struct maq_buf b;
    struct maq_arena arena;
    maq_buf_init(&b, 1 << 16);
    maq_arena_init(&arena, 0);
    for (int s = 0; s < MAQ_DIFF_SIDES; s++) {
        char version[MAQ_SHOW_SIZE], commit[MAQ_SHOW_SIZE];
        b.len = 0;
        maq_buf_addf(&b, "%s, of maquette %s (%s)", d->file[s],
                     maq_str_show(version, text_at(d, s, "maquette.version")),
                     maq_str_show(commit, text_at(d, s, "maquette.commit")));
        to->put(to->user, sides[s], maq_text_clean(&arena, b.ptr ? b.ptr : ""));
    }
    for (uint32_t i = 0; i < d->n_settings; i++) {
        bool first = strcmp(d->settings[i].section, "maquette") != 0; /* the lines above say it */
        for (uint32_t k = 0; k < i && first; k++)
            first = strcmp(d->settings[k].section, d->settings[i].section) != 0;
        if (first)
            section_line(to, d, d->settings[i].section, &b);
    }
    maq_arena_fini(&arena);
    maq_buf_fini(&b);
}

void maq_diff_verdict_lines(const struct maq_lines *to, const struct maq_diff *d)
{
    struct maq_arena arena;
    maq_arena_init(&arena, 0);
    for (int s = 0; s < MAQ_DIFF_SIDES; s++) {
        char *line = d->verdict[s] ? maq_arena_printf(&arena, "%s: %s", sides[s], d->verdict[s]) : NULL;
        if (line)
            to->put(to->user, sides[s], line);
    }
    maq_arena_fini(&arena);
}

/* ---- tables ------------------------------------------------------------------------------------------------------- */

static double most_of(struct maq_diff_pair value)
{
    return fmax(fabs(value.of[MAQ_DIFF_BEFORE]), fabs(value.of[MAQ_DIFF_AFTER]));
}

static bool is_alike(struct maq_diff_pair value)
{
    return fabs(maq_diff_change(value)) <= ALIKE * most_of(value);
}

/* Both numbers and their change; `most` decides in which unit. `counts`: what a report does not have is 0 in it. */
static void value_cells(struct maq_table *t, struct maq_diff_pair value, enum maq_diff_unit unit, double most,
                        bool counts)
{
    char buf[48];
    for (int s = 0; s < MAQ_DIFF_SIDES; s++)
        maq_table_cell(t, "%s", value.has[s] ? maq_diff_value(buf, value.of[s], unit, most, false) : "-");
    double change = maq_diff_change(value);
    bool told = counts || (value.has[MAQ_DIFF_BEFORE] && value.has[MAQ_DIFF_AFTER]);
    maq_table_cell(t, "%s", !told ? "" : is_alike(value) ? "same" : maq_diff_value(buf, change, unit, most, true));
}

/* Better or worse by more than the reports can tell. */
static enum maq_ink ink_of(const struct maq_diff_figure *f)
{
    double low, high;
    if (f->better == 0 || !maq_diff_change_interval(&low, &high, f) || (low <= 0 && high >= 0))
        return MAQ_INK_PLAIN;
    return (low > 0) == (f->better > 0) ? MAQ_INK_GOOD : MAQ_INK_BAD;
}

static const char *interval_head(const struct maq_diff *d)
{
    for (uint32_t i = 0; i < d->n_figures; i++)
        if (d->figures[i].confidence > 0)
            return d->figures[i].confidence > 0.9 ? "95 % interval" : "80 % interval";
    return "";
}

void maq_diff_figures_table(struct maq_table *t, const struct maq_diff *d)
{
    static const struct maq_table_column with[] = {{"", false, true},      {"before", true, false},
                                                   {"after", true, false}, {"change", true, false},
                                                   {"", true, false},      {"80 % interval", true, false}};
    static const struct maq_table_column with_95[] = {{"", false, true},      {"before", true, false},
                                                      {"after", true, false}, {"change", true, false},
                                                      {"", true, false},      {"95 % interval", true, false}};
    const char *head = interval_head(d);
    maq_table_init(t, head[0] == '9' ? with_95 : with, MAQ_COUNT(with) - (head[0] == '\0'));
    for (uint32_t i = 0; i < d->n_figures; i++) {
        const struct maq_diff_figure *f = &d->figures[i];
        double low, high, change;
        char a[48], b[48];
        maq_table_row(t, ink_of(f));
        maq_table_cell(t, "%s", f->name);
        value_cells(t, f->value, f->unit, most_of(f->value), false);
        bool moved = !is_alike(f->value) && maq_diff_relative(&change, f->value);
        maq_table_cell(t, "%s", moved && f->unit != MAQ_DIFF_SHARE ? maq_diff_percent(a, change) : "");
        if (moved && head[0] && maq_diff_change_interval(&low, &high, f))
            maq_table_cell(t, "%s to %s", maq_diff_percent(a, low), maq_diff_percent(b, high));
    }
}

bool maq_diff_row_is_nothing(const struct maq_diff_row *row)
{
    return row->value.of[0] == 0 && row->value.of[1] == 0;
}

static void add_row(struct maq_table *t, const struct maq_diff_table *table, const struct maq_diff_row *row,
                    double most, enum maq_ink ink)
{
    char buf[48];
    const double whole = table->whole.value.of[MAQ_DIFF_BEFORE];
    maq_table_row(t, ink);
    maq_table_cell(t, "%s", row->name);
    value_cells(t, row->value, table->unit,
                table->adds_up ? maq_diff_most_of_row(table->unit, most, most_of(row->value)) : most_of(row->value),
                table->adds_up);
    double change = table->adds_up && whole > 0 ? maq_diff_change(row->value) / whole : 0;
    if (table->adds_up)
        maq_table_cell(t, "%s", change == 0 ? "" : maq_diff_points(buf, change));
    else
        maq_table_cell(t, "%s",
                       maq_diff_relative(&change, row->value) && change != 0 ? maq_diff_percent(buf, change) : "");
}

void maq_diff_rows_table(struct maq_table *t, const struct maq_diff_table *table, uint32_t rows)
{
    static const struct maq_table_column parts[] = {{"", false, true},
                                                    {"before", true, false},
                                                    {"after", true, false},
                                                    {"change", true, false},
                                                    {"of the whole", true, false}};
    static const struct maq_table_column alone[] = {
        {"", false, true}, {"before", true, false}, {"after", true, false}, {"change", true, false}, {"", true, false}};
    struct maq_diff_row rest = {.name = "all others"};
    double most = most_of(table->whole.value);
    uint32_t shown = 0, left = 0;
    for (uint32_t i = 0; i < table->n; i++) {
        most = fmax(most, most_of(table->rows[i].value));
        left += !maq_diff_row_is_nothing(&table->rows[i]);
    }
    maq_table_init(t, table->adds_up ? parts : alone, MAQ_COUNT(parts));
    for (uint32_t i = 0; i < table->n; i++) {
        const struct maq_diff_row *row = &table->rows[i];
        if (maq_diff_row_is_nothing(row))
            continue;
        left--;
        if (shown + 1 < rows || left == 0 ? shown++ < rows : false) {
            add_row(t, table, row, most, MAQ_INK_PLAIN);
            continue;
        }
        for (int s = 0; s < MAQ_DIFF_SIDES; s++) {
            rest.value.of[s] += row->value.of[s];
            rest.value.has[s] |= row->value.has[s];
        }
    }
    if (table->adds_up && (rest.value.has[0] || rest.value.has[1]))
        add_row(t, table, &rest, most, MAQ_INK_FAINT);
    if (table->adds_up)
        add_row(t, table, &table->whole, most, MAQ_INK_TITLE);
}

/* ---- can it be told ------------------------------------------------------------------------------------------------ */

/* Names of the figures whose change is, or is not, more than the reports can tell. How many. */
static uint32_t add_names(struct maq_buf *b, const struct maq_diff *d, bool distinct)
{
    uint32_t n = 0;
    double low, high;
    for (uint32_t i = 0; i < d->n_figures; i++) {
        const struct maq_diff_figure *f = &d->figures[i];
        if (is_alike(f->value) || !maq_diff_change_interval(&low, &high, f) || distinct != (low > 0 || high < 0))
            continue;
        maq_buf_addf(b, "%s%s", n++ > 0 ? ", " : "", f->name);
    }
    return n;
}

void maq_diff_sentence(struct maq_buf *b, const struct maq_diff *d)
{
    struct maq_buf more, less;
    if (maq_diff_is_same(d)) {
        maq_buf_adds(b, d->n_settings == 0 ? "Nothing differs." : "Every figure is the same.");
        return;
    }
    maq_buf_init(&more, 4096);
    maq_buf_init(&less, 4096);
    uint32_t n_more = add_names(&more, d, true), n_less = add_names(&less, d, false);
    if (n_more > 0)
        maq_buf_addf(b, "Larger than %s: %s.", d->of, more.ptr ? more.ptr : "");
    if (n_less > 0)
        maq_buf_addf(b, "%sNot larger than %s: %s.", n_more > 0 ? " " : "", d->of, less.ptr ? less.ptr : "");
    if (n_more + n_less > 0)
        maq_buf_addf(
            b, " That is the %s of the change, with errors that know nothing of each other%s.", interval_head(d),
            d->is_prediction ? "; what two predictions have in common, kernels and links, cancels out of it" : "");
    b->failed |= more.failed || less.failed;
    maq_buf_fini(&more);
    maq_buf_fini(&less);
}
