/* SPDX-License-Identifier: Apache-2.0 */
/* html.c - the shell of a page, escaping, tables, places for charts. See html.h. */
#include "report/html/html.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "report/html/assets.h"
#include "report/job_text.h"

#define PAGE_MAX ((size_t)64 * 1024 * 1024)

/* --- text ------------------------------------------------------------------------------------------------------ */

void maq_html_put(struct maq_html *h, const char *markup)
{
    maq_buf_adds(&h->out, markup);
}

void maq_html_putf(struct maq_html *h, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    va_start(args, fmt);
    int n = maq__vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    h->out.failed |= n < 0 || (size_t)n >= sizeof text;
    maq_buf_adds(&h->out, text);
}

static const char *entity(uint32_t c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

/* Control characters, noncharacters and marks that turn the direction of text are not passed on. */
static bool is_silent(uint32_t c)
{
    return (c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7F && c < 0xA0) || (c >= 0x202A && c <= 0x202E) ||
           (c >= 0x2066 && c <= 0x2069) || (c & 0xFFFEu) == 0xFFFEu;
}

void maq_html_text(struct maq_html *h, struct maq_str text)
{
    for (size_t i = 0; i < text.len;) {
        uint32_t c;
        size_t n = maq_utf8_next(&c, text.ptr + i, text.len - i);
        const char *name = entity(c);
        if (name)
            maq_buf_adds(&h->out, name);
        else if (c == MAQ_UTF8_BAD)
            maq_buf_adds(&h->out, "\uFFFD");
        else if (!is_silent(c))
            maq_buf_add(&h->out, text.ptr + i, n);
        i += n;
    }
}

void maq_html_textf(struct maq_html *h, const char *fmt, ...)
{
    char text[4096];
    va_list args;
    va_start(args, fmt);
    int n = maq__vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    h->out.failed |= n < 0;
    maq_html_text(h, maq_str_of(n < 0 ? "" : text));
}

static void put_text(struct maq_html *h, const char *text)
{
    maq_html_text(h, maq_str_of(text));
}

struct maq_html_assets maq_report_html_assets(void)
{
    return (struct maq_html_assets){maq__html_style, maq__html_script, maq__html_script_hash};
}

/* --- shell ----------------------------------------------------------------------------------------------------- */

/* What the numbers of a report are, where they are not a prediction. */
static const char *nature_of(const char *kind)
{
    static const struct {
        const char *kind, *says;
    } others[] = {
        {"diff", "Two reports side by side."},
        {"graph", "What a captured job holds."},
        {"replay", "A captured job simulated, not measured."},
        {"risk fit", "What was learnt of recorded times."},
        {"risk replay", "A recorded job simulated, not measured."},
        {"validate", "Predictions beside what was measured."},
    };
    for (size_t i = 0; i < MAQ_COUNT(others); i++)
        if (strcmp(kind, others[i].kind) == 0)
            return others[i].says;
    return "A prediction, not a measurement.";
}

void maq_html_begin(struct maq_html *h, const char *kind, const char *title)
{
    h->nature = nature_of(kind);
    maq_buf_init(&h->out, PAGE_MAX);
    maq_html_put(h, "<!DOCTYPE html>\n<html lang=\"en\" class=\"plain\">\n<head>\n<meta charset=\"utf-8\">\n"
                    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src '");
    maq_html_put(h, maq__html_script_hash);
    maq_html_put(h, "'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">\n"
                    "<meta name=\"color-scheme\" content=\"light dark\">\n"
                    "<link rel=\"icon\" href=\"data:,\">\n<title>");
    maq_html_textf(h, "%.300s - maquette %s", title, kind);
    maq_html_put(h, "</title>\n<style>\n");
    maq_html_put(h, maq__html_style);
    maq_html_put(h, "</style>\n</head>\n<body>\n<header>\n<div class=\"kicker\"><span>maquette ");
    put_text(h, kind);
    maq_html_put(h, "</span><button type=\"button\" id=\"theme\" hidden>dark</button></div>\n<h1>");
    put_text(h, title);
    maq_html_put(h, "</h1>\n");
}

/* A JSON document inside a <script>: '<' stands in its strings alone, and may be written otherwise there. */
static void put_json(struct maq_html *h, const char *id, struct maq_str json)
{
    maq_html_putf(h, "<script type=\"application/json\" id=\"%s\">", id);
    while (json.ptr && json.len > 0) {
        struct maq_str head;
        size_t before = json.len;
        json = maq_str_split(json, '<', &head);
        maq_buf_add(&h->out, head.ptr, head.len);
        if (head.len < before)
            maq_html_put(h, "\\u003c");
    }
    maq_html_put(h, "</script>\n");
}

enum maq_status maq_html_finish(char **out, struct maq_html *h, char *document, const struct maq_buf *more,
                                struct maq_diag *diag)
{
    maq_html_put(h, "</main>\n<footer><p>maquette ");
    put_text(h, maq_version());
    maq_html_put(h, " (");
    put_text(h, maq_build_commit());
    maq_html_put(h, "). ");
    maq_html_put(h, h->nature);
    maq_html_put(
        h,
        " The page carries the report's JSON document (element "
        "<code>report</code>); it needs no network and loads nothing. Charts: Chart.js, MIT licence.</p></footer>\n");
    h->out.failed |= !document || (more && more->failed);
    put_json(h, "report", maq_str_of(document ? document : ""));
    if (more && !more->failed)
        put_json(h, "more", (struct maq_str){more->ptr, more->len});
    free(document);
    maq_html_put(h, "<script>");
    maq_html_put(h, maq__html_script);
    maq_html_put(h, "</script>\n</body>\n</html>\n");
    if (h->out.failed) {
        maq_buf_fini(&h->out);
        return maq_no_memory(diag, "a page");
    }
    *out = maq_buf_take(&h->out);
    return MAQ_OK;
}

/* --- facts ----------------------------------------------------------------------------------------------------- */

void maq_html_facts(struct maq_html *h)
{
    maq_html_put(h, "<dl class=\"facts\">\n");
}

void maq_html_fact(struct maq_html *h, const char *term, const char *text)
{
    maq_html_put(h, "<div><dt>");
    put_text(h, term);
    maq_html_put(h, "</dt><dd>");
    put_text(h, text);
    maq_html_put(h, "</dd></div>\n");
}

void maq_html_end_facts(struct maq_html *h)
{
    maq_html_put(h, "</dl>\n");
}

static void put_line(void *user, const char *label, const char *text)
{
    maq_html_fact(user, label, text);
}

void maq_html_job(struct maq_html *h, const struct maq_job *job, bool planned)
{
    const struct maq_lines to = {put_line, h};
    maq_html_facts(h);
    h->out.failed |= !maq_job_lines(&to, job, planned ? MAQ_JOB_PLANNED : MAQ_JOB_OPEN);
    maq_html_end_facts(h);
}

/* --- headline -------------------------------------------------------------------------------------------------- */

void maq_html_verdict(struct maq_html *h, enum maq_html_mood mood, const char *text)
{
    static const char *const moods[] = {[MAQ_HTML_GOOD] = "good", [MAQ_HTML_WARN] = "warn", [MAQ_HTML_BAD] = "bad"};
    maq_html_putf(h, "<p class=\"verdict %s\">", moods[mood]);
    put_text(h, text);
    maq_html_put(h, "</p>\n");
}

void maq_html_cards(struct maq_html *h)
{
    maq_html_put(h, "</header>\n<main>\n<div class=\"cards\">\n");
}

static void open_card(struct maq_html *h, const char *label, const char *value, const char *note)
{
    maq_html_put(h, "<div class=\"card\"><h3>");
    put_text(h, label);
    maq_html_put(h, "</h3><p class=\"value\">");
    put_text(h, value);
    maq_html_put(h, "</p><p class=\"note\">");
    put_text(h, note);
    maq_html_put(h, "</p>");
}

void maq_html_card(struct maq_html *h, const char *label, const char *value, const char *note)
{
    open_card(h, label, value, note);
    maq_html_put(h, "</div>\n");
}

void maq_html_card_range(struct maq_html *h, const char *label, const char *value, const char *note, double low,
                         double at, double high)
{
    open_card(h, label, value, note);
    if (high > low) {
        double pad = 0.25 * (high - low), from = low - pad, width = high - low + 2 * pad;
        maq_html_putf(h,
                      "<div class=\"range\" aria-hidden=\"true\"><i style=\"left:%.2f%%;width:%.2f%%\"></i>"
                      "<b style=\"left:%.2f%%\"></b></div>",
                      100 * (low - from) / width, 100 * (high - low) / width, 100 * (at - from) / width);
    }
    maq_html_put(h, "</div>\n");
}

void maq_html_card_gauge(struct maq_html *h, const char *label, const char *value, const char *note, double share,
                         bool over)
{
    open_card(h, label, value, note);
    maq_html_putf(h, "<div class=\"gauge%s\" aria-hidden=\"true\"><i style=\"width:%.2f%%\"></i></div></div>\n",
                  over ? " over" : "",
                  100 * (share < 0   ? 0
                         : share > 1 ? 1
                                     : share));
}

void maq_html_end_cards(struct maq_html *h)
{
    maq_html_put(h, "</div>\n");
}

/* --- sections -------------------------------------------------------------------------------------------------- */

void maq_html_section(struct maq_html *h, const char *id, const char *title)
{
    maq_html_putf(h, "<section id=\"%s\">\n<h2>", id);
    put_text(h, title);
    maq_html_put(h, "</h2>\n");
}

void maq_html_end_section(struct maq_html *h)
{
    maq_html_put(h, "</section>\n");
}

void maq_html_chart(struct maq_html *h, const char *id, const char *shape, const char *caption)
{
    maq_html_putf(h, "<figure class=\"chart %s\"><div class=\"plot\" id=\"%s\"></div><figcaption>", shape, id);
    put_text(h, caption);
    maq_html_put(h, "</figcaption></figure>\n");
}

void maq_html_note(struct maq_html *h, const char *fmt, ...)
{
    char text[2048];
    va_list args;
    va_start(args, fmt);
    int n = maq__vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    h->out.failed |= n < 0;
    maq_html_put(h, "<p class=\"small\">");
    put_text(h, n < 0 ? "" : text);
    maq_html_put(h, "</p>\n");
}

void maq_html_bar_cell(struct maq_html *h, double share, const char *color)
{
    if (!(share > 0)) {
        maq_html_put(h, "<td class=\"bar\"></td>");
        return;
    }
    maq_html_putf(h, "<td class=\"bar\"><i style=\"width:%.2f%%;background:var(--%s)\"></i></td>",
                  100 * (share < 0   ? 0
                         : share > 1 ? 1
                                     : share),
                  color);
}

void maq_html_fold(struct maq_html *h, const char *summary)
{
    maq_html_put(h, "<details><summary>");
    put_text(h, summary);
    maq_html_put(h, "</summary>\n");
}

void maq_html_end_fold(struct maq_html *h)
{
    maq_html_put(h, "</details>\n");
}

/* --- tables ---------------------------------------------------------------------------------------------------- */

static const char *ink_class(enum maq_ink ink)
{
    return ink == MAQ_INK_BAD                            ? " class=\"bad\""
           : ink == MAQ_INK_GOOD || ink == MAQ_INK_TITLE ? " class=\"chosen\""
                                                         : "";
}

void maq_html_table(struct maq_html *h, const struct maq_table *t, const char *caption)
{
    h->out.failed |= t->failed;
    if (t->failed)
        return;
    maq_html_put(h, "<div class=\"scroll\"><table>");
    if (caption) {
        maq_html_put(h, "<caption>");
        put_text(h, caption);
        maq_html_put(h, "</caption>");
    }
    maq_html_put(h, "<thead><tr>");
    for (size_t c = 0; c < t->n_columns; c++) {
        maq_html_putf(h, "<th scope=\"col\"%s>", t->columns[c].right ? " class=\"n\"" : "");
        put_text(h, t->columns[c].head);
        maq_html_put(h, "</th>");
    }
    maq_html_put(h, "</tr></thead>\n<tbody>\n");
    for (size_t r = 0; r < t->n_rows; r++) {
        maq_html_putf(h, "<tr%s>", ink_class(maq_table_ink(t, r)));
        for (size_t c = 0; c < t->n_columns; c++) {
            maq_html_putf(h, "<td%s>",
                          t->columns[c].right    ? " class=\"n\""
                          : t->columns[c].shrink ? " class=\"w\""
                                                 : "");
            maq_html_text(h, maq_table_at(t, r, c));
            maq_html_put(h, "</td>");
        }
        maq_html_put(h, "</tr>\n");
    }
    maq_html_put(h, "</tbody></table></div>\n");
}

void maq_html_settings(struct maq_html *h, const char *lines)
{
    struct maq_str rest = maq_str_of(lines), line;
    if (!lines)
        return;
    maq_html_section(h, "settings", "Settings");
    maq_html_fold(h, "Every setting, and where it came from");
    maq_html_put(h, "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">setting</th><th scope=\"col\">value</th>"
                    "<th scope=\"col\">from</th></tr></thead>\n<tbody>\n");
    while (rest.ptr && rest.len > 0) {
        rest = maq_str_split(rest, '\n', &line);
        struct maq_str key, value = maq_str_split(line, '=', &key), origin = {0};
        const char *open = value.ptr ? memrchr(value.ptr, '(', value.len) : NULL;
        if (open) {
            origin = (struct maq_str){open + 1, (size_t)(value.ptr + value.len - open) - 2};
            value.len = (size_t)(open - value.ptr);
        }
        maq_html_putf(h, "<tr%s><td>", maq_str_is(origin, "default") ? " class=\"faint\"" : "");
        maq_html_text(h, maq_str_trim(key));
        maq_html_put(h, "</td><td class=\"w\">");
        maq_html_text(h, maq_str_trim(value));
        maq_html_put(h, "</td><td>");
        maq_html_text(h, origin);
        maq_html_put(h, "</td></tr>\n");
    }
    maq_html_put(h, "</tbody></table></div>\n");
    maq_html_end_fold(h);
    maq_html_end_section(h);
}
