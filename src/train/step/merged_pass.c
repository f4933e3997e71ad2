/* SPDX-License-Identifier: Apache-2.0 */
/* merged_pass.c - two passes on two streams, node by node in the order of issue. See merged_pass.h. */
#include "train/step/merged_pass.h"

#include <math.h>

#include "plan/job_build.h"

/* When each stream is free and the last node of each pass is done. */
struct clocks {
    double compute, communication, forward, backward;
};

/* A node behind what its stream and its pass did before. */
static void run(double *stream, double *pass, double ns)
{
    *stream = *pass = fmax(*stream, *pass) + ns;
}

/* A layer without experts has no nodes of communication. */
static void exchange(struct clocks *t, double *pass, double ns)
{
    if (ns > 0)
        run(&t->communication, pass, ns);
}

/* One merged layer: in the order in which Megatron Core issues it. */
static void run_layer(struct clocks *t, const struct maq_merged_layer *f, const struct maq_merged_layer *b)
{
    exchange(t, &t->backward, b->backward[MAQ_LAYER_COMBINE]);
    run(&t->compute, &t->forward, f->forward[MAQ_LAYER_ATTENTION]);
    run(&t->compute, &t->backward, b->backward[MAQ_LAYER_EXPERTS]);
    exchange(t, &t->forward, f->forward[MAQ_LAYER_DISPATCH]);
    t->compute += b->late[MAQ_LAYER_EXPERTS];
    exchange(t, &t->backward, b->backward[MAQ_LAYER_DISPATCH]);
    run(&t->compute, &t->forward, f->forward[MAQ_LAYER_EXPERTS]);
    exchange(t, &t->forward, f->forward[MAQ_LAYER_COMBINE]);
    run(&t->compute, &t->backward, b->backward[MAQ_LAYER_ATTENTION]);
    t->compute += b->late[MAQ_LAYER_ATTENTION];
}

double maq_merged_layers_ns(const struct maq_merged_layer *layers, uint32_t n)
{
    struct clocks t = {0};
    for (uint32_t i = 0; i < n; i++)
        run_layer(&t, &layers[i], &layers[n - 1 - i]);
    return fmax(t.compute, t.communication); /* a pass ends on one of the streams */
}

static double compute_ns(const double node[MAQ_LAYER_NODES])
{
    return node[MAQ_LAYER_ATTENTION] + node[MAQ_LAYER_EXPERTS];
}

static void take_layer(struct maq_merged_layer *out, const struct maq_block *block, bool redo)
{
    for (int k = 0; k < MAQ_LAYER_NODES; k++) {
        out->forward[k] = block->forward[redo]->node_ns[k];
        double whole = block->backward[redo]->node_ns[k];
        out->late[k] = block->late ? fmin(block->late->node_ns[k], whole) : 0;
        out->backward[k] = whole - out->late[k];
    }
}

enum maq_status maq_merge_passes(struct maq_program *pr, const struct maq_blueprint *bp)
{
    const struct maq_model *model = &bp->job->model;
    if (!maq_plan_merges_passes(&bp->job->plan) || pr->experts_under_ns <= 0)
        return MAQ_OK;
    struct maq_merged_layer *layers = MAQ_ARENA_NEW(bp->arena, struct maq_merged_layer, pr->n_entries);
    uint32_t n = 0;
    double compute = 0;
    if (!layers)
        return MAQ_NO_MEMORY;
    for (uint32_t i = 0; i < pr->n_entries; i++) {
        const struct maq_block *block = bp->blocks[pr->entries[i].block];
        if (block->layer == &model->embedding || block->layer == &model->output || block->layer == &model->output_apart)
            continue; /* before and behind the layers, with nothing beside them */
        take_layer(&layers[n], block, pr->entries[i].redo);
        compute += compute_ns(layers[n].forward) + compute_ns(layers[n].backward) + compute_ns(layers[n].late);
        n++;
    }
    pr->exchange_wait_ns = nearbyint(fmax(maq_merged_layers_ns(layers, n) - compute, 0));
    pr->experts_under_ns = fmax(pr->experts_under_ns - pr->exchange_wait_ns, 0);
    return MAQ_OK;
}
