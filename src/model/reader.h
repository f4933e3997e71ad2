/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader.h - a model document while it is read.
 *
 * A model may come from several maps, weakest first: the catalogue entry named by `base`, its nested text_config, the
 * user's own map and its text_config. Field tables are read from all of them in that order, so the strongest value
 * stays; findings point at the map that wrote the value.
 */
#ifndef MAQ_MODEL_READER_H
#define MAQ_MODEL_READER_H

#include "model/architecture.h"
#include "spec/doc.h"
#include "spec/field.h"

enum { MAQ_READER_MAPS = 16 };

struct maq_model_reader {
    struct maq_node *maps[MAQ_READER_MAPS];
    bool lenient[MAQ_READER_MAPS]; /* a config.json from disk: unknown keys only warn */
    uint32_t n_maps;
    struct maq_arena *arena;
    struct maq_diag *diag;
    struct maq_span at; /* the model as a whole */
    bool bad;           /* an error was reported */
};

/* The strongest node of "key|alias|..." that is present and not null; NULL when there is none. Marks it as read. */
struct maq_node *maq__reader_find(struct maq_model_reader *r, const char *keys);
/* Where a key was written; the whole model when it was not. */
struct maq_span maq__reader_at(struct maq_model_reader *r, const char *keys);

/* Reads one field table from all maps into *target, weakest first. */
void maq__reader_fields(struct maq_model_reader *r, void *target, const struct maq_field *fields);

/* Reports an error at a key (or at the whole) and remembers that there was one. */
void maq__reader_error(struct maq_model_reader *r, uint16_t code, const char *keys, const char *hint, const char *fmt,
                       ...) MAQ_PRINTF(5, 6);
/* The same as an expression: reports unless `ok`; returns ok. */
#define MAQ_READER_CHECK(r, ok, ...) ((ok) ? true : (maq__reader_error((r), __VA_ARGS__), false))

/* Reports a key that a model cannot do without, unless it is `there`; returns that. */
bool maq__reader_needs(struct maq_model_reader *r, bool there, const char *key);

/* Reads the integers of a sequence node; NULL (reported) when it is none. *n receives the count. */
int64_t *maq__reader_i64_list(struct maq_model_reader *r, struct maq_node *node, uint32_t *n);

/* Faults of experts in groups (struct maq_moe_geometry), at the keys that say how many there are and how many are open. */
void maq__reader_expert_groups(struct maq_model_reader *r, int64_t experts, int64_t topk, int64_t groups,
                               int64_t group_topk, const char *groups_keys, const char *topk_keys);

struct maq_hf;

/* A family of model_type values that are read alike. */
struct maq_family {
    const char *type;                      /* "llama", or "a|b" */
    const char *architectures;             /* class names of config.json's `architectures`: "LlamaForCausalLM|..." */
    const struct maq_field *const *tables; /* NULL-terminated: the keys it understands */
    void (*read)(struct maq_architecture *arch, struct maq_model_reader *r, const struct maq_family *family);
    /*
     * Hugging Face families: what the class fixes, and its defaults, as the inside of a map: "norm: layer, head_dim: 64"; a preset
     * where words do not reach (NULL: a Llama's); corrections after the keys are read; oddities at the end.
     */
    const char *facts;
    bool wraps; /* it decides although a nested text_config has a type of its own */
    void (*preset)(struct maq_hf *hf);
    void (*settle)(struct maq_hf *hf, struct maq_model_reader *r);
    void (*adapt)(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r);
};

/*
 * The Hugging Face family that reads most of the keys, *read of *all that any reads; of several the one whose name is most like the
 * unknown `type`, or llama.
 */
const struct maq_family *maq__reader_nearest_family(const struct maq_model_reader *r, struct maq_str type,
                                                    uint32_t *read, uint32_t *all);

/* Reports keys that no table of the family and no list of ignored keys knows. */
void maq__reader_unknown_keys(struct maq_model_reader *r, const struct maq_family *family, const char *type);

#endif
