/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inference_row.c - a record of the table, and why it is left out: suspect or ambiguous rows, runs with speculative decoding that is not
 * recorded, disaggregated ones, continuous-integration runs, impossible arithmetic, and rows that only measure a queue.
 */
#include <string.h>

#include "base/str.h"
#include "validate/phrase.h"
#include "validate/serve/inference.h"

static struct maq_str text(const struct maq_csv *csv, uint32_t row, const char *name)
{
    return maq_str_trim(maq_csv_get(csv, row, maq_csv_column(csv, name)));
}

static double number(const struct maq_csv *csv, uint32_t row, const char *name)
{
    double x = 0;
    return maq_str_to_double(&x, text(csv, row, name)) ? x : 0;
}

static bool says(const struct maq_inference_row *r, const char *phrase)
{
    return maq__phrase_in(r->notes, phrase, NULL);
}

static const char *kind_of(const struct maq_inference_row *r)
{
    static const char *const kinds[] = {"serving", "static_batch", "offline_max_throughput", "serving_saturated"};
    struct maq_str rest = r->notes, word;
    while (rest.ptr) {
        rest = maq_str_split(rest, ';', &word);
        word = maq_str_trim(word);
        if (!maq_str_starts(word, "kind="))
            continue;
        word = (struct maq_str){word.ptr + 5, word.len - 5};
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            if (maq_str_is(word, kinds[i]))
                return kinds[i];
    }
    return NULL;
}

static const char *reason(const struct maq_inference_row *r)
{
    double whole = r->ttft_s + r->tpot_s * (r->osl - 1);
    if (!r->kind)
        return "a kind of run that is not simulated";
    if (says(r, "suspect|*ambiguous"))
        return "suspect, or its parallelism is not known";
    if (says(r, "mtp_*") || says(r, "*mtp_unknown|*mtp_likely|*mtp_unlikely") || maq_inference_drafts(r))
        return "speculative decoding, or it is not known whether";
    if (says(r, "mode=disagg"))
        return "disaggregated";
    if (r->ttft_s <= 0 && r->tpot_s <= 0 && r->tokens_per_s <= 0)
        return "nothing was measured";
    if (r->tp < 1)
        return "its degrees are not said";
    if (r->ep > r->tp * r->dp)
        return "its degrees are not said";
    if (strcmp(r->kind, "serving") == 0 && r->ttft_s > 0 && r->tpot_s > 0 && r->ttft_s > 0.35 * whole)
        return "a queue is most of it";
    if (r->isl <= 0 && strcmp(r->kind, "serving_saturated") != 0)
        return "its lengths are not said";
    return NULL;
}

void maq_inference_read(struct maq_inference_row *out, const struct maq_csv *csv, uint32_t row, struct maq_arena *arena)
{
    (void)arena;
    *out = (struct maq_inference_row){.id = text(csv, row, "id"),
                                      .source = text(csv, row, "source"),
                                      .framework = text(csv, row, "framework"),
                                      .version = text(csv, row, "version"),
                                      .model = text(csv, row, "model"),
                                      .gpu = text(csv, row, "gpu"),
                                      .precision = text(csv, row, "precision"),
                                      .kv_precision = text(csv, row, "kv_precision"),
                                      .notes = text(csv, row, "notes"),
                                      .tp = (int32_t)number(csv, row, "tp"),
                                      .pp = (int32_t)number(csv, row, "pp"),
                                      .ep = (int32_t)number(csv, row, "ep"),
                                      .dp = (int32_t)number(csv, row, "dp"),
                                      .gpus = (int32_t)number(csv, row, "num_gpus"),
                                      .isl = number(csv, row, "isl"),
                                      .osl = number(csv, row, "osl"),
                                      .load = number(csv, row, "concurrency_or_batch"),
                                      .ttft_s = number(csv, row, "ttft_ms") * 1e-3,
                                      .tpot_s = number(csv, row, "tpot_ms") * 1e-3,
                                      .tokens_per_s = number(csv, row, "throughput_tok_s")};
    out->total_tokens = says(out, "tput=total");
    out->input_tokens = says(out, "tput=input");
    out->pp = out->pp > 1 ? out->pp : 1;
    out->dp = out->dp > 1 ? out->dp : 1;
    /* One engine, whose batch is that of max_num_seqs, on GPUs of which only EP is said: vLLM spreads experts over a TP group. */
    if (out->tp == 1 && out->dp == 1 && out->ep > 1 && out->ep == out->gpus)
        out->tp = out->ep;
    if (out->tokens_per_s <= 0)
        out->tokens_per_s = number(csv, row, "throughput_tok_s_gpu") * out->gpus;
    if (out->tp < 1 && out->gpus == 1)
        out->tp = 1;
    out->kind = kind_of(out);
    out->left_out = reason(out);
}
