/* SPDX-License-Identifier: Apache-2.0 */
/* codes.h - the codes of documents live beside the diagnostics themselves, in base/codes.h. */
#ifndef MAQ_SPEC_CODES_H
#define MAQ_SPEC_CODES_H

#include "base/codes.h"

#endif
