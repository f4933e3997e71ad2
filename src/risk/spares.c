/*
 * spares.c - how many nodes are in repair: maquette/checkpoint.h.
 *
 * A node that fails leaves for a time of its own and comes back: a queue with as many servers as there are nodes. The number
 * away is Poisson with mean rate x mean repair time whatever the law of that time (M/G/infinity; Palm 1938), as long as the
 * spares hold the number of running nodes up.
 */
#include "maquette/checkpoint.h"

#include <math.h>

uint32_t maq_spares_quantile(double failures_per_s, double repair_s, double q)
{
    double mean = failures_per_s * repair_s;
    if (!(mean > 0) || !(q > 0))
        return 0;
    /* From the mode, where the mass is largest, down as far as anything is left and then up: no term overflows or is lost. */
    double mode = floor(mean), top = exp(mode * log(mean) - mean - lgamma(mode + 1)), below = 0, term = top;
    double n = mode;
    for (double k = mode; k >= 1 && term > top * 1e-18; k--) {
        term *= k / mean;
        below += term;
    }
    if (below + top >= q) { /* the answer is at the mode or below it */
        double sum = below + top;
        term = top;
        while (n > 0 && sum - term >= q) {
            sum -= term;
            term *= n / mean;
            n--;
        }
        return (uint32_t)n;
    }
    term = top;
    for (double sum = below + top; sum < q && n < 4e9 && term > 0; sum += term) {
        n++;
        term *= mean / n;
    }
    return (uint32_t)n;
}
