/* SPDX-License-Identifier: Apache-2.0 */
/* job_json.h - the resolved job, as part of a document. */
#ifndef MAQ_REPORT_JOB_JSON_H
#define MAQ_REPORT_JOB_JSON_H

#include "maquette/framework_words.h"
#include "maquette/train.h"
#include "plan/keys.h"
#include "report/json_util.h"

/*
 * Adds name, model, cluster, plan, workload and framework to `map`. `plan` and `workload` hold every key in the form a job
 * file has it.
 */
void maq_json_job(struct maq_json map, const struct maq_job *job);
/* Every key, in the form a job file has it. */
void maq_json_plan(struct maq_json map, const struct maq_plan *plan);
/* The list of words that the bits stand for, by its key; empty where no bit is set. */
void maq_json_words(struct maq_json map, enum maq_plan_list list, uint32_t bits);
/* What is known of it before there is a plan: name, model, cluster, workload. */
void maq_json_open_job(struct maq_json map, const struct maq_job *job);
void maq_json_model(struct maq_json map, const struct maq_model *model); /* figures of the whole, no layers */
void maq_json_device(struct maq_json map, const struct maq_device *device);
void maq_json_framework(struct maq_json map, const struct maq_framework *framework);
/*
 * Adds `framework_words`, what is said of a plan to its framework, and `megatron_arguments`, the same where it is Megatron-LM;
 * null where `words` is NULL. `said`: what those words take; may be NULL.
 */
void maq_json_framework_words(struct maq_json map, const struct maq_framework_words *words,
                              const struct maq_train_result *said, int vocabulary);
/* A new item of a list of islands, and how many of its devices a plan uses. */
struct maq_json maq_json_island(struct maq_json list, const char *device, int64_t nodes, int64_t devices_per_node,
                                int64_t used);
void maq_json_fabric(struct maq_json map, const struct maq_fabric *fabric);

#endif
