/* SPDX-License-Identifier: Apache-2.0 */
/*
 * words.h - the nouns of a job as short text: "tp8 pp16 vp8 dp128", "2,048 nodes x 8 h100-sxm". For titles and
 * summaries; the exact values are in the JSON.
 */
#ifndef MAQ_REPORT_WORDS_H
#define MAQ_REPORT_WORDS_H

#include "base/str.h"
#include "maquette/job.h"

/* Each appends to b. */
void maq_words_model(struct maq_buf *b, const struct maq_model *model);
void maq_words_cluster(struct maq_buf *b, const struct maq_cluster *cluster);
void maq_words_degrees(struct maq_buf *b, const struct maq_plan *plan, int32_t dp);
void maq_words_methods(struct maq_buf *b, const struct maq_job *job);
void maq_words_workload(struct maq_buf *b, const struct maq_job *job);
/* "64 sequences of 4,096 tokens per step", which the line above begins with. */
void maq_words_batch(struct maq_buf *b, const struct maq_workload *workload);

/* "gqa + moe", "mamba2 / gqa": the mixers of the model's layers, most frequent first. Returns buf. */
const char *maq_words_mixers(char buf[64], const struct maq_model *model);
/* 16,384 for whole numbers below 10^15. Returns buf. */
const char *maq_words_integer(char buf[32], int64_t n);
/* What a noun ends with behind that many: "" or "s". */
static inline const char *maq_words_s(int64_t n)
{
    return n == 1 ? "" : "s";
}
/* "72.1 GiB of 79.2 GiB without cached blocks: it fits in 93 of 100 runs" */
void maq_words_fit(struct maq_buf *b, double needed_bytes, double device_bytes, double fit_probability);
/* "2.4966 s": steps to be compared, all in seconds. Returns buf. */
const char *maq_words_seconds(char buf[32], double s);
/* "400 Gb/s": the way network ports are sold. Returns buf. */
const char *maq_words_bit_rate(char buf[32], double bytes_per_s);

const char *maq_words_sharding(int sharding);                            /* "ZeRO-1" */
const char *maq_words_sharding_cell(int sharding);                       /* in a table: "-" for none */
const char *maq_words_recompute(int recompute);                          /* "selective" */
int32_t maq_words_topk(const struct maq_model *model, int32_t *experts); /* 0 without routed experts */

#endif
