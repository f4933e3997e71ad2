/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.c - what the fit is worth: tables for docs/accuracy-collectives.md, and the errors that answers carry.
 *
 * An error is predicted / measured - 1, in percent; medians and 90th percentiles are of absolute values. "held out" is
 * with the row's own origin left out of the fit. Rows about which too little is known (TCP sockets) are not counted.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/stat/summary.h"
#include "fit.h"

/* Rows that a line of a table is about. */
typedef bool row_test(const struct sample *s, const void *what);

struct table {
    FILE *f;
    const struct samples *samples;
    const struct residuals *r;
    double *scratch;
};

struct weighted {
    double error, weight;
};

static int by_error(const void *a, const void *b)
{
    const struct weighted *x = a, *y = b;
    return (x->error > y->error) - (x->error < y->error);
}

static size_t collect(const struct table *t, const double *errors, row_test *test, const void *what)
{
    size_t n = 0;
    for (uint32_t i = 0; i < t->samples->n; i++)
        if (!t->samples->list[i].point.doubt && test(&t->samples->list[i], what))
            t->scratch[n++] = expm1(errors[i]);
    return n;
}

static void absolute(double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = fabs(x[i]);
}

static void write_line(const struct table *t, const char *name, row_test *test, const void *what)
{
    size_t n = collect(t, t->r->fitted, test, what);
    if (n == 0)
        return;
    double bias = maq_mean(t->scratch, n);
    absolute(t->scratch, n);
    double median = maq_quantile(t->scratch, n, 0.5), p90 = maq_quantile(t->scratch, n, 0.9);
    n = collect(t, t->r->held, test, what);
    absolute(t->scratch, n);
    fprintf(t->f, "| %s | %zu | %.1f | %.1f | %+.1f | %.1f | %.1f |\n", name, n, 100 * median, 100 * p90, 100 * bias,
            100 * maq_quantile(t->scratch, n, 0.5), 100 * maq_quantile(t->scratch, n, 0.9));
}

static void write_head(const struct table *t, const char *title, const char *column)
{
    fprintf(
        t->f,
        "\n## %s\n\n| %s | rows | median | 90 %% | bias | held out: median | 90 %% |\n|---|---|---|---|---|---|---|\n",
        title, column);
}

/* At most SOURCE_CAP rows of a source count. */
static void write_capped(const struct table *t, const char *name, row_test *test, const void *what)
{
    struct weighted *w = calloc(t->samples->n, sizeof *w);
    double total = 0, sum = 0, median = -1, p90 = -1;
    size_t n = 0;
    for (uint32_t i = 0; w && i < t->samples->n; i++) {
        const struct sample *s = &t->samples->list[i];
        if (s->point.doubt || !test(s, what))
            continue;
        w[n++] = (struct weighted){fabs(expm1(t->r->fitted[i])), s->weight};
        total += s->weight;
    }
    qsort(w, n, sizeof *w, by_error);
    for (size_t i = 0; i < n; i++) {
        sum += w[i].weight;
        if (median < 0 && sum >= 0.5 * total)
            median = w[i].error;
        if (p90 < 0 && sum >= 0.9 * total)
            p90 = w[i].error;
    }
    fprintf(t->f, "| %s | %zu | %.1f | %.1f |\n", name, n, 100 * median, 100 * p90);
    free(w);
}

/* ---- tests ---- */

struct where {
    int far, kind, logs; /* -1 = any */
    double from, to;     /* devices or bytes */
};

static bool at(const struct sample *s, const void *what)
{
    const struct where *w = what;
    return (w->far < 0 || (s->point.coll.at.domains > 1) == w->far) && (w->kind < 0 || s->point.coll.kind == w->kind) &&
           (w->logs < 0 || s->log == w->logs);
}

static bool of_devices(const struct sample *s, const void *what)
{
    const struct where *w = what;
    return at(s, what) && s->point.coll.at.size >= w->from && s->point.coll.at.size < w->to;
}

static bool of_bytes(const struct sample *s, const void *what)
{
    const struct where *w = what;
    return at(s, what) && s->point.coll.bytes >= w->from && s->point.coll.bytes < w->to;
}

static bool of_origin(const struct sample *s, const void *what)
{
    return s->origin == *(const uint32_t *)what;
}

static const char *device_of(const struct sample *s)
{
    return s->point.cluster->groups[s->point.coll.at.group].device.name;
}

static bool of_device(const struct sample *s, const void *what)
{
    return strcmp(device_of(s), what) == 0;
}

/* ---- tables ---- */

static void write_totals(const struct table *t)
{
    static const struct where near_logs = {0, -1, 1, 0, 0}, near_kernels = {0, -1, 0, 0, 0}, near = {0, -1, -1, 0, 0},
                              far = {1, -1, -1, 0, 0};
    fprintf(t->f, "\n## Totals, at most %g rows of a source\n\n| | rows | median | 90 %% |\n|---|---|---|---|\n",
            SOURCE_CAP);
    write_capped(t, "inside a scale-up domain", at, &near);
    write_capped(t, "- nccl-tests logs", at, &near_logs);
    write_capped(t, "- kernel tables", at, &near_kernels);
    write_capped(t, "between domains", at, &far);
}

static void write_ranges(const struct table *t)
{
    static const double devices[] = {2, 3, 5, 9, 17, 65, 257, 1e9};
    char name[64];
    for (int far = 0; far < 2; far++) {
        write_head(t, far ? "Between domains, by number of devices" : "Inside a domain, by number of devices",
                   "devices");
        for (size_t i = 0; i + 1 < MAQ_COUNT(devices); i++) {
            struct where w = {far, -1, -1, devices[i], devices[i + 1]};
            snprintf(name, sizeof name, i + 2 < MAQ_COUNT(devices) ? "%.0f to %.0f" : "%.0f and more", devices[i],
                     devices[i + 1] - 1);
            write_line(t, name, of_devices, &w);
        }
        write_head(t, far ? "Between domains, by size" : "Inside a domain, by size", "bytes");
        for (int e = 0; e < 11; e++) {
            struct where w = {far, -1, -1, pow(10, e), pow(10, e + 1)};
            snprintf(name, sizeof name, "10^%d to 10^%d", e, e + 1);
            write_line(t, name, of_bytes, &w);
        }
        write_head(t, far ? "Between domains, by collective" : "Inside a domain, by collective", "collective");
        for (int k = 0; k < MAQ_COLL_KIND_COUNT; k++) {
            struct where w = {far, k, -1, 0, 0};
            write_line(t, maq_coll_kind_name((enum maq_coll_kind)k), at, &w);
        }
    }
}

static void write_devices(const struct table *t)
{
    write_head(t, "By device", "device");
    for (uint32_t i = 0; i < t->samples->n; i++) {
        uint32_t first = 0;
        while (strcmp(device_of(&t->samples->list[first]), device_of(&t->samples->list[i])) != 0)
            first++;
        if (first == i)
            write_line(t, device_of(&t->samples->list[i]), of_device, device_of(&t->samples->list[i]));
    }
}

bool report_write(const char *path, const struct samples *samples, const struct residuals *r)
{
    struct table t = {fopen(path, "w"), samples, r, calloc(samples->n, sizeof(double))};
    if (!t.f || !t.scratch) {
        free(t.scratch);
        return false;
    }
    fprintf(t.f, "# Accuracy of collectives\n\nWritten by `tools/fit-collectives`; do not edit. Errors are predicted / "
                 "measured - 1 in "
                 "percent,\nmedian and 90th percentile of their absolute values. *Held out* is the error with the "
                 "row's own origin,\n"
                 "a repository of logs or a kernel table, left out of the fit. What the coefficients mean is in\n"
                 "[cost-model.md](cost-model.md).\n");
    write_totals(&t);
    write_head(&t, "By origin", "origin");
    for (uint32_t o = 0; o < samples->n_origins; o++)
        write_line(&t, samples->origins[o], of_origin, &o);
    write_devices(&t);
    write_ranges(&t);
    free(t.scratch);
    return fclose(t.f) == 0;
}

/* ---- errors of answers ---- */

void held_out_errors(double out[MAQ_COLL_REGIME_COUNT][MAQ_COLL_BAND_COUNT], const struct samples *samples,
                     const struct residuals *r)
{
    struct weighted *w = calloc(samples->n, sizeof *w);
    for (int regime = 0; w && regime < MAQ_COLL_REGIME_COUNT; regime++)
        for (int band = 0; band < MAQ_COLL_BAND_COUNT; band++) {
            double total = 0, sum = 0;
            size_t n = 0, i = 0;
            for (uint32_t k = 0; k < samples->n; k++) {
                const struct sample *s = &samples->list[k];
                if (s->point.doubt || (int)maq__coll_regime(&s->point.coll, s->point.cluster) != regime ||
                    (int)maq__coll_band(s->point.coll.bytes) != band)
                    continue;
                w[n++] = (struct weighted){fabs(expm1(r->held[k])), s->weight};
                total += s->weight;
            }
            qsort(w, n, sizeof *w, by_error);
            while (i < n && (sum += w[i].weight) < 0.6827 * total)
                i++;
            out[regime][band] = n > 0 ? w[i < n ? i : n - 1].error : 1.0;
        }
    free(w);
}
