/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse.c - cuts the text of a kernel into statements.
 *
 * A statement ends at ';', a label at ':'. What begins with a dot declares something: parameters are read at the head of the kernel, and registers
 * are known by being used. Braces open a scope, as each piece of inline assembly has one, and its labels may come again in the next.
 */
#include "shim/ptx/instruction.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "shim/grow.h"

enum { LABELS_FIRST = 256, TEXT_MOST = 64 << 20, SCOPES_MOST = 16 };

/* --- the head of a kernel --------------------------------------------------------------------------------------------------- */

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

/* Where `.entry KERNEL` stands; behind it. NULL: nowhere. */
static char *find_entry(char *text, const char *kernel)
{
    const size_t length = strlen(kernel);
    for (char *at = text; (at = strstr(at, ".entry")) != NULL;) {
        at += strlen(".entry");
        at += strspn(at, " \t\n");
        if (strncmp(at, kernel, length) == 0 && !is_name(at[length]))
            return at + length;
    }
    return NULL;
}

/* The names of the parameters between the brackets at `at`: the last word of each. Where the body begins; NULL: there is none. */
static char *read_params(struct vg_ptx_text *t, char *at)
{
    at += strspn(at, " \t\n");
    if (*at == '(') {
        char *end = strchr(at, ')');
        if (end == NULL)
            return NULL;
        for (char *from = at + 1; from < end;) {
            char *to = from + strcspn(from, ",)");
            char *last = to;
            while (last > from && strchr(" \t\n", last[-1]) != NULL)
                last--;
            if (last > from && last[-1] == ']')
                while (last > from && *last != '[')
                    last--;
            char *first = last;
            while (first > from && is_name(first[-1]))
                first--;
            if (last > first && vg_ptx_number(&t->params, first, (size_t)(last - first)) == UINT32_MAX)
                return NULL;
            from = to + 1;
        }
        at = end + 1;
    }
    t->code->n_params = t->params.n;
    at = strchr(at, '{');
    return at != NULL ? at + 1 : NULL;
}

/* --- the body --------------------------------------------------------------------------------------------------------------- */

/* Comments become blanks. */
static void blank_comments(char *text)
{
    for (char *at = text; (at = strchr(at, '/')) != NULL;) {
        if (at[1] != '/' && at[1] != '*') {
            at++;
            continue;
        }
        char *end = at[1] == '/' ? strchr(at, '\n') : strstr(at + 2, "*/");
        if (end == NULL)
            end = at + strlen(at);
        else if (at[1] == '*')
            end += 2;
        memset(at, ' ', (size_t)(end - at));
        at = end;
    }
}

static bool put_label(struct vg_ptx_text *t, const char *name, size_t length)
{
    const uint32_t label = vg_ptx_number(&t->labels, name, length);
    if (label == UINT32_MAX)
        return false;
    while (label >= t->place_room) {
        const uint32_t had = t->place_room;
        uint32_t *bigger = vg_grown(t->place, had, &t->place_room, LABELS_FIRST, sizeof *bigger);
        if (bigger == NULL)
            return false;
        t->place = bigger;
        memset(bigger + had, 0xff, (t->place_room - had) * sizeof *bigger);
    }
    t->place[label] = t->code->n;
    return true;
}

/* Branches from instruction `from` on know a label's number so far, and get its place: that in their scope, if there is one. */
static void resolve(struct vg_ptx_text *t, uint32_t from, bool whole)
{
    for (uint32_t i = from; i < t->code->n; i++) {
        struct vg_ptx_instruction *b = &t->code->at[i];
        if (b->op != VG_PTX_BRANCH || b->placed)
            continue;
        const uint32_t label = (uint32_t)b->amount;
        const uint32_t place = label < t->place_room ? t->place[label] : UINT32_MAX;
        if (!whole && (place == UINT32_MAX || place < from))
            continue;
        b->amount = place <= t->code->n ? place : t->code->n;
        b->placed = true;
    }
}

/* A statement, or a directive, which says nothing here. */
static bool put_statement(struct vg_ptx_text *t, char *from, char *to)
{
    while (from < to && isspace((unsigned char)*from))
        from++;
    while (to > from && isspace((unsigned char)to[-1]))
        to--;
    *to = '\0';
    return *from == '\0' || *from == '.' || vg_ptx_decode(t, from);
}

/* What a line directive says has no semicolon behind it. */
static char *skip_line_directive(char *at)
{
    static const char *const word[] = {".loc", ".file", ".pragma", ".section"};
    for (size_t i = 0; i < sizeof word / sizeof *word; i++)
        if (strncmp(at, word[i], strlen(word[i])) == 0 && !is_name(at[strlen(word[i])])) {
            char *end = strchr(at, '\n');
            return end != NULL ? end : at + strlen(at);
        }
    return NULL;
}

static bool read_body(struct vg_ptx_text *t, char *at)
{
    uint32_t scope[SCOPES_MOST] = {0}; /* where those that are open begin */
    int depth = 1, list = 0;
    char *from = at;
    for (; *at != '\0' && depth > 0; at++) {
        char *const skipped = *at == '.' ? skip_line_directive(at) : NULL;
        if (skipped != NULL && strspn(from, " \t\n") == (size_t)(at - from)) {
            from = at = skipped;
            if (*at == '\0')
                break;
        } else if (*at == '{' && strspn(from, " \t\n") < (size_t)(at - from)) {
            list++; /* of registers, in a statement */
        } else if (*at == '}' && list > 0) {
            list--;
        } else if (*at == '{') {
            if (depth < SCOPES_MOST)
                scope[depth] = t->code->n;
            depth++;
            from = at + 1;
        } else if (*at == '}') {
            depth--;
            if (depth < SCOPES_MOST)
                resolve(t, scope[depth], false);
            from = at + 1;
        } else if (*at == ';') {
            if (!put_statement(t, from, at))
                return false;
            from = at + 1;
        } else if (*at == ':' && at[1] != ':' && at > from && at[-1] != ':') {
            from += strspn(from, " \t\n");
            if (!put_label(t, from, (size_t)(at - from)))
                return false;
            from = at + 1;
        }
    }
    resolve(t, 0, true);
    return t->code->n > 0;
}

struct vg_ptx *vg_ptx_read(const char *text, size_t bytes, const char *kernel)
{
    struct vg_ptx_text t = {.code = calloc(1, sizeof *t.code)};
    char *copy = bytes <= TEXT_MOST ? malloc(bytes + 1) : NULL;
    bool good = false;
    if (t.code != NULL && copy != NULL) {
        memcpy(copy, text, bytes);
        copy[bytes] = '\0';
        blank_comments(copy);
        char *at = find_entry(copy, kernel);
        at = at != NULL ? read_params(&t, at) : NULL;
        good = at != NULL && read_body(&t, at);
        t.code->n_registers = t.registers.n;
    }
    free(t.registers.at);
    free(t.labels.at);
    free(t.params.at);
    free(t.place);
    free(copy);
    if (!good) {
        vg_ptx_free(t.code);
        t.code = NULL;
    }
    return t.code;
}

void vg_ptx_free(struct vg_ptx *code)
{
    if (code != NULL) {
        free(code->at);
        free(code->out);
        free(code);
    }
}

uint32_t vg_ptx_params(const struct vg_ptx *code)
{
    return code->n_params;
}
