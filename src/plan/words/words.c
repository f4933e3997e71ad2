/* SPDX-License-Identifier: Apache-2.0 */
/*
 * words.c - a plan in a framework's words, and read back from them: see framework_words.h.
 */
#include "plan/words/words.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "plan/job_build.h"
#include "plan/schedule/schedule.h"

#define LONGEST ((size_t)1 << 20)

struct owner {
    struct maq_framework_words words; /* first member: what is handed out points to the whole */
    struct maq_arena arena;
    struct maq_loaded_job *back;
};

const struct maq_vocabulary *maq_vocabulary_of(int vocabulary)
{
    static const struct maq_vocabulary megatron = {.title = "Megatron-LM"};
    static const struct maq_vocabulary *const all[MAQ_VOCABULARY_COUNT] = {
        [MAQ_VOCABULARY_MEGATRON] = &megatron,
        [MAQ_VOCABULARY_TORCHTITAN] = &maq_words_torchtitan,
        [MAQ_VOCABULARY_FSDP] = &maq_words_fsdp,
        [MAQ_VOCABULARY_MAXTEXT] = &maq_words_maxtext,
    };
    return (unsigned)vocabulary < MAQ_VOCABULARY_COUNT ? all[vocabulary] : NULL;
}

bool maq_words_common_runs(const struct maq_plan *p, const char *key)
{
    bool modules = p->recompute == MAQ_RECOMPUTE_SELECTIVE && p->selective_ac != MAQ_SELECTIVE_AC_OP;
    bool some = p->recompute == MAQ_RECOMPUTE_FULL &&
                (p->recompute_method == MAQ_RECOMPUTE_BLOCK || p->recompute_num_layers > 1);
    const struct {
        const char *key;
        bool runs;
    } rules[] = {
        {"recompute_granularity", !modules && !some},
        {"rank_order", maq_str_is(p->rank_order, "tp-cp-ep-dp-pp")},
        {"cpu_offloading_num_layers", p->offload_layers == 0},
        {"optimizer_offload_fraction", p->optimizer_offload <= 0},
        {"offload_modules", p->offload_modules == 0},
        {"sequence_parallel", p->sequence_parallel != MAQ_OFF},
        {"overlap_moe_expert_parallel_comm", p->overlap_ep != MAQ_ON},
        {"delay_wgrad_compute", !p->delay_wgrad},
    };
    for (size_t i = 0; i < MAQ_COUNT(rules); i++)
        if (strcmp(key, rules[i].key) == 0)
            return rules[i].runs;
    return true;
}

bool maq_words_pytorch_runs(const struct maq_plan *p, const char *key)
{
    if (strcmp(key, "data_parallel_sharding_strategy") == 0)
        return p->sharding == MAQ_SHARDING_PARAMS;
    if (strcmp(key, "cp_comm_type") == 0)
        return p->cp_comm == MAQ_CP_P2P || p->cp_comm == MAQ_CP_ALL_GATHER;
    if (strcmp(key, "pipeline_schedule") == 0)
        return !maq_schedule_is_searched(p->schedule) && p->schedule != MAQ_SCHEDULE_ZB_H1 &&
               p->schedule != MAQ_SCHEDULE_ZB_H2 && p->schedule != MAQ_SCHEDULE_DUALPIPE &&
               p->schedule != MAQ_SCHEDULE_V_MIN && p->schedule != MAQ_SCHEDULE_V_HALF;
    return maq_words_common_runs(p, key);
}

bool maq_framework_runs(int vocabulary, const struct maq_plan *plan, const char *key)
{
    const struct maq_vocabulary *v = maq_vocabulary_of(vocabulary);
    return !v || !v->runs || v->runs(plan, key);
}

static const char *keep(struct owner *o, struct maq_buf *b)
{
    const char *text = b->failed ? NULL : maq_arena_strdup(&o->arena, (struct maq_str){b->ptr, b->len});
    maq_buf_fini(b);
    return text;
}

static enum maq_status write(struct owner *o, const struct maq_vocabulary *v, const struct maq_job *job)
{
    struct maq_buf b;
    maq_buf_init(&b, LONGEST);
    if (v->words) {
        maq_words_write(&b, v, job);
    } else {
        char *arguments = maq_job_megatron_arguments(job);
        b.failed |= !arguments;
        maq_buf_adds(&b, arguments ? arguments : "");
        free(arguments);
    }
    o->words.text = keep(o, &b);
    return o->words.text ? MAQ_OK : MAQ_NO_MEMORY;
}

/* What the words say, over the rest of the document. */
static enum maq_status parse(struct owner *o, const struct maq_loaded_job *open, const struct maq_override *overrides,
                             size_t n, struct maq_diag *diag)
{
    char *around = maq_job_write_around(open);
    enum maq_status status =
        around ? maq_job_parse(&o->back, o->words.title, maq_str_of(around), overrides, n, diag) : MAQ_NO_MEMORY;
    free(around);
    return status;
}

static enum maq_status read_megatron(struct owner *o, const struct maq_loaded_job *open, struct maq_diag *diag)
{
    struct maq_megatron *read;
    MAQ_TRY(maq_words_read_megatron(&read, o->words.text, &o->arena, diag));
    size_t n = 0;
    bool named = maq_job_get(open)->framework.named;
    for (size_t i = 0; i < read->n_overrides; i++) /* a profile of the job's own choice stays: an older Megatron-LM */
        if (!named || strcmp(read->overrides[i].path, "framework") != 0)
            read->overrides[n++] = read->overrides[i];
    enum maq_status status = parse(o, open, read->overrides, n, diag);
    maq_megatron_free(read);
    return status;
}

static enum maq_status read_back(struct owner *o, const struct maq_vocabulary *v, const struct maq_loaded_job *open,
                                 struct maq_diag *diag)
{
    struct maq_words_reader r = {.vocabulary = v, .about = maq_job_get(open), .arena = &o->arena};
    if (!v->words)
        return read_megatron(o, open, diag);
    if (!maq_words_read(&r, maq_str_of(o->words.text)))
        return MAQ_NO_MEMORY;
    return parse(o, open, r.overrides, r.n, diag);
}

static const char *first_fault(struct owner *o, const struct maq_diag *diag)
{
    for (size_t i = 0; i < maq_diag_count(diag); i++)
        if (maq_diag_at(diag, i)->severity == MAQ_ERROR)
            return maq_arena_strdup(&o->arena, maq_diag_at(diag, i)->msg);
    return "it is refused";
}

/* A job that the words do not describe completely may be impossible: that is an answer, no fault of the job. */
static enum maq_status compare(struct owner *o, const struct maq_vocabulary *v, const struct maq_loaded_job *open,
                               const struct maq_job *job)
{
    struct maq_diag *diag = maq_diag_new();
    enum maq_status status = diag ? read_back(o, v, open, diag) : MAQ_NO_MEMORY;
    if (status == MAQ_BAD_INPUT) {
        o->words.refused = first_fault(o, diag);
        status = o->words.refused ? MAQ_OK : MAQ_NO_MEMORY;
    } else if (status == MAQ_OK) {
        o->words.back = o->back;
        status = maq_plan_differences(&o->words.unsaid, &o->words.n_unsaid, job, maq_job_get(o->back), &o->arena)
                     ? MAQ_OK
                     : MAQ_NO_MEMORY;
    }
    maq_diag_free(diag);
    return status;
}

enum maq_status maq_framework_words(struct maq_framework_words **out, const struct maq_loaded_job *open,
                                    const struct maq_job *job, struct maq_diag *diag)
{
    const struct maq_vocabulary *v = maq_vocabulary_of(job->framework.vocabulary);
    struct owner *o = calloc(1, sizeof *o);
    if (!o)
        return maq_no_memory(diag, "the words of a framework");
    maq_arena_init(&o->arena, 0);
    const char *title = v ? v->title : job->framework.name;
    o->words.title = maq_arena_strdup(&o->arena, maq_str_of(title));
    enum maq_status status = o->words.title ? MAQ_OK : MAQ_NO_MEMORY;
    if (status == MAQ_OK && v)
        status = write(o, v, job);
    if (status == MAQ_OK && v)
        status = compare(o, v, open, job);
    if (status == MAQ_OK)
        *out = &o->words;
    else
        maq_framework_words_free(&o->words);
    return status == MAQ_NO_MEMORY ? maq_no_memory(diag, "the words of a framework") : status;
}

void maq_framework_words_free(struct maq_framework_words *words)
{
    if (!words)
        return;
    struct owner *o = (struct owner *)words;
    maq_job_free(o->back);
    maq_arena_fini(&o->arena);
    free(o);
}
