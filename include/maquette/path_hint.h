/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path_hint.h - a path that could not be opened: what to say besides the system's reason.
 *
 * Every reader and writer of files meets the same few mistakes, and errno tells them apart: a folder that is not there, a folder in
 * place of a file, a name mistyped.
 */
#ifndef MAQUETTE_PATH_HINT_H
#define MAQUETTE_PATH_HINT_H

#include "maquette/diag.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The hint of a file or folder that could not be made, by the errno of the attempt; NULL where the reason says enough. */
MAQ_API const char *maq_create_hint(int error);

#ifdef __cplusplus
}
#endif
#endif
