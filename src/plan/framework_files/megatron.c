/* SPDX-License-Identifier: Apache-2.0 */
/*
 * megatron.c - the YAML of Megatron-LM's functional tests, model_config.yaml: arguments of its training script as a map.
 *
 *   ENV_VARS: {CUDA_DEVICE_MAX_CONNECTIONS: 1}
 *   MODEL_ARGS:
 *     --num-layers: 12
 *     --bf16: true                                  a switch; false: not given
 *     --recompute-modules: "[layernorm mlp]"        several words
 *     --moe-layer-freq: ([0]*3+[1]*9)               one word
 *
 * How values become words is its script _run_training.sh at d98e8a6 (August 2026); what the words mean is
 * plan/megatron's to say. The argument's place in the file stays with what it sets.
 */
#include <string.h>

#include "base/check.h"
#include "plan/framework_files/reader.h"
#include "plan/megatron/reader.h"

#define MOST_WORDS 4096

static const struct maq_file_key keys[] = {
    MAQ_FILE_KEEP("MODEL_ARGS"),
    MAQ_FILE_IDLE("MODEL_ARGS_*"), /* of a second run, which goes on from the first one's checkpoint */
    MAQ_FILE_IDLE("ENV_VARS"),
    MAQ_FILE_IDLE("TEST_TYPE"),
    MAQ_FILE_IDLE("LAUNCHER"),
    MAQ_FILE_IDLE("METRICS"),
    MAQ_FILE_IDLE("MODE"),
    MAQ_FILE_IDLE("*"),
    MAQ_FILE_END};

struct words {
    const char *word[MOST_WORDS];
    struct maq_span at[MOST_WORDS];
    struct maq_span here; /* of the words that are added */
    size_t n;
};

static void add(struct maq_file_reader *r, struct words *w, struct maq_str text)
{
    const char *copy = maq_arena_strdup(&r->job->arena, text);
    if (!copy)
        maq_file_no_memory(r);
    else if (w->n < MOST_WORDS) {
        w->at[w->n] = w->here;
        w->word[w->n++] = copy;
    }
}

/* Words between blanks; of a text in parentheses it is all one. Brackets around a list of words are taken away. */
static void add_value(struct maq_file_reader *r, struct words *w, struct maq_str text)
{
    struct maq_str rest = maq_str_trim(text), word;
    const bool whole = rest.len > 0 && rest.ptr[0] == '(';
    if (rest.len > 1 && rest.ptr[0] == '[' && rest.ptr[rest.len - 1] == ']' &&
        memchr(rest.ptr + 1, '[', rest.len - 1) == NULL)
        rest = maq_str_trim((struct maq_str){rest.ptr + 1, rest.len - 2});
    if (whole) {
        add(r, w, rest);
        return;
    }
    while (rest.ptr && rest.len > 0) {
        rest = maq_str_split(rest, ' ', &word);
        if (word.len > 0)
            add(r, w, word);
    }
}

static void add_argument(struct maq_file_reader *r, struct words *w, const struct maq_node *n)
{
    if (maq_node_is_null(n) || (n->kind == MAQ_NODE_SCALAR && maq_str_is(n->text, "false")))
        return;
    w->here = n->key_at;
    add(r, w, n->key);
    w->here = n->at;
    if (n->kind == MAQ_NODE_SCALAR && !(maq_str_is(n->text, "true") && !n->quoted))
        add_value(r, w, n->text);
    for (const struct maq_node *c = n->first; c; c = c->next)
        add_value(r, w, c->text);
}

/* The last entry of this flag: what is given twice counts once. */
static const struct maq_node *entry_of(const struct maq_node *args, const char *flag)
{
    const struct maq_node *found = NULL;
    for (const struct maq_node *n = args->first; n; n = n->next)
        if (maq_str_is(n->key, flag))
            found = n;
    return found;
}

static void conclude(struct maq_file_reader *r)
{
    const struct maq_node *args = maq_file_get(r, "MODEL_ARGS");
    struct maq_megatron *read;
    struct words w = {.n = 0};
    if (!args || args->kind != MAQ_NODE_MAP) {
        maq_file_fault(r, args, "MODEL_ARGS: {--num-layers: 12, ...}", "MODEL_ARGS must be a map of arguments");
        return;
    }
    for (const struct maq_node *n = args->first; n; n = n->next)
        add_argument(r, &w, n);
    if (r->status != MAQ_OK)
        return;
    enum maq_status status = maq__megatron_read_placed(&read, w.word, w.at, w.n, r->open, r->diag);
    if (status != MAQ_OK) {
        r->status = status;
        return;
    }
    if (r->model)
        maq_megatron_drop_model(read);
    for (size_t i = 0; i < read->n_overrides; i++) {
        const struct maq_override *o = &read->overrides[i];
        maq_file_set(r, entry_of(args, o->flag), o->path, maq_arena_strdup(&r->job->arena, maq_str_of(o->value)));
    }
    maq_megatron_free(read);
}

const struct maq_file_form maq_file_megatron = {
    .title = "a configuration of Megatron-LM's tests",
    .told_by = "MODEL_ARGS",
    .keys = keys,
    .conclude = conclude,
};
