/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.c - fit-kernels: the fitted tables of data/fitted, from tables of measured kernels.
 *
 *   fit-kernels OUT_DIR SOURCE TABLES... reads files <system>/<op>__<table>__<framework>__<version>.csv[.gz] (those that
 *   `maquette validate kernels` reads, by the same code) and writes OUT_DIR/<device>--<library>.json for each device and
 *   library found. SOURCE is a sentence that goes into the files. The same input gives the same bytes.
 *
 * For every kernel and variant: y = ln(measured / base) at the places x (src/cost/fitted/coordinates.c), a surface through them
 * (table.c, surface.c). Every fifth row, chosen by a hash of the operator, is held back once to learn how far off the surface
 * is on rows that it has not seen; the surface that is kept has seen all.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/str.h"
#include "fit.h"
#include "validate/kernels/table.h"

#define LEAST_ROWS 40
#define MOST_POOLS 256
#define MOST_RELATIVES 8

static void die(const char *what, const char *name)
{
    fprintf(stderr, "fit-kernels: %s: %s\n", name, what);
    exit(1);
}

/* ---- rows ---- */

static int by_key(const void *a, const void *b)
{
    const struct fit_row *x = a, *y = b;
    int d = memcmp(&x->key, &y->key, sizeof x->key);
    d = d ? d : strcmp(x->kernel, y->kernel);
    d = d ? d : (x->hash > y->hash) - (x->hash < y->hash);
    return d ? d : (x->y > y->y) - (x->y < y->y);
}

static bool same_key(const struct fit_row *a, const struct fit_row *b)
{
    return memcmp(&a->key, &b->key, sizeof a->key) == 0;
}

/* TensorRT-LLM's rows of products contain the quantization, whose parts it has in rows of their own. */
static void add_narrow(struct fit_pool *pool, const struct maq_kernel_sample *s)
{
    const struct maq_op *op = &s->op;
    struct fit_narrow row = {op->d[0], op->d[1], op->d[2], s->measured_s};
    bool product = op->kind == MAQ_OP_GEMM && op->dtype == MAQ_FP8 && op->flags == 0 && op->d[3] <= 1;
    if (op->kind == MAQ_OP_QUANTIZE && op->dtype == MAQ_FP8)
        row = (struct fit_narrow){op->d[0], 0, op->d[1], s->measured_s};
    else if (op->kind == MAQ_OP_ELEMENTWISE && op->d[1] == 2 && op->d[2] == 0)
        row = (struct fit_narrow){1, -1, op->d[0], s->measured_s};
    else if (!product)
        return;
    if (pool->library != MAQ_LIBRARY_TRTLLM)
        return;
    if (pool->n_narrow == pool->narrow_size) {
        pool->narrow_size = pool->narrow_size ? pool->narrow_size * 2 : 65536;
        pool->narrow = realloc(pool->narrow, pool->narrow_size * sizeof pool->narrow[0]);
        if (!pool->narrow)
            die("out of memory", pool->device.name);
    }
    pool->narrow[pool->n_narrow++] = row;
}

static void add_table(struct fit_pool *pool, const struct maq_kernel_table *table)
{
    for (uint32_t i = 0; i < table->n; i++) {
        const struct maq_kernel_sample *s = &table->samples[i];
        struct maq_fit_point point;
        if (!maq__fit_point(&point, &s->op, &pool->device))
            continue;
        if (pool->n == pool->size) {
            pool->size = pool->size ? pool->size * 2 : 65536;
            pool->rows = realloc(pool->rows, pool->size * sizeof pool->rows[0]);
            if (!pool->rows)
                die("out of memory", table->path);
        }
        if (s->op.kind == MAQ_OP_GEMM && s->op.dtype == MAQ_BF16 && s->op.flags == 0)
            pool->burst_flops = fmax(pool->burst_flops, maq_op_work(&s->op).matrix_flop / s->measured_s);
        add_narrow(pool, s);
        struct fit_row *row = &pool->rows[pool->n++];
        *row = (struct fit_row){.key = point.key, .kernel = s->kernel, .y = log(s->measured_s / point.base_s)};
        row->hash = maq_hash_words(&s->op, sizeof s->op);
        for (int a = 0; a < FIT_AXES; a++)
            row->x[a] = (float)point.x[a];
    }
    size_t used = strlen(pool->versions);
    if (!strstr(pool->versions, table->version))
        snprintf(pool->versions + used, sizeof pool->versions - used, "%s%s", used ? ", " : "", table->version);
}

/* ---- groups ---- */

struct groups {
    struct fit_group *at;
    size_t n, size;
};

static void add_groups(struct groups *groups, const struct fit_pool *pool)
{
    for (size_t i = 0, j; i < pool->n; i = j) {
        for (j = i + 1; j < pool->n && same_key(&pool->rows[i], &pool->rows[j]) &&
                        strcmp(pool->rows[i].kernel, pool->rows[j].kernel) == 0;)
            j++;
        if (j - i < LEAST_ROWS)
            continue;
        if (groups->n == groups->size) {
            groups->size = groups->size ? groups->size * 2 : 256;
            groups->at = realloc(groups->at, groups->size * sizeof groups->at[0]);
            if (!groups->at)
                die("out of memory", pool->device.name);
        }
        groups->at[groups->n++] = (struct fit_group){pool, &pool->rows[i], j - i};
    }
}

/* Another library on the device, or the same library and kernel on a device of the generation. */
static bool is_relative(const struct fit_group *a, const struct fit_group *b)
{
    bool device = strcmp(a->pool->device.name, b->pool->device.name) == 0,
         library = a->pool->library == b->pool->library;
    if (a == b || a->pool->device.arch != b->pool->device.arch || !same_key(&a->rows[0], &b->rows[0]))
        return false;
    return device ? !library : library && strcmp(a->rows[0].kernel, b->rows[0].kernel) == 0;
}

static void write_pool(const char *folder, const char *source, struct fit_pool *pool, const struct groups *groups)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s--%s.json", folder, pool->device.name, maq_library_name(pool->library));
    FILE *out = fopen(path, "w");
    bool first = true;
    if (!out)
        die("cannot be written", path);
    fprintf(out, "{\"made_by\": \"tools/fit/kernels.c\", \"source\": \"%s\", \"versions\": \"%s\",\n", source,
            pool->versions);
    fprintf(out, " \"device\": \"%s\", \"library\": \"%s\",\n", pool->device.name, maq_library_name(pool->library));
    fit_write_figures(out, pool);
    fprintf(out, " \"tables\": [");
    for (size_t i = 0; i < groups->n; i++) {
        const struct fit_group *group = &groups->at[i], *relatives[MOST_RELATIVES];
        struct fit_table table;
        size_t n = 0;
        if (group->pool != pool)
            continue;
        for (size_t j = 0; j < groups->n && n < MOST_RELATIVES; j++)
            if (is_relative(group, &groups->at[j]))
                relatives[n++] = &groups->at[j];
        if (!fit_table(&table, group, relatives, n) || !fit_write_table(out, group, &table, first))
            die("out of memory", path);
        fit_free(&table.surface);
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

static const char *keep_text(const char *text, struct maq_arena *arena)
{
    const char *copy = maq_arena_strdup(arena, maq_str_of(text));
    if (!copy)
        die("out of memory", text);
    return copy;
}

/* Reads a file into the pool; texts that rows point to move to `keep`. */
static void read_file(struct fit_pool *pool, const char *path, struct maq_arena *keep)
{
    struct maq_arena arena;
    struct maq_diag *diag = maq_diag_new();
    maq_arena_init(&arena, 0);
    struct maq_kernel_table *table = MAQ_ARENA_NEW(&arena, struct maq_kernel_table, 1);
    if (!table || !diag || maq_kernel_table_read(table, path, &arena, diag) != MAQ_OK)
        die("cannot be read", path);
    size_t from = pool->n;
    pool->device = table->device;
    pool->library = table->library;
    if (table->n > 0 && table->samples[0].cluster)
        return; /* collectives have a fit of their own */
    add_table(pool, table);
    pool->device.name = keep_text(table->device.name, keep);
    for (size_t i = from; i < pool->n; i++)
        pool->rows[i].kernel = i > from && strcmp(pool->rows[i].kernel, pool->rows[i - 1].kernel) == 0
                                   ? pool->rows[i - 1].kernel
                                   : keep_text(pool->rows[i].kernel, keep);
    maq_diag_free(diag);
    maq_arena_fini(&arena);
}

static size_t find_inputs(struct input *inputs, char **paths, int n_paths, struct maq_arena *arena)
{
    size_t n = 0;
    for (int i = 0; i < n_paths; i++) {
        struct maq_kernel_table table;
        struct input input = {paths[i], {0}, MAQ_LIBRARY_TRAINING};
        if (!maq_kernel_table_name(&table, &input.system, paths[i], arena))
            continue;
        input.library = table.library;
        inputs[n++] = input;
    }
    qsort(inputs, n, sizeof *inputs, by_pool);
    return n;
}

int main(int argc, char **argv)
{
    static struct fit_pool pools[MOST_POOLS];
    struct groups groups = {0};
    struct maq_arena arena;
    size_t n_pools = 0;
    if (argc < 4) {
        fprintf(stderr, "usage: fit-kernels OUT_DIR SOURCE TABLE...\n");
        return 2;
    }
    maq_arena_init(&arena, 0);
    struct input *inputs = calloc((size_t)argc, sizeof *inputs);
    if (!inputs)
        die("out of memory", "inputs");
    size_t n = find_inputs(inputs, argv + 3, argc - 3, &arena);
    for (size_t i = 0; i < n; i++) {
        n_pools += i == 0 || (!same_pool(&inputs[i - 1], &inputs[i]) && n_pools < MOST_POOLS);
        read_file(&pools[n_pools - 1], inputs[i].path, &arena);
    }
    for (size_t p = 0; p < n_pools; p++) {
        qsort(pools[p].rows, pools[p].n, sizeof pools[p].rows[0], by_key);
        add_groups(&groups, &pools[p]);
    }
    for (size_t p = 0; p < n_pools; p++) {
        fprintf(stderr, "%s %s: %zu rows\n", pools[p].device.name, maq_library_name(pools[p].library), pools[p].n);
        write_pool(argv[1], argv[2], &pools[p], &groups);
    }
    for (size_t p = 0; p < n_pools; p++) {
        free(pools[p].rows);
        free(pools[p].narrow);
    }
    free(groups.at);
    free(inputs);
    maq_arena_fini(&arena);
    return 0;
}
