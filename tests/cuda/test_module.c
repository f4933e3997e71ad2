/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_module.c - the host side of the module that measures on NVIDIA GPUs, over a stand-in for CUDA's libraries
 * (stub.c): every kind of operator is prepared, run and released; tensors are as large as the calls need; nothing is
 * left behind. What it says about a GPU is nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "measure/plan.h"
#include "stub.h"

bool maq_profile_open_backend(struct maq_profile_backend *out, char why[MAQ_PROFILE_WHY]);

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct maq_profile_backend open_with(int gpus)
{
    char why[MAQ_PROFILE_WHY] = "";
    struct maq_profile_backend b;
    memset(&stub, 0, sizeof stub);
    stub.gpus = gpus;
    assert_true(maq_profile_open_backend(&b, why));
    assert_int_equal(b.abi, MAQ_PROFILE_ABI);
    return b;
}

static void close_and_count(struct maq_profile_backend *b)
{
    b->close(b->state);
    assert_int_equal(stub.allocations, 0);
    assert_int_equal(stub.streams, 0);
    assert_int_equal(stub.events, 0);
    assert_int_equal(stub.comms, 0);
    if (stub.faults > 0)
        fail_msg("%s", stub.fault);
}

static void run_case(struct maq_profile_backend *b, struct maq_profile_case *c, const char *expected_kernel)
{
    char why[MAQ_PROFILE_WHY] = "";
    const char *kernel = NULL;
    double seconds[50];
    uint32_t before = stub.allocations, flushes = stub.flushes, launches = stub.launches;
    assert_null(maq_profile_fill_case(c));
    enum maq_profile_answer answer = b->prepare(b->state, c, &kernel, why);
    if (answer != MAQ_PROFILE_READY)
        fail_msg("%s: %s", maq_op_kind_name((enum maq_op_kind)c->op.kind), why);
    assert_string_equal(kernel, expected_kernel);
    assert_int_equal(stub.launches, launches + 1);
    assert_true(b->run(b->state, true, 50, seconds, why));
    assert_int_equal(stub.launches, launches + 51);
    assert_true(stub.flushes - flushes >= 50); /* a scattering clears its table, too */
    for (int i = 0; i < 50; i++)
        assert_true(seconds[i] == 0.25e-3);
    flushes = stub.flushes;
    assert_true(b->run(b->state, false, 5, seconds, why));
    assert_true(b->run_on(b->state, 70, seconds, why));
    assert_int_equal(stub.launches, launches + 126);
    assert_true(c->op.kind == MAQ_OP_EMBEDDING_BWD || stub.flushes == flushes);
    b->release(b->state);
    assert_int_equal(stub.allocations, before);
    assert_int_equal(stub.products, 0);
    assert_int_equal(stub.layouts, 0);
    assert_int_equal(stub.descriptors, 0);
    if (stub.faults > 0)
        fail_msg("%s: %s", maq_op_kind_name((enum maq_op_kind)c->op.kind), stub.fault);
}

static void test_describes_the_gpu(void **state)
{
    struct maq_profile_backend b = open_with(4);
    assert_string_equal(b.gpu.name, "NVIDIA H100 80GB HBM3");
    assert_int_equal(b.gpu.count, 4);
    assert_true(b.gpu.cuda[0] && b.gpu.cublas[0]);
    close_and_count(&b);
    char why[MAQ_PROFILE_WHY] = "";
    stub.gpus = 0;
    assert_false(maq_profile_open_backend(&b, why));
    assert_non_null(strstr(why, "no GPU"));
    assert_int_equal(stub.allocations + stub.streams + stub.events, 0);
}

static void test_every_operator(void **state)
{
    static const struct {
        struct maq_op op;
        const char *kernel;
    } cases[] = {
        {{.kind = MAQ_OP_GEMM, .dtype = MAQ_BF16, .d = {48, 80, 112}}, "cublasLt"},
        {{.kind = MAQ_OP_GEMM, .dtype = MAQ_FP16, .flags = MAQ_OP_BIAS, .d = {48, 80, 112, 3}}, "cublasLt"},
        {{.kind = MAQ_OP_GEMM, .dtype = MAQ_TF32, .d = {48, 80, 112}}, "cublasLt"},
        {{.kind = MAQ_OP_GEMM, .dtype = MAQ_FP32, .d = {48, 80, 112}}, "cublasLt"},
        {{.kind = MAQ_OP_GEMM, .dtype = MAQ_FP8, .d = {48, 80, 112}}, "cublasLt"},
        {{.kind = MAQ_OP_GEMM, .dtype = MAQ_FP8, .flags = MAQ_OP_ACCUMULATE, .d = {48, 80, 112}}, "cublasLt"},
        {{.kind = MAQ_OP_GEMM, .dtype = MAQ_INT8, .d = {48, 80, 112}}, "cublasLt"},
        {{.kind = MAQ_OP_GEMM, .dtype = MAQ_BF16, .flags = MAQ_OP_ACCUMULATE, .d = {48, 80, 112}}, "cublasLt"},
        {{.kind = MAQ_OP_GEMM, .dtype = MAQ_BF16, .flags = MAQ_OP_OUT_FP32, .d = {48, 80, 112}}, "cublasLt"},
        {{.kind = MAQ_OP_GROUPED_GEMM, .dtype = MAQ_BF16, .d = {48, 80, 112, 8}}, "cublasLt"},
        {{.kind = MAQ_OP_GROUPED_GEMM,
          .dtype = MAQ_BF16,
          .flags = MAQ_OP_VARIABLE_K | MAQ_OP_ACCUMULATE,
          .d = {48, 80, 112, 8}},
         "cublasLt"},
        {{.kind = MAQ_OP_NORM, .dtype = MAQ_BF16, .d = {33, 256}}, "maquette"},
        {{.kind = MAQ_OP_NORM, .dtype = MAQ_FP32, .flags = MAQ_OP_BIAS, .d = {33, 256}}, "maquette"},
        {{.kind = MAQ_OP_NORM_BWD, .dtype = MAQ_BF16, .flags = MAQ_OP_BIAS, .d = {33, 256}}, "maquette"},
        {{.kind = MAQ_OP_ACTIVATION, .dtype = MAQ_BF16, .flags = MAQ_OP_GATED, .d = {33, 512, 256}}, "maquette"},
        {{.kind = MAQ_OP_ACTIVATION, .dtype = MAQ_FP16, .d = {33, 256, 256}}, "maquette"},
        {{.kind = MAQ_OP_ACTIVATION_BWD, .dtype = MAQ_BF16, .flags = MAQ_OP_GATED, .d = {33, 512, 256}}, "maquette"},
        {{.kind = MAQ_OP_SOFTMAX, .dtype = MAQ_BF16, .d = {33, 256}}, "maquette"},
        {{.kind = MAQ_OP_SOFTMAX_BWD, .dtype = MAQ_BF16, .d = {33, 256}}, "maquette"},
        {{.kind = MAQ_OP_ELEMENTWISE, .dtype = MAQ_BF16, .d = {1000, 4, 2}}, "maquette"},
        {{.kind = MAQ_OP_ELEMENTWISE, .dtype = MAQ_FP32, .d = {1000, 4, 0}}, "maquette"},
        {{.kind = MAQ_OP_ELEMENTWISE, .dtype = MAQ_FP32, .d = {1000, 0, 4}}, "maquette"},
        {{.kind = MAQ_OP_ROPE, .dtype = MAQ_BF16, .d = {33, 256}}, "maquette"},
        {{.kind = MAQ_OP_EMBEDDING, .dtype = MAQ_BF16, .d = {33, 256, 1000}}, "maquette"},
        {{.kind = MAQ_OP_EMBEDDING_BWD, .dtype = MAQ_BF16, .d = {33, 256, 1000}}, "maquette"},
        {{.kind = MAQ_OP_CROSS_ENTROPY, .dtype = MAQ_BF16, .d = {33, 1024}}, "maquette"},
        {{.kind = MAQ_OP_CROSS_ENTROPY_BWD, .dtype = MAQ_BF16, .d = {33, 1024}}, "maquette"},
        {{.kind = MAQ_OP_PERMUTE, .dtype = MAQ_BF16, .d = {33, 256}}, "maquette"},
        {{.kind = MAQ_OP_QUANTIZE, .dtype = MAQ_FP8, .d = {33, 256}}, "maquette"},
        {{.kind = MAQ_OP_OPTIMIZER, .dtype = MAQ_FP32, .d = {1000, 16, 14}}, "maquette"},
        {{.kind = MAQ_OP_HOST_COPY, .dtype = MAQ_FP32, .d = {1000}}, "cudaMemcpy"},
    };
    struct maq_profile_backend b = open_with(1);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct maq_profile_case c = {.op = cases[i].op};
        run_case(&b, &c, cases[i].kernel);
    }
    close_and_count(&b);
}

/* With a cuDNN that has it; one that has not says which it needs. */
static void test_attention(void **state)
{
    struct maq_profile_backend b = open_with(1);
    for (int i = 0; i < 4; i++) {
        char why[MAQ_PROFILE_WHY] = "";
        const char *kernel;
        bool causal = i & 1, backward = i & 2;
        struct maq_profile_case c = {.op = {.kind = backward ? MAQ_OP_ATTENTION_BWD : MAQ_OP_ATTENTION,
                                            .dtype = MAQ_BF16,
                                            .flags = causal ? MAQ_OP_CAUSAL : 0,
                                            .d = {256, causal ? 65 : 128, 8, 2, 64, 32}}};
        assert_null(maq_profile_fill_case(&c));
        assert_int_equal(c.seq, 128);
        if (b.prepare(b.state, &c, &kernel, why) == MAQ_PROFILE_READY) {
            b.release(b.state);
            run_case(&b, &c, "cudnn");
        } else {
            assert_non_null(strstr(why, "cuDNN"));
        }
        assert_int_equal(stub.descriptors, 0);
    }
    close_and_count(&b);
}

#ifdef MAQ_HAVE_NCCL
static void test_collectives(void **state)
{
    struct maq_profile_backend b = open_with(8);
    for (uint32_t ranks = 2; ranks <= 8; ranks *= 2)
        for (int kind = 0; kind < MAQ_COLL_DISPATCH; kind++)
            for (double bytes = 4; bytes < 1e6; bytes *= 37) { /* sizes that no number of ranks divides, too */
                struct maq_profile_case c = {.is_coll = true,
                                             .coll = {.kind = (uint16_t)kind,
                                                      .bytes = bytes,
                                                      .at = {.size = kind == MAQ_COLL_SEND_RECV ? 2 : ranks,
                                                             .per_domain = kind == MAQ_COLL_SEND_RECV ? 2 : ranks,
                                                             .domains = 1,
                                                             .per_node = kind == MAQ_COLL_SEND_RECV ? 2 : ranks}}};
                run_case(&b, &c, "nccl");
                assert_int_equal(stub.device, 0);
                assert_int_equal(stub.comms, c.coll.at.size); /* kept for the next of as many ranks */
            }
    close_and_count(&b);
}
#endif

/* What cannot run is refused and leaves nothing; what stays wrong ends the run. */
static void test_refusals(void **state)
{
    static const struct maq_op refused[] = {
        {.kind = MAQ_OP_NORM, .dtype = MAQ_BF16, .d = {33, 257}},
        {.kind = MAQ_OP_NORM, .dtype = MAQ_BF16, .d = {0, 256}},
        {.kind = MAQ_OP_ROPE, .dtype = MAQ_BF16, .d = {33, 192}},
        {.kind = MAQ_OP_QUANTIZE, .dtype = MAQ_FP8, .d = {33, 256, 2}},
        {.kind = MAQ_OP_GEMM, .dtype = MAQ_INT8, .flags = MAQ_OP_ACCUMULATE, .d = {48, 80, 112}},
        {.kind = MAQ_OP_EMBEDDING, .dtype = MAQ_BF16, .d = {33, 256, 0}},
    };
    char why[MAQ_PROFILE_WHY];
    const char *kernel;
    struct maq_profile_backend b = open_with(1);
    uint32_t before = stub.allocations;
    for (size_t i = 0; i < COUNT(refused); i++) {
        struct maq_profile_case c = {.op = refused[i]};
        assert_null(maq_profile_fill_case(&c));
        why[0] = '\0';
        assert_int_equal(b.prepare(b.state, &c, &kernel, why), MAQ_PROFILE_REFUSES);
        assert_true(why[0]);
        assert_int_equal(stub.allocations, before);
        assert_int_equal(stub.products + stub.layouts, 0);
    }
    struct maq_profile_case c = {.op = {.kind = MAQ_OP_GEMM, .dtype = MAQ_BF16, .d = {48, 80, 112}}};
    assert_null(maq_profile_fill_case(&c));
    stub.exhausted = true;
    assert_int_equal(b.prepare(b.state, &c, &kernel, why), MAQ_PROFILE_REFUSES);
    assert_non_null(strstr(why, "out of memory"));
    stub.exhausted = false;
    stub.sticky = true;
    assert_int_equal(b.prepare(b.state, &c, &kernel, why), MAQ_PROFILE_BROKEN);
    stub.sticky = false;
    close_and_count(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_describes_the_gpu), cmocka_unit_test(test_every_operator),
        cmocka_unit_test(test_attention),
#ifdef MAQ_HAVE_NCCL
        cmocka_unit_test(test_collectives),
#endif
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
