/* seats.c - see seats.h. */
#include "train/seats.h"

bool maq_seats_open(struct maq_seats *out, const struct maq_pool *pool, struct maq_arena *arena)
{
    uint32_t domain = pool->group.domain_devices > 0 ? (uint32_t)pool->group.domain_devices : 1;
    uint32_t room = domain < UINT16_MAX ? domain : UINT16_MAX, n = (pool->count + room - 1) / room;
    *out = (struct maq_seats){.count = pool->count,
                              .per_node = pool->per_node,
                              .room = room,
                              .n_rooms = n,
                              .left = pool->count,
                              .taken = MAQ_ARENA_NEW(arena, uint16_t, n)};
    return out->taken != NULL;
}

/* The last room of a pool may be less than one. */
static uint32_t free_in(const struct maq_seats *s, uint32_t room)
{
    uint32_t behind = s->count - room * s->room;
    return (behind < s->room ? behind : s->room) - s->taken[room];
}

static uint32_t take_from(struct maq_seats *s, uint32_t room, uint32_t devices)
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

/* Whether rooms from this one on are empty for so many devices, in one node where one holds them. */
static bool empty_from(const struct maq_seats *s, uint32_t room, uint32_t devices)
{
    uint32_t first = room * s->room, last = first + devices - 1;
    if (last >= s->count || (devices <= s->per_node && first / s->per_node != last / s->per_node))
        return false;
    for (uint32_t r = room; r <= last / s->room; r++)
        if (s->taken[r] > 0)
            return false;
    return true;
}

uint32_t maq_seats_take(struct maq_seats *s, uint32_t devices)
{
    uint32_t first = 0;
    if (devices == 0 || devices > s->left)
        return UINT32_MAX;
    for (uint32_t r = 0; r < s->n_rooms; r++)
        if (devices <= s->room ? free_in(s, r) >= devices : empty_from(s, r, devices))
            return take_from(s, r, devices);
    while (free_in(s, first) == 0)
        first++;
    return take_from(s, first, devices);
}

uint32_t maq_seats_first(uint32_t first, uint32_t devices, uint32_t replicas)
{
    return replicas > 1 ? first / devices * devices : first;
}
