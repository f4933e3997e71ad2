/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fitted.c - the fitted provider: which table answers, and under which conditions it was measured.
 *
 * Which: the device's own table of the library that was asked for, or, for a training job, the fastest of those whose
 * kernels training frameworks call as well; then the table of a relative, carried over part by part (other_device.c). Its error is
 * larger, and larger still when the relative is of another generation.
 *
 * Conditions: tables are taken in short loops, at clocks that no power limit lowers, with small operands in the cache. In a
 * step of training the power limit lowers the clock f until
 *
 *   static + d u f^3 = limit        rate follows f, energy per operation f^2 (voltage)
 *
 * where u is the kernel's rate over the fastest product of the device's tables. The same product under the limit, for long,
 * is the device's sustained rate, s of the fastest, which gives d; so
 *
 *   f = min(1, c s / u^(1/3)),   t = max(t_table / f, compulsory bytes / memory bandwidth)
 *
 * with c for the difference between a sustained rate and weeks of training (cost/analytical/analytical.h; 1 in runs of minutes); kernels that memory
 * bounds keep their clock. Attention that no table holds (all of its backward pass) follows the same law, with u of its analytical
 * rate. The fastest product of a device without tables is that of the nearest of its generation, share of the peak by share.
 *
 * Rows of products in 8 and in 4 bits time a whole Linear, whose input is converted first (product_alone_s()); the product alone is what remains. With
 * one scale per tensor it is cuBLASLt's in training (Transformer Engine, PyTorch's _scaled_mm) and in TensorRT-LLM
 * (tensorrt_llm/_torch/modules/linear.py, FP8QDQLinearMethod: cublas_scaled_mm), with fast accumulation
 * (kernels/.../cublasScaledMM.cpp); without (cost/analytical/generation_traits.c, promoted_share) it takes longer. Such products have a sustained
 * rate and a fastest product of their own. With a scale for every row they are CUTLASS's on Hopper, in PyTorch (RowwiseScaledMM.cu) and in
 * SGLang (sgl_kernel's fp8_scaled_mm). Other finer scales are other kernels.
 */
#include <math.h>
#include <string.h>

#include "cost/analytical/analytical.h"
#include "cost/fitted/other_device.h"
#include "cost/fitted/table.h"
#include "cost/fitted/warm_cache.h"

/*
 * What is added to a table's own error, one standard deviation. For a relative's table: half of the errors of H100, H200,
 * B200 and GB200 with their own tables left out are below 3 to 5 % (docs/fitted.md), a tenth above 10 to 30 %; no single
 * deviation fits such tails. A relative of another generation: so that 80 % of A100's and L40S's products and attention, their
 * own tables left out, are inside. Per doubling of a size beyond the table: assumed, rows there are too few to say.
 */
#define RELATIVE_ERROR 0.10
#define FAR_ERROR 0.28
#define OUTSIDE_ERROR 0.06

static const struct maq_fit_table *of_library(const char *device, enum maq_library library, struct maq_fit_key key,
                                              const char *kernel)
{
    const struct maq_fit_table *t = maq__fit_find(device, library, &key, kernel);
    if (!t && key.dtype == MAQ_FP16) { /* the same kernels and rates */
        key.dtype = MAQ_BF16;
        t = maq__fit_find(device, library, &key, kernel);
    }
    if (!t && key.family == MAQ_FIT_QUANTIZE && key.dtype == MAQ_FP4) { /* conversions have rows in 8 bits alone */
        key.dtype = MAQ_FP8;
        t = maq__fit_find(device, library, &key, kernel);
    }
    return t;
}

/*
 * Prefill rows are causal. Full attention is none of them (coordinates are those of a prompt behind a prefix as long as itself,
 * whose kernels take up to twice as long); and windows of a serving engine's kernels, which look keys up page by page, take twice
 * as long as cuDNN's, which training calls (docs/cost-model.md has both).
 */
static bool is_in_tables(const struct maq_op *op, const struct maq_costs *costs)
{
    if (op->flags & MAQ_OP_WINDOW)
        return costs->library != MAQ_LIBRARY_TRAINING;
    return (op->flags & MAQ_OP_CAUSAL) != 0;
}

/* Tables that may answer; the fastest does. */
struct answers {
    unsigned n;
    const struct maq_fit_table *at[MAQ_LIBRARY_COUNT];
};

static void add_answer(struct answers *answers, const struct maq_fit_table *table)
{
    if (table)
        answers->at[answers->n++] = table;
}

static bool is_product_in_8_bits(const struct maq_op *op)
{
    return op->kind == MAQ_OP_GEMM && op->dtype == MAQ_FP8 && maq__count(op, 3) <= 1.0;
}

/* A product whose input comes in 16 bits and is converted into fewer first. */
static bool is_converted(const struct maq_op *op)
{
    bool four = op->kind == MAQ_OP_GEMM && op->dtype == MAQ_FP4 && maq__count(op, 3) <= 1.0;
    return four || (is_product_in_8_bits(op) && !(op->flags & (MAQ_OP_WEIGHT8 | MAQ_OP_WEIGHT4)));
}

/* A product whose rows in TensorRT-LLM's table are cuBLASLt's. */
static bool is_narrow(const struct maq_op *op)
{
    return is_product_in_8_bits(op) &&
           !(op->flags & (MAQ_OP_FINE_SCALES | MAQ_OP_BLOCKS | MAQ_OP_WEIGHT8 | MAQ_OP_WEIGHT4));
}

static bool is_rowwise(const struct maq_op *op, const struct maq_device *device)
{
    return is_product_in_8_bits(op) && device->arch == MAQ_ARCH_HOPPER && (op->flags & MAQ_OP_FINE_SCALES);
}

/* Which library's kernels training frameworks call for a product in 8 bits; TRAINING = nobody's, or it is no such product. */
static enum maq_library narrow_library(const struct maq_costs *costs, const struct maq_op *op,
                                       const struct maq_device *device)
{
    if (costs->library != MAQ_LIBRARY_TRAINING)
        return MAQ_LIBRARY_TRAINING;
    return is_narrow(op) ? MAQ_LIBRARY_TRTLLM : is_rowwise(op, device) ? MAQ_LIBRARY_SGLANG : MAQ_LIBRARY_TRAINING;
}

/*
 * Triton's kernels for experts are one source in vLLM and SGLang (fused_moe), and so are Marlin's: where one's table lacks them, the other's stands
 * in. Formats of 4 bits share Marlin's, and the one with most rows answers for all. In 4 bits Triton's are those of triton_kernels ("oaitriton").
 */
static struct answers of_source(const char *device, enum maq_library library, const struct maq_fit_key *key,
                                const char *source)
{
    const enum maq_library others[] = {library, MAQ_LIBRARY_SGLANG, MAQ_LIBRARY_VLLM};
    struct answers answers = {0};
    for (size_t i = 0; i < sizeof others / sizeof others[0] && answers.n == 0; i++)
        add_answer(&answers, maq__fit_find_named(device, others[i], key, source));
    return answers;
}

/*
 * Training frameworks call cuBLAS, cuDNN and FlashAttention for 16-bit types, and so do the serving engines, in releases of
 * their own: the fastest of them is nearest to what a training container brings. Products of narrower types have the
 * library that narrow_library() names, or none; experts are not a training framework's, and batched products those of latent
 * attention.
 */
static struct answers of_device(const char *device, const struct maq_costs *costs, const struct maq_op *op,
                                const struct maq_fit_key *key, enum maq_library narrow)
{
    struct answers answers = {0};
    bool called = key->family == MAQ_FIT_GEMM || key->family == MAQ_FIT_PREFILL;
    if (op->kind == MAQ_OP_EXPERTS && op->flags & MAQ_OP_TRITON_EXPERTS)
        answers = of_source(device, costs->library, key, op->flags & MAQ_OP_WEIGHT4 ? "oaitriton" : "triton");
    else if (op->kind == MAQ_OP_EXPERTS && op->flags & MAQ_OP_MARLIN_EXPERTS)
        answers = of_source(device, costs->library, key, "marlin");
    if (answers.n > 0)
        return answers;
    if (costs->library != MAQ_LIBRARY_TRAINING)
        add_answer(&answers, of_library(device, costs->library, *key, costs->kernel));
    else if (narrow != MAQ_LIBRARY_TRAINING)
        add_answer(&answers, of_library(device, narrow, *key, NULL));
    else if (called && maq_dtype_bytes((enum maq_dtype)key->dtype) >= 2.0)
        for (int i = MAQ_LIBRARY_TRTLLM; i < MAQ_LIBRARY_COUNT; i++)
            add_answer(&answers, of_library(device, (enum maq_library)i, *key, NULL));
    return answers;
}

/* The nearest device with tables, nearer than `within` and one that `speaks` (NULL: they all do); the first by name of two that are equally
 * near. NULL = none. */
static const struct maq_fit_device *nearest(const struct maq_device *device, double within,
                                            bool (*speaks)(const struct maq_fit_device *d, void *of), void *of)
{
    const struct maq_fit_device *best = NULL;
    for (size_t i = 0; i < maq__fit_devices_count; i++) {
        double d = maq__other_device_distance(device, &maq__fit_devices[i].device);
        if (d < within && (!speaks || speaks(&maq__fit_devices[i], of))) {
            best = &maq__fit_devices[i];
            within = d;
        }
    }
    return best;
}

/* What a relative is asked, and what the last one said that knew something. */
struct question {
    const struct maq_costs *costs;
    const struct maq_op *op;
    const struct maq_fit_key *key;
    enum maq_library narrow;
    struct answers answers;
};

static bool has_answers(const struct maq_fit_device *d, void *of)
{
    struct question *q = of;
    struct answers answers = of_device(d->device.name, q->costs, q->op, q->key, q->narrow);
    if (answers.n > 0)
        q->answers = answers;
    return answers.n > 0;
}

/* The nearest relative that has a table; for training only one of its generation. */
static struct answers of_relative(const struct maq_device **from, const struct maq_device *device,
                                  const struct maq_costs *costs, const struct maq_op *op, const struct maq_fit_key *key,
                                  enum maq_library narrow)
{
    struct question q = {.costs = costs, .op = op, .key = key, .narrow = narrow};
    double within = costs->library == MAQ_LIBRARY_TRAINING ? MAQ_CARRY_FAR : (double)INFINITY;
    const struct maq_fit_device *relative = nearest(device, within, has_answers, &q);
    if (relative)
        *from = &relative->device;
    return q.answers;
}

/* Sustained rate over that of a burst, where the device has no sustained figure: the mean of A100, H100, B200, GB200. */
#define SUSTAINED_SHARE 0.85

static const struct maq_fit_device *fit_device(const char *name)
{
    for (size_t i = 0; i < maq__fit_devices_count; i++)
        if (strcmp(maq__fit_devices[i].device.name, name) == 0)
            return &maq__fit_devices[i];
    return NULL;
}

/*
 * The fastest product in a short loop: that of the tables of the device `table`, of the nearest one where it has none, or, in a
 * generation without any, what cost/analytical/generation_traits.c says. Of a board that is sold with a part of its die's rate it
 * is the whole die's: that is what the power would have to feed.
 */
static double best_burst(const struct maq_device *device, const char *table, enum maq_dtype dtype)
{
    const struct maq_fit_device *named = fit_device(table);
    const struct maq_fit_device *d = named ? named : nearest(device, MAQ_CARRY_FAR, NULL, NULL); /* of its generation */
    double whole = maq__matrix_peak(device, dtype) / maq__matrix_part(device);
    if (d)
        return (dtype == MAQ_FP8 ? d->burst_narrow_flops : d->burst_flops) / d->device.peak_flops[dtype] * whole;
    return maq__min(maq__kernel_traits(device)->sustained_share / SUSTAINED_SHARE, 1.0) * whole;
}

/*
 * The fastest product of the operator's own type: one in 4 bits takes a part of the power that it would take in 16, so that it is the
 * share of what its own units reach that says how far the limit lowers the clock. Tables have no sustained rate in 4 bits; that of 8
 * bits stands for it, share of the peak by share.
 */
static double best_of_type(const struct maq_op *op, const struct maq_device *device, double best)
{
    double eight = device->peak_flops[MAQ_FP8], four = device->peak_flops[MAQ_FP4];
    return op->dtype == MAQ_FP4 && eight > 0.0 && four > 0.0 ? best * four / eight : best;
}

/* What the power limit makes of a time measured in a short loop; `table` is the device that it was measured on. */
static double under_load_s(double burst_s, const struct maq_op *op, const struct maq_device *device, const char *table,
                           const struct maq_costs *costs)
{
    struct maq_work work = maq_op_work(op);
    enum maq_dtype rates = is_narrow(op) || is_rowwise(op, device) || op->dtype == MAQ_FP4 ? MAQ_FP8 : MAQ_BF16;
    double best = best_burst(device, table, rates), held = device->sustained_flops[rates];
    double share = best > 0.0 && held > 0.0 ? maq__min(held / best, 1.0) : SUSTAINED_SHARE;
    if (maq__matrix_part(device) < 1.0 && best > 0.0) /* may be over 1: of the whole die */
        share = maq__powered_rate(device, rates) / best;
    double own = best_of_type(op, device, best), held_for_long = costs->short_run ? 1.0 : MAQ_CONTINUOUS_SHARE;
    double rate = best > 0.0 && burst_s > 0.0 ? maq__min(work.matrix_flop / burst_s / own, 1.0) : 0.0;
    double slower = maq__max(1.0, cbrt(rate) / (share * held_for_long));
    return maq__max(burst_s * slower, maq__over(work.bytes, device->mem_bps));
}

double maq__under_load_s(double burst_s, const struct maq_op *op, const struct maq_device *device,
                         const struct maq_costs *costs)
{
    return under_load_s(burst_s, op, device, device->name, costs);
}

/* Time by a table, where it was measured. */
static double table_s(const struct maq_fit_table *table, const struct maq_fit_point *at, double *outside)
{
    double s = maq__fit_surface(table, at->x, outside);
    return maq__max(at->floor_s, at->base_s * exp(s));
}

/*
 * The law above needs loops that no limit slowed. Where the sustained rate is not below the fastest product of the tables (B200
 * 1.03, GB200 0.98; H100 0.87, H200 0.90), their loops were slowed as well, and how much is not known: the analytical provider
 * answers.
 */
#define FREE_LOOP 0.95

static bool loops_were_free(const struct maq_device *device, const char *table)
{
    double best = best_burst(device, table, MAQ_FP8);
    return best > 0.0 && device->sustained_flops[MAQ_FP8] < FREE_LOOP * best;
}

/*
 * What the row of a product holds besides: the conversion of its first operand. All three libraries' programs time a whole Linear of
 * weights in 8 or 4 bits (collector/<library>/collect_gemm.py of ai-dynamo/aiconfigurator, 095f58a). TensorRT-LLM's with one scale per
 * tensor search for the largest value first. SGLang's own rows of conversions are four kernels of PyTorch's, which no engine calls, and vLLM's
 * stand for its kernel. INFINITY where the device's tables lack it.
 */
static double conversion_s(const struct maq_op *op, const struct maq_device *device, enum maq_library rows,
                           double *outside)
{
    const struct maq_op kernels[] = {
        {.kind = MAQ_OP_QUANTIZE, .dtype = op->dtype, .d = {op->d[0], op->d[2]}},
        {.kind = MAQ_OP_ELEMENTWISE, .dtype = MAQ_BF16, .d = {op->d[0] * op->d[2], 2}},
    };
    size_t n = rows == MAQ_LIBRARY_TRTLLM && is_narrow(op) ? 2 : 1;
    enum maq_library whose = rows == MAQ_LIBRARY_SGLANG ? MAQ_LIBRARY_VLLM : rows;
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        struct maq_fit_point at;
        double beyond = 0.0;
        bool known = maq__fit_point(&at, &kernels[i], device);
        const struct maq_fit_table *table = known ? of_library(device->name, whose, at.key, NULL) : NULL;
        sum += table ? table_s(table, &at, &beyond) : (double)INFINITY;
        *outside = maq__max(*outside, beyond);
    }
    return sum;
}

static double promoted_share(const struct maq_op *op, const struct maq_device *device)
{
    double share = maq__kernel_traits(device)->promoted_share;
    return op->flags & MAQ_OP_PROMOTED && op->dtype == MAQ_FP8 && share > 0.0 ? share : 1.0;
}

/*
 * The product alone, of a row of a library's table. What the conversion takes must be known of a product of training, which takes a table's only
 * for the product in it; an engine's is the whole row then.
 */
static double product_alone_s(double row_s, const struct maq_op *op, const struct maq_costs *costs,
                              const struct maq_device *device, const struct maq_fit_point *at, enum maq_library rows,
                              double *outside)
{
    bool training = costs->library == MAQ_LIBRARY_TRAINING;
    double conversion = conversion_s(op, device, rows, outside);
    if (!(conversion < MAQ_FOREVER_S))
        return training ? MAQ_FOREVER_S : row_s;
    return maq__max(row_s - conversion, at->floor_s) / (training ? promoted_share(op, device) : 1.0);
}

/* Seconds that the tables say, in a loop on the device that they were measured on: the least of the answers. */
static const struct maq_fit_table *fastest(double *seconds, double *outside, const struct answers *answers,
                                           const struct maq_costs *costs, const struct maq_op *op,
                                           const struct maq_device *device, const struct maq_fit_point *at)
{
    const struct maq_fit_table *best = NULL;
    *seconds = MAQ_FOREVER_S;
    for (unsigned i = 0; i < answers->n; i++) {
        double beyond, t = table_s(answers->at[i], at, &beyond);
        if (is_converted(op) && !costs->whole_rows)
            t = product_alone_s(t, op, costs, device, at, (enum maq_library)answers->at[i]->library, &beyond);
        if (t < *seconds) {
            *seconds = t;
            *outside = beyond;
            best = answers->at[i];
        }
    }
    return best;
}

bool maq__fitted_op(struct maq_cost *out, const struct maq_costs *costs, const struct maq_op *op,
                    const struct maq_device *device)
{
    struct maq_fit_point here, there;
    const struct maq_device *from = NULL;
    struct answers answers = {0};
    enum maq_library narrow = narrow_library(costs, op, device);

    if (costs->best == MAQ_PROVIDER_ANALYTICAL || !device->name || !maq__fit_point(&here, op, device))
        return false;
    if (here.key.family == MAQ_FIT_PREFILL && !is_in_tables(op, costs))
        return false;
    if (!costs->leave_device_out)
        answers = of_device(device->name, costs, op, &here.key, narrow);
    if (answers.n == 0)
        answers = of_relative(&from, device, costs, op, &here.key, narrow);
    if (answers.n == 0 || (from && !maq__fit_point(&there, op, from)))
        return false;

    double seconds, outside = 0.0;
    const struct maq_fit_table *table =
        fastest(&seconds, &outside, &answers, costs, op, from ? from : device, from ? &there : &here);
    if (!table || (narrow != MAQ_LIBRARY_TRAINING && !loops_were_free(device, table->device)))
        return false;
    if (from)
        seconds = maq__max(here.floor_s, maq__other_device_s(seconds, op, (enum maq_library)table->library,
                                                             &(struct maq_other_device){from, &there},
                                                             &(struct maq_other_device){device, &here}));
    if (!costs->burst)
        seconds = under_load_s(seconds, op, device, table->device, costs) +
                  maq__cold_s(op, &here, device, (enum maq_library)table->library);
    seconds += maq__wide_store_s(op, device);
    if (!(seconds < MAQ_FOREVER_S))
        return false;
    double error = (double)table->error_p80 / MAQ_INTERVAL_80 + OUTSIDE_ERROR * outside +
                   (!from                        ? 0.0
                    : from->arch == device->arch ? RELATIVE_ERROR
                                                 : FAR_ERROR);
    *out =
        (struct maq_cost){.seconds = seconds, .error = (float)maq__min(error, 0.95), .provider = MAQ_PROVIDER_FITTED};
    return true;
}
