/* SPDX-License-Identifier: Apache-2.0 */
/* temp.h - files and folders of a test's own. */
#ifndef MAQ_TESTS_TEMP_H
#define MAQ_TESTS_TEMP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* A new file of these bytes; `path` ends in XXXXXX and becomes its name. */
static inline void temp_file(char *path, const void *bytes, size_t n)
{
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), (ssize_t)n);
    close(fd);
}

static inline const char *temp_text(char *path, const char *text)
{
    temp_file(path, text, strlen(text));
    return path;
}

/* Writes a file anew. */
static inline void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* The folder of a test program, from the first test to the last. */
static char temp_folder[64];

static inline int make_temp_folder(const char *what)
{
    snprintf(temp_folder, sizeof temp_folder, "/tmp/maq-%s-XXXXXX", what);
    return mkdtemp(temp_folder) ? 0 : -1;
}

static inline const char *temp_path(char buf[128], const char *name)
{
    snprintf(buf, 128, "%s/%s", temp_folder, name);
    return buf;
}

/* With those of its files that are there; -1: more than those were in it. */
static inline int drop_temp_folder(const char *const *names, size_t n)
{
    char file[128];
    for (size_t i = 0; i < n; i++)
        unlink(temp_path(file, names[i]));
    return rmdir(temp_folder);
}

#endif
