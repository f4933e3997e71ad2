/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chakra.h - the form of Chakra execution traces (MLCommons), shared by their reader and their writer.
 *
 * A file is of one rank: messages with their length (a varint) in front, first a GlobalMetadata, then Nodes. Field numbers are
 * those of schema/protobuf/et_def.proto of mlcommons/chakra, version of May 2026. Members of a record that the schema does not have
 * become attributes; other readers ignore unknown ones.
 *
 *   record                     node                                  attributes
 *   host time                  COMP_NODE "host"                      is_cpu_op = true, duration_ns
 *   MARK                       COMP_NODE, no length, named as it     is_cpu_op = true, mark
 *   a wait of the host         COMP_NODE "sync", no length           is_cpu_op = true; data_deps: what it waits for
 *   LAUNCH, COPY, SET,         COMP_NODE                             is_cpu_op = false, stream, num_ops, tensor_size, op_kind,
 *   HOST_CALL                                                        op_d, op_type, op_grid, op_block, record
 *   COLL                       COMM_COLL_NODE                        comm_type, comm_size, pg_name, stream, root
 *   SEND, RECV                 COMM_SEND_NODE, COMM_RECV_NODE        comm_src, comm_dst, comm_tag, comm_size, pg_name, stream
 *
 *   ctrl_deps  the host's node before it          data_deps  the one before it on its stream, and what its stream waits for
 *
 * duration_micros is duration_ns, rounded. GlobalMetadata has rank, world_size, per_node and device, and for each communicator the
 * attribute "pg:NAME" with its members.
 *
 * comm_size of a collective, in bytes. The schema does not say what of; its converter from PyTorch (src/converter/pytorch_node.py) writes the
 * sum of the input tensors, and ASTRA-sim takes it so (native_collectives/collective_algorithm/Ring.cc: a part of a reduce-scatter and of an
 * all-to-all is data_size / nodes). NCCL's calls count otherwise (shim/record.h), and what maquette wrote before it said so in the metadata,
 * as "comm_size_of", counted as they do:
 *
 *                              "input"                       "count"
 *   all-reduce, broadcast,     what a rank puts in           the same
 *   reduce, all-gather, gather
 *   reduce-scatter, scatter    all of what is scattered      what one rank receives: input / ranks
 *   all-to-all                 all that a rank sends         what it sends to one other: input / ranks
 */
#ifndef MAQ_CAPTURE_IMPORT_CHAKRA_CHAKRA_H
#define MAQ_CAPTURE_IMPORT_CHAKRA_CHAKRA_H

#include "base/protobuf.h"
#include "shim/record.h"

enum maq_chakra_field {
    MAQ_CHAKRA_ATTR_NAME = 1,
    MAQ_CHAKRA_ATTR_DOUBLE = 3,
    MAQ_CHAKRA_ATTR_INT32 = 7,
    MAQ_CHAKRA_ATTR_INT64 = 9,
    MAQ_CHAKRA_ATTR_INT64_LIST = 10,
    MAQ_CHAKRA_ATTR_UINT32 = 11,
    MAQ_CHAKRA_ATTR_UINT32_LIST = 12,
    MAQ_CHAKRA_ATTR_UINT64 = 13,
    MAQ_CHAKRA_ATTR_BOOL = 27,
    MAQ_CHAKRA_ATTR_STRING = 29,
    MAQ_CHAKRA_META_VERSION = 1,
    MAQ_CHAKRA_META_ATTR = 2,
    MAQ_CHAKRA_NODE_ID = 1,
    MAQ_CHAKRA_NODE_NAME = 2,
    MAQ_CHAKRA_NODE_TYPE = 3,
    MAQ_CHAKRA_NODE_CTRL = 4,
    MAQ_CHAKRA_NODE_DATA = 5,
    MAQ_CHAKRA_NODE_START = 6,
    MAQ_CHAKRA_NODE_DURATION = 7,
    MAQ_CHAKRA_NODE_ATTR = 10
};

enum maq_chakra_type {
    MAQ_CHAKRA_INVALID,
    MAQ_CHAKRA_METADATA,
    MAQ_CHAKRA_MEM_LOAD,
    MAQ_CHAKRA_MEM_STORE,
    MAQ_CHAKRA_COMP,
    MAQ_CHAKRA_SEND,
    MAQ_CHAKRA_RECV,
    MAQ_CHAKRA_COLL
};

#define MAQ_CHAKRA_SIZE_OF "comm_size_of"
#define MAQ_CHAKRA_OF_INPUT "input"
#define MAQ_CHAKRA_OF_COUNT "count"

/* Whether the two conventions of comm_size differ for a collective. */
static inline bool maq_chakra_is_shared_out(unsigned coll)
{
    return coll == MAQ_REC_REDUCE_SCATTER || coll == MAQ_REC_SCATTER || coll == MAQ_REC_ALL_TO_ALL;
}

/* CollectiveCommType of a collective, and back (REDUCE_SCATTER_BLOCK is reduce-scatter, BARRIER an all-reduce of nothing). */
static inline int64_t maq_chakra_of_coll(unsigned coll)
{
    static const uint8_t of[MAQ_REC_COLL_COUNT] = {
        [MAQ_REC_ALL_REDUCE] = 0, [MAQ_REC_REDUCE] = 1,    [MAQ_REC_ALL_GATHER] = 2, [MAQ_REC_GATHER] = 3,
        [MAQ_REC_SCATTER] = 4,    [MAQ_REC_BROADCAST] = 5, [MAQ_REC_ALL_TO_ALL] = 6, [MAQ_REC_REDUCE_SCATTER] = 7};
    return coll < MAQ_REC_COLL_COUNT ? of[coll] : 0;
}

static inline enum maq_rec_coll maq_chakra_coll(int64_t type)
{
    static const uint8_t of[] = {MAQ_REC_ALL_REDUCE,     MAQ_REC_REDUCE,    MAQ_REC_ALL_GATHER, MAQ_REC_GATHER,
                                 MAQ_REC_SCATTER,        MAQ_REC_BROADCAST, MAQ_REC_ALL_TO_ALL, MAQ_REC_REDUCE_SCATTER,
                                 MAQ_REC_REDUCE_SCATTER, MAQ_REC_ALL_REDUCE};
    return type >= 0 && type < (int64_t)(sizeof of / sizeof of[0]) ? (enum maq_rec_coll)of[type] : MAQ_REC_ALL_REDUCE;
}

#endif
