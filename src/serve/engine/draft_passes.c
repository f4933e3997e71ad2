/* SPDX-License-Identifier: Apache-2.0 */
/*
 * draft_passes.c - what drafting takes: the passes of a drafter behind each iteration, the search of n-grams.
 *
 * Behind the pass that verifies, a drafter passes the same tokens, each with the next one known (a small model: with the sampled token on top), which
 * yields the first draft of each request; then a token of each request, once for each further draft. vLLM leaves the further passes out where no
 * request can use what they yield (0.33.0, v1/core/sched/scheduler.py, _drafts_unused; v1/worker/gpu/spec_decode). SGLang the same with trees
 * of `branches` tokens at each step (0.5.23, speculative/eagle_worker_v2.py).
 *
 * Passes of EAGLE and MTP are in CUDA graphs where the iteration is; those of a small model under vLLM are launched kernel by kernel
 * (spec_decode/standalone_ar/speculator.py: no graphs yet), under SGLang they are as EAGLE's.
 *
 * n-grams are looked for on the GPU by vLLM (spec_decode/ngram): one pass over the tokens of each request, 4 bytes each, and a small kernel behind it. SGLang
 * looks for them on the host, which is not counted.
 */
#include "base/check.h"
#include "serve/codes.h"
#include "serve/engine/batch.h"

bool maq_deployment_has_drafter(const struct maq_deployment *d)
{
    return d->options.speculation.method != MAQ_DRAFT_NONE && d->options.speculation.method != MAQ_DRAFT_NGRAM;
}

/* ---- before any request comes ---- */

static enum maq_status check(const struct maq_serve_options *o, struct maq_diag *diag)
{
    const struct maq_speculation *s = &o->speculation;
    if (s->tokens < 1 || s->tokens > (int32_t)MAQ_DRAFT_MOST)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SPECULATION, (struct maq_span){0},
                             "--num-speculative-tokens 3",
                             "%d drafts of a request in an iteration: 1 to %u are possible", s->tokens, MAQ_DRAFT_MOST);
    if (o->engine != MAQ_ENGINE_SGLANG && (s->branches > 1 || s->verified != s->tokens + 1))
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SPECULATION, (struct maq_span){0}, NULL,
                             "trees of drafts are SGLang's: %s verifies a chain", maq_engine_name(o->engine));
    if (s->verified <= s->tokens)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SPECULATION, (struct maq_span){0},
                             "more tokens that are verified, or fewer steps",
                             "%d tokens of a request are verified together: too few for %d drafts behind each other",
                             s->verified, s->tokens);
    return MAQ_OK;
}

enum maq_status maq_deployment_draft(struct maq_deployment *d, struct maq_diag *diag)
{
    const struct maq_speculation *s = &d->options.speculation;
    struct maq_serve_options o = d->options;
    if (s->method == MAQ_DRAFT_NONE)
        return MAQ_OK;
    MAQ_TRY(check(&o, diag));
    d->drafts = MAQ_ARENA_NEW(&d->arena, struct maq_draft_batch, (size_t)o.dp);
    if (!d->drafts)
        return maq_no_memory(diag, "what drafts");
    if (!maq_deployment_has_drafter(d))
        return MAQ_OK;
    MAQ_TRY(maq_drafter_init(&d->drafter, d->job, s, &d->arena, diag));
    o.weights = s->method == MAQ_DRAFT_MTP ? o.weights : (enum maq_weights)s->weights;
    o.expert_weights = s->method == MAQ_DRAFT_MTP ? o.expert_weights : (enum maq_weights)s->expert_weights;
    o.ep = s->method == MAQ_DRAFT_MTP ? o.ep : 1;
    int64_t most = d->passes.most_tokens + (int64_t)o.max_num_seqs * s->branches;
    d->draft_batches = MAQ_ARENA_NEW(&d->arena, struct maq_pass_batch, (size_t)o.dp);
    if (!d->draft_batches || maq_passes_init(&d->draft, &d->drafter.job, &o, most, &d->arena) != MAQ_OK)
        return maq_no_memory(diag, "what drafts");
    return MAQ_OK;
}

/* ---- while it runs ---- */

static bool has_graphs(const struct maq_deployment *d)
{
    bool eager = d->options.speculation.method == MAQ_DRAFT_MODEL && d->options.engine == MAQ_ENGINE_VLLM;
    return !eager && !d->options.enforce_eager;
}

int64_t maq_draft_padded(const struct maq_deployment *d, int64_t requests)
{
    int64_t graph = has_graphs(d) ? maq_serve_graph_size(&d->options, requests, 0) : 0;
    return graph > 0 ? graph : requests;
}

/* A pass over one batch of each rank, in *batches; with what is launched in front of it. */
static double pass_s(struct maq_deployment *d, const struct maq_pass_batch *batches, enum maq_launch_mode mode,
                     const struct maq_pass_parts *front, struct maq_pass_parts *work)
{
    struct maq_pass_parts parts = *front;
    double sum = 0;
    maq_pass_add(&d->draft, 0, batches, &parts);
    for (int i = 0; i < MAQ_SERVE_PART_COUNT; i++)
        sum += parts.ns[i];
    sum *= 1e-9;
    maq_pass_sum(work, &parts);
    double launches = maq_launch_s(d, mode, &d->draft, 0, &parts);
    return launches > sum ? launches : sum;
}

/* Three layers' states to one, for each token that was verified. */
static struct maq_pass_parts combining(const struct maq_deployment *d, const struct maq_pass_batch *batches)
{
    struct maq_pass_parts parts = {0};
    int64_t most = 0;
    for (int32_t r = 0; r < d->draft.dp; r++)
        most = batches[r].padded > most ? batches[r].padded : most;
    struct maq_op op =
        maq_pass_op(MAQ_OP_GEMM, &d->draft.plain, 0, most, d->drafter.job.model.hidden, d->drafter.combines, 1);
    if (d->drafter.combines > 0 && most > 0)
        maq_pass_cost(&d->draft, &op, 1, MAQ_SERVE_GEMM, &parts);
    return parts;
}

static double search_s(const struct maq_deployment *d, const struct maq_draft_batch *drafts)
{
    int64_t most = 0;
    for (int32_t r = 0; r < d->passes.dp; r++)
        most = drafts[r].known > most ? drafts[r].known : most;
    struct maq_op read = maq_pass_op(MAQ_OP_ELEMENTWISE, &d->passes.plain, 0, most, 4, 0, 0);
    if (most == 0 || d->options.engine == MAQ_ENGINE_SGLANG)
        return 0;
    double s = maq_pass_seconds(&d->passes, &read), launches = 2 * d->host.eager_s / maq_device_host_speed(d->device);
    return launches > s ? launches : s;
}

double maq_draft_s(struct maq_deployment *d, struct maq_draft_batch *drafts, enum maq_launch_mode mode,
                   struct maq_pass_parts *work)
{
    struct maq_pass_batch *batches = d->draft_batches;
    const struct maq_pass_parts none = {0};
    int32_t passes = 0;
    bool further = false;
    if (d->options.speculation.method == MAQ_DRAFT_NGRAM)
        return search_s(d, drafts);
    for (int32_t r = 0; r < d->draft.dp; r++) {
        passes = drafts[r].passes > passes ? drafts[r].passes : passes;
        batches[r] = drafts[r].first;
    }
    if (passes == 0)
        return 0;
    maq_batch_pad(d, batches);
    struct maq_pass_parts front = combining(d, batches);
    enum maq_launch_mode without = maq_launch_without_graph(&d->options);
    double s = pass_s(d, batches, has_graphs(d) ? mode : without, &front, work);
    int64_t most = 1;
    for (int32_t r = 0; r < d->draft.dp; r++) {
        batches[r] = drafts[r].further;
        most = batches[r].padded > most ? batches[r].padded : most;
        further = further || batches[r].decodes > 0;
    }
    if (passes < 2 || !further)
        return s;
    for (int32_t r = 0; r < d->draft.dp; r++)
        batches[r].padded = most;
    bool held = has_graphs(d) && maq_serve_graph_size(&d->options, most / d->options.speculation.branches, 0) > 0;
    struct maq_pass_parts one = {0};
    double each = pass_s(d, batches, held ? MAQ_LAUNCH_MODE_GRAPH : without, &none, &one);
    work->matrix_ns += (passes - 1) * one.matrix_ns;
    work->memory_ns += (passes - 1) * one.memory_ns;
    return s + (passes - 1) * each;
}
