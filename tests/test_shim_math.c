/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_shim_math.c - the mathematical libraries of the zero-GPU device, called as programs call them: what they answer, and
 * what the trace says of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/abi/cublas.h"
#include "shim/abi/cudnn.h"
#include "shim/abi/nvml.h"
#include "shim/core/core.h"

/* What a program knows of the libraries. */
int cublasCreate_v2(void **handle);
int cublasDestroy_v2(void *handle);
int cublasSetMathMode(void *handle, int mode);
int cublasGetMathMode(void *handle, int *mode);
int cublasSetPointerMode_v2(void *handle, int mode);
int cublasSetWorkspace_v2(void *handle, void *workspace, size_t bytes);
int cublasSgemm_v2(void *handle, int ta, int tb, int m, int n, int k, const float *alpha, const float *a, int lda,
                   const float *b, int ldb, const float *beta, float *c, int ldc);
int cublasSgemm_v2_64(void *handle, int ta, int tb, int64_t m, int64_t n, int64_t k, const float *alpha, const float *a,
                      int64_t lda, const float *b, int64_t ldb, const float *beta, float *c, int64_t ldc);
int cublasCgemm_v2(void *handle, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int lda,
                   const void *b, int ldb, const void *beta, void *c, int ldc);
int cublasGemmEx(void *handle, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int type_a,
                 int lda, const void *b, int type_b, int ldb, const void *beta, void *c, int type_c, int ldc,
                 int compute, int algo);
int cublasGemmStridedBatchedEx(void *handle, int ta, int tb, int m, int n, int k, const void *alpha, const void *a,
                               int type_a, int lda, long long sa, const void *b, int type_b, int ldb, long long sb,
                               const void *beta, void *c, int type_c, int ldc, long long sc, int batch, int compute,
                               int algo);
int cublasGemmGroupedBatchedEx(void *handle, const int *ta, const int *tb, const int *m, const int *n, const int *k,
                               const void *alpha, const void *a, int type_a, const int *lda, const void *b, int type_b,
                               const int *ldb, const void *beta, const void *c, int type_c, const int *ldc, int groups,
                               const int *size, int compute);
int cublasSdot_v2(void *handle, int n, const void *u, int incu, const void *v, int incv, void *result);
int cublasLtCreate(void **handle);
int cublasLtDestroy(void *handle);
int cublasLtMatrixLayoutCreate(void **out, int type, uint64_t rows, uint64_t cols, int64_t ld);
int cublasLtMatrixLayoutSetAttribute(void *bag, int number, const void *value, size_t bytes);
int cublasLtMatrixLayoutGetAttribute(const void *bag, int number, void *value, size_t bytes, size_t *written);
int cublasLtMatrixLayoutDestroy(void *bag);
int cublasLtMatmulDescInit_internal(void *bag, size_t size, int compute, int scale);
int cublasLtMatmulDescCreate(void **out, int compute, int scale);
int cublasLtMatmulDescSetAttribute(void *bag, int number, const void *value, size_t bytes);
int cublasLtMatmulDescDestroy(void *bag);
int cublasLtMatmulPreferenceCreate(void **out);
int cublasLtMatmulPreferenceDestroy(void *bag);
int cublasLtMatmulAlgoGetHeuristic(void *handle, void *desc, void *a, void *b, void *c, void *d, void *preference,
                                   int wanted, struct abi_lt_heuristic *out, int *n);
int cublasLtMatmul(void *handle, void *desc, const void *alpha, const void *a, void *la, const void *b, void *lb,
                   const void *beta, const void *c, void *lc, void *d, void *ld, const void *algo, void *workspace,
                   size_t bytes, void *stream);
int cudnnCreate(void **handle);
int cudnnDestroy(void *handle);
int cudnnBackendCreateDescriptor(int kind, void **out);
int cudnnBackendDestroyDescriptor(void *descriptor);
int cudnnBackendSetAttribute(void *descriptor, int name, int type, int64_t n, const void *values);
int cudnnBackendGetAttribute(void *descriptor, int name, int type, int64_t wanted, int64_t *n, void *out);
int cudnnBackendFinalize(void *descriptor);
int cudnnBackendExecute(void *handle, void *plan, void *pack);
int nvrtcCreateProgram(void **out, const char *source, const char *name, int n, const char *const *headers,
                       const char *const *names);
int nvrtcAddNameExpression(void *p, const char *text);
int nvrtcCompileProgram(void *p, int n, const char *const *options);
int nvrtcGetLoweredName(void *p, const char *text, const char **lowered);
int nvrtcGetPTXSize(void *p, size_t *bytes);
int nvrtcGetPTX(void *p, char *out);
int nvrtcDestroyProgram(void **p);
int cuptiSubscribe(void **subscriber, void *callback, void *user);
int cuptiActivityEnable(int kind);
int cuptiActivityFlushAll(uint32_t flag);
int cuptiActivityGetNextRecord(uint8_t *buffer, size_t bytes, void **record);
int cuptiUnsubscribe(void *subscriber);

int cudaMalloc(void **p, size_t bytes);
int cudaFree(void *p);
int cudnnCreateTensorDescriptor(void **out);
int cudnnCreateFilterDescriptor(void **out);
int cudnnCreateConvolutionDescriptor(void **out);
int cudnnDestroyTensorDescriptor(void *descriptor);
int cudnnDestroyFilterDescriptor(void *descriptor);
int cudnnDestroyConvolutionDescriptor(void *descriptor);
int cudnnSetTensor4dDescriptor(void *d, int format, int type, int n, int c, int h, int w);
int cudnnGetTensorNdDescriptor(const void *d, int wanted, int *type, int *n, int *dims, int *strides);
int cudnnSetFilterNdDescriptor(void *d, int type, int format, int n, const int *dims);
int cudnnConvolutionBackwardFilter(void *handle, const void *alpha, const void *dx, const void *x, const void *dy,
                                   const void *y, const void *conv, int algorithm, void *workspace, size_t bytes,
                                   const void *beta, const void *dw, void *w);
int nvmlInit_v2(void);
int nvmlDeviceGetCount_v2(unsigned *n);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **device);
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device);
int nvmlDeviceGetUUID(void *device, char *out, unsigned bytes);
int nvmlDeviceGetPciInfo_v3(void *device, struct abi_nvml_pci *out);
int nvmlDeviceGetMemoryInfo(void *device, struct abi_nvml_memory *out);
int nvmlDeviceGetPowerManagementLimit(void *device, unsigned *milliwatt);
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *n, struct abi_nvml_process *out);

/* --- the trace so far ----------------------------------------------------------------------------------------------------- */

enum { MOST = 4096 };
static char trace[256], card[256];
static struct {
    struct maq_rec rec[MOST];
    unsigned n;
    struct maq_rec_op op[MOST];
    char name[MOST][80];
    unsigned n_ops;
} seen;

static void look(void)
{
    FILE *f;
    struct maq_rec_head head;
    vg_flush();
    f = fopen(trace, "rb");
    assert_non_null(f);
    assert_int_equal(fread(&head, sizeof head, 1, f), 1);
    assert_memory_equal(head.magic, MAQ_REC_MAGIC, 8);
    seen.n = seen.n_ops = 0;
    struct maq_rec r;
    while (seen.n < MOST && fread(&r, sizeof r, 1, f) == 1) {
        seen.rec[seen.n++] = r;
        const bool has_payload = r.kind == MAQ_REC_DEF_OP || r.kind == MAQ_REC_DEF_COMM || r.kind == MAQ_REC_DEF_TEXT ||
                                 r.kind == MAQ_REC_READ || r.kind == MAQ_REC_BOOT;
        if (!has_payload)
            continue;
        char payload[4096];
        assert_true(maq_rec_padded(r.bytes) <= sizeof payload);
        assert_int_equal(fread(payload, maq_rec_padded(r.bytes), 1, f), 1);
        if (r.kind == MAQ_REC_DEF_OP) {
            assert_int_equal(r.id, seen.n_ops);
            memcpy(&seen.op[seen.n_ops], payload, sizeof(struct maq_rec_op));
            const uint32_t n = seen.op[seen.n_ops].name_bytes;
            assert_true(n < sizeof seen.name[0]);
            memcpy(seen.name[seen.n_ops], payload + sizeof(struct maq_rec_op), n);
            seen.name[seen.n_ops++][n] = '\0';
        }
    }
    fclose(f);
}

/* The operator of the last launch. */
static const struct maq_rec_op *last(const char **name)
{
    look();
    for (unsigned i = seen.n; i-- > 0;)
        if (seen.rec[i].kind == MAQ_REC_LAUNCH) {
            assert_true(seen.rec[i].id < seen.n_ops);
            if (name != NULL)
                *name = seen.name[seen.rec[i].id];
            return &seen.op[seen.rec[i].id];
        }
    fail_msg("nothing was launched");
    return NULL;
}

static unsigned launches(void)
{
    unsigned n = 0;
    look();
    for (unsigned i = 0; i < seen.n; i++)
        n += seen.rec[i].kind == MAQ_REC_LAUNCH;
    return n;
}

#define ASSERT_D(op, a, b, c, e)                                                                                       \
    do {                                                                                                               \
        assert_int_equal((op)->d[0], a);                                                                               \
        assert_int_equal((op)->d[1], b);                                                                               \
        assert_int_equal((op)->d[2], c);                                                                               \
        assert_int_equal((op)->d[3], e);                                                                               \
    } while (0)

/* --- cuBLAS ---------------------------------------------------------------------------------------------------------------- */

static const float zero = 0, one = 1;
static float memory[64];

static void test_gemm(void **unused)
{
    (void)unused;
    void *h;
    const char *name;
    assert_int_equal(cublasCreate_v2(&h), 0);
    assert_int_equal(cublasSgemm_v2(h, 1, 0, 64, 32, 16, &one, memory, 16, memory, 16, &zero, memory, 64), 0);
    const struct maq_rec_op *op = last(&name);
    assert_int_equal(op->kind, MAQ_REC_GEMM);
    ASSERT_D(op, 64, 32, 16, 1);
    assert_int_equal(op->type, MAQ_REC_F32);
    assert_int_equal(op->flags, 0);
    assert_int_equal(op->bytes, 4 * (64 * 32 + 64 * 16 + 16 * 32));
    assert_string_equal(name, "cublasSgemm tn");
    /* C is added: it is read as well */
    assert_int_equal(cublasSgemm_v2_64(h, 0, 0, 64, 32, 16, &one, memory, 64, memory, 16, &one, memory, 64), 0);
    op = last(&name);
    assert_int_equal(op->flags, MAQ_REC_ACCUMULATES);
    assert_int_equal(op->bytes, 4 * (2 * 64 * 32 + 64 * 16 + 16 * 32));
    assert_string_equal(name, "cublasSgemm nn");
    /* the tensor cores, if the program lets them */
    assert_int_equal(cublasSetMathMode(h, ABI_MATH_TF32), 0);
    int mode = -1;
    assert_int_equal(cublasGetMathMode(h, &mode), 0);
    assert_int_equal(mode, ABI_MATH_TF32);
    assert_int_equal(cublasSgemm_v2(h, 0, 0, 64, 32, 16, &one, memory, 64, memory, 16, &zero, memory, 64), 0);
    assert_int_equal(last(NULL)->type, MAQ_REC_TF32);
    /* one complex multiply-add is four real ones */
    const float czero[2] = {0, 0};
    assert_int_equal(cublasCgemm_v2(h, 0, 0, 8, 4, 2, czero, memory, 8, memory, 2, czero, memory, 8), 0);
    ASSERT_D(last(NULL), 8, 4, 8, 1);
    assert_int_equal(cublasDestroy_v2(h), 0);
}

static void test_gemm_ex(void **unused)
{
    (void)unused;
    void *h;
    const char *name;
    assert_int_equal(cublasCreate_v2(&h), 0);
    assert_int_equal(cublasGemmEx(h, 1, 0, 4096, 512, 1024, &one, memory, ABI_R_16BF, 1024, memory, ABI_R_16BF, 1024,
                                  &zero, memory, ABI_R_32F, 4096, ABI_COMPUTE_32F, -1),
                     0);
    const struct maq_rec_op *op = last(&name);
    ASSERT_D(op, 4096, 512, 1024, 1);
    assert_int_equal(op->type, MAQ_REC_BF16);
    assert_int_equal(op->out, MAQ_REC_F32);
    assert_int_equal(op->bytes, 2 * (4096 * 1024 + 1024 * 512) + 4 * 4096 * 512);
    const uint16_t half_one = 0x3c00;
    assert_int_equal(cublasGemmStridedBatchedEx(h, 0, 1, 128, 128, 64, &half_one, memory, ABI_R_16F, 128, 8192, memory,
                                                ABI_R_16F, 128, 8192, &half_one, memory, ABI_R_16F, 128, 16384, 12,
                                                ABI_COMPUTE_16F, -1),
                     0);
    op = last(&name);
    ASSERT_D(op, 128, 128, 64, 12);
    assert_string_equal(name, "cublasGemmStridedBatchedEx nt");
    assert_int_equal(op->flags, MAQ_REC_ACCUMULATES);
    /* groups of different sizes: a launch of each */
    const int trans[2] = {0, 0}, m[2] = {8, 16}, n[2] = {4, 4}, k[2] = {2, 2}, ld[2] = {16, 16}, size[2] = {3, 5};
    const float beta[2] = {0, 1};
    const unsigned before = launches();
    assert_int_equal(cublasGemmGroupedBatchedEx(h, trans, trans, m, n, k, &one, memory, ABI_R_16BF, ld, memory,
                                                ABI_R_16BF, ld, beta, memory, ABI_R_16BF, ld, 2, size, ABI_COMPUTE_32F),
                     0);
    assert_int_equal(launches(), before + 2);
    op = last(NULL);
    ASSERT_D(op, 16, 4, 2, 5);
    assert_int_equal(op->flags, MAQ_REC_ACCUMULATES);
    cublasDestroy_v2(h);
}

static void test_gemm_refuses(void **unused)
{
    (void)unused;
    void *h;
    const float *a = memory;
    assert_int_equal(cublasCreate_v2(&h), 0);
    const unsigned before = launches();
    assert_int_equal(cublasSgemm_v2(h, 0, 0, -1, 2, 2, &one, a, 1, a, 2, &zero, memory, 1), ABI_CUBLAS_INVALID_VALUE);
    assert_int_equal(cublasSgemm_v2(h, 0, 0, 4, 2, 2, &one, a, 3, a, 2, &zero, memory, 4), ABI_CUBLAS_INVALID_VALUE);
    assert_int_equal(cublasSgemm_v2(h, 7, 0, 4, 2, 2, &one, a, 4, a, 2, &zero, memory, 4), ABI_CUBLAS_INVALID_VALUE);
    assert_int_equal(cublasSgemm_v2(NULL, 0, 0, 4, 2, 2, &one, a, 4, a, 2, &zero, memory, 4),
                     ABI_CUBLAS_NOT_INITIALIZED);
    assert_int_equal(cublasSgemm_v2(h, 0, 0, 0, 2, 2, &one, a, 1, a, 2, &zero, memory, 1), 0); /* empty: nothing */
    assert_int_equal(cublasSetWorkspace_v2(h, (void *)0x101, 256), ABI_CUBLAS_INVALID_VALUE);
    assert_int_equal(launches(), before);
    cublasDestroy_v2(h);
}

/* A result for the host: it waits, and gets a zero. */
static void test_dot(void **unused)
{
    (void)unused;
    void *h;
    float result = 3;
    assert_int_equal(cublasCreate_v2(&h), 0);
    assert_int_equal(cublasSdot_v2(h, 1000000, memory, 1, memory, 1, &result), 0);
    assert_true(result == 0);
    const struct maq_rec_op *op = last(NULL);
    assert_int_equal(op->kind, MAQ_REC_LIBRARY);
    assert_int_equal(op->bytes, 8000000);
    assert_int_equal(seen.rec[seen.n - 1].kind, MAQ_REC_STREAM_SYNC);
    assert_int_equal(cublasSetPointerMode_v2(h, ABI_POINTERS_OF_DEVICE), 0);
    assert_int_equal(cublasSdot_v2(h, 1000000, memory, 1, memory, 1, &result), 0);
    look();
    assert_int_equal(seen.rec[seen.n - 1].kind, MAQ_REC_LAUNCH);
    cublasDestroy_v2(h);
}

/* --- cuBLASLt --------------------------------------------------------------------------------------------------------------- */

struct lt {
    void *handle, *desc, *a, *b, *c;
};

static struct lt lt_new(int type, uint64_t m, uint64_t n, uint64_t k)
{
    struct lt lt;
    assert_int_equal(cublasLtCreate(&lt.handle), 0);
    assert_int_equal(cublasLtMatmulDescCreate(&lt.desc, ABI_COMPUTE_32F, ABI_R_32F), 0);
    assert_int_equal(cublasLtMatrixLayoutCreate(&lt.a, type, k, m, (int64_t)k), 0);
    assert_int_equal(cublasLtMatrixLayoutCreate(&lt.b, type, k, n, (int64_t)k), 0);
    assert_int_equal(cublasLtMatrixLayoutCreate(&lt.c, type, m, n, (int64_t)m), 0);
    assert_int_equal(cublasLtMatmulDescSetAttribute(lt.desc, ABI_LT_TRANS_A, &(int32_t){1}, 4), 0);
    return lt;
}

static void lt_free(struct lt lt)
{
    cublasLtMatrixLayoutDestroy(lt.a);
    cublasLtMatrixLayoutDestroy(lt.b);
    cublasLtMatrixLayoutDestroy(lt.c);
    cublasLtMatmulDescDestroy(lt.desc);
    cublasLtDestroy(lt.handle);
}

static void test_matmul(void **unused)
{
    (void)unused;
    struct lt lt = lt_new(ABI_R_16BF, 768, 4096, 3072);
    void *preference;
    struct abi_lt_heuristic found;
    const char *name;
    int n = 0;
    const uint32_t epilogue = ABI_LT_GELU | ABI_LT_USES_AUX | ABI_LT_ADDS_BIAS;
    assert_int_equal(cublasLtMatmulDescSetAttribute(lt.desc, ABI_LT_EPILOGUE, &epilogue, sizeof epilogue), 0);
    assert_int_equal(cublasLtMatmulDescSetAttribute(lt.desc, 9999, &epilogue, sizeof epilogue), 0); /* of a newer one */
    assert_int_equal(cublasLtMatmulDescSetAttribute(lt.desc, ABI_LT_BIAS, &epilogue, 2), ABI_CUBLAS_INVALID_VALUE);
    assert_int_equal(cublasLtMatmulPreferenceCreate(&preference), 0);
    assert_int_equal(
        cublasLtMatmulAlgoGetHeuristic(lt.handle, lt.desc, lt.a, lt.b, lt.c, lt.c, preference, 1, &found, &n), 0);
    assert_int_equal(n, 1);
    assert_int_equal(found.state, 0);
    assert_int_equal(found.workspace, 0);
    assert_int_equal(cublasLtMatmul(lt.handle, lt.desc, &one, memory, lt.a, memory, lt.b, &zero, memory, lt.c, memory,
                                    lt.c, &found.algo, NULL, 0, NULL),
                     0);
    const struct maq_rec_op *op = last(&name);
    assert_int_equal(op->kind, MAQ_REC_GEMM);
    ASSERT_D(op, 768, 4096, 3072, 1);
    assert_int_equal(op->flags, MAQ_REC_BIAS | MAQ_REC_ACTIVATION);
    assert_string_equal(name, "cublasLtMatmul tn gelu aux bias");
    assert_int_equal(op->bytes, 2 * (768 * 3072 + 3072 * 4096 + 2 * 768 * 4096 + 768));
    /* sizes that do not fit together */
    assert_int_equal(cublasLtMatmul(lt.handle, lt.desc, &one, memory, lt.a, memory, lt.a, &zero, memory, lt.c, memory,
                                    lt.c, NULL, NULL, 0, NULL),
                     ABI_CUBLAS_INVALID_VALUE);
    cublasLtMatmulPreferenceDestroy(preference);
    lt_free(lt);
}

/* Rows before columns is the other product, transposed: the same work as column-major sizes say it. */
static void test_matmul_row_order(void **unused)
{
    (void)unused;
    struct lt lt;
    const char *name;
    const int32_t row = ABI_LT_ORDER_ROW;
    assert_int_equal(cublasLtCreate(&lt.handle), 0);
    assert_int_equal(cublasLtMatmulDescCreate(&lt.desc, ABI_COMPUTE_32F_FAST_TF32, ABI_R_32F), 0);
    assert_int_equal(cublasLtMatrixLayoutCreate(&lt.a, ABI_R_32F, 20, 30, 30), 0);
    assert_int_equal(cublasLtMatrixLayoutCreate(&lt.b, ABI_R_32F, 30, 40, 40), 0);
    assert_int_equal(cublasLtMatrixLayoutCreate(&lt.c, ABI_R_32F, 20, 40, 40), 0);
    void *all[] = {lt.a, lt.b, lt.c};
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(cublasLtMatrixLayoutSetAttribute(all[i], ABI_LT_LAYOUT_ORDER, &row, sizeof row), 0);
        assert_int_equal(cublasLtMatrixLayoutSetAttribute(all[i], ABI_LT_LAYOUT_BATCH, &(int32_t){6}, 4), 0);
    }
    uint64_t rows = 0;
    size_t written = 0;
    assert_int_equal(cublasLtMatrixLayoutGetAttribute(lt.b, ABI_LT_LAYOUT_ROWS, &rows, sizeof rows, &written), 0);
    assert_int_equal(rows, 30);
    assert_int_equal(written, 8);
    assert_int_equal(cublasLtMatmul(lt.handle, lt.desc, &one, memory, lt.a, memory, lt.b, &zero, memory, lt.c, memory,
                                    lt.c, NULL, NULL, 0, NULL),
                     0);
    const struct maq_rec_op *op = last(&name);
    ASSERT_D(op, 40, 20, 30, 6);
    assert_int_equal(op->type, MAQ_REC_TF32);
    assert_string_equal(name, "cublasLtMatmul nn");
    lt_free(lt);
}

/* A descriptor on the program's own stack, of the least size that any release set aside. */
static void test_desc_fits(void **unused)
{
    (void)unused;
    struct {
        char desc[ABI_LT_DESC_BYTES], guard[8];
    } place;
    memset(&place, 0x5a, sizeof place);
    assert_int_equal(cublasLtMatmulDescInit_internal(&place, sizeof place.desc, ABI_COMPUTE_32F, ABI_R_32F), 0);
    for (unsigned i = 0; i < sizeof place.guard; i++)
        assert_int_equal(place.guard[i], 0x5a);
    assert_int_equal(cublasLtMatmulDescInit_internal(&place, 8, ABI_COMPUTE_32F, ABI_R_32F), ABI_CUBLAS_INVALID_VALUE);
}

/* --- cuDNN ------------------------------------------------------------------------------------------------------------------- */

static void *describe(int kind)
{
    void *d;
    assert_int_equal(cudnnBackendCreateDescriptor(kind, &d), 0);
    return d;
}

static void give(void *d, int name, int type, int64_t n, const void *values)
{
    assert_int_equal(cudnnBackendSetAttribute(d, name, type, n, values), 0);
}

/* A tensor of rank 4; virtual ones lie in no memory. */
static void *tensor(int64_t uid, int type, bool is_virtual, int64_t a, int64_t b, int64_t c, int64_t d)
{
    void *t = describe(ABI_CUDNN_TENSOR);
    const int64_t dims[4] = {a, b, c, d};
    give(t, ABI_CUDNN_TENSOR_UID, ABI_CUDNN_TYPE_INT64, 1, &uid);
    give(t, ABI_CUDNN_TENSOR_TYPE, ABI_CUDNN_TYPE_DATA_TYPE, 1, &type);
    give(t, ABI_CUDNN_TENSOR_IS_VIRTUAL, ABI_CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    give(t, ABI_CUDNN_TENSOR_DIMENSIONS, ABI_CUDNN_TYPE_INT64, 4, dims);
    assert_int_equal(cudnnBackendFinalize(t), 0);
    return t;
}

static void *matmul(void *a, void *b, void *c)
{
    void *op = describe(ABI_CUDNN_OP_MATMUL);
    give(op, ABI_CUDNN_MATMUL_A, ABI_CUDNN_TYPE_DESCRIPTOR, 1, &a);
    give(op, ABI_CUDNN_MATMUL_B, ABI_CUDNN_TYPE_DESCRIPTOR, 1, &b);
    give(op, ABI_CUDNN_MATMUL_C, ABI_CUDNN_TYPE_DESCRIPTOR, 1, &c);
    assert_int_equal(cudnnBackendFinalize(op), 0);
    return op;
}

static void *pointwise(int mode)
{
    void *desc = describe(ABI_CUDNN_POINTWISE), *op = describe(ABI_CUDNN_OP_POINTWISE);
    give(desc, ABI_CUDNN_POINTWISE_MODE, ABI_CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    assert_int_equal(cudnnBackendFinalize(desc), 0);
    give(op, ABI_CUDNN_OP_POINTWISE_DESC, ABI_CUDNN_TYPE_DESCRIPTOR, 1, &desc);
    assert_int_equal(cudnnBackendFinalize(op), 0);
    cudnnBackendDestroyDescriptor(desc); /* who holds it keeps it */
    return op;
}

/* From operations to an executed plan, as cudnn-frontend goes; everything is given back before the plan runs. */
static const struct maq_rec_op *execute(void **operations, int64_t n, const char **name)
{
    void *h, *graph = describe(ABI_CUDNN_OPERATIONGRAPH), *heuristic = describe(ABI_CUDNN_ENGINEHEUR);
    void *config = describe(ABI_CUDNN_ENGINECFG), *plan = describe(ABI_CUDNN_PLAN);
    void *pack = describe(ABI_CUDNN_VARIANT_PACK), *engine = describe(ABI_CUDNN_ENGINE);
    int64_t found = 0, workspace = -1, index = -1;
    assert_int_equal(cudnnCreate(&h), 0);
    give(graph, ABI_CUDNN_GRAPH_OPS, ABI_CUDNN_TYPE_DESCRIPTOR, n, operations);
    assert_int_equal(cudnnBackendFinalize(graph), 0);
    give(heuristic, ABI_CUDNN_ENGINEHEUR_GRAPH, ABI_CUDNN_TYPE_DESCRIPTOR, 1, &graph);
    assert_int_equal(cudnnBackendFinalize(heuristic), 0);
    assert_int_equal(
        cudnnBackendGetAttribute(heuristic, ABI_CUDNN_ENGINEHEUR_RESULTS, ABI_CUDNN_TYPE_DESCRIPTOR, 0, &found, NULL),
        0);
    assert_int_equal(found, 1);
    assert_int_equal(cudnnBackendGetAttribute(heuristic, ABI_CUDNN_ENGINEHEUR_RESULTS, ABI_CUDNN_TYPE_DESCRIPTOR, 1,
                                              &found, &config),
                     0);
    assert_int_equal(
        cudnnBackendGetAttribute(config, ABI_CUDNN_ENGINECFG_ENGINE, ABI_CUDNN_TYPE_DESCRIPTOR, 1, &found, &engine), 0);
    assert_int_equal(
        cudnnBackendGetAttribute(engine, ABI_CUDNN_ENGINE_GLOBAL_INDEX, ABI_CUDNN_TYPE_INT64, 1, &found, &index), 0);
    assert_int_equal(index, 0);
    give(plan, ABI_CUDNN_PLAN_ENGINE_CONFIG, ABI_CUDNN_TYPE_DESCRIPTOR, 1, &config);
    assert_int_equal(cudnnBackendExecute(h, plan, pack), ABI_CUDNN_NOT_FINALIZED);
    assert_int_equal(cudnnBackendFinalize(plan), 0);
    assert_int_equal(
        cudnnBackendGetAttribute(plan, ABI_CUDNN_PLAN_WORKSPACE_SIZE, ABI_CUDNN_TYPE_INT64, 1, &found, &workspace), 0);
    assert_int_equal(workspace, 0);
    void *given_back[] = {graph, heuristic, config, engine};
    for (unsigned i = 0; i < 4; i++)
        cudnnBackendDestroyDescriptor(given_back[i]);
    for (int64_t i = 0; i < n; i++)
        cudnnBackendDestroyDescriptor(operations[i]);
    assert_int_equal(cudnnBackendExecute(h, plan, pack), 0);
    cudnnBackendDestroyDescriptor(plan);
    cudnnBackendDestroyDescriptor(pack);
    assert_int_equal(cudnnDestroy(h), 0);
    return last(name);
}

/* Batch 2, 16 heads over 4 of keys and values, 1024 queries, 2048 keys, 128 wide. */
static void test_attention(void **unused)
{
    (void)unused;
    const char *name;
    const int bf16 = ABI_CUDNN_BFLOAT16;
    void *q = tensor(1, bf16, false, 2, 16, 1024, 128), *k = tensor(2, bf16, false, 2, 4, 128, 2048);
    void *v = tensor(3, bf16, false, 2, 4, 2048, 128), *o = tensor(4, bf16, false, 2, 16, 1024, 128);
    void *s = tensor(5, ABI_CUDNN_FLOAT, true, 2, 16, 1024, 2048);
    const uint64_t bytes = 2ull * 2 * (2 * 16 * 1024 * 128 + 2 * 4 * 2048 * 128);
    void *forward[] = {matmul(q, k, s), pointwise(ABI_CUDNN_POINTWISE_GEN_INDEX), pointwise(ABI_CUDNN_POINTWISE_CMP_GE),
                       pointwise(ABI_CUDNN_POINTWISE_EXP), matmul(s, v, o)};
    const struct maq_rec_op *op = execute(forward, 5, &name);
    assert_int_equal(op->kind, MAQ_REC_ATTENTION);
    ASSERT_D(op, 2, 16, 4, 1024);
    assert_int_equal(op->d[4], 2048);
    assert_int_equal(op->d[5], 128);
    assert_int_equal(op->flags, MAQ_REC_CAUSAL);
    assert_int_equal(op->type, MAQ_REC_BF16);
    assert_int_equal(op->bytes, bytes);
    assert_string_equal(name, "cudnn attention forward");
    void *backward[] = {matmul(q, k, s), pointwise(ABI_CUDNN_POINTWISE_EXP),
                        matmul(s, o, v), matmul(o, k, s),
                        matmul(s, k, q), matmul(s, q, v)};
    op = execute(backward, 6, &name);
    assert_int_equal(op->kind, MAQ_REC_ATTENTION_BWD);
    ASSERT_D(op, 2, 16, 4, 1024);
    assert_int_equal(op->flags, 0);
    assert_string_equal(name, "cudnn attention backward");
    /* as one operation of that name */
    void *keys = tensor(6, bf16, false, 2, 4, 2048, 128), *one_op = describe(ABI_CUDNN_OP_SDPA_FWD);
    give(one_op, ABI_CUDNN_SDPA_FWD_Q, ABI_CUDNN_TYPE_DESCRIPTOR, 1, &q);
    give(one_op, ABI_CUDNN_SDPA_FWD_K, ABI_CUDNN_TYPE_DESCRIPTOR, 1, &keys);
    void *mask = describe(ABI_CUDNN_OP_BAND_MASK), *inner = describe(ABI_CUDNN_OPERATIONGRAPH);
    give(mask, ABI_CUDNN_BAND_MASK_COMPARISON, ABI_CUDNN_TYPE_POINTWISE_MODE, 1, &(int){ABI_CUDNN_POINTWISE_CMP_GE});
    give(inner, ABI_CUDNN_GRAPH_OPS, ABI_CUDNN_TYPE_DESCRIPTOR, 1, &mask);
    give(one_op, ABI_CUDNN_SDPA_FWD_SUBGRAPH, ABI_CUDNN_TYPE_DESCRIPTOR, 1, &inner);
    op = execute(&one_op, 1, NULL);
    assert_int_equal(op->flags, MAQ_REC_CAUSAL);
    cudnnBackendDestroyDescriptor(mask);
    cudnnBackendDestroyDescriptor(inner);
    assert_int_equal(op->kind, MAQ_REC_ATTENTION);
    ASSERT_D(op, 2, 16, 4, 1024);
    assert_int_equal(op->d[4], 2048);
    void *all[] = {q, k, v, o, s, keys};
    for (unsigned i = 0; i < 6; i++)
        cudnnBackendDestroyDescriptor(all[i]);
}

static void test_other_graphs(void **unused)
{
    (void)unused;
    const char *name;
    /* 8 x 64 x 56 x 56 from 3 x 3 filters over 32 channels: 2 * 8*64*56*56 * 32*3*3 flop */
    void *w = tensor(1, ABI_CUDNN_HALF, false, 64, 32, 3, 3), *y = tensor(2, ABI_CUDNN_HALF, false, 8, 64, 56, 56);
    void *conv = describe(ABI_CUDNN_OP_CONV_FWD);
    give(conv, ABI_CUDNN_CONV_FWD_W, ABI_CUDNN_TYPE_DESCRIPTOR, 1, &w);
    give(conv, ABI_CUDNN_CONV_FWD_Y, ABI_CUDNN_TYPE_DESCRIPTOR, 1, &y);
    const struct maq_rec_op *op = execute(&conv, 1, &name);
    assert_int_equal(op->kind, MAQ_REC_CONV);
    assert_int_equal(op->d[0], 2ll * 8 * 64 * 56 * 56 * 32 * 3 * 3);
    assert_int_equal(op->type, MAQ_REC_F16);
    assert_string_equal(name, "cudnn convolution forward");
    void *x = tensor(3, ABI_CUDNN_BFLOAT16, false, 4096, 1024, 1, 1);
    void *scale = tensor(4, ABI_CUDNN_FLOAT, false, 1, 1024, 1, 1), *norm = describe(ABI_CUDNN_OP_NORM_FWD);
    give(norm, ABI_CUDNN_NORM_FWD_X, ABI_CUDNN_TYPE_DESCRIPTOR, 1, &x);
    give(norm, ABI_CUDNN_NORM_FWD_SCALE, ABI_CUDNN_TYPE_DESCRIPTOR, 1, &scale);
    op = execute(&norm, 1, NULL);
    assert_int_equal(op->kind, MAQ_REC_NORM);
    ASSERT_D(op, 4096, 1024, 0, 0);
    /* C[M=100,N=200] = A[100,50] B[50,200], and a ReLU */
    void *a = tensor(5, ABI_CUDNN_HALF, false, 1, 7, 100, 50), *b = tensor(6, ABI_CUDNN_HALF, false, 1, 7, 50, 200);
    void *c = tensor(7, ABI_CUDNN_HALF, false, 1, 7, 100, 200);
    void *fused[] = {matmul(a, b, c), pointwise(ABI_CUDNN_POINTWISE_RELU)};
    op = execute(fused, 2, NULL);
    assert_int_equal(op->kind, MAQ_REC_GEMM);
    ASSERT_D(op, 200, 100, 50, 7);
    assert_int_equal(op->flags, MAQ_REC_ACTIVATION);
    void *alone = pointwise(ABI_CUDNN_POINTWISE_EXP);
    op = execute(&alone, 1, &name);
    assert_int_equal(op->kind, MAQ_REC_LIBRARY);
    assert_string_equal(name, "cudnn pointwise, 1 operations");
    void *all[] = {w, y, x, scale, a, b, c};
    for (unsigned i = 0; i < 7; i++)
        cudnnBackendDestroyDescriptor(all[i]);
}

/* The gradient of 64 filters of 3 x 3 over 32 channels, as programs from before the backend API ask for it. */
static void test_older_convolution(void **unused)
{
    (void)unused;
    void *h, *x, *y, *w, *conv;
    const char *name;
    const int filter[4] = {64, 32, 3, 3};
    int type = 0, n = 0, dims[4], strides[4];
    assert_int_equal(cudnnCreate(&h), 0);
    assert_int_equal(cudnnCreateTensorDescriptor(&x), 0);
    assert_int_equal(cudnnCreateTensorDescriptor(&y), 0);
    assert_int_equal(cudnnCreateFilterDescriptor(&w), 0);
    assert_int_equal(cudnnCreateConvolutionDescriptor(&conv), 0);
    assert_int_equal(cudnnSetTensor4dDescriptor(x, 0, ABI_CUDNN_HALF, 8, 32, 56, 56), 0);
    assert_int_equal(cudnnSetTensor4dDescriptor(y, 1, ABI_CUDNN_HALF, 8, 64, 56, 56), 0);
    assert_int_equal(cudnnGetTensorNdDescriptor(y, 4, &type, &n, dims, strides), 0);
    assert_true(type == ABI_CUDNN_HALF && n == 4 && dims[1] == 64 && strides[1] == 1 && strides[3] == 64);
    assert_int_equal(cudnnSetFilterNdDescriptor(w, ABI_CUDNN_HALF, 0, 4, filter), 0);
    assert_int_equal(cudnnConvolutionBackwardFilter(h, &one, x, memory, y, memory, conv, 1, NULL, 0, &zero, w, memory),
                     0);
    const struct maq_rec_op *op = last(&name);
    assert_int_equal(op->kind, MAQ_REC_CONV);
    assert_int_equal(op->d[0], 2ll * 8 * 64 * 56 * 56 * 32 * 3 * 3);
    assert_int_equal(op->bytes, 2 * (8 * 32 * 56 * 56 + 8 * 64 * 56 * 56 + 64 * 32 * 3 * 3));
    assert_string_equal(name, "cudnnConvolutionBackwardFilter");
    cudnnDestroyTensorDescriptor(x);
    cudnnDestroyTensorDescriptor(y);
    cudnnDestroyFilterDescriptor(w);
    cudnnDestroyConvolutionDescriptor(conv);
    cudnnDestroy(h);
}

/* --- NVML, NVRTC, CUPTI ------------------------------------------------------------------------------------------------------------ */

static void test_nvml(void **unused)
{
    (void)unused;
    unsigned n = 0, limit = 0;
    void *device, *same, *p;
    char uuid[80];
    struct abi_nvml_pci pci;
    struct abi_nvml_memory before, after;
    struct abi_nvml_process process;
    assert_int_equal(nvmlInit_v2(), 0);
    assert_int_equal(nvmlDeviceGetCount_v2(&n), 0);
    assert_int_equal(n, 1);
    assert_int_equal(nvmlDeviceGetHandleByIndex_v2(0, &device), 0);
    assert_int_equal(nvmlDeviceGetHandleByIndex_v2(1, &same), ABI_NVML_INVALID_ARGUMENT);
    assert_int_equal(nvmlDeviceGetPciInfo_v3(device, &pci), 0);
    assert_int_equal(nvmlDeviceGetHandleByPciBusId_v2(pci.bus_id, &same), 0);
    assert_ptr_equal(same, device);
    assert_int_equal(nvmlDeviceGetHandleByPciBusId_v2(pci.legacy_bus_id, &same), 0);
    assert_ptr_equal(same, device);
    assert_int_equal(nvmlDeviceGetHandleByPciBusId_v2("0000:ff:1f.0", &same), ABI_NVML_NOT_FOUND);
    assert_int_equal(nvmlDeviceGetUUID(device, uuid, sizeof uuid), 0);
    assert_int_equal(strlen(uuid), 40);
    assert_int_equal(nvmlDeviceGetHandleByUUID(uuid, &same), 0);
    assert_ptr_equal(same, device);
    assert_int_equal(nvmlDeviceGetUUID(device, uuid, 8), ABI_NVML_INSUFFICIENT_SIZE);
    assert_int_equal(nvmlDeviceGetMemoryInfo(device, &before), 0);
    assert_int_equal(cudaMalloc(&p, 64u << 20), 0);
    assert_int_equal(nvmlDeviceGetMemoryInfo(device, &after), 0);
    assert_int_equal(after.used, before.used + (64u << 20));
    assert_int_equal(after.free + after.used, vg_card()->memory_bytes);
    assert_int_equal(cudaFree(p), 0);
    assert_int_equal(nvmlDeviceGetPowerManagementLimit(device, &limit), 0);
    assert_int_equal(limit, 1000 * vg_card()->power_w);
    n = 0;
    assert_int_equal(nvmlDeviceGetComputeRunningProcesses_v3(device, &n, NULL), ABI_NVML_INSUFFICIENT_SIZE);
    assert_int_equal(n, 1);
    assert_int_equal(nvmlDeviceGetComputeRunningProcesses_v3(device, &n, &process), 0);
    assert_int_equal(process.pid, getpid());
    assert_int_equal(nvmlDeviceGetCount_v2(NULL), ABI_NVML_INVALID_ARGUMENT);
    assert_int_equal(nvmlDeviceGetUUID(memory, uuid, sizeof uuid), ABI_NVML_INVALID_ARGUMENT); /* no device */
}

static void test_nvrtc(void **unused)
{
    (void)unused;
    static const char source[] = "template<class T> __global__ void __launch_bounds__(256, (2)) add(T *x) {}\n"
                                 "extern \"C\" __global__ void plain (int n) {}\n// __global__";
    void *p;
    const char *lowered;
    char *ptx;
    size_t bytes;
    assert_int_equal(nvrtcCreateProgram(&p, source, "a.cu", 0, NULL, NULL), 0);
    assert_int_equal(nvrtcAddNameExpression(p, "add<float>"), 0);
    assert_int_not_equal(nvrtcGetLoweredName(p, "add<float>", &lowered), 0); /* not compiled yet */
    assert_int_equal(nvrtcCompileProgram(p, 0, NULL), 0);
    assert_int_equal(nvrtcGetLoweredName(p, "add<float>", &lowered), 0);
    assert_string_equal(lowered, "add_float_");
    assert_int_not_equal(nvrtcGetLoweredName(p, "sub<float>", &lowered), 0);
    assert_int_equal(nvrtcGetPTXSize(p, &bytes), 0);
    ptx = malloc(bytes);
    assert_int_equal(nvrtcGetPTX(p, ptx), 0);
    assert_int_equal(strlen(ptx) + 1, bytes);
    assert_non_null(strstr(ptx, ".entry plain()"));
    assert_non_null(strstr(ptx, ".entry add()"));
    assert_non_null(strstr(ptx, ".entry add_float_()"));
    free(ptx);
    assert_int_equal(nvrtcDestroyProgram(&p), 0);
    assert_null(p);
}

static void test_cupti(void **unused)
{
    (void)unused;
    void *subscriber = NULL, *record = memory;
    uint8_t buffer[64] = {0};
    assert_int_equal(cuptiSubscribe(&subscriber, NULL, NULL), 0);
    assert_non_null(subscriber);
    assert_int_equal(cuptiActivityEnable(10), 0);
    assert_int_equal(cuptiActivityFlushAll(0), 0);
    assert_int_not_equal(cuptiActivityGetNextRecord(buffer, sizeof buffer, &record), 0);
    assert_null(record);
    assert_int_equal(cuptiUnsubscribe(subscriber), 0);
}

static int begin(void **unused)
{
    (void)unused;
    const char *folder = getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp";
    snprintf(trace, sizeof trace, "%s/maq-math-%ld.trace", folder, (long)getpid());
    snprintf(card, sizeof card, "%s/maq-math-%ld.card", folder, (long)getpid());
    FILE *f = fopen(card, "w");
    if (f == NULL)
        return -1;
    fprintf(f, "world 1\nrank 0\nper_node 1\nlocal 0\ntrace %s\n", trace);
    fclose(f);
    return setenv(MAQ_RUN_CARD, card, 1);
}

static int end(void **unused)
{
    (void)unused;
    unlink(card);
    return unlink(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemm),
        cmocka_unit_test(test_gemm_ex),
        cmocka_unit_test(test_gemm_refuses),
        cmocka_unit_test(test_dot),
        cmocka_unit_test(test_matmul),
        cmocka_unit_test(test_matmul_row_order),
        cmocka_unit_test(test_desc_fits),
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_other_graphs),
        cmocka_unit_test(test_nvrtc),
        cmocka_unit_test(test_older_convolution),
        cmocka_unit_test(test_nvml),
        cmocka_unit_test(test_cupti),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
