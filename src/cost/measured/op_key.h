/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op_key.h - operators and collectives by their words: what a file of measurements is keyed by and a person can read.
 */
#ifndef MAQ_COST_MEASURED_OP_KEY_H
#define MAQ_COST_MEASURED_OP_KEY_H

#include "base/str.h"
#include "maquette/cost.h"

/* "accumulate+out_fp32"; "" for none. A bit may have another word in another kind. Returns buf. */
#define MAQ_OP_FLAGS_SIZE 80
const char *maq_op_flags_text(char buf[MAQ_OP_FLAGS_SIZE], const struct maq_op *op);
bool maq_op_flags_parse(uint8_t *out, enum maq_op_kind kind, struct maq_str text);

/* By the names that maq_op_kind_name(), maq_coll_kind_name() and maq_dtype_name() give; false when there is none. */
bool maq_op_kind_find(enum maq_op_kind *out, struct maq_str name);
bool maq_coll_kind_find(enum maq_coll_kind *out, struct maq_str name);
bool maq_dtype_find(enum maq_dtype *out, struct maq_str name);

/*
 * The one spelling of a value that cost.h allows several of: a batch of 1 is 0, a chunk of the usual length is 0, the
 * busiest group that is as the mean is 0. Equal work then has equal bytes.
 */
struct maq_op maq_op_canonical(const struct maq_op *op);
/*
 * Collectives are known by kind, bytes, ranks and ranks per node, which says everything about a group inside one
 * scale-up domain: nothing else uses its links, and the node group is the device's. Between domains the network
 * counts, so that such groups are not local and have no measured cost.
 */
bool maq_coll_is_local(const struct maq_coll *coll);
struct maq_coll maq_coll_canonical(const struct maq_coll *coll); /* coll is local */

#endif
