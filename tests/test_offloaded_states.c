/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_offloaded_states.c - parameters, gradients and optimizer on the host or on NVMe: bytes in each place, times that a link bounds, tiles
 * of an update, what is refused.
 */
#include <string.h>

#include "effects.h"
#include "train/step/offloaded_update.h"

#define PARAMS 8030261248.0 /* Llama 3.1 8B */
#define NVME ", nvme 10GB/s 5GB/s"

static struct prediction predict(const char *cluster, const char *framework, const char *plan, int gbs)
{
    char text[1024];
    snprintf(text, sizeof text,
             "model: llama-3.1-8b\ncluster: %s\nplan: {precision: bf16, zero: 3, recompute: full%s}\n"
             "workload: {seq: 1024, gbs: %d}\nframework: {base: %s, " FREE_HOST_BUT("expert: 0 s, " REST_FREE) "}\n",
             cluster, plan, gbs, framework);
    return predict_text(text);
}

static void same_bytes(const struct maq_offloaded *got, double weights, double gradients, double optimizer,
                       const char *what)
{
    assert_close(got->weights, weights, 1e-6 * PARAMS, what);
    assert_close(got->gradients, gradients, 1e-6 * PARAMS, what);
    assert_close(got->optimizer, optimizer, 1e-6 * PARAMS, what);
}

/* DeepSpeed has shards of 2 bytes beside 12 of the optimizer, gradients in 2 and, for the CPU's Adam, in 4; FSDP's shards are the optimizer's. */
static void test_bytes_in_each_place(void **unused)
{
    (void)unused;
    static const struct {
        const char *framework, *plan;
        double host[3], nvme[3], device[3]; /* bytes a parameter: weights, gradients, optimizer */
    } cases[] = {
        {"deepspeed", "", {0}, {0}, {2, 2, 12}},
        {"deepspeed", ", optimizer_offload_fraction: 1", {0, 0, 12}, {0}, {2, 2, 0}},
        {"deepspeed", ", optimizer_offload_fraction: 0.25", {0, 0, 3}, {0}, {2, 2, 9}},
        {"deepspeed", ", offload_param_device: cpu", {2}, {0}, {0, 2, 12}},
        {"deepspeed", ", offload_param_device: cpu, optimizer_offload_fraction: 1", {2, 6, 12}, {0}, {0}},
        {"deepspeed", ", offload_param_device: nvme, optimizer_offload_fraction: 1", {0, 6, 12}, {2}, {0}},
        {"deepspeed",
         ", offload_param_device: nvme, optimizer_offload_fraction: 1, offload_optimizer_device: nvme",
         {0, 2, 0},
         {2, 4, 12},
         {0}},
        {"pytorch-fsdp", "", {0}, {0}, {4, 4, 8}},
        {"pytorch-fsdp", ", offload_param_device: cpu, optimizer_offload_fraction: 1", {4, 4, 8}, {0}, {0}},
    };
    const double n = PARAMS / 8;
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        /* two microbatches: gradients of one come and go */
        struct prediction p = predict("'h100-sxm:8" NVME "'", cases[i].framework, cases[i].plan, 16);
        const struct maq_stage_result *st = &p.result->stages[0];
        const double *h = cases[i].host, *v = cases[i].nvme;
        same_bytes(&st->host, n * h[0], n * h[1], n * h[2], cases[i].plan);
        same_bytes(&st->nvme, n * v[0], n * v[1], n * v[2], cases[i].plan);
        for (int k = 0; k < 3; k++)
            assert_close(st->bytes[MAQ_MEM_WEIGHTS + k], n * cases[i].device[k], 1e-6 * PARAMS, cases[i].plan);
        drop(&p);
    }
}

/*
 * One GPU whose link to the host is slow: parameters of 2 bytes come up for both passes, gradients go down behind the second, and nothing
 * else matters. The update streams g + 2 x 12 + 2 + 8 bytes a parameter through memory.
 */
static void test_time_that_a_link_bounds(void **unused)
{
    (void)unused;
    static const double link = 400e6, stream = 0.8 * 614.4e9;
    static const struct {
        const char *framework, *plan;
        double up, down, update; /* bytes a parameter */
    } cases[] = {
        {"deepspeed", ", reshard_after_forward: true", 4, 2, 4 + 24 + 2 + 8},
        {"deepspeed", ", reshard_after_forward: false", 2, 2, 4 + 24 + 2 + 8},
        {"pytorch-fsdp", ", reshard_after_forward: true", 8, 4, 4 + 24 + 8},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++)
        for (int gbs = 1; gbs < 3; gbs++) {
            char plan[256];
            snprintf(plan, sizeof plan, "%s, offload_param_device: cpu, optimizer_offload_fraction: 1", cases[i].plan);
            struct prediction p = predict("{nodes: 1, devices_per_node: 1, device: {base: h100-sxm, host: 400 MB/s}}",
                                          cases[i].framework, plan, gbs);
            double bound = PARAMS * (gbs * (cases[i].up + cases[i].down) / link + cases[i].update / stream);
            if (!(p.result->step_s >= bound * (1 - 1e-6) && p.result->step_s <= bound * 1.03))
                fail_msg("%s, %s, %d: %.3f s, the link takes %.3f s", cases[i].framework, cases[i].plan, gbs,
                         p.result->step_s, bound);
            assert_true(p.result->bucket_s[MAQ_BUCKET_OTHER] > 0.9 * PARAMS * gbs * cases[i].up / link);
            drop(&p);
        }
}

/* LoRA's frozen parameters are fetched as others are, and leave no gradients; NF4's are fetched as they are kept. */
static void test_frozen_parameters(void **unused)
{
    (void)unused;
    static const double link = 100e6;
    struct prediction p =
        predict("{nodes: 1, devices_per_node: 1, device: {base: h100-sxm, host: 100 MB/s}}", "deepspeed",
                ", lora_rank: 8, offload_param_device: cpu, optimizer_offload_fraction: 1", 1);
    double bound = PARAMS * 4 / link;
    assert_true(p.result->step_s > bound && p.result->step_s < 1.02 * bound);
    assert_true(p.result->stages[0].bytes[MAQ_MEM_WEIGHTS] < 0.01 * PARAMS);
    assert_close(p.result->stages[0].host.weights, 2 * PARAMS, 0.01 * PARAMS, "frozen parameters on the host");
    drop(&p);
    struct prediction full = predict("h100-sxm:8", "deepspeed", ", mbs: 1", 8),
                      lora = predict("h100-sxm:8", "deepspeed", ", mbs: 1, lora_rank: 8", 8);
    bool gathers = false;
    for (uint32_t i = 0; i < lora.result->n_ops; i++)
        gathers |=
            strncmp(lora.result->ops[i].text, "all_gather 416 MiB", 18) == 0; /* of a layer, as with all trained */
    assert_true(gathers && lora.result->step_s < full.result->step_s);
    drop(&full);
    drop(&lora);
}

/* From NVMe parameters come as fast as the slower of the two ways; they and the optimizer are written at what it writes. */
static void test_time_of_nvme(void **unused)
{
    (void)unused;
    static const char one[] = "{nodes: 1, devices_per_node: 1, device: {base: h100-sxm, host: 150 GB/s}, "
                              "nvme_read_bandwidth: 500 MB/s, nvme_write_bandwidth: 250 MB/s}";
    struct prediction param =
                          predict(one, "deepspeed", ", offload_param_device: nvme, optimizer_offload_fraction: 1", 1),
                      both = predict(one, "deepspeed",
                                     ", offload_param_device: nvme, optimizer_offload_fraction: 1, "
                                     "offload_optimizer_device: nvme",
                                     1);
    double reads = PARAMS * 4 / 500e6, writes = PARAMS * 2 / 250e6;
    assert_true(param.result->step_s > reads + writes && param.result->step_s < 1.03 * (reads + writes));
    double optimizer = PARAMS * (16 / 500e6 + (12 + 4) / 250e6);
    assert_close(both.result->step_s - param.result->step_s, optimizer, 1e-6 * optimizer, "optimizer on NVMe");
    drop(&param);
    drop(&both);
}

static void test_tiles(void **unused)
{
    (void)unused;
    /* four tiles that read for 2, update for 3, write for 4 */
    const double r = 8, u = 12, v = 16;
    assert_close(maq_tiled_update_s(4, r, u, v, false, false), 36, 1e-12, "one after the other");
    assert_close(maq_tiled_update_s(4, r, u, v, true, false), 2 + 3 * 7 + 3 + 4, 1e-12, "read ahead");
    assert_close(maq_tiled_update_s(4, r, u, v, false, true), 2 + 3 + 3 * 5 + 4, 1e-12, "written behind");
    assert_close(maq_tiled_update_s(4, r, u, v, true, true), 9 + 3 * 4, 1e-12, "both");
    for (int k = 0; k < 4; k++) /* one tile has nothing beside it */
        assert_close(maq_tiled_update_s(1, r, u, v, k & 1, k & 2), 36, 1e-12, "one tile");
    for (double tiles = 1; tiles < 64; tiles *= 2) {
        double none = maq_tiled_update_s(tiles, r, u, v, false, false),
               both = maq_tiled_update_s(tiles, r, u, v, true, true);
        assert_true(both <= none && both >= fmax(r, fmax(u, v)));
    }
}

/* More bandwidth is never slower, and what comes up under compute that is long enough costs nothing. */
static void test_overlap(void **unused)
{
    (void)unused;
    static const char *const hosts[] = {"1 GB/s", "8 GB/s", "64 GB/s", "512 GB/s"};
    double last = 1e300;
    for (size_t i = 0; i < MAQ_COUNT(hosts); i++) {
        char cluster[256];
        snprintf(cluster, sizeof cluster,
                 "{nodes: 1, device: {base: h100-sxm, host: %s}, host_memory_bandwidth: 8 TB/s}", hosts[i]);
        struct prediction p =
            predict(cluster, "deepspeed", ", mbs: 16, offload_param_device: cpu, optimizer_offload_fraction: 1", 128);
        assert_true(p.result->step_s <= last);
        last = p.result->step_s;
        if (i + 1 == MAQ_COUNT(hosts)) /* the first layer of a pass has nothing before it */
            assert_true(p.result->bucket_s[MAQ_BUCKET_OTHER] < 0.02 * last);
        drop(&p);
    }
}

static void test_refused(void **unused)
{
    (void)unused;
    static const struct {
        const char *cluster, *framework, *plan, *says;
    } cases[] = {
        {"h100-sxm:8", "deepspeed", "zero: 2, offload_param_device: cpu", "only ZeRO-3 fetches parameters"},
        {"h100-sxm:8", "deepspeed", "zero: 3, offload_param_device: disc", "offload_param_device"},
        {"h100-sxm:8", "deepspeed", "zero: 3, offload_param_device: nvme", "does not say what the NVMe"},
        {"h100-sxm:8", "deepspeed", "zero: 3, gather_once_per_step: true, offload_param_device: cpu",
         "do not wait on the host"},
        {"h100-sxm:8", "pytorch-fsdp", "zero: 3, offload_param_device: cpu", "are the optimizer's own"},
        {"h100-sxm:8", "deepspeed", "optimizer_offload_fraction: 1, offload_optimizer_device: nvme",
         "offload_optimizer_device nvme, and the cluster"},
        {"h100-sxm:8, nvme", "deepspeed", "zero: 3", "expected what the NVMe of a node reads"},
        {"h100-sxm:8, nvme 1GB/s, nvme 2GB/s", "deepspeed", "zero: 3", "the NVMe of a group is"},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "model: llama-3.1-8b\ncluster: '%s'\nplan: {%s}\nworkload: {gbs: 64}\nframework: %s\n",
                 cases[i].cluster, cases[i].plan, cases[i].framework);
        expect_refused(text, cases[i].says);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_in_each_place),
        cmocka_unit_test(test_time_that_a_link_bounds),
        cmocka_unit_test(test_time_of_nvme),
        cmocka_unit_test(test_frozen_parameters),
        cmocka_unit_test(test_tiles),
        cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
