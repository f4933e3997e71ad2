/* SPDX-License-Identifier: Apache-2.0 */
/* store_internal.h - what writing (store.c) and reading (store_read.c) the file of measured kernels share. */
#ifndef MAQ_COST_MEASURED_STORE_INTERNAL_H
#define MAQ_COST_MEASURED_STORE_INTERNAL_H

#include <sqlite3.h>

#include "maquette/diag.h"

#define MAQ_STORE_APPLICATION 1296126299 /* "MAQ[" */
#define MAQ_STORE_FORM 2                 /* 1 had no repetitions; it is read, and becomes 2 when it is written to */
#define MAQ_KERNEL_LONGEST_S 1e5         /* of one kernel: a day; longer is a mistake */

/* Writes the diagnostic of a failed call; db may be NULL. */
enum maq_status maq__store_fail(sqlite3 *db, int rc, const char *path, struct maq_diag *diag);
int maq__store_exec(sqlite3 *db, const char *sql);
/* A connection to a file that was found to be ours and sound; *form: of the file, 0 = there is nothing in it yet. */
enum maq_status maq__store_connect(sqlite3 **out, int *form, const char *path, int flags, struct maq_diag *diag);

#endif
