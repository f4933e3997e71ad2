/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load.c - loads a parallelizer: a shared object and its entry symbol, anything else that is not
 * "builtin" as a program. The version, the size of the struct and its functions are checked before the first call.
 * See load.h.
 */
#include "planner/external/load.h"

#include <string.h>

#include "maquette/module.h"
#include "planner/external/codes.h"
#include "planner/external/program_parallelizer.h"

static enum maq_status cannot(struct maq_diag *diag, uint16_t code, const char *name, const char *why)
{
    return maq_diag_fail(code == MAQ_CODE_PARALLELIZER_VERSION ? MAQ_BAD_INPUT : MAQ_IO, diag, code,
                         (struct maq_span){0}, "docs/parallelizer.md says what a parallelizer is",
                         "parallelizer %.120s: %.200s", name, why);
}

/* Why a struct of functions is refused; NULL: it is valid. */
static const char *fault_of(const struct maq_parallelizer *p)
{
    if (!p)
        return MAQ_PARALLELIZER_ENTRY "() gives no functions";
    if (p->abi != MAQ_PARALLELIZER_ABI)
        return "it is made for another version of maquette/parallelizer.h";
    if (p->size < sizeof *p)
        return "its struct maq_parallelizer is smaller than that of maquette/parallelizer.h";
    if (!p->name || !p->open || !p->close || !p->slice_model || !p->profile || !p->parallelize)
        return "one of its functions is missing: only concatenate may be NULL";
    return NULL;
}

static enum maq_status load_object(struct maq_slices_loaded *out, const char *path, struct maq_diag *diag)
{
    char why[200];
    void *handle = maq_module_open(path, why, sizeof why);
    if (!handle)
        return cannot(diag, MAQ_CODE_PARALLELIZER_LOAD, path, why);
    maq_parallelizer_entry_fn *entry = (maq_parallelizer_entry_fn *)maq_module_symbol(handle, MAQ_PARALLELIZER_ENTRY);
    if (!entry) {
        maq_module_close(handle);
        return cannot(diag, MAQ_CODE_PARALLELIZER_LOAD, path, "it does not export " MAQ_PARALLELIZER_ENTRY "()");
    }
    const struct maq_parallelizer *p = entry();
    const char *wrong = fault_of(p);
    if (wrong) {
        enum maq_status status = cannot(diag, MAQ_CODE_PARALLELIZER_VERSION, path, wrong);
        maq_module_close(handle);
        return status;
    }
    out->source.functions = *p;
    out->handle = handle;
    return MAQ_OK;
}

static bool is_object(const char *name)
{
    const char *at = strstr(name, ".so");
    return at && (at[3] == '\0' || at[3] == '.');
}

enum maq_status maq_slices_load(struct maq_slices_loaded *out, struct maq_slices_chain *chain,
                                const struct maq_slices_opts *opts, struct maq_arena *arena, struct maq_diag *diag)
{
    const char *name = opts->parallelizer;
    *out = (struct maq_slices_loaded){.handle = NULL};
    if (opts->functions) {
        const char *wrong = fault_of(opts->functions);
        if (wrong)
            return cannot(diag, MAQ_CODE_PARALLELIZER_VERSION, "given as functions", wrong);
        out->source.functions = *opts->functions;
        return MAQ_OK;
    }
    if (!name || strcmp(name, "builtin") == 0) {
        out->source.functions = maq_slices_builtin(chain);
        return MAQ_OK;
    }
    if (is_object(name))
        return load_object(out, name, diag);
    return maq_slices_remote(&out->source, name, &chain->model, opts, arena, diag);
}

void maq_slices_unload(struct maq_slices_loaded *loaded)
{
    maq_slices_remote_fini(&loaded->source);
    if (loaded->handle)
        maq_module_close(loaded->handle);
    loaded->handle = NULL;
}
