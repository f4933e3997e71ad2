/* SPDX-License-Identifier: Apache-2.0 */
/* count.h - the number of elements of an array. */
#ifndef MAQ_BASE_COUNT_H
#define MAQ_BASE_COUNT_H

#define MAQ_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
