/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer_layouts.c - layers of each virtual stage: even but for the ends, or by work, where the longest stage is
 * minimized by bisection.
 *
 * The work of a layer is its model FLOP: the same for every plan, so that layouts are listed once. It is not its time
 * (an exchange of experts has no FLOP), which is why a search also tries layouts whose ends count for fewer layers
 * than their FLOP are. See layer_layouts.h.
 */
#include "planner/space/layer_layouts.h"

#include <math.h>

#include "base/check.h"

#define DIFFER 1.01    /* ratio from which on layers differ */
#define HALVINGS 60    /* of the longest stage's work */
#define SLACK 1.000001 /* of sums in another order */

static double layer_work(const struct maq_job *job, uint32_t layer)
{
    const struct maq_model *model = &job->model;
    return maq_layer_flop_per_token(&model->kinds[model->kind_of[layer]], job->workload.seq, true);
}

static double output_work(const struct maq_job *job)
{
    const struct maq_model *model = &job->model;
    int64_t seq = job->workload.seq;
    double head = maq_layer_flop_per_token(&model->output, seq, true);
    if (model->mtp_layers == 0)
        return head;
    return head + model->mtp_layers * (maq_layer_flop_per_token(&model->mtp, seq, true) + head);
}

double maq_layout_output(const struct maq_job *job)
{
    double sum = 0;
    for (uint32_t i = 0; i < job->model.num_layers; i++)
        sum += layer_work(job, i);
    return sum > 0 ? output_work(job) * job->model.num_layers / sum : 0;
}

bool maq_layout_uneven(const struct maq_job *job)
{
    double least = HUGE_VAL, most = 0;
    for (uint32_t i = 0; i < job->model.num_layers; i++) {
        least = fmin(least, layer_work(job, i));
        most = fmax(most, layer_work(job, i));
    }
    return most > DIFFER * least;
}

/* ---- even, but for the ends ---- */

static bool share_out(int32_t *layers, int32_t n, int32_t units)
{
    int32_t base = units / n, extra = units % n, from = (n - extra) / 2;
    for (int32_t i = 0; i < n; i++)
        layers[i] = base + (i >= from && i < from + extra);
    return base > 0;
}

static bool by_ends(int32_t *layers, int32_t n, int32_t total, int32_t first, int32_t last)
{
    if (n < 1 || !share_out(layers, n, total + first + last))
        return false;
    if (n > 1 && layers[n - 1] < last) {
        layers[n - 1] = 0;
        return by_ends(layers, n - 1, total, first, 0);
    }
    if (n > 1 && layers[0] < first) {
        layers[0] = 0;
        return by_ends(layers + 1, n - 1, total, 0, last);
    }
    layers[0] -= first;
    layers[n - 1] -= last;
    return layers[0] >= 0 && layers[n - 1] >= 0;
}

/* ---- by work ---- */

/* State of a greedy pass over the layers from the end, with the work of the output behind them. */
struct rest {
    uint32_t n;       /* layers */
    double output;    /* work */
    double *before;   /* [n + 1] work of the layers in front of each */
    uint32_t *stages; /* [n + 1] stages that the layers from each one on take, none longer than a limit */
};

/* Fills stages from the end up to the limit: the last one holds the output and as many layers as fit beside it. */
static uint32_t count_stages(struct rest *r, double longest)
{
    uint32_t stages = 1;
    double work = r->output;
    r->stages[r->n] = 1;
    for (uint32_t i = r->n; i-- > 0;) {
        double layer = r->before[i + 1] - r->before[i];
        if (work + layer > longest) {
            work = 0;
            stages++;
        }
        work += layer;
        r->stages[i] = stages;
    }
    return stages;
}

/* The least work of the longest of n stages. */
static double longest_of(struct rest *r, uint32_t n)
{
    double all = r->before[r->n] + r->output, low = r->output, high = all;
    for (uint32_t i = 0; i < r->n; i++)
        low = fmax(low, r->before[i + 1] - r->before[i]);
    for (int i = 0; i < HALVINGS && low < high; i++) {
        double middle = (low + high) / 2;
        if (count_stages(r, middle) <= n)
            high = middle;
        else
            low = middle;
    }
    return high * SLACK;
}

/*
 * Layers of the next stage, from `first` on, with `behind` stages behind it: the number that comes nearest to an even share
 * of the work left.
 */
static uint32_t next_stage(const struct rest *r, uint32_t first, uint32_t behind, double longest)
{
    double share = (r->before[r->n] - r->before[first] + r->output) / (behind + 1);
    uint32_t best = 1;
    double off = HUGE_VAL;
    for (uint32_t end = first + 1; end <= r->n && r->n - end + 1 >= behind; end++) {
        double work = r->before[end] - r->before[first];
        if (work > longest * SLACK || r->stages[end] > behind || fabs(work - share) >= off)
            continue;
        off = fabs(work - share);
        best = end - first;
    }
    return best;
}

static bool by_work(int32_t *layers, uint32_t n, const struct maq_job *job, struct maq_arena *arena)
{
    const uint32_t total = job->model.num_layers;
    struct rest r = {.n = total,
                     .output = output_work(job),
                     .before = MAQ_ARENA_NEW(arena, double, (size_t)total + 1),
                     .stages = MAQ_ARENA_NEW(arena, uint32_t, (size_t)total + 1)};
    if (!r.before || !r.stages || n > total + 1)
        return false;
    r.before[0] = 0;
    for (uint32_t i = 0; i < total; i++)
        r.before[i + 1] = r.before[i] + layer_work(job, i);
    double longest = longest_of(&r, n);
    count_stages(&r, longest);
    uint32_t at = 0;
    for (uint32_t i = 0; i + 1 < n; i++) {
        uint32_t next = next_stage(&r, at, n - 1 - i, longest);
        layers[i] = (int32_t)next;
        at += next;
    }
    MAQ_ASSERT(at <= total);
    layers[n - 1] = (int32_t)(total - at);
    return true;
}

bool maq_layout_layers(int32_t *layers, uint32_t n, const struct maq_job *job, int32_t value, struct maq_arena *arena)
{
    if (value == MAQ_LAYOUT_BY_WORK)
        return by_work(layers, n, job, arena);
    int32_t first = value / MAQ_LAYOUT_END, last = value % MAQ_LAYOUT_END;
    return by_ends(layers, (int32_t)n, (int32_t)job->model.num_layers, first, last);
}
