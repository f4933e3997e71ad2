/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expert_spread.h - the mean number of ranks, or of scale-up domains, over which the experts of one token are spread.
 *
 * A place is a rank or a domain. A token's k experts are drawn evenly and independently, so that of n equal places it misses one
 * with probability (1 - 1/n)^k. Some models first draw t of g groups of experts, and the k experts out of those (DeepSeek-V2 and
 * later: "device-limited" and "node-limited" routing, arXiv 2405.04434 section 2.2.2, arXiv 2412.19437 section 2.1.2), which keeps
 * a token on fewer places (probabilities):
 *
 *   a place is 1/s of a group       it is open with t/g, and missed then with (1 - 1/(t s))^k
 *   a place is m whole groups       j of them are open with C(m,j) C(g-m,t-j) / C(g,t), and missed then with (1 - j/t)^k
 */
#ifndef MAQ_LOWER_EXPERT_SPREAD_H
#define MAQ_LOWER_EXPERT_SPREAD_H

#include "maquette/model.h"

/* The mean number of places, of n with equally many experts each, that hold at least one of a token's experts. */
double maq_experts_spread(double n, const struct maq_moe_geometry *moe);

#endif
