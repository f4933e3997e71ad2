/* SPDX-License-Identifier: Apache-2.0 */
/*
 * effort.h - how much a suite of random jobs or of large ones does: least under a sanitizer, which has a program take five times as long
 * or more; in a usual run what fits into seconds; with MAQ_LONG=1 in the environment all, as before a release or after a change of what
 * the suite is about.
 */
#ifndef MAQ_TESTS_EFFORT_H
#define MAQ_TESTS_EFFORT_H

#include <stdbool.h>
#include <stdlib.h>

#ifdef __has_feature /* clang's word; gcc has names of its own */
#define UNDER_ASAN __has_feature(address_sanitizer)
#define UNDER_TSAN __has_feature(thread_sanitizer)
#else
#ifdef __SANITIZE_ADDRESS__
#define UNDER_ASAN 1
#else
#define UNDER_ASAN 0
#endif
#ifdef __SANITIZE_THREAD__
#define UNDER_TSAN 1
#else
#define UNDER_TSAN 0
#endif
#endif
#define SANITIZED (UNDER_ASAN || UNDER_TSAN)
#if UNDER_TSAN /* it runs a suite for its threads: cases without any say nothing to it */
#define ONLY_UNDER_TSAN(pattern) cmocka_set_test_filter(pattern)
#else
#define ONLY_UNDER_TSAN(pattern) (void)0
#endif

static inline bool long_run(void)
{
    return getenv("MAQ_LONG") != NULL;
}

/* Begins a case of seconds that other cases do most of; cmocka is included before. */
#define NOT_UNDER_A_SANITIZER()                                                                                        \
    do {                                                                                                               \
        if (SANITIZED) {                                                                                               \
            print_message("takes too long under a sanitizer\n");                                                       \
            skip();                                                                                                    \
        }                                                                                                              \
    } while (0)

/* One of three numbers. */
#define EFFORT(sanitized, usual, whole) (SANITIZED ? (sanitized) : long_run() ? (whole) : (usual))

#endif
