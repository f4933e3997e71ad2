/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infer.c - maq_capture_infer(): the programs and communicators of ranks that did not run, from those that did.
 *
 * The strides of the communicators cut a rank's number into digits (tensor, data, pipeline place, ...). The class of a rank is a
 * function of its digits (rank_digits.c), the members of its communicators are a function of its number (communicators.c). Where
 * these are not determined, the result is a list of ranks that have to run next. Random ranks (`maquette capture --verify`) test
 * the rule.
 */
#include "capture/infer/infer.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "maquette/capture.h"

/* --- digits --- */

/* One that does not divide the world (the first and the last pipeline stage are a group), or cuts across another, is none. */
static void add_border(uint32_t *border, uint32_t *n, uint64_t x, uint32_t world)
{
    uint32_t i = 0;
    if (x > world || world % x != 0)
        return;
    while (i < *n && border[i] < x)
        if (x % border[i++] != 0)
            return;
    if (*n == MAQ_DIGITS + 1 || (i < *n && (border[i] == x || border[i] % x != 0)))
        return;
    memmove(border + i + 1, border + i, (*n - i) * sizeof *border);
    border[i] = (uint32_t)x;
    ++*n;
}

/* Borders between digits: 1 and the world, and the strides and spans of communicators where they divide each other. */
static void find_digits(struct maq_infer *f)
{
    uint32_t border[MAQ_DIGITS + 1] = {1}, n = 1, world = f->capture->world;
    add_border(border, &n, world, world);
    for (uint32_t k = 0; k < f->capture->n_classes; k++)
        for (uint32_t i = 0; i < f->capture->class_of_ranks[k].n_comms; i++) {
            const struct maq_pattern *p = &f->pattern[k][i];
            for (uint32_t j = 0; j < p->n_levels; j++) {
                add_border(border, &n, p->stride[j], world);
                if (!p->fixed)
                    add_border(border, &n, (uint64_t)p->stride[j] * p->n[j], world);
            }
        }
    for (uint32_t i = 0; i + 1 < n; i++) {
        f->unit[i] = border[i];
        f->size[i] = border[i + 1] / border[i];
    }
    f->n_digits = n - 1;
}

/* Asks for the least rank that did not run, where no rank is known to be more informative. */
static enum maq_status ask_any(struct maq_infer *f)
{
    for (uint32_t r = 0; r < f->capture->world && f->n_asked == 0; r++)
        if (f->capture->class_of[r] == UINT32_MAX)
            maq_infer_next_ranks(f, r);
    return MAQ_NO;
}

/* Patterns of the communicators of a class that are not settled; true: some stay open. Ranks are asked for when `ask` says so. */
static bool find_class(struct maq_infer *f, uint32_t k, struct maq_patterns *like, bool ask)
{
    const struct maq_capture *c = f->capture;
    const struct maq_rank_class *m = &c->class_of_ranks[k];
    bool open = false, *settled = f->settled[k];
    for (uint32_t i = 0; i < m->n_comms; i++) {
        struct maq_pattern *p = &f->pattern[k][i];
        uint32_t rank;
        if (settled[i])
            continue;
        settled[i] = !maq_pattern_find(p, c, m, i, like, &rank);
        open = open || !settled[i];
        if (settled[i])
            like->at[like->n++] = *p;
        else if (ask && rank < c->world)
            maq_infer_next_ranks(f, rank);
    }
    return open;
}

/*
 * Where all communicators of all classes lie. MAQ_NO: that is open for some; ranks that would tell are asked for, where there
 * are.
 */
static enum maq_status find_patterns(struct maq_infer *f)
{
    const struct maq_capture *c = f->capture;
    size_t n = 0;
    for (uint32_t k = 0; k < c->n_classes; k++)
        n += c->class_of_ranks[k].n_comms;
    struct maq_patterns like = {.at = MAQ_ARENA_NEW(&f->scratch, struct maq_pattern, n), .early = f->early};
    bool open = true;
    f->pattern = MAQ_ARENA_NEW(&f->scratch, struct maq_pattern *, c->n_classes);
    f->settled = MAQ_ARENA_NEW(&f->scratch, bool *, c->n_classes);
    if (!like.at || !f->settled || !f->pattern)
        return MAQ_NO_MEMORY;
    for (uint32_t k = 0; k < c->n_classes; k++) {
        f->pattern[k] = MAQ_ARENA_NEW(&f->scratch, struct maq_pattern, c->class_of_ranks[k].n_comms);
        f->settled[k] = MAQ_ARENA_NEW(&f->scratch, bool, c->class_of_ranks[k].n_comms);
        if (!f->pattern[k] || !f->settled[k])
            return MAQ_NO_MEMORY;
    }
    for (int turn = 0; turn < 2 && open; turn++) { /* the second knows what the first found */
        open = false;
        for (uint32_t k = 0; k < c->n_classes; k++)
            open = find_class(f, k, &like, turn > 0) || open;
    }
    return open ? MAQ_NO : MAQ_OK;
}

static int by_place(const void *left, const void *right)
{
    const struct maq_seen_pattern *a = left, *b = right;
    if (a->pattern.size != b->pattern.size)
        return a->pattern.size < b->pattern.size ? -1 : 1;
    if (a->nth != b->nth)
        return a->nth < b->nth ? -1 : 1;
    return memcmp(&a->pattern, &b->pattern, sizeof a->pattern);
}

static enum maq_status list_patterns(struct maq_seen_pattern **out, uint32_t *n, struct maq_infer *f,
                                     struct maq_arena *arena)
{
    const struct maq_capture *c = f->capture;
    uint32_t listed = 0, kept = 0, most = 0;
    if (find_patterns(f) == MAQ_NO_MEMORY)
        return MAQ_NO_MEMORY;
    for (uint32_t k = 0; k < c->n_classes; k++)
        most += c->class_of_ranks[k].n_comms;
    struct maq_seen_pattern *all = MAQ_ARENA_NEW(arena, struct maq_seen_pattern, most);
    if (!all)
        return MAQ_NO_MEMORY;
    for (uint32_t k = 0; k < c->n_classes; k++)
        for (uint32_t i = 0; i < c->class_of_ranks[k].n_comms; i++)
            if (f->settled[k][i])
                all[listed++] =
                    (struct maq_seen_pattern){f->pattern[k][i], maq_pattern_nth(c, &c->class_of_ranks[k], i)};
    if (listed > 0)
        qsort(all, listed, sizeof *all, by_place);
    for (uint32_t i = 0; i < listed; i++)
        if (i == 0 || by_place(&all[i], &all[kept - 1]) != 0)
            all[kept++] = all[i];
    *out = all;
    *n = kept;
    return MAQ_OK;
}

enum maq_status maq_infer_patterns(struct maq_seen_pattern **out, uint32_t *n, struct maq_capture *capture,
                                   struct maq_arena *arena)
{
    uint32_t nobody;
    struct maq_infer f = {.capture = capture, .asked = &nobody, .early = true};
    maq_arena_init(&f.scratch, 0);
    enum maq_status status = list_patterns(out, n, &f, arena);
    maq_arena_fini(&f.scratch);
    return status;
}

static enum maq_status infer(struct maq_infer *f)
{
    struct maq_capture *c = f->capture;
    f->ran = MAQ_ARENA_NEW(&f->scratch, uint32_t, c->world);
    if (!f->ran)
        return MAQ_NO_MEMORY;
    for (uint32_t r = 0; r < c->world; r++)
        if (c->class_of[r] != UINT32_MAX)
            f->ran[f->n_ran++] = r;
    if (f->n_ran == c->world)
        return MAQ_OK;
    if (f->n_ran == 0)
        return MAQ_NO;
    MAQ_TRY(find_patterns(f));
    find_digits(f);
    MAQ_TRY(maq_infer_digits(f));
    return maq_infer_communicators(f);
}

enum maq_status maq_capture_infer(struct maq_capture *capture, uint32_t *probe, uint32_t *n, struct maq_diag *diag)
{
    struct maq_infer f = {.capture = capture, .asked = probe, .most = *n};
    MAQ_ASSERT(*n > 0);
    maq_arena_init(&f.scratch, 0);
    enum maq_status status = infer(&f);
    if (status == MAQ_NO)
        status = ask_any(&f);
    *n = f.n_asked;
    maq_arena_fini(&f.scratch);
    if (status == MAQ_NO_MEMORY)
        return maq_no_memory(diag, NULL);
    return status;
}
