/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedule_text.c - the schedule of a row's pipeline, and how many model chunks a stage has.
 *
 * A schedule is named in the notes or in the framework's column: "1F1B-I", "ZB-1p", "DualPipe". Chunks have a column; where it is empty
 * notes may say them ("VPP 5"), or say two numbers that contradict each other, and then both are looked at.
 *
 * Where nobody says it, a row of Megatron's family is looked at with one chunk per stage and with chunks of 4, 2 and 1 layers: what the
 * recipes of NVIDIA use (of 157 published rows of NeMo, Megatron-Bridge and MLPerf that state it, all but one). A
 * prediction of it is as wide as these make it. Other frameworks have one chunk.
 */
#include "validate/train/interpret.h"

#include <string.h>

#include "base/check.h"
#include "validate/phrase.h"

static const enum maq_column prose[] = {MAQ_COLUMN_framework, MAQ_COLUMN_notes, MAQ_COLUMN_overlap_notes};

static const struct named {
    const char *phrase, *schedule, *assumed; /* schedule: word of pipeline_schedule */
    bool chunks_follow;                      /* the schedule says how many chunks a stage has */
} schedules[] = {
    {"dualpipev|dualpipe-v|dualpipe v", "dualpipe-v", NULL, true},
    {"dualpipe", "dualpipe", NULL, true},
    {"zb-v|zbv|zb v", "zb-v", NULL, true},
    {"zb-h1|zbh1", "zb-h1", NULL, true},
    {"zb-h2|zbh2", "zb-h2", NULL, true},
    {"zb-2p|zb2p", "zb-2p", NULL, true},
    {"zb-1p|zb1p", "zb-1p", NULL, true},
    {"zero bubble*&!no zero bubble*|zero-bubble*&!no zero-bubble*", "zb-1p",
     "ZB-1p for the schedule without bubbles: the one with the memory of 1F1B", true},
    {"1f1b-i|1f1b-interleaved|interleaved 1f1b|interleaved-1f1b|interleaved schedule|interleaved pipeline*|interleaved "
     "vpp&!no interleav*",
     "interleaved", NULL, false},
    {"gpipe", "gpipe", NULL, true},
    {"1f1b&!ep all-to-all/1f1b*", "1f1b", NULL, true},
};

static const struct named *find_schedule(const struct maq_interpretation *in)
{
    for (size_t c = 0; c < MAQ_COUNT(prose); c++)
        for (size_t i = 0; i < MAQ_COUNT(schedules); i++)
            if (maq__phrase_in(maq_row_text(&in->row, prose[c]), schedules[i].phrase, NULL))
                return &schedules[i];
    return NULL;
}

/* Once, in order. */
static void add_chunks(struct maq_interpretation *in, int64_t n)
{
    uint32_t at = 0;
    if (n < 1 || n * in->pp > in->layers + 2 || in->n_chunks == MAQ_INTERPRET_CHUNKS)
        return;
    while (at < in->n_chunks && in->chunks[at] < n)
        at++;
    if (at < in->n_chunks && in->chunks[at] == n)
        return;
    memmove(&in->chunks[at + 1], &in->chunks[at], (in->n_chunks - at) * sizeof in->chunks[0]);
    in->chunks[at] = n;
    in->n_chunks++;
}

/* What notes say of chunks, by every word for it. */
static void read_chunks(struct maq_interpretation *in)
{
    static const char *const words[] = {"vpp #",
                                        "vpp=#",
                                        "vpp: #",
                                        "vpp#",
                                        "vp #",
                                        "vp=#",
                                        "virtual_pipeline_model_parallel_size #",
                                        "virtual_pipeline_model_parallel_size=#",
                                        "# model chunks",
                                        "# chunks per stage",
                                        "# virtual stages per"};
    struct maq_phrase_match m;
    for (size_t c = 0; c < MAQ_COUNT(prose); c++)
        for (size_t i = 0; i < MAQ_COUNT(words); i++)
            if (maq__phrase_in(maq_row_text(&in->row, prose[c]), words[i], &m) && m.number[0] < 1e4)
                add_chunks(in, (int64_t)m.number[0]);
}

static void add_recipes(struct maq_interpretation *in, bool interleaved)
{
    static const int64_t layers_of_chunk[] = {4, 2, 1};
    int64_t microbatches = in->gbs / (in->dp * in->mbs), of_stage = (in->layers + in->pp - 1) / in->pp;
    bool megatron = maq__phrase_in(maq_row_text(&in->row, MAQ_COLUMN_framework),
                                   "nemo*&!automodel|megatron*|mcore|mlperf&*nvidia", NULL);
    if (!interleaved)
        add_chunks(in, 1);
    for (size_t i = 0; i < MAQ_COUNT(layers_of_chunk) && (megatron || interleaved); i++)
        if (of_stage % layers_of_chunk[i] == 0 && of_stage > layers_of_chunk[i] && microbatches >= in->pp &&
            microbatches % in->pp == 0)
            add_chunks(in, of_stage / layers_of_chunk[i]);
}

/* Exchanges of experts run under passes of another microbatch, and the pipeline has them: it is interleaved. */
static bool has_virtual_stages(const struct maq_interpretation *in)
{
    int64_t microbatches = in->gbs / (in->dp * in->mbs);
    return maq__phrase_in(maq_row_text(&in->row, MAQ_COLUMN_overlap_notes), MAQ__EP_OVERLAP, NULL) &&
           microbatches >= in->pp && microbatches % in->pp == 0 && in->layers >= 2 * in->pp;
}

static void choose_chunks(struct maq_interpretation *in, bool interleaved)
{
    read_chunks(in);
    bool said = in->n_chunks > 0;
    if (!said)
        add_recipes(in, interleaved || has_virtual_stages(in));
    if (in->n_chunks == 0) /* no number of chunks fits: one, or two where there must be some */
        add_chunks(in, interleaved && in->layers >= 2 * in->pp ? 2 : 1);
    in->vp = in->vp_chosen > 0 ? in->vp_chosen : in->chunks[0];
    if (said && in->n_chunks == 1)
        maq__assume(in, "%lld model chunks per stage: as the notes say", (long long)in->vp);
    else if (in->n_chunks == 1)
        maq__assume(in, "%lld model chunk%s per stage: vp is not stated", (long long)in->vp, in->vp == 1 ? "" : "s");
    else
        maq__assume(in, "%lld model chunk%s per stage: %s; predicted over %lld to %lld", (long long)in->vp,
                    in->vp == 1 ? "" : "s", said ? "the notes contradict themselves" : "vp is not stated",
                    (long long)in->chunks[0], (long long)in->chunks[in->n_chunks - 1]);
    in->n_chunks = in->n_chunks > 1 ? in->n_chunks : 0;
}

void maq__interpret_schedule(struct maq_interpretation *in)
{
    const struct named *named = in->pp > 1 ? find_schedule(in) : NULL;
    bool fixed = named && named->chunks_follow;
    in->n_chunks = 0;
    if (named && (in->vp <= 1 || !fixed) && strcmp(named->schedule, "1f1b") != 0)
        maq__set(in, &in->plan, "pipeline_schedule", "%s", named->schedule);
    if (named && named->assumed)
        maq__assume(in, "%s", named->assumed);
    if (in->vp == 0 && in->pp > 1 && !fixed)
        choose_chunks(in, named != NULL);
    if (in->vp < 1 || in->pp == 1)
        in->vp = 1;
    if (in->pp * in->vp > MAQ_MAX_STAGES)
        maq__give_up(in, MAQ_VALIDATE_SKIP_REFUSED, "%lld x %lld virtual stages", (long long)in->pp, (long long)in->vp);
}
