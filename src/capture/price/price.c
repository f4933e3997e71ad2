/* SPDX-License-Identifier: Apache-2.0 */
/*
 * price.c - prices of operators and copies: see price.h.
 *
 * An operator of a program that serves (MAQ_REC_ENGINE) takes what it takes in `maquette serve`: by the tables of its engine's kernels, at the
 * clocks of minutes and not of weeks.
 */
#include "capture/price/price.h"

#include "cost/engine_tables.h"

#define KERNEL_ERROR 1.0f
#define MOST_NS 9.0e15

static struct maq_price answer(struct maq_cost cost)
{
    double ns = cost.seconds * 1e9;
    return (struct maq_price){
        .ns = (uint64_t)(ns < MOST_NS ? ns + 0.5 : MOST_NS), .error = cost.error, .provider = cost.provider};
}

static struct maq_costs conditions_of(const struct maq_pricer *p, const struct maq_rec_op *what)
{
    static const enum maq_library of[] = {[MAQ_REC_NO_ENGINE] = MAQ_LIBRARY_TRAINING,
                                          [MAQ_REC_VLLM] = MAQ_LIBRARY_VLLM,
                                          [MAQ_REC_SGLANG] = MAQ_LIBRARY_SGLANG,
                                          [MAQ_REC_TRTLLM] = MAQ_LIBRARY_TRTLLM};
    const uint32_t engine = MAQ_REC_ENGINE(what->flags);
    struct maq_costs costs = {0};
    if (p->costs)
        costs = *p->costs;
    if (engine == MAQ_REC_NO_ENGINE || engine >= MAQ_REC_ENGINE_COUNT)
        return costs;
    costs.library = of[engine];
    costs.short_run = true;
    return costs;
}

/* Two parts of an operator: one after the other, and the less certain one speaks for both; or, of a kernel whose code was read, at once. */
static struct maq_cost together(const struct maq_rec_op *what, struct maq_cost a, struct maq_cost b)
{
    if (what->kind == MAQ_REC_WORK)
        return a.seconds > b.seconds ? a : b;
    struct maq_cost sum = b.error > a.error ? b : a;
    sum.seconds = a.seconds + b.seconds;
    return sum;
}

struct maq_price maq_price_op(const struct maq_pricer *p, const struct maq_rec_op *what, const char *name,
                              const struct maq_device *device)
{
    struct maq_op part[MAQ_PRICE_PARTS];
    bool known;
    if (p->kernels && name) {
        double ns = maq_replay_kernels_find(p->kernels, name, what->name_bytes, what->grid);
        if (ns >= 0)
            return (struct maq_price){.ns = (uint64_t)(ns + 0.5), .provider = MAQ_PROVIDER_MEASURED};
    }
    const struct maq_costs costs = conditions_of(p, what);
    const uint32_t n = maq_price_map(part, what, device, &known);
    struct maq_cost all = {.provider = MAQ_PROVIDER_ANALYTICAL};
    for (uint32_t i = 0; i < n; i++) {
        struct maq_costs own = costs;
        own.library = maq_engine_table(costs.library, &part[i], device);
        const struct maq_cost one = maq_cost_op(&own, &part[i], device);
        all = i == 0 ? one : together(what, all, one);
    }
    struct maq_price price = answer(all);
    if (!known) {
        price.modelled = true;
        price.error = KERNEL_ERROR;
        price.provider = MAQ_PROVIDER_ANALYTICAL;
    }
    return price;
}

struct maq_price maq_price_copy(const struct maq_pricer *p, uint32_t copy, bool set, uint64_t bytes,
                                const struct maq_device *device)
{
    double n = bytes < (uint64_t)MOST_NS ? (double)bytes : MOST_NS;
    struct maq_op op = maq_price_stream(set ? n : 2 * n);
    if (bytes == 0)
        return (struct maq_price){.provider = MAQ_PROVIDER_ANALYTICAL};
    if (!set && (copy == MAQ_REC_H2D || copy == MAQ_REC_D2H || copy == MAQ_REC_H2H))
        op = (struct maq_op){.kind = MAQ_OP_HOST_COPY, .d = {(int64_t)n}};
    if (!set && copy == MAQ_REC_P2P) {
        double rate = device->domain_bps > 0 ? device->domain_bps : device->host_bps;
        double s = device->domain_latency_s + (rate > 0 ? n / rate : 0);
        return answer((struct maq_cost){.seconds = s, .error = 0.3f, .provider = MAQ_PROVIDER_ANALYTICAL});
    }
    return answer(maq_cost_op(p->costs, &op, device));
}
