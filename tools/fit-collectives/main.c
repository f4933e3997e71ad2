/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - fit-collectives: coefficients of collectives from published measurements.
 *
 *     fit-collectives collectives.csv KERNELS OUT.yaml [REPORT.md]
 *
 * Reads a table of nccl-tests results and the folder of kernel tables; fits all rows; fits once more for every origin
 * without its rows; writes data/fitted/collectives.yaml and docs/accuracy-collectives.md. Without REPORT.md no origin is
 * left out, and the errors, which come from that, are not written: whether the coefficients that ship are those of the rows
 * is known in a sixth of the time. Nothing depends on time, threads or addresses: the same input gives the same bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fit.h"

/* First guesses: fit_start.c, generated from start.yaml. */
extern const struct maq_coll_generation fit_start_generations[MAQ_ARCH_COUNT];
extern const struct maq_coll_transport fit_start_transports[MAQ_TRANSPORT_COUNT];

static void point_at(struct samples *s, const struct fit *fit)
{
    for (uint32_t i = 0; i < s->n; i++) {
        s->list[i].links.generation = &fit->generations[s->list[i].generation];
        if (s->list[i].transport >= 0)
            s->list[i].links.transport = &fit->transports[s->list[i].transport];
    }
}

static void start(struct fit *fit)
{
    for (int g = 0; g < FIT_GENERATIONS; g++)
        fit->generations[g] = fit_start_generations[fit_generations[g].arch];
    memcpy(fit->transports, fit_start_transports, sizeof fit->transports);
}

/* Every origin in turn is left out; its rows see coefficients that never saw them. */
static void hold_out(double *held, struct samples *samples, const struct fit *all)
{
    static struct fit fit;
    for (uint32_t o = 0; o < samples->n_origins; o++) {
        fprintf(stderr, "\rwithout %u of %u", o + 1, samples->n_origins);
        fit = *all;
        point_at(samples, &fit);
        fit_search(&fit, samples, o);
        for (uint32_t i = 0; i < samples->n; i++)
            if (samples->list[i].origin == o)
                held[i] = sample_error(&samples->list[i]);
    }
    fprintf(stderr, "\n");
    point_at(samples, all);
}

static bool write_with_errors(const char *yaml, const char *report, struct samples *samples, const struct fit *fit)
{
    double errors[MAQ_COLL_REGIME_COUNT][MAQ_COLL_BAND_COUNT];
    struct residuals r = {calloc(samples->n, sizeof(double)), calloc(samples->n, sizeof(double))};
    bool good = r.fitted && r.held;
    if (good) {
        for (uint32_t i = 0; i < samples->n; i++)
            r.fitted[i] = sample_error(&samples->list[i]);
        hold_out(r.held, samples, fit);
        held_out_errors(errors, samples, &r);
        good = fit_write(yaml, fit, errors) && report_write(report, samples, &r);
    }
    free(r.fitted);
    free(r.held);
    return good;
}

static int run(struct samples *samples, const char *yaml, const char *report)
{
    static struct fit fit;
    start(&fit);
    point_at(samples, &fit);
    fit_search(&fit, samples, UINT32_MAX);
    bool good = report ? write_with_errors(yaml, report, samples, &fit) : fit_write(yaml, &fit, NULL);
    if (!good)
        fprintf(stderr, "cannot write %s%s%s\n", yaml, report ? " or " : "", report ? report : "");
    return good ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct samples samples;
    if (argc != 4 && argc != 5) {
        fprintf(stderr, "fit-collectives collectives.csv KERNELS OUT.yaml [REPORT.md]\n");
        return 2;
    }
    int code = samples_load(&samples, argv[1], argv[2]) ? run(&samples, argv[3], argc == 5 ? argv[4] : NULL) : 3;
    samples_fini(&samples);
    return code;
}
