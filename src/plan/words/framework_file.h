/* SPDX-License-Identifier: Apache-2.0 */
/*
 * framework_file.h - a job as a framework's configuration file. A form writes the settings that its file has keys for, as the forms of
 * plan/framework_files read them; whether that is all of the job is found by reading it back (framework_file.c).
 */
#ifndef MAQ_PLAN_WORDS_FRAMEWORK_FILE_H
#define MAQ_PLAN_WORDS_FRAMEWORK_FILE_H

#include "base/text.h"
#include "maquette/job.h"

/* A JSON object with a member on each line. */
struct maq_file_writer {
    struct maq_buf *out;
    int depth;
    bool first; /* no member of the object yet */
};

void maq_file_open(struct maq_file_writer *w, const char *key); /* NULL: the file itself */
void maq_file_close(struct maq_file_writer *w);
void maq_file_put_text(struct maq_file_writer *w, const char *key, const char *value);
void maq_file_put_number(struct maq_file_writer *w, const char *key, double value); /* whole, or a fraction */
void maq_file_put_switch(struct maq_file_writer *w, const char *key, bool on);

void maq_file_write_deepspeed(struct maq_file_writer *w, const struct maq_job *job);
void maq_file_write_training_arguments(struct maq_file_writer *w, const struct maq_job *job);

#endif
