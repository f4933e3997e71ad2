/* SPDX-License-Identifier: Apache-2.0 */
/*
 * failures.c - failures from the catalogue, a file or a flag: see maquette/failures.h.
 *
 * Over a chain of `base` the settings of the base come first; `causes` replaces those of the base, and `detection` and `repair`
 * replace those of its causes: a given time of repair applies to all causes.
 */
#include "risk/run/failures.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/text.h"
#include "cluster/catalogue_entry.h"
#include "risk/codes.h"

#define MOST_CAUSES 64u

/* What is being read: the failures, and what is not one scalar. `rate` is kept as it is written until the node's size is known. */
struct failures_reader {
    struct maq_failures f;
    int32_t devices_per_node;
    struct maq__entry_head head;
    struct maq_node *rate, *lemons, *bursts, *together, *causes, *detection, *requeue, *restart, *repair;
};

#define ROW(kind_, member_, key_, ...) kind_(struct failures_reader, member_, key_, __VA_ARGS__)
#define F(kind_, member_, key_, ...) kind_(struct maq_failures, member_, key_, __VA_ARGS__)

static const struct maq_field failures_fields[] = {
    MAQ_ENTRY_HEAD(struct failures_reader, head, "failures to start from", "what fleet and job it is",
                   "where the figures come from"),
    ROW(MAQ_FIELD_NODE, rate, "rate", .doc = "failures that interrupt the job: 3.79e-3/node/day, 1e-4/gpu/day"),
    ROW(MAQ_FIELD_DOUBLE, f.spread, "spread", .min = 0, .max = 3,
        .doc = "standard deviation of the logarithm of the rate: how well it is known"),
    ROW(MAQ_FIELD_I32, devices_per_node, "devices_per_node", .min = 1, .max = 1024,
        .doc = "of the nodes that the rate is about"),
    ROW(MAQ_FIELD_DOUBLE, f.shape, "shape", .min = 0.2, .max = 10,
        .doc = "Weibull shape of a node's time between failures; 1: exponential, below: new nodes fail more"),
    ROW(MAQ_FIELD_QTY, f.age_s, "age", MAQ_DIM_TIME, .min = 0, .max = 1e9,
        .doc = "how long the nodes have run before the job"),
    ROW(MAQ_FIELD_NODE, lemons, "lemons", .doc = "{share, times, strikes}: nodes that fail more often"),
    ROW(MAQ_FIELD_NODE, bursts, "bursts", .doc = "{times, every, lasts}: periods with more failures"),
    ROW(MAQ_FIELD_NODE, together, "together", .doc = "{share, nodes}: failures that take several nodes"),
    ROW(MAQ_FIELD_NODE, causes, "causes",
        .doc = "list of {name, share, loses_node, takes, detection, repair, found_after}"),
    ROW(MAQ_FIELD_NODE, detection, "detection", .doc = "from the failure until the job is ended"),
    ROW(MAQ_FIELD_NODE, requeue, "requeue", .doc = "until the programs are started again, nodes being there"),
    ROW(MAQ_FIELD_NODE, restart, "restart", .doc = "until the checkpoint is read; default: by the size of the job"),
    ROW(MAQ_FIELD_NODE, repair, "repair", .doc = "until a node that was lost is back"),
    MAQ_FIELD_END};

static const struct maq_field lemon_fields[] = {
    F(MAQ_FIELD_DOUBLE, lemon_share, "share", .min = 0, .max = 0.5, .doc = "of the nodes"),
    F(MAQ_FIELD_DOUBLE, lemon_times, "times", .min = 1, .max = 1e4, .doc = "as many failures as another node"),
    F(MAQ_FIELD_DOUBLE, lemon_strikes, "strikes", .min = 0, .max = 1e6,
      .doc = "failures until it is replaced; 0: never"),
    MAQ_FIELD_END};
static const struct maq_field burst_fields[] = {
    F(MAQ_FIELD_DOUBLE, burst_times, "times", .min = 1, .max = 1e4,
      .doc = "the rate meanwhile, over that between bursts"),
    F(MAQ_FIELD_QTY, burst_every_s, "every", MAQ_DIM_TIME, .min = 60, .max = 1e9, .doc = "mean time between bursts"),
    F(MAQ_FIELD_QTY, burst_lasts_s, "lasts", MAQ_DIM_TIME, .min = 60, .max = 1e9, .doc = "mean length of a burst"),
    MAQ_FIELD_END};
static const struct maq_field together_fields[] = {
    F(MAQ_FIELD_DOUBLE, together_share, "share", .min = 0, .max = 1, .doc = "of the failures that lose a node"),
    F(MAQ_FIELD_DOUBLE, together_nodes, "nodes", .min = 2, .max = 1e5, .doc = "nodes lost by one of them"),
    MAQ_FIELD_END};

struct cause_reader {
    struct maq_str name;
    double share;
    bool loses_node;
    int32_t takes; /* enum maq_failure_reach; -1 = not said */
    struct maq_node *detection, *repair, *found_after;
};

static const char *const reaches[] = {
#define REACH(id, name, what) [MAQ_FAILURE_##id] = name,
    MAQ_FAILURE_REACH_LIST(REACH)
#undef REACH
        [MAQ_FAILURE_REACH_COUNT] = NULL};

const char *maq_failure_reach_name(enum maq_failure_reach reach)
{
    return (unsigned)reach < MAQ_FAILURE_REACH_COUNT ? reaches[reach] : "unknown";
}

static const struct maq_field cause_fields[] = {
    MAQ_FIELD_STR(struct cause_reader, name, "name", .required = true, .doc = "what fails"),
    MAQ_FIELD_DOUBLE(struct cause_reader, share, "share", .required = true, .min = 1e-9, .max = 1e9,
                     .doc = "in any unit"),
    MAQ_FIELD_BOOL(struct cause_reader, loses_node, "loses_node", .def = "true", .doc = "the node needs repair"),
    MAQ_FIELD_ENUM(struct cause_reader, takes, "takes", reaches,
                   .doc = "what goes down with it: gpu, node, link; the node where it is lost, else a GPU"),
    MAQ_FIELD_NODE(struct cause_reader, detection, "detection", .doc = "instead of that of all"),
    MAQ_FIELD_NODE(struct cause_reader, repair, "repair", .doc = "instead of that of all"),
    MAQ_FIELD_NODE(struct cause_reader, found_after, "found_after",
                   .doc = "of computing, until wrong results are noticed: checkpoints since are wrong too"),
    MAQ_FIELD_END};

/*
 * The default cause: docs/risk-runs.md. Times of repair are published nowhere; a day on average, half of them within twelve
 * hours.
 */
static const struct maq_failure_cause any_cause = {
    .name = "any", .share = 1, .loses_node = true, .takes = MAQ_FAILURE_NODE};
static const struct maq_failures nothing_said = {
    .name = "failures",
    .title = "",
    .source = "the user's figures",
    .shape = 1,
    .lemon_times = 1,
    .burst_times = 1,
    .together_nodes = 2,
    .detection = {60, 180},
    .requeue = {60, 60},
    .restart = {-1, -1},
    .repair = {43200, 86400},
    .devices_per_node = 8,
    .n_causes = 1,
    .causes = &any_cause,
};

/* --- sections --- */

#define SECTION(what) (what), MAQ_CODE_FAILURES_FORM, "`" what "` must be a map"

static enum maq_status read_delay(struct maq_delay *out, struct maq_node *node, struct maq_diag *diag)
{
    return node ? maq__delay_read(out, node, diag) : MAQ_OK;
}

static enum maq_status read_cause(struct maq_failure_cause *out, struct maq_node *node, struct maq_arena *arena,
                                  struct maq_diag *diag)
{
    struct cause_reader r = {.takes = -1};
    node->used = true;
    if (node->kind != MAQ_NODE_MAP)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_FAILURES_FORM, node->at, NULL,
                             "a cause is a map with name and share");
    MAQ_TRY(maq_fields_read_map(&r, cause_fields, node, "cause", arena, diag));
    *out = (struct maq_failure_cause){.share = r.share, .loses_node = r.loses_node};
    out->takes = r.takes >= 0 ? (enum maq_failure_reach)r.takes : out->loses_node ? MAQ_FAILURE_NODE : MAQ_FAILURE_GPU;
    out->own_detection = r.detection != NULL;
    out->own_repair = r.repair != NULL;
    MAQ_TRY(read_delay(&out->detection, r.detection, diag));
    MAQ_TRY(read_delay(&out->repair, r.repair, diag));
    MAQ_TRY(read_delay(&out->found_after, r.found_after, diag));
    return maq__entry_keep(&out->name, r.name, arena, diag);
}

static enum maq_status read_causes(struct maq_failures *f, struct maq_node *list, struct maq_arena *arena,
                                   struct maq_diag *diag)
{
    if (!list)
        return MAQ_OK;
    if (list->kind != MAQ_NODE_SEQ || list->count == 0 || list->count > MOST_CAUSES)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_FAILURES_FORM, list->at, NULL,
                             "`causes` must be a list of 1 to %u causes", MOST_CAUSES);
    struct maq_failure_cause *causes = MAQ_ARENA_NEW(arena, struct maq_failure_cause, list->count);
    if (!causes)
        return maq_diag_fail(MAQ_NO_MEMORY, diag, MAQ_CODE_RUN_NO_MEMORY, list->at, NULL, "out of memory");
    double sum = 0;
    uint32_t n = 0;
    enum maq_status status = MAQ_OK;
    list->used = true;
    for (struct maq_node *one = list->first; one; one = one->next) {
        status = maq_worse(status, read_cause(&causes[n], one, arena, diag));
        sum += causes[n++].share;
    }
    for (uint32_t i = 0; i < n; i++)
        causes[i].share /= sum > 0 ? sum : 1;
    f->causes = causes;
    f->n_causes = n;
    return status;
}

/* The causes of a base with the times that are laid over them. */
static enum maq_status lay_over_causes(struct maq_failures *f, bool detection, bool repair, struct maq_arena *arena,
                                       struct maq_diag *diag)
{
    struct maq_failure_cause *causes = MAQ_ARENA_NEW(arena, struct maq_failure_cause, f->n_causes);
    if (!causes)
        return maq_diag_fail(MAQ_NO_MEMORY, diag, MAQ_CODE_RUN_NO_MEMORY, (struct maq_span){0}, NULL, "out of memory");
    for (uint32_t i = 0; i < f->n_causes; i++) {
        causes[i] = f->causes[i];
        causes[i].own_detection = causes[i].own_detection && !detection;
        causes[i].own_repair = causes[i].own_repair && !repair;
    }
    f->causes = causes;
    return MAQ_OK;
}

static enum maq_status contradictions(const struct maq_failures *f, struct maq_span at, struct maq_diag *diag)
{
    const char *what = NULL;
    if (f->shape != 1 && (f->lemon_share > 0 || f->burst_times > 1))
        what = "lemons and bursts are for exponential times between failures; leave `shape` at 1";
    else if (f->burst_times > 1 && !(f->burst_every_s > 0 && f->burst_lasts_s > 0))
        what = "bursts need `every` and `lasts`";
    else if (f->shape == 1 && f->age_s > 0)
        what = "an age means nothing to exponential times: they have no memory; give a `shape`";
    return what ? maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_FAILURES_CONTRADICT, at, what,
                                "settings of failures that do not go together")
                : MAQ_OK;
}

static enum maq_status lay(void *value, struct maq_node *map, struct maq_arena *arena, struct maq_diag *diag)
{
    struct maq_failures *f = value;
    struct failures_reader r = {.f = *f, .devices_per_node = (int32_t)f->devices_per_node};
    enum maq_status status = maq__entry_read(&r, &r.head, failures_fields, "failures", map, arena, diag);
    MAQ_TRY(status);
    r.f.devices_per_node = (uint32_t)r.devices_per_node;
    status = r.rate ? maq__failure_rate_read(&r.f.rate, r.rate, r.devices_per_node, diag) : MAQ_OK;
    status = maq_worse(status, maq__entry_section(&r.f, lemon_fields, r.lemons, SECTION("lemons"), arena, diag));
    status = maq_worse(status, maq__entry_section(&r.f, burst_fields, r.bursts, SECTION("bursts"), arena, diag));
    status = maq_worse(status, maq__entry_section(&r.f, together_fields, r.together, SECTION("together"), arena, diag));
    status = maq_worse(status, read_delay(&r.f.detection, r.detection, diag));
    status = maq_worse(status, read_delay(&r.f.requeue, r.requeue, diag));
    status = maq_worse(status, read_delay(&r.f.restart, r.restart, diag));
    status = maq_worse(status, read_delay(&r.f.repair, r.repair, diag));
    status = maq_worse(status, read_causes(&r.f, r.causes, arena, diag));
    if (!r.causes && (r.detection || r.repair))
        status = maq_worse(status, lay_over_causes(&r.f, r.detection != NULL, r.repair != NULL, arena, diag));
    MAQ_TRY(status);
    MAQ_TRY(contradictions(&r.f, map->at, diag));
    MAQ_TRY(maq__entry_keep_head(&r.f.name, &r.f.title, &r.f.source, &r.head, arena, diag));
    *f = r.f;
    return MAQ_OK;
}

/* --- loading --- */

struct maq_loaded_failures {
    struct maq_arena arena;
    struct maq_failures failures;
};

static enum maq_status load(struct maq_loaded_failures *loaded, const char *what, struct maq_diag *diag)
{
    static const struct maq__entry_kind kind = {
        .section = "variability/failures", .noun = "failures", .unknown_code = MAQ_CODE_UNKNOWN_FAILURES, .lay = lay};
    struct maq__entry entry = {&kind, &loaded->failures, &loaded->failures.name};
    struct maq_doc doc;
    if (!strchr(what, '=')) {
        struct maq_node word = {.kind = MAQ_NODE_SCALAR, .text = maq_str_of(what)};
        return maq__entry_load(entry, &word, &loaded->arena, diag);
    }
    char *text = maq_doc_of_pairs(what, "base");
    if (!text)
        return maq_diag_fail(MAQ_NO_MEMORY, diag, MAQ_CODE_RUN_NO_MEMORY, (struct maq_span){0}, NULL, "out of memory");
    enum maq_status status = maq_doc_parse(&doc, "--failures", maq_str_of(text), MAQ_ORIGIN_FLAG, diag);
    if (status == MAQ_OK && doc.root)
        status = maq__entry_load(entry, doc.root, &loaded->arena, diag);
    maq_doc_fini(&doc);
    free(text);
    return status;
}

enum maq_status maq_failures_load(struct maq_loaded_failures **out, const char *what, struct maq_diag *diag)
{
    struct maq_loaded_failures *loaded = maq__calloc(sizeof *loaded);
    if (!loaded)
        return maq_diag_fail(MAQ_NO_MEMORY, diag, MAQ_CODE_RUN_NO_MEMORY, (struct maq_span){0}, NULL, "out of memory");
    maq_arena_init(&loaded->arena, 0);
    loaded->failures = nothing_said;
    enum maq_status status = load(loaded, what, diag);
    if (status != MAQ_OK) {
        maq_failures_free(loaded);
        return status;
    }
    *out = loaded;
    return MAQ_OK;
}

const struct maq_failures *maq_failures_get(const struct maq_loaded_failures *loaded)
{
    return &loaded->failures;
}

void maq_failures_free(struct maq_loaded_failures *loaded)
{
    if (!loaded)
        return;
    maq_arena_fini(&loaded->arena);
    free(loaded);
}
