/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_requests.c - requests drawn at random, and read from files.
 *
 * Gaps of 20,000 requests have the mean, the variance and (for a Poisson process) the distribution that they are asked for, within five
 * standard errors. Every name that a column can go by is read, from a table and from JSON, plain and packed; what is no request has its line.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "base/check.h"
#include "failing_alloc.h"
#include "maquette/serve.h"
#include "serve/codes.h"
#include "temp.h"

/* ---- at random ---- */

static struct maq_request_set *generate(struct maq_request_spec spec)
{
    struct maq_request_set *set = NULL;
    assert_int_equal(maq_requests_generate(&set, &spec, NULL), MAQ_OK);
    return set;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Gaps of a gamma distribution of shape k: mean 1 / rate, variance mean^2 / k, excess of its kurtosis 6 / k. */
static void test_gaps(void **state)
{
    (void)state;
    static const double shapes[] = {0, 0.25, 0.5, 1, 4, 100}; /* 0: nothing is said, 1 */
    const uint32_t n = 20001;
    const double rate = 8;
    double *gap = calloc(n - 1, sizeof *gap);
    assert_non_null(gap);
    for (size_t i = 0; i < MAQ_COUNT(shapes); i++) {
        double k = shapes[i] > 0 ? shapes[i] : 1, gaps = n - 1, mean = 0, variance = 0, distance = 0;
        struct maq_request_set *set = generate(
            (struct maq_request_spec){.rate = rate, .burstiness = shapes[i], .n = n, .prompt = 1, .output = 1});
        const struct maq_requests *q = maq_requests_get(set);
        assert_int_equal(q->n, n);
        assert_true(q->at[0].arrival_s == 0 && q->concurrency == 0);
        for (uint32_t g = 0; g + 1 < n; g++) {
            gap[g] = (q->at[g + 1].arrival_s - q->at[g].arrival_s) * rate;
            assert_true(gap[g] >= 0);
            mean += gap[g] / gaps;
        }
        for (uint32_t g = 0; g + 1 < n; g++)
            variance += (gap[g] - mean) * (gap[g] - mean) / gaps;
        assert_true(fabs(mean - 1) < 5 * sqrt(1 / k / gaps));
        assert_true(fabs(variance * k - 1) < 5 * sqrt((2 + 6 / k) / gaps));
        if (k > 0.99 && k < 1.01) { /* Kolmogorov and Smirnov: over 1.95 / sqrt(n) once in a thousand */
            qsort(gap, n - 1, sizeof *gap, by_size);
            for (uint32_t g = 0; g + 1 < n; g++)
                distance = fmax(distance, fabs(1 - exp(-gap[g]) - (g + 0.5) / gaps));
            assert_true(distance < 1.95 / sqrt(gaps));
        }
        maq_requests_free(set);
    }
    free(gap);
}

static void test_seeds(void **state)
{
    (void)state;
    const struct maq_request_spec spec = {.rate = 2, .n = 200, .prompt = 100, .output = 50, .spread = 0.5, .seed = 7};
    struct maq_request_spec longer = spec, other = spec;
    longer.n = 300;
    other.seed = 8;
    struct maq_request_set *a = generate(spec), *b = generate(spec), *c = generate(longer), *d = generate(other);
    const struct maq_request *p = maq_requests_get(a)->at;
    uint32_t equal = 0;
    assert_memory_equal(p, maq_requests_get(b)->at, 200 * sizeof *p);
    assert_memory_equal(p, maq_requests_get(c)->at, 200 * sizeof *p); /* more requests, and the same ones before */
    for (uint32_t i = 1; i < 200; i++)
        equal += maq_requests_get(d)->at[i].arrival_s <= p[i].arrival_s &&
                 maq_requests_get(d)->at[i].arrival_s >= p[i].arrival_s;
    assert_int_equal(equal, 0);
    maq_requests_free(a);
    maq_requests_free(b);
    maq_requests_free(c);
    maq_requests_free(d);
}

static void test_lengths(void **state)
{
    (void)state;
    static const struct {
        int64_t mean, least, most;
        double spread;
    } cases[] = {{100, 100, 100, 0}, {100, 80, 120, 0.2}, {10, 5, 15, 0.5}, {3, 1, 6, 1}, {1, 1, 2, 1}};
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        const uint32_t n = 4000;
        struct maq_request_set *set = generate((struct maq_request_spec){
            .rate = 1, .n = n, .prompt = cases[i].mean, .output = cases[i].mean, .spread = cases[i].spread});
        const struct maq_requests *q = maq_requests_get(set);
        double sum = 0, width = (double)(cases[i].most - cases[i].least + 1);
        bool least = false, most = false;
        for (uint32_t k = 0; k < n; k++) {
            for (int out = 0; out < 2; out++) {
                int64_t x = out ? q->at[k].output : q->at[k].prompt;
                assert_true(x >= cases[i].least && x <= cases[i].most);
                least |= x == cases[i].least;
                most |= x == cases[i].most;
                sum += (double)x / (2.0 * n);
            }
        }
        assert_true(least && most);
        if (cases[i].mean > 3) /* below, none is 0 and counts as 1 */
            assert_true(fabs(sum - (double)cases[i].mean) <= 5 * width / sqrt(12 * 2.0 * n));
        maq_requests_free(set);
    }
}

static void test_how_many(void **state)
{
    (void)state;
    static const struct {
        struct maq_request_spec spec;
        uint32_t n;
    } cases[] = {{{.n = 3}, 3},
                 {{.rate = 2, .duration_s = 10}, 20},
                 {{.rate = 2, .duration_s = 10, .n = 3}, 3},
                 {{.rate = 0.1, .duration_s = 1}, 1},
                 {{.concurrency = 4, .n = 9}, 9}};
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct maq_request_spec spec = cases[i].spec;
        spec.prompt = spec.output = 5;
        struct maq_request_set *set = generate(spec);
        assert_int_equal(maq_requests_get(set)->n, cases[i].n);
        assert_int_equal(maq_requests_get(set)->concurrency, spec.concurrency);
        if (spec.rate <= 0)
            assert_true(maq_requests_get(set)->at[cases[i].n - 1].arrival_s <= 0);
        maq_requests_free(set);
    }
    struct maq_request_set *set = NULL;
    struct maq_diag *diag = maq_diag_new();
    const struct maq_request_spec many = {.rate = 1e9, .duration_s = 1e9, .prompt = 1, .output = 1};
    assert_int_equal(maq_requests_generate(&set, &many, diag), MAQ_LIMIT);
    assert_int_equal(maq_diag_at(diag, 0)->code, MAQ_CODE_REQUEST_FILE);
    assert_null(set);
    const struct maq_request_spec names = {.rate = 1, .n = 10, .prompt = 4096, .output = 1, .distinct = 1000000};
    assert_int_equal(maq_requests_generate(&set, &names, diag), MAQ_LIMIT);
    assert_int_equal(maq_diag_at(diag, 1)->code, MAQ_CODE_REQUEST_FILE);
    assert_null(set);
    maq_diag_free(diag);
}

static void test_shared_prefix(void **state)
{
    (void)state;
    struct maq_request_set *set = generate(
        (struct maq_request_spec){.rate = 1, .n = 500, .prompt = 100, .output = 1, .spread = 0.5, .shared_prefix = 90});
    const struct maq_requests *q = maq_requests_get(set);
    uint32_t with = 0;
    assert_int_equal(q->prefix_unit, 90);
    for (uint32_t i = 0; i < q->n; i++) {
        assert_int_equal(q->at[i].n_prefix, q->at[i].prompt > 90);
        if (q->at[i].n_prefix)
            assert_true(q->at[i].prefix[0] == 1);
        with += q->at[i].n_prefix;
    }
    assert_true(with > 200 && with < 400);
    maq_requests_free(set);
}

/* Whole prompts come again, with their lengths; two of them differ from their first tokens on. */
static void test_distinct_prompts(void **state)
{
    (void)state;
    struct maq_request_set *set = generate(
        (struct maq_request_spec){.rate = 1, .n = 5000, .prompt = 200, .output = 30, .spread = 0.5, .distinct = 20});
    const struct maq_requests *q = maq_requests_get(set);
    const struct maq_request *first[20] = {0};
    uint32_t seen[20] = {0}, prompts = 0;
    for (uint32_t i = 0; i < q->n; i++) {
        const struct maq_request *r = &q->at[i];
        uint32_t k = 0;
        while (k < prompts && first[k]->prefix[0] != r->prefix[0])
            k++;
        assert_true(k < 20);
        if (k == prompts)
            first[prompts++] = r;
        seen[k]++;
        assert_int_equal(r->prompt, first[k]->prompt);
        assert_int_equal(r->output, first[k]->output);
        assert_int_equal(r->n_prefix, r->prompt / q->prefix_unit);
        assert_ptr_equal(r->prefix, first[k]->prefix);
    }
    assert_int_equal(prompts, 20);
    for (uint32_t k = 0; k < 20; k++)
        assert_true(seen[k] > 190 && seen[k] < 310); /* 250 each, 3.9 standard deviations of 15.4 */
    maq_requests_free(set);
}

/* ---- from files ---- */

static const struct maq_request_reading as_recorded = {0};

static enum maq_status read_bytes(struct maq_request_set **out, const void *bytes, size_t n,
                                  const struct maq_request_reading *how, struct maq_diag *diag)
{
    char path[] = "/tmp/maq-requests-XXXXXX";
    temp_file(path, bytes, n);
    *out = NULL;
    enum maq_status status = maq_requests_read(out, path, how, diag);
    unlink(path);
    return status;
}

static struct maq_request_set *read_as(const char *text, struct maq_request_reading how)
{
    struct maq_request_set *set;
    struct maq_diag *diag = maq_diag_new();
    if (read_bytes(&set, text, strlen(text), &how, diag) != MAQ_OK)
        fail_msg("%s\n%s", text, maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return set;
}

static struct maq_request_set *read_text(const char *text, double speed, uint32_t most)
{
    return read_as(text, (struct maq_request_reading){.speed = speed, .most = most});
}

static void expect_requests(const char *text, const struct maq_request *want, uint32_t n)
{
    struct maq_request_set *set = read_text(text, 0, 0);
    const struct maq_requests *q = maq_requests_get(set);
    assert_int_equal(q->n, n);
    assert_int_equal(q->concurrency, 0);
    for (uint32_t i = 0; i < n; i++) {
        assert_true(fabs(q->at[i].arrival_s - want[i].arrival_s) < 1e-6);
        assert_int_equal(q->at[i].prompt, want[i].prompt);
        assert_int_equal(q->at[i].output, want[i].output);
        assert_int_equal(q->at[i].priority, want[i].priority);
    }
    maq_requests_free(set);
}

static void test_every_name(void **state)
{
    (void)state;
    static const char *const in[] = {"prompt",     "input_length",  "ContextTokens",      "input_toks",
                                     "prompt_len", "prompt_tokens", "num_prefill_tokens", "isl"};
    static const char *const out[] = {"output",     "output_length",     "GeneratedTokens",   "output_toks",
                                      "output_len", "completion_tokens", "num_decode_tokens", "osl"};
    static const struct {
        const char *name;
        double a_second;
    } at[] = {{"arrival_s", 1},         {"arrived_at", 1},   {"arrival_time", 1},
              {"arrival_time_ns", 1e9}, {"timestamp", 1000}, {"TIMESTAMP", 1}};
    const struct maq_request want[] = {{.arrival_s = 0, .prompt = 12, .output = 3, .priority = 2},
                                       {.arrival_s = 2.5, .prompt = 7, .output = 90, .priority = -1}};
    for (size_t i = 0; i < MAQ_COUNT(in); i++)
        for (size_t k = 0; k < MAQ_COUNT(at); k++) {
            char text[1024];
            double t = 1000 * at[k].a_second, later = 1002.5 * at[k].a_second;
            snprintf(text, sizeof text, "x,%s,priority,%s,%s\n?,12,2,%.17g,3\n?,7,-1,%.17g,90\n", in[i], at[k].name,
                     out[i], t, later);
            expect_requests(text, want, 2);
            snprintf(text, sizeof text,
                     "{\"%s\": 12, \"priority\": 2, \"%s\": %.17g, \"%s\": 3, \"x\": [1]}\n"
                     "{\"%s\": 7, \"x\": \"y\", \"priority\": -1, \"%s\": %.17g, \"%s\": 90}\n",
                     in[i], at[k].name, t, out[i], in[i], at[k].name, later, out[i]);
            expect_requests(text, want, 2);
        }
}

static void test_forms(void **state)
{
    (void)state;
    const struct maq_request all_at_once[] = {{.prompt = 1, .output = 2}, {.prompt = 3, .output = 4}};
    expect_requests("prompt,output\n1,2\n3,4\n", all_at_once, 2);
    expect_requests("prompt,output\r\n1,2\r\n\r\n3,4", all_at_once, 2); /* blank lines, no end of the last */
    expect_requests("\n \n prompt , output \n 1 , 2\n3,4\n", all_at_once, 2);
    expect_requests("\n\n{\"isl\": 1, \"osl\": 2}\n\n{\"isl\": 3.0, \"osl\": 4}", all_at_once, 2);
    expect_requests("prompt,isl,output\n1,9,2\n3,9,4\n", all_at_once, 2); /* of two names the first */
}

/* Dates as in Azure's traces, over the end of a day, of a month, of February in a leap year and in another, of a year. */
static void test_dates(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to;
        double seconds;
    } cases[] = {{"2023-11-16 18:15:46.6805900", "2023-11-16 18:15:50.9951690", 4.314579},
                 {"2023-11-16 23:59:59.5", "2023-11-17 00:00:01", 1.5},
                 {"2023-11-30 09:08:07", "2023-12-01 09:08:07", 86400},
                 {"2024-02-28 12:00:00", "2024-03-01 12:00:00", 2 * 86400},
                 {"2023-02-28 12:00:00", "2023-03-01 12:00:00", 86400},
                 {"1900-02-28 12:00:00", "1900-03-01 12:00:00", 86400},
                 {"2000-02-28 12:00:00", "2000-03-01 12:00:00", 2 * 86400},
                 {"2023-12-31 23:00:00", "2024-01-01 00:00:00", 3600},
                 {"2023-03-01 00:00:00", "2024-03-01 00:00:00", 366 * 86400}};
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        char text[256];
        const struct maq_request want[] = {{.prompt = 1, .output = 1},
                                           {.arrival_s = cases[i].seconds, .prompt = 1, .output = 1}};
        snprintf(text, sizeof text, "TIMESTAMP,ContextTokens,GeneratedTokens\n%s,1,1\n%s,1,1\n", cases[i].from,
                 cases[i].to);
        expect_requests(text, want, 2);
    }
}

/* Mooncake's: a name for each 512 tokens of the prompt; the last one, of what is left, names no whole run. */
static void test_prefixes(void **state)
{
    (void)state;
    struct maq_request_set *set =
        read_text("{\"timestamp\": 0, \"input_length\": 1300, \"output_length\": 5, \"hash_ids\": [10, 11, 12]}\n"
                  "{\"timestamp\": 50, \"input_length\": 1024, \"output_length\": 5, \"hash_ids\": [10, 13]}\n"
                  "{\"timestamp\": 60, \"input_length\": 511, \"output_length\": 5, \"hash_ids\": [14]}\n"
                  "{\"timestamp\": 60, \"input_length\": 600, \"output_length\": 5, \"hash_ids\": []}\n",
                  0, 0);
    const struct maq_requests *q = maq_requests_get(set);
    assert_int_equal(q->prefix_unit, 512);
    assert_int_equal(q->at[0].n_prefix, 2);
    assert_true(q->at[0].prefix[0] == 10 && q->at[0].prefix[1] == 11);
    assert_int_equal(q->at[1].n_prefix, 2);
    assert_true(q->at[1].prefix[1] == 13);
    assert_int_equal(q->at[2].n_prefix, 0);
    assert_int_equal(q->at[3].n_prefix, 0);
    maq_requests_free(set);
}

static void test_speed_and_most(void **state)
{
    (void)state;
    static const char text[] = "arrival_s,prompt,output\n10,1,1\n14,2,1\n20,3,1\n19,never,read\n";
    struct maq_request_set *set = read_text(text, 2, 3);
    const struct maq_requests *q = maq_requests_get(set);
    assert_int_equal(q->n, 3);
    assert_true(fabs(q->at[1].arrival_s - 2) < 1e-12 && fabs(q->at[2].arrival_s - 5) < 1e-12);
    maq_requests_free(set);
}

static size_t packed(unsigned char *out, size_t size, const char *text)
{
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (unsigned char *)(uintptr_t)text;
    z.avail_in = (unsigned)strlen(text);
    z.next_out = out;
    z.avail_out = (unsigned)size;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return z.total_out;
}

/* Ten requests, one every 3 s from 100 s on; request k has k + 1 tokens in. */
static void write_ten(char *text, size_t size, bool timed)
{
    size_t n = (size_t)snprintf(text, size, timed ? "arrival_s,prompt,output\n" : "prompt,output\n");
    for (int k = 0; k < 10; k++)
        n += (size_t)(timed ? snprintf(text + n, size - n, "%d,%d,5\n", 100 + 3 * k, k + 1)
                            : snprintf(text + n, size - n, "%d,5\n", k + 1));
}

/* A window of the file is the requests of it, the first at 0; its length is in the time in which they come. */
static void test_windows(void **state)
{
    (void)state;
    static const struct {
        struct maq_request_reading how;
        int64_t first;
        uint32_t n;
        double gap_s;
    } cases[] = {{{.from_s = 0}, 1, 10, 3},
                 {{.from_s = 3}, 2, 9, 3},
                 {{.from_s = 4}, 3, 8, 3},
                 {{.duration_s = 9}, 1, 3, 3}, /* at 9 s it is over */
                 {{.from_s = 4, .duration_s = 9.5}, 3, 4, 3},
                 {{.from_s = 4, .duration_s = 9.5, .speed = 2}, 3, 7, 1.5},
                 {{.from_s = 27}, 10, 1, 0},
                 {{.from_s = 4, .most = 2}, 3, 2, 3}};
    char text[1024];
    write_ten(text, sizeof text, true);
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct maq_request_set *set = read_as(text, cases[i].how);
        const struct maq_requests *q = maq_requests_get(set);
        assert_int_equal(q->n, cases[i].n);
        for (uint32_t k = 0; k < q->n; k++) {
            assert_int_equal(q->at[k].prompt, cases[i].first + k);
            assert_true(fabs(q->at[k].arrival_s - k * cases[i].gap_s) < 1e-9);
        }
        maq_requests_free(set);
    }
    struct maq_request_set *set;
    struct maq_diag *diag = maq_diag_new();
    const struct maq_request_reading late = {.from_s = 28};
    assert_int_equal(read_bytes(&set, text, strlen(text), &late, diag), MAQ_BAD_INPUT);
    char *said = maq_diag_format(diag, 0, false);
    assert_non_null(strstr(said, "no requests from 28 s on: the last one comes 27 s behind"));
    free(said);
    maq_diag_free(diag);
}

/* With a rate the requests of a file come when drawn ones of that seed do, whether the file has times or not. */
static void test_drawn_arrivals(void **state)
{
    (void)state;
    const struct maq_request_spec spec = {.rate = 2.5, .burstiness = 0.5, .n = 10, .prompt = 1, .output = 1, .seed = 7};
    struct maq_request_reading how = {.rate = 2.5, .burstiness = 0.5, .seed = 7};
    struct maq_request_set *drawn;
    char text[1024];
    assert_int_equal(maq_requests_generate(&drawn, &spec, NULL), MAQ_OK);
    const struct maq_requests *want = maq_requests_get(drawn);
    for (int timed = 0; timed < 2; timed++) {
        write_ten(text, sizeof text, timed);
        how.duration_s = 0;
        struct maq_request_set *set = read_as(text, how);
        const struct maq_requests *q = maq_requests_get(set);
        assert_int_equal(q->n, 10);
        for (uint32_t k = 0; k < q->n; k++) {
            assert_int_equal(q->at[k].prompt, k + 1);
            assert_true(!(q->at[k].arrival_s < want->at[k].arrival_s) && !(q->at[k].arrival_s > want->at[k].arrival_s));
        }
        maq_requests_free(set);
        how.duration_s = want->at[6].arrival_s;
        set = read_as(text, how);
        assert_int_equal(maq_requests_get(set)->n, 6);
        maq_requests_free(set);
    }
    struct maq_request_set *set = read_as(text, (struct maq_request_reading){.concurrency = 4});
    assert_int_equal(maq_requests_get(set)->concurrency, 4);
    maq_requests_free(set);
    maq_requests_free(drawn);
}

static void test_packed(void **state)
{
    (void)state;
    char text[8192] = "prompt,output\n";
    unsigned char bytes[8192];
    struct maq_request_set *set;
    struct maq_diag *diag = maq_diag_new();
    for (int i = 1; i <= 500; i++)
        sprintf(text + strlen(text), "%d,%d\n", i * i, i);
    size_t n = packed(bytes, sizeof bytes, text);
    assert_int_equal(read_bytes(&set, bytes, n, &as_recorded, diag), MAQ_OK);
    assert_int_equal(maq_requests_get(set)->n, 500);
    maq_requests_free(set);
    /* a file that was cut off is not a shorter one */
    for (size_t cut = 30; cut < n; cut += n / 7) {
        assert_int_equal(read_bytes(&set, bytes, cut, &as_recorded, diag), MAQ_IO);
        assert_null(set);
    }
    maq_diag_free(diag);
}

static void test_no_requests(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", ": no requests"},
        {"prompt,output\n", ": no requests"},
        {"prompt,time\n1,2\n", ":1: no column of tokens in, or of tokens out"},
        {"hello\n", ":1: no column of tokens in"},
        {"prompt,output\n1,two\n", ":2: tokens out that are no whole number"},
        {"prompt,output\n1,2\n1e300,2\n", ":3: tokens in that are no whole number"},
        {"prompt,output\nnan,2\n", ":2: tokens in that are no whole number"},
        {"prompt,output\n1.5,2\n", ":2: tokens in that are no whole number"},
        {"prompt,output,priority\n1,2,1e12\n", ":2: a priority that is no whole number"},
        {"prompt,output\n0,2\n", ":2: a request has at least one token in and one out"},
        {"prompt,output\n5,-2\n", ":2: a request has at least one token in and one out"},
        {"prompt,output\n5\n", ":2: a request has at least one token in and one out"},
        {"arrival_s,prompt,output\nsoon,5,2\n", ":2: an arrival that is no time"},
        {"arrival_s,prompt,output\ninf,5,2\n", ":2: an arrival that is no time"},
        {"arrival_s,prompt,output\n2023-11-16,5,2\n", ":2: an arrival that is no time"},
        {"arrival_s,prompt,output\n3,5,2\n2,5,2\n", ":3: this request comes before the one above it"},
        {"{\"prompt\": 1}\n", ":1: no tokens in, or no tokens out"},
        {"{\"prompt\": \"1\", \"output\": 2}\n", ":1: no tokens in, or no tokens out"},
        {"{\"prompt\": 1, \"output\": 2}\nprompt\n", ":2: not a JSON object"},
        {"{\"prompt\": 1, \"output\": 2\n", ":1: not a JSON object"},
        {"{\"prompt\": 1e99, \"output\": 2}\n", ":1: tokens in that are no whole number"},
        {"{\"prompt\": 1000, \"output\": 2, \"hash_ids\": [\"a\"]}\n", ":1: hash_ids that are no whole numbers"},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct maq_request_set *set;
        struct maq_diag *diag = maq_diag_new();
        assert_int_equal(read_bytes(&set, cases[i].text, strlen(cases[i].text), &as_recorded, diag), MAQ_BAD_INPUT);
        assert_null(set);
        assert_int_equal(maq_diag_count(diag), 1);
        assert_int_equal(maq_diag_at(diag, 0)->code, MAQ_CODE_REQUEST_FILE);
        const struct maq_str msg = maq_diag_at(diag, 0)->msg;
        if (!memmem(msg.ptr, msg.len, cases[i].says, strlen(cases[i].says)))
            fail_msg("'%s' is not in: %.*s", cases[i].says, (int)msg.len, msg.ptr);
        maq_diag_free(diag);
    }
    struct maq_request_set *set = NULL;
    assert_int_equal(maq_requests_read(&set, "/nonexistent/requests.csv", &as_recorded, NULL), MAQ_IO);
    assert_null(set);
}

/* ---- memory ---- */

static enum maq_status both(const char *path)
{
    const struct maq_request_spec spec = {.rate = 1, .n = 300, .prompt = 10, .output = 10};
    struct maq_request_set *set = NULL;
    enum maq_status status = maq_requests_generate(&set, &spec, NULL);
    if (status == MAQ_OK) {
        maq_requests_free(set);
        status = maq_requests_read(&set, path, &as_recorded, NULL);
    }
    if (status == MAQ_OK)
        maq_requests_free(set);
    return status;
}

static void test_memory_runs_out(void **state)
{
    (void)state;
    char path[] = "/tmp/maq-requests-XXXXXX";
    temp_text(path, "{\"isl\": 600, \"osl\": 3, \"hash_ids\": [1, 2]}\n{\"isl\": 4, \"osl\": 5}\n");
    struct failing f = {0};
    while (next_failing(&f))
        assert_int_equal(both(path), f.nth > 0 ? MAQ_NO_MEMORY : MAQ_OK);
    assert_true(f.all > 4);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gaps),           cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_lengths),        cmocka_unit_test(test_how_many),
        cmocka_unit_test(test_shared_prefix),  cmocka_unit_test(test_distinct_prompts),
        cmocka_unit_test(test_every_name),     cmocka_unit_test(test_forms),
        cmocka_unit_test(test_dates),          cmocka_unit_test(test_prefixes),
        cmocka_unit_test(test_speed_and_most), cmocka_unit_test(test_windows),
        cmocka_unit_test(test_drawn_arrivals), cmocka_unit_test(test_packed),
        cmocka_unit_test(test_no_requests),    cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests_name("requests", tests, NULL, NULL);
}
