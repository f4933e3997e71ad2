/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes.c - the work folder of a capture and the passes over its slices: which slices need another run, several
 * programs at a time, and the files that let a killed capture continue. See probes.h.
 */
#include "launch/probes.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/text.h"
#include "launch/codes.h"
#include "launch/fork_server/fork_server.h"
#include "launch/input_record.h"
#include "launch/private_folder.h"
#include "maquette/path_hint.h"

#define JOBS_MAX 64u
#define JOBS_DEFAULT 2u
#define FAILED "failed" /* in the work folder: its capture ended because a program failed */

/* ---- the work folder ---- */

/* Files that a capture makes there: p1-r0.trace and its siblings, p1.peers, and those of the whole. */
static bool is_ours(const char *name)
{
    static const char *const ends[] = {".trace", ".log", ".inputs", ".keys", ".done", ".peers"};
    const char *dot = strrchr(name, '.');
    if (strcmp(name, "job") == 0 || strcmp(name, FAILED) == 0)
        return true;
    for (size_t i = 0; i < MAQ_COUNT(ends) && dot; i++)
        if (name[0] == 'p' && name[1] >= '0' && name[1] <= '9' && strcmp(dot, ends[i]) == 0)
            return true;
    return false;
}

/*
 * What a capture left that ended because its program failed is of no use to the next one, be it the same command, whose program
 * may have been mended, or another. Its outputs were there to be read until now.
 */
static enum maq_status clear_failed(struct maq_probes *s, struct maq_diag *diag)
{
    const char *mark = maq_arena_printf(&s->workspace->arena, "%s/" FAILED, s->folder);
    DIR *dir = mark && access(mark, F_OK) == 0 ? opendir(s->folder) : NULL;
    enum maq_status status = mark ? MAQ_OK : maq_no_memory(diag, "a capture");
    for (const struct dirent *e; dir && (e = readdir(dir)) != NULL;)
        if (is_ours(e->d_name) && unlinkat(dirfd(dir), e->d_name, 0) != 0 && errno != ENOENT)
            status = maq_diag_fail(MAQ_IO, diag, MAQ_CODE_LAUNCH_FOLDER, (struct maq_span){0}, "remove it",
                                   "cannot empty the work folder '%.200s': %s", s->folder, strerror(errno));
    if (dir)
        closedir(dir);
    return status;
}

void maq_probes_failed(struct maq_probes *s)
{
    const char *mark = maq_arena_printf(&s->workspace->arena, "%s/" FAILED, s->folder);
    if (mark)
        (void)maq_folder_write(mark, "", 0, NULL);
}

enum maq_status maq_probes_open(struct maq_probes *s, struct maq_workspace *workspace, const char *folder,
                                struct maq_diag *diag)
{
    char want[64], *has;
    size_t n;
    *s = (struct maq_probes){.workspace = workspace, .folder = folder};
    maq_contributions_init(&s->said);
    maq__snprintf(want, sizeof want, "maquette.capture/1 %016llx\n", (unsigned long long)workspace->identity);
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return maq_diag_fail(MAQ_IO, diag, MAQ_CODE_LAUNCH_FOLDER, (struct maq_span){0}, maq_create_hint(errno),
                             "cannot make the work folder '%.200s': %s", folder, strerror(errno));
    MAQ_TRY(maq_workspace_absolute(&s->folder, folder,
                                   &workspace->arena)); /* programs may change their working directory */
    const char *path = maq_arena_printf(&workspace->arena, "%s/job", s->folder);
    if (!path)
        return MAQ_NO_MEMORY;
    MAQ_TRY(clear_failed(s, diag));
    MAQ_TRY(maq_folder_read(&has, &n, path, 4096, diag));
    bool other = has && strcmp(has, want) != 0;
    free(has);
    if (other)
        return maq_diag_fail(
            MAQ_USAGE, diag, MAQ_CODE_LAUNCH_RESUME, (struct maq_span){0}, "remove it, or give another file with -o",
            "'%.200s' holds slices of another program, another device or another number of ranks", folder);
    return maq_folder_write(path, want, strlen(want), diag);
}

void maq_probes_close(struct maq_probes *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        maq_contributions_fini(&s->at[i]->keys);
    maq_contributions_fini(&s->said);
    free(s->at);
    free(s->log);
}

struct maq_probe *maq_probes_choose(struct maq_probes *s, uint32_t rank, const char *why)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->at[i]->rank == rank)
            return s->at[i];
    if (s->n == s->size) {
        uint32_t size = s->size ? s->size * 2 : 32;
        struct maq_probe **grown = maq__realloc(s->at, size * sizeof *grown);
        if (!grown)
            return NULL;
        s->at = grown;
        s->size = size;
    }
    struct maq_probe *slice = MAQ_ARENA_NEW(&s->workspace->arena, struct maq_probe, 1);
    if (!slice)
        return NULL;
    *slice = (struct maq_probe){.rank = rank, .why = why};
    maq_contributions_init(&slice->keys);
    s->at[s->n++] = slice;
    return slice;
}

/* ---- what is known before a pass ---- */

enum maq_status maq_probes_gather(struct maq_probes *s, struct maq_diag *diag)
{
    maq_contributions_fini(&s->said);
    maq_contributions_init(&s->said);
    for (uint32_t i = 0; i < s->n; i++) {
        struct maq_probe *slice = s->at[i];
        uint32_t first = s->said.n;
        if (!slice->ran)
            continue;
        MAQ_TRY(maq_contributions_add_trace(&s->said, slice->rank, slice->trace, diag));
        for (uint32_t k = 0; k < slice->keys.n; k++) {
            struct maq_contribution key = slice->keys.at[k];
            key.by = key.rank;
            MAQ_TRY(maq_contributions_add(&s->said, &key, diag));
        }
        uint64_t hash = maq_contributions_hash(&s->said, first);
        slice->news = hash != slice->said;
        slice->said = hash;
    }
    return MAQ_OK;
}

/* ---- one slice ---- */

/* What is written when a slice is done, before its keys. */
struct done {
    char magic[8];
    int32_t status;
    uint32_t rank;
    uint64_t invented; /* keys of the store that were made up for it */
    double wall_s;
};
static const char done_magic[8] = "maqslic2";

struct running {
    struct maq_probe *slice;
    struct maq_store store;
    struct maq_live live;
    const char *done, *keys;
};

static uint64_t hash_of(const char *path)
{
    char *bytes;
    size_t n;
    (void)maq_folder_read(&bytes, &n, path, SIZE_MAX, NULL);
    uint64_t h = bytes ? maq_rec_hash(bytes, n, 1) : 0;
    free(bytes);
    return h;
}

static enum maq_status list(struct maq_probes *s, const struct maq_launch_slice *slice, struct maq_diag *diag)
{
    if (!maq__grow((void **)&s->log, &s->log_size, s->n_log, sizeof *s->log))
        return maq_no_memory(diag, "a list of slices");
    s->log[s->n_log++] = *slice;
    return MAQ_OK;
}

/* The slice's last run is this one. */
static enum maq_status note(struct maq_probes *s, struct maq_probe *slice, const struct done *done, bool resumed,
                            struct maq_diag *diag)
{
    uint64_t hash = hash_of(slice->trace);
    slice->changed = !slice->ran || hash != slice->hash;
    slice->hash = hash;
    slice->ran = true;
    slice->invented_at_once = s->pass == 0 && done->invented > 0;
    slice->resumed = resumed;
    slice->pass = s->pass;
    slice->status = done->status;
    slice->wall_s = done->wall_s;
    s->done++;
    return list(s,
                &(struct maq_launch_slice){.rank = slice->rank,
                                           .pass = s->pass,
                                           .why = slice->why,
                                           .status = slice->status,
                                           .changed = slice->changed,
                                           .resumed = resumed,
                                           .wall_s = slice->wall_s},
                diag);
}

/* Whether another run would repeat the last one exactly: it ended by itself, and its inputs are the same. */
static bool would_repeat(const struct maq_probes *s, const struct maq_probe *slice)
{
    bool ended = slice->status == 0 || (slice->status > 0 && slice->status < 128 && !s->failed_again);
    return !s->every_pass && slice->ran && ended && !slice->invented_at_once && s->pass > 0 &&
           maq_input_record_same(slice->inputs, &s->said, slice->rank);
}

static enum maq_status name_files(struct maq_probes *s, struct running *r)
{
    struct maq_arena *a = &s->workspace->arena;
    struct maq_probe *slice = r->slice;
    slice->trace = maq_arena_printf(a, "%s/p%u-r%u.trace", s->folder, s->pass, slice->rank);
    slice->log = maq_arena_printf(a, "%s/p%u-r%u.log", s->folder, s->pass, slice->rank);
    slice->inputs = maq_arena_printf(a, "%s/p%u-r%u.inputs", s->folder, s->pass, slice->rank);
    r->keys = maq_arena_printf(a, "%s/p%u-r%u.keys", s->folder, s->pass, slice->rank);
    r->done = maq_arena_printf(a, "%s/p%u-r%u.done", s->folder, s->pass, slice->rank);
    return slice->trace && slice->log && slice->inputs && r->keys && r->done ? MAQ_OK : MAQ_NO_MEMORY;
}

/* A slice that was run before this capture was killed; *found says whether. */
static enum maq_status resume(struct maq_probes *s, struct running *r, bool *found, struct maq_diag *diag)
{
    struct done done;
    char *bytes;
    size_t n;
    MAQ_TRY(maq_folder_read(&bytes, &n, r->done, sizeof done, diag));
    *found = bytes && n == sizeof done && memcmp(bytes, done_magic, sizeof done_magic) == 0;
    if (*found)
        memcpy(&done, bytes, sizeof done);
    free(bytes);
    if (!*found)
        return MAQ_OK;
    maq_contributions_fini(&r->slice->keys);
    maq_contributions_init(&r->slice->keys);
    MAQ_TRY(maq_contributions_add_file(&r->slice->keys, r->keys, diag));
    return note(s, r->slice, &done, true, diag);
}

static enum maq_status start(struct maq_probes *s, struct running *r, const char *peers, struct maq_diag *diag)
{
    struct maq_live_opts opts = {.rank = r->slice->rank,
                                 .store = &r->store,
                                 .trace = r->slice->trace,
                                 .output = r->slice->log,
                                 .peers = peers,
                                 .inputs = r->slice->inputs};
    unlink(r->slice->trace);
    unlink(r->slice->inputs);
    unlink(r->slice->log);
    MAQ_TRY(maq_store_open(&r->store, &s->workspace->loop, s->workspace->world, 1, s->pass == 0, diag));
    maq_contributions_give(&s->said, &r->store, r->slice->rank);
    return maq_live_start(&r->live, s->workspace, &opts, diag);
}

/* The fork server ended, or its process of a rank failed: it may be that the program is none that can be forked. */
static bool is_to_start_alone(const struct maq_live *live)
{
    bool failed = live->lost || (live->end.status != 0 && !live->late);
    return live->forked && failed && !(live->workspace->opts->stop && *live->workspace->opts->stop);
}

static enum maq_status start_alone(struct maq_probes *s, struct running *r, const char *peers, struct maq_diag *diag)
{
    maq_fork_server_close(s->workspace->forks);
    maq_live_end(&r->live);
    maq_store_close(&r->store);
    return start(s, r, peers, diag);
}

static enum maq_status finish(struct maq_probes *s, struct running *r, struct maq_diag *diag)
{
    struct maq_launch_rank rank;
    struct done done = {.rank = r->slice->rank, .invented = r->store.invented};
    MAQ_TRY(maq_live_result(&rank, &r->live, diag));
    maq_contributions_fini(&r->slice->keys);
    maq_contributions_init(&r->slice->keys);
    MAQ_TRY(maq_contributions_add_store(&r->slice->keys, r->slice->rank, &r->store, diag));
    maq_contributions_settle(&r->slice->keys);
    MAQ_TRY(maq_contributions_write(&r->slice->keys, r->keys, diag));
    MAQ_TRY(maq_input_record_add_store(r->slice->inputs, &r->store, diag));
    memcpy(done.magic, done_magic, sizeof done.magic);
    done.status = rank.status;
    done.wall_s = rank.wall_s;
    MAQ_TRY(maq_folder_write(r->done, &done, sizeof done, diag));
    return note(s, r->slice, &done, false, diag);
}

/* ---- a pass ---- */

struct pass {
    struct maq_probes *slices;
    const char *peers, *phase;
    struct running *slot[JOBS_MAX]; /* NULL: free */
    struct running run[JOBS_MAX];   /* stays where it is while it runs: the loop points at it */
    uint32_t jobs, done, of;
};

static void end(struct running **slot)
{
    if (!*slot)
        return;
    if ((*slot)->live.workspace)
        maq_live_end(&(*slot)->live);
    maq_store_close(&(*slot)->store);
    *slot = NULL;
}

/* Begins a slice in a free slot; what had been run before takes none. */
static enum maq_status begin(struct pass *p, uint32_t i, struct maq_probe *slice, struct maq_diag *diag)
{
    struct running *r = &p->run[i];
    struct maq_probes *s = p->slices;
    bool found;
    if (would_repeat(s, slice)) {
        p->done++;
        return list(
            s, &(struct maq_launch_slice){.rank = slice->rank, .pass = s->pass, .why = slice->why, .repeats = true},
            diag);
    }
    *r = (struct running){.slice = slice, .store.server.fd = -1};
    MAQ_TRY(name_files(s, r));
    MAQ_TRY(resume(s, r, &found, diag));
    if (found) {
        p->done++;
        return MAQ_OK;
    }
    p->slot[i] = r; /* to be ended, whatever comes */
    return start(s, r, p->peers, diag);
}

/* Serves until a slice has ended, and takes in all that have. */
static enum maq_status advance(struct pass *p, struct maq_diag *diag)
{
    struct maq_launch_progress at = {.phase = p->phase, .done = p->done, .of = p->of};
    struct maq_live *list[JOBS_MAX];
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->jobs; i++)
        if (p->slot[i])
            list[n++] = &p->slot[i]->live;
    MAQ_TRY(maq_workspace_serve(p->slices->workspace, list, n, false, &at, diag));
    for (uint32_t i = 0; i < p->jobs; i++) {
        if (!p->slot[i] || p->slot[i]->live.runs)
            continue;
        if (is_to_start_alone(&p->slot[i]->live)) {
            MAQ_TRY(start_alone(p->slices, p->slot[i], p->peers, diag));
            continue;
        }
        MAQ_TRY(finish(p->slices, p->slot[i], diag));
        end(&p->slot[i]);
        p->done++;
    }
    return MAQ_OK;
}

static enum maq_status run_pass(struct pass *p, struct maq_probe *const *which, uint32_t n, struct maq_diag *diag)
{
    uint32_t next = 0;
    while (p->done < n) {
        for (uint32_t i = 0; i < p->jobs; i++)
            while (!p->slot[i] && next < n)
                MAQ_TRY(begin(p, i, which[next++], diag));
        if (p->done < n)
            MAQ_TRY(advance(p, diag));
    }
    return MAQ_OK;
}

enum maq_status maq_probes_run(struct maq_probes *s, struct maq_probe *const *which, uint32_t n, const char *phase,
                               struct maq_diag *diag)
{
    uint32_t jobs = s->workspace->opts->jobs;
    struct pass *p = maq__calloc(sizeof *p);
    if (!p)
        return MAQ_NO_MEMORY;
    p->slices = s;
    p->phase = phase;
    p->jobs = jobs == 0 ? JOBS_DEFAULT : jobs < JOBS_MAX ? jobs : JOBS_MAX;
    p->of = n;
    p->peers = maq_arena_printf(&s->workspace->arena, "%s/p%u.peers", s->folder, s->pass);
    enum maq_status status = p->peers ? maq_contributions_write(&s->said, p->peers, diag) : MAQ_NO_MEMORY;
    if (status == MAQ_OK)
        status = run_pass(p, which, n, diag);
    for (uint32_t i = 0; i < p->jobs; i++)
        end(&p->slot[i]);
    free(p);
    s->pass++;
    return status;
}
