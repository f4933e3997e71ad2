/* SPDX-License-Identifier: Apache-2.0 */
/*
 * framework_files.h - configuration files of training frameworks in place of a job, or beside one.
 *
 *   maquette train ds_config.json --model llama-3.1-8b --cluster h100-sxm:8
 *
 * A file that is no job of maquette is told by the keys at its top level (detect.c), and what it says becomes the sections model, framework,
 * plan and workload of a job. Every value made so keeps its place in the user's file, so that whatever is found out about it later,
 * by whoever, points there. What a job file has itself is never replaced.
 *
 * Other files may go with it: those that the file names (axolotl's `deepspeed: zero3.json`), and those of the key `files` of a job.
 * Paths are tried as they are, then from the folder of the file that names them and from each folder above it, since a repository's
 * files name each other from its root.
 *
 * A key is a setting, says nothing of a step, or is refused with the reason; keys that no table has are named in a warning. Two files
 * that say different things of one setting are an error, as they are to the frameworks.
 */
#ifndef MAQ_PLAN_FRAMEWORK_FILES_FRAMEWORK_FILES_H
#define MAQ_PLAN_FRAMEWORK_FILES_FRAMEWORK_FILES_H

#include "maquette/job.h"
#include "spec/doc.h"

/*
 * Makes a job of `doc`, which was read from `path` (NULL: from text), where it is a framework's file, and adds what `files` names.
 * *title gets what the file is ("DeepSpeed's configuration", static), NULL where it is a job or a model. open: what a search decides is
 * left out. `model` and `cluster` are what flags say of them, NULL where none does.
 */
enum maq_status maq_files_read(const char **title, struct maq_doc *doc, const char *path, const char *model,
                               const char *cluster, bool open, struct maq_diag *diag);

#endif
