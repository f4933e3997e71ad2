/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shm.c - the segment of meetings: see shm.h, and link.h for its layout and its rules.
 *
 * The file: head, n_slots slots, a bit for each rank (only where not all run), payloads. A payload is a block of the area:
 * 8 bytes of header, then need * bytes of contributions in order of place, then one byte per place: 1 = somebody put
 * something there. Blocks have sizes of powers of two; a freed one goes to the list of its size, whose heads lie at the
 * beginning of the area, and so a long run takes no more of the area than what is under way at one time.
 */
#include "shim/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { FREE, CLAIMED, USED, GRAVE };

#define SIZES 48u              /* lists of free blocks: block i has 2^i bytes */
#define AREA_HEAD (SIZES * 8u) /* their heads, at the beginning of the area */
#define BLOCK_HEAD 8u          /* of a free block: the next one in its list */
#define SLEEP_MS 200u

_Static_assert(sizeof(struct maq_shm_head) == 72 && sizeof(struct maq_shm_slot) == 80, "layout of the segment");

#define LOAD(p) __atomic_load_n(&(p), __ATOMIC_ACQUIRE)
#define STORE(p, v) __atomic_store_n(&(p), v, __ATOMIC_RELEASE)

/* --- the file --------------------------------------------------------------------------------------------------------- */

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + 4095) & ~(uint64_t)4095;
}

static int write_at(int fd, const void *data, uint64_t bytes, uint64_t at)
{
    const char *from = data;
    while (bytes) {
        ssize_t n = pwrite(fd, from, bytes, (off_t)at);
        if (n < 0 && errno != EINTR)
            return errno;
        if (n > 0) {
            from += n;
            at += (uint64_t)n;
            bytes -= (uint64_t)n;
        }
    }
    return 0;
}

static int write_live(int fd, const struct maq_shm_opts *opts, uint64_t at)
{
    uint64_t bytes = ((uint64_t)opts->world + 7) / 8;
    unsigned char *bits = calloc(1, bytes ? bytes : 1);
    if (!bits)
        return ENOMEM;
    for (uint32_t i = 0; i < opts->n_live; i++)
        if (opts->live[i] < opts->world)
            bits[opts->live[i] / 8] |= (unsigned char)(1u << opts->live[i] % 8);
    int error = write_at(fd, bits, bytes, at);
    free(bits);
    return error;
}

int maq_shm_create(const char *path, const struct maq_shm_opts *opts)
{
    struct maq_shm_head head = {.version = 1,
                                .world = opts->world,
                                .n_slots = opts->n_slots ? opts->n_slots : MAQ_SHM_SLOTS,
                                .data_bytes = opts->data_bytes ? opts->data_bytes : MAQ_SHM_DATA,
                                .data_used = AREA_HEAD,
                                .owner = opts->owner};
    memcpy(head.magic, MAQ_SHM_MAGIC, sizeof head.magic);
    uint64_t slots_end = sizeof head + head.n_slots * sizeof(struct maq_shm_slot);
    head.live_at = opts->live ? slots_end : 0;
    head.data_at = rounded(slots_end + (opts->live ? ((uint64_t)opts->world + 7) / 8 : 0));

    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno;
    int error = ftruncate(fd, (off_t)(head.data_at + head.data_bytes)) ? errno : 0;
    if (!error && opts->live)
        error = write_live(fd, opts, head.live_at);
    if (!error)
        error = write_at(fd, &head, sizeof head, 0);
    if (close(fd) && !error)
        error = errno;
    if (error)
        (void)unlink(path);
    return error;
}

/* Sizes in the head, against the size of the file. */
static bool sound(const struct maq_shm_head *h, uint64_t bytes)
{
    if (bytes < sizeof *h || memcmp(h->magic, MAQ_SHM_MAGIC, sizeof h->magic) != 0 || h->version != 1)
        return false;
    if (!h->n_slots || h->n_slots > bytes / sizeof(struct maq_shm_slot) || h->data_at > bytes)
        return false;
    uint64_t slots_end = sizeof *h + h->n_slots * sizeof(struct maq_shm_slot);
    if (h->data_at < slots_end || h->data_at % 8 || h->data_bytes > bytes - h->data_at || h->data_bytes < AREA_HEAD)
        return false;
    return !h->live_at || (h->live_at >= slots_end && h->live_at + ((uint64_t)h->world + 7) / 8 <= h->data_at);
}

int maq_shm_open(struct maq_shm *out, const char *path)
{
    *out = (struct maq_shm){0};
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return errno;
    struct stat info;
    int error = fstat(fd, &info) ? errno : info.st_size < (off_t)sizeof(struct maq_shm_head) ? EPROTO : 0;
    void *at = MAP_FAILED;
    if (!error) {
        at = mmap(NULL, (size_t)info.st_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
        error = at == MAP_FAILED ? errno : 0;
    }
    (void)close(fd);
    if (error)
        return error;
    if (!sound(at, (uint64_t)info.st_size)) {
        (void)munmap(at, (size_t)info.st_size);
        return EPROTO;
    }
    out->head = at;
    out->slot = (struct maq_shm_slot *)(out->head + 1);
    out->data = (unsigned char *)at + out->head->data_at;
    out->bytes = (uint64_t)info.st_size;
    return 0;
}

void maq_shm_close(struct maq_shm *m)
{
    if (m->head)
        (void)munmap(m->head, m->bytes);
    *m = (struct maq_shm){0};
}

bool maq_shm_lives(const struct maq_shm *m, uint32_t rank)
{
    if (!m->head->live_at)
        return true;
    const unsigned char *bits = (const unsigned char *)m->head + m->head->live_at;
    return rank < m->head->world && bits[rank / 8] >> rank % 8 & 1;
}

/* --- sleeping and waking ---------------------------------------------------------------------------------------------- */

static bool futex_sleep(uint32_t *word, uint32_t value)
{
    const struct timespec most = {.tv_nsec = SLEEP_MS * 1000000L};
    return syscall(SYS_futex, word, FUTEX_WAIT, value, &most, NULL, 0) == 0 || errno != ETIMEDOUT;
}

static void futex_wake(uint32_t *word, int n)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE, n, NULL, NULL, 0);
}

uint32_t maq_shm_bell(const struct maq_shm *m)
{
    return LOAD(m->head->bell);
}

static void ring(struct maq_shm *m)
{
    (void)__atomic_add_fetch(&m->head->bell, 1, __ATOMIC_ACQ_REL);
    futex_wake(&m->head->bell, INT_MAX);
}

bool maq_shm_stopped(const struct maq_shm *m)
{
    return LOAD(m->head->stop) != 0;
}

void maq_shm_stop(struct maq_shm *m)
{
    STORE(m->head->stop, 1u);
    ring(m);
    futex_wake(&m->head->lock, INT_MAX);
}

/* The system's clock, past whoever stands before the library's call (shim/boot/clock.c does). */
static int64_t real_ns(void)
{
    struct timespec t = {0};
    (void)syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Nothing happened for a while: is there still somebody? */
static void look_around(struct maq_shm *m)
{
    uint32_t bell = LOAD(m->head->bell);
    int64_t now = real_ns();
    if (bell != LOAD(m->heard) || LOAD(m->heard_ns) == 0) {
        STORE(m->heard, bell);
        STORE(m->heard_ns, now);
    }
    bool gone = m->head->owner && kill((pid_t)m->head->owner, 0) && errno == ESRCH;
    if (gone || now - LOAD(m->heard_ns) > MAQ_SHM_PATIENCE_NS)
        maq_shm_stop(m);
}

void maq_shm_watch(struct maq_shm *m)
{
    if (__atomic_add_fetch(&m->watched, 1, __ATOMIC_RELAXED) % 512 == 0)
        look_around(m);
}

bool maq_shm_sleep(struct maq_shm *m, uint32_t bell)
{
    if (!maq_shm_stopped(m) && LOAD(m->head->bell) == bell && !futex_sleep(&m->head->bell, bell))
        look_around(m);
    return !maq_shm_stopped(m);
}

/* A mutex of three states (Drepper, "Futexes are tricky", 2011, mutex 2): 0 free, 1 held, 2 held and waited for. */
static bool lock(struct maq_shm *m)
{
    uint32_t *word = &m->head->lock, seen = 0;
    if (__atomic_compare_exchange_n(word, &seen, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return true;
    while (__atomic_exchange_n(word, 2, __ATOMIC_ACQUIRE) != 0) {
        if (!futex_sleep(word, 2))
            look_around(m);
        if (maq_shm_stopped(m))
            return false;
    }
    return true;
}

static void unlock(struct maq_shm *m)
{
    if (__atomic_exchange_n(&m->head->lock, 0, __ATOMIC_RELEASE) == 2)
        futex_wake(&m->head->lock, 1);
}

/* --- payloads, under the lock ----------------------------------------------------------------------------------------- */

static unsigned size_of_block(uint64_t bytes)
{
    unsigned size = 6;
    while (size < SIZES && (UINT64_C(1) << size) < bytes)
        size++;
    return size;
}

static uint64_t *list_of(struct maq_shm *m, unsigned size)
{
    return (uint64_t *)(void *)m->data + size;
}

/* Offset of `bytes` in the area, or UINT64_MAX. */
static uint64_t take_block(struct maq_shm *m, uint64_t bytes)
{
    unsigned size = size_of_block(bytes + BLOCK_HEAD);
    uint64_t *list = size < SIZES ? list_of(m, size) : NULL, at;
    if (!list)
        return UINT64_MAX;
    if (*list) {
        at = *list;
        memcpy(list, m->data + at, sizeof *list);
        return at + BLOCK_HEAD;
    }
    at = m->head->data_used;
    if (m->head->data_bytes - at < UINT64_C(1) << size)
        return UINT64_MAX;
    m->head->data_used = at + (UINT64_C(1) << size);
    return at + BLOCK_HEAD;
}

static void give_block(struct maq_shm *m, uint64_t at, uint64_t bytes)
{
    uint64_t *list = list_of(m, size_of_block(bytes + BLOCK_HEAD));
    memcpy(m->data + at - BLOCK_HEAD, list, sizeof *list);
    *list = at - BLOCK_HEAD;
}

static uint64_t payload(uint32_t need, uint64_t bytes)
{
    return (uint64_t)need * bytes + need;
}

/* --- slots ------------------------------------------------------------------------------------------------------------ */

/* Under the lock: the slot of that name, or one for it. */
static struct maq_shm_slot *find(struct maq_shm *m, uint64_t a, uint64_t b, bool *found)
{
    uint64_t n = m->head->n_slots, at = maq_rec_mix(a, b) % n;
    struct maq_shm_slot *table = m->slot, *place = NULL;
    *found = false;
    for (uint64_t i = 0; i < n && table; i++, at = at + 1 == n ? 0 : at + 1) {
        struct maq_shm_slot *s = &table[at];
        uint32_t state = LOAD(s->state);
        if (state == USED && s->a == a && s->b == b) {
            *found = true;
            return s;
        }
        if (state != USED && state != CLAIMED && !place)
            place = s;
        if (state == FREE)
            break;
    }
    return place;
}

/* Under the lock: a free slot becomes the one of that name. */
static bool claim(struct maq_shm *m, struct maq_shm_slot *s, uint64_t a, uint64_t b, uint32_t need, uint64_t bytes)
{
    uint64_t data = UINT64_MAX;
    if (bytes)
        data = take_block(m, payload(need, bytes));
    if (bytes && data == UINT64_MAX && bytes <= MAQ_CARRIED_NUMBERS)
        return false;
    if (data != UINT64_MAX)
        memset(m->data + data + (uint64_t)need * bytes, 0, need);
    else
        bytes = 0; /* an object for which there is no room does not move */
    STORE(s->state, (uint32_t)CLAIMED);
    s->a = a;
    s->b = b;
    s->need = need;
    s->came[0] = s->came[1] = s->left = 0;
    s->at[0] = s->at[1] = s->ns = INT64_MIN;
    s->bytes = bytes;
    s->data = data;
    STORE(s->state, (uint32_t)USED);
    return true;
}

uint64_t maq_carried_bytes(const struct maq_rec *rec, uint32_t n, bool meets)
{
    const unsigned kind = MAQ_REC_COLL_KIND(rec->id);
    const bool collective = rec->kind == MAQ_REC_COLL;
    const bool parts =
        collective && (kind == MAQ_REC_REDUCE_SCATTER || kind == MAQ_REC_ALL_TO_ALL || kind == MAQ_REC_SCATTER);
    const bool moved = !collective || kind == MAQ_REC_ALL_GATHER || kind == MAQ_REC_GATHER ||
                       kind == MAQ_REC_BROADCAST || kind == MAQ_REC_SCATTER;
    const bool object = moved && MAQ_REC_COLL_TYPE(rec->id) == MAQ_REC_U8;
    const bool small = rec->bytes <= MAQ_CARRIED_NUMBERS && rec->bytes * (parts ? n : 1) <= MAQ_CARRIED_NUMBERS;
    const bool one_brings = !collective || kind == MAQ_REC_BROADCAST;
    const bool all_have_room =
        rec->bytes <= MAQ_CARRIED_OBJECT && ((one_brings && !meets) || rec->bytes * n <= MAQ_SHM_PAYLOAD);
    return small || (object && all_have_room) ? rec->bytes * (parts ? n : 1) : 0;
}

struct maq_shm_slot *maq_shm_join(struct maq_shm *m, uint64_t a, uint64_t b, uint32_t need, uint64_t bytes)
{
    bool found;
    if (!lock(m))
        return NULL;
    struct maq_shm_slot *s = find(m, a, b, &found);
    if (s && !found && !claim(m, s, a, b, need, (uint64_t)need * bytes <= MAQ_SHM_PAYLOAD ? bytes : 0))
        s = NULL;
    unlock(m);
    if (!s) {
        maq_shm_stop(m);
        errno = ENOSPC;
    }
    return s;
}

void maq_shm_put(struct maq_shm *m, struct maq_shm_slot *s, uint32_t index, const void *data, uint64_t bytes)
{
    if (s->data == UINT64_MAX || index >= s->need || bytes > s->bytes)
        return;
    unsigned char *block = m->data + s->data;
    memcpy(block + index * s->bytes, data, bytes);
    block[s->need * s->bytes + index] = 1;
}

const void *maq_shm_got(const struct maq_shm *m, const struct maq_shm_slot *s, uint32_t index)
{
    if (s->data == UINT64_MAX || index >= s->need)
        return NULL;
    const unsigned char *block = m->data + s->data;
    return block[s->need * s->bytes + index] ? block + index * s->bytes : NULL;
}

static void raise_to(int64_t *word, int64_t value)
{
    int64_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);
    while (seen < value && !__atomic_compare_exchange_n(word, &seen, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

/* In one order with the arrivals: of two who come last at once, at least one sees both. */
static uint32_t came(const struct maq_shm_slot *s)
{
    return __atomic_load_n(&s->came[0], __ATOMIC_SEQ_CST) + __atomic_load_n(&s->came[1], __ATOMIC_SEQ_CST);
}

void maq_shm_come(struct maq_shm *m, struct maq_shm_slot *s, unsigned part, int64_t at, int64_t ns)
{
    raise_to(&s->at[part & 1], at);
    raise_to(&s->ns, ns);
    uint32_t need = s->need; /* after his arrival the others may be done with it */
    (void)__atomic_add_fetch(&s->came[part & 1], 1, __ATOMIC_SEQ_CST);
    if (came(s) == need)
        ring(m);
}

bool maq_shm_complete(const struct maq_shm_slot *s)
{
    return came(s) == s->need;
}

int64_t maq_shm_ends(const struct maq_shm_slot *s, enum maq_shm_as as, uint64_t message_bytes, int64_t own_ns)
{
    int64_t first = LOAD(s->at[0]), second = LOAD(s->at[1]), ns = LOAD(s->ns);
    if (as == MAQ_SHM_SENDER && message_bytes <= MAQ_EAGER_BYTES)
        return first + own_ns;
    if (as == MAQ_SHM_MEMBER)
        return first + ns;
    return (first > second ? first : second) + ns;
}

/* Under the lock. A grave before a free slot is no use to any search. */
static void bury(struct maq_shm *m, struct maq_shm_slot *s)
{
    uint64_t n = m->head->n_slots, at = (uint64_t)(s - m->slot), next = at + 1 == n ? 0 : at + 1;
    if (s->data != UINT64_MAX)
        give_block(m, s->data, payload(s->need, s->bytes));
    STORE(s->state, (uint32_t)GRAVE);
    if (LOAD(m->slot[next].state) != FREE)
        return;
    while (LOAD(m->slot[at].state) == GRAVE) {
        STORE(m->slot[at].state, (uint32_t)FREE);
        at = at ? at - 1 : n - 1;
    }
}

void maq_shm_leave(struct maq_shm *m, struct maq_shm_slot *s)
{
    uint32_t need = s->need;
    if (__atomic_add_fetch(&s->left, 1, __ATOMIC_ACQ_REL) != need || !lock(m))
        return;
    bury(m, s);
    unlock(m);
}
