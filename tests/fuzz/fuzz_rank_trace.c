/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_rank_trace.c - the trace of a rank from any bytes: what reads is made a job of one rank, checked and replayed. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "capture/build.h"
#include "maquette/replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(struct maq_capture *c, struct maq_diag *diag)
{
    struct maq_replay *r = NULL;
    struct maq_capture_stats *s = NULL;
    uint32_t probe[8], n = 8;
    (void)maq_capture_infer(c, probe, &n, diag);
    (void)maq_capture_check(c, diag);
    if (maq_capture_stats(&s, c, diag) == MAQ_OK)
        maq_capture_stats_free(s);
    if (maq_capture_replay(&r, c, NULL, diag) == MAQ_OK)
        maq_replay_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    const char *paths = path;
    int fd = memfd_create("trace", 0);
    if (fd < 0 || size > 1u << 20)
        return 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (write(fd, data, size) == (ssize_t)size) {
        struct maq_diag *diag = maq_diag_new();
        struct maq_capture *c = NULL;
        enum maq_status status = maq_capture_of_ranks(&c, &paths, 1, diag);
        MAQ_ASSERT((status == MAQ_OK) == (maq_diag_errors(diag) == 0));
        if (c && c->world <= 4096)
            use(c, diag);
        maq_capture_free(c);
        maq_diag_free(diag);
    }
    close(fd);
    return 0;
}
