/* SPDX-License-Identifier: Apache-2.0 */
/*
 * power_fit.h - written by tools/fit-serve-power; see power.c.
 *
 * Of 291 deployments on 2 kinds of device; where the fit has not seen the device
 * 291 rows: 12.1 % median, 26.1 % in nine of ten, -4.5 % bias.
 */
#ifndef MAQ_SERVE_ENGINE_POWER_FIT_H
#define MAQ_SERVE_ENGINE_POWER_FIT_H

/* shares of the device's power: with kernels on it; what its memory adds, and its matrix units */
#define MAQ_POWER_BASE 0.448
#define MAQ_POWER_MEMORY 0.363
#define MAQ_POWER_MATRIX 1.098
/* quantiles 0.1 and 0.9 of measured over predicted where the device was not seen */
#define MAQ_POWER_LOW 0.83
#define MAQ_POWER_HIGH 1.26

#endif
