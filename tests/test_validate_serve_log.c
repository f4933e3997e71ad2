/* SPDX-License-Identifier: Apache-2.0 */
/* test_validate_serve_log.c - recorded runs: what a log says is compared, and its machine's link is what collectives reach. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/str.h"
#include "maquette/diag.h"
#include "maquette/validate_serve.h"
#include "temp.h"

#define PROMPT 8192
#define TOKENS 65

static const char *const files[] = {"RTXPRO6000/m/vllm/meta.json", "RTXPRO6000/m/vllm/requests.jsonl",
                                    "RTXPRO6000/m/config.json"};
static const char *const folders[] = {"RTXPRO6000", "RTXPRO6000/m", "RTXPRO6000/m/vllm"};

/* One request on an RTX PRO 6000 or two, of which the log says when its first and its last token came. */
static struct maq_validate_serve_log *run_in(bool linked, int tp, double link_gbps, double first_s, double last_s)
{
    char path[128], text[512];
    struct maq_validate_serve_log *out = NULL;
    struct maq_diag *diag = maq_diag_new();
    assert_int_equal(make_temp_folder("serve-log"), 0);
    for (size_t i = 0; i < MAQ_COUNT(folders); i++)
        if (i < MAQ_COUNT(folders) - 1 || !linked)
            assert_int_equal(mkdir(temp_path(path, folders[i]), 0755), 0);
    if (linked) {
        assert_int_equal(mkdir(temp_path(path, "run"), 0755), 0);
        assert_int_equal(symlink("../../run", temp_path(path, folders[MAQ_COUNT(folders) - 1])), 0);
    }
    snprintf(text, sizeof text,
             "{\"model\": \"meta-llama/Llama-3.1-8B\", \"vllm_version\": \"0.19.0\", \"engine_kwargs\": "
             "{\"tensor_parallel_size\": %d, \"max_num_batched_tokens\": %d}}",
             tp, PROMPT);
    write_text(temp_path(path, files[0]), text);
    snprintf(text, sizeof text,
             "{\"input_toks\": %d, \"output_toks\": %d, \"queued_ts\": 5, \"first_token_ts\": %.9f, "
             "\"last_token_ts\": %.9f}\n",
             PROMPT, TOKENS, 5 + first_s, 5 + last_s);
    write_text(temp_path(path, files[1]), text);
    snprintf(text, sizeof text, "{\"link_bw\": %g, \"nodes\": [{\"instances\": [{\"npu_mem\": {\"mem_bw\": 1597}}]}]}",
             link_gbps);
    write_text(temp_path(path, files[2]), text);
    temp_path(path, folders[0]);
    if (maq_validate_serve_log(&out, path, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 3, false));
    assert_int_equal(out->n, 1);
    assert_null(out->rows[0].left_out);
    for (size_t i = 0; i < MAQ_COUNT(files); i++)
        unlink(temp_path(path, files[i]));
    if (linked)
        assert_true(unlink(temp_path(path, folders[MAQ_COUNT(folders) - 1])) == 0 &&
                    rmdir(temp_path(path, "run")) == 0);
    for (size_t i = MAQ_COUNT(folders) - linked; i-- > 0;)
        assert_int_equal(rmdir(temp_path(path, folders[i])), 0);
    assert_int_equal(drop_temp_folder(NULL, 0), 0);
    maq_diag_free(diag);
    return out;
}

static struct maq_validate_serve_log *run(int tp, double link_gbps, double first_s, double last_s)
{
    return run_in(false, tp, link_gbps, first_s, last_s);
}

/* A log of what is predicted has no errors. */
static void test_a_log_of_the_prediction(void **state)
{
    (void)state;
    struct maq_validate_serve_log *first = run(1, 16, 1, 2);
    const struct maq_validate_serve_log_figures p = first->rows[0].predicted, m = first->rows[0].measured;
    assert_true(fabs(m.ttft_mean_s - 1) < 1e-6 && fabs(m.tpot_mean_s - 1.0 / (TOKENS - 1)) < 1e-6);
    struct maq_validate_serve_log *again = run(1, 16, p.ttft_mean_s, p.ttft_mean_s + p.tpot_mean_s * (TOKENS - 1));
    const struct maq_validate_serve_log_row *r = &again->rows[0];
    assert_true(fabs(r->measured.tpot_mean_s / r->predicted.tpot_mean_s - 1) < 1e-6);
    assert_true(fabs(r->measured.ttft_mean_s / r->predicted.ttft_mean_s - 1) < 1e-6);
    assert_true(fabs(r->measured.tokens_per_s / r->predicted.tokens_per_s - 1) < 1e-6);
    maq_validate_serve_log_free(first);
    maq_validate_serve_log_free(again);
}

/* Sums of a prompt's 65 (two of each of 32 layers, and of the embedding) at 16 and at 32 GB/s: two ranks send their bytes once. */
static void test_link_is_what_collectives_reach(void **state)
{
    (void)state;
    struct maq_validate_serve_log *slow = run(2, 16, 1, 2), *fast = run(2, 32, 1, 2);
    double bytes = 65.0 * PROMPT * 4096 * 2, want = bytes / 16e9 - bytes / 32e9,
           got = slow->rows[0].predicted.ttft_mean_s - fast->rows[0].predicted.ttft_mean_s;
    print_message("# %g of %g s\n", got, want);
    assert_true(fabs(got / want - 1) < 0.05);
    maq_validate_serve_log_free(slow);
    maq_validate_serve_log_free(fast);
}

static struct maq_str last_of(struct maq_str text, size_t n)
{
    assert_true(text.len >= n);
    return (struct maq_str){text.ptr + text.len - n, n};
}

/* A run that is a link lies where the link does. */
static void test_a_linked_run(void **state)
{
    (void)state;
    struct maq_validate_serve_log *r = run_in(true, 1, 16, 1, 2);
    assert_string_equal(r->rows[0].device, "RTXPRO6000");
    maq_validate_serve_log_free(r);
}

/* Two folders above a run is its device; at the root of all there is none. */
static void test_a_folder_without_a_device(void **state)
{
    (void)state;
    char path[128];
    struct maq_validate_serve_log *out = NULL;
    struct maq_diag *diag = maq_diag_new();
    assert_int_equal(make_temp_folder("serve-log"), 0);
    write_text(temp_path(path, "meta.json"), "{}");
    assert_int_equal(maq_validate_serve_log(&out, temp_folder, diag), MAQ_BAD_INPUT);
    assert_null(out);
    assert_true(maq_str_eq(maq_str_of("no folder DEVICE two above it"), last_of(maq_diag_at(diag, 0)->msg, 29)));
    static const char *const meta[] = {"meta.json"};
    assert_int_equal(drop_temp_folder(meta, 1), 0);
    maq_diag_free(diag);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_log_of_the_prediction), cmocka_unit_test(test_link_is_what_collectives_reach),
        cmocka_unit_test(test_a_linked_run), cmocka_unit_test(test_a_folder_without_a_device)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
