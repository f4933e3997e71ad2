/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.c - what threads are told that only watch: process groups have one that asks now and then which works are over.
 *
 * In a CUDA program: watchdogs, as that of PyTorch's ProcessGroupNCCL, which ask cudaEventQuery() and launch nothing.
 *
 * A watcher lets go of what it watched, and the program's memory lies otherwise when it does so earlier. When it asks is real time's, so
 * it is told late: of what has ended WATCH_NS ago and before the last wait but one of those that drive. Whatever they do themselves with what is
 * over, they have done by then, whoever is scheduled when. PyTorch's watchdogs look once in 100 ms (kWatchdogThreadSleepMillis).
 *
 * A program may wait for its watcher. When time has stood still for STALL_NS, in which those that drive had no processor, and no thread
 * runs or waits for a disk (a library that is loaded, a busy machine), a watcher is told of all that is known to end; after PATIENCE_NS also
 * where they are awake, as one that asks in a loop whether the watcher is done.
 */
#include "shim/core/core.h"

#define WATCH_NS INT64_C(100000000)
#define STALL_NS INT64_C(20000000)
#define PATIENCE_NS INT64_C(10000000000)
#define SAMPLE_NS INT64_C(5000000) /* a watcher asks of many works in a row; threads are looked at once */

/* ns of processors that those that drive have had. */
static uint64_t work_of_drivers(void)
{
    const int *thread;
    uint64_t ns = 0;
    for (unsigned i = 0, n = vg_drivers(&thread); i < n; i++)
        ns += vg_thread_ns(thread[i]);
    return ns;
}

static bool stand_still(void)
{
    static int64_t looked, time_since, sleep_since, stood_at = -1;
    static uint64_t had;
    int64_t real = vg_real_now();
    bool moved = stood_at != vg_now();
    if (moved) {
        stood_at = vg_now();
        time_since = sleep_since = real;
    }
    if (moved || real - looked > SAMPLE_NS) {
        uint64_t has = work_of_drivers();
        if (has != had || vg_others_awake())
            sleep_since = real;
        had = has;
        looked = real;
    }
    return real - sleep_since > STALL_NS || real - time_since > PATIENCE_NS;
}

bool vg_watcher_knows(int64_t end)
{
    return (end <= vg_wait_before_last() && end <= vg_now() - WATCH_NS) || stand_still();
}
