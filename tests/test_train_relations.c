/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_train_relations.c - what must hold between a job and the same job with one thing changed, whatever the job is.
 *
 * Jobs are drawn over models, devices, networks, degrees, schedules, sharding, recomputation, frameworks and switches. No number here is
 * expected of a job; the relations are:
 *
 *   batch       twice the global batch takes as long at least, and not more than twice as long
 *   network     a faster network of the same kind is not slower
 *   node        on one node it makes no difference, whatever scale-up domains the node has
 *   device      a device that has no figure worse than another's, and whose costs come from the same source, is not slower
 *   recompute   never faster, never more memory; full at least as much of both as selective
 *   sharding    each further stage of ZeRO takes no more memory
 *   microbatch  more sequences in a microbatch take no less memory
 *   length      sequences twice as long, half as many, with as many tokens in a microbatch, take no less time
 *   graphs      a step whose launches are replayed is not slower
 *
 * Each relation has its exceptions where the real thing has them; they stand at the relation, with the reason. maq-test: long
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/str.h"
#include "effort.h"
#include "maquette/train.h"
#include "random_draws.h"

#define JOBS EFFORT(50, 300, 1000)
#define ROUNDING 1.0005 /* of durations to whole nanoseconds, of choices between algorithms at their borders */

#define REARRANGED 1.003 /* a pass that is longer somewhere hides a little more of what runs beside it somewhere else */

struct spec {
    const char *model, *device, *framework, *recompute, *schedule, *cp_type, *precision, *dispatcher;
    const char *grad_overlap, *param_overlap, *p2p_overlap, *tp_overlap, *ep_overlap, *graphs, *sp;
    uint32_t nodes, per_node, tp, pp, vp, cp, ep, mbs, gbs, seq, zero, gbps, copies, offload;
};

struct outcome {
    bool runs;
    double step_s, bytes;
};

static uint64_t state;

#define PICK(...)                                                                                                      \
    ((const char *const[]){                                                                                            \
        __VA_ARGS__}[draw(&state, 0, (uint32_t)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)) - 1)])
#define PICK_N(...)                                                                                                    \
    ((const uint32_t[]){                                                                                               \
        __VA_ARGS__}[draw(&state, 0, (uint32_t)(sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)) - 1)])

static void draw_spec(struct spec *s)
{
    *s = (struct spec){
        .model = PICK("llama-3.1-8b", "llama-3-70b", "qwen2.5-7b", "qwen3-30b-a3b", "mixtral-8x7b", "gpt3-20b",
                      "mpt-7b", "deepseek-v2-lite", "gemma-2-9b", "nemotron-h-8b", "gpt-oss-20b", "llama-3.2-1b",
                      "qwen3-next-80b-a3b", "bloom-7b1"),
        .device = PICK("h100-sxm", "a100-80gb", "h200", "b200", "gb200", "mi300x", "h20", "l40s", "gh200-96gb", "b300",
                       "h800", "a800-80gb", "mi355x", "a100-40gb", "l4", "mi210", "v100-32gb"),
        .framework = PICK("megatron-lm", "pytorch-fsdp", "megatron-bridge", "torchtitan", "jax", "megatron-deepspeed",
                          "nemo", "mlperf-nvidia", "megatron-lm-2022", "internevo", "nemo-automodel"),
        .recompute = PICK("none", "selective", "full"),
        .schedule = PICK("auto", "auto", "auto", "gpipe", "zb-h1", "zb-v", "dualpipe", "dualpipe-v"),
        .cp_type = PICK("p2p", "all_gather", "a2a"),
        .precision = PICK("auto", "auto", "fp8-delayed", "fp8-current", "mxfp8"),
        .dispatcher = PICK("alltoall", "allgather", "deepep"),
        .grad_overlap = PICK("auto", "true", "false"),
        .param_overlap = PICK("auto", "true", "false"),
        .p2p_overlap = PICK("auto", "true", "false"),
        .tp_overlap = PICK("false", "false", "true"),
        .ep_overlap = PICK("auto", "false", "true"),
        .graphs = PICK("false", "false", "true"),
        .sp = PICK("auto", "auto", "false"),
        .nodes = PICK_N(1, 1, 2, 4, 8),
        .per_node = PICK_N(4, 8),
        .tp = PICK_N(1, 1, 2, 4, 8),
        .pp = PICK_N(1, 1, 1, 2, 4),
        .vp = PICK_N(1, 1, 2),
        .cp = PICK_N(1, 1, 1, 2),
        .ep = PICK_N(1, 2, 4, 8),
        .mbs = PICK_N(1, 1, 2, 4),
        .seq = PICK_N(1024, 2048, 4096, 8192),
        .zero = PICK_N(0, 1, 2, 3),
        .gbps = PICK_N(100, 200, 400),
        .copies = PICK_N(1, 1, 1, 2),
        .offload = PICK_N(0, 0, 0, 1),
    };
    uint32_t shard = s->tp * s->pp * s->cp, n = s->nodes * s->per_node;
    s->gbs = (n > shard ? n / shard : 1) * s->mbs * PICK_N(1, 2, 4, 8) * PICK_N(1, s->pp, s->pp);
}

/* Of one step: what computes, by kind of operator, is what the categories of computing are made of, in any job. */
static void parts(const char *text, const struct maq_train_result *r)
{
    double kinds = 0, whole = r->bucket_s[MAQ_BUCKET_FORWARD] + r->bucket_s[MAQ_BUCKET_BACKWARD] +
                              r->bucket_s[MAQ_BUCKET_RECOMPUTE] + r->bucket_s[MAQ_BUCKET_OPTIMIZER];
    for (int k = 0; k < MAQ_OP_KIND_COUNT; k++)
        kinds += k != MAQ_OP_GAP && k != MAQ_OP_HOST_COPY ? r->kind_s[k] : 0;
    if (!(fabs(kinds - whole) <= 1e-9 * whole))
        fail_msg("kinds of operators take %.12g s, categories of computing %.12g s\n%s", kinds, whole, text);
}

static struct outcome run(const struct spec *s)
{
    static const char *const sharding[] = {"no_shard", "optim", "optim_grads", "optim_grads_params"};
    char text[2048];
    struct outcome o = {0};
    struct maq_loaded_job *box = NULL;
    struct maq_train_result *r = NULL;
    snprintf(text, sizeof text,
             "model: {base: %s}\ncluster: '%s:%u x %u, rail %uG ib'\n"
             "plan: {tp: %u, pp: %u, vp: %u, cp: %u, ep: %u, mbs: %u, schedule: %s, zero: %s, recompute: %s,\n"
             "  layout: balanced, cp_comm_type: %s, precision: %s, moe_token_dispatcher_type: %s, hsdp_replicas: %u,\n"
             "  overlap_grad_reduce: %s, overlap_param_gather: %s, overlap_p2p_comm: %s, tp_comm_overlap: %s,\n"
             "  overlap_ep: %s, cuda_graphs: %s, sequence_parallel: %s, cpu_offloading_num_layers: %u}\n"
             "workload: {seq: %u, gbs: %u}\nframework: %s\n",
             s->model, s->device, s->per_node, s->nodes, s->gbps, s->tp, s->pp, s->vp, s->cp, s->ep, s->mbs,
             s->schedule, sharding[s->zero], s->recompute, s->cp_type, s->precision, s->dispatcher, s->copies,
             s->grad_overlap, s->param_overlap, s->p2p_overlap, s->tp_overlap, s->ep_overlap, s->graphs, s->sp,
             s->offload, s->seq, s->gbs, s->framework);
    struct maq_diag *diag = maq_diag_new();
    if (maq_job_parse(&box, "random", maq_str_of(text), NULL, 0, diag) == MAQ_OK) {
        if (maq_train_predict(&r, maq_job_get(box), diag) != MAQ_OK)
            fail_msg("%s\n%s", text, maq_diag_format(diag, 0, false));
        o.runs = true;
        o.step_s = r->step_s;
        parts(text, r);
        for (uint32_t i = 0; i < r->n_stages; i++)
            o.bytes = fmax(o.bytes, r->stages[i].allocated_bytes);
        maq_train_result_free(r);
    } else if (maq_diag_errors(diag) == 0) {
        fail_msg("refused without a reason:\n%s", text);
    }
    maq_job_free(box);
    maq_diag_free(diag);
    return o;
}

static uint32_t violations, compared[16];

static void hold(int relation, bool ok, const struct spec *s, const char *what, double now, double before)
{
    compared[relation]++;
    if (ok)
        return;
    violations++;
    print_message(
        "%s: %.6g after %.6g (%.4f) for --model %s --cluster '%s:%u x %u, rail %uG ib' --tp %u --pp %u --vp %u --cp %u "
        "--ep %u "
        "--mbs %u --gbs %u --seq %u --zero %u --recompute %s --framework %s --schedule %s --cp-comm-type %s "
        "--precision %s --dispatcher %s --overlap-grad-reduce %s --overlap-param-gather %s --overlap-p2p-comm %s "
        "--tp-comm-overlap %s --overlap-ep %s --cuda-graphs %s --sp %s --hsdp-replicas %u --offload-layers %u --layout "
        "balanced\n",
        what, now, before, now / before, s->model, s->device, s->per_node, s->nodes, s->gbps, s->tp, s->pp, s->vp,
        s->cp, s->ep, s->mbs, s->gbs, s->seq, s->zero, s->recompute, s->framework, s->schedule, s->cp_type,
        s->precision, s->dispatcher, s->grad_overlap, s->param_overlap, s->p2p_overlap, s->tp_overlap, s->ep_overlap,
        s->graphs, s->sp, s->copies, s->offload);
}

/* ---- relations; each gets a job that runs, and what it takes ---- */

static void batch(int k, struct spec s, struct outcome o)
{
    s.gbs *= 2;
    struct outcome twice = run(&s);
    /* zb-v has one order for all durations (docs/schedules.md): where they are far from equal, the first microbatches are the cheap ones */
    double most = strcmp(s.schedule, "zb-v") == 0 ? 3 : 2;
    if (twice.runs)
        hold(k, twice.step_s * ROUNDING >= o.step_s && twice.step_s <= most * o.step_s * ROUNDING, &s, "batch",
             twice.step_s, o.step_s);
}

static void network(int k, struct spec s, struct outcome o)
{
    s.gbps *= 2;
    struct outcome faster = run(&s);
    if (faster.runs)
        hold(k, faster.step_s <= o.step_s * ROUNDING, &s, "network", faster.step_s, o.step_s);
}

/* Of pairs of bridged boards, of one domain, of boards behind PCIe. */
static void node(int k, struct spec s, struct outcome o)
{
    static const char *const devices[] = {"h100-pcie", "h100-nvl", "a40", "mi210", "a100-80gb", "l4"};
    s.device = devices[compared[k] % MAQ_COUNT(devices)];
    s.nodes = 1;
    struct outcome slow = run(&s);
    s.gbps *= 4;
    struct outcome fast = run(&s);
    if (slow.runs && fast.runs)
        hold(k, fast.step_s == slow.step_s, &s, "node", fast.step_s, slow.step_s);
    (void)o;
}

static void device(int k, struct spec s, struct outcome o)
{
    static const struct {
        const char *device, *better;
    } pairs[] = {{"a100-40gb", "a100-80gb"},
                 {"h800", "h100-sxm"},
                 {"a800-80gb", "a100-80gb"},
                 {"mi300x", "mi325x"},
                 {"l4", "l40"},
                 {"h100-sxm", "h200"},
                 {"h20", "h200"},
                 {"mi210", "mi300x"}};
    /* The L40S has the PCIe of the one board that was measured with it; b200 and gb200 have kernel tables of their own, b300 and gb300 theirs scaled: sources of two kinds */
    for (size_t i = 0; i < MAQ_COUNT(pairs); i++)
        if (strcmp(s.device, pairs[i].device) == 0) {
            s.device = pairs[i].better;
            struct outcome better = run(&s);
            if (better.runs)
                hold(k, better.step_s <= o.step_s * ROUNDING, &s, "device", better.step_s, o.step_s);
            return;
        }
}

/*
 * Activations that wait in host memory: what is recomputed need not be moved there and back. Where Transformer Engine's fused attention is
 * recomputed, more stays than without, since values are a view of all that linear_qkv returned (train/memory/activations.c).
 */
static void recompute(int k, struct spec s, struct outcome o)
{
    const bool views = strncmp(s.framework, "megatron", 8) == 0 || strcmp(s.framework, "nemo") == 0 ||
                       strncmp(s.framework, "mlperf", 6) == 0;
    if (s.offload > 0)
        return;
    static const char *const more[] = {"none", "selective", "full"};
    struct outcome before = {0};
    for (size_t i = 0; i < MAQ_COUNT(more); i++) {
        s.recompute = more[i];
        struct outcome now = run(&s);
        if (before.runs && now.runs) {
            hold(k, now.step_s * REARRANGED >= before.step_s, &s, "recompute, time", now.step_s, before.step_s);
            if (!views || i != 1)
                hold(k, now.bytes <= before.bytes * ROUNDING, &s, "recompute, memory", now.bytes, before.bytes);
        }
        before = now;
    }
    (void)o;
}

/*
 * FSDP's gathered layers and their whole gradients come on top of the shards. Over a few ranks, of experts too, that is more than the
 * shards save; of a table of 250,000 words over eight still. A framework whose FSDP keeps both whole over the microbatches saves little by it.
 */
static void sharding(int k, struct spec s, struct outcome o)
{
    if (s.nodes * s.per_node < 16 * s.tp * s.pp * s.ep * s.copies)
        return;
    struct outcome before = {0};
    const uint32_t most = strcmp(s.framework, "nemo-automodel") == 0 ? 2 : 3;
    for (s.zero = 0; s.zero <= most; s.zero++) {
        struct outcome now = run(&s);
        if (before.runs && now.runs)
            hold(k, now.bytes <= before.bytes * ROUNDING, &s, "sharding", now.bytes, before.bytes);
        before = now;
    }
    (void)o;
}

/*
 * Half as many microbatches must still fill the pipeline. GPipe holds all sequences of a step in any case. Megatron's fused softmax needs a
 * multiple of four of sequences times heads (is_kernel_available() of its FusedScaleMaskSoftmax), without which scores are kept twice.
 */
static void microbatch(int k, struct spec s, struct outcome o)
{
    uint32_t shard = s.tp * s.pp * s.cp, n = s.nodes * s.per_node, replicas = n > shard ? n / shard : 1;
    bool unfused = strcmp(s.framework, "megatron-lm-2022") == 0 || strcmp(s.framework, "megatron-deepspeed") == 0 ||
                   strcmp(s.device, "v100-32gb") == 0;
    s.mbs *= 2;
    if (unfused || strcmp(s.schedule, "gpipe") == 0 || s.gbs < replicas * s.mbs * 2 * s.pp * s.vp)
        return;
    struct outcome twice = run(&s);
    if (twice.runs)
        hold(k, twice.bytes * ROUNDING >= o.bytes, &s, "microbatch", twice.bytes, o.bytes);
}

static void length(int k, struct spec s, struct outcome o)
{
    if (s.mbs % 2 != 0 || s.gbs % 2 != 0)
        return; /* as above, the fused softmax comes and goes with the number of sequences: REARRANGED covers its time */
    s.seq *= 2;
    s.mbs /= 2;
    s.gbs /= 2;
    struct outcome longer = run(&s);
    if (longer.runs)
        hold(k, longer.step_s * REARRANGED >= o.step_s, &s, "length", longer.step_s, o.step_s);
}

static void graphs(int k, struct spec s, struct outcome o)
{
    s.graphs = "true";
    struct outcome replayed = run(&s);
    if (replayed.runs)
        hold(k, replayed.step_s <= o.step_s * ROUNDING, &s, "graphs", replayed.step_s, o.step_s);
}

/*
 * A token more or less is a token more or less: a length that is no multiple of anything does not cost more than the next multiple of 8.
 * Widths that are none are slow (cost/analytical/gemm.c), and so are scores of unfused attention, whose rows are as long as the sequence.
 */
static void test_odd_lengths(void **unused)
{
    static const char *const models[] = {"llama-3.1-8b", "qwen3-30b-a3b", "deepseek-v2-lite", "gpt3-5b"},
                             *const devices[] = {"h100-sxm", "a100-80gb", "b200", "mi300x", "l40s"},
                             *const frameworks[] = {"jax", "megatron-lm", "torchtitan"};
    (void)unused;
    for (size_t m = 0; m < MAQ_COUNT(models); m++)
        for (size_t d = 0; d < MAQ_COUNT(devices); d++)
            for (size_t f = 0; f < MAQ_COUNT(frameworks); f++) {
                struct spec s = {.model = models[m],
                                 .device = devices[d],
                                 .framework = frameworks[f],
                                 .recompute = "none",
                                 .schedule = "auto",
                                 .cp_type = "p2p",
                                 .precision = "auto",
                                 .dispatcher = "alltoall",
                                 .grad_overlap = "auto",
                                 .param_overlap = "auto",
                                 .p2p_overlap = "auto",
                                 .tp_overlap = "false",
                                 .ep_overlap = "false",
                                 .graphs = "false",
                                 .sp = "auto",
                                 .nodes = 1,
                                 .per_node = 8,
                                 .tp = 1,
                                 .pp = 1,
                                 .vp = 1,
                                 .cp = 1,
                                 .ep = 1,
                                 .mbs = 1,
                                 .gbs = 32,
                                 .seq = 4099,
                                 .zero = 1,
                                 .gbps = 400,
                                 .copies = 1};
                struct outcome odd = run(&s), even;
                s.seq = 4104;
                even = run(&s);
                assert_true(even.runs && odd.runs);
                if (odd.step_s > REARRANGED * even.step_s)
                    fail_msg("%s on %s with %s: %.6g s with 4,099 tokens, %.6g s with 4,104", s.model, s.device,
                             s.framework, odd.step_s, even.step_s);
            }
}

static void test_relations(void **unused)
{
    static const struct {
        const char *name;
        void (*of)(int, struct spec, struct outcome);
    } relations[] = {{"batch", batch},           {"network", network},     {"node", node},
                     {"device", device},         {"recompute", recompute}, {"sharding", sharding},
                     {"microbatch", microbatch}, {"length", length},       {"graphs", graphs}};
    uint32_t ran = 0;
    (void)unused;
    state = 20261122;
    for (int i = 0; i < JOBS; i++) {
        struct spec s;
        draw_spec(&s);
        struct outcome o = run(&s);
        if (!o.runs)
            continue;
        ran++;
        for (size_t k = 0; k < MAQ_COUNT(relations); k++)
            relations[k].of((int)k, s, o);
    }
    for (size_t k = 0; k < MAQ_COUNT(relations); k++)
        print_message("%s: %u pairs\n", relations[k].name, compared[k]);
    print_message("%u of %d random jobs could run\n", ran, JOBS);
    assert_int_equal(violations, 0);
    assert_true(ran > JOBS / 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_relations), cmocka_unit_test(test_odd_lengths)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
