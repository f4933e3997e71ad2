/* SPDX-License-Identifier: Apache-2.0 */
/*
 * contributions.c - what other ranks put into exchanges, as their slices recorded it: the file `peers` of the card (link.h).
 *
 * Mapped once and searched by halves. The file comes from another process and is not trusted: an entry that points out of
 * it is none, and one of another size than this rank expects is none either (the two programs are not at the same place).
 */
#include "shim/nccl/nccl.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const unsigned char *file;
static uint64_t file_bytes;
static const struct maq_peers_entry *entries;
static uint64_t n_entries;

bool vg_contributions_open(const char *path)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool sized = fstat(fd, &info) == 0 && info.st_size >= (off_t)sizeof(struct maq_peers_head);
    void *at = sized ? mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    (void)close(fd);
    if (at == MAP_FAILED)
        return false;
    const struct maq_peers_head *head = at;
    uint64_t bytes = (uint64_t)info.st_size;
    if (memcmp(head->magic, MAQ_PEERS_MAGIC, sizeof head->magic) != 0 ||
        head->n_entries > (bytes - sizeof *head) / sizeof *entries) {
        (void)munmap(at, bytes);
        return false;
    }
    if (file)
        (void)munmap((void *)file, file_bytes);
    file = at;
    file_bytes = bytes;
    entries = (const struct maq_peers_entry *)(head + 1);
    n_entries = head->n_entries;
    return true;
}

static void open_the_cards(void)
{
    if (vg_card()->peers[0] && !file)
        (void)vg_contributions_open(vg_card()->peers);
}

static int compared(const struct maq_peers_entry *e, uint64_t channel, uint32_t seq, uint32_t rank)
{
    if (e->channel != channel)
        return e->channel < channel ? -1 : 1;
    if (e->seq != seq)
        return e->seq < seq ? -1 : 1;
    return e->rank < rank ? -1 : e->rank > rank;
}

/* The first entry that does not come before that place; n_entries: none. */
static uint64_t first_from(uint64_t channel, uint32_t seq, uint32_t rank)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_the_cards);
    uint64_t low = 0, high = n_entries;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (compared(&entries[middle], channel, seq, rank) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const void *bytes_of(const struct maq_peers_entry *e)
{
    return e->at <= file_bytes && e->bytes <= file_bytes - e->at ? file + e->at : NULL;
}

bool vg_contributed(uint64_t channel)
{
    uint64_t first = first_from(channel, 0, 0);
    return first < n_entries && entries[first].channel == channel;
}

static bool listed(uint32_t waits, uint32_t rank)
{
    uint64_t i = first_from(MAQ_PEERS_RAN, waits, rank);
    return i < n_entries && compared(&entries[i], MAQ_PEERS_RAN, waits, rank) == 0;
}

bool vg_ran(uint32_t rank)
{
    return listed(0, rank);
}

bool vg_waits(uint32_t rank)
{
    return listed(1, rank);
}

/* Of any size; NULL: there is none. */
static const void *find(uint64_t channel, uint32_t seq, uint32_t rank, uint64_t *bytes)
{
    uint64_t i = first_from(channel, seq, rank);
    if (i == n_entries || compared(&entries[i], channel, seq, rank) != 0)
        return NULL;
    *bytes = entries[i].bytes;
    return bytes_of(&entries[i]);
}

const void *vg_contribution_any(uint64_t channel, uint32_t seq, uint32_t rank, uint64_t *bytes)
{
    return find(channel, seq, rank, bytes);
}

const void *vg_contribution_of(uint64_t channel, uint32_t seq, uint32_t rank, uint64_t *bytes)
{
    const void *found = find(channel, seq, rank, bytes);
    vg_input_record_lookup(channel, seq, rank, found, found ? *bytes : 0, false);
    return found;
}

const void *vg_contribution_near(uint64_t channel, uint32_t seq, uint32_t *rank, uint64_t *bytes)
{
    uint64_t i = first_from(channel, seq, *rank);
    bool there = i < n_entries && compared(&entries[i], channel, seq, *rank) == 0;
    bool before = !there && i > 0 && entries[i - 1].channel == channel && entries[i - 1].seq == seq;
    bool behind = !there && !before && i < n_entries && entries[i].channel == channel && entries[i].seq == seq;
    if (!there)
        vg_input_record_lookup(channel, seq, *rank, NULL, 0, before || behind);
    if (!there && !before && !behind)
        return NULL;
    *rank = entries[i - before].rank;
    return vg_contribution_of(channel, seq, *rank, bytes);
}

const void *vg_contribution(uint64_t channel, uint32_t seq, uint32_t rank, uint64_t bytes)
{
    uint64_t there = 0;
    const void *found = find(channel, seq, rank, &there);
    return found && there == bytes ? found : NULL;
}
