/*
 * fitted.c - the fitted provider: which table answers, and under which conditions it was measured.
 *
 * Which: the device's own table of the library that was asked for; then, for a training job, of the libraries whose
 * kernels training frameworks call as well, in order; then the table of a relative: the device of the same
 * generation with the nearest balance of FLOP and bytes. What a kernel takes there, t, is carried over
 * part by part:
 *
 *   t'^2 = t_math'^2 + t_mem'^2 + rest'^2,   rest^2 = t^2 - t_math^2 - t_mem^2,   rest' = rest clock / clock'
 *
 * so that a kernel gains from faster memory only as far as memory bounds it. Its error is larger.
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
 * clock.
 */
#include <math.h>
#include <string.h>

#include "cost/fit.h"
#include "cost/model.h"

#define INTERVAL_80 1.2816 /* standard deviations on either side that hold 80 % of a normal distribution */

/* Error per doubling of a size beyond the table, and of a relative's table: see docs/fitted.md. */
#define OUTSIDE_ERROR 0.06
#define RELATIVE_ERROR 0.10

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

/*
 * Training frameworks call cuBLAS, cuDNN and FlashAttention, as vLLM does for 16-bit types, and the others nearly. Products
 * of narrower types are not cuBLASLt's in any of the tables, experts not a training framework's, and batched products those of latent attention.
 */
static const enum maq_library wide[] = {MAQ_LIBRARY_VLLM, MAQ_LIBRARY_SGLANG, MAQ_LIBRARY_TRTLLM};

static const struct maq_fit_table *of_device(const char *device, const struct maq_costs *costs,
                                             const struct maq_fit_key *key)
{
    const struct maq_fit_table *t = NULL;
    if (costs->library != MAQ_LIBRARY_TRAINING)
        return of_library(device, costs->library, *key, costs->kernel);
    bool called = key->family == MAQ_FIT_GEMM || key->family == MAQ_FIT_PREFILL;
    if (!called || maq_dtype_bytes((enum maq_dtype)key->dtype) < 2.0)
        return NULL;
    for (int i = 0; i < 3 && !t; i++)
        t = of_library(device, wide[i], *key, NULL);
    return t;
}

static double balance_of(const struct maq_device *device)
{
    return maq__over(maq__matrix_peak(device, MAQ_BF16), device->mem_bps);
}

/* How far apart two devices are; infinite when they have no kernels in common. */
static double distance(const struct maq_device *a, const struct maq_device *b)
{
    if (a->arch != b->arch || strcmp(a->name, b->name) == 0)
        return (double)INFINITY;
    return fabs(log(maq__max(balance_of(a), 1e-9) / balance_of(b)));
}

/* The nearest relative that has a table; the first by name of two that are equally near. */
static const struct maq_fit_table *of_relative(const struct maq_device **from, const struct maq_device *device,
                                               const struct maq_costs *costs, const struct maq_fit_key *key)
{
    const struct maq_fit_table *best = NULL;
    double best_distance = (double)INFINITY;
    for (size_t i = 0; i < maq__fit_devices_count; i++) {
        double d = distance(device, &maq__fit_devices[i].device);
        const struct maq_fit_table *t =
            d < best_distance ? of_device(maq__fit_devices[i].device.name, costs, key) : NULL;
        if (t) {
            best = t;
            best_distance = d;
            *from = &maq__fit_devices[i].device;
        }
    }
    return best;
}

/* What takes `t` on `from`, on `to`; `p` is the operator there, `at` the same here. */
static double carry_over(double t, const struct maq_fit_point *p, const struct maq_device *from,
                         const struct maq_fit_point *at, const struct maq_device *to)
{
    double bound = p->math_s * p->math_s + p->memory_s * p->memory_s, rest = t * t - bound;
    double here = at->math_s * at->math_s + at->memory_s * at->memory_s;
    double clock = from->clock_hz > 0.0 && to->clock_hz > 0.0 ? from->clock_hz / to->clock_hz : 1.0;
    if (rest < 0.0) /* a cache did better than the base thinks: as much better here */
        return t * sqrt(here / bound);
    return sqrt(here + rest * clock * clock);
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

/* What a step of training makes of a time measured in a short loop; `table` is the device that it was measured on. */
static double in_training_s(double burst_s, const struct maq_op *op, const struct maq_device *device, const char *table)
{
    const struct maq_fit_device *d = fit_device(table);
    struct maq_work work = maq_op_work(op);
    double best = d ? d->burst_flops / d->device.peak_flops[MAQ_BF16] * device->peak_flops[MAQ_BF16] : 0.0;
    double held = device->sustained_flops[MAQ_BF16], share = best > 0.0 && held > 0.0 ? held / best : SUSTAINED_SHARE;
    double rate = best > 0.0 && burst_s > 0.0 ? work.matrix_flop / burst_s / best : 0.0;
    double slower = maq__max(1.0, cbrt(rate) / (maq__min(share, 1.0) * MAQ_CONTINUOUS_SHARE));
    return maq__max(burst_s * slower, maq__over(work.bytes, device->mem_bps));
}

bool maq__fitted_op(struct maq_cost *out, const struct maq_costs *costs, const struct maq_op *op,
                    const struct maq_device *device)
{
    struct maq_fit_point here, there;
    const struct maq_device *from = NULL;
    const struct maq_fit_table *table = NULL;

    if (costs->best == MAQ_PROVIDER_ANALYTICAL || !device->name || !maq__fit_point(&here, op, device))
        return false;
    if (!costs->leave_device_out)
        table = of_device(device->name, costs, &here.key);
    if (!table)
        table = of_relative(&from, device, costs, &here.key);
    if (!table || (from && !maq__fit_point(&there, op, from)))
        return false;

    const struct maq_fit_point *at = from ? &there : &here;
    double outside, s = maq__fit_surface(table, at->x, &outside);
    double seconds = maq__max(at->floor_s, at->base_s * exp(s));
    if (from)
        seconds = maq__max(here.floor_s, carry_over(seconds, &there, from, &here, device));
    if (!costs->burst)
        seconds = in_training_s(seconds, op, device, table->device);
    if (!(seconds < MAQ_FOREVER_S))
        return false;
    double error = (double)table->error_p80 / INTERVAL_80 + OUTSIDE_ERROR * outside + (from ? RELATIVE_ERROR : 0.0);
    *out =
        (struct maq_cost){.seconds = seconds, .error = (float)maq__min(error, 0.95), .provider = MAQ_PROVIDER_FITTED};
    return true;
}
