/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lightning.c - the YAML of LightningCLI: arguments of Lightning's Trainer, and classes for model and data.
 *
 *   trainer:
 *     strategy: {class_path: FSDPStrategy, init_args: {auto_wrap_policy: [GPT2Block]}}     or a name: ddp, fsdp, deepspeed_stage_2_offload
 *     precision: bf16-mixed
 *     accumulate_grad_batches: 4
 *   model: {class_path: mine.Model, init_args: {model_name_or_path: gpt2}}
 *   data: {class_path: mine.Data, init_args: {batch_size: 8}}
 *
 * Names, defaults and meanings are those of Lightning 2.6.2 (7f0c3436), package lightning.pytorch: cli.py, trainer/trainer.py,
 * accelerator_connector.py beside it, strategies (register_strategies() has their names) and plugins/precision.
 *
 *   - Without a strategy it is DistributedDataParallel, and nothing around the model on one device (_choose_strategy()).
 *   - bf16-mixed is autocast around weights of 4 bytes, bf16-true makes the module 16 bits wide, moments and all; FSDP brings its parameters
 *     in 16 bits and reduces in them either way (plugins/precision/fsdp.py).
 *   - DDP reduces beside the backward pass, in the weights' type, and adds up a step's microbatches under no_sync(); FSDP is not asked to
 *     (strategies/parallel.py, block_backward_sync()).
 *   - DeepSpeedStrategy's arguments become DeepSpeed's configuration, with defaults of their own (_create_default_config()): deepspeed.c reads
 *     that, or the one that `config` is or names.
 *   - A loader's batch_size is of one device.
 *
 * Which model a class is, is the user's code: --model says it, unless an argument of the class is a model's name. The number of devices is
 * the cluster's.
 */
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "model/load.h"
#include "plan/framework_files/hugging_face.h"

#define ARGS "trainer.strategy.init_args"

static const struct maq_file_key keys[] = {
    MAQ_FILE_REFUSE_BUT("trainer.accelerator", "auto|gpu|cuda", "training on anything but GPUs"),
    MAQ_FILE_KEEP("trainer.strategy.class_path"),
    /* arguments of DDPStrategy, */
    MAQ_FILE_KEEP(ARGS ".find_unused_parameters"), MAQ_FILE_KEEP(ARGS ".gradient_as_bucket_view"),
    MAQ_FILE_SET(ARGS ".bucket_cap_mb", "framework.bucket_cap_mb"),
    MAQ_FILE_REFUSE(ARGS ".ddp_comm_hook", "gradients on another way"),
    MAQ_FILE_REFUSE(ARGS ".model_averaging_period", "steps without reductions"), MAQ_FILE_IDLE(ARGS ".ddp_comm_*"),
    MAQ_FILE_IDLE(ARGS ".start_method"), MAQ_FILE_IDLE(ARGS ".static_graph"),
    /* of FSDPStrategy, */
    MAQ_FILE_KEEP(ARGS ".sharding_strategy"), MAQ_FILE_KEEP(ARGS ".device_mesh"), MAQ_FILE_KEEP(ARGS ".cpu_offload"),
    MAQ_FILE_KEEP(ARGS ".activation_checkpointing"), MAQ_FILE_KEEP(ARGS ".activation_checkpointing_policy"),
    MAQ_FILE_KEEP(ARGS ".auto_wrap_policy"),
    MAQ_FILE_REFUSE(ARGS ".mixed_precision", "types of its own; trainer.precision says those that are read"),
    MAQ_FILE_IDLE(ARGS ".state_dict_type"), MAQ_FILE_IDLE(ARGS ".use_orig_params"),
    MAQ_FILE_IDLE(ARGS ".limit_all_gathers"), MAQ_FILE_IDLE(ARGS ".sync_module_states"),
    /* of DeepSpeedStrategy, */
    MAQ_FILE_KEEP(ARGS ".config"), MAQ_FILE_KEEP(ARGS ".stage"), MAQ_FILE_KEEP(ARGS ".zero_optimization"),
    MAQ_FILE_KEEP(ARGS ".overlap_comm"), MAQ_FILE_KEEP(ARGS ".contiguous_gradients"),
    MAQ_FILE_KEEP(ARGS ".reduce_bucket_size"), MAQ_FILE_KEEP(ARGS ".sub_group_size"), MAQ_FILE_KEEP(ARGS ".offload_*"),
    MAQ_FILE_REFUSE(ARGS ".partition_activations", "checkpoints cut over TP ranks"),
    MAQ_FILE_REFUSE(ARGS ".cpu_checkpointing", "checkpoints in host memory"), MAQ_FILE_IDLE(ARGS ".allgather_*"),
    MAQ_FILE_IDLE(ARGS ".block_size"), MAQ_FILE_IDLE(ARGS ".hysteresis"), MAQ_FILE_IDLE(ARGS ".initial_scale_power"),
    MAQ_FILE_IDLE(ARGS ".load_full_weights"), MAQ_FILE_IDLE(ARGS ".logging_*"), MAQ_FILE_IDLE(ARGS ".loss_scale*"),
    MAQ_FILE_IDLE(ARGS ".min_loss_scale"), MAQ_FILE_IDLE(ARGS ".nvme_path"), MAQ_FILE_IDLE(ARGS ".pin_memory"),
    MAQ_FILE_IDLE(ARGS ".reduce_scatter"), MAQ_FILE_IDLE(ARGS ".remote_device"),
    MAQ_FILE_IDLE(ARGS ".zero_allow_untested_optimizer"),
    /* of each */
    MAQ_FILE_IDLE(ARGS ".accelerator"), MAQ_FILE_IDLE(ARGS ".checkpoint_io"),
    MAQ_FILE_IDLE(ARGS ".cluster_environment"), MAQ_FILE_IDLE(ARGS ".process_group_backend"),
    MAQ_FILE_IDLE(ARGS ".timeout"), MAQ_FILE_KEEP("trainer.devices"), MAQ_FILE_KEEP("trainer.num_nodes"),
    MAQ_FILE_KEEP("trainer.precision"),
    MAQ_FILE_SET("trainer.accumulate_grad_batches", "workload.gradient_accumulation_steps"),
    MAQ_FILE_KEEP("trainer.plugins"), MAQ_FILE_KEEP("trainer.callbacks"),
    MAQ_FILE_REFUSE("trainer.detect_anomaly", "checks of every backward function"), MAQ_FILE_IDLE("trainer.barebones"),
    MAQ_FILE_IDLE("trainer.benchmark"), MAQ_FILE_IDLE("trainer.check_val_every_n_epoch"),
    MAQ_FILE_IDLE("trainer.default_root_dir"), MAQ_FILE_IDLE("trainer.deterministic"),
    MAQ_FILE_IDLE("trainer.enable_*"), MAQ_FILE_IDLE("trainer.fast_dev_run"), MAQ_FILE_IDLE("trainer.gradient_clip_*"),
    MAQ_FILE_IDLE("trainer.inference_mode"), MAQ_FILE_IDLE("trainer.limit_*"),
    MAQ_FILE_IDLE("trainer.log_every_n_steps"), MAQ_FILE_IDLE("trainer.logger"), MAQ_FILE_IDLE("trainer.max_*"),
    MAQ_FILE_IDLE("trainer.min_*"), MAQ_FILE_IDLE("trainer.model_registry"),
    MAQ_FILE_IDLE("trainer.num_sanity_val_steps"), MAQ_FILE_IDLE("trainer.overfit_batches"),
    MAQ_FILE_IDLE("trainer.profiler"), MAQ_FILE_IDLE("trainer.reload_dataloaders_every_n_epochs"),
    MAQ_FILE_IDLE("trainer.suggest_integrations"), MAQ_FILE_IDLE("trainer.sync_batchnorm"),
    MAQ_FILE_IDLE("trainer.use_distributed_sampler"), MAQ_FILE_IDLE("trainer.val_check_interval"),
    MAQ_FILE_IDLE("model.class_path"), MAQ_FILE_KEEP("model.init_args.model_name_or_path"),
    MAQ_FILE_IDLE("model.init_args.learning_rate"), MAQ_FILE_IDLE("model.init_args.lr"),
    MAQ_FILE_IDLE("model.init_args.warmup*"), MAQ_FILE_IDLE("model.init_args.weight_decay"),
    MAQ_FILE_IDLE("data"), /* what counts of it is asked for */
    MAQ_FILE_KEEP("optimizer"), MAQ_FILE_IDLE("lr_scheduler"), MAQ_FILE_IDLE("ckpt_path"),
    MAQ_FILE_IDLE("seed_everything"), MAQ_FILE_END};

/* ---- strategies ---- */

enum kind { DDP, FSDP, DEEPSPEED, ALONE, UNKNOWN };

/* What a registered name adds to its class's arguments. */
static const struct strategy {
    const char *name; /* with '*' at the end: any ending */
    enum kind kind;
    int stage;
    bool optimizer_away, params_away, nvme;
    const char *why; /* UNKNOWN: what has no model here */
} strategies[] = {
    {.name = "ddp_*find_unused_parameters_true", .kind = DDP},
    {.name = "ddp*", .kind = DDP},
    {.name = "DDPStrategy", .kind = DDP},
    {.name = "fsdp", .kind = FSDP},
    {.name = "fsdp_cpu_offload", .kind = FSDP, .params_away = true},
    {.name = "FSDPStrategy", .kind = FSDP},
    {.name = "deepspeed", .kind = DEEPSPEED, .stage = 2},
    {.name = "DeepSpeedStrategy", .kind = DEEPSPEED, .stage = 2},
    {.name = "deepspeed_stage_1", .kind = DEEPSPEED, .stage = 1},
    {.name = "deepspeed_stage_2", .kind = DEEPSPEED, .stage = 2},
    {.name = "deepspeed_stage_2_offload", .kind = DEEPSPEED, .stage = 2, .optimizer_away = true},
    {.name = "deepspeed_stage_3", .kind = DEEPSPEED, .stage = 3},
    {.name = "deepspeed_stage_3_offload", .kind = DEEPSPEED, .stage = 3, .optimizer_away = true, .params_away = true},
    {.name = "deepspeed_stage_3_offload_nvme",
     .kind = DEEPSPEED,
     .stage = 3,
     .optimizer_away = true,
     .params_away = true,
     .nvme = true},
    {.name = "single_device", .kind = ALONE},
    {.name = "SingleDeviceStrategy", .kind = ALONE},
    {.name = "ModelParallelStrategy",
     .kind = UNKNOWN,
     .why = "its cuts are code of the model; a job of maquette says them"},
    {.name = "xla*", .kind = UNKNOWN, .why = "it is XLA's, and MaxText's files are what is read of JAX"},
    {.name = "single_xla", .kind = UNKNOWN, .why = "it is XLA's, and MaxText's files are what is read of JAX"},
    {.name = "XLAStrategy", .kind = UNKNOWN, .why = "it is XLA's, and MaxText's files are what is read of JAX"},
};

static bool is_named(const char *pattern, struct maq_str name)
{
    const char *star = strchr(pattern, '*');
    const size_t n = strlen(pattern), before = star ? (size_t)(star - pattern) : n, behind = star ? n - before - 1 : 0;
    if (!star)
        return maq_str_is(name, pattern);
    return name.len >= before + behind && strncmp(name.ptr, pattern, before) == 0 &&
           strncmp(name.ptr + name.len - behind, star + 1, behind) == 0;
}

/* "lightning.pytorch.strategies.FSDPStrategy": the class; of any other text itself. */
static struct maq_str class_of(struct maq_str text)
{
    const char *dot = text.len > 0 ? memrchr(text.ptr, '.', text.len) : NULL;
    return dot ? (struct maq_str){dot + 1, text.len - (size_t)(dot + 1 - text.ptr)} : text;
}

/* Of a class, or of a list's entry: its name, in either form. */
static const struct maq_node *class_node(const struct maq_node *n)
{
    const struct maq_node *path = n && n->kind == MAQ_NODE_MAP ? maq_node_peek(n, "class_path") : n;
    return path && path->kind == MAQ_NODE_SCALAR ? path : NULL;
}

/* Without one, or with "auto" (which the reader takes for nothing): by the number of devices. */
static const struct strategy *strategy_of(struct maq_file_reader *r, const struct maq_node *at)
{
    static const struct strategy ddp = {.kind = DDP}, alone = {.kind = ALONE};
    const struct maq_node *name = class_node(at);
    if (!at)
        return maq_file_number(r, "trainer.devices", 0) == 1 && maq_file_number(r, "trainer.num_nodes", 1) == 1 ? &alone
                                                                                                                : &ddp;
    for (size_t i = 0; name && i < MAQ_COUNT(strategies); i++)
        if (is_named(strategies[i].name, class_of(name->text))) {
            if (strategies[i].kind == UNKNOWN)
                maq_file_fault(r, name, strategies[i].why, "the strategy %.*s is not modelled",
                               (int)(name->text.len < 60 ? name->text.len : 60), name->text.ptr);
            return &strategies[i];
        }
    maq_file_fault(r, name ? name : at, "ddp, fsdp, deepspeed_stage_1 to 3 and their classes are",
                   "the strategy %.*s is none that is known here",
                   name ? (int)(name->text.len < 60 ? name->text.len : 60) : 0, name ? name->text.ptr : "");
    return &ddp;
}

/* A switch of the strategy's arguments. */
static const struct maq_node *asked(struct maq_file_reader *r, const char *key)
{
    const struct maq_node *n = maq_file_get(r, key);
    return n && maq_file_asks(n, NULL) ? n : NULL;
}

/* torch's own defaults: unused parameters are not looked for, and the buckets are copies (nn/parallel/distributed.py). */
static void set_ddp(struct maq_file_reader *r, const struct maq_node *at)
{
    const struct maq_node *name = class_node(at), *unused = asked(r, ARGS ".find_unused_parameters"),
                          *views = asked(r, ARGS ".gradient_as_bucket_view");
    maq_file_framework(r, "pytorch-ddp");
    maq_file_set(r, NULL, "plan.reduce_once_per_step", "true");
    maq_file_set(r, NULL, "plan.overlap_grad_reduce", "true"); /* a bucket as soon as its gradients are there */
    if (unused || (name && is_named("ddp*find_unused_parameters_true", name->text)))
        maq_file_set(r, unused ? unused : name, "framework.find_unused_parameters", "true");
    if (views)
        maq_file_set(r, views, "framework.gradient_buckets", "views");
}

/* Copies of the shards: a mesh of (replicas, shards), or one on each node. */
static void set_copies(struct maq_file_reader *r, const struct maq_node *named)
{
    const struct maq_node *mesh = maq_file_get(r, ARGS ".device_mesh");
    int64_t copies = maq_file_number(r, "trainer.num_nodes", 1);
    if (mesh && (mesh->kind != MAQ_NODE_SEQ || !mesh->first || !maq_str_to_i64(&copies, mesh->first->text)))
        maq_file_fault(r, mesh, "device_mesh: [2, 8]",
                       "device_mesh has to be how many copies, and how many shards of each");
    else if (named && (maq_str_starts(named->text, "HYBRID") || maq_str_starts(named->text, "hybrid")))
        maq_file_set_number(r, mesh ? mesh : named, "plan.num_distributed_optimizer_instances", copies);
}

static void set_fsdp(struct maq_file_reader *r, const struct strategy *s, const struct maq_node *at)
{
    const struct maq_node *named = maq_file_get(r, ARGS ".sharding_strategy"), *away = asked(r, ARGS ".cpu_offload"),
                          *again = asked(r, ARGS ".activation_checkpointing_policy");
    maq_file_framework(r, "pytorch-fsdp");
    maq_file_fsdp(r, at, ARGS, MAQ_STR(""));
    set_copies(r, named);
    if (away || s->params_away) {
        maq_file_set(r, away ? away : at, "plan.offload_param_device", "cpu");
        maq_file_set(r, away ? away : at, "plan.optimizer_offload_fraction", "1");
    }
    if (again) /* of classes: those of the layers */
        maq_file_set(r, again, "plan.recompute_granularity", "full");
    if (!maq_file_get(r, ARGS ".auto_wrap_policy"))
        maq_diag_add(
            r->diag, MAQ_WARNING, MAQ_CODE_FILE_UNKNOWN, at->at, "auto_wrap_policy names the class of the layers",
            "nothing says that layers are wrapped, and a module that does not do it itself is one unit: they are "
            "taken to be");
}

/* ---- DeepSpeed's configuration, as its strategy makes it ---- */

static struct maq_node *put(struct maq_file_reader *r, struct maq_node *map, const char *key, const char *text,
                            const struct maq_node *at)
{
    struct maq_node *n = map ? MAQ_ARENA_NEW(&r->job->arena, struct maq_node, 1) : NULL;
    if (!n) {
        maq_file_no_memory(r);
        return NULL;
    }
    *n = (struct maq_node){.kind = text ? MAQ_NODE_SCALAR : MAQ_NODE_MAP,
                           .origin = MAQ_ORIGIN_FILE,
                           .at = at->at,
                           .key_at = at->key_at,
                           .key = maq_str_of(key),
                           .text = maq_str_of(text),
                           .next = map->first};
    map->first = n;
    map->count++;
    return n;
}

/* An argument by DeepSpeed's name for it, or what Lightning has in its place. */
static void put_argument(struct maq_file_reader *r, struct maq_node *map, const char *key, const char *otherwise,
                         const struct maq_node *at)
{
    char path[96];
    maq__snprintf(path, sizeof path, ARGS ".%s", key);
    const struct maq_node *n = maq_file_get(r, path);
    struct maq_node *made = put(r, map, key, otherwise, n ? n : at);
    if (made && n && n->kind == MAQ_NODE_SCALAR)
        made->text = n->text;
}

static void put_away(struct maq_file_reader *r, struct maq_node *zero, const char *to, const char *on,
                     const char *device, bool always, const char *otherwise, const struct maq_node *at)
{
    char path[96];
    maq__snprintf(path, sizeof path, ARGS ".%s", on);
    const struct maq_node *n = asked(r, path);
    maq__snprintf(path, sizeof path, ARGS ".%s", device);
    const struct maq_node *where = maq_file_get(r, path);
    if (!n && !always)
        return;
    struct maq_node *map = put(r, zero, to, NULL, n ? n : at), *made = put(r, map, "device", otherwise,
                                                                           where ? where
                                                                           : n   ? n
                                                                                 : at);
    if (made && where && where->kind == MAQ_NODE_SCALAR)
        made->text = where->text;
}

static void set_deepspeed(struct maq_file_reader *r, const struct strategy *s, const struct maq_node *at,
                          const char *precision)
{
    const struct maq_node *config = maq_file_get(r, ARGS ".config"), *off = maq_file_get(r, ARGS ".zero_optimization");
    char stage[4];
    struct maq_node root = {.kind = MAQ_NODE_MAP, .at = at->at};
    if (config) {
        maq_file_beside(r, config);
        return;
    }
    maq__snprintf(stage, sizeof stage, "%d", s->stage);
    struct maq_node *zero = put(r, &root, "zero_optimization", NULL, at);
    if (!off || maq_file_asks(off, NULL)) {
        put_argument(r, zero, "stage", maq_arena_strdup(&r->job->arena, maq_str_of(stage)), at);
        put_argument(r, zero, "overlap_comm", "true", at);
        put_argument(r, zero, "contiguous_gradients", "true", at);
        put_argument(r, zero, "reduce_bucket_size", "200000000", at);
        put_argument(r, zero, "sub_group_size", "1000000000000", at);
        put_away(r, zero, "offload_optimizer", "offload_optimizer", "offload_optimizer_device", s->optimizer_away,
                 s->nvme ? "nvme" : "cpu", at);
        put_away(r, zero, "offload_param", "offload_parameters", "offload_params_device", s->params_away,
                 s->nvme ? "nvme" : "cpu", at);
    }
    if (strcmp(precision, "fp32") != 0) {
        (void)put(r, put(r, &root, precision, NULL, at), "enabled", "true", at);
    } else {
        (void)put(r, put(r, &root, "data_types", NULL, at), "grad_accum_dtype", precision, at);
        (void)put(r, &root, "communication_data_type", precision, at);
    }
    if (r->status == MAQ_OK)
        maq_file_beside(r, &root);
}

/* ---- the rest ---- */

static const struct precision {
    const char *names, *precision, *wide; /* the last: of what is not in 8 bits */
    bool autocast, whole;                 /* all of training is in it */
} precisions[] = {
    {"32-true|32", "fp32", "fp32", false, false},     {"16-mixed|16", "fp16", "fp16", true, false},
    {"bf16-mixed|bf16", "bf16", "bf16", true, false}, {"16-true", "fp16", "fp16", false, true},
    {"bf16-true", "bf16", "bf16", false, true},       {"transformer-engine", "fp8-delayed", "bf16", false, true},
};

static const struct precision *precision_of(struct maq_file_reader *r)
{
    const struct maq_node *n = maq_file_get(r, "trainer.precision");
    for (size_t i = 0; n && i < MAQ_COUNT(precisions); i++)
        if (maq_str_among(n->text, precisions[i].names))
            return &precisions[i];
    if (n)
        maq_file_fault(r, n, "32-true, 16-mixed, bf16-mixed, 16-true, bf16-true and transformer-engine are",
                       "the precision %.*s is not modelled", (int)(n->text.len < 40 ? n->text.len : 40), n->text.ptr);
    return &precisions[0];
}

/* DeepSpeed's configuration says its own: under it only what the engine computes in counts. */
static void set_precision(struct maq_file_reader *r, const struct precision *p, enum kind kind)
{
    const struct maq_node *n = maq_file_get(r, "trainer.precision");
    maq_file_set(r, n, "plan.precision", p->precision);
    if (strcmp(p->precision, p->wide) != 0 && (kind == FSDP || kind == DEEPSPEED)) /* their plugins take no such word */
        maq_file_fault(r, n, "it goes with ddp", "Transformer Engine's precision goes with no sharding strategy");
    if (kind == DEEPSPEED)
        return;
    maq_file_set(r, n, "framework.autocast", p->autocast ? "true" : "false");
    if (p->whole)
        maq_file_set(r, n, "plan.pure_low_precision", "true");
    if (kind != ALONE) /* DDP reduces gradients as wide as the weights, FSDP in the type that it computes in */
        maq_file_set(r, n, "plan.grad_reduce_dtype", p->autocast && kind == DDP ? "fp32" : p->wide);
}

/* A value of the class's arguments, or of a section whose class the program has fixed. */
static const struct maq_node *argument_of(struct maq_file_reader *r, const char *section, const char *name)
{
    char key[96];
    maq__snprintf(key, sizeof key, "%s.init_args.%s", section, name);
    const struct maq_node *n = maq_file_get(r, key);
    maq__snprintf(key, sizeof key, "%s.%s", section, name);
    n = n ? n : maq_file_get(r, key);
    return n && n->kind == MAQ_NODE_SCALAR ? n : NULL;
}

static const char *const model_names[] = {
    "model_name_or_path", "pretrained_model_name_or_path", "model_name", "model_id", "base_model", "pretrained"};
static const char *const lengths[] = {"max_seq_length", "seq_length", "seq_len", "max_length", "block_size"};
static const char *const batches[] = {"batch_size", "train_batch_size", "micro_batch_size",
                                      "per_device_train_batch_size"};

/* The first of these that a section has. */
static const struct maq_node *first_of(struct maq_file_reader *r, const char *section, const char *const *names,
                                       size_t n)
{
    const struct maq_node *found = NULL;
    for (size_t i = 0; i < n && !found; i++)
        found = argument_of(r, section, names[i]);
    return found;
}

static void set_classes(struct maq_file_reader *r)
{
    const struct maq_node *model = first_of(r, "model", model_names, MAQ_COUNT(model_names)),
                          *batch = first_of(r, "data", batches, MAQ_COUNT(batches)),
                          *length = first_of(r, "data", lengths, MAQ_COUNT(lengths));
    length = length ? length : first_of(r, "model", lengths, MAQ_COUNT(lengths));
    if (model && (memchr(model->text.ptr, '/', model->text.len) || maq_model_entry(model->text)))
        maq_file_set(r, model, "model", maq_arena_strdup(&r->job->arena, model->text));
    if (batch)
        maq_file_set(r, batch, "plan.micro_batch_size", maq_arena_strdup(&r->job->arena, batch->text));
    if (length)
        maq_file_set(r, length, "workload.seq_length", maq_arena_strdup(&r->job->arena, length->text));
    if (!maq_file_get(r, "trainer.accumulate_grad_batches"))
        maq_file_set(r, NULL, "workload.gradient_accumulation_steps", "1");
}

/* Entries of a list of classes that change a step. */
static void refuse_classes(struct maq_file_reader *r, const char *key, const char *const (*rows)[2], size_t n_rows)
{
    const struct maq_node *list = maq_file_get(r, key);
    const struct maq_node *one = list && list->kind == MAQ_NODE_SEQ ? list->first : list;
    for (; one; one = list->kind == MAQ_NODE_SEQ ? one->next : NULL) {
        const struct maq_node *name = class_node(one);
        for (size_t i = 0; name && i < n_rows; i++)
            if (is_named(rows[i][0], class_of(name->text)))
                maq_file_fault(r, name, "leave it out to see the rest", "%.*s is not modelled: %s",
                               (int)(name->text.len < 80 ? name->text.len : 80), name->text.ptr, rows[i][1]);
    }
}

static const char *const callbacks[][2] = {
    {"GradientAccumulationScheduler", "an accumulation that changes on the way"},
    {"*WeightAveraging", "averaged weights beside the model"},
    {"*Finetuning", "layers that are frozen for a while"},
};
static const char *const plugins[][2] = {{"*Precision", "trainer.precision says what is read of types"}};

/* Keys of the model's class that count here have no row: they are in the lists above. */
static bool knows(const char *key)
{
    static const char *const before[] = {"model.init_args.", "model."};
    for (size_t b = 0; b < MAQ_COUNT(before); b++) {
        if (!maq_str_starts(maq_str_of(key), before[b]))
            continue;
        const char *name = key + strlen(before[b]);
        for (size_t i = 0; i < MAQ_COUNT(model_names); i++)
            if (strcmp(name, model_names[i]) == 0)
                return true;
        for (size_t i = 0; i < MAQ_COUNT(lengths); i++)
            if (strcmp(name, lengths[i]) == 0)
                return true;
    }
    return strcmp(key, "model") == 0 || strcmp(key, "trainer.strategy") == 0; /* names, in place of maps */
}

static void conclude(struct maq_file_reader *r)
{
    const struct maq_node *trainer = maq_file_get(r, "trainer"), *at = maq_file_get(r, "trainer.strategy");
    if (trainer && trainer->kind != MAQ_NODE_MAP) {
        maq_file_fault(r, trainer, "trainer: {strategy: ddp, ...}", "trainer must be a map of the Trainer's arguments");
        return;
    }
    const struct strategy *s = strategy_of(r, at);
    const struct precision *p = precision_of(r);
    if (s->kind == DDP)
        set_ddp(r, at);
    else if (s->kind == FSDP)
        set_fsdp(r, s, at);
    else if (s->kind == DEEPSPEED)
        set_deepspeed(r, s, at, p->wide);
    else if (s->kind == ALONE) {
        maq_file_framework(r, "pytorch-ddp");
        maq_file_set(r, NULL, "framework.gradient_buckets", "none");
        maq_file_set(r, at ? at : maq_file_get(r, "trainer.devices"), "plan.data_parallel_size", "1");
    }
    set_precision(r, p, s->kind); /* behind the profile, whose mechanisms it sets */
    set_classes(r);
    maq_file_torch_optimizer(r, maq_file_get(r, "optimizer"));
    refuse_classes(r, "trainer.callbacks", callbacks, MAQ_COUNT(callbacks));
    refuse_classes(r, "trainer.plugins", plugins, MAQ_COUNT(plugins));
}

const struct maq_file_form maq_file_lightning = {
    .title = "a configuration of LightningCLI",
    .told_by = "trainer,model|trainer,data|trainer,seed_everything",
    .keys = keys,
    .knows = knows,
    .conclude = conclude,
};
