/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_launch_folder.c - private folders of a run: they are taken away with all that is in them, also when the process that made them
 * is killed.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "launch/private_folder.h"

static void fill(const char *folder)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/a", folder);
    assert_int_equal(maq_folder_write(path, "x", 1, NULL), MAQ_OK);
    (void)snprintf(path, sizeof path, "%s/b", folder);
    assert_int_equal(mkdir(path, 0700), 0);
}

static bool is_there(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

static void test_kept_and_removed(void **state)
{
    struct maq_arena arena;
    struct maq_folder_guard guard;
    const char *folder;
    (void)state;
    maq_arena_init(&arena, 0);
    assert_int_equal(maq_folder_make(&folder, &arena, NULL), MAQ_OK);
    maq_folder_guard_begin(&guard, folder);
    assert_true(guard.process > 0);
    fill(folder);
    maq_folder_guard_end(&guard); /* told that it is to stay */
    assert_int_equal(guard.process, 0);
    maq_folder_guard_end(&guard);
    assert_true(is_there(folder));
    assert_true(maq_folder_remove(folder));
    assert_false(is_there(folder));
    maq_arena_fini(&arena);
}

static void test_killed(void **state)
{
    int ends[2];
    char folder[128] = "";
    (void)state;
    assert_int_equal(pipe(ends), 0);
    pid_t process = fork();
    if (process == 0) {
        struct maq_arena arena;
        struct maq_folder_guard guard;
        const char *path;
        maq_arena_init(&arena, 0);
        if (maq_folder_make(&path, &arena, NULL) != MAQ_OK)
            _exit(1);
        maq_folder_guard_begin(&guard, path);
        fill(path);
        (void)!write(ends[1], path, strlen(path));
        for (;;)
            pause();
    }
    close(ends[1]);
    assert_true(read(ends[0], folder, sizeof folder - 1) > 0);
    assert_true(is_there(folder));
    kill(process, SIGKILL);
    waitpid(process, NULL, 0);
    for (int i = 0; i < 1000 && is_there(folder); i++)
        nanosleep(&(struct timespec){0, 10 * 1000 * 1000}, NULL);
    assert_false(is_there(folder));
    close(ends[0]);
}

/* A guard and keepers remove one folder at once: none is put off by what another has taken. */
static void test_removed_by_several(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        struct maq_arena arena;
        const char *folder;
        char path[256];
        pid_t process[4];
        maq_arena_init(&arena, 0);
        assert_int_equal(maq_folder_make(&folder, &arena, NULL), MAQ_OK);
        for (int i = 0; i < 200; i++) {
            (void)snprintf(path, sizeof path, "%s/a%d", folder, i);
            assert_int_equal(maq_folder_write(path, "x", 1, NULL), MAQ_OK);
        }
        for (int i = 0; i < 4; i++) {
            process[i] = fork();
            if (process[i] == 0)
                _exit(maq_folder_remove(folder) ? 0 : 1);
        }
        for (int i = 0; i < 4; i++) {
            int status = -1;
            assert_int_equal(waitpid(process[i], &status, 0), process[i]);
            assert_int_equal(status, 0);
        }
        assert_false(is_there(folder));
        maq_arena_fini(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept_and_removed),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_removed_by_several),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
