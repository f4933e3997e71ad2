/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader.h - a framework's file as a table of its keys.
 *
 * A form (deepspeed.c is one) is a table with a row for each key, a function for what follows from several of them, and for some forms
 * one that writes such a file (writer.h). The reader
 * walks the file once: a key with a row is done with, all below it too; a map that has rows below it is walked; any other key is
 * unknown. What the keys say is written into the job document, at the place that the user's file has it.
 *
 *   detect.c     which form a file has; files that name others
 *   reader.c     the walk, and lookups for what several keys say together
 *   job_settings.c   values in the job document
 */
#ifndef MAQ_PLAN_FRAMEWORK_FILES_READER_H
#define MAQ_PLAN_FRAMEWORK_FILES_READER_H

#include "base/str.h"
#include "plan/codes.h"
#include "plan/framework_files/framework_files.h"
#include "plan/framework_files/writer.h"
#include "spec/doc.h"

enum maq_file_take {
    MAQ_FILE_SETS,    /* a setting of a job */
    MAQ_FILE_JOINT,   /* something together with others: conclude() asks for it */
    MAQ_FILE_NOTHING, /* nothing of time and memory */
    MAQ_FILE_REFUSED  /* something that nothing here stands for, unless it is off */
};

struct maq_file_key {
    const char *key; /* "zero_optimization.stage"; '*' at the end stands for any ending */
    enum maq_file_take take;
    const char *to; /* SETS: "plan.micro_batch_size" */
    const char *
        values; /* SETS: "theirs=ours|...", NULL: the text itself; nothing behind '=': sets nothing. REFUSED: what is off besides */
    const char *why; /* REFUSED: what it would be, as the end of "... is not modelled: " */
};

#define MAQ_FILE_SET(key_, to_)                                                                                        \
    {                                                                                                                  \
        .key = (key_), .take = MAQ_FILE_SETS, .to = (to_)                                                              \
    }
#define MAQ_FILE_MAP(key_, to_, values_)                                                                               \
    {                                                                                                                  \
        .key = (key_), .take = MAQ_FILE_SETS, .to = (to_), .values = (values_)                                         \
    }
#define MAQ_FILE_KEEP(key_)                                                                                            \
    {                                                                                                                  \
        .key = (key_), .take = MAQ_FILE_JOINT                                                                          \
    }
#define MAQ_FILE_IDLE(key_)                                                                                            \
    {                                                                                                                  \
        .key = (key_), .take = MAQ_FILE_NOTHING                                                                        \
    }
#define MAQ_FILE_REFUSE(key_, why_)                                                                                    \
    {                                                                                                                  \
        .key = (key_), .take = MAQ_FILE_REFUSED, .why = (why_)                                                         \
    }
#define MAQ_FILE_REFUSE_BUT(key_, values_, why_)                                                                       \
    {                                                                                                                  \
        .key = (key_), .take = MAQ_FILE_REFUSED, .values = (values_), .why = (why_)                                    \
    }
#define MAQ_FILE_END                                                                                                   \
    {                                                                                                                  \
        .key = NULL                                                                                                    \
    }

struct maq_file_reader;
struct maq_words_reader;

struct maq_file_form {
    const char *title;       /* "DeepSpeed's configuration" */
    const char *last_key_of; /* whose loader takes the last of a key that is given twice; NULL: an error */
    const char *told_by;     /* "a,b|c": top-level keys; all of one of these lists are there */
    const struct maq_file_key *keys, *more; /* more: rows behind the form's own; NULL: none */
    bool (*knows)(const char *key);         /* NULL: no other keys. Whether conclude() asks for a key that has no row */
    /* May be NULL. What follows from several keys; before the settings of single ones, which win. */
    void (*conclude)(struct maq_file_reader *r);
    /* May be NULL, where such files are not written. */
    void (*write)(struct maq_file_writer *w, const struct maq_job *job);
    const char *name; /* by which a file is asked for: "deepspeed" */
    enum maq_file_syntax syntax;
    unsigned says; /* bits of enum maq_file_says */
};

struct maq_file_reader {
    const struct maq_file_form *form;
    struct maq_node *root; /* of the file */
    const char *path;      /* of the file; NULL: text */
    struct maq_doc *job;   /* what is made */
    const char *model;     /* what flags say of the model, */
    const char *cluster;   /* and of the cluster; NULL: nothing */
    const char *framework; /* profile of the outermost form: a file beside it does not choose another */
    bool open;             /* a search decides the rest */
    bool beside;           /* named by another file, which goes on to say the rest */
    uint32_t depth;        /* of files that name files */
    struct maq_diag *diag;
    struct maq_buf unknown; /* names of keys without a row, */
    struct maq_span first_unknown;
    enum maq_status status;
};

/* ---- the file (reader.c) ---- */

/* The value of a key, "a.b.c"; NULL when it is absent, null, or DeepSpeed's "auto". */
const struct maq_node *maq_file_get(const struct maq_file_reader *r, const char *key);
/* The same as text; `otherwise` (may be NULL) when it is absent or no scalar. */
struct maq_str maq_file_text(const struct maq_file_reader *r, const char *key, const char *otherwise);
bool maq_file_is(const struct maq_file_reader *r, const char *key, const char *text); /* letters of either case */
/* true, yes, on and 1; `otherwise` when it is absent. */
bool maq_file_true(const struct maq_file_reader *r, const char *key, bool otherwise);
/* A whole number, 5e8 among them; `otherwise` when it is absent or none. */
int64_t maq_file_number(const struct maq_file_reader *r, const char *key, int64_t otherwise);
/* Whether a switch is on, or a map asks for anything: its own `enabled` or one below it. */
bool maq_file_asks(const struct maq_node *node, const char *off);

/* An error at a value, or at the file when it is NULL. */
void maq_file_fault(struct maq_file_reader *r, const struct maq_node *at, const char *hint, const char *fmt, ...)
    MAQ_PRINTF(4, 5);
void maq_file_no_memory(struct maq_file_reader *r);

/* Walks the file by the form's table and concludes. */
void maq_file_walk(struct maq_file_reader *r);

/* Reads another file that this one names at `at`, by a form of its own. */
void maq_file_beside(struct maq_file_reader *r, const struct maq_node *at); /* detect.c */

/* ---- the job (job_settings.c) ---- */

/*
 * A setting of the job, "plan.tensor_model_parallel_size", by what stands at `from`; NULL: by what the framework does where nothing is
 * written, which anything written replaces. A value that begins with '[' or '{' is a list or a map. NULL: out of memory.
 */
void maq_file_set(struct maq_file_reader *r, const struct maq_node *from, const char *path, const char *value);
void maq_file_set_number(struct maq_file_reader *r, const struct maq_node *from, const char *path, int64_t value);
/* A list of words as one text with commas between them ("q_proj,v_proj"); a text as it is. */
void maq_file_set_words(struct maq_file_reader *r, const struct maq_node *from, const char *path);
/* The settings that lines of a framework's words say, each at the key of its word; *lines is over. False: out of memory, which is said. */
bool maq_file_set_lines(struct maq_file_reader *r, struct maq_words_reader *words, struct maq_buf *lines);
/* What the job has there by now; NULL: nothing. */
const struct maq_node *maq_file_job_value(const struct maq_file_reader *r, const char *path);
/* The profile of the framework, unless an outer file has chosen one; then mechanisms of it: "framework.pass_synchronizes". */
void maq_file_framework(struct maq_file_reader *r, const char *name);
/* Width and number of layers of the job's model; false where it cannot be known yet. */
bool maq_file_model_shape(const struct maq_file_reader *r, int64_t *hidden, int64_t *layers);

/* ---- forms ---- */

/* All of them, NULL at the end; a file with the keys of two is of the first. detect.c */
extern const struct maq_file_form *const maq_file_forms[];

extern const struct maq_file_form maq_file_deepspeed, maq_file_torchtitan, maq_file_megatron, maq_file_nanotron,
    maq_file_nemo, maq_file_nemo2, maq_file_litgpt, maq_file_lightning, maq_file_maxtext;

#endif
