/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codes.h - the numbers in `error[MAQ1021]`: stable, never reused, each documented in docs/diagnostics.md.
 *
 *   1000-1099  documents: syntax, keys, types, quantities, files     src/spec
 *   1100-1199  model                                                 src/model
 *   1200-1299  cluster, devices, fabrics                             src/cluster
 *   1300-1399  plan and job                                          src/plan
 *   1400-1499  cost tables and measurements                          src/cost
 *   1500-1599  workloads: training batches, request streams          src/train, src/serve
 *   1600-1699  search, risk, emulation                               src/planner, src/risk, src/capture, src/replay, src/launch
 *   1700-1799  traces in and out                                     src/report/timeline, src/capture/import
 *   1800-1899  command line                                          src/cli
 *   2000-2099  answers: a plan that cannot run (memory, shape)       src/train, src/serve, src/planner
 *
 * Here are the rows of documents. Another floor keeps its rows in its own codes.h, as MAQ_CODE_LIST_<FLOOR> in the
 * same form and expanded into an enum of its own, so that a new fault touches that floor alone. The text is the short
 * name of the fault for the documentation, not the message a user sees.
 */
#ifndef MAQ_BASE_CODES_H
#define MAQ_BASE_CODES_H

/*    name             code  what it is                                                                     */
#define MAQ_CODE_LIST_SPEC(X)                                                                                          \
    X(NO_MEMORY, 1000, "out of memory")                                                                                \
    X(SYNTAX, 1001, "not valid YAML or JSON")                                                                          \
    X(DUPLICATE_KEY, 1002, "a key is given twice")                                                                     \
    X(TOO_DEEP, 1003, "nested too deeply")                                                                             \
    X(TOO_MANY_NODES, 1004, "too many values, or too large an expansion of aliases")                                   \
    X(SEVERAL_DOCUMENTS, 1005, "more than one document in a file")                                                     \
    X(NOT_UTF8, 1006, "not UTF-8 text")                                                                                \
    X(WRONG_TYPE, 1020, "a value of the wrong type")                                                                   \
    X(UNKNOWN_KEY, 1021, "an unknown key")                                                                             \
    X(MISSING_KEY, 1022, "a required key is missing")                                                                  \
    X(OUT_OF_RANGE, 1023, "a number out of its range")                                                                 \
    X(BAD_NUMBER, 1024, "not a number")                                                                                \
    X(BAD_QUANTITY, 1025, "a quantity without its unit, or with a wrong one")                                          \
    X(BAD_ENUM, 1026, "not one of the allowed words")                                                                  \
    X(BAD_SET, 1027, "a --set that cannot be applied")                                                                 \
    X(UNUSED_KEY, 1028, "a key that nothing reads")                                                                    \
    X(PEERS, 1029, "processes that were started together and cannot work together")                                    \
    X(CANNOT_READ, 1030, "a file cannot be read")                                                                      \
    X(FILE_TOO_LARGE, 1031, "a file over the size limit")                                                              \
    X(FOREIGN_FILE, 1032, "a file of another tool, where something else is expected")                                  \
    X(MENDED, 1033, "recorded data of which something was mended")

enum maq_code {
#define MAQ_CODE_ENUM(name, code, text) MAQ_CODE_##name = (code),
    MAQ_CODE_LIST_SPEC(MAQ_CODE_ENUM)
#undef MAQ_CODE_ENUM
};

#endif
