/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.c - what an engine's host does, by engine and release: for an iteration, and for a request on its way in and out.
 *
 * Times are those of the reference host (framework.h). Four kinds:
 *
 *   arrive_s, arrive_token_s   until a request is with the engine, read off published TTFT of many models, GPUs and degrees together;
 *                              tools/leave-one-out-serve says what is left of them where the source has not been seen
 *   request_s                  measured for vLLM and SGLang: processor time of their own schedulers, 0.33.0 and 0.5.23, for a request that
 *                              decodes, from the decision to the bytes for the API server or the detokenizer (host_time.py in
 *                              tools/vllm-truth and tools/sglang-truth), 30 to 46 us and 51 to 83 us on a Zen 3; what the worker
 *                              process does for it besides is not in it
 *   pass_s, piece_s, compiled_s, eager_s, experts_s
 *                              measured for vLLM 0.33.0 on the zero-GPU device (launch_time.py in tools/vllm-truth), Python of the other
 *                              engines taken to be as slow
 *   all others                 assumed: round figures of the size that an iteration, a graph and a request take a Python process on
 *                              that host. Nothing of them was measured, and nothing was fitted
 *
 * docs/validate-serve.md has the errors.
 */
#include "base/str.h"
#include "serve/engine/deployment.h"

/* The digits in front: "0rc2" and "" are 0. */
static int32_t leading(struct maq_str s)
{
    int32_t n = 0;
    for (size_t i = 0; i < s.len && s.ptr[i] >= '0' && s.ptr[i] <= '9' && n < 1000; i++)
        n = n * 10 + (s.ptr[i] - '0');
    return n < 1000 ? n : 999;
}

int32_t maq_engine_release(const char *version)
{
    struct maq_str rest = version ? maq_str_of(version) : MAQ_STR(""), major, minor, patch;
    double a, b;
    rest = maq_str_split(rest, '.', &major);
    rest = maq_str_split(rest, '.', &minor);
    (void)maq_str_split(rest, '.', &patch);
    if (!maq_str_to_double(&a, major) || !maq_str_to_double(&b, minor) || !(a >= 0 && a < 100 && b >= 0 && b < 1000))
        return INT32_MAX;
    return ((int32_t)a * 1000 + (int32_t)b) * 1000 + leading(patch);
}

struct maq_host_profile maq_host_profile_of(const struct maq_serve_options *o)
{
    struct maq_host_profile h = {.iteration_s = 1.0e-3,
                                 .request_s = 5e-6,
                                 .graph_s = 10e-6,
                                 .pass_s = 1.8e-3,
                                 .piece_s = 280e-6,
                                 .compiled_s = 28e-6,
                                 .eager_s = 48e-6,
                                 .experts_s = 1e-3,
                                 .respond_s = 1e-3,
                                 .enter_s = 1e-3};
    switch (o->engine) {
    case MAQ_ENGINE_VLLM: /* asynchronous scheduling is the default since 0.14 */
        h.request_s = 30e-6;
        h.async = maq_engine_release(o->version) >= MAQ_RELEASE(0, 14, 0);
        h.async_pipeline = maq_engine_release(o->version) >=
                           MAQ_RELEASE(0, 33, 0); /* its second model runner; the first does not (config/vllm.py) */
        h.arrive_s = 15e-3;
        h.arrive_token_s = 15e-6;
        break;
    case MAQ_ENGINE_SGLANG:
        h.request_s = 50e-6;
        h.async = true;
        h.arrive_s = 150e-3;
        h.arrive_token_s = 50e-6;
        break;
    case MAQ_ENGINE_TRTLLM:
        h.async = true;
        h.arrive_s = 20e-3;
        h.arrive_token_s = 2e-6;
        if (maq_engine_release(o->version) < MAQ_RELEASE(1, 1, 0)) { /* trtllm-serve until 1.0 */
            h.arrive_s = 100e-3;
            h.arrive_token_s = 0;
        }
        break;
    case MAQ_ENGINE_COUNT:
        break;
    }
    if (o->async_scheduling != MAQ_AUTO)
        h.async = o->async_scheduling == MAQ_ON;
    return h;
}
