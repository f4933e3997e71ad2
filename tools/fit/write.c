/* SPDX-License-Identifier: Apache-2.0 */
/* write.c - a fitted table as an entry of its document (docs/fitted.md). */
#include <math.h>
#include <stdlib.h>
#include <zlib.h>

#include "fit.h"

#define LEAST_STEP 0.01 /* of the values: half a percent at most is lost */

/* zlib, then base64; false when it cannot be packed. */
static bool write_values(FILE *out, const unsigned char *values, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uLongf size = compressBound(n);
    unsigned char *packed = malloc(size + 3);
    bool ok = packed && compress2(packed, &size, values, n, 9) == Z_OK;
    if (!ok) {
        free(packed);
        return false;
    }
    packed[size] = packed[size + 1] = 0;
    for (size_t i = 0; i < size; i += 3) {
        unsigned bits = (unsigned)packed[i] << 16 | (unsigned)packed[i + 1] << 8 | packed[i + 2];
        fprintf(out, "%c%c%c%c", digits[bits >> 18], digits[bits >> 12 & 63],
                i + 1 < size ? digits[bits >> 6 & 63] : '=', i + 2 < size ? digits[bits & 63] : '=');
    }
    free(packed);
    return true;
}

bool fit_write_table(FILE *out, const struct fit_group *group, const struct fit_table *table, bool first)
{
    const struct fit_surface *s = &table->surface;
    const struct maq_fit_key *key = &group->rows[0].key;
    double lo = s->values[0], hi = s->values[0];
    for (size_t i = 1; i < s->size; i++) {
        lo = fmin(lo, s->values[i]);
        hi = fmax(hi, s->values[i]);
    }
    double step = (double)(float)fmax((hi - lo) / 254.0, LEAST_STEP), center = (double)(float)(0.5 * (lo + hi));
    unsigned char *values = malloc(s->size);
    if (!values)
        return false;
    for (size_t i = 0; i < s->size; i++)
        values[i] = (unsigned char)(128.0 + fmin(fmax(rint((s->values[i] - center) / step), -127.0), 127.0));
    for (size_t i = s->size; i-- > 1;) /* neighbours are alike: their differences are shorter */
        values[i] = (unsigned char)(values[i] - values[i - 1]);

    fprintf(
        out,
        "%s\n  {\"family\": \"%s\", \"dtype\": \"%s\", \"variant\": [%u, %u, %u], \"kernel\": \"%s\", \"rows\": %zu,\n",
        first ? "" : ",", maq__fit_family_name((enum maq_fit_family)key->family),
        maq_dtype_name((enum maq_dtype)key->dtype), key->variant[0], key->variant[1], key->variant[2],
        group->rows[0].kernel, group->n);
    if (table->relative)
        fprintf(out, "   \"missing_rows_by\": \"%s %s %s\",\n", table->relative->pool->device.name,
                maq_library_name(table->relative->pool->library), table->relative->rows[0].kernel);
    fprintf(out,
            "   \"seen\": {\"median\": %.4f, \"p90\": %.4f}, \"held_out\": {\"median\": %.4f, \"p80\": %.4f, \"p90\": "
            "%.4f},\n",
            table->seen.median, table->seen.p90, table->held_out.median, table->held_out.p80, table->held_out.p90);
    fprintf(out, "   \"step\": %.9g, \"center\": %.9g, \"knots\": [", step, center);
    for (unsigned a = 0; a < FIT_AXES; a++) {
        fprintf(out, "%s[", a ? ", " : "");
        for (unsigned i = 0; i < s->n[a]; i++)
            fprintf(out, "%s%.9g", i ? ", " : "", (double)(float)s->knots[a][i]);
        fprintf(out, "]");
    }
    fprintf(out, "],\n   \"values\": \"");
    bool ok = write_values(out, values, s->size);
    fprintf(out, "\"}");
    free(values);
    return ok;
}

void fit_write_figures(FILE *out, struct fit_pool *pool)
{
    const struct maq_device *d = &pool->device;
    static const char *const arch[MAQ_ARCH_COUNT] = {"volta",     "turing", "ampere", "ada",   "hopper",
                                                     "blackwell", "cdna2",  "cdna3",  "cdna4", "other"};
    bool first = true;
    fprintf(out, " \"figures\": {\"arch\": \"%s\", \"peak_flops\": {", arch[d->arch]);
    for (int t = 0; t < MAQ_DTYPE_COUNT; t++)
        if (d->peak_flops[t] > 0.0) {
            fprintf(out, "%s\"%s\": %.9g", first ? "" : ", ", maq_dtype_name((enum maq_dtype)t), d->peak_flops[t]);
            first = false;
        }
    fprintf(out,
            "}, \"sustained_flops\": %.9g, \"vector_flops\": %.9g, \"mem_bps\": %.9g, \"inline_ecc\": %s, "
            "\"l2_bytes\": %.9g, \"l2_bps\": %.9g, \"sms\": %d, "
            "\"clock_hz\": %.9g, \"host_bps\": %.9g, \"burst_flops\": %.6g, \"burst_narrow_flops\": %.6g},\n",
            d->sustained_flops[MAQ_BF16], d->vector_flops, d->mem_bps, d->inline_ecc ? "true" : "false", d->l2_bytes,
            d->l2_bps, d->sms, d->clock_hz, d->host_bps, pool->burst_flops, fit_fastest_narrow(pool));
}
