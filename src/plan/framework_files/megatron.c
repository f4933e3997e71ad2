/* SPDX-License-Identifier: Apache-2.0 */
/*
 * megatron.c - the YAML of Megatron-LM's functional tests, model_config.yaml: arguments of its training script as a map.
 *
 *   ENV_VARS: {CUDA_DEVICE_MAX_CONNECTIONS: 1}
 *   MODE: pretraining                               or inference, or rl
 *   MODEL_ARGS:
 *     --num-layers: 12
 *     --bf16: true                                  a switch; false: not given
 *     --recompute-modules: "[layernorm mlp]"        several words
 *     --moe-layer-freq: ([0]*3+[1]*9)               one word
 *
 * How values become words is its script _run_training.sh at d98e8a6 (August 2026); what the words mean is
 * plan/megatron's to say. The argument's place in the file stays with what it sets. A key that is there twice becomes two arguments
 * there, of which argparse takes the last.
 */
#include <string.h>

#include "base/check.h"
#include "plan/framework_files/megatron_words.h"

static const struct maq_file_key keys[] = {
    MAQ_FILE_KEEP("MODEL_ARGS"), MAQ_FILE_KEEP("MODE"),
    MAQ_FILE_IDLE("*"), /* how the test is run; MODEL_ARGS_2: a second run, from the first one's checkpoint */
    MAQ_FILE_END};

/* Words between blanks; of a text in parentheses it is all one. Brackets around a list of words are taken away. */
static void add_value(struct maq_file_reader *r, struct maq_file_words *w, struct maq_str text,
                      const struct maq_node *from)
{
    struct maq_str rest = maq_str_trim(text), word;
    const bool whole = rest.len > 0 && rest.ptr[0] == '(';
    if (rest.len > 1 && rest.ptr[0] == '[' && rest.ptr[rest.len - 1] == ']' &&
        memchr(rest.ptr + 1, '[', rest.len - 1) == NULL)
        rest = maq_str_trim((struct maq_str){rest.ptr + 1, rest.len - 2});
    if (whole) {
        maq_file_add_word(r, w, rest, from, from->at);
        return;
    }
    while (rest.ptr && rest.len > 0) {
        rest = maq_str_split(rest, ' ', &word);
        if (word.len > 0)
            maq_file_add_word(r, w, word, from, from->at);
    }
}

static void add_argument(struct maq_file_reader *r, struct maq_file_words *w, const struct maq_node *n)
{
    if (maq_node_is_null(n) || (n->kind == MAQ_NODE_SCALAR && maq_str_is(n->text, "false")))
        return;
    maq_file_add_word(r, w, n->key, n, n->key_at);
    if (n->kind == MAQ_NODE_SCALAR && !(maq_str_is(n->text, "true") && !n->quoted))
        add_value(r, w, n->text, n);
    for (const struct maq_node *c = n->first; c; c = c->next)
        add_value(r, w, c->text, n);
}

/* Tests of engines train nothing; what their arguments say of model and cuts is read all the same. */
static void note_inference(struct maq_file_reader *r)
{
    const struct maq_node *mode = maq_file_get(r, "MODE");
    if (mode && maq_file_is(r, "MODE", "inference"))
        maq_diag_add(r->diag, MAQ_WARNING, MAQ_CODE_MEGATRON_BESIDES, mode->at,
                     "maquette serve predicts an engine that generates",
                     "this test generates tokens and trains nothing: what is predicted is a training step of its "
                     "model with its cuts");
}

/* Overrides of a recipe that the command line names: nemo llm pretrain --factory llama3_8b trainer.devices=8. */
static bool of_a_recipe(struct maq_file_reader *r, const struct maq_node *args)
{
    if (maq_str_starts(args->first->key, "-"))
        return false;
    maq_file_fault(r, args->first, "the recipe as NeMo-Run writes it (--yaml) is read",
                   "these are overrides of a NeMo recipe, and the file does not say of which");
    return true;
}

static void conclude(struct maq_file_reader *r)
{
    const struct maq_node *args = maq_file_get(r, "MODEL_ARGS");
    struct maq_file_words w = {.n = 0};
    if (!args || args->kind != MAQ_NODE_MAP || !args->first) {
        maq_file_fault(r, args, "MODEL_ARGS: {--num-layers: 12, ...}",
                       args ? "MODEL_ARGS must be a map of arguments"
                            : "MODEL_ARGS has no arguments: this test trains nothing");
        return;
    }
    if (of_a_recipe(r, args))
        return;
    note_inference(r);
    for (const struct maq_node *n = args->first; n; n = n->next)
        add_argument(r, &w, n);
    maq_file_read_words(r, &w, true);
}

const struct maq_file_form maq_file_megatron = {
    .title = "a configuration of Megatron-LM's tests",
    .last_key_of = "its script",
    .told_by = "MODEL_ARGS",
    .keys = keys,
    .conclude = conclude,
};
