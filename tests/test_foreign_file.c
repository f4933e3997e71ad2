/* SPDX-License-Identifier: Apache-2.0 */
/* test_foreign_file.c - files of other tools are known by their content, and files of ours are none of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/str.h"
#include "spec/catalogue.h"
#include "spec/foreign_file.h"

static void test_known(void **state)
{
    static const struct {
        const char *head, *what;
    } cases[] = {
        {"{\n  \"schema\": \"1.0.2-chakra.0.0.4\", \"pid\": 1, \"nodes\": [", "a PyTorch execution trace"},
        {"\xef\xbb\xbf {\"schema\": \"1.1.1-chakra.0.0.4\", \"pid\": 1,", "a PyTorch execution trace"},
        {"{\"schemaVersion\": 1, \"deviceProperties\": [", "a trace of PyTorch's profiler"},
        {"[{\"ph\": \"X\"}, {\"traceEvents\": []}]", "a trace of PyTorch's profiler"},
        {"# nThread 1 nGpus 8 minBytes 8 maxBytes 1024", "a log of nccl-tests"},
        {"NCCL version 2.21\n#  out-of-place  in-place\n#  time algbw busbw #wrong", "a log of nccl-tests"},
        {"<system version=\"1\">\n  <cpu numaid=\"0\"", "a topology file of NCCL"},
        {"<graphs version=\"1\">\n  <graph id=\"0\"", "a file of NCCL's graphs"},
        {"<?xml version=\"1.0\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology><object type=\"Machine\"",
         "a topology file of hwloc"},
        {"\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\n", "the matrix of `nvidia-smi topo -m`"},
        {"SwitchName=s0 Nodes=n[0-31]", "a topology file of SLURM"},
        {"topology: [ Ring ]\nnpus_count: [ 8 ]", "a network of ASTRA-sim"},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        const struct maq_foreign *f = maq_foreign_bytes(maq_str_of(cases[i].head));
        assert_non_null(f);
        assert_string_equal(f->what, cases[i].what);
        assert_int_equal(f->is_profile, strstr(f->what, "profiler") != NULL);
        assert_true(strlen(f->hint) > 0);
    }
}

static void test_ours(void **state)
{
    static const char *const sections[] = {"models", "devices", "fabrics", "frameworks", "variability"};
    static const char *const heads[] = {"", "model: llama-3.1-8b\ncluster: {topology: x}\n",
                                        "{\"schema\": \"maquette.train/1\"}", "gpu,num_gpus,collective\n", "<html>"};
    size_t n = 0;
    for (size_t s = 0; s < MAQ_COUNT(sections); s++) {
        const struct maq_catalogue_entry *e;
        for (size_t i = 0; (e = maq_catalogue_at(sections[s], i)) != NULL; i++, n++)
            assert_null(maq_foreign_bytes((struct maq_str){e->text, e->len}));
    }
    assert_true(n > 100);
    for (size_t i = 0; i < MAQ_COUNT(heads); i++)
        assert_null(maq_foreign_bytes(maq_str_of(heads[i])));
    assert_null(maq_foreign_file("/no/such/file"));
    assert_null(maq_foreign_file("/tmp"));
    assert_null(maq_foreign_file("/dev/zero"));
    assert_int_equal(maq_foreign_refuse(NULL, "x", "y", (struct maq_span){0}, NULL), MAQ_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_ours),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("foreign_file", tests, NULL, NULL);
}
