/* SPDX-License-Identifier: Apache-2.0 */
/* predict.h - a job given as text, predicted; a test that cannot predict its job fails with the diagnosis. */
#ifndef MAQ_TESTS_PREDICT_H
#define MAQ_TESTS_PREDICT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "maquette/train.h"

struct prediction {
    struct maq_loaded_job *job;
    struct maq_train_result *result;
};

static struct prediction predict_text(const char *text)
{
    struct prediction p = {0};
    struct maq_diag *diag = maq_diag_new();
    if (maq_job_parse(&p.job, "test", maq_str_of(text), NULL, 0, diag) != MAQ_OK ||
        maq_train_predict(&p.result, maq_job_get(p.job), diag) != MAQ_OK)
        fail_msg("%s\n%s", text, maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return p;
}

/* A job of so many sequences in a step; `plan` is what stands in its braces. */
static inline struct prediction predict_batch(const char *model, const char *cluster, const char *plan, int sequences,
                                              int tokens)
{
    char text[2048];
    snprintf(text, sizeof text,
             "{model: %s, cluster: \"%s\", plan: {%s}, workload: {global_batch_size: %d, seq_length: %d}}", model,
             cluster, plan, sequences, tokens);
    return predict_text(text);
}

static void drop(struct prediction *p)
{
    maq_train_result_free(p->result);
    maq_job_free(p->job);
}

/* A job that is refused with words of `says`. */
static inline void expect_refused(const char *text, const char *says)
{
    struct maq_loaded_job *box;
    struct maq_diag *diag = maq_diag_new();
    assert_int_equal(maq_job_parse(&box, "refused", maq_str_of(text), NULL, 0, diag), MAQ_BAD_INPUT);
    char *told = maq_diag_format(diag, 0, false);
    if (!strstr(told, says))
        fail_msg("%s\n%s", text, told);
    free(told);
    maq_diag_free(diag);
}

#endif
