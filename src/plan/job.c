/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.c - reads a job document (model, cluster, plan, workload, framework, cost) with its overrides, and completes the
 * job.
 */
#include "maquette/job.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/check.h"
#include "base/codes.h"
#include "base/str.h"
#include "base/text.h"
#include "cluster/cluster_load.h"
#include "model/first_last_bf16.h"
#include "model/load.h"
#include "plan/codes.h"
#include "plan/cost_keys.h"
#include "plan/fleet_members.h"
#include "plan/framework.h"
#include "plan/framework_files/framework_files.h"
#include "plan/job_build.h"
#include "plan/keys.h"
#include "spec/cannot_read.h"
#include "spec/catalogue.h"
#include "spec/doc.h"
#include "spec/field.h"
#include "spec/unverified.h"

struct maq_loaded_job {
    struct maq_job job;
    struct maq_arena arena; /* job lifetime */
    struct maq_doc doc;
    struct maq_cost_doc cost;
    const char *file; /* what the document is instead of a job: "DeepSpeed's configuration"; NULL = a job */
    bool open;        /* the plan is left as it is written, for a search that completes it */
    struct maq_node *search, *serve, *rl;
    bool is_member;                 /* of the fleet that the document has, if it has one */
    struct maq_job_member *members; /* [n_members] of it */
    uint32_t n_members;
    struct maq_job_places places;
    struct maq_job written;                      /* not open: before the plan was resolved, for maq_job_reopen() */
    bool framework_may_set[MAQ_PLAN_FIELDS_MAX]; /* keys of the plan that the profile settles in some case */
    uint8_t plan_origins[MAQ_PLAN_FIELDS_MAX], workload_origins[MAQ_WORKLOAD_FIELDS_MAX], cost_origins[MAQ_COST_FIELDS];
};

struct job_doc {
    struct maq_str name;
    struct maq_node *model, *cluster, *plan, *workload, *framework, *files, *cost, *search, *serve, *fleet, *rl;
};

static const struct maq_field job_fields[] = {
    MAQ_FIELD_STR(struct job_doc, name, "name", .def = "", .doc = "a title for reports"),
    MAQ_FIELD_NODE(struct job_doc, model, "model", .required = true,
                   .doc = "a name of the catalogue, a config.json, or a map of its keys; --model"),
    MAQ_FIELD_NODE(struct job_doc, cluster, "cluster", .required = true,
                   .doc = "\"h100-sxm:8 x 4, rail 400G\", a file, or a map; --cluster"),
    MAQ_FIELD_NODE(struct job_doc, plan, "plan", .doc = "parallelization, memory and overlap"),
    MAQ_FIELD_NODE(struct job_doc, workload, "workload", .doc = "sequence length and batch"),
    MAQ_FIELD_NODE(struct job_doc, framework, "framework", .doc = "what runs the job: a profile's name, file or map"),
    MAQ_FIELD_NODE(struct job_doc, files, "files", .doc = "configuration files of the framework that say the rest"),
    MAQ_FIELD_NODE(struct job_doc, cost, "cost", .doc = "measured kernels, and who may answer for a cost"),
    MAQ_FIELD_NODE(struct job_doc, search, "search", .doc = "what maquette plan may choose from"),
    MAQ_FIELD_NODE(struct job_doc, serve, "serve", .doc = "options of maquette serve"),
    MAQ_FIELD_NODE(struct job_doc, fleet, "fleet", .doc = "replicas of several kinds, for maquette serve"),
    MAQ_FIELD_NODE(struct job_doc, rl, "rl", .doc = "DPO, KTO, GRPO or PPO: a step of several models"),
    MAQ_FIELD_END};

/* Keeps going after a fault, so that all sections report theirs; remembers the worst. */
static void note(enum maq_status *status, enum maq_status s)
{
    if (s != MAQ_OK && (*status == MAQ_OK || *status == MAQ_BAD_INPUT))
        *status = s;
}

/* The profile, and its plan settings under those of the document. */
static enum maq_status read_framework(struct maq_loaded_job *loaded, const struct job_doc *doc,
                                      struct maq_plan_doc *plan, struct maq_diag *diag)
{
    const struct maq_node *precision = maq_node_peek(doc->plan, "precision");
    struct maq_framework_plan settings;
    const struct maq_framework_facts facts = {
        .arch = loaded->job.cluster.groups[0].device.arch,
        .moe = maq_model_find_module(&loaded->job.model, MAQ_MODULE_ROUTER, MAQ_PART_COUNT) != NULL,
        .tensor_parallel = plan->plan.tp > 1 || (loaded->open && !maq_job_sets(loaded, "tensor_model_parallel_size")),
        .pipeline_parallel =
            plan->plan.pp > 1 || (loaded->open && !maq_job_sets(loaded, "pipeline_model_parallel_size")),
        .paired = loaded->open || plan->plan.pp == 1 || plan->plan.vp > 1,
        .precision = precision ? precision->text : (struct maq_str){0},
    };
    MAQ_TRY(maq_framework_load(&loaded->job.framework, &settings, doc->framework, &facts, &loaded->arena, diag));
    maq_framework_underlay(plan, loaded->plan_origins, &settings);
    memcpy(loaded->framework_may_set, settings.may_set, sizeof loaded->framework_may_set);
    return MAQ_OK;
}

/* An open job: a search decides the degrees, but the batch has to be given. */
static enum maq_status leave_open(struct maq_loaded_job *loaded, const struct maq_job_places *at, struct maq_diag *diag)
{
    struct maq_job *job = &loaded->job;
    MAQ_TRY(maq_plan_read_lists(&job->plan, at->list, diag));
    MAQ_TRY(maq_job_place_adapters(job, at, diag));
    job->workload.seq = maq_job_default_seq(job);
    if (job->workload.gbs == 0)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_PLAN_BATCH, maq_place_of(at->workload, "global_batch_size"),
                             "set global_batch_size (--gbs)", "a search needs the global batch size");
    if (job->workload.accumulation > 0)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_PLAN_BATCH,
                             maq_place_of(at->workload, "gradient_accumulation_steps"),
                             "leave it out, and micro_batch_size too unless it is to stay as it is",
                             "a search finds gradient_accumulation_steps");
    return MAQ_OK;
}

/* Of a job that is at fault already: only whether there is such a profile. */
static enum maq_status look_at_framework(struct maq_loaded_job *loaded, struct maq_node *node, struct maq_diag *diag)
{
    struct maq_framework unused;
    struct maq_framework_plan settings;
    const struct maq_framework_facts none = {0};
    return maq_framework_load(&unused, &settings, node, &none, &loaded->arena, diag);
}

/* A key of one section in another, or beside them all: where it belongs. */
static enum maq_status check_places(const struct maq_node *map, const struct maq_field *own, const char *what,
                                    struct maq_diag *diag)
{
    static const struct {
        const char *section;
        const struct maq_field *fields;
    } sections[] = {{"plan", maq_plan_fields}, {"workload", maq_workload_fields}};
    enum maq_status status = MAQ_OK;
    for (struct maq_node *n = map && map->kind == MAQ_NODE_MAP ? map->first : NULL; n; n = n->next)
        for (size_t i = 0; i < MAQ_COUNT(sections) && !maq_fields_find(own, n->key); i++) {
            char hint[128];
            if (!maq_fields_find(sections[i].fields, n->key))
                continue;
            maq__snprintf(hint, sizeof hint, "it belongs under `%s:` (--set %s.%.*s=...)", sections[i].section,
                          sections[i].section, (int)n->key.len, n->key.ptr);
            status = maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_UNKNOWN_KEY, n->key_at, hint,
                                   "unknown key '%.*s' in %s", (int)n->key.len, n->key.ptr, what);
            maq_node_use_all(n);
            break;
        }
    return status;
}

/* A config.json in place of a job. */
static bool is_model(const struct maq_node *root)
{
    bool typed = maq_node_peek(root, "model_type") || maq_node_peek(root, "architectures");
    return !maq_node_peek(root, "model") && (typed || maq_node_peek(root, "hidden_size"));
}

static enum maq_status refuse_model(const struct maq_node *root, struct maq_diag *diag)
{
    char hint[256];
    const struct maq_span at = {root->at.file, root->at.off, 1};
    maq__snprintf(hint, sizeof hint, "give it as the model of a job: --model %s --cluster h100-sxm:8",
                  maq_diag_place(diag, at).name);
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_WRONG_TYPE, at, hint, "this is a model, not a job");
}

static enum maq_status read_fleet(struct maq_loaded_job *loaded, struct maq_node *fleet, struct maq_diag *diag)
{
    if (!fleet || maq_node_is_null(fleet))
        return MAQ_OK;
    if (!loaded->is_member)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_JOB_FLEET, fleet->key_at, "maquette serve reads it",
                             "a fleet of deployments is no one job");
    return maq_fleet_members_read(&loaded->members, &loaded->n_members, fleet, &loaded->arena, diag);
}

static enum maq_status read_sections(struct maq_loaded_job *loaded, struct maq_diag *diag)
{
    struct maq_job *job = &loaded->job;
    struct job_doc doc = {0};
    struct maq_plan_doc plan = {0};
    enum maq_status status = MAQ_OK;
    if (loaded->doc.root && loaded->doc.root->kind != MAQ_NODE_MAP)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_WRONG_TYPE, loaded->doc.root->at,
                             "a job has the keys model, cluster, plan, workload, cost", "a job is a map");
    if (loaded->doc.root && is_model(loaded->doc.root))
        return refuse_model(loaded->doc.root, diag);
    if (loaded->doc.root)
        loaded->doc.root->used = true;
    note(&status, check_places(loaded->doc.root, job_fields, "job", diag));
    note(&status, maq_fields_check_keys(job_fields, NULL, loaded->doc.root, "job", diag));
    note(&status, maq_fields_read(&doc, job_fields, loaded->doc.root, NULL, &loaded->arena, diag));
    note(&status, read_fleet(loaded, doc.fleet, diag));
    if (doc.model)
        note(&status, maq_model_load(&job->model, doc.model, &loaded->arena, diag));
    if (doc.cluster)
        note(&status, maq_cluster_load(&job->cluster, doc.cluster, &loaded->arena, diag));
    note(&status, check_places(doc.plan, maq_plan_fields, "plan", diag));
    note(&status, maq_fields_check_keys(maq_plan_fields, NULL, doc.plan, "plan", diag));
    note(&status, maq_fields_read(&plan, maq_plan_fields, doc.plan, loaded->plan_origins, &loaded->arena, diag));
    note(&status, check_places(doc.workload, maq_workload_fields, "workload", diag));
    note(&status, maq_fields_check_keys(maq_workload_fields, NULL, doc.workload, "workload", diag));
    note(&status, maq_fields_read(&job->workload, maq_workload_fields, doc.workload, loaded->workload_origins,
                                  &loaded->arena, diag));
    if (status == MAQ_OK) /* conditions of a profile ask for model and cluster */
        status = read_framework(loaded, &doc, &plan, diag);
    else
        note(&status, look_at_framework(loaded, doc.framework, diag));
    note(&status, maq_fields_check_keys(maq_cost_fields, NULL, doc.cost, "cost", diag));
    note(&status,
         maq_fields_read(&loaded->cost, maq_cost_fields, doc.cost, loaded->cost_origins, &loaded->arena, diag));
    job->measured = loaded->cost.measured.len > 0 ? maq_arena_strdup(&loaded->arena, loaded->cost.measured) : NULL;
    job->cost_provider = loaded->cost.provider + 1;
    for (uint32_t g = 0; loaded->cost.usd_per_hour > 0 && g < job->cluster.n_groups; g++)
        job->cluster.groups[g].device.usd_per_hour = loaded->cost.usd_per_hour;
    job->plan = plan.plan;
    if (status == MAQ_OK && job->plan.wide_ends)
        status = maq_model_widen_ends(&job->model, job->plan.wide_at_start, job->plan.wide_at_end, &loaded->arena);
    job->name = doc.name.len > 0 ? maq_arena_strdup(&loaded->arena, doc.name) : job->model.name;
    if (status != MAQ_OK)
        return status;

    loaded->search = doc.search;
    loaded->serve = doc.serve;
    maq_node_use_all(doc.serve); /* maquette serve reads it */
    loaded->rl = maq_node_is_null(doc.rl) ? NULL : doc.rl;
    maq_node_use_all(doc.rl); /* maq_post_training_predict() does */
    loaded->places =
        (struct maq_job_places){.plan = doc.plan, .workload = doc.workload, .model = doc.model, .cluster = doc.cluster};
    struct maq_job_places at = loaded->places;
    memcpy(at.list, plan.list, sizeof at.list);
    if (loaded->open)
        return leave_open(loaded, &at, diag);
    maq_node_use_all(doc.search); /* maquette plan reads it */
    loaded->written = *job;
    memcpy(loaded->places.list, at.list, sizeof at.list);
    MAQ_TRY(maq_job_resolve(job, &at, diag));
    MAQ_TRY(maq_job_split_layers(job, &at, &loaded->arena, diag));
    MAQ_TRY(maq_job_place_groups(job, &at, &loaded->arena, diag));
    return maq_doc_check_unused(&loaded->doc, diag);
}

/* A setting has several names: an override takes the one that the document uses. */
static const char *path_in_document(struct maq_doc *doc, const char *path)
{
    static const struct {
        const char *section;
        const struct maq_field *fields;
    } tables[] = {{"plan", maq_plan_fields}, {"workload", maq_workload_fields}, {"cost", maq_cost_fields}};
    struct maq_str section, name = maq_str_split(maq_str_of(path), '.', &section);
    for (size_t i = 0; doc->root && i < MAQ_COUNT(tables); i++) {
        const struct maq_field *f = maq_fields_find(tables[i].fields, name);
        const struct maq_node *map = maq_node_peek(doc->root, tables[i].section);
        if (!f || !map || map->kind != MAQ_NODE_MAP || !maq_str_is(section, tables[i].section))
            continue;
        for (const struct maq_node *n = map->first; n; n = n->next)
            if (maq_fields_find(tables[i].fields, n->key) == f)
                return maq_arena_printf(&doc->arena, "%s.%.*s", tables[i].section, (int)n->key.len, n->key.ptr);
    }
    return path;
}

static enum maq_status lay_over(struct maq_doc *doc, const struct maq_override *o, struct maq_diag *diag)
{
    const char *path = path_in_document(doc, o->path);
    return path ? maq_doc_set_value(doc, path, o->value, o->flag, diag) : MAQ_NO_MEMORY;
}

/* Files of frameworks, in place of the document or beside it; `files` and the model may be a flag's. */
static enum maq_status read_files(struct maq_loaded_job *loaded, const char *path, const struct maq_override *overrides,
                                  size_t n_overrides, struct maq_diag *diag)
{
    const char *model = NULL, *cluster = NULL;
    for (size_t i = 0; i < n_overrides; i++) {
        if (strcmp(overrides[i].path, "files") == 0)
            MAQ_TRY(maq_doc_set_value(&loaded->doc, "files", overrides[i].value, overrides[i].flag, diag));
        if (strcmp(overrides[i].path, "model") == 0)
            model = overrides[i].value;
        if (strcmp(overrides[i].path, "cluster") == 0)
            cluster = overrides[i].value;
    }
    return maq_files_read(&loaded->file, &loaded->doc, path, model, cluster, loaded->open, diag);
}

/* Of a fleet the member that an override names. */
static enum maq_status lay_member(struct maq_loaded_job *loaded, const struct maq_override *overrides,
                                  size_t n_overrides, struct maq_diag *diag)
{
    int64_t member = 0;
    for (size_t i = 0; i < n_overrides; i++)
        if (strcmp(overrides[i].path, MAQ_JOB_FLEET_MEMBER) == 0) {
            loaded->is_member = true;
            (void)maq_str_to_i64(&member, maq_str_of(overrides[i].value));
        }
    return loaded->is_member ? maq_fleet_member_lay(&loaded->doc, (uint32_t)member, diag) : MAQ_OK;
}

static enum maq_status finish(struct maq_loaded_job **out, struct maq_loaded_job *loaded, enum maq_status status,
                              const char *path, const struct maq_override *overrides, size_t n_overrides,
                              struct maq_diag *diag)
{
    if (status == MAQ_OK)
        status = read_files(loaded, path, overrides, n_overrides, diag);
    if (status == MAQ_OK)
        status = lay_member(loaded, overrides, n_overrides, diag);
    for (size_t i = 0; i < n_overrides && (status == MAQ_OK || status == MAQ_BAD_INPUT); i++)
        if (strcmp(overrides[i].path, "files") != 0 && strcmp(overrides[i].path, MAQ_JOB_FLEET_MEMBER) != 0)
            note(&status, lay_over(&loaded->doc, &overrides[i], diag));
    if (status == MAQ_OK)
        status = read_sections(loaded, diag);
    if (status != MAQ_OK) {
        maq_job_free(loaded);
        return status;
    }
    *out = loaded;
    return MAQ_OK;
}

static struct maq_loaded_job *new_box(bool open)
{
    struct maq_loaded_job *loaded = calloc(1, sizeof *loaded);
    if (loaded) {
        maq_arena_init(&loaded->arena, 0);
        loaded->open = open;
    }
    return loaded;
}

#define JOB "a job: YAML with model, cluster and plan, as in docs/train.md, or --model and --cluster in its place"

/* Files are tried first: what stands in place of one may be the name of a model or a cluster. */
static enum maq_status refuse_name(const char *path, struct maq_diag *diag)
{
    const struct maq_str name = maq_str_of(path);
    struct maq_str device;
    char hint[256];
    struct stat st;
    if (strcmp(path, "-") == 0 || stat(path, &st) == 0)
        return maq_file_expected(path, JOB, diag);
    maq_str_split(name, ':', &device);
    bool model = maq_model_entry(name) != NULL;
    if (!model && !maq_catalogue_find("devices", device))
        return maq_file_expected(path, JOB, diag);
    maq__snprintf(hint, sizeof hint, "name it by an option: %s '%.160s'", model ? "--model" : "--cluster", path);
    return maq_diag_fail(MAQ_IO, diag, MAQ_CODE_CANNOT_READ, (struct maq_span){0}, hint,
                         "no job file is named '%.80s', which is a %s", path, model ? "model" : "cluster");
}

static enum maq_status load(struct maq_loaded_job **out, bool open, const char *path,
                            const struct maq_override *overrides, size_t n_overrides, struct maq_diag *diag)
{
    if (path)
        MAQ_TRY(refuse_name(path, diag));
    struct maq_loaded_job *loaded = new_box(open);
    if (!loaded)
        return MAQ_NO_MEMORY;
    enum maq_status status =
        path ? maq_doc_load_any(&loaded->doc, path, MAQ_ORIGIN_DOCUMENT, diag) : maq_doc_init_empty(&loaded->doc);
    return finish(out, loaded, status, path, overrides, n_overrides, diag);
}

enum maq_status maq_job_load(struct maq_loaded_job **out, const char *path, const struct maq_override *overrides,
                             size_t n_overrides, struct maq_diag *diag)
{
    return load(out, false, path, overrides, n_overrides, diag);
}

enum maq_status maq_job_load_open(struct maq_loaded_job **out, const char *path, const struct maq_override *overrides,
                                  size_t n_overrides, struct maq_diag *diag)
{
    return load(out, true, path, overrides, n_overrides, diag);
}

static enum maq_status parse(struct maq_loaded_job **out, bool open, const char *name, struct maq_str text,
                             const struct maq_override *overrides, size_t n_overrides, struct maq_diag *diag)
{
    struct maq_loaded_job *loaded = new_box(open);
    if (!loaded)
        return MAQ_NO_MEMORY;
    return finish(out, loaded, maq_doc_parse_any(&loaded->doc, name, text, MAQ_ORIGIN_DOCUMENT, diag), NULL, overrides,
                  n_overrides, diag);
}

enum maq_status maq_job_parse(struct maq_loaded_job **out, const char *name, struct maq_str text,
                              const struct maq_override *overrides, size_t n_overrides, struct maq_diag *diag)
{
    return parse(out, false, name, text, overrides, n_overrides, diag);
}

enum maq_status maq_job_parse_open(struct maq_loaded_job **out, const char *name, struct maq_str text,
                                   const struct maq_override *overrides, size_t n_overrides, struct maq_diag *diag)
{
    return parse(out, true, name, text, overrides, n_overrides, diag);
}

static int origin_of(const struct maq_loaded_job *loaded, const char *key)
{
    const struct maq_field *f = maq_fields_find(maq_plan_fields, maq_str_of(key));
    return f ? loaded->plan_origins[f - maq_plan_fields] : MAQ_ORIGIN_DEFAULT;
}

bool maq_job_sets(const struct maq_loaded_job *loaded, const char *key)
{
    return origin_of(loaded, key) >= MAQ_ORIGIN_FILE;
}

bool maq_job_flag_sets(const struct maq_loaded_job *loaded, const char *key)
{
    return origin_of(loaded, key) == MAQ_ORIGIN_FLAG;
}

bool maq_job_framework_may_set(const struct maq_loaded_job *loaded, const char *key)
{
    const struct maq_field *f = maq_fields_find(maq_plan_fields, maq_str_of(key));
    return f && loaded->framework_may_set[f - maq_plan_fields];
}

struct maq_job_places maq_job_written(const struct maq_loaded_job *open)
{
    struct maq_job_places at = open ? open->places : (struct maq_job_places){0};
    at.searched = true;
    return at;
}

struct maq_job_places maq_job_sections(const struct maq_loaded_job *loaded)
{
    return loaded->places;
}

bool maq_job_is_open(const struct maq_loaded_job *loaded)
{
    return loaded->open;
}

struct maq_arena *maq_job_arena(struct maq_loaded_job *loaded)
{
    return &loaded->arena;
}

enum maq_status maq_job_reopen(struct maq_loaded_job **out, const struct maq_loaded_job *loaded, struct maq_diag *diag)
{
    struct maq_loaded_job *again = new_box(true);
    MAQ_ASSERT(!loaded->open);
    if (!again)
        return MAQ_NO_MEMORY;
    again->job = loaded->written;
    again->job.workload = loaded->job.workload; /* its defaults are known by now */
    again->job.workload.accumulation = 0;
    again->cost = loaded->cost;
    again->search = loaded->search;
    again->places = loaded->places;
    memcpy(again->plan_origins, loaded->plan_origins, sizeof loaded->plan_origins);
    memcpy(again->workload_origins, loaded->workload_origins, sizeof loaded->workload_origins);
    memcpy(again->cost_origins, loaded->cost_origins, sizeof loaded->cost_origins);
    enum maq_status status = leave_open(again, &again->places, diag);
    memset(again->places.list, 0, sizeof again->places.list); /* read: what completes the job has lists of its own */
    if (status != MAQ_OK) {
        maq_job_free(again);
        return status;
    }
    *out = again;
    return MAQ_OK;
}

enum maq_status maq_job_complete(struct maq_loaded_job **out, const struct maq_loaded_job *open,
                                 const struct maq_plan *plan, struct maq_diag *diag)
{
    const struct maq_job_places at = maq_job_written(open);
    struct maq_loaded_job *loaded = new_box(false);
    if (!loaded)
        return MAQ_NO_MEMORY;
    loaded->job = open->job;
    loaded->job.plan = *plan;
    loaded->cost = open->cost;
    memcpy(loaded->plan_origins, open->plan_origins, sizeof loaded->plan_origins);
    memcpy(loaded->workload_origins, open->workload_origins, sizeof loaded->workload_origins);
    memcpy(loaded->cost_origins, open->cost_origins, sizeof loaded->cost_origins);
    enum maq_status status = maq_job_resolve(&loaded->job, &at, diag);
    if (status == MAQ_OK)
        status = maq_job_split_layers(&loaded->job, &at, &loaded->arena, diag);
    if (status == MAQ_OK)
        status = maq_job_place_groups(&loaded->job, &at, &loaded->arena, diag);
    if (status != MAQ_OK) {
        maq_job_free(loaded);
        return status;
    }
    *out = loaded;
    return MAQ_OK;
}

const struct maq_node *maq_job_document(const struct maq_loaded_job *loaded)
{
    return loaded->doc.root;
}

static bool entry_of(struct maq_serve_entry *out, const struct maq_node *section, size_t i)
{
    const struct maq_node *n = section && section->kind == MAQ_NODE_MAP ? section->first : NULL;
    for (; n && i > 0; i--)
        n = n->next;
    if (n)
        *out = (struct maq_serve_entry){
            .key = n->key, .value = n->text, .is_text = n->kind == MAQ_NODE_SCALAR, .key_at = n->key_at, .at = n->at};
    return n != NULL;
}

bool maq_job_serve_entry(struct maq_serve_entry *out, const struct maq_loaded_job *loaded, size_t i)
{
    return entry_of(out, loaded->serve, i);
}

bool maq_job_member_serve_entry(struct maq_serve_entry *out, const struct maq_job_member *member, size_t i)
{
    return entry_of(out, member->serve, i);
}

const struct maq_job_member *maq_job_fleet_member(const struct maq_loaded_job *loaded, uint32_t i)
{
    return i < loaded->n_members ? &loaded->members[i] : NULL;
}

struct maq_node *maq_job_search_node(const struct maq_loaded_job *loaded)
{
    return loaded->search;
}

struct maq_node *maq_job_rl_node(const struct maq_loaded_job *loaded)
{
    return loaded->rl;
}

enum maq_status maq_job_check_unused(const struct maq_loaded_job *loaded, struct maq_diag *diag)
{
    return maq_doc_check_unused(&loaded->doc, diag);
}

const struct maq_job *maq_job_get(const struct maq_loaded_job *loaded)
{
    return &loaded->job;
}

void maq_job_free(struct maq_loaded_job *loaded)
{
    if (!loaded)
        return;
    maq_doc_fini(&loaded->doc);
    maq_arena_fini(&loaded->arena);
    free(loaded);
}

static void explain(struct maq_buf *out, const char *section, const struct maq_field *fields, const void *target,
                    const uint8_t *origins)
{
    static const char *const names[] = {"default", "catalogue", "framework", "framework's file", "document", "flag"};
    for (size_t i = 0; fields[i].type != MAQ_TYPE_END; i++) {
        char value[64];
        if (fields[i].type == MAQ_TYPE_NODE)
            continue;
        maq_buf_addf(out, "%s.%s = %s  (%s)\n", section, fields[i].key, maq_field_format(value, &fields[i], target),
                     names[origins[i]]);
    }
}

/* Its plan settings stand among the plan's, with "framework" as their origin. */
static void explain_framework(struct maq_buf *out, const struct maq_framework *f)
{
    char value[64];
    for (const struct maq_field *field = maq_host_fields; field->type != MAQ_TYPE_END; field++)
        maq_buf_addf(out, "framework.host.%s = %s  (%s)\n", field->key, maq_field_format(value, field, &f->host),
                     f->name);
    for (const struct maq_field *field = maq_framework_fields; field->type != MAQ_TYPE_END; field++)
        maq_buf_addf(out, "framework.%s = %s  (%s)\n", field->key, maq_field_format(value, field, f), f->name);
}

/* What of the devices was not read at its source. */
static void explain_unverified(struct maq_buf *out, const struct maq_cluster *cluster)
{
    for (uint32_t g = 0; g < cluster->n_groups; g++) {
        const struct maq_device *d = &cluster->groups[g].device;
        struct maq_str rest = maq_str_of(d->unverified), name;
        bool said = false;
        for (uint32_t i = 0; i < g && !said; i++)
            said = strcmp(cluster->groups[i].device.name, d->name) == 0;
        while (!said && maq_unverified_next(&rest, &name))
            maq_buf_addf(out, "device.%s.%.*s = not read at its source  (unverified)\n", d->name, (int)name.len,
                         name.ptr);
    }
}

char *maq_job_explain(const struct maq_loaded_job *loaded)
{
    struct maq_buf out;
    struct maq_plan_doc plan = {.plan = loaded->job.plan};
    maq_buf_init(&out, 1 << 20);
    if (loaded->file)
        maq_buf_addf(&out, "job = %s  (told by its keys)\n", loaded->file);
    explain(&out, "plan", maq_plan_fields, &plan, loaded->plan_origins);
    explain(&out, "workload", maq_workload_fields, &loaded->job.workload, loaded->workload_origins);
    explain_framework(&out, &loaded->job.framework);
    explain(&out, "cost", maq_cost_fields, &loaded->cost, loaded->cost_origins);
    explain_unverified(&out, &loaded->job.cluster);
    return maq_buf_take(&out);
}

static const struct maq_field *fields_of(const char *section)
{
    return strcmp(section, "plan") == 0       ? maq_plan_fields
           : strcmp(section, "workload") == 0 ? maq_workload_fields
                                              : job_fields;
}

size_t maq_job_options(const char *section)
{
    return maq_fields_count(fields_of(section));
}

bool maq_job_option(const char *section, size_t i, struct maq_option *out)
{
    const struct maq_field *fields = fields_of(section);
    if (i >= maq_fields_count(fields))
        return false;
    *out = (struct maq_option){fields[i].key, fields[i].aliases ? fields[i].aliases : "",
                               fields[i].def ? fields[i].def : "", fields[i].doc};
    return true;
}
