/* SPDX-License-Identifier: Apache-2.0 */
/*
 * risk_step.c - how fast the distribution of a step is found: 10,000 sampled replicas of a job on 65,536 GPUs, 16
 * stages of 64 microbatches; the exact law of a job of one stage; and which kernels drive the first.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "maquette/maquette.h"

static const char large[] = "{model: llama-3.1-405b, cluster: \"h100-sxm:8 x 8192, rail 400G\", plan: {tp: 8, pp: 16,"
                            " account_for_embedding_in_pipeline_split: true,"
                            " account_for_loss_in_pipeline_split: true}, workload: {gbs: 32768, seq: 8192}}";
static const char symmetric[] = "{model: llama-3.1-8b, cluster: \"h100-sxm:8 x 64, rail 400G\", plan: {tp: 8},"
                                " workload: {gbs: 1024, seq: 8192}}";

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int measure(const char *what, const char *text, uint32_t parts)
{
    struct maq_loaded_job *box;
    struct maq_risk_step *step;
    struct maq_risk_step_opts opts = MAQ_RISK_STEP_OPTS_INIT;
    if (maq_job_parse(&box, what, (struct maq_str){text, strlen(text)}, NULL, 0, NULL) != MAQ_OK)
        return 1;
    opts.no_sources = true;
    opts.parts = parts;
    double wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
    int status = maq_risk_step(&step, maq_job_get(box), &opts, NULL) != MAQ_OK;
    wall = now(CLOCK_MONOTONIC) - wall;
    cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    if (status == 0) {
        printf("%s: %u draws, %.3f s, %.3f CPU s\n", what, step->draws, wall, cpu);
        maq_risk_step_free(step);
    }
    maq_job_free(box);
    return status;
}

int main(void)
{
    return measure("65,536 GPUs, 16 stages of 64 microbatches", large, 0) ||
           measure("the exact law of one stage", symmetric, 0) ||
           measure("which kernels drive the first", large, 1u << MAQ_RISK_KERNELS);
}
