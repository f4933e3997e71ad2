/* SPDX-License-Identifier: Apache-2.0 */
/*
 * startup_fit.h - written by tools/fit-startup; startup.c says what the figures mean.
 *
 * Fitted on 15 runs of 5 sizes, 512 to 8192 devices. A size left out is predicted
 * within 1.3 % at worst.
 */
#ifndef MAQ_RISK_RUN_STARTUP_FIT_H
#define MAQ_RISK_RUN_STARTUP_FIT_H

#define MAQ_STARTUP_BASE_S 169.8
#define MAQ_STARTUP_PER 1.995e-08 /* seconds per device to the power below */
#define MAQ_STARTUP_POWER 2.5
#define MAQ_STARTUP_MOST 8192.0  /* devices; beyond: on along the tangent */
#define MAQ_STARTUP_SPREAD 0.008 /* root mean square of the relative errors with a size left out */

#endif
