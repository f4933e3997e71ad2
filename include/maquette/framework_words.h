/* SPDX-License-Identifier: Apache-2.0 */
/*
 * framework_words.h - a plan in the words of the framework that is to run it, and what those words do not say.
 *
 * What is written is read back, and completed as a job under the framework's profile. So a setting that the framework has
 * no words for is named, and no command or configuration stands for a plan that it does not describe.
 */
#ifndef MAQUETTE_FRAMEWORK_WORDS_H
#define MAQUETTE_FRAMEWORK_WORDS_H

#include "maquette/job.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A setting of the plan that the words do not say; they make it `instead`. */
struct maq_unsaid {
    const char *key, *value, *instead;
};

struct maq_framework_words {
    const char *title; /* whose words: "Megatron-LM" */
    const char *text;  /* a setting on each line; NULL: no words of this framework are known */
    const struct maq_unsaid *unsaid;
    uint32_t n_unsaid;
    const struct maq_loaded_job
        *back;           /* the job that the words describe; NULL where it was refused, or there are none */
    const char *refused; /* why; NULL = it was not */
};

/*
 * A completed job in the words of the framework that it names, Megatron-LM's where it names none. `open` is the job as it is
 * written, whose model, cluster and workload `job` has. *out is the caller's (maq_framework_words_free) and points into
 * neither.
 */
MAQ_API enum maq_status maq_framework_words(struct maq_framework_words **out, const struct maq_loaded_job *open,
                                            const struct maq_job *job, struct maq_diag *diag);
/*
 * Whether frameworks with these words (enum maq_framework_vocabulary) run the value that `plan` has of a key: what a search
 * leaves out where they do not. Values in combination are not looked at.
 */
MAQ_API bool maq_framework_runs(int vocabulary, const struct maq_plan *plan, const char *key);
MAQ_API void maq_framework_words_free(struct maq_framework_words *words);

/*
 * A job as the configuration file of a framework: "accelerate", "axolotl", "llama-factory" (YAML), "deepspeed", "training-arguments" of
 * Hugging Face (JSON), "torchtitan" (TOML). *out is the caller's (free). What is written is read back beside the job's cluster, and beside model,
 * sequence and batch where such a file does not say them. Each setting that the file does not say is an error that names it (MAQ_BAD_INPUT);
 * nothing is left out silently.
 */
MAQ_API enum maq_status maq_framework_file(char **out, const struct maq_loaded_job *job, const char *form,
                                           struct maq_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
