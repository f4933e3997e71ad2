/* SPDX-License-Identifier: Apache-2.0 */
/*
 * megatron_words.h - files whose keys are Megatron-LM's arguments under other names: they are put into the words of its command line, what those
 * mean plan/megatron says, and what it says goes into the job at the place in the file.
 */
#ifndef MAQ_PLAN_FRAMEWORK_FILES_MEGATRON_WORDS_H
#define MAQ_PLAN_FRAMEWORK_FILES_MEGATRON_WORDS_H

#include "plan/framework_files/reader.h"

#define MAQ_FILE_MOST_WORDS 4096 /* far above any command line; more are an error */

struct maq_file_words {
    const char *word[MAQ_FILE_MOST_WORDS]; /* borrowed, for as long as the job's arena */
    struct maq_span at[MAQ_FILE_MOST_WORDS];
    const struct maq_node *from[MAQ_FILE_MOST_WORDS]; /* what says the argument */
    size_t n;
};

/* A word of the argument that `from` says, which stands at `at`. */
void maq_file_add_word(struct maq_file_reader *r, struct maq_file_words *w, struct maq_str word,
                       const struct maq_node *from, struct maq_span at);

/* Reads them and writes the job; `framework`: the profile that the words ask for as well. A model of flags replaces the words' own. */
void maq_file_read_words(struct maq_file_reader *r, const struct maq_file_words *w, bool framework);

#endif
