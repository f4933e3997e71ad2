/* SPDX-License-Identifier: Apache-2.0 */
/* path_hint.c - hints by errno. See maquette/path_hint.h. */
#include "maquette/path_hint.h"

#include <errno.h>
#include <stddef.h>

const char *maq_create_hint(int error)
{
    switch (error) {
    case ENOENT:
        return "its folder is not there: mkdir -p makes it";
    case ENOTDIR:
        return "a file stands where its path wants a folder";
    case EISDIR:
        return "that is a folder: name a file in it";
    default:
        return NULL;
    }
}
