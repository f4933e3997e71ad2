/* SPDX-License-Identifier: Apache-2.0 */
/* keys.h - the option tables of a plan and of a workload: every key, its aliases, default, range and
 * one line of documentation. */
#ifndef MAQ_PLAN_KEYS_H
#define MAQ_PLAN_KEYS_H

#include "base/str.h"
#include "maquette/plan.h"
#include "spec/field.h"

/* Settings that are lists of words. */
enum maq_plan_list { MAQ_PLAN_RECOMPUTE_MODULES, MAQ_PLAN_GRAPH_SCOPE, MAQ_PLAN_OFFLOAD_MODULES, MAQ_PLAN_LISTS };

/* Lists are nodes until maq_plan_read_lists() has read them. */
struct maq_plan_doc {
    struct maq_plan plan;
    struct maq_node *list[MAQ_PLAN_LISTS];
};

extern const char *const maq_auto_bool_names[];      /* of enum maq_auto_bool; NULL at the end */
extern const struct maq_field maq_plan_fields[];     /* of struct maq_plan_doc */
extern const struct maq_field maq_workload_fields[]; /* of struct maq_workload */

/* A key of the plan as documents have it ("adam"); of a text, or of no key: NULL. */
const char *maq_plan_value(char buf[64], const struct maq_plan *plan, const char *key);

#define MAQ_PLAN_FIELDS_MAX 128
#define MAQ_WORKLOAD_FIELDS_MAX 16

/* A list sets a bit of a member of the plan for each of its words. */
struct maq_plan_words {
    const char *key;              /* "recompute_modules" */
    size_t bits;                  /* offset in struct maq_plan of an uint32_t */
    int n;                        /* bits, of which some may have no word */
    const char *(*word)(int bit); /* NULL: it has none */
    const char *wrong, *known;    /* for messages: what an unknown word is not, and the list of known words */
    const char *slips;            /* as struct maq_field has them */
};
extern const struct maq_plan_words maq_plan_words[MAQ_PLAN_LISTS];
uint32_t maq_plan_bits(const struct maq_plan *plan, enum maq_plan_list list);

/* Bit of a word of a list; -1: it is none. */
int maq_plan_word_bit(enum maq_plan_list list, struct maq_str word);

/* Appends the words of bits, or of those that are set in the plan, with `between` between them. */
void maq_plan_add_bits(struct maq_buf *out, enum maq_plan_list list, uint32_t bits, const char *between);
void maq_plan_add_words(struct maq_buf *out, const struct maq_plan *plan, enum maq_plan_list list, const char *between);

/* Reads the lists into the plan; MAQ_BAD_INPUT with a diagnostic for each unknown word. NULL: the list is not given. */
enum maq_status maq_plan_read_lists(struct maq_plan *plan, struct maq_node *const list[MAQ_PLAN_LISTS],
                                    struct maq_diag *diag);

/* Name of a recomputable part in Megatron's spelling ("core_attn"), or NULL when the part is not one. */
const char *maq_part_recompute_name(enum maq_part part);

#endif
