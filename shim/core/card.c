/* SPDX-License-Identifier: Apache-2.0 */
/*
 * card.c - the run card: what maquette tells a program's device about itself (keys in link.h).
 *
 * In a CUDA program: the hardware that it runs on, as cudaGetDeviceProperties() and the environment of its launcher describe it.
 *
 * A program without a card gets an H100 SXM of the datasheet and leaves no trace, so that the library does no harm when
 * somebody loads it by hand.
 */
#include "shim/core/core.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VG_CARD_BYTES = 16384 };

/* NVIDIA H100 Tensor Core GPU datasheet and architecture whitepaper V1.04; memory: total_memory as programs see it. */
static const struct vg_card without = {
    .world = 1,
    .per_node = 1,
    .device = "NVIDIA H100 80GB HBM3",
    .memory_bytes = (uint64_t)81089 << 20,
    .l2_bytes = (uint64_t)50 << 20,
    .sms = 132,
    .capability = 90,
    .clock_khz = 1980000,
    .memory_khz = 2619000,
    .bus_bits = 5120,
    .power_w = 700,
    .call_ns = 1000,
    .launch_ns = 4000,
    .copy_bps = 63e9,
    .hbm_bps = 3.35e12,
};

struct key {
    const char *name;
    char kind; /* u: uint32_t, U: uint64_t, i: int64_t, d: double, s: text */
    size_t at, size;
};
#define AT(member) offsetof(struct vg_card, member), sizeof((struct vg_card){0}.member)
static const struct key keys[] = {
    {"world", 'u', AT(world)},
    {"rank", 'u', AT(rank)},
    {"per_node", 'u', AT(per_node)},
    {"local", 'u', AT(local)},
    {"device", 's', AT(device)},
    {"memory", 'U', AT(memory_bytes)},
    {"l2", 'U', AT(l2_bytes)},
    {"sms", 'u', AT(sms)},
    {"capability", 'u', AT(capability)},
    {"clock_khz", 'u', AT(clock_khz)},
    {"memory_khz", 'u', AT(memory_khz)},
    {"bus_bits", 'u', AT(bus_bits)},
    {"power_w", 'u', AT(power_w)},
    {"call_ns", 'i', AT(call_ns)},
    {"launch_ns", 'i', AT(launch_ns)},
    {"copy_bps", 'd', AT(copy_bps)},
    {"hbm_bps", 'd', AT(hbm_bps)},
    {"trace", 's', AT(trace)},
    {"ask", 's', AT(ask)},
    {"peers", 's', AT(peers)},
    {"meet", 's', AT(meet)},
    {"values", 's', AT(values)},
    {"waits", 's', AT(waits)},
    {"inputs", 's', AT(inputs)},
    {"nccl_memory", 's', AT(nccl_memory)},
    {"stops", 'u', AT(stops)},
    {"forks", 'u', AT(forks)},
    {"program", 'U', AT(program)},
};

/* One value; a bad one leaves what was there. */
static void set(struct vg_card *card, const struct key *key, const char *value)
{
    char *to = (char *)card + key->at, *end = NULL;
    if (key->kind == 's') {
        if (strlen(value) < key->size)
            memcpy(to, value, strlen(value) + 1);
        return;
    }
    if (key->kind == 'd') {
        double d = strtod(value, &end);
        if (end != value && *end == '\0' && d > 0 && d < 1e18)
            memcpy(to, &d, sizeof d);
        return;
    }
    unsigned long long n = strtoull(value, &end, 10);
    if (end == value || *end != '\0' || *value == '-')
        return;
    if (key->kind == 'u' && n <= UINT32_MAX)
        memcpy(to, &(uint32_t){(uint32_t)n}, sizeof(uint32_t));
    else if (key->kind == 'U' || (key->kind == 'i' && n <= INT64_MAX))
        memcpy(to, &(uint64_t){n}, sizeof(uint64_t));
}

static void line(struct vg_card *card, const char *name, const char *value, bool *has_rank)
{
    if (strcmp(name, "mode") == 0)
        card->meets = strcmp(value, "meet") == 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(name, keys[i].name) == 0)
            set(card, &keys[i], value);
    *has_rank = *has_rank || strcmp(name, "rank") == 0;
}

void vg_card_parse(struct vg_card *out, const char *text, size_t bytes)
{
    bool has_rank = false;
    for (size_t at = 0; at < bytes;) {
        const char *end = memchr(text + at, '\n', bytes - at);
        size_t n = end != NULL ? (size_t)(end - (text + at)) : bytes - at;
        char copy[1024];
        if (n < sizeof copy) {
            memcpy(copy, text + at, n);
            copy[n] = '\0';
            char *value = copy + strcspn(copy, " \t");
            if (*value != '\0') {
                *value++ = '\0';
                value += strspn(value, " \t");
                line(out, copy, value, &has_rank);
            }
        }
        at += n + 1;
    }
    vg_card_settle(out, has_rank);
}

/* The number that a launcher gave this process, or `otherwise`. */
static uint32_t from_environment(const char *const *names, uint32_t otherwise)
{
    for (; *names != NULL; names++) {
        const char *text = getenv(*names);
        char *end = NULL;
        unsigned long n = text != NULL ? strtoul(text, &end, 10) : 0;
        if (text != NULL && end != text && *end == '\0' && n <= UINT32_MAX)
            return (uint32_t)n;
    }
    return otherwise;
}

/* Every %r of a path becomes the rank; a path that then does not fit becomes none. */
static void with_rank(char *path, size_t size, uint32_t rank)
{
    char out[1024];
    size_t n = 0;
    for (const char *at = path; *at != '\0' && n + 16 < sizeof out; at++)
        if (at[0] == '%' && at[1] == 'r') {
            n += (size_t)snprintf(out + n, sizeof out - n, "%u", rank);
            at++;
        } else {
            out[n++] = *at;
        }
    out[n] = '\0';
    if (n < size)
        memcpy(path, out, n + 1);
    else
        *path = '\0';
}

void vg_card_settle(struct vg_card *card, bool has_rank)
{
    static const char *const ranks[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", NULL};
    if (card->world == 0)
        card->world = 1;
    if (card->per_node == 0)
        card->per_node = 1;
    if (!has_rank) {
        card->rank = from_environment(ranks, card->rank);
        card->local = card->rank % card->per_node;
    }
    with_rank(card->trace, sizeof card->trace, card->rank);
    with_rank(card->values, sizeof card->values, card->rank);
    with_rank(card->inputs, sizeof card->inputs, card->rank);
    with_rank(card->waits, sizeof card->waits, card->rank);
    with_rank(card->meet, sizeof card->meet, card->rank);
    with_rank(card->peers, sizeof card->peers, card->rank);
    with_rank(card->ask, sizeof card->ask, card->rank);
}

static struct vg_card the_card;
static char from[4096]; /* a fork server's path */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void)
{
    the_card = without;
    const char *path = getenv(MAQ_RUN_CARD);
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    static char text[VG_CARD_BYTES];
    size_t n = 0;
    for (ssize_t got; n < sizeof text && (got = read(fd, text + n, sizeof text - n)) > 0;)
        n += (size_t)got;
    close(fd);
    vg_card_parse(&the_card, text, n);
    the_card.there = true;
    if (strlen(path) < sizeof from)
        memcpy(from, path, strlen(path) + 1);
}

/* What a fork server forked has the server's card until its environment names its own; neither has threads then. */
static bool is_another(void)
{
    const char *path = the_card.forks != 0 ? getenv(MAQ_RUN_CARD) : NULL;
    return path != NULL && strcmp(path, from) != 0;
}

const struct vg_card *vg_card(void)
{
    pthread_once(&once, load);
    if (is_another())
        load();
    return &the_card;
}
