/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torchtitan.c - torchtitan's TOML.
 *
 * Names, defaults and meanings are those of torchtitan/config/job_config.py at v0.2.2, the last release with such files, and of what reads
 * them; keys that are a plan's are the options of its command line (plan/words/torchtitan.c), whose table reads them here too. What the
 * table has not:
 *
 *   - data_parallel_shard_degree: -1 (the default) is what the other degrees leave, sharded (parallel_dims.py).
 *   - Sizes are a name and a flavour of the models' registries (models/NAME/__init__.py): those that are a published model.
 *   - fsdp_reshard_after_forward: default reshards unless there is a pipeline (distributed/parallelize of the models).
 *   - Every nth layer of selective checkpointing (the default, 2) recomputes each whole nth layer of a rank: distributed/activation_checkpoint.py.
 *   - Without global_batch_size there is no accumulation (train.py).
 */
#include <string.h>

#include "base/check.h"
#include "plan/framework_files/reader.h"
#include "plan/words/words.h"

static const struct maq_file_key keys[] = {
    MAQ_FILE_KEEP("model.name"),
    MAQ_FILE_KEEP("model.flavor"),
    MAQ_FILE_KEEP("model.converters"),
    MAQ_FILE_IDLE("model.*"),
    MAQ_FILE_KEEP("training.local_batch_size"),
    MAQ_FILE_KEEP("training.global_batch_size"),
    MAQ_FILE_KEEP("training.seq_len"),
    MAQ_FILE_KEEP("training.dtype"),
    MAQ_FILE_KEEP("training.mixed_precision_param"),
    MAQ_FILE_KEEP("training.mixed_precision_reduce"),
    MAQ_FILE_KEEP("training.enable_cpu_offload"),
    MAQ_FILE_IDLE("training.*"),
    MAQ_FILE_REFUSE(
        "parallelism.module_fqns_per_model_part",
        "stages by the names of their modules; plan.pipeline_model_parallel_layout says how many layers each has"),
    MAQ_FILE_REFUSE("parallelism.pipeline_parallel_schedule_csv", "a schedule of a table"),
    MAQ_FILE_REFUSE("parallelism.disable_loss_parallel", "logits that are whole on every TP rank"),
    MAQ_FILE_IDLE("parallelism.pipeline_parallel_expert_parallel_overlap"), /* of DualPipeV alone */
    MAQ_FILE_IDLE("parallelism.context_parallel_load_balancer"),
    MAQ_FILE_KEEP("parallelism.*"),
    MAQ_FILE_KEEP("activation_checkpoint.mode"),
    MAQ_FILE_KEEP("activation_checkpoint.selective_ac_option"),
    MAQ_FILE_IDLE("activation_checkpoint.*"),
    MAQ_FILE_KEEP("compile.enable"),
    MAQ_FILE_KEEP("compile.components"),
    MAQ_FILE_IDLE("compile.*"),
    MAQ_FILE_KEEP("optimizer.name"),
    MAQ_FILE_MAP("optimizer.implementation", "framework.optimizer", "fused=fused|foreach=foreach"),
    MAQ_FILE_REFUSE("optimizer.early_step_in_backward", "updates inside the backward pass"),
    MAQ_FILE_IDLE("optimizer.*"),
    MAQ_FILE_KEEP("quantize.linear.float8.recipe_name"),
    MAQ_FILE_KEEP("quantize.linear.float8.enable_fsdp_float8_all_gather"),
    MAQ_FILE_REFUSE("quantize.linear.float8.emulate", "8 bits by other products"),
    MAQ_FILE_IDLE("quantize.*"),
    MAQ_FILE_REFUSE("fault_tolerance.enable", "replica groups of torchft"),
    MAQ_FILE_IDLE("fault_tolerance.*"),
    MAQ_FILE_IDLE("job"),
    MAQ_FILE_IDLE("profiling"),
    MAQ_FILE_IDLE("metrics"),
    MAQ_FILE_IDLE("lr_scheduler"),
    MAQ_FILE_IDLE("checkpoint"),
    MAQ_FILE_IDLE("comm"),
    MAQ_FILE_IDLE("memory_estimation"),
    MAQ_FILE_IDLE("experimental"),
    MAQ_FILE_IDLE("validation"),
    MAQ_FILE_IDLE("debug"),
    MAQ_FILE_IDLE("hf_transformers"),
    MAQ_FILE_END};

/* ---- the model ---- */

/* Flavours whose sizes are those of a published model. What follows "_" (flex, varlen, irope) is how its attention is computed. */
static const struct {
    const char *name, *flavor, *model;
} models[] = {
    {"llama3", "8B", "llama-3.1-8b"},
    {"llama3", "70B", "llama-3.1-70b"},
    {"llama3", "405B", "llama-3.1-405b"},
    {"llama4", "17bx16e", "llama-4-scout"},
    {"llama4", "17bx128e", "llama-4-maverick"},
    {"deepseek_v3", "16B", "deepseek-v2-lite"},
    {"deepseek_v3", "236B", "deepseek-v2"},
    {"deepseek_v3", "671B", "deepseek-v3"},
    {"qwen3", "0.6B", "qwen3-0.6b"},
    {"qwen3", "1.7B", "qwen3-1.7b"},
    {"qwen3", "4B", "qwen3-4b"},
    {"qwen3", "8B", "qwen3-8b"},
    {"qwen3", "14B", "qwen3-14b"},
    {"qwen3", "32B", "qwen3-32b"},
    {"qwen3", "30B-A3B", "qwen3-30b-a3b"},
    {"qwen3", "235B-A22B", "qwen3-235b-a22b"},
    {"gpt_oss", "20b", "gpt-oss-20b"},
    {"gpt_oss", "120b", "gpt-oss-120b"},
};

static void set_model(struct maq_file_reader *r)
{
    const struct maq_node *at = maq_file_get(r, "model.flavor");
    struct maq_str name = maq_file_text(r, "model.name", "llama3"), flavor;
    maq_str_split(maq_file_text(r, "model.flavor", "debugmodel"), '_', &flavor);
    at = at ? at : maq_file_get(r, "model");
    for (size_t i = 0; i < MAQ_COUNT(models); i++)
        if (maq_str_is(name, models[i].name) && maq_str_is(flavor, models[i].flavor)) {
            maq_file_set(r, at, "model", models[i].model);
            return;
        }
    if (!r->model && !maq_file_job_value(r, "model"))
        maq_file_fault(r, at, "--model says which one it is like: a name of the catalogue or a config.json",
                       "the flavour %.*s of %.*s is no published model", (int)flavor.len, flavor.ptr, (int)name.len,
                       name.ptr);
}

/* ---- words ---- */

/* Text of a word as its option would have it; empty: it is not said. */
static struct maq_str text_of(const struct maq_file_reader *r, const struct maq_word *row, const struct maq_node *n)
{
    const bool flag = row->values && strstr(row->values, MAQ_WORD_SWITCH) != NULL;
    const bool pipeline = maq_file_number(r, "parallelism.pipeline_parallel_degree", 1) > 1;
    if (!pipeline && strncmp(row->word, "parallelism.pipeline_parallel_", 30) == 0)
        return MAQ_STR(""); /* of a pipeline that there is not */
    if (strcmp(row->word, "model.converters") == 0)
        return MAQ_STR(""); /* a list: set_converters() */
    if (strcmp(row->word, "quantize.linear.float8.recipe_name") == 0 && !n)
        return MAQ_STR("tensorwise");
    if (strcmp(row->word, "parallelism.fsdp_reshard_after_forward") == 0 && (!n || maq_str_is(n->text, "default")))
        return pipeline ? MAQ_STR("never") : MAQ_STR("always");
    if (strcmp(row->word, "training.local_batch_size") == 0 && !n)
        return MAQ_STR("8");
    if (strcmp(row->word, "training.seq_len") == 0 && !n)
        return MAQ_STR("2048");
    if (!n || n->kind != MAQ_NODE_SCALAR || maq_str_is(n->text, "-1"))
        return MAQ_STR("");
    if (flag)
        return maq_str_is(n->text, "true") ? MAQ_STR(MAQ_WORD_SWITCH) : MAQ_STR("off");
    return n->text;
}

/* "quantize.linear.float8" and its kin; of several the first that the words know. */
static struct maq_str converter(struct maq_file_reader *r)
{
    const struct maq_node *list = maq_file_get(r, "model.converters");
    struct maq_str found = {0};
    for (const struct maq_node *n = list ? list->first : NULL; n; n = n->next) {
        struct maq_str name =
            maq_str_is(n->text, "float8") ? MAQ_STR("quantize.linear.float8") : n->text; /* before v0.2 */
        if (maq_str_is(name, "quantize.linear.float8") || maq_str_is(name, "quantize.linear.mx"))
            found = name;
        else
            maq_file_fault(r, n, "leave it out to see the rest", "the converter %.*s is not modelled", (int)name.len,
                           name.ptr);
    }
    return found;
}

static void set_words(struct maq_file_reader *r)
{
    struct maq_job about = {0};
    struct maq_words_reader words = {.vocabulary = &maq_words_torchtitan, .about = &about, .arena = &r->job->arena};
    struct maq_buf lines;
    int64_t hidden, layers = 0;
    (void)maq_file_model_shape(r, &hidden, &layers);
    about.model.num_layers = (uint32_t)layers;
    maq_buf_init(&lines, 65536);
    for (const struct maq_word *row = maq_words_torchtitan.words; row->word || row->path; row++) {
        struct maq_str text = row->word ? text_of(r, row, maq_file_get(r, row->word)) : MAQ_STR("");
        if (row->word && strcmp(row->word, "model.converters") == 0)
            text = converter(r);
        if (text.len > 0)
            maq_buf_addf(&lines, "--%s %.*s\n", row->word, (int)text.len, text.ptr);
    }
    (void)maq_file_set_lines(r, &words, &lines);
}

/* ---- what the words have not ---- */

static void set_shards(struct maq_file_reader *r)
{
    const struct maq_node *shards = maq_file_get(r, "parallelism.data_parallel_shard_degree"),
                          *replicas = maq_file_get(r, "parallelism.data_parallel_replicate_degree");
    if (shards && maq_file_number(r, "parallelism.data_parallel_shard_degree", -1) != -1)
        return;
    maq_file_set(r, shards, "plan.data_parallel_sharding_strategy", "optim_grads_params");
    maq_file_set_number(r, replicas, "plan.num_distributed_optimizer_instances",
                        maq_file_number(r, "parallelism.data_parallel_replicate_degree", 1));
}

static void set_accumulation(struct maq_file_reader *r)
{
    const bool pipeline = maq_file_number(r, "parallelism.pipeline_parallel_degree", 1) > 1;
    const int64_t local = maq_file_number(r, "training.local_batch_size", 8),
                  micro = pipeline ? maq_file_number(r, "parallelism.pipeline_parallel_microbatch_size", 1) : local;
    const struct maq_node *at = maq_file_get(r, "training.local_batch_size");
    if (maq_file_number(r, "training.global_batch_size", -1) > 0)
        return;
    if (micro > 0 && local % micro == 0)
        maq_file_set_number(r, at, "workload.gradient_accumulation_steps", local / micro);
    else
        maq_file_fault(r, at, "make it a multiple of pipeline_parallel_microbatch_size",
                       "local_batch_size %lld is not cut into microbatches of %lld", (long long)local,
                       (long long)micro);
}

/* Whole layers, every nth of a rank: as many as recompute_method block has, which are its first. */
static void set_every_nth(struct maq_file_reader *r)
{
    const struct maq_node *mode = maq_file_get(r, "activation_checkpoint.mode"),
                          *option = maq_file_get(r, "activation_checkpoint.selective_ac_option"),
                          *at = option ? option : mode;
    const int64_t nth = maq_file_number(r, "activation_checkpoint.selective_ac_option", option ? 0 : 2);
    int64_t hidden, layers;
    if (mode && maq_str_is(mode->text, "memory_budget"))
        maq_file_fault(r, mode, "try \"selective\" with selective_ac_option \"op\"",
                       "what the compiler recomputes for a budget of memory is not modelled");
    if ((mode && !maq_str_is(mode->text, "selective")) || (option && maq_str_is(option->text, "op")))
        return;
    if (nth < 1 || maq_file_number(r, "parallelism.pipeline_parallel_degree", 1) > 1 ||
        !maq_file_model_shape(r, &hidden, &layers)) {
        maq_file_fault(r, at, "set selective_ac_option = \"op\", or mode",
                       "which layers are recomputed cannot be told: every %lldth of each rank", (long long)nth);
        return;
    }
    maq_file_set(r, at, "plan.recompute_granularity", layers / nth > 0 ? "full" : "none");
    maq_file_set(r, at, "plan.recompute_method", "block");
    maq_file_set_number(r, at, "plan.recompute_num_layers", layers / nth);
}

/* A list of components without the model compiles the loss alone. */
static void set_compiled(struct maq_file_reader *r)
{
    const struct maq_node *list = maq_file_get(r, "compile.components");
    bool model = !list;
    for (const struct maq_node *n = list ? list->first : NULL; n; n = n->next)
        model |= maq_str_is(n->text, "model");
    if (!model && maq_file_true(r, "compile.enable", false))
        maq_file_set(r, list, "plan.fused_kernels", "false");
}

/* FSDP2's CPUOffloadPolicy: parameters, gradients and optimizer (torchtitan/distributed/utils.py, models/llama3/infra/parallelize.py). */
static void set_offload(struct maq_file_reader *r)
{
    const struct maq_node *n = maq_file_get(r, "training.enable_cpu_offload");
    if (!n || !maq_file_asks(n, NULL))
        return;
    maq_file_set(r, n, "plan.offload_param_device", "cpu");
    maq_file_set(r, n, "plan.optimizer_offload_fraction", "1");
}

static void conclude(struct maq_file_reader *r)
{
    maq_file_framework(r, "torchtitan");
    set_model(r);
    set_words(r);
    set_shards(r);
    set_accumulation(r);
    set_every_nth(r);
    set_compiled(r);
    set_offload(r);
}

/* ---- written ---- */

static void put_model(struct maq_file_writer *w, const struct maq_model *model)
{
    size_t i = 0;
    while (i < MAQ_COUNT(models) && strcmp(models[i].model, model->name) != 0)
        i++;
    if (i == MAQ_COUNT(models)) {
        maq_file_cannot(w, "model", "llama-3.1-8b, qwen3-8b and deepseek-v3 are", "%s is no flavour of its models",
                        model->name);
        return;
    }
    maq_file_put_word(w, "name", models[i].name);
    maq_file_put_word(w, "flavor", models[i].flavor);
}

/* Which nth layers are as many as recompute_method block has of a rank; 0: none, or it is no such plan. */
static int64_t every_nth(const struct maq_job *job)
{
    const struct maq_plan *p = &job->plan;
    const int64_t layers = job->model.num_layers;
    const bool block = p->recompute == MAQ_RECOMPUTE_FULL && p->recompute_method == MAQ_RECOMPUTE_BLOCK && p->pp == 1;
    for (int64_t nth = 1; block && nth <= layers; nth++)
        if (layers / nth == p->recompute_num_layers)
            return nth;
    return 0;
}

/* What a word says, as a value of TOML. */
static void put_said(struct maq_file_writer *w, const char *key, struct maq_str said)
{
    int64_t number;
    if (maq_str_is(said, MAQ_WORD_SWITCH))
        maq_file_put_switch(w, key, true);
    else if (strcmp(key, "converters") == 0)
        maq_file_put_list(w, key, said);
    else if (maq_str_to_i64(&number, said))
        maq_file_put_number(w, key, (double)number);
    else
        maq_file_put_text(w, key, said);
}

/* The words of a table, or whether there are any. */
static bool put_words(struct maq_file_writer *w, const char *table, const struct maq_job *job, bool write)
{
    const size_t n = strlen(table);
    bool any = false;
    for (const struct maq_word *row = maq_words_torchtitan.words; row->word || row->path; row++) {
        const char *key = row->word && strncmp(row->word, table, n) == 0 ? row->word + n : ".";
        struct maq_buf text;
        if (*key != '.' || key[1] == '\0' || strchr(key + 1, '.') || (every_nth(job) > 0 && strcmp(key, ".mode") == 0))
            continue;
        maq_buf_init(&text, 65536);
        maq_word_write(&text, row, job);
        any |= text.len > 0;
        if (text.len > 0 && write)
            put_said(w, key + 1, (struct maq_str){text.ptr, text.len});
        w->out->failed |= text.failed;
        maq_buf_fini(&text);
    }
    return any;
}

static void write(struct maq_file_writer *w, const struct maq_job *job)
{
    static const char *const tables[] = {"model",   "training",  "parallelism",           "activation_checkpoint",
                                         "compile", "optimizer", "quantize.linear.float8"};
    const bool away = job->plan.offload_param == MAQ_OFFLOAD_CPU && job->plan.optimizer_offload >= 1;
    char nth[32];
    maq__snprintf(nth, sizeof nth, "%lld", (long long)every_nth(job));
    for (size_t i = 0; i < MAQ_COUNT(tables); i++) {
        const bool model = strcmp(tables[i], "model") == 0,
                   partly = every_nth(job) > 0 && strcmp(tables[i], "activation_checkpoint") == 0;
        if (!model && !partly && !put_words(w, tables[i], job, false))
            continue;
        maq_file_open(w, tables[i]);
        if (model)
            put_model(w, &job->model);
        (void)put_words(w, tables[i], job, true);
        if (partly) {
            maq_file_put_word(w, "mode", "selective");
            maq_file_put_word(w, "selective_ac_option", nth);
        }
        if (away && strcmp(tables[i], "training") == 0)
            maq_file_put_switch(w, "enable_cpu_offload", true);
        maq_file_close(w);
    }
}

const struct maq_file_form maq_file_torchtitan = {
    .title = "torchtitan's configuration",
    .told_by = "parallelism,training|model,training,optimizer,job|job,model,activation_checkpoint",
    .keys = keys,
    .conclude = conclude,
    .write = write,
    .name = "torchtitan",
    .syntax = MAQ_FILE_TOML,
    .says = MAQ_FILE_SAYS_MODEL | MAQ_FILE_SAYS_SEQUENCE | MAQ_FILE_SAYS_BATCH,
};
