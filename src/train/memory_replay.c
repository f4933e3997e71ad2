/*
 * memory_replay.c - what PyTorch's caching allocator reserves for a stage: its allocations and frees, replayed.
 *
 * The sequence is that of two steps of one stage: model states once; then, task by task in schedule order, the tensors
 * that each layer keeps, and the working set of each layer as one block that comes and goes. Kept tensors are freed by the
 * backward pass in reverse order. A long schedule repeats itself: TASKS of them are enough to reach the peak and the holes.
 */
#include <stdlib.h>

#include "graph/allocator.h"
#include "train/predict.h"

#define TASKS 384
#define STEPS 2

struct replay {
    const struct maq_blueprint *bp;
    struct maq_allocator *a;
    uint32_t **live; /* [slot] blocks that a (position, microbatch) keeps, NULL when none */
    bool failed;
};

static uint32_t take(struct replay *r, double bytes)
{
    uint32_t block = maq_allocator_alloc(r->a, bytes);
    r->failed |= block == 0;
    return block;
}

static void give(struct replay *r, uint32_t block)
{
    if (block != 0)
        maq_allocator_release(r->a, block);
}

static uint32_t kept_tensors(const struct maq_blueprint *bp, const struct maq_program *pr)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < pr->n_entries; i++)
        n += bp->blocks[pr->entries[i].block]->kept[pr->entries[i].redo].n;
    return n;
}

static void forward(struct replay *r, const struct maq_program *pr, uint32_t **slot)
{
    uint32_t n = 0;
    *slot = malloc((kept_tensors(r->bp, pr) + 1u) * sizeof **slot);
    if (!*slot) {
        r->failed = true;
        return;
    }
    for (uint32_t i = 0; i < pr->n_entries; i++) {
        const struct maq_block *b = r->bp->blocks[pr->entries[i].block];
        const struct maq_kept *kept = &b->kept[pr->entries[i].redo];
        uint32_t working = take(r, b->forward_transient);
        for (uint32_t k = 0; k < kept->n; k++)
            (*slot)[n++] = take(r, kept->bytes[k]);
        give(r, working);
    }
}

static void backward(struct replay *r, const struct maq_program *pr, uint32_t **slot)
{
    if (!*slot)
        return;
    uint32_t n = kept_tensors(r->bp, pr);
    for (uint32_t i = pr->n_entries; i-- > 0;) {
        const struct maq_block *b = r->bp->blocks[pr->entries[i].block];
        uint8_t redo = pr->entries[i].redo;
        uint32_t working = take(r, b->backward_transient[redo]);
        for (uint32_t k = 0; k < b->kept[redo].n; k++)
            give(r, (*slot)[--n]);
        give(r, working);
    }
    free(*slot);
    *slot = NULL;
}

static uint32_t slot_of(const struct maq_schedule *s, uint32_t position, uint32_t microbatch)
{
    return position * s->microbatches + microbatch;
}

/* Runs the stage's first tasks, then frees what is left. */
static void run_step(struct replay *r, uint32_t stage)
{
    const struct maq_schedule *s = r->bp->schedule;
    uint32_t done = 0;
    for (uint32_t t = s->stage_first[stage]; t != MAQ_NO_TASK && done < TASKS && !r->failed;
         t = s->next_on_stage[t], done++) {
        const struct maq_task *task = &s->tasks[t];
        bool pair = task->kind == MAQ_TASK_FB;
        if (task->kind == MAQ_TASK_F || pair)
            forward(r, r->bp->programs[task->position], &r->live[slot_of(s, task->position, task->microbatch)]);
        bool ends = pair || task->kind == MAQ_TASK_W || (task->kind == MAQ_TASK_B && !task->split);
        uint32_t position = pair ? task->b_position : task->position;
        if (ends)
            backward(r, r->bp->programs[position],
                     &r->live[slot_of(s, position, pair ? task->b_microbatch : task->microbatch)]);
    }
    for (uint32_t i = s->n_positions * s->microbatches; i-- > 0;)
        if (r->live[i])
            backward(r, r->bp->programs[i / s->microbatches], &r->live[i]);
}

double maq_replay_reserved(const struct maq_blueprint *bp, uint32_t stage, double states_bytes, double *peak_allocated)
{
    struct replay r = {.bp = bp, .a = maq_allocator_new()};
    r.live = calloc((size_t)bp->schedule->n_positions * bp->schedule->microbatches, sizeof *r.live);
    r.failed = !r.a || !r.live;
    if (!r.failed)
        take(&r, states_bytes);
    for (int step = 0; step < STEPS && !r.failed; step++)
        run_step(&r, stage);
    double reserved = -1;
    if (!r.failed) {
        struct maq_allocator_stats stats = maq_allocator_stats(r.a);
        reserved = stats.peak_reserved;
        *peak_allocated = stats.peak_allocated;
    }
    for (uint32_t i = 0; r.live && i < bp->schedule->n_positions * bp->schedule->microbatches; i++)
        free(r.live[i]);
    free(r.live);
    maq_allocator_free(r.a);
    return reserved;
}
