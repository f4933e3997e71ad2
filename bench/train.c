/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train.c - the speed of one prediction: 405B on 16,384 and on 65,536 GPUs from document to result, the whole step as
 * a graph, and the static engine.
 *
 * Times are CPU seconds, best of several; what counts is their ratios in this run and the budgets beside them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "maquette/train.h"

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void write_job(char *text, size_t size, int nodes, int gbs)
{
    snprintf(text, size,
             "model: llama-3.1-405b\ncluster: 'h100-sxm:8 x %d, rail 400G'\n"
             "plan: {tp: 8, pp: 16, vp: 8, account_for_embedding_in_pipeline_split: true,\n"
             "  account_for_loss_in_pipeline_split: true}\nworkload: {seq: 8192, gbs: %d}\n",
             nodes, gbs);
}

/* Document to result, best of `times`. */
static double predict_s(int nodes, int gbs, int times)
{
    char text[512];
    double best = 1e9;
    write_job(text, sizeof text, nodes, gbs);
    for (int i = 0; i < times; i++) {
        double start = cpu_s();
        struct maq_loaded_job *box;
        struct maq_train_result *r;
        if (maq_job_parse(&box, "bench", (struct maq_str){text, strlen(text)}, NULL, 0, NULL) != MAQ_OK ||
            maq_train_predict(&r, maq_job_get(box), NULL) != MAQ_OK)
            exit(3);
        maq_train_result_free(r);
        maq_job_free(box);
        double t = cpu_s() - start;
        best = t < best ? t : best;
    }
    return best;
}

int main(void)
{
    double small = predict_s(2048, 2048, 20), large = predict_s(8192, 8192, 20);
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    printf("predict: 16,384 GPUs %.2f ms (budget 30), 65,536 GPUs %.2f ms, ratio %.2f (budget 1.2), peak %.0f MB "
           "(budget 64)\n",
           1e3 * small, 1e3 * large, large / small, (double)use.ru_maxrss / 1024);

    char text[512];
    struct maq_loaded_job *box;
    struct maq_train_graph g;
    write_job(text, sizeof text, 2048, 2048);
    if (maq_job_parse(&box, "bench", (struct maq_str){text, strlen(text)}, NULL, 0, NULL) != MAQ_OK)
        return 3;
    double start = cpu_s();
    if (maq_train_graph(&g, maq_job_get(box), NULL) != MAQ_OK)
        return 5;
    double *finish = malloc(sizeof *finish * ((size_t)g.graph.n_nodes + 1)), end;
    if (!finish)
        return 5;
    maq_engine_static(&end, finish, &g.graph, 1, g.dur_ns);
    double timeline = cpu_s() - start, best = 1e9;
    for (int i = 0; i < 50; i++) {
        start = cpu_s();
        maq_engine_static(&end, finish, &g.graph, 1, g.dur_ns);
        double t = cpu_s() - start;
        best = t < best ? t : best;
    }
    printf(
        "timeline: %u nodes, %u edges, 16 stages in %.1f ms (budget 1,000); static engine %.0f M nodes/s (budget 50)\n",
        g.graph.n_nodes, g.graph.n_edges, 1e3 * timeline, g.graph.n_nodes / best / 1e6);
    free(finish);
    maq_train_graph_free(&g);
    maq_job_free(box);
    return 0;
}
