/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture.c - maq_launch_capture(): chooses the ranks that are run, and runs them until their programs are known and stable.
 *
 * 1. Rank 0 alone, without contributions of others.
 * 2. Probes: rank 0, the last one, the second, the middle and the last of every axis that is hinted at (of pipelines all
 *    stages), the corners of these axes, and rank d for every divisor d of the world, where strides of process groups show; two at
 *    random. Where all communicators are of all ranks there are no strides: the second rank and the first of the second node take the
 *    divisors' place. A small world is probed whole.
 * 3. Passes over all probes, each with the contributions of all in the pass before (exchanges, keys of the store), until these do
 *    not change: a program with equal inputs contributes the same, and is not run again. Known members of communicators are passed
 *    on as well.
 * 4. Ranks that did not run are inferred from the positions of the probes in their communicators (maq_capture_infer); where that is
 *    not determined, the ranks that decide it are probed as well, and the passes go on.
 * 5. Ranks at random, not probed so far, are run and have to be of the class that was inferred for them; one that is not becomes
 *    a probe.
 *
 * Random choices follow from the command line, so that a capture that goes on after it was killed chooses the same.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/text.h"
#include "capture/build.h"
#include "capture/infer/infer.h"
#include "launch/codes.h"
#include "launch/fork_server/fork_server.h"
#include "launch/input_record.h"
#include "launch/private_folder.h"
#include "launch/probes.h"
#include "launch/result.h"
#include "launch/trace_summary.h"
#include "maquette/replay.h"

#define SLICES_DEFAULT 24u
#define WHOLE_DEFAULT 8u /* ranks of a world that is probed whole, where --slices says nothing */
#define HINTED_MAX 64u   /* probes on axes that are hinted at, where --slices says nothing */
#define STAGES_MAX 32u   /* that all run */
#define TIMEOUT_DEFAULT_S 600
#define PASSES_MAX 6u /* passes over all probes in which the same ranks contribute something new */
#define NAMED_MAX 6u  /* of them, in a message */
#define OPEN_MAX 64u  /* ranks that are asked for at one time */
#define WORDS_MAX 300 /* bytes of a failed program's last line in a message */

struct capture {
    const struct maq_launch_capture_opts *opts;
    struct maq_launch_opts run;
    struct maq_workspace workspace;
    struct maq_probes slices;
    uint32_t n_probes; /* of the slices, the first; the others verify */
    uint64_t given;    /* hash of the inputs of the last pass */
    uint64_t traced;   /* hash of the traces that the patterns are from */
    struct maq_arena seen;
    struct maq_seen_pattern *pattern;
    uint32_t n_patterns;
    struct maq_capture *job;
    struct maq_launch_owner *owner;
    uint32_t verified;
    bool stable;
};

/* ---- which ranks ---- */

static bool choose(struct capture *c, uint32_t most, uint32_t rank, const char *why)
{
    return rank >= c->workspace.world || c->slices.n >= most || maq_probes_choose(&c->slices, rank, why) != NULL;
}

/* One of an axis, all other coordinates 0. */
static bool choose_on_axis(struct capture *c, uint32_t most, const char *name, uint32_t rank, const char *which)
{
    const char *why = maq_arena_printf(&c->workspace.arena, "the %s along %s", which, name);
    return why && choose(c, most, rank, why);
}

static bool choose_axis(struct capture *c, uint32_t most, const char *name, uint32_t stride, uint32_t size)
{
    return size < 2 || (choose_on_axis(c, most, name, stride, "second") &&
                        choose_on_axis(c, most, name, size / 2 * stride, "middle one") &&
                        choose_on_axis(c, most, name, (size - 1) * stride, "last"));
}

/* Every stage of a pipeline has a schedule of its own. */
static bool choose_stages(struct capture *c, uint32_t most, uint32_t stride, uint32_t size)
{
    bool fine = choose_axis(c, most, "pp", stride, size);
    for (uint32_t i = 2; i + 1 < size && size <= STAGES_MAX && fine; i++)
        fine = choose_on_axis(c, most, "pp", i * stride, "next");
    return fine;
}

/* Megatron-LM's order of ranks: tp, cp, dp (of which ep is the inner part), pp. */
static bool choose_axes(struct capture *c, uint32_t most)
{
    const struct maq_launch_capture_opts *o = c->opts;
    uint32_t world = c->workspace.world, tp = o->tp ? o->tp : 1, cp = o->cp ? o->cp : 1, ep = o->ep ? o->ep : 1,
             pp = o->pp ? o->pp : 1, dp = world / tp / cp / pp;
    return choose_axis(c, most, "tp", 1, tp) && choose_axis(c, most, "cp", tp, cp) &&
           choose_axis(c, most, "ep", tp * cp, ep) && choose_stages(c, most, world / pp, pp) &&
           (tp * cp * pp == 1 || choose_axis(c, most, "dp", tp * cp, dp > 0 ? dp : 1));
}

/* Every axis at its first or its last. */
static bool choose_corners(struct capture *c, uint32_t most)
{
    const struct maq_launch_capture_opts *o = c->opts;
    uint32_t world = c->workspace.world, n = 0, last[4];
    const uint32_t size[] = {o->tp, o->cp, o->pp};
    const uint64_t stride[] = {1, o->tp ? o->tp : 1, o->pp ? world / o->pp : 0};
    uint64_t inner = (uint64_t)(o->tp ? o->tp : 1) * (o->cp ? o->cp : 1), all = inner * (o->pp ? o->pp : 1);
    bool fine = true;
    if (all == 1 || world % all != 0)
        return true;
    for (int i = 0; i < 3; i++)
        if (size[i] > 1)
            last[n++] = (uint32_t)((size[i] - 1) * stride[i]);
    if (world / all > 1)
        last[n++] = (uint32_t)((world / all - 1) * inner);
    for (uint32_t bits = 0; bits < 1u << n && fine; bits++) {
        uint32_t rank = 0;
        for (uint32_t i = 0; i < n; i++)
            rank += (bits >> i & 1) * last[i];
        fine = choose(c, most, rank, "a corner of the axes");
    }
    return fine;
}

static uint32_t most_probes(const struct capture *c)
{
    return c->opts->slices ? c->opts->slices : SLICES_DEFAULT;
}

static uint32_t most_hinted(const struct capture *c)
{
    return c->opts->slices ? c->opts->slices : HINTED_MAX;
}

static bool has_hints(const struct maq_launch_capture_opts *o)
{
    return o->tp > 1 || o->cp > 1 || o->ep > 1 || o->pp > 1;
}

/* Where groups lie along strides of the world. */
static bool choose_divisors(struct capture *c)
{
    uint32_t world = c->workspace.world;
    bool fine = true;
    for (uint32_t d = 1; d < world && fine; d++)
        if (world % d == 0)
            fine = choose(c, most_probes(c), d, "a divisor of the world");
    for (uint64_t i = 0; i < 2 && fine; i++)
        fine = choose(c, most_hinted(c), (uint32_t)(maq_rec_mix(c->workspace.identity, i) % world), "at random");
    return fine;
}

/* `groups`: there are groups of ranks, or may be. Without, one rank of each place in a node is like another until it is seen not to be. */
static bool choose_probes(struct capture *c, bool groups)
{
    uint32_t world = c->workspace.world, most = most_probes(c);
    bool fine = true;
    if (world <= (c->opts->slices ? most : WHOLE_DEFAULT)) {
        for (uint32_t r = 0; r < world && fine; r++)
            fine = choose(c, world, r, "all of a small world");
        return fine;
    }
    fine = choose(c, most, world - 1, "the last rank") && choose_axes(c, most_hinted(c)) &&
           choose_corners(c, most_hinted(c));
    if (fine && !groups)
        return choose(c, most, 1, "the second rank") &&
               choose(c, most, c->workspace.per_node, "the first of the second node");
    return fine && choose_divisors(c);
}

/*
 * Whether ranks of this job are in groups: in a communicator of some of all ranks. Of a rank that ran alone that is not the last word: it
 * may take a group for as large as it can be.
 */
static bool has_groups(const struct maq_capture *job)
{
    for (uint32_t i = 0; i < job->n_comms; i++)
        if (job->comm[i].size > 1 && job->comm[i].size < job->world)
            return true;
    return job->n_comms == 0;
}

/* ---- passes ---- */

/* The last line of a program's output that says something, of printable characters; in the text itself, which is ended there. */
static const char *last_words(char *text, size_t n)
{
    char *end = text + n, *at;
    while (end > text && (unsigned char)end[-1] <= ' ')
        end--;
    for (at = end; at > text && at[-1] != '\n' && end - at < WORDS_MAX; at--)
        if (at[-1] < ' ' || at[-1] > '~')
            at[-1] = ' ';
    *end = '\0';
    return at + strspn(at, " ");
}

static enum maq_status program_failed(struct capture *c, const struct maq_probe *slice, struct maq_diag *diag)
{
    char *text = NULL, how[32], hint[512];
    size_t n = 0;
    (void)maq_folder_read(&text, &n, slice->log, (size_t)1 << 30, NULL);
    const char *words = text ? last_words(text, n) : "";
    if (slice->status > 128)
        maq__snprintf(how, sizeof how, "was ended by signal %d", slice->status - 128);
    else
        maq__snprintf(how, sizeof how, "has exit status %d", slice->status);
    maq__snprintf(hint, sizeof hint, "its output is in %.300s.slices%s; `maquette run --rank %u` runs it by itself",
                  c->opts->path, strrchr(slice->log, '/'), slice->rank);
    maq_probes_failed(&c->slices);
    enum maq_status status = maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_LAUNCH_FAILED, (struct maq_span){0}, hint,
                                           "the program as rank %u %s%s%s", slice->rank, how,
                                           words[0] != '\0' ? "; the last it said: " : " and said nothing", words);
    free(text);
    return status;
}

/* Patterns of communicators from the traces so far; those of programs that failed are ignored. */
static enum maq_status see_patterns(struct capture *c, struct maq_diag *diag)
{
    const char **paths = MAQ_ARENA_NEW(&c->workspace.arena, const char *, c->slices.n + 1);
    struct maq_capture *job = NULL;
    /* ranks may contradict each other until they have exchanged their contributions */
    struct maq_diag *unsaid = maq_diag_new();
    uint64_t traced = 1;
    uint32_t n = 0;
    if (!paths || !unsaid) {
        maq_diag_free(unsaid);
        return maq_no_memory(diag, "a capture");
    }
    for (uint32_t i = 0; i < c->slices.n; i++) {
        const struct maq_probe *slice = c->slices.at[i];
        if (!slice->ran || slice->status != 0 || access(slice->trace, F_OK) != 0)
            continue;
        paths[n++] = slice->trace;
        traced = maq_rec_mix(maq_rec_mix(traced, slice->rank), slice->hash);
    }
    if (traced != c->traced && n > 1) {
        enum maq_status status = maq_capture_of_ranks(&job, paths, n, unsaid);
        maq_arena_fini(&c->seen);
        maq_arena_init(&c->seen, 0);
        c->n_patterns = 0;
        if (status == MAQ_OK)
            status = maq_infer_patterns(&c->pattern, &c->n_patterns, job, &c->seen);
        c->traced = status == MAQ_NO_MEMORY ? 0 : traced;
    }
    maq_capture_free(job);
    maq_diag_free(unsaid);
    return MAQ_OK;
}

/* Gathers all contributions for the slices that run next. *hash: changes when they do. */
static enum maq_status gather(struct capture *c, uint64_t *hash, struct maq_diag *diag)
{
    struct maq_contributions *said = &c->slices.said;
    MAQ_TRY(see_patterns(c, diag));
    MAQ_TRY(maq_probes_gather(&c->slices, diag));
    for (uint32_t i = 0, number = 0; i < c->n_patterns; i++) {
        const struct maq_seen_pattern *p = &c->pattern[i];
        bool next = i > 0 && p[-1].pattern.size == p->pattern.size && p[-1].nth == p->nth;
        number = next ? number + 1 : 0;
        MAQ_TRY(maq_contributions_add(said,
                                      &(struct maq_contribution){.channel = MAQ_PEERS_PATTERNS,
                                                                 .seq = p->pattern.size,
                                                                 .rank = p->nth << 8 | number,
                                                                 .n = sizeof p->pattern,
                                                                 .bytes = (const char *)&p->pattern},
                                      diag));
    }
    maq_contributions_settle(said);
    *hash = maq_contributions_hash(said, 0);
    return MAQ_OK;
}

static enum maq_status run_all(struct capture *c, struct maq_diag *diag)
{
    char phase[32];
    maq__snprintf(phase, sizeof phase, "pass %u", c->slices.pass);
    MAQ_TRY(gather(c, &c->given, diag));
    return maq_probes_run(&c->slices, c->slices.at, c->n_probes, phase, diag);
}

/* Ranks with new contributions in the last pass: how many, which, and the first of them as text. */
struct news {
    uint32_t n;
    uint64_t who;
    char names[64];
};

static struct news news_of(const struct capture *c)
{
    struct news news = {0};
    size_t len = 0;
    for (uint32_t i = 0; i < c->n_probes; i++) {
        const struct maq_probe *slice = c->slices.at[i];
        if (!slice->news)
            continue;
        if (news.n < NAMED_MAX)
            len += (size_t)maq__snprintf(news.names + len, sizeof news.names - len, "%s%u", news.n > 0 ? ", " : "",
                                         slice->rank);
        news.who = maq_rec_mix(news.who, slice->rank);
        news.n++;
    }
    if (news.n > NAMED_MAX)
        maq__snprintf(news.names + len, sizeof news.names - len, " and %u more", news.n - NAMED_MAX);
    return news;
}

/* A program may have failed for an external reason, so it is run once more before the failure counts. */
static bool failed_once(struct capture *c)
{
    bool once = false;
    for (uint32_t i = 0; i < c->n_probes && !c->slices.failed_again; i++)
        once = once || (c->slices.at[i]->status != 0 && c->slices.at[i]->pass + 1 < c->slices.pass);
    c->slices.failed_again = c->slices.failed_again || once;
    return once;
}

/*
 * Passes until the contributions do not change. Information that travels from rank to rank, as along a pipeline, takes a pass for
 * each hop, and in each pass other ranks have new contributions. If the same ranks have new ones again and again, they will never
 * agree.
 */
static enum maq_status settle_contributions(struct capture *c, struct maq_diag *diag)
{
    uint32_t passes = 0, most = 2 * c->n_probes > PASSES_MAX ? 2 * c->n_probes : PASSES_MAX;
    struct news now = {0}, before = {0};
    c->stable = c->slices.failed_again = false;
    while (!c->stable && (passes < PASSES_MAX || (passes < most && now.who != before.who))) {
        uint64_t said;
        before = now;
        MAQ_TRY(run_all(c, diag));
        MAQ_TRY(gather(c, &said, diag));
        now = news_of(c);
        passes++;
        c->stable = said == c->given && !failed_once(c);
    }
    if (!c->stable)
        maq_diag_add(
            diag, MAQ_WARNING, MAQ_CODE_LAUNCH_UNSTABLE, (struct maq_span){0},
            "contributions that differ from run to run (times, process ids) are no matter; --explain shows who changed",
            "after %u passes ranks still tell each other something new: %s", passes, now.names);
    return MAQ_OK;
}

static const struct maq_probe *failed_probe(const struct capture *c)
{
    for (uint32_t i = 0; i < c->n_probes; i++)
        if (c->slices.at[i]->status != 0)
            return c->slices.at[i];
    return NULL;
}

/* Whether a slice failed that had read what ranks without a slice were taken to say. */
static bool failed_supposing(const struct capture *c)
{
    for (uint32_t i = 0; i < c->n_probes; i++)
        if (c->slices.at[i]->status != 0 && maq_input_record_unsaid(c->slices.at[i]->inputs).supposed)
            return true;
    return false;
}

/* As above, until programs end well; all ranks of a small job run where one may need what each of them says. */
static enum maq_status settle(struct capture *c, struct maq_diag *diag)
{
    MAQ_TRY(settle_contributions(c, diag));
    if (c->slices.n < c->workspace.world && c->workspace.world <= MAQ_LAUNCH_FOR_FAILED_MAX && failed_supposing(c)) {
        for (uint32_t r = 0; r < c->workspace.world; r++)
            if (!maq_probes_choose(&c->slices, r, "may be read by a rank that failed"))
                return maq_no_memory(diag, "a capture");
        c->n_probes = c->slices.n;
        MAQ_TRY(settle_contributions(c, diag));
    }
    const struct maq_probe *failed = failed_probe(c);
    return failed ? program_failed(c, failed, diag) : MAQ_OK;
}

/* ---- the job ---- */

static enum maq_status read_job(struct capture *c, uint32_t n, struct maq_diag *diag)
{
    const char **paths = MAQ_ARENA_NEW(&c->workspace.arena, const char *, n);
    if (!paths)
        return maq_no_memory(diag, "a capture");
    for (uint32_t i = 0; i < n; i++) {
        paths[i] = c->slices.at[i]->trace;
        if (access(paths[i], F_OK) != 0)
            return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_LAUNCH_FAILED, (struct maq_span){0},
                                 "is it built with shared CUDA libraries? nvcc -cudart shared",
                                 "the program as rank %u used no device: there is nothing to capture",
                                 c->slices.at[i]->rank);
    }
    maq_capture_free(c->job);
    c->job = NULL;
    return maq_capture_of_ranks(&c->job, paths, n, diag);
}

/* Whether there are groups, by the probes so far: yes where a program failed or used no device, since that is not known then. */
static enum maq_status look_for_groups(bool *groups, struct capture *c, struct maq_diag *diag)
{
    *groups = true;
    for (uint32_t i = 0; i < c->n_probes; i++)
        if (c->slices.at[i]->status != 0 || access(c->slices.at[i]->trace, F_OK) != 0)
            return MAQ_OK;
    MAQ_TRY(read_job(c, c->n_probes, diag));
    *groups = has_groups(c->job);
    return MAQ_OK;
}

/* Rank 0, then as many as its communicators ask for; more where theirs are others. */
static enum maq_status probe(struct capture *c, struct maq_diag *diag)
{
    bool groups = true, more;
    if (!has_hints(c->opts))
        MAQ_TRY(look_for_groups(&groups, c, diag));
    if (!choose_probes(c, groups))
        return maq_no_memory(diag, "a capture");
    c->n_probes = c->slices.n;
    MAQ_TRY(settle(c, diag));
    if (groups)
        return MAQ_OK;
    MAQ_TRY(look_for_groups(&more, c, diag));
    if (!more)
        return MAQ_OK;
    if (!choose_divisors(c))
        return maq_no_memory(diag, "a capture");
    c->n_probes = c->slices.n;
    return settle(c, diag);
}

/* The probes' job, with all other ranks inferred. What is open is probed, and the passes go on until they settle again. */
static enum maq_status infer(struct capture *c, struct maq_diag *diag)
{
    for (;;) {
        uint32_t open[OPEN_MAX], n = OPEN_MAX, first = c->n_probes;
        MAQ_TRY(read_job(c, c->n_probes, diag));
        enum maq_status status = maq_capture_infer(c->job, open, &n, diag);
        if (status != MAQ_NO)
            return status;
        for (uint32_t i = 0; i < n; i++)
            if (!maq_probes_choose(&c->slices, open[i], "decides what ranks do that did not run"))
                return maq_no_memory(diag, "a capture");
        if (c->slices.n == first)
            return maq_diag_fail(MAQ_NO, diag, MAQ_CODE_LAUNCH_UNSTABLE, (struct maq_span){0}, NULL,
                                 "rank %u ran, and what other ranks do is still open", open[0]);
        c->n_probes = c->slices.n;
        MAQ_TRY(settle(c, diag));
    }
}

/* ---- verification ---- */

/* A rank of the same class that was probed, by the job as it was inferred; UINT32_MAX: none. */
static uint32_t fellow(const struct capture *c, const struct maq_capture *job, uint32_t rank)
{
    for (uint32_t i = 0; i < c->n_probes; i++)
        if (job->class_of[c->slices.at[i]->rank] == job->class_of[rank] && job->class_of[rank] != UINT32_MAX)
            return c->slices.at[i]->rank;
    return UINT32_MAX;
}

/* Runs ranks that have not been run. *wrong: one was not of the inferred class, and all of them are probes now. */
static enum maq_status verify_some(struct capture *c, bool *wrong, struct maq_diag *diag)
{
    uint32_t first = c->slices.n, want = c->opts->verify;
    uint64_t said;
    for (uint64_t i = 0; c->slices.n < first + want && c->slices.n < c->workspace.world && i < 64 + 8 * (uint64_t)want;
         i++)
        if (!maq_probes_choose(&c->slices,
                               (uint32_t)(maq_rec_mix(c->workspace.identity, 1000 + i + first) % c->workspace.world),
                               "verification"))
            return maq_no_memory(diag, "a capture");
    uint32_t n = c->slices.n - first;
    *wrong = false;
    if (n == 0)
        return MAQ_OK;
    uint32_t *fellows = MAQ_ARENA_NEW(&c->workspace.arena, uint32_t, n);
    if (!fellows)
        return maq_no_memory(diag, "a capture");
    for (uint32_t i = 0; i < n; i++)
        fellows[i] = fellow(c, c->job, c->slices.at[first + i]->rank);
    MAQ_TRY(gather(c, &said, diag));
    MAQ_TRY(maq_probes_run(&c->slices, c->slices.at + first, n, "verifying", diag));
    MAQ_TRY(read_job(c, c->slices.n, diag));
    for (uint32_t i = 0; i < n; i++) {
        const struct maq_probe *slice = c->slices.at[first + i];
        if (slice->status != 0)
            return program_failed(c, slice, diag);
        *wrong = *wrong || fellows[i] == UINT32_MAX || c->job->class_of[slice->rank] != c->job->class_of[fellows[i]];
    }
    c->verified += n;
    c->n_probes = c->slices.n;
    return MAQ_OK;
}

static enum maq_status verify(struct capture *c, struct maq_diag *diag)
{
    bool wrong = true;
    for (int i = 0; i < 3 && wrong; i++) {
        MAQ_TRY(verify_some(c, &wrong, diag));
        MAQ_TRY(settle(c, diag)); /* the other probes get the contributions of these ranks */
        MAQ_TRY(infer(c, diag));
    }
    return wrong
               ? maq_diag_fail(MAQ_NO, diag, MAQ_CODE_LAUNCH_UNSTABLE, (struct maq_span){0},
                               "probe more ranks: --slices", "ranks at random still do something else than their class")
               : MAQ_OK;
}

/* ---- the whole ---- */

static enum maq_status write_job(struct capture *c, struct maq_diag *diag)
{
    const char *peers = maq_arena_printf(&c->workspace.arena, "%s.peers", c->opts->path);
    uint64_t said;
    if (!peers)
        return maq_no_memory(diag, "a capture");
    MAQ_TRY(gather(c, &said, diag));
    for (uint32_t i = 0; i < c->slices.n; i++) {
        uint32_t rank = c->slices.at[i]->rank;
        struct maq_contribution ran = {.channel = MAQ_PEERS_RAN, .rank = rank, .by = rank, .bytes = ""};
        MAQ_TRY(maq_contributions_add(&c->slices.said, &ran, diag));
    }
    maq_contributions_settle(&c->slices.said);
    MAQ_TRY(maq_contributions_write(&c->slices.said, peers, diag));
    return maq_capture_write(c->job, c->opts->path, diag);
}

static enum maq_status report(struct capture *c, struct maq_diag *diag)
{
    struct maq_probes *s = &c->slices;
    MAQ_TRY(maq_launch_begin(&c->owner, &c->workspace, s->n, diag));
    struct maq_arena *a = &c->owner->arena;
    struct maq_launch_slice *log = MAQ_ARENA_NEW(a, struct maq_launch_slice, s->n_log);
    if (!log)
        return maq_no_memory(diag, "a capture");
    for (uint32_t i = 0; i < s->n_log; i++) {
        log[i] = s->log[i];
        log[i].why = maq_arena_strdup(a, maq_str_of(log[i].why));
    }
    for (uint32_t i = 0; i < s->n; i++) {
        c->owner->rank[i] = (struct maq_launch_rank){.rank = s->at[i]->rank, .status = s->at[i]->status};
        MAQ_TRY(maq_rank_trace_sum(&c->owner->rank[i], s->at[i]->trace, &c->workspace.asks, diag));
        c->owner->rank[i].wall_s = s->at[i]->wall_s;
    }
    c->owner->launch.capture = (struct maq_launch_capture){.path = maq_arena_strdup(a, maq_str_of(c->opts->path)),
                                                           .passes = s->pass,
                                                           .n_slices = s->n_log,
                                                           .slice = log,
                                                           .n_probed = s->n,
                                                           .n_verified = c->verified,
                                                           .n_classes = c->job->n_classes,
                                                           .n_comms = c->job->n_comms,
                                                           .n_operators = c->job->n_ops,
                                                           .contributions = s->said.n,
                                                           .stable = c->stable};
    for (uint32_t r = 0; r < c->job->world; r++)
        c->owner->launch.capture.n_unknown += c->job->class_of[r] == UINT32_MAX;
    return maq_launch_end(c->owner, &c->workspace);
}

static enum maq_status capture(struct capture *c, struct maq_diag *diag)
{
    const char *part = maq_arena_printf(&c->workspace.arena, "%s.slices", c->opts->path);
    if (!part)
        return maq_no_memory(diag, "a capture");
    MAQ_TRY(maq_probes_open(&c->slices, &c->workspace, part, diag));
    c->slices.every_pass = c->opts->every_pass;
    if (!maq_probes_choose(&c->slices, 0, "rank 0, always"))
        return maq_no_memory(diag, "a capture");
    c->n_probes = 1;
    MAQ_TRY(run_all(c, diag));
    MAQ_TRY(probe(c, diag));
    MAQ_TRY(infer(c, diag));
    if (c->opts->verify > 0 && c->n_probes < c->workspace.world)
        MAQ_TRY(verify(c, diag));
    MAQ_TRY(write_job(c, diag));
    MAQ_TRY(report(c, diag));
    if (!c->opts->keep)
        (void)maq_folder_remove(part);
    return MAQ_OK;
}

enum maq_status maq_launch_capture(struct maq_launch **out, const struct maq_launch_capture_opts *opts,
                                   struct maq_diag *diag)
{
    struct capture c = {.opts = opts, .run = opts->run};
    struct maq_fork_server forks = MAQ_FORK_SERVER_NONE;
    *out = NULL;
    c.run.rank = 0;
    c.run.all = false;
    c.run.trace = NULL;
    c.run.timeout_s = opts->run.timeout_s > 0 ? opts->run.timeout_s : TIMEOUT_DEFAULT_S;
    maq_contributions_init(&c.slices.said);
    maq_arena_init(&c.seen, 0);
    enum maq_status status = maq_workspace_open(&c.workspace, &c.run, diag);
    if (!opts->no_fork_server)
        c.workspace.forks = &forks;
    if (status == MAQ_OK)
        status = capture(&c, diag);
    maq_fork_server_close(&forks);
    maq_probes_close(&c.slices);
    maq_capture_free(c.job);
    maq_arena_fini(&c.seen);
    maq_workspace_close(&c.workspace);
    if (c.owner && status == MAQ_OK)
        *out = &c.owner->launch;
    else if (c.owner)
        maq_launch_free(&c.owner->launch);
    return status;
}
