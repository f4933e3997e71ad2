/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interpret.c - the order in which a row is read, and the job that is written from it.
 */
#include "validate/train/interpret.h"

#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "validate/phrase.h"

/* ---- numbers ---- */

/* "2023/2024" is 2024: the later one. */
static int read_year(const struct maq_table_row *row)
{
    struct maq_phrase_match m;
    struct maq_str text = maq_row_text(row, MAQ_COLUMN_year);
    if (maq__phrase_in(text, "#/#", &m))
        return (int)(m.number[1] < 9999 ? m.number[1] : 0);
    return maq__phrase_in(text, "#", &m) && m.number[0] < 9999 ? (int)m.number[0] : 0;
}

static void read_numbers(struct maq_interpretation *in)
{
    struct maq_table_row *r = &in->row;
    in->layers = maq_row_int(r, MAQ_COLUMN_num_layers, 0);
    in->hidden = maq_row_int(r, MAQ_COLUMN_hidden, 0);
    in->ffn = maq_row_int(r, MAQ_COLUMN_ffn, 0);
    in->heads = maq_row_int(r, MAQ_COLUMN_heads, 0);
    in->kv_heads = maq_row_int(r, MAQ_COLUMN_kv_heads, 0);
    in->head_dim = maq_row_int(r, MAQ_COLUMN_head_dim, 0);
    in->vocab = maq_row_int(r, MAQ_COLUMN_vocab, 0);
    in->experts = maq_row_int(r, MAQ_COLUMN_experts, 0);
    in->topk = maq_row_int(r, MAQ_COLUMN_topk, 0);
    in->moe_ffn = maq_row_int(r, MAQ_COLUMN_moe_ffn, 0);
    in->seq = maq_row_int(r, MAQ_COLUMN_seq_len, 0);
    in->mbs = maq_row_int(r, MAQ_COLUMN_mbs, 0);
    in->gbs = maq_row_int(r, MAQ_COLUMN_gbs, 0);
    in->devices = maq_row_int(r, MAQ_COLUMN_num_gpus, 0);
    in->per_node = maq_row_int(r, MAQ_COLUMN_gpus_per_node, 0);
    in->tp = maq_row_int(r, MAQ_COLUMN_tp, 0);
    in->pp = maq_row_int(r, MAQ_COLUMN_pp, 0);
    in->vp = maq_row_int(r, MAQ_COLUMN_vp, 0);
    in->cp = maq_row_int(r, MAQ_COLUMN_cp, 1);
    in->ep = maq_row_int(r, MAQ_COLUMN_ep, 1);
    in->dp = maq_row_int(r, MAQ_COLUMN_dp, 0);
    in->year = read_year(r);
}

/*
 * TP and PP of a row that leaves one or both open. Where dp is stated, the devices say what is left; it is shared out only where one
 * degree alone is open, or where it is 1. Where dp is open too, one stated degree means that the other is not used, and so does sharded or
 * plain data parallelism where both are open.
 */
static void derive_model_parallel(struct maq_interpretation *in)
{
    bool no_tp = in->tp < 1, no_pp = in->pp < 1;
    if ((!no_tp && !no_pp) || in->cp < 1 || in->devices < 1)
        return;
    int64_t known = (no_tp ? 1 : in->tp) * in->cp, rest = 1; /* counts are below 1e9: products of two fit */
    known = known > in->devices ? 0 : known * (no_pp ? 1 : in->pp);
    known = known > in->devices || in->dp > in->devices ? 0 : known * (in->dp > 0 ? in->dp : 1);
    if (in->dp > 0) {
        rest = known > 0 && in->devices % known == 0 ? in->devices / known : 0;
        if (rest < 1 || (rest > 1 && no_tp && no_pp))
            return;
    } else if (no_tp && no_pp && !maq__names_data_parallelism(in)) {
        return;
    }
    if (no_tp)
        in->tp = rest;
    if (no_pp)
        in->pp = rest;
    maq__assume(in, "tp %lld, pp %lld: %s not stated", (long long)in->tp, (long long)in->pp,
                no_tp && no_pp ? "they are"
                : no_tp        ? "tp is"
                               : "pp is");
}

/* Devices over those of a replica. */
static void derive_dp(struct maq_interpretation *in)
{
    if (in->dp != 0 || in->tp < 1 || in->pp < 1 || in->cp < 1 || in->devices < 1)
        return;
    int64_t replica =
        in->tp > in->devices || in->pp > in->devices || in->cp > in->devices ? 0 : in->tp * in->pp * in->cp;
    if (replica > 0 && in->devices % replica == 0) {
        in->dp = in->devices / replica;
        maq__assume(in, "dp %lld: num_gpus over tp x pp x cp", (long long)in->dp);
    }
}

static void check_numbers(struct maq_interpretation *in)
{
    if (in->row.bad >= 0) {
        char show[MAQ_SHOW_SIZE];
        maq__give_up(in, MAQ_VALIDATE_SKIP_UNREADABLE, "%s '%s'", maq_column_name((enum maq_column)in->row.bad),
                     maq_str_show(show, maq_row_text(&in->row, (enum maq_column)in->row.bad)));
    }
    if (in->layers < 1 || in->hidden < 1 || in->heads < 1)
        maq__give_up(in, MAQ_VALIDATE_SKIP_NO_MODEL,
                     "num_layers, hidden and heads are needed, or a model of the catalogue");
    if (in->tp < 1 || in->pp < 1 || in->dp < 1 || in->cp < 1)
        maq__give_up(in, MAQ_VALIDATE_SKIP_NO_MAPPING, "tp and pp are needed, and dp, or num_gpus that they divide");
    if (in->seq < 1 || in->gbs < 1)
        maq__give_up(in, MAQ_VALIDATE_SKIP_NO_BATCH, "seq_len and gbs are needed");
    if (in->devices < 1)
        maq__give_up(in, MAQ_VALIDATE_SKIP_NO_DEVICE, "num_gpus is needed");
}

/* A step of a table has thousands of tasks; one of many millions would take gigabytes to schedule. */
#define MAX_TASKS 4000000

static void check_size(struct maq_interpretation *in)
{
    int64_t microbatches = in->gbs / (in->dp * in->mbs) + 1;
    if (microbatches * in->pp * in->vp * 2 > MAX_TASKS)
        maq__give_up(in, MAQ_VALIDATE_SKIP_REFUSED, "more than %d forward and backward passes in a step", MAX_TASKS);
}

/*
 * A microbatch that is not stated. Of 870 published rows besides vTrain's sweep of one node that state it, 761 have 1, 2, 4 or 8 sequences,
 * without a pipeline one as often as two. Who trains takes one that is fast and fits, so that one sequence is a bad guess.
 */
static void choose_microbatch(struct maq_interpretation *in)
{
    static const int64_t usual[MAQ_INTERPRET_BATCHES] = {1, 2, 4, 8};
    int64_t of_rank = in->gbs / in->dp;
    in->n_batches = 0;
    if (in->mbs >= 1)
        return;
    for (size_t i = 0; i < MAQ_COUNT(usual); i++)
        if (i == 0 || (usual[i] <= of_rank && of_rank % usual[i] == 0 && of_rank / usual[i] >= in->pp))
            in->batches[in->n_batches++] = usual[i];
    in->mbs = in->mbs_chosen > 0 ? in->mbs_chosen : 1;
    if (in->n_batches == 1)
        maq__assume(in, "microbatch of one sequence: mbs is not stated");
    else
        maq__assume(in,
                    "microbatch of %lld sequence%s: mbs is not stated; predicted over 1 to %lld, as far as they fit",
                    (long long)in->mbs, in->mbs == 1 ? "" : "s", (long long)in->batches[in->n_batches - 1]);
    in->n_batches = in->n_batches > 1 ? in->n_batches : 0;
}

void maq_interpret_row(struct maq_interpretation *in)
{
    in->skip = MAQ_VALIDATE_SKIP_NONE;
    in->why = "";
    read_numbers(in);
    maq__interpret_model_name(in);
    derive_model_parallel(in);
    derive_dp(in);
    check_numbers(in);
    if (in->skip != MAQ_VALIDATE_SKIP_NONE)
        return;
    choose_microbatch(in);
    maq__interpret_cluster(in);
    if (in->skip == MAQ_VALIDATE_SKIP_NONE)
        maq__interpret_plan(in);
    if (in->skip == MAQ_VALIDATE_SKIP_NONE)
        check_size(in);
    if (in->skip == MAQ_VALIDATE_SKIP_NONE)
        maq__interpret_model(in);
}

/* ---- the document ---- */

/* Numbers and truths stand as they are, words in quotes. Values come from tables and numbers, never raw from a cell. */
static void add_scalar(struct maq_buf *b, struct maq_str value)
{
    bool plain = value.len > 0;
    for (size_t i = 0; i < value.len; i++)
        plain &= (value.ptr[i] >= '0' && value.ptr[i] <= '9') || value.ptr[i] == '.';
    plain |= maq_str_is(value, "true") || maq_str_is(value, "false");
    maq_buf_addf(b, plain ? "%.*s" : "\"%.*s\"", (int)value.len, value.ptr);
}

/* One of them, or a list: "[attn, mlp]". */
static void add_value(struct maq_buf *b, const char *value)
{
    if (value[0] != '[') {
        add_scalar(b, maq_str_of(value));
        return;
    }
    maq_buf_adds(b, "[");
    for (const char *at = value + 1; *at != '\0' && *at != ']';) {
        size_t length = strcspn(at, ",]"), blank = strspn(at, " ");
        maq_buf_adds(b, at == value + 1 ? "" : ", ");
        add_scalar(b, (struct maq_str){at + blank, length - blank});
        at += length + (at[length] == ',');
    }
    maq_buf_adds(b, "]");
}

static void add_section(struct maq_buf *b, const char *name, const struct maq_settings *s)
{
    maq_buf_addf(b, "\"%s\": {", name);
    for (uint32_t i = 0; i < s->n; i++) {
        maq_buf_addf(b, "%s\"%s\": ", i > 0 ? ", " : "", s->at[i].key);
        add_value(b, s->at[i].value);
    }
    maq_buf_adds(b, "}");
}

const char *maq_interpret_job(struct maq_interpretation *in)
{
    struct maq_buf b;
    maq_buf_init(&b, 65536);
    maq_buf_adds(&b, "{");
    add_section(&b, "model", &in->model);
    maq_buf_addf(&b, ", \"cluster\": \"%s\", ", in->cluster);
    add_section(&b, "plan", &in->plan);
    if (in->framework_settings.n > 0) {
        maq__set(in, &in->framework_settings, "base", "%s", in->profile);
        maq_buf_adds(&b, ", ");
        add_section(&b, "framework", &in->framework_settings);
    } else {
        maq_buf_addf(&b, ", \"framework\": \"%s\"", in->profile);
    }
    maq_buf_addf(&b, ", \"workload\": {\"global_batch_size\": %lld, \"seq_length\": %lld}}", (long long)in->gbs,
                 (long long)in->seq);
    const char *text = b.failed || in->failed ? NULL : maq_arena_strdup(in->arena, (struct maq_str){b.ptr, b.len});
    maq_buf_fini(&b);
    return text;
}

/* ---- memory ---- */

/*
 * Peak memory is what PyTorch handed out (max_memory_allocated) unless the notes speak of reserved memory or
 * nvidia-smi. torchtitan's log prints reserved memory (max_reserved_gib), and so does Megatron-LM's in the place that
 * counts (report_memory: "max reserved"), in units of 1024^2; AutoModel's prints allocated memory over 1024^3.
 * nvidia-smi prints MiB: a figure in GB that was read from it is thousands of MiB. Otherwise GB is 10^9 where nothing
 * says GiB.
 */
enum maq_validate_memory maq_interpret_memory(const struct maq_table_row *row, double *unit_bytes)
{
    struct maq_str notes = maq_row_text(row, MAQ_COLUMN_notes), framework = maq_row_text(row, MAQ_COLUMN_framework);
    bool smi = maq__phrase_in(notes, "nvidia-smi", NULL);
    bool binary = maq__phrase_in(notes, "gib|mib", NULL) ||
                  (!smi && maq__phrase_in(framework, "automodel|torchtitan|megatron-lm", NULL));
    *unit_bytes = binary ? 1073741824.0 : smi ? 1000 * 1048576.0 : 1e9;
    if (smi)
        return MAQ_VALIDATE_TOTAL;
    if (maq__phrase_in(notes, "reserved", NULL))
        return MAQ_VALIDATE_RESERVED;
    if (maq__phrase_in(notes, "allocated", NULL))
        return MAQ_VALIDATE_ALLOCATED;
    return maq__phrase_in(framework, "torchtitan|megatron-lm", NULL) ? MAQ_VALIDATE_RESERVED : MAQ_VALIDATE_ALLOCATED;
}
