/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_model_catalogue.c - every entry of data/models loads and has its published number of parameters; the shapes of
 * data/models.csv in the shared folder give the counts that were computed from them elsewhere.
 */
#include "maquette/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "model/load.h"
#include "spec/catalogue.h"

/* --- the catalogue ---------------------------------------------------------------------------------------- */

static const char *const header_keys[] = {
    "title", "source", "published_params", "unverified", "published_includes", "published_extra", "aliases", "config"};

static bool is_header_key(struct maq_str key)
{
    for (size_t i = 0; i < sizeof(header_keys) / sizeof(header_keys[0]); i++)
        if (maq_str_is(key, header_keys[i]))
            return true;
    return false;
}

/*
 * What the published count holds beside the parameters of the model: `mtp` its multi-token-prediction depths,
 * `mtp_copies` the embedding and head that each depth stores once more, `head_copy` a tied head stored by itself,
 * `published_extra` a number explained beside it.
 */
static int64_t beyond_model(struct maq_node *root, const struct maq_model *m, struct maq_diag *diag)
{
    int64_t extra = 0, table = m->vocab * m->hidden;
    struct maq_node *node = maq_node_get(root, "published_extra");
    if (node)
        assert_true(maq_node_i64(&extra, node, diag));
    node = maq_node_get(root, "published_includes");
    for (struct maq_node *c = node ? node->first : NULL; c; c = c->next) {
        if (maq_str_is(c->text, "mtp"))
            extra += m->mtp_layers * m->mtp.params;
        else if (maq_str_is(c->text, "mtp_copies"))
            extra += m->mtp_layers * 2 * table;
        else if (maq_str_is(c->text, "head_copy"))
            extra += table;
        else
            fail_msg("published_includes: %.*s", (int)c->text.len, c->text.ptr);
    }
    return extra;
}

/* True when the entry states a count. */
static bool check_entry(const struct maq_catalogue_entry *entry)
{
    struct maq_diag *diag = maq_diag_new();
    struct maq_arena arena;
    struct maq_doc doc, job;
    struct maq_model m;
    char text[256];
    int64_t published = 0;
    maq_arena_init(&arena, 0);
    snprintf(text, sizeof(text), "model: %s\n", entry->name);
    assert_int_equal(
        maq_doc_parse(&doc, entry->name, (struct maq_str){entry->text, entry->len}, MAQ_ORIGIN_CATALOGUE, diag),
        MAQ_OK);
    assert_int_equal(maq_doc_parse(&job, "job", maq_str_of(text), MAQ_ORIGIN_DOCUMENT, diag), MAQ_OK);
    enum maq_status status = maq_model_load(&m, maq_node_get(job.root, "model"), &arena, diag);
    if (status != MAQ_OK || maq_diag_count(diag) > 0) {
        char *report = maq_diag_format(diag, 0, false);
        fail_msg("%s: %s", entry->name, report ? report : "");
    }
    for (struct maq_node *c = doc.root->first; c; c = c->next)
        if (!is_header_key(c->key))
            fail_msg("%s: header key '%.*s'", entry->name, (int)c->key.len, c->key.ptr);
    assert_string_equal(m.name, entry->name);
    assert_true(strlen(m.source) > 0);
    assert_non_null(maq_node_get(doc.root, "title"));
    assert_true(m.params > 0 && m.active_params > 0 && m.active_params <= m.params && m.num_layers > 0);
    assert_true(maq_model_flop_per_token(&m, 2048, true) <= maq_model_flop_per_token(&m, 2048, false));
    struct maq_node *node = maq_node_get(doc.root, "published_params");
    if (node) {
        assert_true(maq_node_i64(&published, node, diag));
        int64_t counted = m.params + beyond_model(doc.root, &m, diag);
        if (counted != published)
            fail_msg("%s: %lld parameters, published %lld", entry->name, (long long)counted, (long long)published);
    }
    maq_doc_fini(&doc);
    maq_doc_fini(&job);
    maq_arena_fini(&arena);
    maq_diag_free(diag);
    return node != NULL;
}

static void test_every_entry(void **state)
{
    const struct maq_catalogue_entry *entry;
    size_t entries = 0, published = 0;
    for (; (entry = maq_catalogue_at("models", entries)) != NULL; entries++)
        published += check_entry(entry);
    print_message("%zu catalogue models, %zu with a published count that is met exactly\n", entries, published);
    assert_true(entries >= 295);
    assert_true(published >= 210);
    (void)state;
}

/* Counts that every reader of these models knows, written down once more, apart from the catalogue. */
static void test_anchors(void **state)
{
    static const struct {
        const char *name;
        int64_t params;
    } anchors[] = {
        {"llama-2-7b", 6738415616},
        {"llama-3-8b", 8030261248},
        {"llama-3.1-405b", 405853388800},
        {"mixtral-8x7b", 46702792704},
        {"qwen3-30b-a3b", 30532122624},
        {"deepseek-v3", 671026419200},
        {"gpt-oss-120b", 116829156672},
        {"gemma-2-27b", 27227128320},
        {"gpt2-xl", 1557611200},
        {"bloom-176b", 176247271424},
        {"falcon-40b", 41303293952},
        {"gpt-neox-20b", 20554567680},
        {"phi-2", 2779683840},
        {"deepseek-v2-lite", 15706484224},
        {"nemotron-nano-9b-v2", 8888227328},
        {"kimi-k2", 1026408232448},
        {"bloomberggpt-50b", 50558868480},
        {"olmo-2-13b", 13716198400},
        {"falcon-h1-0.5b", 521411104},
        {"apertus-8b", 8053338176},
        {"lfm2-1.2b", 1170340608},
        {"mamba2-2.7b", 2702599680},
        {"dbrx", 131596523520},
        {"stablelm-2-1.6b", 1644515328},
    };
    for (size_t i = 0; i < sizeof(anchors) / sizeof(anchors[0]); i++) {
        struct maq_diag *diag = maq_diag_new();
        struct maq_arena arena;
        struct maq_doc job;
        struct maq_model m;
        char text[128];
        maq_arena_init(&arena, 0);
        snprintf(text, sizeof(text), "model: %s\n", anchors[i].name);
        assert_int_equal(maq_doc_parse(&job, "job", maq_str_of(text), MAQ_ORIGIN_DOCUMENT, diag), MAQ_OK);
        assert_int_equal(maq_model_load(&m, maq_node_get(job.root, "model"), &arena, diag), MAQ_OK);
        assert_int_equal(m.params, anchors[i].params);
        maq_doc_fini(&job);
        maq_arena_fini(&arena);
        maq_diag_free(diag);
    }
    (void)state;
}

/* --- models.csv ------------------------------------------------------------------------------------------- */

enum {
    COL_MODEL,
    COL_STATED,
    COL_COMPUTED,
    COL_LAYERS,
    COL_HIDDEN,
    COL_FFN,
    COL_HEADS,
    COL_KV,
    COL_HEAD_DIM,
    COL_VOCAB,
    COL_EXPERTS,
    COL_TOPK,
    COL_MOE_FFN,
    COL_ACT,
    COL_EXTRA,
    COL_COUNT
};

/* Splits one line of RFC 4180 CSV in place; returns the number of fields. */
static size_t split_csv(char *line, char *field[], size_t max)
{
    size_t n = 0;
    char *in = line;
    while (n < max) {
        char *out = in;
        bool quoted = *in == '"';
        field[n++] = out;
        if (quoted)
            in++;
        while (*in && (quoted || *in != ',')) {
            if (quoted && *in == '"' && *++in != '"') {
                quoted = false;
                continue;
            }
            *out++ = *in++;
        }
        bool more = *in == ',';
        in += more;
        *out = '\0';
        if (!more)
            break;
    }
    return n;
}

/*
 * The rule by which computed_params_B was counted, found by comparing: weights of attention, MLP or experts and
 * router, and one token table; no norms, no biases, no position table, no second table for an untied head, no shared
 * experts. Rounded to 1e6.
 */
static int64_t by_the_rule(const struct maq_model *m, bool with_table)
{
    int64_t sum = with_table ? m->vocab * m->hidden : 0;
    for (uint32_t i = 0; i < m->num_layers; i++) {
        const struct maq_layer *l = &m->kinds[m->kind_of[i]];
        for (uint32_t j = 0; j < l->n_modules; j++) {
            const struct maq_module *x = &l->modules[j];
            if (x->kind == MAQ_MODULE_LINEAR || x->kind == MAQ_MODULE_EXPERT_LINEAR || x->kind == MAQ_MODULE_ROUTER)
                sum += x->params;
        }
    }
    return sum;
}

static void check_row(char *f[])
{
    char text[1024];
    bool moe = f[COL_EXPERTS][0] != '\0', gated = strstr(f[COL_ACT], "glu") || strstr(f[COL_ACT], "gated");
    bool table = f[COL_VOCAB][0] != '\0';
    double computed;
    assert_true(maq_str_to_double(&computed, maq_str_of(f[COL_COMPUTED])));
    int used =
        snprintf(text, sizeof(text),
                 "model: {model_type: megatron, num_layers: %s, hidden_size: %s, num_attention_heads: %s, "
                 "num_query_groups: %s, kv_channels: %s, vocab_size: %s, position_embedding_type: rope, "
                 "add_bias_linear: false, swiglu: %s, ffn_hidden_size: %s",
                 f[COL_LAYERS], f[COL_HIDDEN], f[COL_HEADS], f[COL_KV][0] ? f[COL_KV] : f[COL_HEADS], f[COL_HEAD_DIM],
                 table ? f[COL_VOCAB] : "1", gated ? "true" : "false", moe ? f[COL_MOE_FFN] : f[COL_FFN]);
    if (moe)
        used += snprintf(text + used, sizeof(text) - (size_t)used, ", num_experts: %s, moe_router_topk: %s",
                         f[COL_EXPERTS], f[COL_TOPK]);
    snprintf(text + used, sizeof(text) - (size_t)used, "}\n");
    struct maq_diag *diag = maq_diag_new();
    struct maq_arena arena;
    struct maq_doc job;
    struct maq_model m;
    maq_arena_init(&arena, 0);
    assert_int_equal(maq_doc_parse(&job, f[COL_MODEL], maq_str_of(text), MAQ_ORIGIN_DOCUMENT, diag), MAQ_OK);
    if (maq_model_load(&m, maq_node_get(job.root, "model"), &arena, diag) != MAQ_OK) {
        char *report = maq_diag_format(diag, 0, false);
        fail_msg("%s: %s", f[COL_MODEL], report ? report : "");
    }
    double got = (double)by_the_rule(&m, table) / 1e9, off = got - computed;
    if (off > 0.00051 || off < -0.00051)
        fail_msg("%s: %.4f billion parameters, the table has %.3f", f[COL_MODEL], got, computed);
    maq_doc_fini(&job);
    maq_arena_fini(&arena);
    maq_diag_free(diag);
}

static bool complete(char *f[])
{
    static const int needed[] = {COL_COMPUTED, COL_LAYERS, COL_HIDDEN, COL_HEADS, COL_HEAD_DIM};
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
        if (f[needed[i]][0] == '\0')
            return false;
    return f[COL_EXPERTS][0] ? f[COL_MOE_FFN][0] != '\0' : f[COL_FFN][0] != '\0';
}

static void test_shared_table(void **state)
{
    const char *root = getenv("MAQ_SOURCE_ROOT"), *shared = getenv("MAQ_SHARED");
    char path[4096], line[4096];
    size_t checked = 0, rows = 0;
    if (shared)
        snprintf(path, sizeof(path), "%s/data/models.csv", shared);
    else
        snprintf(path, sizeof(path), "%s/../shared/data/models.csv", root ? root : ".");
    FILE *file = fopen(path, "r");
    if (!file) {
        print_message("no %s: set MAQ_SHARED to the folder that has data/models.csv\n", path);
        skip();
    }
    assert_non_null(fgets(line, sizeof(line), file));
    while (fgets(line, sizeof(line), file)) {
        char *field[COL_COUNT + 2];
        line[strcspn(line, "\r\n")] = '\0';
        assert_true(split_csv(line, field, COL_COUNT + 2) >= COL_COUNT);
        rows++;
        if (!complete(field))
            continue;
        check_row(field);
        checked++;
    }
    fclose(file);
    print_message("%zu of %zu rows have full dimensions and agree\n", checked, rows);
    assert_true(checked >= 100);
    (void)state;
}

/* --- names ------------------------------------------------------------------------------------------------- */

static void test_repositories(void **state)
{
    static const struct {
        const char *name, *entry; /* NULL = none */
    } cases[] = {
        {"meta-llama/Llama-3.1-8B", "llama-3.1-8b"},
        {"META-LLAMA/llama-3.1-8b-INSTRUCT", "llama-3.1-8b"},
        {"Llama-3.1-8B-Instruct", "llama-3.1-8b"},
        {"meta-llama/Llama-2-7b-chat-hf", "llama-2-7b"},
        {"mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b"},
        {"mistralai/Mistral-Small-24B-Instruct-2501", "mistral-small-3"},
        {"mosaicml/mpt-7b", "mpt-7b-alibi"}, /* the source of an entry, not a name after a slash */
        {"mpt-7b", "mpt-7b"},
        {"Qwen/Qwen2.5-Coder-7B-Instruct", "qwen2.5-7b"}, /* an alias, by the same owner */
        {"Qwen/Qwen3-30B-A3B-Instruct-2507", "qwen3-30b-a3b"},
        {"deepseek-ai/DeepSeek-R1-0528", "deepseek-r1"},
        {"deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", NULL}, /* an alias, but of an entry of another owner */
        {"DeepSeek-R1-Distill-Qwen-32B", "qwen2.5-32b"},
        {"somebody/Qwen2.5-Coder-7B", NULL},
        {"somebody/Llama-3.1-8B", NULL},
        {"meta-llama/Llama-3.1-8B/config.json", NULL},
        {"/gpt2", NULL},
        {"./gpt2", NULL},
        {"models/gpt2", NULL},
        {"openai-community/", NULL},
        {"openai-community/instruct", NULL},
        {"instruct", NULL},
        {"-", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct maq_catalogue_entry *e = maq_model_entry(maq_str_of(cases[i].name));
        if (!e != !cases[i].entry || (e && strcmp(e->name, cases[i].entry) != 0))
            fail_msg("'%s' is %s", cases[i].name, e ? e->name : "nothing");
    }
    const struct maq_catalogue_entry *e;
    for (size_t i = 0; (e = maq_catalogue_at("models", i)) != NULL; i++)
        assert_ptr_equal(maq_model_entry(maq_str_of(e->name)), e);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_entry),
        cmocka_unit_test(test_anchors),
        cmocka_unit_test(test_shared_table),
        cmocka_unit_test(test_repositories),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
