/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_classes.c - maq_import_finish(): makes a capture of a traced job. Every traced rank is a class, ranks that
 * were not traced join the class of the nearest similar one, and communicators are carried over by their stride. See
 * traced_job.h.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/codes.h"
#include "base/str.h"
#include "capture/import/codes.h"
#include "capture/import/traced_job.h"

#define NONE UINT32_MAX

static const struct maq_span nowhere;

/* A communicator of a traced rank, and how it carries over to other ranks. */
struct pattern {
    uint32_t id;                 /* of the job */
    uint32_t nth;                /* of those of this rank with the same members */
    uint32_t base, stride, size; /* stride 0: it does not tile the world */
};

struct finish {
    struct maq_import_job *job;
    struct maq_arena *arena;
    struct maq_intern comms;     /* {nth, members...} -> id of the job */
    struct maq_intern_map moved; /* {rank's index, ordinal, base} -> id + 1 */
    const char **comm_name;      /* [comms.n] */
    uint32_t comm_name_size;
    struct pattern **pattern; /* [traced rank][ordinal] */
    uint32_t *order;          /* traced ranks by number */
    uint32_t *class_of;       /* [world] index of the traced rank whose class it is in; NONE */
    bool failed;
};

/* --- communicators --------------------------------------------------------------------------------------------------- */

/* Number of a communicator in the job. member NULL: the members are unknown; its name and `tile` identify it. */
static uint32_t comm_id(struct finish *f, uint32_t nth, const uint32_t *member, uint32_t size, const char *name,
                        uint32_t tile)
{
    struct maq_buf b;
    maq_buf_init(&b, (size_t)MAQ_IMPORT_WORLD * 4 + 4096);
    maq_buf_add(&b, &nth, sizeof nth);
    if (member)
        maq_buf_add(&b, member, size * sizeof *member);
    else {
        uint32_t nobody[3] = {NONE, size, tile};
        maq_buf_add(&b, nobody, sizeof nobody);
        maq_buf_adds(&b, name ? name : "");
        while (b.len % 4 != 0 && !b.failed)
            maq_buf_addc(&b, ' ');
    }
    bool added = false;
    uint32_t id = b.failed ? NONE : maq_intern_put(&f->comms, b.ptr, b.len, &added);
    maq_buf_fini(&b);
    if (added && id == f->comm_name_size) {
        uint32_t size_now = id ? id * 2 : 64;
        const char **names = size_now <= UINT32_MAX / 2 ? maq__realloc(f->comm_name, size_now * sizeof *names) : NULL;
        f->failed |= !names;
        f->comm_name = names ? names : f->comm_name;
        f->comm_name_size = names ? size_now : f->comm_name_size;
    }
    f->failed |= id == NONE;
    if (f->failed)
        return 0;
    if (added)
        f->comm_name[id] = name;
    return id;
}

/* Whether the members are a tile of the world: a, a + t, ..., and a mod (t n) < t. */
static void find_tile(struct pattern *p, const struct maq_import_comm *c, uint32_t world)
{
    p->size = c->size;
    if (!c->member || c->position == NONE || c->size == 0)
        return;
    uint32_t stride = c->size > 1 ? c->member[1] - c->member[0] : 1;
    if (stride == 0 || stride > world || (uint64_t)stride * c->size > world || world % (stride * c->size) != 0)
        return;
    for (uint32_t i = 1; i < c->size; i++)
        if (c->member[i] - c->member[i - 1] != stride || c->member[i] < c->member[i - 1])
            return;
    if (c->member[0] % (stride * c->size) >= stride)
        return;
    p->base = c->member[0];
    p->stride = stride;
}

static bool find_patterns(struct finish *f)
{
    struct maq_import_job *job = f->job;
    f->pattern = MAQ_ARENA_NEW(f->arena, struct pattern *, job->n_ranks);
    if (!f->pattern)
        return false;
    for (uint32_t i = 0; i < job->n_ranks; i++) {
        const struct maq_import_rank *r = &job->rank[i];
        f->pattern[i] = MAQ_ARENA_NEW(f->arena, struct pattern, r->n_comms);
        if (!f->pattern[i])
            return false;
        for (uint32_t k = 0; k < r->n_comms; k++) {
            struct pattern *p = &f->pattern[i][k];
            const struct maq_import_comm *c = &r->comm[k];
            MAQ_ASSERT(c->size > 0); /* readers look */
            for (uint32_t j = 0; j < k; j++)
                p->nth += c->member && r->comm[j].member && r->comm[j].size == c->size &&
                          memcmp(r->comm[j].member, c->member, c->size * sizeof *c->member) == 0;
            find_tile(p, c, job->world);
            p->id = comm_id(f, p->nth, c->member, c->size, c->name, r->rank / c->size);
        }
    }
    return !f->failed;
}

/* Position that rank q has in the communicator k of traced rank i, moved to where q is; NONE when it cannot be. */
static uint32_t moved_position(const struct finish *f, uint32_t i, uint32_t k, uint32_t q, uint32_t *base)
{
    const struct pattern *p = &f->pattern[i][k];
    const struct maq_import_comm *c = &f->job->rank[i].comm[k];
    *base = p->base;
    if (!c->member) {
        *base = q / c->size;
        return f->job->world % c->size == 0 || f->job->rank[i].rank == q ? q % c->size : NONE;
    }
    if (p->stride == 0) {
        for (uint32_t m = 0; m < c->size; m++)
            if (c->member[m] == q)
                return m;
        return NONE;
    }
    uint32_t block = p->stride * p->size;
    *base = q / block * block + q % p->stride;
    return (q - *base) / p->stride;
}

static uint32_t moved_comm(struct finish *f, uint32_t i, uint32_t k, uint32_t base)
{
    const struct pattern *p = &f->pattern[i][k];
    const struct maq_import_comm *c = &f->job->rank[i].comm[k];
    if (!c->member)
        return comm_id(f, p->nth, NULL, c->size, c->name, base);
    if (base == p->base || p->stride == 0)
        return p->id;
    uint32_t key[3] = {i, k, base};
    uint64_t *known = maq_intern_map_at(&f->moved, f->arena, key, sizeof key);
    if (known && *known > 0)
        return (uint32_t)(*known - 1);
    uint32_t *member = maq__malloc(p->size * sizeof *member), id = 0;
    for (uint32_t m = 0; member && m < p->size; m++)
        member[m] = base + m * p->stride;
    if (known && member)
        *known = (id = comm_id(f, p->nth, member, p->size, f->job->rank[i].comm[k].name, 0)) + UINT64_C(1);
    f->failed |= !known || !member;
    free(member);
    return id;
}

/* --- classes --------------------------------------------------------------------------------------------------------- */

/* Whether rank q may be taken to do what traced rank i does. */
static bool alike(const struct finish *f, uint32_t i, uint32_t q)
{
    const struct maq_import_rank *r = &f->job->rank[i];
    for (uint32_t k = 0; k < r->n_comms; k++) {
        uint32_t base, position = moved_position(f, i, k, q, &base);
        if (position == NONE)
            return false;
        if (r->comm[k].messages && position != r->comm[k].position)
            return false;
    }
    return true;
}

static int by_rank(const void *a, const void *b, void *job)
{
    const struct maq_import_rank *r = ((struct maq_import_job *)job)->rank;
    uint32_t x = r[*(const uint32_t *)a].rank, y = r[*(const uint32_t *)b].rank;
    return (x > y) - (x < y);
}

/* The nearest traced rank that rank q is like; the lower one of two. */
static uint32_t nearest(const struct finish *f, uint32_t q)
{
    const struct maq_import_job *job = f->job;
    uint32_t right = 0;
    while (right < job->n_ranks && job->rank[f->order[right]].rank < q)
        right++;
    for (uint32_t left = right; left > 0 || right < job->n_ranks;) {
        bool down = right == job->n_ranks ||
                    (left > 0 && q - job->rank[f->order[left - 1]].rank <= job->rank[f->order[right]].rank - q);
        uint32_t i = down ? f->order[--left] : f->order[right++];
        if (job->rank[i].rank == q || alike(f, i, q))
            return i;
    }
    return NONE;
}

static enum maq_status find_classes(struct finish *f)
{
    struct maq_import_job *job = f->job;
    f->order = MAQ_ARENA_NEW(f->arena, uint32_t, job->n_ranks);
    f->class_of = MAQ_ARENA_NEW(f->arena, uint32_t, job->world);
    if (!f->order || !f->class_of)
        return MAQ_NO_MEMORY;
    for (uint32_t i = 0; i < job->n_ranks; i++)
        f->order[i] = i;
    qsort_r(f->order, job->n_ranks, sizeof *f->order, by_rank, job);
    for (uint32_t i = 1; i < job->n_ranks; i++) {
        const struct maq_import_rank *a = &job->rank[f->order[i - 1]], *b = &job->rank[f->order[i]];
        if (a->rank == b->rank)
            return maq_diag_fail(MAQ_BAD_INPUT, job->diag, MAQ_CODE_IMPORT_RANK, nowhere, "give each rank's trace once",
                                 "%s and %s are both of rank %u", a->path, b->path, a->rank);
    }
    for (uint32_t q = 0; q < job->world; q++)
        f->class_of[q] = nearest(f, q);
    return MAQ_OK;
}

/* --- the capture ----------------------------------------------------------------------------------------------------- */

/* Peers relative to the rank itself: the same number on every rank that does the same. */
static void relate(struct maq_rec *r, const struct maq_import_rank *rank)
{
    const struct maq_import_comm *c = &rank->comm[MAQ_REC_COLL_COMM(r->id)];
    if (r->kind == MAQ_REC_COLL) /* a root is the same on all members */
        r->arg = r->arg < c->size ? r->arg : MAQ_REC_NONE;
    else
        r->arg = c->position == NONE || r->arg >= c->size ? 0 : (r->arg + c->size - c->position) % c->size;
}

/* Of everything but times. */
static uint64_t signature_of(const struct maq_rec *record, uint32_t n)
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct maq_rec r = record[i];
        r.ns = r.host_ns = 0;
        hash = maq_rec_hash(&r, sizeof r, hash);
    }
    return hash;
}

static bool bind_ranks(struct finish *f, struct maq_rank_class *c, uint32_t i, uint32_t *class_of, uint32_t class_id)
{
    const struct maq_import_job *job = f->job;
    const struct maq_import_rank *r = &job->rank[i];
    for (uint32_t q = 0; q < job->world; q++)
        c->n_ranks += f->class_of[q] == i;
    uint32_t *rank = MAQ_ARENA_NEW(f->arena, uint32_t, c->n_ranks), n = 0;
    uint32_t *comm = MAQ_ARENA_NEW(f->arena, uint32_t, (size_t)c->n_ranks * r->n_comms);
    uint32_t *position = MAQ_ARENA_NEW(f->arena, uint32_t, (size_t)c->n_ranks * r->n_comms);
    if (!rank || !comm || !position)
        return false;
    for (uint32_t q = 0; q < job->world; q++) {
        if (f->class_of[q] != i)
            continue;
        class_of[q] = class_id;
        rank[n] = q;
        for (uint32_t k = 0; k < r->n_comms; k++) {
            uint32_t base = 0, at = n * r->n_comms + k;
            position[at] = moved_position(f, i, k, q, &base);
            comm[at] = moved_comm(f, i, k, base);
        }
        n++;
    }
    c->rank = rank;
    c->comm = comm;
    c->position = position;
    return !f->failed;
}

/* Streams in order of first use by a record; how many are used. */
static uint32_t number_streams(struct maq_rec *record, uint32_t n, uint32_t n_streams, uint32_t *number)
{
    uint32_t used = 0;
    memset(number, 0xff, n_streams * sizeof *number);
    for (uint32_t i = 0; i < n; i++) {
        if (record[i].stream >= n_streams)
            continue;
        uint32_t *at = &number[record[i].stream];
        *at = *at == NONE ? used++ : *at;
        record[i].stream = (uint16_t)*at;
    }
    return used;
}

static bool put_class(struct finish *f, struct maq_rank_class *c, uint32_t i, uint32_t *class_of, uint32_t class_id)
{
    const struct maq_import_rank *r = &f->job->rank[i];
    struct maq_rec *record = MAQ_ARENA_NEW(f->arena, struct maq_rec, r->n_records);
    *c = (struct maq_rank_class){.n_records = r->n_records,
                                 .record = record,
                                 .n_streams = r->n_streams,
                                 .n_events = r->n_events,
                                 .n_comms = r->n_comms,
                                 .probed = true,
                                 .name = maq_arena_printf(f->arena, "rank %u", r->rank)};
    if (!record || !c->name || !bind_ranks(f, c, i, class_of, class_id))
        return false;
    if (r->n_records > 0)
        memcpy(record, r->record, r->n_records * sizeof *record);
    for (uint32_t k = 0; k < r->n_records; k++)
        if (record[k].kind == MAQ_REC_COLL || record[k].kind == MAQ_REC_SEND || record[k].kind == MAQ_REC_RECV)
            relate(&record[k], r);
    uint32_t *number = maq__malloc((r->n_streams + (size_t)1) * sizeof *number);
    if (number)
        c->n_streams = number_streams(record, r->n_records, r->n_streams, number);
    free(number);
    c->signature = signature_of(record, r->n_records);
    return number != NULL;
}

/* Operators with how long their launches took. */
static bool put_ops(struct finish *f, struct maq_capture *out)
{
    const struct maq_import_job *job = f->job;
    struct maq_captured_op *op = MAQ_ARENA_NEW(f->arena, struct maq_captured_op, job->op.n);
    const char **text = MAQ_ARENA_NEW(f->arena, const char *, job->text.n);
    if (!op || !text)
        return false;
    for (uint32_t i = 0; i < job->op.n; i++) /* values are zero-terminated and aligned */
        op[i] = (struct maq_captured_op){.what = job->op.key[i].bytes,
                                         .name = (const char *)job->op.key[i].bytes + sizeof(struct maq_rec_op)};
    for (uint32_t i = 0; i < job->text.n; i++)
        text[i] = job->text.key[i].bytes;
    for (uint32_t i = 0; i < job->n_ranks; i++)
        for (uint32_t k = 0; k < job->rank[i].n_records; k++)
            if (job->rank[i].record[k].kind == MAQ_REC_LAUNCH) {
                op[job->rank[i].record[k].id].recorded_ns += (double)job->rank[i].record[k].ns;
                op[job->rank[i].record[k].id].launches++;
            }
    for (uint32_t i = 0; i < job->op.n; i++)
        op[i].recorded_ns = op[i].launches > 0 ? op[i].recorded_ns / (double)op[i].launches : 0;
    out->n_ops = job->op.n;
    out->op = op;
    out->n_texts = job->text.n;
    out->text = text;
    return true;
}

static bool put_comms(struct finish *f, struct maq_capture *out)
{
    struct maq_captured_comm *comm = MAQ_ARENA_NEW(f->arena, struct maq_captured_comm, f->comms.n);
    for (uint32_t i = 0; comm && i < f->comms.n; i++) {
        const struct maq_intern_key *v = &f->comms.key[i];
        const uint32_t *words = v->bytes;
        comm[i] = (struct maq_captured_comm){.lineage = v->hash, .name = f->comm_name[i]};
        comm[i].member = words + 1;
        comm[i].size = (uint32_t)(v->len / sizeof *words - 1);
        if (words[1] != NONE)
            continue;
        comm[i].size = words[2];
        uint32_t *nobody = MAQ_ARENA_NEW(f->arena, uint32_t, comm[i].size);
        if (!nobody)
            return false;
        memset(nobody, 0xff, comm[i].size * sizeof *nobody);
        comm[i].member = nobody;
    }
    out->n_comms = f->comms.n;
    out->comm = comm;
    return comm != NULL;
}

static bool put_capture(struct finish *f, struct maq_capture **out)
{
    struct maq_import_job *job = f->job;
    struct maq_capture made, *c = &made;
    struct maq_rank_class *classes = MAQ_ARENA_NEW(f->arena, struct maq_rank_class, job->n_ranks);
    uint32_t *class_of = MAQ_ARENA_NEW(f->arena, uint32_t, job->world);
    if (!classes || !class_of)
        return false;
    *c = (struct maq_capture){.world = job->world,
                              .per_node = job->per_node ? job->per_node : job->world,
                              .device = job->device,
                              .n_classes = job->n_ranks,
                              .class_of_ranks = classes,
                              .class_of = class_of,
                              .owner = f->arena};
    memset(class_of, 0xff, job->world * sizeof *class_of);
    for (uint32_t k = 0; k < job->n_ranks; k++)
        if (!put_class(f, &classes[k], f->order[k], class_of, k))
            return false;
    if (!put_ops(f, c) || !put_comms(f, c))
        return false;
    *out = maq__malloc(sizeof **out); /* as maq_capture_new() makes them */
    if (*out)
        **out = made;
    return *out != NULL;
}

static enum maq_status finish_all(struct finish *f, struct maq_capture **out)
{
    struct maq_import_job *job = f->job;
    uint32_t **id = MAQ_ARENA_NEW(f->arena, uint32_t *, job->n_ranks);
    if (job->failed || !id || !find_patterns(f))
        return MAQ_NO_MEMORY;
    for (uint32_t i = 0; i < job->n_ranks; i++) {
        id[i] = MAQ_ARENA_NEW(f->arena, uint32_t, job->rank[i].n_comms);
        if (!id[i])
            return MAQ_NO_MEMORY;
        for (uint32_t k = 0; k < job->rank[i].n_comms; k++)
            id[i][k] = f->pattern[i][k].id;
    }
    MAQ_TRY(find_classes(f));
    return maq_import_collective_times(job, id) && put_capture(f, out) ? MAQ_OK : MAQ_NO_MEMORY;
}

/* Reports the ranks that were not traced. */
static void tell(const struct maq_capture *c, uint32_t traced, struct maq_diag *diag)
{
    uint32_t known = 0, unknown = 0;
    for (uint32_t q = 0; q < c->world; q++)
        *(c->class_of[q] == NONE ? &unknown : &known) += 1;
    if (unknown > 0)
        maq_diag_add(diag, MAQ_WARNING, MAQ_CODE_IMPORT_FILLED, nowhere, "trace one rank of each pipeline stage",
                     "%u of %u ranks are unknown: no traced rank has their place", unknown, c->world);
    if (known > traced)
        maq_diag_add(
            diag, MAQ_NOTE, MAQ_CODE_IMPORT_FILLED, nowhere, NULL,
            "%u of %u ranks were not traced, and are taken to do what the nearest traced one of the same place does",
            known - traced, c->world);
}

enum maq_status maq_import_finish(struct maq_capture **out, struct maq_import_job *job)
{
    struct finish f = {.job = job, .arena = job->arena};
    maq_intern_init(&f.comms, job->arena);
    for (uint32_t i = 0; i < job->n_ranks; i++)
        job->world = job->rank[i].rank >= job->world ? job->rank[i].rank + 1 : job->world;
    enum maq_status status = MAQ_OK;
    if (job->n_ranks == 0 || job->world > MAQ_IMPORT_WORLD)
        status = maq_diag_fail(MAQ_BAD_INPUT, job->diag, MAQ_CODE_IMPORT_RANK, nowhere, NULL,
                               "the traces say that the job has %u ranks; it is 1 to %u", job->world, MAQ_IMPORT_WORLD);
    else
        status = finish_all(&f, out);
    if (status == MAQ_NO_MEMORY)
        maq_diag_add(job->diag, MAQ_ERROR, MAQ_CODE_NO_MEMORY, nowhere, NULL, "out of memory for an imported trace");
    if (status == MAQ_OK)
        tell(*out, job->n_ranks, job->diag);
    if (status == MAQ_OK)
        job->arena = NULL; /* the capture's from now on */
    maq_intern_map_fini(&f.moved);
    free(f.comm_name);
    maq_import_drop(job);
    return status;
}
