/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_post_training.c - DPO, KTO, GRPO and PPO: parts that are readings of their own, to the bit; shares of memory; what more of one thing makes of
 * another; what is refused.
 */
#include <string.h>

#include "effects.h"
#include "maquette/post_training.h"

#define PARAMS 1235814400.0 /* Llama 3.2 1B */

struct posted {
    struct maq_loaded_job *job;
    struct maq_post_training_result *r;
};

static struct posted post(const char *framework, const char *plan, int gbs, const char *rl)
{
    struct posted p = {0};
    struct maq_diag *diag = maq_diag_new();
    char text[1024];
    snprintf(text, sizeof text,
             "model: llama-3.2-1b\ncluster: h100-sxm:8\nframework: %s\nplan: {precision: bf16%s}\n"
             "workload: {seq: 1024, gbs: %d}\nrl: {%s}\n",
             framework, plan, gbs, rl);
    if (maq_job_parse(&p.job, "test", maq_str_of(text), NULL, 0, diag) != MAQ_OK ||
        maq_post_training_predict(&p.r, p.job, diag) != MAQ_OK)
        fail_msg("%s\n%s", text, maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return p;
}

static void lose(struct posted *p)
{
    maq_post_training_free(p->r);
    maq_job_free(p->job);
}

static struct prediction tuned(const char *framework, const char *plan, int gbs)
{
    char text[1024];
    snprintf(text, sizeof text,
             "model: llama-3.2-1b\ncluster: h100-sxm:8\nframework: %s\nplan: {precision: bf16%s}\n"
             "workload: {seq: 1024, gbs: %d}\n",
             framework, plan, gbs);
    return predict_text(text);
}

static bool same(double a, double b)
{
    return !(a < b) && !(a > b);
}

/* DPO whose reference costs nothing is fine-tuning with twice the batch, to the bit. */
static void test_dpo_is_twice_the_batch(void **unused)
{
    (void)unused;
    static const char *const frameworks[] = {"huggingface", "deepspeed"}, *const zero[] = {"0", "2", "3"};
    for (size_t f = 0; f < 2; f++)
        for (size_t z = f; z < 3; z++)
            for (int accumulates = 1; accumulates < 4; accumulates += 2) {
                char pairs[64], sequences[64];
                snprintf(pairs, sizeof pairs, ", zero: %s, mbs: 2, lora_rank: %d", zero[z], accumulates > 1 ? 8 : 0);
                snprintf(sequences, sizeof sequences, ", zero: %s, mbs: 4, lora_rank: %d", zero[z],
                         accumulates > 1 ? 8 : 0);
                struct posted p = post(frameworks[f], pairs, 16 * accumulates, "method: dpo, reference: precomputed");
                struct prediction t = tuned(frameworks[f], sequences, 32 * accumulates);
                assert_true(same(p.r->step_s, t.result->step_s));
                assert_true(same(p.r->memory.training, t.result->stages[0].needed_bytes));
                assert_true(same(p.r->sequences, 32 * accumulates) && same(p.r->reference_s, 0));
                drop(&t);
                lose(&p);
            }
}

/* A reference model is a forward pass of each microbatch, and its weights: whole, or shards under ZeRO-3. */
static void test_reference(void **unused)
{
    (void)unused;
    static const struct {
        const char *framework, *plan;
        double bytes; /* a parameter */
    } cases[] = {
        {"huggingface", ", zero: 0", 4}, /* autocast: weights of 4 bytes */
        {"deepspeed", ", zero: 2", 2},
        {"huggingface", ", zero: 3", 4.0 / 8},
        {"deepspeed", ", zero: 3", 2.0 / 8},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct posted one = post(cases[i].framework, cases[i].plan, 16, "method: dpo"),
                      two = post(cases[i].framework, cases[i].plan, 32, "method: dpo"),
                      redone = post(cases[i].framework, cases[i].plan, 16, "method: dpo");
        assert_int_equal(one.r->rl.reference, MAQ_RL_REFERENCE_MODEL);
        assert_close(one.r->memory.reference, cases[i].bytes * PARAMS, 1, cases[i].plan);
        /* the host is farther ahead behind the first */
        assert_close(two.r->reference_s, 2 * one.r->reference_s, 0.03 * two.r->reference_s, "twice the microbatches");
        assert_true(one.r->reference_s > 0.2 * one.r->train_s && one.r->reference_s < 0.5 * one.r->train_s);
        assert_true(same(one.r->reference_s, redone.r->reference_s));
        lose(&one);
        lose(&two);
        lose(&redone);
    }
    /* with adapters the reference is the policy without them: no second model */
    struct posted p = post("huggingface", ", zero: 0, lora_rank: 16", 16, "method: dpo");
    assert_int_equal(p.r->rl.reference, MAQ_RL_REFERENCE_ADAPTER);
    assert_true(p.r->reference_s > 0 && same(p.r->memory.reference, 0));
    lose(&p);
}

#define GRPO "method: grpo, max_completion_length: 512"

/* A colocated engine's generation is `maquette serve` of its requests at once: prompts that follow each other are computed once for each group. */
static void test_generation_is_a_run_of_the_engine(void **unused)
{
    (void)unused;
    for (int tp = 1; tp <= 4; tp *= 2) {
        enum { MOST = 64 };
        char rl[128], text[256];
        snprintf(rl, sizeof rl, GRPO ", vllm_tensor_parallel_size: %d, num_generations: 4", tp);
        struct posted p = post("deepspeed", ", zero: 3, mbs: 4", 64, rl);
        struct maq_loaded_job *engine;
        struct maq_serve_result *served;
        const uint32_t n = 64 * (uint32_t)tp / 8;
        const struct maq_serve_options options = {.engine = MAQ_ENGINE_VLLM,
                                                  .offline = true,
                                                  .gpu_memory_utilization = 0.3,
                                                  .max_num_seqs = (int32_t)n,
                                                  .max_num_batched_tokens = 4096};
        struct maq_request requests[MOST];
        uint64_t names[MOST];
        for (uint32_t i = 0; i < n; i++) {
            names[i] = 100 + i / 4;
            requests[i] = (struct maq_request){.prompt = 512, .output = 512, .n_prefix = 1, .prefix = &names[i]};
        }
        snprintf(text, sizeof text, "{model: llama-3.2-1b, cluster: 'h100-sxm:8', plan: {tp: %d}, workload: {gbs: 8}}",
                 tp);
        assert_int_equal(maq_job_parse(&engine, "engine", maq_str_of(text), NULL, 0, NULL), MAQ_OK);
        assert_int_equal(p.r->rollout.requests, n);
        assert_int_equal(maq_serve_run(&served, maq_job_get(engine), &options,
                                       &(const struct maq_requests){.at = requests, .n = n, .prefix_unit = 512}, NULL),
                         MAQ_OK);
        assert_true(same(p.r->generate_s, served->duration_s));
        assert_close(p.r->rollout.busy_share, 1, 1e-12, "engines that end together");
        assert_true(same(p.r->rollout.longest, 512));
        /* three of four prompts are found but for their last block */
        assert_close(p.r->rollout.prefix_hit_rate, 0.75 * 496 / 512, 0.001, "prompts of a group");
        for (uint32_t i = 0; i < 8 / (uint32_t)tp; i++)
            assert_true(same(p.r->rollout.ends_s[i], served->duration_s));
        maq_serve_free(served);
        maq_job_free(engine);
        lose(&p);
    }
}

/* generate(): its batch goes on until the last has ended, at the pace of the kernels or of the trainer's own passes over a token of each. */
static void test_generate_is_a_static_batch(void **unused)
{
    (void)unused;
    static const char *const lengths[] = {"", ", osl: 256, length_spread: 0.5", ", osl: 384, seed: 3"};
    for (size_t i = 0; i < MAQ_COUNT(lengths); i++) {
        char rl[256];
        snprintf(rl, sizeof rl, GRPO ", use_vllm: false%s", lengths[i]);
        struct posted p = post("huggingface", ", zero: 0, mbs: 4", 64, rl);
        const struct maq_rollout *o = &p.r->rollout;
        struct maq_loaded_job *engine;
        struct maq_serve_batch batch;
        const struct maq_serve_options options = {.engine = MAQ_ENGINE_VLLM, .offline = true, .enforce_eager = true};
        assert_int_equal(
            maq_job_parse(&engine, "engine",
                          MAQ_STR("{model: llama-3.2-1b, cluster: 'h100-sxm:8', plan: {tp: 1}, workload: {gbs: 8}}"),
                          NULL, 0, NULL),
            MAQ_OK);
        assert_int_equal(maq_serve_static(&batch, maq_job_get(engine), &options, 8, 512, (int64_t)o->longest, NULL),
                         MAQ_OK);
        assert_int_equal(o->batches, 1);
        assert_true(o->decode_s >= batch.decode_s && o->prefill_s >= batch.prefill_s);
        /* Llama 3.2 1B has 16 layers of more than ten operators, which the host of this profile issues one by one */
        assert_true(o->decode_s > (o->longest - 1) * 160 * 10e-6);
        assert_true(same(p.r->generate_s, o->prefill_s + o->decode_s) && same(p.r->old_s, 0));
        /* 16 layers keep 8 heads of 64 numbers twice, of 2 bytes */
        assert_close(p.r->memory.rollout, 8.0 * (512 + o->longest) * 16 * 8 * 64 * 2 * 2, 1, "its cache");
        maq_job_free(engine);
        lose(&p);
    }
}

/* Lengths are those of `maquette serve`: the mean, the spread, a limit; who ends early leaves room, and what is trained on is shorter. */
static void test_lengths(void **unused)
{
    (void)unused;
    struct posted all = post("deepspeed", ", zero: 3, mbs: 4", 256, GRPO),
                  half = post("deepspeed", ", zero: 3, mbs: 4", 256, GRPO ", osl: 256"),
                  drawn = post("deepspeed", ", zero: 3, mbs: 4", 256, GRPO ", osl: 256, length_spread: 0.5"),
                  cut = post("deepspeed", ", zero: 3, mbs: 4", 256, GRPO ", osl: 512, length_spread: 0.5"),
                  other = post("deepspeed", ", zero: 3, mbs: 4", 256, GRPO ", osl: 256, length_spread: 0.5, seed: 7");
    assert_true(same(half.r->rollout.mean, 256) && same(half.r->rollout.longest, 256));
    assert_true(half.r->generate_s < 0.6 * all.r->generate_s && half.r->train_s < all.r->train_s);
    assert_close(drawn.r->rollout.mean, 256, 15, "even between 128 and 384");
    assert_true(drawn.r->rollout.longest > 350 && drawn.r->rollout.longest <= 384);
    assert_true(drawn.r->rollout.busy_share < 1 && drawn.r->rollout.busy_share > 0.8);
    assert_true(drawn.r->generate_s > half.r->generate_s && drawn.r->generate_s < all.r->generate_s);
    assert_true(drawn.r->job->workload.seq == 512 + (int64_t)drawn.r->rollout.longest);
    assert_true(same(cut.r->rollout.longest, 512) && cut.r->rollout.mean < 480);
    assert_false(same(other.r->rollout.mean, drawn.r->rollout.mean));
    lose(&all);
    lose(&half);
    lose(&drawn);
    lose(&cut);
    lose(&other);
}

/* Of a static batch nothing is gained when some end early; of continuous batching most is, where the cache is too small for all. */
static void test_continuous_batching(void **unused)
{
    (void)unused;
#define CROWD GRPO ", osl: 256, length_spread: 1, num_generations: 2"
    struct posted one = post("deepspeed", ", zero: 3, mbs: 1", 512, CROWD ", vllm_gpu_memory_utilization: 0.045"),
                  own = post("deepspeed", ", zero: 3, mbs: 1", 512, CROWD ", use_vllm: false"),
                  full = post("deepspeed", ", zero: 3, mbs: 1", 512,
                              GRPO ", num_generations: 2, vllm_gpu_memory_utilization: 0.045");
    assert_true(own.r->rollout.longest > 500);
    assert_true(one.r->rollout.held < one.r->rollout.requests);
    /* half the tokens: a server with as many of them under way at all times would need half the time */
    assert_true(one.r->generate_s < 0.75 * full.r->generate_s && one.r->generate_s > 0.45 * full.r->generate_s);
    lose(&one);
    lose(&own);
    lose(&full);
}

/* KTO scores what is trained on and as much that is not; its two losses differ by that. */
static void test_kto(void **unused)
{
    (void)unused;
    struct posted kto = post("deepspeed", ", zero: 3, mbs: 4", 64, "method: kto"),
                  apo = post("deepspeed", ", zero: 3, mbs: 4", 64, "method: kto, loss_type: apo_zero_unpaired"),
                  before = post("deepspeed", ", zero: 3, mbs: 4", 64, "method: kto, reference: precomputed"),
                  dpo = post("deepspeed", ", zero: 3, mbs: 2", 32, "method: dpo");
    struct prediction t = tuned("deepspeed", ", zero: 3, mbs: 4", 64);
    assert_true(same(kto.r->train_s, t.result->step_s) && same(kto.r->train_s, dpo.r->train_s));
    assert_true(same(kto.r->reference_s, 2 * apo.r->reference_s) && same(apo.r->reference_s, dpo.r->reference_s));
    assert_true(same(apo.r->old_s, 0) && same(kto.r->old_s, apo.r->reference_s)); /* of the same sizes */
    assert_true(same(before.r->reference_s, 0) && same(before.r->old_s, kto.r->old_s));
    assert_true(same(kto.r->memory.reference, dpo.r->memory.reference) && same(before.r->memory.reference, 0));
    assert_true(same(kto.r->step_s, kto.r->train_s + kto.r->reference_s + kto.r->old_s));
    drop(&t);
    lose(&kto);
    lose(&apo);
    lose(&before);
    lose(&dpo);
}

#define PPO "method: ppo, max_completion_length: 512, reward_model: llama-3.2-1b"

/* PPO: a rollout for num_ppo_epochs steps, four models, two of them trained. */
static void test_ppo(void **unused)
{
    (void)unused;
    struct posted four = post("huggingface", ", zero: 0, mbs: 2", 64, PPO),
                  one = post("huggingface", ", zero: 0, mbs: 2", 64, PPO ", num_ppo_epochs: 1"),
                  parts = post("huggingface", ", zero: 0, mbs: 2", 64, PPO ", local_rollout_forward_batch_size: 4"),
                  small = post("huggingface", ", zero: 0, mbs: 2", 64, PPO ", value_model: gpt2"),
                  lora = post("huggingface", ", zero: 0, mbs: 2, lora_rank: 16", 64, PPO);
    struct prediction t = tuned("huggingface", ", zero: 0, mbs: 2", 64);
    const double narrower = (128256.0 - 1) * 2048; /* a head of one number, and none that is tied */
    assert_true(same(four.r->rollout.per_step, 0.25) && same(one.r->rollout.per_step, 1));
    assert_close(one.r->generate_s, 4 * four.r->generate_s, 1e-9, "a rollout for each step");
    assert_close(one.r->reference_s, 4 * four.r->reference_s, 1e-9, "scored once");
    assert_close(one.r->value_s, 4 * four.r->value_s, 1e-9, "and valued");
    assert_true(same(one.r->train_s, four.r->train_s) && same(one.r->sync_s, 0) && same(one.r->old_s, 0));
    assert_int_equal(parts.r->rollout.batches, 2);
    assert_true(parts.r->generate_s > 1.5 * four.r->generate_s); /* a token of four takes as long as one of eight */
    /* the policy's step is fine-tuning's; the value model's lacks the products with the vocabulary, the tied table stays */
    assert_true(same(four.r->train_s, t.result->step_s + four.r->value->step_s));
    assert_true(four.r->value->step_s < t.result->step_s && four.r->value->step_s > 0.6 * t.result->step_s);
    assert_close(four.r->memory.reward, 4 * (PARAMS + 2048), 1,
                 "weights of 4 bytes under autocast, the tied table among them");
    assert_true(four.r->reward_s < four.r->reference_s && narrower > 0);
    /* 16 bytes a parameter: weights, gradients, two moments */
    assert_true(four.r->memory.value > 16 * PARAMS && four.r->memory.training > 2 * 16 * PARAMS);
    assert_true(small.r->memory.value < 0.4 * four.r->memory.value);
    /* scores of 8 sequences of 512 tokens, 128,256 wide, in 32 bits, twice; and their cache */
    assert_close(four.r->memory.rollout, 2 * 8.0 * 512 * 128256 * 4 + 8.0 * 1024 * 16 * 8 * 64 * 2 * 2, 1, "scores");
    assert_int_equal(lora.r->rl.reference, MAQ_RL_REFERENCE_ADAPTER);
    assert_true(same(lora.r->memory.reference, 0) && same(lora.r->memory.value, four.r->memory.value));
    /* five kernels a token, one after another */
    assert_true(one.r->value_s > 512 * 5 * 1e-6);
    drop(&t);
    lose(&four);
    lose(&one);
    lose(&parts);
    lose(&small);
    lose(&lora);
}

/* With its adapters off the policy is the model below them. */
static void test_adapters_off(void **unused)
{
    (void)unused;
    struct posted lora = post("huggingface", ", zero: 0, lora_rank: 16", 16, "method: dpo"),
                  wide = post("huggingface", ", zero: 0, lora_rank: 256", 16, "method: dpo"),
                  four =
                      post("huggingface", ", zero: 0, lora_rank: 16, lora_base_quantization: nf4", 16, "method: dpo");
    assert_true(same(lora.r->reference_s, wide.r->reference_s) && wide.r->train_s > lora.r->train_s);
    assert_true(four.r->reference_s > lora.r->reference_s); /* weights of 4 bits are widened, adapters or not */
    struct posted on = post("huggingface", ", zero: 0, lora_rank: 16", 16, "method: kto");
    assert_true(on.r->old_s > on.r->reference_s / 2); /* the policy with its adapters takes longer */
    lose(&lora);
    lose(&wide);
    lose(&four);
    lose(&on);
}

static void test_parts_add_up(void **unused)
{
    (void)unused;
    static const char *const more[] = {"",
                                       ", beta: 0.1",
                                       ", num_iterations: 2",
                                       ", steps_per_generation: 8",
                                       ", reward_model: gpt2, vllm_importance_sampling_correction: false",
                                       ", vllm_mode: server, vllm_server: 'h100-sxm:4'"};
    for (size_t i = 0; i < MAQ_COUNT(more); i++) {
        char rl[256];
        snprintf(rl, sizeof rl, GRPO "%s", more[i]);
        struct posted p = post("deepspeed", ", zero: 3, mbs: 2", 64, rl);
        const struct maq_post_training_result *r = p.r;
        assert_close(r->step_s,
                     r->generate_s + r->old_s + r->reference_s + r->reward_s + r->value_s + r->train_s + r->sync_s,
                     1e-12, more[i]);
        assert_true((r->reference_s > 0) == (r->rl.beta > 0) && (r->reward_s > 0) == (r->rl.reward_model.len > 0));
        assert_close(r->memory.training, r->memory.policy + r->memory.reference + r->memory.reward + r->memory.engine,
                     1, more[i]);
        lose(&p);
    }
}

/* Completions that are trained on twice are generated half as often; a server takes no memory of the trainer; one that sleeps only then. */
static void test_properties(void **unused)
{
    (void)unused;
    struct posted once = post("deepspeed", ", zero: 3, mbs: 2", 64, GRPO),
                  twice = post("deepspeed", ", zero: 3, mbs: 2", 64, GRPO ", num_iterations: 2"),
                  asleep = post("deepspeed", ", zero: 3, mbs: 2", 64, GRPO ", vllm_enable_sleep_mode: true"),
                  eight =
                      post("deepspeed", ", zero: 3, mbs: 2", 64, GRPO ", vllm_mode: server, vllm_server: 'h100-sxm:8'"),
                  two =
                      post("deepspeed", ", zero: 3, mbs: 2", 64, GRPO ", vllm_mode: server, vllm_server: 'h100-sxm:2'");
    assert_true(same(once.r->rollout.per_step, 1) && same(twice.r->rollout.per_step, 0.5));
    assert_close(twice.r->generate_s, once.r->generate_s / 2, 1e-12, "half as often");
    assert_close(twice.r->sync_s, once.r->sync_s / 2, 1e-12, "and so are weights");
    assert_true(same(twice.r->train_s, once.r->train_s));
    assert_true(once.r->memory.engine > 0.25 * once.r->memory.capacity && same(asleep.r->memory.engine, 0));
    assert_true(asleep.r->memory.generating > asleep.r->memory.policy * 0.1 && same(eight.r->memory.engine, 0));
    assert_true(two.r->generate_s > eight.r->generate_s && eight.r->sync_s > once.r->sync_s);
    /* 2 bytes a parameter through a port of 50 GB/s */
    assert_true(eight.r->sync_s > 2 * PARAMS / 50e9);
    lose(&once);
    lose(&twice);
    lose(&asleep);
    lose(&eight);
    lose(&two);
}

static void test_refused(void **unused)
{
    (void)unused;
    static const struct {
        const char *plan, *rl, *says;
    } cases[] = {
        {"", "method: rloo", "unknown value 'rloo'"},
        {"", "reference: model", "the key 'method' is missing"},
        {"", "method: dpo, betta: 1", "betta"},
        {"", "method: dpo, num_generations: 4", "nothing is generated"},
        {"", "method: dpo, reference: adapter", "all parameters are trained"},
        {", pp: 2", "method: dpo", "no pipelines"},
        {"", GRPO ", reference: model", "has no effect with beta 0"},
        {"", GRPO ", beta: 1, reference: precomputed", "not generated yet"},
        {"", GRPO ", max_prompt_length: 256", "seq_length 1024 is prompt and completion"},
        {"", "method: grpo, max_completion_length: 1024", "seq_length 1024 is prompt and completion"},
        {"", GRPO ", num_generations: 7", "no multiple of num_generations 7"},
        {"", GRPO ", use_vllm: false, vllm_mode: server", "no effect without use_vllm"},
        {", cp: 2", GRPO ", use_vllm: false", "no context parallelism (cp 2)"},
        {"", GRPO ", osl: 513", "max_completion_length is 512"},
        {"", GRPO ", osl: 100, requests: some.csv", "or drawn"},
        {"", GRPO ", requests: nosuch.csv", "nosuch.csv"},
        {"", GRPO ", length_spread: 2", "length_spread"},
        {"", GRPO ", loss_type: kto", "no effect with method grpo"},
        {"", "method: kto, osl: 4", "nothing is generated"},
        {"", "method: kto, reference: none", "held against a reference"},
        {"", "method: dpo, loss_type: kto", "no effect with method dpo"},
        {"", "method: ppo, max_completion_length: 512", "without a reward model"},
        {"", PPO ", use_vllm: true", "generates with its own model"},
        {"", PPO ", num_mini_batches: 3", "does not divide"},
        {"", PPO ", reference: none", "held against a reference"},
        {"", PPO ", value_model: nosuch", "no model and no file is named 'nosuch'"},
        {"", GRPO ", vllm_mode: server", "without the GPUs of the server"},
        {"", GRPO ", vllm_server: 'h100-sxm:8'", "no effect with vllm_mode colocate"},
        {"", GRPO ", vllm_tensor_parallel_size: 3", "does not divide 8 GPUs"},
        {"", GRPO ", vllm_gpu_memory_utilization: 0.01", "vllm_gpu_memory_utilization"},
        {"", GRPO ", reward_model: nosuch", "no model and no file is named 'nosuch'"},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        char text[512];
        struct maq_loaded_job *box;
        struct maq_post_training_result *r;
        struct maq_diag *diag = maq_diag_new();
        snprintf(
            text, sizeof text,
            "model: llama-3.2-1b\ncluster: h100-sxm:8\nplan: {mbs: 1%s}\nworkload: {seq: 1024, gbs: 64}\nrl: {%s}\n",
            cases[i].plan, cases[i].rl);
        assert_int_equal(maq_job_parse(&box, "refused", maq_str_of(text), NULL, 0, diag), MAQ_OK);
        enum maq_status status = maq_post_training_predict(&r, box, diag);
        char *told = maq_diag_format(diag, 0, false);
        if (status == MAQ_OK || !strstr(told, cases[i].says))
            fail_msg("%s\n%s", text, told);
        free(told);
        maq_job_free(box);
        maq_diag_free(diag);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dpo_is_twice_the_batch),
        cmocka_unit_test(test_reference),
        cmocka_unit_test(test_adapters_off),
        cmocka_unit_test(test_generation_is_a_run_of_the_engine),
        cmocka_unit_test(test_generate_is_a_static_batch),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_continuous_batching),
        cmocka_unit_test(test_kto),
        cmocka_unit_test(test_ppo),
        cmocka_unit_test(test_parts_add_up),
        cmocka_unit_test(test_properties),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
