/* SPDX-License-Identifier: Apache-2.0 */
/* test_shim_export_table.c - who asks for the driver's undocumented tables is named, once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "shim/cuda/cuda.h"
#include "shim_card.h"

int cuGetExportTable(const void **table, const struct vg_uuid *id);

static void test_named_once(void **state)
{
    char said[1024] = "";
    const void *table = said;
    int pipes[2], kept = dup(STDERR_FILENO);
    assert_int_equal(pipe(pipes), 0);
    dup2(pipes[1], STDERR_FILENO);
    int first = cuGetExportTable(&table, NULL), second = cuGetExportTable(&table, NULL);
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(pipes[1]);
    assert_true(read(pipes[0], said, sizeof said - 1) > 0);
    close(pipes[0]);
    assert_int_equal(first, VG_NOT_FOUND);
    assert_int_equal(second, VG_NOT_FOUND);
    assert_null(table);
    assert_non_null(strstr(said, "test_shim_export_table has CUDA's runtime inside"));
    assert_null(strchr(strchr(said, '\n') + 1, '\n'));
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_named_once)};
    shim_card("");
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    shim_done();
    return failed;
}
