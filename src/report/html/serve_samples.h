/* SPDX-License-Identifier: Apache-2.0 */
/* serve_samples.h - what happens over time in an engine, in a bounded number of windows. See serve_samples.c. */
#ifndef MAQ_REPORT_HTML_SERVE_SAMPLES_H
#define MAQ_REPORT_HTML_SERVE_SAMPLES_H

#include "maquette/report_serve.h"

#define MAQ_SERVE_WINDOWS 1024

/* So many iterations in a row: sums over them, but for times and the largest. */
struct maq_serve_window {
    double from_s, to_s; /* the first and the last one were decided */
    uint32_t n, most_running, most_waiting;
    double requests, tokens, running, waiting, blocks, most_blocks;
};

struct maq_serve_samples {
    uint32_t n, stride; /* windows that are begun; iterations of a full one */
    struct maq_serve_window at[MAQ_SERVE_WINDOWS];
};

#endif
