/* SPDX-License-Identifier: Apache-2.0 */
/*
 * banned.h - calls that have no place in the library, as compile errors.
 *
 * Force-included before every source file of the library and the program, after the standard headers that declare
 * these names. Each entry says what to use in its stead.
 */
#ifndef MAQ_BASE_BANNED_H
#define MAQ_BASE_BANNED_H

#include <ctype.h>
#include <locale.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* No bounds. */
#undef strcpy
#define strcpy(...) maq_banned_strcpy_use_slices
#undef strcat
#define strcat(...) maq_banned_strcat_use_maq_buf
#undef strncpy
#define strncpy(...) maq_banned_strncpy_use_slices
#undef strncat
#define strncat(...) maq_banned_strncat_use_maq_buf
#undef stpcpy
#define stpcpy(...) maq_banned_stpcpy_use_slices
#undef sprintf
#define sprintf(...) maq_banned_sprintf_use_snprintf
#undef vsprintf
#define vsprintf(...) maq_banned_vsprintf_use_vsnprintf

/* No errors, or the locale's idea of a number. */
#undef atoi
#define atoi(...) maq_banned_atoi_use_maq_str_to_i64
#undef atol
#define atol(...) maq_banned_atol_use_maq_str_to_i64
#undef atoll
#define atoll(...) maq_banned_atoll_use_maq_str_to_i64
#undef atof
#define atof(...) maq_banned_atof_use_maq_str_to_double
#undef sscanf
#define sscanf(...) maq_banned_sscanf_use_the_parsers_of_str_h
#undef setlocale
#define setlocale(...) maq_banned_setlocale_the_locale_belongs_to_the_program
#ifndef MAQ_IN_BASE /* the number parser */
#undef strtod
#define strtod(...) maq_banned_strtod_use_maq_str_to_double
#undef strtof
#define strtof(...) maq_banned_strtof_use_maq_str_to_double
#undef strtol
#define strtol(...) maq_banned_strtol_use_maq_str_to_i64
#undef strtoll
#define strtoll(...) maq_banned_strtoll_use_maq_str_to_i64
#undef strtoul
#define strtoul(...) maq_banned_strtoul_use_maq_str_to_i64
#undef strtoull
#define strtoull(...) maq_banned_strtoull_use_maq_str_to_i64
#endif

/* Hidden state: not thread-safe, not reproducible. */
#undef strtok
#define strtok(...) maq_banned_strtok_use_maq_str_split
#undef rand
#define rand(...) maq_banned_rand_use_a_keyed_generator
#undef srand
#define srand(...) maq_banned_srand_use_a_keyed_generator
#undef random
#define random(...) maq_banned_random_use_a_keyed_generator
#undef drand48
#define drand48(...) maq_banned_drand48_use_a_keyed_generator
#undef localtime
#define localtime(...) maq_banned_localtime_use_localtime_r
#undef gmtime
#define gmtime(...) maq_banned_gmtime_use_gmtime_r
#undef ctime
#define ctime(...) maq_banned_ctime_use_strftime
#undef asctime
#define asctime(...) maq_banned_asctime_use_strftime

/* Where control goes is the caller's business; whoever forgets an error would like these. */
#undef longjmp
#define longjmp(...) maq_banned_longjmp_return_a_status
#undef gets
#define gets(...) maq_banned_gets_use_fgets

#endif
