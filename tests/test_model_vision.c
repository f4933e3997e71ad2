/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_model_vision.c - vision towers from `vision_config`: parameters of small ones of random sizes and tokens of images of random sizes as transformers has them
 * (tests/data/vision_truth.txt, which tools/model-truth/vision.py wrote); published counts of the catalogue's; images by hand; what is not known.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/str.h"
#include "maquette/vision.h"
#include "model/codes.h"
#include "model/load.h"

enum { LINE = 4096, TOWERS_AT_LEAST = 72, IMAGES_AT_LEAST = 90 };

struct read {
    struct maq_doc doc;
    struct maq_arena arena;
    struct maq_diag *diag;
    struct maq_model m;
    enum maq_status status;
};

static void begin(struct read *r, const char *text)
{
    *r = (struct read){.diag = maq_diag_new()};
    maq_arena_init(&r->arena, 0);
    r->status = maq_doc_parse(&r->doc, "model", maq_str_of(text), MAQ_ORIGIN_DOCUMENT, r->diag);
    assert_int_equal(r->status, MAQ_OK);
    r->status = maq_model_load(&r->m, r->doc.root, &r->arena, r->diag);
}

static void end(struct read *r)
{
    maq_doc_fini(&r->doc);
    maq_arena_fini(&r->arena);
    maq_diag_free(r->diag);
}

static const struct maq_vision *tower_of(struct read *r, const char *text)
{
    begin(r, text);
    if (r->status != MAQ_OK || !r->m.vision)
        fail_msg("%s\n%s", text, maq_diag_format(r->diag, 0, false));
    return r->m.vision;
}

#define TEXT                                                                                                           \
    "text_config: {model_type: qwen2, hidden_size: 64, num_hidden_layers: 1, num_attention_heads: 4, "                 \
    "num_key_value_heads: 4, intermediate_size: 64, vocab_size: 100}"
#define OF(type) "{model_type: " type ", " TEXT ", vision_config: {model_type: "

static const struct {
    const char *name, *model;
} rules[] = {
    {"qwen2", OF("qwen2_vl") "qwen2_vl}}"},
    {"qwen3", OF("qwen3_vl") "qwen3_vl}}"},
    {"pixtral", OF("llava") "pixtral}}"},
    {"mistral3", OF("mistral3") "pixtral, image_size: 1540, patch_size: 14}, spatial_merge_size: 2}"},
    {"llama4", OF("llama4") "llama4_vision_model, hidden_size: 1408, image_size: 336}}"},
    {"internvl", OF("internvl") "internvl_vision}}"},
};

/* ---- the table ---- */

static void check_tower(char *rest)
{
    struct read r;
    const char *counted = strsep(&rest, "\t"), *keys = strsep(&rest, "\n");
    int64_t truth = 0;
    assert_true(keys && maq_str_to_i64(&truth, maq_str_of(counted)));
    const struct maq_vision *v = tower_of(&r, keys);
    if (v->params != truth)
        fail_msg("%s\nhas %lld parameters, the library says %lld", keys, (long long)v->params, (long long)truth);
    assert_true(v->params == v->model.params + v->idle_params);
    assert_int_equal(maq_diag_count(r.diag), 0);
    end(&r);
}

static void check_image(char *rest)
{
    struct read r;
    const char *rule = strsep(&rest, "\t");
    int64_t n[4];
    size_t k = 0;
    for (int i = 0; i < 4; i++)
        assert_true(maq_str_to_i64(&n[i], maq_str_trim(maq_str_of(strsep(&rest, "\t\n")))));
    while (k < MAQ_COUNT(rules) && strcmp(rules[k].name, rule) != 0)
        k++;
    assert_true(k < MAQ_COUNT(rules));
    const struct maq_image got = maq_vision_image(tower_of(&r, rules[k].model), n[0], n[1]);
    if (got.tokens + got.marks != n[2] || got.patches != n[3])
        fail_msg("%s, %lld x %lld: %lld tokens and %lld marks of %lld patches, the processor has %lld of %lld", rule,
                 (long long)n[0], (long long)n[1], (long long)got.tokens, (long long)got.marks, (long long)got.patches,
                 (long long)n[2], (long long)n[3]);
    end(&r);
}

static void test_table(void **state)
{
    char path[1024], line[LINE];
    const char *root = getenv("MAQ_SOURCE_ROOT");
    int towers = 0, images = 0;
    (void)state;
    snprintf(path, sizeof path, "%s/tests/data/vision_truth.txt", root ? root : ".");
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        char *rest = line;
        assert_non_null(strchr(line, '\n'));
        if (line[0] == '#')
            continue;
        const char *what = strsep(&rest, "\t");
        bool tower = strcmp(what, "tower") == 0;
        (tower ? check_tower : check_image)(rest);
        towers += tower;
        images += !tower;
    }
    fclose(f);
    assert_true(towers >= TOWERS_AT_LEAST && images >= IMAGES_AT_LEAST);
}

/* ---- published ---- */

/* The safetensors of Gemma 3 and Llama 4 have so many parameters beside their text models' (published_extra of the catalogue). */
static void test_published(void **state)
{
    static const struct {
        const char *name;
        int64_t params;
    } cases[] = {{"gemma-3-4b", 419816304},
                 {"gemma-3-12b", 421290864},
                 {"gemma-3-27b", 423060336},
                 {"llama-4-scout", 871932416},
                 {"llama-4-maverick", 871932416}};
    (void)state;
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct read r;
        const struct maq_vision *v = tower_of(&r, cases[i].name);
        assert_int_equal(v->params, cases[i].params);
        assert_int_equal(v->idle_params, 0);
        end(&r);
    }
}

/* ---- by hand ---- */

static void expect_image(const struct maq_vision *v, int64_t width, int64_t height, struct maq_image want)
{
    const struct maq_image got = maq_vision_image(v, width, height);
    assert_int_equal(got.tokens, want.tokens);
    assert_int_equal(got.marks, want.marks);
    assert_int_equal(got.patches, want.patches);
    assert_int_equal(got.tiles, want.tiles);
}

static void test_images(void **state)
{
    struct read r;
    (void)state;
    /* LLaVA 1.5: 24 x 24 patches and a class token, which is no token of the prompt; the last layer is not run */
    const struct maq_vision *v =
        tower_of(&r, OF("llava") "clip_vision_model, hidden_size: 1024, intermediate_size: 4096, "
                                 "num_hidden_layers: 24, num_attention_heads: 16, image_size: 336, patch_size: 14}}");
    expect_image(v, 2000, 300, (struct maq_image){.tokens = 576, .patches = 577, .tiles = 1});
    assert_int_equal(v->model.num_layers, 23);
    assert_int_equal(v->idle_params, v->model.kinds[0].params + 2 * 1024);
    assert_int_equal(v->params - v->model.output.params, 303507456); /* ViT-L/14 at 336 pixels */
    end(&r);
    v = tower_of(&r, "gemma-3-4b");
    expect_image(v, 100, 100, (struct maq_image){.tokens = 256, .patches = 4096, .tiles = 1});
    assert_int_equal(maq_vision_image_of_tokens(v, 512).patches, 2 * 4096);
    end(&r);
    v = tower_of(&r, rules[0].model); /* 1000 x 700 to 36 x 25 tokens of 28 pixels */
    expect_image(v, 1000, 700, (struct maq_image){.tokens = 900, .patches = 3600, .tiles = 1});
    expect_image(v, 1, 1, (struct maq_image){.tokens = 4, .patches = 16, .tiles = 1}); /* 56 x 56 at the least */
    assert_true(maq_vision_image(v, 100000, 100000).tokens <= 16384);
    end(&r);
    v = tower_of(&r, rules[4].model); /* 2 x 2 tiles and the whole; of one tile no other */
    expect_image(v, 672, 672, (struct maq_image){.tokens = 5 * 144, .marks = 7, .patches = 5 * 577, .tiles = 5});
    expect_image(v, 336, 336, (struct maq_image){.tokens = 144, .marks = 3, .patches = 577, .tiles = 1});
    end(&r);
    v = tower_of(&r, rules[5].model);
    expect_image(v, 448, 448, (struct maq_image){.tokens = 256, .marks = 2, .patches = 1025, .tiles = 1});
    expect_image(v, 896, 448, (struct maq_image){.tokens = 3 * 256, .marks = 2, .patches = 3 * 1025, .tiles = 3});
    end(&r);
}

/* Windows are of whole tokens; all but the layers that are named have them. Features of other layers widen what comes out. */
static void test_qwen(void **state)
{
    struct read r;
    const struct maq_vision *v = tower_of(&r, OF("qwen2_5_vl") "qwen2_5_vl, hidden_size: 1280, depth: 32}}");
    (void)state;
    assert_int_equal(v->model.n_kinds, 2);
    for (uint32_t i = 0; i < v->model.num_layers; i++) {
        const struct maq_layer *l = &v->model.kinds[v->model.kind_of[i]];
        for (uint32_t k = 0; k < l->n_modules; k++)
            if (l->modules[k].kind == MAQ_MODULE_ATTENTION)
                assert_int_equal(l->modules[k].u.attention.chunk, i % 8 == 7 ? 0 : 64);
    }
    assert_int_equal(v->embedding_width, 3584);
    end(&r);
    v = tower_of(&r, rules[1].model);
    assert_int_equal(v->embedding_width, 4 * 3584);
    assert_int_equal(v->model.output.of_tokens, 4);
    end(&r);
}

/* ---- what is not known ---- */

static void test_unknown(void **state)
{
    struct read r;
    (void)state;
    begin(
        &r,
        OF("qwen2_vl") "my_vit, layers: 7}}"); /* what is said by the whole counts where the tower's own word is not known */
    assert_true(r.status == MAQ_OK || r.status == MAQ_BAD_INPUT);
    end(&r);
    for (int whole_known = 0; whole_known < 2; whole_known++) { /* a word of its own counts, whatever the whole is */
        begin(&r, whole_known ? OF("qwen2_vl") "my_vit, layers: 7}}" : OF("qwen2") "my_vit, layers: 7}}");
        assert_int_equal(r.status, MAQ_OK);
        assert_null(r.m.vision);
        assert_int_equal(maq_diag_count(r.diag), 1);
        assert_int_equal(maq_diag_at(r.diag, 0)->code, MAQ_CODE_MODEL_TEXT_ONLY);
        end(&r);
    }
    static const struct {
        const char *text;
        uint16_t code;
    } bad[] = {
        {OF("qwen2") "clip_vision_model}}", MAQ_CODE_MODEL_VALUE}, /* no projector */
        {OF("llava") "clip_vision_model, hidden_size: 100}}", MAQ_CODE_MODEL_HEAD_WIDTH},
        {OF("llava") "clip_vision_model, image_size: 8}}", MAQ_CODE_MODEL_VALUE},
        {OF("llava") "clip_vision_model, image_size: [224, 336]}}", MAQ_CODE_MODEL_VALUE},
        {OF("llava") "clip_vision_model}, vision_feature_layer: -14}", MAQ_CODE_MODEL_LAYER_LIST},
        {OF("llava") "clip_vision_model, wings: 2}}", MAQ_CODE_MODEL_UNKNOWN_KEY},
        {OF("llama4") "llama4_vision_model, intermediate_size: 100}}", MAQ_CODE_MODEL_VALUE},
        {OF("qwen2_5_vl") "qwen2_5_vl, hidden_size: 1280, window_size: 20}}", MAQ_CODE_MODEL_VALUE},
    };
    for (size_t i = 0; i < MAQ_COUNT(bad); i++) {
        begin(&r, bad[i].text);
        if (r.status != MAQ_BAD_INPUT || maq_diag_at(r.diag, 0)->code != bad[i].code)
            fail_msg("%s\n%s", bad[i].text, maq_diag_format(r.diag, 0, false));
        end(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table), cmocka_unit_test(test_published),
                                       cmocka_unit_test(test_images), cmocka_unit_test(test_qwen),
                                       cmocka_unit_test(test_unknown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
