/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field.h - a section of a document as one static table.
 *
 * One row per key: name, aliases, type, place in the struct, default, range, one line of documentation. The
 * same table parses, fills defaults, suggests ("did you mean"), lists itself for --help and docs, and says
 * where each value came from (--explain).
 *
 *   static const struct maq_field device_fields[] = {
 *       MAQ_FIELD_QTY(struct maq_device, mem_bytes, "memory", MAQ_DIM_BYTES, .required = true, .min = 1e9, .doc = "device memory"),
 *       MAQ_FIELD_I32(struct maq_device, sms, "sms", .min = 1, .doc = "streaming multiprocessors"),
 *       MAQ_FIELD_ENUM(struct maq_device, kind, "kind", kind_names, .def = "gpu"),
 *       MAQ_FIELD_END
 *   };
 */
#ifndef MAQ_SPEC_FIELD_H
#define MAQ_SPEC_FIELD_H

#include <stddef.h>

#include "base/units.h"
#include "spec/doc.h"

enum maq_field_type {
    MAQ_TYPE_END,
    MAQ_TYPE_I32,
    MAQ_TYPE_I64,
    MAQ_TYPE_DOUBLE,
    MAQ_TYPE_BOOL,
    MAQ_TYPE_STR,  /* struct maq_str in the target, in `arena` */
    MAQ_TYPE_ENUM, /* int in the target: index into names */
    MAQ_TYPE_QTY,  /* double in the target, in base units of `dim` */
    MAQ_TYPE_NODE, /* struct maq_node *: the reader handles the subtree itself */
};

struct maq_field {
    enum maq_field_type type;
    const char *key;
    const char *aliases; /* "tp|tensor_parallel" or NULL */
    size_t offset;
    enum maq_dim dim;         /* QTY */
    const char *const *names; /* ENUM: NULL-terminated */
    const char *slips;        /* ENUM: "bfloat16=bf16|half=fp16": what people write for a name, for "did you mean" */
    bool numbered;            /* ENUM: a name's place, from 0, is as good as the name (ZeRO's stages) */
    const char *def;          /* as it would be written in a document; NULL = leave the target as it is (zero) */
    double min, max;          /* inclusive; both 0 = no range */
    bool required;
    const char *doc; /* one line, no full stop */
};

/* The type comes last, so that a row without further designators has no empty variadic part (ISO C17 forbids one). */
#define MAQ_FIELD_ROW(T, member_, key_, ...)                                                                           \
    {                                                                                                                  \
        .key = (key_), .offset = offsetof(T, member_), __VA_ARGS__                                                     \
    }
#define MAQ_FIELD_ROW_ENUM(T, m, k, names_, ...) MAQ_FIELD_ROW(T, m, k, .names = (names_), __VA_ARGS__)
#define MAQ_FIELD_ROW_QTY(T, m, k, dim_, ...) MAQ_FIELD_ROW(T, m, k, .dim = (dim_), __VA_ARGS__)

/* (struct, member, "key" [, designators of struct maq_field...]) */
#define MAQ_FIELD(kind_, T, ...) MAQ_FIELD_ROW(T, __VA_ARGS__, .type = (kind_))
#define MAQ_FIELD_I32(T, ...) MAQ_FIELD(MAQ_TYPE_I32, T, __VA_ARGS__)
#define MAQ_FIELD_I64(T, ...) MAQ_FIELD(MAQ_TYPE_I64, T, __VA_ARGS__)
#define MAQ_FIELD_DOUBLE(T, ...) MAQ_FIELD(MAQ_TYPE_DOUBLE, T, __VA_ARGS__)
#define MAQ_FIELD_BOOL(T, ...) MAQ_FIELD(MAQ_TYPE_BOOL, T, __VA_ARGS__)
#define MAQ_FIELD_STR(T, ...) MAQ_FIELD(MAQ_TYPE_STR, T, __VA_ARGS__)
#define MAQ_FIELD_NODE(T, ...) MAQ_FIELD(MAQ_TYPE_NODE, T, __VA_ARGS__)
/* (struct, member, "key", names [, ...]) and (struct, member, "key", dimension [, ...]) */
#define MAQ_FIELD_ENUM(T, ...) MAQ_FIELD_ROW_ENUM(T, __VA_ARGS__, .type = MAQ_TYPE_ENUM)
#define MAQ_FIELD_QTY(T, ...) MAQ_FIELD_ROW_QTY(T, __VA_ARGS__, .type = MAQ_TYPE_QTY)
#define MAQ_FIELD_END                                                                                                  \
    {                                                                                                                  \
        .type = MAQ_TYPE_END                                                                                           \
    }

/*
 * Fills *target from `map` (may be NULL: defaults only). Defaults are written first, then the document's
 * values. Unknown keys are NOT reported here (several readers may share a map); maq_fields_check_keys() does
 * that. `origins`, when not NULL, has one entry per row and receives enum maq_origin. Reports every fault,
 * then returns MAQ_BAD_INPUT.
 */
enum maq_status maq_fields_read(void *target, const struct maq_field *fields, struct maq_node *map, uint8_t *origins,
                                struct maq_arena *arena, struct maq_diag *diag);

/* Errors for keys of `map` that no row of `fields` knows (nor `also`, a NULL-terminated list), with "did you mean". `what` names
 * the section in the message ("device"). Marks reported keys as used so that they are not reported twice. */
enum maq_status maq_fields_check_keys(const struct maq_field *fields, const char *const *also, struct maq_node *map,
                                      const char *what, struct maq_diag *diag);

/* Both: the values, then the keys that the table lacks. */
enum maq_status maq_fields_read_map(void *target, const struct maq_field *fields, struct maq_node *map,
                                    const char *what, struct maq_arena *arena, struct maq_diag *diag);

/* Row of a key or alias; NULL when there is none. */
const struct maq_field *maq_fields_find(const struct maq_field *fields, struct maq_str key);
size_t maq_fields_count(const struct maq_field *fields);

/* Place of the name of an ENUM, as documents may write it; -1 when it is none. */
int maq_field_name(const struct maq_field *field, struct maq_str text);

/* The name that a word stands for in `slips` (may be NULL), "-" and "_" alike; empty when it stands for none. */
struct maq_str maq_field_slip(const char *slips, struct maq_str text);

/* The value of a row as text, in the form a document would have it (for --explain and dumps), into buf;
 * returns buf. */
const char *maq_field_format(char buf[64], const struct maq_field *field, const void *target);

#endif
