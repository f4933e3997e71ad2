/* SPDX-License-Identifier: Apache-2.0 */
/* job_text.h - how reports of a job begin, and how they say how to run a plan of it. */
#ifndef MAQ_REPORT_JOB_TEXT_H
#define MAQ_REPORT_JOB_TEXT_H

#include "maquette/framework_words.h"
#include "maquette/train.h"
#include "report/page.h"

#define MAQ_JOB_LABEL 12 /* cells of the labels in front of its lines */

/* What is known of a job: all of it, or nothing of its plan; then the workload with or without the tokens of a step. */
enum maq_job_known { MAQ_JOB_PLANNED, MAQ_JOB_OPEN, MAQ_JOB_OPEN_OF_TOKENS };

/* Model, cluster, plan, workload, and a framework that the job names, a line each. False: out of memory on the way. */
bool maq_job_lines(const struct maq_lines *to, const struct maq_job *job, enum maq_job_known known);
/* The same below the job's title. */
void maq_page_job(struct maq_page *page, const struct maq_job *job, enum maq_job_known known);
/* Title, model, cluster and workload. */
void maq_page_open_job(struct maq_page *page, const struct maq_job *job);
/* The same with the tokens of a step behind the workload. */
void maq_page_open_job_of_tokens(struct maq_page *page, const struct maq_job *job);
/*
 * How to run a plan: the framework and the plan of the job file that maq_job_write() made, and what is said of it to its
 * framework. `said`: what that takes where it is not the whole plan. Each may be NULL.
 */
void maq_page_put_winner(struct maq_page *page, const char *document, const struct maq_framework_words *words,
                         const struct maq_train_result *said);

#endif
