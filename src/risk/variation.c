/* variation.c - what varies in a training step: see variation.h. */
#include "risk/variation.h"

#include "base/check.h"
#include "base/codes.h"
#include "base/str.h"
#include "base/text.h"
#include "risk/codes.h"
#include "spec/catalogue.h"
#include "spec/field.h"

struct reader {
    struct maq_variation v;
    struct maq_str title, source;
};

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
    CV(microbatch_cv, "of the work of a microbatch"),
    MAQ_FIELD_END};

static enum maq_status read_document(struct reader *r, struct maq_doc *doc, const char *what, struct maq_diag *diag)
{
    if (!doc->root || doc->root->kind != MAQ_NODE_MAP)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_WRONG_TYPE, doc->root ? doc->root->at : (struct maq_span){0},
                             NULL, "%s: a variation is a map", what);
    (void)maq_node_get(doc->root, "aliases");
    enum maq_status status = maq_fields_read(r, fields, doc->root, NULL, &doc->arena, diag);
    static const char *const also[] = {"aliases", NULL};
    enum maq_status keys = maq_fields_check_keys(fields, also, doc->root, "variation", diag);
    return status != MAQ_OK ? status : keys;
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

enum maq_status maq_variation_load(struct maq_variation *out, const char *what, struct maq_diag *diag)
{
    struct reader r = {0};
    struct maq_str name = maq_str_of(what ? what : "default");
    const struct maq_catalogue_entry *entry = maq_catalogue_find("variability", name),
                                     *standard = maq_catalogue_find("variability", MAQ_STR("default"));
    MAQ_ASSERT(standard);
    MAQ_TRY(read_entry(&r, entry ? entry : standard, diag));
    if (!entry) {
        struct maq_doc doc;
        enum maq_status status = maq_doc_load(&doc, what, MAQ_ORIGIN_DOCUMENT, diag);
        if (status == MAQ_OK)
            status = read_document(&r, &doc, what, diag);
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
    if (!(sources & 1u << MAQ_SOURCE_STEP))
        o.step_cv = 0;
    if (!(sources & 1u << MAQ_SOURCE_SPIKE))
        o.spike_share = 0;
    return o;
}
