/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load.h - from a document to a model.
 *
 * `node` is what a job has under `model:`; it may be
 *   - a scalar: a catalogue name ("llama-3.1-405b"), a repository on Hugging Face that the catalogue knows
 *     ("meta-llama/Llama-3.1-405B-Instruct"), or a path to a config.json (or the folder of one);
 *   - a map: the keys of a config.json (with `model_type` or `architectures`), or Megatron-LM's argument names with
 *     `model_type: megatron`; `base: NAME` starts from a catalogue entry and overrides keys of it.
 *
 * *out and all it points to live in `arena` (job lifetime). Every key that does not change training cost is accepted
 * silently when it is one that Hugging Face writes (model/hf/ignored_keys.c); any other unknown key is an error, or a warning in a
 * .json file from disk.
 */
#ifndef MAQ_MODEL_LOAD_H
#define MAQ_MODEL_LOAD_H

#include "maquette/model.h"
#include "spec/catalogue.h"
#include "spec/doc.h"

enum maq_status maq_model_load(struct maq_model *out, struct maq_node *node, struct maq_arena *arena,
                               struct maq_diag *diag);
/* The key of a model in Megatron-LM's words (model_type: megatron) that is written so, with '-' or '_'; NULL = none. */
const char *maq_model_megatron_key(struct maq_str name);
/* The entry that a catalogue name, an alias or a repository on Hugging Face means; NULL = none. */
const struct maq_catalogue_entry *maq_model_entry(struct maq_str name);
/* Width and number of layers of the model that a name or a path means; false where it cannot be read. */
bool maq_model_shape(int64_t *hidden, int64_t *layers, struct maq_str name);
/* Rows of the token table of the model that a name or a path means; 0 = none that can be read. */
int64_t maq_model_vocabulary(struct maq_str name);

#endif
