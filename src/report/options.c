/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - the words that an option takes, from the tables that read them. */
#include <string.h>

#include "maquette/catalogue.h"
#include "plan/keys.h"

const char *const *maq_option_words(const char *section, size_t i)
{
    static const char *const truth[] = {"false", "true", NULL};
    const struct maq_field *fields = strcmp(section, "plan") == 0       ? maq_plan_fields
                                     : strcmp(section, "workload") == 0 ? maq_workload_fields
                                                                        : NULL;
    if (!fields || i >= maq_fields_count(fields))
        return NULL;
    return fields[i].type == MAQ_TYPE_ENUM ? fields[i].names : fields[i].type == MAQ_TYPE_BOOL ? truth : NULL;
}
