/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_framework_files.c - any text as a framework's file in place of a job: an answer or errors, and every error of the text has a place in
 * a source. A first byte '#' makes it TOML.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "maquette/job.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct maq_override flags[] = {{"--cluster", "cluster", "h100-sxm:8"}, {"--model", "model", "gpt2"}};
    const struct maq_str text = {(const char *)data, size};
    const char *name = size > 0 && data[0] == '#' ? "fuzz.toml" : "fuzz.yaml";
    for (size_t n = 1; n <= 2; n++) {
        struct maq_diag *diag = maq_diag_new();
        struct maq_loaded_job *box = NULL;
        enum maq_status status = maq_job_parse(&box, name, text, flags, n, diag);
        MAQ_ASSERT((status == MAQ_OK) == (maq_diag_errors(diag) == 0));
        if (status == MAQ_OK)
            free(maq_job_explain(box));
        maq_job_free(box);
        free(maq_diag_format(diag, 0, false));
        maq_diag_free(diag);
    }
    return 0;
}
