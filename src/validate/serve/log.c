/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.c - `validate serve-log`: recorded runs, request by request.
 *
 * Mean TPOT, mean TTFT and throughput as measured and as predicted, and the largest difference between the two distributions of
 * end-to-end latencies (Kolmogorov and Smirnov).
 *
 * `link_bw` of a log's machine is what NCCL's all-reduces were seen to reach on it, and no line rate: LLMServingSim, whose file it is, lets a
 * collective take its bytes over that without any efficiency, and holds it against NCCL (serving/__main__.py of casys-kaist/LLMServingSim,
 * 5daddb2). The cluster is told the line rate at which a large all-reduce of the deployment comes to that bus bandwidth.
 */
#include "validate/serve/log.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/str.h"
#include "maquette/cost.h"
#include "maquette/validate_serve.h"
#include "report/json_util.h"
#include "validate/codes.h"

#define MOST_LOGS 256u
#define DEEPEST 6
#define LARGE_BYTES 1e9 /* of an all-reduce, in which latency is nothing */
#define REPORT_MAX ((size_t)16 << 20)

struct owner {
    struct maq_arena arena;
    const char *folders[MOST_LOGS];
    uint32_t n;
};

/* ---- finding runs ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void find_runs(struct owner *o, const char *folder, int depth)
{
    const char *meta = maq_arena_printf(&o->arena, "%s/meta.json", folder);
    DIR *dir = meta && depth < DEEPEST ? opendir(folder) : NULL;
    if (meta && access(meta, R_OK) == 0 && o->n < MOST_LOGS)
        o->folders[o->n++] = maq_arena_strdup(&o->arena, maq_str_of(folder));
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        struct stat st;
        const char *path = entry->d_name[0] == '.' ? NULL : maq_arena_printf(&o->arena, "%s/%s", folder, entry->d_name);
        if (path && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
            find_runs(o, path, depth + 1);
    }
    if (dir)
        closedir(dir);
}

/* ---- comparing ---- */

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static double largest_gap(double *a, double *b, uint32_t n)
{
    double most = 0;
    uint32_t i = 0, j = 0;
    qsort(a, n, sizeof *a, by_value);
    qsort(b, n, sizeof *b, by_value);
    while (i < n && j < n) {
        double at = a[i] < b[j] ? a[i] : b[j];
        while (i < n && a[i] <= at)
            i++;
        while (j < n && b[j] <= at)
            j++;
        double gap = fabs((double)i - (double)j) / n;
        most = gap > most ? gap : most;
    }
    return most;
}

struct means {
    double ttft, tpot, last, tokens;
    uint32_t n, n_tpot;
};

static void add(struct means *m, double ttft, double e2el, double last, int64_t tokens)
{
    m->ttft += ttft;
    m->n++;
    if (tokens > 1) {
        m->tpot += (e2el - ttft) / (double)(tokens - 1);
        m->n_tpot++;
    }
    m->last = last > m->last ? last : m->last;
    m->tokens += (double)tokens;
}

static struct maq_validate_serve_log_figures figures(const struct means *m)
{
    return (struct maq_validate_serve_log_figures){.tpot_mean_s = m->n_tpot ? m->tpot / m->n_tpot : 0,
                                                   .ttft_mean_s = m->n ? m->ttft / m->n : 0,
                                                   .tokens_per_s = m->last > 0 ? m->tokens / m->last : 0};
}

static enum maq_status compare(struct maq_validate_serve_log_row *row, const struct maq_serve_log *log,
                               const struct maq_serve_result *r, struct maq_arena *arena)
{
    struct means measured = {0}, predicted = {0};
    double *a = MAQ_ARENA_NEW(arena, double, log->n), *b = MAQ_ARENA_NEW(arena, double, log->n);
    if (!a || !b)
        return MAQ_NO_MEMORY;
    for (uint32_t i = 0; i < log->n; i++) {
        const struct maq_serve_log_request *q = &log->requests[i];
        const struct maq_served *s = &r->served[i];
        add(&measured, q->ttft_s, q->e2el_s, q->last_s, q->output);
        add(&predicted, s->first_s - s->arrival_s, s->last_s - s->arrival_s, s->last_s, q->output);
        a[i] = q->e2el_s;
        b[i] = s->last_s - s->arrival_s;
    }
    row->requests = log->n;
    row->measured = figures(&measured);
    row->predicted = figures(&predicted);
    row->ks = largest_gap(a, b, log->n);
    return MAQ_OK;
}

static enum maq_status load_with(struct maq_loaded_job **loaded, const struct maq_serve_log *log, double line_bps,
                                 struct maq_arena *arena, struct maq_diag *diag)
{
    const char *memory = log->memory_bps > 0
                             ? maq_arena_printf(arena, ", memory_bandwidth: %.9g GB/s", log->memory_bps * 1e-9)
                             : "",
               *link = line_bps > 0 ? maq_arena_printf(arena, ", domain_bandwidth: %.9g GB/s", line_bps * 1e-9) : "";
    const char *text = maq_arena_printf(
        arena,
        "model: %s\ncluster:\n  groups:\n  - {device: {base: %s%s}, nodes: 1, devices_per_node: %d%s}\n"
        "plan: {tensor_model_parallel_size: %d, micro_batch_size: 1}\nworkload: {global_batch_size: %d}\n",
        log->model, log->device, memory ? memory : "", log->tp * log->dp, link ? link : "", log->tp, log->dp);
    return text ? maq_job_parse(loaded, log->folder, maq_str_of(text), NULL, 0, diag) : maq_no_memory(diag, "a log");
}

/* Bytes a second that a rank sends in a large all-reduce over all devices. */
static double bus_bps(const struct maq_cluster *cluster)
{
    double n = cluster->devices;
    const struct maq_coll large = {.kind = MAQ_COLL_ALL_REDUCE,
                                   .sharers = 1,
                                   .bytes = LARGE_BYTES,
                                   .at = maq_cluster_place(cluster, 0, cluster->devices, 1)};
    double s = maq_cost_coll(NULL, &large, cluster).seconds;
    return s > 0 ? 2 * (n - 1) / n * LARGE_BYTES / s : 0;
}

static enum maq_status load(struct maq_loaded_job **loaded, const struct maq_serve_log *log, struct maq_arena *arena,
                            struct maq_diag *diag)
{
    MAQ_TRY(load_with(loaded, log, log->link_bps, arena, diag));
    double reached = log->link_bps > 0 ? bus_bps(&maq_job_get(*loaded)->cluster) : 0;
    if (!(reached > 0))
        return MAQ_OK;
    maq_job_free(*loaded);
    return load_with(loaded, log, log->link_bps * (log->link_bps / reached), arena, diag);
}

static enum maq_status one_run(struct maq_validate_serve_log_row *row, const char *folder, struct maq_arena *arena,
                               struct maq_diag *diag)
{
    struct maq_serve_log log;
    struct maq_loaded_job *loaded;
    struct maq_serve_result *r;
    MAQ_TRY(maq_serve_log_read(&log, folder, arena, diag));
    *row = (struct maq_validate_serve_log_row){
        .folder = log.folder, .model = log.model, .device = log.device, .version = log.version};
    struct maq_request *requests = MAQ_ARENA_NEW(arena, struct maq_request, log.n);
    if (!requests)
        return maq_no_memory(diag, "a log");
    for (uint32_t i = 0; i < log.n; i++)
        requests[i] = (struct maq_request){
            .arrival_s = log.requests[i].arrival_s, .prompt = log.requests[i].prompt, .output = log.requests[i].output};
    MAQ_TRY(load(&loaded, &log, arena, diag));
    const struct maq_requests q = {.at = requests, .n = log.n};
    enum maq_status status = maq_serve_run(&r, maq_job_get(loaded), &log.options, &q, diag);
    if (status == MAQ_OK) {
        if (!r->fits)
            row->left_out = "it does not fit";
        else
            status = compare(row, &log, r, arena);
        maq_serve_free(r);
    }
    maq_job_free(loaded);
    return status;
}

enum maq_status maq_validate_serve_log(struct maq_validate_serve_log **out, const char *path, struct maq_diag *diag)
{
    struct owner *owner = calloc(1, sizeof *owner);
    struct maq_validate_serve_log *r = calloc(1, sizeof *r);
    enum maq_status status = owner && r ? MAQ_OK : maq_no_memory(diag, "logs");
    if (owner)
        maq_arena_init(&owner->arena, 0);
    if (status == MAQ_OK) {
        find_runs(owner, path, 0);
        qsort(owner->folders, owner->n, sizeof *owner->folders, by_name);
        r->rows = MAQ_ARENA_NEW(&owner->arena, struct maq_validate_serve_log_row, owner->n + 1);
        if (owner->n == 0)
            status = maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_LOG, (struct maq_span){0},
                                   "a folder DEVICE/MODEL/vllm with meta.json and requests.jsonl",
                                   "%s: no recorded run in it", path);
        else if (!r->rows)
            status = maq_no_memory(diag, "logs");
    }
    for (uint32_t i = 0; status == MAQ_OK && i < owner->n; i++)
        status = one_run(&r->rows[r->n++], owner->folders[i], &owner->arena, diag);
    if (r)
        r->owner = owner;
    if (status != MAQ_OK) {
        maq_validate_serve_log_free(r);
        return status;
    }
    *out = r;
    return MAQ_OK;
}

void maq_validate_serve_log_free(struct maq_validate_serve_log *r)
{
    struct owner *owner = r ? r->owner : NULL;
    if (owner)
        maq_arena_fini(&owner->arena);
    free(owner);
    free(r);
}

/* ---- reports ---- */

char *maq_validate_serve_log_text(const struct maq_validate_serve_log *r)
{
    struct maq_buf b;
    maq_buf_init(&b, REPORT_MAX);
    for (uint32_t i = 0; i < r->n; i++) {
        const struct maq_validate_serve_log_row *row = &r->rows[i];
        const struct maq_validate_serve_log_figures *m = &row->measured, *p = &row->predicted;
        maq_buf_addf(&b, "%s on %s, vllm %s\n", row->model, row->device, row->version ? row->version : "?");
        if (row->left_out) {
            maq_buf_addf(&b, "  left out: %s\n", row->left_out);
            continue;
        }
        maq_buf_addf(&b, "  mean TPOT   %9.2f ms, predicted %9.2f (%+.1f %%)\n", m->tpot_mean_s * 1e3,
                     p->tpot_mean_s * 1e3, 100 * (p->tpot_mean_s / m->tpot_mean_s - 1));
        maq_buf_addf(&b, "  mean TTFT   %9.2f ms, predicted %9.2f (%+.1f %%)\n", m->ttft_mean_s * 1e3,
                     p->ttft_mean_s * 1e3, 100 * (p->ttft_mean_s / m->ttft_mean_s - 1));
        maq_buf_addf(&b, "  throughput  %9.1f tokens/s, predicted %9.1f (%+.1f %%)\n", m->tokens_per_s, p->tokens_per_s,
                     100 * (p->tokens_per_s / m->tokens_per_s - 1));
        maq_buf_addf(&b, "  end-to-end latencies of %u requests: Kolmogorov-Smirnov %.3f\n", row->requests, row->ks);
    }
    return maq_buf_take(&b);
}

static void add_figure(struct maq_json map, const char *key, double measured, double predicted)
{
    MAQ_JSON_REALS(maq_json_map(map, key), {"measured", measured}, {"predicted", predicted},
                   {"error", predicted / measured - 1});
}

char *maq_validate_serve_log_json(const struct maq_validate_serve_log *r)
{
    struct maq_json_document d;
    maq_json_begin(&d, "maquette.validate.serve-log/1");
    struct maq_json rows = maq_json_list(d.root, "rows");
    for (uint32_t i = 0; i < r->n; i++) {
        const struct maq_validate_serve_log_row *row = &r->rows[i];
        struct maq_json item = maq_json_item(rows);
        maq_json_text(item, "folder", row->folder);
        maq_json_text(item, "model", row->model);
        maq_json_text(item, "device", row->device);
        maq_json_text(item, "version", row->version);
        maq_json_text(item, "left_out", row->left_out);
        if (row->left_out)
            continue;
        maq_json_int(item, "requests", row->requests);
        add_figure(item, "tpot_mean", row->measured.tpot_mean_s, row->predicted.tpot_mean_s);
        add_figure(item, "ttft_mean", row->measured.ttft_mean_s, row->predicted.ttft_mean_s);
        add_figure(item, "throughput", row->measured.tokens_per_s, row->predicted.tokens_per_s);
        maq_json_real(item, "ks", row->ks);
    }
    return maq_json_take(&d);
}
