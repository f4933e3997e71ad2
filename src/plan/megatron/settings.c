/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings.c - appends a setting of a Megatron-LM command line to the result, unless a search chooses it, and reports
 * faults of arguments. See reader.h.
 */
#include <string.h>

#include "base/check.h"
#include "plan/codes.h"
#include "plan/job_build.h"
#include "plan/megatron/reader.h"

bool maq__megatron_same(struct maq_str name, const char *key)
{
    size_t i = 0;
    for (; i < name.len && key[i]; i++)
        if ((name.ptr[i] == '_' ? '-' : name.ptr[i]) != (key[i] == '_' ? '-' : key[i]))
            return false;
    return i == name.len && key[i] == '\0';
}

void maq__megatron_no_memory(struct maq_megatron_reader *r)
{
    if (r->status == MAQ_OK)
        r->status = maq_no_memory(r->diag, "the arguments");
}

struct maq_span maq__megatron_place(const struct maq_megatron_reader *r, const char *flag)
{
    for (size_t i = 0; r->places && i < r->n_words; i++)
        if (strcmp(r->words[i], flag) == 0)
            return r->places[i];
    return (struct maq_span){0, 0, 0};
}

void maq__megatron_bad(struct maq_megatron_reader *r, const char *flag, const char *why, const char *hint)
{
    r->status = maq_diag_fail(MAQ_BAD_INPUT, r->diag, MAQ_CODE_MEGATRON_FORM, maq__megatron_place(r, flag), hint,
                              "%s %s", flag, why);
}

void maq__megatron_set(struct maq_megatron_reader *r, const char *flag, const char *path, const char *value)
{
    struct maq_megatron *m = &r->loaded->read;
    if (r->open && path && maq_plan_is_searched(path))
        return;
    if (!path || !value || m->n_overrides == r->loaded->size) {
        maq__megatron_no_memory(r);
        return;
    }
    m->overrides[m->n_overrides++] = (struct maq_override){flag, path, value};
}
