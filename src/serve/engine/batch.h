/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch.h - an iteration of a scheduler as passes: who decodes, which prompts, and how long the device and the host take.
 *
 * With speculative decoding a request that decodes has its drafts beside its last token, all of which pass the head; and passes of what drafts follow.
 * The first one is over the tokens of the iteration, the others over one token of each request that goes on.
 */
#ifndef MAQ_SERVE_ENGINE_BATCH_H
#define MAQ_SERVE_ENGINE_BATCH_H

#include "serve/engine/deployment.h"
#include "serve/sched/scheduler.h"

/* Passes that draft, behind an iteration; nobody in them: `passes` = 0. */
struct maq_draft_batch {
    struct maq_pass_batch first, further;
    int32_t passes;
    int64_t known; /* tokens of those that are sampled from */
    bool proposes; /* somebody can use what comes of them */
};

/* How a pass is launched. launches.c */
enum maq_launch_mode { MAQ_LAUNCH_MODE_GRAPH, MAQ_LAUNCH_MODE_PIECES, MAQ_LAUNCH_MODE_COMPILED, MAQ_LAUNCH_MODE_EAGER };
struct maq_batch_launch {
    enum maq_launch_mode mode;
    int64_t padded; /* tokens that its kernels but attention compute */
};

struct maq_batch_writer {
    struct maq_pass_batch batch;
    struct maq_draft_batch draft;
    struct maq_pass_chunk *chunks;
    uint32_t chunks_size;
    bool failed;
};

void maq_batch_of(struct maq_batch_writer *w, const struct maq_deployment *d, const struct maq_iteration *it);
/* So many requests that decode a token each, with their drafts; what keys they see is the caller's to say. */
struct maq_pass_batch maq_batch_decodes(const struct maq_deployment *d, uint32_t requests);
/* What is drafted behind a batch whose decodes see `keys` each, and of which so many prompts end in it. */
struct maq_draft_batch maq_batch_drafts(const struct maq_deployment *d, const struct maq_pass_batch *batch,
                                        int64_t keys, int64_t prompts);
void maq_batch_fini(struct maq_batch_writer *w);

/* Of a batch of so many tokens; `queries` of each request where there are no prompts. launches.c */
struct maq_batch_launch maq_batch_launch(const struct maq_deployment *d, int64_t tokens, uint32_t prompts,
                                         int64_t queries);
/* Of what no CUDA graph holds. launches.c */
enum maq_launch_mode maq_launch_without_graph(const struct maq_serve_options *o);
/* What the host takes to launch the kernels of a pass through a stage, in seconds. launches.c */
double maq_launch_s(const struct maq_deployment *d, enum maq_launch_mode mode, const struct maq_passes *passes,
                    uint32_t stage, const struct maq_pass_parts *parts);

/* The same of the two sides of a pass, where attention and FFN are on GPUs of their own: the longer. launches.c */
double maq_launch_sides_s(const struct maq_deployment *d, enum maq_launch_mode mode, const struct maq_afd_pass *pass);
/* No less than an iteration of such batches, all of which decode, takes on a deployment of one stage, however many keys they see, in seconds. */
double maq_batch_least_s(struct maq_deployment *d, const struct maq_pass_batch *batches);

/* Batches of several ranks, batches[dp], are padded alike where a CUDA graph holds the largest; a rank without any has a token of nobody. */
void maq_batch_pad(const struct maq_deployment *d, struct maq_pass_batch *batches);
/* Time of an iteration on each stage, by part; seconds of device time of a stage. */
double maq_batch_stage_s(struct maq_deployment *d, uint32_t stage, const struct maq_pass_batch *batches,
                         enum maq_launch_mode mode, struct maq_pass_parts *parts);
/* The same in seconds: each part (enum maq_serve_part), all, and what its products and its traffic would take at their peaks. */
enum { MAQ_STAGE_ALL = MAQ_SERVE_PART_COUNT, MAQ_STAGE_MATRIX, MAQ_STAGE_MEMORY, MAQ_STAGE_TIMES };
struct maq_stage_times {
    double s[MAQ_STAGE_TIMES];
    struct maq_afd_times afd; /* zero where each GPU has attention and FFN; added up by maq_engine_start() */
};
/* One after the other, since a loop over them would take as long as they do: a fleet adds them up for every token. */
static inline void maq_stage_times_add(struct maq_stage_times *restrict sum,
                                       const struct maq_stage_times *restrict more)
{
#define MAQ_STAGE_ADD(id, name, what) sum->s[MAQ_SERVE_##id] += more->s[MAQ_SERVE_##id];
    MAQ_SERVE_PART_LIST(MAQ_STAGE_ADD)
#undef MAQ_STAGE_ADD
    sum->s[MAQ_STAGE_ALL] += more->s[MAQ_STAGE_ALL];
    sum->s[MAQ_STAGE_MATRIX] += more->s[MAQ_STAGE_MATRIX];
    sum->s[MAQ_STAGE_MEMORY] += more->s[MAQ_STAGE_MEMORY];
}
/* Of an iteration of decodes alone, or of one part of a prompt alone, in its place among those of before. iteration_times.c */
struct maq_iteration_time {
    int64_t decodes, padded,
        keys[MAQ_PASS_WINDOWS]; /* decodes = 0: keys are the queries and the context of a prompt; padded = 0: none is kept here */
    enum maq_launch_mode mode;
    struct maq_stage_times times;
};
static inline struct maq_iteration_time *maq_iteration_time_place(const struct maq_deployment *d, uint32_t stage,
                                                                  int64_t decodes, int64_t keys)
{
    /* those of one request lie side by side; of others apart */
    uint64_t place = (uint64_t)keys + (uint64_t)(decodes - 1) * 5003;
    return &d->iteration_times[stage * d->n_iteration_times + (place & (d->n_iteration_times - 1))];
}
static inline bool maq_iteration_time_is(const struct maq_iteration_time *t, const struct maq_pass_batch *b,
                                         const int64_t *keys, uint32_t n_keys, enum maq_launch_mode mode)
{
    if (t->decodes != b->decodes || t->padded != b->padded || t->mode != mode)
        return false;
    for (uint32_t w = 0; w < n_keys; w++)
        if (t->keys[w] != keys[w])
            return false;
    return true;
}
/* Whether the time of decodes alone is kept; not of several ranks, nor with drafts and adapters. */
bool maq_iteration_time_is_kept(const struct maq_deployment *d, const struct maq_pass_batch *batches);
/* Of a deployment that serves; valid until the next call. */
const struct maq_stage_times *maq_iteration_times_of(struct maq_deployment *d, uint32_t stage,
                                                     const struct maq_pass_batch *batches, enum maq_launch_mode mode);
/* Room for it, once for all engines of a deployment that serve so many requests; false: out of memory. */
bool maq_iteration_times_init(struct maq_deployment *d, uint32_t requests);
void maq_iteration_times_fini(struct maq_deployment *d);
/* How all ranks launch them: `mode` of the others. */
enum maq_launch_mode maq_batch_launch_mode(const struct maq_deployment *d, const struct maq_pass_batch *batches);
/* Time of the passes that draft behind an iteration, drafts[dp] of all ranks; seconds of device time. What they work is added to *work.
 * `mode`: of the iteration. draft_passes.c */
double maq_draft_s(struct maq_deployment *d, struct maq_draft_batch *drafts, enum maq_launch_mode mode,
                   struct maq_pass_parts *work);
/* Requests that a further pass of so many is padded to. */
int64_t maq_draft_padded(const struct maq_deployment *d, int64_t requests);
/* Host time before a batch of `requests` can start: of several, the most. */
double maq_batch_host_s(const struct maq_deployment *d, uint32_t requests);
/* Time of a batch's border between stages on its way to the next one. */
double maq_batch_transfer_s(const struct maq_deployment *d, int64_t tokens);

#endif
