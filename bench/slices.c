/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slices.c - how long composing plans from the built-in parallelizer's answers takes, what it finds, and which calls each rule saved.
 *
 * The clusters of examples/tangram/, read from there, and four islands of 128 GPUs under 96 layers. CPU seconds of
 * one thread, the parallelizer included. Budgets: two islands 0.2 s, four islands and 40 layers 2 s.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "maquette/planner_external.h"

#define ISLANDS                                                                                                        \
    "{model: {base: gpt3-5b, num_layers: 94, hidden_size: 8192, num_attention_heads: 64, vocab_size: 50272},"          \
    " cluster: {groups: [{device: h100-sxm, nodes: 16, devices_per_node: 8},"                                          \
    " {device: a100-80gb, nodes: 16, devices_per_node: 8}, {device: a100-40gb, nodes: 16, devices_per_node: 8},"       \
    " {device: v100-32gb, nodes: 16, devices_per_node: 8}]},"                                                          \
    " plan: {precision: fp16, mbs: 1}, workload: {seq: 2048, gbs: 1024}}"

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int fail(struct maq_diag *diag)
{
    char *text = maq_diag_format(diag, 0, false);
    fprintf(stderr, "%s", text ? text : "out of memory\n");
    free(text);
    maq_diag_free(diag);
    return 1;
}

static void print(const char *name, const struct maq_slices_result *r, double took_s, double budget_s)
{
    const struct maq_slices_calls *c = &r->calls;
    printf("%-36s", name);
    if (r->n_plans > 0)
        printf(" %8.4f s, bound %8.4f s, gap %5.2f %%%s,", r->plans[0].step_s, r->bound_s, 100 * r->gap,
               r->exact ? " (proven)" : "");
    else
        printf(" nothing fits,");
    printf(" %.2f s CPU", took_s);
    if (budget_s > 0)
        printf(" (budget %.1f s)", budget_s);
    printf("\n    calls %llu of %llu; redundancy %llu, infeasibility %llu, imbalance %llu, reuse %llu; plans %llu\n"
           "    waves %llu (bounded %llu), backs of pipelines %llu (bounded %llu, dominated %llu)\n",
           (unsigned long long)c->made, (unsigned long long)c->all, (unsigned long long)c->redundancy,
           (unsigned long long)c->infeasibility, (unsigned long long)c->imbalance, (unsigned long long)c->reuse,
           (unsigned long long)c->plans, (unsigned long long)r->counts.waves,
           (unsigned long long)r->counts.waves_bounded, (unsigned long long)r->counts.considered,
           (unsigned long long)r->counts.bounded, (unsigned long long)r->counts.dominated);
}

/* A job from a file, or from text. */
static int measure(const char *name, const char *path, const char *text, double budget_s)
{
    struct maq_diag *diag = maq_diag_new();
    struct maq_slices_opts opts = MAQ_SLICES_OPTS_INIT;
    struct maq_slices_result *r;
    struct maq_loaded_job *job;
    enum maq_status status = path ? maq_job_load_open(&job, path, NULL, 0, diag)
                                  : maq_job_parse_open(&job, name, (struct maq_str){text, strlen(text)}, NULL, 0, diag);
    if (status != MAQ_OK)
        return fail(diag);
    double start = cpu_s();
    if (maq_slices_search(&r, job, &opts, diag) != MAQ_OK) {
        maq_job_free(job);
        return fail(diag);
    }
    print(name, r, cpu_s() - start, budget_s);
    maq_slices_free(r);
    maq_job_free(job);
    maq_diag_free(diag);
    return 0;
}

int main(int argc, char **argv)
{
    int status = measure("C1, 12 V100-16 + 4 T4", "examples/tangram/c1-12xv100-4xt4.yaml", NULL, 0.2) |
                 measure("C1, 8 V100-16 + 8 T4", "examples/tangram/c1-8xv100-8xt4.yaml", NULL, 0.2) |
                 measure("C1, 4 V100-16 + 12 T4", "examples/tangram/c1-4xv100-12xt4.yaml", NULL, 0.2) |
                 measure("C3, four islands, 40 layers", "examples/tangram/c3.yaml", NULL, 2);
    if (argc > 1 && strcmp(argv[1], "all") == 0) /* half a minute */
        status |= measure("4 x 128 GPUs, 94 layers", NULL, ISLANDS, 0);
    return status;
}
