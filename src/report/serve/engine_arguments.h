/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_arguments.h - a deployment in the words of its engine's command line: the way back from maquette/serve_command.h, whose reader a
 * test holds it against.
 */
#ifndef MAQ_REPORT_SERVE_ENGINE_ARGUMENTS_H
#define MAQ_REPORT_SERVE_ENGINE_ARGUMENTS_H

#include "maquette/serve.h"

#define MAQ_ENGINE_ARGUMENTS_MOST 32u

struct maq_engine_argument {
    const char *flag;
    char value[128]; /* "": it has none */
};

struct maq_engine_arguments {
    const char *program[4], *dynamo; /* "python -m sglang.launch_server", its words up to NULL; Dynamo's module of it */
    const char *model;               /* flag in front of the model; NULL: it stands behind the program */
    struct maq_engine_argument at[MAQ_ENGINE_ARGUMENTS_MOST];
    uint32_t n;
    char config[4][192]; /* [n_config] lines that belong into the file of --config: TensorRT-LLM */
    uint32_t n_config;
    bool other_checkpoint; /* no option makes such weights of the model: a checkpoint has to have them */
};

void maq_engine_arguments(struct maq_engine_arguments *out, const struct maq_job *job,
                          const struct maq_serve_options *options);

#endif
