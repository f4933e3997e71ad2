/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codes.h - the diagnostics of this floor, 1200 to 1299: stable, never reused.
 *
 * Same form as base/codes.h. The text is the short name of the fault for the documentation, not the message a
 * user sees.
 */
#ifndef MAQ_CLUSTER_CODES_H
#define MAQ_CLUSTER_CODES_H

/*    name               code  what it is                                                                   */
#define MAQ_CODE_LIST_CLUSTER(X)                                                                                       \
    X(UNKNOWN_DEVICE, 1200, "a device that the catalogue does not have")                                               \
    X(UNKNOWN_FABRIC, 1201, "a fabric that the catalogue does not have")                                               \
    X(CLUSTER_SYNTAX, 1202, "a synthetic cluster that does not follow its grammar")                                    \
    X(CLUSTER_WORD, 1203, "an unknown word in a synthetic cluster")                                                    \
    X(CLUSTER_RANGE, 1204, "a number of a cluster out of its range")                                                   \
    X(CLUSTER_TWICE, 1205, "a property of a cluster given twice")                                                      \
    X(CLUSTER_RATE, 1206, "a link rate without its unit, with a wrong one, or out of range")                           \
    X(DOMAIN_SHAPE, 1207, "scale-up domains that do not tile the nodes")                                               \
    X(CLUSTER_SIZE, 1208, "more devices or groups than maquette counts")                                               \
    X(CLUSTER_FORM, 1209, "a cluster, device or fabric of the wrong form")                                             \
    X(DEVICE_LACKS, 1210, "a device without a figure that is needed")                                                  \
    X(DEVICE_CONTRADICTS, 1211, "figures of a device that contradict each other")                                      \
    X(GROUP_KEY_PLACE, 1212, "a key of a node group beside `groups`")                                                  \
    X(BASE_DEPTH, 1213, "`base` in a circle, or too long a chain of them")                                             \
    X(NO_FABRIC, 1214, "several nodes without a network")                                                              \
    X(FABRIC_LACKS, 1215, "a fabric without a figure that is needed")                                                  \
    X(GROUP_LINK, 1216, "a link that does not join two node groups of the cluster")                                    \
    X(ISLANDS, 1217, "measured nodes that make no islands: a node or a link that is missing, named twice or wrong")    \
    X(UNUSUAL_NODES, 1218, "nodes that nobody sells, or that were probably meant to be devices")                       \
    X(TOPOLOGY, 1219, "what a machine says of itself (nvidia-smi topo -m, NCCL's file) that cannot be used")

enum maq_cluster_code {
#define MAQ_CODE_ENUM(name, code, text) MAQ_CODE_##name = (code),
    MAQ_CODE_LIST_CLUSTER(MAQ_CODE_ENUM)
#undef MAQ_CODE_ENUM
};

#endif
