/* SPDX-License-Identifier: Apache-2.0 */
/* money.h - what a step, a run and tokens cost, where the price of every device is known. */
#ifndef MAQ_REPORT_MONEY_H
#define MAQ_REPORT_MONEY_H

#include "maquette/planner_mixed.h"
#include "maquette/risk_run.h"
#include "maquette/serve.h"
#include "maquette/train.h"
#include "report/json_util.h"

/* In US dollars; all 0 where a price is not known. */
struct maq_money {
    double per_hour, per_step, per_trillion_tokens;
};

struct maq_money maq_money_of_train(const struct maq_train_result *train);

/* Of the best plan over node groups, which pays for the devices that it uses. */
struct maq_money maq_money_of_mixed(const struct maq_job *open, const struct maq_mixed_search_result *search);

/*
 * What a run pays in an hour: its devices, and its spares, which are held for it from the first start to the end. Of spares that
 * it shares with other nodes it pays its part by nodes. 0: a price is not known.
 */
double maq_money_run_per_hour(const struct maq_job *job, const struct maq_run_result *run);

/* What a served deployment costs; all 0 where the price is not known, or nothing was served. */
struct maq_serve_money {
    double per_hour, per_million_output_tokens, per_million_tokens; /* the last: of prompts and outputs together */
};
struct maq_serve_money maq_money_of_serve(const struct maq_serve_result *result);

/* "1,234,567 USD", "12.34 USD", "0.001234 USD"; returns buf. */
const char *maq_words_usd(char buf[48], double usd);

/* Adds `money` to a document, nothing where no price is known. */
void maq_json_money(struct maq_json map, struct maq_money money);

#endif
