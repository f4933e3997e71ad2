/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader.h - the state of reading a command line of Megatron-LM: settings so far, and arguments that have a meaning only
 * together.
 *
 *   read_arguments.c   splits words into arguments; an argument that is one setting
 *   settings.c         appends a setting, or a fault of an argument
 *   joint_arguments.c  precision, pipeline stages, dispatchers and the vocabulary, each of several arguments
 */
#ifndef MAQ_PLAN_MEGATRON_READER_H
#define MAQ_PLAN_MEGATRON_READER_H

#include "base/arena.h"
#include "base/str.h"
#include "maquette/job.h"

struct maq_loaded_megatron {
    struct maq_megatron read; /* first member: the result that is handed out points to the whole */
    struct maq_arena arena;
    size_t size;
};

/* Arguments that are kept until the end of the command line. Zero or NULL: not given. */
struct maq_megatron_kept {
    bool bf16, fp16, fsdp, torch_fsdp, offload, no_gelu, no_swiglu, no_dropout, no_rope;
    bool no_modules;                           /* the list of recomputed modules is empty */
    bool chunks;                               /* the number of virtual stages is given */
    bool graphs, external_graphs, graph_scope; /* the last: parts of layers that are graphs are given */
    const char *fp8_format, *fp8_recipe, *fp4_format, *strategy, *dispatcher, *flex, *backend, *tokenizer_type,
        *tokenizer, *layout, *offload_fraction, *graph_impl, *pattern, *vocab_file, *merge_file;
    bool zero_bubble, zero_bubble_v, post_validation;
    const char *zero_bubble_pending, *zero_bubble_v_memory;
    int64_t layers, tp, pp, layers_per_chunk, multiple, vocabulary, padded;
};

struct maq_megatron_reader {
    struct maq_loaded_megatron *loaded;
    bool open; /* an open job: settings that a search chooses are left out */
    struct maq_diag *diag;
    struct maq_buf unknown;
    struct maq_span first_unknown;
    enum maq_status status;
    struct maq_megatron_kept kept;
    const char *const *words;      /* all of the line, */
    const struct maq_span *places; /* and where each stands; NULL: on a command line, which has no places */
    size_t n_words;
};

/* One argument: its name without dashes, and the words behind it. */
struct maq_megatron_argument {
    const char *flag; /* as it is written, for messages */
    struct maq_str name;
    const char *const *words;
    size_t n;
};

/* maq_megatron_read() of words that stand in a file: faults are at places[i] of words[i]. places NULL: nowhere. */
enum maq_status maq__megatron_read_placed(struct maq_megatron **out, const char *const *words,
                                          const struct maq_span *places, size_t n_words, bool open,
                                          struct maq_diag *diag);
/* Where an argument stands; nowhere when it is not known. */
struct maq_span maq__megatron_place(const struct maq_megatron_reader *r, const char *flag);

/* Is `name` this key, '-' and '_' alike? */
bool maq__megatron_same(struct maq_str name, const char *key);
/* The hint may be NULL. */
void maq__megatron_bad(struct maq_megatron_reader *r, const char *flag, const char *why, const char *hint);
void maq__megatron_no_memory(struct maq_megatron_reader *r);
/* `value` lives as long as the loaded; NULL counts as out of memory. */
void maq__megatron_set(struct maq_megatron_reader *r, const char *flag, const char *path, const char *value);

/* Keeps an argument for maq__megatron_conclude(); false: it is not one of those. */
bool maq__megatron_keep(struct maq_megatron_reader *r, const struct maq_megatron_argument *a);
/* Adds the settings that follow from the kept arguments, at most 32. */
void maq__megatron_conclude(struct maq_megatron_reader *r);
/* Names of arguments that are kept, in turn; NULL at the end. */
const char *maq__megatron_kept_name(size_t i);

#endif
