/* SPDX-License-Identifier: Apache-2.0 */
/*
 * risk_run.c - how fast runs are simulated: 54 days on 2,048 nodes under Llama 3's failures, ten thousand times, with every delay drawn
 * from its law; and the same on one thread.
 */
#include <stdio.h>
#include <time.h>

#include "maquette/maquette.h"

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int measure(const struct maq_failures *failures, uint32_t threads)
{
    struct maq_run_opts o = MAQ_RUN_OPTS_INIT;
    struct maq_run_result *r;
    o.step_s = 6;
    o.steps = 49 * 14400;
    o.devices = 16384;
    o.devices_per_node = 8;
    o.failures = failures;
    o.n_levels = 1;
    o.levels[0] =
        (struct maq_run_level){.every = 1, .save_s = 2, .persist_s = 3, .restore_s = 3, .survives = MAQ_SURVIVES_ALL};
    o.spares = 20;
    o.threads = threads;
    double wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
    if (maq_run_simulate(&r, &o, NULL) != MAQ_OK)
        return 1;
    wall = now(CLOCK_MONOTONIC) - wall;
    cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    double failed = r->failures * r->opts.replicas;
    printf("%s: %.2f million failures in %.2f s, %.2f CPU s, %.0f ns of CPU each\n",
           threads == 1 ? "1 thread" : "all threads", failed * 1e-6, wall, cpu, cpu / failed * 1e9);
    maq_run_result_free(r);
    return 0;
}

int main(void)
{
    struct maq_loaded_failures *box;
    if (maq_failures_load(&box, "llama3", NULL) != MAQ_OK)
        return 1;
    int status = measure(maq_failures_get(box), 1) || measure(maq_failures_get(box), 0);
    maq_failures_free(box);
    return status;
}
