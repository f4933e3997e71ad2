/* SPDX-License-Identifier: Apache-2.0 */
/* log_read.c - reads a recorded run. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mended.h"
#include "base/str.h"
#include "validate/codes.h"
#include "validate/input.h"
#include "validate/serve/log.h"

static enum maq_status bad(const char *path, const char *what, struct maq_diag *diag)
{
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_LOG, (struct maq_span){0},
                         "a folder DEVICE/MODEL/vllm with meta.json and requests.jsonl", "%s: %s", path, what);
}

/*
 * The name of the folder two above, as the path says it: links are not followed. A relative path begins in the working folder; "" where
 * there is no folder two above.
 */
static const char *device_of(const char *folder, struct maq_arena *arena)
{
    char *here = folder[0] == '/' ? NULL : getcwd(NULL, 0);
    const char *path = here ? maq_arena_printf(arena, "%s/%s", here, folder) : folder;
    size_t end = path ? strlen(path) : 0;
    int up = 2; /* names that are still to be passed */
    free(here);
    while (end > 0) {
        size_t begin = end;
        while (begin > 0 && path[begin - 1] != '/')
            begin--;
        struct maq_str name = {path + begin, end - begin};
        if (maq_str_is(name, ".."))
            up++;
        else if (name.len > 0 && !maq_str_is(name, ".") && up-- == 0)
            return maq_arena_strdup(arena, name);
        end = begin > 0 ? begin - 1 : 0;
    }
    return maq_arena_strdup(arena, maq_str_of(""));
}

static int32_t integer(const json_t *map, const char *key)
{
    return (int32_t)json_integer_value(json_object_get(map, key));
}

static enum maq_status read_meta(struct maq_serve_log *log, const char *path, struct maq_arena *arena,
                                 struct maq_diag *diag)
{
    struct maq_str text;
    MAQ_TRY(maq__validate_unpack(&text, path, arena, diag));
    json_t *meta = json_loadb(text.ptr, text.len, 0, NULL), *args = json_object_get(meta, "engine_kwargs");
    const char *model = json_string_value(json_object_get(meta, "model")),
               *version = json_string_value(json_object_get(meta, "vllm_version")),
               *kv = json_string_value(json_object_get(args, "kv_cache_dtype"));
    if (!model || !args) {
        json_decref(meta);
        return bad(path, "no model, or no engine_kwargs", diag);
    }
    log->model = maq_arena_strdup(arena, maq_str_of(model));
    log->version = version ? maq_arena_strdup(arena, maq_str_of(version)) : NULL;
    log->tp = integer(args, "tensor_parallel_size") > 1 ? integer(args, "tensor_parallel_size") : 1;
    log->dp = integer(args, "data_parallel_size") > 1 ? integer(args, "data_parallel_size") : 1;
    log->ep = json_is_true(json_object_get(args, "enable_expert_parallel"));
    log->options = (struct maq_serve_options){.engine = MAQ_ENGINE_VLLM,
                                              .version = log->version,
                                              .offline = true,
                                              .dp = log->dp,
                                              .ep = log->ep ? log->tp * log->dp : 1,
                                              .kv_fp8 = kv && strncmp(kv, "fp8", 3) == 0,
                                              .max_num_seqs = integer(args, "max_num_seqs"),
                                              .max_num_batched_tokens = integer(args, "max_num_batched_tokens"),
                                              .max_model_len = integer(args, "max_model_len")};
    json_decref(meta);
    return log->model ? MAQ_OK : maq_no_memory(diag, "a log");
}

static int by_arrival(const void *a, const void *b)
{
    const struct maq_serve_log_request *x = a, *y = b;
    return x->arrival_s < y->arrival_s ? -1 : x->arrival_s > y->arrival_s;
}

static bool read_request(struct maq_serve_log_request *q, struct maq_str line)
{
    json_t *map = json_loadb(line.ptr, line.len, 0, NULL);
    double queued = json_number_value(json_object_get(map, "queued_ts"));
    *q = (struct maq_serve_log_request){.arrival_s = queued,
                                        .prompt = (int64_t)json_number_value(json_object_get(map, "input_toks")),
                                        .output = (int64_t)json_number_value(json_object_get(map, "output_toks")),
                                        .first_s = json_number_value(json_object_get(map, "first_token_ts")),
                                        .last_s = json_number_value(json_object_get(map, "last_token_ts"))};
    q->ttft_s = q->first_s - queued;
    q->e2el_s = q->last_s - queued;
    json_decref(map);
    return queued > 0 && q->prompt > 0 && q->output > 0 && q->ttft_s >= 0 && q->e2el_s >= q->ttft_s;
}

static enum maq_status read_requests(struct maq_serve_log *log, const char *path, struct maq_arena *arena,
                                     struct maq_diag *diag)
{
    struct maq_str text, line;
    struct maq_mending mended;
    uint32_t most = 1, number = 0;
    MAQ_TRY(maq__validate_unpack(&text, path, arena, diag));
    for (size_t i = 0; i < text.len; i++)
        most += text.ptr[i] == '\n';
    log->requests = MAQ_ARENA_NEW(arena, struct maq_serve_log_request, most);
    if (!log->requests)
        return maq_no_memory(diag, "a log");
    maq_mending_begin(&mended, path, "line", "requests", diag);
    while (text.ptr && text.len > 0) {
        text = maq_str_split(text, '\n', &line);
        number++;
        if (maq_str_trim(line).len == 0)
            continue;
        if (read_request(&log->requests[log->n], line))
            log->n++;
        else
            MAQ_TRY(maq_mend(&mended, MAQ_MEND_VALUE, number, MAQ_CODE_SERVE_LOG,
                             "%s:%u: a line without lengths and times of a request", path, number));
    }
    MAQ_TRY(maq_mending_end(&mended, log->n));
    if (log->n == 0)
        return bad(path, "no requests", diag);
    qsort(log->requests, log->n, sizeof *log->requests, by_arrival);
    double zero = log->requests[0].arrival_s;
    for (uint32_t i = 0; i < log->n; i++) {
        log->requests[i].arrival_s -= zero;
        log->requests[i].first_s -= zero;
        log->requests[i].last_s -= zero;
    }
    return MAQ_OK;
}

/* The machine as the folder describes it: {"link_bw": GB/s, "nodes": [{"instances": [{"npu_mem": {"mem_bw": GB/s}}]}]}. */
static void read_machine(struct maq_serve_log *log, const char *path, struct maq_arena *arena)
{
    struct maq_str text;
    if (access(path, R_OK) != 0 || maq__validate_unpack(&text, path, arena, NULL) != MAQ_OK)
        return;
    json_t *map = json_loadb(text.ptr, text.len, 0, NULL);
    const json_t *node = json_array_get(json_object_get(map, "nodes"), 0),
                 *instance = json_array_get(json_object_get(node, "instances"), 0);
    log->link_bps = json_number_value(json_object_get(map, "link_bw")) * 1e9;
    log->memory_bps = json_number_value(json_object_get(json_object_get(instance, "npu_mem"), "mem_bw")) * 1e9;
    json_decref(map);
}

enum maq_status maq_serve_log_read(struct maq_serve_log *out, const char *folder, struct maq_arena *arena,
                                   struct maq_diag *diag)
{
    *out = (struct maq_serve_log){.folder = maq_arena_strdup(arena, maq_str_of(folder)),
                                  .device = device_of(folder, arena)};
    const char *meta = maq_arena_printf(arena, "%s/meta.json", folder),
               *plain = maq_arena_printf(arena, "%s/requests.jsonl", folder),
               *packed = maq_arena_printf(arena, "%s/requests.jsonl.gz", folder);
    const char *machine = maq_arena_printf(arena, "%s/../config.json", folder);
    if (!out->folder || !out->device || !meta || !plain || !packed || !machine)
        return maq_no_memory(diag, "a log");
    if (out->device[0] == '\0')
        return bad(meta, "no folder DEVICE two above it", diag);
    read_machine(out, machine, arena);
    MAQ_TRY(read_meta(out, meta, arena, diag));
    return read_requests(out, access(plain, R_OK) == 0 ? plain : packed, arena, diag);
}
