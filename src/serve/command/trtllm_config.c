/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trtllm_config.c - the file of trtllm-serve's --config (--extra_llm_api_options): arguments of its LLM class in YAML, which lie over the options.
 *
 * Keys are those of tensorrt_llm/llmapi/llm_args.py (NVIDIA/TensorRT-LLM, commit 00209af). One that is an option of trtllm-serve is read as that; those below
 * are read here; of the others those that change nothing that is predicted are passed over, and a warning names the rest. A file that
 * cannot be opened is named like them.
 */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "serve/command/command.h"
#include "spec/doc.h"

enum key {
    POLICY,
    REUSE,
    BLOCK,
    POOL,
    SHARE,
    WAIT_ITERATIONS,
    WAIT_SHARE,
    ATTENTION_DP,
    BALANCE,
    BALANCE_TIMEOUT,
    BALANCE_BATCHING,
    KV_TYPE,
    NO_OVERLAP,
    METHOD,
    DRAFTS,
    DEPTHS,
    DRAFTER,
    HOST_SIZE,
    ONBOARDS,
    PASSED
};

static const struct {
    const char *section, *name; /* section NULL: at the top */
    enum key key;
} keys[] = {
    {"scheduler_config", "capacity_scheduler_policy", POLICY},
    {"kv_cache_config", "enable_block_reuse", REUSE},
    {"kv_cache_config", "tokens_per_block", BLOCK},
    {"kv_cache_config", "max_tokens", POOL},
    {"kv_cache_config", "free_gpu_memory_fraction", SHARE},
    {"kv_cache_config", "dtype", KV_TYPE},
    {"kv_cache_config", "host_cache_size", HOST_SIZE},
    {"kv_cache_config", "onboard_blocks", ONBOARDS},
    {NULL, "batch_wait_timeout_iters", WAIT_ITERATIONS},
    {NULL, "batch_wait_max_tokens_ratio", WAIT_SHARE},
    {NULL, "enable_attention_dp", ATTENTION_DP},
    {"attention_dp_config", "enable_balance", BALANCE},
    {"attention_dp_config", "timeout_iters", BALANCE_TIMEOUT},
    {"attention_dp_config", "batching_wait_iters", BALANCE_BATCHING},
    {NULL, "disable_overlap_scheduler", NO_OVERLAP},
    {"speculative_config", "decoding_type", METHOD},
    {"speculative_config", "max_draft_len", DRAFTS},
    {"speculative_config", "num_nextn_predict_layers", DEPTHS},
    {"speculative_config", "speculative_model", DRAFTER},
    {"speculative_config", "speculative_model_dir", DRAFTER},
    {NULL, "print_iter_log", PASSED},
    {NULL, "enable_iter_perf_stats", PASSED},
    {NULL, "enable_iter_req_stats", PASSED},
    {NULL, "return_perf_metrics", PASSED},
    {NULL, "stream_interval", PASSED},
    {NULL, "build_config", PASSED},
};

static void say_key(struct maq_command_reader *r, const struct maq_node *section, const struct maq_node *node)
{
    const struct maq_str in = section ? section->key : (struct maq_str){"", 0};
    maq_buf_addf(&r->said, "%s%.*s%s%.*s", r->said.len > 0 ? ", " : "", (int)in.len, in.ptr, section ? "." : "",
                 (int)node->key.len, node->key.ptr);
}

/* A key that is an option of the command line, as that. False: it is none. */
static bool as_option(struct maq_command_reader *r, const struct maq_node *node)
{
    struct maq_command_argument a = {.at = r->config_at, .value_at = r->config_at};
    const char *word = maq_arena_printf(&r->loaded->arena, "--%.*s", (int)node->key.len, node->key.ptr);
    const char *value = maq_arena_strdup(&r->loaded->arena, node->text);
    if (!word || !value) {
        r->status = maq_no_memory(r->diag, "options");
        return true;
    }
    if (!maq_command_find(&a.form, r->engine, maq_str_of(word)) || a.form.row->effect == MAQ_COMMAND_SAID ||
        a.form.row->effect == MAQ_COMMAND_CONFIG)
        return false;
    bool is_switch = a.form.row->takes == MAQ_TAKES_NONE || a.form.row->takes == MAQ_TAKES_SWITCH;
    a.form.off = is_switch && maq_str_ieq(node->text, "false");
    a.value = is_switch ? NULL : value;
    if (a.form.row->effect != MAQ_COMMAND_PASSED)
        maq_command_set(r, &a);
    return true;
}

static void set_policy(struct maq_command_reader *r, const struct maq_node *section, const struct maq_node *node)
{
    if (maq_str_ieq(node->text, "MAX_UTILIZATION"))
        r->loaded->read.options.max_utilization = true;
    else if (maq_str_ieq(node->text, "GUARANTEED_NO_EVICT"))
        r->loaded->read.options.max_utilization = false;
    else
        say_key(r, section, node);
}

static void set_number(struct maq_command_reader *r, enum key key, struct maq_node *node)
{
    int64_t n;
    if (!maq_node_i64(&n, node, r->diag) || n < 0) {
        r->status = MAQ_BAD_INPUT;
        return;
    }
    if (key == BLOCK)
        r->block = n <= 1 << 16 ? (int32_t)n : 1 << 16;
    if (key == POOL)
        r->pool = n;
    if (key == WAIT_ITERATIONS)
        r->loaded->read.options.batch_wait_iterations = n <= 1 << 20 ? (int32_t)n : 1 << 20;
    struct maq_attention_dp_balance *balance = &r->loaded->read.options.attention_dp_balance;
    if (key == BALANCE_TIMEOUT)
        balance->timeout_iterations = n <= 1 << 20 ? (int32_t)n : 1 << 20;
    if (key == BALANCE_BATCHING)
        balance->batching_iterations = n == 0 ? -1 : n <= 1 << 20 ? (int32_t)n : 1 << 20;
    if (key == DRAFTS || key == DEPTHS)
        r->drafts.tokens = n;
    if (key == HOST_SIZE)
        r->loaded->read.options.tiers.host_rank_bytes = (double)n;
}

static void set_switch(struct maq_command_reader *r, enum key key, struct maq_node *node)
{
    struct maq_serve_options *o = &r->loaded->read.options;
    bool on;
    if (!maq_node_bool(&on, node, r->diag))
        r->status = MAQ_BAD_INPUT;
    else if (key == ATTENTION_DP)
        r->shares = on;
    else if (key == BALANCE)
        o->attention_dp_balance.enabled = on;
    else if (key == REUSE)
        o->no_prefix_caching = !on;
    else if (key == ONBOARDS)
        r->keeps_out = !on;
    else
        o->async_scheduling = on ? MAQ_OFF : o->async_scheduling;
}

static void set_share(struct maq_command_reader *r, enum key key, struct maq_node *node)
{
    double x;
    if (!maq_node_double(&x, node, r->diag))
        r->status = MAQ_BAD_INPUT;
    else if (key == WAIT_SHARE && x >= 0 && x <= 1)
        r->loaded->read.options.batch_wait_share = x;
    else if (key == SHARE && x >= 0.01 && x <= 1)
        r->loaded->read.options.free_memory_share = x;
}

static void set_drafts(struct maq_command_reader *r, enum key key, const struct maq_node *node)
{
    const char *text = maq_arena_strdup(&r->loaded->arena, node->text);
    if (!text)
        r->status = maq_no_memory(r->diag, "options");
    else
        *(key == METHOD ? &r->drafts.method : &r->drafts.model) = text;
    maq__snprintf(r->drafts.said, sizeof r->drafts.said, "speculative_config");
}

static void set(struct maq_command_reader *r, enum key key, const struct maq_node *section, struct maq_node *node)
{
    if (key == POLICY)
        set_policy(r, section, node);
    else if (key == BLOCK || key == POOL || key == DRAFTS || key == DEPTHS || key == WAIT_ITERATIONS ||
             key == HOST_SIZE || key == BALANCE_TIMEOUT || key == BALANCE_BATCHING)
        set_number(r, key, node);
    else if (key == REUSE || key == NO_OVERLAP || key == ONBOARDS || key == ATTENTION_DP || key == BALANCE)
        set_switch(r, key, node);
    else if (key == SHARE || key == WAIT_SHARE)
        set_share(r, key, node);
    else if (key == KV_TYPE)
        r->loaded->read.options.kv_fp8 = maq_str_ieq(node->text, "fp8");
    else if (key == METHOD || key == DRAFTER)
        set_drafts(r, key, node);
}

static void read_map(struct maq_command_reader *r, struct maq_node *section, struct maq_node *map)
{
    for (struct maq_node *node = map->first; node && r->status != MAQ_NO_MEMORY; node = node->next) {
        size_t i = 0;
        while (i < MAQ_COUNT(keys) &&
               (!maq_str_is(node->key, keys[i].name) || (keys[i].section != NULL) != (section != NULL) ||
                (section && !maq_str_is(section->key, keys[i].section))))
            i++;
        bool known = false; /* a section of which something is read */
        for (size_t k = 0; !section && k < MAQ_COUNT(keys); k++)
            known = known || (keys[k].section && maq_str_is(node->key, keys[k].section));
        if (maq_node_is_null(node))
            continue;
        if (known && node->kind == MAQ_NODE_MAP)
            read_map(r, node, node);
        else if (node->kind != MAQ_NODE_SCALAR || (i == MAQ_COUNT(keys) && (section || !as_option(r, node))))
            say_key(r, section, node);
        else if (i < MAQ_COUNT(keys))
            set(r, keys[i].key, section, node);
    }
}

void maq_command_read_config(struct maq_command_reader *r)
{
    struct maq_doc doc;
    FILE *f = fopen(r->config, "rbe");
    if (!f) {
        maq_buf_addf(&r->said, "%s%s %.60s", r->said.len > 0 ? ", " : "", r->config_option, r->config);
        return;
    }
    (void)fclose(f);
    enum maq_status status = maq_doc_load(&doc, r->config, MAQ_ORIGIN_DOCUMENT, r->diag);
    if (status != MAQ_OK)
        r->status = status;
    else if (doc.root && doc.root->kind == MAQ_NODE_MAP)
        read_map(r, NULL, doc.root);
    maq_doc_fini(&doc);
}
