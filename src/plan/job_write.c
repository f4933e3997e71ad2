/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_write.c - writes a job as a document: its sections as they were read, with a plan in place of the one that it
 * had.
 */
#include <string.h>

#include "base/str.h"
#include "base/text.h"
#include "plan/job_build.h"
#include "plan/keys.h"

#define LARGEST_DOCUMENT ((size_t)1 << 24)

/* ---- nodes as YAML's flow style, which is JSON with fewer quotes ---- */

static bool is_word(struct maq_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && (i == 0 || !strchr("._+-", c)) && c != '_' && c != '.' && c != '-')
            return false;
    }
    return text.len > 0 && text.ptr[0] != '-';
}

static void write_text(struct maq_buf *out, struct maq_str text, bool quoted)
{
    if (!quoted && (is_word(text) ||
                    (text.len > 1 && text.ptr[0] == '-' && is_word((struct maq_str){text.ptr + 1, text.len - 1})))) {
        maq_buf_add(out, text.ptr, text.len);
        return;
    }
    maq_buf_addc(out, '"');
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c == '"' || c == '\\')
            maq_buf_addf(out, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            maq_buf_addf(out, "\\x%02X", c);
        else
            maq_buf_addc(out, (char)c);
    }
    maq_buf_addc(out, '"');
}

static void write_node(struct maq_buf *out, const struct maq_node *node)
{
    if (node->kind == MAQ_NODE_SCALAR) {
        write_text(out, node->text, node->quoted);
        return;
    }
    bool map = node->kind == MAQ_NODE_MAP, first = true;
    maq_buf_addc(out, map ? '{' : '[');
    for (const struct maq_node *n = node->first; n; n = n->next) {
        if (maq_node_is_null(n))
            continue;
        maq_buf_adds(out, first ? "" : ", ");
        first = false;
        if (map) {
            write_text(out, n->key, false);
            maq_buf_adds(out, ": ");
        }
        write_node(out, n);
    }
    maq_buf_addc(out, map ? '}' : ']');
}

/* ---- the plan ---- */

static void write_list(struct maq_buf *out, const struct maq_plan *plan, const char *key)
{
    int list = 0;
    while (strcmp(maq_plan_words[list].key, key) != 0)
        list++;
    if (maq_plan_bits(plan, (enum maq_plan_list)list) == 0)
        return;
    maq_buf_addf(out, "  %s: [", key);
    maq_plan_add_words(out, plan, (enum maq_plan_list)list, ", ");
    maq_buf_adds(out, "]\n");
}

static struct maq_str text_of(const struct maq_field *field, const struct maq_plan_doc *doc)
{
    struct maq_str text;
    memcpy(&text, (const char *)doc + field->offset, sizeof text);
    return text;
}

/* The value of a row; texts can be long, the rest has a form of its own. */
static void write_value(struct maq_buf *out, const struct maq_field *field, const struct maq_plan_doc *doc)
{
    char value[64];
    if (field->type == MAQ_TYPE_STR)
        write_text(out, text_of(field, doc), true);
    else
        maq_buf_adds(out, maq_field_format(value, field, doc));
}

static bool differs(const struct maq_field *field, const struct maq_plan_doc *doc, const struct maq_plan_doc *defaults)
{
    char a[64], b[64];
    if (field->type == MAQ_TYPE_STR)
        return !maq_str_eq(text_of(field, doc), text_of(field, defaults));
    return strcmp(maq_field_format(a, field, doc), maq_field_format(b, field, defaults)) != 0;
}

static void write_plan(struct maq_buf *out, const struct maq_loaded_job *open, const struct maq_plan *plan)
{
    struct maq_plan_doc doc = {.plan = *plan}, defaults = {0};
    struct maq_arena arena;
    maq_arena_init(&arena, 0);
    out->failed |= maq_fields_read(&defaults, maq_plan_fields, NULL, NULL, &arena, NULL) != MAQ_OK;
    maq_buf_adds(out, "plan:\n");
    for (const struct maq_field *f = maq_plan_fields; f->type != MAQ_TYPE_END && !out->failed; f++) {
        if (f->type == MAQ_TYPE_NODE) {
            write_list(out, plan, f->key);
        } else if (differs(f, &doc, &defaults) || maq_job_sets(open, f->key) ||
                   maq_job_framework_may_set(open, f->key)) {
            maq_buf_addf(out, "  %s: ", f->key);
            write_value(out, f, &doc);
            maq_buf_addc(out, '\n');
        }
    }
    maq_arena_fini(&arena);
}

char *maq_job_section_text(const struct maq_node *section)
{
    struct maq_buf out;
    maq_buf_init(&out, LARGEST_DOCUMENT);
    write_node(&out, section);
    return maq_buf_take(&out);
}

char *maq_job_text(const struct maq_loaded_job *loaded)
{
    const struct maq_node *root = maq_job_document(loaded);
    struct maq_buf out;
    maq_buf_init(&out, LARGEST_DOCUMENT);
    if (root)
        write_node(&out, root);
    else
        maq_buf_adds(&out, "{}");
    return maq_buf_take(&out);
}

char *maq_job_text_of_deployment(const struct maq_loaded_job *loaded, const struct maq_node *cluster, int32_t tp)
{
    const struct maq_node *root = maq_job_document(loaded), *model = root ? maq_node_peek(root, "model") : NULL;
    struct maq_buf out;
    maq_buf_init(&out, LARGEST_DOCUMENT);
    cluster = cluster ? cluster : root ? maq_node_peek(root, "cluster") : NULL;
    if (model && cluster) {
        maq_buf_adds(&out, "model: ");
        write_node(&out, model);
        maq_buf_adds(&out, "\ncluster: ");
        write_node(&out, cluster);
    }
    maq_buf_addf(&out, "\nplan: {tensor_model_parallel_size: %d}\n", tp);
    return maq_buf_take(&out);
}

/* A part of "h100-sxm:8 x 2 + l40s:8", from 0; empty where there is none. */
static struct maq_str part_of(struct maq_str cluster, uint32_t group)
{
    struct maq_str part = {NULL, 0};
    for (uint32_t i = 0; i <= group; i++) {
        if (!cluster.ptr)
            return (struct maq_str){NULL, 0};
        cluster = maq_str_split(cluster, '+', &part);
    }
    return maq_str_trim(part);
}

/* The list of a document's node groups; NULL: they are named in words, or elsewhere. */
static const struct maq_node *groups_of(const struct maq_node *cluster)
{
    const struct maq_node *groups = cluster->kind == MAQ_NODE_MAP ? maq_node_peek(cluster, "groups") : NULL;
    return groups && groups->kind == MAQ_NODE_SEQ ? groups : NULL;
}

static const struct maq_node *group_at(const struct maq_node *groups, uint32_t group)
{
    const struct maq_node *n = groups->first;
    while (n && group-- > 0)
        n = n->next;
    return n;
}

/* A cluster with one of its node groups; links between groups go with the others. */
static void write_group(struct maq_buf *out, const struct maq_node *cluster, uint32_t group)
{
    const struct maq_node *groups = groups_of(cluster), *one = groups ? group_at(groups, group) : NULL;
    if (!one) {
        write_text(out, part_of(cluster->text, group), true);
        return;
    }
    maq_buf_adds(out, "{groups: [");
    write_node(out, one);
    maq_buf_addc(out, ']');
    for (const struct maq_node *n = cluster->first; n; n = n->next) {
        if (n == groups || maq_str_is(n->key, "links"))
            continue;
        maq_buf_adds(out, ", ");
        write_text(out, n->key, false);
        maq_buf_adds(out, ": ");
        write_node(out, n);
    }
    maq_buf_addc(out, '}');
}

#define ALL_GROUPS UINT32_MAX

static void write_sections(struct maq_buf *out, const struct maq_loaded_job *open, uint32_t group)
{
    static const char *const sections[] = {"name", "model", "cluster", "workload", "framework", "cost"};
    const struct maq_node *root = maq_job_document(open);
    for (size_t i = 0; root && i < sizeof sections / sizeof sections[0]; i++) {
        const struct maq_node *section = maq_node_peek(root, sections[i]);
        if (!section || maq_node_is_null(section))
            continue;
        maq_buf_addf(out, "%s: ", sections[i]);
        if (group != ALL_GROUPS && strcmp(sections[i], "cluster") == 0)
            write_group(out, section, group);
        else
            write_node(out, section);
        maq_buf_addc(out, '\n');
    }
}

static char *write_job(const struct maq_loaded_job *open, const struct maq_plan *plan, uint32_t group)
{
    struct maq_buf out;
    maq_buf_init(&out, LARGEST_DOCUMENT);
    write_sections(&out, open, group);
    write_plan(&out, open, plan);
    return maq_buf_take(&out);
}

char *maq_job_write(const struct maq_loaded_job *open, const struct maq_plan *plan)
{
    return write_job(open, plan, ALL_GROUPS);
}

bool maq_job_names_groups(const struct maq_loaded_job *open)
{
    const struct maq_node *root = maq_job_document(open), *cluster = root ? maq_node_peek(root, "cluster") : NULL;
    uint32_t n = maq_job_get(open)->cluster.n_groups;
    const struct maq_node *groups = cluster ? groups_of(cluster) : NULL;
    if (groups)
        return group_at(groups, n - 1) && !group_at(groups, n);
    return cluster && cluster->kind == MAQ_NODE_SCALAR && part_of(cluster->text, n - 1).len > 0 &&
           part_of(cluster->text, n).len == 0;
}

char *maq_job_write_on(const struct maq_loaded_job *open, const struct maq_plan *plan, uint32_t group)
{
    return write_job(open, plan, maq_job_get(open)->cluster.n_groups > 1 ? group : ALL_GROUPS);
}

char *maq_job_write_around(const struct maq_loaded_job *open)
{
    struct maq_buf out;
    maq_buf_init(&out, LARGEST_DOCUMENT);
    write_sections(&out, open, ALL_GROUPS);
    maq_buf_addf(&out, "plan: {moe_imbalance: %.17g}\n", maq_job_get(open)->plan.imbalance);
    return maq_buf_take(&out);
}
