/* SPDX-License-Identifier: Apache-2.0 */
/* test_validate_kernels.c - comparison with kernel tables: rows, groups, filters, threads. maq-test: threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "maquette/validate.h"

static const char *const files[] = {
    "h100_sxm/gemm__gemm__vllm__1.csv",
    "h100_sxm/gemm__gemm__sglang__1.csv",
    "h200_sxm/attention__context_attention__trtllm__1.csv",
    "h200_sxm/attention__generation_attention__trtllm__1.csv",
    "b200_sxm/moe__moe__trtllm__1.csv",
    "h100_sxm/comm__nccl__nccl__2.27.csv",
    "h100_sxm/notes__of__somebody__1.csv",
};
static const char *const texts[] = {
    "# source=x framework=VLLM;kernel_source=linear\ngemm_dtype,m,n,k,latency\nbfloat16,64,4096,4096,0.012\nbfloat16,"
    "4096,4096,4096,0.2\n",
    "gemm_dtype,m,n,k,latency\nfp8_block,64,4096,4096,0.011\nfp8,4096,4096,4096,0.12\nbfloat16,2,oops,2,1\n",
    "batch_size,isl,step,num_heads,num_key_value_heads,head_dim,window_size,attn_dtype,kv_cache_dtype,latency\n"
    "2,2048,0,32,8,128,0,bfloat16,bfloat16,0.25\n2,2048,0,32,8,128,128,bfloat16,fp8,0.1\n",
    "batch_size,isl,step,num_heads,num_key_value_heads,head_dim,window_size,attn_dtype,kv_cache_dtype,latency\n"
    "64,1,4095,32,8,128,0,bfloat16,bfloat16,0.3\n",
    "kernel_source,moe_dtype,num_tokens,hidden_size,inter_size,topk,num_experts,moe_tp_size,moe_ep_size,distribution,"
    "latency\nmoe_torch_flow_cutlass,bfloat16,4096,4096,2048,8,128,1,8,power_law_1.2,1.2\n",
    "op_name,nccl_dtype,num_gpus,message_size,latency\nall_reduce,half,8,33554432,0.3\n",
    "a\n1\n",
};
#define FILES (sizeof files / sizeof files[0])

static char folder[] = "/tmp/maq-kernels-XXXXXX";

static int write_tables(void **state)
{
    char path[256];
    (void)state;
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < FILES; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        *strrchr(path, '/') = '\0';
        mkdir(path, 0700);
        path[strlen(path)] = '/';
        FILE *out = fopen(path, "w");
        assert_non_null(out);
        fputs(texts[i], out);
        fclose(out);
    }
    return 0;
}

static int remove_tables(void **state)
{
    char path[256];
    (void)state;
    for (size_t i = 0; i < FILES; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        unlink(path);
        *strrchr(path, '/') = '\0';
        rmdir(path);
    }
    return rmdir(folder);
}

static struct maq_validate_kernels *compare(const struct maq_validate_kernels_opts *opts)
{
    struct maq_validate_kernels *r = NULL;
    struct maq_diag *diag = maq_diag_new();
    assert_int_equal(maq_validate_kernels(&r, folder, opts, diag), MAQ_OK);
    maq_diag_free(diag);
    return r;
}

static void test_rows_and_groups(void **state)
{
    (void)state;
    struct maq_validate_kernels_opts opts = MAQ_VALIDATE_KERNELS_OPTS_INIT;
    opts.worst = 3;
    struct maq_validate_kernels *r = compare(&opts);
    assert_int_equal(r->n_files, 6);
    assert_int_equal(r->n_other, 1);
    assert_int_equal(r->n_rows, 10);
    assert_int_equal(r->n_by_op, 4); /* attention, gemm, moe, nccl */
    uint32_t rows = 0;
    for (uint32_t i = 0; i < r->n_by_op; i++) {
        rows += r->by_op[i].rows;
        assert_true(r->by_op[i].median_ape <= r->by_op[i].p90_ape);
        assert_true(r->by_op[i].fitted == 1.0);
    }
    assert_int_equal(rows, 9); /* one cannot be read */
    assert_int_equal(r->n_worst, 3);
    assert_true(r->worst[0].error * r->worst[0].error >= r->worst[1].error * r->worst[1].error);
    maq_validate_kernels_free(r);
}

static void test_threads_change_nothing(void **state)
{
    (void)state;
    struct maq_validate_kernels_opts one = MAQ_VALIDATE_KERNELS_OPTS_INIT, four = MAQ_VALIDATE_KERNELS_OPTS_INIT;
    one.threads = 1;
    four.threads = 4;
    one.worst = four.worst = 10;
    struct maq_validate_kernels *a = compare(&one), *b = compare(&four);
    char *x = maq_validate_kernels_json(a), *y = maq_validate_kernels_json(b);
    char *s = maq_validate_kernels_svg(a), *t = maq_validate_kernels_svg(b);
    assert_string_equal(x, y);
    assert_string_equal(s, t);
    free(x);
    free(y);
    free(s);
    free(t);
    maq_validate_kernels_free(a);
    maq_validate_kernels_free(b);
}

static void test_filters_and_providers(void **state)
{
    (void)state;
    struct maq_validate_filter where[] = {{"op", "gemm"}, {"dtype", "bf*"}};
    struct maq_validate_kernels_opts opts = MAQ_VALIDATE_KERNELS_OPTS_INIT;
    opts.where = where;
    opts.n_where = 2;
    opts.best = MAQ_PROVIDER_ANALYTICAL;
    struct maq_validate_kernels *r = compare(&opts);
    assert_int_equal(r->n_by_op, 1);
    assert_int_equal(r->by_op[0].rows, 2);
    assert_true(r->by_op[0].fitted == 0.0);
    maq_validate_kernels_free(r);
    opts.best = MAQ_PROVIDER_NONE;
    opts.leave_device_out = true; /* a relative answers */
    r = compare(&opts);
    assert_true(r->by_op[0].fitted == 1.0);
    maq_validate_kernels_free(r);
}

static void test_faults(void **state)
{
    (void)state;
    char path[256];
    struct maq_validate_kernels *r = NULL;
    struct maq_validate_filter where = {"colour", "red"};
    struct maq_validate_kernels_opts opts = MAQ_VALIDATE_KERNELS_OPTS_INIT;
    snprintf(path, sizeof path, "%s/%s", folder, files[FILES - 1]);
    assert_int_equal(maq_validate_kernels(&r, path, NULL, NULL), MAQ_BAD_INPUT);
    assert_int_equal(maq_validate_kernels(&r, "/nowhere", NULL, NULL), MAQ_IO);
    opts.where = &where;
    opts.n_where = 1;
    assert_int_equal(maq_validate_kernels(&r, folder, &opts, NULL), MAQ_BAD_INPUT);
    assert_null(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_and_groups),
        cmocka_unit_test(test_threads_change_nothing),
        cmocka_unit_test(test_filters_and_providers),
        cmocka_unit_test(test_faults),
    };
    return cmocka_run_group_tests(tests, write_tables, remove_tables);
}
