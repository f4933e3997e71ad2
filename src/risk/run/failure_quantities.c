/* SPDX-License-Identifier: Apache-2.0 */
/*
 * failure_quantities.c - rates and delays as they are written: see failures.h.
 *
 * A lognormal with median m and sd s of its logarithm has the mean m e^(s^2 / 2), so that median and mean give s; with a mean
 * and a standard deviation, s^2 = ln(1 + (sd / mean)^2).
 */
#include <math.h>

#include "base/check.h"
#include "base/str.h"
#include "base/text.h"
#include "risk/codes.h"
#include "risk/run/failures.h"

#define RATE_HINT "for example 3.8e-3/node/day, 1e-4/gpu/day, 0.03/node/week"
#define DELAY_HINT                                                                                                     \
    "a time such as '10 min', or two of: {median: 222 s, mean: 2334 s}, {median: 5 min, sigma: 1.2}, {mean: 5 min, "   \
    "sd: 9 min}"

/* --- delays --- */

struct delay_reader {
    double median, mean, sigma, sd;
};

#define TIME(member_, doc_)                                                                                            \
    MAQ_FIELD_QTY(struct delay_reader, member_, #member_, MAQ_DIM_TIME, .def = "0 s", .min = 0, .max = 1e9, .doc = doc_)

static const struct maq_field delay_fields[] = {
    TIME(median, "half of them are shorter"), TIME(mean, "average"), TIME(sd, "standard deviation, with mean"),
    MAQ_FIELD_DOUBLE(struct delay_reader, sigma, "sigma", .min = 0, .max = 5, .def = "0",
                     .doc = "standard deviation of the logarithm, with median"),
    MAQ_FIELD_END};

static enum maq_status bad_delay(const struct maq_node *node, struct maq_diag *diag)
{
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_FAILURES_FORM, node->at, DELAY_HINT, "not a duration");
}

enum maq_status maq__delay_read(struct maq_delay *out, struct maq_node *node, struct maq_diag *diag)
{
    if (node->kind == MAQ_NODE_SCALAR) {
        const char *why;
        double s;
        node->used = true;
        if (!maq_quantity_parse(&s, node->text, MAQ_DIM_TIME, &why) || !(s >= 0 && s <= 1e9))
            return bad_delay(node, diag);
        *out = (struct maq_delay){s, s};
        return MAQ_OK;
    }
    if (node->kind != MAQ_NODE_MAP)
        return bad_delay(node, diag);
    struct delay_reader r = {0};
    enum maq_status status = maq_fields_read(&r, delay_fields, node, NULL, NULL, diag);
    if (status == MAQ_OK)
        status = maq_fields_check_keys(delay_fields, NULL, node, "duration", diag);
    if (status != MAQ_OK)
        return status;
    if (r.median > 0 && r.mean == 0 && r.sd == 0)
        r.mean = r.median * exp(r.sigma * r.sigma / 2);
    else if (r.mean > 0 && r.median == 0 && r.sigma == 0)
        r.median = r.mean / sqrt(1 + (r.sd / r.mean) * (r.sd / r.mean));
    else if (!(r.median > 0 && r.mean >= r.median && r.sigma == 0 && r.sd == 0))
        return bad_delay(node, diag);
    *out = (struct maq_delay){r.median, r.mean};
    return MAQ_OK;
}

bool maq_quantity_read(double *out, const char *text, enum maq_quantity kind)
{
    static const enum maq_dim dims[] = {MAQ_DIM_NONE, MAQ_DIM_COUNT, MAQ_DIM_TIME, MAQ_DIM_RATE, MAQ_DIM_BYTES};
    const char *why;
    return (size_t)kind < MAQ_COUNT(dims) && maq_quantity_parse(out, maq_str_of(text), dims[kind], &why);
}

/* --- rates --- */

static const struct {
    const char *name;
    double seconds;
} times[] = {{"s", 1},       {"min", 60},      {"h", 3600},        {"hour", 3600},    {"d", 86400},
             {"day", 86400}, {"week", 604800}, {"month", 2629800}, {"year", 31557600}};

static bool time_of(double *seconds, struct maq_str word)
{
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        if (maq_str_is(word, times[i].name)) {
            *seconds = times[i].seconds;
            return true;
        }
    return false;
}

enum maq_status maq__failure_rate_read(double *per_device_s, struct maq_node *node, double devices_per_node,
                                       struct maq_diag *diag)
{
    struct maq_str number, unit, rest = node->text;
    double value, seconds, devices = 0;
    char show[MAQ_SHOW_SIZE];
    node->used = true;
    rest = maq_str_split(rest, '/', &number);
    rest = maq_str_split(rest, '/', &unit);
    if (maq_str_is(maq_str_trim(unit), "node"))
        devices = devices_per_node;
    else if (maq_str_is(maq_str_trim(unit), "gpu") || maq_str_is(maq_str_trim(unit), "device"))
        devices = 1;
    bool known = node->kind == MAQ_NODE_SCALAR && maq_str_to_double(&value, maq_str_trim(number));
    if (!known || !time_of(&seconds, maq_str_trim(rest)) || devices == 0)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_FAILURES_RATE, node->at, RATE_HINT,
                             "'%s' is no rate of failures", maq_str_show(show, node->text));
    if (!(value >= 0 && value / seconds <= 1))
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_FAILURES_RATE, node->at, RATE_HINT,
                             "a rate of failures is between 0 and one per second");
    *per_device_s = value / seconds / devices;
    return MAQ_OK;
}
