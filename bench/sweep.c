/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep.c - how many plans per second the fast path evaluates, for the 405B model on 16,384 GPUs.
 *
 * The plans are the grid an engineer would scan: every degree, virtual stages, micro batch, recomputation,
 * sharding, TP overlap, gradient type. Each is completed, checked, placed, lowered where its layers are new,
 * timed and measured for memory; only those that can be are counted. Prints one line of figures.
 *
 *   sweep          the whole grid
 *   sweep N RUNS   its first N plans: the least seconds of so many runs from the job's text to the best plan, and how many are possible.
 *                  It is what bench/python-sweep.py compares with
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "maquette/train.h"

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const int tps[] = {1, 2, 4, 8}, pps[] = {1, 2, 4, 8, 16}, vps[] = {1, 2, 4, 8}, cps[] = {1, 2, 4},
                 mbss[] = {1, 2, 4};
static const int recomputes[] = {MAQ_RECOMPUTE_NONE, MAQ_RECOMPUTE_SELECTIVE, MAQ_RECOMPUTE_FULL};
static const int shardings[] = {MAQ_SHARDING_NONE, MAQ_SHARDING_OPTIM, MAQ_SHARDING_PARAMS};
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* The plan of a number, digit by digit in mixed radix. */
static struct maq_plan plan_of(const struct maq_plan *base, size_t i)
{
    struct maq_plan p = *base;
#define DIGIT(values) (values)[i % COUNT(values)]
#define NEXT(values) (i /= COUNT(values))
    static const int bools[] = {MAQ_OFF, MAQ_ON}, reduce[] = {MAQ_FP32, MAQ_BF16};
    p.sharding = DIGIT(shardings);
    NEXT(shardings);
    p.overlap_tp = DIGIT(bools);
    NEXT(bools);
    p.grad_reduce_dtype = DIGIT(reduce);
    NEXT(reduce);
    p.recompute = DIGIT(recomputes);
    NEXT(recomputes);
    p.tp = DIGIT(tps);
    NEXT(tps);
    p.cp = DIGIT(cps);
    NEXT(cps);
    p.mbs = DIGIT(mbss);
    NEXT(mbss);
    p.vp = DIGIT(vps);
    NEXT(vps);
    p.pp = DIGIT(pps);
    NEXT(pps);
    p.recompute_parts = p.recompute == MAQ_RECOMPUTE_SELECTIVE ? 1u << MAQ_PART_NORM : 0;
    return p;
}

static size_t grid(void)
{
    return COUNT(shardings) * 2 * 2 * COUNT(recomputes) * COUNT(tps) * COUNT(cps) * COUNT(mbss) * COUNT(vps) *
           COUNT(pps);
}

static const char text[] = "model: llama-3.1-405b\n"
                           "cluster: h100-sxm:8 x 2048, rail 400G\n"
                           "plan: {tp: 8, pp: 16, layout: balanced}\n"
                           "workload: {seq: 8192, gbs: 2048}\n";

/* What a plan of the grid leaves open. */
static struct maq_plan open_plan(const struct maq_job *job)
{
    struct maq_plan base = job->plan;
    base.dp = base.etp = base.microbatch_group = base.cp_a2a = 0;
    base.schedule = MAQ_SCHEDULE_AUTO;
    base.overlap_p2p = base.sequence_parallel = base.overlap_grad_reduce = base.overlap_param_gather = MAQ_AUTO;
    return base;
}

/* One whole scan of n plans. */
static int scan(double *seconds, size_t *possible, size_t n)
{
    const double begin = cpu_s();
    struct maq_loaded_job *box;
    struct maq_train_sweep *sweep;
    struct maq_plan *plans = malloc(n * sizeof *plans);
    struct maq_train_quick *out = malloc(n * sizeof *out);
    size_t best = 0;
    if (maq_job_parse(&box, "bench", (struct maq_str){text, sizeof text - 1}, NULL, 0, NULL) != MAQ_OK)
        return 3;
    const struct maq_plan base = open_plan(maq_job_get(box));
    if (!plans || !out || maq_train_sweep_new(&sweep, maq_job_get(box), NULL) != MAQ_OK)
        return 5;
    for (size_t i = 0; i < n; i++)
        plans[i] = plan_of(&base, i);
    if (maq_train_sweep_eval(sweep, out, plans, n) != MAQ_OK)
        return 5;
    *possible = 0;
    for (size_t i = 0; i < n; i++) {
        *possible += out[i].possible;
        if (out[i].fits && (!out[best].fits || out[i].step_s < out[best].step_s))
            best = i;
    }
    *seconds = cpu_s() - begin;
    maq_train_sweep_free(sweep);
    maq_job_free(box);
    free(plans);
    free(out);
    return 0;
}

static int scan_few(size_t n, size_t runs)
{
    double least = 1e9, seconds;
    size_t possible = 0;
    for (size_t run = 0; run < runs; run++) {
        int status = scan(&seconds, &possible, n);
        if (status != 0)
            return status;
        least = seconds < least ? seconds : least;
    }
    printf("%.6f %zu\n", least, possible);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 2)
        return scan_few(strtoul(argv[1], NULL, 10), strtoul(argv[2], NULL, 10));
    struct maq_loaded_job *box;
    struct maq_diag *diag = maq_diag_new();
    if (maq_job_parse(&box, "bench", (struct maq_str){text, sizeof text - 1}, NULL, 0, diag) != MAQ_OK)
        return 3;
    const struct maq_job *job = maq_job_get(box);
    const struct maq_plan base = open_plan(job);
    size_t n = grid(), possible = 0, fits = 0, best = 0;
    struct maq_plan *plans = malloc(n * sizeof *plans);
    struct maq_train_quick *out = malloc(n * sizeof *out);
    struct maq_train_sweep *sweep;
    if (!plans || !out || maq_train_sweep_new(&sweep, job, NULL) != MAQ_OK)
        return 5;
    for (size_t i = 0; i < n; i++)
        plans[i] = plan_of(&base, i);
    double start = cpu_s();
    if (maq_train_sweep_eval(sweep, out, plans, n) != MAQ_OK)
        return 5;
    double cold = cpu_s() - start;
    start = cpu_s();
    if (maq_train_sweep_eval(sweep, out, plans, n) != MAQ_OK)
        return 5;
    double warm = cpu_s() - start;
    for (size_t i = 0; i < n; i++) {
        possible += out[i].possible;
        fits += out[i].fits;
        if (out[i].fits && (!out[best].fits || out[i].step_s < out[best].step_s))
            best = i;
    }
    printf("sweep: %zu plans, %zu possible, %zu fit; first pass %.3f s = %.0f possible plans/s, again %.3f s = %.0f "
           "plans/s; best %.3f s: tp %d pp %d vp %d cp %d mbs %d\n",
           n, possible, fits, cold, (double)possible / cold, warm, (double)possible / warm, out[best].step_s,
           plans[best].tp, plans[best].pp, plans[best].vp, plans[best].cp, plans[best].mbs);
    maq_train_sweep_free(sweep);
    maq_job_free(box);
    maq_diag_free(diag);
    free(plans);
    free(out);
    return 0;
}
