/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorder.c - writes the trace of this rank (record.h).
 *
 * In a CUDA program: what a profiler would write down of it.
 *
 * The file is made by the first record, so that launchers and shells that load the library leave none. A process holds
 * a lock on it; a second one of the same rank that finds it locked records nothing and says so. Records collect in a
 * buffer that goes to the file when it is full, when the host waits with a good part of it full or a while after it last did, before a fork, at
 * exit and on signals that end the program. A forked child records nothing: a device does not survive a fork.
 */
#include "shim/core/core.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { VG_BUFFER_BYTES = 256 << 10, FLUSH_NS = 1000000 };

static enum { NOT_YET, OPEN, CLOSED } state;
static int fd = -1;
static unsigned char buffer[VG_BUFFER_BYTES];
static volatile size_t used; /* a signal handler reads it: counts whole records only */

bool vg_recording(void)
{
    return state == OPEN || (state == NOT_YET && vg_card()->trace[0] != '\0');
}

static void put(const void *data, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        ssize_t n = write(fd, (const char *)data + at, bytes - at);
        if (n <= 0 && errno != EINTR) {
            state = CLOSED; /* the disk is full: what is there stays readable */
            return;
        }
        at += n > 0 ? (size_t)n : 0;
    }
}

void vg_flush(void)
{
    if (state == OPEN && used > 0) {
        put(buffer, used);
        used = 0;
    }
}

/* A program may be killed after any wait, as an engine's worker is by its parent: what it did before is to be there. A loop that does nothing but
 * wait writes no more often than this. */
void vg_flush_if_late(void)
{
    static int64_t flushed;
    int64_t now = used > 0 ? vg_real_now() : 0;
    if (used == 0 || (used <= VG_BUFFER_BYTES / 8 && now - flushed < FLUSH_NS))
        return;
    vg_flush();
    flushed = now;
}

static uint64_t peak; /* of the device that had most */

void vg_record_peak(uint64_t bytes)
{
    peak = bytes > peak ? bytes : peak;
}

/* The last record. Nothing goes out after it. */
static void end(uint32_t status, uint32_t by_signal)
{
    if (state != OPEN)
        return;
    vg_flush();
    struct maq_rec rec = {
        .kind = MAQ_REC_END, .stream = MAQ_REC_HOST_STREAM, .id = status, .arg = by_signal, .bytes = peak};
    int64_t host = vg_host_taken();
    rec.host_ns = host < UINT32_MAX ? (uint32_t)host : UINT32_MAX;
    put(&rec, sizeof rec);
    state = CLOSED;
    close(fd);
}

static pid_t owner; /* a child of vfork() shares our memory, and its end is not ours */

static void at_exit(int status, void *nothing)
{
    (void)nothing;
    if (owner != getpid())
        return;
    vg_lock();
    if (state == OPEN)
        vg_duration_query_end(vg_now());
    end((uint32_t)status & 255, 0);
    vg_unlock();
}

/* Python's worker processes end without running what exit() runs. */
VG_EXPORT _Noreturn void _exit(int status)
{
    at_exit(status, NULL);
    for (;;)
        syscall(SYS_exit_group, status);
}

static void on_signal(int number)
{
    end((uint32_t)number, 1);
    raise(number); /* SA_RESETHAND: now as if we had never been here */
}

/* Only where the program leaves a signal to the system. */
static void catch_signals(void)
{
    static const int fatal[] = {SIGHUP, SIGINT, SIGQUIT, SIGILL, SIGABRT, SIGFPE, SIGBUS, SIGSEGV, SIGPIPE, SIGTERM};
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) {
        struct sigaction old, mine = {.sa_handler = on_signal, .sa_flags = (int)(SA_RESETHAND | SA_NODEFER)};
        if (sigaction(fatal[i], NULL, &old) == 0 && !(old.sa_flags & SA_SIGINFO) && old.sa_handler == SIG_DFL)
            sigaction(fatal[i], &mine, NULL);
    }
}

static void before_fork(void)
{
    vg_lock();
    vg_flush();
}

static void after_fork(void)
{
    vg_unlock();
}

static void in_child(void)
{
    if (state == OPEN)
        close(fd);
    state = CLOSED;
    used = 0;
    vg_unlock();
}

/* A fork server's ranks have its command line, and the card says theirs. */
static uint64_t program(const struct vg_card *card)
{
    static char line[4096];
    int in = card->program == 0 ? open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC) : -1;
    ssize_t n = in >= 0 ? read(in, line, sizeof line) : 0;
    if (in >= 0)
        close(in);
    return card->program != 0 ? card->program : maq_rec_program(line, n > 0 ? (uint64_t)n : 0);
}

static void start(void)
{
    const struct vg_card *card = vg_card();
    if (card->forks) /* no device survives a fork: what is to be forked has none */
        syscall(SYS_exit_group, MAQ_UNFIT_STATUS);
    state = CLOSED;
    fd = card->trace[0] != '\0' ? open(card->trace, O_WRONLY | O_CREAT | O_CLOEXEC, 0666) : -1;
    if (fd < 0)
        return;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 || ftruncate(fd, 0) != 0) {
        static const char said[] =
            "maquette: another process of this rank drives the device: this one is not recorded\n";
        if (write(STDERR_FILENO, said, sizeof said - 1) > 0)
            close(fd);
        return;
    }
    state = OPEN;
    owner = getpid();
    struct maq_rec_head head = {.version = MAQ_REC_VERSION,
                                .head_bytes = sizeof head,
                                .world = card->world,
                                .rank = card->rank,
                                .per_node = card->per_node,
                                .program = program(card)};
    memcpy(head.magic, MAQ_REC_MAGIC, sizeof head.magic);
    memcpy(buffer, &head, sizeof head);
    used = sizeof head;
    on_exit(at_exit, NULL);
    pthread_atfork(before_fork, after_fork, in_child);
    catch_signals();
}

void vg_record_begin(void)
{
    vg_lock();
    if (state == NOT_YET)
        start();
    vg_unlock();
}

/* One record with its payload; `used` moves when both are whole. */
static void append(const struct maq_rec *rec, const void *payload)
{
    static const unsigned char zeros[32];
    uint64_t bytes = payload != NULL ? rec->bytes : 0, padded = maq_rec_padded(bytes);
    if (used + sizeof *rec + padded > sizeof buffer)
        vg_flush();
    if (state != OPEN)
        return;
    if (sizeof *rec + padded <= sizeof buffer) {
        memcpy(buffer + used, rec, sizeof *rec);
        if (bytes > 0) {
            memcpy(buffer + used + sizeof *rec, payload, bytes);
            memset(buffer + used + sizeof *rec + bytes, 0, padded - bytes);
        }
        used = used + sizeof *rec + padded;
        return;
    }
    put(rec, sizeof *rec);
    put(payload, bytes);
    put(zeros, padded - bytes);
}

void vg_record(struct maq_rec rec, const void *payload)
{
    vg_lock();
    if (state == NOT_YET)
        start();
    if (state == OPEN) {
        bool defines = rec.kind == MAQ_REC_DEF_OP || rec.kind == MAQ_REC_DEF_COMM || rec.kind == MAQ_REC_DEF_TEXT;
        int64_t host = defines ? 0 : vg_host_taken();
        if (host > UINT32_MAX) {
            struct maq_rec gap = {.kind = MAQ_REC_HOST, .stream = MAQ_REC_HOST_STREAM, .ns = (uint64_t)host};
            append(&gap, NULL);
            host = 0;
        }
        rec.host_ns = (uint32_t)host;
        append(&rec, payload);
    }
    vg_unlock();
}

/* --- texts ------------------------------------------------------------------------------------------------------------ */

struct text {
    uint64_t hash;
    uint32_t id;
    bool taken;
};
static struct text *texts; /* open addressing */
static size_t n_texts, n_slots;

static bool grow(void)
{
    size_t slots = n_slots == 0 ? 256 : n_slots * 2;
    struct text *bigger = calloc(slots, sizeof *bigger);
    if (bigger == NULL)
        return false;
    for (size_t i = 0; i < n_slots; i++)
        if (texts[i].taken) {
            size_t at = texts[i].hash % slots;
            while (bigger[at].taken)
                at = (at + 1) % slots;
            bigger[at] = texts[i];
        }
    free(texts);
    texts = bigger;
    n_slots = slots;
    return true;
}

/* Texts with equal 64-bit hashes are taken for equal. */
uint32_t vg_text(const char *text, size_t bytes)
{
    uint64_t hash = maq_rec_hash(text, bytes, 0);
    vg_lock();
    if (n_texts * 2 >= n_slots && !grow()) {
        vg_unlock();
        return MAQ_REC_NONE;
    }
    size_t at = hash % n_slots;
    while (texts[at].taken && texts[at].hash != hash)
        at = (at + 1) % n_slots;
    if (!texts[at].taken) {
        texts[at] = (struct text){.hash = hash, .id = (uint32_t)n_texts++, .taken = true};
        vg_record(
            (struct maq_rec){
                .kind = MAQ_REC_DEF_TEXT, .stream = MAQ_REC_HOST_STREAM, .id = texts[at].id, .bytes = bytes},
            text);
    }
    uint32_t id = texts[at].id;
    vg_unlock();
    return id;
}
