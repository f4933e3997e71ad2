/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ignored_arguments.h - arguments of Megatron-LM's training scripts that change neither time nor memory of a step,
 * and are ignored.
 */
#ifndef MAQ_PLAN_MEGATRON_IGNORED_ARGUMENTS_H
#define MAQ_PLAN_MEGATRON_IGNORED_ARGUMENTS_H

#include "base/str.h"

/* Whether an argument is ignored. `name` is without its dashes: "train-iters". */
bool maq__megatron_says_nothing(struct maq_str name);

#endif
