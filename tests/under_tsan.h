/* under_tsan.h - TSan runs a suite for its threads: cases without any say nothing to it, and take minutes. */
#ifndef MAQ_TESTS_UNDER_TSAN_H
#define MAQ_TESTS_UNDER_TSAN_H

#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define ONLY_UNDER_TSAN(pattern) cmocka_set_test_filter(pattern)
#endif
#endif
#ifndef ONLY_UNDER_TSAN
#define ONLY_UNDER_TSAN(pattern) (void)0
#endif

#endif
