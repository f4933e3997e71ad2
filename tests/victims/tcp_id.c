/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp_id.c - ranks find each other over TCP: rank 0 waits for all others and sends each the unique id of NCCL.
 *
 * usage: tcp_id RANK WORLD PORT
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct {
    unsigned char bytes[128];
} id_t128;
int ncclGetUniqueId(id_t128 *);
int ncclCommInitRank(void **, int, id_t128, int);

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void tell(struct sockaddr_in *address, int world, const id_t128 *id)
{
    int *client = malloc((size_t)world * sizeof *client), yes = 1;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listener, (struct sockaddr *)address, sizeof *address) || listen(listener, world))
        fail("listen");
    for (int i = 1; i < world; i++) {
        struct sockaddr_in from;
        socklen_t length = sizeof from;
        client[i] = accept(listener, (struct sockaddr *)&from, &length);
        if (client[i] < 0 || from.sin_family != AF_INET)
            fail("accept");
    }
    for (int i = 1; i < world; i++) {
        if (send(client[i], id, sizeof *id, 0) != sizeof *id)
            fail("send");
        close(client[i]);
    }
    close(listener);
    free(client);
}

static void hear(const struct sockaddr_in *address, id_t128 *id)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (const struct sockaddr *)address, sizeof *address))
        fail("connect");
    for (size_t n = 0; n < sizeof *id;) {
        ssize_t got = read(fd, (char *)id + n, n ? sizeof *id - n : 100); /* in two parts */
        if (got <= 0)
            fail("read");
        n += (size_t)got;
    }
    if (read(fd, &(char){0}, 1) > 0 && id->bytes[0])
        fail("more than was sent");
    close(fd);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    int rank = atoi(argv[1]), world = atoi(argv[2]);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[3]))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    id_t128 id = {{0}};
    void *comm;
    if (rank == 0) {
        ncclGetUniqueId(&id);
        tell(&address, world, &id);
    } else {
        hear(&address, &id);
    }
    if (ncclCommInitRank(&comm, world, id, rank))
        return 1;
    printf("%.7s\n", id.bytes);
    return 0;
}
