/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_units.c - quantities from any bytes, in every dimension. */
#include "base/units.h"
#include <stddef.h>
#include <stdint.h>
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    double out;
    const char *why;
    for (int d = 0; d < MAQ_DIM_TOTAL; d++)
        maq_quantity_parse(&out, (struct maq_str){(const char *)data, size}, (enum maq_dim)d, &why);
    return 0;
}
