/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codes.h - the diagnostics of plans, 1300 to 1399: stable, never reused. Same form as base/codes.h.
 */
#ifndef MAQ_PLAN_CODES_H
#define MAQ_PLAN_CODES_H

/*    name             code  what it is                                                                     */
#define MAQ_CODE_LIST_PLAN(X)                                                                                          \
    X(PLAN_DEGREES, 1300, "parallel degrees that do not fit the cluster or the model")                                 \
    X(PLAN_LAYERS, 1301, "layers that cannot be shared by the virtual stages")                                         \
    X(PLAN_SCHEDULE, 1302, "a pipeline schedule that cannot run so")                                                   \
    X(PLAN_BATCH, 1303, "a batch or sequence that cannot be cut so")                                                   \
    X(PLAN_PRECISION, 1304, "arithmetic that the device does not have")                                                \
    X(PLAN_RECOMPUTE, 1305, "a recomputation that means nothing")                                                      \
    X(PLAN_RANK_ORDER, 1306, "an order that is not one of the five dimensions")                                        \
    X(PLAN_UPDATE, 1307, "an optimizer that cannot work so")                                                           \
    X(PLAN_GRAPHS, 1308, "parts of a layer that are no CUDA graphs")                                                   \
    X(PLAN_OFFLOAD, 1309, "activations that cannot be offloaded so")                                                   \
    X(UNKNOWN_FRAMEWORK, 1310, "a framework that the catalogue does not have")                                         \
    X(FRAMEWORK_FORM, 1311, "a framework profile of the wrong form")                                                   \
    X(PLAN_OVERLAP, 1312, "communication that cannot run under compute so")                                            \
    X(PLAN_ADAPTERS, 1313, "targets of LoRA that name nothing in the model")                                           \
    X(PLAN_NO_EFFECT, 1314, "a setting that has no effect beside the others")                                          \
    X(PLAN_OFFLOAD_STATES, 1315, "parameters or optimizer states that cannot be offloaded so")                         \
    X(MEGATRON_FORM, 1320, "an argument of Megatron-LM that does not read so")                                         \
    X(MEGATRON_UNKNOWN, 1321, "arguments of Megatron-LM that are not known here")                                      \
    X(MEGATRON_VOCABULARY, 1322, "a vocabulary that Megatron-LM would take from a tokenizer")                          \
    X(MEGATRON_BESIDES, 1323, "what Megatron-LM's script does beside the step or in its place")                        \
    X(FILE_VALUE, 1330, "a framework's file that says what nothing here stands for")                                   \
    X(FILE_UNKNOWN, 1331, "keys of a framework's file that are not known here")                                        \
    X(FILE_UNSAID, 1332, "a job that a framework's file has no words for")                                             \
    X(JOB_FLEET, 1340, "members of a fleet that do not read so, or go together so")                                    \
    X(SCHEDULE_REFUSED, 1390, "a pipeline schedule that does not take these numbers")                                  \
    X(SCHEDULE_LIMIT, 1391, "a pipeline schedule with too many tasks or activations in flight")

enum maq_plan_code {
#define MAQ_CODE_ENUM(name, code, text) MAQ_CODE_##name = (code),
    MAQ_CODE_LIST_PLAN(MAQ_CODE_ENUM)
#undef MAQ_CODE_ENUM
};

#endif
