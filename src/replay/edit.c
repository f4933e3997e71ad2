/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edit.c - parses edits of a replay (--slow, --fail): see maquette/replay.h.
 *
 *     slow   rank:N | node:N, = factor x [@ step:A | step:A..B]
 *            link:railN | link:rankN | link:nodeN, = share of its speed x
 *     fail   rank:N | node:N, = step:S | time
 *
 * A rail is the network ports of the devices with the same index in their nodes.
 */
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "base/text.h"
#include "capture/codes.h"
#include "maquette/replay.h"

static const char slow_forms[] = "rank:17=1.3x, node:3=1.2x, rank:17=1.3x@step:2..5: times as long; link:rail3=0.5x, "
                                 "link:rank17=0.5x, link:node2=0.5x: of its speed";
static const char fail_forms[] = "rank:17=step:3, node:2=step:3, rank:17=1.5s, rank:17=200ms";

static enum maq_status refuse(const char *text, const char *flag, const char *why, const char *forms,
                              struct maq_diag *diag)
{
    char shown[MAQ_SHOW_SIZE];
    return maq_diag_fail(MAQ_USAGE, diag, MAQ_CODE_REPLAY_EDIT, (struct maq_span){0}, forms, "%s %s: %s", flag,
                         maq_str_show(shown, maq_str_of(text)), why);
}

static bool number_behind(uint32_t *out, struct maq_str s, const char *prefix)
{
    size_t n = strlen(prefix);
    int64_t x;
    if (!maq_str_starts(s, prefix) || !maq_str_to_i64(&x, (struct maq_str){s.ptr + n, s.len - n}) || x < 0 ||
        x >= UINT32_MAX)
        return false;
    *out = (uint32_t)x;
    return true;
}

/* Whether an edit is about unknown ranks only, and would silently change nothing. */
static const char *nobody_known(const struct maq_edit *e, const struct maq_capture *c)
{
    for (uint32_t i = 0; i < e->count && e->first + (uint64_t)i * e->stride < c->world; i++)
        if (c->class_of[e->first + i * e->stride] != UINT32_MAX)
            return NULL;
    return "nothing is known of it";
}

/* Reads which ranks an edit is about; NULL, or why the text names none. */
static const char *read_who(struct maq_edit *out, struct maq_str who, const struct maq_capture *c)
{
    uint32_t per_node = c->per_node > 0 ? c->per_node : c->world, n;
    *out = (struct maq_edit){.count = 1, .stride = 1, .factor = 1, .to = UINT32_MAX, .at_ns = -1};
    if (maq_str_starts(who, "link:")) {
        out->kind = MAQ_EDIT_LINK;
        who = (struct maq_str){who.ptr + 5, who.len - 5};
        if (number_behind(&n, who, "rail")) {
            out->first = n;
            out->stride = per_node;
            out->count = n < c->world ? (c->world - 1 - n) / per_node + 1 : 0;
            return n >= per_node ? "a node has not so many rails" : nobody_known(out, c);
        }
        if (number_behind(&n, who, "rank"))
            out->first = n;
        else if (number_behind(&n, who, "node")) {
            out->first = n < c->world ? n * per_node : UINT32_MAX;
            out->count = per_node;
        } else
            return "not a rail, rank or node";
    } else if (number_behind(&n, who, "rank:")) {
        out->first = n;
    } else if (number_behind(&n, who, "node:")) {
        out->first = n < c->world ? n * per_node : UINT32_MAX;
        out->count = per_node;
    } else {
        return "not a rank, node or link";
    }
    if (out->first >= c->world)
        return out->count > 1 ? "the job has not so many nodes" : "the job has not so many ranks";
    return nobody_known(out, c);
}

static bool read_steps(struct maq_edit *out, struct maq_str range)
{
    if (!number_behind(&out->from, range, "step:")) {
        const char *dots = range.len > 0 ? memchr(range.ptr, '.', range.len) : NULL;
        if (!dots)
            return false;
        struct maq_str head = {range.ptr, (size_t)(dots - range.ptr)};
        struct maq_str tail = {dots, range.len - head.len};
        return number_behind(&out->from, head, "step:") && number_behind(&out->to, tail, "..") && out->to > out->from;
    }
    out->to = out->from + 1;
    return true;
}

enum maq_status maq_edit_slow(struct maq_edit *out, const char *text, const struct maq_capture *capture,
                              struct maq_diag *diag)
{
    struct maq_str who, steps, factor, rest = maq_str_split(maq_str_of(text), '=', &who);
    struct maq_edit edit;
    const char *why = read_who(&edit, who, capture);
    if (why)
        return refuse(text, "--slow", why, slow_forms, diag);
    steps = maq_str_split(rest, '@', &factor);
    if (factor.len < 2 || factor.ptr[factor.len - 1] != 'x')
        return refuse(text, "--slow", "the factor ends with x", slow_forms, diag);
    factor.len--;
    if (!maq_str_to_double(&edit.factor, factor) || !(edit.factor > 0 && edit.factor <= 1000))
        return refuse(text, "--slow", "the factor is above 0 and up to 1000", slow_forms, diag);
    if (steps.ptr && edit.kind == MAQ_EDIT_LINK)
        return refuse(text, "--slow", "a link is slow from the first step to the last", slow_forms, diag);
    if (steps.ptr && !read_steps(&edit, steps))
        return refuse(text, "--slow", "steps are step:2 or step:2..5, without the last", slow_forms, diag);
    if (edit.kind == MAQ_EDIT_LINK)
        edit.factor = 1 / edit.factor;
    *out = edit;
    return MAQ_OK;
}

enum maq_status maq_edit_fail(struct maq_edit *out, const char *text, const struct maq_capture *capture,
                              struct maq_diag *diag)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"min", 60e9}, {"s", 1e9}, {"h", 3600e9}};
    struct maq_str who, when = maq_str_split(maq_str_of(text), '=', &who);
    struct maq_edit edit;
    const char *why = read_who(&edit, who, capture);
    if (!why && edit.kind == MAQ_EDIT_LINK)
        why = "ranks and nodes fail; a link is slow";
    if (why)
        return refuse(text, "--fail", why, fail_forms, diag);
    edit.kind = MAQ_EDIT_FAIL;
    if (number_behind(&edit.from, when, "step:")) {
        *out = edit;
        return MAQ_OK;
    }
    for (size_t i = 0; i < MAQ_COUNT(units); i++) {
        size_t n = strlen(units[i].unit);
        double x;
        if (when.len > n && memcmp(when.ptr + when.len - n, units[i].unit, n) == 0 &&
            maq_str_to_double(&x, (struct maq_str){when.ptr, when.len - n}) && x >= 0 && x * units[i].ns < 9e18) {
            edit.at_ns = (int64_t)(x * units[i].ns + 0.5);
            *out = edit;
            return MAQ_OK;
        }
    }
    return refuse(text, "--fail", "at a step or a time", fail_forms, diag);
}
