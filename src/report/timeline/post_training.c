/* SPDX-License-Identifier: Apache-2.0 */
/*
 * post_training.c - a generation and all that it is for, as a trace: see maquette/trace.h.
 *
 *   process   trainer
 *   thread      parts: "generate", "score by the reference", "train", one behind another; training has a slice for each optimizer step, and inside it the
 *               passes of the policy and of a value model, as the fast path times them
 *   process   engines, or ranks where the trainer's model generates
 *   thread      one of them: "generate" until its last completion has ended. At most ENGINES_MOST
 */
#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/text.h"
#include "maquette/trace.h"
#include "report/rl_cycle.h"
#include "report/timeline/writer.h"

#define ENGINES_MOST 1000u

struct drawing {
    struct maq_trace_writer *w;
    const struct maq_post_training_result *r;
    uint32_t parts; /* the trainer's thread */
};

static void add_passes(const struct drawing *d, const struct maq_train_spans *spans, const char *of, int64_t at_ns)
{
    for (uint32_t i = spans->first[0]; i < spans->first[1]; i++) {
        const struct maq_train_span *s = &spans->spans[i];
        const struct maq_trace_arg args[] = {MAQ_TRACE_STR("model", of), MAQ_TRACE_INT("microbatch", s->microbatch)};
        if (s->kind > MAQ_SPAN_WEIGHT && s->kind != MAQ_SPAN_UPDATE)
            continue; /* beside passes: slices of a thread do not overlap */
        maq_trace_slice(d->w, d->parts,
                        &(struct maq_trace_slice){.start_ns = at_ns + s->start_ns,
                                                  .dur_ns = s->end_ns - s->start_ns,
                                                  .name = maq_train_span_name((enum maq_train_span_kind)s->kind),
                                                  .args = args,
                                                  .n_args = MAQ_COUNT(args)});
    }
}

static enum maq_status add_parts(const struct drawing *d, const struct maq_rl_cycle *c, struct maq_diag *diag)
{
    struct maq_rl_part parts[MAQ_RL_PARTS];
    struct maq_train_spans policy, value;
    const struct maq_post_training_result *r = d->r;
    const int64_t first_ns = llround(r->train->step_s * 1e9);
    MAQ_TRY(maq_train_spans(&policy, r->job, diag));
    enum maq_status status = r->value ? maq_train_spans(&value, r->value->job, diag) : MAQ_OK;
    maq_rl_parts(parts, r);
    for (uint32_t i = 0; i < c->n && status == MAQ_OK; i++) {
        const struct maq_rl_span *s = &c->spans[i];
        const struct maq_trace_arg step = MAQ_TRACE_INT("step", s->step);
        maq_trace_slice(d->w, d->parts,
                        &(struct maq_trace_slice){.start_ns = s->start_ns,
                                                  .dur_ns = s->end_ns - s->start_ns,
                                                  .name = parts[s->kind].words,
                                                  .args = &step,
                                                  .n_args = s->kind == MAQ_RL_TRAIN});
        if (s->kind != MAQ_RL_TRAIN || c->steps < 1) /* a part of a step has not all of its passes */
            continue;
        add_passes(d, &policy, "policy", s->start_ns);
        if (r->value)
            add_passes(d, &value, "value", s->start_ns + first_ns);
    }
    maq_train_spans_free(&policy);
    if (r->value && status == MAQ_OK)
        maq_train_spans_free(&value);
    return status;
}

static void add_engines(const struct drawing *d, const struct maq_rl_cycle *c)
{
    const struct maq_rollout *o = &d->r->rollout;
    const char *one = d->r->rl.use_vllm ? "engine" : "rank";
    const uint32_t n = o->engines < ENGINES_MOST ? o->engines : ENGINES_MOST;
    char name[64];
    int64_t at = 0;
    for (uint32_t i = 0; i < c->n; i++)
        at = c->spans[i].kind == MAQ_RL_GENERATE ? c->spans[i].start_ns : at;
    if (n < o->engines)
        maq__snprintf(name, sizeof name, "%ss (%u of %u)", one, n, o->engines);
    else
        maq__snprintf(name, sizeof name, "%ss", one);
    const uint32_t process = maq_trace_process(d->w, 2, name, 1);
    for (uint32_t i = 0; i < n; i++) {
        maq__snprintf(name, sizeof name, "%s %u", one, i);
        const uint32_t thread = maq_trace_thread(d->w, process, i + 1, name, (int32_t)i);
        if (o->ends_s[i] > 0)
            maq_trace_slice(
                d->w, thread,
                &(struct maq_trace_slice){.start_ns = at, .dur_ns = llround(o->ends_s[i] * 1e9), .name = "generate"});
    }
}

enum maq_status maq_trace_post_training(const char *path, const struct maq_post_training_result *r,
                                        struct maq_diag *diag)
{
    struct drawing d = {.r = r};
    struct maq_rl_cycle cycle;
    if (!maq_rl_cycle_init(&cycle, r))
        return maq_no_memory(diag, "a trace");
    enum maq_status status = maq_trace_open(&d.w, maq_trace_format_of(path), path, diag);
    if (status == MAQ_OK) {
        const uint32_t process = maq_trace_process(d.w, 1, "trainer", 0);
        d.parts = maq_trace_thread(d.w, process, 1, "parts", 0);
        status = add_parts(&d, &cycle, diag);
        if (status == MAQ_OK && r->rollout.engines > 0)
            add_engines(&d, &cycle);
        const enum maq_status closed = maq_trace_close(d.w, diag);
        status = status == MAQ_OK ? closed : status;
    }
    maq_rl_cycle_fini(&cycle);
    return status;
}
