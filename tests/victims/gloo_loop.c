/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gloo_loop.c - a rank of a large group of gloo that ends: as gloo does it, each pair is taken out of a thread's set, waits until that thread has gone
 * round, and is closed. Prints what is not as it should be.
 */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "shim/link.h"

enum { PAIRS = 200, LOOK_MS = 10, TIMES_SOONER = 4, MANY = 40 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t round_over = PTHREAD_COND_INITIALIZER;
static bool done;
static unsigned rounds;
static int set;

static void *loop(void *nothing)
{
    struct epoll_event events[64];
    for (bool more = true; more;) {
        pthread_mutex_lock(&mutex);
        rounds++;
        pthread_cond_broadcast(&round_over);
        more = !done;
        pthread_mutex_unlock(&mutex);
        if (epoll_wait(set, events, 64, LOOK_MS) > 0)
            printf("somebody said something\n");
    }
    return nothing;
}

static int pair_with(uint32_t rank)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    const struct maq_gloo_peer peer = {.group = 0x123456789a, .rank = rank, .n = PAIRS + 1};
    struct epoll_event event = {.events = EPOLLIN};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    maq_gloo_address((unsigned char *)&address + sizeof address.sin_family, &peer);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) || epoll_ctl(set, EPOLL_CTL_ADD, fd, &event))
        perror("connect");
    return fd;
}

static void end_pair(int fd)
{
    if (epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL))
        perror("epoll_ctl");
    pthread_mutex_lock(&mutex);
    pthread_cond_wait(&round_over, &mutex);
    pthread_mutex_unlock(&mutex);
    close(fd);
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static unsigned rounds_now(void)
{
    pthread_mutex_lock(&mutex);
    const unsigned out = rounds;
    pthread_mutex_unlock(&mutex);
    return out;
}

/* Nobody may be told for a minute that a connection's port is taken which is closed. */
static void is_free(const struct sockaddr_in *address)
{
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(fd, (const struct sockaddr *)address, sizeof *address))
        printf("a port is not free again\n");
    close(fd);
}

int main(void)
{
    pthread_t thread;
    int fd[PAIRS];
    struct sockaddr_in own;
    socklen_t bytes = sizeof own;
    set = epoll_create1(0);
    if (pthread_create(&thread, NULL, loop, NULL))
        return 1;
    for (int i = 0; i < PAIRS; i++)
        fd[i] = pair_with((uint32_t)i + 1);
    getsockname(fd[0], (struct sockaddr *)&own, &bytes);
    const double begin = now_ms();
    for (int i = 0; i < PAIRS; i++)
        end_pair(fd[i]);
    if (now_ms() - begin > (double)PAIRS * LOOK_MS / TIMES_SOONER)
        printf("%d pairs took %.0f ms to end\n", PAIRS, now_ms() - begin);
    is_free(&own);
    usleep(50000); /* and then it looks as often as it says */
    const unsigned before = rounds_now();
    usleep(200000);
    if (rounds_now() - before > MANY)
        printf("the loop went round %u times in 200 ms\n", rounds_now() - before);
    pthread_mutex_lock(&mutex);
    done = true;
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);
    return 0;
}
