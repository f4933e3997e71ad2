/*
 * fitted.c - the fitted provider: which table answers, and under which conditions it was measured.
 *
 * Which: the device's own table of the library that was asked for; then, for a training job, of the libraries whose
 * kernels training frameworks call as well, in order; then the table of the device of the same generation whose balance
 * of FLOP and bytes is nearest, over this device's own base time, with a larger error.
 *
 * Conditions: tables are taken in short loops, at clocks that no power limit lowers, with small operands in the cache.
 * For a step of training
 *
 *   t = max((t_table^8 + t_power^8)^(1/8), t_cold)
 *   t_power = FLOP / rate that the device holds under its power limit      traits.c
 *   t_cold  = compulsory bytes / memory bandwidth
 */
#include <math.h>
#include <string.h>

#include "cost/fit.h"
#include "cost/model.h"

/* Error per doubling of a size beyond the table, and of a sibling's table: see docs/fitted.md. */
#define OUTSIDE_ERROR 0.06
#define SIBLING_ERROR 0.08

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

/* cuBLAS and FlashAttention as PyTorch calls them are in vLLM's tables; SGLang's have bare 8-bit products. */
static const enum maq_library wide[] = {MAQ_LIBRARY_VLLM, MAQ_LIBRARY_SGLANG, MAQ_LIBRARY_TRTLLM};
static const enum maq_library narrow[] = {MAQ_LIBRARY_SGLANG, MAQ_LIBRARY_TRTLLM, MAQ_LIBRARY_VLLM};

static const struct maq_fit_table *of_device(const char *device, const struct maq_costs *costs,
                                             const struct maq_fit_key *key)
{
    if (costs->library != MAQ_LIBRARY_TRAINING)
        return of_library(device, costs->library, *key, costs->kernel);
    bool is_narrow = maq_dtype_bytes((enum maq_dtype)key->dtype) < 2.0;
    for (int i = 0; i < 3; i++) {
        const struct maq_fit_table *t = of_library(device, is_narrow ? narrow[i] : wide[i], *key, NULL);
        if (t)
            return t;
    }
    return NULL;
}

static double balance_of(const struct maq_device *device)
{
    return maq__over(maq__matrix_peak(device, MAQ_BF16), device->mem_bps);
}

/* The nearest relative that has a table: of the same generation, then of the nearest balance, then first by name. */
static const struct maq_fit_table *of_sibling(const struct maq_device *device, const struct maq_costs *costs,
                                              const struct maq_fit_key *key)
{
    const struct maq_fit_table *best = NULL;
    double best_distance = INFINITY;
    for (size_t i = 0; i < maq__fit_devices_count; i++) {
        const struct maq_fit_device *d = &maq__fit_devices[i];
        double distance = fabs(log(maq__max(balance_of(device), 1e-9) / d->balance));
        if (d->arch != device->arch || !(distance < best_distance) || strcmp(d->name, device->name) == 0)
            continue;
        const struct maq_fit_table *t = of_device(d->name, costs, key);
        if (t) {
            best = t;
            best_distance = distance;
        }
    }
    return best;
}

/* What a step of training makes of a time measured in a short loop. */
static double in_training_s(double table_s, const struct maq_fit_point *point, const struct maq_op *op,
                            const struct maq_device *device)
{
    double rate = maq__matrix_rate(device, (enum maq_dtype)op->dtype),
           peak = maq__matrix_peak(device, (enum maq_dtype)op->dtype);
    double power = rate > 0.0 ? point->math_s * peak / rate : 0.0;
    double cold = maq__over(maq_op_work(op).bytes, device->mem_bps);
    double hi = maq__max(table_s, power), r = hi > 0.0 ? maq__min(table_s, power) / hi : 0.0;
    double r2 = r * r, r8 = r2 * r2 * r2 * r2;
    return maq__max(hi * sqrt(sqrt(sqrt(1.0 + r8))), cold);
}

bool maq__fitted_op(struct maq_cost *out, const struct maq_costs *costs, const struct maq_op *op,
                    const struct maq_device *device)
{
    struct maq_fit_point point;
    const struct maq_fit_table *table = NULL;
    bool sibling = false;

    if (costs->best == MAQ_PROVIDER_ANALYTICAL || !device->name || !maq__fit_point(&point, op, device))
        return false;
    if (!costs->leave_device_out)
        table = of_device(device->name, costs, &point.key);
    if (!table) {
        table = of_sibling(device, costs, &point.key);
        sibling = true;
    }
    if (!table)
        return false;

    double outside, s = maq__fit_surface(table, point.x, &outside);
    double seconds = maq__max(point.floor_s, point.base_s * exp(s));
    if (!costs->burst)
        seconds = in_training_s(seconds, &point, op, device);
    if (!(seconds < MAQ_FOREVER_S))
        return false;
    double error = (double)table->error_p90 / 1.6449 + OUTSIDE_ERROR * outside + (sibling ? SIBLING_ERROR : 0.0);
    *out =
        (struct maq_cost){.seconds = seconds, .error = (float)maq__min(error, 0.95), .provider = MAQ_PROVIDER_FITTED};
    return true;
}
