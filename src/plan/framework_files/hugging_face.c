/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hugging_face.c - what files of Hugging Face's libraries have in common, as it is read and as it is written. See hugging_face.h.
 *
 * Names, defaults and meanings are those of transformers 5.0 (training_args.py, trainer_optimizer.py) and accelerate 1.14 (utils/dataclasses.py,
 * FullyShardedDataParallelPlugin; utils/fsdp_utils.py).
 *
 *   - A step has per_device_train_batch_size (8) x gradient_accumulation_steps (1) sequences of each data-parallel rank.
 *   - bf16 and fp16 are autocast around weights of 4 bytes; DeepSpeed's files say their own.
 *   - FULL_SHARD drops gathered parameters behind the forward pass, SHARD_GRAD_OP keeps them to the backward pass; the HYBRID ones have a copy
 *     of the shards on each node, of which num_machines says the number.
 *   - 8-bit optimizers have moments in blocks; "paged" ones have them in managed memory.
 *   - GaLore's rank (128) and update_proj_gap (200) are in optim_args, its modules in optim_target_modules (transformers 5.24,
 *     trainer_optimizer.py, _get_galore_optimizer()); "attn" and "mlp" there stand for what such names have in them.
 */
#include "plan/framework_files/hugging_face.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "model/load.h"
#include "plan/keys.h"

/* ---- FSDP ---- */

/* map.fsdp_NAME or map.NAME. */
static const struct maq_node *fsdp_key(const struct maq_file_reader *r, const char *map, const char *name)
{
    char key[128];
    maq__snprintf(key, sizeof key, "%s.fsdp_%s", map, name);
    const struct maq_node *n = maq_file_get(r, key);
    maq__snprintf(key, sizeof key, "%s.%s", map, name);
    return n ? n : maq_file_get(r, key);
}

static bool has_word(struct maq_str text, const char *word)
{
    struct maq_str rest = text, one;
    while (rest.ptr && rest.len > 0) {
        rest = maq_str_split(rest, ' ', &one);
        if (maq_str_ieq(one, word))
            return true;
    }
    return false;
}

enum strategy { FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD, HYBRID_SHARD_ZERO2, NO_STRATEGY };

/* By name, or by its number in PyTorch's enumeration, from 1. */
static enum strategy strategy_of(struct maq_str text)
{
    static const char *const names[] = {"full_shard", "shard_grad_op", "no_shard", "hybrid_shard",
                                        "hybrid_shard_zero2"};
    int64_t number;
    for (size_t i = 0; i < MAQ_COUNT(names); i++)
        if (has_word(text, names[i]) || (maq_str_to_i64(&number, text) && number == (int64_t)i + 1))
            return (enum strategy)i;
    return maq_str_ieq(text, "_hybrid_shard_zero2") ? HYBRID_SHARD_ZERO2 : NO_STRATEGY;
}

/* fsdp_reshard_after_forward is a switch in FSDP2 and takes the names of strategies in FSDP1. */
static enum strategy fsdp_strategy(const struct maq_file_reader *r, const char *map, struct maq_str asked)
{
    const struct maq_node *named = fsdp_key(r, map, "sharding_strategy"),
                          *reshard = fsdp_key(r, map, "reshard_after_forward");
    enum strategy by_reshard = reshard ? strategy_of(reshard->text) : NO_STRATEGY;
    if (reshard && by_reshard == NO_STRATEGY)
        return maq_file_asks(reshard, NULL) ? FULL_SHARD : SHARD_GRAD_OP;
    if (by_reshard != NO_STRATEGY)
        return by_reshard;
    enum strategy by_name = strategy_of(named ? named->text : asked);
    return by_name == NO_STRATEGY ? FULL_SHARD : by_name;
}

void maq_file_fsdp(struct maq_file_reader *r, const struct maq_node *at, const char *map, struct maq_str strategy)
{
    const struct maq_node *offload = fsdp_key(r, map, "offload_params"),
                          *checkpoints = fsdp_key(r, map, "activation_checkpointing");
    const enum strategy s = fsdp_strategy(r, map, strategy);
    maq_file_set(r, at, "plan.data_parallel_sharding_strategy", s == NO_SHARD ? "no_shard" : "optim_grads_params");
    if (s != NO_SHARD)
        maq_file_set(r, at, "plan.reshard_after_forward", s == FULL_SHARD || s == HYBRID_SHARD ? "true" : "false");
    if (s == HYBRID_SHARD || s == HYBRID_SHARD_ZERO2)
        maq_file_set_number(r, at, "plan.num_distributed_optimizer_instances", maq_file_number(r, "num_machines", 1));
    const bool away = (offload && maq_file_asks(offload, NULL)) || has_word(strategy, "offload");
    if (away && s == NO_SHARD)
        maq_file_fault(r, offload ? offload : at, "shard them: FULL_SHARD",
                       "whole parameters on the host are not modelled");
    else if (away) { /* gradients and optimizer follow the parameters */
        maq_file_set(r, offload ? offload : at, "plan.offload_param_device", "cpu");
        maq_file_set(r, offload ? offload : at, "plan.optimizer_offload_fraction", "1");
    }
    if (checkpoints && maq_file_asks(checkpoints, NULL))
        maq_file_set(r, checkpoints, "plan.recompute_granularity", "full");
}

void maq_file_put_fsdp(struct maq_file_writer *w, const struct maq_plan *p)
{
    maq_file_open(w, "fsdp_config");
    maq_file_put_number(w, "fsdp_version", 2);
    maq_file_put_switch(w, "reshard_after_forward", p->reshard_after_forward);
    if (p->offload_param == MAQ_OFFLOAD_CPU)
        maq_file_put_switch(w, "offload_params", true);
    maq_file_close(w);
}

void maq_file_put_trainer_sharding(struct maq_file_writer *w, const struct maq_job *job)
{
    const struct maq_plan *p = &job->plan;
    if (job->framework.reduce_bucket_held) { /* DeepSpeed's */
        maq_file_open(w, "deepspeed");
        maq_file_put_deepspeed(w, job);
        maq_file_close(w);
    } else if (p->sharding == MAQ_SHARDING_PARAMS) {
        maq_file_put_word(w, "fsdp", p->offload_param == MAQ_OFFLOAD_CPU ? "full_shard offload" : "full_shard");
        maq_file_put_fsdp(w, p);
    }
}

/* ---- precision, optimizer, batch ---- */

void maq_file_switches(struct maq_file_reader *r, const char *bf16, const char *fp16)
{
    const bool is_bf16 = maq_file_true(r, bf16, false) || maq_file_is(r, bf16, "full"),
               is_fp16 = maq_file_true(r, fp16, false);
    const struct maq_node *at = maq_file_get(r, is_bf16 ? bf16 : fp16);
    const struct maq_node *open = maq_node_peek(r->root, bf16);
    if (is_bf16 && is_fp16)
        maq_file_fault(r, at, "leave one of the two", "%s and %s are both on", bf16, fp16);
    else if (is_bf16 || is_fp16)
        maq_file_set(r, at, "plan.precision", is_bf16 ? "bf16" : "fp16");
    else if (!open || !maq_str_is(open->text, "auto"))
        maq_file_set(r, NULL, "plan.precision", "fp32");
}

static const struct optimizer {
    const char *name, *optimizer, *moments; /* moments: their type where it is not FP32 */
    bool paged, low_rank, layerwise, apollo;
} optimizers[] = {
    {.name = "adamw_torch_fused", .optimizer = "adam"}, /* the first of its kind is what is written */
    {.name = "adamw_torch", .optimizer = "adam"},
    {.name = "adamw_hf", .optimizer = "adam"},
    {.name = "adamw_apex_fused", .optimizer = "adam"},
    {.name = "adamw", .optimizer = "adam"},
    {.name = "adam", .optimizer = "adam"},
    {.name = "paged_adamw_32bit", .optimizer = "adam", .paged = true},
    {.name = "paged_adamw", .optimizer = "adam", .paged = true},
    {.name = "adamw_bnb_8bit", .optimizer = "adam", .moments = "int8"},
    {.name = "adamw_8bit", .optimizer = "adam", .moments = "int8"},
    {.name = "adamw_torch_8bit", .optimizer = "adam", .moments = "int8"},
    {.name = "paged_adamw_8bit", .optimizer = "adam", .moments = "int8", .paged = true},
    {.name = "adamw_torch_4bit", .optimizer = "adam", .moments = "fp4"},
    {.name = "lion_32bit", .optimizer = "lion"},
    {.name = "paged_lion_32bit", .optimizer = "lion", .paged = true},
    {.name = "lion_8bit", .optimizer = "lion", .moments = "int8"},
    {.name = "paged_lion_8bit", .optimizer = "lion", .moments = "int8", .paged = true},
    {.name = "lion_pytorch", .optimizer = "lion"},
    {.name = "adafactor", .optimizer = "adafactor"},
    {.name = "sgd", .optimizer = "sgd"},
    {.name = "muon", .optimizer = "muon"},
    {.name = "galore_adamw", .optimizer = "adam", .low_rank = true},
    {.name = "galore_adamw_8bit", .optimizer = "adam", .moments = "int8", .low_rank = true},
    {.name = "galore_adafactor", .optimizer = "adafactor", .low_rank = true},
    {.name = "galore_adamw_layerwise", .optimizer = "adam", .low_rank = true, .layerwise = true},
    {.name = "galore_adamw_8bit_layerwise",
     .optimizer = "adam",
     .moments = "int8",
     .low_rank = true,
     .layerwise = true},
    {.name = "apollo_adamw", .optimizer = "adam", .low_rank = true, .apollo = true},
    {.name = "apollo_adamw_layerwise", .optimizer = "adam", .low_rank = true, .layerwise = true, .apollo = true},
    {.name = "galore_adafactor_layerwise", .optimizer = "adafactor", .low_rank = true, .layerwise = true},
};

/* A number out of "rank=64, update_proj_gap=100". */
static int64_t argument(struct maq_str text, const char *name, int64_t otherwise)
{
    struct maq_str rest = text, one, key;
    int64_t number = otherwise;
    while (rest.ptr && rest.len > 0) {
        rest = maq_str_split(rest, ',', &one);
        struct maq_str value = maq_str_split(maq_str_trim(one), '=', &key);
        if (maq_str_is(maq_str_trim(key), name) && value.ptr)
            (void)maq_str_to_i64(&number, maq_str_trim(value));
    }
    return number;
}

static bool says(struct maq_str text, const char *name, const char *word)
{
    struct maq_str rest = text, one, key;
    bool found = false;
    while (rest.ptr && rest.len > 0) {
        rest = maq_str_split(rest, ',', &one);
        struct maq_str value = maq_str_split(maq_str_trim(one), '=', &key);
        found = found || (maq_str_is(maq_str_trim(key), name) && value.ptr && maq_str_is(maq_str_trim(value), word));
    }
    return found;
}

/* Targets by what stands in a module's name: ".*.attn.*". */
static bool part_of_model(struct maq_buf *out, struct maq_str word)
{
    static const struct {
        const char *part, *modules;
    } parts[] = {{"attn", "q_proj,k_proj,v_proj,o_proj"}, {"mlp", "gate_proj,up_proj,down_proj"}};
    while (word.len > 0 && strchr(".*", word.ptr[0]))
        word = (struct maq_str){word.ptr + 1, word.len - 1};
    while (word.len > 0 && strchr(".*", word.ptr[word.len - 1]))
        word.len--;
    for (size_t i = 0; i < MAQ_COUNT(parts); i++)
        if (maq_str_is(word, parts[i].part) || (i == 0 && maq_str_is(word, "self_attn"))) {
            maq_buf_addf(out, "%s%s", out->len ? "," : "", parts[i].modules);
            return true;
        }
    maq_buf_addf(out, "%s%.*s", out->len ? "," : "", (int)word.len, word.ptr);
    return word.len > 0;
}

void maq_file_galore(struct maq_file_reader *r, const struct maq_node *at, int64_t rank, int64_t gap,
                     const struct maq_node *targets)
{
    struct maq_buf words;
    maq_file_set_number(r, at, "plan.galore_rank", rank);
    maq_file_set_number(r, at, "plan.galore_update_proj_gap", gap);
    if (!targets || maq_str_is(targets->text, "all") || maq_str_is(targets->text, "all_linear"))
        return;
    maq_buf_init(&words, 4096);
    if (targets->kind == MAQ_NODE_SEQ)
        for (const struct maq_node *n = targets->first; n; n = n->next)
            (void)part_of_model(&words, n->text);
    else
        (void)part_of_model(&words, targets->text);
    if (!words.failed && words.len > 0)
        maq_file_set(r, targets, "plan.galore_target_modules",
                     maq_arena_strdup(&r->job->arena, (struct maq_str){words.ptr, words.len}));
    maq_buf_fini(&words);
}

static void set_optimizer(struct maq_file_reader *r, const struct maq_node *at, const struct optimizer *o)
{
    const struct maq_str arguments = maq_file_text(r, "optim_args", NULL);
    maq_file_set(r, at, "plan.optimizer", o->optimizer);
    if (o->moments)
        maq_file_set(r, at, "plan.exp_avg_dtype", o->moments);
    if (o->paged)
        maq_file_set(r, at, "plan.paged_optimizer", "true");
    if (o->low_rank)
        maq_file_galore(r, at, argument(arguments, "rank", 128), argument(arguments, "update_proj_gap", 200),
                        maq_file_get(r, "optim_target_modules"));
    if (o->layerwise)
        maq_file_set(r, at, "plan.galore_layerwise", "true");
    if (!o->apollo)
        return;
    maq_file_set(r, at, "plan.use_apollo", "true");
    if (says(arguments, "proj", "svd"))
        maq_file_fault(r, at, "use proj=random", "APOLLO with decompositions (proj=svd) is not modelled");
}

void maq_file_optim(struct maq_file_reader *r, const struct maq_node *at)
{
    for (size_t i = 0; at && i < MAQ_COUNT(optimizers); i++)
        if (maq_str_ieq(at->text, optimizers[i].name)) {
            set_optimizer(r, at, &optimizers[i]);
            return;
        }
    if (at)
        maq_file_fault(r, at,
                       "adamw_torch_fused, adamw_bnb_8bit, paged_adamw_8bit, lion_32bit, adafactor, sgd, muon and "
                       "galore_adamw and apollo_adamw are",
                       "the optimizer %.*s is not modelled", (int)(at->text.len < 60 ? at->text.len : 60),
                       at->text.ptr);
}

/* A name, or a class with its arguments, as jsonargparse has them: LitGPT's and Lightning's. */
void maq_file_torch_optimizer(struct maq_file_reader *r, const struct maq_node *at)
{
    static const struct {
        const char *name, *optimizer;
    } known[] = {{"AdamW", "adam"}, {"Adam", "adam"}, {"SGD", "sgd"}, {"PagedAdamW", "adam"}};
    const bool map = at && at->kind == MAQ_NODE_MAP;
    const struct maq_node *n = map ? maq_node_peek(at, "class_path") : at,
                          *arguments = map ? maq_node_peek(at, "init_args") : NULL,
                          *fused = arguments ? maq_node_peek(arguments, "fused") : NULL;
    struct maq_str word = n && n->text.len > 0 ? n->text : MAQ_STR(""), before;
    while (memchr(word.ptr, '.', word.len))
        word = maq_str_split(word, '.', &before);
    for (size_t i = 0; n && i < MAQ_COUNT(known); i++)
        if (maq_str_is(word, known[i].name)) {
            maq_file_set(r, n, "plan.optimizer", known[i].optimizer);
            if (fused && maq_file_asks(fused, NULL))
                maq_file_set(r, fused, "framework.optimizer", "fused");
            return;
        }
    if (n)
        maq_file_fault(r, n, "torch.optim.AdamW and SGD are", "the optimizer %.*s is not modelled",
                       (int)(n->text.len < 80 ? n->text.len : 80), n->text.ptr ? n->text.ptr : "");
}

const char *maq_file_optim_name(const struct maq_plan *p, bool low_rank)
{
    char update[64], moments[64];
    const char *own = maq_plan_value(update, p, "optimizer"), *kept = maq_plan_value(moments, p, "exp_avg_dtype");
    for (size_t i = 0; i < MAQ_COUNT(optimizers); i++) {
        const struct optimizer *o = &optimizers[i];
        const bool same = o->moments ? strcmp(o->moments, kept) == 0 : !strstr("int8 fp4", kept); /* else the model's */
        if (strcmp(o->optimizer, own) == 0 && same && o->paged == p->paged_optimizer && o->low_rank == low_rank &&
            o->layerwise == (low_rank && p->galore_layerwise) && o->apollo == (low_rank && p->use_apollo))
            return o->name;
    }
    return NULL;
}

void maq_file_put_optim(struct maq_file_writer *w, const char *key, const char *all, const struct maq_plan *p)
{
    const bool low_rank = p->galore_rank > 0;
    const char *name = maq_file_optim_name(p, low_rank);
    struct maq_buf arguments;
    if (name)
        maq_file_put_word(w, key, name);
    if (!low_rank)
        return;
    maq_buf_init(&arguments, 256);
    maq_buf_addf(&arguments, "rank=%d, update_proj_gap=%d", p->galore_rank, p->galore_gap);
    maq_file_put_text(w, "optim_args", (struct maq_str){arguments.ptr, arguments.len});
    w->out->failed |= arguments.failed;
    maq_buf_fini(&arguments);
    if (p->galore_targets.len > 0 && !maq_str_is(p->galore_targets, "all-linear"))
        maq_file_put_list(w, "optim_target_modules", p->galore_targets);
    else
        maq_file_put_word(w, "optim_target_modules", all);
}

void maq_file_batch(struct maq_file_reader *r, const char *micro, int64_t otherwise, const char *accumulation)
{
    maq_file_set_number(r, maq_file_get(r, micro), "plan.micro_batch_size", maq_file_number(r, micro, otherwise));
    maq_file_set_number(r, maq_file_get(r, accumulation), "workload.gradient_accumulation_steps",
                        maq_file_number(r, accumulation, 1));
}

/* ---- the model, and what is trained of it ---- */

void maq_file_model(struct maq_file_reader *r, const char *key)
{
    const struct maq_node *n = maq_file_get(r, key);
    if (n && n->kind == MAQ_NODE_SCALAR)
        maq_file_set(r, n, "model", maq_arena_strdup(&r->job->arena, n->text));
}

/* PEFT takes a text as a regular expression. Of "...(up|down|q|v)_proj" the words are those of the last group, with what stands behind it. */
static bool words_of_pattern(struct maq_buf *out, struct maq_str text)
{
    const char *close = memrchr(text.ptr, ')', text.len),
               *open = close ? memrchr(text.ptr, '(', (size_t)(close - text.ptr)) : NULL;
    if (!open)
        return false;
    const struct maq_str behind = {close + 1, text.len - (size_t)(close + 1 - text.ptr)};
    struct maq_str rest = {open + 1, (size_t)(close - open - 1)}, word;
    while (rest.ptr && rest.len > 0) {
        rest = maq_str_split(rest, '|', &word);
        maq_buf_addf(out, "%s%.*s%.*s", out->len ? "," : "", (int)word.len, word.ptr, (int)behind.len, behind.ptr);
    }
    return out->len > 0 && !strpbrk(out->ptr, "()[]\\*?$^+");
}

static void set_targets(struct maq_file_reader *r, const struct maq_node *targets)
{
    struct maq_buf words;
    maq_buf_init(&words, 4096);
    if (targets->kind == MAQ_NODE_SCALAR && words_of_pattern(&words, targets->text) && !words.failed)
        maq_file_set(r, targets, "plan.lora_target_modules",
                     maq_arena_strdup(&r->job->arena, (struct maq_str){words.ptr, words.len}));
    else
        maq_file_set_words(r, targets, "plan.lora_target_modules");
    maq_buf_fini(&words);
}

void maq_file_lora(struct maq_file_reader *r, const struct maq_node *at, int64_t rank, const struct maq_node *targets,
                   const char *otherwise)
{
    maq_file_set_number(r, at, "plan.lora_rank", rank);
    if (!targets || maq_str_is(targets->text, "all"))
        maq_file_set(r, targets ? targets : at, "plan.lora_target_modules", targets ? "all-linear" : otherwise);
    else
        set_targets(r, targets);
}

void maq_file_put_targets(struct maq_file_writer *w, const char *key, const char *all, const struct maq_plan *p)
{
    if (maq_str_is(p->lora_targets, "all-linear"))
        maq_file_put_word(w, key, all);
    else if (p->lora_targets.len > 0 && !maq_str_starts(p->lora_targets, "linear_"))
        maq_file_put_list(w, key, p->lora_targets);
    else
        maq_file_cannot(w, "lora_target_modules", "name them as the model's classes do (q_proj,v_proj), or all-linear",
                        "PEFT has no linears of Megatron Core, which are NeMo's targets and those that stand for none");
}

void maq_file_put_model(struct maq_file_writer *w, const char *key, const struct maq_model *model)
{
    static const char hub[] = "https://huggingface.co/", file[] = "/config.json";
    const struct maq_str name = maq_str_of(model->name), source = maq_str_of(model->source);
    const size_t tail = sizeof file - 1;
    struct maq_str word;
    if (maq_model_entry(name) && maq_str_starts(source, hub)) {
        (void)maq_str_split((struct maq_str){source.ptr + sizeof hub - 1, source.len - (sizeof hub - 1)}, ' ', &word);
        maq_file_put_text(w, key, word);
    } else if (name.len > tail && strcmp(name.ptr + name.len - tail, file) == 0) { /* the folder of a model's files */
        maq_file_put_text(w, key, (struct maq_str){name.ptr, name.len - tail});
    } else {
        maq_file_cannot(w, "model", "name one that Hugging Face's hub has, or the config.json in a folder of its files",
                        "%s is no model that its library could load", model->name);
    }
}
