/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inference.h - a table of measured serving runs: rows, what is made of them, how they are compared.
 */
#ifndef MAQ_VALIDATE_SERVE_INFERENCE_H
#define MAQ_VALIDATE_SERVE_INFERENCE_H

#include "base/arena.h"
#include "maquette/serve.h"
#include "maquette/validate_serve.h"
#include "validate/csv.h"

/* A record of the table as it says it. */
struct maq_inference_row {
    struct maq_str id, source, framework, version, model, gpu, precision, kv_precision, notes;
    int32_t tp, pp, ep, dp, gpus;
    double isl, osl, load;               /* tokens; concurrency or batch, 0 = as many as fit */
    double ttft_s, tpot_s, tokens_per_s; /* 0 = not measured */
    bool total_tokens, input_tokens;     /* that throughput counts */
    const char *kind;                    /* "serving", ...; NULL = none that is compared */
    const char *left_out;                /* why; NULL = it is not */
};

void maq_inference_read(struct maq_inference_row *out, const struct maq_csv *csv, uint32_t row,
                        struct maq_arena *arena);

/* The row with the degrees that its source gave the engine, where they are not those of the table. */
struct maq_inference_row maq_inference_as_started(const struct maq_inference_row *row);
/* How many requests its source sent at once; 0: it does not say. */
uint32_t maq_inference_requests(const struct maq_inference_row *row);
/* Whose scripts made a row: its source, or the one whose runs it has made again. */
struct maq_str maq_inference_source(const struct maq_inference_row *row);
/* Whether its source's script has the engine draft, where the row itself does not say so. */
bool maq_inference_drafts(const struct maq_inference_row *row);
/* Sets what the scripts of the row's source say of its engines and the row itself does not; of a row as it was started. */
void maq_inference_launch(struct maq_serve_options *options, const struct maq_inference_row *row);

/* What the client of the row's source sends. */
struct maq_inference_client {
    double mean,
        spread; /* lengths: drawn evenly from (1 - spread) to (1 + spread) times the mean, a share of the nominal ones */
    uint32_t waves, warmup_waves; /* requests that are measured, and before them, over those under way */
    double temperature, top_p;    /* that it asks for; 0: the likeliest token, all of them */
    uint32_t prompts;   /* that there are, of which a prefix cache knows those that have come; 0: none comes again */
    double expert_skew; /* how unlike experts are in how often its tokens choose them, as in struct maq_serve_options */
};
struct maq_inference_client maq_inference_client_of(const struct maq_inference_row *row);

/* What is predicted of a row; times in seconds, 0 where it was not asked. */
struct maq_inference_prediction {
    double ttft_s, tpot_s, tokens_per_s;
    const char *why_not; /* NULL: it could be predicted */
    const char *device;
};
void maq_inference_predict(struct maq_inference_prediction *out, const struct maq_inference_row *row,
                           struct maq_arena *arena);

#endif
