/* SPDX-License-Identifier: Apache-2.0 */
/* acceptance.c - what share of drafts is accepted: as it is written, and drawn. */
#include "serve/draft/acceptance.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/stat/rng.h"
#include "base/str.h"
#include "base/text.h"
#include "serve/codes.h"

#define FORM "one rate (0.7), a share for each place (0.8,0.6,0.4), or a file with the columns position and accepted"
#define LINE_MOST 256

const char *maq_draft_method_name(enum maq_draft_method method)
{
    static const char *const names[MAQ_DRAFT_COUNT] = {
#define NAME(id, name, what) [MAQ_DRAFT_##id] = name,
        MAQ_DRAFT_LIST(NAME)
#undef NAME
    };
    return (unsigned)method < MAQ_DRAFT_COUNT ? names[method] : "unknown";
}

/* ---- as it is written ---- */

struct reader {
    struct maq_speculation *out;
    const char *from; /* a file's name, or the option */
    struct maq_diag *diag;
};

#define FAULT(r, hint, ...)                                                                                            \
    maq_diag_fail(MAQ_BAD_INPUT, (r)->diag, MAQ_CODE_ACCEPTANCE, MAQ_NO_SPAN, (hint), __VA_ARGS__)
#define MAQ_NO_SPAN ((struct maq_span){0})

static enum maq_status one_rate(const struct reader *r, double rate)
{
    double share = 1;
    if (!(rate >= 0 && rate <= 1))
        return FAULT(r, FORM, "%s: a rate is from 0 to 1, not %g", r->from, rate);
    for (int32_t j = 0; j < r->out->tokens; j++)
        r->out->accepted[j] = share *= rate;
    return MAQ_OK;
}

/* Of the draft at place `j`; those behind the last one that is proposed are left out. */
static enum maq_status add_share(const struct reader *r, int32_t j, double share)
{
    double before = j > 0 ? r->out->accepted[j - 1] : 1;
    if (!(share >= 0 && share <= 1))
        return FAULT(r, FORM, "%s: the share at place %d is from 0 to 1, not %g", r->from, j + 1, share);
    if (share > before)
        return FAULT(r, "shares of verifications, as vLLM logs its per-position acceptance rate",
                     "%s: a draft is accepted only with all before it, but %g at place %d is more than %g before it",
                     r->from, share, j + 1, before);
    r->out->accepted[j] = share;
    return MAQ_OK;
}

static enum maq_status check_all(const struct reader *r, int32_t n)
{
    if (n < r->out->tokens)
        return FAULT(r, FORM, "%s has shares of %d drafts, but %d are proposed", r->from, n, r->out->tokens);
    return MAQ_OK;
}

static enum maq_status read_list(const struct reader *r, struct maq_str text)
{
    struct maq_str word;
    int32_t n = 0;
    double x;
    bool several = memchr(text.ptr, ',', text.len) != NULL;
    while (text.ptr) {
        text = maq_str_split(text, ',', &word);
        word = maq_str_trim(word);
        if (!maq_str_to_double(&x, word))
            return FAULT(r, FORM, "%s: '%.*s' is not a share", r->from, (int)(word.len < 40 ? word.len : 40), word.ptr);
        if (!several)
            return one_rate(r, x);
        if (n < r->out->tokens)
            MAQ_TRY(add_share(r, n, x));
        n++;
    }
    return check_all(r, n);
}

/* The number of a column of that name in a line of names; -1: there is none. */
static int column_of(struct maq_str line, const char *name)
{
    struct maq_str word;
    for (int i = 0; line.ptr; i++) {
        line = maq_str_split(line, ',', &word);
        if (maq_str_is(maq_str_trim(word), name))
            return i;
    }
    return -1;
}

static bool number_at(double *out, struct maq_str line, int column)
{
    struct maq_str word = {NULL, 0};
    for (int i = 0; i <= column; i++) {
        if (!line.ptr)
            return false;
        line = maq_str_split(line, ',', &word);
    }
    return maq_str_to_double(out, maq_str_trim(word));
}

static enum maq_status read_file(const struct reader *r, FILE *f)
{
    char buf[LINE_MOST];
    int position = -1, accepted = -1;
    int32_t n = 0, number = 0;
    double place, share;
    while (fgets(buf, sizeof buf, f)) {
        struct maq_str line = maq_str_trim(maq_str_of(buf));
        number++;
        if (line.len == 0)
            continue;
        if (position < 0) {
            position = column_of(line, "position");
            accepted = column_of(line, "accepted");
            if (position < 0 || accepted < 0)
                return FAULT(r, FORM, "%s: its first line does not name the columns position and accepted", r->from);
            continue;
        }
        if (!number_at(&place, line, position) || !number_at(&share, line, accepted) || place != n + 1)
            return FAULT(r, FORM, "%s:%d: position %d and its share are expected here", r->from, number, n + 1);
        if (n < r->out->tokens)
            MAQ_TRY(add_share(r, n, share));
        n++;
    }
    return check_all(r, n);
}

enum maq_status maq_acceptance_read(struct maq_speculation *s, const char *text, struct maq_diag *diag)
{
    struct reader r = {.out = s, .from = "acceptance", .diag = diag};
    struct maq_str trimmed = maq_str_trim(maq_str_of(text)), first;
    double x;
    MAQ_ASSERT(s->tokens >= 0 && s->tokens <= (int32_t)MAQ_DRAFT_MOST);
    (void)maq_str_split(trimmed, ',', &first);
    if (trimmed.len > 0 && maq_str_to_double(&x, maq_str_trim(first)))
        return read_list(&r, trimmed);
    FILE *f = trimmed.len > 0 ? fopen(text, "rbe") : NULL;
    if (!f)
        return FAULT(&r, FORM, "acceptance: '%.80s' is no share, and no file that can be read%s%s", text,
                     trimmed.len > 0 ? ": " : "", trimmed.len > 0 ? strerror(errno) : "");
    r.from = text;
    enum maq_status status = read_file(&r, f);
    (void)fclose(f);
    return status;
}

/* ---- what it comes to ---- */

double maq_acceptance_length(const struct maq_speculation *s)
{
    double sum = 1;
    for (int32_t j = 0; j < s->tokens; j++)
        sum += s->accepted[j];
    return sum;
}

int32_t maq_drafts_accepted(const struct maq_speculation *s, uint32_t request, int64_t sampled, int32_t drafts)
{
    double before = 1;
    int32_t n = 0;
    for (; n < drafts && n < s->tokens; n++) {
        double share = s->accepted[n];
        if (maq_rng_at(s->seed, MAQ_RNG_DRAFT, request, (uint64_t)(sampled + n)) * before >= share)
            break;
        before = share;
    }
    return n;
}
