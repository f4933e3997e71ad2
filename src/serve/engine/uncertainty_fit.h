/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uncertainty_fit.h - written by tools/fit-serve-error; see uncertainty.c.
 *
 * Quantiles 0.1 and 0.9 of measured over predicted, of 3253 latencies of 5 sources.
 */
#ifndef MAQ_SERVE_ENGINE_UNCERTAINTY_FIT_H
#define MAQ_SERVE_ENGINE_UNCERTAINTY_FIT_H

/* time to the first token */
#define MAQ_SERVE_TTFT_LOW 0.849
#define MAQ_SERVE_TTFT_HIGH 1.92
/* time per token behind it */
#define MAQ_SERVE_TPOT_LOW 0.913
#define MAQ_SERVE_TPOT_HIGH 1.22

#endif
