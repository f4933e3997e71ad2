/* SPDX-License-Identifier: Apache-2.0 */
/*
 * operator_rules.h - which operator a kernel of the program's own is: attention over so many heads and keys, a norm of so many rows. A rule says it,
 * by the kernel's name, with formulas of the launch's arguments; the launch is then recorded and priced as that operator, and not as a
 * stream of bytes.
 *
 *     operator NAME[/PARAMETERS] KIND FIELD=VALUE...
 *
 * A kernel whose name has NAME in it (and that has as many PARAMETERS) is a KIND. A VALUE is an expression (launch_expression.h) without blanks;
 * of `queries` and `keys` it is asked for each sequence i. `if` is a field of every kind: the rule holds where it is not 0.
 *
 *     kind            fields
 *     attention       batch heads kv_heads dim queries keys, and where they are not v_dim = dim, window = 0 (none), causal = 1, flash2 = 0, flash1 = 0
 *     attention_bwd   the same
 *     gemm            rows columns depth, batch = 1
 *     norm softmax rope   rows columns
 *     gated_activation    rows columns (of the output)
 *     embedding       rows columns table
 *     elementwise     elements read written (bytes of each)
 *     part            none: its time is in that of the operator beside it
 *
 * The type of the elements is that which the kernel's name names first. The first rule whose fields all have a value holds; where none has,
 * the kernel is one like others.
 */
#ifndef MAQ_SHIM_OPERATOR_RULES_H
#define MAQ_SHIM_OPERATOR_RULES_H

#include "shim/cuda/cuda.h"

/* One line of the table; false: it is no rule. `*why` then says what is wrong with it, and is constant. */
bool vg_operator_rule_take(const char *line, const char **why);
/* Makes `op`, the record of a kernel, that of the operator that a rule says it is. With the lock held. */
void vg_operator_rules_apply(struct maq_rec_op *op, const struct vg_launch *launch);

/* The same for kernels that say it in structures which no formula reads: those over lists of tensors (tensor_lists.c), and PyTorch's
 * element-wise ones and reductions (pytorch_operators.c). */
void vg_tensor_lists_apply(struct maq_rec_op *op, const struct vg_launch *launch);
void vg_pytorch_apply(struct maq_rec_op *op, const struct vg_launch *launch);

/* Rules that are always there, a line each; NULL ends them. Those of the file of `--values` go before them. */
extern const char *const vg_operator_rules_known[];

#endif
