/* SPDX-License-Identifier: Apache-2.0 */
/* bug.h - assertions that stay in release builds. */
#ifndef MAQ_BASE_BUG_H
#define MAQ_BASE_BUG_H

_Noreturn void maq__bug(const char *what, const char *file, int line);

/* A broken invariant of maquette itself: never caused by input. */
#define MAQ_ASSERT(cond) ((cond) ? (void)0 : maq__bug(#cond, __FILE__, __LINE__))

#endif
