/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codes.h - the findings of src/model, 1100-1199: the rows that base/codes.h calls this floor's own list.
 *
 * X(NAME, code, "what it is"); the text is the short name for docs/diagnostics.md, not the message.
 */
#ifndef MAQ_MODEL_CODES_H
#define MAQ_MODEL_CODES_H

#define MAQ_CODE_LIST_MODEL(X)                                                                                         \
    X(MODEL_NOT_A_MAP, 1100, "a model that is neither a name, a path nor a map")                                       \
    X(MODEL_UNKNOWN_NAME, 1101, "no catalogue entry and no file of that name")                                         \
    X(MODEL_UNKNOWN_TYPE, 1102, "a model_type that is not known")                                                      \
    X(MODEL_MISSING, 1103, "a size that the model cannot do without")                                                  \
    X(MODEL_UNKNOWN_KEY, 1104, "an unknown key of a model")                                                            \
    X(MODEL_FOREIGN_KEY, 1105, "a key that means nothing to this model_type")                                          \
    X(MODEL_HEAD_WIDTH, 1106, "hidden_size is not a multiple of the heads")                                            \
    X(MODEL_KV_HEADS, 1107, "key-value heads do not divide the query heads")                                           \
    X(MODEL_TOPK, 1108, "more experts per token than experts")                                                         \
    X(MODEL_PATTERN, 1110, "a layer pattern that does not fit the model")                                              \
    X(MODEL_LAYER_LIST, 1111, "a list of layers that does not fit the model")                                          \
    X(MODEL_BASE, 1112, "bases nested too deeply")                                                                     \
    X(MODEL_TEXT_ONLY, 1115, "the vision encoder is left out")                                                         \
    X(MODEL_LATENT, 1116, "latent attention without its widths")                                                       \
    X(MODEL_SCAN, 1117, "scan or linear-attention heads that do not fit")                                              \
    X(MODEL_ATTN_CONFIG, 1118, "attn_config is not a map")                                                             \
    X(MODEL_VALUE, 1119, "a value that is not modelled")                                                               \
    X(MODEL_REFUSED, 1120, "a model_type whose layers are not modelled")                                               \
    X(MODEL_NO_MEMORY, 1190, "no memory for a model")                                                                  \
    X(MODEL_TOO_LARGE, 1191, "more parameters than can be counted")

enum maq_model_code {
#define MAQ_MODEL_CODE_ENUM(name, code, text) MAQ_CODE_##name = (code),
    MAQ_CODE_LIST_MODEL(MAQ_MODEL_CODE_ENUM)
#undef MAQ_MODEL_CODE_ENUM
};

#endif
