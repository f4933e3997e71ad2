/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interpret.h - from a row to a job.
 *
 * The row's own numbers are taken as they are. What it says in prose is read by tables of phrases (plan_rules.c); what it does not say is
 * decided by the profile of its framework in that year, then by defaults. Every decision that is a guess is remembered in words.
 */
#ifndef MAQ_VALIDATE_TRAIN_INTERPRET_H
#define MAQ_VALIDATE_TRAIN_INTERPRET_H

#include "base/str.h"
#include "maquette/validate.h"
#include "plan/framework.h"
#include "validate/train/row.h"

#define MAQ_INTERPRET_SETTINGS 64
#define MAQ_INTERPRET_ASSUMED 48
#define MAQ_INTERPRET_CHUNKS 8
#define MAQ_INTERPRET_BATCHES 4

/* A row that says so runs exchanges of experts under passes of another microbatch. */
#define MAQ__EP_OVERLAP "ep all-to-all/1f1b overlap on|ep comm overlap"

/* One `key: value` of a section of the job; both live in the interpretation's arena or are static. */
struct maq_setting {
    const char *key, *value;
};

struct maq_settings {
    uint32_t n;
    struct maq_setting at[MAQ_INTERPRET_SETTINGS];
};

struct maq_interpretation {
    struct maq_table_row row;
    struct maq_arena *arena; /* of what outlives the row: assumptions, job text, reasons */
    bool failed;             /* out of memory */

    /* numbers of the row, defaults filled in */
    int64_t layers, hidden, ffn, heads, kv_heads, head_dim, vocab, experts, topk, moe_ffn;
    int64_t seq, gbs, mbs, devices, per_node, nodes;
    int64_t tp, pp, vp, cp, ep, dp;
    int year; /* 0 = not stated */
    int arch; /* enum maq_device_arch */

    struct maq_settings model, plan, framework_settings; /* the last: beside the profile */
    const char *profile; /* of its framework, in the catalogue; the likeliest if unknown */
    struct maq_framework framework;
    const struct maq_framework_plan *profile_plan;
    const char *cluster; /* one-line form */

    /* model chunks per stage that the row may have had, where it does not say: ascending; vp is one of them. n_chunks 0: it is said */
    int64_t chunks[MAQ_INTERPRET_CHUNKS], vp_chosen; /* vp_chosen: the one to take, 0 = none chosen yet */
    uint32_t n_chunks;
    /* sequences of a microbatch that it may have had, in the same way; what does not fit in memory is among them */
    int64_t batches[MAQ_INTERPRET_BATCHES], mbs_chosen;
    uint32_t n_batches;

    const char *assumed[MAQ_INTERPRET_ASSUMED];
    uint32_t n_assumed;
    enum maq_validate_skip skip;
    const char *why;
};

/* Fills everything; in->skip says whether there is a job. */
void maq_interpret_row(struct maq_interpretation *in);

/* The job as a document (one line of JSON, which is YAML); NULL when out of memory. Lives in in->arena. */
const char *maq_interpret_job(struct maq_interpretation *in);

/* Which figure the row's peak_mem_gb is, and its unit in bytes. */
enum maq_validate_memory maq_interpret_memory(const struct maq_table_row *row, double *unit_bytes);

/* --- parts: cluster_text.c, model_family.c, plan_text.c --- */
void maq__interpret_cluster(struct maq_interpretation *in);
/* Dimensions of the catalogue's model where a row has a name and none of its own; before anything asks for them. */
void maq__interpret_model_name(struct maq_interpretation *in);
void maq__interpret_model(struct maq_interpretation *in);
void maq__interpret_plan(struct maq_interpretation *in);

/* How much of a network prose states; what is not stated is a guess. */
enum maq_network_guess {
    MAQ_NETWORK_STATED,
    MAQ_NETWORK_PORT_EACH, /* the rate of a node was shared out, a port per device */
    MAQ_NETWORK_RATE_EACH, /* a rate alone was taken for a port per device */
    MAQ_NETWORK_USUAL      /* nothing: what the device is usually sold with */
};
/* Appends ", nics ..." to a cluster's one-line form, or nothing; gbps and kind ("") are what the note has. cluster_text.c */
enum maq_network_guess maq__network_text(struct maq_buf *b, double *gbps, const char **kind, struct maq_str note,
                                         int64_t per_node);

/* Adds a guess, or gives the row up (the first reason stays). */
void maq__assume(struct maq_interpretation *in, const char *fmt, ...) MAQ_PRINTF(2, 3);
void maq__give_up(struct maq_interpretation *in, enum maq_validate_skip skip, const char *fmt, ...) MAQ_PRINTF(3, 4);

/* Adds key: value unless the key is there; false when it is. */
bool maq__set(struct maq_interpretation *in, struct maq_settings *to, const char *key, const char *fmt, ...)
    MAQ_PRINTF(4, 5);
const char *maq__setting(const struct maq_settings *of, const char *key); /* NULL when there is none */
void maq__unset(struct maq_settings *of, const char *key);

/* Schedule and model chunks of a pipeline, as columns and notes name them. schedule_text.c */
void maq__interpret_schedule(struct maq_interpretation *in);

/* plan_rules.c: runs the tables of phrases over the row; the profile comes between them. */
void maq__apply_text_rules(struct maq_interpretation *in);
/* Remarks that a cell about the plan says something that no rule knows. */
void maq__note_unread(struct maq_interpretation *in);
/* Whether the row is about FSDP, ZeRO-2 or 3, or DDP: plans in which models are not usually cut otherwise. */
bool maq__names_data_parallelism(const struct maq_interpretation *in);
void maq__choose_profile(struct maq_interpretation *in);
void maq__apply_default_rules(struct maq_interpretation *in);
#endif
