/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - the diagnostic "out of memory", with or without what it was for. See check.h. */
#include "base/check.h"

#include "base/codes.h"

void maq__say_no_memory(struct maq_diag *diag, const char *of)
{
    maq_diag_add(diag, MAQ_ERROR, MAQ_CODE_NO_MEMORY, (struct maq_span){0}, NULL, "out of memory%s%s",
                 of ? " for " : "", of ? of : "");
}
