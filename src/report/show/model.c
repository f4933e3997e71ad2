/* SPDX-License-Identifier: Apache-2.0 */
/* model.c - models: the list, and one model down to its modules. */
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "maquette/vision.h"
#include "model/load.h"
#include "report/show/show.h"
#include "report/words.h"
#include "spec/catalogue.h"

#define LABEL 14
#define FLOP_SEQ 8192 /* sequence length of the FLOP figure, as in the usual comparisons */

static enum maq_status load(struct maq_model *out, struct maq_show *s, const char *name)
{
    struct maq_node node = {.kind = MAQ_NODE_SCALAR, .text = maq_str_of(name)};
    return maq_model_load(out, &node, s->arena, s->diag);
}

/* --- the list ------------------------------------------------------------------------------------------------- */

static void list_row(struct maq_table *t, const struct maq_model *m)
{
    char n[32], mixers[64];
    int32_t experts, topk = maq_words_topk(m, &experts);
    maq_table_row(t, MAQ_INK_PLAIN);
    maq_table_cell(t, "%s", m->name);
    maq_table_cell(t, "%s", maq_format_count(n, (double)m->params));
    maq_table_cell(t, "%s", m->active_params == m->params ? "" : maq_format_count(n, (double)m->active_params));
    maq_table_cell(t, "%u", m->num_layers);
    maq_table_cell(t, "%s", maq_words_integer(n, m->hidden));
    maq_table_cell(t, "%s", maq_words_mixers(mixers, m));
    if (topk > 0)
        maq_table_cell(t, "%d of %d", topk, experts);
    else
        maq_table_cell(t, "%s", "");
    maq_table_cell(t, "%s", m->max_seq > 0 ? maq_words_integer(n, m->max_seq) : "");
}

static void list_member(struct maq_show *s, struct maq_json map, const struct maq_model *m)
{
    maq_json_model(map, m);
    maq_show_unverified(s, map, LABEL, m->unverified);
}

enum maq_status maq_show_models(struct maq_show *s)
{
    static const struct maq_table_column columns[] = {
        {"model", false, false}, {"parameters", true, false}, {"active", true, false},  {"layers", true, false},
        {"hidden", true, false}, {"mixer", false, false},     {"experts", true, false}, {"context", true, false}};
    struct maq_table t;
    enum maq_status status = MAQ_OK;
    const struct maq_catalogue_entry *e;
    struct maq_json list = s->json ? maq_json_list(*s->json, "models") : (struct maq_json){0};
    maq_table_init(&t, columns, MAQ_COUNT(columns));
    for (size_t i = 0; status == MAQ_OK && (e = maq_catalogue_at("models", i)) != NULL; i++) {
        struct maq_arena_mark mark = maq_arena_mark(s->arena);
        struct maq_model m;
        status = load(&m, s, e->name);
        if (status == MAQ_OK) {
            m.name = e->name;
            if (s->json)
                list_member(s, maq_json_item(list), &m);
            else
                list_row(&t, &m);
        }
        maq_arena_reset(s->arena, mark);
    }
    if (s->page)
        maq_table_print(s->page, &t, 0);
    maq_table_fini(&t);
    return status;
}

/* --- one model ------------------------------------------------------------------------------------------------ */

static const char *shard_name(enum maq_shard shard)
{
    static const char *const names[] = {
        [MAQ_SHARD_SEQUENCE] = "sequence", [MAQ_SHARD_COLUMN] = "column",    [MAQ_SHARD_ROW] = "row",
        [MAQ_SHARD_HEADS] = "heads",       [MAQ_SHARD_VOCAB] = "vocabulary", [MAQ_SHARD_EXPERT] = "expert"};
    return (size_t)shard < MAQ_COUNT(names) ? names[shard] : "?";
}

/* Which keys sparse attention sees, and whose. */
static void add_choice(struct maq_buf *b, const struct maq_attention_geometry *g)
{
    if (g->stride > 0)
        maq_buf_addf(b, ", one of %lld keys", (long long)g->stride);
    if (g->selected > 0)
        maq_buf_addf(b, ", %lld chosen", (long long)g->selected);
    if (g->shares_kv)
        maq_buf_adds(b, ", keys of another layer");
}

/* What the widths do not say: heads, windows, states, experts. Returns buf. */
static const char *geometry(char buf[96], const struct maq_module *m)
{
    struct maq_buf b;
    maq_buf_init(&b, 95);
    switch (m->kind) {
    case MAQ_MODULE_ATTENTION:
        maq_buf_addf(&b, "%d:%d heads of %d", m->u.attention.heads, m->u.attention.kv_heads, m->u.attention.qk_dim);
        if (m->u.attention.v_dim != m->u.attention.qk_dim)
            maq_buf_addf(&b, "/%d", m->u.attention.v_dim);
        if (m->u.attention.window > 0)
            maq_buf_addf(&b, ", window %lld", (long long)m->u.attention.window);
        if (m->u.attention.chunk > 0)
            maq_buf_addf(&b, ", chunk %lld", (long long)m->u.attention.chunk);
        add_choice(&b, &m->u.attention);
        break;
    case MAQ_MODULE_INDEXER:
        maq_buf_addf(&b, "%d heads of %d", m->u.attention.heads, m->u.attention.qk_dim);
        add_choice(&b, &m->u.attention);
        break;
    case MAQ_MODULE_SELECTIVE_SCAN:
        maq_buf_addf(&b, "%d channels, states of %d", m->u.ssm.heads, m->u.ssm.state);
        break;
    case MAQ_MODULE_SSM_SCAN:
    case MAQ_MODULE_DELTA_RULE:
        maq_buf_addf(&b, "%d heads of %d, %d groups of %d", m->u.ssm.heads, m->u.ssm.head_dim, m->u.ssm.groups,
                     m->u.ssm.state);
        break;
    case MAQ_MODULE_ROUTER:
        maq_buf_addf(&b, "%d of %d", m->u.moe.topk, m->u.moe.experts);
        if (m->u.moe.groups > 0)
            maq_buf_addf(&b, " in %d/%d groups", m->u.moe.group_topk, m->u.moe.groups);
        else
            maq_buf_adds(&b, " experts");
        break;
    case MAQ_MODULE_CONV1D:
        maq_buf_addf(&b, "%d taps", m->u.kernel);
        break;
    case MAQ_MODULE_EMBEDDING:
    case MAQ_MODULE_NORM:
    case MAQ_MODULE_LINEAR:
    case MAQ_MODULE_ROPE:
    case MAQ_MODULE_ACTIVATION:
    case MAQ_MODULE_GATE:
    case MAQ_MODULE_RESIDUAL:
    case MAQ_MODULE_LOSS:
    case MAQ_MODULE_DISPATCH:
    case MAQ_MODULE_COMBINE:
    case MAQ_MODULE_EXPERT_LINEAR:
    case MAQ_MODULE_EXPERT_ACTIVATION:
    case MAQ_MODULE_KIND_COUNT:
        if (m->flags & MAQ_MODULE_TIED)
            maq_buf_adds(&b, "tied");
        else if (m->flags & MAQ_MODULE_GATED)
            maq_buf_adds(&b, "gated");
        break;
    }
    size_t n = b.len < 95 ? b.len : 95;
    if (n > 0)
        memcpy(buf, b.ptr, n);
    buf[n] = '\0';
    maq_buf_fini(&b);
    return buf;
}

static void text_layer(struct maq_page *page, const char *title, const struct maq_layer *layer)
{
    static const struct maq_table_column columns[] = {{"module", false, false}, {"in", true, false},
                                                      {"out", true, false},     {"parameters", true, false},
                                                      {"cut", false, false},    {"", false, true}};
    struct maq_table t;
    char n[32], active[32], shape[96];
    maq_page_putf(page, MAQ_INK_HEAD, "\n%s", title);
    maq_page_putf(page, MAQ_INK_PLAIN, ": %s parameters", maq_format_count(n, (double)layer->params));
    if (layer->active_params != layer->params)
        maq_page_putf(page, MAQ_INK_PLAIN, ", %s active", maq_format_count(active, (double)layer->active_params));
    maq_buf_addc(&page->out, '\n');
    maq_table_init(&t, columns, MAQ_COUNT(columns));
    for (uint32_t i = 0; i < layer->n_modules; i++) {
        const struct maq_module *m = &layer->modules[i];
        maq_table_row(&t, MAQ_INK_PLAIN);
        maq_table_cell(&t, "%s", m->name);
        maq_table_cell(&t, "%s", maq_words_integer(n, m->in));
        maq_table_cell(&t, "%s", maq_words_integer(n, m->out));
        maq_table_cell(&t, "%s", m->params > 0 ? maq_words_integer(n, m->params) : "");
        maq_table_cell(&t, "%s", shard_name(m->shard));
        maq_table_cell(&t, "%s", geometry(shape, m));
    }
    maq_table_print(page, &t, 2);
    maq_table_fini(&t);
}

static uint32_t layers_of_kind(const struct maq_model *m, uint32_t kind)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->num_layers; i++)
        n += m->kind_of[i] == kind;
    return n;
}

static void text_vision(struct maq_page *page, const struct maq_vision *v)
{
    char n[32], idle[32], title[96];
    maq_page_putf(page, MAQ_INK_HEAD, "\nvision tower");
    maq_page_putf(page, MAQ_INK_PLAIN, " (%s): %s parameters, beside those above", v->type,
                  maq_format_count(n, (double)v->params));
    if (v->idle_params > 0)
        maq_page_putf(page, MAQ_INK_PLAIN, ", %s of them without use", maq_format_count(idle, (double)v->idle_params));
    maq_page_putf(page, MAQ_INK_PLAIN, "\n  patches of %d x %d pixels, %d x %d of them a token", v->patch, v->patch,
                  v->merge, v->merge);
    if (v->tile_tokens > 0)
        maq_page_putf(page, MAQ_INK_PLAIN, "\n  %lld tokens of %lld patches for %s of %lld x %lld",
                      (long long)v->tile_tokens, (long long)v->tile_patches,
                      v->rule == MAQ_IMAGE_FIXED ? "an image" : "each tile", (long long)v->image_size,
                      (long long)v->image_size);
    if (v->assumed)
        maq_page_putf(page, MAQ_INK_PLAIN, "\n  assumed: %s", v->assumed);
    maq_buf_addc(&page->out, '\n');
    text_layer(page, "patches", &v->model.embedding);
    for (uint32_t k = 0; k < v->model.n_kinds; k++) {
        maq__snprintf(title, sizeof title, "%u x layer of the tower", layers_of_kind(&v->model, k));
        text_layer(page, title, &v->model.kinds[k]);
    }
    text_layer(page, "projector", &v->model.output);
}

static void text_model(struct maq_show *s, const struct maq_model *m)
{
    struct maq_page *page = s->page;
    struct maq_buf line;
    char n[32], f[32];
    maq_buf_init(&line, 1 << 16);
    maq_page_putf(page, MAQ_INK_TITLE, "%.256s\n\n", maq_text_clean(s->arena, m->name));
    maq_words_model(&line, m);
    maq_page_field(page, LABEL, "model", line.ptr ? line.ptr : "");
    maq_buf_fini(&line);
    if (m->source[0])
        maq_page_field(page, LABEL, "source", maq_text_clean(s->arena, m->source));
    maq_show_unverified(s, (struct maq_json){0}, LABEL, m->unverified);
    if (m->max_seq > 0)
        maq_page_field(page, LABEL, "context", maq_words_integer(n, m->max_seq));
    maq_page_putf(page, MAQ_INK_FAINT, "%-*s", LABEL, "weights");
    maq_page_putf(page, MAQ_INK_PLAIN, "%s in bf16\n", maq_format_bytes(n, 2.0 * (double)m->params));
    maq_page_putf(page, MAQ_INK_FAINT, "%-*s", LABEL, "training");
    maq_page_putf(page, MAQ_INK_PLAIN, "%.4g GFLOP per token of a sequence of %s, forward and backward\n",
                  1e-9 * maq_model_flop_per_token(m, FLOP_SEQ, true), maq_words_integer(f, FLOP_SEQ));
    text_layer(page, "embedding", &m->embedding);
    for (uint32_t k = 0; k < m->n_kinds; k++) {
        char title[96];
        const struct maq_layer *l = &m->kinds[k];
        maq__snprintf(title, sizeof title, "%u x layer (%s%s)", layers_of_kind(m, k), l->mixer,
                      l->moe ? ", experts" : "");
        text_layer(page, title, l);
    }
    text_layer(page, "output", &m->output);
    if (m->mtp_layers > 0)
        text_layer(page, "one MTP depth, beside the main model", &m->mtp);
    if (m->vision)
        text_vision(page, m->vision);
    maq_buf_addc(&page->out, '\n');
    maq_page_field(
        page, 0, "",
        "in, out: features per token of the whole model (rows of a table; per expert in experts); cut: how tensor "
        "and expert parallelism divide it; a:b heads: of queries and of keys and values");
}

static void json_layer(struct maq_json map, const struct maq_layer *layer)
{
    char shape[96];
    maq_json_int(map, "parameters", layer->params);
    maq_json_int(map, "active_parameters", layer->active_params);
    struct maq_json list = maq_json_list(map, "modules");
    for (uint32_t i = 0; i < layer->n_modules; i++) {
        const struct maq_module *m = &layer->modules[i];
        struct maq_json row = maq_json_item(list);
        maq_json_text(row, "module", m->name);
        MAQ_JSON_INTS(row, {"in_features", m->in}, {"out_features", m->out}, {"parameters", m->params});
        maq_json_text(row, "cut", shard_name(m->shard));
        if (geometry(shape, m)[0])
            maq_json_text(row, "shape", shape);
    }
}

static void json_kinds(struct maq_json list, const struct maq_model *m)
{
    for (uint32_t k = 0; k < m->n_kinds; k++) {
        struct maq_json kind = maq_json_item(list);
        maq_json_int(kind, "layers", layers_of_kind(m, k));
        maq_json_text(kind, "mixer", m->kinds[k].mixer);
        maq_json_bool(kind, "experts", m->kinds[k].moe);
        json_layer(kind, &m->kinds[k]);
    }
}

static void json_vision(struct maq_json map, const struct maq_vision *v)
{
    maq_json_text(map, "type", v->type);
    MAQ_JSON_INTS(map, {"parameters", v->params}, {"idle_parameters", v->idle_params}, {"patch_size", v->patch},
                  {"merge_size", v->merge}, {"image_size", v->image_size}, {"tile_patches", v->tile_patches},
                  {"tile_tokens", v->tile_tokens}, {"max_tiles", v->most_tiles}, {"min_pixels", v->min_pixels},
                  {"max_pixels", v->max_pixels}, {"embedding_width", v->embedding_width});
    maq_json_text(map, "assumed", v->assumed);
    json_layer(maq_json_map(map, "embedding"), &v->model.embedding);
    json_kinds(maq_json_list(map, "layer_kinds"), &v->model);
    json_layer(maq_json_map(map, "projector"), &v->model.output);
}

static void json_model(struct maq_show *s, struct maq_json map, const struct maq_model *m)
{
    list_member(s, map, m);
    maq_json_real(map, "training_flop_per_token", maq_model_flop_per_token(m, FLOP_SEQ, true));
    maq_json_int(map, "training_flop_sequence_length", FLOP_SEQ);
    json_layer(maq_json_map(map, "embedding"), &m->embedding);
    json_kinds(maq_json_list(map, "layer_kinds"), m);
    json_layer(maq_json_map(map, "output"), &m->output);
    if (m->mtp_layers > 0)
        json_layer(maq_json_map(map, "mtp"), &m->mtp);
    if (m->vision)
        json_vision(maq_json_map(map, "vision"), m->vision);
}

enum maq_status maq_show_model(struct maq_show *s, const char *name)
{
    const struct maq_catalogue_entry *e = maq_model_entry(maq_str_of(name));
    struct maq_model m;
    MAQ_TRY(load(&m, s, name));
    if (e)
        m.name = e->name;
    if (s->json)
        json_model(s, *s->json, &m);
    else
        text_model(s, &m);
    return MAQ_OK;
}
