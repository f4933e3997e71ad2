/* ignored_arguments.h - which arguments of Megatron-LM's training scripts a prediction does not depend on. */
#ifndef MAQ_PLAN_MEGATRON_IGNORED_ARGUMENTS_H
#define MAQ_PLAN_MEGATRON_IGNORED_ARGUMENTS_H

#include "base/str.h"

/* `name` without its dashes: "train-iters". */
bool maq__megatron_says_nothing(struct maq_str name);

#endif
