/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_recording.c - recordings of a scheduler from any bytes, replayed: whatever steps claim, the scheduler's own books hold. */
#include <stddef.h>
#include <stdlib.h>

#include "in_memory.h"
#include "maquette/validate_serve.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    const char *name = path;
    struct maq_validate_schedule *r = NULL;
    struct maq_diag *diag = maq_diag_new();
    int fd = in_memory(path, data, size);
    if (fd >= 0 && maq_validate_schedule(&r, &name, 1, diag) == MAQ_OK) {
        free(maq_validate_schedule_text(r));
        free(maq_validate_schedule_json(r));
        maq_validate_schedule_free(r);
    }
    if (fd >= 0)
        close(fd);
    maq_diag_free(diag);
    return 0;
}
