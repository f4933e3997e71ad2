/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spares.c - how many nodes are in repair: maquette/checkpoint.h.
 *
 * A node that fails leaves for a time of its own and comes back: a queue with as many servers as there are nodes. The number
 * away is Poisson with mean rate x mean repair time whatever the law of that time (M/G/infinity; Palm 1938), as long as the
 * spares hold the number of running nodes up.
 */
#include "maquette/checkpoint.h"

#include "base/stat/special_functions.h"

uint32_t maq_spares_quantile(double failures_per_s, double repair_s, double q)
{
    double mean = failures_per_s * repair_s;
    if (!(mean > 0) || !(q > 0))
        return 0;
    return maq_poisson_quantile(mean, q);
}
