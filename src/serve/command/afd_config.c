/* SPDX-License-Identifier: Apache-2.0 */
/*
 * afd_config.c - attention and FFN on GPUs of their own as `vllm serve` is told of it by vLLM's plugin: the object `afd` of --additional-config, and
 * --enable-dbo for its two micro-batches.
 *
 * vllm-project/afd-plugin 2e4378f: afd_plugin/config.py. Both sides have command lines, which differ in `role`; the one of attention is read, whose degrees
 * are those of attention. num_attention_ranks is tp x dp once more. Addresses change nothing that is predicted.
 */
#include <string.h>

#include <jansson.h>

#include "base/check.h"
#include "base/text.h"
#include "serve/codes.h"
#include "serve/command/command.h"

#define MOST_RANKS 4096
#define DBO_MICRO_BATCHES 2 /* vLLM's, of which the plugin takes no other number (its README.md) */

static bool is_any_of(const char *word, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(word, words[i]) == 0)
            return true;
    return false;
}

/* A member of `afd`; some have an older name besides. */
static void member(struct maq_command_reader *r, const struct maq_command_argument *a, const char *key,
                   const json_t *value)
{
    static const char *const passed[] = {"host", "port", "afd_host", "afd_port"};
    const char *name = strncmp(key, "afd_", 4) == 0 ? key + 4 : key, *word = json_string_value(value);
    int64_t n = json_integer_value(value);
    bool counts = strcmp(name, "num_ffn_ranks") == 0 || strcmp(name, "num_attention_ranks") == 0;
    if (is_any_of(key, passed, MAQ_COUNT(passed)) ||
        (strcmp(name, "connector") == 0 && word && strcmp(word, "P2pNcclAFDConnector") == 0) ||
        (strcmp(key, "compute_gate_on_attention") == 0 && json_is_false(value)))
        return;
    if (counts && (!json_is_integer(value) || n < 1 || n > MOST_RANKS))
        maq_command_bad(r, a, "{\"afd\": {\"num_attention_ranks\": 4, \"num_ffn_ranks\": 2}}",
                        "numbers of ranks from 1 to 4096");
    else if (strcmp(name, "num_ffn_ranks") == 0)
        r->loaded->read.options.afd.ffn_ranks = (int32_t)n;
    else if (strcmp(name, "num_attention_ranks") == 0)
        r->attention_ranks = (int32_t)n;
    else if (strcmp(name, "role") == 0 && word && strcmp(word, "ffn") == 0)
        maq_command_bad(r, a, "the command line with \"role\": \"attention\", whose degrees are those of attention",
                        "a deployment as its attention is started");
    else if (strcmp(name, "role") != 0 || !word || strcmp(word, "attention") != 0) {
        char path[80];
        maq__snprintf(path, sizeof path, "afd.%.60s", key);
        maq_command_say_member(r, a, path);
    }
}

static void read_config(struct maq_command_reader *r, const struct maq_command_argument *a)
{
    json_error_t error;
    const char *key, *of_afd;
    json_t *value, *object = a->member.len > 0 ? NULL : json_loads(a->value, 0, &error);
    const json_t *one;
    if (a->member.len > 0) /* a piece of it alone */
        maq_command_say(r, a);
    else if (!json_is_object(object))
        maq_command_bad(r, a, "{\"afd\": {\"num_attention_ranks\": 4, \"num_ffn_ranks\": 2}}", "an object of JSON");
    json_object_foreach(object, key, value)
    {
        if (strcmp(key, "afd") != 0) {
            maq_command_say_member(r, a, key);
            continue;
        }
        r->loaded->read.options.afd.ffn_ranks = 1;
        json_object_foreach(value, of_afd, one) member(r, a, of_afd, one);
    }
    json_decref(object);
}

bool maq_command_set_afd(struct maq_command_reader *r, const struct maq_command_argument *a)
{
    if (a->form.row->effect == MAQ_COMMAND_ADDITIONAL)
        read_config(r, a);
    else if (a->form.row->effect == MAQ_COMMAND_DBO)
        r->dbo = !a->form.off;
    else
        return false;
    return true;
}

void maq_command_conclude_afd(struct maq_command_reader *r)
{
    struct maq_afd_options *o = &r->loaded->read.options.afd;
    int32_t tp = r->tp > 0 ? r->tp : 1, dp = r->dp > 0 ? r->dp : 1;
    if (o->ffn_ranks == 0) {
        if (r->dbo)
            maq_buf_addf(&r->said, "%s--enable-dbo", r->said.len > 0 ? ", " : "");
        return;
    }
    o->micro_batches = r->dbo ? DBO_MICRO_BATCHES : 1;
    if (r->attention_ranks > 0 && r->attention_ranks != tp * dp)
        r->status = maq_diag_fail(MAQ_BAD_INPUT, r->diag, MAQ_CODE_COMMAND_VALUE, (struct maq_span){0},
                                  "as many as --tensor-parallel-size times --data-parallel-size",
                                  "num_attention_ranks of --additional-config is %d, and attention has %d",
                                  r->attention_ranks, tp * dp);
}
