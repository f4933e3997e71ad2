/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_own_tower.c - requests with images and the tower of the model's own vision_config: what it adds to a request alone, the memory that it takes, tiles and
 * windows that do not see each other, and a tower as a model of its own that is the same.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "maquette/serve_fleet.h"
#include "serve_jobs.h"

#define TEXT                                                                                                           \
    "text_config: {model_type: qwen2, hidden_size: 3584, num_hidden_layers: 28, num_attention_heads: 28, "             \
    "num_key_value_heads: 4, intermediate_size: 18944, "                                                               \
    "vocab_size: 152064}"
#define OF(type, tower) "{model_type: " type ", " TEXT ", vision_config: {model_type: " tower "}}"

/* One request alone, with one image of so many pixels; 0: without. */
static struct maq_serve_result *one(const struct maq_loaded_job *job, bool own, int64_t width, int64_t height)
{
    const struct maq_vision *v = maq_job_get(job)->model.vision;
    struct maq_serve_options o = {.engine = MAQ_ENGINE_VLLM, .encoder.own = own};
    struct maq_request r = {.prompt = 6000, .output = 5};
    const struct maq_requests q = {.at = &r, .n = 1};
    if (width > 0) {
        o.encoder.image = maq_vision_image(v, width, height);
        o.encoder.image_tokens = o.encoder.image.tokens + o.encoder.image.marks;
        r.images = 1;
    }
    o.max_num_batched_tokens = 8192;
    return serve(job, &o, &q);
}

/* Its first token is later by what the image takes, which is its products at some share of the peak; its weights are in the memory whether there are images or not. */
static void test_alone(void **state)
{
    static const struct {
        const char *model;
        int64_t width, height, tokens, patches;
    } cases[] = {
        {"gemma-3-4b", 640, 480, 256, 4096},
        {OF("qwen2_vl", "qwen2_vl"), 1400, 1400, 2500, 10000},
        {OF("qwen3_vl", "qwen3_vl"), 1024, 1024, 1024, 4096},
        {OF("internvl", "internvl_vision"), 896, 896, 5 * 256 + 2, 5 * 1025},
        {OF("llama4", "llama4_vision_model, hidden_size: 1408, image_size: 336"), 672, 672, 5 * 144 + 7, 5 * 577},
    };
    (void)state;
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct maq_loaded_job *job = load(cases[i].model, "h100-sxm:8", "", 8);
        const struct maq_vision *v = maq_job_get(job)->model.vision;
        struct maq_serve_result *bare = one(job, false, 0, 0), *text = one(job, true, 0, 0),
                                *r = one(job, true, cases[i].width, cases[i].height);
        expect_close(text->ttft_s.mean, bare->ttft_s.mean, 1e-12, "a tower that nobody needs");
        assert_true(!bare->encoded.known && text->encoded.known && text->encoded.images == 0);
        expect_close(text->encoded.weights_bytes, 2.0 * (double)v->model.params, 1e-9, "its weights");
        expect_close(text->memory[MAQ_SERVE_MEM_WEIGHTS] - bare->memory[MAQ_SERVE_MEM_WEIGHTS],
                     2.0 * (double)v->model.params, 1e-9, "weights in the memory");
        assert_true(text->memory[MAQ_SERVE_MEM_KV] < bare->memory[MAQ_SERVE_MEM_KV]);
        expect_close(r->ttft_s.mean, text->ttft_s.mean + r->encoded.encode_s, 1e-9, "first token");
        expect_close(r->encoded.tokens, (double)cases[i].tokens, 1e-12, "tokens");
        expect_close(r->encoded.patches, (double)cases[i].patches, 1e-12, "patches");
        const double patches = (double)cases[i].patches,
                     layers = (double)(v->model.params - v->model.output.params - v->model.embedding.params),
                     tokens = patches * (double)v->model.output.tokens / (double)v->model.output.of_tokens,
                     flop = 2 * patches * layers + 2 * tokens * (double)v->model.output.params;
        if (!(r->encoded.encode_s > flop / 989e12 && r->encoded.encode_s < 8 * flop / 989e12))
            fail_msg("%s: %g s for %g FLOP", cases[i].model, r->encoded.encode_s, flop);
        maq_serve_free(bare);
        maq_serve_free(text);
        maq_serve_free(r);
        maq_job_free(job);
    }
}

/* Tiles do not see each other: as many tokens whole take longer. */
static void test_tiles(void **state)
{
    struct maq_loaded_job *job = load(OF("internvl", "internvl_vision"), "h100-sxm:8", "", 8);
    (void)state;
    struct maq_serve_result *tile = one(job, true, 448, 448), *tiles = one(job, true, 1344, 1344);
    assert_true(tiles->encoded.patches >= 10 * tile->encoded.patches);
    double share = tiles->encoded.patches / tile->encoded.patches;
    assert_true(tiles->encoded.encode_s < share * tile->encoded.encode_s * 1.0001);
    maq_serve_free(tile);
    maq_serve_free(tiles);
    maq_job_free(job);
}

/* A window that holds the whole image is none; smaller ones take less, and what they save is a multiple of the layers that have them. */
static void test_windows(void **state)
{
    static const char *const windows[] = {"window_size: 112", "window_size: 4480", "fullatt_block_indexes: []",
                                          "fullatt_block_indexes: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, "
                                          "15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, "
                                          "27, 28, 29, 30, 31]"};
    double takes[MAQ_COUNT(windows)];
    char model[1024];
    (void)state;
    for (size_t i = 0; i < MAQ_COUNT(windows); i++) {
        snprintf(model, sizeof model, "{model_type: qwen2_5_vl, " TEXT ", vision_config: {hidden_size: 1280, %s}}",
                 windows[i]);
        struct maq_loaded_job *job = NULL;
        char text[1500];
        snprintf(text, sizeof text,
                 "{model: %s, cluster: 'h100-sxm:8', plan: {micro_batch_size: 1}, workload: {global_batch_size: 8}}",
                 model);
        struct maq_diag *diag = maq_diag_new();
        if (maq_job_parse(&job, "test", maq_str_of(text), NULL, 0, diag) != MAQ_OK)
            fail_msg("%s", maq_diag_format(diag, 0, false));
        maq_diag_free(diag);
        struct maq_serve_result *r = one(job, true, 1792, 1792);
        takes[i] = r->encoded.encode_s;
        maq_serve_free(r);
        maq_job_free(job);
    }
    expect_close(takes[1], takes[3], 1e-12, "windows of a whole image");
    assert_true(takes[2] < takes[0] && takes[0] < takes[3]);
    expect_close(takes[3] - takes[2], (takes[3] - takes[0]) * 32 / 28, 1e-6, "28 of 32 layers have windows");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_alone), cmocka_unit_test(test_tiles),
                                       cmocka_unit_test(test_windows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
