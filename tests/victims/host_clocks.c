/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_clocks.c - what the host's clocks say to a thread that drives the device, and to one that does not.
 *
 * Built without CUDA's headers: the calls are the driver's of NCCL, which the device answers. A communicator of one rank makes a
 * thread one that drives.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    char bytes[128];
} id_t128;
int ncclGetUniqueId(id_t128 *);
int ncclCommInitRank(void **, int, id_t128, int);

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                                    \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static int64_t now(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Sleeps of this thread, each with how far the clock went: exactly as far as asked. */
static void virtual_sleeps(void)
{
    int64_t before = now(CLOCK_MONOTONIC), real = now(CLOCK_REALTIME);
    CHECK(sleep(100) == 0);
    CHECK(now(CLOCK_MONOTONIC) - before == 100000000000);
    usleep(5);
    struct timespec t = {.tv_sec = 2, .tv_nsec = 7};
    nanosleep(&t, NULL);
    CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL) == 0);
    CHECK(poll(NULL, 0, 3) == 0);
    struct timeval tv = {.tv_sec = 1};
    CHECK(select(0, NULL, NULL, NULL, &tv) == 0);
    CHECK(now(CLOCK_REALTIME) - real == 105003005014);
    int64_t then = now(CLOCK_MONOTONIC) + 1000000000;
    t = (struct timespec){.tv_sec = then / 1000000000, .tv_nsec = then % 1000000000};
    CHECK(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == 0);
    CHECK(now(CLOCK_MONOTONIC) == then);
    time_t seconds = time(NULL);
    gettimeofday(&tv, NULL);
    CHECK(tv.tv_sec == seconds || tv.tv_sec == seconds + 1);
}

/* A loop that does nothing but read ends: the clock goes by 25 ns from the 65,536th reading on, and starts anew when it has gone. */
static void until_it_moves(void)
{
    usleep(1);
    const int64_t begin = now(CLOCK_MONOTONIC);
    for (int i = 2; i < 65536; i++)
        CHECK(now(CLOCK_MONOTONIC) == begin);
    for (int i = 1; i < 100; i++)
        CHECK(now(CLOCK_MONOTONIC) == begin + i * 25);
    usleep(1);
    CHECK(now(CLOCK_MONOTONIC) == now(CLOCK_MONOTONIC));
}

/* A deadline on virtual time, which is far ahead by now, takes as long as it says in real time. */
static void deadlines(void)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    pthread_mutex_lock(&mutex);
    int64_t then = now(CLOCK_REALTIME) + 50000000, cpu = now(CLOCK_PROCESS_CPUTIME_ID);
    struct timespec t = {.tv_sec = then / 1000000000, .tv_nsec = then % 1000000000};
    CHECK(pthread_cond_timedwait(&cond, &mutex, &t) != 0); /* would sleep for 100 virtual seconds */
    CHECK(now(CLOCK_PROCESS_CPUTIME_ID) - cpu < 5000000000);
    pthread_mutex_unlock(&mutex);
}

/* The same of a semaphore, which somebody posts after 20 real milliseconds: a wait of a second is not over before. */
static void *poster(void *semaphore)
{
    usleep(20000);
    sem_post(semaphore);
    return NULL;
}

static void semaphores(void)
{
    static const clockid_t clocks[2] = {CLOCK_REALTIME, CLOCK_MONOTONIC};
    sem_t semaphore;
    pthread_t thread;
    CHECK(sem_init(&semaphore, 0, 0) == 0);
    for (int i = 0; i < 2; i++) {
        int64_t then = now(clocks[i]) + 5000000000;
        struct timespec t = {.tv_sec = then / 1000000000, .tv_nsec = then % 1000000000};
        CHECK(pthread_create(&thread, NULL, poster, &semaphore) == 0);
        CHECK((i == 0 ? sem_timedwait(&semaphore, &t) : sem_clockwait(&semaphore, clocks[i], &t)) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    int64_t then = now(CLOCK_MONOTONIC) + 30000000, cpu = now(CLOCK_PROCESS_CPUTIME_ID);
    struct timespec t = {.tv_sec = then / 1000000000, .tv_nsec = then % 1000000000};
    CHECK(sem_clockwait(&semaphore, CLOCK_MONOTONIC, &t) == -1);
    CHECK(now(CLOCK_PROCESS_CPUTIME_ID) - cpu < 5000000000);
}

static void *watchdog(void *arg)
{
    (void)arg;
    int64_t before = now(CLOCK_MONOTONIC);
    usleep(20000);
    int64_t went = now(CLOCK_MONOTONIC) - before;
    CHECK(went >= 20000000); /* really slept */
    return arg;
}

int main(int argc, char **argv)
{
    char host[64];
    gethostname(host, sizeof host);
    id_t128 id;
    void *comm;
    pthread_t thread;
    int64_t before = now(CLOCK_MONOTONIC);
    usleep(1000);
    CHECK(now(CLOCK_MONOTONIC) - before >= 1000000); /* does not drive yet */
    CHECK(ncclGetUniqueId(&id) == 0 && ncclCommInitRank(&comm, 1, id, 0) == 0);
    if (argc > 1 && strcmp(argv[1], "real") == 0) {
        before = now(CLOCK_MONOTONIC);
        usleep(1000);
        CHECK(now(CLOCK_MONOTONIC) - before >= 1000000);
    } else {
        int64_t first = now(CLOCK_MONOTONIC);
        CHECK(first >= before);
        CHECK(now(CLOCK_MONOTONIC) == first);
        until_it_moves();
        virtual_sleeps();
        deadlines();
        semaphores();
        CHECK(pthread_create(&thread, NULL, watchdog, &id) == 0);
        void *ended;
        pthread_join(thread, &ended);
        CHECK(ended == &id);
    }
    printf("host %s\n", host);
    return 0;
}
