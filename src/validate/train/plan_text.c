/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_text.c - the plan of a row: its numbers, the few phrases that a table cannot read, and the tables of plan_rules.c.
 */
#include "validate/train/interpret.h"

#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "validate/phrase.h"

/* ---- phrases that name things ---- */

/* "ub_tp_comm_overlap True for Llama-2-70B/Llama-3-70B": on for those, off for others. */
static void read_named_switch(struct maq_interpretation *in)
{
    struct maq_str note = maq_row_text(&in->row, MAQ_COLUMN_overlap_notes);
    struct maq_phrase_match m;
    char model[64], name[64];
    if (in->tp == 1 || !maq__phrase_in(note, "ub_tp_comm_overlap true for", &m))
        return;
    maq__plain_name(model, sizeof model, maq_row_text(&in->row, MAQ_COLUMN_model));
    struct maq_str rest = {m.at.ptr + m.at.len, (size_t)(note.ptr + note.len - (m.at.ptr + m.at.len))}, word;
    maq_str_split(rest, ';', &rest);
    bool on = false;
    while (rest.ptr) {
        rest = maq_str_split(rest, '/', &word);
        maq__plain_name(name, sizeof name, maq_str_trim(word));
        on |= name[0] != '\0' && strncmp(model, name, strlen(name)) == 0;
    }
    maq__set(in, &in->plan, "tp_comm_overlap", on ? "true" : "false");
}

/* "selective modules: mla_up_proj,mlp": the names that a plan knows; others are left out, with a remark. */
static void read_modules(struct maq_interpretation *in)
{
    static const char *const known[] = {"core_attn", "layernorm", "mla_up_proj",   "mlp",
                                        "moe",       "moe_act",   "shared_experts"};
    struct maq_str text = maq_row_text(&in->row, MAQ_COLUMN_recompute), word;
    struct maq_phrase_match m;
    char list[128];
    size_t n = 0;
    if (!maq__phrase_in(text, "modules: *", &m))
        return;
    struct maq_str rest = {m.at.ptr + m.at.len, (size_t)(text.ptr + text.len - (m.at.ptr + m.at.len))};
    list[n++] = '[';
    while (rest.ptr) {
        rest = maq_str_split(rest, ',', &word);
        word = maq_str_trim(word);
        size_t k = 0;
        while (k < MAQ_COUNT(known) && !maq_str_is(word, known[k]))
            k++;
        if (k == MAQ_COUNT(known)) {
            maq__assume(in, "one module of the list is not recomputed: it has no name here");
        } else if (n + word.len + 4 < sizeof list) {
            if (n > 1)
                list[n++] = ',';
            memcpy(list + n, known[k], word.len);
            n += word.len;
        }
    }
    list[n++] = ']';
    list[n] = '\0';
    if (n > 2) {
        maq__set(in, &in->plan, "recompute_granularity", "selective");
        maq__set(in, &in->plan, "recompute_modules", "%s", list);
    }
}

/* "selective (RMSNorm, MLA up-projection)": modules by the names that people give them, where no rule said more. */
static void read_module_names(struct maq_interpretation *in)
{
    static const struct {
        const char *pattern, *module;
        bool moe; /* a module of experts */
    } names[] = {
        {"core attention|core_attn|attention core|attention only|recompute attention|^attention", "core_attn", false},
        {"layernorm*|layer norm*|rmsnorm*|norm|norms", "layernorm", false},
        {"mla up*|mla_up_proj|mla up-proj*", "mla_up_proj", false},
        {"mlp|ffn", "mlp", false},
        {"moe_act|moe act*|swiglu", "moe_act", true},
        {"moe|moe layer*|experts", "moe", true},
        {"shared expert*|shared_experts", "shared_experts", true},
    };
    struct maq_str text = maq_row_text(&in->row, MAQ_COLUMN_recompute);
    const char *granularity = maq__setting(&in->plan, "recompute_granularity");
    char list[128] = "";
    size_t n = 0;
    if ((granularity && strcmp(granularity, "selective") != 0) || maq__setting(&in->plan, "recompute_modules"))
        return;
    for (size_t i = 0; i < MAQ_COUNT(names); i++)
        if ((in->experts > 0 || !names[i].moe) && maq__phrase_in(text, names[i].pattern, NULL))
            n += (size_t)maq__snprintf(list + n, sizeof list - n, n ? ", %s" : "%s", names[i].module);
    if (n == 0)
        return;
    if (!granularity)
        maq__set(in, &in->plan, "recompute_granularity", "selective");
    maq__set(in, &in->plan, "recompute_modules", "[%s]", list);
}

/* "pp_layout Et*4|(t*4|)*14tmL": up to a blank or ';'. Only the letters of a layout get through. */
static void read_layout(struct maq_interpretation *in)
{
    struct maq_str text = maq_row_text(&in->row, MAQ_COLUMN_overlap_notes);
    struct maq_phrase_match m;
    char layout[256];
    size_t n = 0;
    if (!maq__phrase_in(text, "pp_layout *", &m))
        return;
    const char *at = m.at.ptr + m.at.len, *end = text.ptr + text.len;
    while (at < end && *at != '\0' && strchr("EtmL|()*0123456789,", *at) && n + 1 < sizeof layout)
        layout[n++] = *at++;
    layout[n] = '\0';
    if (n > 0)
        maq__set(in, &in->plan, "pipeline_model_parallel_layout", "%s", layout);
}

/* ---- sharding groups ---- */

/* Ranks that hold one copy of the sharded state; 0 = all, -1 = those of a node. FSDP1 and FSDP2 are names of interfaces. */
static int64_t shard_group(const struct maq_interpretation *in)
{
    struct maq_str text = maq_row_text(&in->row, MAQ_COLUMN_zero_or_fsdp);
    struct maq_phrase_match m;
    if (maq__phrase_in(
            text,
            "shard group #|shard degree #|shard size #|shard #|shard=#|shard_size=#|shard_degree=#|dp_shard=#|"
            "dp_shard #|sharding factor #|fsdp # inside|fsdp#&!fsdp1&!fsdp2|fsdp=#",
            &m) &&
        m.number[0] >= 1 && m.number[0] < 1e6)
        return (int64_t)m.number[0];
    return maq__phrase_in(text, "*hybrid_shard*|hybrid shard*|hybrid-shard*|mics|hsdp", NULL) ? -1 : 0;
}

static void set_sharding(struct maq_interpretation *in)
{
    int64_t ranks = in->dp * in->cp, shards = shard_group(in);
    if (shards < 0) { /* one copy a node, as far as TP leaves ranks there */
        shards = in->per_node / in->tp > 0 ? in->per_node / in->tp : 1;
        maq__assume(in, "a copy of the state in every node: the size of a sharding group is not stated");
    }
    if (shards == 0 || shards >= ranks)
        return;
    if (ranks % shards == 0)
        maq__set(in, &in->plan, "num_distributed_optimizer_instances", "%lld", (long long)(ranks / shards));
    else
        maq__assume(in, "state sharded over all %lld ranks: groups of %lld do not divide them", (long long)ranks,
                    (long long)shards);
}

/* ---- degrees ---- */

/*
 * Layers that do not divide by the virtual stages: Megatron counts embedding and loss as layers where that makes it even
 * (account_for_*_in_pipeline_split); otherwise some layout was used, and a balanced one is taken.
 */
static void set_split(struct maq_interpretation *in)
{
    int64_t stages = in->pp * in->vp;
    if (maq__setting(&in->plan, "pipeline_model_parallel_layout") ||
        maq__setting(&in->plan, "account_for_loss_in_pipeline_split"))
        return;
    if (in->layers % stages == 0)
        return;
    if ((in->layers + 2) % stages == 0) {
        maq__set(in, &in->plan, "account_for_embedding_in_pipeline_split", "true");
        maq__set(in, &in->plan, "account_for_loss_in_pipeline_split", "true");
        maq__assume(in, "embedding and loss count as layers in the pipeline split: %lld layers do not divide by %lld",
                    (long long)in->layers, (long long)stages);
    } else {
        maq__set(in, &in->plan, "pipeline_model_parallel_layout", "balanced");
        maq__assume(in, "a balanced layout: %lld layers do not divide by %lld virtual stages", (long long)in->layers,
                    (long long)stages);
    }
}

/* Megatron cuts experts by TP unless told otherwise; Megatron-Bridge's recipes tell it. */
static void set_expert_tp(struct maq_interpretation *in)
{
    struct maq_str framework = maq_row_text(&in->row, MAQ_COLUMN_framework);
    if (in->experts == 0 || in->ep == 1 || in->tp == 1 || maq__setting(&in->plan, "expert_tensor_parallel_size"))
        return;
    bool megatron = maq__phrase_in(framework, "nemo&!automodel|megatron-core|megatron-lm", NULL) &&
                    !maq__phrase_in(framework, "megatron-bridge|folding|*folding", NULL);
    if (megatron && (in->dp * in->cp) % in->ep == 0) {
        maq__set(in, &in->plan, "expert_tensor_parallel_size", "%lld", (long long)in->tp);
        maq__assume(in, "experts are cut by TP too (expert_tensor_parallel_size), Megatron's default");
    }
}

/* "1", "true", "yes"; as a degree, "8", too. What says neither is not stated. */
static void set_sequence_parallel(struct maq_interpretation *in)
{
    struct maq_str sp = maq_row_text(&in->row, MAQ_COLUMN_sp);
    double degree;
    bool number = maq_str_to_double(&degree, sp); /* spreadsheets write 1.0 */
    if (in->tp == 1)
        return;
    if (maq_row_says_nothing(sp))
        sp = MAQ_STR("");
    if (number ? degree == 0 : maq__phrase_in(sp, "^none|^no|^n|^off|^false|^disabled", NULL))
        maq__set(in, &in->plan, "sequence_parallel", "false");
    else if (number ? degree > 0 : maq__phrase_in(sp, "^yes|^y|^on|^true|^enabled|sp|sequence parallel*", NULL))
        maq__set(in, &in->plan, "sequence_parallel", "true");
    else
        maq__assume(in, "sequence parallelism inside TP groups: sp is not stated");
}

static void set_degrees(struct maq_interpretation *in)
{
    maq__interpret_schedule(in);
    if (in->ep < 1)
        in->ep = 1;
    maq__set(in, &in->plan, "tensor_model_parallel_size", "%lld", (long long)in->tp);
    maq__set(in, &in->plan, "pipeline_model_parallel_size", "%lld", (long long)in->pp);
    if (in->vp > 1)
        maq__set(in, &in->plan, "virtual_pipeline_model_parallel_size", "%lld", (long long)in->vp);
    if (in->cp > 1)
        maq__set(in, &in->plan, "context_parallel_size", "%lld", (long long)in->cp);
    if (in->ep > 1)
        maq__set(in, &in->plan, "expert_model_parallel_size", "%lld", (long long)in->ep);
    maq__set(in, &in->plan, "data_parallel_size", "%lld", (long long)in->dp);
    maq__set(in, &in->plan, "micro_batch_size", "%lld", (long long)in->mbs);
    set_sequence_parallel(in);
}

/* ---- fine-tuning ---- */

static void set_tuning(struct maq_interpretation *in)
{
    struct maq_str model = maq_row_text(&in->row, MAQ_COLUMN_model);
    if (maq__phrase_in(model, "rlhf|grpo|ppo|dpo", NULL))
        maq__give_up(in, MAQ_VALIDATE_SKIP_NOT_TRAINING, "%s", "");
    if (!maq__phrase_in(model, "lora", NULL))
        return;
    maq__set(in, &in->plan, "lora_rank", "32");
    maq__set(in, &in->plan, "lora_target_modules", "linear_qkv");
    maq__assume(in, "LoRA of rank 32 on the attention input (linear_qkv): not stated");
}

void maq__interpret_plan(struct maq_interpretation *in)
{
    set_degrees(in);
    read_named_switch(in);
    read_modules(in);
    read_layout(in);
    maq__apply_text_rules(in);
    read_module_names(in);
    maq__note_unread(in);
    set_sharding(in);
    set_split(in);
    set_expert_tp(in);
    set_tuning(in);
    maq__choose_profile(in);
    maq__apply_default_rules(in);
}
