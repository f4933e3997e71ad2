/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gloo.c - reads the values that ranks of gloo set in the store, and makes those of absent ranks.
 *
 * gloo makes a connection between each two ranks of a group. Each rank sets the key PREFIX/RANK, prefix and rank those of the
 * group:
 *
 *   8 bytes   length of the host's name, and the name
 *   8         136, and an address: a struct sockaddr_storage (128), 8 bytes that are not used here
 *   8 each    for each rank of the group the number by which the connection with it is known; none where connections are
 *             made when they are first needed
 *
 * and asks for the keys of all others. The rank with the larger address connects, and sends the number that the other one gave it.
 * For absent ranks the address is one that the zero-GPU device recognises (shim/link.h), and the numbers are the ranks themselves.
 * Source: gloo/transport/tcp/{context,device,address}.cc of pytorch/gloo. Older gloo (before 2023) uses another form, and is not
 * answered.
 */
#include "launch/store/gloo.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "shim/link.h"

enum { LENGTH = 8, ADDRESS = 136, NUMBER = 8, RANK_DIGITS = 7, NAME_MAX_BYTES = 256 };

/* Offset of the address in the value of a rank; 0: it has another form. */
static size_t address_at(struct maq_str value)
{
    uint64_t name, address;
    if (value.len < 2 * LENGTH + ADDRESS)
        return 0;
    memcpy(&name, value.ptr, LENGTH);
    if (name > NAME_MAX_BYTES || name > value.len - 2 * LENGTH - ADDRESS)
        return 0;
    memcpy(&address, value.ptr + LENGTH + name, LENGTH);
    size_t at = 2 * LENGTH + (size_t)name;
    sa_family_t family;
    memcpy(&family, value.ptr + at, sizeof family);
    return address == ADDRESS && family == AF_INET && (value.len - at - ADDRESS) % NUMBER == 0 ? at : 0;
}

/* PREFIX/RANK in two. */
static bool split_key(struct maq_str *prefix, uint32_t *rank, struct maq_str key)
{
    size_t at = key.len;
    uint32_t value = 0, unit = 1;
    for (; at > 0 && key.len - at < RANK_DIGITS && key.ptr[at - 1] >= '0' && key.ptr[at - 1] <= '9'; at--, unit *= 10)
        value += (uint32_t)(key.ptr[at - 1] - '0') * unit;
    if (at == key.len || at == 0 || key.ptr[at - 1] != '/')
        return false;
    *prefix = (struct maq_str){key.ptr, at};
    *rank = value;
    return true;
}

bool maq_gloo_said(struct maq_str value)
{
    return address_at(value) > 0;
}

bool maq_gloo_ranks(uint32_t *ranks, struct maq_str value)
{
    size_t at = address_at(value);
    *ranks = at > 0 ? (uint32_t)((value.len - at - ADDRESS) / NUMBER) : 0;
    return at > 0;
}

void maq_gloo_settle(char *value, size_t n)
{
    size_t at = address_at((struct maq_str){value, n}), family = sizeof(sa_family_t);
    if (at > 0)
        memset(value + at + family, 0, ADDRESS - family);
}

char *maq_gloo_absent(size_t *n_out, struct maq_str key, uint32_t ranks)
{
    struct maq_str prefix;
    struct maq_gloo_peer peer = {.n = ranks};
    if (!split_key(&prefix, &peer.rank, key))
        return NULL;
    peer.group = maq_rec_hash(prefix.ptr, prefix.len, 0) & 0xffffffffffu;
    uint64_t name = 0, address = ADDRESS;
    sa_family_t family = AF_INET;
    size_t n = 2 * LENGTH + ADDRESS + (size_t)peer.n * NUMBER;
    char *out = (peer.n == 0 || peer.rank < peer.n) ? maq__calloc(n) : NULL, *at = out;
    if (!out)
        return NULL;
    memcpy(at, &name, LENGTH); /* a host name of its own */
    memcpy(at += LENGTH, &address, LENGTH);
    memcpy(at += LENGTH, &family, sizeof family);
    maq_gloo_address((unsigned char *)at + sizeof family, &peer);
    at += ADDRESS;
    for (uint64_t i = 0; i < peer.n; i++)
        memcpy(at + i * NUMBER, &i, NUMBER);
    *n_out = n;
    return out;
}

struct maq_str maq_gloo_group(struct maq_str key)
{
    struct maq_str prefix;
    uint32_t rank;
    return split_key(&prefix, &rank, key) ? prefix : (struct maq_str){NULL, 0};
}

bool maq_gloo_rank_of(uint32_t *rank, struct maq_str key)
{
    struct maq_str prefix;
    return split_key(&prefix, rank, key);
}
