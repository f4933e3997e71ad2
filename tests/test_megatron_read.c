/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_megatron_read.c - command lines of Megatron-LM scripts as jobs: what single arguments become, that what maquette
 * writes for Megatron-LM reads as the same job, what is refused and what is warned of.
 */
#include "maquette/job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "maquette/train.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define WORDS_MAX 128

struct line {
    char *text;
    const char *words[WORDS_MAX];
    size_t n;
};

/* Words between blanks and line ends; from `#` to the end of a line is a comment; quotes as the shell takes them away. */
static void cut(struct line *l, const char *text)
{
    bool comment = false, fresh = true, quoted = false;
    char *out = l->text = calloc(strlen(text) + 2, 1);
    assert_non_null(out);
    l->n = 0;
    for (const char *c = text; *c; c++) {
        comment = *c == '#' || (comment && *c != '\n');
        if (*c == '"') {
            quoted = !quoted;
            continue;
        }
        if (comment || (!quoted && (*c == ' ' || *c == '\n'))) {
            *out = '\0';
            out += !fresh;
            fresh = true;
            continue;
        }
        if (fresh) {
            assert_true(l->n < WORDS_MAX);
            l->words[l->n++] = out;
        }
        fresh = false;
        *out++ = *c;
    }
}

static struct maq_megatron *read_line(struct line *l, const char *text, bool open, struct maq_diag *diag)
{
    struct maq_megatron *m = NULL;
    cut(l, text);
    return maq_megatron_read(&m, l->words, l->n, open, diag) == MAQ_OK ? m : NULL;
}

/* The last value of a path, as the job will have it. */
static const char *value_of(const struct maq_megatron *m, const char *path)
{
    for (size_t i = m->n_overrides; i-- > 0;)
        if (strcmp(m->overrides[i].path, path) == 0)
            return m->overrides[i].value;
    return NULL;
}

static void test_arguments(void **state)
{
    static const struct {
        const char *line, *path, *value; /* NULL = not set */
    } cases[] = {
        {"torchrun --nproc-per-node 8 a/pretrain_gpt.py --num-layers 24", "model.num_layers", "24"},
        {"torchrun --nproc-per-node 8 a/pretrain_gpt.py --num-layers 24", "name", "a/pretrain_gpt.py"},
        {"--num-layers 24 --num-layers 12", "model.num_layers", "12"},
        {"--ffn-hidden-size=512", "model.ffn_hidden_size", "512"},
        {"--swiglu", "model.swiglu", "true"},
        {"--use-rotary-position-embeddings", "model.position_embedding_type", "rope"},
        {"--moe-layer-freq ([0]*3+[1]*2)", "model.moe_layer_freq", "[0,0,0,1,1]"},
        {"pretrain_mamba.py --hybrid-layer-pattern M-M*", "model.num_layers", "4"},
        {"--hybrid-layer-pattern M-M* --num-layers 8", "model.num_layers", "4"},
        {"--hybrid-override-pattern MEM*", "model.hybrid_override_pattern", "MEM*"},
        {"--hybrid-layer-pattern M-M-|M-M*-/MM/MM", "model.num_layers", "9"},
        {"--hybrid-layer-pattern M-M-|M-M*-/MM/MM", "model.hybrid_override_pattern", "M-M-M-M*-"},
        {"--hybrid-layer-pattern M-M-|M-M*-/MM/MM", "model.mtp_hybrid_override_pattern", "MM"},
        {"--hybrid-layer-pattern M-M-|M-M*-/MM/MM", "model.mtp_num_layers", "2"},
        {"--hybrid-layer-pattern M-M-|M-M*-/MM/MM", "plan.pipeline_model_parallel_layout", "4,5"},
        {"--hybrid-layer-pattern M-|M*|M-|M* --pipeline-model-parallel-size 2",
         "plan.virtual_pipeline_model_parallel_size", "2"},
        {"--hybrid-layer-pattern M-|M* --pipeline-model-parallel-size 2", "plan.virtual_pipeline_model_parallel_size",
         NULL},
        {"--enable-zero-bubble --pipeline-model-parallel-size 8 --zero-bubble-max-pending-backward 16",
         "plan.pipeline_schedule", "zb-auto"},
        {"--enable-zero-bubble --pipeline-model-parallel-size 8 --zero-bubble-max-pending-backward 16",
         "plan.zero_bubble_max_pending_backward", "16"},
        {"--enable-zero-bubble --pipeline-model-parallel-size 8 --zero-bubble-max-pending-backward auto",
         "plan.zero_bubble_max_pending_backward", NULL},
        {"--zero-bubble-adaptive-memory-limit-percentile 70", "plan.zero_bubble_adaptive_memory_limit_percentile",
         "70"},
        {"--enable-zero-bubble", "plan.pipeline_schedule", NULL}, /* one stage */
        {"--enable-zero-bubble --enable-optimizer-post-validation --pipeline-model-parallel-size 8",
         "plan.enable_optimizer_post_validation", "true"},
        {"--enable-optimizer-post-validation", "plan.enable_optimizer_post_validation", NULL},
        {"--zero-bubble-v-schedule --pipeline-model-parallel-size 8", "plan.pipeline_schedule", "zb-v"},
        {"--hierarchical-context-parallel-sizes 2 4", "plan.hierarchical_cp_a2a_size", "2"},
        {"--recompute-granularity selective --recompute-modules", "plan.recompute_granularity", "none"},
        {"--recompute-modules  mlp", "plan.recompute_modules", "[mlp]"},
        {"--vocab-file a.json --num-layers 2", "model.vocab_size", "50257"},
        {"--moe-layer-freq [0,1]*2", "model.moe_layer_freq", "[0,1,0,1]"},
        {"--moe-layer-freq 2", "model.moe_layer_freq", "2"},
        {"--experimental-attention-variant gated_delta_net --linear-attention-freq ([1]*2+[0])",
         "model.linear_attention_freq", "[1,1,0]"},
        {"--linear-num-value-heads 8", "model.linear_num_value_heads", "8"},
        {"--vocab-file vocab.txt --merge-file merges.txt --num-layers 2", "model.vocab_size", "50257"},
        {"--swiglu", "model.make_vocab_size_divisible_by", "128"},
        {"--tensor-model-parallel-size 4", "model.make_vocab_size_divisible_by", "512"},
        {"--make-vocab-size-divisible-by 1 --tensor-model-parallel-size 4", "model.make_vocab_size_divisible_by", "4"},
        {"--vocab-size 1000", "model.vocab_size", "1000"},
        {"--vocab-size 1000 --tokenizer-type NullTokenizer", "model.vocab_size", "1001"},
        {"--padded-vocab-size 1000 --tensor-model-parallel-size 4", "model.vocab_size", "1000"},
        {"--padded-vocab-size 1000 --tensor-model-parallel-size 4", "model.make_vocab_size_divisible_by", "1"},
        {"--tokenizer-type GPT2BPETokenizer --vocab-file a.json", "model.vocab_size", "50257"},
        {"--tokenizer-type Llama2Tokenizer --tokenizer-model tokenizer.model", "model.vocab_size", NULL},
        {"--tokenizer-type HuggingFaceTokenizer --tokenizer-model no/such", "model.vocab_size", NULL},
        {"--swiglu", "plan.precision", "fp32"},
        {"--bf16", "plan.precision", "bf16"},
        {"--bf16 --fp8-format hybrid", "plan.precision", "fp8-delayed"},
        {"--bf16 --fp8-format e4m3 --fp8-recipe blockwise", "plan.precision", "fp8-blockwise"},
        {"--bf16 --fp8-recipe tensorwise", "plan.precision", "bf16"},
        {"--bf16 --fp4-format e2m1", "plan.precision", "nvfp4"},
        {"--first-last-layers-bf16", "plan.first_last_layers_bf16", "true"},
        {"--num-layers-at-end-in-bf16 4", "plan.num_layers_at_end_in_bf16", "4"},
        {"--fp8-output-proj", "plan.fp8_output_proj", "true"},
        {"--swiglu", "plan.data_parallel_sharding_strategy", "no_shard"},
        {"--use-distributed-optimizer", "plan.data_parallel_sharding_strategy", "optim"},
        {"--optimizer dist_muon", "plan.data_parallel_sharding_strategy", "optim"},
        {"--optimizer dist_muon", "plan.optimizer", "muon"},
        {"--optimizer muon --muon-momentum 0.95 --muon-num-ns-steps 3", "plan.muon_num_ns_steps", "3"},
        {"--optimizer sgd", "plan.optimizer", "sgd"},
        {"--use-torch-fsdp2", "plan.data_parallel_sharding_strategy", "optim_grads_params"},
        {"--use-torch-fsdp2", "plan.overlap_grad_reduce", "true"}, /* PyTorch's, on streams of its own */
        {"--use-torch-fsdp2", "plan.overlap_param_gather", "true"},
        {"--use-torch-fsdp2 --torch-fsdp2-no-reshard-after-forward", "plan.reshard_after_forward", "false"},
        {"--data-parallel-sharding-strategy optim_grads", "plan.data_parallel_sharding_strategy", "no_shard"},
        {"--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads", "plan.data_parallel_sharding_strategy",
         "optim_grads"},
        {"--swiglu", "plan.overlap_grad_reduce", "false"},
        {"--overlap-grad-reduce", "plan.overlap_grad_reduce", "true"},
        {"--grad-reduce-in-bf16", "plan.grad_reduce_dtype", "bf16"},
        {"--grad-reduce-in-bf16", "plan.main_grads_dtype", "bf16"},
        {"--swiglu", "plan.sequence_parallel", "false"},
        {"--sequence-parallel", "plan.sequence_parallel", "true"},
        {"--num-layers 24 --pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 3",
         "plan.virtual_pipeline_model_parallel_size", "2"},
        {"--num-virtual-stages-per-pipeline-rank 3", "plan.virtual_pipeline_model_parallel_size", "3"},
        {"--hierarchical-context-parallel-sizes 4 2", "plan.hierarchical_cp_a2a_size", "4"},
        {"--recompute-activations", "plan.recompute_granularity", "selective"},
        {"--cuda-graph-scope attn moe_router", "plan.cuda_graph_scope", "[attn,moe_router]"},
        {"--cuda-graph-impl transformer_engine --cuda-graph-modules attn", "plan.cuda_graph_scope", "[attn]"},
        {"--external-cuda-graph --cuda-graph-scope attn", "plan.enable_cuda_graph", NULL},
        {"--enable-cuda-graph", "plan.enable_cuda_graph", "true"},
        {"--external-cuda-graph", "plan.enable_cuda_graph", "true"},
        {"--cuda-graph-impl full_iteration", "plan.enable_cuda_graph", "true"},
        {"--cuda-graph-impl none", "plan.enable_cuda_graph", NULL},
        {"--offload-modules core_attn attn_proj", "plan.offload_modules", "[core_attn,attn_proj]"},
        {"--fine-grained-activation-offloading", "plan.fine_grained_activation_offloading", "true"},
        {"--recompute-modules mlp core_attn", "plan.recompute_modules", "[mlp,core_attn]"},
        {"--moe-token-dispatcher-type flex", "plan.moe_token_dispatcher_type", "deepep"},
        {"--moe-token-dispatcher-type flex --moe-enable-deepep", "plan.moe_token_dispatcher_type", "deepep"},
        {"--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend hybridep", "plan.moe_token_dispatcher_type",
         "hybridep"},
        {"--moe-flex-dispatcher-num-sms 24", "plan.moe_flex_dispatcher_num_sms", "24"},
        {"--moe-hybridep-num-sms 32", "plan.moe_flex_dispatcher_num_sms", "32"},
        {"--moe-token-dispatcher-type allgather", "plan.moe_token_dispatcher_type", "allgather"},
        {"--attention-backend local", "plan.attention_backend", "unfused"},
        {"--seq-length 4096", "workload.seq_length", "4096"},
        {"--global-batch-size 64", "workload.global_batch_size", "64"},
        {"--micro-batch-size 2", "plan.micro_batch_size", "2"},
        {"--lr 1e-4", "model.lr", NULL},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct maq_diag *diag = maq_diag_new();
        struct line l;
        char line[512];
        bool whole = strncmp(cases[i].path, "model.", 6) != 0 || strstr(cases[i].line, "--num-layers ");
        snprintf(line, sizeof line, "%s%s", cases[i].line,
                 whole ? "" : " --num-layers 2"); /* or it describes no model */
        struct maq_megatron *m = read_line(&l, line, false, diag);
        if (!m)
            fail_msg("%s: refused", cases[i].line);
        const char *value = value_of(m, cases[i].path);
        if (!value != !cases[i].value || (value && strcmp(value, cases[i].value) != 0))
            fail_msg("%s: %s is %s", cases[i].line, cases[i].path, value ? value : "not set");
        assert_int_equal(maq_diag_count(diag), 0);
        maq_megatron_free(m);
        free(l.text);
        maq_diag_free(diag);
    }
    (void)state;
}

static void test_refused(void **state)
{
    static const char *const lines[] = {
        "stray",
        "--num-layers",
        "--num-layers none",
        "--num-layers 0",
        "--bf16 yes",
        "--use-distributed-optimizer 1",
        "--hidden-size 1 2",
        "--num-layers 2 --bert-no-binary-head",
        "pretrain_t5.py --encoder-num-layers 2",
        "--num-layers 24 --vocab-file data/vocab.txt",
        "--num-layers 24 --img-h 336",
        "--num-layers 32 --model-provider llava_vlm",
        "--num-layers 4 --export-kd-teacher-load teacher",
        "--linear-attention-freq [0",
        "--moe-layer-freq [0",
        "--moe-layer-freq []",
        "--moe-layer-freq [1]*99999999999999999999",
        "--moe-layer-freq [1]*x",
        "--moe-layer-freq f([1])",
        "--moe-layer-freq [1,1,1,1,1,1,1,1]*65536",
        "--make-vocab-size-divisible-by none",
        "--enable-zero-bubble --pipeline-model-parallel-size 8 --zero-bubble-max-pending-backward some",
        "--zero-bubble-v-schedule --pipeline-model-parallel-size 8 --zero-bubble-v-schedule-mem-setup half",
        "--num-layers 24 --num-layers-per-virtual-pipeline-stage 5",
        "--num-layers-per-virtual-pipeline-stage 5",
        "--pipeline-model-parallel-size 9999999999 --num-layers 4 --num-layers-per-virtual-pipeline-stage 9999999999",
    };
    for (size_t i = 0; i < COUNT(lines); i++) {
        struct maq_diag *diag = maq_diag_new();
        struct line l;
        if (read_line(&l, lines[i], false, diag))
            fail_msg("%s: taken", lines[i]);
        assert_true(maq_diag_count(diag) > 0);
        free(l.text);
        maq_diag_free(diag);
    }
    (void)state;
}

/* Which model it is, something else says: a line without --num-layers says nothing of it, nor one whose words on it are dropped. */
static void test_another_model(void **state)
{
    static const char *const lines[] = {
        "--tensor-model-parallel-size 8 --swiglu --make-vocab-size-divisible-by 64 --bf16",
        "--num-layers 24 --hidden-size 1024 --swiglu --bf16"};
    (void)state;
    for (size_t i = 0; i < COUNT(lines); i++) {
        struct maq_diag *diag = maq_diag_new();
        struct line l;
        struct maq_megatron *m = read_line(&l, lines[i], false, diag);
        assert_non_null(m);
        assert_int_equal(value_of(m, "model.num_layers") != NULL, i == 1);
        if (i == 1)
            maq_megatron_drop_model(m);
        for (size_t k = 0; k < m->n_overrides; k++)
            assert_true(strncmp(m->overrides[k].path, "model", strlen("model")) != 0);
        assert_string_equal(value_of(m, "plan.precision"), "bf16");
        maq_megatron_free(m);
        free(l.text);
        maq_diag_free(diag);
    }
}

/* "--num-layers 32 ..." copied from somewhere: 32 is above 0, and it is not the only word. */
static void test_more_words_than_one(void **state)
{
    struct maq_diag *diag = maq_diag_new();
    struct line l;
    (void)state;
    assert_false(read_line(&l, "--num-layers 32 ...", false, diag));
    assert_non_null(strstr(maq_diag_at(diag, 0)->msg.ptr, "takes one number, and there are more words behind it"));
    free(l.text);
    maq_diag_free(diag);
}

static void test_unknown_is_named(void **state)
{
    struct maq_diag *diag = maq_diag_new();
    struct line l;
    struct maq_megatron *m =
        read_line(&l, "--swiglu --foo 1 2 --train-iters 5 --bar --overlap-gradreduce --tp-com-overlap", false, diag);
    assert_non_null(m);
    char *text = maq_diag_format(diag, 0, false);
    assert_non_null(strstr(text, "--foo, --bar, --overlap-gradreduce (--overlap-grad-reduce?), "
                                 "--tp-com-overlap (--tp-comm-overlap?)"));
    assert_null(strstr(text, "train-iters"));
    free(text);
    maq_megatron_free(m);
    free(l.text);
    maq_diag_free(diag);
    (void)state;
}

/* Experts of a line are padded where it says so, and the word is known. */
static void test_capacity(void **state)
{
    static const char *const words[] = {"", " --moe-pad-expert-input-to-capacity"};
    (void)state;
    for (int pads = 0; pads < 2; pads++) {
        struct maq_diag *diag = maq_diag_new();
        struct line l;
        char text[256];
        snprintf(text, sizeof text, "--num-experts 8 --moe-expert-capacity-factor 1.5%s", words[pads]);
        struct maq_megatron *m = read_line(&l, text, false, diag);
        assert_non_null(m);
        assert_int_equal(maq_diag_count(diag), 0);
        const char *value = NULL; /* the last one counts */
        for (size_t i = 0; i < m->n_overrides; i++)
            if (strcmp(m->overrides[i].path, "plan.moe_pad_expert_input_to_capacity") == 0)
                value = m->overrides[i].value;
        assert_string_equal(value, pads ? "true" : "false");
        maq_megatron_free(m);
        free(l.text);
        maq_diag_free(diag);
    }
}

/* What a script does beside the step that is predicted, it is told. */
static void test_besides(void **state)
{
    struct maq_diag *diag = maq_diag_new();
    struct line l;
    (void)state;
    struct maq_megatron *m =
        read_line(&l, "train_rl.py --num-layers 4 --perform-rl-step --model-provider gpt", false, diag);
    assert_non_null(m);
    assert_int_equal(maq_diag_errors(diag), 0);
    assert_int_equal(maq_diag_at(diag, 0)->code, 1323);
    maq_megatron_free(m);
    free(l.text);
    maq_diag_free(diag);
}

/* The tokenizer is not opened: the model that it is of says how many tokens there are, and that this was so is said. */
static void test_vocabulary_of_a_model(void **state)
{
    struct maq_diag *diag = maq_diag_new();
    struct line l;
    struct maq_megatron *m = read_line(
        &l, "--num-layers 32 --tokenizer-type HuggingFaceTokenizer --tokenizer-model meta-llama/Llama-3.1-8B-Instruct",
        false, diag);
    assert_non_null(m);
    assert_string_equal(value_of(m, "model.vocab_size"), "128256");
    char *text = maq_diag_format(diag, 0, false);
    assert_non_null(strstr(text, "note: the vocabulary is taken to be that of the model meta-llama"));
    free(text);
    maq_megatron_free(m);
    free(l.text);
    maq_diag_free(diag);
    (void)state;
}

static void test_open_leaves_the_search_free(void **state)
{
    struct maq_diag *diag = maq_diag_new();
    struct line l;
    struct maq_megatron *m =
        read_line(&l,
                  "--tensor-model-parallel-size 4 --micro-batch-size 2 --bf16 --num-layers 4 --sequence-parallel "
                  "--fine-grained-activation-offloading --offload-modules core_attn",
                  true, diag);
    assert_non_null(m);
    assert_null(value_of(m, "plan.tensor_model_parallel_size"));
    assert_null(value_of(m, "plan.micro_batch_size"));
    assert_null(value_of(m, "plan.sequence_parallel"));
    assert_null(value_of(m, "plan.fine_grained_activation_offloading"));
    assert_null(value_of(m, "plan.offload_modules"));
    assert_string_equal(value_of(m, "plan.precision"), "bf16");
    assert_string_equal(value_of(m, "model.num_layers"), "4");
    maq_megatron_free(m);
    free(l.text);
    maq_diag_free(diag);
    (void)state;
}

static double step_of(const struct maq_loaded_job *box, struct maq_diag *diag)
{
    struct maq_train_result *result;
    assert_int_equal(maq_train_predict(&result, maq_job_get(box), diag), MAQ_OK);
    double step = result->step_s;
    maq_train_result_free(result);
    return step;
}

/* What maquette writes for Megatron-LM, read back, is the same job: to the last digit of its step. */
static void test_round_trip(void **state)
{
    static const char *const plans[] = {
        "model: llama-3.1-8b\ncluster: h100-sxm:8 x 2\nplan: {tp: 2, sp: true, mbs: 1}",
        "model: llama-3.1-8b\ncluster: h100-sxm:8 x 2\nplan: {tp: 2, sp: false, zero: optim_grads_params}",
        "model: llama-3.1-8b\ncluster: h100-sxm:8 x 2\nplan: {pp: 4, vp: 2, recompute_granularity: full, precision: "
        "fp8-current}",
        "model: llama-3.1-70b\ncluster: h100-sxm:8 x 8\nplan: {tp: 4, pp: 4, cp: 2, recompute_granularity: selective, "
        "recompute_modules: [mlp, layernorm], sharding: no_shard}",
        "model: llama-3.1-8b\ncluster: b200:8\nplan: {tp: 2, precision: mxfp8, first_last_layers_bf16: true, "
        "num_layers_at_start_in_bf16: 0, num_layers_at_end_in_bf16: 4, fp8_output_proj: true}",
        "model: llama-3.1-70b\ncluster: h100-sxm:8 x 8\nplan: {tp: 8, pp: 2, layout: \"Et*39|t*41L\", "
        "rank_order: tp-cp-ep-pp-dp}",
        "model: qwen3-30b-a3b\ncluster: h100-sxm:8 x 4\nplan: {ep: 8, dispatcher: deepep, mbs: 2, "
        "fine_grained_activation_offloading: true, offload_modules: [core_attn, attn_proj, moe_act]}",
        "model: mixtral-8x7b\ncluster: a100-80gb:8 x 4\nplan: {tp: 2, ep: 4, pp: 2, capacity_factor: 1.5, "
        "recompute_granularity: full, recompute_method: block, recompute_num_layers: 4}",
    };
    for (size_t i = 0; i < COUNT(plans); i++) {
        char text[1024];
        struct maq_diag *diag = maq_diag_new();
        struct maq_loaded_job *written, *read;
        struct line l;
        const char *cluster = strstr(plans[i], "cluster"), *plan = strstr(plans[i], "plan:");
        (void)snprintf(text, sizeof text, "%s\nframework: megatron-lm\nworkload: {gbs: 64, seq: 4096}\n", plans[i]);
        if (maq_job_parse(&written, "written", maq_str_of(text), NULL, 0, diag) != MAQ_OK)
            fail_msg("%s: %s", plans[i], maq_diag_format(diag, 0, false));
        char *arguments = maq_job_megatron_arguments(maq_job_get(written));
        struct maq_megatron *m = read_line(&l, arguments, false, diag);
        assert_non_null(m);
        (void)snprintf(text, sizeof text, "%.*s", (int)(plan - cluster), cluster);
        size_t n = 0; /* the model stays a name: without what the arguments say of one */
        for (size_t k = 0; k < m->n_overrides; k++)
            if (strncmp(m->overrides[k].path, "model.", 6) != 0)
                m->overrides[n++] = m->overrides[k];
        char model[64];
        (void)snprintf(model, sizeof model, "%.*s", (int)(strchr(plans[i], '\n') - plans[i]) - 7, plans[i] + 7);
        struct maq_override *all = calloc(n + 1, sizeof *all);
        memcpy(all, m->overrides, n * sizeof *all);
        all[n] = (struct maq_override){"--model", "model", model};
        if (maq_job_parse(&read, "read", maq_str_of(text), all, n + 1, diag) != MAQ_OK)
            fail_msg("%s: %s", arguments, maq_diag_format(diag, 0, false));
        double a = step_of(written, diag), b = step_of(read, diag);
        if (a != b)
            fail_msg("%s: %.9g s written, %.9g s read\n%s", plans[i], a, b, arguments);
        assert_int_equal(maq_diag_count(diag), 0);
        free(all);
        free(arguments);
        free(l.text);
        maq_megatron_free(m);
        maq_job_free(written);
        maq_job_free(read);
        maq_diag_free(diag);
    }
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_another_model),
        cmocka_unit_test(test_more_words_than_one),
        cmocka_unit_test(test_unknown_is_named),
        cmocka_unit_test(test_capacity),
        cmocka_unit_test(test_besides),
        cmocka_unit_test(test_vocabulary_of_a_model),
        cmocka_unit_test(test_open_leaves_the_search_free),
        cmocka_unit_test(test_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
