/* SPDX-License-Identifier: Apache-2.0 */
/*
 * samples.c - measurements: a table of nccl-tests results, and the kernel tables about communication.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/str.h"
#include "base/text.h"
#include "fit.h"
#include "validate/collectives/row.h"
#include "validate/kernels/communication.h"

struct loader {
    struct samples *out;
    struct maq_coll_clusters clusters;
    struct maq_diag *diag;
};

/* Plain or compressed; NULL after a message. */
static char *read_all(const char *path, size_t *len)
{
    gzFile f = gzopen(path, "rb");
    size_t size = 1 << 20, n = 0;
    char *text = malloc(size);
    int got = 0;
    while (f && text && (got = gzread(f, text + n, (unsigned)(size - n))) > 0) {
        n += (size_t)got;
        if (n == size)
            text = maq__realloc(text, size *= 2);
    }
    if (!f || !text || got < 0)
        fprintf(stderr, "cannot read %s\n", path);
    if (f)
        gzclose(f);
    *len = n;
    return f && got == 0 ? text : NULL;
}

/* Index of a name in a growing list, which gets it when it is new. */
static uint32_t name_index(const char ***list, uint32_t *n, uint32_t *size, const char *name, struct maq_arena *arena)
{
    for (uint32_t i = *n; i-- > 0;)
        if (strcmp((*list)[i], name) == 0)
            return i;
    if (*n == *size)
        *list = maq__realloc(*list, (*size = 2 * *size + 64) * sizeof **list);
    (*list)[*n] = maq_arena_strdup(arena, maq_str_of(name));
    return (*n)++;
}

static int generation_of(const struct maq_coll_point *p)
{
    int arch = p->cluster->groups[p->coll.at.group].device.arch;
    for (int i = 0; i < FIT_GENERATIONS; i++)
        if ((int)fit_generations[i].arch == arch)
            return i;
    return -1;
}

static void add(struct samples *s, const struct maq_coll_point *point, const char *source, const char *origin, bool log)
{
    int generation = generation_of(point);
    bool network = point->coll.at.per_node < point->coll.at.size && point->coll.at.domains > 1;
    if (generation < 0)
        return;
    if (s->n == s->size)
        s->list = maq__realloc(s->list, (s->size = 2 * s->size + 1024) * sizeof *s->list);
    s->list[s->n++] = (struct sample){
        .point = *point,
        .links = maq__coll_links(&point->coll, point->cluster),
        .source = name_index(&s->sources, &s->n_sources, &s->sources_size, source, &s->arena),
        .origin = name_index(&s->origins, &s->n_origins, &s->origins_size, origin, &s->arena),
        .log = log,
        .generation = generation,
        .transport = network ? point->cluster->groups[point->coll.at.group].fabric.transport : -1,
    };
}

static bool load_csv(struct loader *l, const char *path)
{
    struct maq_coll_table table;
    size_t len;
    char *text = read_all(path, &len), source[256], origin[256];
    if (!text || maq_csv_parse(&table.csv, path, (struct maq_str){text, len}, &l->out->arena, l->diag) != MAQ_OK ||
        maq__coll_table_bind(&table, l->diag) != MAQ_OK)
        return false;
    for (uint32_t i = 0; i < table.csv.n_rows; i++) {
        struct maq_coll_point point;
        struct maq_str name = maq__coll_cell(&table, i, MAQ_COLL_COLUMN_source);
        if (maq__coll_row(&point, &table, i, &l->clusters, l->diag))
            continue;
        maq__snprintf(source, sizeof source, "%.*s", (int)name.len, name.ptr);
        maq__snprintf(origin, sizeof origin, "%.*s", (int)strcspn(source, " "), source);
        add(l->out, &point, source, origin, true);
    }
    return true;
}

struct row {
    const struct maq_csv *csv;
    uint32_t row;
};

static struct maq_str cell(void *user, const char *column)
{
    const struct row *r = user;
    return maq_csv_get(r->csv, r->row, maq_csv_column(r->csv, column));
}

/* "comm__nccl__nccl__2.27.3.csv.gz": table and framework. */
static bool split_name(struct maq_str *table, struct maq_str *framework, const char *name)
{
    if (strncmp(name, "comm__", 6) != 0)
        return false;
    const char *from = name + 6, *mid = strstr(from, "__"), *end = mid ? strstr(mid + 2, "__") : NULL;
    if (!end)
        return false;
    *table = (struct maq_str){from, (size_t)(mid - from)};
    *framework = (struct maq_str){mid + 2, (size_t)(end - mid - 2)};
    return true;
}

static bool load_table(struct loader *l, const char *folder, const char *system, const char *name)
{
    char path[1024], source[256], origin[256];
    struct maq_str table, framework;
    struct maq_csv csv;
    size_t len;
    maq__snprintf(path, sizeof path, "%s/%s/%s", folder, system, name);
    if (!split_name(&table, &framework, name))
        return true;
    char *text = read_all(path, &len), *body = text ? memchr(text, '\n', len) : NULL;
    if (!body || maq_csv_parse(&csv, path, (struct maq_str){body + 1, len - (size_t)(body + 1 - text)}, &l->out->arena,
                               l->diag) != MAQ_OK)
        return false;
    maq__snprintf(origin, sizeof origin, "%s/%.*s %.*s", system, (int)table.len, table.ptr, (int)framework.len,
                  framework.ptr);
    for (uint32_t i = 0; i < csv.n_rows; i++) {
        struct row row = {&csv, i};
        struct maq_kernel_comm comm;
        const struct maq_kernel_cells cells = {cell, &row};
        maq__kernel_comm_row(&comm, table, maq_str_of(system), framework, &cells, &l->clusters, l->diag);
        for (uint32_t k = 0; k < comm.n; k++) {
            maq__snprintf(source, sizeof source, "%s/%s %s %u", system, name,
                          maq_coll_kind_name((enum maq_coll_kind)comm.points[k].coll.kind),
                          comm.points[k].coll.at.size);
            add(l->out, &comm.points[k], source, origin, false);
        }
    }
    return true;
}

static bool load_folder(struct loader *l, const char *folder)
{
    struct dirent **systems, **names;
    int n = scandir(folder, &systems, NULL, alphasort);
    bool good = n > 0;
    for (int i = 0; i < n; i++) {
        char path[1024];
        maq__snprintf(path, sizeof path, "%s/%s", folder, systems[i]->d_name);
        int m = systems[i]->d_name[0] == '.' ? -1 : scandir(path, &names, NULL, alphasort);
        for (int k = 0; k < m; k++)
            good &= load_table(l, folder, systems[i]->d_name, names[k]->d_name);
    }
    return good;
}

static void weigh(struct samples *s)
{
    double *rows = calloc(s->n_sources, sizeof *rows);
    for (uint32_t i = 0; i < s->n; i++)
        rows[s->list[i].source]++;
    for (uint32_t i = 0; i < s->n; i++)
        s->list[i].weight = rows[s->list[i].source] > SOURCE_CAP ? SOURCE_CAP / rows[s->list[i].source] : 1.0;
    free(rows);
}

bool samples_load(struct samples *out, const char *csv, const char *kernels)
{
    *out = (struct samples){0};
    maq_arena_init(&out->arena, 0);
    struct loader l = {.out = out, .clusters = {.arena = &out->arena}, .diag = maq_diag_new()};
    bool good = load_csv(&l, csv) && load_folder(&l, kernels);
    for (size_t i = 0; i < maq_diag_count(l.diag); i++)
        fprintf(stderr, "%.*s\n", (int)maq_diag_at(l.diag, i)->msg.len, maq_diag_at(l.diag, i)->msg.ptr);
    if (good)
        weigh(out);
    return good;
}

void samples_fini(struct samples *samples)
{
    free(samples->list);
    free(samples->sources);
    free(samples->origins);
    maq_arena_fini(&samples->arena);
}
