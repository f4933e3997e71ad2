/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_profile_dir.c - foreign profiles: tables, links, faults with their places.
 *
 * The small profile is invented. The published one is read when MAQ_SHARED names the folder it lies in.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "failing_alloc.h"
#include "plan/mixed/codes.h"
#include "train/profiled/layer_profile.h"

struct file {
    const char *name, *text;
};

/* Two layers, one device, a link of 1 GB/s at every size and one that doubles with the size. */
static const struct file small[] = {
    {"layer_profiles.json",
     "{\"toy\": {\"gpu-a\": {\"2\": {\"1\": {\"1\": [0.3, 0.4, 0.01], \"0\": [0.1, 0.2, 0.01]}}}}}"},
    {"model_memory.json",
     "{\"toy\": {\"1\": {\"0\": {\"params_floats\": 10, \"act_mem_floats\": 20, \"act_output_floats\": 5,"
     "\"act_input_floats\": 6, \"params_bytes\": 40},\n"
     "\"1\": {\"params_floats\": 30, \"act_mem_floats\": 40, \"act_output_floats\": 7, "
     "\"act_input_floats\": 8}}}}"},
    {"basic_cluster_config.json", "{\"gpu-a\": {\"gpus_per_node\": 4, \"mem_per_gpu\": 1000000}, \"zone\": \"home\"}"},
    {"intra_node_bandwidths.json", "{\"gpu-a\": {\"2\": [[0, 1, 2], 5e9]}}"},
    {"multizone_bandwidths_het.json",
     "{\"home\": {\"gpu-a\": {\"1\": {\"home\": {\"gpu-a\": {\"1\": [[0, 0, 1], 1e9]}}}}}}"},
    {"training_config_toy.json", "{\"model\": \"toy\", \"global_batch_size\": 8, \"sequence_length\": 16}"},
};
#define FILES (sizeof small / sizeof small[0])

/* A folder with the small profile in which one file has another text, or is missing (text NULL). */
static char *folder_with(const char *name, const char *text)
{
    char *folder = strdup("/tmp/maq-profile-XXXXXX"), path[256];
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < FILES; i++) {
        const char *content = name && strcmp(name, small[i].name) == 0 ? text : small[i].text;
        if (!content)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, small[i].name);
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fputs(content, f);
        fclose(f);
    }
    return folder;
}

static void remove_folder(char *folder)
{
    char path[256];
    for (size_t i = 0; i < FILES; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, small[i].name);
        unlink(path);
    }
    assert_int_equal(rmdir(folder), 0);
    free(folder);
}

static struct maq_profile_dir *load_small(void)
{
    char *folder = folder_with(NULL, NULL);
    struct maq_profile_dir *p = NULL;
    assert_int_equal(maq_profile_dir_load(&p, folder, NULL), MAQ_OK);
    remove_folder(folder);
    return p;
}

static void test_tables(void **state)
{
    (void)state;
    struct maq_profile_dir *p = load_small();
    assert_int_equal(maq_profile_dir_n_models(p), 1);
    assert_string_equal(maq_profile_dir_model(p, 0)->name, "toy");
    assert_int_equal(maq_profile_dir_model(p, 0)->layers, 2);
    assert_int_equal(maq_profile_dir_device(p, 0)->per_node, 4);
    assert_true(maq_profile_dir_device(p, 0)->capacity_bytes == 1e6);
    assert_string_equal(maq_profile_dir_zone(p, maq_profile_dir_default_zone(p)), "home");
    assert_int_equal(maq_profile_dir_training(p, 0)->sequence, 16);
    const struct maq_layer_time *t = maq_profile_dir_times(p, 0, 0, 2, 1);
    assert_non_null(t);
    assert_true(t[0].forward_s == 0.1 && t[1].backward_s == 0.4 && t[1].update_s == 0.01);
    assert_null(maq_profile_dir_times(p, 0, 0, 1, 1));
    assert_null(maq_profile_dir_times(p, 0, 0, 2, 65537)); /* its low 16 bits are those of TP 1 */
    const struct maq_layer_size *s = maq_profile_dir_sizes(p, 0, 1);
    assert_true(s && s[0].parameters == 10 && s[0].activations == 20 && s[1].output == 7 && s[1].input == 8);
    struct maq_profile_dir_cell cell;
    assert_true(maq_profile_dir_measured(&cell, p, 0));
    assert_true(cell.model == 0 && cell.device == 0 && cell.micro_batch == 2 && cell.tp == 1 && cell.times == t);
    assert_false(maq_profile_dir_measured(&cell, p, 1));
    assert_int_equal(maq_profile_dir_find_model(p, (struct maq_str){"toy", 3}), 0);
    assert_int_equal(maq_profile_dir_find_device(p, (struct maq_str){"gpu-b", 5}), MAQ_PROFILE_DIR_NONE);
    maq_profile_dir_free(p);
}

static void test_links(void **state)
{
    (void)state;
    struct maq_profile_dir *p = load_small();
    const struct maq_link_fit *flat =
        maq_profile_dir_link(p, (struct maq_link_end){0, 0, 1}, (struct maq_link_end){0, 0, 1});
    const struct maq_link_fit *rising = maq_profile_dir_node_link(p, 0, 2);
    assert_non_null(flat);
    assert_non_null(rising);
    assert_null(maq_profile_dir_link(p, (struct maq_link_end){0, 0, 2}, (struct maq_link_end){0, 0, 1}));
    assert_null(maq_profile_dir_node_link(p, 0, 4));
    assert_true(fabs(maq_link_send_s(flat, 3e9) - 3) < 1e-12);
    assert_true(maq_link_send_s(flat, 0) == 0);
    assert_true(fabs(maq_link_bytes_per_s(rising, 8e6) - 5e9) < 1); /* 1 x 3 + 2 GB/s */
    assert_true(fabs(maq_link_ring_s(flat, 4e9, 4) - 6) < 1e-12);   /* 2 x 3 sends of 1 GB */
    assert_true(maq_link_ring_s(flat, 4e9, 1) == 0);
    maq_profile_dir_free(p);
}

/* The first fault of a folder with that text in that file. */
static void expect(const char *name, const char *text, unsigned code, uint32_t line, const char *words)
{
    char *folder = folder_with(name, text);
    struct maq_profile_dir *p = NULL;
    struct maq_diag *diag = maq_diag_new();
    assert_int_not_equal(maq_profile_dir_load(&p, folder, diag), MAQ_OK);
    assert_null(p);
    assert_true(maq_diag_errors(diag) > 0);
    const struct maq_diag_item *item = maq_diag_at(diag, 0);
    if (!strstr(item->msg.ptr, words))
        fail_msg("%s: %s", name, item->msg.ptr);
    assert_int_equal(item->code, code);
    assert_int_equal(maq_diag_place(diag, item->at).line, line);
    maq_diag_free(diag);
    remove_folder(folder);
}

static void test_faults(void **state)
{
    (void)state;
    expect("model_memory.json", NULL, 1030, 0, "cannot read");
    expect("layer_profiles.json", "{\"toy\": {", 1001, 1, "");
    expect("layer_profiles.json", "[1]", MAQ_CODE_PROFILE_FORM, 1, "a map is expected");
    expect("layer_profiles.json", "{\"toy\": {\"gpu-a\": {\"x\": {}}}}", MAQ_CODE_PROFILE_FORM, 1, "a micro batch");
    expect("layer_profiles.json", "{\"toy\":\n{\"gpu-a\": {\"1\": {\"1\": {\"0\": [1, 2], \"1\": [1, 2, 3]}}}}}",
           MAQ_CODE_PROFILE_FORM, 2, "a list of 3 values");
    expect("layer_profiles.json", "{\"toy\": {\"gpu-a\": {\"1\": {\"1\": {\"0\": [1, -2, 3], \"1\": [1, 2, 3]}}}}}",
           MAQ_CODE_PROFILE_VALUE, 1, "cannot be -2");
    expect("layer_profiles.json", "{\"toy\": {\"gpu-a\": {\"1\": {\"1\": {\"0\": [1, 2, 3], \"2\": [1, 2, 3]}}}}}",
           MAQ_CODE_PROFILE_LAYERS, 1, "layer 2 of a map of 2");
    expect("layer_profiles.json", "{\"toy\": {\"gpu-a\": {\"1\": {\"1\": {\"0\": [1, 2, 3]}}}}}",
           MAQ_CODE_PROFILE_LAYERS, 1, "toy has 2 layers here; 1 are expected");
    expect("layer_profiles.json",
           "{\"toy\": {\"gpu-a\": {\"1\": {\"1\": {\"0\": [1, 2, 3], \"1\": [1, 2, 3]}},\n"
           "\"+1\": {\"1\": {\"0\": [1, 2, 3], \"1\": [1, 2, 3]}}}}}",
           MAQ_CODE_PROFILE_FORM, 2, "given twice");
    expect("model_memory.json", "{\"toy\": {\"1\": {\"0\": {}, \"1\": {}}}}", MAQ_CODE_PROFILE_FORM, 1,
           "without params_floats");
    expect("basic_cluster_config.json", "{\"gpu-a\": {\"gpus_per_node\": 4}}", MAQ_CODE_PROFILE_FORM, 1,
           "without mem_per_gpu");
    expect("basic_cluster_config.json", "{\"gpu-a\": {\"gpus_per_node\": 0, \"mem_per_gpu\": 5}}",
           MAQ_CODE_PROFILE_VALUE, 1, "gpus_per_node");
    expect("intra_node_bandwidths.json", "{\"gpu-a\": {\"2\": [[1, 2], 3]}}", MAQ_CODE_PROFILE_FORM, 1, "3 values");
    expect("multizone_bandwidths_het.json", "{\"home\": {\"gpu-a\": {\"0\": {}}}}", MAQ_CODE_PROFILE_FORM, 1,
           "a number of devices");
    expect("training_config_toy.json", "{\"global_batch_size\": 8}", MAQ_CODE_PROFILE_FORM, 1, "names its model");
}

static void test_wanted_names(void **state)
{
    (void)state;
    struct maq_profile_dir *p = load_small();
    struct maq_diag *diag = maq_diag_new();
    uint32_t id = 7;
    assert_int_equal(maq_profile_dir_want_device(&id, p, (struct maq_str){"gpu-a", 5}, (struct maq_span){0}, diag),
                     MAQ_OK);
    assert_int_equal(id, 0);
    assert_int_equal(maq_profile_dir_want_model(&id, p, (struct maq_str){"toys", 4}, (struct maq_span){0}, diag),
                     MAQ_BAD_INPUT);
    assert_int_equal(maq_diag_at(diag, 0)->code, MAQ_CODE_PROFILE_NAME);
    assert_string_equal(maq_diag_at(diag, 0)->hint.ptr, "it has: toy");
    maq_diag_free(diag);
    maq_profile_dir_free(p);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    char *folder = folder_with(NULL, NULL);
    bool whole = false;
    for (fail_at = 1; !whole; fail_at++) {
        struct maq_profile_dir *p = NULL;
        asked = 0;
        maq__set_alloc_gate(fail_nth);
        enum maq_status status = maq_profile_dir_load(&p, folder, NULL);
        maq__set_alloc_gate(NULL);
        whole = asked < fail_at;
        assert_int_equal(status, whole ? MAQ_OK : MAQ_NO_MEMORY);
        maq_profile_dir_free(p);
    }
    assert_true(fail_at > 5);
    remove_folder(folder);
}

static struct maq_str str(const char *s)
{
    return (struct maq_str){s, strlen(s)};
}

/* Figures are those of the files themselves. */
static void test_published_profile(void **state)
{
    (void)state;
    const char *shared = getenv("MAQ_SHARED");
    char folder[4096];
    struct maq_profile_dir *p = NULL;
    struct maq_diag *diag = maq_diag_new();
    snprintf(folder, sizeof folder, "%s/data/planners/sailor", shared ? shared : "");
    if (!shared || access(folder, R_OK) != 0) {
        print_message("no published profile: set MAQ_SHARED to the folder that has data/planners/sailor\n");
        maq_diag_free(diag);
        skip();
    }
    assert_int_equal(maq_profile_dir_load(&p, folder, diag), MAQ_OK);
    assert_int_equal(maq_diag_count(diag), 0);
    uint32_t opt = maq_profile_dir_find_model(p, str("OPT-350")), a100 = maq_profile_dir_find_device(p, str("A100-40"));
    uint32_t v100 = maq_profile_dir_find_device(p, str("V100-16")), zone = maq_profile_dir_default_zone(p);
    assert_int_equal(maq_profile_dir_model(p, opt)->layers, 26);
    assert_int_equal(maq_profile_dir_device(p, a100)->per_node, 4);
    assert_int_equal(maq_profile_dir_training(p, opt)->global_batch, 1024);
    assert_true(maq_profile_dir_times(p, opt, a100, 4, 2)[1].forward_s == 0.005044);
    assert_true(maq_profile_dir_sizes(p, opt, 1)[0].parameters == 53608448);
    const struct maq_link_fit *link =
        maq_profile_dir_link(p, (struct maq_link_end){zone, a100, 1}, (struct maq_link_end){zone, v100, 4});
    assert_non_null(link);
    assert_true(maq_link_send_s(link, 8388608) > 1e-3);
    struct maq_profile_dir_cell cell;
    uint32_t n = 0;
    for (uint64_t last = 0; maq_profile_dir_measured(&cell, p, n); n++) {
        uint64_t key = (uint64_t)cell.model << 48 | (uint64_t)cell.device << 32 | cell.micro_batch << 16 | cell.tp;
        assert_true(n == 0 || key > last);
        last = key;
    }
    assert_true(n > 100);
    maq_profile_dir_free(p);
    maq_diag_free(diag);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables),       cmocka_unit_test(test_links),
        cmocka_unit_test(test_faults),       cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_wanted_names), cmocka_unit_test(test_published_profile),
    };
    return cmocka_run_group_tests_name("profile folder", tests, NULL, NULL);
}
