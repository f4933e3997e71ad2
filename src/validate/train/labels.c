/* SPDX-License-Identifier: Apache-2.0 */
/*
 * labels.c - the groups that a row is in, one of each kind: its source, device, framework, size, ...
 */
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "base/text.h"
#include "validate/train/run.h"

static const struct {
    const char *key, *title;
} groupings[MAQ_VALIDATE_BY_COUNT] = {
#define MAQ_VALIDATE_BY_ROW(name, key, title) [MAQ_VALIDATE_BY_##name] = {key, title},
    MAQ_VALIDATE_BY_LIST(MAQ_VALIDATE_BY_ROW)
#undef MAQ_VALIDATE_BY_ROW
};

const char *maq_validate_by_key(enum maq_validate_by by)
{
    return (unsigned)by < MAQ_VALIDATE_BY_COUNT ? groupings[by].key : "?";
}

const char *maq_validate_by_title(enum maq_validate_by by)
{
    return (unsigned)by < MAQ_VALIDATE_BY_COUNT ? groupings[by].title : "?";
}

/* "NeMo 24.07 docs (2024-08-14)" is NeMo: what stands before a release, a remark or a variant. */
static struct maq_str framework_name(const char *text)
{
    size_t n = strcspn(text, "(;,");
    for (size_t i = 1; i < n; i++) {
        const char *word = &text[i] + (text[i] == 'v');
        if (text[i - 1] == ' ' && *word >= '0' && *word <= '9')
            n = i;
    }
    while (n > 0 && text[n - 1] == ' ')
        n--;
    return (struct maq_str){text, n};
}

bool maq__validate_label_text(struct maq_validate_row *row, struct maq_arena *arena)
{
    for (int by = 0; by < MAQ_VALIDATE_BY_COUNT; by++)
        row->label[by] = "";
    const char *framework = maq_arena_strdup(arena, framework_name(row->framework));
    row->label[MAQ_VALIDATE_BY_SOURCE] = row->source;
    row->label[MAQ_VALIDATE_BY_FRAMEWORK] = framework ? framework : "";
    return framework != NULL;
}

static const char *size_class(uint32_t devices)
{
    return devices <= 64 ? "1-64" : devices <= 512 ? "65-512" : "513+";
}

static bool has_experts(const struct maq_model *m)
{
    return maq_model_find_module(m, MAQ_MODULE_ROUTER, MAQ_PART_COUNT) != NULL;
}

bool maq__validate_label_job(struct maq_validate_row *row, const struct maq_job *job, struct maq_arena *arena)
{
    const struct maq_placement *tp = &job->groups[MAQ_GROUP_TP];
    bool across = tp->domains > 1 && tp->per_node < tp->size;
    const char *label = maq_arena_printf(arena, "TP %d%s", job->plan.tp, across ? ", across nodes" : "");
    const char *device = maq_arena_strdup(arena, maq_str_of(job->cluster.groups[0].device.name));
    if (!label || !device)
        return false;
    row->label[MAQ_VALIDATE_BY_DEVICE] = device;
    row->label[MAQ_VALIDATE_BY_TP] = label;
    row->label[MAQ_VALIDATE_BY_SIZE] = size_class(row->devices);
    row->label[MAQ_VALIDATE_BY_PRECISION] = maq_precision_name((enum maq_precision)job->plan.precision);
    row->label[MAQ_VALIDATE_BY_KIND] = has_experts(&job->model) ? "mixture of experts" : "dense";
    return true;
}
