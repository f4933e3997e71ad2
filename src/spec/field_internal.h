/* SPDX-License-Identifier: Apache-2.0 */
/* field_internal.h - words about a field, for field.c's messages. */
#ifndef MAQ_SPEC_FIELD_INTERNAL_H
#define MAQ_SPEC_FIELD_INTERNAL_H

#include "spec/field.h"

/* "at least 1 GB", "between 1 and 8". Returns buf. */
#define MAQ_RANGE_SIZE 160
const char *maq__field_range(char buf[MAQ_RANGE_SIZE], const struct maq_field *field);

/* "a whole number", "one of: a, b". Returns buf. */
#define MAQ_TYPE_SIZE 256
const char *maq__field_type(char buf[MAQ_TYPE_SIZE], const struct maq_field *field);

#endif
