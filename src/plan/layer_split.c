/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer_split.c - which layers each virtual stage holds.
 *
 * In this order of precedence, as in Megatron-LM (megatron/core/transformer/transformer_block.py and
 * pipeline_parallel_layer_layout.py):
 *   layout "Et*3|(tt|)*29m|L"   E embedding, t layer, m MTP depth, L output; '|' ends a virtual stage; x*n and (..)*n repeat
 *   layout "4,5,5,4"            layers per virtual stage; embedding first, output last
 *   layout "balanced"           as even as it can be: the remainder goes to the middle stages, which hold no embedding or output;
 *                               where MTP is trained, a depth of it counts as two layers (one and an output block) and the output
 *                               block as one, which is the layout that DeepSeek-V3's recipes write out ("Et*4|(t*4|)*14tmL")
 *   first/last stage layers     the rest evenly between them
 *   even                        (layers + embedding? + loss?) must divide by the number of virtual stages
 */
#include <stdio.h>

#include "base/check.h"
#include "base/str.h"
#include "plan/codes.h"
#include "plan/job_build.h"
#include "plan/schedule/schedule.h"

struct split {
    struct maq_virtual_stage *v;
    uint32_t n;
    int32_t layers; /* of the model */
};

static enum maq_status refuse(struct maq_diag *diag, const struct maq_job_places *at, const char *key, const char *hint,
                              const char *msg)
{
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_PLAN_LAYERS, maq_place_of_plan(at, key), hint, "%s", msg);
}

/* ---- Megatron's layout string: a recursive-descent reader over E t m L | ( ) * n ---- */

#define MOST_READ 1000000

struct layout_reader {
    struct maq_str text;
    size_t at;
    struct split *out;
    uint32_t stage;
    uint32_t embeddings, outputs, mtp, read;
    int32_t layers;
    const char *why; /* first fault */
};

/* Repetitions multiply: a short text can mean more than anybody counts to. */
static void layout_count(struct layout_reader *r)
{
    if (++r->read > MOST_READ)
        r->why = "it repeats more than any model has layers";
}

static void layout_put(struct layout_reader *r, char c)
{
    if (c == '|') {
        r->stage++;
        return;
    }
    if (!r->out) /* only counted */
        return;
    if (r->stage >= r->out->n) {
        r->why = "it has more stages than pipeline size times virtual stages";
        return;
    }
    struct maq_virtual_stage *v = &r->out->v[r->stage];
    if (c == 'E') {
        v->embedding = true;
        r->embeddings++;
    } else if (c == 'L') {
        v->output = true;
        r->outputs++;
    } else if (c == 'm') {
        v->mtp = true;
        r->mtp++;
    } else {
        v->n_layers++;
        r->layers++;
    }
}

static uint32_t layout_repeat(struct layout_reader *r)
{
    if (r->at >= r->text.len || r->text.ptr[r->at] != '*')
        return 1;
    uint32_t n = 0;
    size_t digits = 0;
    for (r->at++; r->at < r->text.len && r->text.ptr[r->at] >= '0' && r->text.ptr[r->at] <= '9'; r->at++, digits++)
        if (n < 100000)
            n = n * 10 + (uint32_t)(r->text.ptr[r->at] - '0');
    if (digits == 0 || n == 0 || n >= 100000)
        r->why = "'*' needs a count from 1 to 99999";
    return n;
}

/* Reads items until the end or a ')' at `depth` > 0. */
static void layout_items(struct layout_reader *r, int depth)
{
    while (!r->why && r->at < r->text.len) {
        char c = r->text.ptr[r->at++];
        layout_count(r);
        if (c == ',' || c == ' ')
            continue;
        if (c == ')') {
            if (depth == 0)
                r->why = "')' without '('";
            return;
        }
        if (c == '(') {
            if (depth == 2) {
                r->why = "parentheses are nested too deep";
                return;
            }
            size_t body = r->at;
            layout_items(r, depth + 1);
            if (r->why)
                return;
            uint32_t n = layout_repeat(r);
            size_t end = r->at;
            for (uint32_t i = 1; i < n && !r->why; i++) {
                r->at = body;
                layout_items(r, depth + 1);
            }
            r->at = end;
        } else if (c == 'E' || c == 't' || c == 'm' || c == 'L' || c == '|') {
            uint32_t n = layout_repeat(r);
            for (uint32_t i = 0; i < n && !r->why; i++) {
                layout_count(r);
                layout_put(r, c);
            }
        } else {
            r->why = "only E t m L | ( ) * and digits are known";
        }
    }
    if (depth > 0 && !r->why && (r->at == 0 || r->text.ptr[r->at - 1] != ')'))
        r->why = "'(' without ')'";
}

uint32_t maq_layout_stages(struct maq_str layout)
{
    struct layout_reader r = {.text = layout};
    layout_items(&r, 0);
    return r.why ? 0 : r.stage + 1;
}

static enum maq_status split_by_megatron_layout(struct split *s, const struct maq_job *job,
                                                const struct maq_job_places *at, struct maq_diag *diag)
{
    struct layout_reader r = {.text = job->plan.layout, .out = s};
    layout_items(&r, 0);
    char msg[256];
    const char *hint = "stages are separated by '|': one fewer '|' than virtual stages";
    if (!r.why && r.stage + 1 != s->n)
        snprintf(msg, sizeof msg, "the layout has %u virtual stages, the plan %u", r.stage + 1, s->n);
    else if (!r.why && r.layers != s->layers)
        snprintf(msg, sizeof msg, "the layout has %d layers, the model %d", r.layers, s->layers);
    else if (!r.why && (r.embeddings != 1 || r.outputs != 1 || !s->v[0].embedding || !s->v[s->n - 1].output))
        snprintf(msg, sizeof msg, "the layout needs one E on its first stage and one L on its last");
    else if (!r.why && job->model.mtp_layers > 0 && r.mtp != job->model.mtp_layers)
        snprintf(msg, sizeof msg, "the layout has %u MTP depths, the model %u", r.mtp, job->model.mtp_layers);
    else if (r.why)
        snprintf(msg, sizeof msg, "the layout cannot be read: %s", r.why);
    else
        return MAQ_OK;
    return refuse(diag, at, "pipeline_model_parallel_layout", hint, msg);
}

/* ---- layers from a list, by the counts of the first and the last stage, and evenly ---- */

static enum maq_status split_by_list(struct split *s, const struct maq_job *job, const struct maq_job_places *at,
                                     struct maq_diag *diag)
{
    struct maq_str rest = job->plan.layout, word;
    int64_t total = 0;
    uint32_t i = 0;
    char msg[256];
    for (; rest.ptr && i < s->n; i++) {
        rest = maq_str_split(rest, ',', &word);
        int64_t n;
        if (!maq_str_to_i64(&n, maq_str_trim(word)) || n < 0 || n > s->layers) {
            snprintf(msg, sizeof msg, "'%.*s' is not a number of layers", (int)word.len, word.ptr);
            return refuse(diag, at, "pipeline_model_parallel_layout", "write one count per virtual stage: 4,5,5,4",
                          msg);
        }
        s->v[i].n_layers = (int32_t)n;
        total += n;
    }
    if (i != s->n || rest.ptr) {
        snprintf(msg, sizeof msg, "the layout must have %u counts, one per virtual stage", s->n);
        return refuse(diag, at, "pipeline_model_parallel_layout", NULL, msg);
    }
    if (total != s->layers) {
        snprintf(msg, sizeof msg, "the layout has %lld layers, the model %d", (long long)total, s->layers);
        return refuse(diag, at, "pipeline_model_parallel_layout", NULL, msg);
    }
    return MAQ_OK;
}

static void split_balanced(struct split *s, int32_t mtp_layers)
{
    int32_t n = (int32_t)s->n, end = n > 1 && mtp_layers > 0 ? 2 * mtp_layers + 1 : 0, units = s->layers + end;
    if (units / n < end) { /* more than a stage's share: the others hold the layers */
        n--;
        units = s->layers;
        s->v[n].n_layers = end = 0;
    }
    MAQ_ASSERT(n > 0);
    int32_t base = units / n, extra = units % n, from = (n - extra) / 2; /* the middle stages get one more */
    for (int32_t i = 0; i < n; i++)
        s->v[i].n_layers = base + (i >= from && i < from + extra);
    s->v[n - 1].n_layers -= end;
}

static enum maq_status split_ends(struct split *s, const struct maq_job *job, const struct maq_job_places *at,
                                  struct maq_diag *diag)
{
    int32_t first = job->plan.first_stage_layers, last = job->plan.last_stage_layers;
    int32_t pp = job->plan.pp, vp = (int32_t)s->n / pp;
    int32_t middle = pp - (first > 0) - (last > 0), rest = s->layers - first - last;
    char msg[256];
    if (rest < 0 || (middle > 0 ? rest % (middle * vp) != 0 : rest != 0) || first % vp != 0 || last % vp != 0) {
        snprintf(msg, sizeof msg,
                 "%d layers minus %d first and %d last leave %d, which %d stages of %d chunks cannot share evenly",
                 s->layers, first, last, rest, middle, vp);
        return refuse(diag, at, first > 0 ? "decoder_first_pipeline_num_layers" : "decoder_last_pipeline_num_layers",
                      NULL, msg);
    }
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t stage = i % (uint32_t)pp;
        int32_t of_stage = stage == 0 && first > 0                 ? first
                           : stage == (uint32_t)pp - 1 && last > 0 ? last
                                                                   : rest / (middle > 0 ? middle : 1);
        s->v[i].n_layers = of_stage / vp;
    }
    return MAQ_OK;
}

static enum maq_status split_even(struct split *s, const struct maq_job *job, const struct maq_job_places *at,
                                  struct maq_diag *diag)
{
    int32_t n = (int32_t)s->n, embedding = job->plan.account_for_embedding, loss = job->plan.account_for_loss;
    int32_t units = s->layers + embedding + loss;
    if (units % n != 0 || units / n < embedding || units / n < loss || (n == 1 && units / n < embedding + loss)) {
        char msg[256], hint[256];
        snprintf(msg, sizeof msg,
                 "%d layers%s cannot be shared evenly by %d virtual stages (pipeline size %d x %d chunks)", s->layers,
                 embedding || loss ? " with embedding and loss counted" : "", n, job->plan.pp, n / job->plan.pp);
        snprintf(hint, sizeof hint, "%s",
                 (s->layers + 2) % n == 0
                     ? "set account_for_embedding_in_pipeline_split and account_for_loss_in_pipeline_split"
                     : "set pipeline_model_parallel_layout (\"balanced\" splits as evenly as can be)");
        return refuse(diag, at, "pipeline_model_parallel_size", hint, msg);
    }
    for (int32_t i = 0; i < n; i++)
        s->v[i].n_layers = units / n - (i == 0 ? embedding : 0) - (i == n - 1 ? loss : 0);
    return MAQ_OK;
}

/* Recomputed layers of each stage, where the plan has a list of them. */
static enum maq_status read_redone(struct split *s, const struct maq_job *job, const struct maq_job_places *at,
                                   struct maq_diag *diag)
{
    const char *key = "recompute_num_layers_per_stage";
    struct maq_str rest = job->plan.recompute_stages, word;
    int32_t stage = 0;
    char msg[256];
    for (; rest.ptr && rest.len > 0; stage++) {
        int64_t n;
        rest = maq_str_split(rest, ',', &word);
        if (!maq_str_to_i64(&n, maq_str_trim(word)) || n < 0 || n > s->layers) {
            snprintf(msg, sizeof msg, "'%.*s' is not a number of layers", (int)word.len, word.ptr);
            return refuse(diag, at, key, "write one count per pipeline stage: 4,2,0,0", msg);
        }
        for (uint32_t i = 0; i < s->n; i++)
            if (s->v[i].stage == stage) {
                s->v[i].redone_given = true;
                s->v[i].redone_layers = (int32_t)n;
            }
    }
    if (stage == 0 || stage == job->plan.pp)
        return MAQ_OK;
    snprintf(msg, sizeof msg, "the list has %d counts, the pipeline %d stages", stage, job->plan.pp);
    return refuse(diag, at, key, NULL, msg);
}

static void finish_split(struct split *s, const struct maq_job *job)
{
    int32_t first = 0;
    bool mtp_placed = false;
    for (uint32_t i = 0; i < s->n; i++) {
        s->v[i].first_layer = first;
        first += s->v[i].n_layers;
        mtp_placed |= s->v[i].mtp;
        maq_schedule_locate(&s->v[i].stage, &s->v[i].chunk, job->plan.schedule, (uint32_t)job->plan.pp, i, 0);
    }
    s->v[0].embedding = true;
    s->v[s->n - 1].output = true;
    if (job->model.mtp_layers > 0 && !mtp_placed)
        s->v[s->n - 1].mtp = true;
}

enum maq_status maq_job_split_layers(struct maq_job *job, const struct maq_job_places *at, struct maq_arena *arena,
                                     struct maq_diag *diag)
{
    uint32_t chunks = job->plan.schedule == MAQ_SCHEDULE_DUALPIPE ? 1 : (uint32_t)job->plan.vp;
    struct split s = {.n = (uint32_t)job->plan.pp * chunks, .layers = (int32_t)job->model.num_layers};
    s.v = MAQ_ARENA_NEW(arena, struct maq_virtual_stage, s.n);
    if (!s.v)
        return MAQ_NO_MEMORY;

    struct maq_str layout = job->plan.layout;
    enum maq_status status = MAQ_OK;
    if (maq_str_is(layout, "balanced"))
        split_balanced(&s, (int32_t)job->model.mtp_layers);
    else if (layout.len > 0 && (layout.ptr[0] == 'E' || layout.ptr[0] == '('))
        status = split_by_megatron_layout(&s, job, at, diag);
    else if (layout.len > 0)
        status = split_by_list(&s, job, at, diag);
    else if (job->plan.first_stage_layers > 0 || job->plan.last_stage_layers > 0)
        status = split_ends(&s, job, at, diag);
    else
        status = split_even(&s, job, at, diag);
    if (status != MAQ_OK)
        return status;

    finish_split(&s, job);
    MAQ_TRY(read_redone(&s, job, at, diag));
    job->n_virtual = s.n;
    job->virtual_stages = s.v;
    return MAQ_OK;
}
