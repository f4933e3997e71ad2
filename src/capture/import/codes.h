/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codes.h - the diagnostics of imported traces, 1710 to 1729 (but for 1718) of the range in base/codes.h: stable, never reused. Same
 * form as there.
 */
#ifndef MAQ_CAPTURE_IMPORT_CODES_H
#define MAQ_CAPTURE_IMPORT_CODES_H

/*    name            code  what it is                                                                      */
#define MAQ_CODE_LIST_IMPORT(X)                                                                                        \
    X(IMPORT_READ, 1710, "an imported trace that cannot be read, or ends too early")                                   \
    X(IMPORT_JSON, 1711, "a profiler trace that is not JSON")                                                          \
    X(IMPORT_FORM, 1712, "an imported trace of the wrong form")                                                        \
    X(IMPORT_EMPTY, 1713, "an imported trace in which no device does anything")                                        \
    X(IMPORT_RANK, 1714, "imported traces whose ranks do not go together")                                             \
    X(IMPORT_LIMIT, 1715, "an imported trace with more of something than can be held")                                 \
    X(IMPORT_NUMBER, 1716, "an imported trace with a time or a size that cannot be")                                   \
    X(IMPORT_DEPENDENCY, 1717,                                                                                         \
      "a Chakra trace whose nodes wait for each other in a circle, or for nodes that are not there")                   \
    X(GRAPH_FOLDER, 1719, "a folder that exported traces cannot be written to")                                        \
    X(IMPORT_FILLED, 1720, "ranks of an imported job that were not traced")                                            \
    X(IMPORT_UNLAUNCHED, 1721, "work of the device whose launch is not in the trace")                                  \
    X(IMPORT_DEVICE, 1722, "a trace of a device that the catalogue does not have")                                     \
    X(IMPORT_COMM_SIZE, 1723, "sizes of collectives in a Chakra trace that does not say what they are of")

enum maq_import_code {
#define MAQ_CODE_ENUM(name, code, text) MAQ_CODE_##name = (code),
    MAQ_CODE_LIST_IMPORT(MAQ_CODE_ENUM)
#undef MAQ_CODE_ENUM
};

#endif
