/* SPDX-License-Identifier: Apache-2.0 */
/* error_table.c - writes percents of errors in columns of a width or as members, and adds reasons to the line of rows left out. */
#include "validate/error_table.h"

#include <math.h>

void maq__add_percent(struct maq_buf *b, int width, double share, bool sign)
{
    if (isfinite(share))
        maq_buf_addf(b, sign ? " %+*.1f" : " %*.1f", width, 100 * share);
    else
        maq_buf_addf(b, " %*s", width, "-");
}

void maq__add_errors(struct maq_buf *b, int width, const struct maq_validate_stat *stat)
{
    maq__add_percent(b, width, stat->median, false);
    maq__add_percent(b, width, stat->mean, false);
    maq__add_percent(b, width, stat->p90, false);
    maq__add_percent(b, width, stat->bias, true);
}

struct maq_left_out maq__left_out(struct maq_buf *b, uint32_t rows, uint32_t of)
{
    maq_buf_addf(b, "\n  %u of %u rows left out", rows, of);
    return (struct maq_left_out){.b = b};
}

void maq__left_out_add(struct maq_left_out *l, uint32_t rows, const char *why)
{
    if (rows == 0)
        return;
    maq_buf_addf(l->b, "%s %u %s", l->said ? "," : ":", rows, why);
    l->said = true;
}

void maq__left_out_end(struct maq_left_out *l)
{
    maq_buf_adds(l->b, "\n");
}

void maq__json_errors(struct maq_json map, const struct maq_validate_stat *stat)
{
    maq_json_int(map, "rows", stat->n);
    MAQ_JSON_REALS(map, {"median_ape", stat->median}, {"mean_ape", stat->mean}, {"p90_ape", stat->p90},
                   {"bias", stat->bias});
}

void maq__json_compared(struct maq_json map, double measured, double predicted, double error)
{
    MAQ_JSON_REALS(map, {"measured", measured}, {"predicted", predicted}, {"error", error});
}
