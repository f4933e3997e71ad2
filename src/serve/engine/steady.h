/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steady.h - a deployment that serves equal requests for ever, in closed form: no event, no queue.
 *
 * So many requests decode at all times. In the mean an iteration has a token of each, and as many tokens of prompts as keep their number
 * up: each request has `output` - 1 iterations behind its first token, so b of them need b prompt / (output - 1) tokens of an iteration.
 * Those do not come evenly: an engine computes as much of a prompt at once as an iteration takes. So one iteration in so many has a piece
 * of a prompt and lasts longer, and
 *
 *   TPOT = mean iteration,    requests/s = b / ((output - 1) * TPOT)
 *
 *   likely   a piece of one prompt in it
 *   least    the pieces of one, two, four ... prompts, whichever is least. The time of a pass grows convexly with its tokens but for steps
 *            of kernels, and requests that differ in length do not go faster than their mean: what an engine does comes near it and not
 *            below
 *
 * With speculative decoding a request has y tokens of an iteration in the mean (serve_draft.h), and (output - 1) / y of them:
 * TPOT = mean iteration / y, where an iteration has what is drafted behind it.
 *
 * Ranks that share experts have theirs independently of each other, as no engine sends requests so that they would come together. All wait
 * for any that has some.
 *
 * A pipeline has as many batches under way as stages: an iteration comes back to a batch when it has passed all of them, and not before
 * the slowest stage has had each batch.
 */
#ifndef MAQ_SERVE_ENGINE_STEADY_H
#define MAQ_SERVE_ENGINE_STEADY_H

#include "serve/engine/deployment.h"

/* Requests in the mean. */
struct maq_steady_load {
    double prompt, output; /* tokens */
    double cached;         /* of the prompt, that need not be computed */
};

struct maq_steady {
    uint32_t batch;           /* requests that decode in an iteration of one rank */
    uint32_t concurrent;      /* in the whole deployment: times ranks and batches under way */
    double least_s, likely_s; /* TPOT */
    double most_per_s;        /* requests a second, with the least time */
    double likely_per_s;
    bool held; /* the engine takes so many requests, the cache their tokens */
};

/* ranks: room for [dp] batches. */
void maq_steady_at(struct maq_steady *out, struct maq_deployment *d, const struct maq_steady_load *load, uint32_t batch,
                   struct maq_pass_batch *ranks);

/* Requests a second whose prompts alone are computed, at the most: of pools, the one of prefill. */
double maq_steady_prefill_per_s(struct maq_deployment *d, const struct maq_steady_load *load,
                                struct maq_pass_batch *ranks);
/* The same as maq_steady_at() where prompts are computed elsewhere: of pools, the one of decode. */
void maq_steady_decode_at(struct maq_steady *out, struct maq_deployment *d, const struct maq_steady_load *load,
                          uint32_t batch, struct maq_pass_batch *ranks);

/* A prompt that finds the deployment empty: device and host time to its first token. */
double maq_steady_first_s(struct maq_deployment *d, const struct maq_steady_load *load, struct maq_pass_batch *ranks);

#endif
