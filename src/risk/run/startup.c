/* SPDX-License-Identifier: Apache-2.0 */
/*
 * startup.c - from the start of the programs to the first step: maquette/failures.h.
 *
 *   t(n) = base + per n^power    up to the largest size that was measured, then straight on with the slope there
 *
 * with the figures that tools/fit-startup found in MLPerf v3.1 logs of GPT-3 on H100 (process start, NCCL, reading the first
 * checkpoint, building the model). MegaScale (NSDI 2024) reports far more before its communicators were made lazily (1,047 s
 * at 2,048 GPUs) and far less after: it depends on software, so the time is an option.
 */
#include <math.h>

#include "maquette/failures.h"
#include "risk/run/startup_fit.h"

double maq_startup_s(double devices)
{
    double inside = devices < MAQ_STARTUP_MOST ? devices : MAQ_STARTUP_MOST;
    double slope = MAQ_STARTUP_PER * MAQ_STARTUP_POWER * pow(MAQ_STARTUP_MOST, MAQ_STARTUP_POWER - 1);
    return MAQ_STARTUP_BASE_S + MAQ_STARTUP_PER * pow(inside, MAQ_STARTUP_POWER) + slope * (devices - inside);
}
