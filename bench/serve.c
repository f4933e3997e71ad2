/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve.c - how fast requests are served.
 *
 * Times are CPU seconds of one thread. Streams are drawn, with the rates and lengths that are said; where a folder of traces is given
 * (bench-serve FOLDER: as in docs/serving.md), Azure's conversations and Mooncake's are served, too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/str.h"
#include "maquette/job.h"
#include "maquette/serve_fleet.h"

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static long peak_mib(void)
{
    char line[128];
    long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "VmHWM:", 6) == 0)
            kib = strtol(line + 6, NULL, 10);
    if (f)
        fclose(f);
    return kib / 1024;
}

static void give_up(struct maq_diag *diag)
{
    char *text = maq_diag_format(diag, 0, false);
    fprintf(stderr, "%s", text ? text : "out of memory\n");
    exit(1);
}

struct scene {
    const char *model, *cluster;
    int tp;
    uint32_t replicas;
    enum maq_router router;
};

/* Serves them, and says how long it took. */
static double run(const struct scene *s, const struct maq_requests *requests, uint64_t *iterations)
{
    char text[512];
    struct maq_diag *diag = maq_diag_new();
    struct maq_loaded_job *job = NULL;
    struct maq_serve_result *r = NULL;
    const struct maq_serve_options o = {0};
    snprintf(text, sizeof text,
             "{model: %s, cluster: '%s', plan: {micro_batch_size: 1, tp: %d}, workload: {global_batch_size: 8000}}",
             s->model, s->cluster, s->tp);
    if (maq_job_parse(&job, "bench", maq_str_of(text), NULL, 0, diag) != MAQ_OK)
        give_up(diag);
    const struct maq_fleet_member member = {.job = maq_job_get(job), .options = &o, .replicas = s->replicas};
    const struct maq_fleet fleet = {.members = &member, .n_members = 1, .router = s->router};
    double start = cpu_s();
    if (maq_fleet_run(&r, &fleet, requests, diag) != MAQ_OK)
        give_up(diag);
    double took = cpu_s() - start;
    *iterations = r->iterations;
    maq_serve_free(r);
    maq_job_free(job);
    maq_diag_free(diag);
    return took;
}

static struct maq_request_set *drawn(const struct maq_request_spec *spec)
{
    struct maq_request_set *set = NULL;
    struct maq_diag *diag = maq_diag_new();
    if (maq_requests_generate(&set, spec, diag) != MAQ_OK)
        give_up(diag);
    maq_diag_free(diag);
    return set;
}

static void engine(void)
{
    const struct scene one = {"llama-3.1-8b", "h100-sxm:1", 1, 1, MAQ_ROUTER_ROUND_ROBIN};
    const struct maq_request_spec spec = {
        .concurrency = 64, .n = 25600, .prompt = 256, .output = 500, .spread = 0.5, .seed = 1};
    struct maq_request_set *set = drawn(&spec);
    uint64_t iterations;
    double took = run(&one, maq_requests_get(set), &iterations);
    printf("engine: 64 requests at a time, %.0f iterations/s (budget 300,000)\n", (double)iterations / took);
    maq_requests_free(set);
}

static void fleet_day(void)
{
    const struct scene many = {"llama-3.1-8b", "h100-sxm:8 x 125", 1, 1000, MAQ_ROUTER_ROUND_ROBIN};
    const double minutes = 60;
    const struct maq_request_spec spec = {
        .rate = 50, .duration_s = 60 * minutes, .prompt = 1024, .output = 256, .seed = 1};
    struct maq_request_set *set = drawn(&spec);
    uint64_t iterations;
    double took = run(&many, maq_requests_get(set), &iterations);
    printf("1,000 replicas, 50 requests/s: a day in %.0f s (budget 60; from %.0f minutes of it in %.2f s)\n",
           took * 1440 / minutes, minutes, took);
    maq_requests_free(set);
}

static void million(void)
{
    const struct scene one = {"llama-3.1-8b", "h100-sxm:1", 1, 1, MAQ_ROUTER_ROUND_ROBIN};
    const struct maq_request_spec spec = {.rate = 20, .n = 1000000, .prompt = 256, .output = 16, .seed = 1};
    struct maq_request_set *set = drawn(&spec);
    uint64_t iterations;
    double took = run(&one, maq_requests_get(set), &iterations);
    printf("a million requests: %.1f s, peak of this program %ld MiB (budget 500)\n", took, peak_mib());
    maq_requests_free(set);
}

static void trace(const char *folder, const char *file, const struct scene *s, double budget_s)
{
    char path[4096];
    struct maq_diag *diag = maq_diag_new();
    struct maq_request_set *set = NULL;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    if (maq_requests_read(&set, path, &(const struct maq_request_reading){.most = 0}, diag) != MAQ_OK)
        give_up(diag);
    uint64_t iterations;
    double took = run(s, maq_requests_get(set), &iterations);
    printf("%s, %u replica%s: %u requests in %.2f s (budget %.0f)\n", file, s->replicas, s->replicas > 1 ? "s" : "",
           maq_requests_get(set)->n, took, budget_s);
    maq_requests_free(set);
    maq_diag_free(diag);
}

int main(int argc, char **argv)
{
    engine();
    million();
    fleet_day();
    if (argc < 2)
        return 0;
    trace(argv[1], "azure2023/AzureLLMInferenceTrace_conv.csv.gz",
          &(struct scene){"llama-3.1-70b", "h100-sxm:8", 8, 1, MAQ_ROUTER_ROUND_ROBIN}, 1);
    trace(argv[1], "azure2023/AzureLLMInferenceTrace_conv.csv.gz",
          &(struct scene){"llama-3.1-70b", "h100-sxm:8 x 8", 8, 8, MAQ_ROUTER_ROUND_ROBIN}, 2);
    trace(argv[1], "mooncake/conversation_trace.jsonl.gz",
          &(struct scene){"llama-3.1-70b", "h100-sxm:8 x 16", 8, 16, MAQ_ROUTER_PREFIX}, 4);
    return 0;
}
