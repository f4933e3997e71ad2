/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h - compact models of kernels, fitted to measured tables: what a fitted table is, and how it is asked.
 *
 * A table belongs to one device, library, kernel, family and variant. It holds a surface S over up to four axes, each
 * the base-2 logarithm of a size; the time is
 *
 *   t = base(op, device) exp(S(x)),   base = launch + (t_math^4 + t_mem^4)^(1/4)            coordinates.c
 *
 * with t_math and t_mem the datasheet's rates at work on exact FLOP and compulsory bytes (what the cache holds moves at its
 * rate). So S is what a kernel loses (or what a cache wins), without a unit, and varies slowly. Between knots S is linear
 * along each axis; beyond the outermost knots it keeps its value there: the physical base scaled at the border, and the
 * answer says that it is outside.
 *
 * Tables are data/fitted/<device>--<library>.json, made by fit-kernels (tools/fit) and compiled in. docs/fitted.md describes
 * them.
 */
#ifndef MAQ_COST_FITTED_TABLE_H
#define MAQ_COST_FITTED_TABLE_H

#include "maquette/cost.h"

#define MAQ_FIT_AXES 4

/* Standard deviations on either side that hold 80 % of a normal distribution: tables state the 80th percentile of the error. */
#define MAQ_INTERVAL_80 1.2816

/*    family, name, what the axes are                                                                              */
#define MAQ_FIT_FAMILY_LIST(X)                                                                                         \
    X(GEMM, "gemm", "m", "n", "k", "")                                                                                 \
    X(BMM, "bmm", "m", "batch", "n", "k")                                                                              \
    X(PREFILL, "prefill", "queries", "sequences x heads", "heads per kv head", "reach")                                \
    X(DECODE, "decode", "keys", "sequences x kv heads", "heads per kv head", "")                                       \
    X(EXPERTS, "experts", "rows per expert", "experts", "hidden", "ffn")                                               \
    X(MLA_PREFILL, "mla_prefill", "queries", "sequences", "heads", "")                                                 \
    X(MLA_DECODE, "mla_decode", "keys", "sequences", "heads", "")                                                      \
    X(DELTA_RULE, "delta_rule", "tokens", "heads", "key heads", "queries")                                             \
    X(CONV1D, "conv1d", "tokens", "channels", "queries", "")                                                           \
    X(QUANTIZE, "quantize", "rows", "columns", "", "")                                                                 \
    X(ELEMENTWISE, "elementwise", "elements", "", "", "")

enum maq_fit_family {
#define MAQ_FIT_ENUM(family, name, a, b, c, d) MAQ_FIT_##family,
    MAQ_FIT_FAMILY_LIST(MAQ_FIT_ENUM)
#undef MAQ_FIT_ENUM
        MAQ_FIT_FAMILY_COUNT
};
const char *maq__fit_family_name(enum maq_fit_family family);

/* What a table is for: all that tells kernels apart and is no axis. */
struct maq_fit_key {
    uint8_t family; /* enum maq_fit_family */
    uint8_t dtype;  /* enum maq_dtype */
    uint16_t variant[3];
};

/* An operator as a table sees it. */
struct maq_fit_point {
    struct maq_fit_key key;
    double x[MAQ_FIT_AXES]; /* base-2 logarithms */
    double base_s;
    double math_s, memory_s; /* its parts: FLOP at the datasheet's peak, bytes through cache and memory */
    double floor_s;          /* no kernel is faster: datasheet peak, bytes at the speed of the cache */
};

struct maq_fit_table {
    const char *device; /* catalogue name */
    uint8_t library;    /* enum maq_library */
    const char *kernel; /* as its library calls it */
    struct maq_fit_key key;
    uint8_t n[MAQ_FIT_AXES];     /* knots of each axis; 1 beyond the last axis */
    const float *knots;          /* of all axes, one after the other, ascending */
    const unsigned char *values; /* S = center + (value - 128) step, last axis fastest */
    float step, center;
    float error, error_p80; /* of held-back rows: median and 80th percentile of |predicted / measured - 1| */
    uint32_t rows;          /* fitted to so many measurements */
};

/* A device that has tables. By name. */
struct maq_fit_device {
    struct maq_device device; /* as it was when the tables were fitted: name, arch, peaks, memory, cache, SMs, clock */
    double burst_flops;       /* the fastest BF16 product of any of its tables, FLOP/s */
    /* the fastest in 8 bits with one scale per tensor, without its quantization; 0 = no table */
    double burst_narrow_flops;
};
extern const struct maq_fit_device maq__fit_devices[];
extern const size_t maq__fit_devices_count;

/* Ordered by device, library, family, dtype, variant; of one key the kernel with most rows comes first. */
extern const struct maq_fit_table maq__fit_tables[];
extern const size_t maq__fit_tables_count;

/* Bytes per second of the last-level cache, guessed where it is not known. */
double maq__fit_cache_bps(const struct maq_device *device);

/* False when the operator belongs to no family. */
bool maq__fit_point(struct maq_fit_point *out, const struct maq_op *op, const struct maq_device *device);

/* The table of a device's library for a key; kernel: NULL or one it has, otherwise its usual one. NULL = none. */
const struct maq_fit_table *maq__fit_find(const char *device, enum maq_library library, const struct maq_fit_key *key,
                                          const char *kernel);

/* The same, of kernels in whose name `part` is; NULL where no such kernel was measured. */
const struct maq_fit_table *maq__fit_find_named(const char *device, enum maq_library library,
                                                const struct maq_fit_key *key, const char *part);

/* S(x); *outside = how far x lies beyond the knots, in doublings of a size, the largest over the axes. */
double maq__fit_surface(const struct maq_fit_table *table, const double x[MAQ_FIT_AXES], double *outside);

/* --- fitted.c: the provider --- */

/* What a step of training makes of a time that was measured on this device in a short loop: no less than that. */
double maq__under_load_s(double burst_s, const struct maq_op *op, const struct maq_device *device,
                         const struct maq_costs *costs);

/* False when no table answers. */
bool maq__fitted_op(struct maq_cost *out, const struct maq_costs *costs, const struct maq_op *op,
                    const struct maq_device *device);

#endif
