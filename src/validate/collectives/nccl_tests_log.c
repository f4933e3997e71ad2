/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl_tests_log.c - one pass over the lines: what a line says of the test that runs, or a row with all that is known of the test by then.
 *
 * A row is found by its five words "1048576 262144 float sum -1", wherever in the line they begin: launchers write in front of it.
 */
#include "validate/collectives/nccl_tests_log.h"

#include <string.h>

#include "base/check.h"
#include "base/mended.h"
#include "base/str.h"
#include "base/text.h"
#include "validate/codes.h"
#include "validate/collectives/row.h"

#define MOST_WORDS 32u /* of a line: a row with statistics of each iteration has 21 */
#define MOST_HOSTS 4096u
#define ROW_WORDS 8u /* size, count, type, redop, root, time, algbw, busbw */

/* nccl-tests' names of types, those of NCCL 1 too, and their bytes. */
static const struct {
    const char *name;
    uint32_t bytes;
} types[] = {
    {"int8", 1},  {"uint8", 1},  {"char", 1}, {"f8e4m3", 1}, {"f8e5m2", 1}, {"half", 2},   {"bfloat16", 2},
    {"int32", 4}, {"uint32", 4}, {"int", 4},  {"float", 4},  {"int64", 8},  {"uint64", 8}, {"double", 8},
};

struct log_reader {
    struct maq_arena *arena;
    struct maq_csv *csv;
    uint32_t max_rows;
    const char *name, *text;
    const char *given; /* the collective of tests that do not name theirs, or NULL */
    bool failed;       /* out of memory */
    struct maq_mending mended;
    struct maq_diag *diag;
    /* of the test that runs */
    struct maq_str collective, gpu;
    struct maq_str host[MOST_HOSTS];
    uint32_t ranks_on[MOST_HOSTS];
    uint32_t n_hosts, n_ranks, groups;
    bool several_gpus, sockets, no_nvls;
};

struct words {
    struct maq_str of[MOST_WORDS];
    uint32_t n;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static void split(struct words *w, struct maq_str line)
{
    w->n = 0;
    for (size_t i = 0; i < line.len && w->n < MOST_WORDS;) {
        while (i < line.len && is_blank(line.ptr[i]))
            i++;
        size_t from = i;
        while (i < line.len && !is_blank(line.ptr[i]))
            i++;
        if (i > from)
            w->of[w->n++] = (struct maq_str){line.ptr + from, i - from};
    }
}

/* Index of a word, or w->n. */
static uint32_t find(const struct words *w, const char *word)
{
    uint32_t i = 0;
    while (i < w->n && !maq_str_is(w->of[i], word))
        i++;
    return i;
}

static bool holds(struct maq_str line, const char *part)
{
    return memmem(line.ptr, line.len, part, strlen(part)) != NULL;
}

static uint32_t type_bytes(struct maq_str type)
{
    for (size_t i = 0; i < MAQ_COUNT(types); i++)
        if (maq_str_is(type, types[i].name))
            return types[i].bytes;
    return 0;
}

static bool names_columns(struct maq_str line)
{
    struct words w = {.n = 0};
    split(&w, line);
    uint32_t size = find(&w, "size");
    return size + 4 < w.n && maq_str_is(w.of[size + 1], "count") && maq_str_is(w.of[size + 2], "type") &&
           find(&w, "busbw") < w.n;
}

static struct maq_str next_line(struct maq_str *rest)
{
    const char *end = memchr(rest->ptr, '\n', rest->len);
    struct maq_str line = {rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len};
    size_t taken = line.len + (end != NULL);
    *rest = (struct maq_str){rest->ptr + taken, rest->len - taken};
    return line;
}

bool maq_nccl_tests_log_is(struct maq_str text)
{
    while (text.len > 0) {
        struct maq_str line = next_line(&text);
        if (names_columns(line) || (holds(line, "# nThread ") && holds(line, "minBytes ")))
            return true;
    }
    return false;
}

/* ---- what a line says of the test ---- */

static void begin_test(struct log_reader *r)
{
    r->gpu = MAQ_STR("");
    r->n_hosts = r->n_ranks = r->groups = 0;
    r->several_gpus = false;
}

/* "Rank 3 Group 0 Pid 12 on node1 device 3 [0000:07:00] NVIDIA H100 80GB HBM3"; the group is missing in older logs. */
static void read_rank(struct log_reader *r, const struct words *w, uint32_t rank, struct maq_str line)
{
    uint32_t on = find(w, "on"), device = find(w, "device"), group = find(w, "Group");
    int64_t number;
    if (on + 1 >= w->n || device != on + 2 || device + 3 >= w->n || w->of[device + 2].ptr[0] != '[' ||
        !maq_str_to_i64(&number, w->of[rank + 1]))
        return;
    if (number == 0)
        begin_test(r);
    if (group + 1 < w->n && maq_str_to_i64(&number, w->of[group + 1]) && number >= r->groups)
        r->groups = (uint32_t)(number < MOST_HOSTS ? number + 1 : MOST_HOSTS);
    const char *name = w->of[device + 3].ptr;
    struct maq_str gpu = maq_str_trim((struct maq_str){name, (size_t)(line.ptr + line.len - name)});
    r->several_gpus |= r->gpu.len > 0 && !maq_str_eq(r->gpu, gpu);
    r->gpu = gpu;
    r->n_ranks++;
    uint32_t h = 0;
    while (h < r->n_hosts && !maq_str_eq(r->host[h], w->of[on + 1]))
        h++;
    if (h == MOST_HOSTS)
        return;
    if (h == r->n_hosts) {
        r->host[r->n_hosts++] = w->of[on + 1];
        r->ranks_on[h] = 0;
    }
    r->ranks_on[h]++;
}

/* The program that a line names: ".../build/all_reduce_perf" is all_reduce. */
static void read_program(struct log_reader *r, const struct words *w)
{
    for (uint32_t i = 0; i < w->n; i++) {
        struct maq_str word = w->of[i];
        const char *suffix = memmem(word.ptr, word.len, "_perf", 5);
        if (!suffix)
            continue;
        const char *from = suffix;
        while (from > word.ptr && ((from[-1] >= 'a' && from[-1] <= 'z') || from[-1] == '_'))
            from--;
        if (from < suffix)
            r->collective = (struct maq_str){from, (size_t)(suffix - from)};
    }
}

static void read_setting(struct log_reader *r, struct maq_str line)
{
    if (holds(line, "Using network Socket"))
        r->sockets = true;
    else if (holds(line, "Using network "))
        r->sockets = false;
    if (holds(line, "NCCL_NVLS_ENABLE set"))
        r->no_nvls = holds(line, "environment to 0");
}

/* ---- rows ---- */

static struct maq_str number_text(struct log_reader *r, uint32_t n)
{
    char *text = MAQ_ARENA_NEW(r->arena, char, 12);
    if (!text) {
        r->failed = true;
        return MAQ_STR("");
    }
    return (struct maq_str){text, (size_t)maq__snprintf(text, 12, "%u", n)};
}

/* Where the five words of a row begin; w->n: nowhere. */
static uint32_t row_begin(const struct words *w)
{
    int64_t size, count, root;
    for (uint32_t i = 0; i + 4 < w->n; i++)
        if (type_bytes(w->of[i + 2]) > 0 && maq_str_to_i64(&size, w->of[i]) && maq_str_to_i64(&count, w->of[i + 1]) &&
            maq_str_to_i64(&root, w->of[i + 4]))
            return i;
    return w->n;
}

/* Why a row is none; NULL: it is. Its size is that of its elements, or of those of all ranks where they are counted for one. */
static const char *fault_of(const struct log_reader *r, const struct words *w, uint32_t at)
{
    int64_t size = 0, count = 0;
    double number;
    if (w->n - at < ROW_WORDS)
        return "a row that breaks off";
    (void)maq_str_to_i64(&size, w->of[at]);
    (void)maq_str_to_i64(&count, w->of[at + 1]);
    double bytes = (double)count * type_bytes(w->of[at + 2]);
    double of_one = r->n_ranks > 0 ? (double)size / r->n_ranks : bytes;
    if (size < 0 || count < 0 || !(bytes == (double)size || bytes == of_one))
        return "a row whose size is not that of its elements";
    for (uint32_t i = 5; i < ROW_WORDS; i++)
        if (!maq_str_to_double(&number, w->of[at + i]) || number < 0)
            return "a row with a value that is no number";
    return NULL;
}

static void add_row(struct log_reader *r, const struct words *w, uint32_t at)
{
    struct maq_csv_field *row = &r->csv->fields[(size_t)r->csv->n_rows++ * MAQ_COLL_COLUMN_COUNT];
    uint32_t on_one = 0;
    for (uint32_t h = 0; h < r->n_hosts; h++)
        on_one = r->ranks_on[h] > on_one ? r->ranks_on[h] : on_one;
    struct maq_str known[MAQ_COLL_COLUMN_COUNT] = {
        [MAQ_COLL_COLUMN_source] = maq_str_of(r->name),
        [MAQ_COLL_COLUMN_gpu] = r->several_gpus ? MAQ_STR("several") : r->gpu,
        [MAQ_COLL_COLUMN_num_gpus] = r->n_ranks > 0 ? number_text(r, r->n_ranks) : MAQ_STR(""),
        [MAQ_COLL_COLUMN_gpus_per_node] = on_one > 0 ? number_text(r, on_one) : MAQ_STR(""),
        [MAQ_COLL_COLUMN_collective] = r->collective.len > 0 ? r->collective : maq_str_of(r->given),
        [MAQ_COLL_COLUMN_size_bytes] = w->of[at],
        [MAQ_COLL_COLUMN_time_us] = w->of[at + 5],
        [MAQ_COLL_COLUMN_notes] = r->groups > 1 ? MAQ_STR("several groups at once")
                                  : r->sockets  ? (r->no_nvls ? MAQ_STR("sockets; NVLS off") : MAQ_STR("sockets"))
                                  : r->no_nvls  ? MAQ_STR("NVLS off")
                                                : MAQ_STR(""),
    };
    for (int c = 0; c < MAQ_COLL_COLUMN_COUNT; c++) {
        row[c] = (struct maq_csv_field){.text = known[c]};
        if (known[c].len > 0 && (c == MAQ_COLL_COLUMN_size_bytes || c == MAQ_COLL_COLUMN_time_us))
            row[c] = (struct maq_csv_field){known[c], (uint32_t)(known[c].ptr - r->text), (uint32_t)known[c].len};
    }
    row[MAQ_COLL_COLUMN_source].off = row[MAQ_COLL_COLUMN_size_bytes].off; /* the place of a row is its first field's */
}

static enum maq_status read_line(struct log_reader *r, struct maq_str line)
{
    struct words w = {.n = 0};
    split(&w, line);
    uint32_t at = row_begin(&w), rank = find(&w, "Rank");
    if (at < w.n) {
        const char *fault = fault_of(r, &w, at);
        struct maq_span span = {r->csv->file, (uint32_t)(w.of[at].ptr - r->text), (uint32_t)w.of[at].len};
        if (fault)
            return maq_mend_at(&r->mended, MAQ_MEND_LINE, r->diag ? maq_diag_place(r->diag, span).line : 0,
                               MAQ_CODE_CSV_WIDTH, span, "%s", fault);
        if (r->csv->n_rows < r->max_rows)
            add_row(r, &w, at);
        return MAQ_OK;
    }
    if (holds(line, "Using devices"))
        begin_test(r);
    if (rank + 1 < w.n)
        read_rank(r, &w, rank, line);
    read_program(r, &w);
    read_setting(r, line);
    return MAQ_OK;
}

/* ---- the whole ---- */

static uint32_t count_lines(struct maq_str text)
{
    uint32_t n = 1;
    for (size_t i = 0; i < text.len; i++)
        n += text.ptr[i] == '\n';
    return n;
}

static enum maq_status open_table(struct maq_csv *out, const char *name, struct maq_str text, uint32_t rows,
                                  struct maq_arena *arena, struct maq_diag *diag)
{
    static const char *const columns[] = {
#define COLUMN_NAME(name, needed) #name,
        MAQ_COLL_COLUMN_LIST(COLUMN_NAME)
#undef COLUMN_NAME
    };
    *out = (struct maq_csv){.file = maq_diag_add_source(diag, name, text.ptr, text.len),
                            .n_columns = MAQ_COLL_COLUMN_COUNT,
                            .names = MAQ_ARENA_NEW(arena, struct maq_csv_field, MAQ_COLL_COLUMN_COUNT),
                            .fields = MAQ_ARENA_NEW(arena, struct maq_csv_field, (size_t)rows * MAQ_COLL_COLUMN_COUNT)};
    if (!out->names || !out->fields)
        return maq_no_memory(diag, "the table");
    for (int c = 0; c < MAQ_COLL_COLUMN_COUNT; c++)
        out->names[c] = (struct maq_csv_field){.text = maq_str_of(columns[c])};
    return MAQ_OK;
}

enum maq_status maq_nccl_tests_log_read(struct maq_csv *out, const char *name, struct maq_str text,
                                        const char *collective, struct maq_arena *arena, struct maq_diag *diag)
{
    if (text.len > MAQ_CSV_MAX_BYTES)
        return maq_diag_fail(MAQ_LIMIT, diag, MAQ_CODE_CSV_SIZE, (struct maq_span){0}, NULL,
                             "%s: over the limit of 64 MiB", name);
    uint32_t lines = count_lines(text);
    if (lines > MAQ_CSV_MAX_ROWS)
        return maq_diag_fail(MAQ_LIMIT, diag, MAQ_CODE_CSV_SIZE, (struct maq_span){0}, NULL, "%s: more than %u lines",
                             name, MAQ_CSV_MAX_ROWS);
    struct log_reader *r = MAQ_ARENA_NEW(arena, struct log_reader, 1);
    const char *source = maq_arena_strdup(arena, maq_str_of(name));
    if (!r || !source)
        return maq_no_memory(diag, "the log");
    MAQ_TRY(open_table(out, name, text, lines, arena, diag));
    r->arena = arena;
    r->csv = out;
    r->max_rows = lines;
    r->name = source;
    r->text = text.ptr;
    r->given = collective;
    r->diag = diag;
    maq_mending_begin(&r->mended, name, "line", "rows", diag);
    while (text.len > 0)
        MAQ_TRY(read_line(r, next_line(&text)));
    return r->failed ? maq_no_memory(diag, "the log") : maq_mending_end(&r->mended, out->n_rows);
}
