/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_megatron.c - any words as the command line of a Megatron-LM script, and the job that they make.
 *
 * Words stand between blanks and line ends. Besides crashes, this looks for broken promises: a failure without a
 * diagnostic, a setting without a path or a value.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "command_words.h"
#include "maquette/job.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_job(const struct maq_megatron *m, struct maq_diag *diag)
{
    static const char rest[] = "cluster: 'h100-sxm:8'\nworkload: {gbs: 8, seq: 128}\n";
    struct maq_loaded_job *box = NULL;
    for (size_t i = 0; i < m->n_overrides; i++)
        require(m->overrides[i].path && m->overrides[i].value && m->overrides[i].flag);
    enum maq_status status = maq_job_parse(&box, "job", maq_str_of(rest), m->overrides, m->n_overrides, diag);
    require(status == MAQ_OK || maq_diag_count(diag) > 0);
    if (status == MAQ_OK)
        maq_job_free(box);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *words[WORDS];
    struct maq_megatron *m;
    char *text = malloc(size + 1);
    struct maq_diag *diag = maq_diag_new();
    if (text && diag) {
        memcpy(text, data, size);
        text[size] = '\0';
        size_t n = cut(words, text);
        enum maq_status status = maq_megatron_read(&m, words, n, size % 2 == 1, diag);
        require(status == MAQ_OK || maq_diag_count(diag) > 0);
        if (status == MAQ_OK) {
            read_job(m, diag);
            maq_megatron_free(m);
        }
    }
    maq_diag_free(diag);
    free(text);
    return 0;
}
