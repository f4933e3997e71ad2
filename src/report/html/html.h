/* SPDX-License-Identifier: Apache-2.0 */
/*
 * html.h - a report as one HTML file that needs nothing else: the shell of the page, escaping, tables, places for charts.
 *
 * What C writes is readable without JavaScript: headline, tables, notes. Charts are drawn by the script of the page (assets/) from the
 * report's own JSON document, which the page carries whole, and from further data where a chart shows more than the document has.
 * Nothing is fetched: the Content-Security-Policy of the page forbids it. The same input gives the same bytes.
 *
 * Markup of the program goes through maq_html_put() and maq_html_putf(), everything else through maq_html_text() and maq_html_textf(),
 * which escape. The functions do not fail one by one: maq_html_finish() says whether all went well.
 */
#ifndef MAQ_REPORT_HTML_HTML_H
#define MAQ_REPORT_HTML_HTML_H

#include "maquette/job.h"
#include "report/page.h"

struct maq_html {
    struct maq_buf out;
    const char *nature; /* what its numbers are, a sentence of the footer; set by maq_html_begin(), may be set anew */
};

/* `kind` names the report ("train"); the title is the user's. */
void maq_html_begin(struct maq_html *h, const char *kind, const char *title);
/*
 * Ends the page. `document`: the report's JSON, taken (free()); NULL counts as out of memory. `more`: further data for the charts as JSON,
 * or NULL; borrowed.
 */
enum maq_status maq_html_finish(char **out, struct maq_html *h, char *document, const struct maq_buf *more,
                                struct maq_diag *diag);

void maq_html_put(struct maq_html *h, const char *markup);
void maq_html_putf(struct maq_html *h, const char *fmt, ...) MAQ_PRINTF(2, 3);
void maq_html_text(struct maq_html *h, struct maq_str text);
void maq_html_textf(struct maq_html *h, const char *fmt, ...) MAQ_PRINTF(2, 3);

/* A term and its text, inside the <dl> that maq_html_facts() opens and maq_html_end_facts() closes. */
void maq_html_facts(struct maq_html *h);
void maq_html_fact(struct maq_html *h, const char *term, const char *text);
void maq_html_end_facts(struct maq_html *h);
/* Model, cluster, plan (where there is one: `planned`), workload and framework of a job, as facts. */
void maq_html_job(struct maq_html *h, const struct maq_job *job, bool planned);

/* A verdict above the headline: good, only just, bad. */
enum maq_html_mood { MAQ_HTML_GOOD, MAQ_HTML_WARN, MAQ_HTML_BAD };
void maq_html_verdict(struct maq_html *h, enum maq_html_mood mood, const char *text);

/*
 * One figure of the headline: "step time", "6.223 s", "80 % interval 5.71 s to 7.30 s". Cards stand between maq_html_cards() and
 * maq_html_end_cards().
 */
void maq_html_cards(struct maq_html *h);
void maq_html_card(struct maq_html *h, const char *label, const char *value, const char *note);
/* The same with a strip that shows where a value lies between two others. */
void maq_html_card_range(struct maq_html *h, const char *label, const char *value, const char *note, double low,
                         double at, double high);
/* The same with a gauge: a share of 1, in red where `over`. */
void maq_html_card_gauge(struct maq_html *h, const char *label, const char *value, const char *note, double share,
                         bool over);
void maq_html_end_cards(struct maq_html *h);

/* A section with a heading. Its id is what links and scripts know it by. */
void maq_html_section(struct maq_html *h, const char *id, const char *title);
void maq_html_end_section(struct maq_html *h);
/* A place for a chart that the script draws into, with what it shows; `shape` is a class: "short", "tall", "" */
void maq_html_chart(struct maq_html *h, const char *id, const char *shape, const char *caption);
/* A small paragraph. */
void maq_html_note(struct maq_html *h, const char *fmt, ...) MAQ_PRINTF(2, 3);
/* A bar of a share of 1 in a table's cell, in the colour that the style sheet calls `color`. */
void maq_html_bar_cell(struct maq_html *h, double share, const char *color);

/* Folded away until it is asked for. */
void maq_html_fold(struct maq_html *h, const char *summary);
void maq_html_end_fold(struct maq_html *h);

void maq_html_table(struct maq_html *h, const struct maq_table *t, const char *caption);

/* Settings of maq_job_explain(), `key = value  (origin)` a line, as a folded table. */
void maq_html_settings(struct maq_html *h, const char *lines);

#endif
