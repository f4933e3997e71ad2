/*
 * kernels.c - fit-kernels: the fitted tables of data/fitted, from tables of measured kernels.
 *
 *   fit-kernels OUT_DIR SOURCE TABLES... reads files <system>/<op>__<table>__<framework>__<version>.csv[.gz] (those that
 *   `maquette validate kernels` reads, by the same code) and writes OUT_DIR/<device>--<library>.json for each device and
 *   library found. SOURCE is a sentence that goes into the files. The same input gives the same bytes.
 *
 * For every kernel and variant: y = ln(measured / base) at the places x (src/cost/fit_point.c), a surface through them
 * (surface.c), its values in steps of 1/254 of their range. Every fifth row, chosen by a hash of the operator, is held
 * back once to learn how far off the surface is on rows that it has not seen; the surface that is kept has seen all.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/stats.h"
#include "base/str.h"
#include "cost/fit.h"
#include "cost/model.h"
#include "surface.h"
#include "validate/kernel_table.h"

#define LEAST_ROWS 40
#define HELD_BACK 5     /* one row in so many */
#define LEAST_STEP 0.01 /* of the values: half a percent at most is lost */

/* Most knots of each axis before thinning. */
static const unsigned most_knots[MAQ_FIT_FAMILY_COUNT][FIT_AXES] = {
    [MAQ_FIT_GEMM] = {80, 24, 24, 1},       [MAQ_FIT_BMM] = {30, 14, 4, 4},
    [MAQ_FIT_PREFILL] = {18, 18, 8, 5},     [MAQ_FIT_DECODE] = {20, 20, 8, 1},
    [MAQ_FIT_EXPERTS] = {14, 10, 10, 18},   [MAQ_FIT_MLA_PREFILL] = {18, 12, 10, 1},
    [MAQ_FIT_MLA_DECODE] = {20, 12, 10, 1}, [MAQ_FIT_DELTA_RULE] = {22, 12, 6, 16},
    [MAQ_FIT_CONV1D] = {22, 12, 16, 1},     [MAQ_FIT_QUANTIZE] = {40, 22, 1, 1},
    [MAQ_FIT_ELEMENTWISE] = {40, 1, 1, 1},
};

/* Mean change of ln t that a knot must be worth. */
static double tolerance(enum maq_fit_family family)
{
    return family == MAQ_FIT_GEMM || family == MAQ_FIT_EXPERTS ? 0.028 : 0.016;
}

/* All rows of a device and library, in the order of key and kernel. */
struct row {
    struct maq_fit_point point;
    const char *kernel;
    double y;
    uint32_t hash, order;
};

struct pool {
    struct row *at;
    size_t n, size;
    struct maq_device device;
    enum maq_library library;
    char versions[256];
    double burst_flops; /* of the fastest BF16 product */
};

static void die(const char *what, const char *name)
{
    fprintf(stderr, "fit-kernels: %s: %s\n", name, what);
    exit(1);
}

static int by_key(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    int d = memcmp(&x->point.key, &y->point.key, sizeof x->point.key);
    d = d ? d : strcmp(x->kernel, y->kernel);
    return d ? d : (x->order > y->order) - (x->order < y->order);
}

static bool same_table(const struct row *a, const struct row *b)
{
    return memcmp(&a->point.key, &b->point.key, sizeof a->point.key) == 0 && strcmp(a->kernel, b->kernel) == 0;
}

static void add_table(struct pool *pool, const struct maq_kernel_table *table)
{
    for (uint32_t i = 0; i < table->n; i++) {
        const struct maq_kernel_sample *s = &table->samples[i];
        if (pool->n == pool->size) {
            pool->size = pool->size ? pool->size * 2 : 65536;
            pool->at = realloc(pool->at, pool->size * sizeof pool->at[0]);
            if (!pool->at)
                die("out of memory", table->path);
        }
        struct row *row = &pool->at[pool->n];
        if (!maq__fit_point(&row->point, &s->op, &pool->device))
            continue;
        if (s->op.kind == MAQ_OP_GEMM && s->op.dtype == MAQ_BF16 && s->op.flags == 0)
            pool->burst_flops = fmax(pool->burst_flops, maq_op_work(&s->op).matrix_flop / s->measured_s);
        row->kernel = s->kernel;
        row->y = log(s->measured_s / row->point.base_s);
        row->hash = (uint32_t)maq_hash_words(&s->op, sizeof s->op);
        row->order = (uint32_t)pool->n++;
    }
    const char *version = table->version;
    if (!strstr(pool->versions, version))
        snprintf(pool->versions + strlen(pool->versions), sizeof pool->versions - strlen(pool->versions), "%s%s",
                 pool->versions[0] ? ", " : "", version);
}

/* ---- one table ---- */

struct errors {
    double median, p80, p90;
};

static struct errors errors_of(const struct fit_surface *s, const struct fit_points *points, bool held_back)
{
    double *e = malloc((points->n + 1) * sizeof *e);
    size_t n = 0;
    if (!e)
        die("out of memory", "errors");
    for (size_t j = 0; j < points->n; j++)
        if (!held_back || points->left_out[j])
            e[n++] = fabs(exp(fit_at(s, points->x[j]) - points->y[j]) - 1.0);
    struct errors out = {maq_quantile(e, n, 0.5), maq_quantile(e, n, 0.8), maq_quantile(e, n, 0.9)};
    free(e);
    return out;
}

static void write_values(FILE *out, const unsigned char *values, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uLongf size = compressBound(n);
    unsigned char *packed = malloc(size + 3);
    if (!packed || compress2(packed, &size, values, n, 9) != Z_OK)
        die("cannot compress", "values");
    packed[size] = packed[size + 1] = 0;
    for (size_t i = 0; i < size; i += 3) {
        unsigned bits = (unsigned)packed[i] << 16 | (unsigned)packed[i + 1] << 8 | packed[i + 2];
        fprintf(out, "%c%c%c%c", digits[bits >> 18], digits[bits >> 12 & 63],
                i + 1 < size ? digits[bits >> 6 & 63] : '=', i + 2 < size ? digits[bits & 63] : '=');
    }
    free(packed);
}

static void write_table(FILE *out, const struct row *first, const struct fit_surface *s,
                        const struct fit_points *points, struct errors held_back)
{
    double lo = s->values[0], hi = s->values[0];
    for (size_t i = 1; i < s->size; i++) {
        lo = fmin(lo, s->values[i]);
        hi = fmax(hi, s->values[i]);
    }
    double step = (double)(float)fmax((hi - lo) / 254.0, LEAST_STEP), center = (double)(float)(0.5 * (lo + hi));
    unsigned char *values = malloc(s->size);
    struct fit_surface kept = *s;
    if (!values)
        die("out of memory", "values");
    for (size_t i = 0; i < s->size; i++) {
        double v = fmin(fmax(rint((s->values[i] - center) / step), -127.0), 127.0);
        values[i] = (unsigned char)(128.0 + v);
        kept.values[i] = center + v * step;
    }
    struct errors seen = errors_of(&kept, points, false);
    fprintf(out,
            "  {\"family\": \"%s\", \"dtype\": \"%s\", \"variant\": [%u, %u, %u], \"kernel\": \"%s\", \"rows\": %zu,\n",
            maq__fit_family_name((enum maq_fit_family)first->point.key.family),
            maq_dtype_name((enum maq_dtype)first->point.key.dtype), first->point.key.variant[0],
            first->point.key.variant[1], first->point.key.variant[2], first->kernel, points->n);
    fprintf(out,
            "   \"seen\": {\"median\": %.4f, \"p90\": %.4f}, \"held_out\": {\"median\": %.4f, \"p80\": %.4f, \"p90\": "
            "%.4f},\n",
            seen.median, seen.p90, held_back.median, held_back.p80, held_back.p90);
    fprintf(out, "   \"step\": %.9g, \"center\": %.9g, \"knots\": [", step, center);
    for (unsigned a = 0; a < FIT_AXES; a++) {
        fprintf(out, "%s[", a ? ", " : "");
        for (unsigned i = 0; i < s->n[a]; i++)
            fprintf(out, "%s%.9g", i ? ", " : "", (double)(float)s->knots[a][i]);
        fprintf(out, "]");
    }
    fprintf(out, "],\n   \"values\": \"");
    for (size_t i = s->size; i-- > 1;) /* neighbours are alike: their differences are shorter */
        values[i] = (unsigned char)(values[i] - values[i - 1]);
    write_values(out, values, s->size);
    fprintf(out, "\"}");
    free(values);
}

static void fit_table(FILE *out, const struct row *rows, size_t n, bool first)
{
    double(*x)[FIT_AXES] = malloc(n * sizeof *x), *y = malloc(n * sizeof *y);
    bool *left_out = malloc(n * sizeof *left_out);
    struct fit_surface s;
    if (!x || !y || !left_out)
        die("out of memory", "points");
    for (size_t j = 0; j < n; j++) {
        memcpy(x[j], rows[j].point.x, sizeof x[j]);
        y[j] = rows[j].y;
        left_out[j] = rows[j].hash % HELD_BACK == 0;
    }
    struct fit_points all = {n, (const double(*)[FIT_AXES])x, y, NULL}, some = all;
    some.left_out = left_out;
    fit_place_knots(&s, &all, most_knots[rows[0].point.key.family]);
    if (!fit_solve(&s, &all))
        die("out of memory", "surface");
    fit_thin(&s, tolerance((enum maq_fit_family)rows[0].point.key.family));
    if (!fit_solve(&s, &some))
        die("out of memory", "surface");
    struct errors held_back = errors_of(&s, &some, true);
    if (!fit_solve(&s, &all))
        die("out of memory", "surface");
    fprintf(out, "%s\n", first ? "" : ",");
    write_table(out, &rows[0], &s, &all, held_back);
    fit_free(&s);
    free(x);
    free(y);
    free(left_out);
}

/* The datasheet that the base times were made with. */
static void write_figures(FILE *out, const struct maq_device *d, double burst_flops)
{
    static const char *const arch[MAQ_ARCH_COUNT] = {"volta",     "turing", "ampere", "ada",   "hopper",
                                                     "blackwell", "cdna2",  "cdna3",  "cdna4", "other"};
    bool first = true;
    fprintf(out, " \"figures\": {\"arch\": \"%s\", \"peak_flops\": {", arch[d->arch]);
    for (int t = 0; t < MAQ_DTYPE_COUNT; t++)
        if (d->peak_flops[t] > 0.0) {
            fprintf(out, "%s\"%s\": %.9g", first ? "" : ", ", maq_dtype_name((enum maq_dtype)t), d->peak_flops[t]);
            first = false;
        }
    fprintf(out,
            "}, \"vector_flops\": %.9g, \"mem_bps\": %.9g, \"l2_bytes\": %.9g, \"l2_bps\": %.9g, \"sms\": %d, "
            "\"clock_hz\": %.9g, \"burst_flops\": %.6g},\n",
            d->vector_flops, d->mem_bps, d->l2_bytes, d->l2_bps, d->sms, d->clock_hz, burst_flops);
}

static void write_pool(const char *folder, const char *source, struct pool *pool)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s--%s.json", folder, pool->device.name, maq_library_name(pool->library));
    FILE *out = fopen(path, "w");
    bool first = true;
    if (!out)
        die("cannot be written", path);
    qsort(pool->at, pool->n, sizeof pool->at[0], by_key);
    fprintf(out, "{\"made_by\": \"tools/fit/kernels.c\", \"source\": \"%s\", \"versions\": \"%s\",\n", source,
            pool->versions);
    fprintf(out, " \"device\": \"%s\", \"library\": \"%s\",\n", pool->device.name, maq_library_name(pool->library));
    write_figures(out, &pool->device, pool->burst_flops);
    fprintf(out, " \"tables\": [");
    for (size_t i = 0, j; i < pool->n; i = j) {
        for (j = i + 1; j < pool->n && same_table(&pool->at[i], &pool->at[j]);)
            j++;
        if (j - i < LEAST_ROWS)
            continue;
        fit_table(out, &pool->at[i], j - i, first);
        first = false;
    }
    fprintf(out, "\n]}\n");
    if (fclose(out) != 0)
        die("cannot be written", path);
}

/* ---- all files ---- */

struct input {
    const char *path;
    struct maq_str system;
    enum maq_library library;
};

static int by_pool(const void *a, const void *b)
{
    const struct input *x = a, *y = b;
    size_t n = x->system.len < y->system.len ? x->system.len : y->system.len;
    int d = memcmp(x->system.ptr, y->system.ptr, n);
    d = d ? d : (x->system.len > y->system.len) - (x->system.len < y->system.len);
    d = d ? d : (int)x->library - (int)y->library;
    return d ? d : strcmp(x->path, y->path);
}

static bool same_pool(const struct input *a, const struct input *b)
{
    return a->library == b->library && a->system.len == b->system.len &&
           memcmp(a->system.ptr, b->system.ptr, a->system.len) == 0;
}

static void read_pool(const char *folder, const char *source, const struct input *inputs, size_t n)
{
    struct pool pool = {0};
    struct maq_arena arena;
    maq_arena_init(&arena, 0);
    for (size_t i = 0; i < n; i++) {
        struct maq_kernel_table *table = MAQ_ARENA_NEW(&arena, struct maq_kernel_table, 1);
        struct maq_diag *diag = maq_diag_new();
        if (!table || !diag || maq_kernel_table_read(table, inputs[i].path, &arena, diag) != MAQ_OK)
            die("cannot be read", inputs[i].path);
        pool.device = table->device;
        pool.library = table->library;
        add_table(&pool, table);
        maq_diag_free(diag);
    }
    fprintf(stderr, "%s %s: %zu rows\n", pool.device.name, maq_library_name(pool.library), pool.n);
    write_pool(folder, source, &pool);
    free(pool.at);
    maq_arena_fini(&arena);
}

int main(int argc, char **argv)
{
    struct maq_arena arena;
    size_t n = 0;
    if (argc < 4) {
        fprintf(stderr, "usage: fit-kernels OUT_DIR SOURCE TABLE...\n");
        return 2;
    }
    maq_arena_init(&arena, 0);
    struct input *inputs = calloc((size_t)argc, sizeof *inputs);
    for (int i = 3; i < argc && inputs; i++) {
        struct maq_kernel_table table;
        struct input input = {argv[i], {0}, MAQ_LIBRARY_TRAINING};
        if (!maq_kernel_table_name(&table, &input.system, argv[i], &arena))
            continue;
        input.library = table.library;
        inputs[n++] = input;
    }
    if (!inputs)
        die("out of memory", "inputs");
    qsort(inputs, n, sizeof *inputs, by_pool);
    for (size_t i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && same_pool(&inputs[i], &inputs[j]);)
            j++;
        read_pool(argv[1], argv[2], &inputs[i], j - i);
    }
    free(inputs);
    maq_arena_fini(&arena);
    return 0;
}
