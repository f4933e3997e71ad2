/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.c - what a search for the best plan costs: seconds, plans considered, bounded and scored.
 *
 *   bench-plan [JOB-TEXT]   one line for each built-in case, or for the job given as text
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "maquette/planner.h"

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const struct {
    const char *name, *text;
    bool full;
} cases[] = {
    {"8B on 8 GPUs", "{model: llama-3.1-8b, cluster: 'h100-sxm:8', workload: {seq: 8192, gbs: 128}}", false},
    {"70B on 256 GPUs",
     "{model: llama-3.1-70b, cluster: 'h100-sxm:8 x 32, rail 400G', workload: {seq: 8192, gbs: 1024}}", false},
    {"405B on 16,384 GPUs",
     "{model: llama-3.1-405b, cluster: 'h100-sxm:8 x 2048, rail 400G', workload: {seq: 8192, gbs: 2048}}", false},
    {"8B on 64 GPUs, full space",
     "{model: llama-3.1-8b, cluster: 'h100-sxm:8 x 8, rail 400G', workload: {seq: 8192, gbs: 256}}", true},
    {"405B on 16,384 GPUs, full space",
     "{model: llama-3.1-405b, cluster: 'h100-sxm:8 x 2048, rail 400G', workload: {seq: 8192, gbs: 2048}}", true},
    {"DeepSeek-V3 on 2,048 GPUs",
     "{model: deepseek-v3, cluster: 'h100-sxm:8 x 256, rail 400G', workload: {seq: 4096, gbs: 15360}}", false},
};

static int run(const char *name, const char *text, bool full)
{
    struct maq_loaded_job *box;
    struct maq_diag *diag = maq_diag_new();
    struct maq_search_result *r;
    struct maq_search_opts opts = {.full = full};
    double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    enum maq_status status = maq_job_parse_open(&box, "bench", (struct maq_str){text, strlen(text)}, NULL, 0, diag);
    if (status == MAQ_OK)
        status = maq_search(&r, box, &opts, diag);
    if (status != MAQ_OK) {
        char *why = maq_diag_format(diag, 5, false);
        fprintf(stderr, "%s", why ? why : "out of memory\n");
        free(why);
        return maq_status_exit_code(status);
    }
    wall = seconds(CLOCK_MONOTONIC) - wall;
    cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    const struct maq_search_counts *c = &r->counts;
    printf(
        "plan: %s: %.2f s, %.2f CPU s, %ld MB; %llu plans in %u cells: %llu bounded, %llu impossible, %llu do not fit, "
        "%llu scored; %.1f M plans/s;",
        name, wall, cpu, usage.ru_maxrss / 1024, (unsigned long long)c->considered, c->branches,
        (unsigned long long)c->bounded, (unsigned long long)c->impossible, (unsigned long long)c->unfit,
        (unsigned long long)c->scored, (double)c->considered / wall * 1e-6);
    if (r->n_plans > 0) {
        const struct maq_plan *p = &r->plans[0].plan;
        printf(" best %.4f s, %.1f GiB: tp %d cp %d pp %d vp %d ep %d etp %d mbs %d schedule %s zero %d x %d recompute "
               "%d/%d/%x %.*s\n",
               r->plans[0].step_s, r->plans[0].needed_bytes / (1 << 30), p->tp, p->cp, p->pp, p->vp, p->ep, p->etp,
               p->mbs, maq_schedule_name((enum maq_schedule_kind)p->schedule), p->sharding, p->num_optimizer_instances,
               p->recompute, p->recompute_num_layers, p->recompute_parts, (int)p->layout.len,
               p->layout.ptr ? p->layout.ptr : "");
    } else {
        printf(" nothing fits\n");
    }
    maq_search_result_free(r);
    maq_job_free(box);
    maq_diag_free(diag);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return run("given", argv[1], argc > 2);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (run(cases[i].name, cases[i].text, cases[i].full) != 0)
            return 1;
    return 0;
}
