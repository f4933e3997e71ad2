/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_arguments.c - the arguments of a Megatron-LM training script as settings of a job.
 *
 *   torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 80 --tensor-model-parallel-size 8 --bf16 ...
 *   |------- passed over ------------------|    model.num_layers = 80, plan.tensor_model_parallel_size = 8, ...
 *
 * Names and defaults are those of megatron/training/arguments.py and transformer_config.py (core 0.12 and later). Most
 * arguments are keys of `model:` (model_type: megatron), `plan:` or `workload:` under the same name; the table below has
 * those that are called otherwise, and what Megatron-LM does without an argument where a job file has another default
 * (no distributed optimizer, no overlap, no sequence parallelism). ignored_arguments.c has those that are ignored. Any
 * other is named in a warning.
 *
 * The number of nodes and devices is the cluster's, not the launcher's.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "model/load.h"
#include "plan/codes.h"
#include "plan/keys.h"
#include "plan/megatron/ignored_arguments.h"
#include "plan/megatron/reader.h"

#define LONGEST_LIST 65536
#define GRAPH_SCOPE "plan.cuda_graph_scope"
#define NUMBER_OF_CHUNKS "num-virtual-stages-per-pipeline-rank"

/* What an argument makes of the words behind it. */
enum take {
    TAKE_FIXED, /* none: `value` */
    TAKE_WORD,  /* the first */
    TAKE_LIST,  /* all of them */
    TAKE_FREQ   /* "([0]*3+[1]*58)" as a list */
};

static const struct rule {
    const char *name;
    enum take take;
    const char *path, *value;
} rules[] = {
    {"use-rotary-position-embeddings", TAKE_FIXED, "model.position_embedding_type", "rope"},
    {"moe-layer-freq", TAKE_FREQ, "model.moe_layer_freq", NULL},
    {"linear-attention-freq", TAKE_FREQ, "model.linear_attention_freq", NULL},
    {"window-size", TAKE_LIST, "model.window_size", NULL},
    {"sequence-parallel", TAKE_FIXED, "plan.sequence_parallel", "true"},
    {"hierarchical-context-parallel-sizes", TAKE_WORD, "plan.hierarchical_cp_a2a_size", NULL},
    {"use-tp-pp-dp-mapping", TAKE_FIXED, "plan.rank_order", "tp-cp-ep-pp-dp"},
    {"moe-deepep-num-sms", TAKE_WORD, "plan.moe_flex_dispatcher_num_sms", NULL},
    {"moe-hybridep-num-sms", TAKE_WORD, "plan.moe_flex_dispatcher_num_sms", NULL},
    {NUMBER_OF_CHUNKS, TAKE_WORD, "plan.virtual_pipeline_model_parallel_size", NULL},
    {"microbatch-group-size-per-virtual-pipeline-stage", TAKE_WORD, "plan.microbatch_group_size_per_vp_stage", NULL},
    {"no-overlap-p2p-communication", TAKE_FIXED, "plan.overlap_p2p_comm", "false"},
    {"no-scatter-gather-tensors-in-pipeline", TAKE_FIXED, "plan.scatter_gather_tensors_in_pipeline", "false"},
    {"use-distributed-optimizer", TAKE_FIXED, "plan.data_parallel_sharding_strategy", "optim"},
    {"torch-fsdp2-no-reshard-after-forward", TAKE_FIXED, "plan.reshard_after_forward", "false"},
    {"overlap-grad-reduce", TAKE_FIXED, "plan.overlap_grad_reduce", "true"},
    {"overlap-param-gather", TAKE_FIXED, "plan.overlap_param_gather", "true"},
    /* one buffer is where gradients add up and what is reduced */
    {"grad-reduce-in-bf16", TAKE_FIXED, "plan.grad_reduce_dtype", "bf16"},
    {"grad-reduce-in-bf16", TAKE_FIXED, "plan.main_grads_dtype", "bf16"},
    {"recompute-activations", TAKE_FIXED, "plan.recompute_granularity", "selective"},
    {"recompute-modules", TAKE_LIST, "plan.recompute_modules", NULL},
    {"cuda-graph-scope", TAKE_LIST, GRAPH_SCOPE, NULL},
    {"cuda-graph-modules", TAKE_LIST, GRAPH_SCOPE, NULL},
    {"offload-modules", TAKE_LIST, "plan.offload_modules", NULL},
    {"use-flash-attn", TAKE_FIXED, "plan.attention_backend", "flash"},
    {"tp-comm-overlap", TAKE_FIXED, "plan.tp_comm_overlap", "true"},
    {"overlap-moe-expert-parallel-comm", TAKE_FIXED, "plan.overlap_moe_expert_parallel_comm", "true"},
    {"moe-pad-expert-input-to-capacity", TAKE_FIXED, "plan.moe_pad_expert_input_to_capacity", "true"},
    {"delay-wgrad-compute", TAKE_FIXED, "plan.delay_wgrad_compute", "true"},
    {"no-masked-softmax-fusion", TAKE_FIXED, "plan.masked_softmax_fusion", "false"},
    {"no-gradient-accumulation-fusion", TAKE_FIXED, "plan.gradient_accumulation_fusion", "false"},
};

/* Without the argument. */
static const struct {
    const char *path, *value;
} defaults[] = {
    {"framework", "megatron-lm"},
    {"model", "{model_type: megatron}"},
    {"plan.sequence_parallel", "false"},
    {"plan.data_parallel_sharding_strategy", "no_shard"},
    {"plan.overlap_grad_reduce", "false"},
    {"plan.overlap_param_gather", "false"},
    {"plan.moe_pad_expert_input_to_capacity", "false"},
};

static const char *list_of(struct maq_megatron_reader *r, const struct maq_megatron_argument *a)
{
    struct maq_buf b;
    maq_buf_init(&b, LONGEST_LIST);
    maq_buf_addc(&b, '[');
    for (size_t i = 0; i < a->n; i++)
        if (a->words[i][0] != '\0')
            maq_buf_addf(&b, "%s%s", b.len > 1 ? "," : "", a->words[i]);
    maq_buf_addc(&b, ']');
    char *text = b.failed ? NULL : maq_arena_strdup(&r->loaded->arena, (struct maq_str){b.ptr, b.len});
    maq_buf_fini(&b);
    return text;
}

/* Times that the list ending at *at is repeated: "*3". */
static int64_t repeats(const char **at)
{
    int64_t n = 0;
    if (**at != '*')
        return 1;
    size_t digits = strspn(++*at, "0123456789");
    bool ok = maq_str_to_i64(&n, (struct maq_str){*at, digits});
    *at += digits;
    return ok ? n : -1;
}

/* A sum of lists, some of them repeated, as Python has it: "([0]*3+[1]*58)"; a number is itself. */
static const char *freq_of(struct maq_megatron_reader *r, const char *flag, const char *text)
{
    struct maq_buf b;
    maq_buf_init(&b, LONGEST_LIST);
    bool ok = true, any = false;
    if (!strchr(text, '['))
        return text;
    for (const char *at = text; *at && ok;) {
        if (*at != '[') {
            ok = strchr("()+ ,", *at++) != NULL;
            continue;
        }
        size_t n = strcspn(++at, "]");
        const char *items = at;
        at += n + (at[n] == ']');
        int64_t times = repeats(&at);
        ok = items[n] == ']' && n > 0 && times >= 0 && times <= LONGEST_LIST;
        for (int64_t i = 0; ok && i < times; i++, any = true)
            maq_buf_addf(&b, "%c%.*s", any ? ',' : '[', (int)n, items);
    }
    maq_buf_addc(&b, ']');
    char *list = ok && any && !b.failed ? maq_arena_strdup(&r->loaded->arena, (struct maq_str){b.ptr, b.len}) : NULL;
    maq_buf_fini(&b);
    if (!list)
        maq__megatron_bad(r, flag, "takes a number or lists such as ([0]*3+[1]*58)", NULL);
    return list;
}

/* Whether there are words behind an argument, empty ones aside. */
static bool has_words(const struct maq_megatron_argument *a)
{
    size_t i = 0;
    while (i < a->n && a->words[i][0] == '\0')
        i++;
    return i < a->n;
}

static bool by_rule(struct maq_megatron_reader *r, const struct maq_megatron_argument *a)
{
    bool taken = false;
    for (size_t i = 0; i < MAQ_COUNT(rules) && r->status == MAQ_OK; i++) { /* a name may have several */
        const struct rule *rule = &rules[i];
        if (!maq__megatron_same(a->name, rule->name))
            continue;
        r->kept.chunks |= strcmp(rule->name, NUMBER_OF_CHUNKS) == 0;
        r->kept.graph_scope |= strcmp(rule->path, GRAPH_SCOPE) == 0;
        if (rule->take == TAKE_LIST && !has_words(a)) /* none of them: its argument takes any number */
            r->kept.no_modules |= strcmp(rule->path, "plan.recompute_modules") == 0;
        else if (rule->take != TAKE_FIXED && a->n == 0)
            maq__megatron_bad(r, a->flag, "takes a value", NULL);
        else if (rule->take == TAKE_FIXED && a->n > 0)
            maq__megatron_bad(r, a->flag, "takes no value", NULL);
        else if (rule->take == TAKE_FIXED)
            maq__megatron_set(r, a->flag, rule->path, rule->value);
        else if (rule->take == TAKE_LIST)
            maq__megatron_set(r, a->flag, rule->path, list_of(r, a));
        else
            maq__megatron_set(r, a->flag, rule->path,
                              rule->take == TAKE_FREQ ? freq_of(r, a->flag, a->words[0]) : a->words[0]);
        taken = true;
    }
    return taken;
}

/* Of a key by the same name: a flag without a word is true. */
static void set_key(struct maq_megatron_reader *r, const struct maq_megatron_argument *a, const char *section,
                    const char *key)
{
    if (a->n > 1)
        maq__megatron_bad(r, a->flag, "takes one value", NULL);
    else
        maq__megatron_set(r, a->flag, maq_arena_printf(&r->loaded->arena, "%s.%s", section, key),
                          a->n == 0 ? "true" : a->words[0]);
}

static bool by_field(struct maq_megatron_reader *r, const struct maq_megatron_argument *a, const char *section)
{
    struct maq_option option;
    for (size_t i = 0; maq_job_option(section, i, &option); i++)
        if (maq__megatron_same(a->name, option.key)) {
            set_key(r, a, section, option.key);
            return true;
        }
    return false;
}

/* The name of two settings together (deprecated in favour of them). */
static bool shared_muon(struct maq_megatron_reader *r, const struct maq_megatron_argument *a)
{
    if (!maq__megatron_same(a->name, "optimizer") || a->n != 1 || strcmp(a->words[0], "dist_muon") != 0)
        return false;
    maq__megatron_set(r, a->flag, "plan.optimizer", "muon");
    maq__megatron_set(r, a->flag, "plan.data_parallel_sharding_strategy", "optim");
    return true;
}

static bool by_model(struct maq_megatron_reader *r, const struct maq_megatron_argument *a)
{
    const char *key = maq_model_megatron_key(a->name);
    if (key)
        set_key(r, a, "model", key);
    return key != NULL;
}

static bool says_nothing(const struct maq_megatron_argument *a)
{
    if (maq__megatron_same(a->name, "transformer-impl"))
        return a->n == 1 && strcmp(a->words[0], "transformer_engine") == 0;
    if (maq__megatron_same(a->name, "spec")) /* the layers that a hybrid pattern has anyway */
        return a->n == 2 &&
               (strcmp(a->words[1], "hybrid_stack_spec") == 0 || strcmp(a->words[1], "mamba_stack_spec") == 0);
    return maq__megatron_says_nothing(a->name);
}

static bool among_fields(struct maq_str name, const char *section)
{
    struct maq_option option;
    for (size_t i = 0; maq_job_option(section, i, &option); i++)
        if (maq__megatron_same(name, option.key))
            return true;
    return false;
}

bool maq_megatron_knows(const char *text)
{
    const struct maq_str name = maq_str_of(text);
    const char *key;
    for (size_t i = 0; i < MAQ_COUNT(rules); i++)
        if (maq__megatron_same(name, rules[i].name))
            return true;
    for (size_t i = 0; (key = maq__megatron_kept_name(i)) != NULL; i++)
        if (maq__megatron_same(name, key))
            return true;
    return among_fields(name, "plan") || among_fields(name, "workload") || maq_model_megatron_key(name) ||
           maq__megatron_says_nothing(name);
}

/* Keeps the nearer of two names; two slips of the pen are too many for a short one. */
static void nearer(const char **best, uint32_t *least, struct maq_str name, const char *key)
{
    uint32_t d = maq_str_distance(name, maq_str_of(key), *least);
    if (d < *least) {
        *least = d;
        *best = key;
    }
}

/* The argument that was probably meant; NULL: none is near. */
static const char *nearest(struct maq_str name)
{
    const char *best = NULL, *key;
    uint32_t least = name.len < 8 ? 2 : 3;
    struct maq_option option;
    for (size_t i = 0; maq_job_option("plan", i, &option); i++)
        nearer(&best, &least, name, option.key);
    for (size_t i = 0; i < MAQ_COUNT(rules); i++)
        nearer(&best, &least, name, rules[i].name);
    for (size_t i = 0; (key = maq__megatron_kept_name(i)) != NULL; i++)
        nearer(&best, &least, name, key);
    return best;
}

/* What changes the step in a way that nothing here stands for. */
static bool has_no_model(struct maq_megatron_reader *r, const struct maq_megatron_argument *a)
{
    static const char encoder[] = "is of an encoder, BERT's or T5's, and models of GPT's kind alone are read",
                      vision[] = "is of a vision encoder, which has no model here",
                      teacher[] = "distils from a teacher, whose forward pass has no model here",
                      elastic[] = "trains networks of several widths in one, which has no model here";
    static const struct {
        const char *name, *why;
    } rows[] = {{"bert-no-binary-head", encoder},
                {"encoder-num-layers", encoder},
                {"decoder-num-layers", encoder},
                {"decoder-seq-length", encoder},
                {"img-h", vision},
                {"img-w", vision},
                {"patch-dim", vision},
                {"export-kd-teacher-load", teacher},
                {"flextron", elastic}};
    for (size_t i = 0; i < MAQ_COUNT(rows); i++)
        if (maq__megatron_same(a->name, rows[i].name)) {
            maq__megatron_bad(r, a->flag, rows[i].why, NULL);
            return true;
        }
    if (!maq__megatron_same(a->name, "model-provider") || a->n != 1 || !strstr(a->words[0], "vlm"))
        return false;
    maq__megatron_bad(r, a->flag, vision, NULL);
    return true;
}

/* Scripts that do something beside a step, or in its place: the step is predicted, and what is not is said. */
static bool does_besides(struct maq_megatron_reader *r, const struct maq_megatron_argument *a)
{
    if (!maq__megatron_same(a->name, "perform-rl-step"))
        return false;
    maq_diag_add(r->diag, MAQ_WARNING, MAQ_CODE_MEGATRON_BESIDES, maq__megatron_place(r, a->flag),
                 "a job with a section rl has a generation under vLLM (docs/post-training.md)",
                 "%s: what is predicted is the training on rollouts; generating them by Megatron-LM's own engine is "
                 "not",
                 a->flag);
    return true;
}

static void take(struct maq_megatron_reader *r, const struct maq_megatron_argument *a)
{
    if (has_no_model(r, a) || does_besides(r, a))
        return;
    if (by_rule(r, a) || shared_muon(r, a) || maq__megatron_keep(r, a) || by_field(r, a, "plan") ||
        by_field(r, a, "workload") || by_model(r, a) || says_nothing(a))
        return;
    const char *near = nearest(a->name);
    if (r->unknown.len == 0)
        r->first_unknown = maq__megatron_place(r, a->flag);
    maq_buf_addf(&r->unknown, "%s--%.*s", r->unknown.len ? ", " : "", (int)a->name.len, a->name.ptr);
    if (near)
        maq_buf_addf(&r->unknown, " (--%s?)", near);
}

static bool is_option(const char *word)
{
    return word[0] == '-' && word[1] == '-' && word[2] != '\0';
}

/* The script's first argument: behind the last word that is a Python file and before which only the launcher's stand. */
static size_t first_argument(const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(words[i]);
        if (!is_option(words[i]) && len > 3 && strcmp(words[i] + len - 3, ".py") == 0)
            return i + 1;
    }
    return 0;
}

static void read_words(struct maq_megatron_reader *r, const char *const *words, size_t n)
{
    size_t first = first_argument(words, n);
    if (first > 0)
        maq__megatron_set(r, "the script", "name", words[first - 1]);
    for (size_t i = first; i < n && r->status == MAQ_OK;) {
        struct maq_megatron_argument a = {.flag = words[i], .words = words + i + 1};
        if (!is_option(words[i])) {
            maq__megatron_bad(r, words[i], "is no argument of Megatron-LM",
                              first > 0 ? NULL : "name the script, a file that ends in .py, before its arguments");
            return;
        }
        struct maq_str value;
        const char *one[1];
        value = maq_str_split(maq_str_of(words[i] + 2), '=', &a.name);
        for (i++; i < n && !is_option(words[i]); i++)
            a.n++;
        if (value.ptr) {
            one[0] = maq_arena_strdup(&r->loaded->arena, value);
            a.flag = maq_arena_printf(&r->loaded->arena, "--%.*s", (int)a.name.len, a.name.ptr);
            a.words = one;
            a.n = 1;
            if (!one[0] || !a.flag) {
                maq__megatron_no_memory(r);
                return;
            }
        }
        take(r, &a);
    }
}

static struct maq_loaded_megatron *new_box(size_t n_words)
{
    struct maq_loaded_megatron *loaded = calloc(1, sizeof *loaded);
    if (!loaded)
        return NULL;
    maq_arena_init(&loaded->arena, 0);
    loaded->size = n_words + MAQ_COUNT(defaults) + 32; /* of maq__megatron_conclude() */
    loaded->read.overrides = MAQ_ARENA_NEW(&loaded->arena, struct maq_override, loaded->size);
    if (!loaded->read.overrides) {
        free(loaded);
        return NULL;
    }
    return loaded;
}

enum maq_status maq_megatron_read(struct maq_megatron **out, const char *const *words, size_t n_words, bool open,
                                  struct maq_diag *diag)
{
    return maq__megatron_read_placed(out, words, NULL, n_words, open, diag);
}

enum maq_status maq__megatron_read_placed(struct maq_megatron **out, const char *const *words,
                                          const struct maq_span *places, size_t n_words, bool open,
                                          struct maq_diag *diag)
{
    struct maq_megatron_reader r = {
        .loaded = new_box(n_words), .open = open, .diag = diag, .words = words, .places = places, .n_words = n_words};
    if (!r.loaded) {
        maq__megatron_no_memory(&r);
        return r.status;
    }
    maq_buf_init(&r.unknown, LONGEST_LIST);
    for (size_t i = 0; i < MAQ_COUNT(defaults); i++)
        maq__megatron_set(&r, "Megatron-LM", defaults[i].path, defaults[i].value);
    read_words(&r, words, n_words);
    if (r.status == MAQ_OK)
        maq__megatron_conclude(&r);
    if (r.kept.layers == 0) /* it describes no model: another part of the job does */
        maq_megatron_drop_model(&r.loaded->read);
    if (r.status == MAQ_OK && r.unknown.len > 0)
        maq_diag_add(diag, MAQ_WARNING, MAQ_CODE_MEGATRON_UNKNOWN, r.first_unknown, NULL,
                     "arguments that nothing here knows, taken to change nothing: %s", r.unknown.ptr);
    maq_buf_fini(&r.unknown);
    if (r.status != MAQ_OK)
        maq_megatron_free(&r.loaded->read);
    else
        *out = &r.loaded->read;
    return r.status;
}

void maq_megatron_drop_model(struct maq_megatron *read)
{
    struct maq_loaded_megatron *loaded = (struct maq_loaded_megatron *)read;
    size_t n = 0;
    for (size_t i = 0; i < read->n_overrides; i++) {
        struct maq_str section;
        maq_str_split(maq_str_of(read->overrides[i].path), '.', &section);
        if (!maq_str_is(section, "model"))
            loaded->read.overrides[n++] = read->overrides[i];
    }
    read->n_overrides = n;
}

void maq_megatron_free(struct maq_megatron *read)
{
    if (!read)
        return;
    struct maq_loaded_megatron *loaded = (struct maq_loaded_megatron *)read;
    maq_arena_fini(&loaded->arena);
    free(loaded);
}
