/* SPDX-License-Identifier: Apache-2.0 */
/* verdict.c - names of verdicts, rows of the table, and paths of the files that a line may need. See table.h. */
#include <math.h>
#include <unistd.h>

#include "base/check.h"
#include "validate/risk/table.h"

const char *maq_risk_verdict_name(enum maq_risk_verdict verdict)
{
    static const char *const names[] = {"PASS", "FAIL", "SKIP"};
    return (unsigned)verdict < MAQ_RISK_VERDICT_COUNT ? names[verdict] : "?";
}

void maq_risk_add(struct maq_risk_table *t, struct maq_validate_risk_row row)
{
    MAQ_ASSERT(t->n < MAQ_RISK_MOST_ROWS);
    row.why = row.why ? row.why : "";
    row.verdict = row.predicted >= row.low && row.predicted <= row.high ? MAQ_RISK_PASS : MAQ_RISK_FAIL;
    if (row.why[0] != '\0') {
        row.verdict = MAQ_RISK_SKIP;
        row.predicted = (double)NAN;
    }
    t->rows[t->n++] = row;
}

void maq_risk_compare(struct maq_risk_table *t, const struct maq_risk_published *p, double predicted)
{
    maq_risk_add(t, (struct maq_validate_risk_row){.id = p->id,
                                                   .what = p->what,
                                                   .unit = p->unit,
                                                   .source = p->source,
                                                   .observed = p->observed,
                                                   .low = p->low,
                                                   .high = p->high,
                                                   .predicted = predicted});
}

const char *maq_risk_file(struct maq_risk_table *t, const char *name)
{
    char *path = maq_arena_printf(t->arena, "%s/%s", t->folder, name);
    return path && access(path, R_OK) == 0 ? path : NULL;
}
