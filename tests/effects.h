/* SPDX-License-Identifier: Apache-2.0 */
/* effects.h - step times with and without one thing: jobs whose host costs nothing but what a test adds. */
#ifndef MAQ_TESTS_EFFECTS_H
#define MAQ_TESTS_EFFECTS_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/check.h"
#include "predict.h"

#define MS 1e-3

static inline void assert_close(double got, double want, double tolerance, const char *what)
{
    if (!(fabs(got - want) <= tolerance))
        fail_msg("%s: got %.9g, want %.9g", what, got, want);
}

/* Step time of a small GPT; `plan` and `framework` are insides of maps. */
static inline double step_of(const char *cluster, const char *plan, const char *framework, int gbs)
{
    char text[1024];
    snprintf(text, sizeof text,
             "model: {base: gpt2, num_hidden_layers: 8}\ncluster: '%s'\nplan: {%s}\nworkload: {seq: 1024, gbs: %d}\n"
             "framework: {%s}\n",
             cluster, plan, gbs, framework);
    struct prediction p = predict_text(text);
    double step = p.result->step_s;
    drop(&p);
    return step;
}

/* A host that costs nothing, but for what a test adds: the last of equal keys is an error, so they are listed. */
#define FREE_HOST_BUT(x)                                                                                               \
    "host: {forward: 0 s, backward: 0 s, kernel: 0 s, collective: 0 s, checkpoint: 0 s, read: 0 s, " x "}"
#define REST_FREE "p2p: 0 s, pass: 0 s, step: 0 s"

/* What a kernel of `d` elements, bytes read and written takes by itself on the job's device. */
static inline double alone_s(const struct maq_job *job, int kind, int dtype, const int64_t d[3])
{
    struct maq_op op = {.kind = (uint16_t)kind, .dtype = (uint8_t)dtype, .d = {d[0], d[1], d[2]}};
    return maq_cost_op(NULL, &op, &job->cluster.groups[0].device).seconds;
}

#endif
