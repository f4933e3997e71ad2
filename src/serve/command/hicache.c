/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hicache.c - host memory for keys and values as SGLang is told of it: --enable-hierarchical-cache and --hicache-*.
 *
 * SGLang 0.5.23: arg_groups/fields/memory.py, arg_groups/hicache_hook.py. --hicache-size (GB of each GPU) goes before --hicache-ratio, and where neither is
 * said the ratio is 2, as far as --hicache-host-memory-fraction of what the host has free holds it. Without --enable-hierarchical-cache the others say
 * nothing. How pages lie in host memory changes nothing here: a copy goes at the rate of the link. That copies by cudaMemcpyAsync (direct) are
 * slower than those by a kernel is not modelled.
 */
#include <stddef.h>

#include "base/check.h"
#include "base/text.h"
#include "serve/command/command.h"

#define GB 1e9
#define DEFAULT_SHARE 0.8

enum { USUAL, NOT_KNOWN_HERE };

static const struct maq_command_meaning write_policies[] = {
    {"write_through", MAQ_HICACHE_WRITE_THROUGH},
    {"write_through_selective", MAQ_HICACHE_WRITE_THROUGH_SELECTIVE},
    {"write_back", MAQ_HICACHE_WRITE_BACK},
    {NULL, 0}};
static const struct maq_command_meaning backends[] = {
    {"kernel", USUAL}, {"direct", NOT_KNOWN_HERE}, {"kernel_ascend", NOT_KNOWN_HERE}, {NULL, 0}};
static const struct maq_command_meaning layouts[] = {{"layer_first", USUAL},       {"page_first", USUAL},
                                                     {"page_first_direct", USUAL}, {"page_first_kv_split", USUAL},
                                                     {"page_head", USUAL},         {NULL, 0}};
static const struct maq_command_meaning modes[] = {{"cache", USUAL}, {"buffer_only", NOT_KNOWN_HERE}, {NULL, 0}};

static const struct {
    enum maq_command_effect effect;
    const struct maq_command_meaning *words;
    const char *what;
} worded[] = {{MAQ_COMMAND_HICACHE_WRITE, write_policies, "a write policy"},
              {MAQ_COMMAND_HICACHE_IO, backends, "a way to copy"},
              {MAQ_COMMAND_HICACHE_LAYOUT, layouts, "a layout of host memory"},
              {MAQ_COMMAND_HICACHE_MODE, modes, "a mode"}};

static const struct {
    enum maq_command_effect effect;
    size_t at; /* a double of the options */
    double times, most;
    const char *what;
} numbers[] = {
    {MAQ_COMMAND_HICACHE_RATIO, offsetof(struct maq_tier_options, host_ratio), 1, 1e6,
     "tokens in host memory for one on the GPU, above 0"},
    {MAQ_COMMAND_HICACHE_SIZE, offsetof(struct maq_tier_options, host_rank_bytes), GB, 1e9,
     "a number of GB of each GPU, at least 0"},
    {MAQ_COMMAND_HICACHE_SHARE, offsetof(struct maq_tier_options, host_share), 1, 1, "a share above 0, at most 1"}};

static bool set_number(struct maq_command_reader *r, const struct maq_command_argument *a)
{
    for (size_t i = 0; i < MAQ_COUNT(numbers); i++) {
        double x;
        if (numbers[i].effect != a->form.row->effect)
            continue;
        bool read = maq_str_to_double(&x, maq_str_of(a->value)) && x <= numbers[i].most, size = numbers[i].times > 1;
        if (read && (x > 0 || (size && x >= 0)))
            *(double *)(void *)((char *)&r->hicache_said + numbers[i].at) = x * numbers[i].times;
        else
            maq_command_bad(r, a, NULL, numbers[i].what);
        return true;
    }
    return false;
}

bool maq_command_set_hicache(struct maq_command_reader *r, const struct maq_command_argument *a)
{
    enum maq_command_effect effect = a->form.row->effect;
    if (effect == MAQ_COMMAND_HICACHE) {
        r->hicache = true;
        return true;
    }
    for (size_t i = 0; i < MAQ_COUNT(worded); i++) {
        if (worded[i].effect != effect)
            continue;
        int is = maq_command_meaning(r, a, worded[i].words, worded[i].what);
        if (effect == MAQ_COMMAND_HICACHE_WRITE)
            r->hicache_said.write_policy = (uint8_t)(is < 0 ? 0 : is);
        else if (is == NOT_KNOWN_HERE)
            maq_command_say(r, a);
        return true;
    }
    return set_number(r, a);
}

void maq_command_conclude_hicache(struct maq_command_reader *r)
{
    struct maq_tier_options *o = &r->loaded->read.options.tiers;
    const struct maq_tier_options *said = &r->hicache_said;
    if (!r->hicache)
        return;
    o->write_policy = said->write_policy;
    o->host_rank_bytes = said->host_rank_bytes;
    o->host_ratio = said->host_ratio;
    o->host_share = said->host_share > 0 ? said->host_share : DEFAULT_SHARE;
}
