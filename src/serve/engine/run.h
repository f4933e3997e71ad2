/* SPDX-License-Identifier: Apache-2.0 */
/* run.h - a deployment serves requests. */
#ifndef MAQ_SERVE_ENGINE_RUN_H
#define MAQ_SERVE_ENGINE_RUN_H

#include "serve/engine/deployment.h"

struct maq_serve_engine;

/* Fills what requests decide of *out, and out->served (free()). MAQ_NO: some request waits for ever, or all were asked to end, as `diag`
 * says. */
enum maq_status maq_serve_engine_run(struct maq_serve_result *out, struct maq_deployment *d,
                                     const struct maq_requests *requests, struct maq_diag *diag);
/* Of `n` engines that have nothing more to do and requests that wait: says what those wait for. MAQ_NO. starvation.c */
enum maq_status maq_engine_starved(const struct maq_serve_engine *engines, uint32_t n, struct maq_diag *diag);

#endif
