/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input_record.c - writes down what this rank looked up in the contributions of others: the file `inputs` of the card (link.h).
 *
 * Every entry is written when it is looked up, with one call, since a program may end anyhow and may have several processes. A file
 * that cannot be written whole is emptied: it then says nothing, and the slice is run again.
 */
#include "shim/nccl/nccl.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

static int file = -1;

static void give_up(void)
{
    if (file < 0)
        return;
    (void)!ftruncate(file, 0);
    (void)close(file);
    file = -1;
}

static void put(const struct maq_input *entry, const uint64_t *words)
{
    struct iovec part[2] = {{.iov_base = (void *)(uintptr_t)entry, .iov_len = sizeof *entry},
                            {.iov_base = (void *)(uintptr_t)words, .iov_len = words ? entry->n * sizeof *words : 0}};
    size_t bytes = part[0].iov_len + part[1].iov_len;
    if (file >= 0 && writev(file, part, 2) != (ssize_t)bytes)
        give_up();
}

static void open_the_cards(void)
{
    const char *path = vg_card()->inputs;
    if (path[0])
        file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    put(&(struct maq_input){.kind = MAQ_INPUT_HEAD}, NULL);
}

static bool wanted(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_the_cards);
    return file >= 0;
}

void vg_input_record_lookup(uint64_t channel, uint32_t seq, uint32_t rank, const void *found, uint64_t bytes,
                            bool supposed)
{
    if (wanted())
        put(&(struct maq_input){.kind = MAQ_INPUT_LOOKUP,
                                .channel = channel,
                                .seq = seq,
                                .rank = rank,
                                .result = found ? maq_input_hash(found, bytes, true) : 0,
                                .steady = !found && supposed},
            NULL);
}

void vg_input_record_tainted_read(const struct vg_taint *u, bool stops)
{
    if (wanted())
        put(&(struct maq_input){.kind = MAQ_INPUT_TAINTED_READ,
                                .channel = u->channel,
                                .seq = u->kind,
                                .rank = u->rank,
                                .n = u->n,
                                .root = u->place,
                                .result = u->call,
                                .steady = stops},
            NULL);
}

/* One more pair of words. Without memory the file says nothing from here on. */
static void add(struct vg_reads *r, uint64_t first, uint64_t second)
{
    if (r->kept && r->n == r->size) {
        uint32_t size = r->size ? r->size * 2 : 8;
        uint64_t(*bigger)[2] = realloc(r->word, size * sizeof *bigger);
        r->word = bigger ? bigger : r->word;
        r->size = bigger ? size : r->size;
    }
    if (r->kept && r->n == r->size) {
        give_up();
        r->kept = false;
    }
    if (!r->kept)
        return;
    r->word[r->n][0] = first;
    r->word[r->n++][1] = second;
}

void vg_reads_begin(struct vg_reads *r, uint64_t channel, uint32_t me, const struct vg_reads_part *part)
{
    *r = (struct vg_reads){
        .head = {
            .kind = MAQ_INPUT_READS, .channel = channel, .rank = me, .result = part->whole, .steady = part->object}};
    r->kept = wanted();
    add(r, part->at, part->n);
}

void vg_reads_place(struct vg_reads *r, uint32_t place, const void *part, bool said)
{
    if (!r->kept)
        return;
    uint64_t hash = maq_input_hash(part, r->word[0][1], said);
    r->head.root = place + 1;
    if (r->n == 1 || r->word[r->n - 1][1] != hash)
        add(r, place, hash);
}

void vg_reads_end(struct vg_reads *r)
{
    r->head.n = 2 * r->n;
    if (r->kept)
        put(&r->head, r->word[0]);
    free(r->word);
}

void vg_input_record_exchange(const struct vg_exchange *x, const void *all, const unsigned char *have,
                              enum maq_input_steady steady)
{
    bool from_one = x->root != MAQ_REC_NONE;
    struct maq_input entry = {.kind = MAQ_INPUT_EXCHANGE,
                              .channel = x->channel,
                              .seq = x->seq,
                              .rank = x->me,
                              .n = x->n,
                              .root = x->root,
                              .result = x->bytes,
                              .steady = (uint16_t)steady};
    if (!wanted())
        return;
    uint64_t *words = calloc(x->n, sizeof *words);
    for (uint32_t i = 0; words && i < x->n; i++)
        if (!from_one || i == x->root)
            words[i] = maq_input_hash((const char *)all + (from_one ? 0 : (uint64_t)i * x->bytes), x->bytes, have[i]);
    if (words)
        put(&entry, words);
    else
        give_up();
    free(words);
}
