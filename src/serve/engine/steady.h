/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steady.h - a deployment that serves equal requests for ever, in closed form: no event, no queue.
 *
 * So many requests decode at all times. In the mean an iteration has a token of each, and as many tokens of prompts as keep their number
 * up: each request has `output` - 1 iterations behind its first token, so b of them need b prompt / (output - 1) tokens of an iteration.
 *
 *   even     every iteration has that many. No order of the same work is faster where the time of a pass grows convexly with its tokens:
 *            the weights are read once for all of them. What an engine does can come near it and not below
 *   whole    prompts go in as large pieces as an iteration takes, as engines do: one iteration in so many has one and lasts longer
 *
 *   requests/s = b / ((output - 1) * iteration),    TPOT = iteration
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
    uint32_t batch;      /* requests that decode in an iteration of one rank */
    uint32_t concurrent; /* in the whole deployment: times ranks and batches under way */
    double even_s, whole_s; /* TPOT */
    double most_per_s;      /* requests a second, even */
    double per_s;           /* whole */
    bool held;              /* an iteration takes their tokens, the cache theirs */
};

/* ranks: room for [dp] batches. */
void maq_steady_at(struct maq_steady *out, struct maq_deployment *d, const struct maq_steady_load *load, uint32_t batch,
                   struct maq_pass_batch *ranks);

/* A prompt that finds the deployment empty: device and host time to its first token. */
double maq_steady_first_s(struct maq_deployment *d, const struct maq_steady_load *load, struct maq_pass_batch *ranks);

#endif
