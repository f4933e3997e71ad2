/* SPDX-License-Identifier: Apache-2.0 */
/*
 * name_table.c - numbers for the names of a text: registers, labels, parameters.
 */
#include "shim/ptx/instruction.h"

#include <stdlib.h>
#include <string.h>

#include "shim/record.h"

enum { NAMES_FIRST = 256 };

static uint32_t place_in(const struct vg_ptx_names *names, const char *name, size_t length)
{
    uint32_t at = (uint32_t)maq_rec_hash(name, length, 0) & (names->room - 1);
    while (names->at[at].length > 0 && (names->at[at].length != length || memcmp(names->at[at].at, name, length) != 0))
        at = (at + 1) & (names->room - 1);
    return at;
}

static bool widen(struct vg_ptx_names *names)
{
    struct vg_ptx_names wider = {.n = names->n, .room = names->room ? 2 * names->room : NAMES_FIRST};
    wider.at = calloc(wider.room, sizeof *wider.at);
    if (wider.at == NULL)
        return false;
    for (uint32_t i = 0; i < names->room; i++)
        if (names->at[i].length > 0)
            wider.at[place_in(&wider, names->at[i].at, names->at[i].length)] = names->at[i];
    free(names->at);
    *names = wider;
    return true;
}

uint32_t vg_ptx_number(struct vg_ptx_names *names, const char *name, size_t length)
{
    if (2 * names->n >= names->room && !widen(names))
        return UINT32_MAX;
    struct vg_ptx_name *at = &names->at[place_in(names, name, length)];
    if (at->length == 0)
        *at = (struct vg_ptx_name){name, (uint32_t)length, names->n++};
    return at->number;
}
