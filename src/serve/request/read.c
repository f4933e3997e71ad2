/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read.c - requests from a file: tables and lines of JSON, by the names that public traces and benchmark clients give to their columns.
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/str.h"
#include "serve/codes.h"
#include "serve/request/set.h"
#include "spec/cannot_read.h"

#define NAMED_RUN 512 /* tokens of a named run in Mooncake's traces */
#define LINE_MOST ((size_t)64 << 20)
#define TOKENS_MOST ((double)(1 << 30))

enum column { ARRIVAL, PROMPT, OUTPUT, MOST, PRIORITY, SESSION, ADAPTER, IMAGES, IMAGE_TOKENS, PREFIX, COLUMNS };

/* What a column is called, and what its numbers are multiplied with for seconds. */
static const struct {
    const char *name;
    enum column column;
    double unit_s;
} known[] = {
    {"arrival_s", ARRIVAL, 1},
    {"arrived_at", ARRIVAL, 1},
    {"arrival_time", ARRIVAL, 1},
    {"arrival_time_ns", ARRIVAL, 1e-9},
    {"timestamp", ARRIVAL, 1e-3},
    {"TIMESTAMP", ARRIVAL, 1},
    {"prompt", PROMPT, 0},
    {"input_length", PROMPT, 0},
    {"ContextTokens", PROMPT, 0},
    {"input_toks", PROMPT, 0},
    {"prompt_len", PROMPT, 0},
    {"prompt_tokens", PROMPT, 0},
    {"num_prefill_tokens", PROMPT, 0},
    {"isl", PROMPT, 0},
    {"output", OUTPUT, 0},
    {"output_length", OUTPUT, 0},
    {"GeneratedTokens", OUTPUT, 0},
    {"output_toks", OUTPUT, 0},
    {"output_len", OUTPUT, 0},
    {"completion_tokens", OUTPUT, 0},
    {"num_decode_tokens", OUTPUT, 0},
    {"osl", OUTPUT, 0},
    {"max_tokens", MOST, 0},
    {"priority", PRIORITY, 0},
    {"session", SESSION, 0},
    {"session_id", SESSION, 0},
    {"conversation_id", SESSION, 0},
    {"chat_id", SESSION, 0},
    {"adapter", ADAPTER, 0},
    {"lora", ADAPTER, 0},
    {"lora_name", ADAPTER, 0},
    {"images", IMAGES, 0},
    {"NumImages", IMAGES, 0},
    {"image_tokens", IMAGE_TOKENS, 0},
    {"hash_ids", PREFIX, 0},
};

struct reading {
    struct maq_request_set *set;
    const char *path;
    uint32_t line;
    const struct maq_request_reading *how;
    struct maq_arrivals arrivals; /* how->rate > 0: in place of the file's */
    double first_s, before_s,
        taken_s;              /* arrivals in the file's time: of the first, of the one before, of the first taken */
    bool begun, headed, json; /* a request was read; the first line that is not empty; it was an object */
    bool over;                /* how->duration_s is */
    struct maq_diag *diag;
    /* of a table */
    uint32_t at[COLUMNS];
    double unit_s;
};

static enum maq_status bad(const struct reading *r, const char *what, const char *hint)
{
    return maq_diag_fail(MAQ_BAD_INPUT, r->diag, MAQ_CODE_REQUEST_FILE, (struct maq_span){0}, hint, "%s:%u: %s",
                         r->path, r->line, what);
}

static int find(struct maq_str name)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (maq_str_is(name, known[i].name))
            return (int)i;
    return -1;
}

/* Days since the first of March of the year 0 of the Gregorian calendar. */
static double days_of(double year, double month, double day)
{
    double y = month <= 2 ? year - 1 : year, m = month <= 2 ? month + 9 : month - 3;
    return 365 * y + floor(y / 4) - floor(y / 100) + floor(y / 400) + floor((153 * m + 2) / 5) + day;
}

/* "2023-11-16 18:15:46.6805900" in seconds; a number as it is. */
static bool read_time(double *out, struct maq_str text)
{
    static const char ends[6] = {'-', '-', ' ', ':', ':', '\0'};
    double part[6];
    if (maq_str_to_double(out, text))
        return true;
    for (int i = 0; i < 6; i++) {
        struct maq_str word = text;
        if (i < 5)
            text = maq_str_split(text, ends[i], &word);
        while (word.len > 1 && word.ptr[0] == '0' && word.ptr[1] != '.')
            word = (struct maq_str){word.ptr + 1, word.len - 1};
        if (!maq_str_to_double(&part[i], word))
            return false;
    }
    /* from a day of our time on, so that microseconds are left */
    *out = (((days_of(part[0], part[1], part[2]) - days_of(2000, 1, 1)) * 24 + part[3]) * 60 + part[4]) * 60 + part[5];
    return true;
}

/* When a request comes that the file has at `at_s`: the file's time, or drawn. */
static double arrival(struct reading *r, double at_s)
{
    const double speed = r->how->speed > 0 ? r->how->speed : 1;
    if (r->set->n == 0)
        r->taken_s = at_s;
    return r->how->rate > 0 ? maq_arrivals_next(&r->arrivals) : (at_s - r->taken_s) / speed;
}

static enum maq_status add(struct reading *r, struct maq_request q)
{
    const double at_s = q.arrival_s;
    if (!r->begun)
        r->first_s = r->before_s = at_s;
    r->begun = true;
    if (at_s < r->before_s)
        return bad(r, "this request comes before the one above it: time goes back", "sort the file by arrival");
    r->before_s = at_s;
    if (q.prompt < 1 || q.output < 1)
        return bad(r, "a request has at least one token in and one out", NULL);
    if (at_s - r->first_s < r->how->from_s)
        return MAQ_OK;
    q.arrival_s = arrival(r, at_s);
    r->over = r->how->duration_s > 0 && q.arrival_s >= r->how->duration_s;
    if (r->over)
        return MAQ_OK;
    if (q.image_tokens > 0) {
        q.images = q.images > 0 ? q.images : 1;
        q.image_tokens /= q.images;
    }
    struct maq_request *to = maq_request_set_add(r->set);
    if (!to)
        return maq_no_memory(r->diag, "requests");
    *to = q;
    return MAQ_OK;
}

/* A name that only has to differ from others: a number is itself, any other text a hash of it (FNV-1a); none is 0. */
static uint64_t name_of(struct maq_str name)
{
    int64_t n;
    uint64_t h = 0xcbf29ce484222325u;
    if (maq_str_to_i64(&n, name))
        return (uint64_t)n;
    for (size_t i = 0; i < name.len; i++)
        h = (h ^ (unsigned char)name.ptr[i]) * 0x100000001b3u;
    return name.len > 0 ? h : 0;
}

/* A number of tokens or a priority into its column; false: it is none. */
static bool put(struct maq_request *q, enum column column, double x)
{
    if (!(x >= -TOKENS_MOST) || !(x <= TOKENS_MOST) || x < floor(x) || x > floor(x))
        return false;
    if ((column == IMAGES || column == IMAGE_TOKENS) && x < 0)
        return false;
    if (column == PRIORITY)
        q->priority = (int32_t)x;
    else if (column == SESSION)
        q->session = (uint64_t)(int64_t)x;
    else if (column == ADAPTER)
        q->adapter = (uint64_t)(int64_t)x;
    else if (column == IMAGES)
        q->images = (uint32_t)x;
    else if (column == IMAGE_TOKENS)
        q->image_tokens = (int64_t)x;
    else
        *(column == PROMPT ? &q->prompt : column == OUTPUT ? &q->output : &q->max_tokens) = (int64_t)x;
    return true;
}

static enum maq_status bad_number(const struct reading *r, enum column column)
{
    static const char *const what[COLUMNS] = {[ARRIVAL] = "an arrival that is no time",
                                              [PROMPT] = "tokens in that are no whole number",
                                              [OUTPUT] = "tokens out that are no whole number",
                                              [MOST] = "max_tokens that are no whole number",
                                              [PRIORITY] = "a priority that is no whole number",
                                              [ADAPTER] = "an adapter that is neither a name nor a whole number",
                                              [IMAGES] = "images that are no whole number",
                                              [IMAGE_TOKENS] = "tokens of images that are no whole number",
                                              [PREFIX] = "hash_ids that are no whole numbers"};
    return bad(r, what[column], NULL);
}

/* ---- JSON ---- */

static enum maq_status read_prefix(struct reading *r, struct maq_request *q, const json_t *list)
{
    size_t n = json_array_size(list), whole = (size_t)(q->prompt / NAMED_RUN);
    n = n < whole ? n : whole; /* the last name is of what is left of the prompt */
    uint64_t *names = MAQ_ARENA_NEW(&r->set->arena, uint64_t, n);
    if (!names)
        return maq_no_memory(r->diag, "requests");
    for (size_t i = 0; i < n; i++) {
        if (!json_is_integer(json_array_get(list, i)))
            return bad_number(r, PREFIX);
        names[i] = (uint64_t)json_integer_value(json_array_get(list, i));
    }
    q->prefix = names;
    q->n_prefix = (uint32_t)n;
    r->set->requests.prefix_unit = NAMED_RUN;
    return MAQ_OK;
}

static enum maq_status read_json(struct reading *r, struct maq_str text)
{
    struct maq_request q = {0};
    bool seen[COLUMNS] = {false};
    enum column faulty = COLUMNS;
    const char *key;
    json_t *value, *map = json_loadb(text.ptr, text.len, 0, NULL);
    if (!json_is_object(map)) {
        json_decref(map);
        return bad(r, "not a JSON object", "one object a line, with the tokens in and out of a request");
    }
    json_object_foreach(map, key, value)
    {
        int i = find(maq_str_of(key));
        if (i >= 0 && known[i].column == SESSION && json_is_string(value))
            q.session = name_of(maq_str_of(json_string_value(value)));
        if (i >= 0 && known[i].column == ADAPTER && json_is_string(value))
            q.adapter = name_of(maq_str_of(json_string_value(value)));
        if (i < 0 || known[i].column == PREFIX || !json_is_number(value))
            continue;
        double x = json_number_value(value);
        seen[known[i].column] = true;
        if (known[i].column == ARRIVAL)
            q.arrival_s = x * known[i].unit_s;
        else if (!put(&q, known[i].column, x))
            faulty = known[i].column;
    }
    enum maq_status status = MAQ_OK;
    if (!seen[PROMPT] || !seen[OUTPUT])
        status = bad(r, "no tokens in, or no tokens out",
                     "input_length and output_length, or other names: maquette serve --help");
    if (status == MAQ_OK && faulty < COLUMNS)
        status = bad_number(r, faulty);
    if (status == MAQ_OK && json_is_array(json_object_get(map, "hash_ids")))
        status = read_prefix(r, &q, json_object_get(map, "hash_ids"));
    json_decref(map);
    return status == MAQ_OK ? add(r, q) : status;
}

/* ---- tables ---- */

static enum maq_status read_names(struct reading *r, struct maq_str text)
{
    struct maq_str word;
    for (int c = 0; c < COLUMNS; c++)
        r->at[c] = UINT32_MAX;
    for (uint32_t i = 0; text.ptr; i++) {
        text = maq_str_split(text, ',', &word);
        int k = find(maq_str_trim(word));
        if (k < 0 || r->at[known[k].column] != UINT32_MAX)
            continue;
        r->at[known[k].column] = i;
        if (known[k].column == ARRIVAL)
            r->unit_s = known[k].unit_s;
    }
    if (r->at[PROMPT] == UINT32_MAX || r->at[OUTPUT] == UINT32_MAX)
        return bad(r, "no column of tokens in, or of tokens out",
                   "the first line names the columns: prompt,output,arrival_s, or other names: maquette serve --help");
    return MAQ_OK;
}

/* The column of numbers that is in this place; COLUMNS: none is. */
static enum column number_at(const struct reading *r, uint32_t place)
{
    static const enum column numbers[] = {PROMPT, OUTPUT, MOST, PRIORITY, IMAGES, IMAGE_TOKENS};
    for (size_t k = 0; k < MAQ_COUNT(numbers); k++)
        if (r->at[numbers[k]] == place)
            return numbers[k];
    return COLUMNS;
}

static enum maq_status read_row(struct reading *r, struct maq_str text)
{
    enum column number;
    struct maq_request q = {0};
    struct maq_str word;
    double x;
    for (uint32_t i = 0; text.ptr; i++) {
        text = maq_str_split(text, ',', &word);
        word = maq_str_trim(word);
        if (i == r->at[ARRIVAL]) {
            if (!read_time(&x, word) || !isfinite(x))
                return bad_number(r, ARRIVAL);
            q.arrival_s = x * r->unit_s;
        } else if (i == r->at[SESSION]) {
            q.session = name_of(word);
        } else if (i == r->at[ADAPTER]) {
            q.adapter = name_of(word);
        } else if ((number = number_at(r, i)) < COLUMNS) {
            if (!maq_str_to_double(&x, word) || !put(&q, number, x))
                return bad_number(r, number);
        }
    }
    return add(r, q);
}

/* ---- the file ---- */

static enum maq_status read_line(struct reading *r, struct maq_str text)
{
    bool first = !r->headed;
    r->headed = true;
    if (first)
        r->json = text.ptr[0] == '{';
    return r->json ? read_json(r, text) : first ? read_names(r, text) : read_row(r, text);
}

/* At its end: whether there is more that cannot be unpacked. */
static bool damaged(gzFile file)
{
    int code = Z_OK;
    gzerror(file, &code);
    return code != Z_OK && code != Z_STREAM_END;
}

static enum maq_status read_lines(struct reading *r, gzFile file)
{
    char *line = NULL;
    uint32_t size = 0;
    size_t n = 0;
    enum maq_status status = MAQ_OK;
    for (int c; status == MAQ_OK && !r->over && (r->how->most == 0 || r->set->n < r->how->most);) {
        c = gzgetc(file);
        if (c != -1 && c != '\n') {
            if (n > LINE_MOST || !maq__grow((void **)&line, &size, (uint32_t)n, 1)) {
                status = maq_no_memory(r->diag, "a line of requests");
                break;
            }
            line[n++] = (char)c;
            continue;
        }
        struct maq_str text = maq_str_trim((struct maq_str){line, n});
        r->line++;
        n = 0;
        if (c == -1 && damaged(file))
            status = maq_diag_fail(MAQ_IO, r->diag, MAQ_CODE_CANNOT_READ, (struct maq_span){0}, NULL,
                                   "%s: damaged, or not complete", r->path);
        else if (text.len > 0)
            status = read_line(r, text);
        if (c == -1)
            break;
    }
    free(line);
    return status;
}

#define REQUESTS "a recording of requests: docs/serving.md lists what is read"

static enum maq_status none(const struct reading *r)
{
    if (r->begun)
        return maq_diag_fail(MAQ_BAD_INPUT, r->diag, MAQ_CODE_REQUEST_FILE, (struct maq_span){0}, NULL,
                             "%s: no requests from %g s on: the last one comes %g s behind the first", r->path,
                             r->how->from_s, r->before_s - r->first_s);
    return maq_diag_fail(MAQ_BAD_INPUT, r->diag, MAQ_CODE_REQUEST_FILE, (struct maq_span){0}, NULL, "%s: no requests",
                         r->path);
}

enum maq_status maq_requests_read(struct maq_request_set **out, const char *path, const struct maq_request_reading *how,
                                  struct maq_diag *diag)
{
    struct reading r = {.set = maq_request_set_new(),
                        .path = path,
                        .how = how,
                        .arrivals = maq_arrivals_of(how->rate, how->burstiness, how->seed),
                        .diag = diag};
    enum maq_status status = r.set ? maq_file_expected(path, REQUESTS, diag) : maq_no_memory(diag, "requests");
    gzFile file = NULL;
    errno = ENOMEM; /* what zlib has run out of where it leaves no other reason */
    if (status == MAQ_OK && !(file = strcmp(path, "-") == 0 ? gzdopen(0, "rb") : gzopen(path, "rb")))
        status = maq_cannot_read(diag, path, REQUESTS, errno);
    if (file) {
        status = read_lines(&r, file);
        gzclose(file);
    }
    if (status == MAQ_OK && r.set->n == 0)
        status = none(&r);
    if (status != MAQ_OK) {
        maq_requests_free(r.set);
        return status;
    }
    maq_request_set_close(r.set);
    r.set->requests.concurrency = how->concurrency;
    *out = r.set;
    return MAQ_OK;
}
