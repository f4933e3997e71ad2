/* SPDX-License-Identifier: Apache-2.0 */
/* yaml.c - the coefficients as data/fitted/collectives.yaml, which tools/coll-table.py reads. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "fit.h"

const char *const fit_near_names[MAQ_COLL_NEAR_COUNT] = {
#define NAME(name, text) [MAQ_COLL_NEAR_##name] = (text),
    MAQ_COLL_NEAR_LIST(NAME)
#undef NAME
};
const char *const fit_far_names[MAQ_COLL_FAR_COUNT] = {
#define NAME(name, text) [MAQ_COLL_FAR_##name] = (text),
    MAQ_COLL_FAR_LIST(NAME)
#undef NAME
};
const struct fit_generation fit_generations[FIT_GENERATIONS] = {
    {"ampere", MAQ_ARCH_AMPERE, "[volta, turing, ampere]"},
    {"ada", MAQ_ARCH_ADA, "[ada]"},
    {"hopper", MAQ_ARCH_HOPPER, "[hopper, cdna2, cdna3, cdna4, other]"},
    {"blackwell", MAQ_ARCH_BLACKWELL, "[blackwell]"},
};

static void write_curve(FILE *f, const char *name, const struct maq_coll_curve *c)
{
    fprintf(f, "    %s: {start_us: %.4g, hops: %.4g, gap: %.4g, share: %.4g, overlap: %.4g", name, c->start_s * 1e6,
            c->hops, c->gap, c->share, c->overlap);
    if (strncmp(name, "ep_", 3) == 0)
        fprintf(f, ", own: %.4g", c->own);
    fprintf(f, "}\n");
}

static void write_errors(FILE *f, double errors[MAQ_COLL_REGIME_COUNT][MAQ_COLL_BAND_COUNT])
{
    static const char *const regimes[MAQ_COLL_REGIME_COUNT] = {"near", "pcie", "far", "experts"};
    fprintf(
        f,
        "# One standard deviation of the relative error on rows whose origin was held back: messages of up to 64 KiB,\n"
        "# of up to 16 MiB, larger.\nerrors:\n");
    for (int r = 0; r < MAQ_COLL_REGIME_COUNT; r++)
        fprintf(f, "  %s: {small: %.3f, middle: %.3f, large: %.3f}\n", regimes[r], errors[r][MAQ_COLL_SMALL],
                errors[r][MAQ_COLL_MIDDLE], errors[r][MAQ_COLL_LARGE]);
}

static const char head[] =
    "# Coefficients of collectives (src/cost/collective/collective.h), written by tools/fit-collectives: do not edit.\n"
    "#\n"
    "# Fitted to published measurements: nccl-tests logs of 4 B to 16 GiB on 2 to 1,024 devices (repositories and\n"
    "# errors: docs/accuracy-collectives.md; NCCL 2.18 to 2.29), and the comm tables of NVIDIA "
    "ai-dynamo/aiconfigurator\n"
    "# (Apache-2.0; NCCL 2.23 to 2.29, TensorRT-LLM 1.0 to 1.3, vLLM 0.14 to 0.24, SGLang 0.5.10 to 0.5.14) on 2 to 64 "
    "devices.\n"
    "# Valid for devices of these generations and networks of these transports; others take the nearest (used_for).\n"
    "#\n"
    "# A curve: start in microseconds, hops and gap in latencies of the link, share of its rate, overlap; own rows.\n";

bool fit_write(const char *path, const struct fit *fit, double errors[MAQ_COLL_REGIME_COUNT][MAQ_COLL_BAND_COUNT])
{
    FILE *f = fopen(path, "w");
    if (!f)
        return false;
    fputs(head, f);
    if (errors)
        write_errors(f, errors);
    fprintf(f, "generations:\n");
    for (int g = 0; g < FIT_GENERATIONS; g++) {
        const struct maq_coll_generation *at = &fit->generations[g];
        fprintf(f, "  %s:\n    used_for: %s\n    ll_bytes: %.4g\n    span: %.4g\n", fit_generations[g].name,
                fit_generations[g].used_for, at->ll_bytes, at->span);
        for (int i = 0; i < MAQ_COLL_NEAR_COUNT; i++)
            write_curve(f, fit_near_names[i], &at->near[i]);
    }
    fprintf(f, "transports:\n");
    for (int t = 0; t < MAQ_TRANSPORT_COUNT; t++) {
        const struct maq_coll_transport *at = &fit->transports[t];
        fprintf(f, "  %s:\n    channel_bps: %.4g\n    shared_port: %.4g\n    shared_tree: %.4g\n    tiny_s: %.4g\n",
                maq_transport_name((enum maq_transport)t), at->channel_bps, at->shared_port, at->shared_tree,
                at->tiny_s);
        for (int i = 0; i < MAQ_COLL_FAR_COUNT; i++)
            write_curve(f, fit_far_names[i], &at->far[i]);
    }
    return fclose(f) == 0;
}
