/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backend.c - finds the module that drives the GPU.
 *
 * `libmaquette-cuda.so` (maquette/module.h says where it is looked for) must be of the same make: the number of the border
 * (MAQ_PROFILE_ABI) says so.
 */
#include <stdio.h>

#include "maquette/module.h"
#include "measure/plan.h"

#define MODULE "libmaquette-cuda.so"

bool maq_profile_find_backend(struct maq_profile_backend *out, void **handle, char why[MAQ_PROFILE_WHY])
{
    void *module =
        maq_module_load(MODULE, "src/measure/cuda",
                        "this maquette was built without its CUDA module (" MODULE "), which needs the CUDA toolkit",
                        why, MAQ_PROFILE_WHY);
    if (!module)
        return false;
    *out = (struct maq_profile_backend){0};
    maq_profile_open_fn *open = (maq_profile_open_fn *)maq_module_symbol(module, MAQ_PROFILE_ENTRY);
    if (!open)
        snprintf(why, MAQ_PROFILE_WHY, "its CUDA module lacks " MAQ_PROFILE_ENTRY);
    else if (open(out, why) && out->abi == MAQ_PROFILE_ABI) {
        *handle = module;
        return true;
    } else if (out->abi != 0 && out->abi != MAQ_PROFILE_ABI)
        snprintf(why, MAQ_PROFILE_WHY, "its CUDA module is of another version");
    maq_module_close(module);
    return false;
}

void maq_profile_close_backend(struct maq_profile_backend *backend, void *handle)
{
    backend->close(backend->state);
    maq_module_close(handle);
}
