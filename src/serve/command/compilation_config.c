/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compilation_config.c - vLLM's --compilation-config: which iterations are CUDA graphs, as an object of JSON or a member alone
 * (--compilation-config.cudagraph_mode NONE).
 *
 *   cudagraph_mode               NONE: no graphs, with all else compiled; FULL_AND_PIECEWISE is what is predicted
 *   max_cudagraph_capture_size   tokens of the largest graph
 *   cudagraph_capture_sizes      the same, of the largest of them
 *   mode                         3 and VLLM_COMPILE are what is predicted
 *
 * All else is said not to be modelled (vllm 0.33.0, config/compilation.py).
 */
#include <string.h>

#include <jansson.h>

#include "base/check.h"
#include "base/text.h"
#include "serve/command/command.h"

#define MOST_TOKENS (1 << 20)
#define EXAMPLE "{\"cudagraph_mode\": \"FULL_AND_PIECEWISE\"}"

/* The largest of sizes, or the size; 0: it is neither. */
static int64_t largest_size(const json_t *value)
{
    int64_t most = json_is_integer(value) ? (int64_t)json_integer_value(value) : 0;
    for (size_t i = 0; i < json_array_size(value); i++) {
        int64_t n = (int64_t)json_integer_value(json_array_get(value, i));
        most = n > most ? n : most;
    }
    return most;
}

static void member(struct maq_command_reader *r, const struct maq_command_argument *a, const char *key,
                   const json_t *value)
{
    const char *word = json_string_value(value);
    int32_t *graph_tokens = &r->loaded->read.options.graph_tokens;
    bool sizes = strcmp(key, "cudagraph_capture_sizes") == 0;
    if (strcmp(key, "cudagraph_mode") == 0 && word && strcmp(word, "NONE") == 0) {
        *graph_tokens = -1;
    } else if (sizes || strcmp(key, "max_cudagraph_capture_size") == 0) {
        int64_t n = largest_size(value);
        if (n < 1 || n > MOST_TOKENS)
            maq_command_bad(r, a, "{\"max_cudagraph_capture_size\": 512}", "sizes of graphs from 1 to 1048576");
        else if (*graph_tokens >= 0)
            *graph_tokens = (int32_t)n;
    } else if (!(strcmp(key, "cudagraph_mode") == 0 && word && strcmp(word, "FULL_AND_PIECEWISE") == 0) &&
               !(strcmp(key, "mode") == 0 &&
                 (json_integer_value(value) == 3 || (word && strcmp(word, "VLLM_COMPILE") == 0)))) {
        maq_command_say_member(r, a, key);
    }
}

/* A member alone: its value is JSON, or a word without quotation marks. */
static void read_member(struct maq_command_reader *r, const struct maq_command_argument *a)
{
    char key[64];
    json_error_t error;
    json_t *value = json_loads(a->value, JSON_DECODE_ANY, &error);
    maq__snprintf(key, sizeof key, "%.*s", (int)(a->member.len < 60 ? a->member.len : 60), a->member.ptr);
    value = value ? value : json_string(a->value);
    member(r, a, key, value);
    json_decref(value);
}

bool maq_command_set_compilation(struct maq_command_reader *r, const struct maq_command_argument *a)
{
    json_error_t error;
    const char *key;
    json_t *value, *object;
    if (a->form.row->effect != MAQ_COMMAND_COMPILATION)
        return false;
    if (a->member.len > 0) {
        read_member(r, a);
        return true;
    }
    object = json_loads(a->value, 0, &error);
    if (!json_is_object(object))
        maq_command_bad(r, a, EXAMPLE, "an object of JSON");
    json_object_foreach(object, key, value) member(r, a, key, value);
    json_decref(object);
    return true;
}
