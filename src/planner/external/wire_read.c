/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire_read.c - reads the answers of a parallelizer from lines of JSON by tables of fields: name, type, and offset
 * into the struct. See wire.h.
 */
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "plan/mixed/mixed_plan.h"
#include "planner/external/wire.h"

enum field_kind { REAL, COUNT, WORD };

/* A member of a struct. */
struct field {
    const char *key;
    enum field_kind kind;
    size_t offset;
    bool needed;
    const char *const *words; /* WORD */
};

static enum maq_status wrong(char *why, const char *fmt, ...) MAQ_PRINTF(2, 3);
static enum maq_status wrong(char *why, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    maq__vsnprintf(why, MAQ_PARALLELIZER_WHY, fmt, args);
    va_end(args);
    return MAQ_BAD_INPUT;
}

static enum maq_status read_word(int *out, const char *const *words, const json_t *value, const char *key, char *why)
{
    const char *text = json_string_value(value);
    for (int i = 0; text && words[i]; i++)
        if (strcmp(text, words[i]) == 0) {
            *out = i;
            return MAQ_OK;
        }
    return wrong(why, "'%s' of an answer is none of the words of docs/plan-form.md", key);
}

static enum maq_status read_field(void *out, const struct field *f, const json_t *value, char *why)
{
    void *to = (char *)out + f->offset;
    double x = json_number_value(value);
    if (f->kind == WORD)
        return read_word(to, f->words, value, f->key, why);
    if (!json_is_number(value))
        return wrong(why, "'%s' of an answer is not a number", f->key);
    if (f->kind == REAL)
        memcpy(to, &x, sizeof x);
    else if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > UINT32_MAX)
        return wrong(why, "'%s' of an answer is not a whole number from 0 to 4294967295", f->key);
    else {
        uint32_t n = (uint32_t)json_integer_value(value);
        memcpy(to, &n, sizeof n);
    }
    return MAQ_OK;
}

/* Reads all members of a map; a missing or an unknown one is a fault. Those in `also` are read by the caller. */
static enum maq_status read_fields(void *out, const struct field *fields, size_t n, const json_t *map, const char *what,
                                   const char *const *also, bool strict, char *why)
{
    size_t known = 0;
    if (!json_is_object(map))
        return wrong(why, "%s of an answer is not an object", what);
    for (size_t i = 0; i < n; i++) {
        const json_t *value = json_object_get(map, fields[i].key);
        known += value != NULL;
        if (!value && fields[i].needed)
            return wrong(why, "'%s' is missing in %s of an answer", fields[i].key, what);
        if (value)
            MAQ_TRY(read_field(out, &fields[i], value, why));
    }
    for (; *also; also++)
        known += json_object_get(map, *also) != NULL;
    if (strict && known != json_object_size(map))
        return wrong(why, "%s of an answer has a member that is not of the form", what);
    return MAQ_OK;
}

static const char *const nothing_else[] = {NULL};

/* ---- the answer ---- */

enum maq_status maq_wire_answer(json_t **out, bool *failed, const char *line, int64_t id, char *why)
{
    json_error_t error;
    char shown[MAQ_SHOW_SIZE];
    json_t *map = json_loads(line, JSON_REJECT_DUPLICATES, &error);
    *failed = false;
    if (!json_is_object(map)) {
        json_decref(map);
        return wrong(why, "its answer is not a JSON object: %s",
                     maq_str_show(shown, (struct maq_str){line, strlen(line)}));
    }
    const json_t *given = json_object_get(map, "id"), *fault = json_object_get(map, "error");
    if (!json_is_integer(given) || json_integer_value(given) != id) {
        if (json_is_integer(given))
            wrong(why, "it answers request %lld; %lld was asked", (long long)json_integer_value(given), (long long)id);
        else
            wrong(why, "its answer to request %lld has no 'id'", (long long)id);
        json_decref(map);
        return MAQ_BAD_INPUT;
    }
    if (fault) {
        const char *text = json_string_value(fault);
        *failed = true;
        wrong(why, "%.200s", text ? text : "it does not say why");
        json_decref(map);
        return MAQ_BAD_INPUT;
    }
    *out = map;
    return MAQ_OK;
}

enum maq_status maq_wire_read_hello(struct maq_wire_hello *out, json_t *answer, char *why)
{
    const json_t *version = json_object_get(answer, "version"), *name = json_object_get(answer, "name"),
                 *front = json_object_get(answer, "front"), *concatenates = json_object_get(answer, "concatenates");
    *out = (struct maq_wire_hello){.version = json_integer_value(version), .name = json_string_value(name)};
    if (!json_is_integer(version))
        return wrong(why, "'version' of its answer to 'open' is not a whole number");
    if (!out->name || out->name[0] == '\0')
        return wrong(why, "'name' of its answer to 'open' is not a text");
    if ((front && !json_is_boolean(front)) || (concatenates && !json_is_boolean(concatenates)))
        return wrong(why, "'front' and 'concatenates' of its answer to 'open' are true or false");
    out->front = json_is_true(front);
    out->concatenates = json_is_true(concatenates);
    return MAQ_OK;
}

static enum maq_status read_signature(char *out, const json_t *map, char *why)
{
    const char *text = json_string_value(json_object_get(map, "signature"));
    if (!text || strlen(text) >= MAQ_PARALLELIZER_SIGNATURE)
        return wrong(why, "'signature' of an answer is not a text of at most %u bytes", MAQ_PARALLELIZER_SIGNATURE - 1);
    memset(out, 0, MAQ_PARALLELIZER_SIGNATURE);
    memcpy(out, text, strlen(text));
    return MAQ_OK;
}

enum maq_status maq_wire_read_signature(char *out, json_t *answer, char *why)
{
    return read_signature(out, answer, why);
}

enum maq_status maq_wire_read_atoms(const struct maq_parallelizer_atom **out, uint32_t *n, json_t *answer,
                                    struct maq_arena *arena, char *why)
{
    static const struct field fields[] = {
        {"layers", COUNT, offsetof(struct maq_parallelizer_atom, layers), true, NULL}};
    static const char *const also[] = {"signature", NULL};
    const json_t *list = json_object_get(answer, "atoms");
    size_t count = json_array_size(list);
    struct maq_parallelizer_atom *atoms = MAQ_ARENA_NEW(arena, struct maq_parallelizer_atom, count);
    if (!json_is_array(list))
        return wrong(why, "'atoms' of an answer is not a list");
    if (!atoms || count > UINT32_MAX)
        return MAQ_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        const json_t *map = json_array_get(list, i);
        MAQ_TRY(read_fields(&atoms[i], fields, MAQ_COUNT(fields), map, "an atom", also, true, why));
        MAQ_TRY(read_signature(atoms[i].signature, map, why));
    }
    *out = atoms;
    *n = (uint32_t)count;
    return MAQ_OK;
}

enum maq_status maq_wire_read_profile(struct maq_parallelizer_profile *out, json_t *answer, char *why)
{
    static const struct field fields[] = {
        {"samples_per_s", REAL, offsetof(struct maq_parallelizer_profile, samples_per_s), true, NULL},
        {"min_bytes", REAL, offsetof(struct maq_parallelizer_profile, min_bytes), true, NULL},
    };
    return read_fields(out, fields, MAQ_COUNT(fields), answer, "the profile", nothing_else, false, why);
}

/* ---- plans ---- */

#define AT(member) offsetof(struct maq_parallelizer_stage, member)

static enum maq_status read_stage(struct maq_parallelizer_stage *out, const json_t *map, char *why)
{
    static const struct field fields[] = {
        {"atoms", COUNT, AT(atoms), true, NULL},
        {"devices", COUNT, AT(devices), true, NULL},
        {"replicas", COUNT, AT(replicas), false, NULL},
        {"time_s", REAL, AT(time_s), true, NULL},
        {"static_bytes", REAL, AT(static_bytes), true, NULL},
        {"flight_bytes", REAL, AT(flight_bytes), true, NULL},
        {"sync_s", REAL, AT(sync_s), true, NULL},
        {"once_s", REAL, AT(once_s), false, NULL},
        {"boundary_bytes", REAL, AT(boundary_bytes), true, NULL},
        {"tensor_parallel_size", COUNT, AT(tensor_parallel_size), false, NULL},
        {"micro_batch_size", COUNT, AT(micro_batch_size), false, NULL},
        {"context_parallel_size", COUNT, AT(context_parallel_size), false, NULL},
        {"expert_parallel_size", COUNT, AT(expert_parallel_size), false, NULL},
        {"recompute", WORD, AT(recompute), false, maq__mixed_recomputes},
        {"zero", WORD, AT(sharding), false, maq__mixed_shardings},
    };
    *out = (struct maq_parallelizer_stage){.recompute = -1, .sharding = -1};
    return read_fields(out, fields, MAQ_COUNT(fields), map, "a stage", nothing_else, true, why);
}

static enum maq_status read_plan(struct maq_parallelizer_plan *out, const json_t *map, struct maq_arena *arena,
                                 char *why)
{
    static const char *const also[] = {"stages", "text", NULL};
    MAQ_TRY(read_fields(out, NULL, 0, map, "a plan", also, true, why));
    const json_t *list = json_object_get(map, "stages"), *text = json_object_get(map, "text");
    size_t n = json_array_size(list);
    struct maq_parallelizer_stage *stages = MAQ_ARENA_NEW(arena, struct maq_parallelizer_stage, n);
    if (!json_is_array(list) || n > UINT32_MAX)
        return wrong(why, "'stages' of a plan is not a list");
    if (text && !json_is_string(text))
        return wrong(why, "'text' of a plan is not a text");
    const char *words = text ? json_string_value(text) : "";
    out->text = maq_arena_strdup(arena, (struct maq_str){words, strlen(words)});
    if (!stages || !out->text)
        return MAQ_NO_MEMORY;
    for (size_t i = 0; i < n; i++)
        MAQ_TRY(read_stage(&stages[i], json_array_get(list, i), why));
    out->n_stages = (uint32_t)n;
    out->stages = stages;
    return MAQ_OK;
}

enum maq_status maq_wire_read_plans(const struct maq_parallelizer_plan **out, uint32_t *n, json_t *answer,
                                    struct maq_arena *arena, char *why)
{
    const json_t *list = json_object_get(answer, "plans");
    size_t count = json_array_size(list);
    struct maq_parallelizer_plan *plans = MAQ_ARENA_NEW(arena, struct maq_parallelizer_plan, count);
    if (!json_is_array(list) || count > UINT32_MAX)
        return wrong(why, "'plans' of an answer is not a list");
    if (!plans)
        return MAQ_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        MAQ_TRY(read_plan(&plans[i], json_array_get(list, i), arena, why));
    *out = plans;
    *n = (uint32_t)count;
    return MAQ_OK;
}
