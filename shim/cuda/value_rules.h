/* SPDX-License-Identifier: Apache-2.0 */
/*
 * value_rules.h - whole numbers that a kernel would have computed and that steer a program: lengths, counts, how many tokens were sampled. A rule
 * says them, by the kernel's name, as a formula of its arguments.
 *
 *     kernel NAME[/PARAMETERS] COUNT TYPE PLACE = VALUE
 *
 * For i from 0 to COUNT - 1 the launch of a kernel whose name has NAME in it (and that has as many PARAMETERS) leaves VALUE at PLACE, an
 * i32 or i64. PLACE is `aK[index]`: memory that argument K points to, in elements of TYPE. COUNT has no blanks. COUNT, index and VALUE are
 * expressions (launch_expression.h); one that has no value ends the rule there and leaves the rest as it was.
 *
 * A rule is a plausible default and not an emulation: that no other kernel wrote there in between is taken for granted.
 */
#ifndef MAQ_SHIM_VALUE_RULES_H
#define MAQ_SHIM_VALUE_RULES_H

#include "shim/cuda/cuda.h"

/* One line of the table; false: it is no rule. `*why` then says what is wrong with it, and is constant. */
bool vg_rule_take(const char *line, const char **why);
/* Does what the rules say of a launch. With the lock held. */
void vg_rules_apply(const struct vg_launch *launch);
/* Whether a rule wrote all of these bytes of device memory, and nothing that is known did since: then they are there. */
bool vg_rule_wrote(const void *p, uint64_t bytes);

/* Rules that are always there, a line each; NULL ends them. */
extern const char *const vg_rules_known[];

#endif
