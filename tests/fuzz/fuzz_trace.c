/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_trace.c - traces of a profiler from any bytes: what parses is fitted, and what was learnt is a variation that reads. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "base/str.h"
#include "maquette/risk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64], *yaml = NULL;
    const char *file = path;
    int fd = memfd_create("trace", 0);
    struct maq_diag *diag = maq_diag_new();
    struct maq_risk_fit *fit = NULL;
    struct maq_risk_fit_opts opts = MAQ_RISK_FIT_OPTS_INIT;
    MAQ_ASSERT(fd >= 0 && diag && write(fd, data, size) == (ssize_t)size);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    enum maq_status status = maq_risk_fit(&fit, &file, 1, &opts, diag);
    MAQ_ASSERT((status == MAQ_OK) == (fit != NULL) && (status == MAQ_OK) == (maq_diag_errors(diag) == 0));
    if (fit)
        MAQ_ASSERT(maq_risk_fit_variation(&yaml, fit, diag) == MAQ_OK && yaml);
    free(yaml);
    maq_risk_fit_free(fit);
    maq_diag_free(diag);
    close(fd);
    return 0;
}
