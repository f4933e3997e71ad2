/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kv_offloading.c - host memory for keys and values as `vllm serve` is told of it: --kv-offloading-size in GiB, or --kv-transfer-config with its
 * OffloadingConnector, whose kv_connector_extra_config has sizes and policies.
 *
 * vLLM 0.33.0: config/vllm.py (_post_init_kv_transfer_config), v1/kv_offload/cpu/spec.py, distributed/kv_transfer/kv_connector/v1/offloading/config.py.
 * What other connectors hold stands in files and variables of theirs (LMCache), so that nothing of it is read here; how large and how fast tiers
 * behind host memory are, no option of vLLM says.
 */
#include <string.h>

#include <jansson.h>

#include "base/check.h"
#include "base/text.h"
#include "serve/command/command.h"

#define GIB 1073741824.0

static void say(struct maq_command_reader *r, const struct maq_command_argument *a, const char *what)
{
    maq_buf_addf(&r->said, "%s%s%s%.60s", r->said.len > 0 ? ", " : "", a->form.text, what[0] == '.' ? "" : " ", what);
}

/* A member of kv_connector_extra_config. */
static void extra(struct maq_command_reader *r, const struct maq_command_argument *a, const char *key,
                  const json_t *value)
{
    struct maq_tier_options *o = &r->loaded->read.options.tiers;
    double x = json_number_value(value);
    const char *word = json_string_value(value);
    if (strcmp(key, "cpu_bytes_to_use") == 0 && json_is_number(value) && x >= 0)
        o->bytes[MAQ_TIER_HOST] = x;
    else if (strcmp(key, "blocks_per_chunk") == 0 && json_is_integer(value) && x >= 1 && x <= 1024)
        o->chunk_blocks = (int32_t)x;
    else if (strcmp(key, "block_size") == 0 && json_is_integer(value) && x >= 1 && x <= 1 << 24)
        r->offload_tokens = (int32_t)x;
    else if (strcmp(key, "eviction_policy") == 0 && word && strcmp(word, "lru") == 0)
        o->policy = MAQ_TIER_LRU;
    else if (strcmp(key, "eviction_policy") == 0 && word && strcmp(word, "arc") == 0)
        o->policy = MAQ_TIER_ARC;
    else if (strcmp(key, "offload_prompt_only") == 0 && json_is_boolean(value))
        o->prompt_only = json_is_true(value);
    else if (strcmp(key, "spec_name") != 0 || !word || strcmp(word, "CPUOffloadingSpec") != 0) {
        char member[96];
        maq__snprintf(member, sizeof member, ".kv_connector_extra_config.%.50s", key);
        say(r, a, member);
    }
}

static void connector(struct maq_command_reader *r, const struct maq_command_argument *a, const json_t *object)
{
    const char *key, *name = json_string_value(json_object_get(object, "kv_connector"));
    const json_t *value;
    if (!name || strcmp(name, "OffloadingConnector") != 0) {
        say(r, a, name ? name : "without a connector");
        return;
    }
    json_object_foreach(json_object_get(object, "kv_connector_extra_config"), key, value) extra(r, a, key, value);
}

static void read_connector(struct maq_command_reader *r, const struct maq_command_argument *a)
{
    json_error_t error;
    if (a->member.len > 0) { /* a piece of it alone */
        say(r, a, "in pieces");
        return;
    }
    json_t *object = json_loads(a->value, 0, &error);
    if (json_is_object(object))
        connector(r, a, object);
    else
        maq_command_bad(r, a,
                        "{\"kv_connector\": \"OffloadingConnector\", \"kv_role\": \"kv_both\", "
                        "\"kv_connector_extra_config\": {\"cpu_bytes_to_use\": 68719476736}}",
                        "an object of JSON");
    json_decref(object);
}

bool maq_command_set_offload(struct maq_command_reader *r, const struct maq_command_argument *a)
{
    enum maq_command_effect effect = a->form.row->effect;
    double gib;
    if (effect == MAQ_COMMAND_KV_CONNECTOR) {
        read_connector(r, a);
    } else if (effect == MAQ_COMMAND_KV_SIZE) {
        if (maq_str_to_double(&gib, maq_str_of(a->value)) && gib >= 0 && gib <= 1e9)
            r->offload_bytes = gib * GIB;
        else
            maq_command_bad(r, a, "64", "a number of GiB of at least 0");
    } else if (effect == MAQ_COMMAND_KV_BACKEND) {
        r->foreign_offload = strcmp(a->value, "native") != 0;
        if (r->foreign_offload)
            say(r, a, a->value);
    } else {
        return false;
    }
    return true;
}

void maq_command_conclude_offload(struct maq_command_reader *r)
{
    struct maq_tier_options *o = &r->loaded->read.options.tiers;
    int32_t block = r->block > 0 ? r->block : 16;
    if (r->offload_bytes > 0 && !r->foreign_offload)
        o->bytes[MAQ_TIER_HOST] = r->offload_bytes;
    if (r->offload_tokens > 0)
        o->chunk_blocks = r->offload_tokens > block ? r->offload_tokens / block : 1;
}
