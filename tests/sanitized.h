/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sanitized.h - what a suite leaves out under a sanitizer, which has a program take five times as long or more: what would only say the
 * same again.
 */
#ifndef MAQ_TESTS_SANITIZED_H
#define MAQ_TESTS_SANITIZED_H

#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#if __has_feature(thread_sanitizer) /* it runs a suite for its threads: cases without any say nothing to it */
#define ONLY_UNDER_TSAN(pattern) cmocka_set_test_filter(pattern)
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define SANITIZED 1
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif
#ifndef ONLY_UNDER_TSAN
#define ONLY_UNDER_TSAN(pattern) (void)0
#endif

#endif
