/* SPDX-License-Identifier: Apache-2.0 */
/* model_texts.h - what tests of models have in common: models from texts, and modules by name. To be included after cmocka's header. */
#ifndef MAQ_TESTS_MODEL_TEXTS_H
#define MAQ_TESTS_MODEL_TEXTS_H

#include <string.h>

#include "base/str.h"
#include "maquette/model.h"
#include "model/load.h"

/* The model lives in the arena. */
static inline struct maq_model model_of_text(const char *text, struct maq_arena *arena)
{
    struct maq_doc doc;
    struct maq_model m = {0};
    struct maq_diag *diag = maq_diag_new();
    if (maq_doc_parse(&doc, "model", maq_str_of(text), MAQ_ORIGIN_DOCUMENT, diag) != MAQ_OK ||
        maq_model_load(&m, doc.root, arena, diag) != MAQ_OK || maq_diag_count(diag) > 0)
        fail_msg("%s\n%s", text, maq_diag_format(diag, 0, false));
    maq_doc_fini(&doc);
    maq_diag_free(diag);
    return m;
}

/* NULL: the layer has none of that name. */
static inline const struct maq_module *module_named(const struct maq_layer *l, const char *name)
{
    for (uint32_t i = 0; i < l->n_modules; i++)
        if (strcmp(l->modules[i].name, name) == 0)
            return &l->modules[i];
    return NULL;
}

#endif
