/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_requests.c - files of requests from any bytes: tables, JSON, packed ones. What is read has tokens and does not go back in time. */
#include <stddef.h>
#include <stdlib.h>

#include "in_memory.h"
#include "maquette/serve.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    struct maq_request_set *set = NULL;
    struct maq_diag *diag = maq_diag_new();
    int fd = in_memory(path, data, size);
    if (fd >= 0 && maq_requests_read(&set, path, &(const struct maq_request_reading){.most = 1000}, diag) == MAQ_OK) {
        const struct maq_requests *q = maq_requests_get(set);
        for (uint32_t i = 0; i < q->n; i++)
            if (q->at[i].prompt < 1 || q->at[i].output < 1 ||
                !(q->at[i].arrival_s >= (i > 0 ? q->at[i - 1].arrival_s : 0)))
                abort();
        maq_requests_free(set);
    }
    if (fd >= 0)
        close(fd);
    maq_diag_free(diag);
    return 0;
}
