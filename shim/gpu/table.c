/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - a file of waits, believed only after every offset of it was looked at. */
#include "shim/gpu/table.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct maq_waits_comm *comms_of(const struct vg_waits *w)
{
    return (const struct maq_waits_comm *)(const void *)(w->file + sizeof(struct maq_waits_head));
}

static const char *check_comm(const struct vg_waits *w, const struct maq_waits_comm *c, uint64_t end)
{
    uint64_t room = w->bytes - end;
    if (c->at < end || c->at % 8 != 0 || c->at - end > room)
        return "a table lies outside of the file";
    if (c->n == 0 || c->n > (w->bytes - c->at) / sizeof(struct maq_wait_entry))
        return "a table is longer than the file";
    if (c->loop > c->n || c->period_ns < 0)
        return "a table repeats from behind its end";
    return NULL;
}

static const char *check(const struct vg_waits *w)
{
    struct maq_waits_head head;
    if (w->bytes < sizeof head)
        return "the file is too short";
    memcpy(&head, w->file, sizeof head);
    if (memcmp(head.magic, MAQ_WAITS_MAGIC, sizeof head.magic) != 0)
        return "it is no file of waits";
    if (head.n_comms > (w->bytes - sizeof head) / sizeof(struct maq_waits_comm))
        return "the file is too short";
    const struct maq_waits_comm *c = comms_of(w);
    uint64_t end = sizeof head + head.n_comms * sizeof *c;
    for (uint32_t i = 0; i < head.n_comms; i++) {
        const char *why = check_comm(w, &c[i], end);
        if (why)
            return why;
        if (i > 0 && c[i].lineage <= c[i - 1].lineage)
            return "communicators are out of order";
    }
    return NULL;
}

bool vg_waits_open(struct vg_waits *out, const char *path, const char **why)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    *out = (struct vg_waits){0};
    *why = "it cannot be read";
    if (fd < 0)
        return false;
    void *file = fstat(fd, &st) == 0 && st.st_size > 0 ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0)
                                                       : MAP_FAILED;
    close(fd);
    if (file == MAP_FAILED)
        return false;
    *out = (struct vg_waits){file, (uint64_t)st.st_size};
    *why = check(out);
    if (*why)
        vg_waits_close(out);
    return !*why;
}

void vg_waits_close(struct vg_waits *w)
{
    if (w->file)
        munmap((void *)(uintptr_t)w->file, w->bytes);
    *w = (struct vg_waits){0};
}

const struct maq_waits_comm *vg_waits_of(const struct vg_waits *w, uint64_t lineage,
                                         const struct maq_wait_entry **entries)
{
    if (!w->file)
        return NULL;
    const struct maq_waits_comm *c = comms_of(w);
    uint32_t low = 0, high = ((const struct maq_waits_head *)(const void *)w->file)->n_comms;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (c[mid].lineage == lineage) {
            *entries = (const struct maq_wait_entry *)(const void *)(w->file + c[mid].at);
            return &c[mid];
        }
        if (c[mid].lineage < lineage)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}
