/* SPDX-License-Identifier: Apache-2.0 */
/* codes.h - the numbers of the diagnostics of serving; ranges are in base/codes.h (1570-1599 of the workloads' range). */
#ifndef MAQ_SERVE_CODES_H
#define MAQ_SERVE_CODES_H

#include "base/codes.h"

#define MAQ_CODE_LIST_SERVE(X)                                                                                         \
    X(REQUEST_EMPTY, 1570, "a request without tokens")                                                                 \
    X(REQUEST_LONG, 1571, "a request longer than the context")                                                         \
    X(REQUEST_BLOCKS, 1572, "a request that the cache can never hold")                                                 \
    X(REQUEST_ORDER, 1573, "requests that go back in time")                                                            \
    X(REQUEST_FILE, 1574, "not a file of requests")                                                                    \
    X(SLO_FORM, 1575, "a bound on a latency that does not read so")                                                    \
    X(SLO_METRIC, 1576, "a bound on something that is no latency")                                                     \
    X(SLO_TWICE, 1577, "two bounds on one figure")                                                                     \
    X(SERVE_AFD, 1578, "attention and FFN that cannot be on GPUs of their own")                                        \
    X(SERVE_EXPERTS, 1579, "experts by kernels of which no times are known")                                           \
    X(COMMAND_ENGINE, 1580, "a command line that starts no serving engine")                                            \
    X(COMMAND_OPTION, 1581, "an option that a serving engine does not have")                                           \
    X(COMMAND_VALUE, 1582, "an option of a serving engine with a value that it does not take")                         \
    X(COMMAND_SAID, 1583, "options of a serving engine that are not modelled")                                         \
    X(COMMAND_CHECKPOINT, 1585, "weights by the name of a checkpoint")                                                 \
    X(SERVE_LAYERS, 1586, "layers that no serving engine here has kernels for")                                        \
    X(SERVE_RANKS, 1587, "degrees of a deployment that do not go together")                                            \
    X(SERVE_POOLS, 1588, "pools that cannot hand requests over to each other")                                         \
    X(ACCEPTANCE, 1589, "shares of accepted drafts that do not read so")                                               \
    X(SPECULATION, 1590, "speculative decoding that no engine here does")                                              \
    X(SERVE_TIERS, 1591, "tiers of keys and values that cannot be")                                                    \
    X(AUTOSCALING, 1592, "a rule for the number of replicas that does not read so")                                    \
    X(SERVE_STOPPED, 1593, "a run of requests that was asked to end")                                                  \
    X(SERVE_LORA, 1594, "LoRA adapters that a deployment cannot serve")                                                \
    X(SERVE_START, 1595, "weights from where nothing says how fast they come")                                         \
    X(SERVE_ADMISSION, 1596, "limits of a router that say nothing, or too much")                                       \
    X(SERVE_IMAGES, 1597, "images that a deployment cannot serve")                                                     \
    X(SERVE_IN_VAIN, 1598, "a request that waits for ever for what tiers bring")                                       \
    X(SERVE_WHOLE, 1599, "prompts that are computed while nobody decodes")

#define MAQ_SERVE_STOPPED_TEXT "stopped before all requests had their last token"

enum maq_serve_code {
#define MAQ_CODE_ENUM(name, code, text) MAQ_CODE_##name = (code),
    MAQ_CODE_LIST_SERVE(MAQ_CODE_ENUM)
#undef MAQ_CODE_ENUM
};

#endif
