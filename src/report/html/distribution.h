/* SPDX-License-Identifier: Apache-2.0 */
/*
 * distribution.h - what pages of distributions share: the distribution function as charts and its quantiles as a table, and what each source
 * of variation does to the 95th percentile. The charts are drawn by assets/risk.js.
 */
#ifndef MAQ_REPORT_HTML_DISTRIBUTION_H
#define MAQ_REPORT_HTML_DISTRIBUTION_H

#include "maquette/risk.h"
#include "report/html/html.h"

struct maq_html_distribution {
    const char *title, *density, *cumulative;    /* of the section, and what its charts show */
    const char *what;                            /* takes how long: "step" */
    double base_s;                               /* when nothing varies */
    const struct maq_risk_quantile *p5, *figure; /* figure: [MAQ_RISK_FIGURE_COUNT] */
    const double *curve_s, *curve_share;         /* [MAQ_RISK_CURVE]; all zero: no charts */
};

/* Its section, with a note below the table. */
void maq_html_distribution(struct maq_html *h, const struct maq_html_distribution *d, const char *note);
/* The distribution function as data of the page (`more`): {"t": [seconds], "share": [...]}, empty where it has no charts. */
void maq_html_distribution_data(struct maq_buf *more, const struct maq_html_distribution *d);
/* The tornado of sources; nothing where there are none. */
void maq_html_sources(struct maq_html *h, const struct maq_risk_source *sources, uint32_t n, double base_s);

#endif
