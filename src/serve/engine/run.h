/* SPDX-License-Identifier: Apache-2.0 */
/* run.h - a deployment serves requests. */
#ifndef MAQ_SERVE_ENGINE_RUN_H
#define MAQ_SERVE_ENGINE_RUN_H

#include "serve/engine/deployment.h"

/* Fills what requests decide of *out, and out->served (free()). MAQ_LIMIT: some request never finds room. */
enum maq_status maq_serve_engine_run(struct maq_serve_result *out, struct maq_deployment *d,
                                     const struct maq_requests *requests);

#endif
