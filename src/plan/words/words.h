/* SPDX-License-Identifier: Apache-2.0 */
/*
 * words.h - a framework's own settings as a table that is used in both directions: a plan is written by it, and what was
 * written is read by it.
 *
 *   words.c         a plan in words, read back and compared
 *   vocabulary.c    rows of a table: written, and read
 *   plan_differences.c  settings in which two jobs differ
 *   torchtitan.c, pytorch_fsdp.c, maxtext.c   their tables
 *   megatron.c      Megatron-LM, whose arguments have a writer and a reader of their own (plan/megatron)
 *
 * A row is a word with what it is of a plan. Where a word without a value means something (`def`), the writer leaves that
 * out and the reader puts it in. A few words say something only together (degrees of a mesh, precision of two options):
 * those have functions, one for each direction.
 */
#ifndef MAQ_PLAN_WORDS_WORDS_H
#define MAQ_PLAN_WORDS_WORDS_H

#include "base/arena.h"
#include "base/str.h"
#include "maquette/framework_words.h"

struct maq_words_reader;

struct maq_word {
    const char *word; /* "parallelism.tensor_parallel_degree"; NULL: no word, the framework always has `def` */
    const char *path; /* "plan.tensor_model_parallel_size"; NULL: of several settings */
    const char *def;  /* the framework's text where the word is missing; NULL: then nothing is said */
    /* "uniform=full|none=none": texts of a plan and what the framework calls them; NULL: the same. Others have no words */
    const char *values;
    /* Of a row without a path. Adds the text of the word, nothing where there is none to say. */
    void (*write)(struct maq_buf *out, const struct maq_word *row, const struct maq_job *job);
    /* Sets what the text says: `text` is given or `def`. Called once every word is known. */
    void (*read)(struct maq_words_reader *r, const struct maq_word *row, struct maq_str text);
};

/* A word that is a setting by itself; the same with pairs of texts; one that is said and read by functions; the end. */
#define MAQ_WORD(word_, path_, def_)                                                                                   \
    {                                                                                                                  \
        .word = (word_), .path = (path_), .def = (def_)                                                                \
    }
#define MAQ_WORD_MAPPED(word_, path_, def_, values_)                                                                   \
    {                                                                                                                  \
        .word = (word_), .path = (path_), .def = (def_), .values = (values_)                                           \
    }
#define MAQ_WORD_JOINT(word_, def_, ...)                                                                               \
    {                                                                                                                  \
        .word = (word_), .def = (def_), __VA_ARGS__                                                                    \
    }
#define MAQ_WORD_END                                                                                                   \
    {                                                                                                                  \
        .word = NULL                                                                                                   \
    }

/* The text of a word that is a switch: the word stands alone on its line. */
#define MAQ_WORD_SWITCH "@"

/* The words of a framework. */
struct maq_vocabulary {
    const char *title;            /* "torchtitan" */
    const char *before, *between; /* a line is `before` word `between` text */
    const struct maq_word *words; /* ends with a row without word and path */
    /* NULL: anything. Whether the framework runs a value of a key, which `plan` has: what a search leaves out where not */
    bool (*runs)(const struct maq_plan *plan, const char *key);
};

/* By enum maq_framework_vocabulary; NULL: no words are known. */
const struct maq_vocabulary *maq_vocabulary_of(int vocabulary);
extern const struct maq_vocabulary maq_words_torchtitan, maq_words_fsdp, maq_words_maxtext;

/* For `runs`: false for what Megatron Core alone has, of recomputation, offloading, orders of ranks and the like. */
bool maq_words_common_runs(const struct maq_plan *plan, const char *key);
/* The same for what is built on PyTorch's FSDP2, context parallelism and pipelines. */
bool maq_words_pytorch_runs(const struct maq_plan *plan, const char *key);

/* ---- vocabulary.c ---- */

/* What words say of a job, as overrides of a document. */
struct maq_words_reader {
    const struct maq_vocabulary *vocabulary;
    const struct maq_job *about; /* of which model, cluster and workload count */
    struct maq_arena *arena;     /* of all text */
    struct maq_str *texts;       /* [rows] given, `ptr` NULL where not */
    struct maq_override *overrides;
    size_t n, size;
    const char *word; /* whose row is read: the flag of what it sets; NULL = of no word */
    bool failed;      /* out of memory */
};

/* The text of one word into an empty buffer; nothing where the framework does so without it. */
void maq_word_write(struct maq_buf *out, const struct maq_word *row, const struct maq_job *job);
/* The plan of a completed job, one word a line. */
void maq_words_write(struct maq_buf *out, const struct maq_vocabulary *v, const struct maq_job *job);
/* The other way round: fills overrides, for a job of this model, cluster and workload. Lines that are no words are left out. */
bool maq_words_read(struct maq_words_reader *r, struct maq_str text);

/* For rows: the text of another word, given or its default; a number of it, `otherwise` where it is none. */
struct maq_str maq_words_text(const struct maq_words_reader *r, const char *word);
int64_t maq_words_number(const struct maq_words_reader *r, const char *word, int64_t otherwise);
/* Sets a key of a document; `value` is copied. */
void maq_words_set(struct maq_words_reader *r, const char *path, const char *value);
void maq_words_set_number(struct maq_words_reader *r, const char *path, int64_t value);

/* ---- plan_differences.c ---- */

/*
 * Settings that `own` and `other` have otherwise, in the order of the plan's keys: what has an effect in one of the two. They
 * are jobs of one model, cluster and workload. Text lives in `arena`; false when out of memory.
 */
bool maq_plan_differences(const struct maq_unsaid **out, uint32_t *n, const struct maq_job *own,
                          const struct maq_job *other, struct maq_arena *arena);

/* ---- megatron.c ---- */

/* Megatron-LM's arguments, read as a script's command line is. What is set points into `arena` and *read (the caller's). */
enum maq_status maq_words_read_megatron(struct maq_megatron **read, const char *text, struct maq_arena *arena,
                                        struct maq_diag *diag);

#endif
