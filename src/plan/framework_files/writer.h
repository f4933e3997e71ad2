/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.h - a job as a framework's configuration file: the other direction of reader.h. A form that is written has a function beside the
 * one that reads it, which puts the settings that its file has keys for.
 *
 *   round_trip.c  the file, read back and compared with the job
 *   writer.c      keys and values as JSON, YAML or TOML
 *
 * A form writes what it can and need not know all that it cannot: what the file leaves out is found by reading it back. It refuses by itself
 * only what the framework would refuse, or would read as something else.
 */
#ifndef MAQ_PLAN_FRAMEWORK_FILES_WRITER_H
#define MAQ_PLAN_FRAMEWORK_FILES_WRITER_H

#include "base/text.h"
#include "maquette/job.h"

struct maq_job_places;
struct maq_file_key;

enum maq_file_syntax { MAQ_FILE_JSON, MAQ_FILE_YAML, MAQ_FILE_TOML };

/* What a file says of a job besides its plan; the rest goes beside it, as options do. */
enum maq_file_says {
    MAQ_FILE_SAYS_MODEL = 1,
    MAQ_FILE_SAYS_SEQUENCE = 2,
    MAQ_FILE_SAYS_BATCH = 4 /* micro_batch_size, and how many of them a step has */
};

struct maq_file_writer {
    struct maq_buf *out;
    enum maq_file_syntax syntax;
    int depth;
    bool first; /* no member of the section yet */
    /* of faults */
    const char *title; /* whose file it is */
    const struct maq_job_places *at;
    struct maq_diag *diag;
    bool failed;
};

/* A section: a JSON object, a level of YAML, a table of TOML by its whole name ("quantize.linear.float8"). NULL: the file itself. */
void maq_file_open(struct maq_file_writer *w, const char *key);
void maq_file_close(struct maq_file_writer *w);

void maq_file_put_text(struct maq_file_writer *w, const char *key, struct maq_str value);
void maq_file_put_word(struct maq_file_writer *w, const char *key, const char *value);
void maq_file_put_number(struct maq_file_writer *w, const char *key, double value); /* whole, or a fraction */
void maq_file_put_switch(struct maq_file_writer *w, const char *key, bool on);
/* A list of the words of a text with commas between them. */
void maq_file_put_list(struct maq_file_writer *w, const char *key, struct maq_str words);

/*
 * Settings by the rows that read them: the keys of a list ("cutoff_len,use_dora") whose rows set something that the job has otherwise than by
 * default. A key behind a dot is of the section that is open.
 */
void maq_file_put_keys(struct maq_file_writer *w, const struct maq_job *job, const struct maq_file_key *rows,
                       const char *keys);

/* The framework cannot have this value of a key of the job ("model" and keys of the plan): an error there. */
void maq_file_cannot(struct maq_file_writer *w, const char *key, const char *hint, const char *fmt, ...)
    MAQ_PRINTF(4, 5);

#endif
