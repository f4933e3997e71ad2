/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interpretation.c - the record of interpreting a row: settings, assumptions with their reasons, and why a row is
 * skipped. See interpret.h.
 */
#include <stdarg.h>
#include <string.h>

#include "base/text.h"
#include "validate/train/interpret.h"

static const char *keep_text(struct maq_interpretation *in, const char *fmt, va_list args) MAQ_PRINTF(2, 0);
static const char *keep_text(struct maq_interpretation *in, const char *fmt, va_list args)
{
    char buf[512];
    maq__vsnprintf(buf, sizeof buf, fmt, args);
    const char *text = maq_arena_strdup(in->arena, maq_str_of(buf));
    if (!text)
        in->failed = true;
    return text ? text : "";
}

void maq__assume(struct maq_interpretation *in, const char *fmt, ...)
{
    if (in->n_assumed == MAQ_INTERPRET_ASSUMED)
        return;
    va_list args;
    va_start(args, fmt);
    in->assumed[in->n_assumed++] = keep_text(in, fmt, args);
    va_end(args);
}

void maq__give_up(struct maq_interpretation *in, enum maq_validate_skip skip, const char *fmt, ...)
{
    if (in->skip != MAQ_VALIDATE_SKIP_NONE)
        return;
    va_list args;
    va_start(args, fmt);
    in->skip = skip;
    in->why = keep_text(in, fmt, args);
    va_end(args);
}

const char *maq__setting(const struct maq_settings *of, const char *key)
{
    for (uint32_t i = 0; i < of->n; i++)
        if (strcmp(of->at[i].key, key) == 0)
            return of->at[i].value;
    return NULL;
}

bool maq__set(struct maq_interpretation *in, struct maq_settings *to, const char *key, const char *fmt, ...)
{
    if (maq__setting(to, key) || to->n == MAQ_INTERPRET_SETTINGS)
        return false;
    va_list args;
    va_start(args, fmt);
    to->at[to->n++] = (struct maq_setting){key, keep_text(in, fmt, args)};
    va_end(args);
    return true;
}

void maq__unset(struct maq_settings *of, const char *key)
{
    for (uint32_t i = 0; i < of->n; i++)
        if (strcmp(of->at[i].key, key) == 0) {
            memmove(&of->at[i], &of->at[i + 1], (of->n - i - 1) * sizeof of->at[0]);
            of->n--;
            return;
        }
}
