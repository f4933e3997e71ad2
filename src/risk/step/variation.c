/* SPDX-License-Identifier: Apache-2.0 */
/*
 * variation.c - reads a variation from the catalogue or a document, with the keys that it leaves out from "default",
 * and restricts it to some of its sources. See variation.h.
 */
#include "risk/step/variation.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/codes.h"
#include "base/str.h"
#include "base/text.h"
#include "risk/codes.h"
#include "risk/step/signature.h"
#include "spec/catalogue.h"
#include "spec/field.h"

struct reader {
    struct maq_variation v;
    struct maq_str title, source;
    struct maq_node *kernels;
};

struct kernel_reader {
    struct maq_str name;
    struct maq_kernel_law law;
    struct maq_node *quantiles;
};

static const struct maq_field kernel_fields[] = {
    MAQ_FIELD_STR(struct kernel_reader, name, "name", .required = true, .doc = "gemm, all_reduce tp, ..."),
    MAQ_FIELD_DOUBLE(struct kernel_reader, law.cv, "cv", .min = 0, .max = 2,
                     .doc = "coefficient of variation of its runs"),
    MAQ_FIELD_DOUBLE(struct kernel_reader, law.slow_share, "slow_share", .min = 0, .max = 0.5,
                     .doc = "share of slow runs"),
    MAQ_FIELD_DOUBLE(struct kernel_reader, law.slow_ratio, "slow_ratio", .def = "1", .min = 1, .max = 1000,
                     .doc = "their time over the median"),
    MAQ_FIELD_NODE(struct kernel_reader, quantiles, "quantiles",
                   .doc = "list of equally likely values over the median, ascending, instead of cv"),
    MAQ_FIELD_END};

#define CV(member, text)                                                                                               \
    MAQ_FIELD_DOUBLE(struct reader, v.member, #member, .min = 0, .max = 2, .doc = "coefficient of variation " text)
#define SHARE(member, text)                                                                                            \
    MAQ_FIELD_DOUBLE(struct reader, v.member, #member, .min = 0, .max = 0.5, .doc = "share of " text)
#define RATIO(member, text)                                                                                            \
    MAQ_FIELD_DOUBLE(struct reader, v.member, #member, .min = 1, .max = 1000, .doc = text " over the median")

static const struct maq_field fields[] = {
    MAQ_FIELD_STR(struct reader, title, "title", .doc = "what it is about"),
    MAQ_FIELD_STR(struct reader, source, "source", .doc = "where the figures come from"),
    CV(gpu_cv, "between GPUs"),
    SHARE(gpu_outlier_share, "GPUs outside of that"),
    RATIO(gpu_outlier_ratio, "their time"),
    CV(gpu_outlier_cv, "of those"),
    CV(node_cv, "between nodes"),
    CV(pass_cv, "of the passes of one GPU"),
    CV(step_cv, "of the step, shared by all GPUs"),
    CV(communication_cv, "of transfers and collectives"),
    SHARE(congested_share, "steps with congested communication"),
    RATIO(congested_ratio, "communication in them"),
    SHARE(spike_share, "rare long steps"),
    RATIO(spike_ratio, "their time"),
    CV(spike_cv, "of those"),
    SHARE(slow_mode_share, "steps in a second mode"),
    RATIO(slow_mode_ratio, "their time"),
    CV(microbatch_cv, "of the work of a microbatch"),
    MAQ_FIELD_DOUBLE(struct reader, v.diurnal_swing, "diurnal_swing", .min = 0, .max = 0.5,
                     .doc = "of the step, from the fastest hour of the day to the slowest"),
    MAQ_FIELD_DOUBLE(struct reader, v.episodes_per_gpu_day, "episodes_per_gpu_day", .min = 0, .max = 10,
                     .doc = "how often a GPU is slow for a while"),
    MAQ_FIELD_QTY(struct reader, v.episode_lasts_s, "episode_lasts", MAQ_DIM_TIME, .min = 0, .max = 1e6,
                  .doc = "mean length of that"),
    RATIO(episode_ratio, "its time meanwhile"),
    MAQ_FIELD_NODE(struct reader, kernels, "kernels", .doc = "list of {name, cv or quantiles, slow_share, slow_ratio}"),
    MAQ_FIELD_END};

/* Their cv is that of the values. */
static enum maq_status read_quantiles(struct maq_kernel_law *law, struct maq_node *list, struct maq_diag *diag)
{
    static const char form[] = "for example [0.97, 0.99, 1.01, 1.06]: from 2 values above 0, ascending";
    if (!list)
        return MAQ_OK;
    bool sound = list->kind == MAQ_NODE_SEQ && list->count >= 2 && list->count <= MAQ_RISK_KERNEL_QUANTILES;
    list->used = true;
    for (struct maq_node *one = list->first; sound && one; one = one->next) {
        double *x = &law->quantile[law->n_quantiles];
        one->used = true;
        sound = one->kind == MAQ_NODE_SCALAR && maq_str_to_double(x, one->text) && *x > 0 && *x <= 1000 &&
                (law->n_quantiles == 0 || *x >= x[-1]);
        law->n_quantiles++;
    }
    if (!sound)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_RISK_KERNEL, list->at, form,
                             "`quantiles` is a list of 2 to %d ascending values", MAQ_RISK_KERNEL_QUANTILES);
    struct maq_law body = maq_law_pool(law->quantile, law->n_quantiles);
    law->cv = sqrt(maq_law_variance(&body)) / maq_law_mean(&body);
    return MAQ_OK;
}

static enum maq_status read_kernel(struct maq_variation *v, struct maq_node *node, struct maq_arena *arena,
                                   struct maq_diag *diag)
{
    static const char hint[] =
        "an operator's kind (gemm, attention, norm), or a collective's with its group: all_reduce tp, "
        "reduce_scatter dp, send_recv pp, all_to_all for every group";
    struct kernel_reader r = {.law = {.slow_ratio = 1}};
    char shown[MAQ_SHOW_SIZE];
    node->used = true;
    if (node->kind != MAQ_NODE_MAP)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_WRONG_TYPE, node->at, NULL,
                             "a kernel is a map with name and cv");
    MAQ_TRY(maq_fields_read_map(&r, kernel_fields, node, "kernel", arena, diag));
    MAQ_TRY(read_quantiles(&r.law, r.quantiles, diag));
    if (r.name.len >= sizeof r.law.name)
        r.name.len = sizeof r.law.name - 1;
    memcpy(r.law.name, r.name.ptr, r.name.len);
    if (!maq_signature_known(r.law.name))
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_RISK_KERNEL, node->at, hint, "there is no kernel '%s'",
                             maq_str_show(shown, r.name));
    for (uint32_t i = 0; i < v->n_kernels; i++)
        if (strcmp(v->kernel[i].name, r.law.name) == 0)
            return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_RISK_KERNEL, node->at, NULL,
                                 "kernel '%s' is there twice", maq_str_show(shown, r.name));
    v->kernel[v->n_kernels++] = r.law;
    return MAQ_OK;
}

static enum maq_status read_kernels(struct maq_variation *v, struct maq_node *list, struct maq_arena *arena,
                                    struct maq_diag *diag)
{
    enum maq_status status = MAQ_OK;
    if (!list)
        return MAQ_OK;
    if (list->kind != MAQ_NODE_SEQ || list->count > MAQ_VARIATION_KERNELS)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_WRONG_TYPE, list->at, NULL,
                             "`kernels` must be a list of at most %u kernels", MAQ_VARIATION_KERNELS);
    list->used = true;
    v->n_kernels = 0;
    for (struct maq_node *one = list->first; one; one = one->next) {
        enum maq_status read = read_kernel(v, one, arena, diag);
        status = status != MAQ_OK ? status : read;
    }
    return status;
}

static enum maq_status read_document(struct reader *r, struct maq_doc *doc, const char *what, struct maq_diag *diag)
{
    if (!doc->root || doc->root->kind != MAQ_NODE_MAP)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_WRONG_TYPE, doc->root ? doc->root->at : (struct maq_span){0},
                             NULL, "%s: a variation is a map", what);
    (void)maq_node_get(doc->root, "aliases");
    enum maq_status status = maq_fields_read(r, fields, doc->root, NULL, &doc->arena, diag);
    static const char *const also[] = {"aliases", NULL};
    enum maq_status keys = maq_fields_check_keys(fields, also, doc->root, "variation", diag);
    enum maq_status kernels = read_kernels(&r->v, r->kernels, &doc->arena, diag);
    return status != MAQ_OK ? status : keys != MAQ_OK ? keys : kernels;
}

static enum maq_status read_entry(struct reader *r, const struct maq_catalogue_entry *entry, struct maq_diag *diag)
{
    struct maq_doc doc;
    enum maq_status status =
        maq_doc_parse(&doc, entry->name, (struct maq_str){entry->text, entry->len}, MAQ_ORIGIN_CATALOGUE, diag);
    if (status == MAQ_OK)
        status = read_document(r, &doc, entry->name, diag);
    maq_doc_fini(&doc);
    return status;
}

/* Neither an entry nor a file. */
static enum maq_status unknown(const char *what, struct maq_diag *diag)
{
    const struct maq_catalogue_entry *entry;
    char shown[MAQ_SHOW_SIZE], hint[256];
    int at = maq__snprintf(hint, sizeof hint, "the path of a document, or one of");
    for (size_t i = 0; (entry = maq_catalogue_at("variability", i)) && at < (int)sizeof hint; i++)
        at += maq__snprintf(hint + at, sizeof hint - (size_t)at, "%s %s", i > 0 ? "," : "", entry->name);
    return maq_diag_fail(MAQ_IO, diag, MAQ_CODE_CANNOT_READ, (struct maq_span){0}, hint,
                         "cannot read '%s': there is no such variation, nor a file of that name",
                         maq_str_show(shown, maq_str_of(what)));
}

enum maq_status maq_variation_load(struct maq_variation *out, const char *what, struct maq_diag *diag)
{
    struct reader r = {0};
    const char *name = what ? what : "default";
    const struct maq_catalogue_entry *entry = maq_catalogue_find("variability", maq_str_of(name)),
                                     *standard = maq_catalogue_find("variability", MAQ_STR("default"));
    MAQ_ASSERT(standard);
    MAQ_TRY(read_entry(&r, standard, diag)); /* for what the others leave out */
    if (entry && entry != standard)
        MAQ_TRY(read_entry(&r, entry, diag));
    if (!entry) {
        struct maq_doc doc;
        if (access(name, F_OK) != 0)
            return unknown(name, diag);
        enum maq_status status = maq_doc_load(&doc, name, MAQ_ORIGIN_DOCUMENT, diag);
        if (status == MAQ_OK)
            status = read_document(&r, &doc, name, diag);
        maq_doc_fini(&doc);
        MAQ_TRY(status);
    }
    *out = r.v;
    return MAQ_OK;
}

const char *maq_source_name(enum maq_source source)
{
    static const char *const names[] = {
#define ROW(id, name, what) [MAQ_SOURCE_##id] = (name),
        MAQ_SOURCE_LIST(ROW)
#undef ROW
    };
    return source < MAQ_SOURCE_COUNT ? names[source] : "?";
}

const char *maq_source_text(enum maq_source source)
{
    static const char *const texts[] = {
#define ROW(id, name, what) [MAQ_SOURCE_##id] = (what),
        MAQ_SOURCE_LIST(ROW)
#undef ROW
    };
    return source < MAQ_SOURCE_COUNT ? texts[source] : "?";
}

bool maq_variation_has(const struct maq_variation *v, enum maq_source source)
{
    if (source == MAQ_SOURCE_KERNEL)
        return v->n_kernels > 0;
    if (source == MAQ_SOURCE_EPISODE)
        return v->episodes_per_gpu_day > 0;
    if (source == MAQ_SOURCE_MODE)
        return v->slow_mode_share > 0;
    return source != MAQ_SOURCE_DIURNAL || v->diurnal_swing > 0;
}

/* A law that does not vary, under its name. */
static struct maq_kernel_law still(const struct maq_kernel_law *law)
{
    struct maq_kernel_law o = {.slow_ratio = 1};
    memcpy(o.name, law->name, sizeof o.name);
    return o;
}

struct maq_variation maq_variation_only(const struct maq_variation *v, uint32_t sources)
{
    struct maq_variation o = *v;
    if (!(sources & 1u << MAQ_SOURCE_GPU))
        o.gpu_cv = o.gpu_outlier_share = 0;
    if (!(sources & 1u << MAQ_SOURCE_NODE))
        o.node_cv = 0;
    if (!(sources & 1u << MAQ_SOURCE_PASS))
        o.pass_cv = 0;
    if (!(sources & 1u << MAQ_SOURCE_MICROBATCH))
        o.microbatch_cv = 0;
    if (!(sources & 1u << MAQ_SOURCE_COMMUNICATION))
        o.communication_cv = 0;
    if (!(sources & 1u << MAQ_SOURCE_CONGESTION))
        o.congested_share = 0;
    for (uint32_t i = 0; i < o.n_kernels && !(sources & 1u << MAQ_SOURCE_KERNEL); i++)
        o.kernel[i] = still(&o.kernel[i]);
    if (!(sources & 1u << MAQ_SOURCE_EPISODE))
        o.episodes_per_gpu_day = 0;
    if (!(sources & 1u << MAQ_SOURCE_DIURNAL))
        o.diurnal_swing = 0;
    if (!(sources & 1u << MAQ_SOURCE_STEP))
        o.step_cv = 0;
    if (!(sources & 1u << MAQ_SOURCE_SPIKE))
        o.spike_share = 0;
    if (!(sources & 1u << MAQ_SOURCE_MODE))
        o.slow_mode_share = 0;
    return o;
}
