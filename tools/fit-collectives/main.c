/* main.c - fit-collectives: coefficients of collectives from published measurements. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"
#include "fit.h"

static void point_at(struct fit *fit, struct samples *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        s->list[i].links.generation = &fit->generations[s->list[i].generation];
        if (s->list[i].transport >= 0)
            s->list[i].links.transport = &fit->transports[s->list[i].transport];
    }
}

static void stat_line(const char *name, double *e, size_t n)
{
    if (n == 0)
        return;
    double bias = maq_mean(e, n);
    for (size_t i = 0; i < n; i++)
        e[i] = fabs(e[i]);
    double med = maq_quantile(e, n, 0.5), p90 = maq_quantile(e, n, 0.9);
    printf("%-90s %6zu  %5.1f %5.1f  %+5.1f\n", name, n, 100 * med, 100 * p90, 100 * bias);
}

static int by_abs(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (x[0] > y[0]) - (x[0] < y[0]);
}
static void capped(const struct samples *s, bool far, int kernels)
{
    double (*w)[2] = malloc(s->n * sizeof *w), total = 0, sum = 0, med = -1, p90 = -1;
    size_t n = 0;
    for (uint32_t i = 0; i < s->n; i++)
        if ((s->list[i].transport >= 0) == far && !s->list[i].point.doubt && (kernels < 0 || !!strstr(s->sources[s->list[i].source], ".csv.gz") == kernels)) {
            w[n][0] = fabs(expm1(sample_error(&s->list[i])));
            total += w[n++][1] = s->list[i].weight;
        }
    qsort(w, n, sizeof *w, by_abs);
    for (size_t i = 0; i < n; i++) {
        sum += w[i][1];
        if (med < 0 && sum >= 0.5 * total)
            med = w[i][0];
        if (p90 < 0 && sum >= 0.9 * total)
            p90 = w[i][0];
    }
    printf("CAPPED %s %d rows %zu median %.1f p90 %.1f\n", far ? "far" : "near", kernels, n, 100 * med, 100 * p90);
    free(w);
}
static void report(const struct samples *s)
{
    double *e = malloc(s->n * sizeof *e);
    size_t n;
    for (uint32_t src = 0; src < s->n_sources; src++) {
        n = 0;
        for (uint32_t i = 0; i < s->n; i++)
            if (s->list[i].source == src)
                e[n++] = expm1(sample_error(&s->list[i]));
        stat_line(s->sources[src], e, n);
    }
    for (int far = 0; far < 2; far++)
        for (int g = -1; g < FIT_GENERATIONS; g++)
            for (int k = -1; k < MAQ_COLL_KIND_COUNT; k++) {
                char name[128];
                n = 0;
                for (uint32_t i = 0; i < s->n; i++)
                    if ((s->list[i].transport >= 0) == far && (g < 0 || s->list[i].generation == g) &&
                        (k < 0 || s->list[i].point.coll.kind == k))
                        e[n++] = expm1(sample_error(&s->list[i]));
                snprintf(name, sizeof name, "%s %s %s", far ? "FAR" : "NEAR", g < 0 ? "all" : fit_generations[g].name,
                         k < 0 ? "all" : maq_coll_kind_name((enum maq_coll_kind)k));
                stat_line(name, e, n);
            }
    free(e);
    for (int k = -1; k < 2; k++)
        capped(s, false, k);
    capped(s, true, 0);
}

static void dump(const struct samples *s)
{
    FILE *f = fopen("/tmp/x/rows.csv", "w");
    for (uint32_t i = 0; i < s->n; i++) {
        const struct sample *a = &s->list[i];
        fprintf(f, "%s|%s|%u|%u|%.0f|%.2f|%.2f|%.3f\n", s->sources[a->source],
                maq_coll_kind_name((enum maq_coll_kind)a->point.coll.kind), a->point.coll.at.size,
                a->point.coll.at.per_node, a->point.coll.bytes, a->point.measured_s * 1e6,
                a->point.measured_s * 1e6 * exp(sample_error(a)), sample_error(a));
    }
    fclose(f);
}

int main(int argc, char **argv)
{
    static struct fit fit;
    struct samples samples;
    if (argc < 4 || !samples_load(&samples, argv[1], argv[2]))
        return 2;
    for (int g = 0; g < FIT_GENERATIONS; g++)
        fit.generations[g] = maq__coll_generations[fit_generations[g].arch];
    memcpy(fit.transports, maq__coll_transports, sizeof fit.transports);
    point_at(&fit, &samples);
    if (argc > 4)
        fit_search(&fit, &samples, UINT32_MAX, false);
    double errors[2][FIT_BANDS] = {{0}};
    report(&samples);
    dump(&samples);
    fit_write(argv[3], &fit, &samples, errors);
    samples_fini(&samples);
    return 0;
}
