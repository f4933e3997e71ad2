/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module.h - parts of this program that are loaded when they are needed, for what they link is not everywhere: MPI, CUDA, an HTTP server.
 *
 * The single-file program (`make static`) is linked to a C library of its own, beside which a shared object would bring a second one: there
 * nothing is loaded, and `why` says so.
 */
#ifndef MAQUETTE_MODULE_H
#define MAQUETTE_MODULE_H

#include "maquette/diag.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MAQ_MODULE_PATH 640

/* Loads one shared object, by its path. NULL when it does not load; `why` then says why not. */
MAQ_API void *maq_module_open(const char *path, char *why, size_t why_size);
MAQ_API void maq_module_close(void *module);

/*
 * Loads `file` ("libmaquette-cuda.so") from beside the program, from `built` under there (where a build folder has it), from
 * ../lib/maquette, or from where it was to be installed: the first that is there. NULL when none is or it does not load; `why` then
 * says so: `absent` as it stands where there is none.
 */
MAQ_API void *maq_module_load(const char *file, const char *built, const char *absent, char *why, size_t why_size);

/* Where that file lies, for one that others load; false: nowhere. */
MAQ_API bool maq_module_find(char path[MAQ_MODULE_PATH], const char *file, const char *built);

/* A function of it, NULL when it is not there; to be called through the right type. */
typedef void (*maq_module_fn)(void);
MAQ_API maq_module_fn maq_module_symbol(void *module, const char *name);

#ifdef __cplusplus
}
#endif
#endif
