/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_slots.c - counts taken devices by scale-up domain, and finds the first domain, or the first empty ones in a
 * row, for a replica. See device_slots.h.
 */
#include "train/mixed/device_slots.h"

bool maq_device_slots_open(struct maq_device_slots *out, const struct maq_pool *pool, struct maq_arena *arena)
{
    uint32_t domain = pool->group.domain_devices > 0 ? (uint32_t)pool->group.domain_devices : 1;
    uint32_t room = domain < UINT16_MAX ? domain : UINT16_MAX, n = (pool->count + room - 1) / room;
    *out = (struct maq_device_slots){.count = pool->count,
                                     .per_node = pool->per_node,
                                     .room = room,
                                     .n_rooms = n,
                                     .left = pool->count,
                                     .taken = MAQ_ARENA_NEW(arena, uint16_t, n)};
    return out->taken != NULL;
}

/* Free devices of a domain; the last one of a pool may be smaller than the others. */
static uint32_t free_in(const struct maq_device_slots *s, uint32_t room)
{
    uint32_t behind = s->count - room * s->room;
    return (behind < s->room ? behind : s->room) - s->taken[room];
}

static uint32_t take_from(struct maq_device_slots *s, uint32_t room, uint32_t devices)
{
    uint32_t first = room * s->room + s->taken[room];
    s->left -= devices;
    for (; devices > 0; room++) {
        uint32_t here = free_in(s, room) < devices ? free_in(s, room) : devices;
        s->taken[room] = (uint16_t)(s->taken[room] + here);
        devices -= here;
    }
    return first;
}

/* Whether the domains from this one on are empty for so many devices, in one node where they fit into one. */
static bool empty_from(const struct maq_device_slots *s, uint32_t room, uint32_t devices)
{
    uint32_t first = room * s->room, last = first + devices - 1;
    if (last >= s->count || (devices <= s->per_node && first / s->per_node != last / s->per_node))
        return false;
    for (uint32_t r = room; r <= last / s->room; r++)
        if (s->taken[r] > 0)
            return false;
    return true;
}

/* The first domain with enough free devices, or the first of enough empty ones; n_rooms: there is none. */
static uint32_t place_for(const struct maq_device_slots *s, uint32_t devices)
{
    uint32_t r = 0;
    while (r < s->n_rooms && (devices <= s->room ? free_in(s, r) < devices : !empty_from(s, r, devices)))
        r++;
    return r;
}

uint32_t maq_device_slots_take(struct maq_device_slots *s, uint32_t devices)
{
    if (devices == 0 || devices > s->left)
        return UINT32_MAX;
    uint32_t room = place_for(s, devices);
    for (uint32_t r = 0; room == s->n_rooms; r++)
        room = free_in(s, r) > 0 ? r : room;
    return take_from(s, room, devices);
}

void maq_device_slots_take_stage(struct maq_device_slots *s, uint32_t devices, uint32_t replicas, uint32_t *first)
{
    uint32_t room = replicas > 1 ? place_for(s, devices * replicas) : s->n_rooms, half = replicas / 2;
    if (replicas == 1)
        first[0] = maq_device_slots_take(s, devices);
    if (room < s->n_rooms) {
        first[0] = take_from(s, room, devices * replicas);
        for (uint32_t i = 1; i < replicas; i++)
            first[i] = first[0] + i * devices;
    } else if (replicas > 1) {
        maq_device_slots_take_stage(s, devices, replicas - half, first);
        maq_device_slots_take_stage(s, devices, half, first + replicas - half);
    }
}

uint32_t maq_device_slots_first(uint32_t first, uint32_t devices, uint32_t replicas)
{
    return replicas > 1 ? first / devices * devices : first;
}
