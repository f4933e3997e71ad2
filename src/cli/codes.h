/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codes.h - the diagnostics of the command line, 1800 to 1889: stable, never reused. Same form as base/codes.h.
 */
#ifndef MAQ_CLI_CODES_H
#define MAQ_CLI_CODES_H

/*    name               code  what it is                                                                   */
#define MAQ_CODE_LIST_CLI(X)                                                                                           \
    X(CLI_COMMAND, 1800, "no command, or an unknown one")                                                              \
    X(CLI_OPTION, 1801, "an unknown option")                                                                           \
    X(CLI_VALUE, 1802, "an option without its value, or with one that it does not take")                               \
    X(CLI_ARGUMENT, 1803, "an argument too many, or one that is missing")                                              \
    X(CLI_SET, 1804, "a --set that is not path=value")                                                                 \
    X(CLI_SCHEDULER, 1805, "an engine whose scheduler is not modelled, or a setting of it without effect")             \
    X(CLI_DRAFTS, 1806, "speculative decoding of which too little is said")                                            \
    X(CLI_TIERS, 1807, "tiers of keys and values that are left out")                                                   \
    X(CLI_QUANTIZATION, 1808, "a checkpoint quantized in a way that is not known")                                     \
    X(CLI_OUTPUT, 1810, "output that cannot be written")                                                               \
    X(CLI_NO_MEMORY, 1811, "out of memory in the command line")                                                        \
    X(CLI_SERVER, 1812, "a page that cannot be served")                                                                \
    X(CLI_INPUT, 1813, "a job or standard input that cannot be read")

enum maq_cli_code {
#define MAQ_CODE_ENUM(name, code, text) MAQ_CODE_##name = (code),
    MAQ_CODE_LIST_CLI(MAQ_CODE_ENUM)
#undef MAQ_CODE_ENUM
};

#endif
