/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.c - what an engine's host does for an iteration, by engine and release.
 *
 * Times are those of the reference host. tools/fit-serve fits them to public measurements (docs/serving.md has the errors).
 */
#include "serve/engine/deployment.h"

#include "base/str.h"

struct maq_host_profile maq_host_profile_of(const struct maq_serve_options *o)
{
    struct maq_host_profile h = {.iteration_s = 1.0e-3,
                                 .request_s = 5e-6,
                                 .launch_s = 6e-6,
                                 .graph_s = 10e-6,
                                 .respond_s = 1e-3,
                                 .enter_s = 1e-3,
                                 .enter_token_s = 1e-6};
    h.async = o->async_scheduling == MAQ_ON || (o->async_scheduling == MAQ_AUTO && o->engine != MAQ_ENGINE_VLLM);
    return h;
}
