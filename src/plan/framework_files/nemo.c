/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nemo.c - the YAML of NVIDIA NeMo 1 (megatron_gpt_config.yaml and the training configurations of NeMo-Framework-Launcher).
 *
 * Its `model` has Megatron-LM's settings under names of which most are Megatron-LM's too: they are put into the words of its command line, and
 * plan/megatron says what those mean. Names and meanings are those of NeMo-Framework-Launcher 26e42fa (April 2025) and of NeMo's
 * megatron_gpt_model.py and megatron_base_model.py. NeMo 2: nemo2.c.
 *
 * ${.name} is another value of the model; ${multiply:4, ${.hidden_size}} is what Megatron-LM has without a value for ffn_hidden_size. Other
 * references are not followed.
 */
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "plan/framework_files/megatron_words.h"

enum form {
    VALUE,   /* --word and the value */
    IF_ON,   /* --word where the value is true */
    IF_OFF,  /* where it is false */
    IF_TEXT, /* --word and `text` where the value is `when` */
};

static const struct argument {
    const char *key;
    enum form form;
    const char *word, *when, *text;
} arguments[] = {
    {"model.micro_batch_size", VALUE, "--micro-batch-size", NULL, NULL},
    {"model.global_batch_size", VALUE, "--global-batch-size", NULL, NULL},
    {"model.tensor_model_parallel_size", VALUE, "--tensor-model-parallel-size", NULL, NULL},
    {"model.pipeline_model_parallel_size", VALUE, "--pipeline-model-parallel-size", NULL, NULL},
    {"model.virtual_pipeline_model_parallel_size", VALUE, "--num-virtual-stages-per-pipeline-rank", NULL, NULL},
    {"model.context_parallel_size", VALUE, "--context-parallel-size", NULL, NULL},
    {"model.expert_model_parallel_size", VALUE, "--expert-model-parallel-size", NULL, NULL},
    {"model.encoder_seq_length", VALUE, "--seq-length", NULL, NULL},
    {"model.max_position_embeddings", VALUE, "--max-position-embeddings", NULL, NULL},
    {"model.num_layers", VALUE, "--num-layers", NULL, NULL},
    {"model.hidden_size", VALUE, "--hidden-size", NULL, NULL},
    {"model.ffn_hidden_size", VALUE, "--ffn-hidden-size", NULL, NULL},
    {"model.num_attention_heads", VALUE, "--num-attention-heads", NULL, NULL},
    {"model.num_query_groups", VALUE, "--num-query-groups", NULL, NULL},
    {"model.kv_channels", VALUE, "--kv-channels", NULL, NULL},
    {"model.hidden_dropout", VALUE, "--hidden-dropout", NULL, NULL},
    {"model.attention_dropout", VALUE, "--attention-dropout", NULL, NULL},
    {"model.normalization", IF_TEXT, "--normalization", "rmsnorm", "RMSNorm"},
    {"model.activation", IF_TEXT, "--swiglu", "swiglu", NULL},
    {"model.activation", IF_TEXT, "--swiglu", "fast-swiglu", NULL},
    {"model.activation", IF_TEXT, "--squared-relu", "squared-relu", NULL},
    {"model.bias", IF_OFF, "--disable-bias-linear", NULL, NULL},
    {"model.position_embedding_type", IF_TEXT, "--position-embedding-type", "rope", "rope"},
    {"model.share_embeddings_and_output_weights", IF_OFF, "--untie-embeddings-and-output-weights", NULL, NULL},
    {"model.make_vocab_size_divisible_by", VALUE, "--make-vocab-size-divisible-by", NULL, NULL},
    {"model.override_vocab_size", VALUE, "--vocab-size", NULL, NULL},
    {"model.tokenizer.type", IF_TEXT, "--tokenizer-type", "GPT2BPETokenizer", "GPT2BPETokenizer"},
    {"model.num_moe_experts", VALUE, "--num-experts", NULL, NULL},
    {"model.moe_router_topk", VALUE, "--moe-router-topk", NULL, NULL},
    {"model.sequence_parallel", IF_ON, "--sequence-parallel", NULL, NULL},
    {"model.activations_checkpoint_granularity", VALUE, "--recompute-granularity", NULL, NULL},
    {"model.activations_checkpoint_method", VALUE, "--recompute-method", NULL, NULL},
    {"model.activations_checkpoint_num_layers", VALUE, "--recompute-num-layers", NULL, NULL},
    {"model.gradient_accumulation_fusion", IF_OFF, "--no-gradient-accumulation-fusion", NULL, NULL},
    {"model.masked_softmax_fusion", IF_OFF, "--no-masked-softmax-fusion", NULL, NULL},
    {"model.ub_tp_comm_overlap", IF_ON, "--tp-comm-overlap", NULL, NULL},
    {"model.use_flash_attention", IF_ON, "--use-flash-attn", NULL, NULL},
    {"model.optim.name", IF_TEXT, "--use-distributed-optimizer", "mcore_distributed_optim", NULL},
    {"model.optim.name", IF_TEXT, "--use-distributed-optimizer", "distributed_fused_adam", NULL},
    {"model.optim.overlap_param_sync", IF_ON, "--overlap-param-gather", NULL, NULL},
    {"model.optim.overlap_grad_sync", IF_ON, "--overlap-grad-reduce", NULL, NULL},
    {"model.cross_entropy_loss_fusion", IF_ON, "--cross-entropy-loss-fusion", NULL, NULL},
    {"model.bias_activation_fusion", IF_OFF, "--no-bias-swiglu-fusion", NULL, NULL},
    {"model.bias_dropout_add_fusion", IF_OFF, "--no-bias-dropout-fusion", NULL, NULL},
    {"model.apply_rope_fusion", IF_OFF, "--no-rope-fusion", NULL, NULL},
    {"model.overlap_p2p_comm", IF_OFF, "--no-overlap-p2p-communication", NULL, NULL},
    {"model.moe_token_dispatcher_type", VALUE, "--moe-token-dispatcher-type", NULL, NULL},
    {"model.moe_expert_capacity_factor", VALUE, "--moe-expert-capacity-factor", NULL, NULL},
    {"model.moe_pad_expert_input_to_capacity", IF_ON, "--moe-pad-expert-input-to-capacity", NULL, NULL},
    {"model.qkv_bias", IF_ON, "--add-qkv-bias", NULL, NULL},
    {"model.enable_cuda_graph", IF_ON, "--enable-cuda-graph", NULL, NULL},
    {"model.use_tp_pp_dp_mapping", IF_ON, "--use-tp-pp-dp-mapping", NULL, NULL},
    {"model.rotary_percentage", VALUE, "--rotary-percent", NULL, NULL},
    {"trainer.precision", IF_TEXT, "--bf16", "bf16", NULL},
    {"trainer.precision", IF_TEXT, "--bf16", "bf16-mixed", NULL},
    {"trainer.precision", IF_TEXT, "--fp16", "16", NULL},
    {"trainer.precision", IF_TEXT, "--fp16", "16-mixed", NULL},
};

static const struct maq_file_key keys[] = {
    MAQ_FILE_REFUSE("model.fsdp", "its FSDP"),
    MAQ_FILE_REFUSE("model.peft.peft_scheme", "adapters by its own schemes; lora_rank says them"),
    MAQ_FILE_REFUSE_BUT("model.transformer_block_type", "pre_ln", "another order of norms"),
    MAQ_FILE_REFUSE_BUT("model.attention_type", "multihead", "another kind of attention"),
    MAQ_FILE_REFUSE("model.rampup_batch_size", "a batch that grows"),
    MAQ_FILE_REFUSE("model.activations_checkpoint_layers_per_pipeline", "other recomputation on each stage"),
    MAQ_FILE_REFUSE("model.num_micro_batches_with_partial_activation_checkpoints",
                    "microbatches that are recomputed otherwise"),
    MAQ_FILE_REFUSE("model.mcore_customization_config", "a model of its own"),
    MAQ_FILE_REFUSE("model.window_size", "a window of attention; --model says it"),
    MAQ_FILE_REFUSE("model.cpu_offloading", "activations and weights on the host by its own numbers"),
    MAQ_FILE_IDLE("model.cpu_offloading_*"),
    MAQ_FILE_KEEP("model.fp8"),
    MAQ_FILE_IDLE("model.defer_embedding_wgrad_compute"),
    MAQ_FILE_IDLE("model.enable_megatron_timers"),
    MAQ_FILE_IDLE("model.get_attention_mask_from_fusion"),
    MAQ_FILE_IDLE("model.layernorm_zero_centered_gamma"),
    MAQ_FILE_IDLE("model.megatron_timer_kwargs"),
    MAQ_FILE_IDLE("model.precision"),
    MAQ_FILE_IDLE("model.scale_positional_embedding"),
    MAQ_FILE_IDLE("model.ub_tp_comm_overlap_cfg"),
    MAQ_FILE_IDLE("model.use_te_rng_tracker"),
    MAQ_FILE_IDLE("model.wgrad_deferral_limit"),
    MAQ_FILE_IDLE("model.fp8_*"),
    MAQ_FILE_KEEP("model.optim"),
    MAQ_FILE_KEEP("model.tokenizer"),
    MAQ_FILE_IDLE("model.peft.*"),
    MAQ_FILE_IDLE("model.data"),
    MAQ_FILE_IDLE("model.nsys_profile"),
    MAQ_FILE_IDLE("model.name"),
    MAQ_FILE_IDLE("model.mcore_gpt"),
    MAQ_FILE_IDLE("model.fsdp_*"),
    MAQ_FILE_IDLE("model.apex_transformer_log_level"),
    MAQ_FILE_IDLE("model.apply_query_key_layer_scaling"),
    MAQ_FILE_IDLE("model.attention_softmax_in_fp32"),
    MAQ_FILE_IDLE("model.batch_p2p_comm"),
    MAQ_FILE_IDLE("model.deterministic_mode"),
    MAQ_FILE_IDLE("model.do_layer_norm_weight_decay"),
    MAQ_FILE_IDLE("model.expert_tensor_parallel"),
    MAQ_FILE_IDLE("model.ffn_dropout"),
    MAQ_FILE_IDLE("model.fp16_lm_cross_entropy"),
    MAQ_FILE_IDLE("model.fp32_residual_connection"),
    MAQ_FILE_IDLE("model.gc_interval"),
    MAQ_FILE_IDLE("model.grad_allreduce_chunk_size_mb"),
    MAQ_FILE_IDLE("model.grad_div_ar_fusion"),
    MAQ_FILE_IDLE("model.gradient_as_bucket_view"),
    MAQ_FILE_IDLE("model.headscale"),
    MAQ_FILE_IDLE("model.hysteresis"),
    MAQ_FILE_IDLE("model.init_method_std"),
    MAQ_FILE_IDLE("model.layernorm_epsilon"),
    MAQ_FILE_IDLE("model.megatron_amp_O2"),
    MAQ_FILE_IDLE("model.moe_aux_loss_coeff"),
    MAQ_FILE_IDLE("model.moe_grouped_gemm"),
    MAQ_FILE_IDLE("model.moe_router_load_balancing_type"),
    MAQ_FILE_IDLE("model.native_amp_*"),
    MAQ_FILE_IDLE("model.normalize_attention_scores"),
    MAQ_FILE_IDLE("model.onnx_safe"),
    MAQ_FILE_IDLE("model.openai_gelu"),
    MAQ_FILE_IDLE("model.p2p_overlap_*"),
    MAQ_FILE_IDLE("model.persist_layer_norm"),
    MAQ_FILE_IDLE("model.post_process"),
    MAQ_FILE_IDLE("model.pre_process"),
    MAQ_FILE_IDLE("model.reduce_amax"),
    MAQ_FILE_IDLE("model.resume_from_checkpoint"),
    MAQ_FILE_IDLE("model.rotary_*"),
    MAQ_FILE_IDLE("model.seed"),
    MAQ_FILE_IDLE("model.seq_len_interpolation_factor"),
    MAQ_FILE_IDLE("model.sharp"),
    MAQ_FILE_IDLE("model.sync_batch_comm"),
    MAQ_FILE_IDLE("model.transformer_engine"),
    MAQ_FILE_IDLE("model.use_cpu_initialization"),
    MAQ_FILE_IDLE("model.use_emha"),
    MAQ_FILE_IDLE("model.use_scaled_init_method"),
    MAQ_FILE_KEEP("trainer"),
    MAQ_FILE_IDLE("exp_manager"),
    MAQ_FILE_IDLE("run"),
    MAQ_FILE_IDLE("hydra"),
    MAQ_FILE_IDLE("defaults"),
    MAQ_FILE_IDLE("inference"),
    MAQ_FILE_IDLE("name"),
    MAQ_FILE_IDLE("restore_from_path"),
    MAQ_FILE_END};

static bool knows(const char *key)
{
    for (size_t i = 0; i < MAQ_COUNT(arguments); i++)
        if (strcmp(arguments[i].key, key) == 0)
            return true;
    return false;
}

static bool refers(const struct maq_node *n)
{
    return n->text.len > 1 && memmem(n->text.ptr, n->text.len, "${", 2) != NULL;
}

/* "${.name}" of the map that it stands in, which is `model` here. */
static const struct maq_node *follow(const struct maq_file_reader *r, const struct maq_node *n)
{
    char key[128];
    if (!n || n->kind != MAQ_NODE_SCALAR || !maq_str_starts(n->text, "${.") || n->text.ptr[n->text.len - 1] != '}')
        return n;
    maq__snprintf(key, sizeof key, "model.%.*s", (int)(n->text.len < 100 ? n->text.len - 4 : 96), n->text.ptr + 3);
    const struct maq_node *there = maq_file_get(r, key);
    return there && there->kind == MAQ_NODE_SCALAR && !refers(there) ? there : n;
}

static void add_argument(struct maq_file_reader *r, struct maq_file_words *w, const struct argument *a)
{
    const struct maq_node *n = follow(r, maq_file_get(r, a->key));
    if (!n || n->kind != MAQ_NODE_SCALAR || n->text.len == 0)
        return;
    const bool on = maq_str_ieq(n->text, "true"), off = maq_str_ieq(n->text, "false");
    if (a->form == VALUE && refers(n)) {
        if (strcmp(a->key, "model.ffn_hidden_size") != 0)
            maq_file_fault(r, n, "write the number", "%s refers to another value", a->key);
        return;
    }
    if ((a->form == IF_ON && !on) || (a->form == IF_OFF && !off) ||
        (a->form == IF_TEXT && !maq_str_is(n->text, a->when)))
        return;
    maq_file_add_word(r, w, maq_str_of(a->word), n, n->key_at);
    if (a->form == VALUE || a->text)
        maq_file_add_word(r, w, a->form == VALUE ? n->text : maq_str_of(a->text), n, n->at);
}

/* fp8 is delayed scaling, in both formats or in one. */
static void set_fp8(struct maq_file_reader *r)
{
    const struct maq_node *n = maq_file_get(r, "model.fp8");
    if (n && maq_file_asks(n, NULL))
        maq_file_set(r, n, "plan.precision", "fp8-delayed");
}

static void conclude(struct maq_file_reader *r)
{
    struct maq_file_words w = {.n = 0};
    const struct maq_node *groups = maq_file_get(r, "model.num_query_groups"),
                          *heads = maq_file_get(r, "model.num_attention_heads");
    maq_file_framework(r, "nemo");
    for (size_t i = 0; i < MAQ_COUNT(arguments); i++)
        add_argument(r, &w, &arguments[i]);
    if (groups && heads && !maq_str_eq(groups->text, heads->text))
        maq_file_add_word(r, &w, MAQ_STR("--group-query-attention"), groups, groups->key_at);
    maq_file_read_words(r, &w, false);
    if (r->status == MAQ_OK)
        set_fp8(r);
}

const struct maq_file_form maq_file_nemo = {
    .title = "NeMo's configuration",
    .told_by = "trainer,exp_manager,model",
    .keys = keys,
    .knows = knows,
    .conclude = conclude,
};
