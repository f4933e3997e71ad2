/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nemo2.c - a recipe of NVIDIA NeMo 2 (nemo.collections.llm), as NeMo-Run writes it to YAML (nemo_run/core/serialization/yaml.py, 0.6.0rc0):
 * maps of arguments, each with the class that they go to as `_target_`.
 *
 * `model.config` is a class that holds the sizes of a published model; the catalogue's model of the same name stands for it, with as many
 * layers as the file says. What trainer.strategy, its ddp, the optimizer's config and the model's config say goes through the reader of
 * Megatron-LM's command line. Callbacks of the trainer are what switches overlap on.
 *
 * Names and meanings are those of NeMo 2.6.0rc0 (8cfedd720346): nemo/lightning/pytorch/strategies/megatron_strategy.py, callbacks/
 * megatron_comm_overlap.py, moe_token_drop.py and deepep.py, plugins/mixed_precision.py, nemo/collections/llm/gpt/model.
 */
#include <string.h>

#include "base/check.h"
#include "plan/framework_files/megatron_words.h"

#define STRATEGY "trainer.strategy."
#define CONFIG "model.config."

enum form {
    VALUE,  /* --word and the value */
    IF_ON,  /* --word where the value is true */
    IF_OFF, /* where it is false */
};

static const struct argument {
    const char *key;
    enum form form;
    const char *word;
} arguments[] = {
    {"data.micro_batch_size", VALUE, "--micro-batch-size"},
    {"data.global_batch_size", VALUE, "--global-batch-size"},
    {"data.seq_length", VALUE, "--seq-length"},
    {STRATEGY "tensor_model_parallel_size", VALUE, "--tensor-model-parallel-size"},
    {STRATEGY "pipeline_model_parallel_size", VALUE, "--pipeline-model-parallel-size"},
    {STRATEGY "virtual_pipeline_model_parallel_size", VALUE, "--num-virtual-stages-per-pipeline-rank"},
    {STRATEGY "microbatch_group_size_per_vp_stage", VALUE, "--microbatch-group-size-per-virtual-pipeline-stage"},
    {STRATEGY "num_layers_in_first_pipeline_stage", VALUE, "--decoder-first-pipeline-num-layers"},
    {STRATEGY "num_layers_in_last_pipeline_stage", VALUE, "--decoder-last-pipeline-num-layers"},
    {STRATEGY "context_parallel_size", VALUE, "--context-parallel-size"},
    {STRATEGY "expert_model_parallel_size", VALUE, "--expert-model-parallel-size"},
    {STRATEGY "expert_tensor_parallel_size", VALUE, "--expert-tensor-parallel-size"},
    {STRATEGY "sequence_parallel", IF_ON, "--sequence-parallel"},
    {STRATEGY "account_for_embedding_in_pipeline_split", IF_ON, "--account-for-embedding-in-pipeline-split"},
    {STRATEGY "account_for_loss_in_pipeline_split", IF_ON, "--account-for-loss-in-pipeline-split"},
    {STRATEGY "num_distributed_optimizer_instances", VALUE, "--num-distributed-optimizer-instances"},
    {STRATEGY "use_tp_pp_dp_mapping", IF_ON, "--use-tp-pp-dp-mapping"},
    {"optim.config.use_distributed_optimizer", IF_ON, "--use-distributed-optimizer"},
    {CONFIG "recompute_granularity", VALUE, "--recompute-granularity"},
    {CONFIG "recompute_method", VALUE, "--recompute-method"},
    {CONFIG "recompute_num_layers", VALUE, "--recompute-num-layers"},
    {CONFIG "moe_token_dispatcher_type", VALUE, "--moe-token-dispatcher-type"},
    {CONFIG "moe_expert_capacity_factor", VALUE, "--moe-expert-capacity-factor"},
    {CONFIG "moe_pad_expert_input_to_capacity", IF_ON, "--moe-pad-expert-input-to-capacity"},
    {CONFIG "gradient_accumulation_fusion", IF_OFF, "--no-gradient-accumulation-fusion"},
    {CONFIG "enable_cuda_graph", IF_ON, "--enable-cuda-graph"},
};

static const struct maq_file_key keys[] = {
    MAQ_FILE_IDLE("_target_"),
    MAQ_FILE_IDLE("_partial_"),
    MAQ_FILE_REFUSE("peft", "adapters by its own schemes; lora_rank says them"),
    MAQ_FILE_REFUSE(STRATEGY "fsdp", "its FSDP"),
    MAQ_FILE_REFUSE(STRATEGY "pipeline_model_parallel_layout",
                    "a layout of its own; pipeline_model_parallel_layout says it"),
    MAQ_FILE_REFUSE_BUT("trainer.accumulate_grad_batches", "1", "batches that Lightning adds up besides"),
    MAQ_FILE_SET(CONFIG "cross_entropy_loss_fusion", "plan.cross_entropy_loss_fusion"),
    MAQ_FILE_KEEP(CONFIG "_target_"),
    MAQ_FILE_KEEP(CONFIG "num_layers"),
    MAQ_FILE_IDLE(CONFIG "seq_length"),
    MAQ_FILE_IDLE(CONFIG "make_vocab_size_divisible_by"),
    MAQ_FILE_REFUSE(CONFIG "hidden_size", "another width than the class has; --model says the model"),
    MAQ_FILE_REFUSE(CONFIG "ffn_hidden_size", "another width than the class has; --model says the model"),
    MAQ_FILE_REFUSE(CONFIG "num_attention_heads", "other heads than the class has; --model says the model"),
    MAQ_FILE_REFUSE(CONFIG "num_query_groups", "other heads than the class has; --model says the model"),
    MAQ_FILE_REFUSE(CONFIG "num_moe_experts", "other experts than the class has; --model says the model"),
    MAQ_FILE_REFUSE(CONFIG "cpu_offloading", "activations and weights on the host by its own numbers"),
    MAQ_FILE_IDLE("model._target_"),
    MAQ_FILE_IDLE("model.tokenizer"),
    MAQ_FILE_IDLE("tokenizer"),
    MAQ_FILE_IDLE("data"),
    MAQ_FILE_IDLE("optim"),
    MAQ_FILE_IDLE("log"),
    MAQ_FILE_IDLE("resume"),
    MAQ_FILE_KEEP("trainer.plugins"),
    MAQ_FILE_KEEP("trainer.callbacks"),
    MAQ_FILE_KEEP(STRATEGY "ddp"),
    MAQ_FILE_IDLE(STRATEGY "_target_"),
    MAQ_FILE_IDLE(STRATEGY "ckpt_*"),
    MAQ_FILE_IDLE(STRATEGY "save_ckpt_format"),
    MAQ_FILE_IDLE(STRATEGY "gradient_as_bucket_view"),
    MAQ_FILE_IDLE(STRATEGY "pipeline_dtype"),
    MAQ_FILE_IDLE(STRATEGY "use_te_rng_tracker"),
    MAQ_FILE_IDLE("trainer._target_"),
    MAQ_FILE_IDLE("trainer.accelerator"),
    MAQ_FILE_IDLE("trainer.devices"),
    MAQ_FILE_IDLE("trainer.num_nodes"),
    MAQ_FILE_IDLE("trainer.limit_*"),
    MAQ_FILE_IDLE("trainer.log_every_n_steps"),
    MAQ_FILE_IDLE("trainer.max_*"),
    MAQ_FILE_IDLE("trainer.use_distributed_sampler"),
    MAQ_FILE_IDLE("trainer.val_check_interval"),
    MAQ_FILE_IDLE("trainer.enable_checkpointing"),
    MAQ_FILE_IDLE("trainer.logger"),
    MAQ_FILE_END};

/* Layers and widths are the same, of each. */
static const struct {
    const char *config, *model;
} classes[] = {
    {"Llama2Config7B", "llama-2-7b"},
    {"Llama2Config13B", "llama-2-13b"},
    {"Llama2Config70B", "llama-2-70b"},
    {"Llama3Config8B", "llama-3-8b"},
    {"Llama3Config70B", "llama-3-70b"},
    {"Llama31Config8B", "llama-3.1-8b"},
    {"Llama31Config70B", "llama-3.1-70b"},
    {"Llama31Config405B", "llama-3.1-405b"},
    {"Llama32Config1B", "llama-3.2-1b"},
    {"Llama32Config3B", "llama-3.2-3b"},
    {"MixtralConfig8x7B", "mixtral-8x7b"},
    {"MixtralConfig8x22B", "mixtral-8x22b"},
    {"DeepSeekV2Config", "deepseek-v2"},
    {"DeepSeekV2LiteConfig", "deepseek-v2-lite"},
    {"DeepSeekV3Config", "deepseek-v3"},
    {"Qwen2Config7B", "qwen2-7b"},
    {"Qwen2Config72B", "qwen2-72b"},
    {"Qwen25Config7B", "qwen2.5-7b"},
    {"Qwen25Config14B", "qwen2.5-14b"},
    {"Qwen25Config32B", "qwen2.5-32b"},
    {"Qwen25Config72B", "qwen2.5-72b"},
    {"Qwen3Config4B", "qwen3-4b"},
    {"Qwen3Config8B", "qwen3-8b"},
    {"Qwen3Config14B", "qwen3-14b"},
    {"Qwen3Config32B", "qwen3-32b"},
    {"Qwen3Config30B_A3B", "qwen3-30b-a3b"},
    {"Qwen3Config235B_A22B", "qwen3-235b-a22b"},
    {"Nemotron3Config8B", "nemotron-3-8b"},
    {"Nemotron3Config22B", "nemotron-3-22b"},
    {"Nemotron4Config15B", "nemotron-4-15b"},
    {"Nemotron4Config340B", "nemotron-4-340b"},
    {"Gemma2Config2B", "gemma-2-2b"},
    {"Gemma2Config9B", "gemma-2-9b"},
    {"Gemma2Config27B", "gemma-2-27b"},
    {"MistralConfig7B", "mistral-7b"},
    {"MistralNeMoConfig12B", "mistral-nemo-12b"},
};

static bool knows(const char *key)
{
    for (size_t i = 0; i < MAQ_COUNT(arguments); i++)
        if (strcmp(arguments[i].key, key) == 0)
            return true;
    return false;
}

/* The class that a map of arguments goes to, without its modules. */
static struct maq_str class_of(const struct maq_node *map)
{
    for (const struct maq_node *n = map && map->kind == MAQ_NODE_MAP ? map->first : NULL; n; n = n->next)
        if (maq_str_is(n->key, "_target_") && n->kind == MAQ_NODE_SCALAR) {
            struct maq_str name = n->text;
            for (size_t i = 0; i < n->text.len; i++)
                if (n->text.ptr[i] == '.')
                    name = (struct maq_str){n->text.ptr + i + 1, n->text.len - i - 1};
            return name;
        }
    return (struct maq_str){0};
}

static const struct maq_node *member(const struct maq_node *map, const char *key)
{
    for (const struct maq_node *n = map && map->kind == MAQ_NODE_MAP ? map->first : NULL; n; n = n->next)
        if (maq_str_is(n->key, key))
            return maq_node_is_null(n) ? NULL : n;
    return NULL;
}

/* The trainer's callback of a class; NULL: it has none. */
static const struct maq_node *callback(const struct maq_file_reader *r, const char *name)
{
    const struct maq_node *list = maq_file_get(r, "trainer.callbacks");
    for (const struct maq_node *n = list && list->kind == MAQ_NODE_SEQ ? list->first : NULL; n; n = n->next)
        if (maq_str_is(class_of(n), name))
            return n;
    return NULL;
}

/* Those that change no step, and those that are asked for. */
static const char *const callbacks[] = {"AsyncFinalizerCallback",
                                        "DeltaTimingCallback",
                                        "FLOPsMeasurementCallback",
                                        "GarbageCollectionCallback",
                                        "MemoryMonitor",
                                        "MemoryProfileCallback",
                                        "ModelCheckpoint",
                                        "ModelTrainingStateCallback",
                                        "NsysCallback",
                                        "OptimizerMonitor",
                                        "ParameterDebugger",
                                        "PreemptionCallback",
                                        "PytorchProfilerCallback",
                                        "RuntimeEstimator",
                                        "SpeedMonitor",
                                        "TimingCallback",
                                        "MegatronCommOverlapCallback",
                                        "MegatronTokenDropCallback",
                                        "DeepEPCallback"};

/* Others are named in the warning of unknown keys. */
static void name_others(struct maq_file_reader *r)
{
    const struct maq_node *list = maq_file_get(r, "trainer.callbacks");
    for (const struct maq_node *n = list && list->kind == MAQ_NODE_SEQ ? list->first : NULL; n; n = n->next) {
        const struct maq_str name = class_of(n);
        bool known = name.len == 0 || name.len > 200;
        for (size_t i = 0; i < MAQ_COUNT(callbacks); i++)
            known |= maq_str_is(name, callbacks[i]);
        if (known || r->unknown.len > 2000)
            continue;
        if (r->unknown.len == 0)
            r->first_unknown = n->at;
        maq_buf_addf(&r->unknown, "%s%.*s", r->unknown.len ? ", " : "", (int)name.len, name.ptr);
    }
}

static bool is_on(const struct maq_node *n)
{
    return n && n->kind == MAQ_NODE_SCALAR && maq_str_ieq(n->text, "true");
}

static void say(struct maq_file_reader *r, struct maq_file_words *w, const struct maq_node *from, const char *word)
{
    maq_file_add_word(r, w, maq_str_of(word), from, from->at);
}

static void add_argument(struct maq_file_reader *r, struct maq_file_words *w, const struct argument *a)
{
    const struct maq_node *n = maq_file_get(r, a->key);
    if (!n || n->kind != MAQ_NODE_SCALAR || n->text.len == 0)
        return;
    if ((a->form == IF_ON && !is_on(n)) || (a->form == IF_OFF && !maq_str_ieq(n->text, "false")))
        return;
    maq_file_add_word(r, w, maq_str_of(a->word), n, n->key_at);
    if (a->form == VALUE)
        maq_file_add_word(r, w, n->text, n, n->at);
}

/* A switch of MegatronCommOverlapCallback: as the callback has it, or as the callback decides. */
static const struct maq_node *decided(const struct maq_node *overlap, const char *key, bool otherwise)
{
    const struct maq_node *given = member(overlap, key);
    return given ? (is_on(given) ? given : NULL) : otherwise ? overlap : NULL;
}

/*
 * With MegatronCommOverlapCallback the reductions and gathers of a distributed optimizer are overlapped, and transfers of a pipeline with
 * virtual stages; without it what ddp says, and no transfer (Megatron Core, model_parallel_config.py).
 */
static void add_overlap(struct maq_file_reader *r, struct maq_file_words *w)
{
    const struct maq_node *overlap = callback(r, "MegatronCommOverlapCallback"), *ddp = maq_file_get(r, STRATEGY "ddp"),
                          *pp = maq_file_get(r, STRATEGY "pipeline_model_parallel_size"),
                          *reduce = member(ddp, "overlap_grad_reduce"), *gather = member(ddp, "overlap_param_gather"),
                          *tp = decided(overlap, "tp_comm_overlap", false);
    const bool shards = maq_file_true(r, "optim.config.use_distributed_optimizer", false),
               chunks = maq_file_number(r, STRATEGY "virtual_pipeline_model_parallel_size", 1) > 1;
    if (overlap && shards) {
        reduce = decided(overlap, "overlap_grad_reduce", true);
        gather = decided(overlap, "overlap_param_gather", true);
    }
    if (is_on(reduce) || (reduce && reduce == overlap))
        say(r, w, reduce, "--overlap-grad-reduce");
    if (shards && (is_on(gather) || (gather && gather == overlap)))
        say(r, w, gather, "--overlap-param-gather");
    if (tp)
        say(r, w, tp, "--tp-comm-overlap");
    if (pp && !decided(overlap, "overlap_p2p_comm", chunks))
        say(r, w, pp, "--no-overlap-p2p-communication");
}

/* Callbacks that say something of a layer with experts. */
static void add_experts(struct maq_file_reader *r, struct maq_file_words *w)
{
    const struct maq_node *drop = callback(r, "MegatronTokenDropCallback"), *deepep = callback(r, "DeepEPCallback"),
                          *factor = member(drop, "moe_expert_capacity_factor");
    if (drop) {
        say(r, w, drop, "--moe-expert-capacity-factor");
        maq_file_add_word(r, w, factor ? factor->text : MAQ_STR("1.0"), drop, drop->at);
        if (decided(drop, "moe_pad_expert_input_to_capacity", true))
            say(r, w, drop, "--moe-pad-expert-input-to-capacity");
    }
    if (deepep) {
        say(r, w, deepep, "--moe-token-dispatcher-type");
        say(r, w, deepep, "flex");
        say(r, w, deepep, "--moe-enable-deepep");
    }
}

static void set_precision(struct maq_file_reader *r)
{
    static const char *const recipes[][2] = {
        {"delayed", "fp8-delayed"}, {"tensorwise", "fp8-current"}, {"mxfp8", "mxfp8"}};
    const struct maq_node *plugin = maq_file_get(r, "trainer.plugins"), *precision = member(plugin, "precision"),
                          *fp8 = member(plugin, "fp8"), *recipe = member(plugin, "fp8_recipe");
    if (!precision || precision->kind != MAQ_NODE_SCALAR)
        return;
    const bool half = maq_str_is(precision->text, "16-mixed"), wide = maq_str_is(precision->text, "32");
    if (!fp8) {
        maq_file_set(r, precision, "plan.precision", half ? "fp16" : wide ? "fp32" : "bf16");
        return;
    }
    for (size_t i = 0; i < MAQ_COUNT(recipes); i++)
        if (recipe ? maq_str_is(recipe->text, recipes[i][0]) : i == 0) {
            maq_file_set(r, recipe ? recipe : fp8, "plan.precision", recipes[i][1]);
            return;
        }
    maq_file_fault(r, recipe, "delayed, tensorwise and mxfp8 are known", "nothing here knows the recipe '%.*s'",
                   (int)(recipe->text.len < 100 ? recipe->text.len : 100), recipe->text.ptr);
}

/* Gradients are of 32 bits unless the plugin says otherwise, whatever ddp says (megatron_strategy.py), and where there is none, as ddp says. */
static void set_gradients(struct maq_file_reader *r)
{
    const struct maq_node *plugin = maq_file_get(r, "trainer.plugins"),
                          *says = member(plugin ? plugin : maq_file_get(r, STRATEGY "ddp"), "grad_reduce_in_fp32");
    const char *type = (says ? is_on(says) : plugin != NULL) ? "fp32" : "bf16";
    maq_file_set(r, says, "plan.main_grads_dtype", type);
    maq_file_set(r, says, "plan.grad_reduce_dtype", type);
}

/* The model of the config's class. */
static void set_model(struct maq_file_reader *r)
{
    const struct maq_node *config = maq_file_get(r, "model.config"), *layers = maq_file_get(r, CONFIG "num_layers");
    const struct maq_str name = class_of(config);
    if (r->model)
        return;
    for (size_t i = 0; i < MAQ_COUNT(classes); i++)
        if (maq_str_is(name, classes[i].config)) {
            maq_file_set(r, config, layers ? "model.base" : "model", classes[i].model);
            if (layers)
                maq_file_set(r, layers, "model.num_hidden_layers", maq_arena_strdup(&r->job->arena, layers->text));
            r->model = classes[i].model; /* the words of Megatron-LM have none */
            return;
        }
    maq_file_fault(r, config, "--model says the model", "nothing here knows the model of the class '%.*s'",
                   (int)(name.len < 100 ? name.len : 100), name.len ? name.ptr : "");
}

static void conclude(struct maq_file_reader *r)
{
    struct maq_file_words w = {.n = 0};
    maq_file_framework(r, "nemo");
    name_others(r);
    set_model(r);
    for (size_t i = 0; i < MAQ_COUNT(arguments); i++)
        add_argument(r, &w, &arguments[i]);
    add_overlap(r, &w);
    add_experts(r, &w);
    maq_file_read_words(r, &w, false);
    if (r->status != MAQ_OK)
        return;
    set_precision(r);
    set_gradients(r);
    maq_file_set(r, NULL, "plan.tp_comm_overlap", "false"); /* unless the callback says so */
}

const struct maq_file_form maq_file_nemo2 = {
    .title = "NeMo 2's recipe",
    .told_by = "_target_,trainer,model,data",
    .keys = keys,
    .knows = knows,
    .conclude = conclude,
};
