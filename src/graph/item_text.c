/* SPDX-License-Identifier: Apache-2.0 */
/* item_text.c - an item as a line of text, for reports and traces. */
#include <stdio.h>

#include "graph/items.h"

const char *maq_item_describe(char buf[96], const struct maq_item *it)
{
    if (it->is_coll) {
        double b = it->coll.bytes;
        const char *unit = b >= 1024.0 * 1024 * 1024 ? "GiB" : b >= 1024.0 * 1024 ? "MiB" : b >= 1024 ? "KiB" : "B";
        double div = unit[0] == 'G' ? 1024.0 * 1024 * 1024 : unit[0] == 'M' ? 1024.0 * 1024 : unit[0] == 'K' ? 1024 : 1;
        snprintf(buf, 96, "%s %.4g %s over %u ranks", maq_coll_kind_name((enum maq_coll_kind)it->coll.kind), b / div,
                 unit, it->coll.at.size);
        return buf;
    }
    const struct maq_op *op = &it->op;
    const char *name = maq_op_kind_name((enum maq_op_kind)op->kind), *type = maq_dtype_name((enum maq_dtype)op->dtype);
    const long long *d = (const long long *)op->d;
    if (op->kind == MAQ_OP_GEMM && d[3] > 1)
        snprintf(buf, 96, "%s %lldx%lldx%lld x %lld %s", name, d[0], d[1], d[2], d[3], type);
    else if (op->kind == MAQ_OP_GEMM)
        snprintf(buf, 96, "%s %lldx%lldx%lld %s", name, d[0], d[1], d[2], type);
    else if (op->kind == MAQ_OP_GROUPED_GEMM)
        snprintf(buf, 96, "%s %lld x %lldx%lldx%lld %s", name, d[3], d[0], d[1], d[2], type);
    else if (op->kind == MAQ_OP_ATTENTION || op->kind == MAQ_OP_ATTENTION_BWD)
        snprintf(buf, 96, "%s %lld tokens, %lld keys, %lld:%lld heads of %lld %s", name, d[0], d[1], d[2], d[3], d[4],
                 type);
    else if (op->kind == MAQ_OP_GAP)
        snprintf(buf, 96, "%s", name);
    else
        snprintf(buf, 96, "%s %lld x %lld %s", name, d[0], d[1], type);
    return buf;
}
