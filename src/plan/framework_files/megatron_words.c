/* SPDX-License-Identifier: Apache-2.0 */
/* megatron_words.c - words of Megatron-LM's command line that a file has under other names. See megatron_words.h. */
#include "plan/framework_files/megatron_words.h"

#include <string.h>

#include "base/check.h"
#include "plan/megatron/reader.h"

void maq_file_add_word(struct maq_file_reader *r, struct maq_file_words *w, struct maq_str word,
                       const struct maq_node *from, struct maq_span at)
{
    const char *copy = maq_arena_strdup(&r->job->arena, word);
    if (!copy) {
        maq_file_no_memory(r);
    } else if (w->n == MAQ_FILE_MOST_WORDS) {
        maq_file_fault(r, from, NULL, "more than %d words of arguments", MAQ_FILE_MOST_WORDS);
    } else {
        w->word[w->n] = copy;
        w->at[w->n] = at;
        w->from[w->n++] = from;
    }
}

/* What says a flag; of one that is there twice the last. */
static const struct maq_node *origin_of(const struct maq_file_words *w, const char *flag)
{
    const struct maq_node *found = NULL;
    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->word[i], flag) == 0)
            found = w->from[i];
    return found;
}

void maq_file_read_words(struct maq_file_reader *r, const struct maq_file_words *w, bool framework)
{
    struct maq_megatron *read;
    enum maq_status status =
        r->status == MAQ_OK ? maq__megatron_read_placed(&read, w->word, w->at, w->n, r->open, r->diag) : r->status;
    if (status != MAQ_OK) {
        r->status = status;
        return;
    }
    if (r->model)
        maq_megatron_drop_model(read);
    for (size_t i = 0; i < read->n_overrides; i++) {
        const struct maq_override *o = &read->overrides[i];
        if (framework || strcmp(o->path, "framework") != 0)
            maq_file_set(r, origin_of(w, o->flag), o->path, maq_arena_strdup(&r->job->arena, maq_str_of(o->value)));
    }
    maq_megatron_free(read);
}
