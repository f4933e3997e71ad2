/*
 * fitted.c - the fitted provider: which table answers, and under which conditions it was measured.
 *
 * Which: the device's own table of the library that was asked for, or, for a training job, the fastest of those whose
 * kernels training frameworks call as well; then the table of a relative, carried over part by part (carry.c). Its error is
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
 * with c for the difference between a sustained rate and weeks of training (model.h); kernels that memory bounds keep their
 * clock. Attention that no table holds (all of its backward pass) follows the same law, with u of its analytical rate.
 */
#include <math.h>
#include <string.h>

#include "cost/carry.h"
#include "cost/fit.h"
#include "cost/model.h"

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
    return t;
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

/*
 * Training frameworks call cuBLAS, cuDNN and FlashAttention for 16-bit types, and so do the serving engines, in releases of
 * their own: the fastest of them is nearest to what a training container brings. Products of narrower types are not
 * cuBLASLt's in any of the tables, experts not a training framework's, and batched products those of latent attention.
 */
static struct answers of_device(const char *device, const struct maq_costs *costs, const struct maq_fit_key *key)
{
    struct answers answers = {0};
    bool called = key->family == MAQ_FIT_GEMM || key->family == MAQ_FIT_PREFILL;
    if (costs->library != MAQ_LIBRARY_TRAINING)
        add_answer(&answers, of_library(device, costs->library, *key, costs->kernel));
    else if (called && maq_dtype_bytes((enum maq_dtype)key->dtype) >= 2.0)
        for (int i = MAQ_LIBRARY_TRTLLM; i < MAQ_LIBRARY_COUNT; i++)
            add_answer(&answers, of_library(device, (enum maq_library)i, *key, NULL));
    return answers;
}

/* The nearest relative that has a table; the first by name of two that are equally near. */
static struct answers of_relative(const struct maq_device **from, const struct maq_device *device,
                                  const struct maq_costs *costs, const struct maq_fit_key *key)
{
    struct answers best = {0};
    double best_distance = (double)INFINITY;
    for (size_t i = 0; i < maq__fit_devices_count; i++) {
        double d = maq__carry_distance(device, &maq__fit_devices[i].device);
        struct answers answers = {0};
        if (d < best_distance && (d < MAQ_CARRY_FAR || costs->library != MAQ_LIBRARY_TRAINING))
            answers = of_device(maq__fit_devices[i].device.name, costs, key);
        if (answers.n > 0) {
            best = answers;
            best_distance = d;
            *from = &maq__fit_devices[i].device;
        }
    }
    return best;
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

/* The fastest product in a short loop: that of the tables, of `table` where they are another device's, or what the generation's is. */
static double best_burst(const struct maq_device *device, const char *table)
{
    const struct maq_fit_device *d = fit_device(table);
    double peak = maq__matrix_peak(device, MAQ_BF16);
    if (d)
        return d->burst_flops / d->device.peak_flops[MAQ_BF16] * peak;
    return maq__min(maq__kernel_traits(device)->sustained_share / SUSTAINED_SHARE, 1.0) * peak;
}

/* What a step of training makes of a time measured in a short loop; `table` is the device that it was measured on. */
static double in_training_s(double burst_s, const struct maq_op *op, const struct maq_device *device, const char *table)
{
    struct maq_work work = maq_op_work(op);
    double best = best_burst(device, table), held = device->sustained_flops[MAQ_BF16];
    double share = best > 0.0 && held > 0.0 ? held / best : SUSTAINED_SHARE;
    double rate = best > 0.0 && burst_s > 0.0 ? maq__min(work.matrix_flop / burst_s / best, 1.0) : 0.0;
    double slower = maq__max(1.0, cbrt(rate) / (maq__min(share, 1.0) * MAQ_CONTINUOUS_SHARE));
    return maq__max(burst_s * slower, maq__over(work.bytes, device->mem_bps));
}

double maq__in_training_s(double burst_s, const struct maq_op *op, const struct maq_device *device)
{
    return in_training_s(burst_s, op, device, device->name);
}

/* Time by a table, where it was measured. */
static double table_s(const struct maq_fit_table *table, const struct maq_fit_point *at, double *outside)
{
    double s = maq__fit_surface(table, at->x, outside);
    return maq__max(at->floor_s, at->base_s * exp(s));
}

bool maq__fitted_op(struct maq_cost *out, const struct maq_costs *costs, const struct maq_op *op,
                    const struct maq_device *device)
{
    struct maq_fit_point here, there;
    const struct maq_device *from = NULL;
    struct answers answers = {0};

    if (costs->best == MAQ_PROVIDER_ANALYTICAL || !device->name || !maq__fit_point(&here, op, device))
        return false;
    if (!costs->leave_device_out)
        answers = of_device(device->name, costs, &here.key);
    if (answers.n == 0)
        answers = of_relative(&from, device, costs, &here.key);
    if (answers.n == 0 || (from && !maq__fit_point(&there, op, from)))
        return false;

    double seconds = MAQ_FOREVER_S, outside = 0.0;
    const struct maq_fit_table *table = NULL;
    for (unsigned i = 0; i < answers.n; i++) {
        double beyond, t = table_s(answers.at[i], from ? &there : &here, &beyond);
        if (t < seconds) {
            seconds = t;
            outside = beyond;
            table = answers.at[i];
        }
    }
    if (!table)
        return false;
    if (from)
        seconds = maq__max(here.floor_s,
                           maq__carry_over_s(seconds, op, (enum maq_library)table->library,
                                             &(struct maq_carry){from, &there}, &(struct maq_carry){device, &here}));
    if (!costs->burst)
        seconds = in_training_s(seconds, op, device, table->device);
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
