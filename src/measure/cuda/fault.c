/* SPDX-License-Identifier: Apache-2.0 */
/* fault.c - keeps why a case could not be measured. */
#include <stdio.h>

#include "measure/cuda/cuda_backend.h"

bool maq_cuda_fail(struct maq_cuda *s, const char *what, const char *reason)
{
    snprintf(s->why, sizeof s->why, "%s: %s", what, reason);
    return false;
}

bool maq_cuda_good(struct maq_cuda *s, cudaError_t status, const char *what)
{
    return status == cudaSuccess || maq_cuda_fail(s, what, cudaGetErrorString(status));
}
