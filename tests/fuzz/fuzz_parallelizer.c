/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_parallelizer.c - any line as an answer of a parallelizer: a value or a reason, nothing else. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "planner/external/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char why[MAQ_PARALLELIZER_WHY] = "", signature[MAQ_PARALLELIZER_SIGNATURE], *line = malloc(size + 1);
    const struct maq_parallelizer_atom *atoms;
    const struct maq_parallelizer_plan *plans;
    struct maq_parallelizer_profile profile;
    struct maq_wire_hello hello;
    struct maq_arena arena;
    json_t *answer;
    bool failed;
    uint32_t n;
    if (!line)
        return 0;
    memcpy(line, data, size);
    line[size] = '\0';
    maq_arena_init(&arena, 1u << 24);
    if (maq_wire_answer(&answer, &failed, line, 7, why) == MAQ_OK) {
        maq_wire_read_hello(&hello, answer, why);
        maq_wire_read_atoms(&atoms, &n, answer, &arena, why);
        maq_wire_read_signature(signature, answer, why);
        maq_wire_read_profile(&profile, answer, why);
        maq_wire_read_plans(&plans, &n, answer, &arena, why);
        json_decref(answer);
    }
    if (!memchr(why, 0, sizeof why))
        abort();
    maq_arena_fini(&arena);
    free(line);
    return 0;
}
