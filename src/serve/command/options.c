/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.c - the forms in which an engine's options may be written, and which of them a word is.
 *
 * '-' and '_' are alike (vLLM's FlexibleArgumentParser turns one into the other; click has the second, argparse the first), capitals are
 * not small letters.
 */
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "serve/command/command.h"

const struct maq_command_engine *maq_command_engine(enum maq_engine engine)
{
    static const struct maq_command_engine *const engines[MAQ_ENGINE_COUNT] = {
        [MAQ_ENGINE_VLLM] = &maq__command_vllm,
        [MAQ_ENGINE_SGLANG] = &maq__command_sglang,
        [MAQ_ENGINE_TRTLLM] = &maq__command_trtllm};
    return engines[engine];
}

/* The name with that number of an option: "-tp" of "tensor-parallel-size|-tp"; empty: it has not so many. */
static struct maq_str name_of(struct maq_str option, size_t number)
{
    struct maq_str name = {NULL, 0};
    for (size_t i = 0; i <= number; i++) {
        if (!option.ptr)
            return (struct maq_str){NULL, 0};
        option = maq_str_split(option, '|', &name);
    }
    return name;
}

/* Of a name three forms: itself, and for a switch "no-" before it, and enable for disable. */
#define FORMS_OF_A_NAME 3

static bool write_form(struct maq_command_form *f, struct maq_str name, size_t form)
{
    static const char *const turned[][2] = {{"enable-", "disable-"}, {"disable-", "enable-"}};
    f->off = form > 0;
    if (name.ptr[0] == '-') {
        maq__snprintf(f->text, sizeof f->text, "%.*s", (int)name.len, name.ptr);
        return form == 0;
    }
    if (form == 0)
        maq__snprintf(f->text, sizeof f->text, "--%.*s", (int)name.len, name.ptr);
    if (form == 1)
        maq__snprintf(f->text, sizeof f->text, "--no-%.*s", (int)name.len, name.ptr);
    if (form < 2)
        return form == 0 || f->row->takes == MAQ_TAKES_SWITCH;
    for (size_t i = 0; i < MAQ_COUNT(turned) && f->row->takes == MAQ_TAKES_SWITCH; i++) {
        size_t n = strlen(turned[i][0]);
        if (!maq_str_starts(name, turned[i][0]))
            continue;
        maq__snprintf(f->text, sizeof f->text, "--%s%.*s", turned[i][1], (int)(name.len - n), name.ptr + n);
        return true;
    }
    return false;
}

bool maq_command_next(struct maq_command_form *out, const struct maq_command_engine *e, struct maq_command_cursor *c)
{
    while (c->row < e->n_rows) {
        const struct maq_command_row *row = &e->rows[c->row];
        struct maq_str option = {row->names + c->at, strcspn(row->names + c->at, " ")};
        struct maq_str name = name_of(option, c->form / FORMS_OF_A_NAME);
        if (name.len > 0) {
            out->row = row;
            out->option = option;
            if (write_form(out, name, c->form++ % FORMS_OF_A_NAME))
                return true;
            continue;
        }
        c->form = 0;
        c->at += option.len + (row->names[c->at + option.len] == ' ');
        if (row->names[c->at] == '\0') {
            c->row++;
            c->at = 0;
        }
    }
    return false;
}

/* How many letters both begin with, '-' and '_' alike. */
static size_t alike(struct maq_str word, const char *text)
{
    size_t i = 0;
    while (i < word.len && text[i] && (word.ptr[i] == '_' ? '-' : word.ptr[i]) == (text[i] == '_' ? '-' : text[i]))
        i++;
    return i;
}

bool maq_command_find(struct maq_command_form *out, const struct maq_command_engine *e, struct maq_str word)
{
    struct maq_command_form f, begun = {0};
    bool several = false;
    for (struct maq_command_cursor c = {0}; maq_command_next(&f, e, &c);) {
        if (alike(word, f.text) < word.len)
            continue;
        if (f.text[word.len] == '\0') {
            *out = f;
            return true;
        }
        several |= begun.row && begun.option.ptr != f.option.ptr;
        begun = f;
    }
    if (!e->prefixes || several || !begun.row || word.len < 4 || word.ptr[1] != '-')
        return false;
    *out = begun;
    return true;
}

bool maq_command_nearest(struct maq_command_form *out, const struct maq_command_engine *e, struct maq_str word)
{
    uint32_t least = (uint32_t)(word.len / 4 + 2), d;
    bool found = false;
    struct maq_command_form f;
    for (struct maq_command_cursor c = {0}; maq_command_next(&f, e, &c);) {
        size_t same = alike(word, f.text);
        d = same == word.len && word.len > 4 ? 0 : maq_str_distance(word, maq_str_of(f.text), least);
        if (d < least) {
            least = d;
            *out = f;
            found = true;
        }
    }
    return found;
}

bool maq_serve_command_knows(enum maq_engine engine, const char *name)
{
    const struct maq_command_engine *e = maq_command_engine(engine);
    struct maq_command_form f;
    struct maq_str word = maq_str_of(name);
    for (struct maq_command_cursor c = {0}; maq_command_next(&f, e, &c);)
        if (strncmp(f.text, "--", 2) == 0 && alike(word, f.text + 2) == word.len && f.text[word.len + 2] == '\0')
            return true;
    return false;
}
