/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_eager_replay.c - programs whose every request to PyTorch's allocator is known (src/train/memory/eager_replay.h): what a script takes it gives
 * back, once, and how reserved memory follows from the program. How close it comes to real ones is test_memory_truth.py's.
 */
#include <math.h>

#include "base/check.h"
#include "predict.h"
#include "train/cache.h"
#include "train/memory/eager_script.h"
#include "train/step/blueprint.h"

#define LLAMA                                                                                                          \
    "{model_type: llama, num_hidden_layers: 3, hidden_size: 1024, intermediate_size: 2816, num_attention_heads: 16, "  \
    "num_key_value_heads: 4, vocab_size: 32000, max_position_embeddings: 4096, tie_word_embeddings: false}"
#define QWEN                                                                                                           \
    "{model_type: qwen3, num_hidden_layers: 3, hidden_size: 1024, intermediate_size: 3072, num_attention_heads: 16, "  \
    "num_key_value_heads: 8, head_dim: 128, vocab_size: 64000, max_position_embeddings: 4096, tie_word_embeddings: "   \
    "true}"
#define EXPERTS                                                                                                        \
    "{model_type: qwen3_moe, num_hidden_layers: 3, hidden_size: 768, intermediate_size: 2048, "                        \
    "moe_intermediate_size: 512, num_attention_heads: 12, num_key_value_heads: 4, head_dim: 64, num_experts: 8, "      \
    "num_experts_per_tok: 2, vocab_size: 32000, max_position_embeddings: 4096, tie_word_embeddings: false, "           \
    "decoder_sparse_step: 1}"
#define DDP "data_parallel_sharding_strategy: no_shard"
#define FSDP "data_parallel_sharding_strategy: optim_grads_params"

static const char *job_text(char text[2048], const char *model, int nodes, const char *framework, const char *plan)
{
    snprintf(
        text, 2048,
        "{model: %s, cluster: \"h100-sxm:8 x %d\", framework: {base: huggingface%s}, plan: {micro_batch_size: 2, %s}, "
        "workload: {global_batch_size: %d, seq_length: 1024}}",
        model, nodes, framework, plan, 16 * nodes);
    return text;
}

/* ---- scripts ---- */

struct count {
    uint32_t there; /* tensors that are */
    bool *is;       /* [slot] */
};

/* No tensor is taken twice, or given back without being there. */
static void walk(struct count *c, const struct maq_moves *moves, bool alone)
{
    for (uint32_t i = 0; i < moves->n; i++) {
        uint32_t slot = moves->at[i].slot, kind = moves->at[i].kind;
        bool casts = kind == MAQ_MOVE_CAST && !alone;
        if (kind == MAQ_MOVE_TAKE || casts) {
            assert_false(c->is[slot]);
            c->is[slot] = true;
            c->there++;
        }
        if (kind == MAQ_MOVE_GIVE || (kind == MAQ_MOVE_GIVE_ALONE && alone && slot != MAQ_SLOT_IN)) {
            assert_true(c->is[slot]);
            c->is[slot] = false;
            c->there--;
        }
        if (kind == MAQ_MOVE_RENAME) {
            assert_true(c->is[slot] && !c->is[MAQ_SLOT_GRADIENT]);
            c->is[slot] = false;
            c->is[MAQ_SLOT_GRADIENT] = true;
        }
    }
}

/* A pass that records nothing leaves what the layer returns; two that do leave that and the gradient of what it read. */
static void check_script(const struct maq_eager_script *s, bool embedding, bool output)
{
    struct count c = {.is = calloc(s->n_slots, sizeof *c.is)};
    assert_non_null(c.is);
    for (int alone = 1; alone >= 0; alone--) {
        memset(c.is, 0, s->n_slots * sizeof *c.is);
        c.is[MAQ_SLOT_IN] = !embedding;
        c.there = embedding ? 0 : 1;
        walk(&c, &s->forward, alone != 0);
        if (alone && !output) {
            assert_true(c.is[MAQ_SLOT_OUT]);
            assert_int_equal(c.there - (c.is[MAQ_SLOT_IN] ? 1 : 0), 1);
        }
    }
    c.is[MAQ_SLOT_GRADIENT] = !output;
    c.there += output ? 0 : 1;
    walk(&c, &s->backward, false);
    assert_true(c.is[MAQ_SLOT_GRADIENT] == !embedding && c.is[MAQ_SLOT_OUT] == !output);
    assert_int_equal(c.there, (embedding ? 0 : 1) + (output ? 0 : 1) + (c.is[MAQ_SLOT_IN] ? 1 : 0));
    free(c.is);
}

/* Returns how many of the job's blocks have a script. */
static int check_job(const char *text)
{
    struct maq_loaded_job *loaded = NULL;
    struct maq_diag *diag = maq_diag_new();
    struct maq_arena arena;
    struct maq_cache cache;
    struct maq_blueprint bp;
    int known = 0;
    maq_arena_init(&arena, 0);
    assert_int_equal(maq_job_parse(&loaded, "test", maq_str_of(text), NULL, 0, diag), MAQ_OK);
    assert_int_equal(maq_cache_init(&cache, maq_job_get(loaded), diag), MAQ_OK);
    assert_int_equal(maq_blueprint_build(&bp, maq_job_get(loaded), &cache, &arena, diag), MAQ_OK);
    for (uint32_t i = 0; i < bp.n_blocks; i++) {
        const struct maq_layer *layer = bp.blocks[i]->layer;
        struct maq_eager_script s;
        if (!maq_eager_script(&s, &bp.lower, layer))
            continue;
        check_script(&s, layer->modules[0].kind == MAQ_MODULE_EMBEDDING,
                     layer->modules[layer->n_modules - 1].kind == MAQ_MODULE_LOSS);
        maq_eager_script_free(&s);
        known++;
    }
    maq_cache_fini(&cache);
    maq_arena_fini(&arena);
    maq_job_free(loaded);
    maq_diag_free(diag);
    return known;
}

static void test_scripts(void **unused)
{
    (void)unused;
    static const char *const models[] = {LLAMA, QWEN, EXPERTS},
                             *const plans[] = {DDP, FSDP, DDP ", pure_low_precision: true, main_grads_dtype: bf16",
                                               DDP ", recompute_granularity: full",
                                               DDP ", lora_rank: 16, lora_target_modules: all-linear"};
    char text[2048];
    for (size_t m = 0; m < 3; m++)
        for (size_t p = 0; p < 5; p++) {
            bool adapted = p == 4;
            if (adapted && m == 2)
                continue; /* adapters of experts are not known */
            assert_int_equal(check_job(job_text(text, models[m], 2, "", plans[p])), 3);
            if (adapted)
                assert_int_equal(check_job(job_text(text, models[m], 2, ", autocast: false", plans[p])), 3);
        }
    /* a mixer that has none: its layers, not its embedding and output */
    const char *mamba =
        "{model_type: mamba2, num_hidden_layers: 2, hidden_size: 1024, num_heads: 32, head_dim: 64, state_size: 64, "
        "expand: 2, n_groups: 1, vocab_size: 32000}";
    assert_int_equal(check_job(job_text(text, mamba, 2, "", FSDP)), 2);
}

/* ---- programs ---- */

static struct maq_stage_result stage(const char *model, int nodes, const char *framework, const char *plan)
{
    char text[2048];
    struct prediction p = predict_text(job_text(text, model, nodes, framework, plan));
    struct maq_stage_result s = p.result->stages[0];
    drop(&p);
    return s;
}

/* Whether it fits is a matter of what all requests come to, not of the sum that stood there before they were replayed. */
static void test_fits(void **unused)
{
    (void)unused;
    static const int lengths[] = {512, 2048, 4096, 8192, 16384};
    uint32_t fit = 0;
    for (size_t i = 0; i < MAQ_COUNT(lengths); i++) {
        char text[1024];
        snprintf(text, sizeof text,
                 "model: llama-3.1-8b\ncluster: rtx-4090:1\nframework: huggingface\nworkload: {gbs: 2, seq: %d}\n"
                 "plan: {mbs: 2, precision: bf16, lora_rank: 32, lora_target_modules: all-linear, "
                 "lora_base_quantization: nf4, recompute: full}\n",
                 lengths[i]);
        struct prediction p = predict_text(text);
        const struct maq_stage_result *s = &p.result->stages[0];
        assert_int_equal(p.result->fits, s->allocated_bytes + s->bytes[MAQ_MEM_CONTEXT] <= s->capacity_bytes);
        fit += p.result->fits;
        /* a sweep, which searches go by, says the same of it */
        struct maq_train_sweep *sweep;
        struct maq_train_quick q;
        assert_int_equal(maq_train_sweep_new(&sweep, p.result->job, NULL), MAQ_OK);
        assert_int_equal(maq_train_sweep_eval(sweep, &q, &p.result->job->plan, 1), MAQ_OK);
        assert_true(q.possible && q.fits == p.result->fits && q.needed_bytes == s->needed_bytes);
        maq_train_sweep_free(sweep);
        drop(&p);
    }
    assert_true(fit > 0 && fit < MAQ_COUNT(lengths));
}

/* What is reserved comes in segments of 2 MiB, and is no less than what is allocated. */
static void test_segments(void **unused)
{
    (void)unused;
    static const char *const plans[] = {DDP, FSDP, FSDP ", reshard_after_forward: false",
                                        DDP ", recompute_granularity: full"};
    for (size_t i = 0; i < 4; i++) {
        struct maq_stage_result s = stage(LLAMA, 2, "", plans[i]);
        double segments = s.reserved_bytes / (2 << 20);
        assert_true(s.reserved_bytes >= s.allocated_bytes && fabs(segments - round(segments)) < 1e-6);
        struct maq_stage_result grown = stage(LLAMA, 2, "", i == 0 ? DDP ", expandable_segments: true" : plans[i]);
        assert_true(grown.reserved_bytes <= s.reserved_bytes && grown.allocated_bytes <= s.allocated_bytes);
    }
}

/* How many replicas there are changes nothing of one that has all of the model; what shares it holds less with every rank. */
static void test_ranks(void **unused)
{
    (void)unused;
    assert_true(stage(LLAMA, 1, "", DDP).reserved_bytes == stage(LLAMA, 64, "", DDP).reserved_bytes);
    double few = stage(LLAMA, 1, "", FSDP).allocated_bytes, many = stage(LLAMA, 8, "", FSDP).allocated_bytes;
    assert_true(many < few);
}

/*
 * With find_unused_parameters the buckets are there from the beginning; without, one of the size of the gradients lies empty from the third step
 * on, for activations to use: as much as that is reserved besides, at the most.
 */
static void test_buckets(void **unused)
{
    (void)unused;
    struct maq_stage_result kept = stage(LLAMA, 2, ", find_unused_parameters: true", DDP),
                            anew = stage(LLAMA, 2, ", find_unused_parameters: false", DDP);
    double gradients = 4 * kept.params;
    assert_true(anew.reserved_bytes > kept.reserved_bytes &&
                anew.reserved_bytes <= kept.reserved_bytes + gradients + (512 << 20));
    assert_true(fabs(anew.allocated_bytes - kept.allocated_bytes) < 1.2 * 4 * 2048 * 32000);
}

/* What one parameter for each tensor reserves beyond one for each unit. */
static double of_rows(int nodes)
{
    return stage(EXPERTS, nodes, "", FSDP).reserved_bytes -
           stage(EXPERTS, nodes, ", flat_parameters: true", FSDP).reserved_bytes;
}

/* 8 experts over 64 ranks: fully_shard() gathers as many rows as there are ranks, of 6,291,456 + 3,145,728 numbers for 8 of them. */
static void test_padding(void **unused)
{
    (void)unused;
    double layer = 2 * (6291456.0 + 3145728.0);
    assert_true(of_rows(8) - of_rows(1) > 6 * layer); /* eight times as much, seven more; shards are smaller */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scripts), cmocka_unit_test(test_segments), cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_buckets), cmocka_unit_test(test_padding),  cmocka_unit_test(test_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
