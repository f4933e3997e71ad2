/* SPDX-License-Identifier: Apache-2.0 */
/* generate.c - requests drawn at random. */
#include "serve/request/set.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/stat/rng.h"
#include "serve/codes.h"

#define MOST_REQUESTS 100000000u
#define MOST_NAMES 100000000u /* 800 MB */
#define RUN 16                /* tokens that have a name, where prompts come again: a block of vLLM's */

struct maq_request_set *maq_request_set_new(void)
{
    struct maq_request_set *set = maq__calloc(sizeof *set);
    if (set)
        maq_arena_init(&set->arena, 0);
    return set;
}

struct maq_request *maq_request_set_add(struct maq_request_set *set)
{
    if (set->n >= MOST_REQUESTS || !maq__grow((void **)&set->at, &set->size, set->n, sizeof *set->at))
        return NULL;
    set->at[set->n] = (struct maq_request){0};
    return &set->at[set->n++];
}

void maq_request_set_close(struct maq_request_set *set)
{
    set->requests.at = set->at;
    set->requests.n = set->n;
}

const struct maq_requests *maq_requests_get(const struct maq_request_set *set)
{
    return &set->requests;
}

void maq_requests_free(struct maq_request_set *set)
{
    if (!set)
        return;
    free(set->at);
    maq_arena_fini(&set->arena);
    free(set);
}

static int64_t length(struct maq_rng *r, int64_t mean, double spread)
{
    if (spread <= 0)
        return mean;
    double low = ceil((double)mean * (1 - spread)), high = floor((double)mean * (1 + spread)), u = maq_rng_next(r);
    double n = floor(low + u * (high - low + 1));
    return n < 1 ? 1 : (int64_t)n;
}

/* Adapter k of n with a probability in proportion to k^-zipf. */
static uint64_t adapter(struct maq_rng *r, const struct maq_request_spec *s, const double *upto)
{
    double none = maq_rng_next(r), u = maq_rng_next(r) * upto[s->adapters - 1];
    uint32_t low = 0, high = s->adapters - 1;
    while (low < high) { /* the first whose sum is more than u */
        uint32_t mid = low + (high - low) / 2;
        if (upto[mid] > u)
            high = mid;
        else
            low = mid + 1;
    }
    return none < s->adapter_none ? 0 : low + 1u;
}

static enum maq_status draw_adapters(struct maq_request_set *set, const struct maq_request_spec *s)
{
    struct maq_rng rng = maq_rng_of(s->seed, MAQ_RNG_REQUEST, 2);
    double sum = 0, *upto = s->adapters > 0 ? maq__malloc(s->adapters * sizeof *upto) : NULL;
    if (s->adapters == 0)
        return MAQ_OK;
    if (!upto)
        return MAQ_NO_MEMORY;
    for (uint32_t k = 0; k < s->adapters; k++)
        upto[k] = sum += pow(k + 1.0, -s->adapter_zipf);
    for (uint32_t i = 0; i < set->n; i++)
        set->at[i].adapter = adapter(&rng, s, upto);
    free(upto);
    return MAQ_OK;
}

/* Prompts that come again: [n], each a length and the names of its runs, [runs]. What is left behind whole runs has no name. */
struct prompts {
    int64_t *prompt, *output;
    uint64_t *names;
    uint32_t n, runs;
};

static enum maq_status draw_prompts(struct prompts *out, const struct maq_request_spec *s, struct maq_rng *lengths,
                                    struct maq_arena *arena, struct maq_diag *diag)
{
    *out = (struct prompts){.n = s->distinct};
    if (s->distinct == 0)
        return MAQ_OK;
    out->runs = (uint32_t)(ceil((double)s->prompt * (1 + s->spread)) / RUN) + 1;
    if ((uint64_t)s->distinct * out->runs > MOST_NAMES)
        return maq_diag_fail(MAQ_LIMIT, diag, MAQ_CODE_REQUEST_FILE, (struct maq_span){0}, "fewer of them",
                             "%u distinct prompts of %lld tokens have more than %u runs of %d", s->distinct,
                             (long long)s->prompt, MOST_NAMES, RUN);
    out->prompt = MAQ_ARENA_NEW(arena, int64_t, out->n);
    out->output = MAQ_ARENA_NEW(arena, int64_t, out->n);
    out->names = MAQ_ARENA_NEW(arena, uint64_t, (size_t)out->n * out->runs);
    if (!out->prompt || !out->output || !out->names)
        return MAQ_NO_MEMORY;
    for (uint32_t k = 0; k < out->n; k++) {
        out->prompt[k] = length(lengths, s->prompt, s->spread);
        out->output[k] = length(lengths, s->output, s->spread);
    }
    for (uint64_t i = 0; i < (uint64_t)out->n * out->runs; i++)
        out->names[i] = i + 1;
    return MAQ_OK;
}

static void put_text(struct maq_request *q, const struct maq_request_spec *s, const struct prompts *again,
                     struct maq_rng *lengths, struct maq_rng *which)
{
    static const uint64_t shared = 1;
    if (again->n > 0) {
        uint32_t k = (uint32_t)(maq_rng_next(which) * again->n);
        q->prompt = again->prompt[k];
        q->output = again->output[k];
        q->prefix = again->names + (size_t)k * again->runs;
        q->n_prefix = (uint32_t)(q->prompt / RUN);
        return;
    }
    q->prompt = length(lengths, s->prompt, s->spread);
    q->output = length(lengths, s->output, s->spread);
    if (s->shared_prefix > 0 && q->prompt > s->shared_prefix) {
        q->prefix = &shared;
        q->n_prefix = 1;
    }
}

static enum maq_status fill(struct maq_request_set *set, const struct maq_request_spec *s, uint32_t n,
                            struct maq_diag *diag)
{
    struct maq_arrivals arrivals = maq_arrivals_of(s->rate, s->burstiness, s->seed);
    struct maq_rng lengths = maq_rng_of(s->seed, MAQ_RNG_REQUEST, 1), which = maq_rng_of(s->seed, MAQ_RNG_REQUEST, 3);
    struct prompts again;
    MAQ_TRY(draw_prompts(&again, s, &lengths, &set->arena, diag));
    for (uint32_t i = 0; i < n; i++) {
        struct maq_request *q = maq_request_set_add(set);
        if (!q)
            return MAQ_NO_MEMORY;
        q->arrival_s = maq_arrivals_next(&arrivals);
        put_text(q, s, &again, &lengths, &which);
        q->prompt += s->images * s->image_tokens;
        q->images = s->images;
        q->image_tokens = s->image_tokens;
    }
    set->requests.prefix_unit = again.n > 0 ? RUN : (uint32_t)s->shared_prefix;
    return draw_adapters(set, s);
}

enum maq_status maq_requests_generate(struct maq_request_set **out, const struct maq_request_spec *s,
                                      struct maq_diag *diag)
{
    double n = s->n > 0 ? s->n : s->rate > 0 && s->duration_s > 0 ? floor(s->rate * s->duration_s + 0.5) : 1;
    struct maq_request_set *set = maq_request_set_new();
    if (!set)
        return maq_no_memory(diag, "requests");
    enum maq_status status = n > MOST_REQUESTS
                                 ? maq_diag_fail(MAQ_LIMIT, diag, MAQ_CODE_REQUEST_FILE, (struct maq_span){0}, NULL,
                                                 "%.0f requests are more than %u", n, MOST_REQUESTS)
                                 : fill(set, s, (uint32_t)(n < 1 ? 1 : n), diag);
    if (status != MAQ_OK) {
        maq_requests_free(set);
        return status == MAQ_NO_MEMORY ? maq_no_memory(diag, "requests") : status;
    }
    maq_request_set_close(set);
    set->requests.concurrency = s->concurrency;
    set->requests.warmup = s->warmup;
    *out = set;
    return MAQ_OK;
}
