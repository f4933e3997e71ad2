/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - memory of the zero-GPU device: addresses that look like memory, and the bytes that the host can see.
 *
 * In a CUDA program: what cudaMalloc() and its like give, and cudaMemGetInfo().
 *
 * Capacity. The device gives memory away in pages of 2 MiB. An allocation of more than 1 MiB takes whole pages; smaller
 * ones share pages in steps of 512 bytes, first fit. What does not fit fails in the call where it fails on a device with as much
 * memory. `peak` counts what the program asked for, page by page rounding apart; managed and pinned memory is the host's.
 *
 * Bytes. A large allocation is address space that nobody may touch (PROT_NONE): 80 GB cost nothing. Small allocations,
 * managed and pinned ones are the host's own memory. Of a large one, blocks become real where a copy of at most 1 MiB
 * goes to or comes from, up to 128 MiB in all; larger copies move no bytes.
 */
#include "shim/core/memory.h"
#include "shim/core/stream.h"
#include "shim/grow.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static struct vg_mem *table; /* ascending in base */
static size_t n_table;
static uint32_t room;
static uint32_t next_id;
static struct {
    uint64_t charged, asked, peak;
} use[VG_DEVICES];
static uint64_t touched;

/* --- the table -------------------------------------------------------------------------------------------------------- */

/* First allocation with a base above `address`. */
static size_t above(uint64_t address)
{
    size_t low = 0, high = n_table;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (table[mid].base <= address)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

struct vg_mem *vg_mem_at(const void *p)
{
    uint64_t address = (uintptr_t)p;
    size_t i = above(address);
    if (i == 0 || address - table[i - 1].base >= table[i - 1].bytes)
        return NULL;
    return &table[i - 1];
}

void vg_mem_each(void (*with)(struct vg_mem *mem))
{
    for (size_t i = 0; i < n_table; i++)
        with(&table[i]);
}

bool vg_mem_enter(const struct vg_mem *mem)
{
    struct vg_mem *bigger = vg_grown(table, n_table, &room, 64, sizeof *table);
    if (bigger == NULL)
        return false;
    table = bigger;
    size_t i = above(mem->base);
    memmove(&table[i + 1], &table[i], (n_table - i) * sizeof *table);
    table[i] = *mem;
    n_table++;
    return true;
}

void vg_mem_leave(uint64_t base)
{
    size_t i = above(base);
    if (i == 0 || table[i - 1].base != base)
        return;
    free(table[i - 1].blocks);
    free(table[i - 1].known);
    memmove(&table[i - 1], &table[i], (n_table - i) * sizeof *table);
    n_table--;
}

uint32_t vg_mem_new_id(void)
{
    return next_id++;
}

int vg_mem_device(const void *p)
{
    vg_lock();
    const struct vg_mem *mem = vg_mem_at(p);
    int device = mem != NULL ? mem->device : 0;
    vg_unlock();
    return device;
}

uint64_t vg_mem_in_pool(unsigned device)
{
    uint64_t bytes = 0;
    vg_lock();
    for (size_t i = 0; i < n_table; i++)
        bytes += table[i].kind == MAQ_REC_POOL && table[i].device == device ? table[i].bytes : 0;
    vg_unlock();
    return bytes;
}

/* --- capacity --------------------------------------------------------------------------------------------------------- */

bool vg_mem_charge(unsigned device, uint64_t bytes, uint64_t asked)
{
    device %= VG_DEVICES;
    if (bytes > vg_card()->memory_bytes || use[device].charged > vg_card()->memory_bytes - bytes)
        return false;
    use[device].charged += bytes;
    use[device].asked += asked;
    if (use[device].asked > use[device].peak) {
        use[device].peak = use[device].asked;
        vg_record_peak(use[device].peak);
    }
    return true;
}

void vg_mem_discharge(unsigned device, uint64_t bytes, uint64_t asked)
{
    device %= VG_DEVICES;
    use[device].charged -= bytes < use[device].charged ? bytes : use[device].charged;
    use[device].asked -= asked < use[device].asked ? asked : use[device].asked;
}

void vg_mem_info(uint64_t *free_bytes, uint64_t *total_bytes, uint64_t *peak_bytes)
{
    vg_lock();
    unsigned device = vg_device() % VG_DEVICES;
    if (free_bytes != NULL)
        *free_bytes = vg_card()->memory_bytes - use[device].charged;
    if (total_bytes != NULL)
        *total_bytes = vg_card()->memory_bytes;
    if (peak_bytes != NULL)
        *peak_bytes = use[device].peak;
    vg_unlock();
}

/* --- address space ---------------------------------------------------------------------------------------------------- */

static uint64_t pages(uint64_t bytes)
{
    return (bytes + VG_PAGE_BYTES - 1) & ~(uint64_t)(VG_PAGE_BYTES - 1);
}

/*
 * The device's memory has addresses of its own, given one behind the other from a place where Linux puts nothing by
 * itself, as long as there are any. Arguments of kernels have bytes that nobody set: a float, and behind it the upper
 * half of an old address of the host. Were the device's memory among the host's, such a word would now and then be
 * taken for a pointer, and the same launch be another operator (cuda/launch.c). Where the old address is one of the
 * device's, the first of them begin with 0x40000000 in the lower half, the float 2, so that scales and probabilities
 * make none of it.
 */
#define SPACE_FROM UINT64_C(0x200040000000)
#define SPACE_TO UINT64_C(0x500000000000)

static void *next_space(uint64_t size, int protection)
{
    static uint64_t next = SPACE_FROM;
    void *got = MAP_FAILED;
    vg_lock();
    void *wanted = (void *)(uintptr_t)next; // NOLINT(performance-no-int-to-ptr)
    if (size <= SPACE_TO - next)
        got = mmap(wanted, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == wanted)
        next += size;
    vg_unlock();
    if (got == wanted)
        return got;
    if (got != MAP_FAILED)
        munmap(got, size);
    return NULL;
}

void *vg_mem_space(uint64_t bytes, bool visible)
{
    if (bytes > (uint64_t)1 << 46)
        return NULL;
    uint64_t size = pages(bytes), around = size + VG_PAGE_BYTES;
    int protection = visible ? PROT_READ | PROT_WRITE : PROT_NONE;
    void *behind = next_space(size, protection);
    if (behind != NULL)
        return behind;
    char *got = mmap(NULL, around, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED)
        return NULL;
    uint64_t ahead = pages((uintptr_t)got) - (uintptr_t)got;
    if (ahead > 0)
        munmap(got, ahead);
    if (ahead < VG_PAGE_BYTES)
        munmap(got + ahead + size, VG_PAGE_BYTES - ahead);
    return got + ahead;
}

/* --- small allocations: pages that several share ------------------------------------------------------------------------ */

enum { GRAINS = VG_PAGE_BYTES / VG_GRAIN_BYTES };
struct shared {
    unsigned char *base;
    unsigned device, taken; /* grains */
    unsigned char used[GRAINS];
};
static struct shared **shares; /* in order of making; first fit */
static size_t n_shares;
static uint32_t shares_room;

/* First run of n free grains, or GRAINS. */
static unsigned fit(const struct shared *page, unsigned n)
{
    if (GRAINS - page->taken < n)
        return GRAINS;
    for (unsigned from = 0, run = 0, i = 0; i < GRAINS; i++) {
        run = page->used[i] ? 0 : run + 1;
        from = page->used[i] ? i + 1 : from;
        if (run == n)
            return from;
    }
    return GRAINS;
}

static struct shared *another(unsigned device)
{
    struct shared **bigger = vg_grown(shares, n_shares, &shares_room, 16, sizeof *shares);
    if (bigger == NULL)
        return NULL;
    shares = bigger;
    struct shared *page = calloc(1, sizeof *page);
    void *space = page != NULL ? vg_mem_space(VG_PAGE_BYTES, true) : NULL;
    if (space == NULL || !vg_mem_charge(device, VG_PAGE_BYTES, 0)) {
        if (space != NULL)
            munmap(space, VG_PAGE_BYTES);
        free(page);
        return NULL;
    }
    page->base = space;
    page->device = device;
    shares[n_shares++] = page;
    return page;
}

static unsigned grains(uint64_t bytes)
{
    return (unsigned)((bytes + VG_GRAIN_BYTES - 1) / VG_GRAIN_BYTES);
}

static void *take_small(uint64_t bytes, unsigned device)
{
    unsigned n = grains(bytes), at = GRAINS;
    struct shared *page = NULL;
    for (size_t i = 0; i < n_shares && at == GRAINS; i++)
        if (shares[i]->device == device)
            at = fit(page = shares[i], n);
    if (at == GRAINS) {
        page = another(device);
        at = 0;
    }
    if (page == NULL)
        return NULL;
    memset(page->used + at, 1, n);
    page->taken += n;
    return page->base + (size_t)at * VG_GRAIN_BYTES;
}

static void give_small(uint64_t base, uint64_t bytes)
{
    for (size_t i = 0; i < n_shares; i++) {
        struct shared *page = shares[i];
        uint64_t off = base - (uintptr_t)page->base;
        if (off >= VG_PAGE_BYTES)
            continue;
        memset(page->used + off / VG_GRAIN_BYTES, 0, grains(bytes));
        page->taken -= grains(bytes);
        if (page->taken == 0) {
            munmap(page->base, VG_PAGE_BYTES);
            vg_mem_discharge(page->device, VG_PAGE_BYTES, 0);
            free(page);
            memmove(&shares[i], &shares[i + 1], (--n_shares - i) * sizeof *shares);
        }
        return;
    }
}

/* --- allocations ------------------------------------------------------------------------------------------------------ */

void vg_mem_tell(enum maq_rec_kind what, uint32_t id, enum maq_rec_mem kind, uint64_t bytes, unsigned flags,
                 struct vg_stream *s)
{
    vg_record((struct maq_rec){.kind = (uint8_t)what,
                               .flags = (uint8_t)flags,
                               .stream = s != NULL ? vg_stream_ordinal(s) : MAQ_REC_HOST_STREAM,
                               .id = id,
                               .arg = kind,
                               .bytes = bytes},
              NULL);
}

/* Address of new memory, charged to the device; NULL = it is full. */
static void *take(struct vg_mem *mem)
{
    mem->visible = !maq_rec_on_device(mem->kind) || mem->bytes <= VG_SMALL_BYTES;
    if (!maq_rec_on_device(mem->kind))
        return vg_mem_space(mem->bytes, true);
    mem->shared_page = mem->bytes <= VG_SMALL_BYTES;
    if (mem->shared_page) {
        void *p = take_small(mem->bytes, mem->device);
        if (p != NULL)
            vg_mem_charge(mem->device, 0, mem->bytes);
        return p;
    }
    if (mem->bytes > vg_card()->memory_bytes || !vg_mem_charge(mem->device, pages(mem->bytes), mem->bytes))
        return NULL;
    void *p = vg_mem_space(mem->bytes, false);
    if (p == NULL)
        vg_mem_discharge(mem->device, pages(mem->bytes), mem->bytes);
    return p;
}

static void give(const struct vg_mem *mem)
{
    void *p = (void *)(uintptr_t)mem->base; // NOLINT(performance-no-int-to-ptr)
    if (mem->shared_page) {
        give_small(mem->base, mem->bytes);
        vg_mem_discharge(mem->device, 0, mem->bytes);
        return;
    }
    munmap(p, pages(mem->bytes));
    if (maq_rec_on_device(mem->kind))
        vg_mem_discharge(mem->device, pages(mem->bytes), mem->bytes);
}

bool vg_mem_beside(enum maq_rec_mem kind)
{
    const int *drivers;
    return kind == MAQ_REC_PINNED && !vg_drives() && vg_drivers(&drivers) > 0;
}

void *vg_mem_alloc(uint64_t bytes, enum maq_rec_mem kind, struct vg_stream *s)
{
    bool beside = vg_mem_beside(kind);
    if (!beside)
        vg_drive();
    vg_lock();
    struct vg_mem mem = {.bytes = bytes > 0 ? bytes : 1, .kind = (uint8_t)kind, .device = (uint8_t)vg_device()};
    void *p = take(&mem);
    mem.base = (uintptr_t)p;
    mem.id = p != NULL && !beside ? next_id : MAQ_REC_NONE;
    if (p != NULL && !vg_mem_enter(&mem)) {
        give(&mem);
        p = NULL;
    }
    if (p != NULL && !beside)
        next_id++;
    if (!beside)
        vg_mem_tell(MAQ_REC_ALLOC, mem.id, kind, bytes, p == NULL ? MAQ_REC_FAILED : 0, s);
    vg_unlock();
    return p;
}

bool vg_mem_free(void *p, struct vg_stream *s)
{
    vg_lock();
    struct vg_mem *at = vg_mem_at(p);
    bool ours = at != NULL && at->base == (uintptr_t)p;
    if (ours) {
        struct vg_mem mem = *at;
        for (uint64_t i = 0; mem.blocks != NULL && i < mem.bytes / VG_BLOCK_BYTES + 1; i++)
            if (mem.blocks[i / 8] >> (i % 8) & 1)
                touched -= VG_BLOCK_BYTES;
        vg_mem_leave(mem.base);
        give(&mem);
        if (mem.id != MAQ_REC_NONE)
            vg_mem_tell(MAQ_REC_FREE, mem.id, mem.kind, 0, 0, s);
    }
    vg_unlock();
    return ours;
}

bool vg_mem_find(const void *p, struct vg_alloc *out)
{
    vg_lock();
    const struct vg_mem *mem = vg_mem_at(p);
    if (mem != NULL)
        *out = (struct vg_alloc){
            .base = mem->base, .bytes = mem->bytes, .id = mem->id, .kind = mem->kind, .backed = mem->visible};
    vg_unlock();
    return mem != NULL;
}

/* --- bytes ------------------------------------------------------------------------------------------------------------ */

/* Makes the blocks of [from, to) real. */
static bool realise(struct vg_mem *mem, uint64_t from, uint64_t to)
{
    uint64_t n = mem->bytes / VG_BLOCK_BYTES + 1;
    if (mem->blocks == NULL && (mem->blocks = calloc(n / 8 + 1, 1)) == NULL)
        return false;
    for (uint64_t i = from / VG_BLOCK_BYTES; i * VG_BLOCK_BYTES < to; i++) {
        if (mem->blocks[i / 8] >> (i % 8) & 1)
            continue;
        char *block = (char *)(uintptr_t)mem->base + i * VG_BLOCK_BYTES; // NOLINT(performance-no-int-to-ptr)
        if (touched + VG_BLOCK_BYTES > VG_TOUCHED_MOST || mprotect(block, VG_BLOCK_BYTES, PROT_READ | PROT_WRITE) != 0)
            return false;
        mem->blocks[i / 8] |= (unsigned char)(1u << (i % 8));
        touched += VG_BLOCK_BYTES;
    }
    return true;
}

bool vg_mem_touch(const void *p, uint64_t bytes)
{
    vg_lock();
    struct vg_mem *mem = vg_mem_at(p);
    uint64_t from = mem != NULL ? (uintptr_t)p - mem->base : 0;
    bool real = mem != NULL && bytes <= mem->bytes - from &&
                (mem->visible || (bytes <= VG_SMALL_BYTES && realise(mem, from, from + bytes)));
    vg_unlock();
    return real;
}
