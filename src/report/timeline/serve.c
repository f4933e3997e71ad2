/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve.c - a deployment while it serves, as a trace: see maquette/trace.h.
 *
 *   process   the engine
 *   thread      a stage of its pipeline; a slice is an iteration there: "prefill", "decode", or "mixed" where both are in it
 *   counter     requests that run and that wait, blocks of the KV cache in use: as an iteration is decided
 *   process   requests
 *   thread      one of them: "queued" from its arrival, "prefill" from the first iteration that computes something of it, "decode" from its
 *               first token at the client to its last. What it waits for again after a preemption is in the slice that this interrupts
 *
 * Iterations are written as they come and requests when they have ended, so that nothing is held beside the run. The file is bounded: the
 * first SLICES_MOST slices of iterations are drawn, and of the requests that had arrived by then the first REQUESTS_MOST. A note, and the
 * names of the rows, say what is left out.
 */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/text.h"
#include "maquette/trace.h"
#include "report/timeline/codes.h"
#include "report/timeline/writer.h"

#define SLICES_MOST 200000u /* some 15 MB of Perfetto's format, which its viewer opens in seconds */
#define REQUESTS_MOST 1000u /* rows that somebody can still scroll through */
#define STAGES_MOST 1024u

enum { RUNNING, WAITING, BLOCKS, COUNTERS };

struct drawing {
    struct maq_trace_writer *w;
    uint32_t engine, stage[STAGES_MOST], n_stages, counter[COUNTERS];
    double value[COUNTERS]; /* the last one that is drawn; -1: none */
    uint64_t iterations, drawn;
    double until_s;        /* the last iteration that is drawn was decided then, */
    double end_s;          /* and ends then */
    maq_serve_watch *also; /* who watches besides */
    void *also_user;
};

static int64_t ns(double seconds)
{
    return llround(seconds * 1e9);
}

/* ---- the engine ---- */

static void add_engine(struct drawing *d, const struct maq_job *job, enum maq_engine engine)
{
    static const struct {
        const char *name, *unit;
    } counters[COUNTERS] = {
        [RUNNING] = {"running", "requests"}, [WAITING] = {"waiting", "requests"}, [BLOCKS] = {"KV cache", "blocks"}};
    char name[64];
    maq__snprintf(name, sizeof name, "%s", maq_engine_name(engine));
    d->engine = maq_trace_process(d->w, 1, name, 0);
    d->n_stages = job->plan.pp < (int32_t)STAGES_MOST ? (uint32_t)job->plan.pp : STAGES_MOST;
    for (uint32_t s = 0; s < d->n_stages; s++) {
        if (d->n_stages > 1)
            maq__snprintf(name, sizeof name, "iterations, stage %u", s);
        else
            maq__snprintf(name, sizeof name, "iterations");
        d->stage[s] = maq_trace_thread(d->w, d->engine, s + 1, name, (int32_t)s);
    }
    for (int c = 0; c < COUNTERS; c++) {
        d->counter[c] = maq_trace_counter_track(d->w, d->engine, counters[c].name, counters[c].unit);
        d->value[c] = -1;
    }
}

static void count(struct drawing *d, double at_s, const double now[COUNTERS])
{
    for (int c = 0; c < COUNTERS; c++)
        if (now[c] < d->value[c] || now[c] > d->value[c]) {
            maq_trace_counter(d->w, d->counter[c], ns(at_s), now[c]);
            d->value[c] = now[c];
        }
}

static void draw(const struct maq_serve_iteration *it, void *user)
{
    struct drawing *d = user;
    if (d->also)
        d->also(it, d->also_user);
    d->iterations++;
    if ((d->drawn + 1) * d->n_stages > SLICES_MOST || maq_trace_status(d->w) != MAQ_OK)
        return;
    const struct maq_trace_arg args[] = {MAQ_TRACE_INT("iteration", (int64_t)it->number),
                                         MAQ_TRACE_INT("requests", it->requests), MAQ_TRACE_INT("prompts", it->prompts),
                                         MAQ_TRACE_INT("tokens", it->tokens)};
    for (uint32_t s = 0; s < d->n_stages && s < it->n_stages; s++)
        maq_trace_slice(d->w, d->stage[s],
                        &(struct maq_trace_slice){.start_ns = ns(it->starts_s[s]),
                                                  .dur_ns = ns(it->ends_s[s]) - ns(it->starts_s[s]),
                                                  .name = it->prompts == 0             ? "decode"
                                                          : it->prompts < it->requests ? "mixed"
                                                                                       : "prefill",
                                                  .category = "iteration",
                                                  .args = args,
                                                  .n_args = MAQ_COUNT(args)});
    count(d, it->decided_s,
          (const double[COUNTERS]){[RUNNING] = it->running, [WAITING] = it->waiting, [BLOCKS] = it->used_blocks});
    d->drawn++;
    d->until_s = it->decided_s;
    d->end_s = it->ends_s[it->n_stages - 1];
}

/* ---- requests ---- */

static void phase(struct drawing *d, uint32_t thread, const char *name, double from_s, double to_s,
                  const struct maq_trace_arg *args, uint32_t n_args)
{
    if (ns(to_s) > ns(from_s))
        maq_trace_slice(d->w, thread,
                        &(struct maq_trace_slice){.start_ns = ns(from_s),
                                                  .dur_ns = ns(to_s) - ns(from_s),
                                                  .name = name,
                                                  .category = "request",
                                                  .args = args,
                                                  .n_args = n_args});
}

static void add_request(struct drawing *d, uint32_t process, uint32_t i, const struct maq_request *request,
                        const struct maq_served *s)
{
    const struct maq_trace_arg prompt[] = {MAQ_TRACE_INT("prompt", request->prompt),
                                           MAQ_TRACE_INT("cached", s->cached)},
                               output[] = {MAQ_TRACE_INT("output", request->output),
                                           MAQ_TRACE_INT("preemptions", s->preemptions)};
    char name[32];
    maq__snprintf(name, sizeof name, "request %u", i);
    uint32_t thread = maq_trace_thread(d->w, process, i + 1, name, (int32_t)i);
    phase(d, thread, "queued", s->arrival_s, s->scheduled_s, NULL, 0);
    phase(d, thread, "prefill", s->scheduled_s, s->first_s, prompt, MAQ_COUNT(prompt));
    phase(d, thread, "decode", s->first_s, s->last_s, output, MAQ_COUNT(output));
}

/* In the order of their arrival, those that had arrived when the last iteration that is drawn was decided. */
static void add_requests(struct drawing *d, const struct maq_serve_result *r, const struct maq_requests *requests,
                         struct maq_diag *diag)
{
    uint32_t n = 0;
    char name[96];
    while (n < r->n_requests && n < REQUESTS_MOST &&
           (d->drawn == d->iterations || r->served[n].arrival_s <= d->until_s))
        n++;
    if (n < r->n_requests)
        maq__snprintf(name, sizeof name, "requests (the first %u of %u)", n, r->n_requests);
    else
        maq__snprintf(name, sizeof name, "requests");
    uint32_t process = maq_trace_process(d->w, 2, name, 1);
    for (uint32_t i = 0; i < n && maq_trace_status(d->w) == MAQ_OK; i++)
        add_request(d, process, i, &requests->at[i], &r->served[i]);
    if (d->drawn < d->iterations) {
        maq__snprintf(name, sizeof name, "the first %llu of %llu iterations", (unsigned long long)d->drawn,
                      (unsigned long long)d->iterations);
        (void)maq_trace_thread(d->w, d->engine, d->n_stages + 1, name, (int32_t)d->n_stages);
    } else {
        count(d, d->end_s, (const double[COUNTERS]){0});
    }
    if (n < r->n_requests || d->drawn < d->iterations)
        maq_diag_add(diag, MAQ_NOTE, MAQ_CODE_TRACE_LEFT_OUT, (struct maq_span){0}, NULL,
                     "the timeline has %s%llu of %llu iterations and %s%u of %u requests",
                     d->drawn < d->iterations ? "the first " : "all ", (unsigned long long)d->drawn,
                     (unsigned long long)d->iterations, n < r->n_requests ? "the first " : "all ", n, r->n_requests);
}

enum maq_status maq_trace_serve(const char *path, struct maq_serve_result **out, const struct maq_job *job,
                                const struct maq_serve_options *options, const struct maq_requests *requests,
                                struct maq_diag *diag)
{
    struct maq_serve_options own = *options;
    struct maq_serve_result *plan;
    MAQ_TRY(maq_serve_plan(&plan, job, options, diag));
    if (!plan->fits) {
        *out = plan;
        return MAQ_OK;
    }
    maq_serve_free(plan);
    struct drawing *d = maq__calloc(sizeof *d);
    if (!d)
        return maq_no_memory(diag, "a timeline");
    enum maq_status status = maq_trace_open(&d->w, maq_trace_format_of(path), path, diag), closed;
    if (status == MAQ_OK) {
        add_engine(d, job, options->engine);
        d->also = options->watch;
        d->also_user = options->watch_user;
        own.watch = draw;
        own.watch_user = d;
        status = maq_serve_run(out, job, &own, requests, diag);
        if (status == MAQ_OK) {
            (*out)->options.watch = options->watch;
            (*out)->options.watch_user = options->watch_user;
            add_requests(d, *out, requests, diag);
        }
        closed = maq_trace_close(d->w, diag);
        if (status == MAQ_OK && closed != MAQ_OK)
            maq_serve_free(*out);
        status = maq_worse(status, closed);
    }
    free(d);
    return status;
}
