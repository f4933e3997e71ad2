/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sampling.c - from logits to a token: what the sampler of an engine does with n rows of a vocabulary of V.
 *
 * Greedy (temperature 0): the row is widened to 32 bits and its largest logit is the token. At a temperature the rows are divided by it, go through a
 * softmax, are divided by an exponential variate for each entry, and the largest one is the token:
 *
 *   bytes of an entry = 8 + 12 + 4 + 12 + 4 = 40        (vLLM 0.11.1, v1/sample/sampler.py, ops/topk_topp_sampler.py)
 *
 * What keeps the likeliest tokens alone (top_p below 1; top_k) is, by release:
 *
 *   vLLM before 0.16            rows are sorted by PyTorch: six passes of a radix sort over an entry and its index. 0.8 and later sort for top_p; for
 *                               top_k alone they select, in four passes. Behind a sort a softmax, a running sum, masks and the way back
 *   vLLM 0.16 to 0.19           a Triton kernel that searches for the threshold (vllm-project/vllm#33538)
 *   vLLM from 0.20, SGLang      FlashInfer's kernels (vllm-project/vllm#40376); TensorRT-LLM's own are taken to be as fast
 *
 * The sort has one block a row, and waits for its own latency while an SM has few of them:
 *
 *   sort = n V c / (SMs clock),  c = 20 + 17 / max(1, n / SMs) cycles
 *
 * through what vLLM's developers measured of the whole mask on a B200 (#40376, 131,072 entries): 2.32 ms of 128 rows and 6.15 of 512; 4.26 of 256 in #32558, whose
 * GPU is not said. There Triton's kernel took 2.01 ms of 512 rows and FlashInfer's 0.37: 9 and 1.6 cycles an entry. That #40376 measured on the B200 that it tested
 * on, and the releases behind both merges, February and April 2026, are taken to be so. The constants are of kernels alone; that sampling was missing was seen in
 * runs of a server (docs/validate-serve.md).
 *
 * Around a pass the engine launches kernels over a few numbers of each request: positions, blocks and slots of the inputs, gathered rows, what was accepted,
 * results. vLLM 0.33.0 launches 16 and four copies of half their time beside those above and the model's (counted on the zero-GPU device, models of 4 and
 * 12 layers, tools/vllm-truth/emulated.py), of which each takes what the smallest kernel does; others are taken to launch as many.
 */
#include "serve/engine_release.h"
#include "serve/pass/pass.h"

#define SORT_CYCLES 20.0         /* of an entry, while others of its SM hide its latency */
#define SORT_LATENCY_CYCLES 17.0 /* and what is not hidden of a row alone */
#define TRITON_CYCLES 9.0
#define FLASHINFER_CYCLES 1.6
#define KERNELS_AROUND 18.0

static enum maq_pass_filter filter_of(const struct maq_serve_options *o)
{
    bool nucleus = o->top_p > 0 && o->top_p < 1, any = nucleus || o->top_k > 0;
    int32_t release = maq_engine_release(o->version);
    if (!any || o->temperature <= 0)
        return MAQ_FILTER_NONE;
    if (o->engine != MAQ_ENGINE_VLLM || release >= MAQ_RELEASE(0, 20, 0))
        return MAQ_FILTER_FLASHINFER;
    if (release >= MAQ_RELEASE(0, 16, 0))
        return MAQ_FILTER_TRITON;
    return nucleus || release < MAQ_VLLM_COMPILED ? MAQ_FILTER_SORT : MAQ_FILTER_SELECT;
}

static double filter_cycles(enum maq_pass_filter f, double rows_of_an_sm)
{
    switch (f) {
    case MAQ_FILTER_SORT:
        return SORT_CYCLES + SORT_LATENCY_CYCLES / (rows_of_an_sm > 1 ? rows_of_an_sm : 1);
    case MAQ_FILTER_TRITON:
        return TRITON_CYCLES;
    case MAQ_FILTER_FLASHINFER:
        return FLASHINFER_CYCLES;
    case MAQ_FILTER_NONE:
    case MAQ_FILTER_SELECT:
        break;
    }
    return 0;
}

struct maq_pass_sampling maq_pass_sampling_of(const struct maq_serve_options *o)
{
    return (struct maq_pass_sampling){.random = o->temperature > 0, .filter = filter_of(o)};
}

/* Traffic at the pace of the memory, so many bytes of an entry read and written. */
static void stream(const struct maq_passes *p, int64_t entries, int64_t read, int64_t written,
                   struct maq_pass_parts *out)
{
    struct maq_op op = maq_pass_op(MAQ_OP_ELEMENTWISE, &p->plain, 0, entries, read, written, 0);
    maq_pass_cost(p, &op, 1, MAQ_SERVE_SAMPLING, out);
}

static void filter_rows(const struct maq_passes *p, int64_t rows, struct maq_pass_parts *out)
{
    const struct maq_device *d = p->device;
    enum maq_pass_filter f = p->sampling.filter;
    double sms = d->sms > 0 ? d->sms : 1, entries = (double)rows * (double)p->job->model.vocab;
    if (f == MAQ_FILTER_SORT)
        stream(p, rows * p->job->model.vocab, 34, 26, out);
    if (f == MAQ_FILTER_SELECT)
        stream(p, rows * p->job->model.vocab, 24, 4, out);
    out->ns[MAQ_SERVE_SAMPLING] += 1e9 * entries * filter_cycles(f, (double)rows / sms) / (sms * d->clock_hz);
}

double maq_pass_around_ns(const struct maq_passes *p)
{
    struct maq_op smallest = maq_pass_op(MAQ_OP_ELEMENTWISE, &p->plain, 0, 1, 4, 4, 0);
    return KERNELS_AROUND * maq_pass_seconds(p, &smallest) * 1e9;
}

void maq_pass_sample(const struct maq_passes *p, int64_t rows, struct maq_pass_parts *out)
{
    int64_t vocab = p->job->model.vocab;
    struct maq_op largest = maq_pass_op(MAQ_OP_SOFTMAX, &p->plain, 0, rows, vocab, 0, 0);
    largest.dtype = MAQ_FP32;
    stream(p, rows * vocab, 2, 4, out);
    if (!p->sampling.random) {
        maq_pass_cost(p, &largest, 1, MAQ_SERVE_SAMPLING, out);
        return;
    }
    filter_rows(p, rows, out);
    stream(p, rows * vocab, 24, 16, out);
}
