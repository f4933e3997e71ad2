/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recording.c - reads a recording. Lines are objects, told apart by their first member: "engine", "request", "step".
 *
 * Knobs that a file leaves out have the engine's defaults. Knobs that maquette does not know are an error, since a scheduler that was
 * asked for something else decides something else; what a version does not have (`not_in_this_version`) does not count. Numbers have
 * bounds, so that no file makes the scheduler count beyond its types.
 */
#include "validate/serve/recording.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/str.h"
#include "validate/codes.h"
#include "validate/input.h"

struct reading {
    struct maq_recording *out;
    struct maq_arena *arena;
    struct maq_diag *diag;
    uint32_t line;
    uint32_t requests_size, steps_size;
};

static enum maq_status bad(const struct reading *r, const char *hint, const char *what)
{
    return maq_diag_fail(MAQ_BAD_INPUT, r->diag, MAQ_CODE_RECORDING, (struct maq_span){0}, hint, "%s:%u: %s",
                         r->out->path, r->line, what);
}

static int64_t integer(const json_t *map, const char *key, int64_t otherwise)
{
    const json_t *value = json_object_get(map, key);
    return json_is_integer(value)   ? json_integer_value(value)
           : json_is_boolean(value) ? json_is_true(value)
                                    : otherwise;
}

/* ---- the header ---- */

#define MOST_TOKENS ((int64_t)1 << 24) /* of a request, a batch, a context */
#define MOST_BLOCKS ((int64_t)1 << 24)
#define MOST_DRAFTS 1024
#define MOST_STEP ((int64_t)1 << 20) /* least common multiple of the groups' blocks */

/* Knobs that are numbers, with their bounds; `most` < `least`: it is no number. */
static const struct known_knob {
    const char *name;
    int64_t least, most;
} vllm_knobs[] = {
    {"max_num_seqs", 1, MOST_TOKENS},
    {"max_num_batched_tokens", 1, MOST_TOKENS},
    {"max_model_len", 1, MOST_TOKENS},
    {"block_size", 1, MOST_STEP},
    {"blocks", 2, MOST_BLOCKS},
    {"chunked", 0, 1},
    {"caching", 0, 1},
    {"long_prefill_token_threshold", 0, MOST_TOKENS},
    {"adaptive_long_prefill", 0, 1},
    {"max_num_partial_prefills", 0, MOST_TOKENS},
    {"policy", 0, -1},
    {"not_in_this_version", 0, -1},
    {"async", 0, 1},
    {"spec_tokens", 0, MOST_DRAFTS},
    {"lookahead_tokens", 0, MOST_DRAFTS},
    {"hash_lookahead", 0, 1},
    {"draft_slots", 0, MOST_DRAFTS},
    {"eagle", 0, 1},
    {"watermark", 0, 1},
    {"reserve_full_isl", 0, 1},
    {"groups", 0, -1},
    {"max_in_flight_tokens", 0, 256 * MOST_TOKENS},
    {"defer_block_free", 0, 1},
    {"host_chunks", 0, MOST_BLOCKS},
    {"host_chunk_blocks", 1, 1024},
    {"host_policy", 0, -1},
    {"host_prompt_only", 0, 1},
    {"max_loras", 0, MOST_TOKENS},
};

static enum maq_status check_knob(const struct reading *r, const struct known_knob *known_knobs, size_t n,
                                  const char *key, const json_t *value)
{
    size_t i = 0;
    while (i < n && strcmp(key, known_knobs[i].name) != 0)
        i++;
    if (i == n)
        return bad(r, NULL, maq_arena_printf(r->arena, "a knob that maquette does not have: '%.60s'", key));
    double x = json_is_boolean(value) ? json_is_true(value) : json_number_value(value);
    if (known_knobs[i].most >= known_knobs[i].least &&
        (!(json_is_number(value) || json_is_boolean(value)) || !(x >= (double)known_knobs[i].least) ||
         !(x <= (double)known_knobs[i].most)))
        return bad(r, NULL,
                   maq_arena_printf(r->arena, "knob '%s' is a number from %lld to %lld", key,
                                    (long long)known_knobs[i].least, (long long)known_knobs[i].most));
    return MAQ_OK;
}

static enum maq_status check_knobs(const struct reading *r, const struct known_knob *known_knobs, size_t n,
                                   const json_t *knobs)
{
    const char *key;
    const json_t *value;
    json_object_foreach((json_t *)(uintptr_t)knobs, key, value) MAQ_TRY(check_knob(r, known_knobs, n, key, value));
    return MAQ_OK;
}

/* Sizes of blocks have a common multiple in which prefixes are counted. */
static bool sizes_agree(const struct maq_kv_group *groups, size_t n)
{
    int64_t step = 1;
    for (size_t i = 0; i < n; i++) {
        int64_t a = step, b = groups[i].block_size;
        while (b != 0) {
            int64_t rest = a % b;
            a = b;
            b = rest;
        }
        MAQ_ASSERT(a > 0);
        step = step / a * groups[i].block_size;
        if (step > MOST_STEP)
            return false;
    }
    return true;
}

static enum maq_status read_groups(struct reading *r, const json_t *list, int32_t block_size)
{
    static const char *const kinds[] = {"full", "window", "chunk", "state"};
    struct maq_recording *out = r->out;
    size_t n = json_array_size(list);
    if (!list) {
        out->groups[0] = (struct maq_kv_group){.kind = MAQ_KV_FULL, .block_size = block_size};
        out->kv.n_groups = 1;
        return MAQ_OK;
    }
    if (n == 0 || n > MAQ_KV_MOST_GROUPS)
        return bad(r, NULL, "no groups of layers, or more than 32");
    for (size_t i = 0; i < n; i++) {
        const json_t *g = json_array_get(list, i);
        const char *kind = json_string_value(json_object_get(g, "kind"));
        int64_t size = integer(g, "block_size", block_size), window = integer(g, "window", 0),
                spare = integer(g, "spare", 0);
        uint8_t k = 0;
        while (kind && k < 4 && strcmp(kind, kinds[k]) != 0)
            k++;
        out->groups[i] =
            (struct maq_kv_group){.kind = k, .block_size = (int32_t)size, .window = window, .spare = (int32_t)spare};
        if (!kind || k == 4 || size < 1 || size > MOST_STEP || spare < 0 || spare > MOST_DRAFTS ||
            window > MOST_TOKENS || ((k == MAQ_KV_WINDOW || k == MAQ_KV_CHUNK) && window < 1))
            return bad(r, "kinds are full, window, chunk, state",
                       "a group of layers of no known kind, or without its sizes");
    }
    if (!sizes_agree(out->groups, n))
        return bad(r, NULL, "blocks of groups whose least common multiple is too large");
    out->kv.n_groups = (uint32_t)n;
    return MAQ_OK;
}

/* The place of a word in a list that ends with NULL; -1 = it is not there. `otherwise`: where a file says nothing. */
static int word(const json_t *knobs, const char *key, const char *const *words, int otherwise)
{
    const json_t *value = json_object_get(knobs, key);
    const char *text = json_string_value(value);
    int i = 0;
    if (!value)
        return otherwise;
    while (words[i] && (!text || strcmp(words[i], text) != 0))
        i++;
    return words[i] ? i : -1;
}

static enum maq_status read_tiers(struct reading *r, const json_t *knobs)
{
    static const char *const policies[] = {"lru", "arc", NULL};
    int policy = word(knobs, "host_policy", policies, 0);
    if (policy < 0)
        return bad(r, "they are lru, arc", "a policy of host memory that maquette does not have");
    if (r->out->kv.n_groups > 1 && integer(knobs, "host_chunks", 0) > 0)
        return bad(r, NULL, "host memory behind several groups of layers");
    r->out->tiers = (struct maq_offload_options){.chunks[MAQ_TIER_HOST] = integer(knobs, "host_chunks", 0),
                                                 .policy = (enum maq_tier_policy)policy,
                                                 .chunk_blocks = (int32_t)integer(knobs, "host_chunk_blocks", 1),
                                                 .prompt_only = integer(knobs, "host_prompt_only", 0) != 0};
    return MAQ_OK;
}

static enum maq_status read_vllm(struct reading *r, const json_t *knobs)
{
    static const char *const policies[] = {"fcfs", "priority", NULL};
    struct maq_recording *out = r->out;
    const json_t *mark = json_object_get(knobs, "watermark");
    int policy = word(knobs, "policy", policies, 0);
    if (policy < 0)
        return bad(r, "policies are fcfs, priority", "a policy that maquette does not have");
    MAQ_TRY(check_knobs(r, vllm_knobs, MAQ_COUNT(vllm_knobs), knobs));
    out->knobs = (struct maq_vllm_knobs){
        .max_num_seqs = (int32_t)integer(knobs, "max_num_seqs", 256),
        .max_num_batched_tokens = (int32_t)integer(knobs, "max_num_batched_tokens", 2048),
        .max_model_len = integer(knobs, "max_model_len", 8192),
        .long_prefill_token_threshold = (int32_t)integer(knobs, "long_prefill_token_threshold", 0),
        .adaptive_long_prefill = integer(knobs, "adaptive_long_prefill", 0) != 0,
        .chunked_prefill = integer(knobs, "chunked", 1) != 0,
        .priority = policy == 1,
        .async = integer(knobs, "async", 0) != 0,
        .reserve_full_isl = integer(knobs, "reserve_full_isl", 1) != 0,
        .spec_tokens = (int32_t)integer(knobs, "spec_tokens", 0),
        .lookahead_tokens = (int32_t)integer(knobs, "lookahead_tokens", 0),
        .draft_slots = (int32_t)integer(knobs, "draft_slots", 0),
        .defers_frees = integer(knobs, "defer_block_free", 0) != 0,
        .max_loras = (int32_t)integer(knobs, "max_loras", 0),
    };
    out->kv = (struct maq_kv_options){
        .groups = out->groups,
        .blocks = (uint32_t)integer(knobs, "blocks", 0),
        .caching = integer(knobs, "caching", 1) != 0,
        .drops_last = integer(knobs, "eagle", 0) != 0 && integer(knobs, "hash_lookahead", 0) == 0,
        .hash_ahead = (int32_t)integer(knobs, "hash_lookahead", 0),
        .max_len = out->knobs.max_model_len,
        .in_flight = integer(knobs, "max_in_flight_tokens",
                             (int64_t)out->knobs.max_num_batched_tokens * (out->knobs.async ? 2 : 1)),
        .watermark = json_number_value(mark),
    };
    out->late = out->knobs.async;
    int32_t block_size = (int32_t)integer(knobs, "block_size", 16);
    if (out->kv.blocks < 2)
        return bad(r, NULL, "no blocks");
    MAQ_TRY(read_groups(r, json_object_get(knobs, "groups"), block_size));
    return read_tiers(r, knobs);
}

/* ---- the header, SGLang's ---- */

static const struct known_knob sglang_knobs[] = {
    {"tokens", 1, MOST_BLOCKS},
    {"page_size", 1, MOST_STEP},
    {"unit", 1, MOST_STEP},
    {"context", 0, MOST_TOKENS},
    {"max_running_requests", 1, MOST_TOKENS},
    {"max_prefill_tokens", 1, MOST_TOKENS},
    {"chunked_prefill_size", 0, MOST_TOKENS},
    {"prefill_max_requests", 0, MOST_TOKENS},
    {"conservativeness", 0, 1000},
    {"caching", 0, 1},
    {"overlap", 0, 1},
    {"mixed", 0, 1},
    {"priority", 0, 1},
    {"low_priority_first", 0, 1},
    {"policy", 0, -1},
    {"eviction", 0, -1},
    {"spec_steps", 0, MOST_DRAFTS},
    {"spec_topk", 0, MOST_DRAFTS},
    {"spec_draft_tokens", 0, MOST_DRAFTS},
    {"spec_pairs", 0, 1},
    {"max_loras", 0, MOST_TOKENS},
    {"preemption", 0, 1},
    {"preemption_threshold", 0, MOST_TOKENS},
    {"host_tokens", 0, MOST_BLOCKS},
    {"write_policy", 0, -1},
};

static enum maq_status read_sglang(struct reading *r, const json_t *knobs)
{
    static const char *const policies[] = {"fcfs", "lpm", "dfs-weight", "lof", NULL};
    static const char *const evictions[] = {"lru", "lfu", "fifo", "mru", "filo", "slru", "priority", NULL};
    static const char *const writes[] = {"write_through", "write_through_selective", "write_back", NULL};
    struct maq_recording *out = r->out;
    int hicache = word(knobs, "write_policy", writes, 0);
    int policy = word(knobs, "policy", policies, 0), eviction = word(knobs, "eviction", evictions, 0);
    const json_t *conservativeness = json_object_get(knobs, "conservativeness");
    if (policy < 0)
        return bad(r, "policies are fcfs, lpm, dfs-weight, lof", "a policy that maquette does not have");
    if (eviction < 0)
        return bad(r, "they are lru, lfu, fifo, mru, filo, slru, priority", "an eviction that maquette does not have");
    if (hicache < 0)
        return bad(r, "they are write_through, write_through_selective, write_back",
                   "a write policy that maquette does not have");
    MAQ_TRY(check_knobs(r, sglang_knobs, MAQ_COUNT(sglang_knobs), knobs));
    out->is_sglang = true;
    out->sglang = (struct maq_sglang_knobs){
        .tokens = integer(knobs, "tokens", 0),
        .page = (int32_t)integer(knobs, "page_size", 1),
        .max_running = (int32_t)integer(knobs, "max_running_requests", 2048),
        .max_prefill = (int32_t)integer(knobs, "max_prefill_tokens", 16384),
        .chunk = (int32_t)integer(knobs, "chunked_prefill_size", 8192),
        .max_requests = (int32_t)integer(knobs, "prefill_max_requests", 0),
        .conservativeness = json_is_number(conservativeness) ? json_number_value(conservativeness) : 1,
        .policy = (uint8_t)policy,
        .eviction = (uint8_t)eviction,
        .host_tokens = integer(knobs, "host_tokens", 0),
        .hicache = (uint8_t)hicache,
        .caching = integer(knobs, "caching", 1) != 0,
        .overlap = integer(knobs, "overlap", 1) != 0,
        .mixed = integer(knobs, "mixed", 0) != 0,
        .by_priority = integer(knobs, "priority", 0) != 0,
        .low_first = integer(knobs, "low_priority_first", 0) != 0,
        .preempts = integer(knobs, "preemption", 0) != 0,
        .preempts_by = (int32_t)integer(knobs, "preemption_threshold", 10) + 1,
        .verified = (int32_t)integer(knobs, "spec_draft_tokens", 0),
        .drafts = (int32_t)integer(knobs, "spec_steps", 0),
        .pairs = integer(knobs, "spec_pairs", 0) != 0,
        .max_loras = (int32_t)integer(knobs, "max_loras", 0),
    };
    out->sglang.reserve = maq_sglang_reserve(&(struct maq_sglang_tree_of_drafts){
        out->sglang.drafts, (int32_t)integer(knobs, "spec_topk", 1), out->sglang.verified, true, out->sglang.page});
    out->late = out->sglang.overlap;
    out->knobs.max_model_len = MOST_TOKENS;
    out->kv.n_groups = 1;
    out->groups[0].block_size = (int32_t)integer(knobs, "unit", out->sglang.page);
    if (out->sglang.tokens < 1)
        return bad(r, NULL, "no tokens in the cache");
    return MAQ_OK;
}

static enum maq_status read_header(struct reading *r, const json_t *line)
{
    struct maq_recording *out = r->out;
    const json_t *knobs = json_object_get(line, "knobs");
    const char *engine = json_string_value(json_object_get(line, "engine")),
               *version = json_string_value(json_object_get(line, "version"));
    bool sglang = engine && strcmp(engine, "sglang") == 0;
    if (out->engine)
        return bad(r, NULL, "a second header");
    if (!engine || (!sglang && strcmp(engine, "vllm") != 0))
        return bad(r, "engines: vllm, sglang", "the scheduler of an engine that maquette does not have");
    if (!json_is_object(knobs))
        return bad(r, NULL, "a recording without knobs");
    out->engine = sglang ? "sglang" : "vllm";
    out->version = maq_arena_strdup(r->arena, maq_str_of(version ? version : "?"));
    if (!out->version)
        return maq_no_memory(r->diag, "a recording");
    return sglang ? read_sglang(r, knobs) : read_vllm(r, knobs);
}

/* ---- requests ---- */

static enum maq_status read_request(struct reading *r, const json_t *map)
{
    struct maq_recording *out = r->out;
    const json_t *prefix = json_object_get(map, "prefix"), *id = json_object_get(map, "id");
    size_t n = json_array_size(prefix);
    struct maq_recorded_request q = {.arrive_step = integer(map, "arrive_step", 0), .slot = MAQ_NO_SLOT};
    uint64_t *names = MAQ_ARENA_NEW(r->arena, uint64_t, n);
    if (!names || !maq__grow((void **)&out->requests, &r->requests_size, out->n_requests, sizeof q))
        return maq_no_memory(r->diag, "a recording");
    for (size_t i = 0; i < n; i++)
        names[i] = (uint64_t)json_integer_value(json_array_get(prefix, i));
    if (json_is_string(id) && !(q.id = maq_arena_strdup(r->arena, maq_str_of(json_string_value(id)))))
        return maq_no_memory(r->diag, "a recording");
    q.request = (struct maq_scheduler_request){
        .prompt = integer(map, "prompt", 0),
        .output = integer(map, "output", 0),
        .limit = integer(map, "limit", 0),
        .priority = (int32_t)integer(map, "priority", 0),
        .part = (uint8_t)integer(map, "part", MAQ_PART_WHOLE),
        .content = {.prefix = names, .n_prefix = (uint32_t)n, .adapter = (uint64_t)integer(map, "adapter", 0)}};
    if (!q.id || q.request.prompt < 1 || q.request.prompt > MOST_TOKENS || q.request.output < 1 ||
        q.request.output > MOST_TOKENS || integer(map, "part", 0) < 0 || integer(map, "part", 0) > MAQ_PART_DECODE ||
        q.request.limit < 0 || q.request.limit > MOST_TOKENS || q.arrive_step < 0)
        return bad(r, NULL, "a request without id, prompt or output");
    out->requests[out->n_requests++] = q;
    return MAQ_OK;
}

static int by_arrival(const void *a, const void *b)
{
    const struct maq_recorded_request *x = a, *y = b;
    if (x->arrive_step != y->arrive_step)
        return x->arrive_step < y->arrive_step ? -1 : 1;
    return x->request.order < y->request.order ? -1 : x->request.order > y->request.order;
}

static enum maq_status number_requests(struct reading *r)
{
    struct maq_recording *out = r->out;
    for (uint32_t i = 0; i < out->n_requests; i++)
        out->requests[i].request.order = i;
    qsort(out->requests, out->n_requests, sizeof *out->requests, by_arrival);
    for (uint32_t i = 0; i < out->n_requests; i++) {
        struct maq_scheduler_request *q = &out->requests[i].request;
        const char *id = out->requests[i].id;
        if (q->prompt > out->knobs.max_model_len)
            return bad(r, NULL, maq_arena_printf(r->arena, "request '%.60s' is longer than max_model_len", id));
        if (json_object_get(out->by_id, id))
            return bad(r, NULL, maq_arena_printf(r->arena, "two requests are called '%.60s'", id));
        q->order = q->content.own = i;
        q->arrival = i;
        q->content.unit = (uint32_t)out->groups[0].block_size;
        for (uint32_t g = 1; g < out->kv.n_groups; g++) /* prefixes are named in the smallest blocks */
            if ((uint32_t)out->groups[g].block_size < q->content.unit)
                q->content.unit = (uint32_t)out->groups[g].block_size;
        if (json_object_set_new(out->by_id, id, json_integer(i)) != 0)
            return maq_no_memory(r->diag, "a recording");
    }
    return MAQ_OK;
}

/* ---- the file ---- */

static enum maq_status read_line(struct reading *r, struct maq_str text)
{
    struct maq_recording *out = r->out;
    json_error_t error;
    if (maq_str_starts(text, "{\"step\"")) { /* read when its turn comes */
        if (!maq__grow((void **)&out->steps, &r->steps_size, out->n_steps, sizeof text))
            return maq_no_memory(r->diag, "a recording");
        out->steps[out->n_steps++] = text;
        return MAQ_OK;
    }
    json_t *line = json_loadb(text.ptr, text.len, JSON_REJECT_DUPLICATES, &error);
    if (!line)
        return bad(r, NULL, "not a JSON object");
    enum maq_status status = json_object_get(line, "engine") ? read_header(r, line)
                             : json_object_get(line, "request")
                                 ? read_request(r, json_object_get(line, "request"))
                                 : bad(r, NULL, "neither a header nor a request nor a step");
    json_decref(line);
    return status;
}

enum maq_status maq_recording_read(struct maq_recording *out, const char *path, struct maq_arena *arena,
                                   struct maq_diag *diag)
{
    struct reading r = {.out = out, .arena = arena, .diag = diag};
    struct maq_str text, line;
    *out = (struct maq_recording){.path = path, .by_id = json_object()};
    if (!out->by_id)
        return maq_no_memory(diag, "a recording");
    MAQ_TRY(maq__validate_unpack(&text, path, arena, diag));
    while (text.ptr && text.len > 0) {
        text = maq_str_split(text, '\n', &line);
        r.line++;
        if (maq_str_trim(line).len > 0)
            MAQ_TRY(read_line(&r, maq_str_trim(line)));
    }
    if (!out->engine || out->n_steps == 0)
        return bad(&r, "the first line names the engine, and every step has a line", "not a recording of a scheduler");
    return number_requests(&r);
}

void maq_recording_fini(struct maq_recording *recording)
{
    json_decref(recording->by_id);
    free(recording->requests);
    free(recording->steps);
    *recording = (struct maq_recording){0};
}
