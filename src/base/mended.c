/* SPDX-License-Identifier: Apache-2.0 */
/* mended.c - counts what readers of recorded data mended, and writes the warning. See mended.h. */
#include "base/mended.h"

#include "base/codes.h"
#include "base/str.h"
#include "base/text.h"

#define MESSAGE_MAX 2048u

static const char *const words[MAQ_MEND_KINDS][2] = {
#define MAQ_MEND_ROW(name, one, several) [MAQ_MEND_##name] = {one, several},
    MAQ_MEND_LIST(MAQ_MEND_ROW)
#undef MAQ_MEND_ROW
};

void maq_mending_begin(struct maq_mending *m, const char *path, const char *place, const char *rows,
                       struct maq_diag *diag)
{
    *m = (struct maq_mending){.path = path, .place = place, .rows = rows, .diag = diag};
}

static bool leaves_out(enum maq_mend_kind kind)
{
    return kind == MAQ_MEND_LINE || kind == MAQ_MEND_VALUE;
}

static enum maq_status MAQ_PRINTF(6, 0) mend(struct maq_mending *m, enum maq_mend_kind kind, uint64_t place,
                                             uint16_t code, struct maq_span at, const char *fmt, va_list args)
{
    if (maq_diag_strict(m->diag) || (m->code == 0 && leaves_out(kind))) {
        maq__vsnprintf(m->fault, sizeof m->fault, fmt, args);
        m->code = code;
        m->at = at;
    }
    if (maq_diag_strict(m->diag))
        return maq_diag_fail(MAQ_BAD_INPUT, m->diag, code, at, "without --strict it is mended and counted", "%s",
                             m->fault);
    m->first[kind] = m->n[kind]++ == 0 ? place : m->first[kind];
    return MAQ_OK;
}

enum maq_status maq_mend(struct maq_mending *m, enum maq_mend_kind kind, uint64_t place, uint16_t code, const char *fmt,
                         ...)
{
    va_list args;
    va_start(args, fmt);
    enum maq_status status = mend(m, kind, place, code, (struct maq_span){0}, fmt, args);
    va_end(args);
    return status;
}

enum maq_status maq_mend_at(struct maq_mending *m, enum maq_mend_kind kind, uint64_t place, uint16_t code,
                            struct maq_span at, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    enum maq_status status = mend(m, kind, place, code, at, fmt, args);
    va_end(args);
    return status;
}

/* "3 durations below zero (first at line 815), 1 repetition left out (line 9)" */
static void add_kinds(struct maq_buf *b, const struct maq_mending *m)
{
    bool any = false;
    for (int k = 0; k < MAQ_MEND_KINDS; k++) {
        if (m->n[k] == 0)
            continue;
        maq_buf_addf(b, "%s%llu %s", any ? ", " : "", (unsigned long long)m->n[k], words[k][m->n[k] > 1]);
        if (m->first[k] > 0)
            maq_buf_addf(b, " (%s%s %llu)", m->n[k] > 1 ? "the first at " : "", m->place,
                         (unsigned long long)m->first[k]);
        any = true;
    }
}

enum maq_status maq_mending_end(const struct maq_mending *m, uint64_t kept)
{
    uint64_t all = 0, lost = 0;
    struct maq_buf b;
    for (int k = 0; k < MAQ_MEND_KINDS; k++) {
        all += m->n[k];
        lost += leaves_out((enum maq_mend_kind)k) ? m->n[k] : 0;
    }
    if (lost > kept)
        return maq_diag_fail(MAQ_BAD_INPUT, m->diag, m->code, m->at, NULL, "%s", m->fault);
    if (all == 0)
        return MAQ_OK;
    maq_buf_init(&b, MESSAGE_MAX);
    add_kinds(&b, m);
    if (m->recorded_s > 0 && m->moved_s > 0)
        maq_buf_addf(&b, "; times may be off by %.3g s of %.4g s recorded", m->moved_s, m->recorded_s);
    maq_diag_add(m->diag, MAQ_WARNING, MAQ_CODE_MENDED, (struct maq_span){0}, "--strict refuses it at the first",
                 "%s: mended among %llu %s: %s", m->path, (unsigned long long)kept, m->rows, b.ptr ? b.ptr : "");
    maq_buf_fini(&b);
    return MAQ_OK;
}
