/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vision_tower.c - the vision tower of a deployment, and what it takes in front of an iteration.
 *
 * Its passes are launched kernel by kernel: engines have no CUDA graphs of it by default. Its weights are in 16 bits, cut over the TP group as the model's
 * (vLLM's mm_encoder_tp_mode `weights`), on the first stage.
 */
#include "serve/engine/vision_tower.h"

#include "base/alloc.h"
#include "base/check.h"
#include "serve/codes.h"
#include "serve/engine/batch.h"
#include "serve/engine/engine.h"

int64_t maq_image_side(int64_t pixels, int32_t patch, int32_t merge)
{
    int64_t token = (int64_t)patch * merge, n = (pixels + token / 2) / token;
    return n > 0 ? n : 1;
}

bool maq_encoder_there(const struct maq_encoder_options *e)
{
    return e->tower || e->own;
}

enum maq_status maq_tower_init(struct maq_tower *t, const struct maq_deployment *d, int32_t tp, struct maq_arena *arena)
{
    struct maq_serve_options o = d->options;
    t->job = *d->job;
    t->job.model = o.encoder.own ? d->job->model.vision->model : o.encoder.tower->model;
    t->job.plan.pp = 1;
    t->job.plan.tp = tp;
    o.weights = o.expert_weights = MAQ_WEIGHTS_BF16;
    o.dp = o.ep = 1;
    o.kv_fp8 = false;
    o.lora = (struct maq_lora_options){.enabled = false};
    MAQ_TRY(maq_passes_init(&t->passes, &t->job, &o, MAQ_IMAGE_PATCHES, arena));
    t->passes.encodes = true;
    t->projects = o.encoder.own;
    return MAQ_OK;
}

enum maq_status maq_deployment_encoder(struct maq_deployment *d, struct maq_diag *diag)
{
    if (!maq_deployment_encodes(d) || maq_tower_init(&d->tower, d, d->job->plan.tp, &d->arena) == MAQ_OK)
        return MAQ_OK;
    return maq_no_memory(diag, "a vision tower");
}

struct maq_image maq_tower_image(const struct maq_deployment *d, int64_t tokens)
{
    const struct maq_encoder_options *e = &d->options.encoder;
    int64_t merge = e->merge > 1 ? e->merge : 1;
    if (e->own && e->image.tokens > 0 && tokens == e->image_tokens)
        return e->image;
    if (e->own)
        return maq_vision_image_of_tokens(d->job->model.vision, tokens);
    return (struct maq_image){.tokens = tokens, .patches = tokens * merge * merge, .tiles = 1};
}

bool maq_tower_add_image(struct maq_pass_chunk **chunks, uint32_t *n, uint32_t *size, const struct maq_image *image)
{
    for (int64_t i = 0; i < image->tiles; i++) {
        if (!maq__grow((void **)chunks, size, *n, sizeof **chunks))
            return false;
        (*chunks)[(*n)++] = (struct maq_pass_chunk){image->patches / image->tiles, 0};
    }
    return true;
}

static int64_t patches_of(const struct maq_deployment *d, int64_t tokens)
{
    return maq_tower_image(d, tokens).patches;
}

struct maq_image_run maq_deployment_images(const struct maq_deployment *d, const struct maq_requests *q,
                                           const struct maq_request *r)
{
    return (struct maq_image_run){.from = (int64_t)r->n_prefix * q->prefix_unit,
                                  .tokens = r->image_tokens > 0 ? r->image_tokens : d->options.encoder.image_tokens,
                                  .n = r->images};
}

enum maq_status maq_deployment_check_images(const struct maq_deployment *d, const struct maq_requests *q, uint32_t i,
                                            struct maq_diag *diag)
{
    const struct maq_request *r = &q->at[i];
    const struct maq_image_run run = maq_deployment_images(d, q, r);
    if (r->images == 0)
        return MAQ_OK;
    if (!maq_encoder_there(&d->options.encoder))
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_IMAGES, (struct maq_span){0},
                             "--encoder-model, the tower as a model of its own, where its vision_config says none",
                             "request %u has images, and %s is served without a vision tower", i + 1,
                             d->job->model.name);
    if (run.tokens < 1)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_IMAGES, (struct maq_span){0},
                             "--image-tokens 256, or a column `image_tokens`",
                             "request %u has images, and nothing says how many tokens they are", i + 1);
    if (patches_of(d, run.tokens) > MAQ_IMAGE_PATCHES)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_IMAGES, (struct maq_span){0}, NULL,
                             "an image of request %u has %lld patches: %d are possible", i + 1,
                             (long long)patches_of(d, run.tokens), MAQ_IMAGE_PATCHES);
    if (run.from + run.n * run.tokens > r->prompt)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_IMAGES, (struct maq_span){0},
                             "tokens of images are among those of the prompt",
                             "request %u has %u images of %lld tokens each in a prompt of %lld", i + 1, run.n,
                             (long long)run.tokens, (long long)r->prompt);
    return MAQ_OK;
}

/* ---- while it runs ---- */

double maq_tower_pass_s(struct maq_tower *t, const struct maq_deployment *d, const struct maq_pass_chunk *images,
                        uint32_t n, struct maq_pass_parts *work)
{
    struct maq_pass_parts parts = {0};
    struct maq_pass_batch batch = {.queries = 1, .chunks = images, .n_chunks = n};
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        batch.tokens += images[i].queries;
    batch.padded = batch.tokens;
    maq_pass_add(&t->passes, 0, &batch, &parts);
    if (t->projects)
        maq_pass_projector(&t->passes, batch.tokens, &parts);
    for (int i = 0; i < MAQ_SERVE_PART_COUNT; i++)
        sum += parts.ns[i] * 1e-9;
    maq_pass_sum(work, &parts);
    double launches = maq_launch_s(d, MAQ_LAUNCH_MODE_EAGER, &t->passes, 0, &parts);
    return launches > sum ? launches : sum;
}

/* One pass over the images that are noted. */
static double pass_s(struct maq_serve_engine *e)
{
    struct maq_pass_parts work = {0};
    double s = e->n_images > 0 ? maq_tower_pass_s(&e->d->tower, e->d, e->image_chunks, e->n_images, &work) : 0;
    e->n_images = 0;
    e->times.s[MAQ_STAGE_MATRIX] += work.matrix_ns * 1e-9;
    e->times.s[MAQ_STAGE_MEMORY] += work.memory_ns * 1e-9;
    return s;
}

/* Images that begin in what a rank computes. */
static double rank_s(struct maq_serve_engine *e, const struct maq_engine_rank *rank, const struct maq_iteration *it)
{
    const struct maq_requests *q = e->clients->requests;
    int64_t patches = 0;
    double sum = 0;
    for (uint32_t i = 0; i < it->n; i++) {
        const struct maq_scheduled *s = &it->scheduled[i];
        const struct maq_request *r = &q->at[rank->slots[s->slot].request];
        const struct maq_image_run run = maq_deployment_images(e->d, q, r);
        const struct maq_image image = maq_tower_image(e->d, run.tokens);
        for (int64_t n = maq_images_begun(&run, s->computed, s->tokens); n > 0; n--) {
            int64_t more = image.patches;
            if (patches + more > MAQ_IMAGE_PATCHES) {
                sum += pass_s(e);
                patches = 0;
            }
            if (!maq_tower_add_image(&e->image_chunks, &e->n_images, &e->image_chunks_size, &image)) {
                e->failed = true;
                return 0;
            }
            patches += more;
            e->encoded.images++;
            e->encoded.tokens += (double)run.tokens;
            e->encoded.patches += (double)more;
        }
    }
    return sum + pass_s(e);
}

void maq_images_launch(struct maq_serve_engine *e, uint32_t place)
{
    double most = 0;
    if (!maq_deployment_encodes(e->d))
        return;
    for (uint32_t k = 0; k < e->n_ranks; k++) {
        double s = rank_s(e, &e->ranks[k], &e->ranks[k].it[place]);
        most = s > most ? s : most;
    }
    e->encode_s = most;
    e->encoded.encode_s += most;
}

void maq_images_fill(const struct maq_serve_engine *engines, uint32_t n, struct maq_serve_result *out)
{
    struct maq_encoded *sum = &out->encoded;
    *sum = (struct maq_encoded){.known = false};
    for (uint32_t k = 0; k < n; k++) {
        double bytes = maq_deployment_tower_bytes(engines[k].d);
        sum->known |= maq_encoder_there(&engines[k].d->options.encoder);
        sum->weights_bytes = bytes > sum->weights_bytes ? bytes : sum->weights_bytes;
    }
    if (!sum->known)
        return;
    const struct maq_requests *q = engines[0].clients->requests;
    for (uint32_t i = 0; i < q->n; i++)
        sum->requests += q->at[i].images > 0;
    for (uint32_t k = 0; k < n; k++) {
        sum->images += engines[k].encoded.images;
        sum->tokens += engines[k].encoded.tokens;
        sum->patches += engines[k].encoded.patches;
        sum->encode_s += engines[k].encoded.encode_s;
    }
}
